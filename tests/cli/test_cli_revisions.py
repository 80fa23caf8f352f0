"""Commands that read a study with several revisions, and what is left of one."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from inside import inside, refused
from revised import revisions

import thresher
from thresher.core.revisions import spec_changes
from thresher.core.spec import Spec

Ask = tuple[Path, list[thresher.Verdict]]


@pytest.fixture(name="ask", scope="module")
def a_study(tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """A folder with study `ask`, and its verdicts. Tests only read it."""
    folder = tmp_path_factory.mktemp("ask")
    return folder, revisions(folder / "thresher.db", last=4)


def json_of(folder: Path, *args: str) -> Any:
    return json.loads(inside(*args, "--format", "json", storage=folder).output)


def test_a_revision_is_printed_checked_and_exported_as_it_was(ask: Ask, tmp_path: Path) -> None:
    folder, verdicts = ask
    for number, verdict in enumerate(verdicts, start=1):
        revision = ["--revision", str(number)]
        data = json_of(folder, "verdict", "ask", *revision)
        assert {name: data[name] for name in ("answer", "told", "revision", "held", "promised")} == {
            name: getattr(verdict, name) for name in ("answer", "told", "revision", "held", "promised")
        }
        report = json_of(folder, "verify", "ask", *revision)
        assert (report["sound"], report["head"]) == (True, verdict.head)
        cases = json_of(folder, "cases", "ask", *revision)
        assert {arm for row in cases["rows"] for arm in row["rewards"]} == {row.arm for row in verdict if row.seen}
        rows = list(csv.DictReader(io.StringIO(inside("export", "ask", "csv", *revision, storage=folder).output)))
        assert (len(rows), {row["arm"] for row in rows}) == (verdict.issued, {row.arm for row in verdict})
        inside("report", "ask", "--out", str(tmp_path / f"{number}.html"), *revision, storage=folder)
        assert verdict.question in (tmp_path / f"{number}.html").read_text()


def test_a_log_with_revisions_is_imported_as_it_was(ask: Ask, tmp_path: Path) -> None:
    folder, verdicts = ask
    for number in (2, None):
        revision = [] if number is None else ["--revision", str(number)]
        file = tmp_path / f"{number}.json"
        file.write_text(inside("export", "ask", "json", *revision, storage=folder).output)
        name = f"copy{number}"
        inside("import", str(file), "--study", name, storage=tmp_path)
        copy = thresher.open_study(name, storage=tmp_path / "thresher.db")
        assert copy.verdict().rows == verdicts[-1 if number is None else 1].rows
        assert json_of(tmp_path, "verify", name)["head"] == verdicts[-1 if number is None else 1].head
    assert not json_of(tmp_path, "diff", "copyNone", "2", "3")["files"]


def test_a_csv_of_a_revision_is_imported_as_results(ask: Ask, tmp_path: Path) -> None:
    folder, verdicts = ask
    file = tmp_path / "results.csv"
    file.write_text(inside("export", "ask", "csv", storage=folder).output)
    spec = thresher.open_study("ask", storage=folder / "thresher.db").spec
    study = thresher.create_study(
        "again", arms=spec.arms, cases=spec.cases, at_least=0.5, storage=tmp_path / "thresher.db"
    )
    inside("import", str(file), "--study", "again", storage=tmp_path)
    means = {row.arm: (row.mean, row.seen) for row in study.verdict()}
    assert means == {row.arm: (row.mean, row.seen) for row in verdicts[-1]}


def test_a_csv_leaves_out_seeds_that_were_others(ask: Ask) -> None:
    folder, _ = ask
    study = thresher.open_study("ask", storage=folder / "thresher.db")
    seeds = {str(row.id): str(row.seed) for row in study.pulls()}
    rows = list(csv.DictReader(io.StringIO(inside("export", "ask", "csv", storage=folder).output)))
    assert all(row["seed"] in ("", seeds[row["pull"]]) for row in rows)
    assert {bool(row["seed"]) for row in rows} == {True, False}


def test_a_revision_that_there_is_not_is_one_line(ask: Ask) -> None:
    folder, _ = ask
    out = "--out", str(folder / "none.html")
    for command in (["verdict", "ask"], ["verify", "ask"], ["cases", "ask"], ["report", "ask", *out]):
        line = refused(*command, "--revision", "4", storage=folder)
        assert line == "revision 4: study 'ask' has 3 revisions; give a number from 1 to 3"
    assert "too small; give at least 1" in refused("verdict", "ask", "--revision", "0", storage=folder)
    assert "there is 'ask'" in refused("verify", "aks2", "--revision", "1", storage=folder)


def test_studies_are_listed_with_their_answers_and_revisions(ask: Ask) -> None:
    folder, verdicts = ask
    cells = inside("studies", storage=folder).output.rstrip("\n").split("\t")
    assert cells[0] == "ask"
    assert cells[4:] == [verdicts[-1].question, "", verdicts[-1].answer, "revision 3"]
    (row,) = json_of(folder, "studies")["studies"]
    assert (row["answer"], row["revision"]) == (verdicts[-1].answer, 3)
    assert "revision   3" in inside("status", "ask", storage=folder).output


def test_diff_says_what_changed_what_holds_and_which_answers_turned(ask: Ask) -> None:
    folder, verdicts = ask
    lines = inside("diff", "ask", storage=folder).output.splitlines()
    assert lines[:6] == [
        "ask, from revision 2 to 3",
        "arms      short new",
        "          polite gone",
        "cases     x3 new",
        "          q3 gone",
        "question  the bar is 0.5, not 0.8",
    ]
    assert re.fullmatch(rf"results   \d+ of {verdicts[1].told} results hold", lines[6])
    assert "cot: ✗ misses → " in lines[7]
    data = json_of(folder, "diff", "ask", "1", "2")
    assert (data["arms_new"], data["arms_gone"], data["cases_new"], data["question"]) == (["polite"], [], [], [])
    assert (data["results"], data["held"], data["turned"]) == (verdicts[0].told, verdicts[0].told, [])
    assert json_of(folder, "diff", "ask", "3", "3")["held"] == verdicts[2].told
    back = json_of(folder, "diff", "ask", "3", "2")
    assert (back["arms_new"], back["arms_gone"]) == (["polite"], ["short"])


def test_diff_names_files_and_the_command() -> None:
    """Files are compared by their digests, which the specification has."""
    changed = {"depends": {"files": {"ask.py": "2"}, "arms": {"a": {"a.txt": "2"}}}, "evaluator": "ask.py {arm} --fast"}
    first = {"depends": {"files": {"ask.py": "1"}, "arms": {"a": {"a.txt": "1"}}}, "evaluator": "ask.py {arm}"}
    specs = [Spec(arms=["a", "b"], at_least=0.5, budget=10, **more) for more in (first, changed)]  # type: ignore[arg-type]
    changes = spec_changes(*specs)
    assert (changes.files, changes.common, changes.evaluator) == (("a.txt",), ("ask.py",), True)


def test_diff_of_one_revision_or_of_none_is_one_line(tmp_path: Path) -> None:
    thresher.create_study("s", arms=["a"], at_least=0.5, storage=tmp_path / "thresher.db")
    assert "has one revision, so there is nothing to compare" in refused("diff", "s", storage=tmp_path)
    assert "there is 's'" in refused("diff", "t", storage=tmp_path)


def test_the_log_has_a_line_for_each_revision_and_the_names_of_its_arms(ask: Ask) -> None:
    folder, _ = ask
    lines = inside("log", "ask", storage=folder).output.splitlines()
    revised = [line.split("  ") for line in lines if "revised" in line]
    assert [cells[3].partition(":")[0] for cells in revised] == ["revision 2", "revision 3"]
    assert revised[0][3].startswith("revision 2: arm polite is new · all ")
    arms = {int(line.split()[0]): line for line in lines}
    for event in thresher.open_study("ask", storage=folder / "thresher.db").events():
        if event.kind == "asked" and event.arm == 2:
            assert (" of short" if event.seq > int(revised[1][0]) else " of polite") in arms[event.seq]
    after = inside("log", "ask", "--after", revised[1][0], storage=folder).output
    assert "short" in after
    assert "polite" not in after


def test_status_lists_the_pending_pulls_of_the_present_revision(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"at_least": 0.5, "budget": 20, "storage": tmp_path / "thresher.db"}
    study = thresher.create_study("s", arms=["a", "b"], **settings)
    for arm in ("a", "b"):
        study.ask(arm=arm)
    thresher.create_study("s", arms=["b"], if_exists="revise", **settings)
    pending = json_of(tmp_path, "status", "s")["pending_pulls"]
    assert [(pull["pull"], pull["arm"]) for pull in pending] == [(2, "b")]


# -- what is left --------------------------------------------------------------------------------------------------


def test_what_is_left_is_what_the_study_itself_says(ask: Ask) -> None:
    folder, verdicts = ask
    data = json_of(folder, "plan", "--study", "ask")
    assert (data["left"], data["answer"]) == (verdicts[-1].left, verdicts[-1].answer)
    assert {arm["arm"]: arm["left"] for arm in data["arms"]} == {row.arm: row.left for row in verdicts[-1]}
    text = inside("plan", "--study", "ask", storage=folder).output
    assert "An estimate" in text
    assert re.search(r"^About \d+ pulls left, ", text, re.MULTILINE)


def test_another_question_changes_what_is_left_and_nothing_in_the_study(ask: Ask) -> None:
    folder, verdicts = ask
    left = verdicts[-1].left
    assert left is not None
    assert json_of(folder, "plan", "--study", "ask", "--tolerance", "0.2")["left"] < left
    assert json_of(folder, "plan", "--study", "ask", "--confidence", "0.9999")["left"] > left
    other = json_of(folder, "plan", "--study", "ask", "--at-least", "80%", "--guarantee", "rate")
    assert other["question"].startswith("Which of 3 arms reach 0.8")
    study = thresher.open_study("ask", storage=folder / "thresher.db")
    assert (study.verdict().head, study.spec.stated_bar) == (verdicts[-1].head, 0.5)


def test_time_and_cost_of_what_is_left_can_be_given(ask: Ask) -> None:
    folder, _ = ask
    given = "--seconds-per-pull", "3", "--workers", "2", "--cost-per-pull", "0.5"
    data = json_of(folder, "plan", "--study", "ask", *given)
    assert (data["seconds"], data["cost"]) == (1.5 * data["left"], 0.5 * data["left"])


def test_a_finished_budget_does_not_end_a_plan(tmp_path: Path) -> None:
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=20, storage=tmp_path / "thresher.db")
    while pull := study.ask():
        study.tell(pull, pull.number % 3 > 0)
    assert study.verdict().left == 0
    assert json_of(tmp_path, "plan", "--study", "s")["left"] > 50
    assert "has no confidence" in refused("plan", "--study", "s", "--confidence", "off", storage=tmp_path)


def test_a_settled_study_has_nothing_left(tmp_path: Path) -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, storage=tmp_path / "thresher.db")
    while pull := study.ask():
        study.tell(pull, 1)
    assert "Nothing is left to evaluate." in inside("plan", "--study", "s", storage=tmp_path).output
    assert json_of(tmp_path, "plan", "--study", "s", "--at-least", "0.95")["left"] > 0


@pytest.mark.parametrize("options", [["--arms", "3"], ["--means", "0.5"], ["--pilot", "x.csv"], ["--seed", "3"]])
def test_what_a_study_knows_is_not_given_again(ask: Ask, options: list[str]) -> None:
    line = refused("plan", "--study", "ask", *options, storage=ask[0])
    assert line.startswith(f"{options[0]}: does not go with --study")


def test_a_wrong_question_is_one_line(ask: Ask) -> None:
    assert refused("plan", "--study", "ask", "--at-least", "3", storage=ask[0]).startswith("--at-least 3: must lie")
    assert "not an arm" not in refused("plan", "--study", "ask", "--margin", "0.1", storage=ask[0])
