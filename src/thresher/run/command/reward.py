"""Finding the reward of a command's run: in its output, or in its exit code."""

import contextlib
import json
import re
import signal
from collections.abc import Iterable, Mapping, Sequence

from ...errors import EvaluationFailed, NoReward, shown
from ...text.escapes import visible
from ...text.masking import masked
from ...text.parsing import read_json

PASSING, FAILING = frozenset({0}), frozenset({1})  # exit codes, unless --pass and --fail say otherwise
LINES, WIDTH = 10, 500  # how much of the output a failure keeps, for people
NUMBER = re.compile(r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)(e[-+]?\d+)?|[-+]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
BETWEEN = re.compile(r"[\s=()\[\]{}<>\"'`;|]+")  # words
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class CommandFailed(EvaluationFailed):
    """The command gave no reward; the text says why."""


def read_reward(
    reward: str,
    code: int,
    out: bytes,
    err: bytes,
    *,
    passing: frozenset[int] = PASSING,
    failing: frozenset[int] = FAILING,
) -> float:
    """The number that a run gave. A failure carries the last lines that the command printed.

    >>> read_reward("exit-code", 1, b"", b""), read_reward("json:score", 0, b'{"score": 0.5}', b"")
    (0.0, 0.5)
    """
    try:
        if reward == "exit-code":
            return _exit_code(code, err, passing, failing)
        check_exit(code, out, err)
        how, _, rest = reward.partition(":")
        text = out.decode("utf-8", "replace")
        return {"last-float": _last_float, "json": _json, "regex": _regex}[how](text, rest)
    except EvaluationFailed as error:
        error.output = last_lines(err) or last_lines(out)
        raise


def check_exit(code: int, out: bytes, err: bytes) -> None:
    """Raise `CommandFailed` unless a run succeeded."""
    if code != 0:
        text, kind = f"{ending(code)}{last_words(err)}", ending(code)
        raise CommandFailed(text, kind=kind, output=last_lines(err) or last_lines(out))


# -- exit codes --------------------------------------------------------------------------------------------------


def _exit_code(code: int, err: bytes, passing: frozenset[int], failing: frozenset[int]) -> float:
    """1 or 0 for the codes that mean that. A program that was killed, not found or misused gave no reward."""
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


def ending(code: int) -> str:
    """How a program ended.

    >>> ending(-9), ending(3), ending(137), ending(255)
    ('was ended by SIGKILL', 'exited with 3', 'exited with 137, perhaps ended by SIGKILL', 'exited with 255')
    """
    if code < 0:
        return f"was ended by {_signal(-code) or f'signal {-code}'}"
    if code in (126, 127):
        return f"exited with {code}: a program was not found or cannot be run"
    perhaps = _signal(code - 128)  # how shells report a death by a signal
    return f"exited with {code}, perhaps ended by {perhaps}" if perhaps else f"exited with {code}"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""


# -- what it printed ---------------------------------------------------------------------------------------------


def printable(text: str) -> str:
    r"""Other people's text, safe to show: without secrets, colours and control characters.

    >>> print(printable("\x1b[31muser=me password=secret \a\x1b[0m"))
    user=me password=*** \x07
    """
    lines = masked(COLOURS.sub("", text)).replace("\t", " ").splitlines()  # masked as a whole: a key has many lines
    return "\n".join(visible(line).rstrip() for line in lines)


def _lines(data: bytes) -> list[str]:
    """The last lines that are not blank."""
    lines = printable(data.decode("utf-8", "replace")).splitlines()[-5 * LINES :]
    return [line[:WIDTH] for line in lines if line.strip()]


def last_lines(data: bytes) -> str:
    return "\n".join(_lines(data)[-LINES:])


def last_words(err: bytes) -> str:
    lines = _lines(err)
    return f": {shown(lines[-1].strip(), 200)}" if lines else ""


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
