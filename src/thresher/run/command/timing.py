"""The time of a run as its reward: what is measured, and what a run that was cut off counts as.

The seconds are measured with a monotonic clock, from just before the program is executed until its exit is noticed:
they include starting it (fork, exec, loading). Waiting for a worker or for other programs to be started, and reading
what is left in the pipes, are not included. The CPU seconds are what the system counted for the program and for the
children that it waited for, in user and in system mode.
"""

import math
from collections.abc import Mapping

from ...core import checks
from ...core.question import Measure, count
from .endings import CommandFailed

SECONDS, CPU_SECONDS = MEASURED = ("seconds", "cpu-seconds")  # how to find a reward, besides reading one


def measured(times: Mapping[str, float], reward: str) -> float:
    """The reward of a run that has ended; ``times`` is empty if the system did not tell."""
    if reward not in times:
        text = "ended, but the system did not say what it used: another part of this process waits for all children"
        raise CommandFailed(text, kind="not measured")
    return times[reward]


class TimedOut(CommandFailed):
    """A run was killed because it took too long. Had it continued, its reward would have been at least ``least``.

    ``took`` is its time until it was gone, ``measure`` what rewards count as.
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
        thresher.run.command.timing.TimedOut: timed out after 0.1 s and was killed
        """
        theirs = checks.as_float(other)
        if self._least is None or self._measure is None or not self._measure.within or theirs is None:
            raise self
        if count(self._measure, self._least, theirs) != count(self._measure, math.inf, theirs):
            raise self
        return max(self._least, self._took)


def cut_off(times: Mapping[str, float], timeout: float, reward: str, measure: Measure | None) -> TimedOut:
    """The failure of a run that was killed after ``timeout`` seconds.

    It was still running then, so its time is longer than the timeout. Nobody knows how much longer, because the kill
    takes time too. The CPU time that it had used could only have grown.
    """
    if reward == SECONDS:
        least = math.nextafter(timeout, math.inf)
        return TimedOut(timeout, least=least, took=times.get(SECONDS, 0.0), measure=measure)
    return TimedOut(timeout, least=times.get(reward), measure=measure)
