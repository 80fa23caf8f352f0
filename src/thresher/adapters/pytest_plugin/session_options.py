"""The options of the command line and the configuration file, and the bar of each test."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, NoReturn, cast, get_args

import pytest

from ...core.checks import MAX_SECONDS
from ...core.parameters import MAX_SEED, Guarantee
from ...errors import shown
from ...text.phrasing import either
from ...text.quantities import DURATIONS, read_quantity, read_seconds

Isolation = Literal["function", "module", "session"]
MAX_RUN_SEED = 2**32 - 1


class Options(NamedTuple):
    """The options after their checks."""

    at_least: float
    budget: int | None = None
    seconds: float | None = None
    guarantee: Guarantee = "all"
    confidence: float = 0.95
    isolation: Isolation = "function"
    open_fails: bool = False
    storage: str | None = None
    seed: int | None = None  # of the studies; None: every new one draws its own
    maxfail: int = 0  # pytest's own option; 0: no limit


def options_of(config: pytest.Config) -> Options:
    """Read and check the options; raise `pytest.UsageError` if one is wrong."""
    return Options(
        at_least=share("--thresher", config.getoption("thresher")),
        budget=_read(config, "budget", _whole, None),
        seconds=_read(config, "for", _seconds, None),
        guarantee=_choice(config, "guarantee", "all", "rate"),
        confidence=_read(config, "confidence", share, 0.95),
        isolation=_choice(config, "isolation", *get_args(Isolation)),
        open_fails=_choice(config, "open", "pass", "fail") == "fail",
        storage=_text(config, "storage"),
        seed=_seed(config, "--thresher-study-seed", MAX_SEED, "2¹²⁸"),
        maxfail=int(config.getoption("maxfail") or 0),
    )


def seed_of(config: pytest.Config) -> int | None:
    """The seed of --thresher-seed."""
    return _seed(config, "--thresher-seed", MAX_RUN_SEED, "2³²")


def bars(items: Iterable[pytest.Item], options: Options) -> dict[pytest.Item, float]:
    """The bar of every test, from its closest mark or from the command line."""
    return {item: _bar(item, options.at_least) for item in items}


def _bar(item: pytest.Item, default: float) -> float:
    mark = item.get_closest_marker("thresher")
    if mark is None:
        return default
    if mark.args or set(mark.kwargs) != {"at_least"}:
        arguments = [*map(repr, mark.args), *(f"{name}={value!r}" for name, value in mark.kwargs.items())]
        written = f"thresher({', '.join(arguments)})"
        rule = "must name at_least only, as in thresher(at_least=0.9)"
        raise pytest.UsageError(f"{item.nodeid}: the mark {written} {rule}")
    return share(f"{item.nodeid}: at_least", mark.kwargs["at_least"])


def share(name: str, value: object) -> float:
    """A share strictly between 0 and 1."""
    parsed = read_quantity(value) if isinstance(value, str) else value
    if isinstance(parsed, bool) or not isinstance(parsed, int | float) or getattr(parsed, "unit", "%") != "%":
        refuse(name, value, "is not a number; write 0.95 or 95%")
    if not 0 < parsed < 1:
        remedy = "no number of runs can prove that a test always passes" if parsed == 1 else "write 0.95 or 95%"
        refuse(name, value, f"must lie strictly between 0 and 1; {remedy}")
    return float(parsed)


def refuse(name: str, value: object, rule: str) -> NoReturn:
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
        refuse(option, text, f"must be a whole number of at least 0 and below {end}")
    return int(text)


def _choice(config: pytest.Config, name: str, *words: str) -> Any:
    value = _text(config, name)
    if value is not None and value not in words:
        refuse(f"--thresher-{name}", value, f"must be {either(words)}")
    return value or words[0]


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 16 and int(text)):
        refuse(name, text, "must be a whole number of at least 1")
    return int(text)


def _seconds(name: str, text: str) -> float:
    duration = read_seconds(text, most=MAX_SECONDS)
    return refuse(name, text, DURATIONS) if duration is None else duration
