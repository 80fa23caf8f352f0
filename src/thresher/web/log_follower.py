"""Follows a study's log: folds its events one by one, and keeps a history of the answer.

The history says where the arms stood when pull ``step``, ``2 step``, … was issued. It never has more points
than a chart can show. It depends on the log alone: the same log always gives the same points.
"""

from array import array
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..core import ledger as ledgers
from ..core.events import NO_EVENT, Event, event_time_text
from ..core.rows import Standing, row_reaches, standing_in_row
from ..core.state import State
from ..errors import DamagedStudy, InvalidInput, ThresherError, UnknownStudy
from ..log.reader import damaged_log, read_log_pages, read_log_section, unknown_study_for_reader
from ..log.store import Store

MOST = 500  # points; when there are more, every other one is removed


class Point(NamedTuple):
    """The answer after a number of pulls."""

    issued: int
    reached: int  # arms that reach the bar
    missed: int
    open: int  # retired arms are among them


class LogFollowerTally:
    """How many arms stand where, kept up to date one arm at a time."""

    def __init__(self, ledger: State) -> None:
        arms = len(ledger.spec.arms)
        self._stands: list[tuple[Standing, bool | None]] = [("open", None)] * arms
        self._counts = Counter({self._stands[0]: arms})
        for arm in range(arms):
            self.update(ledger, arm)

    def update(self, ledger: State, arm: int) -> None:
        before, now = self._stands[arm], (standing_in_row(ledger, arm), row_reaches(ledger, arm))
        if now != before:
            self._counts[before] -= 1
            self._counts[now] += 1
            self._stands[arm] = now

    def count(self, *standings: Standing) -> int:
        """How many arms have one of these standings."""
        return sum(count for (where, _), count in self._counts.items() if where in standings)

    def leaning(self, *, reached: bool | None) -> int:
        """How many open arms reach the bar so far, or miss it; None: they have no reward."""
        return self._counts["open", reached]

    def reached(self) -> list[int]:
        """The arms that reach the bar."""
        return [arm for arm, (where, _) in enumerate(self._stands) if where == "reaches"]

    def point(self, issued: int) -> Point:
        return Point(issued, self.count("reaches"), self.count("misses"), self.count("open", "retired"))


class LogHistory:
    """Points in the order of the pulls, with the events that they follow. Every revision has its own."""

    def __init__(self, start: Point, seq: int) -> None:
        self.step = 1
        self.points, self._seqs = [start], [seq]

    def add_issued(self, count: int, tally: LogFollowerTally, seq: int) -> None:
        """Pull number ``count`` has just been issued, by event ``seq``."""
        if count % self.step:
            return
        self.points.append(tally.point(count))
        self._seqs.append(seq)
        if len(self.points) > MOST:
            self.step *= 2
            kept = [at for at, point in enumerate(self.points) if not at or not point.issued % self.step]
            self.points, self._seqs = [self.points[at] for at in kept], [self._seqs[at] for at in kept]

    def since(self, seq: int) -> list[Point]:
        """The points after event ``seq``."""
        return self.points[bisect(self._seqs, seq) :]


class LogFollower:
    """A ledger and its history. It is never asked for an arm, so it never computes a score."""

    def __init__(self, name: str, store: Store) -> None:
        self.name, self.store = name, store
        try:
            first = next(iter(read_log_section(store, name, 0, 1)), None)
            if first is None:
                raise unknown_study_for_reader(name)
            self.ledger: State = ledgers.ledger_after_created(first)
        except InvalidInput as error:
            raise damaged_log(self.name, f"event 1: {error}") from None
        self._begin(1)
        self.created = event_time_text(first.time)
        for page in read_log_pages(store, name, first):
            self._fold(page)

    def _begin(self, seq: int) -> None:
        """Begin with the revision that event ``seq`` made."""
        ledger = self.ledger
        self.revised = seq
        self.tally = LogFollowerTally(ledger)
        self._awaits = ledger.awaits
        self.history = LogHistory(self.tally.point(ledger.issued), seq)
        self.changed = array("q", [seq]) * len(ledger.spec.arms)  # the last event of each arm

    @property
    def seq(self) -> int:
        """The last event that was folded."""
        return self.ledger.seq

    @property
    def points(self) -> list[Point]:
        """The history, up to the answer now."""
        return self.points_since(0)

    def points_since(self, seq: int) -> list[Point]:
        """The points after an event, and the answer now."""
        return [*self.history.since(seq), self.tally.point(self.ledger.issued)]

    def arms_since(self, seq: int) -> list[int]:
        """The arms that had events after event ``seq``."""
        return [arm for arm, last in enumerate(self.changed) if last > seq]

    def catch_up(self) -> Iterator[Sequence[Event]]:
        """Fold the new events of the log, and yield them page by page."""
        try:
            for page in read_log_pages(self.store, self.name, self.ledger.last):
                self._fold(page)
                yield page
        except (DamagedStudy, UnknownStudy):  # another study, an end lost in a crash, or damage
            raise UnknownStudy("study", self.name, "was deleted or replaced", "reload the page") from None

    def _fold(self, page: Sequence[Event]) -> None:
        for event in page:
            try:
                ledgers.apply_to_ledger(self.ledger, event)
            except (ThresherError, *NO_EVENT) as error:
                raise damaged_log(self.name, f"event {event.seq}: {error}") from None
            self._note(event)

    def _note(self, event: Event) -> None:
        ledger, tally, arm = self.ledger, self.tally, event.arm
        if event.kind == "revised":
            self._begin(event.seq)
            return
        if arm is None and event.pull is not None:
            arm = ledger.arm_of(event.pull)
        if event.kind == "asked" and arm is not None:
            self.changed[arm] = event.seq
            self.history.add_issued(ledger.issued, tally, event.seq)
            return
        if arm is not None:
            self.changed[arm] = event.seq
            tally.update(ledger, arm)
        if event.kind == "told" and ledger.spec.pairs:  # its reward changes the baseline's row
            self.changed[ledger.base] = event.seq
        baseline_turned = arm == ledger.base and event.kind in ("retired", "restored")
        settles_others = ledger.certifies and ledger.certified != tally.count("reaches", "misses")
        if baseline_turned or settles_others or event.kind == "weighed" or ledger.awaits != self._awaits:
            self._awaits = ledger.awaits
            for other in range(len(self.changed)):  # the event changed many arms
                self.changed[other] = event.seq
                tally.update(ledger, other)
