"""Export and import: a whole file, or nothing and one line that says where it is wrong."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest
from inside import inside
from program import complaint
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture

import thresher as library
from thresher.cli import cli
from thresher.study import give_up_in_study, peek_study


def test_an_export_is_imported_bit_for_bit(workdir: Workdir, tmp_path: Path) -> None:
    study = workdir.study()
    while pull := study.ask():
        study.tell(pull, pull.seed / 2**32) if pull.id % 5 else study.drop(pull, reason="ünïcode\n\0", cause="lost")
    file = tmp_path / "s.json"
    file.write_text(workdir.good("export", "s", "json"))
    workdir.good("import", str(file), "--study", "copy")
    assert workdir.json("verify", "copy")["digest"] == workdir.json("verify", "s")["digest"]
    assert "already" in complaint(workdir("import", str(file)))
    elsewhere = f"sqlite:///{tmp_path}/elsewhere.db"
    workdir.good("import", str(file), "--storage", elsewhere)
    assert library.open_study("s", storage=elsewhere).events() == study.events()


def test_csv_has_one_row_per_pull(workdir: Workdir) -> None:
    workdir.good("ask", "s", "-n", "2")
    workdir.good("tell", "s", "2", "0.1")
    rows = list(csv.DictReader(io.StringIO(workdir.good("export", "s", "csv"))))
    assert [(row["pull"], row["arm"], row["state"], row["reward"]) for row in rows] == [
        ("1", "a", "pending", ""),
        ("2", "b", "told", "0.1"),
    ]


def test_results_are_imported_all_or_none(workdir: Workdir, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.json"
    good.write_text("arm,reward\na,1\nb,0.5\n")
    bad.write_text('[{"arm": "a", "reward": 1}, {"arm": "a", "reward": 7}]')
    assert "must lie within the bounds" in complaint(workdir("import", str(bad), "--study", "s"))
    workdir.good("import", str(good), "--study", "s")
    assert workdir.json("status", "s")["told"] == 2
    workdir.good("ask", "s")
    assert "before the first ask" in complaint(workdir("import", str(good), "--study", "s"))
    complaint(workdir("import", str(good)))
    complaint(workdir("import", str(tmp_path / "nowhere"), "--study", "s"))


ODD = {
    "a word": ("arm,reward\na,1\nb,x\n", "line 3 of FILE: reward 'x': must be a finite number"),
    "no number": ("arm,reward\na,1\nb,nan\n", "line 3 of FILE: reward nan: must be a finite number"),
    "infinity": ("arm,reward\na,1e999\n", "line 2 of FILE: reward inf"),
    "out of bounds": ("arm,reward\na,7\n", "line 2 of FILE: reward 7.0: must lie within the bounds (0, 1)"),
    "an unknown arm": ("arm,reward\na,1\nc,1\n", "line 3 of FILE: arm 'c': is not an arm of this study"),
    "an empty reward": ("arm,reward\na,1\nb,\n", "line 3 of FILE: column 'reward': is empty; give a reward,"),
    "an unknown state": ("arm,state,reward\na,gone,\n", "line 2 of FILE: state 'gone': must be one of pending, told,"),
    "a state twice": ("arm,state,reward,state\na,told,1,told\n", "line 1 of FILE: column 'state': occurs twice"),
    "told nothing": ("arm,state,reward\na,told,\n", "line 2 of FILE: reward '': a pull whose state is told has one"),
    "a drop's reward": ("arm,state,reward\na,dropped,1\n", "line 2 of FILE: reward '1': a pull whose state is dropped"),
    "outside": ("arm,state,reward\na,outside,7\n", "line 2 of FILE: reward 7.0: must lie within the bounds (0, 1)"),
    "late and outside": (
        "arm,state,reward\na,late,-1\n",
        "(0, 1); create the study with the --bounds that rewards can really take, or with --clip to count",
    ),
    "a word for true": (
        "arm,reward\na,yes\n",
        "line 2 of FILE: reward 'yes': must be a finite number or a bool; write a number, or true, pass, false or fail",
    ),
    "a percent sign": (
        "arm,reward\na,90%\n",
        "line 2 of FILE: reward '90%': must be a finite number or a bool; write 0.9",
    ),
    "a percentage": ("arm,reward\na,85\n", "(0, 1); if it is a percentage, divide by 100; else create the study with"),
    "a header alone": ("arm,state,reward\n", "has no row"),
    "drops count": ("arm,state,reward\n" + "a,dropped,\n" * 41, "has 41 pulls, and the study has 40 left"),
    "a state that is a number": ('[{"arm": "a", "state": 3, "reward": 1}]', "row 1 of FILE: state 3: must be one of"),
    "null": ('[{"arm": "a", "reward": null}]', "row 1 of FILE: column 'reward': is missing"),
    "no rewards": ("arm\na\n", "line 1 of FILE: column 'reward': is missing"),
    "semicolons": ("arm;reward\na;1\n", "line 1 of FILE: column 'arm': is missing among ['arm;reward']"),
    "a column twice": ("arm,reward,reward\na,1,0\n", "column 'reward': occurs twice"),
    "too many cells": ("arm,reward\na,1,3\n", "line 2 of FILE: 'a,1,3': has 3 cells"),
    "a quote left open": ('arm,reward\n"a,1\n', "line 2 of FILE: is not CSV"),
    "a pull twice": ("pull,arm,reward\n1,a,1\n2,a,1\n1,a,1\n", "line 4 of FILE: pull '1': occurs twice"),
    "nothing": ("", "line 1 of FILE: column 'arm': is missing"),
    "more than the budget": ("arm,reward\n" + "a,1\n" * 41, "has 41 pulls, and the study has 40 left of its budget"),
    "a list of numbers": ("[1]", "row 1 of FILE 1: is not an object with arm and reward"),
    "no reward": ('[{"arm": "a", "reward": 1}, {"arm": "a"}]', "row 2 of FILE: column 'reward': is missing"),
    "an object": ('{"arm": "a", "reward": 1}', "holds an object without events"),
    "half of JSON": ("{", "cannot be read as JSON"),
    "deep JSON": ("[" * 100_000, "cannot be read as JSON"),
    "no list": ('{"format": 1, "events": 3}', "is not the log of a study"),
    "no events": ('{"format": 1, "events": []}', "must begin with event 1"),
    "half an event": ('{"format": 1, "events": [{"seq": 1}]}', "is not the log of a study, event 1"),
    "a wrong specification": (
        '{"format": 1, "events": [{"seq": 1, "kind": "created", "spec": 3}]}',
        "must be a JSON object",
    ),
    "a key that is no text": (
        '{"format": 1, "events": [{"seq": 1, "kind": "created", "key": [1]}]}',
        "event 1: key [1]",
    ),
    "a huge number": ('{"format": 1, "events": [{"seq": 1, "kind": "created", "pull": 1e30}]}', "event 1: pull 1e+30"),
    "another format": ('{"format": 2, "events": []}', "has format 2, not the format 1 of an export"),
    "no format": ('{"events": []}', "has no format, not the format 1 of an export"),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_files_are_refused_by_row_and_column_and_nothing_is_imported(workdir: Workdir, odd: str) -> None:
    """In this process: starting a program for each of so long a list would be slow."""
    text, words = ODD[odd]
    file = workdir.folder / "odd"
    file.write_text(text)
    name = "t" if "events" in text else "s"
    with pytest.raises(library.ThresherError) as caught:
        cli.main(["import", str(file), "--study", name, "--storage", workdir.url], standalone_mode=False)
    assert words.replace("FILE", str(file)) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [event.kind for event in workdir.study().events()] == ["created"]
    assert workdir.study().store.studies() == ["s"]


FIRST = "arm,state,reward\na,told,1\nb,,0.5\na,dropped,\nb,late,1\n"
REPEATED = {
    "the same file": (FIRST, "already has these rows"),
    "a part of it": ("arm,reward\na,1\nb,0.5\n", "already has these rows"),
    "the file with more behind it": (f"{FIRST}a,told,0\n", "already has the first 4 of its rows"),
}


@pytest.mark.parametrize("again", REPEATED)
def test_a_file_is_not_counted_twice_by_mistake(workdir: Workdir, again: str) -> None:
    text, words = REPEATED[again]
    workdir.good("import", "-", "--study", "s", stdin=FIRST)
    before = workdir.study().verdict().issued
    assert words in complaint(workdir("import", "-", "--study", "s", stdin=text))
    assert workdir.study().verdict().issued == before
    workdir.good("import", "-", "--study", "s", "--again", stdin=text)
    assert workdir.study().verdict().issued == before + text.count("\n") - 1


def test_other_results_are_imported_after_the_first(workdir: Workdir) -> None:
    workdir.good("import", "-", "--study", "s", stdin=FIRST)
    workdir.good("import", "-", "--study", "s", stdin="arm,reward\nb,0.5\na,1\n")
    assert workdir.study().verdict().issued == 6


@pytest.mark.parametrize("how", ["add_many", "add", "import"])
def test_sorted_results_are_not_certified_by_their_order(workdir: Workdir, how: str) -> None:
    """The best first: seen one by one, the mean seems to be 1. It is .5, and the bar is .6."""
    results = [("x", 1.0)] * 30 + [("x", 0.0)] * 30
    (workdir.folder / "sorted.csv").write_text("arm,reward\n" + "".join(f"{arm},{reward}\n" for arm, reward in results))
    for seed in range(50):
        storage = workdir.url if how == "import" else None
        study = library.create_study(f"{seed}", arms=["x"], at_least=0.6, budget=61, seed=seed, storage=storage)
        if how == "import":
            inside("import", f"{workdir.folder}/sorted.csv", f"--study={seed}", storage=workdir.url)
        elif how == "add_many":
            study.add_many(results)
        else:
            for arm, reward in results:
                study.add(arm, reward)
        study.ask()
        row = study.verdict()["x"]
        assert (row.seen, row.reached, row.certified) == (60, False, False)


def test_spreadsheets_may_mark_their_text_and_pad_their_cells(workdir: Workdir) -> None:
    file = workdir.folder / "results.csv"
    file.write_bytes(b"\xef\xbb\xbfarm , reward\r\na, 1\r\n b,false\r\n\r\n")
    workdir.good("import", str(file), "--study", "s")
    told = [(event.arm, event.reward) for event in workdir.study().events() if event.kind == "told"]
    assert told == [(0, 1.0), (1, 0.0)]


def test_results_count_towards_the_budget_in_force(workdir: Workdir) -> None:
    workdir.good("extend", "s", "--budget", "60")
    rows = "arm,reward\n" + "a,0.5\nb,0.5\n" * 25
    workdir.good("import", "-", "--study", "s", stdin=rows)
    assert workdir.study().verdict().told == 50


def test_names_that_begin_or_end_with_a_space_are_read_back(workdir: Workdir) -> None:
    workdir.good("create", "blanks", "--at-least=0.5", "--arm= x", "--arm=y ", "--arm=z", "--budget=9")
    workdir.good("import", "-", "--study", "blanks", stdin="arm,reward\n x,0.5\ny ,0.5\n  z ,0.25\n")
    events = workdir.study("blanks").events()
    assert [(event.arm, event.reward) for event in events if event.kind == "told"] == [(0, 0.5), (1, 0.5), (2, 0.25)]


def test_an_import_says_what_it_charges_and_when_it_is_weighed(workdir: Workdir) -> None:
    rows = "arm,state,reward\na,told,1\na,,0.5\na,,\nb,dropped,\nb,pending,\nb,late,0.25\nb,cancelled,\n"
    said = workdir("import", "-", "--study", "s", stdin=rows)
    words = "imported 2 rewards and 5 pulls to be charged, 1 of them with a late reward; they are weighed all together"
    assert said.err == f"thresher: study 's': {words} at the first ask\n"
    study = workdir.study()
    study.ask()
    docket = peek_study(study, lambda ledger: ledger.docket)
    assert (list(docket.committed), list(docket.charged)) == ([2, 0], [1, 4])
    assert study.verdict()["b"].mean == 0.25  # late rewards count in the statistics
    uncertified = library.create_study(
        "plain", arms=["a"], at_least=0.5, budget=9, confidence=None, storage=workdir.url
    )
    said = workdir(
        "import", "-", "--study", uncertified.name, stdin='[{"arm": "a", "reward": 1}, {"arm": "a", "state": ""}]'
    )
    assert said.err == "thresher: study 'plain': imported 1 reward and 1 pull to be left out\n"


def drop_all(study: library.Study) -> None:
    """Nine of ten rewards that come back are 1, but half of the arm's pulls are lost."""
    while pull := study.ask():
        study.drop(pull, cause="lost") if pull.number % 2 else study.tell(pull, pull.number % 10 != 0)


