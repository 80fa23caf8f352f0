"""``thresher cases``: the cases of an eval set, the hardest first."""

import json
import shutil
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import click

from ..core.hard_cases import CaseRow, hardest, seen_cases
from ..core.ledger import Ledger
from ..study import Study, peek
from ..text.escapes import cell, csv_line, visible
from ..text.phrasing import listed, plural
from ..text.quantities import amount
from . import put, read_in_part, standard_output
from .options import format_option, on_study, option
from .read_commands import asked_by

MOST = 20  # cases for people, without --all
WIDE = 120  # characters of a line where there is no terminal
LONGEST = 32  # characters of a case's name, for people


@click.command()
@on_study
@option("--all", f"List all cases, not only the {MOST} hardest.", to="everything")
@format_option("text", "json", "csv", text="JSON and CSV have all cases; CSV has a column for each arm.")
def cases(study: Study, everything: bool, style: str) -> None:
    """List the cases of study NAME that have a reward, with the arms' rewards. Cases that most arms failed come first.

    An arm failed a case if its reward does not reach the bar, or is worse than the baseline's. Where rewards are
    graded, the worst mean comes first. A case whose evaluation failed for good is missing for that arm.

    Examples:
      thresher cases prompts
      thresher cases prompts --all
      thresher cases prompts --format csv
    """
    most = None if everything or style != "text" else MOST
    rows, seen, arms, missing = peek(study, lambda ledger: _read(ledger, most))
    spec = study.spec
    if style == "json":
        head = {"format": 1, "study": study.name, "cases": spec.case_count, "seen": seen, **asked_by(spec)}
        lines = iter([json.dumps({**head, "rows": [row.to_dict() for row in rows]}, indent=2, ensure_ascii=False)])
    elif style == "csv":
        lines = (line.removesuffix("\n") for line in _csv(rows, spec.arms))
    else:
        lines = chain(_text(rows, arms, spec.unit), ["", _summary(len(rows), seen, spec.case_count), *missing])
    with read_in_part():
        for line in lines:
            put(line)


class Read(NamedTuple):
    """What the command shows, from one state of the study."""

    rows: list[CaseRow]
    seen: int  # cases that have a reward
    arms: list[str]  # those that have a reward, or have given up a case
    missing: list[str]  # a line about cases that have no reward because they failed too often, if there are any


def _read(ledger: Ledger, most: int | None) -> Read:
    rows, names = hardest(ledger, most), ledger.spec.arms  # hardest refuses a study without cases
    missing = {name: ledger.cases.missing[arm] if ledger.cases else 0 for arm, name in enumerate(names)}
    arms = [name for arm, name in enumerate(names) if ledger.board.seen[arm] or missing[name]]
    counts = [f"{visible(name)} {count:,}" for name, count in missing.items() if count]
    line = f"Missing, because they failed, and counted as the worst: {listed(counts)}."
    return Read(rows, seen_cases(ledger), arms, [line] if counts else [])


def _summary(shown: int, seen: int, count: int) -> str:
    listed = f"The {shown:,} hardest of {plural(seen, 'case')} with a reward" if shown < seen else ""
    listed = listed or f"{plural(seen, 'case')} with a reward"
    rest = f"; {count - seen:,} of {count:,} have none" if seen < count else ""
    more = "; --all lists all" if shown < seen else ""
    return f"{listed}{rest}{more}."


def _csv(rows: Sequence[CaseRow], arms: Sequence[str]) -> Iterator[str]:
    yield csv_line(["case", "failed", "passed", "mean", *map(cell, arms)])
    for row in rows:
        rewards = (row.rewards.get(arm) for arm in arms)
        yield csv_line([cell(str(row.case)), row.failed, row.passed, row.mean, *rewards])


def _text(rows: Sequence[CaseRow], arms: Sequence[str], unit: str | None) -> Iterator[str]:
    """A table: a column for each arm if they fit, otherwise the names of those that failed."""
    width = shutil.get_terminal_size((WIDE, 24)).columns if standard_output().isatty() else WIDE
    table = [
        ["case", *(_shortened(str(row.case)) for row in rows)],
        ["failed", *(f"{row.failed:,}" for row in rows)],
        ["passed", *(f"{row.passed:,}" for row in rows)],
        ["mean", *(amount(row.mean, unit) for row in rows)],
    ]
    if any(row.missing_by for row in rows):
        table.append(["missing", *(f"{len(row.missing_by) or ''}" for row in rows)])
    of_arms = [[visible(arm), *(_reward(row, arm, unit) for row in rows)] for arm in arms]
    if _width([*table, *of_arms]) <= width:
        table += of_arms
        yield from _lines(table)
        return
    room = max(20, width - _width(table) - 2)
    yield from _lines([*table, ["failed by", *(_failing(row, room) for row in rows)]])


def _reward(row: CaseRow, arm: str, unit: str | None) -> str:
    return amount(row.rewards[arm], unit) if arm in row.rewards else "missing" if arm in row.missing_by else ""


def _failing(row: CaseRow, room: int) -> str:
    """The names of the arms that failed a case, as many as fit."""
    names = [visible(arm) for arm in row.failed_by]
    text = ", ".join(names)
    while len(text) > room and len(names) > 1:
        names.pop()
        text = f"{', '.join(names)} and {row.failed - len(names):,} more"
    return text


def _shortened(name: str) -> str:
    text = visible(name)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) for column in columns) + 2 * (len(columns) - 1)


def _lines(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """The columns side by side; names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in columns]
    for cells in zip(*columns, strict=True):
        padded = [
            text.ljust(width) if at == 0 or columns[at][0] == "failed by" else text.rjust(width)
            for at, (text, width) in enumerate(zip(cells, widths, strict=True))
        ]
        yield "  ".join(padded).rstrip()
