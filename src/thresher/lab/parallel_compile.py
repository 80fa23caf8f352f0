"""Compiles several loops at once, in several processes, because numba compiles only one at a time in a process.

The other processes leave machine code in the cache (see `compiler.py`), where this process finds it. Nothing depends on
their success: a loop that they did not compile is compiled when it is needed.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext, suppress

from ..core.policies import Policy
from ..text.machine import available_cores
from . import compiler
from .compiler import CompilerChoices
from .result import progress_bar
from .setup import Setup
from .simulator import prepared_simulation


def compile_in_parallel(loops: Iterable[CompilerChoices], *, shows: bool = False) -> None:
    """Compile the loops on all cores; ``shows`` draws a progress bar on a terminal."""
    needed = [loop for loop in dict.fromkeys(loops) if not compiler.is_compiled(loop)]
    plain = [loop for loop in needed if loop.digest is None]
    cores = available_cores() if compiler.can_cache_compiled() else 1
    shares = [plain[first::cores] for first in range(cores)]
    shares[0] += [loop for loop in needed if loop.digest is not None]  # only this process has the user's function
    children = [child_that_compiles(share) for share in shares[1:] if share]
    try:
        with progress_bar("compiling, this once", len(needed)) if shows else nullcontext() as bar:
            compile_parallel_share(shares[0], bar)
            for child, share in zip(children, shares[1:], strict=False):
                _wait_for(child)
                if bar is not None:
                    bar(len(share))
    finally:  # after Ctrl-C, their work is not needed
        for child in children:
            child.terminate()


def _wait_for(child: "subprocess.Popen[bytes]") -> None:
    """Wait until the process ends, in short waits, so that Ctrl-C works: see `simulator.run_simulator_threads`."""
    while True:
        with suppress(subprocess.TimeoutExpired):
            child.wait(0.5)
            return


def compile_parallel_share(loops: Sequence[CompilerChoices], progress: Callable[[int], None] | None = None) -> None:
    """Compile some loops; ``progress`` is called after every loop."""
    for loop in loops:
        prepared_simulation(_smallest_game(loop), loop)
        if progress is not None:
            progress(1)


def _smallest_game(loop: CompilerChoices) -> Setup:
    return Setup(
        None if loop.formula is None else Policy(loop.formula, digest=loop.digest),
        family="bernoulli",
        arms=2,
        budget=4,
        delay="fifo:0" if loop.delayed else "none",
        confidence=0.95 if loop.certifies else None,
        guarantee="rate" if loop.ranks else "all",
        at_most=0.7 if loop.counts else None,
    )


def child_that_compiles(loops: Sequence[CompilerChoices]) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "thresher.lab.parallel_compile", json.dumps(loops)]
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    compile_parallel_share([CompilerChoices(*flags) for flags in json.loads(sys.argv[1])])
