"""Verify a log: every event must be valid, and every decision must be the one that the rule makes.

`log/reader.py` checks that the events are the ones that were written; damage found while reading is reported like a
wrong event. Drops are not checked, because they depend on a clock, and neither are rewards, which come from outside.
"""

import hashlib
import json
import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, MutableSequence
from typing import NamedTuple

from ..errors import DamagedStudy, NoScore, ScoreFailed, StoreFailed, ThresherError
from . import ledger as ledgers
from .board import Formula
from .custom_scores import register_score
from .events import NO_EVENT, Event
from .state import State

Column = tuple[str, MutableSequence[int] | MutableSequence[float]]


class ReplayReport(NamedTuple):
    """The result of verifying a log."""

    events: int  # how many are right, from the first on
    wrong: int | None  # the number of the first wrong event
    reason: str | None  # what is wrong with it
    digest: str | None  # of the state; None if the log is wrong
    head: str | None  # the digest of the last right event, which covers all events up to it
    anywhere: bool  # whether the decisions can be derived again on every machine, or only on this one
    policy: str  # by which they were made

    @property
    def sound(self) -> bool:
        """Whether everything is right."""
        return self.wrong is None


def verify(events: Iterable[Event], *, scores: Iterable[Formula] = ()) -> ReplayReport:
    """Fold a log and derive each of its decisions again; ``scores`` are those of `open_study`.

    >>> import thresher
    >>> study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=4)
    >>> pulls = study.ask_many(2)
    >>> verify(study.events()).sound
    True
    >>> report = verify(study.events()[:2] + [study.events()[2]._replace(arm=0)])
    >>> report.wrong, report.reason
    (3, "asked for arm 'a', where the rule says 'b'")
    """
    stream, ledger = iter(events), None
    for score in scores:
        register_score(score)
    try:
        ledger = ledgers.ledger_after_created(next(stream, None))
        for event in stream:
            wrong = event.kind != "created" and _wrongly_decided(ledger, event)
            if wrong:
                return _report(ledger, wrong)
            ledgers.apply_to_ledger(ledger, event)
        if ledger.due is not None:
            rule = f"missing: the retirement of arm {ledger.spec.arms[ledger.due]!r}, which failed too often in a row"
            return _report(ledger, rule)
        if ledger.cases and ledger.pending and ledger.issued == ledger.imported:
            return _report(ledger, "missing: the reward of the imported case")
    except (ThresherError, *NO_EVENT) as error:  # a damaged event can be anything
        is_damage = isinstance(error, DamagedStudy) or not isinstance(error, NoScore | ScoreFailed | StoreFailed)
        if not is_damage:
            raise
        return _report(ledger, error.rule if isinstance(error, DamagedStudy) else str(error))
    return _report(ledger, None)


def _report(ledger: State | None, wrong: str | None) -> ReplayReport:
    """The report on the event after those in the ledger; ``wrong`` says what is wrong with it, if anything is."""
    if ledger is None:
        return ReplayReport(0, 1, wrong, None, None, True, "")
    policy = ledger.spec.policy
    last = (policy.is_exact, str(policy))
    if wrong is None:
        policy.scored_by()  # raises if decisions depend on a function that was not passed in
        return ReplayReport(ledger.seq, None, None, replayed_state_digest(ledger), ledger.head, *last)
    seq = ledger.seq + 1
    return ReplayReport(ledger.seq, seq, wrong.removeprefix(f"is damaged, event {seq}: "), None, ledger.head, *last)


def _wrongly_decided(ledger: State, event: Event) -> str | None:
    """The decision that the rule makes, in words, if the event has another. Whether it is valid, the ledger checks."""
    names = ledger.spec.arms
    if event.seq != ledger.seq + 1:
        return f"has the number {event.seq}: there is a gap"
    if event.kind == "asked" and event.cause != "imported":
        if ledger.done:
            return "asked for a pull, where the study was done"
        arm = event.arm if event.cause == "chosen" else ledger.choose()
        if event.arm != arm and arm is not None:
            asked = names[event.arm] if event.arm is not None and 0 <= event.arm < len(names) else event.arm
            return f"asked for arm {asked!r}, where the rule says {names[arm]!r}"
    if event.kind in ("told", "dropped"):
        ledger.state_of(event.pull)
        arm = ledger.arm_of(event.pull or 0)
        if event.arm != arm:
            return f"says arm {event.arm}, but pull {event.pull} is of arm {arm}"
    return None


def replayed_state_digest(ledger: State) -> str:
    """A digest of the state, the same on every machine: exactly rounded columns, without time, agent and key."""
    total = hashlib.sha256(b"thresher state 1\n")
    for name, values in _columns(ledger):
        column = values[:] if isinstance(values, array) else array("d" if type(values[0]) is float else "q", values)
        if sys.byteorder == "big":
            column.byteswap()
        data = column.tobytes()
        head = name.encode()
        total.update(struct.pack("<qq", len(head), len(data)) + head)
        total.update(data)
    return total.hexdigest()


def _columns(ledger: State) -> Iterator[Column]:
    """Everything that decisions and verdicts depend on, except what can be computed from it, such as scores."""
    data = ledger.spec.to_json()
    del data["settling_constant"]  # computed with a logarithm
    text = json.dumps(data, sort_keys=True).encode()
    yield "specification", array("B", text)
    scalars = (ledger.seq, ledger.budget or 0, ledger.issued, ledger.told, ledger.pending, ledger.imported, ledger.open)
    yield "scalars", array("q", (*scalars, ledger.settled))
    yield "retired", array("q", sorted(ledger.retired))
    yield "flags", array("q", (ledger.unweighed, ledger.weighed, ledger.repeatable))
    yield "outside", array("q", sorted(ledger.outside))
    if ledger.lineage is not None:
        lineage = ledger.lineage
        yield "revisions", array("q", (ledger.revision, lineage.first, lineage.common, lineage.moved, *lineage.begun))
        yield "histories", array("B", json.dumps(sorted(ledger.histories.items())).encode())
    if ledger.cases:
        yield "pull_case", ledger.cases.pull_case
        for name in ("places", "lowest", "least", "most"):
            yield f"sheet_{name}", getattr(ledger.sheet, name)
    if ledger.hosted:
        yield "hosted", array("q", [1])
    if ledger.spec.pairs:
        yield "pull_other", ledger.pull_other
    if ledger.table:
        yield "table_cases", array("q", ledger.table)
        yield "table_rewards", array("d", ledger.table.values())
    if ledger.ranking.level:
        for name in ("rank", "reached"):
            yield name, getattr(ledger.ranking, name)
    for name in ("asked", "failures", "streak", "pull_arm", "pull_number", "pull_reward"):
        yield name, getattr(ledger, name)
    yield "pull_state", array("B", ledger.pull_state)
    for name in ("seen", "pending", "mean", "scatter", "total", "residue", "shut"):
        yield f"board_{name}", getattr(ledger.board, name)
    for name, values in ledger.docket._asdict().items():
        yield f"docket_{name}", values
    for arm in sorted(ledger.capitals):
        yield f"capitals_{arm}", ledger.capitals[arm]
