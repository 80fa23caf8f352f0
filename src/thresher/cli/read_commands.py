"""Commands that read a study: status, verdict, log and cases; and those that check it or its store."""

import json
import platform
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import metadata
from itertools import chain
from typing import Any, NamedTuple

import click

from .._version import __version__
from ..core import sentences
from ..core.checks import MAX_WHOLE
from ..core.events import Event, event_remarks, event_time_text, event_to_json
from ..core.hard_cases import CaseRow, hardest_cases, seen_cases
from ..core.parameters import BARS
from ..core.replay import verify as verified
from ..core.revisions import changes_in_revision, revision_at
from ..core.state import State
from ..core.verdict import answer_sentence_of
from ..errors import DamagedStudy, ThresherError, UnknownStudy, shown
from ..log.past import store_at_revision
from ..log.reader import read_event_at, read_log_pages
from ..study import Study, peek_study
from ..text.escapes import escaped_csv_cell, escaped_csv_line, escaped_visible
from ..text.masking import masked, masked_line
from ..text.phrasing import listed_phrase, plural
from ..text.quantities import amount_text, duration_text
from . import FINISHED, NOT_MET
from .options import (
    FORMATS,
    Whole,
    address_in_storage_option,
    format_option,
    name_argument,
    option,
    revision_option,
    scores_option,
    storage_option,
    store_of_option,
    study_of_option,
    study_of_option_or_damage,
    with_name_and_storage_options,
    with_revision_options,
)
from .output import cli_output_read_in_part, print_verdict, put_output, standard_output

MOST_AGENTS = 10  # agents that a status for people lists
MOST_PULLS = 20  # pending pulls that a status for people lists
SHOWN = (  # the fields of a status for people
    "study", "storage", "question", "answer", "spent", "created", "revision", "command", "arms", "cases", *BARS,
    "share", "baseline", "margin", "ratio", "tolerance", "policy", "guarantee", "find", "budget", "issued", "told",
    "pending", "retired",
)  # fmt: skip
POLL = 0.25  # seconds between two reads of --follow


@click.command()
@with_name_and_storage_options
@format_option("text", "json")
def status(study: Study, style: str) -> None:
    """Show how far study NAME is, who works on it, and which pulls are pending. It changes nothing.

    Example:
      thresher status prompts --format json
    """
    verdict = study.verdict()
    answer = {name: getattr(verdict, name) for name in ("spent", "left", "full_run")}
    summary = {**summary_of_status_command(study), **answer, **_agents_and_pulls(study)}
    if style == "json":
        put_output(json.dumps({"format": 1, **summary}, indent=2, ensure_ascii=False))
        return
    for key in SHOWN:
        if summary[key] not in (None, [], "all", 0.0):  # "all" is the usual guarantee
            _put(key.replace("_", " "), _in_words(key, summary))
    state = "done" if summary["done"] else "not done"
    _put("state", "no case is free, some are pending" if summary["waits"] else state)
    _put("head", f"event {summary['events']:,}, {summary['head']}")
    agents = sorted(summary["agents"], key=lambda agent: -agent["last"])
    for agent in agents[:MOST_AGENTS]:
        seen = f"last {duration_text(max(0.0, time.time() - agent['last']))} ago" if agent["last"] else "nothing yet"
        runs = f", runs {masked_line(agent['command'])}" if agent["command"] else ""
        counts = f"{agent['asked']:,} asked, {agent['told']:,} told"
        _put("agent", f"{masked_line(agent['agent'])}: {counts}, {seen}{runs}")
    if len(agents) > MOST_AGENTS:
        _put("", f"… and {len(agents) - MOST_AGENTS:,} earlier ones: --format json has all")
    for pull in summary["pending_pulls"][:MOST_PULLS]:
        age = duration_text(max(0.0, time.time() - pull["since"]))
        lost = ", whose heartbeat stopped: the next ask drops it" if pull["expired"] else ""
        case = f", case {pull['case']}" if "case" in pull else ""
        agent = masked_line(pull["agent"] or "?")
        _put("pending", f"pull {pull['pull']} of {pull['arm']}{case}, for {age}, by {agent}{lost}")
    if len(summary["pending_pulls"]) > MOST_PULLS:
        _put("", f"… and {len(summary['pending_pulls']) - MOST_PULLS:,} more: --format json has all")


def _put(name: str, text: str) -> None:
    put_output(f"{name:10} {text}")


@click.command()
@with_revision_options
@format_option(*FORMATS)
def verdict(study: Study, style: str) -> None:
    """Print the answer of study NAME so far.

    Examples:
      thresher verdict prompts --format markdown
      thresher verdict prompts --revision 2
    """
    print_verdict(study.verdict(), style)


