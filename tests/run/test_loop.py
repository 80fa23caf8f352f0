"""The loop of a run, one round at a time: what it hands out, what becomes of each pull, and how it ends."""

import signal
from concurrent.futures import CancelledError
from typing import Any

import pytest
from engines import causes, make
from steps import Scripted, Step, Still, dropped, run, stand_still

import thresher
from thresher.errors import Busy, CannotGoOn, StoreFailed
from thresher.run import signals
from thresher.run.failures import NoWorkersFailure


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Still:
    return stand_still(monkeypatch)


def fails(*_: object, **__: object) -> None:
    raise StoreFailed("storage", rule="the disk is full")


def gone(_: Scripted) -> None:
    raise CannotGoOn("executor", rule="it is gone")


# -- handing out -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("in_flight", "most", "expected"), [(None, None, 4), (7, None, 7), (None, 5, 5), (2, 5, 2)])
def test_as_many_pulls_are_pending_as_there_is_room(in_flight: Any, most: Any, expected: int) -> None:
    def pending(count: int) -> Step:
        return lambda engine: pytest.fail(str(engine.submitted)) if len(engine.submitted) != count else None

    steps = pending(expected), lambda engine: engine.returns(0.5, 1), pending(expected), pending(expected + 1)
    engine = Scripted(*steps, most=most)
    run(make(budget=20), engine, in_flight=in_flight)
    assert (engine.submitted, engine.waited) == (list(range(1, 21)), [True])


def test_without_a_worker_a_run_waits_but_not_forever(still: Still) -> None:
    study = make(budget=20)
    with pytest.raises(CannotGoOn, match="there was no worker for 5 s"):
        run(study, Scripted(still.passes(4.9), still.passes(0.1), still.passes(0.0), workers=0), give_up=5.0)
    assert study.verdict().issued == 0


def test_without_a_worker_pulls_are_handed_out_where_that_may_start_one(still: Still) -> None:
    engine = Scripted(workers=0, most=2)
    run(make(budget=4), engine, give_up=5.0)
    assert engine.submitted == [1, 2, 3, 4]


def test_the_time_without_a_worker_begins_anew_each_time(still: Still) -> None:
    def workers(count: int) -> Step:
        return lambda engine: setattr(engine, "workers", count)

    gap = workers(0), still.passes(4.0), still.passes(0.0), workers(1), still.passes(1000.0)
    run(make(budget=8), Scripted(*gap, *gap, workers=1), give_up=5.0)


def test_a_time_without_workers_is_mentioned_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    missing = NoWorkersFailure("worker with GPU 1", 100.0)
    for now in (50.0, 59.9):
        assert not missing.is_over(0, now)
    assert caplog.text == ""
    for now in (60.0, 61.0, 80.0):
        assert not missing.is_over(0, now)
    words = "there is no worker with GPU 1: waiting for one"
    assert caplog.text.count(words) == 1
    assert missing.is_over(1, 90.0)
    assert missing.since is None
    for now in (91.0, 100.9):
        assert not missing.is_over(0, now)
    assert caplog.text.count(words) == 1
    assert not missing.is_over(0, 101.0)
    assert caplog.text.count(words) == 2
    with pytest.raises(CannotGoOn, match="there was no worker with GPU 1 for 100 s; start some and run again"):
        missing.is_over(0, 191.0)


# -- what becomes of a pull ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CancelledError(), ("cancelled", "cancelled before it began")),
        (KeyboardInterrupt(), ("broken-pool", "its worker was interrupted")),
    ],
)
def test_a_pull_that_was_not_evaluated_is_dropped_with_the_reason(error: Any, expected: tuple[str, str]) -> None:
    study = make(budget=6)
    run(study, Scripted(lambda engine: engine.raises(error, 1)))
    assert dropped(study) == [expected]
    assert study.verdict().told == 5


def test_an_engine_that_fails_ends_the_run_and_no_pull_stays_pending() -> None:
    def fail(engine: Scripted) -> None:
        engine.begin(2)
        engine.raises(Busy(after=60.0), 3)
        engine.raises(CannotGoOn("executor", rule="it is gone"), 1)

    study, engine = make(budget=6), Scripted(fail)
    with pytest.raises(CannotGoOn, match="it is gone"):
        run(study, engine)
    assert set(dropped(study)) == {
        ("lost", "its engine failed"),
        ("lost", "the run ended before it did"),
        ("lost", "the run was stopped before it was tried"),
        ("cancelled", "the run was stopped before it began"),
    }
    assert (study.verdict().pending, engine.waited) == (0, [False])


