"""What `thresher.run` promises of coroutines, which it evaluates on an event loop of its own."""

import asyncio
import contextvars
import threading
from typing import Any

import pytest
from engines import make

import thresher
from thresher.run.engines import coroutines

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("WHO", default="nobody")


def ours() -> list[threading.Thread]:
    """The threads of event loops that run."""
    return [thread for thread in threading.enumerate() if thread.name == "thresher-loop"]


def stop_at(count: int, began: list[int]) -> Any:
    """Ends a run with an error once so many evaluations have begun."""

    def stop(progress: thresher.Progress) -> None:
        if len(began) == count:
            raise RuntimeError("stop here")

    return stop


def test_coroutines_run_in_the_callers_context_and_their_loop_ends_with_the_run() -> None:
    seen: set[object] = set()

    async def evaluate(pull: thresher.Pull, shared: str) -> float:
        seen.update({WHO.get(), shared, len(ours())})
        return 0.5

    async def set_up() -> str:
        return f"set up for {WHO.get()}"

    token = WHO.set("caller")
    thresher.run(make(budget=10), evaluate, workers=2, shared=(set_up, seen.add))
    WHO.reset(token)
    assert seen == {"caller", "set up for caller", 1}
    assert ours() == []


@pytest.mark.parametrize(
    ("options", "expected"), [({}, 16), ({"workers": 64}, 64), ({"workers": 3, "in_flight": 30}, 3)]
)
def test_as_many_run_at_once_on_one_loop_as_were_asked_for_or_sixteen(options: dict[str, Any], expected: int) -> None:
    now = most = 0
    threads = set[int]()

    async def evaluate(pull: thresher.Pull) -> float:
        nonlocal now, most
        threads.add(threading.get_ident())
        now += 1
        most = max(most, now)
        while most < expected:
            await asyncio.sleep(0)
        await asyncio.sleep(0)
        now -= 1
        return 0.5

    thresher.run(make(budget=200), evaluate, **options)
    assert (most, len(threads)) == (expected, 1)


def test_what_runs_at_the_end_is_cancelled_and_has_time_to_clean_up() -> None:
    began, cleaned = list[int](), list[int]()

    async def evaluate(pull: thresher.Pull) -> float:
        began.append(pull.id)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append(pull.id)
        return 0.5

    study = make()
    with pytest.raises(RuntimeError, match="stop here"):
        thresher.run(study, evaluate, workers=2, on_progress=stop_at(2, began))
    assert sorted(cleaned) == sorted(event.pull or 0 for event in study.events() if event.cause == "lost") == [1, 2]
    assert (study.pending(), ours()) == ([], [])


@pytest.mark.parametrize("is_shared", [True, False])
def test_a_coroutine_that_blocks_the_loop_is_left_alone_and_mentioned(
    is_shared: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    began, go = list[int](), threading.Event()

    async def evaluate(pull: thresher.Pull, *shared: object) -> float:
        began.append(pull.id)
        go.wait(60)
        return 0.5

    monkeypatch.setattr(coroutines, "WIND_UP", -1.9)  # the run waits for two seconds more
    options: dict[str, Any] = {"shared": (dict, dict)} if is_shared else {}
    study, before = make(), ours()
    with pytest.raises(RuntimeError, match="stop here"):
        thresher.run(study, evaluate, workers=1, on_progress=stop_at(1, began), **options)
    words = "shared: it was not cleaned up, because an evaluation blocks the event loop"
    assert (words in caplog.text) == is_shared
    assert study.pending() == []
    (thread,) = (thread for thread in ours() if thread not in before)
    assert thread.daemon, "it does not keep Python alive"
    go.set()
