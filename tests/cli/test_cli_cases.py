"""Eval sets on the command line: where cases come from, and how they reach a command."""

import json
from collections import Counter
from pathlib import Path

import pytest
from program import Result, complaint, run, thresher
from workdir import Workdir, a_workdir, only_study  # noqa: F401 - the fixture

from thresher.cli.question_options import arms_in_question_options, question_cases
from thresher.errors import InvalidInput

TWO = ["--arm=a", "--arm=b"]


def cases_of(folder: Path, name: str, data: str) -> object:
    file = folder / name
    file.write_text(data)
    return question_cases(str(file))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.txt", "# my questions\nq1\n\nq 2\n"),
        ("x.csv", "case\nq1\nq 2\n"),
        ("x.csv", "name\nq1\nq 2\n"),
        ("x.json", '["q1", "q 2"]'),
        ("x.json", '{"q1": {}, "q 2": {}}'),
        ("x.jsonl", '"q1"\n"q 2"\n'),
        ("x.jsonl", '{"id": "q1"}\n\n{"id": "q 2"}'),
    ],
)
def test_cases_may_be_names_alone(tmp_path: Path, name: str, data: str) -> None:
    assert cases_of(tmp_path, name, data) == ["q1", "q 2"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.csv", "case,text\n1,one\n2,two\n"),
        ("x.csv", "text, name\none,1\ntwo,2\n"),
        ("x.txt", "id,text\n1,one\n2,two\n"),
        ("x.json", '[{"case": "1", "text": "one"}, {"name": "2", "text": "two"}]'),
        ("x.json", '{"1": {"text": "one"}, "2": {"text": "two"}}'),
        ("x.jsonl", '{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}\n'),
        ("x", '{"id": 1, "text": "one"}\n{"id": 2, "text": "two"}\n'),
    ],
)
def test_cases_have_names_and_parameters(tmp_path: Path, name: str, data: str) -> None:
    assert cases_of(tmp_path, name, data) == {"1": {"text": "one"}, "2": {"text": "two"}}


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.csv", "question,max-score\n\n2 + 2,4\n\n3 * 3,9\n"),
        ("x.json", '[{"question": "2 + 2", "max-score": "4"}, {"question": "3 * 3", "max-score": "9"}]'),
        ("x.jsonl", '{"question": "2 + 2", "max-score": "4"}\n{"question": "3 * 3", "max-score": "9"}\n'),
    ],
)
def test_cases_without_names_are_numbered(tmp_path: Path, name: str, data: str) -> None:
    first, second = {"question": "2 + 2", "max-score": "4"}, {"question": "3 * 3", "max-score": "9"}
    assert cases_of(tmp_path, name, data) == {"1": first, "2": second}


def test_a_case_may_have_parameters_of_any_name(tmp_path: Path) -> None:
    cases = cases_of(tmp_path, "x.json", '{"1": {"arm": "x", "name": "y"}}')
    assert cases == {"1": {"arm": "x", "name": "y"}}


def test_arms_may_be_json_lines_too(tmp_path: Path) -> None:
    (tmp_path / "arms.jsonl").write_text('{"name": "a", "depth": 1}\n"b"\n')
    assert arms_in_question_options(str(tmp_path / "arms.jsonl"), ()) == {"a": {"depth": 1}, "b": {}}


BROKEN = [
    ("x.txt", "", "cases file '{file}': names no case"),
    ("x.txt", "# nothing\n", "cases file '{file}': names no case"),
    ("x.csv", "case,text\n", "cases file '{file}': names no case"),
    ("x.csv", "", "cases file '{file}': names no case; write a first line with a column 'case'"),
    (
        "x.csv",
        "q1\nq2\n",
        "line 1 of {file}: 'q1': has no column case, name or id; name the column that holds the cases' names 'case', "
        "'name' or 'id', or rename the file to .txt if it has one case per line and no header",
    ),
    ("x.csv", "\nq1\nq2\n", "line 1 of {file}: '': has no column case, name or id; name the column"),
    ("x.csv", "q1,four\nq2,six\nq3,four\n", "line 1 of {file}: 'q1,four': has no column case, name or id"),
    ("x.csv", "2 + 2,four\n2 + 4,six\n", "line 1 of {file}: '2 + 2,four': has no column case, name or id"),
    ("x.csv", "question,\n2 + 2,4\n", "line 1 of {file}: 'question,': has no column case, name or id"),
    ("x.yml", "- one\n- two\n", "cases file '{file}': is YAML, which is not read"),
    ("x.csv", "text,ID\none,1\n", "line 1 of {file}: 'text,ID': has no column case, name or id; write 'id' instead"),
    (
        "x.csv",
        "Case;text\n1;one\n",
        "line 1 of {file}: 'Case;text': has no column case, name or id; separate the columns with commas instead of "
        "semicolons",
    ),
    ("x.json", "[]", "cases file '{file}': names no case"),
    ("x.jsonl", "", "cases file '{file}': names no case"),
    ("x.txt", "a\nb\na\n", "line 3 of {file}: case 'a': is given twice; give every case its own name"),
    ("x.csv", "case,text\na,1\na,2\n", "line 3 of {file}: case 'a': is given twice"),
    ("x.json", '["a", "a"]', "row 2 of {file}: case 'a': is given twice"),
    ("x.jsonl", '{"id": 1}\n{"id": "1"}\n', "line 2 of {file}: case '1': is given twice"),
    ("x.jsonl", '{"id": 1}\n{"id": \n', "cases file: line 2 of {file}: '{{\"id\":': cannot be read as JSON"),
    (
        "x.jsonl",
        '{"id": 1}\n{"text": "a"}\n',
        "line 2 of {file}: {{'text': 'a'}} has no case, name or id, and other rows",
    ),
    ("x.json", '[{"name": true}]', "row 1 of {file}: case True: must be a string"),
    ("x.json", "7", "cases file '{file}': holds neither a list nor an object"),
]


