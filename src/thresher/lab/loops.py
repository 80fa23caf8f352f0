"""The loops of a simulation: with every reward seen at once, and with delayed rewards.

Every decision is made by `board.py`, compiled. The names in capitals below are defaults: `compiler.py` replaces them.
So a loop leaves out every step that it does not need, if that takes long to compile or would slow down every pull.
"""

import math

from ..core.board import (
    SHUT,
    Board,
    add_exactly_on_board,
    choose_from_boards,
    observe_on_board,
    rescore_arm_on_boards,
    rescore_boards,
    rescore_boards_after_ask,
)
from ..core.evidence import OPEN
from ..core.places import case_at_place
from ..core.question import is_above, reward_for_question
from .delays import (
    WORKERS,
    Slots,
    Timing,
    delay_of_service,
    delay_slot_for,
    empty_delay_slots,
    first_delayed_back,
    hangs_in_delay,
    is_lost_in_delay,
    owed_delayed,
    put_delay_due,
)
from .families import CONSTANT, RECORDED, draw_from_family, family_chance_within, family_moments, set_family_arm
from .repetition import (
    Arms,
    Boards,
    Measures,
    Proof,
    Rules,
    Trace,
    case_of_repetition,
    case_value_of_repetition,
    is_repetition_over,
    is_repetition_refused,
    issue_in_repetition,
    learn_baseline_in_repetition,
    learn_in_repetition,
    mean_counted_in_repetition,
    measure_repetition,
    measure_repetition_proof,
    note_in_repetition,
    open_repetition_proof,
    rank_in_repetition,
    reconsider_in_repetition,
    see_in_repetition,
    start_pull_of_repetition,
    wipe_repetition,
)  # fmt: skip
from .streams import DELAYS, INSTANCE, REWARDS, Words, start_stream, stream_fraction

IS_CUSTOM = False  # the formula is a user's function
CERTIFIES = False  # arms are settled, and then no longer pulled
RANKS = False  # the error rate is bounded
COUNTS = False  # whether something other than the reward counts: see `core/question.py`


def draw_loop_instance(arms: Arms, seed: int, repetition: int, state: Words) -> None:
    """Draw the means, then the spreads, of a repetition."""
    arms.order[1], arms.order[2] = seed, repetition
    start_stream(state, seed, repetition, INSTANCE)
    for arm in range(len(arms.mean)):
        arms.asked[arm] = 0
        arms.mean[arm] = arms.mean_low[arm] + (arms.mean_high[arm] - arms.mean_low[arm]) * stream_fraction(state)
    for arm in range(len(arms.mean)):
        spread = arms.spread_low[arm] + (arms.spread_high[arm] - arms.spread_low[arm]) * stream_fraction(state)
        first, second = set_family_arm(arms.family, arms.mean[arm], spread, arms.low, arms.high)
        arms.first[arm], arms.second[arm] = first, second
        mean, variance = family_moments(arms.family, arms.mean[arm], first, second, arms.low, arms.high, arms.samples)
        arms.mean[arm], arms.variance[arm] = mean, variance


def drawn_in_loop(arms: Arms, arm: int, state: Words) -> float:
    """A reward of the arm."""
    return draw_from_family(arms.family, arms.first[arm], arms.second[arm], arms.low, arms.high, arms.samples, state)


def draw_loop_truths(arms: Arms, proof: Proof, state: Words) -> None:
    """Draw the cases, if there are any, and set the arms' true means unless they are the means that were drawn."""
    if CERTIFIES and proof.sheet.cases > 0:
        if COUNTS:
            draw_counted_loop_cases(arms, proof, state)
        else:
            draw_loop_cases(arms, proof, state)
    elif COUNTS:
        other = arms.mean[arms.base] if arms.base >= 0 else 0.0
        for arm in range(len(arms.mean)):
            arms.mean[arm] = truth_in_loop(arms, arm, other)


