"""Rows as text: the columns that tables of arms show, and the table, CSV, Markdown and HTML.

Names and reasons come from others, so they are escaped.
"""

import html as escaping
import importlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from operator import attrgetter
from typing import Any, NamedTuple

from ..errors import CannotGoOn
from ..text.escapes import escaped_csv_cell, escaped_csv_line, escaped_csv_remark, escaped_visible
from ..text.escapes import escaped_markdown as marked
from ..text.masking import masked_line
from ..text.naming import folded_name
from ..text.phrasing import plural
from .rows import Row, ranked_rows
from .sentences import SIGNS, SentenceWording, standing_in_sentence

MOST_ROWS, MOST_REASONS = 300, 20  # in a table for people; the other formats have all
NARROWEST = 10  # characters of a name on a line, however narrow the screen is
Piece = tuple[str, str]  # a text and its style: a standing, "strong", "quiet", "notice", "failure" or ""
Line = tuple[Piece, ...]


class Column(NamedTuple):
    """One column of a table of arms. Each surface shows some of them."""

    head: Callable[[SentenceWording], str]
    text: Callable[[Row, SentenceWording], str | None]  # None: the row has no value
    style: Callable[[Row], str] = lambda row: ""


def row_text_cells(
    rows: Sequence[Row], wording: SentenceWording, names: Iterable[str], *, keep: Iterable[str], none: str = "–"
) -> dict[str, list[Piece]]:
    """The cells of some columns by their headings; those without any text are left out unless they are to be kept.

    ``none`` stands where a row has no value. Columns that another question has are left out.

    >>> row = Row("a", True, True, 0.75, 0.5, 1.0, 8, 0, 0, 1, 0, None, standing="reaches")
    >>> row_text_cells([row], SentenceWording(0.5), ("arm", "standing", "estimate", "median", "pending"), keep=())
    {'arm': [('a', '')], '': [('✓ reaches', 'reaches')], 'mean': [('0.75', '')]}
    """
    table, kept = dict[str, list[Piece]](), {*keep}
    for name in names:
        if name in DETAILS and not has_row_detail(name, wording):
            continue
        head, text, style = COLUMNS[name]
        texts = [text(row, wording) for row in rows]
        if name in kept or name in DETAILS or any(texts):
            pieces = zip(texts, map(style, rows), strict=True)
            table[head(wording)] = [(none if text is None else text, style) for text, style in pieces]
    return table


def has_row_detail(name: str, wording: SentenceWording) -> bool:
    """Whether the question has this one of `DETAILS`: with a share two quantiles, with a baseline two means."""
    if name in ("mean", "baseline"):
        return wording.baseline is not None
    return wording.share is not None and (name == "median" or wording.quantile() != "p50")  # that is the median again


def row_detail_headings(wording: SentenceWording) -> dict[str, str]:
    """The headings of the question's `DETAILS`."""
    return {name: COLUMNS[name].head(wording) for name in DETAILS if has_row_detail(name, wording)}


def _head_of_estimate(wording: SentenceWording) -> str:
    return "within" if wording.asks == "share" and wording.lower_is_better else wording.asks


def _estimate(row: Row, wording: SentenceWording) -> str | None:
    """What is compared with the bar; None for the baseline, which is compared with nothing."""
    value = row.estimate if wording.asks == "mean" or row.standing != "baseline" else None
    return None if value is None else wording.estimate(value)


def _left(row: Row, wording: SentenceWording) -> str:
    """About how many pulls will settle the arm."""
    return f"~ {float(f'{row.left:.2g}'):,.0f}" if row.left and row.standing == "open" else ""


def _baseline(row: Row, wording: SentenceWording) -> str:
    return "" if row.baseline is None else wording.amount(row.baseline)


def _seen(row: Row, wording: SentenceWording) -> str:
    """How many rewards an arm has, and of how many cases."""
    return f"{row.seen:,} of {wording.cases:,}" if wording.cases else f"{row.seen:,}"


def _number(name: str) -> Column:
    """A column of counts, of which most are 0."""
    return Column(lambda wording: COUNTS[name], lambda row, wording: f"{getattr(row, name) or ''}")


