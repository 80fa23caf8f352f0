"""The verdict as rows, as data and as text."""

import csv
import html.parser
import io
import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest
from rows import ROW_NAMES

import thresher


def verdict(*arms: str, budget: int = 30) -> thresher.Verdict:
    """A finished study in which the first arm always passes and the others never do."""
    study = thresher.create_study("s", arms=arms, at_least=0.5, budget=budget)
    while pull := study.ask():
        study.tell(pull, pull.arm == arms[0])
    return study.verdict()


def test_a_verdict_is_a_collection_of_rows_that_are_found_by_name() -> None:
    found = verdict("terse", "polite", "cot")
    assert [row.arm for row in found] == ["terse", "polite", "cot"]
    assert len(found) == 3
    assert found["polite"] is found.rows[1]
    assert "cot" in found
    assert found.rows[0] in found
    assert "nobody" not in found
    assert 1 not in found


def test_a_misspelt_arm_is_an_error_that_names_those_that_are_close() -> None:
    found = verdict("terse", "polite", "cot")
    with pytest.raises(
        thresher.InvalidInput, match=r"^arm 'polit': is not an arm of this study; did you mean 'polite'\?$"
    ):
        found["polit"]
    with pytest.raises(
        KeyError, match=r"^arm 'zzz': is not an arm of this study; its arms are 'terse', 'polite', 'cot'$"
    ):
        found["zzz"]
    with pytest.raises(KeyError, match="is not an arm"):
        found[0]  # type: ignore[index]


def test_rows_have_the_same_names_as_data_json_and_csv() -> None:
    found = verdict("a", "b")
    data = json.loads(found.to_json())
    assert data["format"] == 1
    assert data == json.loads(json.dumps(found.to_dict()))
    assert [list(row) for row in data["rows"]] == [ROW_NAMES, ROW_NAMES]
    rows = list(csv.DictReader(io.StringIO(found.to_csv())))
    assert [list(row) for row in rows] == [ROW_NAMES, ROW_NAMES]
    assert [row["arm"] for row in rows] == ["a", "b"]
    for part, standing in (("reached", "reaches"), ("missed", "misses"), ("open", "open"), ("retired", "retired")):
        assert data[part] == [row["arm"] for row in data["rows"] if row["standing"] == standing]


def test_printing_a_verdict_shows_the_table_and_then_the_sentences() -> None:
    found = verdict("good", "a name of 日本", budget=40)
    head, good, wide, blank, answer, guarantee = str(found).splitlines()
    assert head.split() == ["arm", "mean", "between", "pulls"]
    assert good.split()[:4] == ["good", "✓", "reaches", "1"]
    assert wide.index("✗") == good.index("✓") - 2, "two characters of the name are as wide as four"
    assert blank == ""
    assert answer == f"{found.answer} {found.spent}"
    assert guarantee == found.guarantee


def test_the_command_line_prints_what_print_shows(tmp_path: object) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=9, storage=storage)
    for pull in study.ask_many(9):
        study.tell(pull, pull.arm == "a")
    argv = [sys.executable, "-m", "thresher", "verdict", "s", "--storage", storage]
    shown = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout
    assert shown == f"{thresher.open_study('s', storage=storage).verdict()}\n"


def test_a_narrow_screen_folds_long_names() -> None:
    found = verdict("x" * 50, "b")
    lines = ["".join(text for text, _ in line) for line in found.lines(60)]
    table = lines[: lines.index("")]
    assert max(map(len, table)) <= 60
    assert sum(line.count("x") for line in table) == 50


def test_retired_arms_and_failures_are_explained() -> None:
    study = thresher.create_study("s", arms=["good", "bad"], at_least=0.5, budget=20)
    study.retire("bad", reason="too\nslow \x1b[31m password=hunter2")
    study.drop(study.ask() or 0, reason="it broke", cause="failed")
    text = str(study.verdict())
    assert "\n✕ bad: too slow \\x1b[31m password=***\n" in text
    assert "\n1 pull failed; good: it broke\n" in text


class Parsed(html.parser.HTMLParser):
    """The tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b", "$x$"])
def test_a_notebook_shows_names_as_text(name: str) -> None:
    study = thresher.create_study("s", arms=[name, "b"], at_least=0.5, budget=9)
    for shown in (study.verdict()._repr_html_(), study._repr_html_()):
        page = Parsed(shown)
        assert name in page.text
        assert study.verdict().question in page.text, "there are open arms"
        assert set(page.tags) <= {"div", "p", "strong", "span", "table", "thead", "tbody", "tr", "th", "td"}
        assert not re.search(r"\$[^<]", shown), "notebooks take text between dollar signs for a formula"


def test_a_frame_needs_pandas_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        thresher.CannotGoOn, match=r"^to_frame: needs pandas, which is not installed; pip install pandas$"
    ):
        verdict("a").to_frame()


def test_a_frame_has_a_row_for_each_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pandas:
        DataFrame = list

    monkeypatch.setitem(sys.modules, "pandas", Pandas)
    frame = verdict("a", "b").to_frame()
    assert [list(record) for record in frame] == [ROW_NAMES, ROW_NAMES]
    assert [record["arm"] for record in frame] == ["a", "b"]


def test_where_rewards_come_from_does_not_make_two_verdicts_differ() -> None:
    found = verdict("a")
    assert replace(found, earlier=3, since="2026-11-17T02:41:12Z", others=2, events=7, head="0f") == found
    assert replace(found, issued=found.issued + 1) != found


def test_a_full_run_does_not_count_pulls_that_were_pending_when_the_hardest_arm_was_settled() -> None:
    def played(pending: int) -> thresher.Verdict:
        study = thresher.create_study("s", arms=["easy"], at_least=0.5)
        while pulls := study.ask_many(pending):
            for pull in pulls:
                study.tell(pull, 1)
        return study.verdict()

    alone, many = played(1), played(16)
    assert many.issued > alone.issued
    assert many.full_run == alone.full_run == alone.issued
