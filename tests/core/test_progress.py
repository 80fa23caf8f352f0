"""How far an arm is on its way to a settled label."""

import pytest

import thresher
from thresher.core.certificate import BETS
from thresher.study import peek


def progress_of(rewards: "list[float]", **given: float) -> "list[float]":
    """After each reward."""
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=10_000, **given)  # type: ignore[arg-type]
    found = []
    for reward in rewards:
        pull = study.ask()
        if pull is None:
            break
        study.tell(pull, reward)
        found.append(study.verdict()["a"].progress or 0.0)
    return found


def test_progress_reaches_1_exactly_when_the_arm_is_settled() -> None:
    found = progress_of([1.0] * 50)
    assert found == sorted(found)
    assert found[-1] == 1.0
    assert max(found[:-1]) < 1.0
    assert len(found) < 50, "a settled arm is not pulled again"


@pytest.mark.parametrize("rewards", [[1.0, 0.0], [0.0, 1.0]])
def test_with_a_tolerance_progress_is_that_of_the_slower_of_two_proofs(rewards: "list[float]") -> None:
    """An arm is close when it is proved not far below and not far above the bar: one of the two is not enough."""
    found = progress_of(rewards * 400, tolerance=0.2)
    assert found[-1] == 1.0
    assert max(found[:-1]) < 1.0


@pytest.mark.parametrize("mean", [0.4, 0.6])
def test_a_proof_of_one_side_alone_is_no_progress_towards_close(mean: float) -> None:
    """Far from one edge of the tolerance and near the other: the near one decides."""
    ones = round(10 * mean)
    rewards = ([1.0] * ones + [0.0] * (10 - ones)) * 4
    wide, narrow = (progress_of(rewards, tolerance=tolerance)[-1] for tolerance in (0.3, 0.11))
    none = progress_of(rewards)[-1]
    assert narrow == pytest.approx(none, abs=0.1)
    assert wide > narrow


@pytest.mark.parametrize("side", [0, 1])
def test_a_proof_that_was_reached_once_counts_as_reached(side: int) -> None:
    """Not far below was proved by the first rewards, then the mean moves on: what is left is not far above."""
    first, then = ([1.0] * 3, [0.5, 0.25]) if side == 0 else ([0.0] * 3, [0.5, 0.75])
    study = thresher.create_study("s", arms=["a"], at_least=0.5, budget=10_000, tolerance=0.3, confidence=0.6)
    for reward in first + then * 200:
        pull = study.ask()
        if pull is None:
            break
        study.tell(pull, reward)
        reached = peek(study, lambda ledger: list(ledger.capitals[0][4 * BETS :]))
        progress = study.verdict()["a"].progress or 0.0
        assert (progress == 1.0) == study.verdict()["a"].certified
        if reached[side] and not reached[1 - side]:
            break
    else:
        pytest.fail("neither was reached alone")