def test_a_study_created_again_from_its_export_certifies_nothing_that_it_could_not_before(workdir: Workdir) -> None:
    question: dict[str, Any] = {"arms": ["a"], "at_least": 0.5, "budget": 400, "storage": workdir.url}
    study = library.create_study("lossy", **question)
    drop_all(study)
    assert not study.verdict()["a"].certified
    copy = library.create_study("copy", **question)
    workdir.good("import", "-", "--study", "copy", stdin=workdir.good("export", "lossy", "csv"))
    assert copy.ask() is None
    row = copy.verdict()["a"]
    assert (row.certified, row.seen, row.charged) == (False, 200, 200)


def test_csv_says_how_the_certificate_counted_each_pull(workdir: Workdir) -> None:
    study = library.create_study("states", arms=["a"], at_least=0.5, budget=9, storage=workdir.url, max_failures=None)
    pulls = study.ask_many(9)
    give_up_in_study(study, pulls[0], cause="cancelled", reason="never began")  # charged, for a later pull is told
    study.drop(pulls[1], cause="lost")
    study.drop(pulls[2], cause="lost")
    study.tell(pulls[2], 0.5)
    study.tell(pulls[3], 1)
    with pytest.raises(library.InvalidInput):
        study.tell(pulls[4], 1.5)
    study.drop(pulls[5], cause="failed")
    give_up_in_study(study, pulls[6], cause="cancelled", reason="never began")
    rows = list(csv.DictReader(io.StringIO(workdir.good("export", "states", "csv"))))
    assert [(row["state"], row["reward"]) for row in rows] == [
        ("dropped", ""), ("dropped", ""), ("late", "0.5"), ("told", "1.0"), ("outside", "1.5"), ("dropped", ""),
        ("cancelled", ""), ("pending", ""), ("pending", ""),
    ]  # fmt: skip
    clipped = library.create_study("clipped", arms=["a"], at_least=0.5, budget=9, clip=True, storage=workdir.url)
    workdir.good("import", "-", "--study", "clipped", stdin=workdir.good("export", "states", "csv"))
    assert clipped.verdict()["a"].seen == 3
    ignoring = library.create_study("ignoring", arms=["a"], at_least=0.5, failure="ignore", storage=workdir.url)
    give_up_in_study(ignoring, ignoring.ask_many(1)[0], cause="cancelled", reason="never began")
    assert ",dropped," in workdir.good("export", "ignoring", "csv")


def test_a_reward_that_came_after_its_pull_was_overtaken_is_exported_as_late(workdir: Workdir) -> None:
    study = library.create_study("slow", arms=["a"], at_least=0.5, budget=60, storage=workdir.url)
    slow, *others = study.ask_many(60)
    for pull in others:
        study.tell(pull, pull.number % 2)
    study.tell(slow, 1)
    assert study.verdict()["a"].charged == 1
    assert "late,1.0" in workdir.good("export", "slow", "csv").splitlines()[1]
