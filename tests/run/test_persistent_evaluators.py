"""What persistent evaluators promise, on every real engine."""

from pathlib import Path
from typing import Any

import pytest
import stayer
from engines import causes, make, until
from program import runs

import thresher
from thresher.core.places import seed_of_place
from thresher.run.command import persistent
from thresher.run.command.persistent import PersistentEvaluator, PersistentProcess

ENGINES = ("threads", "thread-pool", "process-pool", "dask", "processes", "ray")
each_engine = pytest.mark.parametrize("engine", ENGINES)


def pids(study: thresher.Study) -> set[int]:
    """The processes that answered: each says its number as a note."""
    return {int(row.note) for row in study.pulls() if row.note}


@each_engine
def test_a_few_processes_answer_all_pulls_and_none_is_left_behind(engine: str, where: dict[str, Any]) -> None:
    study, evaluate = make("a", "b", "c", budget=120), stayer.evaluator()
    verdict = thresher.run(study, evaluate, **where)
    assert (verdict.told, verdict.pending, verdict.cost) == (120, 0, 30.0)
    for row in study.pulls():
        number = study.spec.arms.index(row.arm)
        assert row.reward == seed_of_place(study.spec.seed or 0, number, 3, row.number) / 2**32
    assert 1 <= len(pids(study)) <= 4
    evaluate.stop()  # of this process
    if engine != "process-pool":  # the user's pool is still there, and so are its evaluators
        until(lambda: not any(runs(pid) for pid in pids(study)), "the end of the processes")


@pytest.mark.usefixtures("no_outage")
@pytest.mark.parametrize("engine", ["threads", "process-pool", "processes", "dask"])
def test_an_arm_that_fails_kills_or_talks_nonsense_is_retired_and_the_others_continue(
    engine: str, where: dict[str, Any]
) -> None:
    study, evaluate = make("a", "dies", "b", "error", "garbage", "c", budget=200), stayer.evaluator()
    verdict = thresher.run(study, evaluate, **where)
    evaluate.stop()
    assert sorted(verdict.retired) == ["dies", "error", "garbage"]
    assert "no such model" in (verdict["error"].reason or "")
    assert "the evaluator was ended by SIGKILL" in (verdict["dies"].reason or "")
    assert "printed a line that is not JSON: 'loading the model …'" in (verdict["garbage"].reason or "")
    assert [verdict[arm].failures for arm in "abc"] == [0, 0, 0]
    assert verdict.pending == 0
    assert set(causes(study)) <= {"failed", "broken-pool"}


@pytest.mark.parametrize("engine", ["threads", "processes", "dask"])
def test_an_evaluator_of_another_version_ends_the_run_in_one_line(engine: str, where: dict[str, Any]) -> None:
    study, evaluate = make("a", "b", "c"), stayer.evaluator("future")
    with pytest.raises(thresher.CannotGoOn, match="protocol 2: COMMAND speaks another version") as caught:
        thresher.run(study, evaluate, **where)
    evaluate.stop()
    assert "\n" not in str(caught.value)
    assert study.verdict().pending == 0


@pytest.mark.parametrize("engine", ["threads", "processes", "dask"])
def test_both_sides_of_a_pair_are_evaluated_in_the_same_process(engine: str, where: dict[str, Any]) -> None:
    study = make("old", "new", "other", at_least=None, baseline="old", budget=60)
    evaluate = stayer.evaluator().for_study(study.spec)
    verdict = thresher.run(study, evaluate, **where)
    evaluate.stop()
    assert (verdict.told, verdict.cost) == (60, 30.0)
    for row in study.pulls():
        mine, other = (row.note or "").split("; ")
        assert mine == other
        assert row.reward == row.baseline == row.seed / 2**32  # the same seed


def test_the_process_that_names_the_arms_gets_the_pulls_too(monkeypatch: pytest.MonkeyPatch) -> None:
    started = list[PersistentProcess]()

    def start(*arguments: Any) -> PersistentProcess:
        started.append(PersistentProcess(*arguments))
        return started[-1]

    monkeypatch.setattr(persistent, "PersistentProcess", start)
    monkeypatch.setattr(persistent, "PATIENCE", 20.0)
    unasked = stayer.evaluator("greet")
    assert unasked.arms_named() == (["a", {"name": "b", "depth": 2}], None)
    study = make("a", "b", budget=4)
    evaluate = unasked.for_study(study.spec)
    assert thresher.run(study, evaluate, workers=1).told == 4
    evaluate.stop()
    assert len(started) == 1


ECHO = r's/.*"pull":\([-0-9]*\),.*/{"pull": \1, "reward": 0.5, "note": "\1"}/'


@pytest.mark.parametrize("question", [{}, {"cases": 4}], ids=["in pairs", "of the same cases"])
def test_in_a_pair_the_id_of_the_baseline_has_a_minus_sign(question: dict[str, Any]) -> None:
    study = make("old", "new", at_least=None, baseline="old", budget=8, **question)
    evaluate = PersistentEvaluator(("sed", "-u", ECHO)).for_study(study.spec)
    thresher.run(study, evaluate, workers=1)
    evaluate.stop()
    for row in study.pulls():
        ids = {f"{row.id}"} if question else {f"{row.id}", f"-{row.id}"}
        assert set((row.note or "").split("; ")) == ids


def test_an_evaluator_has_time_to_clean_up_after_the_end_of_its_input(tmp_path: Path) -> None:
    for engine in ("threads", "processes"):
        study, evaluate = make("a", "b", budget=20), stayer.evaluator("slowly", str(tmp_path))
        thresher.run(study, evaluate, workers=2, executor=engine)
        evaluate.stop()
        until(lambda study=study: all((tmp_path / str(pid)).exists() for pid in pids(study)), "the clean-up")  # type: ignore[misc]