def test_when_what_measures_has_changed_the_run_ends_and_no_later_outcome_counts() -> None:
    def check(pull: thresher.Pull) -> None:
        if pull.id > 1:
            raise CannotGoOn("code", rule="eval.py has changed; its rewards are others")

    study = make(budget=6)
    with pytest.raises(CannotGoOn, match=r"eval\.py has changed"):
        run(study, Scripted(lambda it: it.returns(0.5, 1, 2, 3)), check=check)
    assert ("broken-pool", "code: eval.py has changed") in dropped(study)
    assert "lost" not in causes(study), "the outcome of another pull may have changed it"
    assert (study.verdict().told, study.verdict().pending) == (1, 0)


@pytest.mark.parametrize(("after", "rounds"), [(3.0, [1, 1, 2]), (-1.0, [2, 2, 2])])
def test_a_busy_evaluator_is_tried_again_when_it_said(after: float, rounds: list[int], still: Still) -> None:
    study, seen = make("a", budget=2), list[int]()

    def passes(seconds: float) -> Step:
        def step(engine: Scripted) -> None:
            seen.append(engine.submitted.count(1))
            still.now += seconds

        return step

    engine = Scripted(lambda it: it.raises(Busy(after=after), 1), passes(2.9), passes(0.1), passes(0.0), workers=1)
    run(study, engine)
    assert seen == rounds
    assert [event.cause for event in study.events() if event.kind == "told"] == ["repeatable", None]


@pytest.mark.parametrize(("value", "is_kept"), [(0.5, True), ("nonsense", False), (7.0, False)])
def test_an_evaluation_that_takes_too_long_fails_but_its_late_reward_counts(
    value: Any, is_kept: bool, still: Still
) -> None:
    study = make(budget=8, max_failures=None)
    steps = lambda it: it.begin(1), still.passes(5.0), lambda it: it.returns(value, 1)
    engine = Scripted(*steps, workers=1)
    run(study, engine, timeout=5.0)
    assert (engine.stopped, dropped(study)) == ([1], [("failed", "timed out after 5 s")])
    assert [event.pull for event in study.events() if event.late] == [1] * is_kept
    assert study.verdict().retired == (["a"] if value == 7.0 else [])


def test_an_engine_that_cannot_stop_an_evaluation_does_not_hide_its_failure(still: Still) -> None:
    class Stuck(Scripted):
        def stop(self, future: object) -> None:
            raise CannotGoOn("executor", rule="all hang")

    study = make()
    with pytest.raises(CannotGoOn, match="all hang"):
        run(study, Stuck(lambda it: it.begin(1), still.passes(5.0), workers=1), timeout=5.0)
    assert dropped(study) == [("failed", "timed out after 5 s")]


@pytest.mark.parametrize("answer", [KeyboardInterrupt(), "nonsense"])
def test_rewards_are_told_before_a_failure_that_came_after_them_is_dropped(answer: object) -> None:
    """Failures in a row count, so the order matters."""

    def end(engine: Scripted) -> None:
        engine.returns(0.5, 1)
        if isinstance(answer, BaseException):
            engine.raises(answer, 2)
        else:
            engine.returns(answer, 2)
        engine.returns(0.5, 3)

    study = make("a", budget=20, max_failures=None)
    run(study, Scripted(end, workers=3))
    ends = [(event.kind, event.pull) for event in study.events() if event.kind in ("told", "dropped")]
    assert ends[:3] == [("told", 1), ("dropped", 2), ("told", 3)]


def test_failures_that_waited_for_an_earlier_pull_end_the_run_when_it_brings_no_reward() -> None:
    steps = lambda it: it.raises(KeyError("depth"), 2, 3, 4), lambda it: it.raises(CancelledError(), 1)
    with pytest.raises(CannotGoOn, match="3 arms failed with the same error before anything succeeded: KeyError: 'dep"):
        run(make(*"abcd", budget=20), Scripted(*steps))


