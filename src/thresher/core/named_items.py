"""Arms and cases as people give them: names, or rows with parameters, in Python, in a table or in the text of a file.

A row is a dict. Its name is in one of the keys of its `ItemKind`; all other keys are parameters. If no row has a name,
they are numbered from 1.
"""

import json
import numbers
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import InvalidInput, shown
from ..text.escapes import unescaped_csv_cell
from ..text.files import read_csv, read_json
from ..text.phrasing import either_phrase
from . import checks

SHAPES = 'write ["a", "b"], [{"name": "a", "depth": 1}] or {"a": {"depth": 1}}'
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}  # that spreadsheets may write instead of commas
STYLES = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".ndjson": "jsonl", ".txt": "lines"}
UNREAD = {".yaml": "YAML", ".yml": "YAML", ".toml": "TOML"}  # formats that would be taken for names
Params = Mapping[str, Any]
NO_PARAMS: Params = {}
Rows = Iterable[tuple[str, Any, Params]]  # location, name, parameters


class ItemKind(NamedTuple):
    """Arms or cases: what has names."""

    noun: str
    keys: tuple[str, ...]  # that may hold the name, the best first
    reserved: tuple[str, ...] = ()  # names that no parameter may have

    @property
    def file(self) -> str:
        """What its files are called."""
        return f"{self.noun}s file"


ARMS = ItemKind("arm", ("name", "arm", "id"))  # thresher's own tables call it arm
CASES = ItemKind("case", ("case", "name", "id"))


MOST_CASES = 10**9
MOST_NAMED_CASES = 5_000_000  # their names are in the log's first event


# -- in Python ---------------------------------------------------------------------------------------------------


def named_arms(items: object, stored: object) -> tuple[tuple[str, ...], tuple[Params, ...] | None]:
    """The names of the arms, all different, and their parameters; a log has those by themselves."""
    named = items_from_python(items, ARMS)
    names = _names(ARMS, named, empty="name the arms")
    return names, _params_or_none(ARMS, named, stored, len(names))


def named_cases(items: object, stored: object) -> tuple[tuple[str, ...] | int | None, tuple[Params, ...] | None]:
    """The cases of an eval set: how many, or their names, all different, and their parameters."""
    if items is None:
        return None, _params_or_none(CASES, None, stored, 0)
    if isinstance(items, numbers.Integral) and not isinstance(items, bool):
        count = checks.checked_whole("cases", items, least=1, most=MOST_CASES)
        return count, _params_or_none(CASES, None, stored, count)
    named = items_from_python(items, CASES)
    names = _names(CASES, named, empty="name the cases, or give their number")
    if len(names) > MOST_NAMED_CASES:
        rule = f"are more names than a specification holds ({MOST_NAMED_CASES:,})"
        raise InvalidInput("cases", f"{len(names):,} names", rule, "give their number instead")
    return names, _params_or_none(CASES, named, stored, len(names))


def _names(kind: ItemKind, values: Iterable[object], *, empty: str) -> tuple[str, ...]:
    """Names that are all different."""
    names: dict[str, None] = {}
    for value in values:
        name = str.__str__(checks.checked_name(kind.noun, value))  # numpy's and enumerations' are subclasses
        if name in names:
            raise InvalidInput(kind.noun, name, "is given twice", f"give every {kind.noun} its own name")
        names[name] = None
    if not names:
        raise InvalidInput(f"{kind.noun}s", [], "there must be at least one", empty)
    return tuple(names)


def _params_or_none(kind: ItemKind, named: object, stored: object, count: int) -> tuple[Params, ...] | None:
    """The parameters of each arm or case: a user gives them with the names, and a log has them by themselves."""
    if isinstance(named, Mapping):
        return tuple(_params(f"{kind.noun} {shown(name)}", params) for name, params in named.items())
    if stored is None:
        return None
    if isinstance(stored, list | tuple) and len(stored) == count and all(isinstance(item, dict) for item in stored):
        return tuple(stored)
    field = "params" if kind is ARMS else "case_params"
    raise InvalidInput(field, stored, f"must be a list of {count:,} objects")


