"""The loop of a pytest run in one process: ask for a batch of runs, make them in the order of the tests, tell."""

import time
from collections.abc import Callable, Sequence

import pytest

from .repeating import leave, run_once
from .sifting import Ask, Sift

STORED = 8  # with a storage, at least
BATCH = 64  # runs asked for at once, at most: a module's fixtures are set up once for those of its tests
FIRST = 8  # the same before it is known how long they take
LASTS = 0.5  # seconds that these take together: those that are never made because of an interruption are charged


class Loop:
    """Runs the tests of a study until it is done, the time is over or pytest is to stop."""

    def __init__(
        self,
        session: pytest.Session,
        items: dict[str, pytest.Item],
        sift: Sift,
        *,
        shown: Callable[[], None],
    ) -> None:
        self.session, self.items, self.sift, self.shown = session, items, sift, shown
        self.asides: dict[str, str] = {}  # errors when fixtures were torn down, by the test that ran last
        self._order = {nodeid: at for at, nodeid in enumerate(items)}
        self._last: str | None = None
        self._seen: set[str] = set()
        self._each: float | None = None  # about how many seconds a run takes
        seconds, self._began = sift.options.seconds, time.monotonic()
        self._until = None if seconds is None else self._began + seconds
        self._most = int(session.config.getoption("maxfail") or 0)

    def run(self) -> None:
        """Run until there is nothing more to do."""
        try:
            while not self._is_over() and (asks := self.sift.ask(self._size())):
                self._batch(sorted(asks, key=lambda ask: self._order[ask.nodeid]))
                if self._most and self.sift.counts().failing >= self._most:
                    break
        finally:
            self._aside(leave(self.session, None))

    def _size(self) -> int:
        """How many runs to ask for at once: about one of each test; a few more where each write takes time."""
        most = FIRST if self._each is None else max(1, int(LASTS / max(self._each, 1e-9)))
        return min(BATCH, most, max(self.sift.open, STORED if self.sift.options.storage else 1))

    def _batch(self, asks: Sequence[Ask]) -> None:
        """Make these runs. Those that have not begun when the time is over, or pytest stops, are taken back."""
        at = 0
        try:
            while at < len(asks) and not self._is_over():
                at += 1
                self._one(asks[at - 1])
        finally:
            self.sift.unbegun(asks[at:])

    def _one(self, ask: Ask) -> None:
        item, isolation = self.items[ask.nodeid], self.sift.options.isolation
        warnings = len(self._warnings())
        try:
            outcome = run_once(item, seed=ask.seed, number=ask.number, isolation=isolation)
        except BaseException as error:  # Ctrl-C, pytest.exit: whatever the test did, its run has begun
            self.sift.lost(ask, f"interrupted by {type(error).__name__}")
            raise
        self._aside(outcome.aside)
        self._last = ask.nodeid
        if ask.nodeid in self._seen:  # what the first run warned of is enough
            del self._warnings()[warnings:]
        self._seen.add(ask.nodeid)
        self._each = outcome.seconds if self._each is None else 0.8 * self._each + 0.2 * outcome.seconds
        self.sift.tell(ask, outcome)
        self.shown()

    def _warnings(self) -> list[object]:
        """What pytest's terminal will show."""
        reporter = self.session.config.pluginmanager.get_plugin("terminalreporter")
        return [] if reporter is None else reporter.stats.setdefault("warnings", [])

    def _aside(self, error: str | None) -> None:
        if error is not None and self._last is not None:
            self.asides.setdefault(self._last, error)

    def _is_over(self) -> bool:
        late = self._until is not None and time.monotonic() >= self._until
        return late or bool(self.session.shouldstop) or bool(self.session.shouldfail)
