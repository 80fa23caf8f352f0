"""What `thresher.run` promises, tested on every real engine."""

import math
import time
from pathlib import Path
from typing import Any

import pytest
from engines import ENGINES, FEW, OF_THEIR_OWN, PLENTY, SHARED, calls, causes, evaluator, make

import thresher

each_engine = pytest.mark.parametrize("engine", ENGINES)


@each_engine
def test_a_thousand_pulls_of_one_arm_are_a_thousand_draws_each_made_once(
    engine: str, place: dict[str, Any], tmp_path: Path
) -> None:
    study = make("a", budget=1000)
    verdict = thresher.run(study, evaluator(engine, tmp_path), **place)
    asked = [event.pull or 0 for event in study.events() if event.kind == "asked"]
    seeds = {pull: thresher.core.seeds.pull_seed(pull, 0) for pull in asked}
    assert len(set(seeds.values())) == 1000
    assert sorted(calls(tmp_path)) == sorted(seeds.items())
    assert [verdict["a"].seen, verdict.told, verdict.pending] == [1000, 1000, 0]
    assert len({event.reward for event in study.events() if event.kind == "told"}) == 1000
    assert verdict["a"].mean == pytest.approx(math.fsum(seeds.values()) / 1000 / 2**32)
    assert verdict.done


@each_engine
def test_an_arm_that_always_raises_is_retired_and_the_others_continue(engine: str, place: dict[str, Any]) -> None:
    verdict = thresher.run(make("a", "raises", "b", budget=FEW.get(engine, 600)), evaluator(engine), **place)
    assert verdict.retired == ["raises"]
    assert verdict["raises"].reason == "3 failures in a row, the last: ValueError: arm raises is broken"
    assert (verdict.issued, verdict.pending) == (FEW.get(engine, 600), 0)


@each_engine
@pytest.mark.parametrize(
    ("arm", "words"), [("nan", "finite number"), ("text", "'0.5'"), ("lock", "lock"), ("unreadable", "1 2")]
)
def test_a_result_that_is_not_a_reward_is_a_failure(engine: str, arm: str, words: str, place: dict[str, Any]) -> None:
    verdict = thresher.run(make("a", arm, "b", budget=FEW.get(engine, 600)), evaluator(engine), **place)
    assert verdict.retired == [arm]
    assert words in (verdict[arm].reason or "")


@each_engine
def test_a_hung_evaluation_ends_with_its_timeout(engine: str, place: dict[str, Any]) -> None:
    study = make("a", "hangs", max_failures=1, budget=12)
    verdict = thresher.run(study, evaluator(engine), timeout=2.0, **place)
    assert verdict.retired == ["hangs"]
    assert "timed out after 2 s" in (verdict["hangs"].reason or "")
    assert verdict.pending == 0
    assert verdict["a"].seen > 0


@pytest.mark.alone
@pytest.mark.parametrize("engine", SHARED + OF_THEIR_OWN)
def test_an_arm_that_kills_its_worker_is_retired_and_no_pull_is_made_twice(
    engine: str, place: dict[str, Any], tmp_path: Path
) -> None:
    study = make("a", "dies", "b", "c", budget=PLENTY if engine == "processes" else 200)
    verdict = thresher.run(study, evaluator(engine, tmp_path), **place)
    assert verdict.retired == ["dies"]
    assert verdict.pending == 0
    assert [verdict[arm].failures for arm in "abc"] == [0, 0, 0]
    made = [pull for pull, _ in calls(tmp_path)]
    assert len(made) == len(set(made))
    if engine in OF_THEIR_OWN:  # only the killer's own pulls are lost
        assert set(causes(study)) == {"failed"}


@each_engine
def test_a_busy_evaluation_is_repeated_and_costs_nothing(engine: str, place: dict[str, Any], tmp_path: Path) -> None:
    study = make("a", "busy", budget=20)
    verdict = thresher.run(study, evaluator(engine, tmp_path), **place)
    assert verdict["busy"].seen == len(list(tmp_path.glob("busy-*"))) > 0
    assert causes(study) == []


@each_engine
def test_results_equal_those_of_a_sequential_study_with_the_same_completion_order(
    engine: str, place: dict[str, Any]
) -> None:
    study = make("a", "b", "c", policy="ap-evt")
    thresher.run(study, evaluator(engine), **place)
    again = make("a", "b", "c", policy="ap-evt")
    for event in study.events()[1:]:
        if event.kind == "asked":
            pull = again.ask() or pytest.fail("no pull")
            assert (pull.id, pull.arm) == (event.pull, study.spec.arms[event.arm or 0])
        else:
            again.tell(event.pull or 0, event.reward)
    assert again.verdict().rows == study.verdict().rows


@each_engine
def test_it_never_waits_for_a_slow_pull_before_deciding_the_next(engine: str, place: dict[str, Any]) -> None:
    study = make("a", "first-hangs", budget=60)
    thresher.run(study, evaluator(engine), timeout=2.5, **place)
    kinds = [(event.kind, event.arm) for event in study.events()]
    first_drop = next(at for at, (kind, _) in enumerate(kinds) if kind == "dropped")
    assert sum(kind == "told" for kind, _ in kinds[:first_drop]) > 5


@each_engine
def test_a_failure_that_looks_like_the_engines_own_is_the_evaluators(engine: str, place: dict[str, Any]) -> None:
    verdict = thresher.run(make("a", "looks-like-the-engine", budget=FEW.get(engine, 600)), evaluator(engine), **place)
    assert verdict.retired == ["looks-like-the-engine"]


@pytest.mark.alone
def test_the_timeout_of_a_pull_counts_from_its_beginning() -> None:
    study = make("a", budget=30)
    verdict = thresher.run(study, _slow, workers=1, in_flight=30, timeout=1.0)
    assert verdict.told == 30
    assert causes(study) == []


def _slow(pull: thresher.Pull) -> float:
    time.sleep(0.1)
    return 0.5
