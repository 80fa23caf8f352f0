"""The example agents do what they say."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import WRITE_TOKEN, Served, served

import thresher

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def storage(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/s.db?durability=normal"


@pytest.fixture
def server(storage: str) -> Iterator[Served]:
    arms = {"rare": {"chance": 0.1}, "often": {"chance": 0.9}}
    question = {"arms": arms, "at_least": 0.5, "budget": 12, "confidence": None, "seed": 0}
    thresher.create_study("coins & more", storage=storage, **question)  # type: ignore[arg-type]
    with served(storage, "--write") as server:
        yield server


def run(server: Served, *argv: str, status: int = 0) -> str:
    env = {**os.environ, "THRESHER_URL": server.url, "THRESHER_TOKEN": WRITE_TOKEN}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == status, done.stderr + done.stdout
    return done.stderr


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl here")
def test_the_shell_agent_finishes_a_study(server: Served, storage: str, tmp_path: Path) -> None:
    command = tmp_path / "evaluate"
    command.write_text('#!/bin/sh\n[ "$THRESHER_SEED" -gt 0 ] || exit 1\n[ "$1" = often ] && echo 1 || echo 0\n')
    command.chmod(0o755)
    run(server, "sh", str(EXAMPLES / "agent.sh"), "coins%20%26%20more", str(command))
    verdict = thresher.open_study("coins & more", storage=storage).verdict()
    assert (verdict.told, verdict.reached, verdict.missed) == (12, ["often"], ["rare"])


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl here")
def test_the_shell_agent_passes_the_case_on_and_comes_back_for_one_that_another_agent_lost(
    server: Served, storage: str, tmp_path: Path
) -> None:
    study = thresher.create_study("evals", arms=["a", "b"], at_least=0.6, cases=["one", "two"], storage=storage)
    command = tmp_path / "evaluate"
    command.write_text('#!/bin/sh\n[ "$THRESHER_CASE" = one ] && echo 1 || echo 0.5\n')
    command.chmod(0o755)
    study.ask_many(1, lease=0.5)
    run(server, "sh", str(EXAMPLES / "agent.sh"), "evals", str(command))
    assert {row.case: list(row.rewards.values()) for row in study.cases()} == {"two": [0.5, 0.5], "one": [1.0, 1.0]}


@pytest.mark.skipif(not shutil.which("curl"), reason="there is no curl here")
def test_the_shell_agent_reports_failures(server: Served, storage: str) -> None:
    run(server, "sh", str(EXAMPLES / "agent.sh"), "coins%20%26%20more", "false")
    verdict = thresher.open_study("coins & more", storage=storage).verdict()
    assert sorted(verdict.retired) == ["often", "rare"]


@pytest.mark.skipif(not shutil.which("node"), reason="there is no Node.js here")
def test_the_node_agent_finishes_a_study(server: Served, storage: str) -> None:
    run(server, "node", str(EXAMPLES / "agent.mjs"), "coins & more")
    verdict = thresher.open_study("coins & more", storage=storage).verdict()
    assert (verdict.told, verdict.reached, verdict.missed) == (12, ["often"], ["rare"])


@pytest.mark.skipif(not shutil.which("node"), reason="there is no Node.js here")
def test_the_node_agent_says_what_the_server_said(server: Served) -> None:
    assert "is not in this store" in run(server, "node", str(EXAMPLES / "agent.mjs"), "nobody", status=1)