def truth_in_loop(arms: Arms, arm: int, other: float) -> float:
    """The arm's true mean of what counts; ``other`` is the baseline's mean."""
    measure, first, second = arms.measure, arms.first[arm], arms.second[arm]
    if not measure.within:
        return mean_counted_in_repetition(arms, arms.mean[arm], other)
    if not measure.paired:
        return family_chance_within(
            arms.family, first, second, arms.low, arms.high, arms.samples, measure.sign, measure.limit
        )
    base = arms.first[arms.base]
    if arms.family == CONSTANT:
        return reward_for_question(measure, first, base)
    # only passes and failures are simulated besides constants
    chance = first * base * reward_for_question(measure, arms.high, arms.high)
    chance += first * (1.0 - base) * reward_for_question(measure, arms.high, arms.low)
    chance += (1.0 - first) * base * reward_for_question(measure, arms.low, arms.high)
    return float(chance + (1.0 - first) * (1.0 - base) * reward_for_question(measure, arms.low, arms.low))


def loop_mean_over_cases(total: float, cases: int, bar: float) -> float:
    """The mean of all cases; not below the bar if it is exactly on it, up to rounding."""
    mean = total / cases
    return max(mean, bar) if is_above(total, cases, bar) else mean


def draw_loop_cases(arms: Arms, proof: Proof, state: Words) -> None:
    """Draw the reward of every case, place by place, and so the arms' true means.

    Recorded arms have a single reward per case; every repetition goes through the cases in another order.
    """
    cases = proof.sheet.cases
    for arm in range(len(arms.mean)):
        total, lost = 0.0, 0.0
        key, other_key = int(stream_fraction(state) * 4294967296.0), int(stream_fraction(state) * 4294967296.0)
        for place in range(cases):
            if arms.family == RECORDED:
                reward = arms.samples[int(arms.first[arm]) + 1 + case_at_place(place, cases, key, other_key)]
            else:
                reward = drawn_in_loop(arms, arm, state)
            proof.values[arm, place] = reward
            total, lost = add_exactly_on_board(total, lost, reward)
        arms.mean[arm] = loop_mean_over_cases(total + lost, cases, arms.bar)


def draw_counted_loop_cases(arms: Arms, proof: Proof, state: Words) -> None:
    """Draw the reward of every case, and so the arms' true means, where something other than the reward counts."""
    cases = proof.sheet.cases
    arms.order[0] = int(stream_fraction(state) * 4294967296.0)
    for arm in range(len(arms.mean)):
        for case in range(cases):
            if arms.family == RECORDED:
                proof.values[arm, case] = arms.samples[int(arms.first[arm]) + 1 + case]
            else:
                proof.values[arm, case] = drawn_in_loop(arms, arm, state)
    for arm in range(len(arms.mean)):
        total, lost = 0.0, 0.0
        for case in range(cases):
            total, lost = add_exactly_on_board(total, lost, case_value_of_repetition(arms, proof, arm, case))
        arms.mean[arm] = loop_mean_over_cases(total + lost, cases, arms.bar)


def issued_in_loop(board: Board, proof: Proof, arms: Arms, arm: int, pull: int, state: Words) -> float:
    """Issue a pull of the arm to the certificates, if there are any; return the value of it that counts."""
    if CERTIFIES:
        issue_in_repetition(proof, arm, pull)
        if proof.sheet.cases > 0:
            reconsider_in_repetition(board, proof, arm)
            place = proof.sheet.place[pull]
            if COUNTS:
                return case_value_of_repetition(
                    arms, proof, arm, case_of_repetition(arms, arm, place, proof.sheet.cases)
                )
            return float(proof.values[arm, place])
    if arms.common:
        start_pull_of_repetition(arms, arm, state)
    return draw_counted_in_loop(arms, arm, state) if COUNTS else drawn_in_loop(arms, arm, state)


def draw_counted_in_loop(arms: Arms, arm: int, state: Words) -> float:
    """Draw a pull's reward, or both rewards of a pair; return the value that counts."""
    reward = drawn_in_loop(arms, arm, state)
    other, base = 0.0, arms.base
    if base >= 0:
        other = drawn_in_loop(arms, base, state)
    arms.drawn[0] = reward
    arms.drawn[1] = other
    return reward_for_question(arms.measure, reward, other)


