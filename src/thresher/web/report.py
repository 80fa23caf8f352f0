"""A report in one file that works offline, years later, and loads nothing."""

import html
import json
import time
from dataclasses import replace
from itertools import accumulate, islice
from typing import Any

from ..core import sentences
from ..core import verdict as verdicts
from ..core.hard_cases import CaseRow, hardest, seen_cases
from ..core.row_text import details, estimate_of, head_of, seen, style_of
from ..core.rows import Row, ranked
from ..core.sentences import SIGNS, Look
from ..core.state import State
from ..study import Study
from ..text.phrasing import breakable, listed
from .assets import PLOTLY, STATIC, filled
from .charts import arms_figure, history_figure
from .json_shapes import failing, intervals_of
from .log_follower import Follower

MARK = b"<!-- thresher report -->"  # in the first lines of report.html: only such files are overwritten
MOST_ARMS = 20  # named in the specification, or as those that failed a case
MOST_LETTERS = 300  # of the names of those: a phone shows few
MOST_CASES = 100  # the hardest


def report(study: Study) -> str:
    known, found = study.verdict(), Follower(study.name, study.store)
    verdict = replace(verdicts.read(study.name, found.ledger), earlier=known.earlier, since=known.since)
    spec, outside, figures = _specification(found.ledger), set(verdict.outside), {}
    for theme in ("light", "dark"):
        both = arms_figure(verdict, theme=theme), history_figure(found.points, theme=theme)
        figures[theme] = [json.loads(each.to_json()) for each in both]
    rows = ranked(verdict.rows, lower_is_better=verdict.lower_is_better)
    markup = {
        "origin": f"<p class='note origin'>{html.escape(verdict.origin)}</p>" if verdict.origin else "",
        "hints": "".join(f"<p class='note'>{html.escape(hint)}</p>" for hint in verdict.hints),
        "style": (STATIC / "style.css").read_text(),
        "heads": "".join(f"<th class='n'>{html.escape(head)}" for head in _heads(verdict.look)),
        "rows": "\n".join(_row(row, row.arm in outside, verdict.look) for row in rows),
        "cases": _cases(found.ledger) if verdict.cases else "",
        "spec": breakable(json.dumps(spec, indent=2, ensure_ascii=False)),
        "figures": _embedded(figures),
        "verdict": _embedded(verdict.to_dict()),
        "plotly": PLOTLY.read_text(encoding="utf-8").replace("</script", "<\\/script"),
        "script": (STATIC / "report.js").read_text(),
    }
    words = {"question": verdict.question, "answer": verdict.answer, "guarantee": verdict.guarantee}
    words["intervals"] = intervals_of(found.ledger.spec)
    return filled("report", markup, study=verdict.study, when=time.strftime("%Y-%m-%d %H:%M %Z"), **words)


def _specification(ledger: State) -> dict[str, Any]:
    """The specification as JSON, with the first few arms and cases."""
    spec = {**ledger.spec.to_json(), "budget": ledger.budget}
    for names, params, where in (("arms", "params", "; the table has them"), ("cases", "case_params", "")):
        found = spec.get(names)
        if isinstance(found, tuple) and len(found) > MOST_ARMS:
            spec[names] = [*found[:MOST_ARMS], f"… {len(found):,} in all{where}"]
            if spec.get(params):
                spec[params] = [*spec[params][:MOST_ARMS], "…"]
    return spec


def _heads(look: Look) -> list[str]:
    """The columns of numbers; the first is what is compared with the bar."""
    return [head_of(look), "low", "high", *details((), look), look.draws, "failed"]


def _row(row: Row, outside: bool, look: Look) -> str:
    """One arm: its name, its label, a cell for each of the heads, and the reason."""
    certified = ", ".join(filter(None, ["✓ certified", row.qualifier]))
    sure = certified if row.certified else "not certified" if outside and row.label != "baseline" else ""
    estimates = [look.estimate(value) for value in (estimate_of(row, look), row.low, row.high)]
    if row.label == "baseline":  # it is compared with nothing
        estimates = ["", "", ""]
    more = [cells[0] for cells in details([row], look).values()]
    texts = [*estimates, *more, seen(row, look.cases), str(row.failures or "")]
    cells = zip(_heads(look), texts, ["n key", *["n"] * len(texts)], strict=False)
    label = f"<span class='sign'>{SIGNS[row.label]} {row.label}</span> {sure}"
    return (
        f"<tr class='{style_of(row)}'><td class='name'>{breakable(row.arm)}</td><td class='label'>{label}</td>"
        f"{''.join(_figure(*cell) for cell in cells)}<td class='wrap'>{html.escape(row.reason or '')}</td></tr>"
    )


def _figure(head: str, text: str, kind: str = "n") -> str:
    """A cell with a number. On a narrow screen, where a row is a card, its heading stands before it."""
    return f"<td class='{kind}' data-head='{head}'>{html.escape(text)}</td>"


def _cases(ledger: State) -> str:
    """The hardest cases as a table."""
    rows, count = hardest(ledger, MOST_CASES), seen_cases(ledger)
    which = f"The {len(rows):,} hardest of {count:,} cases with a reward" if count > len(rows) else "The hardest first"
    head = "<th class='name'>case<th class='n'>failed<th class='n'>passed<th class='n'>mean<th>failed by"
    look = sentences.look_of(ledger.spec)
    body = "\n".join(_case(row, look) for row in rows)
    table = f"<table class='cards'><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"
    note = f"<p class='note'>{which}. {html.escape(failing(look))}</p>"
    return f"<section class='card'><h2>Cases</h2>{note}<div class='scroll'>{table}</div></section>"


def _case(row: CaseRow, look: Look) -> str:
    failed = row.failed_by
    letters = accumulate(map(len, failed))
    named = max(1, sum(count <= MOST_LETTERS for count in islice(letters, MOST_ARMS)))
    numbers = {"failed": f"{row.failed:,}", "passed": f"{row.passed:,}", "mean": look.amount(row.mean)}
    cells = "".join(_figure(*each) for each in numbers.items())
    names = listed(failed, named, show=breakable)
    by = f"<td class='wrap' data-head='failed by'>{names}</td>" if failed else "<td></td>"
    return f"<tr><td class='name'>{breakable(str(row.case))}</td>{cells}{by}</tr>"


def _embedded(data: object) -> str:
    """JSON that no HTML parser can end early."""
    return json.dumps(data).replace("<", "\\u003c")
