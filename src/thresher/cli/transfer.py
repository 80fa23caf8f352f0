"""Studies and results into and out of a store."""

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import click

from .. import ledger as ledgers
from ..checks import MAX_NAME, number, whole
from ..checks import name as checked_name
from ..errors import Conflict, InvalidInput, StudyExists, ThresherError
from ..events import Event
from ..journal import NO_EVENT, plain
from ..ledger import Ledger
from ..seeds import pull_seed
from . import FINISHED
from .results import SHAPES, read_results
from .storage import name_argument, place_of, storage_option, store_at, study_at

STATES = ("pending", "told", "dropped", "late")


@click.command(short_help="Write a study out, as CSV or JSON.")
@name_argument
@click.argument("style", type=click.Choice(["csv", "json"]))
@storage_option
def export(name: str, style: str, storage: str | None) -> int:
    """Write study NAME to standard output: csv is a line a pull, json the whole log, which import reads back.

    \b
    Examples:
      thresher export prompts csv
      thresher export prompts json --storage postgresql://me@server/lab
    """  # noqa: D301 - click wants the character itself
    study = study_at(name, storage)
    if style == "json":
        click.echo(f'{{"format": 1, "study": {json.dumps(name)}, "events": [')
        events = study.events()
        for event in events:
            click.echo(json.dumps(event._asdict()) + ("," if event.seq < len(events) else ""))
        click.echo("]}")
    else:
        click.echo(study.look(_pulls), nl=False)
    return FINISHED


def _pulls(ledger: Ledger) -> str:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("pull", "arm", "number", "seed", "state", "reward"))
    for pull, arm in enumerate(ledger.pull_arm, start=1):
        state = STATES[ledger.pull_state[pull - 1]]
        reward = ledger.pull_reward[pull - 1] if state in ("told", "late") else ""
        seed = pull_seed(pull, ledger.spec.seed)
        table.writerow((pull, ledger.spec.arms[arm], ledger.pull_number[pull - 1], seed, state, reward))
    return text.getvalue()


@click.command("import", short_help="Read a study, or results already paid for.")
@click.argument("file", metavar="FILE")
@click.option(
    "--study", "name", metavar="NAME", help="The study that results are for, or a new name for an exported one."
)
@storage_option
def import_(file: str, name: str | None, storage: str | None) -> int:
    """Read FILE, - being standard input: a study that export json wrote, or results that were paid for already.

    Results, CSV or JSON with arm and reward, go into a study that has not handed out a pull yet; all or none. They
    count towards its budget.

    \b
    Examples:
      thresher import prompts.json
      thresher import results.csv --study prompts
    """  # noqa: D301 - click wants the character itself
    text = _read(file)
    data = _json(text, file)
    if isinstance(data, dict) and "events" in data:
        _restore(data, name, storage, file)
        return FINISHED
    if isinstance(data, dict):
        raise InvalidInput("file", file, "holds an object without events", SHAPES)
    if name is None:
        raise InvalidInput("--study", "", "results are for a study", "name it: --study NAME")
    study = study_at(name, storage)
    results = read_results(data, text, file, study.spec)
    budget = study.look(lambda ledger: ledger.budget)
    if budget is not None and len(results) > budget:
        rule = f"has {len(results):,} rewards, and the budget of the study is {budget:,}"
        raise InvalidInput("file", file, rule, "results count towards the budget: create the study with a larger one")
    study.add_many(results)
    return FINISHED


def _read(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("file", file, f"cannot be read ({error})", "check its name, and that it is UTF-8") from None


def _json(text: str, file: str) -> Any:
    try:
        return json.loads(text) if text.lstrip()[:1] in ("[", "{") else None
    except (ValueError, RecursionError) as error:
        raise InvalidInput("file", file, f"is not JSON ({error})", SHAPES) from None


def _restore(data: dict[str, Any], name: str | None, storage: str | None, file: str) -> None:
    """A whole log, if it is valid, under its own name or another, if that is free."""
    study, store = checked_name("study", name or data.get("study")), store_at(storage)
    place = "its list of events"
    try:
        events = []
        for number, item in enumerate(data["events"], start=1):
            place = f"event {number}"
            events.append(_event(item))
        place = "its events"
        ledgers.fold(events)
    except (ThresherError, *NO_EVENT) as error:
        raise InvalidInput(
            "file", file, f"is not the log of a study, {place}: {error}", "export it once more"
        ) from None
    with store.turn(study):
        try:
            store.append(study, events, lease=3600.0)
        except Conflict:
            rule = f"is in {place_of(store)} already"
            raise StudyExists("study", study, rule, "give another name: --study NAME") from None
    store.flush()


def _event(item: dict[str, Any]) -> Event:
    """An event whose fields every store can keep. Whether it may follow those before it is the ledger's to say."""
    event = Event(**item)
    for field in ("reason", "cause", "key", "agent"):
        value = getattr(event, field)
        if value is not None and (not isinstance(value, str) or plain(value) != value):
            raise InvalidInput(field, value, "must be text")
    for field in ("seq", "pull", "arm", "budget"):
        value = getattr(event, field)
        if value is not None:
            whole(field, value, least=0)
    for field in ("reward", "time"):
        value = getattr(event, field)
        if value is not None:
            number(field, value)
    if event.key is not None and len(event.key) > MAX_NAME:
        raise InvalidInput("key", event.key, f"must not be longer than {MAX_NAME} characters")
    if event.late not in (None, False, True):
        raise InvalidInput("late", event.late, "must be true, false or null")
    return event