def _in_words(key: str, summary: dict[str, Any]) -> str:
    """A value of a status as people read it."""
    value = summary[key]
    if key in (*BARS, "margin", "tolerance") and summary["unit"] is not None:
        return amount_text(value, summary["unit"])
    if key == "share":
        return f"{100 * value:.10g} %"
    if isinstance(value, list):
        return listed_phrase(value, MOST_PULLS)
    if isinstance(value, float):
        return f"{value:.10g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def summary_of_status_command(study: Study) -> dict[str, Any]:
    """How far a study is."""

    def read(ledger: State) -> dict[str, Any]:
        counts = {key: getattr(ledger, key) for key in ("budget", "issued", "told", "pending", "done", "waits")}
        spec = ledger.spec
        return {
            "study": study.name,
            "arms": len(spec.arms),
            "question": sentences.question_sentence_of(spec),
            **sentences.sentence_wording(spec).asked,
            "policy": str(spec.policy),
            "cases": spec.case_count or None,
            "guarantee": spec.guarantee if ledger.certifies else None,
            "find": spec.find,
            "command": masked(spec.evaluator) if spec.evaluator else None,
            "revision": ledger.revision,
            "answer": answer_sentence_of(ledger),
            **counts,
            "retired": [spec.arms[arm] for arm in sorted(ledger.retired)],
            "events": ledger.seq,
            "head": ledger.head,
        }

    return {**peek_study(study, read), "created": study.created, "storage": address_in_storage_option(study.store)}


def _agents_and_pulls(study: Study) -> dict[str, Any]:
    """The agents with their numbers of events, and the pending pulls with the times of their asks."""
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
    expired = set(study.store.expired(study.name))
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
                "pull": pull.id,
                "arm": pull.arm,
                "agent": asked[pull.id].agent,
                "since": asked[pull.id].time or 0.0,
                "expired": pull.id in expired,
                **({} if pull.case is None else {"case": pull.case}),
            }
            for pull in study.pending()
            if pull.id in asked
        ],
    }


@click.command()
@with_name_and_storage_options
@option("--follow", "Keep printing new events until Ctrl-C.")
@option("--after SEQ", "Print only events after this one.", type=Whole(0, MAX_WHOLE), default=0)
@format_option("text", "json")
def log(study: Study, follow: bool, after: int, style: str) -> None:
    """Print the log of study NAME, one event per line, as text or as JSON objects.

    Examples:
      thresher log prompts --follow
      thresher log prompts --after 1000 --format json
    """
    last = read_event_at(study.store, study.name, after)
    last = (
        peek_study(study, lambda ledger: ledger.last) if last is None and after else last
    )  # that event does not exist yet
    while True:
        try:
            for page in read_log_pages(study.store, study.name, last):
                lines = map(_event_as_json, page) if style == "json" else _event_lines(study, page)
                for event, line in zip(page, lines, strict=True):
                    if event.seq > after:
                        put_output(line)
                last = page[-1]
        except (DamagedStudy, UnknownStudy):  # peek_study raises the reason, unless a crash cut off the log's end
            last = peek_study(study, lambda ledger: ledger.last)
        if not follow:
            return
        time.sleep(POLL)
        peek_study(study, lambda ledger: None)  # raises if the study was deleted or replaced


def _event_as_json(event: Event) -> str:
    return json.dumps(event_to_json(event))


def _event_lines(study: Study, page: Sequence[Event]) -> list[str]:
    """Events as lines for people, with the names that their arms had then."""

    def read(ledger: State) -> list[str]:
        lines = []
        for event in page:
            revision, spec = revision_at(ledger, event.seq)
            what = None
            if event.kind == "revised":
                what = f"revision {revision}: {sentences.changes_sentence(changes_in_revision(ledger, revision))}"
            lines.append(event_line(event, spec.arms, what))
        return lines

    return peek_study(study, read)


def event_line(event: Event, names: tuple[str, ...], what: str | None = None) -> str:
    """An event as a line for people.

    >>> event_line(Event(3, "told", 1, 0, 0.5, time=0.0, agent="host:7"), ("terse",))
    '3  1970-01-01T00:00:00Z  told  pull 1 of terse  0.5  host:7'
    """
    arm = None if event.arm is None else names[event.arm]
    parts = [
        str(event.seq),
        event_time_text(event.time or 0.0),
        event.kind,
        what,
        arm if event.pull is None else f"pull {event.pull}" + (f" of {arm}" if arm else ""),
        None if event.reward is None else f"{event.reward:g}",
        "late" if event.late else None,
        None if event.budget is None else f"budget {event.budget:,}",
        "chosen by the caller" if event.cause == "chosen" else event.cause,
        _reason_of(event),
        event.agent,
    ]
    return "  ".join(masked_line(part) for part in parts if part)


