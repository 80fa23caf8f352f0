"""Results with cases, in and out: known values, each case of an arm once."""

import csv
import io
import json
from pathlib import Path

import pytest
from program import Result
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture

import thresher as library
from thresher.cli import cli
from thresher.core.hard_cases import hardest_cases
from thresher.study import peek_study

CASES = ["one", "two", " three", "=4"]


def with_cases(workdir: Workdir, name: str, **more: object) -> library.Study:
    question = {"arms": ["a", "b"], "at_least": 0.5, "cases": CASES, **more}
    return library.create_study(name, storage=workdir.url, **question)  # type: ignore[arg-type]


def known(study: library.Study) -> dict[tuple[str, str | int], float]:
    return {(arm, row.case): reward for row in study.cases() for arm, reward in row.rewards.items()}


@pytest.mark.parametrize(
    "text",
    [
        "arm,reward,case\na,1,one\nb,0,one\na,0.5, three\n",
        "case,arm,state,reward\none,a,told,1\none,b,told,0\n three,a,late,0.5\ntwo,a,dropped,\ntwo,b,pending,\n",
        " arm, reward, case \na,1, one\nb,false,one\na,0.5,three \n".replace("three ", " three"),
        '[{"arm": "a", "reward": 1, "case": "one"}, {"arm": "b", "reward": 0, "case": "one"},'
        ' {"arm": "a", "reward": 0.5, "case": " three"}]',
    ],
)
def test_results_are_known_values_of_their_cases(workdir: Workdir, text: str) -> None:
    study = with_cases(workdir, "t")
    file = workdir.folder / "results"
    file.write_text(text)
    workdir.good("import", str(file), "--study", "t")
    assert known(study) == {("a", "one"): 1.0, ("b", "one"): 0.0, ("a", " three"): 0.5}
    asked = [(pull.arm, pull.case) for pull in study.ask_many(9)]
    assert sorted(asked) == sorted({("a", "two"), ("a", "=4"), ("b", "two"), ("b", " three"), ("b", "=4")})


def test_numbered_cases_are_named_by_their_number(workdir: Workdir) -> None:
    study = with_cases(workdir, "t", cases=3)
    workdir.good("import", "-", "--study", "t", stdin='[{"arm": "a", "reward": 1, "case": 2}]')
    workdir.good("import", "-", "--study", "t", stdin="arm,reward,case\na,0,0\n")
    assert known(study) == {("a", 2): 1.0, ("a", 0): 0.0}


