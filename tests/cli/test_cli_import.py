"""Studies and results into and out of a store: all of a file, or nothing and a line that says where it is wrong."""

import csv
import io
from pathlib import Path

import pytest
from place import Place, a_place  # noqa: F401 - the fixture
from program import complaint

import thresher as library
from thresher.cli import cli


def test_what_is_exported_is_imported_equal_to_the_bit(place: Place, tmp_path: Path) -> None:
    study = place.study()
    while pull := study.ask():
        study.tell(pull, pull.seed / 2**32) if pull.id % 5 else study.drop(pull, reason="ünïcode\n\0")
    file = tmp_path / "s.json"
    file.write_text(place.good("export", "s", "json"))
    place.good("import", str(file), "--study", "copy")
    assert place.json("verify", "copy")["digest"] == place.json("verify", "s")["digest"]
    assert "already" in complaint(place("import", str(file)))
    elsewhere = f"sqlite:///{tmp_path}/elsewhere.db"
    place.good("import", str(file), "--storage", elsewhere)
    assert library.open_study("s", storage=elsewhere).events() == study.events()


def test_csv_has_a_row_a_pull(place: Place) -> None:
    place.good("ask", "s", "-n", "2")
    place.good("tell", "s", "2", "0.1")
    rows = list(csv.DictReader(io.StringIO(place.good("export", "s", "csv"))))
    assert [(row["pull"], row["arm"], row["state"], row["reward"]) for row in rows] == [
        ("1", "a", "pending", ""),
        ("2", "b", "told", "0.1"),
    ]


def test_results_already_paid_for_go_in_all_or_none(place: Place, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.json"
    good.write_text("arm,reward\na,1\nb,0.5\na,\n")
    bad.write_text('[{"arm": "a", "reward": 1}, {"arm": "a", "reward": 7}]')
    assert "must lie within the bounds" in complaint(place("import", str(bad), "--study", "s"))
    place.good("import", str(good), "--study", "s")
    assert place.json("status", "s")["told"] == 2
    place.good("ask", "s")
    assert "before the first ask" in complaint(place("import", str(good), "--study", "s"))
    complaint(place("import", str(good)))
    complaint(place("import", str(tmp_path / "nowhere"), "--study", "s"))


ODD = {
    "a word": ("arm,reward\na,1\nb,x\n", "line 3 of FILE: reward 'x': must be a finite number"),
    "no number": ("arm,reward\na,1\nb,nan\n", "line 3 of FILE: reward nan: must be a finite number"),
    "infinity": ("arm,reward\na,1e999\n", "line 2 of FILE: reward inf"),
    "out of bounds": ("arm,reward\na,7\n", "line 2 of FILE: reward 7.0: must lie within the bounds (0, 1)"),
    "an unknown arm": ("arm,reward\na,1\nc,1\n", "line 3 of FILE: arm 'c': is not an arm of this study"),
    "no rewards": ("arm\na\n", "line 1 of FILE: column 'reward': is not there"),
    "semicolons": ("arm;reward\na;1\n", "line 1 of FILE: column 'arm': is not there among ['arm;reward']"),
    "a column twice": ("arm,reward,reward\na,1,0\n", "column 'reward': is there twice"),
    "too many cells": ("arm,reward\na,1,3\n", "line 2 of FILE 'a,1,3': has 3 cells"),
    "a quote left open": ('arm,reward\n"a,1\n', "line 2 of FILE: is not CSV"),
    "a pull twice": ("pull,arm,reward\n1,a,1\n2,a,1\n1,a,1\n", "line 4 of FILE: pull '1': is there twice"),
    "nothing": ("", "line 1 of FILE: column 'arm': is not there"),
    "more than the budget": ("arm,reward\n" + "a,1\n" * 41, "has 41 rewards, and the budget of the study is 40"),
    "a list of numbers": ("[1]", "row 1 of FILE 1: is not an object with arm and reward"),
    "no reward": ('[{"arm": "a", "reward": 1}, {"arm": "a"}]', "row 2 of FILE: column 'reward': is not there"),
    "an object": ('{"arm": "a", "reward": 1}', "holds an object without events"),
    "half of JSON": ("{", "is not JSON"),
    "deep JSON": ("[" * 100_000, "is not JSON"),
    "no list": ('{"events": 3}', "is not the log of a study"),
    "no events": ('{"events": []}', "must begin with event 1"),
    "half an event": ('{"events": [{"seq": 1}]}', "is not the log of a study, event 1"),
    "a wrong specification": ('{"events": [{"seq": 1, "kind": "created", "spec": 3}]}', "must be a JSON object"),
    "a key that is no text": ('{"events": [{"seq": 1, "kind": "created", "key": [1]}]}', "event 1: key [1]"),
    "a huge number": ('{"events": [{"seq": 1, "kind": "created", "pull": 1e30}]}', "event 1: pull 1e+30"),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_files_are_refused_by_row_and_column_and_nothing_is_imported(place: Place, odd: str) -> None:
    """In this process: every command is the same program, and this is a long list."""
    text, words = ODD[odd]
    file = place.folder / "odd"
    file.write_text(text)
    name = "t" if "events" in text else "s"
    with pytest.raises(library.ThresherError) as caught:
        cli.main(["import", str(file), "--study", name, "--storage", place.url], standalone_mode=False)
    assert words.replace("FILE", str(file)) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [event.kind for event in place.study().events()] == ["created"]
    assert place.study().store.studies() == ["s"]


def test_spreadsheets_may_mark_their_text_and_pad_their_cells(place: Place) -> None:
    file = place.folder / "results.csv"
    file.write_bytes(b"\xef\xbb\xbfarm , reward\r\na, 1\r\n b,false\r\n\r\n")
    place.good("import", str(file), "--study", "s")
    told = [(event.arm, event.reward) for event in place.study().events() if event.kind == "told"]
    assert told == [(0, 1.0), (1, 0.0)]


def test_results_count_towards_the_budget_in_force(place: Place) -> None:
    place.good("extend", "s", "--budget", "60")
    rows = "arm,reward\n" + "a,0.5\nb,0.5\n" * 25
    place.good("import", "-", "--study", "s", stdin=rows)
    assert place.study().verdict().told == 50


def test_names_that_begin_or_end_with_a_blank_are_read_back(place: Place) -> None:
    place.good("create", "blanks", "--threshold=0.5", "--arm= x", "--arm=y ", "--arm=z", "--budget=9")
    place.good("import", "-", "--study", "blanks", stdin="arm,reward\n x,0.5\ny ,0.5\n  z ,0.25\n")
    events = place.study("blanks").events()
    assert [(event.arm, event.reward) for event in events if event.kind == "told"] == [(0, 0.5), (1, 0.5), (2, 0.25)]
