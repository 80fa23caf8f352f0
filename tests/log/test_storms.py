"""Agents that are killed, stopped and started all at once; servers that stop as if by a power cut.

A tenth of the numbers that `make bench` takes.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import rewritten
import storm
from postgres import Server

import thresher


@pytest.mark.parametrize(("policy", "budget", "kills"), [(None, 400, 12), (thresher.custom(rewritten.thirds), 150, 4)])
def test_a_storm_of_kills_on_sqlite_loses_nothing_that_was_acknowledged(
    policy: thresher.Policy | None, budget: int, kills: int, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/thresher.db"
    storm.create(url, budget, policy)
    weather = storm.Storm(url, tmp_path)
    try:
        weather.kill(kills, random.Random(1))
        weather.finish(180)
    finally:
        weather.end()
    found = storm.check(url, weather.acknowledged())
    assert found["acknowledged"] > budget // 2


def test_immediate_stops_of_postgres_lose_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    server, budget = Server(), 300
    weather = storm.Storm(server.url, tmp_path)
    try:
        storm.create(server.url, budget)
        weather.fill()
        for _ in range(2):
            weather.wait_for_rewards(60)
            server.stop_at_once()
            server.start()
        weather.finish(180)
        assert storm.check(server.url, weather.acknowledged())["acknowledged"] > 200
    finally:
        weather.end()
        server.close()


def test_32_processes_that_start_together_all_join(url: str) -> None:
    assert sorted(storm.start_together(url, 32), key=str) == sorted(range(1, 33), key=str)


@pytest.fixture
def lease() -> float:
    """Seconds."""
    return 1.0


@pytest.fixture
def worker(url: str, lease: float, tmp_path: Path) -> Iterator[int]:
    """A process that has asked for a pull, and tells it when the file ``go`` is there."""
    thresher.create_study("s", arms=["a", "b"], at_least=0.5, budget=100, storage=url).store.close()
    process = storm.CONTEXT.Process(target=_work, args=(url, str(tmp_path), lease))
    process.start()
    storm.until((tmp_path / "asked").exists, 60)
    yield process.pid or 0
    process.kill()
    process.join()


def _work(url: str, folder: str, lease: float) -> None:
    study = thresher.open_study("s", storage=url, lease=lease)
    pull = study.ask() or 0
    Path(folder, "asked").touch()
    while not Path(folder, "go").exists():
        time.sleep(0.005)
    study.tell(pull, 0.75)
    study.tell(pull, 0.75)
    Path(folder, "told").touch()


@pytest.mark.alone
@pytest.mark.parametrize("lease", [0.4])
def test_a_worker_that_is_stopped_past_its_lease_has_its_late_reward_kept_once(
    worker: int, url: str, lease: float, tmp_path: Path
) -> None:
    study = thresher.open_study("s", storage=url)
    os.kill(worker, signal.SIGSTOP)
    began = time.monotonic()
    storm.until(study.sweep, 60)
    assert time.monotonic() - began < lease + 2.0, "within lease + 2 s"
    (tmp_path / "go").touch()
    os.kill(worker, signal.SIGCONT)
    storm.until((tmp_path / "told").exists, 60)
    events = [(event.kind, event.cause, event.late) for event in study.events()[2:]]
    assert events == [("dropped", "lost", None), ("told", None, True)]
    assert study.verdict()["a"].seen == 1
    study.store.close()


@pytest.mark.alone
def test_a_worker_that_is_stopped_for_less_than_its_lease_loses_nothing(worker: int, url: str, tmp_path: Path) -> None:
    study = thresher.open_study("s", storage=url)
    for _ in range(2):
        os.kill(worker, signal.SIGSTOP)
        time.sleep(0.2)  # with two thirds of the lease left at the least, under a second
        os.kill(worker, signal.SIGCONT)
        time.sleep(0.4)  # a beat
        assert study.sweep() == 0
    (tmp_path / "go").touch()
    storm.until((tmp_path / "told").exists, 60)
    assert [(event.kind, event.late) for event in study.events()[2:]] == [("told", None)]
    study.store.close()


@pytest.mark.alone
@pytest.mark.parametrize("lease", [1.0])
def test_a_killed_worker_is_noticed_within_its_lease_and_two_seconds(worker: int, url: str, lease: float) -> None:
    os.kill(worker, signal.SIGKILL)
    began = time.monotonic()
    study = thresher.open_study("s", storage=url)
    storm.until(study.sweep, 60)
    assert time.monotonic() - began < lease + 2.0
    study.store.close()


def test_n_agents_never_exceed_the_budget(url: str, tmp_path: Path) -> None:
    storm.create(url, 201)
    weather = storm.Storm(url, tmp_path)
    try:
        weather.finish(180)
    finally:
        weather.end()
    assert storm.check(url, weather.acknowledged()) == {"acknowledged": 201, "told": 201, "lost": 0}
