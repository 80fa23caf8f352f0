"""What `thresher.run` promises of outages and bad settings."""

import math
import time
from typing import Any

import pytest
from engines import causes, make
from program import until

import thresher


def test_a_run_continues_where_the_last_one_stopped() -> None:
    study = make(budget=10)
    assert thresher.run(study, lambda pull: 0.5).done
    study.extend(budget=30)
    assert thresher.run(study, lambda pull: 0.5).told == 30


def test_an_outage_is_not_a_failure_of_the_arms(caplog: pytest.LogCaptureFixture) -> None:
    """Ten pulls succeed; all that were asked for after them and before the outage was noticed fail."""

    def evaluate(pull: thresher.Pull) -> float:
        if pull.id <= 10:
            return 0.5
        until(lambda: study.verdict().told >= 10, "the rewards from before the outage")
        events = study.events()
        asked = next(event.seq for event in events if event.kind == "asked" and event.pull == pull.id)
        noticed = next((event.seq for event in events if event.cause == "outage"), math.inf)
        if asked < noticed:
            raise ConnectionError("no route to host")
        return 0.5

    study = make("a", "b", "c", budget=60, max_failures=1)
    began = time.monotonic()
    verdict = thresher.run(study, evaluate, workers=4)
    assert verdict.done
    assert verdict.retired == []
    assert set(causes(study)) == {"outage"}
    assert time.monotonic() - began > 1  # it waited before it tried again
    assert "the last 8 evaluations all failed, the last with: ConnectionError: no route to host" in caplog.text
    assert "the outage is over" in caplog.text


def test_failures_of_a_single_arm_are_not_an_outage() -> None:
    def evaluate(pull: thresher.Pull) -> float:
        if pull.arm == "a":
            raise ValueError("broken")
        return 0.5

    study = make("a", "b", budget=60)
    assert thresher.run(study, evaluate, workers=1).retired == ["a"]


def test_the_last_arm_is_retired_by_its_own_failures() -> None:
    study = make("a", budget=60)
    calls = []

    def evaluate(pull: thresher.Pull) -> float:
        calls.append(pull.id)
        if len(calls) == 1:
            return 0.5
        raise ValueError("broken")

    verdict = thresher.run(study, evaluate, workers=1)
    assert verdict.retired == ["a"]
    assert len(calls) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"workers": 0}, "workers 0"),
        ({"workers": 2.5}, "workers 2.5"),
        ({"timeout": 0}, "timeout 0"),
        ({"timeout": math.nan}, "timeout nan"),
        ({"seconds": -1}, "seconds -1"),
        ({"in_flight": 0}, "in_flight 0"),
        ({"give_up": "soon"}, "give_up 'soon'"),
        ({"give_up": 0}, "give_up 0"),
        ({"executor": "cloud"}, "executor 'cloud'"),
        ({"executor": 3}, "executor 3"),
    ],
)
def test_bad_settings_are_refused_before_anything_runs(options: dict[str, Any], words: str) -> None:
    study = make()
    with pytest.raises(thresher.InvalidInput, match=words):
        thresher.run(study, lambda pull: 0.5, **options)
    assert len(study.events()) == 1


def test_an_evaluator_must_be_callable() -> None:
    with pytest.raises(thresher.InvalidInput, match=r"evaluate 0\.5"):
        thresher.run(make(), 0.5)  # type: ignore[arg-type]