def test_a_store_that_fails_while_a_late_reward_is_written_ends_the_run(
    still: Still, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(engine: Scripted) -> None:
        monkeypatch.setattr(study.store, "append", fails)
        engine.returns(0.5, 1)

    study = make(budget=8)
    with pytest.raises(StoreFailed, match="the disk is full"):
        run(study, Scripted(lambda it: it.begin(1), still.passes(5.0), late, workers=1), timeout=5.0)


# -- stopping --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("running", [0, 1, 2])
def test_the_first_signal_says_how_many_are_waited_for_and_the_second_abandons_them(
    running: int, caplog: pytest.LogCaptureFixture
) -> None:
    def interrupt(engine: Scripted) -> None:
        engine.begin(*range(1, running + 1))
        signal.raise_signal(signal.SIGINT)

    study, engine = make(), Scripted(interrupt, lambda _: signal.raise_signal(signal.SIGTERM), workers=2)
    assert signals.until_stop_signal(lambda: run(study, engine)) == 128 + signal.SIGINT
    words = {
        1: "stopping: waiting for 1 pending pull; press Ctrl-C again to abandon it",
        2: "stopping: waiting for 2 pending pulls; press Ctrl-C again to abandon them",
    }
    assert caplog.messages == ([words[running]] if running else [])
    cancelled, lost = ("cancelled", "the run was stopped before it began"), ("lost", "the run was stopped")
    assert dropped(study) == [cancelled] * (2 - running) + [lost] * running
    assert (engine.waited, engine.taken_back > 0) == ([running == 0], True)


def test_a_closed_terminal_abandons_at_once_and_says_nothing_of_waiting(caplog: pytest.LogCaptureFixture) -> None:
    def hang_up(engine: Scripted) -> None:
        engine.begin(1)
        signal.raise_signal(signal.SIGHUP)

    study = make()
    assert signals.until_stop_signal(lambda: run(study, Scripted(hang_up, workers=2))) == 128 + signal.SIGHUP
    assert causes(study) == ["cancelled", "lost"]
    assert caplog.messages == []


def test_after_a_signal_running_pulls_are_told_and_no_more_are_issued() -> None:
    def end(engine: Scripted) -> None:
        engine.begin(1, 2)
        signal.raise_signal(signal.SIGTERM)
        engine.returns(0.5, 1)

    study, engine = make(), Scripted(end, workers=2)
    assert signals.until_stop_signal(lambda: run(study, engine)) == 128 + signal.SIGTERM
    assert (engine.submitted, study.verdict().told, engine.waited) == ([1, 2], 2, [True])


def test_a_run_that_is_stopped_waits_for_no_worker_that_never_comes(still: Still) -> None:
    def end(engine: Scripted) -> None:
        engine.begin(1, 2)
        engine.raises(Busy(after=60.0), 2)

    def vanish(engine: Scripted) -> None:
        engine.workers = 0

    study, engine = make(), Scripted(end, still.passes(10.0), vanish, still.passes(5.0), lambda _: None)
    with pytest.raises(CannotGoOn, match="there was no worker for 5 s"):
        run(study, engine, seconds=10.0, give_up=5.0)
    assert sorted(map(str, causes(study))) == ["cancelled"] * 2 + ["lost"] * 2, "what was busy is not tried again"
    assert engine.taken_back == 2, "once, and at the end: it may ask a cluster"


def test_an_engine_that_cannot_recover_ends_a_run_that_is_being_stopped(still: Still) -> None:
    study = make()
    with pytest.raises(CannotGoOn, match="it is gone"):
        run(study, Scripted(lambda it: it.begin(1), still.passes(10.0), gone, workers=1), seconds=10.0)
    assert causes(study) == ["lost"]


def test_at_the_end_an_engine_that_still_evaluates_is_not_waited_for(still: Still) -> None:
    engine = Scripted(lambda it: it.begin(1), still.passes(5.0), workers=1)
    run(make("a", budget=2, max_failures=None), engine, timeout=5.0)
    assert engine.waited == [False]


def test_the_last_failure_frees_its_case_which_is_tried_again() -> None:
    tried: list[int | str | None] = []

    def evaluate(pull: thresher.Pull) -> float:
        tried.append(pull.case)
        if len(tried) == 4:
            raise ConnectionRefusedError
        return 1.0

    thresher.run(make("a", "b", cases=2, budget=12, max_failures=None), evaluate, workers=1)
    assert len(tried) == 5
    assert tried[4] == tried[3]


def test_a_budget_that_ends_in_an_outage_is_an_error() -> None:
    def evaluate(pull: thresher.Pull) -> float:
        raise ConnectionError("no route")

    study = make("a", "b", budget=8)
    words = "the budget ended in an outage, the last with: ConnectionError: no route; repair the evaluator and resume w"
    with pytest.raises(CannotGoOn, match=words):
        thresher.run(study, evaluate, workers=2)
    assert causes(study) == ["outage"] * 8


@pytest.mark.parametrize(("failures", "cause"), [(23, "failed"), (24, "outage")])
def test_an_outage_needs_two_failures_of_every_worker(failures: int, cause: str) -> None:
    def fail(engine: Scripted) -> None:
        engine.raises(ConnectionError("no route"), *range(2, 2 + failures))

    study = make(budget=80, max_failures=None)
    run(study, Scripted(lambda it: it.returns(0.5, 1), fail, workers=12, most=40))
    assert causes(study) == [cause] * failures
