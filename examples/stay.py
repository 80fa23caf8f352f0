"""A persistent evaluator in Python: started once per worker, it names its arms and answers one pull after the other.

    thresher run --stay --at-least 0.8 -- python examples/stay.py

Which of these dice reach a mean of 0.8 of their highest number?
"""

import random

import thresher

DICE = {"d4": {"sides": 4, "rolls": 3}, "d6": {"sides": 6, "rolls": 1}, "d20": {"sides": 20, "rolls": 5}}


def best_roll(pull: thresher.Pull) -> dict[str, object]:
    """The best of a few rolls, as a share of the highest number. What takes long, such as a model, is loaded above."""
    dice, sides = random.Random(pull.seed), int(pull.params["sides"])  # noqa: S311 - a die
    rolls = [dice.randint(1, sides) for _ in range(int(pull.params["rolls"]))]
    return {"reward": max(rolls) / sides, "note": f"rolled {rolls}", "cost": 0.01 * len(rolls)}


if __name__ == "__main__":
    thresher.evaluator(best_roll, arms=DICE)
