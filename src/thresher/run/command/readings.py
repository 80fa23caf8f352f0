"""Less usual ways to read a reward: from an exit code, or from JSON."""

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence

from ...errors import shown
from ...text.quantities import read_json
from .endings import CommandFailed, ending, last_words, no_reward

PASSING, FAILING = frozenset({0}), frozenset({1})  # exit codes, unless --pass and --fail say otherwise


def of_exit(code: int, err: bytes, passing: frozenset[int], failing: frozenset[int]) -> float:
    """1 for a passing exit code, 0 for a failing one. A program that was killed, not found or misused has none."""
    if code in passing or code in failing:
        return float(code in passing)
    how, words = ending(code), last_words(err)
    if code < 0 or code in (126, 127):
        raise CommandFailed(f"{how}{words}", kind=how)
    rule = f"which is neither --pass {codes_text(passing)} nor --fail {codes_text(failing)}"
    raise CommandFailed(f"{how}, {rule}{words}; add --fail {code} if that means failed", kind=how)


def codes_text(codes: Iterable[int]) -> str:
    """Exit codes as ``--pass`` and ``--fail`` take them.

    >>> codes_text({7, 5, 6, 0, 2, 3})
    '0,2-3,5-7'
    """
    runs: list[list[int]] = []
    for code in sorted(codes):
        if runs and runs[-1][-1] == code - 1:
            runs[-1].append(code)
        else:
            runs.append([code])
    return ",".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def in_json(texts: Sequence[str], path: str) -> float:
    """The number at this path in the first of the texts that is JSON."""
    value = _first_parsed(texts)
    keys = [path] if isinstance(value, Mapping) and path in value else path.split(".")
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            raise no_reward(f"printed JSON without {shown(path)}:", value)
        value = value[key]
    if isinstance(value, int | float):
        with contextlib.suppress(OverflowError):
            return float(value)
    raise no_reward(f"printed no number for {shown(path)}, but {type(value).__name__}", value)


def _first_parsed(texts: Sequence[str]) -> object:
    for text in texts:
        try:
            return read_json(text)
        except json.JSONDecodeError:
            continue
        except ValueError as error:
            raise no_reward(f"printed JSON that cannot be read ({error})") from None
    raise no_reward("printed no JSON:", texts[-1])
