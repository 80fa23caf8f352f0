"""False labels stay within the risk when evaluators cancel tasks after they have seen a bad outcome.

Each study is resumed until it is done. Seeded; the margins fail by chance less than once in a million.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable

import pytest
from chances import most

import thresher
from thresher.run.engines.coroutines import Coroutines
from thresher.study import Pull, Study

RISK, STUDIES, BUDGET = 0.3, 20, 100  # if the bad outcomes were left out, nearly all labels would be false
MEAN, BAR = 0.45, 0.5  # so that "above" is false
Attack = Callable[["asyncio.Task[object]"], None]  # with the task that awaits arun


def cancels_the_caller(caller: "asyncio.Task[object]") -> None:
    caller.cancel()


def cancels_itself(caller: "asyncio.Task[object]") -> None:
    task = asyncio.current_task()
    assert task
    task.cancel()


def cancels_everything(caller: "asyncio.Task[object]") -> None:
    for task in asyncio.all_tasks():
        task.cancel()


def reward_of(pull: Pull) -> float:
    return float(random.Random(pull.seed).random() < MEAN)


async def attacked(attack: Attack, seed: int) -> Study:
    """A study in which four of five bad outcomes are not told."""
    study = thresher.create_study(
        "s", arms=["a", "b"], at_least=BAR, confidence=1 - RISK, budget=BUDGET, seed=seed, max_failures=None
    )

    async def evaluate(pull: Pull) -> float:
        await asyncio.sleep(0)
        reward = reward_of(pull)
        if reward == 0.0 and pull.seed % 5:
            attack(caller)
            await asyncio.sleep(0)
        return reward

    while not study.done:
        caller: asyncio.Task[object] = asyncio.create_task(
            thresher.arun(study, evaluate, workers=4, in_flight=6, give_up=3600.0)
        )
        while not caller.done():
            try:
                await asyncio.wait([caller])
            except asyncio.CancelledError:  # everything was cancelled, this task too
                continue
    assert study.pending() == []
    return study


@pytest.mark.usefixtures("no_outage")
@pytest.mark.parametrize("attack", [cancels_the_caller, cancels_itself, cancels_everything])
def test_an_outcome_that_cancels_a_task_is_charged(attack: Attack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Coroutines, "grace", 0.0)
    false, fates = 0, Counter[str]()
    for seed in range(STUDIES):
        study = asyncio.run(attacked(attack, seed))
        false += bool(study.verdict().reached)
        for event in study.events():
            if event.kind == "told":
                fates[f"told {event.reward}"] += 1
            elif event.kind == "dropped":
                fates[str(event.cause)] += 1
    assert false <= most(STUDIES, RISK)
    told = fates["told 1.0"] / (fates["told 1.0"] + fates["told 0.0"])
    assert told > BAR + 0.15, "the attack works: without its charges, the arms would look good"
    assert fates["failed" if attack is cancels_itself else "lost"] > STUDIES
