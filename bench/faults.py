"""What is done to a study, and what becomes of it: killed agents, damaged files, failing disks, crashed servers.

Of each fault five counts are reported: how often it was tried; how many rewards that were acknowledged are gone though
the store says that it is sound; how many damaged stores were accepted; how many agents hung; how many ended with a
traceback. Only the first may be above 0.
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import flips
import storm
from postgres import Server

import thresher
from thresher.log.store import open_store

from .report import Figure

KILLS, FLIPS, CUTS, DELETIONS, INJECTIONS, STOPS, CRASHES, JUMPS = 1000, 500, 200, 8, 24, 5, 5, 6
AGENTS = 3
PATIENCE = 90.0  # seconds after which an agent counts as hung
AGENT = """
import json, os, sys, time, thresher
jump, real = float(sys.argv[3]), time.time
began = time.monotonic()
time.time = lambda: real() + (jump if time.monotonic() - began > 0.5 else 0.0)
try:
    study = thresher.open_study("s", storage=sys.argv[1], lease=2.0)
    diary = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    exchanges, pulls = os.getpid() % 2, study.ask_many(2)  # half of the agents tell one by one
    while pulls:
        rewards = [(pull, pull.seed / 2**32) for pull in pulls]
        pulls = study.exchange(rewards, 2) if exchanges else []
        for pull, reward in rewards:
            if not exchanges:
                study.tell(pull, reward)
            os.write(diary, f"{json.dumps([pull.id, reward, time.monotonic()])}\\n".encode())
        pulls = pulls or study.ask_many(2)
except thresher.ThresherError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
"""


@dataclass
class Count:
    """What a fault did."""

    tried: int = 0
    lost: int = 0
    accepted: int = 0
    hung: int = 0
    tracebacks: int = 0

    def figures(self, what: str, *, least: int) -> Iterator[Figure]:
        yield Figure(f"{what}: tried", self.tried, "times", least)
        for name in ("lost", "accepted", "hung", "tracebacks"):
            words = {"lost": "rewards lost", "accepted": "accepted though damaged", "tracebacks": "tracebacks"}
            yield Figure(f"{what}: {words.get(name, name)}", getattr(self, name), "", 0, at_most=True)


class Crew:
    """Agents that work on a study, each a process that writes down every acknowledged reward."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder, self.agents = url, folder, list[subprocess.Popen[str]]()

    def start(self, count: int = AGENTS, *, before: "list[str] | None" = None, jump: float = 0.0) -> None:
        for _ in range(count):
            diary = self.folder / f"diary-{len(self.agents)}"
            argv = [*(before or []), sys.executable, "-c", AGENT, self.url, str(diary), str(jump)]
            self.agents.append(subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, start_new_session=True))

    def acknowledged(self) -> list[tuple[int, float, float]]:
        lines = [line for file in self.folder.glob("diary-*") for line in file.read_text().splitlines()]
        return [tuple(json.loads(line)) for line in lines]

    def wait_for_rewards(self, count: int) -> None:
        before = len(self.acknowledged())
        storm.until(lambda: len(self.acknowledged()) >= before + count or self.over, PATIENCE)

    def wait_for_all(self) -> None:
        """Wait until every agent has told a reward."""
        diaries = [self.folder / f"diary-{number}" for number in range(len(self.agents))]
        storm.until(lambda: all(diary.exists() and diary.stat().st_size for diary in diaries) or self.over, PATIENCE)

    @property
    def over(self) -> bool:
        return all(agent.poll() is not None for agent in self.agents)

    def end(self, count: Count, *, within: float = PATIENCE) -> None:
        """Wait for all agents; count those that hang or end with a traceback."""
        end = time.monotonic() + within
        for agent in self.agents:
            try:
                said = agent.communicate(timeout=max(0.1, end - time.monotonic()))[1]
            except subprocess.TimeoutExpired:
                count.hung += 1
                os.killpg(agent.pid, signal.SIGKILL)
                said = agent.communicate()[1]
            count.tracebacks += "Traceback" in said

    def stop(self) -> None:
        for agent in self.agents:
            if agent.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(agent.pid, signal.SIGKILL)
                agent.communicate()


@contextlib.contextmanager
def crew(url: str | None = None, *, budget: int = 10**6) -> Iterator[Crew]:
    """A new study in a new folder, and agents to work on it."""
    with tempfile.TemporaryDirectory() as name:
        found = Crew(url or f"sqlite:///{name}/s.db", Path(name))
        storm.create(found.url, budget)
        try:
            yield found
        finally:
            found.stop()


def told(url: str) -> set[tuple[int | None, float | None]] | None:
    """The rewards in a store; None if it reports damage."""
    store = open_store(url)
    try:
        study = thresher.open_study("s", storage=store)
        return {(event.pull, event.reward) for event in study.events() if event.kind == "told"}
    except thresher.StoreFailed:
        return None
    finally:
        store.close()


def missing(one: Crew, *, before: float = float("inf")) -> int:
    """Acknowledged rewards that are gone from a store that reports no damage."""
    found = told(one.url)
    if found is None:
        return 0
    return sum((pull, reward) not in found for pull, reward, when in one.acknowledged() if when < before)


# -- the faults ------------------------------------------------------------------------------------------------------


