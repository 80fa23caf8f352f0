"""Damage is named in one line, the rest keeps working, and no command ends with a traceback."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import apsw
import pytest
from program import ENVIRONMENT, PATIENCE, THRESHER, Result, complaint
from workdir import Workdir, a_workdir  # noqa: F401 - the fixture

import thresher as library
from thresher.study import peek_study


@pytest.fixture
def damaged(workdir: Workdir) -> Workdir:
    """Study t is damaged, s is not."""
    workdir.good("create", "t", "--at-least=0.5", "--arm=x", "--budget=9")
    workdir.good("ask", "t")
    connection = apsw.Connection(str(workdir.folder / "studies.db"))
    connection.execute("UPDATE events SET arm = 99 WHERE study = 't' AND seq = 2")
    connection.close()
    return workdir


def test_studies_lists_a_damaged_one_and_all_others(damaged: Workdir) -> None:
    listed = damaged("studies")
    assert listed.status == 1
    assert listed.out.splitlines()[0].startswith("s\topen\t")
    assert (
        listed.out.splitlines()[1]
        == "t\tis damaged, event 2: does not match its digest, so it is not as it was written"
    )
    rows = json.loads(damaged("studies", "--format=json").out)["studies"]
    assert [(row["study"], row["damaged"] is None) for row in rows] == [("s", True), ("t", False)]
    checked = damaged("doctor")
    assert checked.status == 1
    assert "! study 't'  is damaged, event 2" in checked.out


@pytest.mark.parametrize("command", ["ask", "status", "verdict", "log"])
def test_commands_name_a_damaged_study_in_one_line(damaged: Workdir, command: str) -> None:
    assert "study 't': is damaged, event 2: does not match its digest" in complaint(damaged(command, "t"), 3)


def test_a_damaged_study_can_be_verified_and_deleted_and_hurts_no_other(damaged: Workdir) -> None:
    assert damaged("verify", "t").out.startswith("event 2: ")
    assert "already" in complaint(damaged("create", "t", "--at-least=0.5", "--arm=x", "--budget=9"))
    assert re.match(r"1-[0-9a-f]{8}\ta\t", damaged.good("ask", "s"))
    damaged.good("delete", "t", "--yes")
    assert [row["study"] for row in damaged.json("studies")["studies"]] == ["s"]


def test_a_drop_of_several_drops_those_that_it_can(workdir: Workdir) -> None:
    workdir.good("ask", "s", "-n", "4")
    workdir.good("tell", "s", "3", "1")
    words = complaint(workdir("drop", "s", "2", "3", "4", "99"))
    assert "pulls [3, 99]: were not dropped, the first because: pull 3: was told 1.0 before" in words
    assert "the others were dropped: [2, 4]" in words
    assert [event.pull for event in workdir.study().events() if event.kind == "dropped"] == [2, 4]
    result = workdir("drop", "s", "1", "3", "--format=json")
    assert result.status == 2
    data = json.loads(result.out)
    assert (data["dropped"], [row["pull"] for row in data["refused"]]) == ([1], [3])


@pytest.mark.parametrize("where", ["a full disk", "a reader that is gone", "closed"])
def test_pulls_whose_answer_could_not_be_written_are_dropped(workdir: Workdir, where: str) -> None:
    script = {"a full disk": '"$@" >/dev/full', "a reader that is gone": '"$@" >&3', "closed": '"$@" >&-'}[where]
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        ["bash", "-c", f"exec 3>&{write}; {script}", "x", *THRESHER, "ask", "s", "-n", "2", "--storage", workdir.url],
        pass_fds=[write],
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
        timeout=PATIENCE,
    )
    os.close(write)
    assert "standard output" in complaint(Result(done.returncode, "", done.stderr), 3)
    events = workdir.study().events()
    assert [event.cause for event in events if event.kind == "dropped"] == ["lost"] * 2
    assert peek_study(workdir.study(), lambda ledger: ledger.pending) == 0


@pytest.mark.parametrize("command", ["status", "verdict", "log", "studies", "doctor"])
def test_output_that_cannot_be_written_is_reported_in_one_line(workdir: Workdir, command: str) -> None:
    argv = [*THRESHER, command, *(["s"] if command in ("status", "verdict", "log") else []), "--storage", workdir.url]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(argv, stdout=full, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, timeout=PATIENCE)
    assert "standard output: cannot be written" in complaint(Result(done.returncode, "", done.stderr), 3)


@pytest.mark.parametrize(
    "command", ["status s", "verdict s", "export s csv", "verify s", "studies", "--help", "run --help", "--version"]
)
def test_a_closed_standard_output_is_reported_in_one_line(workdir: Workdir, command: str) -> None:
    argv, env = ["sh", "-c", '"$@" >&-', "x", *THRESHER, *command.split()], {"THRESHER_STORAGE": workdir.url}
    done = subprocess.run(argv, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT | env, timeout=PATIENCE)
    assert complaint(Result(done.returncode, "", done.stderr), 3) == "thresher: error: standard output: is closed"


def test_a_command_that_prints_nothing_works_without_a_standard_output(workdir: Workdir) -> None:
    argv = ["sh", "-c", '"$@" >&-', "x", *THRESHER, "extend", "s", "--budget=5000", "--storage", workdir.url]
    subprocess.run(argv, stderr=subprocess.PIPE, env=ENVIRONMENT, timeout=PATIENCE, check=True)


HUGE = "9" * 30


@pytest.mark.parametrize(
    "args",
    [
        ("tell", "s", HUGE, "1"),
        ("tell", "s", "9" * 5000, "1"),
        ("tell", "s", "1", "1e999"),
        ("renew", "s", HUGE),
        ("log", "s", "--after", HUGE),
        ("ask", "s", "-n", HUGE),
        ("ask", "s", "--lease", "99999999999d"),
        ("extend", "s", "--budget", HUGE),
        ("create", "t", "--at-least=0.5", "--arm=x", "--budget=9", "--seed", "9" * 50),
        ("create", "t", "--at-least=0.5", "--arm=x", "--budget=9", "--max-failures", HUGE),
        ("ask", "x" * 100_000),
        ("ask", "s", f"--{'x' * 100_000}"),
        ("ask", "\udcff"),
        ("studies", "--storage", f"sqlite:///{'x' * 100_000}.db"),
        ("studies", "--storage", f"postgresql://me:secret@{'x' * 100_000}:port/db"),
    ],
    ids=lambda args: " ".join(args)[:40].encode("ascii", "replace").decode(),
)
def test_huge_numbers_and_names_are_refused_in_a_short_line(workdir: Workdir, args: tuple[str, ...]) -> None:
    result = workdir(*args)
    words = complaint(result, result.status)
    assert result.status in (2, 3)
    assert len(words) < 2100
    assert "unexpected" not in words
    assert "secret" not in words
    assert len(workdir.study().events()) == 1


@pytest.mark.parametrize(
    "args",
    [
        ("studies", "postgresql://me:secret@h/db"),
        ("status", "postgresql://me:secret@h/db"),
        ("import", "postgresql://me:secret@h/db"),
        ("studies", "--storage", "sqlite://me:secret@h/db"),
        ("studies", "--storage", "sqlite:///x.db?password=secret"),
        ("studies", "--storage", "me:secret@h/db"),
        ("studies", "--storage", "//me:secret@h/db"),
        ("doctor", "--storage", "sqlite:///x.db?password=secret"),
        ("doctor", "--storage", "me:secret@h/db"),
    ],
    ids=" ".join,
)
def test_a_password_in_the_wrong_place_is_not_shown(workdir: Workdir, args: tuple[str, ...]) -> None:
    result = workdir(*args)
    assert result.status
    assert "secret" not in result.out + result.err


BREAK = """
import sys, thresher.cli, thresher.cli.options
from thresher.study import peek_study
def broken(*args, **kwargs): raise KeyError("nobody\\nthought of this")
thresher.cli.options.study_of_option = broken
sys.argv = ["thresher", "ask", "s"]
thresher.cli.main()
"""


def test_an_unexpected_error_is_one_line_and_status_3() -> None:
    argv = [sys.executable, "-c", BREAK]
    done = subprocess.run(argv, capture_output=True, text=True, env=ENVIRONMENT, timeout=PATIENCE)
    assert "unexpected KeyError" in complaint(Result(done.returncode, done.stdout, done.stderr), 3)
    shown = {**ENVIRONMENT, "THRESHER_TRACEBACK": "1"}
    done = subprocess.run(argv, capture_output=True, text=True, env=shown, timeout=PATIENCE)
    assert "Traceback" in done.stderr


def test_a_study_in_a_link_is_where_the_link_leads(workdir: Workdir) -> None:
    link = workdir.folder / "link.db"
    link.symlink_to(workdir.folder / "studies.db")
    workdir.good("ask", "s", "--storage", f"sqlite:///{link}")
    assert peek_study(workdir.study(), lambda ledger: ledger.issued) == 1
    assert not (workdir.folder / "link.db-lock").exists(), "all agents queue at one lock"
    assert library.open_study("s", storage=f"sqlite:///{link}").ask()
