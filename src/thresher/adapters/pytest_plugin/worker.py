"""In a worker of pytest-xdist: make the runs that the controller asks for.

xdist tells its workers only which tests to run, by their positions, but a run also needs its seed and number. The loop
in which a worker waits for work is an ordinary pytest hook, and a scheduler may send any command over the worker's
channel. So this loop replaces xdist's. It reads the same channel:

- ``("thresher", {"runs": [[serial, position, seed, number], …], "left": seconds})`` from `scheduler.py`; a test
  without a seed runs once, in the ordinary way,
- ``("stop", {})`` from there: runs that have not begun are given back,
- ``("shutdown", {})`` from xdist, and the end of the channel.

Answers go back in the order of the runs, as the event ``runtest_protocol_complete``, which xdist passes on to the
scheduler unchanged: ``item_index`` is the serial number and ``duration`` the answer in JSON. That is an outcome, null
for a run that never began, or a string that says why a run that began has no outcome. Runs make no reports, so no
plugin logs them, neither here nor in the controller.
"""

import json
import math
import time
from queue import SimpleQueue
from typing import Any

import pytest

from .plugin import divided, fingerprint
from .repeating import Outcome, Repeating, interrupted, leave, run_once
from .reporting import Collected
from .settings import Options, bars

HELLO, LAST = -1, -2  # instead of a serial number: what was collected; an error in the last teardown


class Worker(Repeating):
    """The loop of one worker."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self._options = options
        self._interactor: Any = next(each for each in config.pluginmanager.get_plugins() if hasattr(each, "sendevent"))
        self._runs = SimpleQueue[list[Any] | None]()
        self._stopped, self._until = False, math.inf

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run what the controller asks for, until it ends this worker."""
        for item in session.items:
            setattr(item, "_nodeid", plain(item))  # noqa: B010 - pytest declares it nowhere
        self._send(HELLO, describe(session, self._options))
        self._interactor.channel.setcallback(self._receive, endmarker=("shutdown", {}))
        try:
            while (run := self._runs.get()) is not None:
                self._send(run[0], self._answer(session, *run))
                if session.shouldstop or session.shouldfail:
                    break  # xdist's controller then ends the run
        finally:
            self._stopped = True
            while not self._runs.empty() and (run := self._runs.get()) is not None:
                self._send(run[0], None)
        self._send(LAST, leave(session, None))
        return True

    def _receive(self, command: tuple[str, dict[str, Any]]) -> None:
        """Take a command, in the thread that reads the channel."""
        name, given = command
        if name == "thresher":
            self._until = time.monotonic() + given["left"]
            for run in given["runs"]:
                self._runs.put(run)
        elif name == "stop":
            self._stopped = True
        elif name == "shutdown":
            self._runs.put(None)

    def _answer(self, session: pytest.Session, serial: int, position: int, seed: int | None, number: int) -> object:
        """An outcome, or None if the run never began."""
        if self._stopped or (seed is not None and time.monotonic() >= self._until):
            return None
        item = session.items[position]
        if seed is None:
            self._interactor.item_index = position  # for the reports that xdist sends
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            return Outcome()
        try:
            return run_once(item, seed=seed, number=number, isolation=self._options.isolation)
        except BaseException as error:  # Ctrl-C, pytest.exit: whatever the test did, its run has begun
            self._send(serial, interrupted(error))
            raise

    def _send(self, serial: int, answer: object) -> None:
        self._interactor.sendevent("runtest_protocol_complete", item_index=serial, duration=json.dumps(answer))


def plain(item: pytest.Item) -> str:
    """The node id without the group that ``--dist loadgroup`` appends to it before pytest 9.2: it is the same test."""
    return item.nodeid.removesuffix(f"@{group_of(item)}")


def group_of(item: pytest.Item) -> str | None:
    """The group that its markers name, for ``--dist loadgroup``, as xdist reads them."""
    marks = list(item.iter_markers("xdist_group")) if item.config.getoption("loadgroup", False) else []
    names = {str(mark.args[0] if mark.args else mark.kwargs.get("name", "default")) for mark in marks}
    return "_".join(sorted(names)) or None


def describe(session: pytest.Session, options: Options) -> dict[str, Any]:
    """What the controller must know about the tests besides their node ids; ready for JSON."""
    try:
        found = bars(session.items, options)
    except pytest.UsageError as error:
        return {"error": str(error), "tests": [], "ordinary": []}
    ordinary, arms = divided(session.items)
    positions = {item: position for position, item in enumerate(session.items)}

    def collected(item: pytest.Item) -> Collected:
        about = (*item.location, str(item.path), list(item.keywords))
        return Collected(item.nodeid, positions[item], found[item], group_of(item), *about)

    return {
        "tests": [collected(item) for item in arms.values()],
        "ordinary": [(item.nodeid, positions[item]) for item in ordinary],
        "version": fingerprint(session.config, session.items) if options.storage else "",
    }
