"""The options of the command line and the configuration file, and the bar of each test."""

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, NoReturn, cast, get_args

import pytest

from ...core.checks import MAX_SECONDS
from ...core.parameters import MAX_SEED, Guarantee
from ...core.sentences import SentenceWording, tolerance_in_sentence
from ...errors import shown
from ...text.phrasing import either_phrase
from ...text.quantities import DURATIONS, PERCENT, read_quantity, read_quantity_of_seconds

Isolation = Literal["function", "module", "session"]
MAX_RUN_SEED = 2**32 - 1


class SessionBar(NamedTuple):
    """The share of a test's runs that must pass.

    >>> str(SessionBar(0.95)), str(SessionBar(0.95, 0.02))
    ('95 %', '95 %, give or take 2 points')
    """

    at_least: float
    tolerance: float = 0.0

    @property
    def wording(self) -> SentenceWording:
        """How sentences and tables say it."""
        return SentenceWording(self.at_least, unit=PERCENT, tolerance=self.tolerance)

    def __str__(self) -> str:
        return f"{self.wording.amount(self.at_least, exact=True)}{tolerance_in_sentence(self.wording)}"


class Options(NamedTuple):
    """The options after their checks."""

    bar: SessionBar  # of tests without a mark
    budget: int | None = None
    seconds: float | None = None
    guarantee: Guarantee = "all"
    confidence: float = 0.95
    isolation: Isolation = "function"
    open_fails: bool = False
    storage: str | None = None
    seed: int | None = None  # of the studies; None: every new one draws its own
    maxfail: int = 0  # pytest's own option; 0: no limit


def session_options(config: pytest.Config) -> Options:
    """Read and check the options; raise `pytest.UsageError` if one is wrong."""
    return Options(
        bar=session_bar(
            "--thresher", config.getoption("thresher"), "--thresher-tolerance", _text(config, "tolerance") or 0.0
        ),
        budget=_read(config, "budget", _whole, None),
        seconds=_read(config, "for", _seconds, None),
        guarantee=_choice(config, "guarantee", "all", "rate"),
        confidence=_read(config, "confidence", session_share, 0.95),
        isolation=_choice(config, "isolation", *get_args(Isolation)),
        open_fails=_choice(config, "open", "pass", "fail") == "fail",
        storage=_text(config, "storage"),
        seed=_seed(config, "--thresher-study-seed", MAX_SEED, "2¹²⁸"),
        maxfail=int(config.getoption("maxfail") or 0),
    )


def session_seed(config: pytest.Config) -> int | None:
    """The seed of --thresher-seed."""
    return _seed(config, "--thresher-seed", MAX_RUN_SEED, "2³²")


def session_bars(items: Iterable[pytest.Item], options: Options) -> dict[pytest.Item, SessionBar]:
    """The bar of every test, from its closest mark or from the command line."""
    return {item: _bar(item, options.bar) for item in items}


def _bar(item: pytest.Item, default: SessionBar) -> SessionBar:
    mark = item.get_closest_marker("thresher")
    if mark is None:
        return default
    values = {**dict(zip(["at_least"], mark.args, strict=False)), **mark.kwargs}
    if len(values) < len(mark.args) + len(mark.kwargs) or not values or values.keys() - set(SessionBar._fields):
        arguments = [*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())]
        written = f"thresher({', '.join(arguments)})"
        rule = "must name at_least or tolerance, as in thresher(0.9, tolerance=0.02)"
        raise pytest.UsageError(f"{item.nodeid}: the mark {written} {rule}")
    at_least, tolerance = ({**default._asdict(), **values}[name] for name in SessionBar._fields)
    return session_bar(f"{item.nodeid}: at_least", at_least, f"{item.nodeid}: tolerance", tolerance)


def session_bar(name: str, at_least: object, tolerance_name: str, tolerance: object) -> SessionBar:
    """The bar, if both of its edges lie strictly between 0 and 1."""
    bar = SessionBar(session_share(name, at_least), _number(tolerance_name, tolerance, "0.02 or 2%"))
    if not bar.tolerance >= 0:
        refuse_session_option(tolerance_name, tolerance, "must not be negative")
    low, high = bar.wording.edges
    if not 0 < low <= high < 1:
        around = f"{bar.wording.amount(bar.at_least, exact=True)} ± {bar.wording.distance(bar.tolerance)}"
        room = min(bar.at_least, 1 - bar.at_least)
        is_in_points = 1 <= bar.tolerance < 100 * room
        remedy = f"write {bar.tolerance:g}%" if is_in_points else f"give less than {bar.wording.distance(room)}"
        refuse_session_option(tolerance_name, tolerance, f"{around} must lie strictly between 0 and 100 %; {remedy}")
    return bar


def session_share(name: str, value: object) -> float:
    """A share strictly between 0 and 1."""
    parsed = _number(name, value, "0.95 or 95%")
    if not 0 < parsed < 1:
        remedy = "no number of runs can prove that a test always passes" if parsed == 1 else "write 0.95 or 95%"
        refuse_session_option(name, value, f"must lie strictly between 0 and 1; {remedy}")
    return parsed


def _number(name: str, value: object, example: str) -> float:
    """A finite number, perhaps written in percent."""
    parsed = read_quantity(value) if isinstance(value, str) else value
    is_number = isinstance(parsed, int | float) and not isinstance(parsed, bool) and math.isfinite(parsed)
    if not is_number or getattr(parsed, "unit", PERCENT) != PERCENT:
        refuse_session_option(name, value, f"is not a number; write {example}")
    return float(cast("float", parsed))


def refuse_session_option(name: str, value: object, rule: str) -> NoReturn:
    """Raise a usage error of one line."""
    raise pytest.UsageError(f"{name} {shown(value)}: {rule}")


def _text(config: pytest.Config, name: str) -> str | None:
    value = config.getoption(f"thresher_{name}")
    return cast("str | None", config.getini(f"thresher_{name}") or None) if value is None else str(value)


def _read(config: pytest.Config, name: str, read: Callable[[str, str], Any], default: Any) -> Any:
    value = _text(config, name)
    return default if value is None else read(f"--thresher-{name}", value)


def _seed(config: pytest.Config, option: str, most: int, end: str) -> int | None:
    text = config.getoption(option)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most):
        refuse_session_option(option, text, f"must be a whole number of at least 0 and below {end}")
    return int(text)


def _choice(config: pytest.Config, name: str, *words: str) -> Any:
    value = _text(config, name)
    if value is not None and value not in words:
        refuse_session_option(f"--thresher-{name}", value, f"must be {either_phrase(words)}")
    return value or words[0]


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 16 and int(text)):
        refuse_session_option(name, text, "must be a whole number of at least 1")
    return int(text)


def _seconds(name: str, text: str) -> float:
    duration = read_quantity_of_seconds(text, most=MAX_SECONDS)
    return refuse_session_option(name, text, DURATIONS) if duration is None else duration
