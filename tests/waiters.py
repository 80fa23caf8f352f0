"""Processes that wait for a store: what they say, and how quickly a signal ends them.

They say it after a fifth of a second and not after four, to save time; what is said, and when it ends, is the same.
"""

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

SOON = """
import thresher.log.locks
thresher.log.locks.TURN = thresher.log.locks.SAID_AFTER = 0.2
"""
THRESHER = [sys.executable, "-c", f"{SOON}from thresher.cli import main\nmain()"]
ASK = [*THRESHER, "ask", "s", "--storage"]
AT_ONCE = 20.0  # seconds until a signal takes effect on a busy machine; the wait itself would take a minute
LATEST = 5.0 + 10.0  # seconds until a wait is logged, and what a busy machine may add
RUN = f"""{SOON}
import sys, time, thresher
from pathlib import Path
folder = Path(sys.argv[2])
def evaluate(pull):
    (folder / f"began-{{pull.id}}").touch()
    while not (folder / "go").exists():
        time.sleep(0.005)
    return 1.0
study = thresher.open_study("s", storage=sys.argv[1])
thresher.run(study, evaluate, workers=2)
"""


@contextlib.contextmanager
def started(argv: list[str]) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said_by(process: "subprocess.Popen[str]") -> str:
    """The next line on standard error."""
    assert process.stderr
    return process.stderr.readline()


def ends_at_once(process: "subprocess.Popen[str]", number: signal.Signals, seconds: float = AT_ONCE) -> str:
    began = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert time.monotonic() - began < seconds, said
    return said
