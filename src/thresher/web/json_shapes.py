"""What a study looks like as JSON: its question, with headings and axes, its rows, cases, events and failures."""

import heapq
import html
import json
import math
from collections.abc import Sequence
from typing import Any

from ..core.events import Event, event_remarks, event_to_json
from ..core.hard_cases import hardest_cases, seen_cases
from ..core.revisions import changes_in_revision, revision_at
from ..core.row_text import COLUMNS as OF_ARMS
from ..core.row_text import DETAILS, row_detail_headings, row_text_cells
from ..core.rows import ORDER, Row
from ..core.sentences import SIGNS, SentenceWording, changes_sentence, sentence_wording
from ..core.sentences import short_in_sentence as short_name
from ..core.spec import Spec
from ..core.state import State
from ..text.escapes import escaped_visible
from ..text.naming import distinct_names
from ..text.quantities import PERCENT, number_text, percent_text

LONGEST_NAME = 20  # characters of the baseline's name on an axis
NAMED = 30  # arms; with more, an axis has their ranks
LONGEST_TICK = 18  # characters of an arm's name on an axis
MOST_TROUBLES = 20  # arms that a page lists
LONGEST = 300  # characters of a reason that a page shows
MOST_REWARDS = 200  # of a case, the worst
MOST_SHOWN = 12  # of these, on a page
WORDS = {  # for kinds that say too little
    "repeated": "asked again", "weighed": "imported results weighed",
}  # fmt: skip
COLUMNS = (
    "standing", "reached", "certified", "mean", "low", "high", "seen", "pending", "failures", "left", "outside",
    "estimate", "median", "quantile", "baseline", "texts", "qualifier",
)  # fmt: skip
CODES = {standing: code for code, standing in enumerate(ORDER)}
TEXTS = ("estimate", *DETAILS)  # columns of the table that go over the wire as people read them


def encoded_json_shape(data: object) -> bytes:
    """Data as JSON without blanks."""
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def short_json(value: float | None) -> float | None:
    """A number for a chart: six digits are plenty.

    >>> short_json(1 / 3)
    0.333333
    """
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")


# -- the question ------------------------------------------------------------------------------------------------


def asked_json_shape(wording: SentenceWording) -> dict[str, Any]:
    """The question as data, and as pages show it: texts, headings, axes."""
    return {
        **wording.asked,
        "asks": wording.asks,
        "bar": wording.bar,
        "tolerance": wording.tolerance,
        "edges": wording.edges,
        "estimate_head": OF_ARMS["estimate"].head(wording),
        "details": row_detail_headings(wording),
        "failing": failing_json(wording),
        "axis": axis_json_shape(wording),
        "hover": hover_json_shape(wording),
        "lines": bar_lines_json(wording),
    }


def failing_json(wording: SentenceWording) -> str:
    """When an arm failed a case, in a sentence."""
    if wording.asks != "difference":
        return "An arm failed a case if its reward there, by itself, does not reach the bar."
    margin = f" by more than {wording.amount(-wording.stated_bar, exact=True)}" if wording.stated_bar < 0 else ""
    return f"An arm failed a case if its reward there is worse than the baseline's{margin}."


def title_json_shape(wording: SentenceWording) -> str:
    """What arms are compared by.

    >>> title_json_shape(SentenceWording(0.2, lower_is_better=True, share=0.95, unit="s"))
    'share within 200 ms'
    >>> title_json_shape(SentenceWording(0.0, baseline="current"))
    'difference from current'
    """
    if wording.asks == "mean":
        return "mean"
    base = "" if wording.baseline is None else escaped_visible(wording.baseline)
    base = base if len(base) <= LONGEST_NAME else "the baseline"
    if wording.asks == "difference":
        return f"difference from {base}"
    if base and wording.ratio is None:
        return f"share better by {wording.amount(wording.stated_bar, exact=True)}"
    limit = (
        f"{number_text(wording.ratio or 0.0, exact=True)} × {base}"
        if base
        else wording.amount(wording.stated_bar, exact=True)
    )
    return f"share {'within' if wording.lower_is_better else 'of at least'} {limit}"


def axis_json_shape(wording: SentenceWording) -> dict[str, Any]:
    """Plotly's axis for what is compared with the bar."""
    title = html.escape(title_json_shape(wording), quote=False)  # plotly takes < for markup
    if wording.asks == "share":
        return {"title": {"text": title}, "tickformat": "~%"}
    return {"title": {"text": title}, **amounts_json(wording)}


