"""The files that COMMAND names are part of what was measured: rewards of a changed file are no answer."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from program import ENVIRONMENT, THRESHER, Result, complaint, finish, run, until
from workdir import only_study

import thresher as library
from thresher.log.store import open_store

HERE = {"THRESHER_STORAGE": ""}
SHORT = ["--arm=a.txt", "--workers=1", "--budget=4", "--confidence=off"]


def ask(folder: Path, *args: str) -> Result:
    return run(*args, cwd=folder, env=HERE)


def start(folder: Path, *args: str) -> "subprocess.Popen[bytes]":
    argv, env = [*THRESHER, "run", "--at-least=0.5", "--workers=2", *args], ENVIRONMENT | HERE
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=env)


def studies(folder: Path) -> list[str]:
    return open_store(f"sqlite:///{folder}/thresher.db").studies()


def test_an_evaluator_that_was_mended_is_asked_again(tmp_path: Path) -> None:
    command = ["--arm=a", "--format=json", "--", "sh", "ask.sh", "{arm}"]
    (tmp_path / "ask.sh").write_text("echo 0  # a mistake\n")
    first = json.loads(ask(tmp_path, *command).out)
    (tmp_path / "ask.sh").write_text("echo 1\n")
    second = ask(tmp_path, *command)
    assert "thresher: ask, revision 2: ask.sh changed · nothing holds" in second.err
    answer = json.loads(second.out)
    assert (first["reached"], answer["reached"], answer["earlier"]) == ([], ["a"], 0)
    os.utime(tmp_path / "ask.sh")
    assert "nothing is run" in ask(tmp_path, *command).err, "only its time has changed"


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("ask.sh", ["./ask.sh", "{arm}"]),
        ("conf.yaml", ["echo", "--config=conf.yaml", "{arm}", "1"]),
        ("ask.sh", ["sh", "-c", "X={arm}; ./ask.sh>log.txt; tail -1 log.txt"]),
        ("a.txt", ["echo", "{arm}", "1"]),
        ("a.txt.d/x", ["--cases=2", "--", "echo", "{arm}.d/x", "{case}", "1"]),
        ("1.case", ["--cases=2", "--", "echo", "{arm}", "{case}.case", "1"]),
        ("a.txt.1", ["--cases=2", "--", "echo", "{arm}.{case}", "1"]),
        ("a.txt", ["echo", "{arm}::test_{seed}", "{arm}::test_x", "1"]),
        ("new.yaml", ["./ask.sh", "--config=new.yaml", "{arm}"]),  # which did not exist
    ],
)
def test_a_file_is_named_by_a_word_or_a_part_of_it_once_arm_and_case_are_filled_in(
    tmp_path: Path, file: str, command: list[str]
) -> None:
    named, command = tmp_path / file, command if "--" in command else ["--", *command]
    named.parent.mkdir(exist_ok=True)
    for existing in {"ask.sh", file} - {"new.yaml"}:
        (tmp_path / existing).write_text("#!/bin/sh\necho 1\n")
        (tmp_path / existing).chmod(0o755)
    assert ask(tmp_path, *SHORT, *command).status == 0
    assert "nothing is run" in ask(tmp_path, *SHORT, *command).err
    named.write_text("#!/bin/sh\necho 0\n")
    again = ask(tmp_path, *SHORT, *command)
    assert f"{file} {'counts now' if file == 'new.yaml' else 'changed'} · " in again.err


def test_somebody_may_say_that_a_change_makes_no_difference_and_the_guarantee_says_so(tmp_path: Path) -> None:
    command = ["--arm=a", "--budget=6", "--study=s", "--", "sh", "ask.sh"]
    versions = ["echo 1\n", "echo 1  # with a comment\n"]
    for version, option in zip([*versions, *versions], ["--quiet", "--same-code", "--quiet", "--quiet"], strict=True):
        (tmp_path / "ask.sh").write_text(version)
        assert "nothing holds" not in ask(tmp_path, option, *command).err
    study = only_study(tmp_path)
    assert "vouched" in study.verdict().guarantee
    assert [event.cause for event in study.events() if event.kind == "revised"] == ["vouched", None, None]
    (tmp_path / "ask.sh").write_text("echo 0\n")
    assert "ask.sh changed · nothing holds" in ask(tmp_path, *command).err, "nobody vouched for this"


@pytest.mark.parametrize("path", ["no-such", "no-such/{arm}.txt", "{seed}.txt"])
def test_what_results_depend_on_must_be_there(tmp_path: Path, path: str) -> None:
    assert "--depends" in complaint(ask(tmp_path, *SHORT, f"--depends={path}", "--", "echo", "{arm}", "1"))


def test_digests_survive_an_export_and_an_import(tmp_path: Path) -> None:
    (tmp_path / "ask.sh").write_text("echo 1\n")
    command = ["--arm=a", "--budget=6", "--", "sh", "ask.sh"]
    ask(tmp_path, "--study=s", *command)
    copied = library.open_study("s", storage=f"sqlite:///{tmp_path}/thresher.db").events()
    assert library.verify(copied).sound
    shell = f"{' '.join(THRESHER)} export s json | {' '.join(THRESHER)} import - --study copy"
    assert os.waitstatus_to_exitcode(os.system(f"cd {tmp_path} && unset THRESHER_STORAGE && {shell} 2>&1 >out")) == 0
    assert "nothing is run" in ask(tmp_path, "--study=copy", *command).err
    (tmp_path / "ask.sh").write_text("echo 0\n")
    assert "ask.sh changed · nothing holds" in ask(tmp_path, "--study=copy", *command).err


# -- while a run lasts ---------------------------------------------------------------------------------------------

HELD = "test $THRESHER_PULL -le 4 || until test -e go; do sleep 0.01; done\necho 1\n"


def test_a_change_while_a_run_lasts_ends_it_and_no_reward_may_be_of_both(tmp_path: Path) -> None:
    (tmp_path / "ask.sh").write_text(f"touch $THRESHER_PULL.began\n{HELD}")
    command = ["--arm=a", "--budget=40", "--study=s", "--", "sh", "ask.sh", "{arm}"]
    process = start(tmp_path, *command)
    until(lambda: (tmp_path / "6.began").exists(), "two pulls that wait")
    (tmp_path / "new.sh").write_text("echo 0\n")
    (tmp_path / "new.sh").rename(tmp_path / "ask.sh")
    other = complaint(ask(tmp_path, *command))
    rule = "ask.sh differs from what its results depend on, and it has 2 pulls pending: another agent"
    assert f"study 's': {rule}" in other
    (tmp_path / "go").touch()
    ended = finish(process)
    assert ended.status == 3
    assert (
        "error: file 'ask.sh': changed while the run lasted; run again: results that depend on it are then" in ended.err
    )
    verdict = only_study(tmp_path).verdict()
    assert (verdict.told, verdict.pending, verdict["a"].mean) == (4, 0, 1.0)
    reasons = [event.reason for event in only_study(tmp_path).events() if event.kind == "dropped"]
    assert reasons == ["file 'ask.sh': changed while the run lasted", "the run ended before it did"]
    assert "revision 2: ask.sh changed · nothing holds" in ask(tmp_path, *command).err


def test_an_evaluator_that_changes_its_file_on_bad_outcomes_gains_nothing(tmp_path: Path) -> None:
    """Its bad pulls are charged, even if somebody vouches for each change."""
    (tmp_path / "ask.sh").write_text("test $((THRESHER_SEED % 2)) = 1 || echo >> ask.sh\necho 1\n")
    command = ["--arm=a", "--seed=1", "--budget=30", "--workers=1", "--same-code", "--", "sh", "ask.sh", "{arm}"]
    while ask(tmp_path, *command).status:
        verdict = only_study(tmp_path).verdict()
        assert verdict["a"].charged == verdict.issued - verdict.told
    verdict = only_study(tmp_path).verdict()
    assert verdict["a"].charged > 5
    assert not verdict["a"].certified
    assert "vouched" in verdict.guarantee


def test_a_file_that_the_runs_write_is_named_and_can_be_ignored(tmp_path: Path) -> None:
    (tmp_path / "ask.sh").write_text("echo x >> $2\necho 1\n")
    command = ["--arm=a", "--budget=6", "--workers=1", "--", "sh", "ask.sh", "--log", "{arm}.log"]
    refused = ask(tmp_path, *command)
    assert refused.status == 3
    assert "if COMMAND writes this file itself, add --ignore '{arm}.log'" in refused.err
    assert ask(tmp_path, "--ignore={arm}.log", *command).status == 0
    assert "nothing is run" in ask(tmp_path, "--ignore={arm}.log", *command).err
    line = complaint(ask(tmp_path, "--ignore=a.txt", *command))
    assert "--ignore 'a.txt': COMMAND names no such file" in line
    assert ask(tmp_path, "--ignore=late.txt", *SHORT, "--", "sh", "-c", "touch late.txt; echo 1").status == 0
