"""Long logs: no command needs more memory than the columns of the studies that it reads."""

import random
import subprocess
import sys
from pathlib import Path

import program
import pytest
from logs import append

import thresher
from thresher.core.events import Event
from thresher.log.store import open_store

PULLS = 20_000  # 40,001 events, which take some 20 MB as Python objects
ROOM = 12.0  # MB more than for a study of 100 pulls: it takes some 8, most of it for a page of events
READ = """
import sys, thresher
from pathlib import Path
from thresher.cli.demo import demo_comparison
from thresher.log.call_keys import CallKeys
study = thresher.open_study("s", storage=sys.argv[1])
CallKeys("s", study.store).pulls("again:x", study.events(int(sys.argv[2]))[-1])
demo_comparison(study, 60.0)
print(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
"""
ARMS = [f"arm {number}" for number in range(20)]


def fill(path: Path, name: str, pulls: int) -> None:
    store = open_store(f"sqlite:///{path}?durability=normal")
    thresher.create_study(name, arms=ARMS, at_least=0.5, budget=10 * pulls, policy="uniform", storage=store)
    events, chance = [], random.Random(1)
    for pull in range(1, pulls + 1):
        arm, key = (pull - 1) % len(ARMS), f"{chance.getrandbits(48):012x}-{pull}"
        agent, seq = "machine:12345", 2 * pull
        events.append(Event(seq, "asked", pull, arm, key=key, time=1.8e9 + pull, agent=agent))
        reward = 0.4 + (pull - 1) // len(ARMS) % 2 / 5  # on the bar: none is settled
        events.append(Event(seq + 1, "told", pull, arm, reward, key=key, time=1.8e9 + pull + 0.5, agent=agent))
        if len(events) >= 20_000 or pull == pulls:
            append(store, name, events)
            events = []
    store.close()


@pytest.fixture(scope="module")
def workdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long")
    fill(path / "large.db", "s", PULLS)
    fill(path / "small.db", "s", 100)
    return path


def peak(workdir: Path, store: str, *args: str) -> float:
    """A command's peak memory, in MB."""
    done = program.thresher(*args, "--storage", f"sqlite:///{workdir}/{store}.db", cwd=workdir)
    assert done.status == 0, done.err
    return program.FORKED.peak


COMMANDS = {
    "status": ("status", "s"),
    "log": ("log", "s", "--after=40000", "--format=json"),
    "export json": ("export", "s", "json"),
    "export csv": ("export", "s", "csv"),
    "verify": ("verify", "s"),
    "doctor": ("doctor",),
    "drop": ("drop", "s", "--older-than=1d"),
    "report": ("report", "s", "--out=report.html"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_needs_the_columns_of_a_study_and_not_its_log(workdir: Path, command: str) -> None:
    if command == "report":
        pytest.importorskip("plotly")
    more = peak(workdir, "large", *COMMANDS[command]) - peak(workdir, "small", *COMMANDS[command])
    assert more < ROOM


def test_finding_calls_by_their_keys_and_comparing_plans_read_in_pages(workdir: Path) -> None:
    peaks = {}
    for store, pulls in (("large", PULLS), ("small", 100)):
        argv = [sys.executable, "-c", READ, f"sqlite:///{workdir}/{store}.db", str(2 * pulls)]
        done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=program.PATIENCE)
        peaks[store] = int(done.stdout) / 1024
    assert peaks["large"] - peaks["small"] < ROOM
