"""Many agents, each with its own cluster, and one study."""

import functools
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from program import complaint
from program import thresher as command

import thresher
from thresher.cli import cli
from thresher.core.replay import verify

SCRIPT = """
import logging, sys
import thresher
from distributed import Client, LocalCluster
from test_agents import evaluate

if __name__ == "__main__":
    study = thresher.open_study("shared", storage=sys.argv[1])
    quiet = {"silence_logs": logging.CRITICAL, "dashboard_address": "127.0.0.1:0", "processes": False}
    with LocalCluster(n_workers=1, threads_per_worker=2, **quiet) as cluster, Client(cluster) as client:
        thresher.run(study, evaluate, executor=client)
"""
BUDGET = 60


def evaluate(pull: thresher.Pull, folder: str = "") -> float:
    """Leaves a file for each agent: none returns a reward before both have begun."""
    began = Path(folder or os.environ["BEGAN"])
    (began / ("here" if folder else "there")).touch()
    while len(list(began.iterdir())) < 2:
        time.sleep(0.02)
    return pull.seed / 2**32


def test_two_agents_with_their_own_dask_clusters_share_one_budget(
    postgres_url: str, dask_client: Any, tmp_path: Path
) -> None:
    thresher.create_study("shared", arms=["a", "b", "c"], at_least=0.5, budget=BUDGET, storage=postgres_url, seed=0)
    began = tmp_path / "began"
    began.mkdir()
    agent = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, postgres_url],
        env={**os.environ, "BEGAN": str(began), "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    study = thresher.open_study("shared", storage=postgres_url)
    thresher.run(study, functools.partial(evaluate, folder=str(began)), executor=dask_client)
    said = agent.communicate(timeout=180)[0]
    assert agent.returncode == 0, said
    verdict, events = study.verdict(), study.events()
    assert (verdict.issued, verdict.told, verdict.pending) == (BUDGET, BUDGET, 0)
    assert len({event.agent for event in events if event.kind == "asked"}) == 2
    assert verify(events).sound


@pytest.mark.parametrize("engine", ["processes", "dask", "ray"])
def test_a_shell_command_runs_on_every_engine(engine: str, where: dict[str, Any]) -> None:
    """In clusters that run already; `cli/test_cli_signals.py` has commands in those that thresher starts."""
    named = where["executor"].scheduler.address.replace("tcp://", "dask://") if engine == "dask" else engine
    options = ["--at-least=0.5", "--arm=a", "--arm=b", "--budget=20", "--format=json", "--workers=2"]
    command = ["sh", "-c", "test {arm} = a && echo 0.9 || echo 0.1"]
    done = CliRunner(env={"THRESHER_STORAGE": "memory"}).invoke(
        cli, ["run", *options, f"--engine={named}", "--confidence=off", "--", *command], standalone_mode=False
    )
    assert done.exception is None, done.output
    verdict = json.loads(done.stdout)
    assert (verdict["reached"], verdict["missed"], verdict["told"]) == (["a"], ["b"], 20)


@pytest.mark.parametrize("engine", ["cloud", "", "dask:", "thread"])
def test_an_unknown_engine_is_refused_before_a_study_is_created(engine: str, tmp_path: Path) -> None:
    question = ["--at-least=0.5", "--arm=a", "--arm=b", "--budget=20", f"--engine={engine}"]
    line = complaint(command("run", *question, "--", "echo", "1", cwd=tmp_path, env={"THRESHER_STORAGE": ""}))
    assert repr(engine) in line
    assert "threads, processes, dask or ray" in line
    assert list(tmp_path.iterdir()) == []
