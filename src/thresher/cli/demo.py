"""``thresher demo``: a real job with nothing but the standard library."""

import bz2
import functools
import lzma
import random
import sysconfig
import time
import zlib
from pathlib import Path

import click

from ..policies import uniform
from ..runner import run
from ..study import Pull, Study, create_study
from . import FINISHED, say
from .live import watching
from .output import FORMATS, print_verdict
from .stopping import until_stopped
from .words import duration

WINDOW = 256 * 1024  # bytes that one pull compresses
BAR = 0.79
PULLS_PER_ARM = 12  # with equal allocation after it, half a minute on 2 cores
LEFT_OUT = {"test", "tests", "site-packages", "dist-packages"}


def settings() -> dict[str, dict[str, object]]:
    """The arms: 28 ways to compress."""
    levels = {"zlib": range(1, 10), "bz2": range(1, 10), "lzma": range(10)}
    return {f"{codec}-{level}": {"codec": codec, "level": level} for codec in levels for level in levels[codec]}


@functools.cache
def corpus() -> bytes:
    """The source files of Python's standard library, one after the other in sorted order."""
    root = Path(sysconfig.get_path("stdlib"))
    files = (file for file in root.rglob("*.py") if not LEFT_OUT & set(file.relative_to(root).parts))
    return b"".join(file.read_bytes() for file in sorted(files))


def bytes_saved(pull: Pull) -> float:
    """The share of bytes that the arm's setting saves on a window that the pull's seed chooses."""
    text = corpus()
    start = random.Random(pull.seed).randrange(len(text) - WINDOW)  # noqa: S311 - not for secrets
    window, level = text[start : start + WINDOW], pull.params["level"]
    if pull.params["codec"] == "lzma":
        packed = lzma.compress(window, preset=level)
    else:
        packed = {"zlib": zlib, "bz2": bz2}[pull.params["codec"]].compress(window, level)
    return 1 - len(packed) / WINDOW


HELP = f"""A real job with nothing but Python's standard library: which compression settings save at least {BAR:.0%}?

28 arms: zlib 1 to 9, bz2 1 to 9, lzma 0 to 9. A pull compresses a random window of 256 KiB of the standard library's
source; the reward is the share of bytes saved. The same is then done with equal allocation, to see what it costs.

\\b
Examples:
  thresher demo
  thresher demo --budget 2000 --no-compare
  thresher demo --format json
"""


@click.command(help=HELP, short_help="A real job to look at: which compression settings save 79 %?")
@click.option("--budget", type=int, metavar="N", default=PULLS_PER_ARM * 28, show_default=True, help="Pulls.")
@click.option("--workers", type=int, metavar="W", help="Processes.  [default: the machine's cores]")
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--compare/--no-compare", default=True, help="Run equal allocation afterwards, and compare.")
@click.option("--format", "style", type=click.Choice(FORMATS), default="table", show_default=True)
def demo(budget: int, workers: int | None, seed: int, compare: bool, style: str) -> int:
    """Run the demonstration."""
    corpus()  # before the processes start, so that those that are forked share it
    study = create_study("demo", arms=settings(), threshold=BAR, budget=budget, seed=seed, confidence=None)
    began = time.monotonic()
    status = _carry_out(study, workers)
    took = time.monotonic() - began
    verdict = study.verdict()
    print_verdict(verdict, style)
    if status or not compare:
        return status
    most = max(row.seen for row in verdict.rows)
    say(
        f"the most open arm got {most} pulls. Equal allocation must give every arm as many to know as much of it; "
        f"{len(verdict.rows)} × {most} pulls are now made, to measure what that costs …"
    )
    equal = create_study(
        "equal",
        arms=settings(),
        threshold=BAR,
        budget=most * len(verdict.rows),
        seed=seed + 1,
        policy=uniform(),
        confidence=None,
    )
    began = time.monotonic()
    if status := _carry_out(equal, workers):
        return status
    equally = time.monotonic() - began
    other = equal.verdict()
    differing = [row.name for row in verdict.rows if row.label != other[row.name].label]
    say(
        f"{verdict.issued:,} pulls, {duration(took)}. Equal allocation: {other.issued:,} pulls, "
        f"{other.issued / verdict.issued:.1f} times as many, in {duration(equally)}. "
        + (
            f"The two disagree on {', '.join(differing)}: too close to the bar to tell yet."
            if differing
            else "The labels agree."
        )
    )
    return FINISHED


def _carry_out(study: Study, workers: int | None) -> int:
    def job() -> None:
        with watching(study, quiet=False) as show:
            run(study, bytes_saved, workers=workers, executor="processes", on_progress=show)

    return until_stopped(job)