def _params(whose: str, params: object) -> Params:
    """The parameters of an arm or a case as plain JSON data."""
    label = f"parameters of {whose}"
    if not isinstance(params, Mapping) or not all(isinstance(key, str) for key in params):
        raise InvalidInput(label, params, "must be a dict with string keys")
    try:
        plain: Params = json.loads(json.dumps(dict(params), allow_nan=False, default=_plain_number))
    except (TypeError, ValueError) as error:
        rule = f"must be plain JSON data ({error})"
        raise InvalidInput(label, params, rule, "use strings, numbers, lists, dicts") from None
    return plain


def _plain_number(value: object) -> object:
    """A number of numpy as Python's own; JSON knows no other."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        plain = value.item()
        if isinstance(plain, bool | int | float):
            return plain
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def items_from_python(data: object, kind: ItemKind) -> Mapping[str, Params] | list[Any]:
    """The names, or the parameters by name, in a dict, a list of names or of rows, or a pandas DataFrame.

    >>> items_from_python([{"id": 7, "text": "one"}, {"id": 9, "text": "two"}], CASES)
    {'7': {'text': 'one'}, '9': {'text': 'two'}}
    >>> items_from_python([{"depth": 1}, {"depth": 2}], ARMS)
    {'1': {'depth': 1}, '2': {'depth': 2}}
    """
    if isinstance(data, Mapping):
        return data
    if all(hasattr(data, attribute) for attribute in ("columns", "index", "to_dict")):
        return _by_name(_from_table(data, kind), kind)
    refused = isinstance(data, str | bytes | set | frozenset) or hasattr(data, "columns")  # a table of another kind
    if refused or not isinstance(data, Iterable):
        raise _not_names(data, kind)
    items = list(data)
    if not any(isinstance(item, Mapping) for item in items):
        return items
    return items_from_list(items, f"{kind.noun}s", kind)


def items_from_list(items: Iterable[object], where: str, kind: ItemKind) -> dict[str, Params]:
    """The parameters by name in a list of names or of rows."""
    located = [(f"row {number} of {where}", item) for number, item in enumerate(items, start=1)]
    return _by_name(_rows(located, kind), kind)


def _by_name(rows: Rows, kind: ItemKind) -> dict[str, Params]:
    """Parameters by name. An error begins with the location of the first wrong row."""
    return checked_item_names(((f"{location}: {kind.noun}", name, params) for location, name, params in rows), kind)


def checked_item_names(named: Iterable[tuple[str, Any, Params]], kind: ItemKind) -> dict[str, Params]:
    """Parameters by name, if no name is wrong or given twice. Each comes with the words that errors begin with."""
    params_by_name: dict[str, Params] = {}
    for label, name, params in named:
        checks.checked_name(label, name)
        if name in params_by_name:
            raise InvalidInput(label, name, "is given twice", f"give every {kind.noun} its own name")
        reserved = next((key for key in params if key in kind.reserved), None)
        if reserved:
            rule = f"its parameter {reserved!r} has a name that thresher uses itself"
            raise InvalidInput(label, name, rule, "rename it")
        params_by_name[name] = params
    return params_by_name


def _not_names(data: object, kind: ItemKind) -> InvalidInput:
    """The error for data without names, or with names in no order."""
    number = ", a Path or a number" if kind.noun == "case" else " or a Path"
    rule = f"must be a list of names or of dicts, {{name: parameters}}, a pandas DataFrame{number}"
    remedy = ""
    if isinstance(data, str):
        remedy = f"for a file write Path({data!r}), for one {kind.noun} [{data!r}]"
    elif isinstance(data, set | frozenset):
        remedy = "a set has no order: write sorted(…)"
    elif hasattr(data, "columns"):
        remedy = "give its rows as a list of dicts"
    elif hasattr(data, "__fspath__"):
        remedy = "create_study reads files"
    return InvalidInput(f"{kind.noun}s", data, rule, remedy)


def _from_table(table: Any, kind: ItemKind) -> Rows:
    """The rows of a DataFrame. Their names are in a column, or else in its index."""
    columns = list(table.columns)
    twice = next((column for column, count in Counter(columns).items() if count > 1), None)
    if twice is not None:
        raise InvalidInput(f"{kind.noun}s: column", twice, "occurs twice", "rename one of them")
    key = next((key for key in kind.keys if key in columns), None)
    for number, (label, record) in enumerate(zip(table.index, table.to_dict("records"), strict=True), start=1):
        params = {column: None if _is_missing(value) else value for column, value in record.items()}
        name = label if key is None else params.pop(key)
        yield f"row {number} of {kind.noun}s", _name(name), params


def _is_missing(value: object) -> bool:
    """Whether a cell of a DataFrame is empty: pandas writes NaN there."""
    return isinstance(value, float) and value != value


def _rows(located: Sequence[tuple[str, object]], kind: ItemKind) -> Rows:
    """Names and rows. Without a name in any of the rows, they are numbered."""
    named = any(not isinstance(item, Mapping) or _key(item, kind) for _, item in located)
    for number, (location, item) in enumerate(located, start=1):
        if isinstance(item, str):
            yield location, item, {}
            continue
        if not isinstance(item, Mapping):
            raise InvalidInput(location, rule=f"{shown(item)} is neither a name nor parameters", remedy=SHAPES)
        params, key = dict(item), _key(item, kind)
        if key is None and named:
            rule = f"{shown(item)} has no {either_phrase(kind.keys)}, and other rows have"
            remedy = f'name each {kind.noun}, as in {{"{kind.keys[0]}": "first", …}}, or none'
            raise InvalidInput(location, rule=rule, remedy=remedy)
        yield location, str(number) if key is None else _name(params.pop(key)), params


def _key(row: Mapping[Any, object], kind: ItemKind) -> str | None:
    """The key that holds a row's name."""
    return next((key for key in kind.keys if key in row), None)


