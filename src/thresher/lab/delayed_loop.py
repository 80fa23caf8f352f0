"""The loop in which rewards come back while other pulls are chosen, with a clock."""

import math

from ..core.certificate import OPEN
from ..core.kernel import Board, Rule, assign, choose_for, release, rescore_asked, rescore_both
from .delays import WORKERS, service
from .loops import (
    CERTIFIES,
    IS_CUSTOM,
    RANKS,
    begin_row,
    ended,
    issued_pull,
    learned,
    measured,
    note_asked,
    observed,
)
from .proofs import Proof, rank
from .repetition import Arms, Boards, Measures, Rules, Trace, is_refused, note
from .slots import Slots, Timing, back_first, empty_slots, hangs, is_lost, owed, put_due, slot_for
from .streams import DELAYS, Words, start


def came_back(
    board: Board,
    other: Board,
    rule: Rule,
    other_rule: Rule,
    proof: Proof,
    arms: Arms,
    trace: Trace,
    slots: Slots,
    slot: int,
    timing: Timing,
    delay_words: Words,
) -> None:
    """A pull is no longer pending: its reward came back, or it was lost."""
    arm, pull, reward = slots.arm[slot], slots.pull[slot], slots.reward[slot]
    lost = is_lost(timing, reward < arms.threshold, delay_words)
    release(board, arm)
    if not lost:
        observed(board, arms, arm, reward)
    if CERTIFIES:
        learned(board, other, rule, other_rule, proof, arms, arm, pull, reward, lost)
    note(trace, -pull, arm, math.nan if lost else reward, 0.0)


def run_delayed(
    seed: int,
    begin: int,
    end: int,
    boards: Boards,
    rules: Rules,
    arms: Arms,
    measures: Measures,
    trace: Trace,
    state: Words,
    proof: Proof,
    delay_words: Words,
    slots: Slots,
    timing: Timing,
) -> None:
    """Play the repetitions from ``begin`` to ``end``, with pulls pending while others are chosen."""
    board, other = boards
    budget = measures.checkpoints[-1]
    for row in range(begin, end):
        begin_row(seed, row, boards, rules, arms, state, proof)
        start(delay_words, seed, row, DELAYS)
        rule, other_rule = rules
        free = capacity = empty_slots(slots)
        clock, barrier, column, told, hung = 0.0, 0.0, 0, 0, 0
        for issued in range(1, budget + 1):
            measures.in_flight[row, 0] = max(measures.in_flight[row, 0], capacity - free)
            asked = choose_for(board, other, rule, issued)
            if IS_CUSTOM and is_refused(board, measures, row, asked):
                return
            assign(board, asked)
            reward = issued_pull(board, proof, arms, asked, issued, state)
            if RANKS:
                rank(board, proof, asked, False)  # a pending pull only lowers its arm
            measures.used[row, 0] = issued  # before scoring: a score that divides by zero ends the loop there
            rule = rescore_asked(board, other, asked, rule, other_rule, issued)
            note_asked(trace, arms, issued, asked, reward)
            lasts = service(timing.service, timing.seconds, timing.shape, reward < arms.threshold, delay_words)
            if hangs(timing, delay_words):
                lasts = math.inf
                hung += 1
            else:
                measures.busy[row, 0] += lasts
                barrier = max(barrier, clock + lasts)
            slot = slot_for(slots, timing.model, issued, free)
            free -= 1
            slots.pull[slot] = issued
            slots.arm[slot] = asked
            slots.reward[slot] = reward
            if timing.model == WORKERS:
                put_due(slots, slot, clock + lasts)
            coming = owed(issued, budget, free, capacity - free - hung, timing)
            if CERTIFIES and ended(board, proof):
                coming = capacity - free - hung  # every case is issued: what is lost may be tried again
            while coming > 0:
                coming -= 1
                slot = back_first(slots, timing.model, told, delay_words)
                clock = slots.due[len(slots.due) // 2 + slot] if timing.model == WORKERS else barrier
                arm = slots.arm[slot]
                was_open = CERTIFIES and not ended(board, proof)
                # no case is left to issue, but rewards are pending
                if CERTIFIES and proof.sheet.cases > 0 and proof.open[0] == 0:
                    was_open = proof.docket.settled[arm] == OPEN
                came_back(board, other, rule, other_rule, proof, arms, trace, slots, slot, timing, delay_words)
                rescore_both(board, other, arm, rule, other_rule)
                slots.pull[slot] = 0
                slots.free[free] = slot
                free += 1
                told += 1
                if timing.model == WORKERS:
                    put_due(slots, slot, math.inf)
                if was_open and ended(board, proof):
                    measures.ended[row, 0] = clock
                    coming = capacity - free - hung  # no more asks; wait for the pending pulls
            if board.pending[asked] > measures.ratio[row, 0] * board.seen[asked] and board.seen[asked] > 0:
                measures.ratio[row, 0] = board.pending[asked] / board.seen[asked]
            # every worker hangs, or every arm is settled: the remaining checkpoints measure this final state
            over = free == 0 or (CERTIFIES and ended(board, proof))
            while column < len(measures.checkpoints) and (over or issued == measures.checkpoints[column]):
                measured(board, proof, arms, measures, row, column)
                measures.clock[row, column] = clock
                column += 1
            if over:
                break
