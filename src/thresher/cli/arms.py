"""Arms from a file: one name per line, or CSV or JSON with names and parameters."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..core import checks
from ..core.spec import Params
from ..errors import InvalidInput, shown
from ..run.command.process import PULL_FIELDS
from ..text.escapes import text_of
from ..text.files import read_text
from ..text.parsing import read_json
from ..text.tables import read_csv


def read_arms(file: str) -> dict[str, Params]:
    """The arms in a file; ``-`` is standard input. An error names the row."""
    where = "standard input" if file == "-" else file
    text = read_text(file, "arms file", remedy=_instead(file))
    kind = _kind(file, text)
    rows = {"json": _from_json, "csv": _from_csv, "lines": _from_lines}[kind](text, where)
    arms = checked_arms((f"{place}: arm", name, params) for place, name, params in rows)
    if not arms:
        raise InvalidInput("arms file", where, "names no arm", "write one name per line")
    return arms


def checked_arms(rows: Iterable[tuple[str, Any, Params]]) -> dict[str, Params]:
    """Arms by name. An error begins with the place of the first wrong one."""
    arms: dict[str, Params] = {}
    for place, name, params in rows:
        checks.name(place, name)
        if name in arms:
            raise InvalidInput(place, name, "occurs twice", "give every arm its own name")
        reserved = next((key for key in params if key in PULL_FIELDS), None)
        if reserved:
            rule = f"its parameter {reserved!r} has a name that thresher uses itself"
            raise InvalidInput(place, name, rule, "rename it")
        arms[name] = params
    return arms


SHAPES = 'write ["a", "b"], [{"name": "a", "depth": 1}] or {"a": {"depth": 1}}'
Rows = list[tuple[str, Any, Params]]  # place, name, parameters


def _kind(file: str, text: str) -> str:
    """By the file's suffix, otherwise by how the text begins."""
    ending = Path(file).suffix.lower()
    if ending in (".csv", ".json"):
        return ending[1:]
    if re.match(r"\s*(\[\s*[\[{\"\]]|\{\s*[\"}])", text):  # not [red], which is a name
        return "json"
    header = [column.strip() for column in text.split("\n", 1)[0].split(",")]
    return "csv" if "name" in header or "arm" in header[:-1] else "lines"


def _from_lines(text: str, where: str) -> Rows:
    lines = enumerate(text.split("\n"), start=1)
    rows: Rows = [(f"line {number} of {where}", line.strip(), {}) for number, line in lines]
    return [row for row in rows if row[1] and not row[1].startswith("#")]  # such a line is a comment


def _from_csv(text: str, where: str) -> Rows:
    columns, lines = read_csv(text, where)
    key = "name" if "name" in columns else "arm"  # thresher's own tables call it arm
    if key not in columns:
        raise InvalidInput(f"line 1 of {where}:", ",".join(columns), "has no column 'name'", "name the columns there")
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise InvalidInput(f"line 1 of {where}: column", twice, "occurs twice", "rename one of them")
    rows: Rows = []
    for place, cells in lines:
        row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
        rows.append((place, text_of(row.pop(key)), row))
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
            rule = f"{shown(item)} is neither a name nor parameters"
            raise InvalidInput(f"row {number} of {where}", rule=rule, remedy=SHAPES)
    return rows


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    """A JSON object; Python alone would silently keep the last of two equal keys."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise InvalidInput(f"{where}: key", twice, "occurs twice in one object", "give every arm its own name")
    return found


def _instead(file: str) -> str:
    """What to do about a file that cannot be read. It may not be meant as one."""
    names = [name.strip() for name in file.split(",") if name.strip()]
    if len(names) > 1:
        return f"--arms takes a file; for names write --arm {' --arm '.join(names)}"
    is_a_word = file != "-" and not Path(file).suffix and "/" not in file
    return f"check its name; for an arm of that name write --arm {file}" if is_a_word else "check its name"
