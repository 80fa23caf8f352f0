"""Finding the reward of a command's run: by default, the last number on the last line, or True, False, pass or fail."""

import re
from collections.abc import Mapping

from ...errors import EvaluationFailed, InvalidInput
from .endings import COLOURS, CommandFailed, ending, last_lines, last_words, no_reward
from .readings import FAILING, PASSING, in_json, of_exit
from .timing import MEASURED, measured

NUMBER = re.compile(r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)(e[-+]?\d+)?|[-+]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
WORDS = {"true": 1.0, "pass": 1.0, "false": 0.0, "fail": 0.0}
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
            return of_exit(code, err, passing, failing)
        if code != 0:
            raise CommandFailed(f"{ending(code)}{last_words(err)}", kind=ending(code))
        if reward in MEASURED:
            return measured(times or {}, reward)
        text = out.decode("utf-8", "replace")
        if reward == "last-float":
            return _last_float(text)
        how, _, rest = reward.partition(":")
        if how == "json":
            return in_json([text, _last_line(text)], rest)
        raise InvalidInput("reward", reward, "is not a known way to find a reward")
    except EvaluationFailed as error:
        error.output = last_lines(err) or last_lines(out)
        raise


def _last_line(text: str) -> str:
    line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    if not line:
        raise no_reward("printed nothing on standard output, where the reward is read")
    return line.strip()


def _last_float(text: str) -> float:
    """The last number on the last line. Look-alikes such as 0,5 and 1/2 and 2026-01-05 are errors.

    A line without a number may end with one of `WORDS`. With both, nobody can tell which of them is the reward.

    >>> _last_float("loss 0.25, accuracy=0.75."), _last_float("test-7: PASS")
    (0.75, 1.0)
    """
    line = _last_line(COLOURS.sub("", text))
    words = [word for word in (word.rstrip(".,:!?%") for word in BETWEEN.split(line)) if word]
    like = [word for word in words if NUMBER.fullmatch(word) or any(map(str.isdigit, word))]
    if words and words[-1].lower() in WORDS:
        if any(map(NUMBER.fullmatch, like)):
            raise no_reward("printed both a number and a word on its last line, and either could be the reward,", line)
        return WORDS[words[-1].lower()]
    if not like:
        raise no_reward("printed no number on its last line,", line)
    if not NUMBER.fullmatch(like[-1]):
        raise no_reward("printed as the last number of its last line something that is not a plain number,", like[-1])
    return float(like[-1])
