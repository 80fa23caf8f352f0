"""Finding the reward of a command's run: in its output, or in its exit code."""

import contextlib
import json
import re
from collections.abc import Mapping, Sequence

from ...errors import EvaluationFailed, NoReward, shown
from ...text.parsing import read_json
from .endings import COLOURS, FAILING, PASSING, CommandFailed, ending, last_lines, last_words, reward_of_exit
from .timing import MEASURED, measured

NUMBER = re.compile(r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)(e[-+]?\d+)?|[-+]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
BETWEEN = re.compile(r"[\s=()\[\]{}<>\"'`;|]+")  # words


def read_reward(
    reward: str,
    code: int,
    out: bytes,
    err: bytes,
    *,
    times: Mapping[str, float] | None = None,
    passing: frozenset[int] = PASSING,
    failing: frozenset[int] = FAILING,
) -> float:
    """The number that a run gave, or how long it took. A failure carries the last lines that the command printed.

    >>> read_reward("exit-code", 1, b"", b""), read_reward("json:score", 0, b'{"score": 0.5}', b"")
    (0.0, 0.5)
    """
    try:
        if reward == "exit-code":
            return reward_of_exit(code, err, passing, failing)
        if code != 0:
            raise CommandFailed(f"{ending(code)}{last_words(err)}", kind=ending(code))
        if reward in MEASURED:
            return measured(times or {}, reward)
        how, _, rest = reward.partition(":")
        text = out.decode("utf-8", "replace")
        return {"last-float": _last_float, "json": _json, "regex": _regex}[how](text, rest)
    except EvaluationFailed as error:
        error.output = last_lines(err) or last_lines(out)
        raise


def _none(what: str, *found: object) -> NoReward:
    """Failures that differ only in what was found are the same error."""
    seen = "".join(f" {shown(each)}" for each in found)
    return NoReward(f"{what}{seen}; print the reward on the last line, or say with --reward where it is", kind=what)


def _last_line(text: str) -> str:
    line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    if not line:
        raise _none("printed nothing on standard output, where the reward is read")
    return line.strip()


def _last_float(text: str, _: str) -> float:
    """The last number on the last line. Look-alikes such as 0,5 and 1/2 and 2026-01-05 are errors.

    >>> _last_float("loss 0.25, accuracy=0.75.", "")
    0.75
    """
    line = _last_line(COLOURS.sub("", text))
    words = [word.rstrip(".,:!?%") for word in BETWEEN.split(line)]
    like = [word for word in words if NUMBER.fullmatch(word) or any(map(str.isdigit, word))]
    if not like:
        raise _none("printed no number on its last line,", line)
    if not NUMBER.fullmatch(like[-1]):
        raise _none("printed as the last number of its last line something that is not a plain number,", like[-1])
    return float(like[-1])


def _json(text: str, path: str) -> float:
    value = _first_parsed([text, _last_line(text)])
    keys = [path] if isinstance(value, Mapping) and path in value else path.split(".")
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            raise _none(f"printed JSON without {shown(path)}:", value)
        value = value[key]
    if isinstance(value, int | float):
        with contextlib.suppress(OverflowError):
            return float(value)
    raise _none(f"printed no number for {shown(path)}, but {type(value).__name__}", value)


def _first_parsed(texts: Sequence[str]) -> object:
    for text in texts:
        try:
            return read_json(text)
        except json.JSONDecodeError:
            continue
        except ValueError as error:
            raise _none(f"printed JSON that cannot be read ({error})") from None
    raise _none("printed no JSON:", texts[-1])


def _regex(text: str, pattern: str) -> float:
    found = list(re.finditer(pattern, text))
    if not found:
        raise _none(f"printed nothing that matches {shown(pattern)}")
    value = found[-1][1] if found[-1].re.groups else found[-1][0]
    try:
        return float(value)
    except (TypeError, ValueError):
        raise _none(f"printed no number where {shown(pattern)} looks for one, but", value) from None