def kills() -> Iterator[Figure]:
    """kill -9 at random moments."""
    count = Count(tried=KILLS)
    with tempfile.TemporaryDirectory() as name:
        url = f"sqlite:///{name}/storm.db"
        storm.create(url, 30 * KILLS)
        weather = storm.Storm(url, Path(name))
        try:
            weather.kill(KILLS, random.Random(1))
            weather.finish(600)
            storm.check(url, weather.acknowledged())  # raises if anything that was acknowledged is missing
        finally:
            weather.end()
    yield from count.figures("kill -9", least=KILLS)


def bit_flips() -> Iterator[Figure]:
    """One bit of a closed store is flipped."""
    yield from _damaged("bit flips", FLIPS, flips.tally)


def truncations() -> Iterator[Figure]:
    """A closed store is truncated."""
    yield from _damaged("truncations", CUTS, flips.cuts)


def _damaged(what: str, tries: int, damage: "Callable[[Path, int], Counter[str]]") -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as name:
        found = damage(flips.closed_store(Path(name) / "s.db"), tries)
    accepted, crashed = found[flips.ACCEPTED], found[flips.CRASHED]
    yield from Count(tried=found.total(), accepted=accepted, tracebacks=crashed).figures(what, least=tries)
    yield Figure(f"{what}: harmless, read exactly as before", found[flips.HARMLESS], "times")


def deletions() -> Iterator[Figure]:
    """A file of the store is deleted while agents work. Rewards acknowledged before that may be gone with the file."""
    for ending in ("", "-wal", "-shm", "-lock"):
        count = Count()
        for _ in range(DELETIONS // 4):
            with crew() as one:
                one.start()
                one.wait_for_rewards(100)
                one.wait_for_all()  # an agent that opens the store later rightly works on a new file
                (one.folder / f"s.db{ending}").unlink(missing_ok=True)
                moment = time.monotonic()
                count.tried += 1
                if ending == "-lock":  # it only keeps the writers in a queue
                    one.wait_for_rewards(100)
                    one.stop()
                    count.lost += missing(one)
                    continue
                one.end(count)
                after = [reward for reward in one.acknowledged() if reward[2] > moment + 1.0]
                found = told(one.url) if (one.folder / "s.db").exists() else set()
                count.lost += sum((pull, reward) not in (found or set()) for pull, reward, _ in after)
        yield from count.figures(f"deleting s.db{ending} under agents", least=DELETIONS // 4)


def injections() -> Iterator[Figure]:
    """One system call fails: the disk is broken or full."""
    strace = shutil.which("strace")
    for error in ("EIO", "ENOSPC"):
        count = Count()
        for turn in range(INJECTIONS // 2 if strace else 0):
            call = ("fdatasync", "pwrite64", "fsync", "write")[turn % 4] if turn % 4 != 3 else "fdatasync"
            option = f"inject={call}:error={error}:when={20 + 37 * turn}"
            with crew(budget=400) as one:
                before = [str(strace), "-f", "-qq", "-o", "/dev/null", "-e", f"trace={call}", "-e", option]
                one.start(1, before=before)
                one.end(count)
                count.tried += 1
                count.lost += missing(one)
        yield from count.figures(f"one {error}", least=INJECTIONS // 2 if strace else 0)


def stopped() -> Iterator[Figure]:
    """An agent is stopped at a random moment, perhaps during a write; the others continue or say what they wait for."""
    count, rng = Count(), random.Random(5)
    for _ in range(STOPS):
        with crew(budget=2000) as one:
            one.start()
            one.wait_for_rewards(50 + rng.randrange(100))
            victim = one.agents[0]
            os.killpg(victim.pid, signal.SIGSTOP)
            time.sleep(3.0)  # how long the agent is stopped; nothing is waited for
            os.killpg(victim.pid, signal.SIGCONT)
            one.end(count)
            count.tried += 1
            count.lost += missing(one)
    yield from count.figures("SIGSTOP for 3 s", least=STOPS)


def crashes() -> Iterator[Figure]:
    """A PostgreSQL server stops as in a power cut, and is started again."""
    count, server = Count(), Server()
    try:
        with crew(server.url, budget=20_000) as one:
            one.start()
            for _ in range(CRASHES):
                one.wait_for_rewards(100)
                server.stop_at_once()
                server.start()
                count.tried += 1
            one.wait_for_rewards(100)
            one.stop()
            count.lost += missing(one)
    finally:
        server.close()
    yield from count.figures("crashes of PostgreSQL", least=CRASHES)


def clock_jumps() -> Iterator[Figure]:
    """An agent's clock jumps by a day: leases may expire early or late, but nothing is lost."""
    count = Count()
    for turn in range(JUMPS):
        with crew(budget=1500) as one:
            one.start(2)
            one.start(1, jump=86_400.0 if turn % 2 else -86_400.0)
            one.end(count)
            count.tried += 1
            count.lost += missing(one)
    yield from count.figures("jumps of the clock by a day", least=JUMPS)


FAULTS: list[Callable[[], Iterator[Figure]]] = [
    bit_flips, truncations, deletions, injections, stopped, clock_jumps, crashes, kills,
]  # fmt: skip


def figures() -> Iterator[Figure]:
    for fault in FAULTS:
        yield from fault()
