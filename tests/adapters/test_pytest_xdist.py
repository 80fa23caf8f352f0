"""The pytest plugin with pytest-xdist: real runs with two workers."""

import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path

import pytest

import thresher
from thresher.log.store import open_store

PYTEST = [sys.executable, "-m", "pytest", "--disable-plugin-autoload", "-p", "xdist"]
PYTEST += ["-p", "thresher.adapters.pytest_plugin", "-p", "no:cacheprovider", "--basetemp=temp"]

MIXED = """
import os, pytest, signal, time, warnings

@pytest.fixture(scope="module")
def shared():
    return []

@pytest.mark.parametrize("number", range(3))
def test_steady(number, shared):
    shared.append(number)
    warnings.warn("careful")

def test_flaky(thresher_pull):
    print("it is", thresher_pull.number)
    assert thresher_pull.number % 7

def test_failing():
    assert False

def test_forks():
    child = os.fork()
    if child:
        os.waitpid(child, 0)

def test_kills():
    os.kill(os.getpid(), signal.SIGKILL)

def alone():
    file = os.open("busy", os.O_CREAT | os.O_EXCL)
    time.sleep(0.01)
    os.close(file)
    os.unlink("busy")

@pytest.mark.xdist_group("one")
def test_alone():
    alone()

@pytest.mark.xdist_group(name="one")
def test_alone_too():
    alone()

@pytest.mark.skip
def test_skipped():
    pass

@pytest.mark.xfail
def test_expected():
    assert False
"""
NOTED = """
import os, pytest, time

@pytest.fixture(autouse=True)
def noted(request, thresher_pull):
    with open("began", "a") as file:
        file.write(f"{thresher_pull.arm} {thresher_pull.number} {thresher_pull.seed}\\n")

def test_one():
    time.sleep(float(os.environ.get("SLEEP", 0)))

def test_two():
    time.sleep(float(os.environ.get("SLEEP", 0)))
"""


def run(folder: Path, text: str, *options: str) -> "subprocess.CompletedProcess[str]":
    (folder / "test_them.py").write_text(text)
    argv = [*PYTEST, "--thresher", "0.7", *options]
    return subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def studies(folder: Path) -> list[thresher.Study]:
    store = open_store(f"sqlite:///{folder / 'runs.db'}")
    return [thresher.open_study(name, storage=store) for name in store.studies()]


def test_each_test_is_reported_once_and_a_worker_that_dies_is_replaced(tmp_path: Path) -> None:
    """Tests of a group never run at the same time: otherwise one of them fails here."""
    done = run(tmp_path, MIXED, "-n", "2", "-v", "--dist", "loadgroup", "--junitxml=out.xml")
    shown = done.stdout
    assert done.returncode == 1, shown
    words = Counter(re.findall(r"\[ *\d+%\] (XFAIL|SKIPPED)|(REACHES, BUT FLAKY|REACHES|MISSES|ERROR|OPEN) +\[", shown))
    assert words == {
        ("", "REACHES"): 6, ("", "REACHES, BUT FLAKY"): 1, ("", "MISSES"): 1, ("", "ERROR"): 1,
        ("XFAIL", ""): 1, ("SKIPPED", ""): 1,
    }, shown  # fmt: skip
    cases = ET.parse(tmp_path / "out.xml").findall(".//testcase")
    assert len(cases) == 11
    assert "@one" not in shown, "it is the same test in a group or not"
    by_name = {case.get("name"): case for case in cases}
    assert by_name["test_flaky"].find("flakyFailure") is not None
    assert "crashed while it ran this test" in shown
    assert int(re.findall(r"(\d+) warning", shown)[0]) <= 3 * 5, "one for each test and worker"
    assert 3 <= shown.count("replacing crashed worker") <= 5, "after three failures in a row it is retired"


def test_seeds_are_those_of_the_studies_and_one_process_resumes_what_two_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLEEP", "0.02")
    storage = f"--thresher-storage=sqlite:///{tmp_path / 'runs.db'}"
    first = run(tmp_path, NOTED, "-n", "2", storage, "--thresher-for", "0.2s")
    monkeypatch.delenv("SLEEP")
    before = len((tmp_path / "began").read_text().splitlines())
    second = run(tmp_path, NOTED, storage)
    assert second.returncode == 0, first.stdout + second.stdout
    (study,) = studies(tmp_path)
    told = {(pull.arm, pull.number): pull.seed for pull in study.pulls() if pull.reward is not None}
    lines = [line.split() for line in (tmp_path / "began").read_text().splitlines()]
    assert before < len(lines), "some were left for the second"
    assert {(arm, int(number)): int(seed) for arm, number, seed in lines} == told
    assert len(lines) == len(told), "no run was made twice"


def test_after_ctrl_c_what_is_known_is_shown_and_no_run_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "test_them.py").write_text(NOTED)
    argv = [*PYTEST, "--thresher", "0.99", "-n", "2", f"--thresher-storage=sqlite:///{tmp_path / 'runs.db'}"]
    process = subprocess.Popen(
        argv, cwd=tmp_path, env={**os.environ, "SLEEP": "0.05"}, stdout=subprocess.PIPE, text=True, process_group=0
    )
    until = time.monotonic() + 60
    began_file = tmp_path / "began"
    while not (began_file.exists() and began_file.stat().st_size) and time.monotonic() < until:
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    shown, _ = process.communicate(timeout=60)
    assert process.returncode == 2, shown
    assert "2 open" in shown
    began = {tuple(line.split()[:2]) for line in (tmp_path / "began").read_text().splitlines()}
    (study,) = studies(tmp_path)
    assert not study.pending()
    dropped = {event.pull for event in study.events() if event.kind == "dropped" and event.cause == "cancelled"}
    cancelled = {(pull.arm, str(pull.number)) for pull in study.pulls() if pull.id in dropped}
    assert began
    assert not began & cancelled, "a run that began is told or lost"


def test_workers_that_collect_different_tests_are_refused_by_xdist(tmp_path: Path) -> None:
    text = """
import os, pytest
@pytest.mark.parametrize("worker", [os.environ.get("PYTEST_XDIST_WORKER")])
def test_it(worker):
    pass
"""
    done = run(tmp_path, text, "-n", "2")
    assert done.returncode == 1
    # Which worker finished collecting first decides which of them is named first.
    assert re.search("Different tests were collected between gw(0 and gw1|1 and gw0)", done.stdout), done.stdout


def test_tests_that_run_once_all_run_before_the_time_limit_counts(tmp_path: Path) -> None:
    text = """
import pytest, time
@pytest.mark.parametrize("number", range(12))
@pytest.mark.xfail
def test_expected(number):
    time.sleep(0.05)
    assert False
def test_it():
    time.sleep(0.01)
"""
    done = run(tmp_path, text, "-n", "2", "--thresher-for", "20ms")
    assert "12 xfailed" in done.stdout, done.stdout
