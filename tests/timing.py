"""Real programs whose times are known well enough. Used by tests and bench."""

import contextlib
import subprocess
from collections.abc import Iterator
from typing import Any

import thresher
from thresher.run.command.process import Command

LIMIT = 0.05
FAST = {f"fast {each}": {"time": f"0.00{each}"} for each in range(1, 10)}
SLOW = {f"slow {each}": {"time": f"0.10{each}"} for each in range(3)}
COUNT = 'i=0; while [ "$i" -lt "$0" ]; do i=$((i + 1)); done'
STEPS = {"current": {"steps": 20_000}, "slower": {"steps": 80_000}, "faster": {"steps": 5_000}}


def against_limit(**question: Any) -> thresher.Verdict:
    """Twelve commands against 50 ms, of which nine stay within it."""
    study = thresher.create_study("limit", arms=FAST | SLOW, at_most=LIMIT, unit="s", **question)
    return thresher.run(study, Command(("sleep", "{time}"), "seconds", 10.0).for_study(study.spec), workers=2)


def against_baseline(reward: str, **question: Any) -> thresher.Verdict:
    """A program that takes four times as long as the current one, and one that takes a quarter."""
    settings: dict[str, Any] = {"baseline": "current", "ratio": 1.2, "lower_is_better": True, "unit": "s"}
    study = thresher.create_study("pairs", arms=STEPS, **settings | question)
    command = Command(("sh", "-c", COUNT, "{steps}"), reward, 60.0).for_study(study.spec)
    return thresher.run(study, command, workers=2)


@contextlib.contextmanager
def busy_cores(count: int = 2) -> Iterator[None]:
    """Programs that keep this many cores busy."""
    loops = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
