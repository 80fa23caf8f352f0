"""What the examples share: options, and a run with a live table."""

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
    """Let ``work`` run the study with a live table, and print the verdict. Returns the exit status."""
    status = 0
    try:
        with thresher.live(study) as show:
            work(on_progress=show)
    except KeyboardInterrupt:  # the answer so far is still worth printing
        status = INTERRUPTED
    print(FORMATS[style](study.verdict()))
    return status


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
