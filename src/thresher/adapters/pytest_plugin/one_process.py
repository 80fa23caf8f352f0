"""The loop of a pytest run in one process: ask for a batch of runs, make them in the order of the tests, tell."""

from collections.abc import Sequence

import pytest

from .repeating import interrupted, leave, run_once
from .sifting import Ask, Sift

STORED = 8  # with a storage, at least
BATCH = 64  # runs asked for at once, at most: tests of the same module share one setup of its fixtures
FIRST = 8  # the same before it is known how long a run takes
LASTS = 0.5  # seconds that a batch takes: after an interruption, its runs that never began are charged


class Loop:
    """Runs the tests of a study until it is done, the time is over or pytest is to stop."""

    def __init__(self, session: pytest.Session, items: dict[str, pytest.Item], sift: Sift) -> None:
        self._session, self._items, self._sift = session, items, sift
        self._order = {nodeid: at for at, nodeid in enumerate(items)}

    def run(self) -> None:
        """Run until there is nothing more to do."""
        try:
            while not self._is_over() and (asks := self._sift.ask(self._size())):
                self._batch(sorted(asks, key=lambda ask: self._order[ask.nodeid]))
                if self._sift.failed_enough:
                    break
        finally:
            self._sift.aside(leave(self._session, None))

    def _size(self) -> int:
        """How many runs to ask for at once: about one of each test; a few more where each write takes time."""
        pace = self._sift.pace.get(None)
        most = FIRST if pace is None else max(1, int(LASTS / max(pace, 1e-9)))
        return min(BATCH, most, max(self._sift.open, STORED if self._sift.options.storage else 1))

    def _batch(self, asks: Sequence[Ask]) -> None:
        """Make these runs. Those that have not begun when the time is over, or pytest stops, are taken back."""
        at = 0
        try:
            while at < len(asks) and not self._is_over():
                at += 1
                self._one(asks[at - 1])
        finally:
            self._sift.unbegun(asks[at:])

    def _one(self, ask: Ask) -> None:
        item, isolation = self._items[ask.nodeid], self._sift.options.isolation
        try:
            outcome = run_once(item, seed=ask.seed, number=ask.number, isolation=isolation)
        except BaseException as error:  # Ctrl-C, pytest.exit: whatever the test did, its run has begun
            self._sift.lost(ask, interrupted(error))
            raise
        self._sift.tell(ask, outcome)

    def _is_over(self) -> bool:
        return self._sift.is_out_of_time or bool(self._session.shouldstop) or bool(self._session.shouldfail)
