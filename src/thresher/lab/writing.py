"""Files that are written completely or not at all, CSV text, and a progress bar."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import InvalidInput
from ..text.escapes import csv_line
from ..text.files import settle


@contextmanager
def whole_folder(out: str | Path) -> Iterator[Path]:
    """A folder to write into. Its files move to ``out`` when the block ends, and are deleted if it fails."""
    target = Path(out)
    missing = [folder for folder in (target, *target.parents) if not folder.exists()]
    try:
        target.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=target))
    except OSError as error:
        rule = f"cannot be written: {error.strerror}"
        raise InvalidInput("output folder", str(out), rule, "choose another --out") from error
    try:
        yield partial
        for file in sorted(partial.iterdir()):
            settle(file, target / file.name)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        if missing:  # the topmost folder that was created
            shutil.rmtree(missing[-1], ignore_errors=True)
        raise
    partial.rmdir()


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
