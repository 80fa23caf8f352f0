"""The worker's loop, with a fake controller."""

import json
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from thresher.adapters.pytest_plugin import scheduling
from thresher.adapters.pytest_plugin.repeating import RepeatedOutcome
from thresher.adapters.pytest_plugin.session_options import Options, SessionBar

Play = Callable[..., dict[int, Any]]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Send runs, each with a function that it calls, and return the answers."""

    def run(*steps: Callable[[Any], RepeatedOutcome], left: float = math.inf, stop: bool = False) -> dict[int, Any]:
        answers: dict[int, Any] = {}
        session: Any = SimpleNamespace(items=[], shouldstop=False, shouldfail=False)
        session.items = [SimpleNamespace(step=step) for step in steps]

        def listen(receive: Callable[[Any], None], endmarker: object) -> None:
            receive(("thresher", {"runs": [[at, at, 7, 1] for at in range(len(steps))], "left": left}))
            receive(("stop" if stop else "other", {}))
            receive(endmarker)

        interactor = SimpleNamespace(sendevent=lambda _, item_index, duration: answers.update({item_index: duration}))
        interactor.channel = SimpleNamespace(setcallback=listen)
        config: Any = SimpleNamespace(pluginmanager=SimpleNamespace(get_plugins=lambda: [object(), interactor]))
        monkeypatch.setattr(scheduling, "repeat_once", lambda item, **_: item.step(session))
        monkeypatch.setattr(scheduling, "description_for_scheduling", lambda *_: {})
        monkeypatch.setattr(scheduling, "scheduled_nodeid", lambda _: "")
        monkeypatch.setattr(scheduling, "tear_down_repeated", lambda *_: None)
        try:
            scheduling.SchedulingWorker(config, Options(SessionBar(0.9))).pytest_runtestloop(session)
        except KeyboardInterrupt:
            answers[-9] = '"raised"'
        return {serial: json.loads(text) for serial, text in answers.items() if serial >= 0 or serial == -9}

    return run


def passes(_: Any) -> RepeatedOutcome:
    return RepeatedOutcome(reward=1.0)


def stops(session: Any) -> RepeatedOutcome:
    session.shouldstop = "enough"
    return RepeatedOutcome(reward=0.0)


def interrupts(_: Any) -> RepeatedOutcome:
    raise KeyboardInterrupt


def test_every_run_is_answered_in_order(play: Play) -> None:
    assert [RepeatedOutcome(*answer).reward for answer in play(passes, passes).values()] == [1.0, 1.0]


@pytest.mark.parametrize("arguments", [{"left": 0.0}, {"stop": True}])
def test_runs_that_have_not_begun_when_the_time_is_over_are_given_back(play: Play, arguments: dict[str, Any]) -> None:
    assert play(passes, passes, **arguments) == {0: None, 1: None}


def test_a_test_that_stops_pytest_is_answered_and_the_others_are_given_back(play: Play) -> None:
    answers = play(stops, passes)
    assert RepeatedOutcome(*answers[0]).reward == 0.0
    assert answers[1] is None


def test_a_run_that_is_interrupted_has_begun_and_the_others_have_not(play: Play) -> None:
    assert play(interrupts, passes) == {0: "interrupted by KeyboardInterrupt", 1: None, -9: "raised"}
