"""Read a study: its status, its verdict, and its log."""

import json
import time
from collections import Counter
from itertools import chain
from typing import Any

import click

from ..core import sentences
from ..core.checks import MAX_WHOLE
from ..core.events import Event, moment, remarks_of, to_json
from ..core.ledger import Ledger
from ..core.parameters import BARS
from ..core.spec import Spec
from ..errors import DamagedStudy, UnknownStudy
from ..log.reader import event_at, pages
from ..study import Study, peek
from ..text.masking import masked, one_line
from ..text.phrasing import listed
from ..text.quantities import amount, duration
from . import put
from .options import FORMATS, Whole, address_of, format_option, on_study, option

MOST_PULLS = 20  # pending pulls that a status for people lists
SHOWN = (  # in a status for people
    "study", "storage", "question", "created", "command", "arms", "cases", *BARS, "share", "baseline", "margin",
    "ratio", "policy", "guarantee", "find", "budget", "issued", "told", "pending", "retired",
)  # fmt: skip
ASKED = ("lower_is_better", "share", "baseline", "ratio", "unit")  # of a specification
POLL = 0.25  # seconds between two reads of --follow


@click.command()
@on_study
@format_option("text", "json")
def status(study: Study, style: str) -> None:
    """Show how far study NAME is, who works on it, and which pulls are pending. It changes nothing.

    Example:
      thresher status prompts --format json
    """
    found = {**summary_of(study), **_people(study)}
    if style == "json":
        put(json.dumps({"format": 1, **found}, indent=2, ensure_ascii=False))
        return
    for key in SHOWN:
        if found[key] not in (None, [], "all"):  # "all" is the usual guarantee
            _put(key.replace("_", " "), _in_words(key, found))
    _put("state", "no case is free, some are pending" if found["waits"] else "done" if found["done"] else "not done")
    _put("head", f"event {found['events']:,}, {found['head']}")
    for agent in found["agents"]:
        seen = f"last {duration(max(0.0, time.time() - agent['last']))} ago" if agent["last"] else "nothing yet"
        runs = f", runs {one_line(agent['command'])}" if agent["command"] else ""
        counts = f"{agent['asked']:,} asked, {agent['told']:,} told"
        _put("agent", f"{one_line(agent['agent'])}: {counts}, {seen}{runs}")
    for pull in found["pending_pulls"][:MOST_PULLS]:
        age = duration(max(0.0, time.time() - pull["since"]))
        lost = ", whose heartbeat stopped: the next ask drops it" if pull["expired"] else ""
        case = f", case {pull['case']}" if "case" in pull else ""
        what = f"pull {pull['pull']} of {pull['arm']}{case}"
        _put("pending", f"{what}, for {age}, by {one_line(pull['agent'] or '?')}{lost}")
    if len(found["pending_pulls"]) > MOST_PULLS:
        _put("", f"… and {len(found['pending_pulls']) - MOST_PULLS:,} more: --format json has all")


def _put(name: str, text: str) -> None:
    put(f"{name:10} {text}")


@click.command()
@on_study
@format_option(*FORMATS)
def verdict(study: Study, style: str) -> None:
    """Print the answer of study NAME so far.

    Example:
      thresher verdict prompts --format markdown
    """
    from .output import print_verdict

    print_verdict(study.verdict(), style)


def _in_words(key: str, found: dict[str, Any]) -> str:
    """A value of a status as people read it."""
    value = found[key]
    if key in (*BARS, "margin") and found["unit"] is not None:
        return amount(value, found["unit"])
    if key == "share":
        return f"{100 * value:.10g} %"
    if isinstance(value, list):
        return listed(value, MOST_PULLS)
    if isinstance(value, float):
        return f"{value:.10g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def asked_by(spec: Spec) -> dict[str, Any]:
    """What a specification asks of an arm."""
    return {**sentences.look_of(spec).bars, **{name: getattr(spec, name) for name in ASKED}}


