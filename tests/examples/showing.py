"""Runs the examples as a reader would."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

EXAMPLES = Path(__file__).parents[2] / "examples"


class Shown(NamedTuple):
    status: int
    out: str
    err: str


def show(name: str, *words: str) -> Shown:
    """Run an example to its end."""
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    return Shown(done.returncode, done.stdout, done.stderr)
