"""Rewards as compiled code draws them, without a loop around the draws: a loop takes seconds to compile."""

from functools import cache
from types import FunctionType
from typing import Any, cast

import numpy as np

from thresher.lab import Setup, compiled_scores, compiler
from thresher.lab.simulator import instances, simulated_blank_arms
from thresher.lab.streams import REWARDS

draw_from_family: Any = None  # put in by `drawn`
start_stream: Any = None


def _draw_many(arms: Any, state: Any, out: Any) -> None:
    start_stream(state, 0, 0, REWARDS)
    for at in range(len(out)):
        out[at] = draw_from_family(arms.family, arms.first[0], arms.second[0], arms.low, arms.high, arms.samples, state)


@cache
def _many() -> Any:
    rebuilt = compiled_scores.rebuilt_to_compile(
        cast(FunctionType, _draw_many), {**compiler.compiled_namespace(), "REWARDS": REWARDS}, "_draw_many"
    )
    return compiler.njit(**compiler.OPTIONS)(rebuilt)


def drawn(setup: Setup, number: int) -> tuple[Any, float, float]:
    """So many rewards of a setup's only arm, its true mean and its standard deviation."""
    [(mean, spread)] = instances(setup, repetitions=1)
    draw_arms, arms, state = compiler.compiled_instance_drawer(), simulated_blank_arms(setup), np.zeros(4, np.uint64)
    draw_arms(arms, 0, 0, state)
    rewards = np.zeros(number)
    _many()(arms, state, rewards)
    return rewards, float(mean[0]), float(spread[0])
