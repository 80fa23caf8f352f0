"""Pulls as users see them: one to evaluate, and the table of all."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, overload

from ..errors import UnknownPull
from ..text.phrasing import plural
from . import ledger as ledgers
from .events import DROPPED, Event, EventRemarks, event_baseline_reward, event_date, event_remarks
from .named_items import NO_PARAMS, Params
from .places import mixed_place_word, seed_of_place
from .row_text import rows_as_frame
from .state import State

_tuple = tuple.__new__  # what Pull(…) does, in a third of the time
TICKET = re.compile(r"[1-9][0-9]{0,14}-[0-9a-f]{8}")


class Pull(NamedTuple):
    """One evaluation to make: of which arm, its number among the arm's pulls, with which seed, and on which case.

    >>> import thresher
    >>> study = thresher.create_study("sums", arms=["terse"], at_least=0.9, cases={"2 + 2": {"answer": 4}})
    >>> pull = study.ask()
    >>> pull.arm, pull.case, pull.case_params["answer"]
    ('terse', '2 + 2', 4)
    """

    id: int  # counts the study's pulls, from 1
    arm: str
    number: int  # counts the arm's pulls, from 1
    params: Params
    seed: int  # in [0, 2³²), no other pull of the study has it, except those that try the same case again
    case: str | int | None = None  # what to evaluate it on: a name, or a number from 0; None: there are no cases
    case_params: Params = NO_PARAMS
    baseline: str | None = None  # the arm to evaluate as well, with the same seed; None: there is no pair to tell
    baseline_params: Params = NO_PARAMS
    baseline_first: bool = False  # which of the two comes first; the seed decides
    tag: int | None = None  # from the digest of the event that issued it; pulls of other studies and logs have another

    @property
    def ticket(self) -> str:
        """Its id and tag, as `thresher ask` prints them: a name to tell it by where only text can be sent."""
        return f"{self.id}-{self.tag or 0:08x}"

    def both(self) -> "list[Pull]":
        """The pulls to evaluate for a pair, in their order: of the arm and of the baseline.

        >>> import thresher
        >>> study = thresher.create_study("times", arms=["old", "new"], baseline="old", lower_is_better=True)
        >>> pull = study.ask()
        >>> seconds = {side.arm: 0.2 if side.arm == "new" else 0.25 for side in pull.both()}
        >>> study.tell(pull, (seconds["new"], seconds["old"]))
        """
        alone = self._replace(baseline=None, baseline_params=NO_PARAMS, baseline_first=False)
        if self.baseline is None:
            return [alone]
        other = alone._replace(arm=self.baseline, params=self.baseline_params)
        return [other, alone] if self.baseline_first else [alone, other]


def pull_of(ledger: State, pull: int) -> Pull:
    """The pull of that id."""
    spec, arm, number = ledger.spec, ledger.pull_arm[pull - 1], ledger.pull_number[pull - 1]
    params, case = NO_PARAMS if spec.params is None else spec.params[arm], None
    if ledger.cases is not None:
        case = ledger.cases.pull_case[pull - 1]
    tag, history = ledger.pull_tag[pull - 1], ledger.histories.get(arm) if ledger.histories else None
    if history is None:
        seed = seed_of_place(spec.seed or 0, arm, len(spec.arms), number, case)
    else:
        seed = seed_of_place(history.seed, history.arm, history.arms, number, case)
    fields = (pull, spec.arms[arm], number, params, seed, None, NO_PARAMS, None, NO_PARAMS, False, tag)
    plain = _tuple(Pull, fields)
    if case is not None:
        case_params = NO_PARAMS if spec.case_params is None else spec.case_params[case]
        return plain._replace(case=spec.case_name(case), case_params=case_params)
    if spec.baseline is not None:
        base = NO_PARAMS if spec.params is None else spec.params[spec.base]
        first = bool(mixed_place_word(seed, 1) & 1)
        return plain._replace(baseline=spec.baseline, baseline_params=base, baseline_first=first)
    return plain


def pull_row_json(pull: Pull) -> dict[str, Any]:
    """A pull as JSON-ready data, for an agent that tells its ticket."""
    data = {"pull": pull.ticket, "id": pull.id, "arm": pull.arm, "number": pull.number, "seed": pull.seed}
    data["params"] = dict(pull.params)
    if pull.baseline is not None:
        base = {"baseline": pull.baseline, "baseline_params": dict(pull.baseline_params)}
        return {**data, **base, "baseline_first": pull.baseline_first}
    if pull.case is None:
        return data
    return {**data, "case": pull.case, "case_params": dict(pull.case_params)}


def pull_id_of(pull: object, *, remedy: str = "pass what ask returned") -> int:
    """The id of a pull. The id, or its ticket, may be given instead of it.

    >>> pull_id_of(3), pull_id_of("3-00c0ffee")
    (3, 3)
    """
    if isinstance(pull, Pull):
        return pull.id
    if isinstance(pull, str) and TICKET.fullmatch(pull):
        return int(pull.partition("-")[0])
    if not isinstance(pull, int):
        raise UnknownPull("pull", pull, "must be a Pull, its id or its ticket", remedy)
    return pull


# Which pull a caller means, and whether it is one of this study's log.


def pull_id_in(ledger: State, pull: "Pull | int | str", remedy: str = "pass what ask returned") -> int:
    """The id of a pull that this log has issued. Raises `UnknownPull` if it is one of another study or log."""
    if type(pull) is Pull and 0 < pull.id <= ledger.last_pull and pull.tag == ledger.pull_tag[pull.id - 1]:
        return pull.id
    number = pull_id_of(pull, remedy=remedy)
    ledger.state_of(number)
    if isinstance(pull, int):
        return number
    if not _is_same(ledger, pull, number - 1):
        rule = "was not issued by this study as it is now, but by another one or before the store was set back"
        named = pull.id if isinstance(pull, Pull) else pull
        raise UnknownPull("pull", named, rule, "drop this work, and ask again")
    return number


def _is_same(ledger: State, pull: "Pull | str", at: int) -> bool:
    """Whether a ticket has the right tag, or a pull without one the right arm and number."""
    if isinstance(pull, str):
        return int(pull.partition("-")[2], 16) == ledger.pull_tag[at]
    if pull.tag is not None:
        return pull.tag == ledger.pull_tag[at]
    arm = ledger.arm_of(at + 1)
    return arm is not None and (pull.arm, pull.number) == (ledger.spec.arms[arm], ledger.pull_number[at])


# -- all pulls of a study as a table -------------------------------------------------------------------------------


class PullRow(NamedTuple):
    """One pull of a study and what became of it."""

    id: int
    arm: str
    number: int
    seed: int
    state: str  # pending, told, dropped, late (dropped first, told afterwards) or outside (the bounds)
    reward: float | None
    agent: str | None  # the one that asked for it
    asked: datetime | None
    ended: datetime | None  # None while it is pending; for a late reward, when that came
    case: str | int | None = None
    baseline: float | None = None  # of a pair: the baseline's reward
    note: str | None = None  # what the evaluator said about the reward
    cost: float | None = None  # what the evaluator said that the pull cost


class Pulls(Sequence[PullRow]):
    """Every pull of a study, in the order in which they were issued.

    >>> import thresher
    >>> study = thresher.create_study("coins", arms=["fair", "loaded"], at_least=0.6, budget=20)
    >>> study.tell(study.ask(), 1)
    >>> [(row.id, row.arm, row.state, row.reward) for row in study.pulls()]
    [(1, 'fair', 'told', 1.0)]
    """

    def __init__(self, rows: Iterable[PullRow]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, at: int) -> PullRow: ...
    @overload
    def __getitem__(self, at: slice) -> "Pulls": ...
    def __getitem__(self, at: int | slice) -> "PullRow | Pulls":
        return Pulls(self._rows[at]) if isinstance(at, slice) else self._rows[at]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[PullRow]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"<{plural(len(self), 'pull')}>"

    def to_frame(self) -> Any:
        """The pulls as a pandas DataFrame, a row each; an error if pandas is not installed."""
        return rows_as_frame(list(self._rows), columns=list(PullRow._fields))


def pull_rows(events: Iterable[Event]) -> Pulls:
    """Every pull that a log tells of, with the arm and the case that it had when it was issued."""
    rows: list[PullRow] = []
    stream = iter(events)
    ledger = ledgers.ledger_after_created(next(stream, None))
    for event in stream:
        ledgers.apply_to_ledger(ledger, event)
        if event.kind == "asked":
            issued = pull_of(ledger, ledger.last_pull)
            asked = (event.agent, event_date(event.time), None, issued.case)
            rows.append(PullRow(issued.id, issued.arm, issued.number, issued.seed, "pending", None, *asked))
        elif event.kind == "revised":  # what is pending of a history that ended is dropped
            for at, row in enumerate(rows):
                if row.state == "pending" and ledger.pull_state[at] == DROPPED:
                    rows[at] = row._replace(state="dropped", ended=event_date(event.time))
        elif event.pull is not None and event.kind != "repeated":
            at, spec = event.pull - 1, ledger.spec
            rows[at] = _changed(rows[at], event, spec.pairs, of_baseline=spec.pairs and event.arm == spec.base)
    return Pulls(rows)


def _changed(row: PullRow, event: Event, pairs: bool, *, of_baseline: bool) -> PullRow:
    if event.kind == "told":
        state = "late" if event.late else "told"
        remarks = event_remarks(event) or EventRemarks()
        told = row._replace(state=state, reward=event.reward, ended=event_date(event.time))
        return told._replace(
            baseline=event_baseline_reward(event) if pairs else None, note=remarks.note, cost=remarks.cost
        )
    if event.kind == "dropped":
        return row._replace(state="dropped", ended=event_date(event.time))
    if row.state in ("pending", "dropped") and of_baseline:
        return row._replace(state="outside", baseline=event.reward, ended=event_date(event.time))
    if row.state in ("pending", "dropped"):  # retired for its reward; else it keeps the reward that it was told
        return row._replace(state="outside", reward=event.reward, ended=event_date(event.time))
    return row
