"""CSV text and a progress bar."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ..text.escapes import csv_line


def csv_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    r"""Rows as CSV; a missing number is written as ``nan``.

    >>> csv_text([{"n": 5, "share": 0.25}, {"n": 10, "share": None}])
    'n,share\n5,0.25\n10,nan\n'
    """
    names = list(columns or rows[0])
    lines = (["nan" if row[name] is None else _short(row[name]) for name in names] for row in rows)
    return "".join(map(csv_line, [names, *lines]))


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value


@contextmanager
def progress_bar(what: str, total: int) -> Iterator[Callable[[int], None] | None]:
    """A bar on standard error that counts pulls, or steps; None unless standard error is a terminal."""
    if total == 0 or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:3.0f} %"))
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)
