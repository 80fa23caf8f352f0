"""With pytest-xdist: what the controller does besides scheduling."""

import time
from collections.abc import Generator
from queue import Empty
from typing import Any

import pytest

from .plugin import Plugin, refuse_errors, store_explained
from .reporting import Collected
from .scheduler import Scheduler
from .settings import Options
from .sifting import Sift

GRACE = 5.0  # seconds that workers have to answer after Ctrl-C


class Controller(Plugin):
    """The plugin in the controller of xdist: tests run in the workers, and are reported here."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        super().__init__(config, options)
        self._scheduler: Scheduler | None = None
        self._tests: dict[str, Collected] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: object) -> Scheduler:
        self._scheduler = Scheduler(config, log, start=self._start)
        return self._scheduler

    @pytest.hookimpl(wrapper=True, trylast=True)  # within the terminal's, which ends the line of results
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:  # type: ignore[override]
        """Whatever ends the loop of xdist, log one report for each test."""
        with store_explained():
            try:
                found = yield
            except BaseException:
                self._settle()
                raise
            finally:
                self._end()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        return found

    def _start(self, hello: dict[str, Any]) -> Sift:
        """Create the studies."""
        session: Any = self.config.pluginmanager.get_plugin("session")
        refuse_errors(session)
        if hello.get("error"):
            raise pytest.UsageError(hello["error"])
        self._tests = {test.nodeid: test for test in hello["tests"]}
        return self.begin({test.nodeid: test.bar for test in hello["tests"]}, hello["version"])

    def _settle(self) -> None:
        """After Ctrl-C, wait for the workers' answers. Press Ctrl-C again to stop waiting."""
        scheduler, loop = self._scheduler, self.config.pluginmanager.get_plugin("dsession")
        if scheduler is None or loop is None:
            return
        scheduler.stop()
        until, running = time.monotonic() + GRACE, set(scheduler.nodes)
        while running and scheduler.has_pending and (left := until - time.monotonic()) > 0:
            try:
                name, given = loop.queue.get(timeout=left)
            except Empty:
                break
            if name == "runtest_protocol_complete":
                scheduler.mark_test_complete(**given)
            elif name in ("workerfinished", "errordown"):
                running.discard(given["node"])

    def _end(self) -> None:
        if self._scheduler is not None:
            self._scheduler.finish()
        self.report(self._tests)
