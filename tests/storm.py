"""Agents that are killed for real, and what must hold for their study afterwards. Used by tests and `make bench`."""

import json
import multiprocessing
import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import rewritten

import thresher
from thresher.core.policies import Policy
from thresher.core.replay import verify
from thresher.log.store import open_store
from thresher.study import peek_study

CONTEXT = multiprocessing.get_context("forkserver")
PRELOADED = ["storm", "thresher.log.sqlite", "thresher.log.postgres", "thresher.web.server"]
CONTEXT.set_forkserver_preload(PRELOADED)
AGENTS = 4
LEASE = 1.0


def reward_of(pull: thresher.Pull) -> float:
    return pull.seed / 2**32


def create(url: str, budget: int, policy: Policy | None = None) -> None:
    names = [f"arm {n}" for n in range(10)]
    study = thresher.create_study("s", arms=names, at_least=0.5, budget=budget, policy=policy, storage=url, seed=0)
    study.store.close()


def agent(url: str, acknowledged: str) -> None:
    """Ask and tell until the study is done; write down each acknowledged reward before the next step.

    Half of the agents tell one by one, the others exchange rewards for pulls.
    """
    study = thresher.open_study("s", storage=url, lease=LEASE, scores=[rewritten.thirds])
    diary = os.open(acknowledged, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    n, exchanges = 1 + os.getpid() % 3, os.getpid() // 3 % 2
    pulls = study.ask_many(n)
    while pulls:
        rewards = [(pull, reward_of(pull)) for pull in pulls]
        pulls = study.exchange(rewards, n) if exchanges else []
        for pull, reward in rewards:
            if not exchanges:
                study.tell(pull, reward)
            os.write(diary, f"{json.dumps([pull.id, reward])}\n".encode())
        pulls = pulls or study.ask_many(n)


class Storm:
    """Four agents; one that dies is replaced."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder, self.started = url, folder, 0
        self.agents: list[Any] = []

    def fill(self) -> None:
        self.agents = [each for each in self.agents if each.is_alive()]
        while len(self.agents) < AGENTS:
            self.started += 1
            process = CONTEXT.Process(target=agent, args=(self.url, str(self.folder / f"diary-{self.started}")))
            process.start()
            self.agents.append(process)

    def kill(self, count: int, rng: random.Random) -> None:
        """Use kill -9 ``count`` times, each at a random moment. If the agents finish first, extend the study."""
        killed = 0
        while killed < count:
            self.fill()
            time.sleep(rng.uniform(0.0, 0.06))  # a random moment; nothing is waited for
            victim = rng.choice(self.agents)
            victim.kill()
            victim.join()
            if victim.exitcode == -signal.SIGKILL:
                killed += 1
            else:
                assert victim.exitcode == 0, victim.exitcode
                self.extend(1000)

    def extend(self, pulls: int) -> None:
        """The study was done: raise its budget."""
        study = thresher.open_study("s", storage=self.url)
        study.extend(budget=(peek_study(study, lambda ledger: ledger.budget) or 0) + pulls)
        study.store.close()

    def finish(self, seconds: float) -> None:
        """Wait until the agents have finished the study."""
        self.fill()
        end = time.monotonic() + seconds
        for process in self.agents:
            process.join(max(0.1, end - time.monotonic()))
            assert process.exitcode == 0, process.exitcode

    def wait_for_rewards(self, count: int) -> None:
        """Wait until ``count`` more are acknowledged."""
        before = len(self.acknowledged())
        until(lambda: len(self.acknowledged()) >= before + count, 60)

    def end(self) -> None:
        for process in self.agents:
            process.kill()
            process.join()

    def acknowledged(self) -> list[tuple[int, float]]:
        lines = [line for file in self.folder.glob("diary-*") for line in file.read_text().splitlines()]
        return [(pull, reward) for pull, reward in map(json.loads, lines)]


def check(url: str, acknowledged: list[tuple[int, float]]) -> dict[str, int]:
    """Each acknowledged reward is in the log once, the budget is kept, the log verifies, and no pull is pending."""
    study = thresher.open_study("s", storage=open_store(url))
    until(lambda: (study.sweep(), study.verdict().pending == 0)[1], 60)
    events = study.events()
    told = [(event.pull, event.reward) for event in events if event.kind == "told"]
    assert len({pull for pull, _ in told}) == len(told)
    assert len({pull for pull, _ in acknowledged}) == len(acknowledged)
    assert set(acknowledged) <= set(told)
    verdict, budget = study.verdict(), peek_study(study, lambda ledger: ledger.budget) or 0
    assert (verdict.issued, verdict.done) == (budget, True)
    report = verify(events)
    assert report.sound, report
    assert set(peek_study(study, lambda ledger: ledger.pull_state)) <= {1, 2, 3}
    study.store.close()
    return {"acknowledged": len(acknowledged), "told": len(told), "lost": budget - len(told)}


def until(condition: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "never came"
        time.sleep(0.005)


def joiner(url: str, folder: str, number: int) -> None:
    """One of many processes that start at the same time on a store that does not exist yet."""
    until(Path(folder, "go").exists, 120)
    try:
        study = thresher.create_study(
            "s", arms=["a", "b"], at_least=0.5, budget=10**6, storage=url, if_exists="join", lease=60
        )
        pull = study.ask()
        study.tell(pull or 0, 0.5)
        answer: object = pull.id if pull else "no pull"
        study.store.close()
    except BaseException as error:
        answer = repr(error)
    Path(folder, f"answer-{number}").write_text(json.dumps(answer))


def start_together(url: str, count: int) -> list[Any]:
    """The answer of each of ``count`` processes. All wait for one file, so only the store can delay them."""
    with tempfile.TemporaryDirectory(prefix="thresher-start-") as folder:
        processes = [CONTEXT.Process(target=joiner, args=(url, folder, number)) for number in range(count)]
        for process in processes:
            process.start()
        Path(folder, "go").touch()
        for process in processes:
            process.join(120)
            process.kill()
        return [json.loads(file.read_text()) for file in Path(folder).glob("answer-*")]
