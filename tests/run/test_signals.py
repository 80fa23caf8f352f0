"""Signals: queued during a run, delayed, turned into an exit status, and left as they were."""

import os
import queue
import signal
import threading
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from thresher.log.locks import INTERRUPTS
from thresher.run import signals

BOTH = (signal.SIGINT, signal.SIGTERM)


def handlers() -> list[object]:
    return [signal.getsignal(number) for number in (*BOTH, signal.SIGHUP)]


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = dict(zip((*BOTH, signal.SIGHUP), handlers(), strict=True))
    yield
    for number, handler in before.items():
        signal.signal(number, handler)  # type: ignore[arg-type]


def test_in_a_run_signals_are_only_queued_and_afterwards_all_is_as_before() -> None:
    before, inbox, interrupts = handlers(), queue.SimpleQueue[Any](), list(INTERRUPTS)
    with signals.queue_signals(inbox):
        for number in BOTH:
            signal.raise_signal(number)
        assert len(INTERRUPTS) == len(interrupts) + 1
    assert [inbox.get_nowait(), inbox.get_nowait()] == list(BOTH)
    assert (handlers(), interrupts) == (before, INTERRUPTS)


def test_another_thread_leaves_the_handlers_alone() -> None:
    seen: list[object] = []

    def enter() -> None:
        with signals.queue_signals(queue.SimpleQueue()):
            seen.append(handlers() == before)

    before = handlers()
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [True]


def test_a_handler_that_was_not_set_from_python_cannot_be_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    set_again: list[int] = []
    fake = SimpleNamespace(
        getsignal=lambda number: None if number == signal.SIGINT else signal.SIG_DFL,
        signal=lambda number, handler: set_again.append(number) if handler == signal.SIG_DFL else None,
        **{name: getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "Signals")},
    )
    monkeypatch.setattr(signals, "signal", fake)
    with signals.queue_signals(queue.SimpleQueue()):
        pass
    assert set_again == [signal.SIGTERM]


def test_a_forked_child_leaves_ctrl_c_to_its_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    inbox = queue.SimpleQueue[Any]()
    with signals.queue_signals(inbox):
        here = os.getpid()
        monkeypatch.setattr(signals.os, "getpid", lambda: here + 1)  # type: ignore[attr-defined]
        signal.raise_signal(signal.SIGINT)
        assert inbox.empty()


def test_a_signal_takes_effect_while_a_store_waits_unless_it_came_before() -> None:
    inbox = queue.SimpleQueue[Any]()
    with signals.queue_signals(inbox):
        (interrupt,) = INTERRUPTS[-1:]
        interrupt(0.0)  # none has come
        signal.raise_signal(signal.SIGINT)
        interrupt(time.monotonic() + 1.0)
        with pytest.raises(KeyboardInterrupt):
            interrupt(0.0)
        assert inbox.qsize() == 1
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_of_two_signals_the_last_takes_effect_while_a_store_waits() -> None:
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    with signals.queue_signals(queue.SimpleQueue()):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGTERM)
        INTERRUPTS[-1](0.0)
    assert ended == [signal.SIGTERM]


def test_signals_are_delayed_until_the_end_of_a_block() -> None:
    got: list[int] = []
    for number in BOTH:
        signal.signal(number, lambda number, _: got.append(number))
    with signals.delay_signals():
        for number in BOTH:
            signal.raise_signal(number)
        assert got == []
    assert got == list(BOTH)


# -- commands --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "status"), [([signal.SIGHUP], 129), ([signal.SIGTERM], 143), ([signal.SIGINT], 130), ([], 0)]
)
def test_a_stopped_job_gives_its_status_and_leaves_the_handlers_as_they_were(
    sent: list[signal.Signals], status: int
) -> None:
    before = handlers()
    assert signals.until_stop_signal(lambda: list(map(signal.raise_signal, sent))) == status
    assert handlers() == before


def test_a_closed_terminal_is_queued_in_a_command_and_nowhere_else() -> None:
    inbox = queue.SimpleQueue[Any]()

    def job() -> None:
        with signals.queue_signals(inbox):
            signal.raise_signal(signal.SIGHUP)

    assert (signals.until_stop_signal(job), inbox.get_nowait()) == (0, signal.SIGHUP)
    with signals.queue_signals(inbox):
        assert signal.getsignal(signal.SIGHUP) == handlers()[-1] == signal.SIG_DFL


def test_nohup_keeps_a_job_running() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert signals.until_stop_signal(lambda: signal.raise_signal(signal.SIGHUP)) == 0
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


def test_an_error_of_the_job_is_raised_and_the_handlers_are_as_before() -> None:
    def fail() -> None:
        assert handlers() != before
        raise LookupError("no")

    before = handlers()
    with pytest.raises(LookupError, match="no"):
        signals.until_stop_signal(fail)
    assert handlers() == before
