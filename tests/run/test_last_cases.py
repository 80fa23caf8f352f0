"""The last cases of an eval set may be with another agent: what it loses is tried again, and nothing is over before."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import thresher

CHILD = """
import sys, time, thresher
study = thresher.open_study("s", storage=sys.argv[1], lease=1.0)
pulls = study.ask_many(4)
print(len(pulls), flush=True)
time.sleep(3600)
"""


def test_a_run_waits_for_the_last_cases_of_an_agent_that_was_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    study = thresher.create_study("s", arms=["a"], at_least=0.5, cases=4, storage=storage, lease=1.0)
    child = subprocess.Popen([sys.executable, "-c", CHILD, storage], stdout=subprocess.PIPE)
    assert child.stdout
    assert child.stdout.readline() == b"4\n"
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    assert study.done
    assert study.verdict().hints == ()
    verdict = thresher.run(study, lambda pull: 1.0, workers=1)
    assert (verdict.reached, verdict["a"].certified, verdict["a"].pending) == (["a"], True, 0)
    assert caplog.messages == ["waiting for 4 pulls of other agents: what they lose is tried again here"]


def test_a_run_waits_for_the_last_cases_of_an_agent_that_lives(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path}/s.db"
    first = thresher.create_study("s", arms=["a"], at_least=0.9, cases=4, storage=storage)
    second = thresher.open_study("s", storage=storage)
    pulls = first.ask_many(4)
    verdicts: list[thresher.Verdict] = []
    runner = threading.Thread(target=lambda: verdicts.append(thresher.run(second, lambda pull: 1.0, workers=1)))
    runner.start()
    for pull in pulls:
        first.tell(pull, 1.0)
    runner.join(60)
    assert [verdict["a"].exact for verdict in verdicts] == [True]


def test_a_run_does_not_wait_for_pulls_that_its_own_process_asked_for(tmp_path: Path) -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.9, cases=4, storage=tmp_path / "s.db")
    study.ask_many(4)
    verdict = thresher.run(study, lambda pull: 1.0, workers=1)
    assert (verdict.told, verdict.pending) == (0, 4)


def test_a_study_that_finds_names_what_it_found() -> None:
    study = thresher.create_study("s", arms=["good", "bad"], at_least=0.5, cases=20, find=1)
    verdict = thresher.run(study, lambda pull: float(pull.arm == "good"), workers=1)
    assert verdict.answer == "Found 1 of 1: 'good'."
    none = thresher.create_study("n", arms=["bad"], at_least=0.5, cases=20, find=1)
    assert thresher.run(none, lambda pull: 0.0, workers=1).answer == "Found 0 of 1."
