"""One report per test, for pytest and its plugins: the terminal, JUnit XML, the cache of failed tests."""

import math
import re
import shlex
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr
from _pytest._io import TerminalWriter
from _pytest.terminal import TerminalReporter

from ...core.sentences import claim_sentence, origin_sentence, remaining_in_sentence, spent_sentence
from ...core.verdict import Verdict
from ...text.escapes import escaped_markdown, escaped_visible
from ...text.phrasing import plural
from ...text.quantities import duration_text, number_text, percent_text
from .session_options import Options, SessionBar
from .studies import SKIPPED, PytestStudyResult, SessionStudies

WORDS = {  # statuses, the worst first: the word of pytest's counts, the letter, and the word with -v
    "error": ("error", "E", "ERROR"),
    "misses": ("failed", "F", "MISSES"),
    "open": ("open", "?", "OPEN"),
    "skipped": ("skipped", "s", "SKIPPED"),
    "reaches": ("passed", ".", "REACHES"),
}
FLAKY = {"open": ("open", "~", "OPEN, FLAKY"), "reaches": ("passed", "~", "REACHES, BUT FLAKY")}
BAD = ("misses", "error")


class ReportedTest(NamedTuple):
    """A test as a worker of xdist describes it to the controller, which has no items; ready for JSON."""

    nodeid: str
    position: int  # in the collection
    bar: SessionBar  # from a worker: its two numbers
    group: str | None  # with --dist loadgroup
    file: str
    line: int | None
    name: str
    path: str
    keywords: list[str]
    user_properties: Sequence[tuple[str, object]] = ()

    @property
    def location(self) -> tuple[str, int | None, str]:
        """The location, as an item has it."""
        return self.file, self.line, self.name


class Longrepr(TerminalRepr):
    """The first traceback of a test, and a sentence about all its runs."""

    def __init__(self, result: PytestStudyResult, path: str, line: int | None) -> None:
        self.text = traceback_in_test_report(result)
        self.reprcrash = ReprFileLocation(path, line or 0, sentence_of_test_report(result))

    def toterminal(self, tw: TerminalWriter) -> None:
        for line in self.text.splitlines():
            tw.line(line, red=line.startswith("E "), bold=line.startswith("E "))


def reports(result: PytestStudyResult, item: pytest.Item | ReportedTest) -> list[pytest.TestReport]:
    """The reports of a test: setup, call and teardown, as if it had run once."""
    first, teardown_error, status = result.tally.first, result.tally.teardown_error, result.status
    path, line, _ = item.location
    longrepr: Any = None
    outcome = "passed"
    if status in BAD:
        outcome, longrepr = "failed", Longrepr(result, path, line)
    elif status == "skipped":
        reason = (result.row.reason or "").removeprefix(SKIPPED)
        outcome, longrepr = "skipped", (str(item.path), (line or 0) + 1, f"Skipped: {reason}")
    sections = [] if first is None else [(title, text) for title, text in first.sections]
    now, seconds = time.time(), result.tally.seconds
    properties = [*item.user_properties, *_properties(result)]
    test = (item.nodeid, item.location, dict.fromkeys(item.keywords, 1))

    def report(when: Any, outcome: Any, longrepr: Any, seconds: float) -> pytest.TestReport:
        shown = sections if longrepr is not None else []
        fields: list[Any] = [*test, outcome, longrepr, when, shown, seconds, now - seconds, now, properties]
        return pytest.TestReport(*fields)

    teardown = report("teardown", "passed" if teardown_error is None else "failed", teardown_error, 0.0)
    main = report("setup" if status == "error" else "call", outcome, longrepr, seconds)
    main.thresher = result  # type: ignore[attr-defined]  # plugins may add attributes to reports
    return [main, teardown] if status == "error" else [report("setup", "passed", None, 0.0), main, teardown]