def observed_in_loop(board: Board, arms: Arms, arm: int, reward: float) -> None:
    """Observe the value of a pull that counts, or a reward of the baseline."""
    if COUNTS and arm == arms.base:
        observe_on_board(board, arm, 0.0, reward)
    else:
        see_in_repetition(board, arms, arm, reward)


def note_asked_in_loop(trace: Trace, arms: Arms, pull: int, arm: int, reward: float) -> None:
    """Record that a pull was asked for, and the rewards that it drew."""
    if COUNTS:
        note_in_repetition(trace, pull, arm, arms.drawn[0], arms.drawn[1])
    else:
        note_in_repetition(trace, pull, arm, reward, 0.0)


def learned_in_loop(
    boards: Boards, rules: Rules, proof: Proof, arms: Arms, arm: int, pull: int, reward: float, lost: bool
) -> None:
    """Pass a reward or a loss to the certificates, and take the arms that this settled out of the tournaments."""
    board, other = boards
    rule, other_rule = rules
    if COUNTS and arm == arms.base:
        if learn_baseline_in_repetition(board, proof, arm, pull, lost):
            for opened in range(len(board.seen)):
                rescore_arm_on_boards(board, other, opened, rule, other_rule)
        return
    was_open = proof.docket.settled[arm] == 0
    learn_in_repetition(board, proof, arms, arm, pull, reward, lost)
    if RANKS:
        counted = was_open and proof.docket.settled[arm] != 0
        for index in range(rank_in_repetition(board, proof, arm, counted)):
            rescore_arm_on_boards(board, other, proof.ranking.newly_settled[index], rule, other_rule)


def begin_loop_row(seed: int, row: int, boards: Boards, rules: Rules, arms: Arms, state: Words, proof: Proof) -> None:
    """Draw the arms of a repetition, and empty the board and its tournaments."""
    draw_loop_instance(arms, seed, row, state)
    start_stream(state, seed, row, REWARDS)
    draw_loop_truths(arms, proof, state)
    board, other = boards
    rule, other_rule = rules
    wipe_repetition(board)
    if CERTIFIES:
        open_repetition_proof(board, proof)
    elif COUNTS and arms.base >= 0:
        board.shut[arms.base] = SHUT  # it is pulled only in pairs
    rescore_boards(board, other, rule, other_rule)


def measured_in_loop(board: Board, proof: Proof, arms: Arms, measures: Measures, row: int, column: int) -> None:
    """Measure a checkpoint."""
    measure_repetition(board, arms, measures, row, column)
    if CERTIFIES:
        measure_repetition_proof(board, proof, arms, measures, row, column)


def run_loop_at_once(
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
) -> None:
    """Play the repetitions from ``begin`` to ``end``, every reward seen before the next decision."""
    board, other = boards
    for row in range(begin, end):
        begin_loop_row(seed, row, boards, rules, arms, state, proof)
        rule, other_rule = rules
        issued = 0
        for column in range(len(measures.checkpoints)):
            until = measures.checkpoints[column]  # read once: compiled code would read it at every pull
            while issued < until:
                if CERTIFIES and is_repetition_over(board, proof):
                    break  # the remaining checkpoints measure this final state
                arm = choose_from_boards(board, other, rule, issued + 1)
                if arm < 0:  # cannot happen; the test lets the compiler drop its checks for negative indices
                    break
                issued += 1
                if IS_CUSTOM and is_repetition_refused(board, measures, row, arm):
                    return
                reward = issued_in_loop(board, proof, arms, arm, issued, state)
                observed_in_loop(board, arms, arm, reward)
                if CERTIFIES:
                    learned_in_loop(boards, (rule, other_rule), proof, arms, arm, issued, reward, False)
                rule = rescore_boards_after_ask(board, other, arm, rule, other_rule, issued)
                note_asked_in_loop(trace, arms, issued, arm, reward)
                note_in_repetition(trace, -issued, arm, reward, 0.0)
            measured_in_loop(board, proof, arms, measures, row, column)
        measures.used[row, 0] = issued


# The loop in which rewards come back while other pulls are chosen, with a clock.


