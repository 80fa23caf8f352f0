"""Export and import: studies and results, out of and into a store."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import click

from ..core import evidence
from ..core import ledger as ledgers
from ..core.checks import MAX_NAME, number, whole
from ..core.checks import name as checked_name
from ..core.events import DROPPED, LATE, NO_EVENT, OUTSIDE, STATES, TOLD, Event, to_json
from ..core.ledger import Ledger
from ..core.results import CANCELLED, LOST, SHAPES, WITH_REWARD, Row, read_json, read_rows
from ..core.spec import Spec, finite
from ..errors import Conflict, InvalidInput, StudyExists, ThresherError, shown
from ..log.calls import Result
from ..log.chain import Head, chained
from ..log.journal import plain
from ..study import Study, import_pulls, look
from ..text.escapes import cell
from ..text.files import read_text
from ..text.plural import plural
from . import FINISHED, put, say, say_done
from .options import name_argument, option, place_of, storage_option, store_at, study_at

LINES = 1000  # lines of CSV that are written at once


@click.command(short_help="Write a study as CSV or JSON.")
@name_argument
@click.argument("style", type=click.Choice(["csv", "json"]), metavar="csv|json")
@storage_option
def export(name: str, style: str, storage: str | None) -> int:
    """Write study NAME to standard output: csv has one line per pull, json has the whole log. import reads both.

    The state of a pull is pending, told, dropped, late (told after it was charged to the certificate), outside (the
    reward lies outside the bounds) or cancelled (it does not count in the certificate).

    \b
    Examples:
      thresher export prompts csv
      thresher export prompts json --storage postgresql://me@server/lab
    """  # noqa: D301 - click wants the character itself
    study = study_at(name, storage)
    if style == "json":
        _print_log(study)
    else:
        look(study, _print_pulls)
    return FINISHED


def _print_log(study: Study) -> None:
    """The log up to its present head. The head comes first, so that a truncated file still has it."""
    seq, digest = look(study, lambda ledger: (ledger.seq, ledger.head))
    head = json.dumps({"seq": seq, "digest": digest})
    put(f'{{"format": 1, "study": {json.dumps(study.name)}, "head": {head}, "events": [', end="")
    for event in islice(chain.from_iterable(study.pages()), seq):
        put(("," if event.seq > 1 else "") + f"\n{json.dumps(to_json(event))}", end="")
    put("\n]}")


def _print_pulls(ledger: Ledger) -> None:
    """Write some lines at a time: all of them together would take more memory than the study."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("pull", "arm", "number", "seed", "state", "reward"))
    for pull, row in enumerate(rows_of(ledger), start=1):
        seed = ledger.seed_of(pull)
        table.writerow((pull, cell(row.arm), ledger.pull_number[pull - 1], seed, row.state, row.reward))
        if not pull % LINES:
            put(text.getvalue(), end="")
            text.seek(0)
            text.truncate()
    put(text.getvalue(), end="")


def rows_of(ledger: Ledger) -> Iterator[Row]:
    """All pulls as rows. Pulls that were charged have a state that import charges again."""
    for pull, state in enumerate(_states(ledger), start=1):
        reward = ledger.pull_reward[pull - 1] if state in WITH_REWARD else None
        yield Row(f"pull {pull}", ledger.spec.arms[ledger.pull_arm[pull - 1]], state, reward)


def _states(ledger: Ledger) -> list[str]:
    states = [STATES[state] for state in ledger.pull_state]
    if not ledger.certifies:
        return states
    followed = set()  # arms with a later pull that was told: cancelled pulls before it are charged
    for pull in range(ledger.issued, 0, -1):
        state, outcome, arm = ledger.pull_state[pull - 1], ledger.docket.outcome[pull], ledger.pull_arm[pull - 1]
        if outcome == evidence.TOLD or state == OUTSIDE:  # such a reward counts where it is imported, if at all
            followed.add(arm)
        elif state == TOLD:  # charged while it was pending, because too many rewards waited for it
            states[pull - 1] = "late"
        elif state == DROPPED and _is_left_out(ledger, outcome, arm in followed):
            states[pull - 1] = CANCELLED
    return states


