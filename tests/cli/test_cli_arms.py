"""Where the arms come from."""

import json
from pathlib import Path

import pytest
from program import complaint, run

from thresher.cli.question_options import arms_in_question_options
from thresher.errors import InvalidInput


def arms_of(folder: Path, name: str, data: str | bytes) -> dict[str, object]:
    file = folder / name
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    return dict(arms_in_question_options(str(file), ()))


@pytest.mark.parametrize("data", ["a\nb c\n", "a\r\nb c\r\n", b"\xef\xbb\xbfa\nb c", "\n  a  \n\n\tb c\n\n"])
def test_one_name_per_line_however_lines_end(tmp_path: Path, data: str | bytes) -> None:
    assert arms_of(tmp_path, "arms.txt", data) == {"a": {}, "b c": {}}


def test_names_that_look_like_something_else_are_names(tmp_path: Path) -> None:
    names = ["[red]", "{x}", "naïve", "日本語", "🙂", "--help", "a,b", "1 #"]
    assert list(arms_of(tmp_path, "arms.txt", "\n".join(names))) == names


def test_a_line_that_begins_with_a_hash_is_a_comment(tmp_path: Path) -> None:
    assert list(arms_of(tmp_path, "arms.txt", "# prompts\na\n  # b\nc # d\n")) == ["a", "c # d"]
    assert list(arms_of(tmp_path, "arms.json", '["# a"]')) == ["# a"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("arms.csv", "name,depth\na,1\nb,2\n"),
        ("arms.csv", "depth, name\r\n1,a\r\n\r\n2,b\r\n"),
        ("arms.csv", b"\xef\xbb\xbfname,depth\na,1\nb,2"),
        ("arms.txt", "name,depth\na,1\nb,2\n"),
        ("arms.txt", "depth,name\n1,a\n2,b\n"),
        ("arms.json", '[{"name": "a", "depth": "1"}, {"name": "b", "depth": "2"}]'),
        ("arms.json", '{"a": {"depth": "1"}, "b": {"depth": "2"}}'),
        ("arms", '\n{"a": {"depth": "1"}, "b": {"depth": "2"}}'),
    ],
)
def test_csv_and_json_have_a_name_and_parameters(tmp_path: Path, name: str, data: str | bytes) -> None:
    assert arms_of(tmp_path, name, data) == {"a": {"depth": "1"}, "b": {"depth": "2"}}


def test_json_may_be_names_alone(tmp_path: Path) -> None:
    assert arms_of(tmp_path, "arms", '["a", "b"]') == {"a": {}, "b": {}}


def test_a_quoted_cell_may_hold_commas_and_lines(tmp_path: Path) -> None:
    assert arms_of(tmp_path, "x.csv", 'name,prompt\na,"one, two\nthree"\n') == {"a": {"prompt": "one, two\nthree"}}


def test_a_strange_line_separator_does_not_break_a_cell(tmp_path: Path) -> None:
    assert arms_of(tmp_path, "x.csv", "name,prompt\na,one\u2028two\n") == {"a": {"prompt": "one\u2028two"}}


