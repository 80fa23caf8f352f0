"""The options that define a study's question, and the specification that they make."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from ..core.named_items import ARMS, CASES, Params, checked_item_names
from ..core.parameters import BARS, DEFAULTS, PARAMETERS
from ..core.question import HALF
from ..core.spec import Spec
from ..create import read_items_to_create
from ..errors import InvalidInput
from ..run.command.process import PULL_FIELDS
from ..run.command.reward import MEASURED, SECONDS
from ..text.quantities import PERCENT, Quantity
from .error_wording import naming_options_in_errors, option_in_error, written_in_error
from .options import combined_options, option, option_of_parameter
from .output import say
from .run_checks import Cases, check_run_arms

UNIT = DEFAULTS["bounds"]
NONE, OFF = PARAMETERS["bounds"].none, PARAMETERS["confidence"].none
SHARE = 0.95  # of measured times without bounds or a baseline, unless another is asked about
ARMS_OF_COMMANDS = ARMS._replace(reserved=PULL_FIELDS)

FORMS = {  # of parameters that a command line takes in other forms
    "arms": (
        option(
            "--arms FILE",
            "A file of arms: one name per line (# begins a comment line), or CSV, JSON or JSON lines; - is stdin.",
            to="file",
        ),
        option("--arm NAME", "An arm; repeat it for more.", to="names", multiple=True),
    ),
    "baseline": (
        option_of_parameter("baseline"),
        option(
            "--baseline-results FILE",
            "With --cases: results of the baseline that you already have, with case and reward.",
        ),
    ),
    "cases": (option("--cases FILE|N", "An eval set: a file of cases, written like --arms, or how many there are."),),
    "unit": (),  # --reward says it
}
arm_options = combined_options(  # what defines a study's question
    *chain.from_iterable(FORMS[name] if name in FORMS else [option_of_parameter(name)] for name in PARAMETERS)
)


def arms_in_question_options(file: str | None, names: tuple[str, ...]) -> dict[str, Params]:
    """The arms of `arm_options`."""
    if file and names:
        raise InvalidInput("--arm", names[0], "the arms already come from --arms FILE", "use one of the two")
    if file:
        return read_items_to_create(file, ARMS_OF_COMMANDS, remedy=_instead(file))
    if not names:
        raise InvalidInput("arms", rule="there are none", remedy="name them with --arms FILE or --arm NAME")
    if caution := check_run_arms(names):
        say(f"warning: {caution}")
    return checked_item_names((("--arm", name, {}) for name in names), ARMS)


def _instead(file: str) -> str:
    """The remedy for a file of arms that cannot be read. Perhaps names were meant."""
    names = [name.strip() for name in file.split(",") if name.strip()]
    if len(names) > 1:
        return f"--arms takes a file; for names write --arm {' --arm '.join(names)}"
    is_a_word = file != "-" and not Path(file).suffix and "/" not in file
    return f"check its name; for an arm of that name write --arm {file}" if is_a_word else "check its name"


def question_cases(file_or_count: str | None) -> Cases | None:
    """The value of ``--cases``: how many cases there are, or the names and parameters in a file."""
    if file_or_count is None:
        return None
    if re.fullmatch(r"[+-]?[0-9]{1,18}", file_or_count.strip()):
        return int(file_or_count)
    if file_or_count == "-":
        rule = "cannot come from standard input, because a study resumes only with the same cases"
        raise InvalidInput("--cases", file_or_count, rule, "name a file, or give their number")
    cases = read_items_to_create(file_or_count, CASES, remedy="check its name, or give the number of cases")
    return cases if any(cases.values()) else list(cases)


def specification_of_question_options(
    arms: dict[str, Params], options: dict[str, Any], *, evaluator: str | None = None
) -> Spec:
    """The specification from the values of `arm_options`. An error names the option."""
    measured, share = options.get("reward") in MEASURED, _share(options)
    of_shares = share is not None or options["ratio"] is not None
    _check_bounds(options)
    _check_bars(options)
    for name, value in _units(options):
        _check_unit(name, value, options, of_shares=of_shares, measured=measured)
    _check_times(options, measured=measured)
    asked = {name: options[name] for name in PARAMETERS if name in options} | {
        "arms": arms,
        "share": share,
        "lower_is_better": options["lower_is_better"] or (measured and options["baseline"] is not None),
        "unit": "s" if measured else _unit_of_bar(options),
        "bounds": None if options["bounds"] == NONE or of_shares else options["bounds"] or UNIT,
        "confidence": _confidence(options, of_shares=of_shares),
        "failure": failure_in_question_options(options["failure"]),
        "evaluator": evaluator,
    }
    with naming_options_in_errors(options):
        spec = Spec(**asked)
    _check_ignored(spec, options)
    return spec


def _check_ignored(spec: Spec, options: dict[str, Any]) -> None:
    """Raise if measured runs would be left out because they took long."""
    if spec.failure != "ignore" or options.get("reward") not in MEASURED or "timeout" not in options:
        return
    counts = options["reward"] == SECONDS and spec.share is not None and spec.baseline is None
    if not counts or options["timeout"] < spec.stated_bar:
        rule = "a run that --timeout stops would be left out, because it took long"
        raise InvalidInput("--failure", "ignore", rule, "leave it out: failed runs then count as the worst")


def _check_times(options: dict[str, Any], *, measured: bool) -> None:
    """Raise if no measured time could be within the bar."""
    for name in BARS:
        if measured and options[name] is not None and options[name] <= 0:
            rule = "times are above 0, and so must the bar be"
            raise InvalidInput(option_in_error(name), written_in_error(options[name]), rule, "write one such as 50ms")


def _share(options: dict[str, Any]) -> float | None:
    """The share that is asked about. Measured times have one by default, so that nobody has to guess bounds."""
    share: float | None = options["share"]
    plain = share is None and options["ratio"] is None and options["bounds"] is None
    if not plain or options.get("reward") not in MEASURED:
        return share
    return SHARE if options["baseline"] is None else HALF


def _check_bounds(options: dict[str, Any]) -> None:
    """Raise if the bounds do not fit exit codes, which are 0 or 1, or a share, which needs none."""
    bounds = options["bounds"]
    if options.get("reward") == "exit-code" and bounds not in (None, UNIT):
        rule = "must be 0:1 with --reward exit-code, whose rewards are 0 and 1"
        raise InvalidInput(
            "--bounds", written_in_error(bounds), rule, "leave it out, and give the bar as a share, as in 0.9"
        )
    for name in ("share", "ratio"):
        if bounds not in (None, NONE) and options[name] is not None:
            rule = f"--{name} asks about a share of pulls, which needs no bounds"
            raise InvalidInput("--bounds", written_in_error(bounds), rule, "leave one of them out")


def _check_bars(options: dict[str, Any]) -> None:
    """Raise if there is no bar."""
    named = [name for name in BARS if options[name] is not None]
    if not named and all(options[name] is None for name in ("baseline", "margin", "ratio")):
        remedy = "give it with --at-least B or --at-most B, or compare with --baseline NAME"
        raise InvalidInput("bar", rule="there is none", remedy=remedy)


def _units(options: dict[str, Any]) -> Iterator[tuple[str, Quantity]]:
    """The numbers that were given with a unit."""
    for name in (name for name, parameter in PARAMETERS.items() if parameter.scale):
        numbers = options[name] if isinstance(options[name], tuple) else [options[name]]
        yield from ((name, number) for number in numbers if isinstance(number, Quantity))


def _unit_of_bar(options: dict[str, Any]) -> str | None:
    """A bar that was written as a percentage shows rewards as percentages."""
    bars = [options[name] for name in (*BARS, "margin")]
    return PERCENT if any(isinstance(bar, Quantity) and bar.unit == PERCENT for bar in bars) else None


def _check_unit(name: str, value: Quantity, options: dict[str, Any], *, of_shares: bool, measured: bool) -> None:
    """Raise if the unit does not fit: shares have percent, measured times have units of time, and other rewards none.

    A percentage also fits rewards between 0 and 1.
    """
    is_share = PARAMETERS[name].scale == "share" or (name == "tolerance" and of_shares)
    if value.unit == PERCENT and value >= 1.0:
        rule = "must be less than 100%"
        usual = "2%" if name in ("tolerance", "margin") else "95%" if is_share else "90%"
        remedy = f"write one such as {usual}" + ("" if is_share else ", or the number without a unit")
    elif value.unit == PERCENT:
        fits = is_share or (not measured and not of_shares)
        if fits and (is_share or (name != "bounds" and (options["bounds"] or UNIT) == UNIT)):
            return
        rule = "a percentage fits only shares, and rewards between 0 and 1"
        remedy = "write a time, such as 200ms" if measured else "write the number in the unit that the command prints"
    elif is_share:
        rule, remedy = "is a time, and must be a share", f"write {'1%' if name == 'tolerance' else '95%'}, for example"
    elif measured:
        return
    else:
        rule = "only measured times have units"
        remedy = "write the number in the unit that the command prints, or let --reward seconds measure the time"
    raise InvalidInput(option_in_error(name), value, rule, remedy)


def _confidence(options: dict[str, Any], *, of_shares: bool) -> float | None:
    if options["confidence"] == OFF:
        return None
    confidence: float | None = options["confidence"]
    if options["bounds"] != NONE or of_shares:
        return DEFAULTS["confidence"] if confidence is None else confidence
    if confidence is not None:
        rule = "there are no certificates with --bounds none"
        raise InvalidInput("--confidence", confidence, rule, "use one of the two")
    return None


def failure_in_question_options(text: str) -> Any:
    """The meaning of ``--failure``: a number, or a word."""
    try:
        return float(text)
    except ValueError:
        return text
