"""Questions: the direction of the bar, shares within a limit, and differences from a baseline count as one mean."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher
from thresher.core.ledger import fold_ledger
from thresher.core.replay import verify
from thresher.study import peek_study

ARMS = ["a", "b", "c"]
seeds = st.integers(0, 2**32 - 1)


def create(**given: Any) -> thresher.Study:
    return thresher.create_study("s", **{"arms": ARMS, "confidence": 0.8, "policy": "balanced", **given})


def play(study: thresher.Study, rewards: Any, most: int = 300) -> list[tuple[str, Any]]:
    """Which arms were pulled, and on which case."""
    asked = []
    for _ in range(most):
        if (pull := study.ask()) is None:
            break
        asked.append((pull.arm, pull.case))
        study.tell(pull, rewards(pull))
    assert fold_ledger(study.events()).state() == peek_study(study, lambda ledger: ledger.state())
    assert verify(study.events()).sound
    return asked


def answers(study: thresher.Study) -> list[tuple[Any, ...]]:
    return [(row.arm, row.reached, row.certified, row.seen, row.left) for row in study.verdict()]


@settings(max_examples=12, deadline=None)
@given(seed=seeds, bar=st.integers(1, 15), tolerance=st.sampled_from([0.0, 0.125]), cases=st.sampled_from([None, 40]))
def test_at_most_is_at_least_in_a_mirror(seed: int, bar: int, tolerance: float, cases: int | None) -> None:
    tolerance = min(tolerance, (min(bar, 16 - bar) - 0.5) / 16)
    up = create(at_least=1 - bar / 16, tolerance=tolerance, cases=cases, seed=seed)
    down = create(at_most=bar / 16, tolerance=tolerance, cases=cases, seed=seed)

    def reward(pull: thresher.Pull) -> float:
        return random.Random(f"{seed} {pull.arm} {pull.case} {pull.number}").randrange(17) / 16

    assert play(up, reward) == play(down, lambda pull: 1 - reward(pull))
    assert answers(up) == answers(down)
    for mine, other in zip(up.verdict(), down.verdict(), strict=True):
        assert mine.standing == other.standing
        assert mine.mean is None or other.mean == pytest.approx(1 - mine.mean)
        if mine.low is not None and mine.high is not None:
            assert other.low == pytest.approx(1 - mine.high)
            assert other.high == pytest.approx(1 - mine.low)


@pytest.mark.parametrize("asked", [{"at_least": 0.5}, {"at_most": 0.5}])
@pytest.mark.parametrize("cases", [None, 4])
def test_a_mean_on_the_bar_reaches_it_in_both_directions(asked: Any, cases: int | None) -> None:
    study = create(arms=["a"], budget=4, cases=cases, **asked)
    play(study, lambda pull: (pull.number > 2) == ("at_least" in asked))  # nothing is certain before the last
    row = study.verdict()["a"]
    assert (row.reached, row.mean, row.certified) == (True, 0.5, cases is not None)
    assert study.verdict().reached == (["a"] if cases else [])
    assert study.verdict().missed == []


@settings(max_examples=12, deadline=None)
@given(seed=seeds, lower=st.booleans(), share=st.sampled_from([0.5, 0.9]), cases=st.sampled_from([None, 40]))
def test_a_share_counts_what_is_within_the_limit(seed: int, lower: bool, share: float, cases: int | None) -> None:
    limit = 3.0
    asked = create(**{"at_most" if lower else "at_least": limit, "share": share, "cases": cases, "seed": seed})
    passed = create(at_least=share, cases=cases, seed=seed)

    def value(pull: thresher.Pull) -> float:
        return random.Random(f"{seed} {pull.arm} {pull.case} {pull.number}").choice([-1e9, 2.5, 3.0, 3.5, 1e9])

    def is_within(pull: thresher.Pull) -> bool:
        return value(pull) <= limit if lower else value(pull) >= limit

    assert play(asked, value) == play(passed, is_within)
    assert answers(asked) == answers(passed)
    for row, other in zip(asked.verdict(), passed.verdict(), strict=True):
        assert (row.share, row.low, row.high) == (other.mean, other.low, other.high)
        if row.seen:
            within = row.quantile <= limit if lower else row.quantile >= limit  # type: ignore[operator]
            assert within == (row.share >= share)  # type: ignore[operator]


@settings(max_examples=12, deadline=None)
@given(seed=seeds, lower=st.booleans(), margin=st.sampled_from([-0.25, 0.0, 0.125]))
def test_a_pair_counts_as_its_difference(seed: int, lower: bool, margin: float) -> None:
    pairs = create(arms=[*ARMS, "now"], baseline="now", margin=margin, lower_is_better=lower, policy="uniform")
    alone = create(at_least=margin, bounds=(-1, 1), policy="uniform")

    def both(pull: thresher.Pull) -> tuple[float, float]:
        chance = random.Random(f"{seed} {pull.arm} {pull.number}")
        return chance.randrange(17) / 16, chance.randrange(17) / 16

    def better(pull: thresher.Pull) -> float:
        one, two = both(pull)
        return two - one if lower else one - two

    assert play(pairs, both) == play(alone, better)
    assert answers(pairs)[:3] == answers(alone)
    for row, other in zip(list(pairs.verdict())[:3], alone.verdict(), strict=True):
        sign = -1 if lower else 1
        assert row.difference == (None if other.mean is None else sign * other.mean)
        if row.seen:
            assert row.mean - row.baseline == pytest.approx(row.difference)  # type: ignore[operator]
    assert pairs.verdict()["now"].standing == "baseline"
    assert not pairs.verdict()["now"].certified


@settings(max_examples=12, deadline=None)
@given(
    seed=seeds, margin=st.sampled_from([-0.25, 0.0, 0.125]), imports=st.booleans(),
    rest=st.sampled_from([{}, {"guarantee": "rate"}, {"find": 1}, {"tolerance": 0.1}]),
)  # fmt: skip
def test_on_cases_the_baseline_goes_first_and_then_differences_count(
    seed: int, margin: float, imports: bool, rest: Any
) -> None:
    size = 30
    chance = random.Random(seed)
    table = {arm: [chance.randrange(5) / 4 for _ in range(size)] for arm in [*ARMS, "now"]}
    given = {"policy": "uniform", "cases": size, "seed": seed, **rest}
    study = create(arms=[*ARMS, "now"], baseline="now", margin=margin, **given)
    alone = create(at_least=margin, bounds=(-1, 1), **given)
    if imports:
        study.add_many([("now", table["now"][case], case) for case in range(size)])
    asked = play(study, lambda pull: table[pull.arm][pull.case])
    first = 0 if imports else size
    assert {arm for arm, _ in asked[:first]} <= {"now"}
    expected = play(alone, lambda pull: table[pull.arm][pull.case] - table["now"][pull.case])
    assert asked[first:] == expected
    assert answers(study)[:3] == answers(alone)
    for arm in ARMS:
        row = study.verdict()[arm]
        truth = sum(table[arm]) / size - sum(table["now"]) / size
        if row.exact:
            assert row.difference == pytest.approx(truth)
