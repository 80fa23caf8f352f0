"""Studies as wholes: list them, make one, look at it, extend it, delete it."""

import contextlib
import json
import time
from collections import Counter
from itertools import chain
from typing import Any

import click

from ..core.events import Event
from ..core.ledger import Ledger
from ..core.sentences import duration
from ..create import create as create_new
from ..create import open_study
from ..errors import DamagedStudy, InvalidInput, StoreFailed, StudyExists, shown
from ..log.store import Store
from ..study import Study, look
from ..text.masking import masked, one_line
from . import FINISHED, NOT_MET, put, say
from .question import arm_options, arms_given, question
from .storage import format_option, name_argument, place_of, storage_option, store_at, study_at

MOST_PULLS = 20  # of those under way, in a status for people


@click.command(short_help="List the studies of a store.")
@storage_option
@format_option("text", "json")
def studies(storage: str | None, style: str) -> int:
    """List the studies of a store, and how far each is. Exit status 1 says that one is damaged.

    \b
    Examples:
      thresher studies
      thresher studies --storage postgresql://me@server/lab --format json
    """  # noqa: D301 - click wants the character itself
    store = store_at(storage)
    found = [_summary_or_damage(name, store) for name in store.studies()]
    if style == "json":
        put(json.dumps({"format": 1, "studies": found}, indent=2, ensure_ascii=False))
    elif not found:
        say(f"there are no studies in {place_of(store)}")
    for row in found if style == "text" else ():
        if row["damaged"]:
            put(f"{shown(row['study'])[1:-1]}\t{one_line(row['damaged'])}")
            continue
        limit = "" if row["budget"] is None else f" of {row['budget']:,}"
        state = "done" if row["done"] else "open"
        pulls = f"{row['issued']:,}{limit} pulls"
        put(f"{row['study']}\t{row['arms']:,} arms\t{pulls}\t{row['pending']:,} under way\t{state}")
    return NOT_MET if any(row["damaged"] for row in found) else FINISHED


@click.command(short_help="Make a study without running it.")
@name_argument
@arm_options
@storage_option
def create(name: str, storage: str | None, **given: Any) -> int:
    """Make study NAME, for agents that ask and tell.

    \b
    Example:
      thresher create prompts --threshold 0.9 --arms prompts.txt --budget 2000
    """  # noqa: D301 - click wants the character itself
    asked, store = question(arms_given(given["file"], given["names"]), given), store_at(storage)
    try:
        create_new(name, asked, storage=store)
    except StudyExists:
        rule = f"is in {place_of(store)} already"
        raise StudyExists("study", name, rule, "thresher status shows it, thresher delete forgets it") from None
    return FINISHED


@click.command(short_help="How far a study is, and who works on it.")
@name_argument
@storage_option
@format_option("text", "json")
def status(name: str, storage: str | None, style: str) -> int:
    """Say how far study NAME is, who works on it, and what is under way. Pulls of agents that are gone are given up.

    \b
    Example:
      thresher status prompts --format json
    """  # noqa: D301 - click wants the character itself
    study = study_at(name, storage)
    with contextlib.suppress(StoreFailed):  # what can only be read can be read nevertheless
        study.sweep()
    found = {**_summary(study), **_people(study)}
    if style == "json":
        put(json.dumps({"format": 1, **found}, indent=2, ensure_ascii=False))
        return FINISHED
    for key in (
        "study",
        "storage",
        "arms",
        "threshold",
        "policy",
        "budget",
        "issued",
        "told",
        "pending",
        "retired",
        "done",
    ):
        put(f"{key:10} {found[key]}")
    put(f"{'head':10} event {found['events']:,}, {found['head']}")
    for agent in found["agents"]:
        seen = f"last {duration(max(0.0, time.time() - agent['last']))} ago" if agent["last"] else "nothing yet"
        runs = f", runs {one_line(agent['command'])}" if agent["command"] else ""
        counts = f"{agent['asked']:,} asked, {agent['told']:,} told"
        put(f"agent      {one_line(agent['agent'])}: {counts}, {seen}{runs}")
    for pull in found["under_way"][:MOST_PULLS]:
        age = duration(max(0.0, time.time() - pull["since"]))
        put(f"under way  pull {pull['pull']} of {pull['arm']}, for {age}, by {one_line(pull['agent'] or '?')}")
    if len(found["under_way"]) > MOST_PULLS:
        put(f"           … and {len(found['under_way']) - MOST_PULLS:,} more: --format json has all")
    return FINISHED