def _name(value: object) -> object:
    """A name as it is; rows are often numbered, and then it is the number as text."""
    is_number = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return str(value) if is_number else value


# -- in the text of a file ---------------------------------------------------------------------------------------


def items_from_text(text: str, file: str, kind: ItemKind) -> dict[str, Params]:
    r"""The parameters by name in the text of a file: a name per line, CSV, JSON or JSON lines. An error names the row.

    >>> items_from_text("# models\nsmall\nlarge\n", "arms.txt", ARMS)
    {'small': {}, 'large': {}}
    >>> items_from_text("question,answer\n2 + 2,4\n3 * 3,9\n", "cases.csv", CASES)
    {'1': {'question': '2 + 2', 'answer': '4'}, '2': {'question': '3 * 3', 'answer': '9'}}
    """
    readers = {"json": _from_json, "jsonl": _from_json_lines, "csv": _from_csv, "lines": _from_lines}
    style = _style(file, text, kind)
    params_by_name = _by_name(readers[style](text, file, kind), kind)
    if not params_by_name:
        raise InvalidInput(kind.file, file, f"names no {kind.noun}", _how_to_name(kind, style))
    return params_by_name


def _style(file: str, text: str, kind: ItemKind) -> str:
    """How a file is written, by its suffix, otherwise by how the text begins."""
    suffix = re.search(r"\.\w+\Z", file.lower())
    ending = suffix[0] if suffix else ""
    if ending in UNREAD:
        rule = f"is {UNREAD[ending]}, which is not read"
        raise InvalidInput(kind.file, file, rule, "write one name per line, CSV, JSON or JSON lines")
    if ending in STYLES and ending != ".txt":
        return STYLES[ending]
    if re.match(r"\s*\{\s*\"[^\n]*\}\s*\n\s*\{", text):  # an object per line
        return "jsonl"
    if re.match(r"\s*(\[\s*[\[{\"\]]|\{\s*[\"}])", text):  # not [red], which is a name
        return "json"
    header = [column.strip() for column in text.split("\n", 1)[0].split(",")]
    best, *others = kind.keys
    return "csv" if best in header or any(key in header[:-1] for key in others) else "lines"


def _from_lines(text: str, where: str, kind: ItemKind) -> Rows:
    for number, line in enumerate(text.split("\n"), start=1):
        name = line.strip()
        if name and not name.startswith("#"):  # such a line is a comment
            yield f"line {number} of {where}", name, {}


