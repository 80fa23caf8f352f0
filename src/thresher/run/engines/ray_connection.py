"""The connection to a Ray cluster: the user's, or one of our own on this machine."""

import contextlib
import logging
import queue
import re
import signal
import socket
import threading
from concurrent.futures import Future
from typing import Any

import ray
from ray.exceptions import RayError

from ...errors import CannotGoOn, told_of
from ...text.logs import log
from .. import signals

PATIENCE = 20.0  # seconds for an answer


class Connection:
    """Ray allows one cluster per process: the first run that needs it connects, the last one disconnects."""

    _lock = threading.Lock()
    _users = 0
    _ours = False
    _over = threading.Event()  # of a Ray of our own

    @classmethod
    def open(cls, address: str, processors: int | None) -> bool:
        """Connect, unless already connected. Returns whether it is a Ray that we started on this machine."""
        with cls._lock:
            if not ray.is_initialized():
                try:
                    cls._init(address, processors)
                except BaseException:  # Ctrl-C
                    if ray.is_initialized():  # not in the middle of it
                        ray.shutdown()
                    cls._over.set()
                    raise
                cls._ours = True
            elif address != "ray":
                log.warning(f"this process is connected to a Ray cluster already: that one is used, not {address}")
            cls._users += 1
            return cls._ours and address == "ray"

    @classmethod
    def close(cls) -> None:
        with cls._lock:
            cls._users -= 1
            if cls._ours and cls._users == 0:
                cls._ours = False
                ray.shutdown()
                cls._over.set()

    @staticmethod
    def _init(address: str, processors: int | None) -> None:
        quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
        try:
            if address == "ray":
                Connection._over = threading.Event()
                _start_here({**quiet, "num_cpus": processors, "include_dashboard": False}, Connection._over)
            else:
                _check_address(address)
                before = signal.getsignal(signal.SIGTERM)
                ray.init(address=address, **quiet)
                if threading.current_thread() is threading.main_thread():
                    signal.signal(signal.SIGTERM, before)  # Ray's own ends the program with another status
        except (RuntimeError, ValueError, OSError, RayError, ImportError) as error:
            remedy = "start one with: ray start --head"
            if "ray[client]" in str(error):
                remedy = "pip install 'ray[client]'"
            raise CannotGoOn("executor", address, f"no Ray cluster answers: {told_of(error)}", remedy) from None


def _start_here(settings: dict[str, Any], over: threading.Event) -> None:
    """Start a Ray of our own. Ctrl-C takes effect once it has started, a second Ctrl-C at once.

    SIGTERM, and SIGHUP in a command, take effect at once: sent to all processes of a job, they end the ones that we
    would wait for.

    Another thread does this: an interrupted Ray would leave processes behind, and in the main thread Ray replaces the
    signal handlers. The thread stays until Ray is ``over``, because the system ends Ray's processes with the thread.
    """
    started: Future[None] = Future()

    def start() -> None:
        try:
            ray.init(**settings)
        except BaseException as error:
            started.set_exception(error)
        else:
            started.set_result(None)
            over.wait()

    inbox: queue.SimpleQueue[signal.Signals | Future[None]] = queue.SimpleQueue()
    caught: list[signal.Signals] = []
    started.add_done_callback(inbox.put)
    with signals.into(inbox):
        threading.Thread(target=start, name="thresher-ray-start", daemon=True).start()
        while not started.done() and len(caught) < 2 and not {signal.SIGTERM, signal.SIGHUP} & {*caught}:
            with contextlib.suppress(queue.Empty):  # a wait of a second, as in `loop.LONGEST_WAIT`
                if isinstance(item := inbox.get(timeout=1.0), signal.Signals):
                    caught.append(item)
    while not inbox.empty():  # one that came just before it had started
        if isinstance(item := inbox.get(), signal.Signals):
            caught.append(item)
    for number in caught:
        signal.raise_signal(number)
    started.result()


def _check_address(address: str) -> None:
    """Fail early: Ray itself keeps trying an address without an answer for minutes."""
    found = re.fullmatch(r"(?:ray://)?\[?([^/\]]+)\]?:([0-9]{1,5})", address)
    if found is not None:
        socket.create_connection((found[1], int(found[2])), timeout=PATIENCE).close()
