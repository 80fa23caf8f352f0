"""Progress while tests run: one line that is rewritten on a terminal, a line now and then in a log."""

import time

import pytest

from ...text.quantities import duration
from .sifting import Sift

LIVE, LOGGED = 0.2, 30.0  # seconds between two lines


class Progress:
    """Called after each run."""

    def __init__(self, config: pytest.Config) -> None:
        self._began = time.monotonic()
        self._tr = config.pluginmanager.get_plugin("terminalreporter")
        self._live = self._tr is not None and self._tr.isatty and config.getoption("capture", "fd") != "no"
        self._every = LIVE if self._live else LOGGED
        self._next = self._began + self._every

    def __call__(self, sift: Sift) -> None:
        now = time.monotonic()
        if now < self._next or self._tr is None or self._tr.verbosity < -1:
            return
        self._next = now + self._every
        found = sift.counts()
        left = f"{found['steady']:,} steady, {found['failing']:,} failing too often, {found['open']:,} open"
        line = f"thresher: {sift.runs:,} runs, {left}, {duration(now - self._began)}"
        if self._live:
            self._tr.rewrite(line, erase=True)
        else:
            self._tr.write_line(line)

    def end(self) -> None:
        """Erase the line."""
        if self._live and self._tr is not None:
            self._tr.rewrite("", erase=True)
            self._tr.write("\r")
