"""``thresher demo``: a real study that needs only the standard library."""

import bz2
import functools
import lzma
import random
import sysconfig
import time
import zlib
from dataclasses import replace
from itertools import chain
from pathlib import Path

import click

from ..create import create_study
from ..run.engines import open_engine
from ..run.loop import Limits, run_loop_on
from ..run.signals import until_stop_signal
from ..study import Pull, Study, peek_study
from ..text.quantities import duration_text
from .live_table import watching_live_table
from .options import FORMATS, Whole, format_option, option
from .output import print_verdict, say

WINDOW = 256 * 1024  # bytes that one pull compresses
BAR, TOLERANCE = 0.76, 0.03
BOUNDS = (0.6, 1.0)  # over all windows of this text, savings range from 0.67 to 0.95
LEFT_OUT = {"test", "tests", "site-packages", "dist-packages"}


def demo_settings() -> dict[str, dict[str, object]]:
    """The arms: 28 compression settings."""
    levels = {"zlib": range(1, 10), "bz2": range(1, 10), "lzma": range(10)}
    return {f"{codec}-{level}": {"codec": codec, "level": level} for codec in levels for level in levels[codec]}


@functools.cache
def demo_corpus() -> bytes:
    """The source files of Python's standard library, concatenated in sorted order."""
    root = Path(sysconfig.get_path("stdlib"))
    files = (file for file in root.rglob("*.py") if not LEFT_OUT & set(file.relative_to(root).parts))
    return b"".join(file.read_bytes() for file in sorted(files))


def bytes_saved_in_demo(pull: Pull) -> float:
    """The share of bytes that the arm's setting saves on a window that the pull's seed chooses."""
    text = demo_corpus()
    start = random.Random(pull.seed).randrange(len(text) - WINDOW)  # noqa: S311 - not for secrets
    window, level = text[start : start + WINDOW], pull.params["level"]
    if pull.params["codec"] == "lzma":
        packed = lzma.compress(window, preset=level)
    else:
        packed = {"zlib": zlib, "bz2": bz2}[pull.params["codec"]].compress(window, level)
    return 1 - len(packed) / WINDOW


POINTS = f"{100 * TOLERANCE:g} points"
HELP = f"""A real study that needs nothing but Python: which compression settings save {BAR:.0%}, give or take {POINTS}?

28 settings: zlib 1 to 9, bz2 1 to 9, lzma 0 to 9. Each evaluation compresses a random window of 256 KiB of the
standard library's source, and returns the share of bytes saved. Within {POINTS} of the bar, either answer is right:
that saves most of the work. It ends when every setting is settled at a confidence of 95 %, after about half a minute
on 2 cores.

Examples:
  thresher demo
  thresher demo --budget 500 --workers 4
  thresher demo --format json
"""


@click.command(help=HELP)
@option("--budget N", "Pulls in total.  [default: until every arm is settled]", type=Whole())
@option("--workers W", "Processes.  [default: one per core]", type=Whole())
@option("--seed S", "The windows follow from it.  [default: a new one]", type=Whole())
@click.option("--compare/--no-compare", default=True, help="Say what simpler plans would have cost.")
@format_option(*FORMATS)
def demo(budget: int | None, workers: int | None, seed: int | None, compare: bool, style: str) -> int:
    """Run the demonstration."""
    demo_corpus()  # before the processes start, so that forked ones share it
    study = create_study(
        "demo",
        arms=demo_settings(),
        at_least=BAR,
        tolerance=TOLERANCE,
        bounds=BOUNDS,
        unit="%",
        budget=budget,
        seed=seed,
    )
    began = time.monotonic()

    def job() -> None:
        with watching_live_table(study, quiet=False) as show:
            engine = open_engine(bytes_saved_in_demo, workers=workers, executor="processes")
            run_loop_on(engine, study, Limits(), show)

    status = until_stop_signal(job)
    took = time.monotonic() - began
    verdict = replace(study.verdict(), seconds=took)
    print_verdict(verdict, style)
    if compare and not verdict.open:
        say(demo_comparison(study, took))
    return status


def demo_comparison(study: Study, took: float) -> str:
    """What simpler plans would have cost for the same answers, from the rewards and times that were measured."""
    asked: dict[int, float] = {}  # pulls and the times when they were asked
    seconds = [0.0] * len(study.spec.arms)
    for event in chain.from_iterable(study.pages()):
        if event.kind == "asked":
            asked[event.pull or 0] = event.time or 0.0
        elif event.kind == "told":
            seconds[event.arm or 0] += (event.time or 0.0) - asked.pop(event.pull or 0)
    rows, needed = study.verdict().rows, peek_study(study, lambda ledger: list(ledger.docket.committed))
    most, arms, spent = max(needed), len(rows), sum(seconds)
    per_pull = [arm_seconds / row.seen for arm_seconds, row in zip(seconds, rows, strict=True)]
    equally = most * sum(per_pull) / spent * took
    skipping = sum(pulls * pull_seconds for pulls, pull_seconds in zip(needed, per_pull, strict=True)) / spent * took
    equal = f"{arms * most:,} pulls and {duration_text(equally)}, {equally / took:.1f} times as long"
    return (
        f"The hardest setting needed {most} pulls. As many for each would have taken {equal}; pulling all in turn until"
        f" they are settled, {sum(needed):,} pulls and {duration_text(skipping)}"
    )
