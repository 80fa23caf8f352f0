"""The summary at the end: a table, tracebacks and the guarantee, on a terminal and in Markdown."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from _pytest.terminal import TerminalReporter

from ...core.sentences import origin
from ...core.verdict import Verdict
from ...text.escapes import markdown, visible
from ...text.phrasing import plural
from ...text.quantities import number
from .reporting import BAD, WORDS, rerun, sentence, traceback
from .settings import Options
from .sifting import Result

HEADS = ("state", "pass rate", "interval", "runs", "test")
FEW = 10  # rows of open tests that never failed: there may be thousands, and -v shows all
MOST = 100  # tracebacks in Markdown: CI services limit the size of a page, GitHub to 1 MB
ORDER = list(WORDS)


def state(result: Result) -> str:
    """A test's status in words."""
    if result.status == "steady" and result.flaky:
        return "steady, but flaky"
    return "failing too often" if result.status == "failing" else result.status


def notable(results: Sequence[Result]) -> list[Result]:
    """The tests that are not plainly steady, the worst first."""
    found = [result for result in results if result.status != "steady" or result.flaky]
    return sorted(found, key=lambda result: (ORDER.index(result.status), result.row.mean or 0.0))


def abridged(results: Sequence[Result]) -> tuple[list[Result], int]:
    """The notable tests, with only a few of the open ones that never failed, and how many of these are left out."""
    rows = notable(results)
    plain = [result for result in rows if result.status == "open" and not (result.tally.first or result.tally.failures)]
    hidden = {result.nodeid for result in plain[FEW:]}
    return [result for result in rows if result.nodeid not in hidden], len(hidden)


def cells(result: Result) -> tuple[str, ...]:
    """A row of the table."""
    row = result.row
    mean = "" if row.mean is None else f"{row.mean:.3f}"
    interval = "" if row.low is None or row.high is None else f"{row.low:.3f} to {row.high:.3f}"
    words = ", ".join(filter(None, [state(result), row.qualifier if row.certified else ""]))
    return words, mean, interval, f"{result.runs:,}", result.nodeid


def counted(results: Sequence[Result]) -> str:
    """How many tests have each status, in one line; those that are flaky but not certified are counted separately."""
    count = Counter(result.status for result in results)
    both = Counter(result.status for result in results if result.flaky)
    of = {status: f" ({many:,} of them flaky)" for status, many in both.items()}
    words = [f"{count['steady']:,} steady{of.get('steady', '')}"]
    words += [f"{count['failing']:,} failing too often{of.get('failing', '')}"]
    if count["flaky"]:
        words.append(f"{count['flaky']:,}{' more' if of.keys() & {'steady', 'failing'} else ''} flaky")
    words.append(f"{count['open']:,} open")
    words += [f"{count[name]:,} {name}" for name in ("error", "skipped") if count[name]]
    return f"{', '.join(words)} in {plural(sum(result.runs for result in results), 'run')}."


def left_out(hidden: int) -> str:
    """What the table does not show."""
    return f"and {plural(hidden, 'more test')} that {'is' if hidden == 1 else 'are'} open and never failed"


def guarantees(verdicts: Sequence[Verdict], options: Options) -> Iterator[str]:
    """What is guaranteed, and where the outcomes are from."""
    for verdict in verdicts:
        certified = any(row.certified for row in verdict.rows)
        bar = "" if len(verdicts) == 1 else f"At least {number(verdict.threshold, exact=True)}: "
        yield f"{bar}{verdict.guarantee if certified else 'Nothing is certified yet.'}"
        if from_where := origin(verdict.earlier, verdict.told, verdict.since, verdict.others, what="outcomes"):
            yield from_where
    if len(verdicts) > 1 and options.guarantee == "all":
        confidence = number(options.confidence, exact=True)
        yield f"All of these labels together are right with probability at least {confidence}."


def write(tr: TerminalReporter, results: Sequence[Result], verdicts: Sequence[Verdict], options: Options) -> None:
    """The summary on the terminal: quiet with -q, every test in the table with -v."""
    verbosity, style = tr.verbosity, tr.config.getoption("tbstyle", "auto")
    rows, hidden = (list(results), 0) if verbosity > 0 else abridged(results)
    tr.ensure_newline()  # end the line of progress here, not below our title
    if verbosity >= -1:
        if style != "no":
            _tracebacks(tr, results)
        tr.section("thresher", sep="=")
        if rows:
            _table(tr, [HEADS, *map(cells, rows)])
        if hidden:
            tr.write_line(f"{left_out(hidden)}; -v shows them")
        for result in notable(results):
            if style == "no" and result.status != "skipped" and (command := rerun(result)) is not None:
                tr.write_line(f"rerun: {visible(command)}")
    tr.write_line(counted(results), bold=True)
    if verbosity >= -1:
        for line in guarantees(verdicts, options):
            tr.write_line(visible(line))


def _tracebacks(tr: TerminalReporter, results: Sequence[Result]) -> None:
    """The first traceback of each flaky test; pytest itself shows those of tests that failed."""
    flaky = [result for result in notable(results) if result.flaky and result.status not in BAD]
    if flaky:
        tr.section("FLAKY", sep="=")
    for result in flaky:
        tr.section(result.nodeid, sep="_", red=True)
        tr.write_line(traceback(result))
        for title, text in result.tally.first.sections if result.tally.first is not None else []:
            tr.section(title, sep="-")
            tr.write_line(text.rstrip())


def _table(tr: TerminalReporter, lines: list[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for what, *numbers, name in lines:  # names are long: they come last, as in pytest's own --durations
        middle = "  ".join(text.rjust(width) for text, width in zip(numbers, widths[1:-1], strict=True))
        tr.write_line(visible(f"{what.ljust(widths[0])}  {middle}  {name}"))


def to_markdown(results: Sequence[Result], verdicts: Sequence[Verdict], options: Options) -> str:
    """The same summary for a page of a CI service."""
    head = f"### thresher: does each test pass in at least {number(options.at_least, exact=True)} of runs?"
    lines = [head, "", counted(results), ""]
    rows, hidden = abridged(results)
    if rows:
        lines += [f"| {' | '.join(HEADS)} |", "|---|---:|---|---:|---|"]
        lines += [f"| {' | '.join(map(markdown, cells(result)))} |" for result in rows]
        lines.append("")
    if hidden:
        lines += [f"{left_out(hidden)}.", ""]
    failed = [result for result in rows if result.tally.first is not None and result.status != "skipped"]
    for result in failed[:MOST]:
        fence = max(re.findall("`+", traceback(result)), default="") + "```"
        summary = f"<summary>{markdown(f'{result.nodeid}: {sentence(result)}')}</summary>"
        lines += ["<details>", summary, "", fence, traceback(result), fence, "", "</details>", ""]
    if len(failed) > MOST:
        lines += [f"Tracebacks of {len(failed) - MOST:,} more tests are in the log.", ""]
    lines += [markdown(line) for line in guarantees(verdicts, options)]
    return "\n".join([*lines, "", ""])
