"""Ctrl-C and SIGTERM, with real processes that really get the signals."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SCRIPT = """
import asyncio, os, sys, time, pathlib
from concurrent.futures import ProcessPoolExecutor
import thresher

folder = pathlib.Path(sys.argv[2])

def evaluate(pull):
    (folder / f"began-{pull.id}-{os.getpid()}").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    return 0.5

async def coroutine(pull):
    (folder / f"began-{pull.id}-{os.getpid()}").touch()
    while not (folder / "go").exists():
        await asyncio.sleep(0.01)
    return 0.5

if __name__ == "__main__":
    engine = sys.argv[1]
    study = thresher.create_study("s", arms=["a", "b"], at_least=0.4, budget=1000, confidence=None)
    pools = {"process-pool": lambda: ProcessPoolExecutor(2), "loky": lambda: __import__("loky").ProcessPoolExecutor(2)}
    executor = {**pools, "asyncio": None}.get(engine, engine)
    try:
        thresher.run(study, coroutine if engine == "asyncio" else evaluate, workers=2, executor=executor)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    finally:
        v = study.verdict()
        causes = sorted({e.cause for e in study.events() if e.kind == "dropped"})
        print(v.issued, v.told, v.pending, causes, flush=True)
"""


class Run:
    """The script above, in its own process group as in a terminal."""

    def __init__(self, engine: str, folder: Path) -> None:
        script = folder / "script.py"
        script.write_text(SCRIPT)
        self.folder = folder
        self.process = subprocess.Popen(
            [sys.executable, str(script), engine, str(folder)],
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        wait_until(lambda: len(list(folder.glob("began-*"))) >= 2)

    def workers(self) -> set[int]:
        return {int(file.name.split("-")[2]) for file in self.folder.glob("began-*")}

    def ctrl_c(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def output(self) -> str:
        return self.process.communicate(timeout=90)[0]


def wait_until(condition: Callable[[], bool], seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


ENGINES = ["threads", "processes", "asyncio"]
Start = Callable[[str], Run]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the script, and leaves nothing of it behind."""
    started: list[Run] = []

    def begin(engine: str) -> Run:
        started.append(Run(engine, tmp_path))
        return started[-1]

    yield begin
    for run in started:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.process.pid, signal.SIGKILL)
        run.process.communicate()


@pytest.fixture
def ray_address(ray_here: None) -> str:
    """The Ray that tests share, as an engine of other processes."""
    import ray

    return f"ray:{ray.get_runtime_context().gcs_address}"


@pytest.mark.parametrize("engine", [*ENGINES, "dask"])
def test_ctrl_c_stops_issuing_pulls_and_waits_for_running_ones(engine: str, start: Start, tmp_path: Path) -> None:
    run = start(engine)
    waits_for_running_ones(run, tmp_path)
    assert not any(map(alive, run.workers()))


def test_ctrl_c_waits_for_pulls_in_a_ray_that_runs_already(ray_address: str, start: Start, tmp_path: Path) -> None:
    run = start(ray_address)
    waits_for_running_ones(run, tmp_path)
    wait_until(lambda: not any(map(alive, run.workers())))  # the cluster ends them after the run


def waits_for_running_ones(run: Run, folder: Path) -> None:
    run.ctrl_c()
    with pytest.raises(subprocess.TimeoutExpired):
        run.process.wait(0.3)  # it waits
    (folder / "go").touch()
    said = run.output().splitlines()
    assert said[0] == "interrupted"
    assert said[1].split()[1:3] == ["2", "0"]  # told, pending
    assert said[1].endswith(("[]", "['cancelled']"))  # what waited behind those that ran


@pytest.mark.parametrize("engine", [*ENGINES, "dask"])
def test_a_second_ctrl_c_does_not_wait_and_leaves_no_orphan(engine: str, start: Start) -> None:
    ends_at_the_second(start(engine))


def test_a_second_ctrl_c_leaves_no_orphan_in_a_ray_that_runs_already(ray_address: str, start: Start) -> None:
    ends_at_the_second(start(ray_address))


def ends_at_the_second(run: Run) -> None:
    run.ctrl_c()
    with pytest.raises(subprocess.TimeoutExpired):
        run.process.wait(0.3)
    run.ctrl_c()
    said = run.output().splitlines()
    assert said[0] == "interrupted"
    issued, told, pending = map(int, said[1].split()[:3])
    assert issued >= 2
    assert (told, pending) == (0, 0)
    wait_until(lambda: not any(map(alive, run.workers())))


def test_ctrl_c_leaves_no_loky_workers_behind(start: Start) -> None:
    run = start("loky")
    run.ctrl_c()
    said = run.output().splitlines()
    assert said[0] == "interrupted"
    assert said[1].split()[1:3] == ["0", "0"]  # told, pending
    wait_until(lambda: not any(map(alive, run.workers())))


@pytest.mark.parametrize("engine", ENGINES)
def test_sigterm_stops_cleanly_and_then_ends_the_process(engine: str, start: Start, tmp_path: Path) -> None:
    run = start(engine)
    run.process.send_signal(signal.SIGTERM)
    with pytest.raises(subprocess.TimeoutExpired):
        run.process.wait(0.3)
    (tmp_path / "go").touch()
    run.output()
    assert run.process.returncode == -signal.SIGTERM
    assert not any(map(alive, run.workers()))


def test_workers_end_when_their_parent_is_killed(start: Start, tmp_path: Path) -> None:
    run = start("processes")
    run.process.kill()
    run.process.wait()
    (tmp_path / "go").touch()
    wait_until(lambda: not any(map(alive, run.workers())))
