"""Arms and cases from a file: one name per line, or CSV, JSON or JSON lines with names and parameters."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..core import checks
from ..core.spec import Params
from ..errors import InvalidInput, shown
from ..run.command.process import PULL_FIELDS
from ..text.escapes import text_of
from ..text.files import read_text
from ..text.parsing import read_json
from ..text.plural import either
from ..text.tables import read_csv

SHAPES = 'write ["a", "b"], [{"name": "a", "depth": 1}] or {"a": {"depth": 1}}'
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}  # that spreadsheets may write instead of commas
Cases = int | list[str] | dict[str, Params]
Rows = Iterable[tuple[str, Any, Params]]  # location, name, parameters


class Kind(NamedTuple):
    """What a file names."""

    what: str
    keys: tuple[str, ...]  # the columns that may hold the name, the best first
    reserved: tuple[str, ...]  # names that no parameter may have

    @property
    def file(self) -> str:
        """What its files are called."""
        return f"{self.what}s file"


ARMS = Kind("arm", ("name", "arm"), PULL_FIELDS)  # thresher's own tables call it arm
CASES = Kind("case", ("case", "name", "id"), ())


def read_arms(file: str) -> dict[str, Params]:
    """The arms in a file; ``-`` is standard input. An error names the row."""
    return _read(file, ARMS, _instead(file))


def arms_listed(items: Iterable[object], where: str) -> dict[str, Params]:
    """The arms in a list of names, or of objects with name and parameters."""
    rows = [_row(item, f"arm {number} of {where}", ARMS) for number, item in enumerate(items, start=1)]
    found = checked((f"{location}: arm", name, params) for location, name, params in rows)
    if not found:
        raise InvalidInput("arms", rule=f"{where} names none", remedy=SHAPES)
    return found


def read_cases(given: str | None) -> Cases | None:
    """The cases that ``--cases`` names: how many, or those of a file. An error names the row."""
    if given is None:
        return None
    if re.fullmatch(r"[+-]?[0-9]{1,18}", given.strip()):
        return int(given)
    if given == "-":
        rule = "cannot come from standard input, because a study resumes only with the same cases"
        raise InvalidInput("--cases", given, rule, "name a file, or give their number")
    cases = _read(given, CASES, "check its name, or give the number of cases")
    return cases if any(cases.values()) else list(cases)


def _read(file: str, kind: Kind, remedy: str) -> dict[str, Params]:
    where = "standard input" if file == "-" else file
    text = read_text(file, kind.file, remedy=remedy)
    reader = {"json": _from_json, "jsonl": _from_json_lines, "csv": _from_csv, "lines": _from_lines}
    style = _style(file, text, kind)
    rows = reader[style](text, where, kind)
    found = checked(((f"{location}: {kind.what}", name, params) for location, name, params in rows), kind)
    if not found:
        raise InvalidInput(kind.file, where, f"names no {kind.what}", _how_to_name(kind, style))
    return found


def checked(rows: Rows, kind: Kind = ARMS) -> dict[str, Params]:
    """Parameters by name. An error begins with the location of the first wrong one."""
    found: dict[str, Params] = {}
    for location, name, params in rows:
        checks.name(location, name)
        if name in found:
            raise InvalidInput(location, name, "is given twice", f"give every {kind.what} its own name")
        reserved = next((key for key in params if key in kind.reserved), None)
        if reserved:
            rule = f"its parameter {reserved!r} has a name that thresher uses itself"
            raise InvalidInput(location, name, rule, "rename it")
        found[name] = params
    return found


def _style(file: str, text: str, kind: Kind) -> str:
    """By the file's suffix, otherwise by how the text begins."""
    ending = Path(file).suffix.lower()
    if ending in (".csv", ".json"):
        return ending[1:]
    if ending in (".jsonl", ".ndjson"):
        return "jsonl"
    if re.match(r"\s*\{\s*\"[^\n]*\}\s*\n\s*\{", text):  # an object per line
        return "jsonl"
    if re.match(r"\s*(\[\s*[\[{\"\]]|\{\s*[\"}])", text):  # not [red], which is a name
        return "json"
    header = [column.strip() for column in text.split("\n", 1)[0].split(",")]
    best, *others = kind.keys
    return "csv" if best in header or any(key in header[:-1] for key in others) else "lines"


def _from_lines(text: str, where: str, kind: Kind) -> Rows:
    for number, line in enumerate(text.split("\n"), start=1):
        name = line.strip()
        if name and not name.startswith("#"):  # such a line is a comment
            yield f"line {number} of {where}", name, {}


