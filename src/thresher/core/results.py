"""Results that are known already: in files, as rows of CSV or JSON with their locations, or one by one."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..errors import InvalidInput, shown
from ..text import files
from ..text.escapes import unescaped_csv_cell
from ..text.files import read_csv
from .events import FAILED, ONCE, REPEATABLE, STATES
from .spec import Spec

CANCELLED = "cancelled"  # a pull that its own study's certificate leaves out, as long as no later one is told
SPARE = "spare"  # a pull whose case had a reward before, from another try: it does not count
ALL_STATES = (*STATES, CANCELLED, SPARE)
WITH_REWARD = ("told", "late", "outside", SPARE)
LOST = ("pending", "dropped", "late", CANCELLED, SPARE)  # charged to the certificate of the study that imports them
ORIGINS = {"failed": FAILED, "repeatable": REPEATABLE}  # words in the column cause
NO_EVENTS = "holds an object without events"  # a file that is no log
SHAPES = "give CSV with columns arm and reward, a JSON list of such objects, or what thresher export wrote"
NO_REWARD = "give a reward, or add a column 'state' that says dropped"
OF_ONE_ARM = "give CSV with columns case and reward, or a JSON list of such objects"
WORDS = {"true": True, "pass": True, "false": False, "fail": False}
Cells = tuple[str, dict[str, Any]]  # the location of a row, and its cells by column


class Row(NamedTuple):
    """One pull. A row without a state was told if it has a reward, else dropped."""

    location: str  # such as: line 3 of results.csv
    arm: Any  # as written
    state: str  # one of ALL_STATES
    reward: Any  # None unless the state is one of WITH_REWARD
    case: Any = None  # as written; None: the file has none
    origin: int = ONCE  # how the reward came about


def read_json_results(text: str, file: str) -> Any:
    """The list or object that a text holds; None: it is not JSON, so it should be CSV."""
    try:
        return files.read_json(text) if text.lstrip()[:1] in ("[", "{") else None
    except ValueError as error:
        raise InvalidInput("file", file, f"cannot be read as JSON ({error})", SHAPES) from None


def read_results(data: object, text: str, file: str, *, arm: str | None = None) -> Iterator[Row]:
    r"""The rows of a JSON list, if ``data`` is one, otherwise of CSV text. An error names the row and the column.

    With ``arm``, rows that name no arm are of this one.

    >>> [row[1:] for row in read_results(None, "arm,state,reward\na,told,0.5\na,dropped,\n", "f")]
    [('a', 'told', 0.5, None, 0), ('a', 'dropped', None, None, 0)]
    """
    if isinstance(data, dict):
        raise InvalidInput("file", file, NO_EVENTS, OF_ONE_ARM if arm else SHAPES)
    stated, rows = _from_json(data, file) if isinstance(data, list) else _from_csv(text, file, arm)
    seen = set()
    for location, cells in rows:
        pull = str(cells.get("pull") or "")
        if pull in seen:
            raise InvalidInput(f"{location}: pull", pull, "occurs twice", "a pull has one reward: leave one row out")
        seen.update([pull] if pull else [])
        yield _row(location, {"arm": arm, **cells}, stated)


def _row(location: str, cells: dict[str, Any], stated: bool) -> Row:
    arm, reward, state = cells.get("arm"), cells.get("reward"), cells.get("state")
    if arm is None:
        raise InvalidInput(f"{location}: column", "arm", "is missing", SHAPES)
    empty = reward is None or reward == ""
    if state is None or state == "":
        if empty and not stated:
            rule = "is missing" if reward is None else "is empty"
            raise InvalidInput(f"{location}: column", "reward", rule, NO_REWARD)
        state = "dropped" if empty else "told"
    if state not in ALL_STATES:
        raise InvalidInput(f"{location}: state", state, f"must be one of {', '.join(ALL_STATES)}")
    if empty and state in WITH_REWARD:
        raise InvalidInput(f"{location}: reward", "", f"a pull whose state is {state} has one", "write it, or dropped")
    if not empty and state not in WITH_REWARD:
        raise InvalidInput(
            f"{location}: reward", reward, f"a pull whose state is {state} has none", "write told or late"
        )
    words = str(cells.get("cause") or "").lower().split() if stated else []  # only exports have states
    origin = sum(value for name, value in ORIGINS.items() if name in words)
    return Row(location, arm, state, None if empty else number_in_result(reward), cells.get("case"), origin)


def _from_json(rows: Sequence[object], file: str) -> tuple[bool, Iterator[Cells]]:
    """Whether some row has a state, and the rows."""

    def cells() -> Iterator[Cells]:
        for count, row in enumerate(rows, start=1):
            location = f"row {count} of {file}"
            if not isinstance(row, dict):
                raise InvalidInput(location, row, "is not an object with arm and reward", SHAPES)
            yield location, row

    return any(isinstance(row, dict) and "state" in row for row in rows), cells()


def check_result_columns(
    columns: Sequence[str], needed: Sequence[str], file: str, shapes: str, *, optional: Sequence[str] = ()
) -> None:
    """Raise if a column occurs twice, or is missing and not optional."""
    for name in needed:
        if columns.count(name) > 1 or (name not in columns and name not in optional):
            rule = f"{'occurs twice' if name in columns else 'is missing'} among {shown(list(columns))}"
            raise InvalidInput(f"line 1 of {file}: column", name, rule, shapes)


def _from_csv(text: str, file: str, arm: str | None) -> tuple[bool, Iterator[Cells]]:
    names, rows = read_csv(text, file)
    columns = [name.lower() for name in names]
    optional = ("state",) if arm is None else ("state", "arm")
    check_result_columns(columns, ("arm", "reward", "state"), file, OF_ONE_ARM if arm else SHAPES, optional=optional)

    def cells() -> Iterator[Cells]:
        for location, row in rows:
            stripped = dict(zip(columns, (cell.strip() for cell in row), strict=True))
            names = {name: unescaped_csv_cell(row[columns.index(name)]) for name in columns if name in ("arm", "case")}
            yield location, {**stripped, **names}  # a name may start with a space

    return "state" in columns, cells()


def number_in_result(value: object) -> object:
    """The number in a cell, or the cell itself if it holds none.

    >>> number_in_result("0.5"), number_in_result("pass"), number_in_result("high")
    (0.5, True, 'high')
    """
    if not isinstance(value, str):
        return value
    if value.lower() in WORDS:
        return WORDS[value.lower()]
    try:
        return value if "_" in value else float(value)
    except ValueError:
        return value


# Results that a caller gives one by one, and the rewards of a pair.


def rewards_of_result(reward: object) -> tuple[object, object]:
    """The rewards of the arm and of the baseline."""
    if not isinstance(reward, tuple | list) or len(reward) != 2:
        rule = "must be a pair: with a baseline and without cases, every pull evaluates both"
        raise InvalidInput("reward", reward, rule, "tell the arm's reward and the baseline's, as (0.8, 0.7)")
    return reward[0], reward[1]


class Result(NamedTuple):
    """A result that is already known."""

    arm: str
    reward: object  # None: the pull has no reward
    late: bool = False  # the reward came after its pull was dropped
    case: object = None  # its name or number, where the study has cases
    origin: int = ONCE  # how the reward came about


def result_from_row(row: object) -> Result:
    """A result, from a pair of arm and reward, or with its case."""
    if not isinstance(row, tuple | list) or len(row) not in (2, 3):
        raise InvalidInput("result", row, "must be a pair of arm and reward, or with the case as third")
    return Result(row[0], row[1], case=row[2] if len(row) == 3 else None)


Checked = tuple[int, float | None, bool, int | None, int]  # arm, reward (None: there is none), late, case, origin


def checked_result(spec: Spec, row: Result) -> Checked:
    """A result as numbers. A failure that counted as a reward is one here only if it counts as the same number."""
    if spec.pairs:
        rule = "with a baseline and without cases, results come in pairs, which cannot be imported"
        raise InvalidInput("result", row.reward, rule, "start without them")
    if row.case is None and spec.cases is not None:
        rule = "is missing: every result of this study needs its case"
        raise InvalidInput("case", rule=rule, remedy="name the case of each result")
    case = None if row.case is None else spec.case(row.case)
    value = None if row.reward is None else spec.reward(row.reward)
    if row.origin & FAILED and value != spec.failure:
        return spec.arm(row.arm), None, False, case, ONCE
    return spec.arm(row.arm), value, row.late, case, row.origin