def _is_left_out(ledger: Ledger, outcome: int, followed: bool) -> bool:
    if ledger.spec.rule == 1:
        return outcome == evidence.LEFT_OUT and ledger.spec.failure != "ignore"
    return outcome == evidence.CANCELLED and not followed


@click.command("import", short_help="Read a study, or results that you already have.")
@click.argument("file", metavar="FILE")
@option("--study NAME", "The study that the results belong to, or a new name for an exported study.", to="name")
@option("--again", "Count results that the study already has once more.")
@storage_option
def import_(file: str, name: str | None, again: bool, storage: str | None) -> int:
    """Read FILE (- is standard input): a study that export json wrote, or results that you already have.

    Results are CSV, such as export csv writes, or a JSON list, with arm, reward and optionally state. The study must
    not have handed out a pull yet. All rows are imported or none, and they count towards the budget. Their order does
    not matter: the certificate weighs them all together, once, at the first ask. A file whose results the study already
    has is refused, unless you say --again.

    Pulls whose state is dropped, pending, cancelled or late are charged to the certificate at their worst, or as the
    study's --failure says.

    \b
    Examples:
      thresher import prompts.json
      thresher import results.csv --study prompts
    """  # noqa: D301 - click wants the character itself
    text = read_text(file)
    data = read_json(text, file)
    if isinstance(data, dict) and "events" in data:
        _restore(data, name, storage, file)
        return FINISHED
    rows = list(read_rows(data, text, file))
    if name is None:
        raise InvalidInput("--study", "", "results belong to a study", "name it with --study NAME")
    study = study_at(name, storage)
    pulls = list(_checked(rows, study.spec))
    if not pulls:
        raise InvalidInput("file", file, "has no rows", SHAPES)
    budget, left = look(study, lambda ledger: (ledger.budget, (ledger.budget or 0) - ledger.issued))
    if budget is not None and len(pulls) > left:
        rule = f"has {plural(len(pulls), 'pull')}, and the study has {left:,} left of its budget of {budget:,}"
        raise InvalidInput("file", file, rule, "results count towards the budget: create the study with a larger one")
    if not again:
        look(study, lambda ledger: _check_is_new(pulls, ledger, file))
    import_pulls(study, [Result(*pull) for pull in pulls])
    say_done(name, look(study, lambda ledger: _imported(Counter(row.state for row in rows), ledger)))
    return FINISHED


def _check_is_new(pulls: list[tuple[str, float | None, bool]], ledger: Ledger, file: str) -> None:
    """Raise if the study already has these results, in this order, or if they begin with all that it has."""
    before = []
    for arm, reward, state in zip(ledger.pull_arm, ledger.pull_reward, ledger.pull_state, strict=True):
        before.append((ledger.spec.arms[arm], None if state == DROPPED else reward, state == LATE))
    known, found = "".join(map(repr, before)), "".join(map(repr, pulls))
    if known and ledger.issued == ledger.imported and (found in known or found.startswith(known)):
        rows = "these rows" if len(pulls) <= len(before) else f"the first {len(before):,} of its rows"
        rule = f"the study already has {rows}, and would count them twice"
        raise InvalidInput("file", file, rule, "import only new results, or say --again if these are new")


def rows_in(file: str) -> Iterator[Row]:
    """The pulls in a file of results or in an exported log."""
    text = read_text(file)
    data = read_json(text, file)
    is_log = isinstance(data, dict) and "events" in data
    return rows_of(folded(data, file)[1]) if is_log else read_rows(data, text, file)


def _checked(rows: Iterable[Row], spec: Spec) -> Iterator[tuple[str, float | None, bool]]:
    """What `import_pulls` takes; an error names the row."""
    for place, name, state, reward in rows:
        try:
            arm = name.strip() if isinstance(name, str) and name not in spec.index else name
            spec.arm(arm)
            yield arm, None if reward is None else spec.reward(reward), state == "late"
        except ThresherError as error:
            raise InvalidInput(f"{place}: {error}") from None