def _from_csv(text: str, where: str, kind: Kind) -> Rows:
    if not text.strip():
        return
    columns, lines = read_csv(text, where)
    key = next((key for key in kind.keys if key in columns), None)
    if key is None:
        rule = f"has no column {either(kind.keys)}"
        raise InvalidInput(f"line 1 of {where}:", ",".join(columns), rule, _how_to_head(columns, kind))
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise InvalidInput(f"line 1 of {where}: column", twice, "occurs twice", "rename one of them")
    for location, cells in lines:
        row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
        yield location, text_of(row.pop(key)), row


def _how_to_head(columns: list[str], kind: Kind) -> str:
    """What to do about a header in which no column holds the name."""
    for separator, called in SEPARATORS.items():
        if len(columns) == 1 and any(cell.strip().lower() in kind.keys for cell in columns[0].split(separator)[:-1]):
            return f"separate the columns with commas instead of {called}; names are in a column {either(kind.keys)}"
    near = next((column for column in columns if column.lower() in kind.keys), None)
    if near is not None:
        return f"write {near.lower()!r} instead of {near!r}: capital letters make another name"
    named = f"name the column that holds the {kind.what}s' names {either([repr(key) for key in kind.keys])}"
    return f"{named}, or rename the file to .txt if it has one {kind.what} per line and no header"


def _how_to_name(kind: Kind, style: str) -> str:
    """What to write into a file that names nothing."""
    return {
        "json": SHAPES,
        "jsonl": f'write one object per line, such as {{"{kind.keys[0]}": "a"}}',
        "csv": f"write a first line with a column {kind.keys[0]!r}, then one {kind.what} per line",
        "lines": "write one name per line",
    }[style]


def _from_json(text: str, where: str, kind: Kind) -> Rows:
    data = _json(text, kind.file, where, kind)
    if isinstance(data, Mapping):
        for number, (name, params) in enumerate(data.items(), start=1):
            location = f"row {number} of {where}"
            yield (location, name, params) if isinstance(params, Mapping) else _row(params, location, kind)
    elif isinstance(data, list):
        for number, item in enumerate(data, start=1):
            yield _row(item, f"row {number} of {where}", kind)
    else:
        raise InvalidInput(kind.file, where, "holds neither a list nor an object", SHAPES)


def _from_json_lines(text: str, where: str, kind: Kind) -> Rows:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            location = f"line {number} of {where}"
            yield _row(_json(line, f"{kind.file}: {location}:", line.strip(), kind), location, kind)


def _row(item: object, location: str, kind: Kind) -> tuple[str, Any, Params]:
    if isinstance(item, str):
        return location, item, {}
    key = next((key for key in kind.keys if key in item), None) if isinstance(item, Mapping) else None
    if key is None and isinstance(item, Mapping):
        rule = f"{shown(item)} has no {either(kind.keys)}"
        raise InvalidInput(location, rule=rule, remedy=f'name each {kind.what}, as in {{"{kind.keys[0]}": "first", …}}')
    if key is None:
        raise InvalidInput(location, rule=f"{shown(item)} is neither a name nor parameters", remedy=SHAPES)
    params: dict[str, Any] = dict(item)  # type: ignore[call-overload]  # it has a key
    name = params.pop(key)
    is_number = kind is CASES and isinstance(name, int) and not isinstance(name, bool)  # eval sets are often numbered
    return location, str(name) if is_number else name, params


def _json(text: str, what: str, value: str, kind: Kind) -> Any:
    try:
        return read_json(text, object_pairs_hook=lambda pairs: _unique(pairs, value, kind))
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput(what, value, f"cannot be read as JSON ({error})", SHAPES) from None


def _unique(pairs: list[tuple[str, Any]], where: str, kind: Kind) -> dict[str, Any]:
    """A JSON object; Python alone would silently keep the last of two equal keys."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        rule = "occurs twice in one object"
        raise InvalidInput(f"{where}: key", twice, rule, f"give every {kind.what} its own name")
    return found


def _instead(file: str) -> str:
    """What to do about a file that cannot be read. It may not be meant as one."""
    names = [name.strip() for name in file.split(",") if name.strip()]
    if len(names) > 1:
        return f"--arms takes a file; for names write --arm {' --arm '.join(names)}"
    is_a_word = file != "-" and not Path(file).suffix and "/" not in file
    return f"check its name; for an arm of that name write --arm {file}" if is_a_word else "check its name"
