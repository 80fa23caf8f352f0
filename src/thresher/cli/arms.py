"""Arms from a file: one name a line, or CSV or JSON with a name and parameters."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..core import checks
from ..core.spec import Params
from ..errors import InvalidInput, shown
from ..run.command.process import PULL_FIELDS
from ..text.files import read_text
from ..text.parsing import read_json
from ..text.tables import read_csv


def read_arms(file: str) -> dict[str, Params]:
    """The arms of a file, ``-`` being standard input. An error names the row."""
    where = "standard input" if file == "-" else file
    text = read_text(file, "arms file")
    kind = _kind(file, text)
    rows = {"json": _from_json, "csv": _from_csv, "lines": _from_lines}[kind](text, where)
    arms = checked_arms((f"{place}: arm", name, params) for place, name, params in rows)
    if not arms:
        raise InvalidInput("arms file", where, "names no arm", "write one name a line")
    return arms


def checked_arms(rows: Iterable[tuple[str, Any, Params]]) -> dict[str, Params]:
    """Arms by name; an error begins with the place of the first that is wrong."""
    arms: dict[str, Params] = {}
    for place, name, params in rows:
        checks.name(place, name)
        if name in arms:
            raise InvalidInput(place, name, "is there twice", "give every arm a name of its own")
        reserved = next((key for key in params if key in PULL_FIELDS), None)
        if reserved:
            raise InvalidInput(place, name, f"its parameter {reserved!r} is a word of thresher's own", "rename it")
        arms[name] = params
    return arms


SHAPES = 'write ["a", "b"], [{"name": "a", "depth": 1}] or {"a": {"depth": 1}}'
Rows = list[tuple[str, Any, Params]]  # where it stands, name, parameters


def _kind(file: str, text: str) -> str:
    """By the file's ending; where that says nothing, by how the text begins."""
    ending = Path(file).suffix.lower()
    if ending in (".csv", ".json"):
        return ending[1:]
    if re.match(r"\s*(\[\s*[\[{\"\]]|\{\s*[\"}])", text):  # not [red], which is a name
        return "json"
    header = [column.strip() for column in text.split("\n", 1)[0].split(",")]
    return "csv" if "name" in header else "lines"


def _from_lines(text: str, where: str) -> Rows:
    lines = enumerate(text.split("\n"), start=1)
    return [(f"line {number} of {where}", line.strip(), {}) for number, line in lines if line.strip()]


def _from_csv(text: str, where: str) -> Rows:
    columns, lines = read_csv(text, where)
    if "name" not in columns:
        raise InvalidInput(f"line 1 of {where}:", ",".join(columns), "has no column 'name'", "name the columns there")
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise InvalidInput(f"line 1 of {where}: column", twice, "is there twice", "rename one of the two")
    rows: Rows = []
    for place, cells in lines:
        row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
        rows.append((place, row.pop("name"), row))
    return rows


def _from_json(text: str, where: str) -> Rows:
    try:
        data = read_json(text, object_pairs_hook=lambda pairs: _unique(pairs, where))
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput("arms file", where, f"cannot be read as JSON ({error})", SHAPES) from None
    if isinstance(data, Mapping):
        data = [{**params, "name": name} if isinstance(params, Mapping) else params for name, params in data.items()]
    if not isinstance(data, list):
        raise InvalidInput("arms file", where, "holds neither a list nor an object", SHAPES)
    rows: Rows = []
    for number, item in enumerate(data, start=1):
        if isinstance(item, str):
            rows.append((f"row {number} of {where}", item, {}))
        elif isinstance(item, Mapping) and "name" in item:
            params = dict(item)
            rows.append((f"row {number} of {where}", params.pop("name"), params))
        else:
            raise InvalidInput(
                f"row {number} of {where}", rule=f"{shown(item)} is neither a name nor parameters", remedy=SHAPES
            )
    return rows


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    """An object of JSON, which alone would keep the last of two equal keys and say nothing."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise InvalidInput(f"{where}: key", twice, "is there twice in one object", "give every arm a name of its own")
    return found
