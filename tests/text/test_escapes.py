"""Other people's text is shown, never obeyed: by terminals, spreadsheets and Markdown."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from thresher.text.escapes import (
    escaped_csv_cell,
    escaped_csv_line,
    escaped_csv_remark,
    escaped_markdown,
    escaped_visible,
    unescaped_csv_cell,
)

CONTROL = [chr(code) for code in (*range(9), *range(11, 32), *range(127, 160))]


@pytest.mark.parametrize("char", [*CONTROL, "\u202e", "\u2066", "\u2028", "\ud800"])
def test_control_characters_are_shown_as_codes(char: str) -> None:
    shown = escaped_visible(f"a{char}b")
    assert shown.isprintable()
    assert shown == f"a{char!r}b".replace("'", "")


@pytest.mark.parametrize("text", ["", "zlib-6", "two\nlines\t", "日本　語", "é\xa0!", "\N{GRINNING FACE}"])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert escaped_visible(text) == text


@pytest.mark.parametrize("text", ["=1+1", "+1+1", "-1+1", "@SUM(A1)", "\tx", "\rx", "=", "-", "--x", "'=1", "''@x"])
def test_no_cell_is_taken_for_a_formula(text: str) -> None:
    assert escaped_csv_cell(text) == f"'{text}"
    assert unescaped_csv_cell(escaped_csv_cell(text)) == text


@pytest.mark.parametrize("text", ["＝1+1", "＋1", "－1", "＠SUM(A1)", "'＝1", '"=1"'])
def test_no_cell_is_taken_for_a_formula_in_other_scripts_and_quotes(text: str) -> None:
    assert escaped_csv_cell(text) == f"'{text}"
    assert unescaped_csv_cell(escaped_csv_cell(text)) == text


@pytest.mark.parametrize("mark", [";", "\t", "\n", "\r"])
@pytest.mark.parametrize("formula", ["=1", "@x", "'=1", '"=1"', "-a", "＝1"])
def test_no_part_of_a_cell_is_taken_for_a_formula_where_other_marks_end_cells(mark: str, formula: str) -> None:
    text = f"a{mark}{formula}{mark}-0.5"
    assert escaped_csv_cell(text) == f"a{mark}'{formula}{mark}-0.5"
    assert unescaped_csv_cell(escaped_csv_cell(text)) == text


@pytest.mark.parametrize("text", ["", "a", "it's", "'quoted'", "-0.5", "+1e-3", "0.5", "-.5", " =1", "a=b;c-d", "1;-2"])
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert escaped_csv_cell(text) == text
    assert unescaped_csv_cell(text) == text


@given(st.text(alphabet="'\"=+-@;\t\r\n＝0.5ea", max_size=8) | st.text(max_size=20))
def test_every_cell_is_read_back_exactly(text: str) -> None:
    assert unescaped_csv_cell(escaped_csv_cell(text)) == text


@pytest.mark.parametrize("char", CONTROL)
def test_a_remark_in_csv_commands_no_terminal(char: str) -> None:
    assert escaped_csv_remark(f"a{char}b") == escaped_visible(f"a{char}b")


@pytest.mark.parametrize("text", ["two\nlines\t", "two\r\nlines", "\N{WOMAN}\u200d\N{PERSONAL COMPUTER}", "可\u2028"])
def test_the_words_of_a_remark_in_csv_stay_as_they_are(text: str) -> None:
    assert escaped_csv_remark(text) == text
    assert escaped_csv_remark(f"={text}") == f"'={text}"


HOSTILE = [
    "[a](http://evil)",
    "![a](http://evil)",
    "<http://evil>",
    "http://evil.example",
    "www.evil.example",
    "<script>alert(1)</script>",
    "&lt;b&gt;",
    "&amp;",
    "*a* **b** _c_ __d__ ~~e~~",
    "`code`",
    "a | b",
    "\\| b \\",
    "# heading",
    "- item",
    "+ item",
    "1. item",
    "12) item",
    "> quote",
    "[a]: http://evil",
    "zlib-6",
    "-0.5",
    "gpt_4.1-mini",
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("frame", ["{}", "| arm |\n|---|\n| {} |"])
def test_markdown_shows_text_as_it_is(text: str, frame: str) -> None:
    page = MarkdownIt("gfm-like", {"linkify": False}).render(frame.format(escaped_markdown(text)))
    plain = page.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")
    assert text in plain
    body = page.split("<td>")[-1].split("</td>")[0] if "<td>" in page else page.split("<p>")[-1].split("</p>")[0]
    assert "<" not in body


@pytest.mark.parametrize("text", ["@someone", "me@example.com", "mailto:me@example.com", "a@b", "@org/team"])
def test_markdown_has_no_mentions_and_addresses(text: str) -> None:
    page = MarkdownIt("gfm-like", {"linkify": False}).render(escaped_markdown(text))
    assert page == f"<p>{text}</p>\n".replace("@", "@\u200b")  # which is shown as nothing, and ends a mention
    assert "@" not in escaped_markdown(text).replace("\\@&#8203;", "")


def test_names_that_are_often_used_stay_readable() -> None:
    names = ["zlib-6", "0.5", "-0.5", "a/b", "x=1"]
    assert [escaped_markdown(name) for name in names] == names


def test_csv_with_an_end_of_line_in_a_cell_is_one_row() -> None:
    text = escaped_csv_line([escaped_csv_cell("\r=1"), "a\nb", 0.5])
    assert next(csv.reader(io.StringIO(text, newline=""))) == ["'\r'=1", "a\nb", "0.5"]
