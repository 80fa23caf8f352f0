"""Following a log: events are folded one by one as they come, so that what happened between two looks is not lost."""

from array import array
from collections.abc import Iterator

from .. import ledger as ledgers
from ..errors import CannotGoOn, InvalidInput, UnknownStudy
from ..events import Event, moment
from ..ledger import Ledger
from ..store import Store
from .history import History, Point, Tally

PAGE = 10_000  # events that are read at once


class Follower:
    """A ledger of its own, besides how it came about. It is never asked for an arm, so it never works out a score."""

    def __init__(self, name: str, store: Store) -> None:
        self.name, self.store = name, store
        first = next(iter(store.read(name, 0, 1)), None)
        if first is None:
            raise UnknownStudy("study", name, "is not in this store", "list those that are: thresher studies")
        try:
            self.ledger: Ledger = ledgers.begun(first)
        except InvalidInput as error:
            raise self._damaged(1, error) from None
        self.ledger.folding = True
        self.tally = Tally(len(self.ledger.spec.arms))
        self.history = History()
        self.changed = array("q", [1]) * len(self.ledger.spec.arms)  # the last event of each arm
        self.created = moment(first.time)
        self._last = first.key
        for _ in self.pages():
            pass

    @property
    def seq(self) -> int:
        """The last event that is in."""
        return self.ledger.seq

    @property
    def points(self) -> list[Point]:
        """The history, up to now."""
        return [*self.history.points, self.tally.point(self.ledger.issued)]

    def pages(self) -> Iterator[list[Event]]:
        """What is new in the log, a page at a time, each of them folded in."""
        while True:
            # the last event once more: if it is another one now, this is another study, or its end was lost in a crash
            found = self.store.read(self.name, self.seq - 1, PAGE)
            if not found or found[0].key != self._last:
                raise UnknownStudy("study", self.name, "was deleted or begun anew", "reload the page")
            news = list(found[1:])
            for event in news:
                self._fold(event)
            if news:
                yield news
            if len(news) < PAGE - 1:
                return

    def _fold(self, event: Event) -> None:
        try:
            self.ledger.apply(event)
        except (InvalidInput, LookupError, ValueError) as error:
            raise self._damaged(event.seq, error) from None
        self._last = event.key
        if event.kind == "weighed":  # it looks at every arm
            for each in range(len(self.changed)):
                self.changed[each] = event.seq
                self.tally.update(self.ledger, each)
            return
        arm = event.arm if event.pull is None else self.ledger.pull_arm[event.pull - 1]
        if arm is None:
            return
        self.changed[arm] = event.seq
        if event.kind == "asked":
            self.history.issued(self.ledger.issued, self.tally)
        else:
            self.tally.update(self.ledger, arm)

    def _damaged(self, seq: int, error: Exception) -> CannotGoOn:
        why = error.rule if isinstance(error, InvalidInput) else str(error)
        remedy = "ask thresher verify and thresher doctor, and restore the log from a copy"
        return CannotGoOn("study", self.name, f"its log is damaged at event {seq}: {why}", remedy)
