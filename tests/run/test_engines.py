"""What `thresher.run` and `thresher.arun` promise, tested on every real engine."""

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
import rewritten
from engines import (
    COROUTINES,
    ENGINES,
    FOREVER,
    OF_THEIR_OWN,
    PLENTY,
    SHARED,
    TIMEOUT,
    Clock,
    CoroutineSides,
    Sides,
    calls,
    causes,
    evaluator,
    make,
    run,
)

import thresher
from thresher.core.places import mixed_place_word, seed_of_place
from thresher.core.policies import Policy, custom

each_engine = pytest.mark.parametrize("engine", ENGINES)
each_kind_of_engine = pytest.mark.parametrize("engine", [e for e in ENGINES if e not in ("thread-pool", "loky")])


@pytest.mark.parametrize(
    ("engine", "policy"),
    [*((engine, "ap-evt") for engine in ENGINES), ("threads", custom(rewritten.thirds))],
    ids=[*ENGINES, "threads-custom"],
)
def test_every_pull_is_evaluated_once_with_its_own_seed_and_decided_as_in_a_sequential_study(
    engine: str, policy: str | Policy, where: dict[str, Any], tmp_path: Path
) -> None:
    study = make("a", "b", "c", policy=policy, budget=120)
    verdict = run(engine, study, evaluator(engine, tmp_path), **where | ({"workers": 2} if engine == "ray" else {}))
    assert (verdict.told, verdict.pending, verdict.done) == (120, 0, True)
    numbers = {arm: itertools.count(1) for arm in range(3)}
    seeds = {
        event.pull or 0: seed_of_place(study.spec.seed or 0, event.arm or 0, 3, next(numbers[event.arm or 0]))
        for event in study.events()
        if event.kind == "asked"
    }
    assert len(set(seeds.values())) == 120
    assert sorted(calls(tmp_path)) == sorted(seeds.items())
    told = {event.pull: event.reward for event in study.events() if event.kind == "told"}
    assert told == {pull: seed / 2**32 for pull, seed in seeds.items()}
    again = make("a", "b", "c", policy=policy, budget=120)
    for event in study.events()[1:]:  # in the same order of completion
        if event.kind == "asked":
            pull = again.ask() or pytest.fail("no pull")
            assert (pull.id, pull.arm) == (event.pull, study.spec.arms[event.arm or 0])
        else:
            again.tell(event.pull or 0, event.reward)
    assert again.verdict().rows == verdict.rows


BAD = {  # what an arm does, and what its reason says
    "raises": "3 failures in a row, the last: ValueError: arm raises is broken",
    "nan": "finite number",
    "text": "'0.5'",
    "lock": "lock",
    "unreadable": "1 2",
    "looks-like-the-engine": "not at all",
}


@pytest.mark.usefixtures("no_outage")
@each_engine
def test_an_arm_that_never_returns_a_reward_is_retired_and_the_others_continue(
    engine: str, where: dict[str, Any]
) -> None:
    arms = [arm for bad, good in zip(BAD, "abcdef", strict=True) for arm in (good, bad)]
    verdict = run(engine, make(*arms, budget=150), evaluator(engine), **where)
    assert sorted(verdict.retired) == sorted(BAD)
    for arm, words in BAD.items():
        assert words in (verdict[arm].reason or "")
    assert (verdict.issued, verdict.pending) == (150, 0)
    assert [verdict[arm].failures for arm in "abcdef"] == [0] * 6


@pytest.mark.hangs
@each_engine
def test_a_hung_evaluation_ends_with_its_timeout_and_the_next_decisions_do_not_wait_for_it(
    engine: str, where: dict[str, Any], clock: Clock
) -> None:
    def go_on(progress: thresher.Progress) -> None:
        if progress.told == 59:  # all but the hung one
            clock.ahead = TIMEOUT

    study = make("a", "first-hangs", max_failures=1, budget=60)
    verdict = run(engine, study, evaluator(engine), timeout=TIMEOUT, on_progress=go_on, **where)
    assert verdict.retired == ["first-hangs"]
    assert "timed out after 60 s" in (verdict["first-hangs"].reason or "")
    assert (verdict.told, verdict.pending) == (59, 0)


@pytest.mark.hangs
@pytest.mark.parametrize("engine", SHARED + OF_THEIR_OWN)
def test_an_arm_that_kills_its_worker_is_retired_and_no_pull_is_made_twice(
    engine: str, where: dict[str, Any], clock: Clock, tmp_path: Path
) -> None:
    study = make("a", "dies", "b", "c", budget=PLENTY)

    def end_once_retired(progress: thresher.Progress) -> None:
        if study.verdict().retired:
            clock.end_the_run()

    options: dict[str, Any] = {"seconds": FOREVER, "on_progress": end_once_retired, **where}
    verdict = run(engine, study, evaluator(engine, tmp_path), **options)
    assert verdict.retired == ["dies"]
    assert verdict.pending == 0
    assert [verdict[arm].failures for arm in "abc"] == [0, 0, 0]
    made = [pull for pull, _ in calls(tmp_path)]
    assert len(made) == len(set(made))
    if engine in OF_THEIR_OWN:  # only the killer's own pulls are lost
        assert set(causes(study)) - {"cancelled"} == {"failed"}


@each_kind_of_engine
def test_a_busy_evaluation_is_repeated_and_costs_nothing(engine: str, where: dict[str, Any], tmp_path: Path) -> None:
    study = make("a", "busy", budget=20)
    verdict = run(engine, study, evaluator(engine, tmp_path), **where)
    assert verdict["busy"].seen == len(list(tmp_path.glob("busy-*"))) > 0
    assert causes(study) == []


@each_kind_of_engine
def test_both_sides_of_a_pair_are_evaluated_in_one_worker_in_the_order_of_the_seed(
    engine: str, where: dict[str, Any], tmp_path: Path
) -> None:
    study = make("old", "a", "bc", at_least=None, baseline="old", budget=60)
    verdict = run(engine, study, (CoroutineSides if engine in COROUTINES else Sides)(tmp_path), **where)
    assert (verdict.told, verdict.pending) == (60, 0)
    assert {(row.arm, row.reward, row.baseline) for row in study.pulls()} == {("a", 0.1, 0.3), ("bc", 0.2, 0.3)}
    sides = sorted((int(each[1]), int(each[5]), *each[2:5]) for each in (f.name.split("-") for f in tmp_path.iterdir()))
    assert len(sides) == 120
    first = set()
    for row, side, other in zip(study.pulls(), sides[::2], sides[1::2], strict=True):
        assert (side[0], side[2], side[4]) == (other[0], other[2], other[4]) == (row.id, str(row.seed), side[4])
        assert {side[3], other[3]} == {row.arm, "old"}
        assert (side[3] == "old") == bool(mixed_place_word(row.seed, 1) & 1)
        first.add(side[3])
    assert first == {"old", "a", "bc"}


def test_the_timeout_of_a_pull_counts_from_its_beginning(clock: Clock) -> None:
    def takes_long(pull: thresher.Pull) -> float:
        time.sleep(0.005)
        clock.ahead += TIMEOUT / 2
        return 0.5

    study = make("a", budget=30)
    verdict = thresher.run(study, takes_long, workers=1, in_flight=30, timeout=TIMEOUT)
    assert verdict.told == 30
    assert causes(study) == []
