"""Options of the laboratory's commands, and what their values mean. Nothing heavy is imported here."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..core.checks import checked_share
from ..core.parameters import BARS
from ..errors import InvalidInput, shown
from ..text.phrasing import listed_phrase, plural
from ..text.quantities import PERCENT, Quantity, read_quantity
from .error_wording import option_in_error
from .options import Whole, combined_options, format_option, option, option_of_parameter
from .output import say

if TYPE_CHECKING:
    from ..lab.recorded import Recorded
    from ..lab.setup import Setup


class LabOptionType(click.ParamType[Any]):
    """An option whose text a function parses. The function gets the option's name, for its errors."""

    name = "text"

    def __init__(self, parse: Callable[[str, str], object]) -> None:
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value of the text; click also passes values that were parsed before."""
        return self._parse(option_in_error(str(param and param.name)), value) if isinstance(value, str) else value


def numbers_in_lab_option(name: str, text: str) -> list[float]:
    """Numbers with commas between them.

    >>> numbers_in_lab_option("--means", "0.5,70%")
    [0.5, 0.7]
    """
    try:
        return [_number_in(part) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(name, text, "must be numbers with commas between them") from None


def _number_in(text: str) -> float:
    """A number, which may be a percentage. Raises ValueError if it is none."""
    number = read_quantity(text)
    if number is None or getattr(number, "unit", PERCENT) != PERCENT:
        raise ValueError
    return float(number)


def checkpoints_in_lab_option(name: str, text: str) -> tuple[int, ...]:
    """The pulls after which to measure: A,B,C."""
    points = numbers_in_lab_option(name, text)
    if not all(point.is_integer() for point in points):
        raise InvalidInput(name, text, "must be whole numbers")
    return tuple(int(point) for point in points)


def pair_in_lab_option(name: str, text: str) -> tuple[float, float]:
    """Two numbers with a colon between them.

    >>> pair_in_lab_option("--bounds", "0:1")
    (0.0, 1.0)
    """
    try:
        low, high = map(_number_in, text.split(":"))
    except ValueError:
        raise InvalidInput(name, text, "must be two numbers with a colon between them", "write LO:HI") from None
    return low, high


def range_in_lab_option(name: str, text: str) -> tuple[float, float] | list[float] | float:
    """A range LO:HI, a list A,B,C, or one number."""
    if ":" in text:
        return pair_in_lab_option(name, text)
    try:
        numbers = numbers_in_lab_option(name, text)
    except InvalidInput:
        low, dash, high = text.rpartition("-")  # as in 0.7-0.99
        is_range = dash and isinstance(read_quantity(low), float) and isinstance(read_quantity(high), float)
        remedy = f"write {low.strip()}:{high.strip()}" if is_range else "write 0.6:0.8, for example"
        raise InvalidInput(name, text, "must be a range LO:HI, one number, or A,B,C", remedy) from None
    return numbers[0] if len(numbers) == 1 else numbers


PAIR, RANGE = LabOptionType(pair_in_lab_option), LabOptionType(range_in_lab_option)
OUTPUT = format_option("table", "json", "csv")
SEED = option("--seed S", "The same seed gives the same numbers.", type=Whole(), default=0)
THREADS = option("--threads N", "Threads [default: one per core]; results do not depend on it.", type=Whole())
QUESTION = combined_options(
    *(option_of_parameter(name) for name in (*BARS, "share")),
    option_of_parameter("baseline", "Instead of a bar: the arm to compare with, a number from 0 or a recorded name."),
    *(option_of_parameter(name) for name in ("margin", "ratio", "lower_is_better", "tolerance", "guarantee")),
)
ARMS = option("--arms K", "How many arms.", type=Whole(), default=100)
MEANS = option(
    "--means RANGE", "LO:HI (drawn again in each repetition), a number, or A,B,C,…", type=RANGE, default="0.6:0.8"
)
SPREAD = option(
    "--spreads RANGE", "Half-width of uniform arms, otherwise standard deviation.", type=RANGE, default="0.15:0.25"
)
BOUNDS = option("--bounds LO:HI", "The range of rewards.", type=PAIR, default="0:1")
CHECKPOINTS = option(
    "--checkpoints A,B,C",
    "Pulls after which to measure [default: 1, 2, 5, 10, … and the budget].",
    type=LabOptionType(checkpoints_in_lab_option),
    default=(),
)
DELAY = option(
    "--delay HOW",
    "When rewards come back: none, fifo:50, random:50, batch:16, workers:16[:exponential|:lognormal:0.5|:failures:5].",
    default="none",
)
PICTURE = combined_options(
    option("--picture FILE", "Also draw it to this file (.png, .pdf, .svg).", type=click.Path()),
    option("--force", "Overwrite the --picture file even if it is not a picture."),
)


def question_in_lab_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `lab.Setup` for the question. The baseline stays as the user wrote it.

    Numbers may be percentages, where rewards lie between 0 and 1; a bar in percent shows all of them so.
    """
    names = (*BARS, "share", "baseline", "margin", "ratio", "lower_is_better", "tolerance", "guarantee")
    question = {name: options[name] for name in names if name in options}
    bounds = options.get("bounds", (0.0, 1.0))
    for name, value in question.items():
        if isinstance(value, Quantity):
            is_share = name == "share" or (name == "tolerance" and question.get("share") is not None)
            if value.unit != PERCENT or not (is_share or bounds == (0.0, 1.0)):
                rule = "a percentage fits only shares, and rewards between 0 and 1, which are all that is simulated"
                rule = rule if value.unit == PERCENT else "simulated rewards have no unit"
                raise InvalidInput(option_in_error(name), value, rule, "write a number")
            question[name] = float(value)
    in_percent = any(getattr(options.get(name), "unit", "") == PERCENT for name in (*BARS, "margin"))
    return {**question, "unit": PERCENT if in_percent else None}


