"""inspect_ai: `sift` and `stopping`, offline. Samples run slowly there, so each test has few."""

import asyncio
import contextlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from inspecting import model, samples, task

import thresher
from thresher.adapters.inspect import InspectStopping, asift, sift, stopping

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("inspect_ai") is None, reason="inspect_ai is not installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # inspect_ai's own
]


@pytest.fixture
def quiet(tmp_path: Path) -> dict[str, Any]:
    return {"display": "none", "log_dir": str(tmp_path / "logs"), "max_samples": 4, "log_realtime": False}


def test_each_task_stops_as_soon_as_it_is_settled(quiet: dict[str, Any]) -> None:
    calls: list[int] = []
    good, bad = task("good", 1.0, calls, count=60), task("bad", 0.0, calls, count=60)
    verdict = sift([good, bad], at_least=0.5, **quiet)
    assert (verdict.reached, verdict.missed) == (["good"], ["bad"])
    assert all(row.certified and row.pending == 0 for row in verdict)
    assert len(calls) < 50
    assert good.early_stopping is None
    assert [sample.id for sample in good.dataset][:2] == ["q0", "q1"]


def test_within_the_tolerance_either_answer_is_right(quiet: dict[str, Any]) -> None:
    calls: list[int] = []
    verdict = sift(task("fair", 0.5, calls, count=60), at_least=0.5, tolerance=0.3, confidence=0.5, **quiet)
    assert (verdict.edges, verdict.open) == ((0.2, 0.8), [])
    assert len(calls) < 50
    assert verdict.question == "Does the arm reach 50 % on 60 cases, give or take 30 points?"


def test_one_task_with_several_models_resumes_and_runs_no_sample_twice(quiet: dict[str, Any], tmp_path: Path) -> None:
    calls: list[int] = []
    models = {"a": model(0.7, calls), "b": model(0.4, calls)}
    from inspect_ai import Task
    from inspect_ai.dataset import MemoryDataset
    from inspect_ai.scorer import match
    from inspect_ai.solver import generate

    sums = Task(dataset=MemoryDataset(samples(20, ids=False)), solver=generate(), scorer=match(), name="sums")
    arguments: dict[str, Any] = {
        "at_least": 0.55,
        "models": models,
        "confidence": 0.999,
        "storage": f"sqlite:///{tmp_path / 'evals.db'}",
    }
    first = sift(sums, limit=6, **arguments, **quiet)
    assert sorted(row.arm for row in first) == ["sums@a", "sums@b"]
    assert first.told == len(calls) == 12
    second = sift(sums, **arguments, **quiet)
    assert second.open == []
    assert len(calls) == second.told <= 40
    assert sift(sums, **arguments, **quiet).told == len(calls)
    study = thresher.open_study("inspect", storage=arguments["storage"])
    assert thresher.verify(study.events()).sound
    study.close()


def test_errors_that_are_tolerated_are_failures_and_tried_again_only_if_inspect_does(quiet: dict[str, Any]) -> None:
    calls: list[int] = []

    def breaks(number: int) -> None:
        if number == 3 or (number == 5 and calls.count(5) == 1):
            raise RuntimeError("out of order")

    flaky = task("flaky", 1.0, calls, count=8, act=breaks)
    verdict = sift(flaky, at_least=0.95, confidence=0.999, fail_on_error=False, retry_on_error=1, **quiet)
    row = verdict["flaky"]
    assert (calls.count(3), calls.count(5)) == (2, 2)
    assert (row.cases, row.failures, row.pending) == (7, 3, 0)
    assert not row.certified


@pytest.mark.parametrize(("error", "calls_of_it"), [(ValueError, 1), (ConnectionRefusedError, 2)])
def test_an_eval_that_ends_with_an_error_runs_the_others_again_and_not_the_sample_that_failed(
    error: type[Exception], calls_of_it: int, quiet: dict[str, Any], tmp_path: Path
) -> None:
    calls: list[int] = []

    def breaks(number: int) -> None:
        if number == 3 and calls.count(3) == 1:
            raise error("cannot parse")

    arguments: dict[str, Any] = {"at_least": 0.9, "confidence": 0.999, "storage": f"sqlite:///{tmp_path / 'evals.db'}"}
    arguments |= {"seed": 1}  # sample 3 is the last of six
    tasks = [task("breaks", 1.0, calls, count=6, act=breaks), task("works", 1.0, [], count=6)]
    with pytest.warns(UserWarning, match=r"task breaks with mockllm/model ended with an error: .*cannot parse"):
        first = sift(tasks, **arguments, **quiet)
    assert first["works"].exact
    assert not first["breaks"].exact
    assert first.pending == 0
    again = sift(tasks, **arguments, **quiet)["breaks"]
    assert calls.count(3) == calls_of_it
    assert (again.missing, again.certified) == ((1, False) if calls_of_it == 1 else (0, True))