def ticks_json_shape(names: Sequence[str]) -> list[str] | None:
    """The names of the arms as an axis has room for them; None: there are too many.

    >>> ticks_json_shape(["terse", "tests/test_run.py::test_a_reward_is_read"]), ticks_json_shape(["arm"] * 31)
    (['terse', 'tests…ward_is_read'], None)
    """
    if len(names) > NAMED:
        return None
    shown = [escaped_visible(name) for name in names]
    shortened = distinct_names(tuple(shown), LONGEST_TICK)
    return [shortened[name] for name in shown]


def intervals_json(spec: Spec) -> str:
    """With which probability the intervals that a chart shows are right, and what its band is."""
    wording = sentence_wording(spec)
    low, high = (wording.estimate(edge, exact=True) for edge in wording.edges)
    band = f" In the band, from {low} to {high}, either answer is right." if wording.tolerance else ""
    if spec.confidence is None:
        return band.strip()
    sure, both = percent_text(spec.confidence, exact=True), round(2 * spec.confidence - 1, 12)
    if spec.guarantee == "rate":
        start = f"With a probability of at least {sure}, all intervals are right together"
        return f"{start}; answers may be wrong, and do not cut them.{band}"
    where = "an edge of the band" if wording.tolerance else "the bar"
    start = f"With a probability of at least {sure}, all intervals are right before an answer cuts them at {where}"
    if both > 0:
        start += f"; with {percent_text(both, exact=True)}, intervals and answers are all right together"
    return f"{start}.{band}"


def bar_lines_json(wording: SentenceWording) -> list[tuple[str, dict[str, Any]]]:
    """Plotly's shapes at the bar, at the tolerance around it and, where differences are drawn, at the baseline.

    Each has the name of its style in figures.json.
    """

    def line(kind: str, low: float, high: float, name: str = "", *, under: bool = False) -> tuple[str, dict[str, Any]]:
        label = {"text": html.escape(name, quote=False), "yanchor": "top" if under else "bottom"}
        return kind, {"xref": "paper", "x0": 0, "x1": 1, "y0": low, "y1": high, **({"label": label} if name else {})}

    low, high = wording.edges
    name, lines, under = f"bar {wording.estimate(wording.bar, exact=True)}", [], False
    if wording.asks == "difference" and wording.baseline is not None:  # the names of the two stand on the outer sides
        under = wording.bar < 0
        lines.append(line("zero", 0, 0, f"{SIGNS['baseline']} {short_name(wording.baseline)}", under=not under))
    if not wording.tolerance:
        return [*lines, line("bar", low, high, name, under=under)]
    name += f" ± {wording.distance(wording.tolerance)}"
    outer, inner = (low, high) if under else (high, low)
    edges = [line("edge", outer, outer, name, under=under), line("edge", inner, inner)]
    return [line("band", low, high), *lines, *edges, line("bar", wording.bar, wording.bar)]


def amounts_json(wording: SentenceWording) -> dict[str, Any]:
    """How plotly's axes write rewards: seconds as ms or µs where they are short."""
    if wording.unit == PERCENT:
        return {"tickformat": "~%"}
    if wording.unit == "s":
        return {"tickformat": "~s", "ticksuffix": "s", "automargin": True}
    return {"ticksuffix": f" {html.escape(wording.unit, quote=False)}", "automargin": True} if wording.unit else {}


def hover_json_shape(wording: SentenceWording) -> str:
    """How plotly writes what is compared with the bar when the pointer is over it."""
    sign = "+" if wording.asks == "difference" else ""
    if wording.asks == "share" or wording.unit == PERCENT:
        return f"%{{y:{sign}.2%}}"
    if wording.unit == "s":
        return f"%{{y:{sign}.4s}}s"
    return f"%{{y:{sign}.4g}}" + (f" {html.escape(wording.unit, quote=False)}" if wording.unit else "")


# -- rows, cases and events --------------------------------------------------------------------------------------


def columns_json(row: Row, wording: SentenceWording, *, outside: bool) -> tuple[Any, ...]:
    """One arm in the order of COLUMNS; a standing is its index in ORDER. ``outside``: a reward lay outside the bounds.

    The texts are what is compared with the bar and the further numbers, as people read them.
    """
    reached = None if row.reached is None else int(row.reached)
    answer = (CODES[row.standing], reached, int(row.certified), *map(short_json, (row.mean, row.low, row.high)))
    counts = (row.seen, row.pending, row.failures, row.left, int(outside))
    is_base = row.standing == "baseline"  # it is compared with nothing
    shown = row_text_cells([row], wording, TEXTS, keep=TEXTS, none="" if is_base else "–")
    estimate = None if is_base and wording.asks != "mean" else row.estimate
    numbers = map(short_json, (estimate, row.median, row.quantile, row.baseline))
    return (*answer, *counts, *numbers, [text for [(text, _)] in shown.values()], row.qualifier)


