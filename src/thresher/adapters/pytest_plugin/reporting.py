"""One report per test, for pytest and all its plugins: the terminal, JUnit XML, the cache of failed tests."""

import shlex
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr
from _pytest._io import TerminalWriter

from ...text.phrasing import plural
from ...text.quantities import number
from .sifting import SKIPPED, Result

WORDS = {  # status, the worst first: how pytest's terminal counts it, its letter, its word with -v
    "error": ("error", "E", "ERROR"),
    "failing": ("failed", "F", "FAILING"),
    "flaky": ("flaky", "~", "FLAKY"),
    "open": ("open", "?", "OPEN"),
    "skipped": ("skipped", "s", "SKIPPED"),
    "steady": ("passed", ".", "STEADY"),
}
STEADY_BUT_FLAKY = ("passed", "~", "STEADY, BUT FLAKY")
BAD = ("failing", "error")


class Collected(NamedTuple):
    """A test as a worker of xdist describes it to the controller, which has no items; ready for JSON."""

    nodeid: str
    position: int  # in the collection
    bar: float
    group: str | None  # with --dist loadgroup
    file: str
    line: int | None
    name: str
    path: str
    keywords: list[str]
    user_properties: Sequence[tuple[str, object]] = ()

    @property
    def location(self) -> tuple[str, int | None, str]:
        """The same as an item's."""
        return self.file, self.line, self.name


class Shown(TerminalRepr):
    """The first traceback of a test, and a sentence about all its runs."""

    def __init__(self, result: Result, path: str, line: int | None) -> None:
        self.text = traceback(result)
        self.reprcrash = ReprFileLocation(path, line or 0, sentence(result))

    def toterminal(self, tw: TerminalWriter) -> None:
        for line in self.text.splitlines():
            tw.line(line, red=line.startswith("E "), bold=line.startswith("E "))


def reports(result: Result, item: pytest.Item | Collected) -> list[pytest.TestReport]:
    """The reports of a test: setup, call and teardown, as if it had run once."""
    first, aside, status = result.tally.first, result.tally.aside, result.status
    path, line, _ = item.location
    longrepr: Any = None
    outcome = "passed"
    if status in BAD:
        outcome, longrepr = "failed", Shown(result, path, line)
    elif status == "skipped":
        reason = (result.row.reason or "").removeprefix(SKIPPED)
        outcome, longrepr = "skipped", (str(item.path), (line or 0) + 1, f"Skipped: {reason}")
    sections = [] if first is None else [(title, text) for title, text in first.sections]
    now, seconds = time.time(), result.tally.seconds
    properties = [*item.user_properties, *_properties(result)]
    keywords: Any = dict.fromkeys(item.keywords, 1)

    def report(when: Any, outcome: Any, longrepr: Any, seconds: float) -> pytest.TestReport:
        return pytest.TestReport(
            item.nodeid,
            item.location,
            keywords,
            outcome,
            longrepr,
            when,
            sections if longrepr is not None else [],
            seconds,
            now - seconds,
            now,
            properties,
        )

    last = report("teardown", "passed" if aside is None else "failed", aside, 0.0)
    main = report("setup" if status == "error" else "call", outcome, longrepr, seconds)
    main.thresher = result  # type: ignore[attr-defined]  # a report may carry whatever plugins need
    return [main, last] if status == "error" else [report("setup", "passed", None, 0.0), main, last]


def status_of(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """The hook ``pytest_report_teststatus``."""
    result: Result | None = getattr(report, "thresher", None)
    if result is None:
        return None
    return STEADY_BUT_FLAKY if result.status == "steady" and result.flaky else WORDS[result.status]


def add_to_junit(config: pytest.Config, report: pytest.TestReport) -> None:
    """Add ``<flakyFailure>`` to the test case of a test that had both outcomes and did not fail."""
    result: Result | None = getattr(report, "thresher", None)
    if result is None or not result.flaky or result.status in BAD:
        return
    from _pytest.junitxml import bin_xml_escape, xml_key

    xml = config.stash.get(xml_key, None)
    if xml is None:
        return
    first = result.tally.first
    kind = (first.raised if first is not None else None) or "failed"
    flaky = ET.Element("flakyFailure", message=bin_xml_escape(sentence(result)), type=bin_xml_escape(kind))
    ET.SubElement(flaky, "stackTrace").text = bin_xml_escape(traceback(result))
    xml.node_reporter(report).append(flaky)


def sentence(result: Result) -> str:
    """What is known about a test, in one sentence."""
    first, row = result.tally.first, result.row
    if result.status == "error":
        return row.reason or (result.tally.lines[0] if result.tally.lines else "no reward")
    rate = "no result" if row.mean is None else f"pass rate {row.mean:.3g}"
    message = "" if first is None or not first.message else f": {first.message}"
    return f"{rate} in {plural(row.seen, 'run')}, at least {number(result.at_least, exact=True)} required{message}"


def traceback(result: Result) -> str:
    """The first traceback of a test, and the command that runs it again."""
    tally, parts = result.tally, list[str]()
    if tally.first is not None and tally.first.traceback:
        parts.append(tally.first.traceback.rstrip())
    parts += tally.lines or ([sentence(result)] if result.status == "error" else [])
    if (command := rerun(result)) is not None:
        parts.append(f"Run it again with the seed that failed:\n    {command}")
    return "\n\n".join(parts) or sentence(result)


def rerun(result: Result) -> str | None:
    """The command that runs a test with the seed with which it first failed."""
    seed = result.tally.seed
    return None if seed is None else f"pytest {shlex.quote(result.nodeid)} --thresher-seed {seed}"


def _properties(result: Result) -> list[tuple[str, object]]:
    row = result.row
    found: dict[str, object] = {"rate": row.mean, "low": row.low, "high": row.high, "runs": result.runs}
    found |= {
        "status": result.status,
        "at_least": number(result.at_least, exact=True),
        "certified": row.certified,
        "seed": result.tally.seed,
    }
    return [(f"thresher_{name}", _number(value)) for name, value in found.items() if value is not None]


def _number(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower() if isinstance(value, bool) else value
