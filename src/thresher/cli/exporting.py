"""Export: a study as CSV or as its whole log, out of a store."""

import csv
import io
import json
from collections.abc import Iterator
from itertools import chain, islice

import click

from ..core import certificate
from ..core.events import DROPPED, LATE, ONCE, OUTSIDE, STATES, TOLD, Event, Remarks, remarks_of, to_json
from ..core.ledger import Ledger
from ..core.pulls import pull_of
from ..core.results import CANCELLED, ORIGINS, SPARE, WITH_REWARD, Row
from ..study import Study, peek
from ..text.escapes import cell, remark
from . import put
from .options import on_study

LINES = 1000  # lines of CSV that are written at once


@click.command()
@on_study
@click.argument("style", type=click.Choice(["csv", "json"]), metavar="csv|json")
def export(study: Study, style: str) -> None:
    """Write study NAME to standard output: csv has one line per pull, json has the whole log. import reads both.

    Where every pull evaluates an arm and the baseline, csv has a column baseline, and import reads json alone.

    The state of a pull is pending, told, dropped, late (told after it was charged to the certificate), outside (the
    reward lies outside the bounds) or cancelled (it does not count in the certificate). The cause of a reward, if one
    has any, is repeatable (it may have been evaluated more than once) or failed (a failure that counts as this number).

    Examples:
      thresher export prompts csv
      thresher export prompts json --storage postgresql://me@server/lab
    """
    if style == "json":
        _print_log(study)
    else:
        peek(study, _print_pulls)


def _print_log(study: Study) -> None:
    """The log up to its present head. The head comes first, so that a truncated file still has it."""
    seq, digest = peek(study, lambda ledger: (ledger.seq, ledger.head))
    head = json.dumps({"seq": seq, "digest": digest})
    put(f'{{"format": 1, "study": {json.dumps(study.name)}, "head": {head}, "events": [', end="")
    for event in islice(chain.from_iterable(study.pages()), seq):
        put(("," if event.seq > 1 else "") + f"\n{json.dumps(to_json(event))}", end="")
    put("\n]}")


def _print_pulls(ledger: Ledger) -> None:
    """Write some lines at a time: all of them together would take more memory than the study."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    has_cases, pairs = ledger.spec.cases is not None, ledger.spec.pairs
    more = ["case"] if has_cases else ["baseline"] if pairs else []
    has_origins = any(ledger.pull_origin)
    more += ["cause"] if has_origins else []
    has_remarks = bool(ledger.remarks)
    more += ["note", "cost"] if has_remarks else []
    table.writerow(("pull", "arm", "number", "seed", "state", "reward", *more))
    for pull, row in enumerate(rows_of(ledger), start=1):
        last: list[object] = [cell(str(row.case))] if has_cases else [_other(ledger, pull)] if pairs else []
        if has_origins:
            last.append(" ".join(name for name, value in ORIGINS.items() if row.origin & value))
        if has_remarks:
            remarks = remarks_of(Event(0, "told", reason=ledger.remarks.get(pull))) or Remarks()
            last += [remark(remarks.note or ""), remarks.cost]
        issued = pull_of(ledger, pull)
        table.writerow((pull, cell(row.arm), issued.number, issued.seed, row.state, row.reward, *last))
        if not pull % LINES:
            put(text.getvalue(), end="")
            text.seek(0)
            text.truncate()
    put(text.getvalue(), end="")


def _other(ledger: Ledger, pull: int) -> float | None:
    """The baseline's reward in a pair that was told."""
    return ledger.pull_other[pull - 1] if ledger.pull_state[pull - 1] in (TOLD, LATE) else None


def rows_of(ledger: Ledger) -> Iterator[Row]:
    """All pulls as rows. Pulls that were charged have a state that import charges again."""
    for pull, state in enumerate(_states(ledger), start=1):
        reward = ledger.pull_reward[pull - 1] if state in WITH_REWARD else None
        case = ledger.case_of(pull)
        name = None if case is None else ledger.spec.case_name(case)
        origin = ONCE if reward is None else ledger.pull_origin[pull - 1]
        yield Row(f"pull {pull}", ledger.spec.arms[ledger.pull_arm[pull - 1]], state, reward, name, origin)


def _states(ledger: Ledger) -> list[str]:
    states = [STATES[state] for state in ledger.pull_state]
    if ledger.cases:  # a case that is tried again is not charged, and one that is late still has its reward
        for pull in ledger.cases.spare:
            states[pull - 1] = SPARE
    for at, state in enumerate(ledger.pull_state if ledger.spec.pairs else ()):
        if state == OUTSIDE and not ledger.has_reward(at + 1):
            states[at] = STATES[DROPPED]
    if not ledger.certifies or ledger.cases:
        return states
    followed = set()  # arms with a later pull that was told: cancelled pulls before it are charged
    for pull in range(ledger.issued, 0, -1):
        state, outcome, arm = ledger.pull_state[pull - 1], ledger.docket.outcome[pull], ledger.pull_arm[pull - 1]
        if outcome == certificate.TOLD or state == OUTSIDE:  # such a reward counts where it is imported, if at all
            followed.add(arm)
        elif state == TOLD:  # charged while it was pending, because too many rewards waited for it
            states[pull - 1] = "late"
        elif state == DROPPED and _is_left_out(ledger, outcome, arm in followed):
            states[pull - 1] = CANCELLED
    return states


def _is_left_out(ledger: Ledger, outcome: int, followed: bool) -> bool:
    return outcome == certificate.CANCELLED and not followed
