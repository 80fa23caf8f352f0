"""Check a study (``thresher verify``) or a store (``thresher doctor``)."""

import json
import platform
from importlib import metadata
from itertools import chain

import click

from .._version import __version__
from ..core.replay import verify as verified
from ..errors import ThresherError, shown
from ..log.reader import pages
from ..text.masking import masked, one_line
from ..text.phrasing import plural
from . import FINISHED, NOT_MET, put
from .options import format_option, name_argument, scores_option, storage_option, store_at, study_at, study_or_damage


@click.command()
@name_argument
@scores_option
@storage_option
@format_option("text", "json")
def verify(name: str, scores: tuple[object, ...], storage: str | None, style: str) -> int:
    """Check the log of study NAME: no gap, every event valid, every pull for the arm that the policy chooses.

    Every event must also match its digest, up to the head that the store recorded. Prints the head, so that two people
    can see that they have the same log, and a digest of the state that is the same on any machine. Exit status 1 means
    that something is wrong.

    Examples:
      thresher verify prompts
      thresher verify prompts --policy mine:score
    """
    store = store_at(storage)
    if name not in store.studies():
        study_at(name, store)  # raises an error that lists what exists
    report = verified(chain.from_iterable(pages(store, name)))
    if style == "json":
        put(json.dumps({"format": 1, "study": name, "sound": report.sound, **report._asdict()}))
    elif report.sound:
        put(f"{plural(report.events, 'event')}, every decision re-derived; state {report.digest}")
        put(f"Head of the log: event {report.events:,}, {report.head}")
        if not report.anywhere:
            only = "its decisions can be re-derived on the same machine only"
            put(f"its policy, {report.policy}, may use more than + − × ÷ √: {only}")
    else:
        put(f"event {report.wrong}: {one_line(report.reason or '')}; the {report.events:,} before it are right")
    return FINISHED if report.sound else NOT_MET


@click.command()
@storage_option
@format_option("text", "json")
def doctor(storage: str | None, style: str) -> int:
    """Print versions, how durable the store is, and what is wrong with it. Exit status 1 means that something is wrong.

    Example:
      thresher doctor --storage postgresql://me@server/lab
    """
    found = {"thresher": __version__, "python": f"{platform.python_version()} on {platform.platform()}"}
    for package in ("apsw", "psycopg", "click", "rich"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    try:
        store = store_at(storage)
        found.update(store.describe())
        names = store.studies()
        found["studies"] = f"{len(names)}, each checked"
        for name in names:
            if damage := study_or_damage(name, store)[1]:
                found[f"! study {shown(name, 40)}"] = damage
    except ThresherError as error:
        found["! store"] = str(error)
    found = {key: masked(value) for key, value in found.items()}
    wrong = {key: value for key, value in found.items() if key.startswith("!")}
    if style == "json":
        put(json.dumps({"format": 1, "sound": not wrong, "found": found}, indent=2, ensure_ascii=False))
    else:
        for key, value in found.items():
            put(f"{key:12} {one_line(value)}")
    return NOT_MET if wrong else FINISHED
