"""The loop of a run, one step at a time: how it is stopped, and what it waits for."""

import signal
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from engines import causes, make
from steps import Still, Told, a_run, reasons

import thresher
from thresher.errors import Busy, CannotGoOn
from thresher.run import loop
from thresher.run.loop import Runner
from thresher.run.runner import Limits


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Still:
    found = Still()
    monkeypatch.setattr(loop, "time", found)
    return found


# -- stopping --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("running", [0, 1, 2])
def test_the_first_signal_says_how_many_are_waited_for(running: int, caplog: pytest.LogCaptureFixture) -> None:
    runner, engine = a_run(workers=2)
    runner._hand_out()
    engine.begin(*range(1, running + 1))
    runner._caught(signal.SIGINT)
    words = {
        0: "",
        1: "stopping: waiting for 1 pending pull; press Ctrl-C again to abandon it",
        2: "stopping: waiting for 2 pending pulls; press Ctrl-C again to abandon them",
    }
    assert [record.getMessage() for record in caplog.records] == [words[running]] * bool(running)
    assert reasons(runner.study) == [("cancelled", "the run was stopped before it began")] * (2 - running)
    assert (runner._watch.start.over, engine.abandoned) == (True, [])
    runner._caught(signal.SIGTERM)
    assert len(engine.abandoned) == running
    assert reasons(runner.study)[2 - running :] == [("lost", "the run was stopped")] * running
    assert (runner.signal, runner._signals) == (signal.SIGINT, 2)


def test_a_closed_terminal_abandons_at_once_and_says_nothing_of_waiting(caplog: pytest.LogCaptureFixture) -> None:
    runner, engine = a_run(workers=2)
    runner._hand_out()
    engine.begin(1)
    runner._caught(signal.SIGHUP)
    assert reasons(runner.study) == [
        ("cancelled", "the run was stopped before it began"),
        ("lost", "the run was stopped"),
    ]
    assert (runner.signal, len(engine.abandoned), caplog.records) == (signal.SIGHUP, 1, [])


def test_signals_are_taken_in_between_rewards() -> None:
    runner, engine = a_run(workers=2)
    runner._hand_out()
    engine.begin(1, 2)
    runner._inbox.put(signal.SIGTERM)
    engine.returns(0.5, 1)
    runner._take_in()
    assert (runner.signal, runner.study.verdict().told) == (signal.SIGTERM, 1)
    assert not runner._hand_out()
    assert len(engine.pulls) == 2


def test_a_run_that_is_cancelled_abandons_what_it_has_once() -> None:
    runner, engine = a_run(workers=3)
    runner._hand_out()
    engine.begin(1, 2)
    engine.returns(0.5, 1)
    runner.stop()
    runner.stop()
    runner._take_in()
    assert reasons(runner.study) == [
        ("cancelled", "the run was stopped before it began"),
        ("lost", "the run was cancelled"),
    ]
    assert (runner._signals, runner.signal, runner._watch.start.over) == (2, None, True)
    assert runner.study.verdict().told == 1
    assert not runner._goes_on()
    runner._signals = 3
    runner._cancelled()
    assert runner._signals == 3


@pytest.mark.parametrize(
    ("state", "waits"), [("idle", True), ("running", False), ("overdue", False), ("two signals", False)]
)
def test_at_the_end_only_an_engine_that_is_idle_is_waited_for(state: str, waits: bool, still: Still) -> None:
    runner, engine = a_run(workers=1, timeout=5.0)
    if state in ("running", "overdue"):
        runner._hand_out()
        engine.begin(1)
    if state == "overdue":
        runner._end_overdue()
        still.now += 5.0
        runner._end_overdue()
    runner._signals = 2 if state == "two signals" else 1
    runner._clean_up()
    assert engine.waited == [waits]
    expected = {"running": [("lost", "the run ended before it did")], "overdue": [("failed", "timed out after 5 s")]}
    assert reasons(runner.study) == expected.get(state, [])