@pytest.mark.parametrize(("name", "data", "message"), BROKEN)
def test_a_broken_row_is_named(tmp_path: Path, name: str, data: str, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        cases_of(tmp_path, name, data)
    assert str(error.value).startswith(message.format(file=tmp_path / name))


REFUSED = [
    (["--cases=-"], "--cases '-': cannot come from standard input"),
    (
        ["--cases=none.txt"],
        "cases file 'none.txt': cannot be read (No such file or directory); check its name, or give",
    ),
    (["--cases=5k"], "cases file '5k': cannot be read (No such file or directory); check its name, or give the number"),
    (["--cases=0"], "--cases 0: must be a whole number of at least 1"),
    (["--cases=5", "--find=3"], "--find 3: there are only 2 arms; find fewer"),
    (["--cases=5", "--find=0"], "--find 0: must be a whole number of at least 1"),
    (["--cases=5", "--find=1", "--guarantee=rate"], "--find 1: the first arms found are the most likely to be wrong"),
    (["--cases=5", "--guarantee=rate", "--confidence=off"], "--guarantee 'rate': nothing is certified without a"),
    (["--cases=5", "--find=1", "--confidence=off"], "--find 1: nothing is certified without a confidence"),
    (["--cases=5", "--guarantee=some"], "--guarantee 'some': must be 'all'"),
    (["--cases=5", "--tries=0"], "--tries 0: must be a whole number of at least 1"),
    (["--tries=2"], "--tries 2: only cases can be tried again; give --cases, or leave it out"),
    (["--cases=5", "--failure=ignore"], "--failure 'ignore': no case may be left out"),
]


@pytest.mark.parametrize(("args", "message"), REFUSED)
def test_a_bad_option_is_one_line(tmp_path: Path, args: list[str], message: str) -> None:
    assert complaint(thresher("create", "s", "--at-least=0.5", *TWO, *args, cwd=tmp_path)).startswith(
        f"thresher: error: {message}"
    )


@pytest.mark.parametrize("command", [("create", "s"), ("run",)])
def test_no_case_is_taken_for_a_header(tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "cases.csv").write_text("q1\nq2\nq3\n")
    words = [] if command[0] == "create" else ["--", "echo", "{arm}{case} 1"]
    line = complaint(thresher(*command, "--at-least=0.5", *TWO, "--cases=cases.csv", *words, cwd=tmp_path))
    assert line.startswith("thresher: error: line 1 of cases.csv: 'q1': has no column case, name or id; name the")


PLACEHOLDERS = [
    ([], "{case}", "placeholder '{case}': there are no cases; give them with --cases"),
    ([], "{case.text}", "placeholder '{case.text}': there are no cases; give them with --cases"),
    (["--cases=5"], "{case.text}", "placeholder '{case.text}': cases have no parameters; there are {case}"),
    (
        ["--cases=x.csv"],
        "{case.txt}",
        "placeholder '{case.txt}': case 'one' has no such value; there are {case}, {case.",
    ),
    (["--cases=5"], "{depth}", "placeholder '{depth}': arm 'a' has no such value; there are {arm}, {seed}, {number},"),
]


@pytest.mark.parametrize(("args", "word", "message"), PLACEHOLDERS)
def test_a_placeholder_without_a_value_is_one_line(tmp_path: Path, args: list[str], word: str, message: str) -> None:
    (tmp_path / "x.csv").write_text("case,text\none,1\n")
    line = complaint(run(*TWO, "--budget=9", *args, "--", "echo", word, cwd=tmp_path))
    assert line.startswith(f"thresher: error: {message}")


def test_an_arm_may_have_a_parameter_case_only_where_there_are_no_cases(tmp_path: Path) -> None:
    (tmp_path / "arms.csv").write_text("name,case\na,0.2\nb,0.8\n")
    args = ["--arms=arms.csv", "--budget=4", "--format=json"]
    rows = json.loads(run(*args, "--", "echo", "{case}", cwd=tmp_path).out)["rows"]
    assert [row["mean"] for row in rows] == [0.2, 0.8]
    line = complaint(run(*args, "--cases=3", "--", "echo", "{case}", cwd=tmp_path))
    assert "arm 'a': its parameter 'case' has a name that thresher uses itself where there are cases; rename it" in line


def verdict_of(result: Result) -> dict[str, dict[str, object]]:
    assert result.status == 0, result
    return {row["arm"]: row for row in json.loads(result.out)["rows"]}


def test_a_command_gets_each_case_by_placeholder_and_by_environment(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("".join(f'{{"id": {i}, "says": {{"x": {i}}}}}\n' for i in range(9)))
    script = 'echo "$THRESHER_ARM $THRESHER_CASE $0 $1" >> seen; echo 0.$THRESHER_CASE'
    command = ["sh", "-c", script, "{case}", "{case.says}"]
    rows = verdict_of(run(*TWO, "--cases=x.jsonl", "--format=json", "--", *command, cwd=tmp_path))
    seen = (tmp_path / "seen").read_text().splitlines()
    assert len(set(seen)) == len(seen) == sum(row["cases"] for row in rows.values())  # type: ignore[misc]
    assert set(seen) <= {f'{arm} {i} {i} {{"x": {i}}}' for arm in "ab" for i in range(9)}


def test_numbered_cases_count_from_0_and_end_by_themselves() -> None:
    args = ["--cases=4", "--confidence=off", "--bounds=0:9", "--format=json"]
    rows = verdict_of(run(*TWO, *args, "--", "echo", "{arm} {case}"))
    assert [(row["cases"], row["exact"], row["mean"]) for row in rows.values()] == [(4, True, 1.5)] * 2


def test_another_content_makes_another_revision(tmp_path: Path) -> None:
    def go(*args: str) -> Result:
        return run(
            *TWO, "--cases=x.csv", *args, "--", "echo", "{arm}{case} 1", cwd=tmp_path, env={"THRESHER_STORAGE": ""}
        )

    (tmp_path / "x.csv").write_text("case,text\none,1\ntwo,2\n")
    assert go("--study=s").status == 0
    (tmp_path / "x.csv").write_text("case,text\n\ntwo,2\none,1\n")
    assert "nothing is run" in go("--study=s").err, "blank lines and the order are no content"
    for text, message in [
        ("case,text\none,1\ntwo,3\n", "revision 2: case two changed · "),
        ("case,text\none,1\nthree,2\n", "revision 3: case three is new, case two is gone · "),
        ("case,text\none,1\n", "revision 4: case three is gone · "),
    ]:
        (tmp_path / "x.csv").write_text(text)
        assert message in go("--study=s").err
    assert only_study(tmp_path).spec.cases == ("one",)


@pytest.mark.parametrize(
    ("command", "warned"),
    [
        (["echo", "1", "{arm}"], ["case"]),
        (["echo", "1", "{case}"], ["arm"]),
        (["echo", "1"], ["arm", "case"]),
        (["echo", "{arm}", "{case}", "1"], []),
        (["sh", "-c", ": $THRESHER_CASE; echo {arm} 1"], []),
        (["sh", "./read.sh", "{arm}"], []),
    ],
)
def test_a_command_without_its_case_is_warned_about_once(tmp_path: Path, command: list[str], warned: list[str]) -> None:
    (tmp_path / "read.sh").write_text("echo $THRESHER_CASE\n")
    lines = run(*TWO, "--cases=3", "--", *command, cwd=tmp_path).err.splitlines()
    cautions = [line for line in lines if "the command has no" in line]
    for name, line in zip(warned, cautions, strict=True):
        assert f"no {{{name}}}, so it runs the same for every {name} unless it reads" in line


def test_tries_guarantee_and_find_are_part_of_the_specification(tmp_path: Path) -> None:
    for name, args in [("rate", ["--guarantee=rate", "--tries=5"]), ("find", ["--find=1"])]:
        done = thresher(
            "create", name, "--at-least=0.5", *TWO, "--cases=9", *args, "--storage=sqlite:///x.db", cwd=tmp_path
        )
        assert "with 2 arms and 9 cases" in done.err
    out = thresher("status", "find", "--storage=sqlite:///x.db", cwd=tmp_path).out
    assert "Does any of 2 arms reach 0.5 on 9 cases?" in out
    assert "\nguarantee" not in out
    assert "guarantee  rate" in thresher("status", "rate", "--storage=sqlite:///x.db", cwd=tmp_path).out
    pull = json.loads(thresher("ask", "rate", "--format=json", "--storage=sqlite:///x.db", cwd=tmp_path).out)
    assert (pull["case"] in range(9), pull["case_params"]) == (True, {})
    status = thresher("status", "rate", "--format=json", "--storage=sqlite:///x.db", cwd=tmp_path).out
    summary = json.loads(status)
    assert (summary["cases"], summary["guarantee"], summary["find"]) == (9, "rate", None)
    assert summary["pending_pulls"][0]["case"] == pull["case"]
    line = thresher("ask", "find", "--storage=sqlite:///x.db", cwd=tmp_path).out.rstrip("\n").split("\t")
    assert len(line) == 5
    assert int(line[4]) in range(9)


def test_a_failing_case_is_tried_as_often_as_the_study_says(tmp_path: Path) -> None:
    command = ["sh", "-c", "echo {arm} {case} >> seen; [ {arm} = a ] && echo 1 || exit 3"]
    run(*TWO, "--cases=2", "--tries=2", "--max-failures=9", "--", *command, cwd=tmp_path)
    seen = (tmp_path / "seen").read_text().splitlines()
    assert [seen.count(f"b {case}") for case in range(2)] == [2, 2]


def test_an_exact_arm_says_so_in_every_format(tmp_path: Path) -> None:
    args = [*TWO, "--cases=3", "--at-least=0.9", "--study=s"]
    for style, words in [
        ("table", "✓ reaches, exact"),
        ("markdown", "| ✓ reaches, exact |"),
        ("csv", ",3,True,0"),
        ("json", '"exact": true'),
    ]:
        command = ["--", "echo", "{arm} {case} 1"]
        assert words in run(*args, f"--format={style}", *command, cwd=tmp_path).out


def test_find_ends_by_itself_and_a_finished_study_does_not_ask_for_a_budget(tmp_path: Path) -> None:
    args = [*TWO, "--cases=40", "--find=1", "--study=s", "--require=reached=any", "--format=json"]
    command = ["--", "sh", "-c", "echo {case} > /dev/null; [ {arm} = a ] && echo 1 || echo 0"]
    first = run(*args, *command, cwd=tmp_path, env={"THRESHER_STORAGE": ""})
    assert (first.status, verdict_of(first)["a"]["certified"]) == (0, True)
    assert json.loads(first.out)["find"] == 1
    again = run(*args, *command, cwd=tmp_path, env={"THRESHER_STORAGE": ""})
    assert "nothing is run; --fresh starts over" in again.err
    assert run(*args, "--require=reached=all", *command, cwd=tmp_path, env={"THRESHER_STORAGE": ""}).status == 1


def test_the_first_reward_of_a_case_counts_and_the_others_say_that_they_do_not(workdir: Workdir) -> None:
    def state() -> str:
        return next(line for line in workdir.good("studies").splitlines() if line.startswith("d\t")).split("\t")[1]

    workdir.good("create", "d", "--at-least=0.5", "--arm=b", "--cases=3")
    workdir.good("ask", "d", "-n", "3")
    assert state() == "open", "nothing has been told: the last cases are pending"
    workdir.good("drop", "d", "1", "--cause", "lost")
    workdir.good("ask", "d")  # the same case again
    late = workdir("tell", "d", "1", "1").err
    assert "pull 1 is late, because the pull was dropped; it counts, because its case had no other" in late
    assert "pull 4 counts nowhere: its case had a reward already" in workdir("tell", "d", "4", "0").err
    assert workdir("tell", "d", "2", "1") == Result(0, "", "")
    workdir.good("tell", "d", "3", "0")
    assert workdir.json("verdict", "d")["rows"][0]["mean"] == pytest.approx(2 / 3)
    assert state() == "done"


def test_exit_status_75_means_try_later_and_any_other_failure_of_a_case_is_for_good(tmp_path: Path) -> None:
    script = "echo {arm} {case} >> seen; [ $(grep -c '^{arm} {case}$' seen) = 2 ] && echo 1 || exit %d"
    args = [*TWO, "--cases=1", "--workers=2", "--study=busy", "--format=json"]
    busy = run(*args, "--", "sh", "-c", script % 75, cwd=tmp_path)
    assert [row["exact"] for row in json.loads(busy.out)["rows"]] == [True, True]
    assert "Some evaluations were, or may have been, repeated" in json.loads(busy.out)["guarantee"]
    (tmp_path / "seen").unlink()
    script = f"echo {{arm}} {{case}} >> seen; [ {{case}} = 0 ] && echo 1 || {script.partition(';')[2] % 3}"
    failed = run(*TWO, "--cases=3", "--study=failed", "--max-failures=9", "--", "sh", "-c", script, cwd=tmp_path)
    assert max(Counter((tmp_path / "seen").read_text().splitlines()).values()) == 1
    assert "failure=0 counts a failure as 0" in failed.out