def test_where_nothing_ran_the_error_is_raised(quiet: dict[str, Any]) -> None:
    def breaks(number: int) -> None:
        raise RuntimeError("no such model")

    with pytest.raises(thresher.CannotGoOn, match="no such model"):
        sift(task("breaks", 1.0, [], count=3, act=breaks), at_least=0.9, **quiet)


def test_a_budget_and_a_reading_of_the_scores(quiet: dict[str, Any]) -> None:
    calls: list[int] = []
    graded = task("graded", 1.0, calls, count=12, scorers=["match", "includes"])
    verdict = sift(
        graded,
        at_least=2,
        scorer="includes",
        value=lambda value: 3.0 if value == "C" else 0.0,
        bounds=(0, 4),
        budget=5,
        **quiet,
    )
    assert len(calls) == verdict.told == 5
    assert verdict["graded"].mean == 3.0


def test_a_score_that_is_no_number_is_an_error(quiet: dict[str, Any]) -> None:
    def broken(value: object) -> float:
        raise ValueError("what is this?")

    with pytest.raises(ValueError, match="what is this"):
        sift(task("graded", 1.0, [], count=3), at_least=0.5, value=broken, **quiet)


def test_it_can_be_awaited(quiet: dict[str, Any]) -> None:
    del quiet["display"]
    verdict = asyncio.run(asift([task("good", 1.0, [], count=10)], at_least=0.5, confidence=0.5, **quiet))
    assert verdict.reached == ["good"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tasks": []}, "tasks .*must not be empty"),
        ({"tasks": [3]}, "task 3: is not a Task of inspect_ai; call the function that makes it"),
        ({"tasks": lambda: [task("a", 1, []), task("a", 1, [])]}, "task 'a': is given twice"),
        (
            {"tasks": lambda: [task("a", 1, [], count=3), task("b", 1, [], count=4)]},
            "sample 'q3': is in task 'b' and not in task 'a'; all tasks need the same sample ids",
        ),
        (
            {"tasks": lambda: task("a", 1, [], epochs=2)},
            "epochs 2: each sample is a case, and a case counts once; run one epoch",
        ),
        ({"epochs": 2}, "epochs 2: each sample"),
        ({"sample_id": ["q1"]}, "sample_id .*chosen by hand"),
        ({"limit": (3, 5)}, r"limit \(3, 5\): the study draws the order"),
        ({"log_samples": False}, "log_samples False"),
        ({"score": False}, "without scores there are no rewards"),
        ({"model": ["a", "b"]}, "pass models="),
        ({"tasks": lambda: task("a", 1, [], scorers=["match", "includes"])}, "the task has several: match, includes"),
        ({"scorer": "exact"}, "scorer 'exact': is not a scorer of the task; it has match"),
        ({"at_least": 1.5}, "strictly inside the bounds"),
    ],
)
def test_what_cannot_be_sifted_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"tasks": lambda: task("a", 1, []), "at_least": 0.5, **change}
    tasks = arguments.pop("tasks")
    with pytest.raises(thresher.InvalidInput, match=message):
        sift(tasks() if callable(tasks) else tasks, **arguments)


def study_of(count: int = 40, **question: Any) -> thresher.Study:
    arguments: dict[str, Any] = {"at_least": 0.5, "cases": [f"q{at}" for at in range(count)], **question}
    return thresher.create_study("own", arms=["mine", "other"], **arguments)


OPTIONS = ("limit", "sample_id", "epochs", "task_retry_attempts")


def gated(study: thresher.Study, quiet: dict[str, Any], calls: list[int], **more: Any) -> "EvalLog":
    from inspect_ai import eval as evaluate

    options: dict[str, Any] = {name: more.pop(name) for name in OPTIONS if name in more}
    mine = task("mine", 0.9, calls, early_stopping=stopping(study, "mine"), **{"shuffled": 1, **more})
    return evaluate(mine, **options, **quiet)[0]


