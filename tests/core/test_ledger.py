"""The fold: what a live study knows, a reopened one knows too."""

import math
import random
from typing import Any

import pytest

import thresher
from thresher.core import spec as specs
from thresher.core.events import CAUSES
from thresher.core.ledger import fold_ledger, new_ledger
from thresher.core.spec import spec_from_json
from thresher.study import give_up_in_study, peek_study


def make(**given: Any) -> thresher.Study:
    plain: dict[str, Any] = {"arms": ["a", "b", "c"], "at_least": 0.5, "confidence": 0.9}
    return thresher.create_study("s", **plain | given)


def test_a_restored_study_has_the_same_capitals_bit_for_bit() -> None:
    study = make(tolerance=0.05, max_failures=None)
    rng = random.Random(2)
    pending: list[thresher.Pull] = []
    for _ in range(400):
        pending += study.ask_many(rng.randrange(3))
        if pending:
            pull = pending.pop(rng.randrange(len(pending)))
            if rng.random() < 0.1:
                give_up_in_study(study, pull, cause=rng.choice(CAUSES), reason="gone")
            else:
                study.tell(pull, rng.random())
    study.verdict()  # creates intervals, which are not part of the state
    assert fold_ledger(study.events()).state() == peek_study(study, lambda ledger: ledger.state())


def test_an_extended_study_asks_for_the_same_arm_live_and_reopened() -> None:
    """EVT's exploration is budget / K, so a larger budget changes every score at once."""
    study = make(policy="ap-evt", budget=7, confidence=None)
    rewards = {"a": [0.6, 0.6], "b": [0.28, 0.98], "c": [0.0, 0.1]}
    for _ in range(6):
        pull = study.ask() or pytest.fail("no pull")
        study.tell(pull, rewards[pull.arm][pull.number - 1])
    before = peek_study(study, lambda ledger: ledger.choose())
    study.extend(budget=100_000)
    live = peek_study(study, lambda ledger: ledger.choose())
    again = fold_ledger(study.events())
    assert (before, live) == (1, 0)  # the wide spread of b counts for less
    assert again.choose() == live
    assert again.state() == peek_study(study, lambda ledger: ledger.state())


@pytest.mark.parametrize(
    ("arms", "confidence", "risk"), [(3, 0.9, 0.1), (3, 0.99, 0.01), (5, 0.9, 0.1), (3, None, 0.05)]
)
def test_the_constant_of_the_cheapest_arm_follows_from_arms_and_confidence(
    arms: int, confidence: float | None, risk: float
) -> None:
    spec = specs.Spec(arms=map(str, range(arms)), at_least=0.5, budget=100, confidence=confidence)
    assert spec.settling_constant == pytest.approx(2 * math.log(16 * arms / risk))
    assert new_ledger(spec).second_rule.exploration == spec.settling_constant


def test_a_log_keeps_the_constant_that_it_was_written_with() -> None:
    """Another machine's logarithm may differ in the last digit, and its decisions must be the same here."""
    data = specs.Spec(arms=["a", "b"], at_least=0.5, seed=7).to_json()
    for stored in (math.nextafter(data["settling_constant"], step) for step in (-math.inf, math.inf)):
        read = spec_from_json({**data, "settling_constant": stored})
        assert read.settling_constant == new_ledger(read).second_rule.exploration == stored


@pytest.mark.parametrize("bit", [32, 33, 63, 64, 100, 127])
def test_every_bit_of_a_study_seed_counts(bit: int) -> None:
    one, other = (make(seed=seed).ask_many(20) for seed in (7, 7 + (1 << bit)))
    assert not {pull.seed for pull in one} & {pull.seed for pull in other}


def test_seeds_never_change() -> None:
    found = [(make(seed=seed).ask() or pytest.fail("no pull")).seed for seed in (0, 7, 7 + 2**32, 2**127)]
    assert found == [1075906205, 2421355081, 472178359, 571693342]


def test_one_repeated_evaluation_adds_a_caveat_to_the_guarantee_for_good() -> None:
    caveat = "Some evaluations were, or may have been, repeated"
    study = make(arms=["a"], budget=100)
    first, second, third = study.ask_many(3)
    study.tell(first, 1)
    assert caveat not in study.verdict().guarantee
    study.tell(second, 1, repeatable=True)
    assert caveat in study.verdict().guarantee
    study.tell(third, 1)
    assert caveat in study.verdict().guarantee
    assert fold_ledger(study.events()).repeatable
    while pull := study.ask():
        study.tell(pull, 1)
    assert study.verdict()["a"].certified
    assert caveat in study.verdict().guarantee


def test_results_are_imported_for_a_retired_arm() -> None:
    study = make(arms=["a", "b"])
    study.retire("a")
    study.add_many([("a", 1.0)] * 60)
    assert study.verdict()["a"].seen == 60


def test_what_is_left_of_a_budget_are_the_pulls_that_have_not_ended() -> None:
    study = make(budget=10)
    first, second, _ = study.ask_many(3)
    assert peek_study(study, lambda ledger: ledger.left) == 10
    study.tell(first, 1)
    study.drop(second, cause="lost")
    assert peek_study(study, lambda ledger: ledger.left) == 8
    assert peek_study(make(budget=None), lambda ledger: ledger.left) is None
