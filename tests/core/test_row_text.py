"""Rows as people and programs read them: columns, alignment, narrow screens, failures, Markdown and HTML."""

from typing import Any

import pytest

from thresher.core import row_text
from thresher.core.rows import Row
from thresher.core.sentences import SentenceWording

LOOK = SentenceWording(0.5)


def row(arm: str, standing: Any = "reaches", **given: Any) -> Row:
    settings: dict[str, Any] = {
        "reached": {"reaches": True, "misses": False}.get(standing), "certified": standing in ("reaches", "misses"),
        "mean": 0.75, "low": 0.5, "high": 1.0, "seen": 1234, "pending": 0, "charged": 0,
        "failures": 0, "left": 0, "reason": None,
    }  # fmt: skip
    return Row(arm=arm, standing=standing, **settings | given)


def shown(rows: list[Row], wording: SentenceWording = LOOK, width: int | None = None) -> list[str]:
    return ["".join(text for text, _ in line) for line in row_text.rows_as_table(rows, wording, width)]


def test_names_and_answers_are_at_the_left_and_numbers_at_the_right() -> None:
    rows = [row("cot", "open", mean=0.25, seen=7, pending=12, left=1234, reached=False), row("terse")]
    assert shown(rows) == [
        "arm                      mean  between  pulls     left  pending",
        "terse  ✓ reaches         0.75  0.5 – 1  1,234                  ",
        "cot    · open, so far ✗  0.25  0.5 – 1      7  ~ 1,200       12",
        "",
    ]


def test_the_best_of_each_come_first_and_open_arms_last() -> None:
    rows = [
        row("gone", "retired"),
        row("open", "open", mean=1.0),
        row("out", "misses"),
        row("in"),
        row("best", mean=0.9),
    ]
    assert [line.split()[0] for line in shown(rows)[1:-1]] == ["best", "in", "out", "open", "gone"]


def test_the_head_of_a_column_ends_where_its_numbers_end() -> None:
    head, first, _ = shown([row("a", seen=1234567)])
    assert (head[-9:], first[-9:]) == ("    pulls", "1,234,567")


def test_a_column_without_anything_in_it_is_left_out() -> None:
    assert list(row_text.row_text_columns([row("a")], LOOK)) == ["arm", "", "mean", "between", "pulls"]
    bare = row("a", "retired", low=None, high=None, left=5, mean=None, seen=0)
    assert list(row_text.row_text_columns([bare], LOOK)) == ["arm", "", "mean", "pulls"]
    full = row("a", pending=1, failures=2, charged=3, missing=4)
    assert list(row_text.row_text_columns([full], LOOK))[5:] == ["pending", "failed", "charged", "missing"]
    assert row_text.row_text_columns([full], LOOK)["failed"] == [("2", "")]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ("✓ reaches", "reaches")),
        ({"exact": True}, ("✓ reaches, exact", "reaches")),
        ({"interval_disagrees": True}, ("✓ reaches, interval disagrees", "reaches")),
        ({"standing": "misses"}, ("✗ misses", "misses")),
        ({"standing": "open"}, ("· open", "open")),
        ({"standing": "open", "reached": True}, ("· open, so far ✓", "open")),
        ({"standing": "open", "reached": False}, ("· open, so far ✗", "open")),
        ({"standing": "retired", "reached": True}, ("✕ retired", "retired")),
        ({"standing": "baseline"}, ("= baseline", "baseline")),
    ],
)
def test_a_row_says_whether_the_arm_reaches_the_bar(given: dict[str, Any], expected: tuple[str, str]) -> None:
    assert row_text.row_text_columns([row("a", **given)], LOOK)[""] == [expected]