def cases_json_shape(ledger: State, limit: int) -> dict[str, Any]:
    """The hardest cases; of each the worst rewards, with the numbers of their arms."""
    rows, sign, wording = [], -1.0 if ledger.spec.lower_is_better else 1.0, sentence_wording(ledger.spec)
    for row in hardest_cases(ledger, limit):
        failed, index = set(row.failed_by), ledger.spec.index
        worst = heapq.nsmallest(
            MOST_REWARDS,
            ((arm not in failed, sign * reward, index[arm], short_json(reward)) for arm, reward in row.rewards.items()),
        )
        rewards = [(arm, reward) for *_, arm, reward in worst]
        failing = [arm for passed, _, arm, _ in worst if not passed]
        numbers = {"failed_by": failing, "missing_by": [index[arm] for arm in row.missing_by[:MOST_REWARDS]]}
        texts = {
            "mean_text": wording.amount(row.mean),
            "texts": [wording.amount(each) for _, each in rewards[:MOST_SHOWN]],
        }
        rows.append({**row.to_dict(), "mean": short_json(row.mean), "rewards": rewards, **numbers, **texts})
    count = ledger.spec.case_count
    return {"format": 1, "seq": ledger.seq, "cases": count, "seen": seen_cases(ledger), "rows": rows}


def event_json_shape(event: Event, ledger: State) -> dict[str, Any]:
    """An event as the library writes it, with the arm's name in place of its number."""
    data = event_to_json(event)
    data["arm"] = None if event.arm is None else revision_at(ledger, event.seq)[1].arms[event.arm]
    del data["key"]  # it belongs to the caller who chose it
    return data


def line_json_shape(event: Event, ledger: State) -> dict[str, Any]:
    """An event as a page shows it: in words, with the fields it has and the beginning of its reason."""
    data = {name: value for name, value in event_json_shape(event, ledger).items() if value is not None}
    for name in ("spec", "agent", "pull", "digest"):
        data.pop(name, None)
    if "reason" in data:
        data["reason"] = data["reason"][:LONGEST]
    revision, spec = revision_at(ledger, event.seq)
    if event.kind == "revised":
        return {**data, "text": revision_json(ledger, revision)}
    return {**data, "text": event_words_json(event, sentence_wording(spec))}


def revision_json(ledger: State, revision: int) -> str:
    """A revision and what it changed, in words."""
    return f"revision {revision}: {changes_sentence(changes_in_revision(ledger, revision))}"


def event_words_json(event: Event, wording: SentenceWording) -> str:
    """What happened, in words.

    >>> event_words_json(Event(5, "told", 1, 0, 0.02, reason="0.03"), SentenceWording(0.0, baseline="grep", unit="s"))
    'reward 20 ms, grep 30 ms'
    """
    text, reason = WORDS.get(event.kind, event.kind), event.reason
    if event.kind == "told":
        text = f"{'late ' if event.late else ''}reward {wording.amount(event.reward)}"
        remarks = None if event.cause == "failed" else event_remarks(event)
        if remarks is not None:
            text += "" if remarks.baseline is None else f", {wording.baseline} {wording.amount(remarks.baseline)}"
            text += "" if remarks.cost is None else f", cost {remarks.cost:g}"
            reason = remarks.note
    elif event.kind == "dropped":
        text = str(event.cause)
    elif event.kind == "extended":
        text = f"extended to {event.budget:,}"
    elif event.cause == "chosen":
        text, reason = f"{text}, chosen by the caller", reason and f"case {reason}"
    return f"{text} · {reason[:LONGEST]}" if reason else text


def troubles_json(ledger: State) -> list[dict[str, Any]]:
    """Arms that were retired or failed, with reasons; retired arms first, then those with the most failures."""
    arms = sorted(
        {*ledger.retired, *ledger.complaint}, key=lambda arm: (arm not in ledger.retired, -ledger.failures[arm])
    )
    return [
        {
            "arm": ledger.spec.arms[arm],
            "failures": ledger.failures[arm],
            "retired": arm in ledger.retired,
            "reason": ledger.retired.get(arm, ledger.complaint.get(arm, ""))[:LONGEST],
        }
        for arm in arms[:MOST_TROUBLES]
    ]
