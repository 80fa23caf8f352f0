"""--policy module:function at the command line, each command in a process of its own."""

import json
import sys
from pathlib import Path

import pytest
from inside import refused
from program import complaint
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture

import thresher
from thresher.core.policies import Policy

MINE = '''"""Scores of a user."""
import math

from thresher import custom

SCALE = 2.0


def score(gap, scatter, seen, weight, exploration):
    return SCALE * gap * weight


def logarithmic(gap, scatter, seen, weight, exploration):
    return gap + math.log(weight)


def broken(gap, scatter, seen, weight, exploration):
    return -1.0


twice = lambda gap, scatter, seen, weight, exploration: gap
SLOW = custom(score, warmup=4)
'''


@pytest.fixture(name="mine")
def a_workdir_with_scores(workdir: Workdir) -> Workdir:
    (workdir.folder / "mine.py").write_text(MINE)
    workdir.good("create", "m", "--at-least=0.5", "--arm=x", "--arm=y", "--budget=40", "--policy=mine:score")
    return workdir


def test_a_study_with_a_score_of_one_s_own_is_created_asked_and_verified(mine: Workdir) -> None:
    assert json.loads(mine.good("ask", "m", "-n", "6", "--policy=mine:score", "--format=json").splitlines()[0])
    assert "every decision re-derived" in mine.good("verify", "m", "--policy=mine:score")
    assert "custom(mine:score)" in mine.good("status", "m")
    for command in ("verdict", "log"):
        mine.good(command, "m")
    mine.good("tell", "m", "1", "0.5")
    mine.good("report", "m", "--out", str(mine.folder / "report.html"))
    assert "custom(mine:score)" in (mine.folder / "report.html").read_text()
    assert "0" in mine.good("doctor")


def test_asking_and_verifying_without_the_function_are_refused_in_one_line(mine: Workdir) -> None:
    for command in ("ask", "verify"):
        line = complaint(mine(command, "m"))
        assert "policy 'mine:score': this study's score is not known here, and is never imported by itself" in line
        assert "--policy module:function" in line


def test_a_changed_source_is_refused_in_one_line(mine: Workdir) -> None:
    mine.good("ask", "m", "--policy=mine:score")
    (mine.folder / "mine.py").write_text(MINE.replace("SCALE = 2.0", "SCALE = 3.25"))
    for command in ("ask", "verify"):
        line = complaint(mine(command, "m", "--policy=mine:score"))
        assert "the file that defines it has changed since the study was created" in line
    mine.good("drop", "m", "1", "--cause=lost")
    run = ("run", "--study=m", "--at-least=0.5", "--arm=x", "--arm=y", "--budget=40", "--policy=mine:score")
    assert (
        "revision 2: the command changed, the file that defines mine:score has changed"
        in mine(*run, "--", "echo", "0.5").err
    )


def test_run_uses_the_score_and_resumes(workdir: Workdir) -> None:
    (workdir.folder / "mine.py").write_text(MINE)
    words = ("run", "--study=r", "--at-least=0.5", "--arm=x", "--arm=y", "--policy=mine:score", "--confidence=off")
    workdir.good(*words, "--budget=8", "--", "echo", "0.25")
    workdir.good(*words, "--budget=12", "--", "echo", "0.25")
    assert "26 events" in workdir.good("verify", "r", "--policy=mine:score")  # one says that the budget grew
    workdir.good(
        "run", "--at-least=0.5", "--arm=x", "--arm=y", "--policy=mine:SLOW", "--budget=8", "--", "echo", "0.25"
    )


def test_a_bad_score_stops_a_run_with_one_line(workdir: Workdir) -> None:
    (workdir.folder / "mine.py").write_text(MINE)
    words = "run --study=r --at-least=0.5 --arm=x --arm=y --workers=1 --budget=8 --policy=mine:broken -- sh -c"
    line = complaint(workdir(*words.split(), "echo 0.25 # {arm}"))
    assert "policy 'mine:broken': returned -1.0 for arm 'x' with gap=0.25, scatter=0.0, seen=2, weight=2.0" in line
    status = workdir.json("status", "r")
    assert status["told"] == status["issued"] > 0  # what was running when the ask failed is told


def test_verify_says_that_a_logarithm_repeats_on_the_same_machine_only(mine: Workdir) -> None:
    mine.good("create", "l", "--at-least=0.5", "--arm=x", "--arm=y", "--budget=9", "--policy=mine:logarithmic")
    text = mine.good("verify", "l", "--policy=mine:logarithmic")
    assert "its policy, custom(mine:logarithmic), may use more than + − × ÷ √: its decisions can be re-derived" in text


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("mine:nothing", "mine has no nothing"),
        ("nosuch:score", "there is no module 'nosuch'"),
        ("mine:", "must be a name, or module:function"),
        (":score", "must be a name, or module:function"),
        ("mi-ne:score", "must be a name, or module:function"),
        ("mine.py:score", "'mine'; 'mine' is not a package|there is no module"),
        ("mine:SCALE", "must be a plain function"),
        ("mine:math", "must be a plain function"),
        ("mine:twice", "cannot be kept in a store: it cannot be imported by its name"),
        ("raises:score", "importing it raised ZeroDivisionError: division by zero; correct the module"),
        ("exits:score", "importing it raised SystemExit: 0; correct the module"),
        ("lacks:score", "importing it raised AttributeError: module 'math' has no attribute 'nothing'"),
    ],
)
def test_what_is_no_score_is_refused_in_one_line(
    policy: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "raises.py").write_text("1 / 0\n")
    (tmp_path / "exits.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "lacks.py").write_text("import math\nmath.nothing\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("mine", "raises"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    line = refused("create", "s", "--at-least=0.5", "--arm=x", "--arm=y", f"--policy={policy}", storage=tmp_path)
    assert any(part in line for part in words.split("|"))


@pytest.mark.parametrize("name", ["os:system", "nosuchmodule:score", "hostile:score"])
def test_a_store_that_names_other_code_is_read_and_runs_nothing(name: str, workdir: Workdir) -> None:
    (workdir.folder / "hostile.py").write_text("import pathlib\npathlib.Path('imported').touch()\n")
    thresher.create_study(
        "h", arms=["x", "y"], at_least=0.5, policy=Policy(name, digest="ab" * 16), storage=workdir.url
    ).close()
    for command in ("verdict", "status", "log"):
        workdir.good(command, "h")
    workdir.good("report", "h", "--out", str(workdir.folder / "report.html"))
    workdir.good("studies")
    for command in ("ask", "verify"):
        assert "is never imported by itself" in complaint(workdir(command, "h"))
    run = workdir("run", "--study=h", "--at-least=0.5", "--arm=x", "--arm=y", "--budget=4", "--", "echo", "0.5")
    assert f"policy is balanced, not custom({name})" in run.err
    assert not (workdir.folder / "imported").exists()
