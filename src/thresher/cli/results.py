"""Results already paid for, from CSV or JSON: all of them, or an error that names row and column of a wrong one."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

from ..errors import InvalidInput, ThresherError, shown
from ..spec import Spec

SHAPES = "give CSV with columns arm and reward, a JSON list of such objects, or what thresher export NAME json wrote"
Row = tuple[str, dict[str, Any]]  # where it stands, and its cells by column


def read_results(data: object, text: str, file: str, spec: Spec) -> list[tuple[str, float]]:
    """Arms and rewards of a JSON list, if ``data`` is one, else of CSV text."""
    rows = _from_json(data, file) if isinstance(data, list) else _from_csv(text, file)
    found = list(_checked(rows, spec))
    if not found:
        raise InvalidInput("file", file, "has no row with a reward", SHAPES)
    return found


def _from_json(rows: Iterable[object], file: str) -> Iterator[Row]:
    for number, row in enumerate(rows, start=1):
        place = f"row {number} of {file}"
        if not isinstance(row, dict):
            raise InvalidInput(place, row, "is not an object with arm and reward", SHAPES)
        yield place, row


def _from_csv(text: str, file: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        columns = [column.strip() for column in next(reader, [])]
        for name in ("arm", "reward"):
            if columns.count(name) != 1:
                rule = f"{'is there twice' if name in columns else 'is not there'} among {shown(columns)}"
                raise InvalidInput(f"line 1 of {file}: column", name, rule, SHAPES)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            place = f"line {reader.line_num} of {file}"
            if len(cells) != len(columns):
                rule = f"has {len(cells)} cells, and the first line has {len(columns)} columns"
                raise InvalidInput(place, ",".join(cells), rule, "put cells that hold commas in double quotes")
            stripped = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
            yield place, {**stripped, "arm": cells[columns.index("arm")]}  # a name may begin or end with a blank
    except csv.Error as error:
        raise InvalidInput(f"line {reader.line_num} of {file}", rule=f"is not CSV ({error})", remedy=SHAPES) from None


def _checked(rows: Iterable[Row], spec: Spec) -> Iterator[tuple[str, float]]:
    seen = set()
    for place, row in rows:
        for column in ("arm", "reward"):
            if row.get(column) is None:
                raise InvalidInput(f"{place}: column", column, "is not there", SHAPES)
        pull = str(row.get("pull") or "")
        if pull in seen:
            raise InvalidInput(f"{place}: pull", pull, "is there twice", "a pull has one reward: leave one row out")
        seen.update([pull] if pull else [])
        try:
            arm = row["arm"]
            arm = arm.strip() if isinstance(arm, str) and arm not in spec.index else arm
            spec.arm(arm)
            if row["reward"] != "":  # a pull without one, in what export csv wrote
                yield arm, spec.reward(_number(row["reward"]))
        except ThresherError as error:
            raise InvalidInput(f"{place}: {error}") from None


def _number(value: object) -> object:
    """What a cell of CSV says; `Spec.reward` refuses the rest."""
    if not isinstance(value, str):
        return value
    if value.lower() in ("true", "false"):
        return value.lower() == "true"
    try:
        return value if "_" in value else float(value)
    except ValueError:
        return value
