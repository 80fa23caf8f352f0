"""A report: one file that loads nothing, so it works offline and years later."""

import html
import json
import time
from dataclasses import replace
from itertools import accumulate, islice
from typing import Any

from ..core import sentences
from ..core.hard_cases import CaseRow, hardest_cases, seen_cases
from ..core.row_text import DETAILS, row_text_cells
from ..core.rows import Row, ranked_rows
from ..core.sentences import SentenceWording, standing_in_sentence
from ..core.state import State
from ..core.verdict import verdict_of
from ..study import Study
from ..text.naming import breakable_name
from ..text.phrasing import listed_phrase
from .assets import PLOTLY, STATIC, fill_asset_template
from .charts import chart_of_arms, history_figure
from .json_shapes import failing_json, intervals_json, revision_json
from .log_follower import LogFollower

MARK = b"<!-- thresher report -->"  # in the first lines of report.html; only files with this mark are overwritten
MOST_ARMS = 20  # named in the specification, and in the list of arms that failed a case
MOST_LETTERS = 300  # of the names in that list, because a phone shows few
MOST_CASES = 100  # the hardest
FIGURES = ("estimate", "low", "high", *DETAILS, "seen", "failures")  # columns


def report(study: Study) -> str:
    """The report as HTML."""
    known, follower = study.verdict(), LogFollower(study.name, study.store)
    ledger = follower.ledger
    verdict = replace(verdict_of(study.name, ledger), earlier=known.earlier, since=known.since)
    spec, outside, figures = _specification(ledger), set(verdict.outside), {}
    for theme in ("light", "dark"):
        both = chart_of_arms(verdict, theme=theme), history_figure(follower.points, theme=theme)
        figures[theme] = [json.loads(figure.to_json()) for figure in both]
    rows = ranked_rows(verdict.rows, lower_is_better=verdict.lower_is_better)
    markup = {
        "origin": f"<p class='note origin'>{html.escape(verdict.origin)}</p>" if verdict.origin else "",
        "revision": _revision(ledger),
        "hints": "".join(f"<p class='note'>{html.escape(hint)}</p>" for hint in verdict.hints),
        "style": (STATIC / "style.css").read_text(),
        "heads": "".join(f"<th class='n'>{html.escape(head)}" for head in _heads(verdict.wording)),
        "rows": "\n".join(_row(row, row.arm in outside, verdict.wording) for row in rows),
        "cases": _cases(ledger) if verdict.cases else "",
        "spec": breakable_name(json.dumps(spec, indent=2, ensure_ascii=False)),
        "figures": _embedded(figures),
        "verdict": _embedded(verdict.to_dict()),
        "plotly": PLOTLY.read_text(encoding="utf-8").replace("</script", "<\\/script"),
        "script": (STATIC / "report.js").read_text(),
    }
    texts = {name: getattr(verdict, name) for name in ("question", "answer", "spent", "guarantee")}
    texts["intervals"] = intervals_json(ledger.spec)
    return fill_asset_template("report", markup, study=verdict.study, when=time.strftime("%Y-%m-%d %H:%M %Z"), **texts)


def _revision(ledger: State) -> str:
    """Which revision it is, and what it changed."""
    if ledger.revision == 1:
        return ""
    text = revision_json(ledger, ledger.revision)
    return f"<p class='note revision'>{html.escape(text[0].upper() + text[1:])}.</p>"


def _specification(ledger: State) -> dict[str, Any]:
    """The specification as JSON. Long lists of arms and cases are shortened."""
    spec = {**ledger.spec.to_json(), "budget": ledger.budget}
    for key, params, hint in (("arms", "params", "; the table has them"), ("cases", "case_params", "")):
        names = spec.get(key)
        if isinstance(names, tuple) and len(names) > MOST_ARMS:
            spec[key] = [*names[:MOST_ARMS], f"… {len(names):,} in all{hint}"]
            if spec.get(params):
                spec[params] = [*spec[params][:MOST_ARMS], "…"]
    return spec


def _heads(wording: SentenceWording) -> list[str]:
    """The headings of `FIGURES`; the first is what is compared with the bar."""
    return list(row_text_cells((), wording, FIGURES, keep=FIGURES))


def _row(row: Row, outside: bool, wording: SentenceWording) -> str:
    """One arm: its name, where it stands, a cell for each heading, and the reason."""
    is_base = row.standing == "baseline"  # it is compared with nothing
    none = "" if is_base else "–"
    figures = row_text_cells([row], wording, FIGURES, keep=FIGURES, none=none).items()
    numbers = "".join(_number(head, text, "n" if at else "n key") for at, (head, [(text, _)]) in enumerate(figures))
    certainty = " not certified" if outside and not is_base else ""
    standing = f"<span class='sign'>{standing_in_sentence(row)}</span>{certainty}"
    return (
        f"<tr class='{row.standing}'><td class='name'>{breakable_name(row.arm)}</td>"
        f"<td class='standing'>{standing}</td>"
        f"{numbers}<td class='wrap'>{html.escape(row.reason or '')}</td></tr>"
    )


def _number(head: str, text: str, kind: str = "n") -> str:
    """A cell with a number. On a narrow screen, a row is a card, and its heading stands before the number."""
    return f"<td class='{kind}' data-head='{head}'>{html.escape(text)}</td>"


def _cases(ledger: State) -> str:
    """The hardest cases as a table."""
    rows, count = hardest_cases(ledger, MOST_CASES), seen_cases(ledger)
    title = f"The {len(rows):,} hardest of {count:,} cases with a reward" if count > len(rows) else "The hardest first"
    head = "<th class='name'>case<th class='n'>failed<th class='n'>passed<th class='n'>mean<th>failed by"
    wording = sentences.sentence_wording(ledger.spec)
    body = "\n".join(_case(row, wording) for row in rows)
    table = f"<table class='cards'><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"
    note = f"<p class='note'>{title}. {html.escape(failing_json(wording))}</p>"
    return f"<section class='card'><h2>Cases</h2>{note}<div class='scroll'>{table}</div></section>"


def _case(row: CaseRow, wording: SentenceWording) -> str:
    failed = row.failed_by
    letters = accumulate(map(len, failed))
    shown = max(1, sum(count <= MOST_LETTERS for count in islice(letters, MOST_ARMS)))
    numbers = {"failed": f"{row.failed:,}", "passed": f"{row.passed:,}", "mean": wording.amount(row.mean)}
    cells = "".join(_number(head, text) for head, text in numbers.items())
    names = listed_phrase(failed, shown, show=breakable_name)
    by = f"<td class='wrap' data-head='failed by'>{names}</td>" if failed else "<td></td>"
    return f"<tr><td class='name'>{breakable_name(str(row.case))}</td>{cells}{by}</tr>"


def _embedded(data: object) -> str:
    """JSON that no HTML parser can end early."""
    return json.dumps(data).replace("<", "\\u003c")
