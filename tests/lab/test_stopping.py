"""Ctrl-C and SIGTERM end the laboratory's commands at once, with one line and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# a shell that starts programs in the background has them ignore Ctrl-C
PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from thresher.cli import main
main()
"""
LONG = {
    "simulate": ("simulate", "--repetitions", "1", "--budget", "900000000000", "--checkpoints", "1000"),
    "plan": ("plan", "--at-least", "0.5", "--arms", "200000", "--means", "0.4:0.6", "--picture", "p.png"),
}


@pytest.mark.parametrize(
    ("command", "number"),
    [("simulate", signal.SIGINT), ("simulate", signal.SIGTERM), ("plan", signal.SIGINT)],
)
def test_a_signal_ends_a_command_with_one_line_and_leaves_nothing(command: str, number: int, tmp_path: Path) -> None:
    cache, folder = tmp_path / "cache", tmp_path / "work"
    folder.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *LONG[command]],
        env={**os.environ, "XDG_CACHE_HOME": str(cache)},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 120
        while not cache.exists():  # it compiles now
            assert process.poll() is None, process.stderr
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        printed, said = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 128 + number
    assert printed == ""
    assert said == "thresher: stopped; nothing was written\n"
    assert list(folder.iterdir()) == []
