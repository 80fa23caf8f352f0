"""Pending pulls, and which of them comes back next."""

import math
from typing import NamedTuple

import numpy as np

from ..core.kernel import climb, play
from ..core.state import tree_size
from .delays import BATCH, FIFO, WORKERS
from .families import Reals
from .repetition import Counts, zeros
from .streams import Words, fraction


class Slots(NamedTuple):
    """Pending pulls, one per slot, and a tournament that finds the one that is done first."""

    pull: Counts  # 0: free
    arm: Counts
    reward: Reals
    free: Counts
    due: Reals
    winner: Counts


def blank_slots(capacity: int) -> Slots:
    """Columns for this many pending pulls; the tournament's have the types of a board's."""
    nodes = tree_size(capacity)
    pull, arm, free = (np.zeros(capacity, np.int64) for _ in range(3))
    return Slots(pull, arm, np.zeros(capacity), free, zeros("d", nodes), zeros("i", nodes))


class Timing(NamedTuple):
    """The delay model and its service times, as the loop needs them."""

    model: int
    at_once: int  # the first pulls, up to this one, are seen at once
    service: int
    seconds: float  # 0 if the model has no clock
    shape: float
    lost_below: float  # the chance that a pull is lost when its reward is below the bar,
    lost_above: float  # and when it is not
    hung: float  # the chance that a pull never returns and blocks its worker


def put_due(slots: Slots, slot: int, due: float) -> None:
    """Set when the pull in a slot is done, in the tournament of what comes back first."""
    climb(slots.due, slots.winner, slot, due)  # type: ignore[arg-type]  # arrays work like lists


def empty_slots(slots: Slots) -> int:
    """Free every slot; return how many there are."""
    leaves = len(slots.due) // 2
    for leaf in range(leaves):
        slots.due[leaves + leaf] = math.inf
        slots.winner[leaves + leaf] = leaf
    for node in range(leaves - 1, 0, -1):
        play(slots.due, slots.winner, node)  # type: ignore[arg-type]  # arrays work like lists
    capacity = len(slots.pull)
    for slot in range(capacity):
        slots.pull[slot] = 0
        slots.free[slot] = capacity - 1 - slot
    return capacity


def slot_for(slots: Slots, model: int, issued: int, free: int) -> int:
    """The slot for a new pull: the next one if rewards come back in order, otherwise any free one."""
    if model in (FIFO, BATCH):
        return (issued - 1) % len(slots.pull)
    return int(slots.free[free - 1])


def back_first(slots: Slots, model: int, told: int, state: Words) -> int:
    """The slot whose reward comes back next, after ``told`` rewards have."""
    if model in (FIFO, BATCH):
        return told % len(slots.pull)
    if model == WORKERS:
        return int(slots.winner[1])
    slot = int(fraction(state) * len(slots.pull))
    while slots.pull[slot] == 0:
        slot = int(fraction(state) * len(slots.pull))
    return slot


def owed(issued: int, budget: int, free: int, pending: int, timing: Timing) -> int:
    """How many pending pulls come back before the next decision; once the budget is issued, all of them."""
    if issued == budget or issued <= timing.at_once:
        return pending
    if free > 0:
        return 0
    return pending if timing.model == BATCH else min(pending, 1)


def hangs(timing: Timing, state: Words) -> bool:
    """Whether a pull never returns. Draws nothing if none can hang, so that other runs stay the same."""
    return timing.hung > 0.0 and fraction(state) < timing.hung


def is_lost(timing: Timing, failed: bool, state: Words) -> bool:
    """Whether a pull is lost."""
    chance = timing.lost_below if failed else timing.lost_above
    return chance > 0.0 and fraction(state) < chance
