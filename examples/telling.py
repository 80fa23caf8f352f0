"""What the examples share: options, a run with a live table, and a comparison with a simpler plan."""

import argparse
import sys
from collections.abc import Callable
from typing import NoReturn

import thresher

FORMATS: dict[str, Callable[[thresher.Verdict], str]] = {
    "table": str,
    "json": thresher.Verdict.to_json,
    "csv": thresher.Verdict.to_csv,
    "markdown": thresher.Verdict.to_markdown,
}
INTERRUPTED = 130  # the exit status after Ctrl-C


def options(text: str | None) -> argparse.ArgumentParser:
    """The options of every example."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--storage", metavar="URL", help="sqlite:///file.db or postgresql://…; memory by default")
    parser.add_argument("--budget", type=int, metavar="N", help="pulls; by default until every arm is settled")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument("--quick", action="store_true", help="fewer arms, and fewer cases or a wider tolerance")
    return parser


def carry_out(study: thresher.Study, work: Callable[..., object], style: str) -> int:
    """Let ``work`` run the study with a live table; print the verdict and the comparison. Returns the exit status."""
    status = 0
    try:
        with thresher.live(study) as show:
            work(on_progress=show)
    except KeyboardInterrupt:  # what was found so far is still worth printing
        status = INTERRUPTED
    verdict = study.verdict()
    print(FORMATS[style](verdict))
    say(comparison(verdict))
    return status


def comparison(verdict: thresher.Verdict) -> str:
    """What the usual plan would have cost: every arm on every case, or a fixed number of pulls for every arm."""
    unsettled = sum(not row.certified and row.label != "baseline" for row in verdict)
    if verdict.cases:
        full, left = len(verdict) * verdict.cases, f", with {unsettled:,} arms not settled" if unsettled else ""
        return (
            f"{verdict.issued:,} pulls{left}. A full run, {len(verdict):,} arms on {verdict.cases:,} cases each, takes "
            f"{full:,}: this was {verdict.issued / full:.0%} of it"
        )
    if unsettled:
        return f"{unsettled:,} arms are not settled, so nobody knows how many pulls the hardest arm needs"
    # whoever fixes a number of pulls must fix it for the hardest arm
    hardest = max(verdict, key=lambda row: row.seen)
    fixed = hardest.seen * len(verdict)
    return (
        f"{verdict.issued:,} pulls. The hardest arm, {hardest.arm}, took {hardest.seen:,}; as many for each of "
        f"{len(verdict):,} arms are {fixed:,}, {fixed / verdict.issued:.1f} times as many"
    )


def say(text: str) -> None:
    """A line for the person who watches."""
    print(text, file=sys.stderr)


def end(main: Callable[[], int]) -> NoReturn:
    """Exit with what ``main`` returns; an error of thresher's takes one line, not a traceback."""
    try:
        sys.exit(main())
    except thresher.ThresherError as error:
        say(f"error: {error}")
        sys.exit(3)
