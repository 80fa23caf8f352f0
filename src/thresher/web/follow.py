"""Following a log: events are folded one by one as they come, so that what happened between two looks is not lost."""

from array import array
from collections.abc import Iterator, Sequence

from ..core import ledger as ledgers
from ..core.events import Event, moment
from ..core.ledger import Ledger
from ..errors import CannotGoOn, DamagedStudy, InvalidInput, ThresherError, UnknownStudy
from ..log.store import Store
from ..log.tail import NO_EVENT, pages, section
from .history import History, Point, Tally


class Follower:
    """A ledger of its own, besides how it came about. It is never asked for an arm, so it never works out a score."""

    def __init__(self, name: str, store: Store) -> None:
        self.name, self.store = name, store
        try:
            first = next(iter(section(store, name, 0, 1)), None)
            if first is None:
                raise UnknownStudy("study", name, "is not in this store", "list those that are: thresher studies")
            self.ledger: Ledger = ledgers.begun(first)
        except InvalidInput as error:
            raise self._damaged(1, error) from None
        except DamagedStudy as error:
            raise self._damaged(None, error) from None
        self.ledger.folding = True
        self.tally = Tally(len(self.ledger.spec.arms))
        self.history = History()
        self.changed = array("q", [1]) * len(self.ledger.spec.arms)  # the last event of each arm
        self.created = moment(first.time)
        try:
            for page in pages(store, name, first):
                self._fold(page)
        except DamagedStudy as error:
            raise self._damaged(None, error) from None

    @property
    def seq(self) -> int:
        """The last event that is in."""
        return self.ledger.seq

    @property
    def points(self) -> list[Point]:
        """The history, up to now."""
        return [*self.history.points, self.tally.point(self.ledger.issued)]

    def pages(self) -> Iterator[Sequence[Event]]:
        """What is new in the log, a page at a time, each of them folded in."""
        try:
            for page in pages(self.store, self.name, self.ledger.last):
                self._fold(page)
                yield page
        except (DamagedStudy, UnknownStudy):  # another study, an end that was lost in a crash, or damage: begin anew
            raise UnknownStudy("study", self.name, "was deleted or begun anew", "reload the page") from None

    def _fold(self, page: Sequence[Event]) -> None:
        for event in page:
            try:
                self.ledger.apply(event)
            except (ThresherError, *NO_EVENT) as error:
                raise self._damaged(event.seq, error) from None
            self._note(event)

    def _note(self, event: Event) -> None:
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

    def _damaged(self, seq: int | None, error: Exception) -> CannotGoOn:
        why = error.rule if isinstance(error, ThresherError) else str(error)
        what = why if seq is None else f"its log is damaged at event {seq}: {why}"
        remedy = "ask thresher verify and thresher doctor, and restore the log from a copy"
        return CannotGoOn("study", self.name, what, remedy)
