"""``thresher run`` stores its study, and the same command resumes it."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from inside import inside, refused
from program import ENVIRONMENT, FORKED, PATIENCE, THRESHER, Result, complaint, finish, until
from workdir import only_study

import thresher as library
from thresher.log.store import open_store

HERE = {key: value for key, value in ENVIRONMENT.items() if key != "THRESHER_STORAGE"}
QUESTION = ["--at-least=0.5", "--workers=2", "--confidence=off", "--arm=0.2", "--arm=0.8"]
ECHO = ["--", "echo", "{arm}"]


def start(folder: Path, *args: str) -> "subprocess.Popen[bytes]":
    argv = [*THRESHER, "run", *QUESTION, *args]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, env=HERE)


def run(folder: Path, *args: str) -> Result:
    return Result(*FORKED.run(["run", *QUESTION, *args], stdin=b"", cwd=folder, env=HERE, patience=PATIENCE))


def verdict(result: Result, status: int = 0) -> Any:
    assert result.status == status, result
    return json.loads(result.out)


def test_a_study_is_kept_here_under_the_name_of_the_program(tmp_path: Path) -> None:
    answer = verdict(run(tmp_path, "--budget=8", "--format=json", *ECHO))
    study = only_study(tmp_path)
    assert study.name == "echo"
    assert (answer["study"], study.verdict().told) == (study.name, 8)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (["python3", "-u", "ask.py", "{arm}"], "ask"),
        (["./eval.sh", "{arm}"], "eval"),
        (["sh", "./eval.sh", "{arm}"], "eval"),
        (["sh", "-c", "echo {arm}"], "sh"),
        (["env", "X=1", "python3", "ask.py", "{arm}"], "ask"),
    ],
)
def test_a_script_gives_its_study_the_name(tmp_path: Path, command: list[str], name: str) -> None:
    (tmp_path / "ask.py").write_text("import sys\nprint(sys.argv[1])\n")
    (tmp_path / "eval.sh").write_text("#!/bin/sh\necho $1\n")
    (tmp_path / "eval.sh").chmod(0o755)
    assert run(tmp_path, "--budget=4", "--", *command).status == 0
    assert only_study(tmp_path).name == name


def test_another_program_of_the_same_name_has_a_numbered_study(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "eval.sh").write_text("#!/bin/sh\necho $1\n")
        (tmp_path / folder / "eval.sh").chmod(0o755)
        assert run(tmp_path, "--budget=4", "--", f"{folder}/eval.sh", "{arm}").status == 0
    assert open_store(f"sqlite:///{tmp_path}/thresher.db").studies() == ["eval", "eval-2"]
    assert "eval-2: nothing changed" in run(tmp_path, "--budget=4", "--", "two/eval.sh", "{arm}").err


def test_the_same_command_again_says_that_the_study_is_finished(tmp_path: Path) -> None:
    first = run(tmp_path, "--budget=8", "--format=json", *ECHO)
    again = run(tmp_path, "--budget=8", "--format=json", *ECHO)
    name = only_study(tmp_path).name
    where = f"{tmp_path}/thresher.db"
    assert first.err == f"thresher: kept as study '{name}' in {where}; thresher verdict {name} prints this again\n"
    finished = "nothing changed and it is finished, so nothing is run"
    assert again.err == f"thresher: echo: {finished}; a larger --budget extends it, --fresh starts over\n"
    assert (verdict(again)["earlier"], verdict(first)["earlier"], verdict(first)["since"]) == (8, 0, None)
    assert verdict(again)["since"].startswith("20")
    assert (verdict(first)["ran"], verdict(again)["ran"]) == (True, False)
    of_first = {name: verdict(first)[name] for name in ("earlier", "since", "ran", "seconds", "spent")}
    assert {**verdict(again), **of_first} == verdict(first)


def test_a_larger_budget_extends_and_a_smaller_one_is_refused(tmp_path: Path) -> None:
    run(tmp_path, "--budget=8", *ECHO)
    more = run(tmp_path, "--budget=12", "--format=json", *ECHO)
    assert verdict(more)["told"] == 12
    assert "echo: nothing changed, it resumes after 8 pulls" in more.err
    assert (verdict(more)["earlier"], verdict(more)["told"]) == (8, 12)
    assert verdict(run(tmp_path, "--budget=8", "--format=json", *ECHO))["told"] == 12, "the first command still fits"
    message = complaint(run(tmp_path, "--budget=10", *ECHO))
    assert (
        "another budget: it is 12, not 10; name another --study, or ask as before; a larger --budget is fine" in message
    )


def test_a_budget_for_a_study_without_one_is_refused(tmp_path: Path) -> None:
    question = ("--at-least=0.5", "--arm=a", "--study=s", "--workers=1", "--tolerance=0.2")
    inside("run", *question, "--", "echo", "1", storage=tmp_path)
    line = refused("run", *question, "--budget=4", "--", "echo", "1", storage=tmp_path)
    assert line.endswith("it is none, not 4; name another --study, or ask as before")


def test_another_seed_is_no_difference(tmp_path: Path) -> None:
    question = ("run", "--at-least=0.5", "--arm=a", "--cases=5", "--study=s", "--workers=1")
    for seed in (["--seed=7"], [], ["--seed=8"]):
        assert inside(*question, *seed, "--", "echo", "1", storage=tmp_path).return_value == 0
    study = library.open_study("s", storage=tmp_path / "thresher.db")
    assert (study.spec.seed, study.revision) == (7, 1)


def test_starting_over_does_not_meet_again_what_was_mended(tmp_path: Path) -> None:
    """The seed chooses the item. Six of ten pass; those that fail are mended before the same command starts over."""
    script = 'grep -qx "$1" mended || test $(($1 % 10)) -lt 6 && echo 1 || { echo "$1" >> failed; echo 0; }'
    command = ["run", "--at-least=0.9", "--arm=a", "--fresh", "--format=json", "--", "sh", "-c", script, "x", "{seed}"]
    (tmp_path / "failed").touch()
    for _ in range(8):
        (tmp_path / "mended").write_text((tmp_path / "failed").read_text())
        answer = verdict(Result(*FORKED.run(command, stdin=b"", cwd=tmp_path, env=HERE, patience=PATIENCE)))
        assert answer["missed"] == ["a"]


def test_another_question_is_the_next_revision(tmp_path: Path) -> None:
    run(tmp_path, "--budget=8", *ECHO)
    more = run(tmp_path, "--budget=8", "--arm=0.9", *ECHO)
    assert "echo, revision 2: arm 0.9 is new · all 8 results hold" in more.err
    run(tmp_path, "--budget=8", "--study=mine", *ECHO)
    assert open_store(f"sqlite:///{tmp_path}/thresher.db").studies() == ["echo", "mine"]
    named = run(tmp_path, "--budget=8", "--study=mine", "--arm=0.9", *ECHO)
    assert "mine, revision 2: arm 0.9 is new" in named.err


def test_memory_stores_nothing(tmp_path: Path) -> None:
    done = run(tmp_path, "--budget=8", "--storage=memory", *ECHO)
    assert (done.status, done.err) == (0, "")
    assert list(tmp_path.iterdir()) == []


def held(folder: Path) -> list[str]:
    """A command that notes each pull. Those after the fourth wait for a marker."""
    note = f"echo . >> {folder}/$THRESHER_PULL.run"
    wait = f"test $THRESHER_PULL -le 4 || until test -e {folder}/go; do sleep 0.01; done"
    return ["--budget=40", "--format=json", "--", "sh", "-c", f": $THRESHER_ARM; {note}; {wait}; echo 1"]


def noted(folder: Path) -> list[str]:
    """What the pulls have written: an empty note is about to be."""
    return [text for file in folder.glob("*.run") if (text := file.read_text())]


def test_after_ctrl_c_the_same_command_resumes(tmp_path: Path) -> None:
    process = start(tmp_path, *held(tmp_path))
    until(lambda: len(noted(tmp_path)) > 5, "a few pulls")
    process.send_signal(signal.SIGINT)
    assert process.stderr
    assert b"stopping: waiting for 2 pending pulls" in process.stderr.readline()
    (tmp_path / "go").touch()
    stopped = finish(process)
    before = verdict(stopped, 130)
    end = f"the verdict so far of study {before['study']!r}, and the same command resumes it\n"
    assert stopped.err.endswith(end)
    assert (before["told"], before["pending"], before["done"]) == (6, 0, False)
    taken_back = before["issued"] - before["told"]  # handed out, but not begun when the signal came
    after = run(tmp_path, *held(tmp_path))
    assert (verdict(after)["told"], verdict(after)["pending"]) == (40 - taken_back, 0)
    assert f"resumes after {before['issued']} pulls" in after.err


@pytest.mark.parametrize("storage", ["kept", "memory"])
def test_a_run_that_for_ends_says_so_and_how_to_continue(tmp_path: Path, storage: str) -> None:
    where = ("--storage=memory",) if storage == "memory" else ()
    done = run(
        tmp_path, *where, "--for=200ms", "--budget=999", "--format=json", "--", "sh", "-c", "sleep 0.05; echo 1 # {arm}"
    )
    answer = verdict(done)
    assert not answer["done"]
    rest = f"of study {answer['study']!r}, and the same command resumes it"
    if storage == "memory":
        rest = ", and nothing was stored: a new run starts over"
    said = f"thresher: stopped, because the time of --for is over; this is the verdict so far {rest}\n"
    assert done.err == said.replace(" ,", ",")


def test_after_kill_9_the_same_command_resumes_and_no_pull_runs_twice(tmp_path: Path) -> None:
    process = start(tmp_path, *held(tmp_path))
    until(lambda: len(noted(tmp_path)) > 5, "a few pulls")
    until(lambda: only_study(tmp_path).verdict().told > 0, "a reward")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    (tmp_path / "go").touch()
    answer = verdict(run(tmp_path, *held(tmp_path)))
    assert answer["issued"] == 40
    assert answer["told"] + answer["pending"] == 40
    assert answer["pending"] <= 2, "what the dead one had pending, until its lease is over"
    assert set(noted(tmp_path)) == {".\n"}


def test_several_runs_at_once_share_the_work(tmp_path: Path) -> None:
    agents = [start(tmp_path, "--budget=60", "--format=json", *ECHO) for _ in range(3)]
    results = [finish(process) for process in agents]
    assert [result.status for result in results] == [0, 0, 0]
    events = only_study(tmp_path).events()
    assert sum(event.kind == "asked" for event in events) == 60
    assert sum(event.kind == "told" for event in events) == 60


def test_a_study_deleted_under_a_run_ends_it_with_a_message(tmp_path: Path) -> None:
    script = f": $THRESHER_ARM; touch {tmp_path}/started; sleep 0.02; echo 1"
    process = start(tmp_path, "--budget=100000", "--quiet", "--", "sh", "-c", script)
    until((tmp_path / "started").exists, "a first pull")
    study = only_study(tmp_path)
    study.store.delete(study.name)
    assert "was deleted while this agent worked on it" in complaint(finish(process), 3)
    assert study.store.studies() == []


def test_a_file_that_is_not_a_store_is_status_3_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "thresher.db").write_text("not a database, not at all" * 10)
    assert "is not an SQLite file" in complaint(run(tmp_path, "--budget=8", *ECHO), status=3)
    message = complaint(run(tmp_path, "--budget=8", "--storage=postgresql://me:secret@no..host/db", *ECHO), status=3)
    assert "secret" not in message
    assert "me:***@no..host" in message


def test_postgres_serves_run_too(tmp_path: Path, postgres_url: str) -> None:
    args = ["--budget=20", f"--storage={postgres_url}", "--format=json", *ECHO]
    agents = [start(tmp_path, *args) for _ in range(2)]
    assert [finish(process).status for process in agents] == [0, 0]
    assert verdict(run(tmp_path, *args))["told"] == 20
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["", "thresher.db", "sqlite://thresher.db"])
def test_a_storage_that_is_not_a_url_gets_an_example(tmp_path: Path, value: str) -> None:
    if value:
        assert "sqlite:///" in complaint(run(tmp_path, "--budget=8", f"--storage={value}", *ECHO))
    else:
        assert run(tmp_path, "--budget=8", "--storage=", *ECHO).status == 0, "nothing said is the default"


def test_the_library_and_the_program_resume_each_others_studies(tmp_path: Path) -> None:
    """No parameters at all, and no parameter for any arm, are the same."""
    asked: dict[str, Any] = {"arms": ["0.2", "0.8"], "at_least": 0.5, "budget": 8, "confidence": None}
    url = f"sqlite:///{tmp_path}/thresher.db"
    library.create_study("mine", storage=url, **asked).store.close()
    assert verdict(run(tmp_path, "--study=mine", "--budget=8", "--format=json", *ECHO))["told"] == 8
    run(tmp_path, "--study=theirs", "--budget=8", *ECHO)
    study = library.create_study("theirs", storage=url, if_exists="join", **asked)
    assert study.verdict().told == 8
    study.store.close()


def test_among_many_arms_the_one_that_differs_is_named(tmp_path: Path) -> None:
    arms = [f"--arm=number-{k}" for k in range(40)]
    mine = ["--study=mine", "--budget=90"]
    run(tmp_path, *mine, *arms, *ECHO[:2], "0.5")
    again = run(tmp_path, *mine, *arms[:-1], "--arm=another", "--policy=evt", *ECHO[:2], "0.5")
    assert "arm another is new, arm number-39 is gone, policy is evt, not anytime-evt" in again.err