@pytest.mark.parametrize(
    ("wording", "heads"),
    [
        (SentenceWording(0.5), ["mean"]),
        (SentenceWording(0.5, share=0.9), ["share", "between", "median", "p10"]),
        (SentenceWording(0.5, share=0.9, lower_is_better=True), ["within", "between", "median", "p90"]),
        (SentenceWording(0.5, share=0.5), ["share", "between", "median"]),
        (SentenceWording(0.0, baseline="old"), ["difference", "between", "mean", "baseline"]),
    ],
)
def test_each_question_has_its_columns(wording: SentenceWording, heads: list[str]) -> None:
    assert list(row_text.row_text_columns([row("a")], wording))[2 : 2 + len(heads)] == heads


def test_the_baseline_is_compared_with_nothing() -> None:
    wording = SentenceWording(0.0, baseline="old")
    rows = [row("old", "baseline", difference=0.25, mean=None), row("new", difference=0.25, baseline=0.5)]
    table = row_text.row_text_columns(rows, wording)
    assert [text for text, _ in table["difference"]] == ["–", "+0.25"]
    assert ([text for text, _ in table["mean"]], [text for text, _ in table["baseline"]]) == (
        ["–", "0.75"],
        ["", "0.5"],
    )
    ratio = SentenceWording(0.0, share=0.5, baseline="old", ratio=1.1, unit="s")
    table = row_text.row_text_columns([row("new", baseline=0.5, median=0.25)], ratio)
    assert (table["median"], table["baseline"]) == ([("0.25×", "")], [("500 ms", "")])


def test_cases_are_counted_of_all() -> None:
    assert row_text.row_text_columns([row("a")], LOOK)["pulls"] == [("1,234", "")]
    assert row_text.row_text_columns([row("a")], SentenceWording(0.5, cases=5000))["cases"] == [("1,234 of 5,000", "")]


# -- narrow and wide -------------------------------------------------------------------------------------------------


def test_wide_characters_take_two_columns_and_marks_none() -> None:
    names = ["abcd", "日本", "e\u0301"]
    ends = [line.index("✓") for line in shown([row(name) for name in names])[1:-1]]
    assert [end - len(name) for end, name in zip(ends, names, strict=True)] == [2, 2, 5]
    head, first, rest, _ = shown([row("日本語日本語")], width=5)
    assert (head[:12], first[:8], rest) == ("arm         ", "日本語日本  ✓", "語")


def test_on_a_narrow_screen_names_are_folded_but_never_to_less_than_ten_characters() -> None:
    rows = [row("x" * 25)]
    wide = shown(rows)[0]
    rest = len(wide) - 25
    for width, longest in ((len(wide), 25), (len(wide) - 1, 24), (rest + 12, 12), (rest + 10, 10), (5, 10)):
        head, first, *more = shown(rows, width=width)
        assert len(head) == rest + longest
        assert first.startswith("x" * longest + " ")
        assert "".join(more) == "x" * (25 - longest)
    assert shown([row("abc")], width=5)[0].startswith("arm  "), "a short name is not made longer"
    assert shown([row("tests/test_run.py")], width=5)[2:4] == ["test_", "run.py"], "a name breaks between its words"


def test_on_a_narrow_screen_details_are_left_out_the_last_first_and_named() -> None:
    wording = SentenceWording(0.5, share=0.9)
    rows = [row("a", share=0.75, median=0.5, quantile=0.25)]
    whole = shown(rows, wording)
    width = len(whole[0])
    assert shown(rows, wording, width) == whole
    one_less = shown(rows, wording, width - 1)
    assert one_less[-2:] == ["On a wider screen: p10.", ""]
    assert "median" in one_less[0]
    assert shown(rows, wording, 10)[-2:] == ["On a wider screen: median, p10.", ""]


def test_on_a_narrow_screen_counts_are_left_out_before_the_table_becomes_wider_than_the_screen() -> None:
    wording = SentenceWording(0.9, unit="%", cases=200)
    rows = [row("fewshot", mean=0.9, low=0.8, high=0.95, seen=94, left=90, failures=4, charged=4, missing=4)]
    whole = shown(rows, wording)[0]
    assert whole.split()[-3:] == ["failed", "charged", "missing"]
    narrower = shown(rows, wording, len(whole) - 1)
    assert narrower[0].split()[-2:] == ["failed", "charged"]
    assert narrower[-2:] == ["On a wider screen: missing.", ""]
    assert max(map(len, shown(rows, wording, 60))) <= 60