def test_nothing_that_waits_is_left_at_the_end() -> None:
    runner, engine = a_run(workers=2)
    runner._hand_out()
    engine.raises(Busy(after=60.0), 1)
    engine.raises(KeyError("depth"), 2)
    runner._take_in()
    runner._clean_up()
    assert sorted(reasons(runner.study)) == [
        ("failed", "KeyError: 'depth'"),
        ("lost", "the run was stopped before it was tried"),
    ]


def test_the_end_is_reported_and_the_signals_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    class At(Told):
        def submit(self, pull: Any) -> "Future[object]":
            future = super().submit(pull)
            future.set_result(0.5)
            return future

        def close(self, *, wait: bool) -> None:
            runner._inbox.put(future)
            runner._inbox.put(signal.SIGTERM)
            runner._inbox.put(signal.SIGINT)

    future: Future[object] = Future()
    seen: list[thresher.Progress] = []
    runner = Runner(make(budget=20), At(4), Limits(), seen.append)
    runner.run()
    assert (seen[-1].told, seen[-1].pending, runner.signal) == (20, 0, signal.SIGTERM)
    assert len(seen) == 2, "time stands still: once at the start, and at the end"


def test_in_each_round_what_is_overdue_is_ended_and_dead_agents_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[str] = []
    runner, engine = a_run(make("a", budget=2), workers=1)
    for name in ("_end_overdue", "_sweep"):
        setattr(runner, name, lambda name=name: rounds.append(name))

    def submit(pull: Any) -> "Future[object]":
        future: Future[object] = Future()
        future.set_result(0.5)
        return future

    monkeypatch.setattr(engine, "submit", submit)
    runner.run()
    assert rounds == ["_end_overdue", "_sweep"] * 2


def test_the_last_failures_are_released_before_a_run_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """They may free a case, which is then tried again."""
    study = make("a", "b", cases=2, budget=12, max_failures=None)
    runner, engine = a_run(study, workers=1)
    tried: list[int | None] = []

    def submit(pull: Any) -> "Future[object]":
        future: Future[object] = Future()
        tried.append(pull.case)
        if len(tried) == 4:
            future.set_exception(KeyError("once"))
        else:
            future.set_result(1)
        return future

    monkeypatch.setattr(engine, "submit", submit)
    runner.run()
    assert len(tried) == 5
    assert tried[4] == tried[3]


def test_a_budget_that_ends_in_an_outage_is_an_error() -> None:
    class Down(Told):
        def submit(self, pull: Any) -> "Future[object]":
            future = super().submit(pull)
            future.set_exception(ConnectionError("no route"))
            return future

    study = make("a", "b", budget=8)
    runner = Runner(study, Down(2), Limits(), None)
    words = "the budget ended in an outage, the last with: ConnectionError: no route; repair the evaluator and resume w"
    with pytest.raises(CannotGoOn, match=words):
        runner.run()
    assert causes(study) == ["outage"] * 8


# -- other agents ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("others", [0, 1, 2])
def test_the_last_cases_of_other_agents_are_waited_for(
    others: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    runner, _ = a_run()
    monkeypatch.setattr(loop, "others_pulls", lambda study: others)
    assert not runner._waits(), "nobody else can use a store without leases"
    runner.study = SimpleNamespace(store=SimpleNamespace(leased=True))
    for _ in range(2):
        assert runner._waits() == (others > 0)
    pulls = "1 pull" if others == 1 else f"{others} pulls"
    words = f"waiting for {pulls} of other agents: what they lose is tried again here"
    assert [record.getMessage() for record in caplog.records] == [words] * (others > 0)


def test_a_run_whose_pulls_are_all_issued_goes_on_while_others_may_lose_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "others_pulls", lambda study: 1)
    with make(budget=4, storage=tmp_path / "s.db") as study:
        pulls = study.ask_many(4)
        for pull in pulls:
            study.tell(pull, 0.5)
        runner, _ = a_run(study)
        assert runner._goes_on()
        runner._signals = 1
        assert not runner._goes_on()