ODD = {
    "an unknown case": ("arm,reward,case\na,1,five\n", "line 2 of FILE: case 'five': is not a case of this study"),
    "the same case twice": (
        "arm,reward,case\na,1,one\nb,1,one\na,1,one\n",
        "line 4 of FILE: case 'one': already has a reward of arm 'a', from line 2 of FILE; give each case",
    ),
    "no case": (
        "arm,reward,case\na,1,\n",
        "line 2 of FILE: column 'case': is empty: every result of this study needs its case",
    ),
    "no column": (
        "arm,reward\na,1\n",
        "line 2 of FILE: column 'case': is missing: every result of this study needs its case",
    ),
    "no case in JSON": (
        '[{"arm": "a", "reward": 1}]',
        "row 1 of FILE: column 'case': is missing: every result of this study",
    ),
    "an unknown case in JSON": ('[{"arm": "a", "reward": 1, "case": 7}]', "row 1 of FILE: case 7: is not a case"),
    "a case before": (
        "arm,reward,case\nb,0,two\n",
        "line 2 of FILE: case 'two': already has a reward of arm 'b', from an",
    ),
    "more than the budget": ("arm,reward,case\na,1,one\na,1,two\na,1,=4\nb,1,one\n", "has 4 pulls"),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_results_are_refused_by_row_and_nothing_is_imported(workdir: Workdir, odd: str) -> None:
    text, words = ODD[odd]
    study = with_cases(workdir, "t", budget=4)
    study.add("b", 1, case="two")
    file = workdir.folder / "odd"
    file.write_text(text)
    with pytest.raises(library.ThresherError) as caught:
        cli.main(["import", str(file), "--study", "t", "--storage", workdir.url], standalone_mode=False)
    assert words.replace("FILE", str(file)) in str(caught.value)
    assert study.verdict().told == 1


def messy(workdir: Workdir) -> library.Study:
    """A study with cases that were lost, told late, told twice, and are pending."""
    study = with_cases(workdir, "messy", at_least=0.9)
    first, second = study.ask_many(2)
    study.drop(first, cause="lost")
    study.tell(second, 0.75)
    while (again := study.ask()) is not None and (again.arm, again.case) != (first.arm, first.case):
        study.tell(again, 0.75)
    assert again is not None
    study.tell(first, 0.25)  # late, and so the case's reward
    study.tell(again, 1.0)  # does not count
    study.ask()
    return study


def test_an_export_has_the_case_of_each_pull_and_imports_into_another_study(workdir: Workdir, tmp_path: Path) -> None:
    study = messy(workdir)
    text = workdir.good("export", "messy", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["case"] for row in rows} <= {"one", "two", " three", "'=4"}
    assert sorted(row["state"] for row in rows if row["state"] != "told") == ["late", "pending", "spare"]
    copy = with_cases(workdir, "copy", at_least=0.9)
    said = workdir("import", "-", "--study", "copy", stdin=text).err
    assert f"imported {len(rows) - 2} rewards; 2 pulls without a reward that counts used up no case" in said
    assert known(copy) == known(study)
    file = tmp_path / "messy.json"
    file.write_text(workdir.good("export", "messy", "json"))
    workdir.good("import", str(file), "--study", "whole")
    assert workdir.study("whole").pulls()[0].case == study.pulls()[0].case
    assert known(workdir.study("whole")) == known(study)


def test_a_study_without_cases_exports_and_imports_as_before(workdir: Workdir) -> None:
    workdir.good("import", "-", "--study", "s", stdin="arm,reward,case\na,1,x\n")
    assert workdir.good("export", "s", "csv").splitlines()[0] == "pull,arm,number,seed,state,reward"


def filled(workdir: Workdir, rewards: dict[str, list[float]], **more: object) -> library.Study:
    study = with_cases(workdir, "t", **more)
    study.add_many([(arm, reward, case) for arm in rewards for case, reward in zip(CASES, rewards[arm], strict=False)])
    return study


@pytest.mark.parametrize(
    ("rewards", "order"),
    [
        ({"a": [1, 0, 1, 0], "b": [1, 1, 0, 0]}, ["=4", "two", " three", "one"]),  # most failures first
        ({"a": [1, 0], "b": [1, 0, 0]}, ["two", " three", "one"]),
        ({"a": [1, 0, 0], "b": [1, 1]}, [" three", "two", "one"]),  # the larger share of failures first
        ({"a": [0.2, 0.4, 0.3], "b": [0.9, 0.3]}, [" three", "two", "one"]),  # graded: the lowest mean first
    ],
)
def test_the_hardest_cases_come_first(workdir: Workdir, rewards: dict[str, list[float]], order: list[str]) -> None:
    study = filled(workdir, rewards)
    assert [row.case for row in study.cases()] == order
    assert [row.case for row in peek_study(study, lambda ledger: hardest_cases(ledger, 2))] == order[:2]
    for row in study.cases():
        assert row.failed == sum(reward < 0.5 for reward in row.rewards.values())
        assert row.failed + row.passed == len(row.rewards)


def test_cases_are_printed_as_text_json_and_csv(workdir: Workdir) -> None:
    filled(workdir, {"a": [1, 0], "b": [0, 0]})
    assert workdir.good("cases", "t").splitlines() == [
        "case  failed  passed  mean  a  b",
        "two        2       0     0  0  0",
        "one        1       1   0.5  1  0",
        "",
        "2 cases with a reward; 2 of 4 have none.",
    ]
    data = workdir.json("cases", "t")
    assert (data["study"], data["cases"], data["seen"], data["at_least"]) == ("t", 4, 2, 0.5)
    counts = {"case": "two", "failed": 2, "passed": 0, "mean": 0.0}
    assert data["rows"][0] == {**counts, "rewards": {"a": 0.0, "b": 0.0}, "failed_by": ["a", "b"], "missing_by": []}
    assert (
        workdir.good("cases", "t", "--format=csv")
        == "case,failed,passed,mean,a,b\ntwo,2,0,0.0,0.0,0.0\none,1,1,0.5,1.0,0.0\n"
    )


def test_cases_that_failed_for_good_are_marked(workdir: Workdir) -> None:
    study = library.create_study("t", arms=["a", "b"], cases=["x", "y"], at_least=0.9, tries=2, storage=workdir.url)
    study.add_many([("a", 1, "x"), ("a", 0, "y"), ("b", 1, "x")])
    for _ in range(2):
        study.drop(study.ask_many(1)[0], cause="failed")
    assert workdir.good("cases", "t").splitlines() == [
        "case  failed  passed  mean  missing  a        b",
        "y          1       0     0        1  0  missing",
        "x          0       2     1           1        1",
        "",
        "2 cases with a reward.",
        "Missing, because they failed, and counted as the worst: b 1.",
    ]
    assert [row["missing_by"] for row in workdir.json("cases", "t")["rows"]] == [["b"], []]


def with_one_case(workdir: Workdir) -> library.Study:
    return library.create_study("t", arms=["new", "old"], baseline="old", bounds=(0, 1), cases=1, storage=workdir.url)


def test_ask_gets_nothing_while_another_agent_has_the_only_case(workdir: Workdir) -> None:
    with_one_case(workdir).ask()
    assert workdir("ask", "t") == Result(1, "", "")


def test_ask_waits_for_the_cases_that_other_agents_have(workdir: Workdir) -> None:
    study = with_one_case(workdir)
    (pull,) = study.ask_many(1, lease=0.2)
    again = workdir.good("ask", "t", "--wait").split("\t")
    assert (pull.arm, again[0][:2], again[1:3]) == ("old", "2-", ["old", "2"]), "the first was lost"
    study.tell(2, 1)
    assert workdir.good("ask", "t", "--wait").split("\t")[1] == "new"


def test_many_cases_are_cut_and_many_arms_are_named(workdir: Workdir) -> None:
    arms = [f"a-long-name-{arm}" for arm in range(30)]
    study = library.create_study("many", arms=arms, at_least=0.5, cases=50, storage=workdir.url)
    study.add_many([(arm, at % 2, case) for at, arm in enumerate(arms) for case in range(50)])
    lines = workdir.good("cases", "many").splitlines()
    assert max(map(len, lines)) <= 120
    assert lines[0].endswith("failed by")
    assert lines[1].endswith(" more")
    assert lines[-1] == "The 20 hardest of 50 cases with a reward; --all lists all."
    assert len(lines) == 1 + 20 + 2
    assert len(workdir.good("cases", "many", "--all").splitlines()) == 1 + 50 + 2
    assert len(workdir.json("cases", "many")["rows"]) == 50


def test_without_cases_or_rewards_it_says_so(workdir: Workdir) -> None:
    result = workdir("cases", "s")
    assert (result.status, result.out) == (2, "")
    assert result.err == "thresher: error: cases: this study has none; create one with --cases\n"
    with_cases(workdir, "empty")
    assert workdir.good("cases", "empty").splitlines()[-1] == "0 cases with a reward; 4 of 4 have none."
    assert json.loads(workdir.good("cases", "empty", "--format", "json"))["rows"] == []