@pytest.mark.parametrize(("count", "words"), [(300, None), (301, "1 more arm"), (302, "2 more arms")])
def test_a_table_for_people_has_300_arms(count: int, words: str | None) -> None:
    rows = [row(f"{number}") for number in range(count)]
    lines = shown(rows)
    assert len(lines) == 302 + (words is not None)
    assert (lines[-2] == f"… and {words}; CSV has all") == (words is not None)
    page = row_text.rows_as_html(rows, LOOK, "question", "answer", [])
    assert page.count("<tr>") == 301
    assert (f"<p>… and {words}</p>" in page) == (words is not None)


# -- failures --------------------------------------------------------------------------------------------------------


def reasons(*rows: Row) -> list[str]:
    return ["".join(text for text, _ in line) for line in row_text.row_failures_text(rows)]


def test_retired_arms_are_explained_and_of_the_others_the_worst() -> None:
    assert reasons(row("a")) == []
    gone = row("gone", "retired", reason="broke\nbadly", failures=3)
    assert len(reasons(gone)) == 2
    assert reasons(gone)[0].endswith(" gone: broke badly")
    one = row("one", failures=1, reason="slow")
    assert reasons(one) == ["1 pull failed; one: slow", ""]
    worst = row("two", failures=2, reason="down")
    assert reasons(one, gone, worst)[1:] == ["3 pulls of 2 arms failed; two: down", ""]


@pytest.mark.parametrize(("count", "words"), [(20, None), (21, "1 more retired arm"), (22, "2 more retired arms")])
def test_twenty_retired_arms_are_explained(count: int, words: str | None) -> None:
    lines = reasons(*(row(f"{number}", "retired", reason="x") for number in range(count)))
    assert len(lines) == 21 + (words is not None)
    assert (lines[-2] == f"… and {words}; CSV has all") == (words is not None)


# -- other formats ---------------------------------------------------------------------------------------------------


def test_markdown_has_a_sentence_a_table_and_remarks() -> None:
    rows = [
        row("a|b", exact=True, failures=2),
        row("c", "misses", mean=None, low=None, high=None),
        row("d", "open"),
    ]
    assert row_text.rows_as_markdown(rows, LOOK, "first", ["last"]).splitlines() == [
        "first",
        "",
        "| arm |  | mean | low | high | pulls | failures |",
        "|---|---|---:|---:|---:|---:|---:|",
        "| a\\|b | ✓ reaches, exact | 0.75 | 0.5 | 1 | 1,234 | 2 |",
        "| c | ✗ misses |  |  |  | 1,234 | 0 |",
        "| d | · open | 0.75 | 0.5 | 1 | 1,234 | 0 |",
        "",
        "last",
    ]
    cases = row_text.rows_as_markdown(
        [row("a", baseline=0.5, difference=0.25)], SentenceWording(0.0, baseline="old", cases=9), "", []
    )
    assert "| difference | low | high | mean | baseline | cases | failures |" in cases
    assert "| +0.25 | +0.5 | +1 | 0.75 | 0.5 | 1,234 of 9 | 0 |" in cases


def test_html_shows_names_and_never_obeys_them() -> None:
    page = row_text.rows_as_html([row("<b>$x$")], LOOK, "which?", "a & b", ["note"])
    assert page.startswith("<div><p><strong>which?</strong> a &amp; b</p><table><thead><tr><th>arm</th><th></th>")
    assert "<td>&lt;b&gt;<span>$</span>x<span>$</span></td><td>✓ reaches</td>" in page
    assert page.endswith("</tbody></table><p>note</p></div>")