def _value(name: str, head: Callable[[SentenceWording], str]) -> Column:
    """A column of a median or quantile."""
    return Column(head, lambda row, wording: "" if getattr(row, name) is None else wording.value(getattr(row, name)))


def _end(name: str) -> Column:
    """A column of one end of the interval."""
    values = attrgetter(name)
    return Column(
        lambda wording: name, lambda row, wording: None if values(row) is None else wording.estimate(values(row))
    )


DETAILS = ("median", "quantile", "mean", "baseline")  # columns that only some questions have
COUNTS = {"pending": "pending", "failures": "failed", "charged": "charged", "missing": "missing"}
COLUMNS = {
    "arm": Column(lambda wording: "arm", lambda row, wording: escaped_visible(row.arm)),
    "sign": Column(lambda wording: "", lambda row, wording: SIGNS[row.standing], lambda row: row.standing),
    "standing": Column(lambda wording: "", lambda row, wording: standing_in_sentence(row), lambda row: row.standing),
    "estimate": Column(_head_of_estimate, _estimate),
    "low": _end("low"),
    "high": _end("high"),
    "between": Column(
        lambda wording: "between", lambda row, wording: wording.span(row.low, row.high), lambda row: "quiet"
    ),
    "median": _value("median", lambda wording: "median"),
    "quantile": _value("quantile", SentenceWording.quantile),
    "mean": Column(lambda wording: "mean", lambda row, wording: wording.amount(row.mean)),
    "baseline": Column(lambda wording: "baseline", _baseline),
    "seen": Column(lambda wording: wording.draws, _seen),
    "left": Column(lambda wording: "left", _left, lambda row: "quiet"),
    **{name: _number(name) for name in COUNTS},
}
TABLE = ("arm", "standing", "estimate", "between", *DETAILS, "seen", "left", *COUNTS)


def row_text_columns(rows: Sequence[Row], wording: SentenceWording) -> dict[str, list[Piece]]:
    """The cells of the table that people read."""
    return row_text_cells(rows, wording, TABLE, keep=("arm", "estimate", "seen"))


def rows_as_table(rows: Iterable[Row], wording: SentenceWording, width: int | None = None) -> Iterator[Line]:
    """The table, line by line. With a width, names are folded, and counts and details left out, so that lines fit."""
    from rich.cells import cell_len  # here: only people need it

    arms = ranked_rows(rows, lower_is_better=wording.lower_is_better)
    table_cells = row_text_columns(arms[:MOST_ROWS], wording)
    widths = {
        head: max(cell_len(text) for text in [head, *(text for text, _ in table_cells[head])]) for head in table_cells
    }
    longest, left_out = widths.pop("arm"), list[str]()
    if width is not None:
        for head in reversed([*row_detail_headings(wording).values(), *COUNTS.values()]):
            if head in table_cells and width < min(longest, NARROWEST) + sum(widths.values()) + 2 * len(widths):
                left_out.insert(0, head)
                del table_cells[head], widths[head]
        longest = min(longest, max(NARROWEST, width - sum(widths.values()) - 2 * len(widths)))

    def padded(head: str, text: str) -> str:
        blanks = " " * ((longest if head == "arm" else widths[head]) - cell_len(text))
        return f"{text}{blanks}" if head == "arm" else f"  {text}{blanks}" if head == "" else f"  {blanks}{text}"

    yield (("".join(padded(head, head) for head in table_cells), "quiet"),)
    for at, (name, _) in enumerate(table_cells["arm"]):
        first, *rest = folded_name(name, longest, cell_len)
        line = {head: (first, "") if head == "arm" else table_cells[head][at] for head in table_cells}
        yield tuple((padded(head, text), style) for head, (text, style) in line.items())
        yield from (((part, ""),) for part in rest)
    if len(arms) > MOST_ROWS:
        yield ((f"… and {plural(len(arms) - MOST_ROWS, 'more arm')}; CSV has all", "quiet"),)
    if left_out:
        yield ((f"On a wider screen: {', '.join(left_out)}.", "quiet"),)
    yield ()