def summary_of(study: Study) -> dict[str, Any]:
    """How far a study is."""

    def read(ledger: Ledger) -> dict[str, Any]:
        counts = {key: getattr(ledger, key) for key in ("budget", "issued", "told", "pending", "done", "waits")}
        spec = ledger.spec
        return {
            "study": study.name,
            "arms": len(spec.arms),
            "question": sentences.question_of(spec),
            **asked_by(spec),
            "policy": str(spec.policy),
            "cases": spec.case_count or None,
            "guarantee": spec.guarantee if ledger.certifies else None,
            "find": spec.find,
            "command": masked(ledger.evaluators[-1]) if ledger.evaluators else None,
            **counts,
            "retired": [spec.arms[arm] for arm in sorted(ledger.retired)],
            "events": ledger.seq,
            "head": ledger.head,
        }

    return {**peek(study, read), "created": study.created, "storage": address_of(study.store)}


def _people(study: Study) -> dict[str, Any]:
    """Which agents wrote what, and which pulls are pending since when."""
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
    commands, names = study.store.notes(study.name), study.spec.arms
    expired = set(study.store.expired(study.name))
    cases = {pull.id: pull.case for pull in study.pending() if pull.case is not None}
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
        "pending_pulls": [
            {
                "pull": pull,
                "arm": names[event.arm or 0],
                "agent": event.agent,
                "since": event.time or 0.0,
                "expired": pull in expired,
                **({"case": cases[pull]} if pull in cases else {}),
            }
            for pull, event in asked.items()
        ],
    }


@click.command()
@on_study
@option("--follow", "Keep printing new events until Ctrl-C.")
@option("--after SEQ", "Print only events after this one.", type=Whole(0, MAX_WHOLE), default=0)
@format_option("text", "json")
def log(study: Study, follow: bool, after: int, style: str) -> None:
    """Print the log of study NAME, one event per line, as text or as JSON objects.

    Examples:
      thresher log prompts --follow
      thresher log prompts --after 1000 --format json
    """
    names, last = study.spec.arms, event_at(study.store, study.name, after)
    last = peek(study, lambda ledger: ledger.last) if last is None and after else last  # that event does not exist yet
    while True:
        try:
            for page in pages(study.store, study.name, last):
                for event in page:
                    if event.seq > after:
                        put(json.dumps(to_json(event)) if style == "json" else line(event, names))
                last = page[-1]
        except (DamagedStudy, UnknownStudy):  # peek raises the reason, unless a crash cut off the log's end
            last = peek(study, lambda ledger: ledger.last)
        if not follow:
            return
        time.sleep(POLL)
        peek(study, lambda ledger: None)  # raises if the study was deleted or replaced


def line(event: Event, names: tuple[str, ...]) -> str:
    """An event as a line for people.

    >>> line(Event(3, "told", 1, 0, 0.5, time=0.0, agent="host:7"), ("terse",))
    '3  1970-01-01T00:00:00Z  told  pull 1 of terse  0.5  host:7'
    """
    arm = None if event.arm is None else names[event.arm]
    parts = [
        str(event.seq),
        moment(event.time or 0.0),
        event.kind,
        arm if event.pull is None else f"pull {event.pull} of {arm}",
        None if event.reward is None else f"{event.reward:g}",
        "late" if event.late else None,
        None if event.budget is None else f"budget {event.budget:,}",
        "chosen by the caller" if event.cause == "chosen" else event.cause,
        _said(event),
        event.agent,
    ]
    return "  ".join(one_line(part) for part in parts if part)


def _said(event: Event) -> str | None:
    """The reason, in words: of a reward, the baseline's in the same pair, its note and its cost."""
    if event.cause == "chosen" and event.reason is not None:
        return f"case {event.reason}"
    remarks = remarks_of(event) if event.kind == "told" and event.cause != "failed" else None
    if remarks is None:
        return event.reason
    baseline = [] if remarks.baseline is None else [f"baseline {remarks.baseline:g}"]
    cost = [] if remarks.cost is None else [f"cost {remarks.cost:g}"]
    return " ".join([*baseline, *cost, *([remarks.note] if remarks.note else [])])
