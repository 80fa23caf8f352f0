"""Arms from a file: one name a line, or CSV or JSON with a name and parameters."""

import csv
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .. import checks
from ..command import PULL_FIELDS
from ..errors import InvalidInput, shown
from ..spec import Params


def read_arms(file: str) -> dict[str, Params]:
    """The arms of a file, ``-`` being standard input. An error names the row."""
    where = "standard input" if file == "-" else file
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise InvalidInput("arms file", where, f"cannot be read ({error.strerror})", "check its name") from None
    except UnicodeDecodeError as error:
        raise InvalidInput("arms file", where, f"is not UTF-8 text ({error.reason} at byte {error.start})") from None
    kind = _kind(file, text)
    rows = {"json": _from_json, "csv": _from_csv, "lines": _from_lines}[kind](text, where)
    arms: dict[str, Params] = {}
    for place, name, params in rows:
        try:
            checks.name("arm", name)
        except InvalidInput as error:
            raise InvalidInput(f"{place} of {where}: arm", name, error.rule, error.remedy) from None
        if name in arms:
            raise InvalidInput(f"{place} of {where}: arm", name, "is there twice", "give every arm a name of its own")
        reserved = next((key for key in params if key in PULL_FIELDS), None)
        if reserved:
            raise InvalidInput(f"{place} of {where}: column", reserved, "is a word of thresher's own", "rename it")
        arms[name] = params
    if not arms:
        raise InvalidInput("arms file", where, "names no arm", "write one name a line")
    return arms


Rows = list[tuple[str, Any, Params]]  # where it stands, name, parameters


def _kind(file: str, text: str) -> str:
    """By the file's ending; where that says nothing, by how the text begins."""
    ending = Path(file).suffix.lower()
    if ending == ".csv" or text.split("\n", 1)[0].strip().split(",")[0] == "name":
        return "csv"
    return "json" if ending == ".json" or text.lstrip()[:1] == "[" else "lines"


def _from_lines(text: str, where: str) -> Rows:
    lines = enumerate(text.splitlines(), start=1)
    return [(f"line {number}", line.strip(), {}) for number, line in lines if line.strip()]


def _from_csv(text: str, where: str) -> Rows:
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    rows: Rows = []
    try:
        columns = [column.strip() for column in next(reader, [])]
        if "name" not in columns:
            raise InvalidInput(
                f"line 1 of {where}:", ",".join(columns), "has no column 'name'", "name the columns there"
            )
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            place = f"line {reader.line_num}"
            if len(cells) != len(columns):
                rule = f"has {len(cells)} cells, and the first line has {len(columns)} columns"
                raise InvalidInput(f"{place} of {where}:", ",".join(cells), rule, "quote cells that hold commas")
            row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
            rows.append((place, row.pop("name"), row))
    except csv.Error as error:
        raise InvalidInput(f"line {reader.line_num} of {where}:", rule=f"is not CSV ({error})") from None
    return rows


def _from_json(text: str, where: str) -> Rows:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise InvalidInput("arms file", where, f"is not JSON ({error})") from None
    if isinstance(data, Mapping):
        data = [{"name": name, **params} if isinstance(params, Mapping) else params for name, params in data.items()]
    if not isinstance(data, list):
        raise InvalidInput("arms file", where, "must be a list of names or of objects with a name")
    rows: Rows = []
    for number, item in enumerate(data, start=1):
        if isinstance(item, str):
            rows.append((f"row {number}", item, {}))
        elif isinstance(item, Mapping) and "name" in item:
            rows.append((f"row {number}", item["name"], {key: value for key, value in item.items() if key != "name"}))
        else:
            raise InvalidInput(
                f"row {number} of {where}:", rule=f"{shown(item)} is neither a name nor an object with a name"
            )
    return rows
