"""Compiles several loops at once: numba compiles one at a time per process, so other processes compile their share.

They leave the machine code in the cache (see `compiler.py`), where this process finds it. Nothing depends on their
success: a loop that they did not compile is compiled when it is needed.
"""

import json
import subprocess
import sys
from collections.abc import Sequence

from ..core import policies
from ..core.policies import Policy
from . import compiler
from .recorded import Recorded
from .setup import Setup
from .simulator import simulate
from .threads import available_cores

Loop = tuple[Policy, str, bool, bool]  # policy, family, whether rewards come late, whether with certificates


def compile_together(loops: Sequence[Loop]) -> None:
    """Compile the loops on all cores."""
    kinds = [compiler.kind(policy, family, certifies=certifies) for policy, family, _, certifies in loops]
    missing = [loop for loop, kind in zip(loops, kinds, strict=True) if not compiler.kept(kind, late_rewards=loop[2])]
    shares = [missing[first :: available_cores()] for first in range(available_cores())]
    children = [_child(share) for share in shares[1:] if share] if compiler.keeps() else []
    try:
        compile_here(shares[0])
        for child in children:
            child.wait()
    finally:  # after Ctrl-C their work is not needed
        for child in children:
            child.terminate()


def compile_here(loops: Sequence[Loop]) -> None:
    """Compile by playing the smallest possible game."""
    for policy, family, late, certifies in loops:
        data = Recorded(("a", "b"), ((0.5,), (0.5,))) if family == "recorded" else None
        delay = "fifo:0" if late else "none"
        sure = 0.95 if certifies else None
        game = Setup(policy, family, 2, 0.5, 0.5, 0.1, 2 * policy.warmup, delay, confidence=sure, recorded=data)
        simulate(game, repetitions=1, threads=1)


def _child(loops: Sequence[Loop]) -> "subprocess.Popen[bytes]":
    text = json.dumps([(policy.to_json(), *rest) for policy, *rest in loops])
    command = [sys.executable, "-m", "thresher.lab.warming", text]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    compile_here([(policies.from_json(policy), *rest) for policy, *rest in json.loads(sys.argv[1])])
