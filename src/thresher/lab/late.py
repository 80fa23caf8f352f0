"""The loop in which rewards come back late, with a clock."""

import math

from thresher.kernel import Board, Rule, assign, release

from .delays import WORKERS, service
from .loops import DRAW, TRACED, chosen, draw_instance, followed, open_boards, rescored
from .parts import Arms, Measures, Trace, measure, note, saw
from .slots import Slots, Timing, back_first, empty_slots, owed, put_due, slot_for
from .streams import DELAYS, REWARDS, Words, start


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
        clock, barrier, column, told = 0.0, 0.0, 0, 0
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
            slot = slot_for(slots, timing.model, issued, free)
            free -= 1
            slots.pull[slot] = issued
            slots.arm[slot] = asked
            slots.reward[slot] = reward
            if timing.model == WORKERS:
                put_due(slots, slot, clock + lasts)
            for _ in range(owed(issued, budget, free, capacity, timing)):
                slot = back_first(slots, timing.model, told, late)
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
                told += 1
                if timing.model == WORKERS:
                    put_due(slots, slot, math.inf)
            if board.pending[asked] > measures.ratio[row, 0] * board.seen[asked] and board.seen[asked] > 0:
                measures.ratio[row, 0] = board.pending[asked] / board.seen[asked]
            if issued == measures.checkpoints[column]:
                measure(board, arms, measures, row, column)
                measures.clock[row, column] = clock
                column += 1
