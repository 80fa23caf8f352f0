"""Studies and results into and out of a store."""

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from .. import ledger as ledgers
from ..checks import name as checked_name
from ..errors import Conflict, InvalidInput, StudyExists
from ..events import Event
from ..ledger import Ledger
from ..seeds import pull_seed
from . import FINISHED
from .storage import name_argument, place_of, storage_option, store_at, study_at

STATES = ("pending", "told", "dropped", "late")
SHAPES = "give CSV with columns arm and reward, a JSON list of such objects, or what thresher export NAME json wrote"


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
    data = _json(text)
    if isinstance(data, dict) and "events" in data:
        _restore(data, name, storage, file)
        return FINISHED
    rows = data if isinstance(data, list) else list(csv.DictReader(io.StringIO(text)))
    if name is None:
        raise InvalidInput("--study", "", "results are for a study", "name it: --study NAME")
    study_at(name, storage).add_many(_results(rows, file))
    return FINISHED


def _read(file: str) -> str:
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return data.decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("file", file, f"cannot be read ({error})", "check its name, and that it is UTF-8") from None


def _json(text: str) -> Any:
    try:
        return json.loads(text) if text.lstrip()[:1] in ("[", "{") else None
    except (ValueError, RecursionError) as error:
        raise InvalidInput("file", rule=f"is not JSON ({error})", remedy=SHAPES) from None


def _results(rows: list[Any], file: str) -> Iterator[tuple[str, float]]:
    for number, row in enumerate(rows, start=1):
        place = f"row {number} of {file}"
        if not isinstance(row, dict) or row.get("arm") is None or "reward" not in row:
            raise InvalidInput(place, row, "has no arm and reward", SHAPES)
        if row["reward"] == "":  # a pull without one, in what export csv wrote
            continue
        try:
            yield str(row["arm"]), float(row["reward"])
        except (TypeError, ValueError):
            raise InvalidInput(f"{place}: reward", row["reward"], "is not a number") from None


def _restore(data: dict[str, Any], name: str | None, storage: str | None, file: str) -> None:
    """A whole log, if it is valid, under its own name or another, if that is free."""
    study, store = checked_name("study", name or data.get("study")), store_at(storage)
    try:
        events = [Event(**item) for item in data["events"]]
        ledgers.fold(events)
    except (TypeError, LookupError, ValueError, AttributeError) as error:
        raise InvalidInput("file", file, f"is not the log of a study ({error})", SHAPES) from None
    with store.turn(study):
        try:
            store.append(study, events, lease=3600.0)
        except Conflict:
            rule = f"is in {place_of(store)} already"
            raise StudyExists("study", study, rule, "give another name: --study NAME") from None
    store.flush()
