"""Runs the examples as a reader would."""

import contextlib
import io
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import telling

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


def show_here(main: Callable[[], int], *words: str) -> Shown:
    """Run an example in this process, where scikit-learn is imported; at least one test of each starts the program."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "argv", ["example", *words]),
        patch.dict(os.environ),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("default")
        try:
            telling.end(main)
        except SystemExit as ended:
            return Shown(int(ended.code or 0), out.getvalue(), err.getvalue())