@click.command(short_help="The answer of a study so far.")
@name_argument
@storage_option
@format_option("table", "json", "csv", "markdown")
def verdict(name: str, storage: str | None, style: str) -> int:
    """Print the answer of study NAME so far.

    \b
    Example:
      thresher verdict prompts --format markdown
    """  # noqa: D301 - click wants the character itself
    from .output import print_verdict

    print_verdict(study_at(name, storage).verdict(), style)
    return FINISHED


@click.command(short_help="Give a study a larger budget.")
@name_argument
@click.option("--budget", type=int, required=True, metavar="N", help="The new total.")
@storage_option
def extend(name: str, budget: int, storage: str | None) -> int:
    """Give study NAME a larger budget.

    \b
    Example:
      thresher extend prompts --budget 4000
    """  # noqa: D301 - click wants the character itself
    study_at(name, storage).extend(budget=budget)
    return FINISHED


@click.command(short_help="Forget a study, for good.")
@name_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@storage_option
def delete(name: str, yes: bool, storage: str | None) -> int:
    """Forget study NAME, its log and all, for good. Agents that still work on it end with a message.

    \b
    Example:
      thresher delete prompts --yes
    """  # noqa: D301 - click wants the character itself
    store = store_at(storage)
    try:
        study = study_at(name, store)
        issued, told = look(study, lambda ledger: (ledger.issued, ledger.told))
        what = f"study {shown(name)} with {issued:,} pulls and {told:,} rewards"
    except DamagedStudy:
        what = f"study {shown(name)}, which is damaged"
    if not yes:
        click.confirm(f"Delete {what}?", abort=True, err=True)
    with store.turn(name):
        store.delete(name)
    return FINISHED


def _summary_or_damage(name: str, store: Store) -> dict[str, Any]:
    """How far a study is, or what is wrong with it: one that is damaged hides no other."""
    try:
        return {**_summary(open_study(name, storage=store)), "damaged": None}
    except (DamagedStudy, InvalidInput) as error:  # a name that no study can have
        return {"study": name, "damaged": error.rule, "storage": place_of(store)}


def _summary(study: Study) -> dict[str, Any]:
    def read(ledger: Ledger) -> dict[str, Any]:
        counts = {key: getattr(ledger, key) for key in ("budget", "issued", "told", "pending", "done")}
        retired = [ledger.spec.arms[arm] for arm in sorted(ledger.retired)]
        question = {"threshold": ledger.spec.threshold, "policy": str(ledger.spec.policy)}
        return {
            "study": study.name,
            "arms": len(ledger.spec.arms),
            **question,
            **counts,
            "retired": retired,
            "events": ledger.seq,
            "head": ledger.head,
        }

    return {**look(study, read), "storage": place_of(study.store)}


def _people(study: Study) -> dict[str, Any]:
    """Who wrote what when, and what is under way since when."""
    counts: Counter[tuple[str, str]] = Counter()
    last: dict[str, float] = {}
    asked: dict[int, Event] = {}
    for event in chain.from_iterable(study.pages()):
        agent = event.agent or "?"
        if event.kind in ("asked", "told"):
            counts[agent, event.kind] += 1
            last[agent] = event.time or 0.0
        if event.kind == "asked" and event.pull is not None:
            asked[event.pull] = event
        elif event.pull is not None:
            asked.pop(event.pull, None)
    commands = study.store.notes(study.name)
    names = study.spec.arms
    return {
        "agents": [
            {
                "agent": agent,
                "asked": counts[agent, "asked"],
                "told": counts[agent, "told"],
                "last": last.get(agent, 0.0),
                "command": masked(commands[agent]) if agent in commands else None,
            }
            for agent in sorted({*last, *commands})
        ],
        "under_way": [
            {"pull": pull, "arm": names[event.arm or 0], "agent": event.agent, "since": event.time or 0.0}
            for pull, event in asked.items()
        ],
    }