def status_of_test_report(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """The hook ``pytest_report_teststatus``."""
    result: PytestStudyResult | None = getattr(report, "thresher", None)
    if result is None:
        return None
    return FLAKY.get(result.status, WORDS[result.status]) if result.flaky else WORDS[result.status]


def add_report_to_junit(config: pytest.Config, report: pytest.TestReport) -> None:
    """Add ``<flakyFailure>`` to the test case of a test that had both outcomes and did not fail."""
    result: PytestStudyResult | None = getattr(report, "thresher", None)
    if result is None or not result.flaky or result.status in BAD:
        return
    from _pytest.junitxml import bin_xml_escape, xml_key

    xml = config.stash.get(xml_key, None)
    if xml is None:
        return
    first = result.tally.first
    kind = (first.raised if first is not None else None) or "failed"
    flaky = ET.Element(
        "flakyFailure", message=bin_xml_escape(sentence_of_test_report(result)), type=bin_xml_escape(kind)
    )
    ET.SubElement(flaky, "stackTrace").text = bin_xml_escape(traceback_in_test_report(result))
    xml.node_reporter(report).append(flaky)


def sentence_of_test_report(result: PytestStudyResult) -> str:
    """The result of a test in one sentence."""
    first, row = result.tally.first, result.row
    if result.status == "error":
        return row.reason or (result.tally.errors[0] if result.tally.errors else "no reward")
    rate = "no result" if row.mean is None else f"pass rate {percent_text(row.mean)}"
    message = "" if first is None or not first.message else f": {first.message}"
    return f"{rate} in {plural(row.seen, 'run')}; the bar is {result.bar}{message}"


def traceback_in_test_report(result: PytestStudyResult) -> str:
    """The first traceback of a test, and the command that runs it again."""
    tally, parts = result.tally, list[str]()
    if tally.first is not None and tally.first.traceback:
        parts.append(tally.first.traceback.rstrip())
    parts += tally.errors or ([sentence_of_test_report(result)] if result.status == "error" else [])
    if (command := rerun_in_test_report(result)) is not None:
        parts.append(f"Run it again with the seed that failed:\n    {command}")
    return "\n\n".join(parts) or sentence_of_test_report(result)


def rerun_in_test_report(result: PytestStudyResult) -> str | None:
    """The command that runs a test with the seed with which it first failed."""
    seed = result.tally.seed
    return None if seed is None else f"pytest {shlex.quote(result.nodeid)} --thresher-seed {seed}"


def _properties(result: PytestStudyResult) -> list[tuple[str, object]]:
    row = result.row
    values = {
        "rate": row.mean,
        "low": row.low,
        "high": row.high,
        "runs": result.runs,
        "status": result.status,
        "flaky": str(result.flaky).lower(),
        "at_least": number_text(result.bar.at_least, exact=True),
        "tolerance": number_text(result.bar.tolerance, exact=True),
        "certified": str(row.certified).lower(),
        "seed": result.tally.seed,
    }
    return [
        (f"thresher_{name}", f"{value:.6g}" if isinstance(value, float) else value)
        for name, value in values.items()
        if value is not None
    ]


# The summary at the end: a table, tracebacks and the guarantee, on a terminal and in Markdown.

HEADS = ("state", "pass rate", "between", "runs", "test")
FEW = 10  # rows of open tests that never failed; there may be thousands, and -v shows all
MOST = 100  # tracebacks in Markdown, because CI services limit the size of a page (GitHub: 1 MB)
ORDER = list(WORDS)


def state_in_test_report(result: PytestStudyResult) -> str:
    """A test's status in words."""
    flaky = {"reaches": ", but flaky", "open": ", flaky"}.get(result.status, "") if result.flaky else ""
    return f"{result.status}{flaky}"


def notable_reports(results: Sequence[PytestStudyResult]) -> list[PytestStudyResult]:
    """The tests that do not plainly reach the bar, the worst first, and flaky ones before others."""
    doubtful = [result for result in results if result.status != "reaches" or result.flaky]
    return sorted(doubtful, key=lambda result: (ORDER.index(result.status), not result.flaky, result.row.mean or 0.0))


def abridged_reports(results: Sequence[PytestStudyResult]) -> tuple[list[PytestStudyResult], int]:
    """The notable tests, with only a few of the open ones that never failed, and how many of these are left out."""
    rows = notable_reports(results)
    plain = [result for result in rows if result.status == "open" and not (result.tally.first or result.tally.failures)]
    hidden = {result.nodeid for result in plain[FEW:]}
    return [result for result in rows if result.nodeid not in hidden], len(hidden)


def cells_of_test_report(result: PytestStudyResult) -> tuple[str, ...]:
    """A row of the table."""
    row = result.row
    wording = result.bar.wording
    mean = "" if row.mean is None else wording.estimate(row.mean)
    words = ", ".join(filter(None, [state_in_test_report(result), row.qualifier if row.certified else ""]))
    return words, mean, wording.span(row.low, row.high), f"{result.runs:,}", result.nodeid


def answer_of_test_reports(results: Sequence[PytestStudyResult], verdicts: Sequence[Verdict], options: Options) -> str:
    """How many tests reach the bar, miss it and are open, and how many runs that took."""
    count = Counter[str](result.status for result in results)
    flaky = Counter[str](result.status for result in results if result.flaky)
    notes = {name: f" ({f'{many:,} of them ' if many < count[name] else ''}flaky)" for name, many in flaky.items()}
    reach = count["reaches"]
    bar = claim_sentence(results[0].bar.wording).rest if len(verdicts) == 1 else "the bar"
    words = [f"{plural(reach, 'test')} {'reaches' if reach == 1 else 'reach'} {bar}{notes.get('reaches', '')}"]
    words += [f"{_missed(count)}{notes.get('misses', '')}"]
    words += [f"{count['open']:,} open{notes.get('open', '')}"]
    words += [f"{count[name]:,} {name}" for name in ("error", "skipped") if count[name]]
    runs, full = sum(result.runs for result in results), [verdict.full_run for verdict in verdicts]
    whole = None if None in full else sum(filter(None, full))
    return f"{', '.join(words)}. {spent_sentence(runs, 0, options.budget, whole, None, noun='run')}"


def _missed(count: Counter[str]) -> str:
    return f"{count['misses']:,} {'misses' if count['misses'] == 1 else 'miss'} it"


def left_out_of_test_reports(hidden: int) -> str:
    """The note about tests that the table does not show."""
    return f"and {plural(hidden, 'more test')} that {'is' if hidden == 1 else 'are'} open and never failed"


def guarantees_of_test_reports(verdicts: Sequence[Verdict], options: Options) -> Iterator[str]:
    """The guarantees, the origin of the outcomes, and what would help open tests."""
    for verdict in verdicts:
        certified = any(row.certified for row in verdict.rows)
        bar = "" if len(verdicts) == 1 else f"{SessionBar(verdict.at_least or 0.0, verdict.tolerance)}: "
        yield f"{bar}{verdict.guarantee if certified else 'Nothing is certified yet.'}"
        if text := origin_sentence(verdict.earlier, verdict.told, verdict.since, verdict.others, noun="outcomes"):
            yield text
        yield from verdict.hints
    if len(verdicts) > 1 and options.guarantee == "all":
        yield f"Together, they hold with a probability of at least {percent_text(options.confidence, exact=True)}."


def write_test_reports(
    tr: TerminalReporter, results: Sequence[PytestStudyResult], verdicts: Sequence[Verdict], options: Options
) -> None:
    """The summary on the terminal: quiet with -q, every test in the table with -v."""
    verbosity, style = tr.verbosity, tr.config.getoption("tbstyle", "auto")
    rows, hidden = (list(results), 0) if verbosity > 0 else abridged_reports(results)
    tr.ensure_newline()  # end the line of progress here, not below our title
    if verbosity >= -1:
        if style != "no":
            _tracebacks(tr, results)
        tr.section("thresher", sep="=")
        if rows:
            _table(tr, [HEADS, *map(cells_of_test_report, rows)])
        if hidden:
            tr.write_line(f"{left_out_of_test_reports(hidden)}; -v shows them")
        for result in notable_reports(results):
            if style == "no" and result.status != "skipped" and (command := rerun_in_test_report(result)) is not None:
                tr.write_line(f"rerun: {escaped_visible(command)}")
    tr.write_line(answer_of_test_reports(results, verdicts, options), bold=True)
    if verbosity >= -1:
        for line in guarantees_of_test_reports(verdicts, options):
            tr.write_line(escaped_visible(line))


def _tracebacks(tr: TerminalReporter, results: Sequence[PytestStudyResult]) -> None:
    """The first traceback of each flaky test. pytest itself shows those of tests that failed."""
    flaky = [result for result in notable_reports(results) if result.flaky and result.status not in BAD]
    if flaky:
        tr.section("FLAKY", sep="=")
    for result in flaky:
        tr.section(result.nodeid, sep="_", red=True)
        tr.write_line(traceback_in_test_report(result))
        for title, text in result.tally.first.sections if result.tally.first is not None else []:
            tr.section(title, sep="-")
            tr.write_line(text.rstrip())


def _table(tr: TerminalReporter, lines: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for words, *numbers, name in lines:  # names are long, so they come last, as in pytest's own --durations
        middle = "  ".join(text.rjust(width) for text, width in zip(numbers, widths[1:-1], strict=True))
        tr.write_line(escaped_visible(f"{words.ljust(widths[0])}  {middle}  {name}"))


def test_reports_as_markdown(
    results: Sequence[PytestStudyResult], verdicts: Sequence[Verdict], options: Options
) -> str:
    """The summary for the page of a CI service."""
    lines = [f"### thresher: which tests reach {options.bar}?", ""]
    rows, hidden = abridged_reports(results)
    if rows:
        lines += [f"| {' | '.join(HEADS)} |", "|---|---:|---|---:|---|"]
        lines += [f"| {' | '.join(map(escaped_markdown, cells_of_test_report(result)))} |" for result in rows]
        lines.append("")
    if hidden:
        lines += [f"{left_out_of_test_reports(hidden)}.", ""]
    failed = [result for result in rows if result.tally.first is not None and result.status != "skipped"]
    for result in failed[:MOST]:
        fence = max(re.findall("`+", traceback_in_test_report(result)), default="") + "```"
        summary = f"<summary>{escaped_markdown(f'{result.nodeid}: {sentence_of_test_report(result)}')}</summary>"
        lines += ["<details>", summary, "", fence, traceback_in_test_report(result), fence, "", "</details>", ""]
    if len(failed) > MOST:
        lines += [f"Tracebacks of {len(failed) - MOST:,} more tests are in the log.", ""]
    lines += [
        f"**{answer_of_test_reports(results, verdicts, options)}**",
        "",
        *map(escaped_markdown, guarantees_of_test_reports(verdicts, options)),
    ]
    return "\n".join([*lines, "", ""])


# Progress while tests run: a terminal has one line that is rewritten, a log gets a new line from time to time.

LIVE, LOGGED = 0.2, 30.0  # seconds between two lines on a terminal, and in a log
PAUSE = 20  # the next line waits so many times as long as this one took: the estimates of 10,000 tests take 0.2 s


class TestReportProgress:
    """Shows the progress. It is called after each run."""

    def __init__(self, config: pytest.Config) -> None:
        self._began = time.monotonic()
        self._tr = config.pluginmanager.get_plugin("terminalreporter")
        self._live = self._tr is not None and self._tr.isatty and config.getoption("capture", "fd") != "no"
        self._every = LIVE if self._live else LOGGED
        self._next = self._began + self._every

    def __call__(self, studies: SessionStudies) -> None:
        now = time.monotonic()
        if now < self._next or self._tr is None or self._tr.verbosity < -1:
            return
        count = studies.counts()
        reach = f"{count['reaches']:,} {'reaches' if count['reaches'] == 1 else 'reach'} the bar"
        states = f"{reach}, {_missed(count)}, {count['open']:,} open"
        elapsed, left = now - self._began, studies.left
        line = f"thresher: {plural(studies.runs, 'run')}, {states}, {duration_text(elapsed)}"
        if left:
            pace = elapsed / studies.runs
            left = math.ceil(min(left, max(0.0, studies.until - now) / pace))
            line += f"; {remaining_in_sentence(left, noun='run')}, {duration_text(left * pace)}"
        if self._live:
            self._tr.rewrite(line, erase=True)
        else:
            self._tr.write_line(line)
        took = time.monotonic() - now
        self._next = now + max(self._every, PAUSE * took)

    def write(self, lines: Iterable[str]) -> None:
        """Write lines that stay."""
        if self._tr is not None and self._tr.verbosity >= -1:
            for line in lines:
                self._tr.ensure_newline()
                self._tr.write_line(escaped_visible(line))

    def end(self) -> None:
        """Erase the line."""
        if self._live and self._tr is not None:
            self._tr.rewrite("", erase=True)
            self._tr.write("\r")