def test_those_who_build_their_own_task_stop_it_too(quiet: dict[str, Any]) -> None:
    calls: list[int] = []
    study = study_of()
    log = gated(study, quiet, calls)
    assert log.status == "success", log.error
    assert study.verdict()["mine"].certified
    assert len(calls) < 40
    assert log.results is not None
    assert log.results.early_stopping is not None
    assert log.results.early_stopping.early_stops[0].reason == "settled: it reaches the bar"
    assert log.results.early_stopping.metadata["reached"] is True
    assert "had shuffled them" in study.verdict().guarantee
    assert thresher.verify(study.events()).sound


def test_a_limit_another_shuffle_and_a_retried_log_meet_every_case_once(quiet: dict[str, Any]) -> None:
    calls: list[int] = []

    def breaks(number: int) -> None:
        if len(calls) == 9:
            raise RuntimeError("out of order")

    study = study_of(12, confidence=0.999, at_least=0.7)
    gated(study, quiet, calls, count=12, shuffled=1, limit=3)
    assert study.verdict().told == 3
    retried = gated(study, quiet, calls, count=12, shuffled=2, act=breaks, task_retry_attempts=1)
    assert retried.status == "success"
    assert len(calls) <= 17  # those that ran when the ninth failed ran again
    row = study.verdict()["mine"]
    assert row.certified
    assert row.pending == 0
    told = [pull.case for pull in study.pulls() if pull.state == "told"]
    assert len(told) == len(set(told))
    assert thresher.verify(study.events()).sound


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"shuffled": None}, "is not shuffled, and the first samples need not be like the others; pass sample_shuffle"),
        ({"sample_id": ["q1", "q2"]}, "chosen by hand"),
        ({"epochs": 2}, "a case counts once"),
        ({"count": 39}, "has 39 samples, and the study 40 cases"),
        ({"scorers": ["match", "includes"]}, "the task has several"),
    ],
)
def test_stopping_refuses_what_would_not_be_a_random_order(
    quiet: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    calls: list[int] = []
    study = study_of()
    log = gated(study, quiet, calls, **more)
    assert log.status == "error"
    assert log.error is not None
    assert message in log.error.message
    assert not calls
    assert len(study.events()) == 1


@pytest.mark.parametrize(
    ("study", "message"),
    [
        (lambda: study_of(guarantee="rate"), "guarantee 'rate' needs"),
        (lambda: study_of(cases=None), "has no cases"),
        (lambda: study_of(at_least=None, baseline="other"), "compares with a baseline"),
    ],
)
def test_stopping_refuses_a_study_that_needs_its_own_order(study: Any, message: str) -> None:
    with pytest.raises(thresher.InvalidInput, match=message):
        stopping(study(), "mine")
    with pytest.raises(thresher.UnknownArm):
        stopping(study(), "yours")


def test_a_sample_that_ended_an_eval_with_its_error_has_failed(quiet: dict[str, Any]) -> None:
    from inspect_ai import eval as evaluate

    def breaks(number: int) -> None:
        if number == calls[0]:
            raise ValueError("cannot parse")

    study, calls = study_of(), list[int]()
    for _ in range(2):
        with stopping(study, "mine") as stop:
            evaluate(task("mine", 1.0, calls, act=breaks, shuffled=1, early_stopping=stop), **quiet)
    assert calls.count(calls[0]) == 1
    assert [event.reason for event in study.events() if event.cause == "failed"] == ["ValueError('cannot parse')"]


def test_what_a_cancelled_eval_left_is_dropped_by_close(quiet: dict[str, Any]) -> None:
    calls: list[int] = []

    async def cancelled(stop: InspectStopping) -> None:
        from inspect_ai import eval_async

        fifth = asyncio.Event()

        def act(number: int) -> None:
            if len(calls) == 5:
                fifth.set()

        mine = task("mine", 0.9, calls, act=act, shuffled=1, early_stopping=stop)
        running = asyncio.create_task(eval_async(mine, **quiet))
        await fifth.wait()
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    del quiet["display"]
    study = study_of()
    with stopping(study, "mine") as stop:
        asyncio.run(cancelled(stop))
    assert 5 <= len(calls) < 12
    assert not study.pending()
    assert {event.cause for event in study.events() if event.kind == "dropped"} <= {"lost", "cancelled"}
    assert thresher.verify(study.events()).sound
