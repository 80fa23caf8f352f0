"""Many agents, each with its own cluster, and one study."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import thresher
from thresher.core.replay import verify

SCRIPT = """
import os, sys, time
from pathlib import Path
import thresher

def evaluate(pull):
    began = Path(os.environ["BEGAN"])  # a file for each agent: none returns a reward before all have begun
    (began / os.environ["AGENT"]).touch()
    while len(list(began.iterdir())) < 2:
        time.sleep(0.02)
    return pull.seed / 2**32

if __name__ == "__main__":
    study = thresher.open_study("shared", storage=sys.argv[1])
    thresher.run(study, evaluate, executor="dask", workers=2)
"""
BUDGET = 60


def test_two_agents_with_their_own_dask_clusters_share_one_budget(postgres_url: str, tmp_path: Path) -> None:
    thresher.create_study("shared", arms=["a", "b", "c"], threshold=0.5, budget=BUDGET, storage=postgres_url)
    script = tmp_path / "agent.py"
    script.write_text(SCRIPT)
    began = tmp_path / "began"
    began.mkdir()
    agents = [
        subprocess.Popen(
            [sys.executable, str(script), postgres_url],
            env={**os.environ, "AGENT": name, "BEGAN": str(began)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in "xy"
    ]
    said = [agent.communicate(timeout=180)[0] for agent in agents]
    assert [agent.returncode for agent in agents] == [0, 0], said
    study = thresher.open_study("shared", storage=postgres_url)
    verdict, events = study.verdict(), study.events()
    assert (verdict.issued, verdict.told, verdict.pending) == (BUDGET, BUDGET, 0)
    assert len({event.agent for event in events if event.kind == "asked"}) == 2
    assert verify(events).sound


@pytest.mark.parametrize("engine", ["processes", "dask", "ray"])
def test_a_shell_command_runs_on_every_engine(engine: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "thresher.cli", "run", "--threshold=0.5", "--arm=a", "--arm=b", "--budget=20"]
    command += ["--storage=memory", "--format=json", "--workers=2", f"--engine={engine}", "--no-confidence"]
    done = subprocess.run(
        [*command, "--", "sh", "-c", "test {arm} = a && echo 0.9 || echo 0.1"],
        capture_output=True,
        text=True,
        timeout=180,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    verdict = json.loads(done.stdout)
    assert (verdict["above"], verdict["below"], verdict["told"]) == (["a"], ["b"], 20)


@pytest.mark.parametrize("engine", ["cloud", "", "dask:", "thread"])
def test_an_unknown_engine_is_refused_before_a_study_is_created(engine: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "thresher.cli", "run", "--threshold=0.5", "--arm=a", "--arm=b", "--budget=20"]
    done = subprocess.run(
        [*command, f"--engine={engine}", "--", "echo", "1"], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert repr(engine) in line
    assert "threads, processes, dask or ray" in line
    assert list(tmp_path.iterdir()) == []
