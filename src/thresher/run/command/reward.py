"""Reading the reward of a command's run from its output, its exit code or its time.

By default the reward is the last number on the last line, or True, False, pass or fail.

Seconds are measured with a monotonic clock, from just before the program is executed until its exit is noticed. They
include starting it (fork, exec, loading). They do not include waiting for a worker or for other programs to start, or
emptying the pipes. CPU seconds are the system's count for the program and the children that it waited for, in user and
in system mode.
"""

import contextlib
import errno
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from ...core import checks
from ...core.question import Measure, reward_for_question
from ...errors import Busy, EvaluationFailed, InvalidInput, NoReward, shown
from ...text.files import read_json
from ...text.masking import COLOURS
from .program_end import last_lines_at_program_end, last_words_at_program_end, program_end_in_words

TRANSIENT = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ETXTBSY)  # a later start may work
PASSING, FAILING = frozenset({0}), frozenset({1})  # exit codes, unless --pass and --fail say otherwise
SECONDS, CPU_SECONDS = MEASURED = ("seconds", "cpu-seconds")  # rewards that are measured
NUMBER = re.compile(r"[-+]?((0|[1-9]\d*)(\.\d*)?|\.\d+)(e[-+]?\d+)?|[-+]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
NOT_BEGUN = 75  # EX_TEMPFAIL of sysexits.h
WORDS = {"true": 1.0, "pass": 1.0, "false": 0.0, "fail": 0.0}
_SEPARATORS = re.compile(r"[\s=()\[\]{}<>\"'`;|]+")  # between words


class CommandFailed(EvaluationFailed):
    """The command gave no reward; the text says why."""


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
    """The reward of a run. A failure carries the last lines that the command printed.

    Exit status 75, with which programs say "try again later", means that the run did not begin.

    >>> read_reward("exit-code", 1, b"", b""), read_reward("json:score", 0, b'{"score": 0.5}', b"")
    (0.0, 0.5)
    """
    if code == NOT_BEGUN and not (reward == "exit-code" and code in passing | failing):
        raise Busy
    try:
        if reward == "exit-code":
            return _exit_reward(code, err, passing, failing)
        if code != 0:
            raise CommandFailed(
                f"{program_end_in_words(code)}{last_words_at_program_end(err)}", kind=program_end_in_words(code)
            )
        if reward in MEASURED:
            return measured_time_as_reward(times or {}, reward)
        text = out.decode("utf-8", "replace")
        if reward == "last-float":
            return _last_float(text)
        how, _, rest = reward.partition(":")
        if how == "json":
            return _json_reward([text, _last_line(text)], rest)
        raise InvalidInput("reward", reward, "is not a known way to find a reward")
    except EvaluationFailed as error:
        error.output = last_lines_at_program_end(err) or last_lines_at_program_end(out)
        raise


def _last_line(text: str) -> str:
    line = next((line for line in reversed(text.splitlines()) if line.strip()), "")
    if not line:
        raise no_reward_read("printed nothing on standard output, where the reward is read")
    return line.strip()


def _last_float(text: str) -> float:
    """The last number on the last line. Look-alikes such as 0,5 and 1/2 and 2026-01-05 are errors.

    A line without a number may end with one of `WORDS`. If there are both, nobody can tell which one is the reward.

    >>> _last_float("loss 0.25, accuracy=0.75."), _last_float("test-7: PASS")
    (0.75, 1.0)
    """
    line = _last_line(COLOURS.sub("", text))
    words = [word for word in (word.rstrip(".,:!?%") for word in _SEPARATORS.split(line)) if word]
    like = [word for word in words if NUMBER.fullmatch(word) or any(map(str.isdigit, word))]
    if words and words[-1].lower() in WORDS:
        if any(map(NUMBER.fullmatch, like)):
            raise no_reward_read(
                "printed both a number and a word on its last line, and either could be the reward,", line
            )
        return WORDS[words[-1].lower()]
    if not like:
        raise no_reward_read("printed no number on its last line,", line)
    if not NUMBER.fullmatch(like[-1]):
        raise no_reward_read(
            "printed as the last number of its last line something that is not a plain number,", like[-1]
        )
    return float(like[-1])


# -- Exit codes and JSON ----------------------------------------------------------------------------------------------


def _exit_reward(code: int, err: bytes, passing: frozenset[int], failing: frozenset[int]) -> float:
    """1 for a passing exit code, 0 for a failing one. A program that was killed, not found or misused has none."""
    if code in passing or code in failing:
        return float(code in passing)
    how, words = program_end_in_words(code), last_words_at_program_end(err)
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


def _json_reward(texts: Sequence[str], path: str) -> float:
    """The number at this path in the first of the texts that is JSON."""
    value = _first_parsed(texts)
    keys = [path] if isinstance(value, Mapping) and path in value else path.split(".")
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            raise no_reward_read(f"printed JSON without {shown(path)}:", value)
        value = value[key]
    if isinstance(value, int | float):
        with contextlib.suppress(OverflowError):
            return float(value)
    raise no_reward_read(f"printed no number for {shown(path)}, but {type(value).__name__}", value)


def _first_parsed(texts: Sequence[str]) -> object:
    for text in texts:
        try:
            return read_json(text)
        except json.JSONDecodeError:
            continue
        except ValueError as error:
            raise no_reward_read(f"printed JSON that cannot be read ({error})") from None
    raise no_reward_read("printed no JSON:", texts[-1])


# -- Times ------------------------------------------------------------------------------------------------------------


def measured_time_as_reward(times: Mapping[str, float], reward: str) -> float:
    """The time that is the reward. ``times`` is empty if the system did not tell them."""
    if reward not in times:
        text = "ended, but the system did not say what it used: another part of this process waits for all children"
        raise CommandFailed(text, kind="not measured")
    return times[reward]


class TimedOut(CommandFailed):
    """A run was killed because it took too long. Had it continued, its reward would have been at least ``least``.

    ``took`` is its time until it was gone. ``measure`` says how rewards count.
    """

    def __init__(
        self, timeout: float, *, least: float | None = None, took: float = 0.0, measure: Measure | None = None
    ) -> None:
        super().__init__(f"timed out after {timeout:g} s and was killed", kind="timed out", transient=True)
        self._least, self._took, self._measure = least, took, measure

    def reward(self, other: object = 0.0) -> float:
        """The reward that stands for every longer time, if all of them count the same; ``other`` is the baseline's.

        >>> within = Measure(sign=-1.0, within=True, limit=-0.2)
        >>> TimedOut(0.5, least=0.5, took=0.51, measure=within).reward()
        0.51
        >>> TimedOut(0.1, least=0.1, took=0.21, measure=within).reward()
        Traceback (most recent call last):
        thresher.run.command.reward.TimedOut: timed out after 0.1 s and was killed
        """
        baseline = checks.as_float(other)
        if self._least is None or self._measure is None or not self._measure.within or baseline is None:
            raise self
        if reward_for_question(self._measure, self._least, baseline) != reward_for_question(
            self._measure, math.inf, baseline
        ):
            raise self
        return max(self._least, self._took)


def reward_timeout_failure(
    times: Mapping[str, float], timeout: float, reward: str, measure: Measure | None
) -> TimedOut:
    """The failure of a run that was killed after ``timeout`` seconds.

    It was still running then, so its time is longer than the timeout. Nobody knows how much longer, because killing it
    takes time too. Its CPU time could only have grown.
    """
    if reward == SECONDS:
        least = math.nextafter(timeout, math.inf)
        return TimedOut(timeout, least=least, took=times.get(SECONDS, 0.0), measure=measure)
    return TimedOut(timeout, least=times.get(reward), measure=measure)


# -- How programs end -------------------------------------------------------------------------------------------------


def reward_start_failure(program: str, error: OSError | ValueError) -> CommandFailed:
    """The failure of a pull whose program cannot be started."""
    reason, transient = str(error), False
    if isinstance(error, OSError):
        hint = "; does it begin with a line such as #!/bin/sh?" if error.errno == errno.ENOEXEC else ""
        reason, transient = f"{error.strerror}{hint}", error.errno in TRANSIENT
    return CommandFailed(
        f"cannot start {shown(program)}: {reason}", kind=f"cannot start: {reason}", transient=transient
    )


def no_reward_read(problem: str, *printed: object) -> NoReward:
    """The failure of a run that printed no reward. Two that differ only in the output are the same error."""
    quoted = "".join(f" {shown(text)}" for text in printed)
    remedy = "print the reward on the last line, or say with --reward where it is"
    return NoReward(f"{problem}{quoted}; {remedy}", kind=problem)


# -- The last lines ---------------------------------------------------------------------------------------------------
