"""What the examples share: options, a run that can be watched, and what it cost beside simpler plans."""

import argparse
import sys
from collections.abc import Callable, Iterable
from typing import NoReturn

import thresher
from thresher.cli import say
from thresher.cli.demo import comparison
from thresher.cli.livetable import watching
from thresher.cli.output import FORMATS, print_verdict
from thresher.cli.stopping import until_stopped


def options(text: str | None) -> argparse.ArgumentParser:
    """The options of every example."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--storage", metavar="URL", help="sqlite:///file.db or postgresql://…; memory by default")
    parser.add_argument("--budget", type=int, metavar="N", help="pulls; by default until every arm is settled")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", choices=FORMATS, default="table")
    parser.add_argument("--quick", action="store_true", help="a few of the arms, and a wider tolerance")
    return parser


def carry_out(study: thresher.Study, work: Callable[..., object], style: str) -> int:
    """Let ``work`` run the study, watched; then print the verdict and what it cost. The status to exit with."""
    with watching(study, quiet=False) as show:
        status = until_stopped(lambda: work(on_progress=show))
    verdict = study.verdict()
    print_verdict(verdict, style)
    unsettled = len(verdict.open) + len(verdict.retired)
    if unsettled:
        say(f"{unsettled:,} arms are not settled, so nobody knows what equal allocation would have needed")
    else:
        say(comparison(study, seconds_at_work(study.events())))
    return status


def end(main: Callable[[], int]) -> NoReturn:
    """Exit with what ``main`` returns; what thresher has to complain of takes a line, not a traceback."""
    try:
        sys.exit(main())
    except thresher.ThresherError as error:
        say(f"error: {error}")
        sys.exit(3)


def seconds_at_work(events: Iterable[thresher.Event]) -> float:
    """How long at least one pull was under way: right for a study of several runs, and of several agents."""
    under_way, began, total = 0, 0.0, 0.0
    for event in events:
        time = event.time or 0.0
        if event.kind == "asked":
            began = began if under_way else time
            under_way += 1
        elif event.kind == "dropped" or (event.kind == "told" and not event.late):
            under_way -= 1
            total += 0.0 if under_way else time - began
    return total
