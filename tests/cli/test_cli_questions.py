"""Each kind of question, as the command line asks it and prints it."""

import json
from pathlib import Path

import pytest
from inside import inside, refused

import thresher as library
from thresher.core.sentences import question_sentence_of

TWO = ["--arm=a", "--arm=b"]

QUESTIONS = {
    "at least": (["--at-least=90%"], "Which of 2 arms reach 90 %?"),
    "at most": (["--at-most=5%"], "Which of 2 arms stay within 5 %?"),
    "other bounds": (["--at-most=5", "--bounds=0:10"], "Which of 2 arms stay within 5?"),
    "a share": (["--at-most=200", "--share=95%"], "Which of 2 arms stay within 200 in at least 95 % of pulls?"),
    "a share and no bounds": (
        ["--at-least=2", "--share=0.5", "--bounds", "none"],
        "reach 2 in at least 50 % of pulls?",
    ),
    "times": (["--reward=seconds", "--at-most=50ms"], "Which of 2 arms stay within 50 ms in at least 95 % of pulls?"),
    "plain seconds": (["--reward=seconds", "--at-most=0.05"], "stay within 50 ms in at least 95 % of pulls?"),
    "the median time": (["--reward=cpu-seconds", "--at-most=2min", "--share=0.5"], "within 120 s in at least 50 %"),
    "the mean time": (["--reward=seconds", "--at-most=50ms", "--bounds=0:1s"], "Which of 2 arms stay within 50 ms?"),
    "the mean time, unbounded": (
        ["--reward=seconds", "--at-most=50ms", "--bounds", "none", "--budget=9"],
        "Which of 2 arms stay within 50 ms?",
    ),
    "slow enough": (["--reward=seconds", "--at-least=1s"], "Which of 2 arms reach 1 s in at least 95 % of pulls?"),
    "a baseline": (["--baseline=a"], "Does the arm match or beat a?"),
    "a margin": (["--baseline=a", "--margin=2%", "--cases=9"], "Does the arm beat a by 2 points on 9 cases?"),
    "a loss": (["--baseline=a", "--margin=-0.02", "--lower-is-better"], "Does the arm lose at most 0.02 to a?"),
    "a ratio": (["--baseline=a", "--ratio=1.05"], "Is the arm at least 1.05 times a in at least half of the pairs?"),
    "slower": (
        ["--baseline=a", "--ratio=1.05", "--reward=seconds"],
        "Is the arm at most 5 % slower than a in at least half of the pairs?",
    ),
    "often slower": (
        ["--baseline=a", "--ratio=1.05", "--reward=seconds", "--share=0.9"],
        "Is the arm at most 5 % slower than a in at least 90 % of pairs?",
    ),
    "a margin of time": (
        ["--baseline=a", "--margin=5ms", "--reward=seconds"],
        "Does the arm beat a by 5 ms in at least half of the pairs?",
    ),
    "a mean margin of time": (
        ["--baseline=a", "--margin=5ms", "--reward=seconds", "--bounds=0:10s"],
        "Does the arm beat a by 5 ms?",
    ),
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_question_is_asked_and_listed(kind: str, tmp_path: Path) -> None:
    args, asked = QUESTIONS[kind]
    inside("create", "s", *TWO, *args, storage=tmp_path)
    assert asked in inside("studies", storage=tmp_path).stdout
    assert asked in inside("status", "s", storage=tmp_path).stdout
    spec = library.open_study("s", storage=f"sqlite:///{tmp_path}/thresher.db").spec
    assert asked in question_sentence_of(spec)
    is_certain = spec.limits is not None
    assert spec.confidence == (0.95 if is_certain else None)
    assert (spec.unit == "s") == ("--reward=seconds" in args or "--reward=cpu-seconds" in args)
    assert (spec.unit == "%") == (kind in ("at least", "at most", "a margin"))


def test_units_are_gone_from_the_specification(tmp_path: Path) -> None:
    args = ["--at-most=50ms", "--reward=seconds", "--bounds=0:1s", "--tolerance=1ms", "--confidence=90%"]
    inside("create", "s", *TWO, *args, storage=tmp_path)
    spec = library.open_study("s", storage=f"sqlite:///{tmp_path}/thresher.db").spec
    assert (spec.stated_bar, spec.bounds, spec.tolerance, spec.confidence) == (0.05, (0.0, 1.0), 0.001, 0.9)


def test_agents_tell_pairs_and_exports_have_both(tmp_path: Path) -> None:
    inside("create", "s", *TWO, "--baseline=a", "--budget=4", storage=tmp_path)
    pull, arm, number, seed, baseline, first = inside("ask", "s", storage=tmp_path).stdout.rstrip("\n").split("\t")
    assert (pull[:2], arm, number, baseline) == ("1-", "b", "1", "a")
    assert first in ("arm", "baseline")
    inside("ask", "s", storage=tmp_path)
    line = "evaluates the baseline 'a' too; tell both: the arm's reward and then the baseline's"
    assert line in refused("tell", "s", "1", "0.75", storage=tmp_path)
    told = inside("tell", "s", pull, "0.75", "0.5", "--format=json", storage=tmp_path).stdout
    assert json.loads(told) == {"format": 1, "pull": pull, "reward": [0.75, 0.5], "late": False}
    assert inside("export", "s", "csv", storage=tmp_path).stdout.splitlines() == [
        "pull,arm,number,seed,state,reward,baseline",
        f"1,b,1,{seed},told,0.75,0.5",
        f"2,b,2,{library.open_study('s', storage=f'sqlite:///{tmp_path}/thresher.db').pulls()[1].seed},pending,,",
    ]
    assert "told  pull 1 of b  0.75  baseline 0.5" in inside("log", "s", storage=tmp_path).stdout
    table = inside("verdict", "s", storage=tmp_path).stdout
    assert "b    · open, so far ✓" in table
    assert "+0.25" in table


def test_a_second_reward_is_refused_where_a_pull_has_one(tmp_path: Path) -> None:
    inside("create", "s", *TWO, "--at-least=0.5", storage=tmp_path)
    inside("ask", "s", storage=tmp_path)
    assert "is a second one, and a pull of this study has one" in refused("tell", "s", "1", "1", "0", storage=tmp_path)


def test_pairs_are_exported_as_json_and_not_imported_as_results(tmp_path: Path) -> None:
    inside("create", "s", *TWO, "--baseline=a", "--budget=4", storage=tmp_path)
    (tmp_path / "results.csv").write_text("arm,reward\nb,1\n")
    line = refused("import", str(tmp_path / "results.csv"), "--study=s", storage=tmp_path)
    assert line.startswith("study 's': compares every arm with its baseline in pairs, and results of pairs cannot be")
    inside("ask", "s", storage=tmp_path)
    inside("tell", "s", "1", "1", "0", storage=tmp_path)
    (tmp_path / "s.json").write_text(inside("export", "s", "json", storage=tmp_path).stdout)
    inside("import", str(tmp_path / "s.json"), "--study=copy", storage=tmp_path)
    first, second = (inside("export", name, "csv", storage=tmp_path).stdout for name in ("s", "copy"))
    assert first == second


@pytest.mark.parametrize("style", ["table", "json", "csv", "markdown"])
@pytest.mark.parametrize("kind", ["at most", "a share", "a baseline", "slower"])
def test_a_verdict_of_each_kind_is_printed_in_each_format(kind: str, style: str, tmp_path: Path) -> None:
    args, asked = QUESTIONS[kind]
    inside("create", "s", *TWO, *args, "--budget=6", storage=tmp_path)
    study = library.open_study("s", storage=f"sqlite:///{tmp_path}/thresher.db")
    while pull := study.ask():
        study.tell(pull, (0.25, 0.5) if pull.baseline else 0.25)
    text = inside("verdict", "s", f"--format={style}", storage=tmp_path).stdout
    if style == "csv":
        reached = [line.split(",")[1] for line in text.splitlines()]
        assert reached[0] == "reached"
        assert set(reached[1:]) <= {"True", "False", ""}
    else:
        assert asked in text


@pytest.mark.parametrize("kind", ["at most", "a share", "a margin", "slower", "a margin of time"])
@pytest.mark.parametrize("width", [70, 80, 100])
def test_the_table_of_each_kind_fits_the_terminal(kind: str, width: int, tmp_path: Path) -> None:
    args, _ = QUESTIONS[kind]
    inside("create", "s", *TWO, *args, storage=tmp_path)
    study = library.open_study("s", storage=f"sqlite:///{tmp_path}/thresher.db")
    for pull in study.ask_many(9):
        reward = 1 / (2 + pull.number)
        study.tell(pull, (reward, reward / 3) if pull.baseline else reward)
    lines = ["".join(text for text, _ in line) for line in study.verdict().lines(width)]
    assert max(len(line) for line in lines[: lines.index("")]) <= width
