"""The loop of a run, one step at a time: how long it waits, and what it hands out."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from engines import causes, make
from steps import Still, Told, a_run

from thresher.errors import Busy, CannotGoOn
from thresher.run import loop
from thresher.run.failures import WINDOW, Failure
from thresher.run.loop import Runner
from thresher.run.runner import Limits
from thresher.study import Pull


@pytest.fixture(autouse=True)
def still(monkeypatch: pytest.MonkeyPatch) -> Still:
    found = Still()
    monkeypatch.setattr(loop, "time", found)
    return found


# -- how long to wait ------------------------------------------------------------------------------------------------


def test_a_run_waits_until_something_happens_but_sees_a_missed_signal_within_a_second() -> None:
    assert a_run()[0]._patience() == 1.0
    assert a_run(timeout=5.0)[0]._patience() == 1.0, "nothing runs that could time out"


@pytest.mark.parametrize(("timeout", "wait"), [(1.0, 0.1), (60.0, 0.25), (0.001, 0.001)])
def test_a_run_looks_often_enough_for_timeouts(timeout: float, wait: float) -> None:
    runner, _ = a_run(timeout=timeout)
    runner._hand_out()
    assert runner._patience() == wait


def test_a_run_looks_again_when_something_is_due(still: Still) -> None:
    runner, _ = a_run(seconds=5000.0)
    assert runner._patience() == 1.0
    still.now += 4999.5
    assert runner._patience() == 0.5
    runner._evaluations.try_at(still.now + 0.25, SimpleNamespace(pull=Pull(1, "a", 1, {}, 7), attempt=1))
    assert runner._patience() == 0.25
    runner._no_workers.since = still.now
    assert runner._patience() == 0.1
    runner._no_workers.since = None
    runner._meter.tell = print
    assert runner._patience() == 0.1
    runner._evaluations.try_at(still.now - 3.0, SimpleNamespace(pull=Pull(2, "a", 1, {}, 7), attempt=1))
    assert runner._patience() == 0.001
    still.now += 10.0
    runner._meter.tell, runner._evaluations._busy = None, []
    assert runner._patience() == 1.0, "its seconds are over"


def test_a_run_with_leases_looks_for_dead_agents(still: Still) -> None:
    runner, _ = a_run()
    swept: list[float] = []
    runner.study = SimpleNamespace(store=SimpleNamespace(leased=True), sweep=lambda: swept.append(still.now))
    runner._sweep()
    assert (swept, runner._patience()) == ([100.0], 1.0)
    still.now += 0.75
    runner._sweep()
    assert (swept, runner._patience()) == ([100.0], 0.25)
    still.now += 0.25
    runner._sweep()
    assert swept == [100.0, 101.0]


def test_in_an_outage_a_run_waits_for_the_next_try_or_until_it_gives_up(still: Still) -> None:
    runner, _ = a_run(give_up=50.0)
    runner._watch.since, runner._watch.next_try = 50.75, 100.5
    assert runner._patience() == 0.5
    runner._watch.next_try = 160.0
    assert runner._patience() == 0.75
    runner._evaluations.running[Future()] = None
    assert runner._patience() == 0.1
    runner._signals = 1
    assert runner._patience() == 1.0


# -- handing out -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("in_flight", "most", "expected"), [(None, None, 4), (7, None, 7), (None, 5, 5), (2, 5, 2)])
def test_as_many_pulls_are_handed_out_as_there_is_room(in_flight: Any, most: Any, expected: int) -> None:
    study = make(budget=20)
    runner, engine = a_run(study, in_flight=in_flight)
    engine.most = most
    for _ in range(2):
        assert not runner._hand_out()
        assert sorted(engine.pulls) == list(range(1, expected + 1))
    engine.returns(0.5, 1)
    runner._take_in()
    runner._hand_out()
    assert (len(engine.pulls), study.verdict().told) == (expected + 1, 1)
    assert runner._watch.window == max(WINDOW, 8)


def test_without_a_worker_one_pull_waits_where_that_may_start_one(still: Still) -> None:
    study = make("a", budget=2)
    runner, engine = a_run(study, workers=0, give_up=5.0, in_flight=9)
    assert runner._hand_out(), "more will come"
    assert engine.pulls == {}
    engine.most = 2
    assert not runner._hand_out()
    assert list(engine.pulls) == [1, 2]
    engine.most = 0
    assert not runner._hand_out(), "the budget is issued"
    still.now += 5.0
    with pytest.raises(CannotGoOn, match="there was no worker for 5 s"):
        runner._hand_out()


def test_the_time_without_a_worker_begins_anew_each_time(still: Still) -> None:
    runner, engine = a_run(workers=0, give_up=5.0)
    for _ in range(2):
        engine.workers = 0
        assert runner._hand_out()
        still.now += 4.0
        assert runner._hand_out()
        engine.workers = 1
        runner._hand_out()
        still.now += 1000.0
    assert len(engine.pulls) == 1


def test_a_run_that_is_stopped_waits_for_no_worker_that_never_comes(still: Still) -> None:
    runner, engine = a_run(seconds=10.0, give_up=5.0)
    runner._hand_out()
    engine.begin(1, 2)
    engine.raises(Busy(after=60.0), 2)
    runner._take_in()
    still.now += 10.0
    assert not runner._hand_out()
    assert sorted(map(str, causes(runner.study))) == ["cancelled"] * 2 + ["lost"], "what waits is not tried again"
    engine.workers = 0
    assert not runner._hand_out()
    assert engine.taken_back == 1, "once is enough"
    still.now += 5.0
    with pytest.raises(CannotGoOn, match="there was no worker for 5 s"):
        runner._hand_out()
    engine.returns(0.5, 1)
    runner._take_in()
    assert not runner._hand_out(), "nothing runs there"


def test_an_engine_that_cannot_recover_ends_a_run_that_is_being_stopped(still: Still) -> None:
    class Failed(Told):
        @property
        def room(self) -> int:
            if still.now > 100.0:
                raise CannotGoOn("executor", rule="it is gone")
            return 1

    runner: Any = Runner(make(), engine := Failed(1), Limits(seconds=10.0), None)
    runner._hand_out()
    engine.begin(1)
    still.now += 10.0
    with pytest.raises(CannotGoOn, match="it is gone"):
        runner._hand_out()


def an_outage(**limits: Any) -> tuple[Any, Told]:
    """A run in an outage, at the time 100; nothing is pending."""
    study = make("a", "b", budget=200)
    runner, engine = a_run(study, workers=2, **limits)
    runner._watch.start.close()
    pulls = study.ask_many(WINDOW)
    for pull in pulls:
        runner._watch.failure(Failure(pull, "down", kind=None), 100.0)
    assert runner._watch.out
    return runner, engine


def test_in_an_outage_one_pull_is_tried_when_its_time_has_come(still: Still) -> None:
    runner, engine = an_outage()
    assert runner._hand_out()
    assert engine.pulls == {}
    still.now = runner._watch.next_try
    for _ in range(2):
        assert runner._hand_out()
        assert len(engine.pulls) == 1
    engine.returns(0.5, *engine.pulls)
    runner._take_in()
    assert not runner._watch.out
    assert not runner._hand_out()
    assert len(engine.pulls) == 3


def test_an_outage_is_given_up_after_its_time(still: Still) -> None:
    runner, _ = an_outage(give_up=30.0)
    still.now += 29.9
    assert runner._hand_out()
    still.now += 0.1
    words = "every evaluation failed for 30 s, the last with: down; repair the evaluator and run again; no arm was ret"
    with pytest.raises(CannotGoOn, match=words):
        runner._hand_out()