def row_failures_text(rows: Iterable[Row]) -> Iterator[Line]:
    """Why each retired arm was retired, and one line about failures of the others."""
    arms = ranked_rows(rows)
    retired = [row for row in arms if row.standing == "retired"]
    lines = [
        f"{SIGNS['retired']} {escaped_visible(row.arm)}: {masked_line(row.reason or '')}"
        for row in retired[:MOST_REASONS]
    ]
    if len(retired) > MOST_REASONS:
        lines.append(f"… and {plural(len(retired) - MOST_REASONS, 'more retired arm')}; CSV has all")
    failing = [row for row in arms if row.failures and row.standing != "retired"]
    if failing:
        worst = max(failing, key=lambda row: row.failures)
        count = sum(row.failures for row in failing)
        many = f"of {len(failing):,} arms " if len(failing) > 1 else ""
        lines.append(
            f"{plural(count, 'pull')} {many}failed; {escaped_visible(worst.arm)}: {masked_line(worst.reason or '')}"
        )
    yield from (((line, "failure"),) for line in lines)
    if lines:
        yield ()


def rows_as_csv(rows: Iterable[Row]) -> str:
    """Rows as CSV, names of columns first."""
    cells = (
        {**asdict(row), "arm": escaped_csv_cell(row.arm), "reason": escaped_csv_remark(row.reason or "")}
        for row in rows
    )
    return "".join(
        [escaped_csv_line(field.name for field in fields(Row)), *(escaped_csv_line(row.values()) for row in cells)]
    )


def rows_as_markdown(rows: Iterable[Row], wording: SentenceWording, first: str, remarks: Iterable[str]) -> str:
    """A sentence, the rows as a Markdown table, and remarks."""
    arms = list(rows)
    names = ("estimate", "low", "high", *DETAILS, "seen")
    numbers = row_text_cells(arms, wording, names, keep=names, none="")
    table = {
        "arm": [marked(row.arm) for row in arms],
        "": [standing_in_sentence(row) for row in arms],
        **{head: [text for text, _ in column] for head, column in numbers.items()},
        "failures": [str(row.failures) for row in arms],
    }
    lines = [first, "", f"| {' | '.join(table)} |", f"|---|---|{'---:|' * (len(table) - 2)}"]
    lines += [f"| {' | '.join(texts)} |" for texts in zip(*table.values(), strict=True)]
    return "\n".join([*lines, "", *map(marked, remarks)]) + "\n"


def rows_as_html(
    rows: Iterable[Row], wording: SentenceWording, headline: str, spent: str, remarks: Sequence[str]
) -> str:
    """The answer, what it took and the table as HTML for a notebook, without scripts or styles."""
    arms = ranked_rows(rows, lower_is_better=wording.lower_is_better)
    table_cells = row_text_columns(arms[:MOST_ROWS], wording)
    heads = "".join(f"<th>{head}</th>" for head in table_cells)
    body = "".join(
        f"<tr>{''.join(f'<td>{_text(text)}</td>' for text, _ in cells)}</tr>"
        for cells in zip(*table_cells.values(), strict=True)
    )
    more = f"<p>… and {plural(len(arms) - MOST_ROWS, 'more arm')}</p>" if len(arms) > MOST_ROWS else ""
    notes = "".join(f"<p>{_text(remark)}</p>" for remark in remarks)
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p><strong>{_text(headline)}</strong> {_text(spent)}</p>{table}{more}{notes}</div>"


def _text(text: str) -> str:
    """Text as HTML: notebooks also wording for formulas between dollar signs."""
    return escaping.escape(text).replace("$", "<span>$</span>")


def rows_as_frame(records: Sequence[Any], **options: Any) -> Any:
    """Records as a pandas DataFrame; the options are its own."""
    try:
        pandas = importlib.import_module("pandas")
    except ModuleNotFoundError:
        raise CannotGoOn("to_frame", rule="needs pandas, which is not installed", remedy="pip install pandas") from None
    return pandas.DataFrame(records, **options)