def _from_csv(text: str, where: str, kind: ItemKind) -> Rows:
    if not text.strip():
        return
    columns, lines = read_csv(text, where)
    key = next((key for key in kind.keys if key in columns), None)
    if key is None and not (kind.noun == "case" and _is_header(columns, kind)):
        raise _no_column(columns, where, kind)
    twice = next((column for column, count in Counter(columns).items() if count > 1), None)
    if twice is not None:
        raise InvalidInput(f"line 1 of {where}: column", twice, "occurs twice", "rename one of them")
    for number, (location, cells) in enumerate(lines, start=1):
        row = dict(zip(columns, (cell.strip() for cell in cells), strict=True))
        if key is None and any(column == cell for column, cell in row.items()):
            raise _no_column(columns, where, kind)
        yield location, str(number) if key is None else unescaped_csv_cell(row.pop(key)), row


def _is_header(columns: Sequence[str], kind: ItemKind) -> bool:
    """Whether the first line is a header although no column holds the names: otherwise it is the first case.

    It has several columns, all with names like those of variables. No cell below may repeat the name of its column.
    """
    is_near = any(column.lower() in kind.keys for column in columns)
    return len(columns) > 1 and not is_near and all(column.replace("-", "_").isidentifier() for column in columns)


def _no_column(columns: list[str], where: str, kind: ItemKind) -> InvalidInput:
    """The error for a first line in which no column holds the names."""
    rule = f"has no column {either_phrase(kind.keys)}"
    return InvalidInput(f"line 1 of {where}:", ",".join(columns), rule, _how_to_head(columns, kind))


def _how_to_head(columns: list[str], kind: ItemKind) -> str:
    """The remedy for a header in which no column holds the name."""
    for separator, called in SEPARATORS.items():
        if len(columns) == 1 and any(cell.strip().lower() in kind.keys for cell in columns[0].split(separator)[:-1]):
            names = f"names are in a column {either_phrase(kind.keys)}"
            return f"separate the columns with commas instead of {called}; {names}"
    near = next((column for column in columns if column.lower() in kind.keys), None)
    if near is not None:
        return f"write {near.lower()!r} instead of {near!r}: capital letters make another name"
    named = f"name the column that holds the {kind.noun}s' names {either_phrase([repr(key) for key in kind.keys])}"
    return f"{named}, or rename the file to .txt if it has one {kind.noun} per line and no header"


def _how_to_name(kind: ItemKind, style: str) -> str:
    """The remedy for a file that names nothing."""
    return {
        "json": SHAPES,
        "jsonl": f'write one object per line, such as {{"{kind.keys[0]}": "a"}}',
        "csv": f"write a first line with a column {kind.keys[0]!r}, then one {kind.noun} per line",
        "lines": "write one name per line",
    }[style]


def _from_json(text: str, where: str, kind: ItemKind) -> Rows:
    data = _json(text, kind.file, where, kind)
    if isinstance(data, Mapping):
        for number, (name, params) in enumerate(data.items(), start=1):
            if not isinstance(params, Mapping):
                rule = f"{shown(params)} is not an object of parameters"
                raise InvalidInput(f"row {number} of {where}", rule=rule, remedy=SHAPES)
            yield f"row {number} of {where}", name, params
    elif isinstance(data, list):
        yield from _rows([(f"row {number} of {where}", item) for number, item in enumerate(data, start=1)], kind)
    else:
        raise InvalidInput(kind.file, where, "holds neither a list nor an object", SHAPES)


def _from_json_lines(text: str, where: str, kind: ItemKind) -> Iterator[tuple[str, Any, Params]]:
    located = [
        (f"line {number} of {where}", _json(line, f"{kind.file}: line {number} of {where}:", line.strip(), kind))
        for number, line in enumerate(text.split("\n"), start=1)
        if line.strip()
    ]
    yield from _rows(located, kind)


def _json(text: str, label: str, value: str, kind: ItemKind) -> Any:
    try:
        return read_json(text, object_pairs_hook=lambda pairs: _unique(pairs, value, kind))
    except InvalidInput:
        raise
    except ValueError as error:
        raise InvalidInput(label, value, f"cannot be read as JSON ({error})", SHAPES) from None


def _unique(pairs: list[tuple[str, Any]], where: str, kind: ItemKind) -> dict[str, Any]:
    """A JSON object; Python alone would silently keep the last of two equal keys."""
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        rule = "occurs twice in one object"
        raise InvalidInput(f"{where}: key", twice, rule, f"give every {kind.noun} its own name")
    return values