def came_back_in_loop(
    boards: Boards,
    rules: Rules,
    proof: Proof,
    arms: Arms,
    trace: Trace,
    slots: Slots,
    slot: int,
    timing: Timing,
    delay_words: Words,
) -> None:
    """A pull is no longer pending: its reward came back, or it was lost."""
    board, _ = boards
    arm, pull, reward = slots.arm[slot], slots.pull[slot], slots.reward[slot]
    lost = is_lost_in_delay(timing, reward < arms.bar, delay_words)
    board.pending[arm] -= 1
    if not lost:
        observed_in_loop(board, arms, arm, reward)
    if CERTIFIES:
        learned_in_loop(boards, rules, proof, arms, arm, pull, reward, lost)
    note_in_repetition(trace, -pull, arm, math.nan if lost else reward, 0.0)


def run_loop_delayed(
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
        begin_loop_row(seed, row, boards, rules, arms, state, proof)
        start_stream(delay_words, seed, row, DELAYS)
        rule, other_rule = rules
        free = capacity = empty_delay_slots(slots)
        clock, barrier, column, told, hung = 0.0, 0.0, 0, 0, 0
        for issued in range(1, budget + 1):
            measures.in_flight[row, 0] = max(measures.in_flight[row, 0], capacity - free)
            asked = choose_from_boards(board, other, rule, issued)
            if IS_CUSTOM and is_repetition_refused(board, measures, row, asked):
                return
            board.pending[asked] += 1
            reward = issued_in_loop(board, proof, arms, asked, issued, state)
            if RANKS:
                rank_in_repetition(board, proof, asked, False)  # a pending pull only lowers its arm
            measures.used[row, 0] = issued  # before scoring: a score that divides by zero ends the loop there
            rule = rescore_boards_after_ask(board, other, asked, rule, other_rule, issued)
            note_asked_in_loop(trace, arms, issued, asked, reward)
            lasts = delay_of_service(timing.service, timing.seconds, timing.shape, reward < arms.bar, delay_words)
            if hangs_in_delay(timing, delay_words):
                lasts = math.inf
                hung += 1
            else:
                measures.busy[row, 0] += lasts
                barrier = max(barrier, clock + lasts)
            slot = delay_slot_for(slots, timing.model, issued, free)
            free -= 1
            slots.pull[slot] = issued
            slots.arm[slot] = asked
            slots.reward[slot] = reward
            if timing.model == WORKERS:
                put_delay_due(slots, slot, clock + lasts)
            coming = owed_delayed(issued, budget, free, capacity - free - hung, timing)
            if CERTIFIES and is_repetition_over(board, proof):
                coming = capacity - free - hung  # every case is issued: what is lost may be tried again
            while coming > 0:
                coming -= 1
                slot = first_delayed_back(slots, timing.model, told, delay_words)
                clock = slots.due[len(slots.due) // 2 + slot] if timing.model == WORKERS else barrier
                arm = slots.arm[slot]
                was_open = CERTIFIES and not is_repetition_over(board, proof)
                # no case is left to issue, but rewards are pending
                if CERTIFIES and proof.sheet.cases > 0 and proof.open[0] == 0:
                    was_open = proof.docket.settled[arm] == OPEN
                came_back_in_loop(boards, (rule, other_rule), proof, arms, trace, slots, slot, timing, delay_words)
                rescore_arm_on_boards(board, other, arm, rule, other_rule)
                slots.pull[slot] = 0
                slots.free[free] = slot
                free += 1
                told += 1
                if timing.model == WORKERS:
                    put_delay_due(slots, slot, math.inf)
                if was_open and is_repetition_over(board, proof):
                    measures.ended[row, 0] = clock
                    coming = capacity - free - hung  # no more asks; wait for the pending pulls
            if board.pending[asked] > measures.ratio[row, 0] * board.seen[asked] and board.seen[asked] > 0:
                measures.ratio[row, 0] = board.pending[asked] / board.seen[asked]
            # every worker hangs, or every arm is settled: the remaining checkpoints measure this final state
            over = free == 0 or (CERTIFIES and is_repetition_over(board, proof))
            while column < len(measures.checkpoints) and (over or issued == measures.checkpoints[column]):
                measured_in_loop(board, proof, arms, measures, row, column)
                measures.clock[row, column] = clock
                column += 1
            if over:
                break
