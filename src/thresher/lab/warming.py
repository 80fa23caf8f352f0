"""Compiles several loops at once: numba compiles one at a time per process, so other processes compile their share.

They leave the machine code in the cache (see `compiler.py`), where this process finds it. Nothing depends on their
success: a loop that they did not compile is compiled when it is needed.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from ..core import policies
from ..core.policies import Policy
from . import compiler
from .output import progress_bar
from .setup import Setup
from .simulator import simulate
from .threads import available_cores


class Loop(NamedTuple):
    """What to compile a loop for."""

    policy: Policy  # only a user's has loops of its own
    late: bool  # whether rewards come late
    certifies: bool  # whether with certificates
    ranks: bool = False
    counts: bool = False

    @property
    def kind(self) -> compiler.Kind:
        """The same for the compiler."""
        return compiler.kind(self.policy, certifies=self.certifies, ranks=self.ranks, counts=self.counts)


def compile_together(loops: Sequence[Loop], *, shows: bool = False) -> None:
    """Compile the loops on all cores; ``shows`` draws a progress bar on a terminal."""
    unlike = {(loop.kind, loop.late): loop for loop in loops}
    needed = [loop for (kind, late), loop in unlike.items() if not compiler.kept(kind, late_rewards=late)]
    custom = [loop for loop in needed if loop.policy.is_custom]  # only this process has the user's function
    missing = [loop for loop in needed if not loop.policy.is_custom]
    shares = [missing[first :: available_cores()] for first in range(available_cores())]
    shares[0] += custom
    children = [_child(share) for share in shares[1:] if share] if compiler.keeps() else []
    try:
        with progress_bar("compiling, this once", len(needed)) if shows else nullcontext() as bar:
            compile_here(shares[0], bar)
            for child, share in zip(children, shares[1:], strict=False):
                child.wait()
                if bar is not None:
                    bar(len(share))
    finally:  # after Ctrl-C their work is not needed
        for child in children:
            child.terminate()


def compile_here(loops: Sequence[Loop], progress: Callable[[int], None] | None = None) -> None:
    """Compile by playing the smallest possible game; ``progress`` is called after each loop."""
    for loop in loops:
        game = Setup(
            loop.policy,
            "bernoulli",
            2,
            0.5,
            0.5,
            0.1,
            2 * loop.policy.warmup,
            "fifo:0" if loop.late else "none",
            confidence=0.95 if loop.certifies else None,
            guarantee="rate" if loop.ranks else "all",
            lower_is_better=loop.counts,
        )
        simulate(game, repetitions=1, threads=1)
        if progress is not None:
            progress(1)


def _child(loops: Sequence[Loop]) -> "subprocess.Popen[bytes]":
    text = json.dumps([(loop.policy.to_json(), *loop[1:]) for loop in loops])
    command = [sys.executable, "-m", "thresher.lab.warming", text]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    compile_here([Loop(policies.from_json(policy), *rest) for policy, *rest in json.loads(sys.argv[1])])