def numbered_lab_baseline(baseline: str | None, names: Sequence[str]) -> int | None:
    """The number of the baseline, from a number or the name of a recorded arm.

    >>> numbered_lab_baseline("b", ("a", "b")), numbered_lab_baseline("0", ()), numbered_lab_baseline(None, ())
    (1, 0, None)
    """
    if baseline is None:
        return None
    if baseline in names:
        return list(names).index(baseline)
    if names or not baseline.isdecimal():
        remedy = (
            f"the arms are {listed_phrase(list(names), show=shown)}" if names else "write the number of an arm, from 0"
        )
        raise InvalidInput("--baseline", baseline, "is not one of the arms", remedy)
    return int(baseline)


def setup_of_lab_options(recorded: str | None, matrix: str | None, **settings: Any) -> "Setup":
    """A setup of the laboratory, perhaps with the recorded rewards of a file."""
    from ..lab import Setup

    if matrix is not None and (recorded is not None or settings["cases"]):
        other = "--recorded" if recorded is not None else "--cases"
        raise InvalidInput("matrix", matrix, "already gives the cases and their rewards", f"leave {other} out")
    data = None
    if matrix is not None:
        data = matrix_in_lab_option(matrix)
        settings["cases"] = len(data.rewards[0])
    elif recorded is not None:
        data = recorded_in_lab_option(recorded)
        if data.lost and not any(settings["lost"]):
            share = f"{data.lost:,} of the {data.pulls:,} recorded pulls"
            say(f"{share} were lost or are pending; give --lost to lose some here")
    if data is not None:
        settings |= {"family": "recorded", "recorded": data}
    settings["baseline"] = numbered_lab_baseline(settings["baseline"], data.names if data else ())
    return Setup(**settings)


def recorded_in_lab_option(file: str) -> "Recorded":
    """The rewards in a file: CSV or JSON with arm and reward, or an export."""
    from ..lab import recorded
    from .import_export import results_to_import

    return _without_unseen(recorded.gather_recorded(results_to_import(file)[0], file))


def _without_unseen(data: "Recorded") -> "Recorded":
    """The same data; says which arms were left out, because they have no reward."""
    if data.unseen:
        say(f"left out, because none of their pulls has a reward: {shown(list(data.unseen))}")
    return data


def pilot_in_lab_option(file: str, cases: int) -> "tuple[Recorded, int]":
    """The rewards of a pilot, and the number of cases to plan for: ``cases``, or those of the pilot's study."""
    from ..lab import recorded
    from .import_export import results_to_import

    results, study_cases = results_to_import(file)
    rows = list(results)
    data = _without_unseen(recorded.gather_recorded(rows, file))
    if study_cases and not cases:
        say(f"the pilot's study has {plural(study_cases, 'case')}, and so has the plan")
    elif study_cases is None and not cases and any(row.case not in (None, "") for row in rows):
        say("the pilot's rewards name their cases, but not how many there are: give --cases N to plan an eval set")
    return data, cases or study_cases or 0


def matrix_in_lab_option(file: str) -> "Recorded":
    """The rewards of every arm and case in a file: wide or long CSV, a JSON list, or the export of a study."""
    from ..lab import recorded
    from .import_export import contents_to_import, exported_rows

    text, data, log = contents_to_import(file)
    if log is None:
        return recorded.gather_recorded_matrix(recorded.recorded_cells_in(data, text, file), file)
    _, ledger = log
    if ledger.spec.cases is None:
        raise InvalidInput("file", file, "is a study without cases", "a matrix has a reward for every arm and case")
    return recorded.gather_recorded_matrix(recorded.recorded_cells_of(exported_rows(ledger)), file)


def confidence_in_lab_option(text: str) -> float | None:
    """A confidence, or None for ``off``."""
    if text.strip().lower() == "off":
        return None
    try:
        confidence = _number_in(text)
    except ValueError:
        raise InvalidInput("--confidence", text, "must be a number between 0 and 1, or off", "write 0.95") from None
    return checked_share("--confidence", confidence, remedy="write one such as 0.95, or off")