BROKEN = [
    ("x.txt", "a\nb\na\n", "line 3 of {file}: arm 'a': is given twice"),
    ("x.txt", "", "arms file '{file}': names no arm"),
    ("x.txt", "a\nb\x07\n", "line 2 of {file}: arm 'b\\x07': must be printable"),
    ("x.txt", b"a\n\xff\n", "arms file '{file}': is not UTF-8 text (invalid start byte at byte 2); save it as UTF-8"),
    ("x.txt", "a\n" + "b" * 1001, "line 2 of {file}: arm 'bbb"),
    (
        "x.csv",
        "depth\n1\n",
        "line 1 of {file}: 'depth': has no column name, arm or id; name the column that holds the arms' names 'name', "
        "'arm' or 'id', or rename the file to .txt if it has one arm per line and no header",
    ),
    (
        "x.csv",
        "Name,depth\na,1\n",
        "line 1 of {file}: 'Name,depth': has no column name, arm or id; write 'name' instead of 'Name'",
    ),
    (
        "x.csv",
        "name;depth\na;1\n",
        "line 1 of {file}: 'name;depth': has no column name, arm or id; separate the columns with commas instead of "
        "semicolons; names are in a column name, arm or id",
    ),
    ("x.csv", "", "arms file '{file}': names no arm; write a first line with a column 'name', then one arm per line"),
    ("x.csv", "name,d,d\na,1,2\n", "line 1 of {file}: column 'd': occurs twice"),
    ("x.csv", "name,depth\na,1\nb\n", "line 3 of {file}: 'b': has 1 cells, and the first line has 2 columns"),
    ("x.csv", "name,depth\na,1,2\n", "line 2 of {file}: 'a,1,2': has 3 cells"),
    ("x.csv", 'name,depth\n"a"x,1\n', "line 2 of {file}: is not CSV"),
    ("x.csv", "name,depth\n,1\n", "line 2 of {file}: arm '': must not be empty"),
    (
        "x.csv",
        "name,seed\na,1\n",
        "line 2 of {file}: arm 'a': its parameter 'seed' has a name that thresher uses itself; rename it",
    ),
    ("x.json", "{", "arms file '{file}': cannot be read as JSON"),
    ("x.json", "[" * 100_000, "arms file '{file}': cannot be read as JSON"),
    ("x.json", "3", "arms file '{file}': holds neither a list nor an object; write ["),
    ("x.json", "[]", "arms file '{file}': names no arm; write ["),
    ("x.jsonl", "\n", "arms file '{file}': names no arm; write one object per line"),
    ("x.json", '["a", 7]', "row 2 of {file}: 7 is neither a name nor parameters; write ["),
    ("x.json", '["a", {"depth": 1}]', "row 2 of {file}: {{'depth': 1}} has no name, arm or id, and other rows"),
    ("x.json", '[{"name": 0.5}]', "row 1 of {file}: arm 0.5: must be a string"),
    ("x.json", '["a", {"name": "a"}]', "row 2 of {file}: arm 'a': is given twice"),
    ("x.json", '{"a": {}, "a": {}}', "{file}: key 'a': occurs twice"),
    ("x.json", '{"a": 1}', "row 1 of {file}: 1 is not an object of parameters; write ["),
    ("x.json", '{"a": "b"}', "row 1 of {file}: 'b' is not an object of parameters; write ["),
    ("x.yaml", "- a\n- b\n", "arms file '{file}': is YAML, which is not read; write one name per line, CSV, JSON or"),
]


@pytest.mark.parametrize(("name", "data", "message"), BROKEN)
def test_a_broken_row_is_named(tmp_path: Path, name: str, data: str | bytes, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        arms_of(tmp_path, name, data)
    assert str(error.value).startswith(message.format(file=tmp_path / name))


def test_a_broken_file_is_one_line_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "arms.csv").write_text("name,depth\na,1\nb\n")
    line = complaint(run("--arms", "arms.csv", "--budget=10", "--", "echo", "1", cwd=tmp_path))
    assert line.startswith("thresher: error: line 3 of arms.csv: 'b': has 1 cells")
    line = complaint(run("--arms", "missing.txt", "--budget=10", "--", "echo", "1", cwd=tmp_path))
    assert (
        line == "thresher: error: arms file 'missing.txt': cannot be read (No such file or directory); check its name"
    )


@pytest.mark.parametrize("data", ["0.2\n0.8\n", b"\xef\xbb\xbfname\r\n0.2\r\n0.8\r\n", '["0.2", "0.8"]'])
def test_a_dash_reads_standard_input(data: str | bytes) -> None:
    result = run("--arms", "-", "--budget=4", "--confidence=off", "--format=json", "--", "echo", "{arm}", stdin=data)
    assert json.loads(result.out)["reached"] == ["0.8"]


def test_a_broken_line_of_standard_input_is_named() -> None:
    line = complaint(run("--arms", "-", "--budget=4", "--", "echo", "{arm}", stdin="a\na\n"))
    assert "line 2 of standard input: arm 'a': is given twice" in line


def test_names_are_text_wherever_they_are_shown() -> None:
    names = ["[red]x[/red]", "[/]", "日本語", ":smile:"]
    out = run(*(f"--arm={name}" for name in names), "--budget=8", "--", "echo", "1").out
    for name in names:
        assert name in out