def _imported(states: Counter[str], ledger: Ledger) -> str:
    """A sentence that says what was imported."""
    charged, late = sum(states[state] for state in LOST), states["late"]
    said = f"imported {plural(sum(states.values()) - charged, 'reward')}"
    if charged:
        what = "charged" if ledger.certifies and ledger.spec.failure != "ignore" else "left out"
        said += f" and {plural(charged, 'pull')} to be {what}"
        said += f", {late:,} of them with a late reward" if late else ""
    if ledger.unweighed:
        said += "; they are weighed all together at the first ask"
    return said


def _restore(data: dict[str, Any], name: str | None, storage: str | None, file: str) -> None:
    """Store a whole log, if it is valid, under its own name or a new one."""
    events, _ = folded(data, file)
    study, store = checked_name("study", name or data.get("study")), store_at(storage)
    with store.turn(study):
        try:
            store.append(study, events, lease=3600.0)
        except Conflict:
            rule = f"already exists in {place_of(store)}"
            raise StudyExists("study", study, rule, "give another name: --study NAME") from None
    store.flush()
    say_done(study, f"imported into {place_of(store)}, with {plural(len(events), 'event')}")


def folded(data: dict[str, Any], file: str) -> tuple[list[Event], Ledger]:
    """The events of a log, if it is valid, and its ledger."""
    if data.get("format") != 1:
        said = f"format {shown(data['format'])}" if "format" in data else "no format"
        rule = f"has {said}, not the format 1 of an export"
        raise InvalidInput("file", file, rule, "export it again, or update thresher")
    place = "its list of events"
    try:
        events = []
        for count, item in enumerate(data["events"], start=1):
            place = f"event {count}"
            events.append(_event(item))
        place = "its events"
        ledger = ledgers.fold(events)
        found, place = _chained(events), "its end"
        _check_head(data.get("head"), found[-1], file, is_old=events[-1].digest is None)
        return found, ledger
    except (ThresherError, *NO_EVENT) as error:
        raise InvalidInput("file", file, f"is not the log of a study, {place}: {error}", "export it again") from None


def _chained(events: list[Event]) -> list[Event]:
    """The events with their digests. Either all are right, or there are none, as in version 0.1."""
    found, is_old = chained(events), all(event.digest is None for event in events)
    for event, right in zip(events, found, strict=True):
        if event.digest != right.digest and not is_old:
            rule = "does not match its digest: it was changed after the export"
            raise InvalidInput("event", event.seq, rule, "if that was on purpose, remove all digests and the head")
    return found


def _check_head(said: Any, last: Event, file: str, *, is_old: bool) -> None:
    """Raise unless the log ends where its export says. Version 0.1 wrote neither digests nor a head."""
    if not is_old and not (isinstance(said, dict) and said.keys() >= {"seq", "digest"}):
        raise InvalidInput("head", said, "must be an object with seq and digest", "remove all digests as well")
    if said is None:
        say(f"{file} does not say where its log ends, so a missing end would not be noticed")
        return
    head = Head(said["seq"], bytes.fromhex(said["digest"]))
    if head != (last.seq, last.digest):
        rule = f"is not the log's head, which was event {head.seq} when it was exported"
        raise InvalidInput("event", last.seq, rule)


def _event(item: dict[str, Any]) -> Event:
    """An event whose fields every store can hold. The ledger checks whether it may follow the ones before it."""
    event, kept = Event(**item), dict[str, Any]()  # kept: as every store returns them, so 1 is 1.0 and -0.0 is 0.0
    for field, value in item.items():
        if value is None:
            continue
        if field in ("reason", "cause", "key", "agent") and (not isinstance(value, str) or plain(value) != value):
            raise InvalidInput(field, value, "must be text")
        if field == "key" and len(value) > MAX_NAME:
            raise InvalidInput("key", value, f"must not be longer than {MAX_NAME} characters")
        if field in ("seq", "pull", "arm", "budget"):
            whole(field, value, least=0)
        if field in ("reward", "time"):
            kept[field] = finite(number(field, value))
        if field == "late":
            if value not in (False, True):
                raise InvalidInput("late", value, "must be true, false or null")
            kept["late"] = bool(value)
        if field == "digest":
            kept["digest"] = bytes.fromhex(value)
    return event._replace(**kept)