def _reason_of(event: Event) -> str | None:
    """The reason of an event in words; of a reward, the baseline's in the same pair, its cost and its note."""
    if event.cause == "chosen" and event.reason is not None:
        return f"case {event.reason}"
    remarks = event_remarks(event) if event.kind == "told" and event.cause != "failed" else None
    if remarks is None:
        return event.reason
    baseline = [] if remarks.baseline is None else [f"baseline {remarks.baseline:g}"]
    cost = [] if remarks.cost is None else [f"cost {remarks.cost:g}"]
    return " ".join([*baseline, *cost, *([remarks.note] if remarks.note else [])])


# ``thresher cases``: the cases of an eval set, the hardest first.

MOST = 20  # cases for people, without --all
WIDE = 120  # characters of a line where there is no terminal
LONGEST = 32  # characters of a case's name, for people


@click.command()
@with_revision_options
@option("--all", f"List all cases, not only the {MOST} hardest.", to="everything")
@format_option("text", "json", "csv", text="JSON and CSV have all cases; CSV has a column for each arm.")
def cases(study: Study, everything: bool, style: str) -> None:
    """List the cases of study NAME that have a reward, with the arms' rewards. Cases that most arms failed come first.

    An arm failed a case if its reward does not reach the bar, or is worse than the baseline's. Where rewards are
    graded, the worst mean comes first. A case whose evaluation failed for good is missing for that arm.

    Examples:
      thresher cases prompts
      thresher cases prompts --all
      thresher cases prompts --format csv
      thresher cases prompts --revision 2
    """
    most = None if everything or style != "text" else MOST
    rows, seen, arms, missing = peek_study(study, lambda ledger: _case_table(ledger, most))
    spec = study.spec
    if style == "json":
        head = {
            "format": 1,
            "study": study.name,
            "cases": spec.case_count,
            "seen": seen,
            **sentences.sentence_wording(spec).asked,
        }
        lines = iter([json.dumps({**head, "rows": [row.to_dict() for row in rows]}, indent=2, ensure_ascii=False)])
    elif style == "csv":
        lines = (line.removesuffix("\n") for line in _csv(rows, spec.arms))
    else:
        lines = chain(_text(rows, arms, spec.unit), ["", _summary(len(rows), seen, spec.case_count), *missing])
    with cli_output_read_in_part():
        for line in lines:
            put_output(line)


class CaseTable(NamedTuple):
    """The rows of the command, and the other data that it shows, from one state of the study."""

    rows: list[CaseRow]
    seen: int  # cases that have a reward
    arms: list[str]  # those that have a reward, or have given up a case
    missing: list[str]  # a line about cases without a reward because they failed too often, if there are any


def _case_table(ledger: State, most: int | None) -> CaseTable:
    rows, names = hardest_cases(ledger, most), ledger.spec.arms  # hardest refuses a study without cases
    missing = {name: ledger.cases.missing[arm] if ledger.cases else 0 for arm, name in enumerate(names)}
    arms = [name for arm, name in enumerate(names) if ledger.board.seen[arm] or missing[name]]
    counts = [f"{escaped_visible(name)} {count:,}" for name, count in missing.items() if count]
    line = f"Missing, because they failed, and counted as the worst: {listed_phrase(counts)}."
    return CaseTable(rows, seen_cases(ledger), arms, [line] if counts else [])


def _summary(shown: int, seen: int, count: int) -> str:
    listed = f"The {shown:,} hardest of {plural(seen, 'case')} with a reward" if shown < seen else ""
    listed = listed or f"{plural(seen, 'case')} with a reward"
    rest = f"; {count - seen:,} of {count:,} have none" if seen < count else ""
    more = "; --all lists all" if shown < seen else ""
    return f"{listed}{rest}{more}."


def _csv(rows: Sequence[CaseRow], arms: Sequence[str]) -> Iterator[str]:
    yield escaped_csv_line(["case", "failed", "passed", "mean", *map(escaped_csv_cell, arms)])
    for row in rows:
        rewards = (row.rewards.get(arm) for arm in arms)
        yield escaped_csv_line([escaped_csv_cell(str(row.case)), row.failed, row.passed, row.mean, *rewards])


