"""The loop in which rewards come back late: slots for the pulls under way, and a clock."""

import math
from typing import NamedTuple

from ..kernel import Board, Rule, assign, play, release
from .delays import BATCH, RANDOM, WORKERS, service
from .families import Reals
from .loops import (
    DRAW,
    TRACED,
    Arms,
    Counts,
    Measures,
    Trace,
    chosen,
    draw_instance,
    followed,
    measure,
    note,
    open_boards,
    rescored,
    saw,
)
from .streams import DELAYS, REWARDS, Words, fraction, start


class Slots(NamedTuple):
    """Pulls under way, one to a slot, and a tournament that finds the one due first."""

    pull: Counts  # 0: free
    arm: Counts
    reward: Reals
    free: Counts
    due: Reals
    winner: Counts


class Timing(NamedTuple):
    """The delay model and its service times, as the loop needs them."""

    model: int
    service: int
    seconds: float  # 0 where the model has no clock
    shape: float


def put_due(slots: Slots, slot: int, due: float) -> None:
    """Enter a slot into the tournament of what comes back first; the kernel's own match decides."""
    node = len(slots.due) // 2 + slot
    slots.due[node] = due
    while node > 1:
        node //= 2
        play(slots.due, slots.winner, node)


def empty_slots(slots: Slots) -> int:
    """Free every slot; returns how many there are."""
    leaves = len(slots.due) // 2
    for leaf in range(leaves):
        slots.due[leaves + leaf] = math.inf
        slots.winner[leaves + leaf] = leaf
    for node in range(leaves - 1, 0, -1):
        play(slots.due, slots.winner, node)
    capacity = len(slots.pull)
    for slot in range(capacity):
        slots.pull[slot] = 0
        slots.free[slot] = capacity - 1 - slot
    return capacity


def back_first(slots: Slots, model: int, state: Words) -> int:
    """The slot whose reward comes back next."""
    if model != RANDOM:
        return slots.winner[1]
    slot = int(fraction(state) * len(slots.pull))
    while slots.pull[slot] == 0:
        slot = int(fraction(state) * len(slots.pull))
    return slot


def owed(issued: int, budget: int, free: int, capacity: int, model: int) -> int:
    """How many rewards come back before the next decision: at the budget all of them."""
    if issued == budget:
        return capacity - free
    if free > 0:
        return 0
    return capacity if model == BATCH else 1


def run_late(
    seed: int,
    begin: int,
    end: int,
    boards: tuple[Board, Board],
    rules: tuple[Rule, Rule],
    arms: Arms,
    measures: Measures,
    trace: Trace,
    state: Words,
    late: Words,
    slots: Slots,
    timing: Timing,
) -> None:
    """Play the repetitions from ``begin`` to ``end`` with rewards under way."""
    board, other = boards
    budget = measures.checkpoints[-1]
    for row in range(begin, end):
        draw_instance(arms, seed, row, state)
        start(state, seed, row, REWARDS)
        start(late, seed, row, DELAYS)
        rule, other_rule = rules
        open_boards(board, other, rule, other_rule)
        free = capacity = empty_slots(slots)
        clock, barrier, column = 0.0, 0.0, 0
        for issued in range(1, budget + 1):
            measures.in_flight[row, 0] = max(measures.in_flight[row, 0], capacity - free)
            asked = chosen(board, other, issued)
            reward = DRAW(arms.first[asked], arms.second[asked], arms.low, arms.high, arms.samples, state)
            assign(board, asked)
            rule = followed(board, other, asked, issued, rule, other_rule)
            if TRACED:
                note(trace, issued, asked, reward)
            lasts = service(timing.service, timing.seconds, timing.shape, reward < arms.threshold, late)
            measures.busy[row, 0] += lasts
            barrier = max(barrier, clock + lasts)
            free -= 1
            slot = slots.free[free]
            slots.pull[slot] = issued
            slots.arm[slot] = asked
            slots.reward[slot] = reward
            put_due(slots, slot, clock + lasts if timing.model == WORKERS else float(issued))
            for _ in range(owed(issued, budget, free, capacity, timing.model)):
                slot = back_first(slots, timing.model, late)
                clock = slots.due[len(slots.due) // 2 + slot] if timing.model == WORKERS else barrier
                arm = slots.arm[slot]
                release(board, arm)
                saw(board, arms, arm, slots.reward[slot])
                rescored(board, other, arm, rule, other_rule)
                if TRACED:
                    note(trace, -slots.pull[slot], arm, slots.reward[slot])
                slots.pull[slot] = 0
                slots.free[free] = slot
                free += 1
                put_due(slots, slot, math.inf)
            if board.pending[asked] > measures.ratio[row, 0] * board.seen[asked] and board.seen[asked] > 0:
                measures.ratio[row, 0] = board.pending[asked] / board.seen[asked]
            if issued == measures.checkpoints[column]:
                measure(board, arms, measures, row, column)
                measures.clock[row, column] = clock
                column += 1
