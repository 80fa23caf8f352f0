"""``thresher log``: the events of a study, as they are or as they come."""

import json
import time

import click

from ..core.checks import MAX_WHOLE
from ..core.events import Event, to_json
from ..errors import DamagedStudy, UnknownStudy
from ..log.tail import event_at, pages
from ..study import look
from ..text.masking import one_line
from . import FINISHED, put
from .storage import format_option, name_argument, storage_option, study_at

POLL = 0.25  # seconds between two looks of --follow
LAST = 253_402_300_799  # the end of the year 9999: later times cannot be written


@click.command(short_help="The events of a study.")
@name_argument
@click.option("--follow", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option(
    "--after",
    type=click.IntRange(0, MAX_WHOLE),
    default=0,
    show_default=True,
    metavar="SEQ",
    help="Leave out what came before.",
)
@storage_option
@format_option("text", "json")
def log(name: str, follow: bool, after: int, storage: str | None, style: str) -> int:
    """Print the log of study NAME: a line an event, or an object of JSON a line.

    \b
    Examples:
      thresher log prompts --follow
      thresher log prompts --after 1000 --format json
    """  # noqa: D301 - click wants the character itself
    study = study_at(name, storage)
    names, last = study.spec.arms, event_at(study.store, name, after)
    last = look(study, lambda ledger: ledger.last) if last is None and after else last  # it is not there yet
    while True:
        try:
            for page in pages(study.store, name, last):
                for event in page:
                    if event.seq > after:
                        put(json.dumps(to_json(event)) if style == "json" else line(event, names))
                last = page[-1]
        except (DamagedStudy, UnknownStudy):  # the study says what happened, unless its server lost its end in a crash
            last = look(study, lambda ledger: ledger.last)
        if not follow:
            return FINISHED
        time.sleep(POLL)
        look(study, lambda ledger: None)  # that it is there, and not another one of its name


def line(event: Event, names: tuple[str, ...]) -> str:
    """An event for people.

    >>> line(Event(3, "told", 1, 0, 0.5, time=0.0, agent="host:7"), ("terse",))
    '3  1970-01-01T00:00:00Z  told  pull 1 of terse  0.5  host:7'
    """
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(min(max(event.time or 0.0, 0.0), LAST)))
    arm = None if event.arm is None else names[event.arm]
    parts = [
        str(event.seq),
        when,
        event.kind,
        arm if event.pull is None else f"pull {event.pull} of {arm}",
        None if event.reward is None else f"{event.reward:g}",
        "late" if event.late else None,
        None if event.budget is None else f"budget {event.budget:,}",
        event.cause,
        event.reason,
        event.agent,
    ]
    return "  ".join(one_line(part) for part in parts if part)