def _text(rows: Sequence[CaseRow], arms: Sequence[str], unit: str | None) -> Iterator[str]:
    """A table: a column for each arm if they fit, otherwise the names of those that failed."""
    width = shutil.get_terminal_size((WIDE, 24)).columns if standard_output().isatty() else WIDE
    table = [
        ["case", *(_shortened(str(row.case)) for row in rows)],
        ["failed", *(f"{row.failed:,}" for row in rows)],
        ["passed", *(f"{row.passed:,}" for row in rows)],
        ["mean", *(amount_text(row.mean, unit) for row in rows)],
    ]
    if any(row.missing_by for row in rows):
        table.append(["missing", *(f"{len(row.missing_by) or ''}" for row in rows)])
    of_arms = [[escaped_visible(arm), *(_reward(row, arm, unit) for row in rows)] for arm in arms]
    if _width([*table, *of_arms]) <= width:
        table += of_arms
        yield from _lines(table)
        return
    room = max(20, width - _width(table) - 2)
    yield from _lines([*table, ["failed by", *(_failing(row, room) for row in rows)]])


def _reward(row: CaseRow, arm: str, unit: str | None) -> str:
    return amount_text(row.rewards[arm], unit) if arm in row.rewards else "missing" if arm in row.missing_by else ""


def _failing(row: CaseRow, room: int) -> str:
    """The names of the arms that failed a case, as many as fit."""
    names = [escaped_visible(arm) for arm in row.failed_by]
    text = ", ".join(names)
    while len(text) > room and len(names) > 1:
        names.pop()
        text = f"{', '.join(names)} and {row.failed - len(names):,} more"
    return text


def _shortened(name: str) -> str:
    text = escaped_visible(name)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _width(columns: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) for column in columns) + 2 * (len(columns) - 1)


def _lines(columns: Sequence[Sequence[str]]) -> Iterator[str]:
    """The columns side by side; names to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in columns]
    for cells in zip(*columns, strict=True):
        padded = [
            text.ljust(width) if at == 0 or columns[at][0] == "failed by" else text.rjust(width)
            for at, (text, width) in enumerate(zip(cells, widths, strict=True))
        ]
        yield "  ".join(padded).rstrip()


# Check a study (``thresher verify``) or a store (``thresher doctor``).


@click.command()
@name_argument
@revision_option
@scores_option
@storage_option
@format_option("text", "json")
def verify(name: str, revision: int | None, scores: tuple[object, ...], storage: str | None, style: str) -> int:
    """Check the log of study NAME: no gap, every event valid, every pull for the arm that the policy chooses.

    Every event must also match its digest, up to the head that the store recorded. Prints the head, so that two people
    can see that they have the same log, and a digest of the state that is the same on any machine. Exit status 1 means
    that something is wrong.

    Examples:
      thresher verify prompts
      thresher verify prompts --policy mine:score
      thresher verify prompts --revision 2
    """
    store = store_of_option(storage)
    if name not in store.studies():
        study_of_option(name, store)  # raises an error that lists what exists
    if revision is not None:
        store = store_at_revision(store, name, revision)
    report = verified(chain.from_iterable(read_log_pages(store, name)))
    if style == "json":
        put_output(json.dumps({"format": 1, "study": name, "sound": report.sound, **report._asdict()}))
    elif report.sound:
        put_output(f"{plural(report.events, 'event')}, every decision re-derived; state {report.digest}")
        put_output(f"Head of the log: event {report.events:,}, {report.head}")
        if not report.anywhere:
            only = "its decisions can be re-derived on the same machine only"
            put_output(f"its policy, {report.policy}, may use more than + − × ÷ √: {only}")
    else:
        put_output(
            f"event {report.wrong}: {masked_line(report.reason or '')}; the {report.events:,} before it are right"
        )
    return FINISHED if report.sound else NOT_MET


@click.command()
@storage_option
@format_option("text", "json")
def doctor(storage: str | None, style: str) -> int:
    """Print versions, how durable the store is, and what is wrong with it. Exit status 1 means that something is wrong.

    Example:
      thresher doctor --storage postgresql://me@server/lab
    """
    facts = {"thresher": __version__, "python": f"{platform.python_version()} on {platform.platform()}"}
    for package in ("apsw", "psycopg", "click", "rich"):
        try:
            facts[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            facts[package] = "not installed"
    try:
        store = store_of_option(storage)
        facts.update(store.describe())
        names = store.studies()
        facts["studies"] = f"{len(names)}, each checked"
        for name in names:
            if damage := study_of_option_or_damage(name, store)[1]:
                facts[f"! study {shown(name, 40)}"] = damage
    except ThresherError as error:
        facts["! store"] = str(error)
    facts = {key: masked(value) for key, value in facts.items()}
    is_sound = not any(key.startswith("!") for key in facts)
    if style == "json":
        put_output(json.dumps({"format": 1, "sound": is_sound, "found": facts}, indent=2, ensure_ascii=False))
    else:
        for key, value in facts.items():
            put_output(f"{key:12} {masked_line(value)}")
    return FINISHED if is_sound else NOT_MET
