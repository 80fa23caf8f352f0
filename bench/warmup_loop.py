"""A pool of workers that waits for first rewards in several ways: a loop with a rule in front of each decision.

Compiled with the laboratory: the rules of `core/board.py` hold here. Arms differ in how long their pulls take, and one
may hang, which the laboratory's own delays do not offer.
"""

import math

from thresher.core.board import (
    FAR,
    Board,
    choose_from_boards,
    rescore_arm_on_boards,
    rescore_boards,
    rescore_boards_after_ask,
)
from thresher.core.evidence import OPEN
from thresher.lab.delays import Slots, empty_delay_slots, put_delay_due
from thresher.lab.families import Reals
from thresher.lab.loops import draw_loop_instance, drawn_in_loop
from thresher.lab.repetition import (
    Arms,
    Boards,
    Proof,
    Rules,
    Times,
    is_false_in_repetition,
    issue_in_repetition,
    leaning_in_repetition,
    learn_in_repetition,
    open_repetition_proof,
    see_in_repetition,
    start_pull_of_repetition,
    wipe_repetition,
)  # fmt: skip
from thresher.lab.streams import DELAYS, Words, start_stream, stream_exponential, stream_fraction

TODAY, OBSERVED, FIRST, CAPPED, LEAST, LONGER = range(6)  # see RULES of `warmup.py`
EQUAL, SPREAD, SLOW, HANGS = range(4)  # see TIMES of `warmup.py`
WRONG, SETTLED, CLOCK, ISSUED, HUNG = range(5)  # the columns of what is measured
MOST = 4  # pulls of an arm without a reward: with CAPPED and LONGER, the last one that comes first


def first_without_score(board: Board, scored: int, limit: int) -> int:
    """The arm without a reward that has the fewest pulls issued, fewer than the limit; ``scored`` if there is none."""
    chosen = scored
    for arm in range(len(board.seen)):
        if board.shut[arm] == 0 and board.seen[arm] == 0 and board.pending[arm] < limit:
            chosen, limit = arm, board.pending[arm]
    return chosen


def choose_by(way: int, board: Board, chosen: int, score: float) -> int:
    """The arm to pull, where today's rule chooses the arm with this score."""
    if way in (TODAY, OBSERVED) or score < 0.0 or score >= FAR:  # in the warm-up, or every arm waits
        return chosen
    limit = board.seen[chosen] + board.pending[chosen]
    if way == LEAST:
        for arm in range(len(board.seen)):
            if board.shut[arm] == 0 and board.seen[arm] > 0:
                limit = min(limit, board.seen[arm] + board.pending[arm])
    if way == LONGER:
        limit = MOST
    if way == CAPPED:
        limit = min(limit, MOST)
    return first_without_score(board, chosen, limit)


def set_seconds(seconds: Reals, times: int, slow: int, words: Words) -> None:
    """How long a pull of each arm takes on average; one arm, ``slow``, may be slower than all others."""
    for arm in range(len(seconds)):
        seconds[arm] = 1.0
        if times == SPREAD:
            seconds[arm] = 10.0 ** (2.0 * stream_fraction(words) - 1.0)
    if times == SLOW:
        seconds[slow] = 30.0
    if times == HANGS:
        seconds[slow] = math.inf


def are_settled(proof: Proof, hung: int) -> bool:
    """Whether all arms are settled, apart from the one that hangs."""
    left = 0
    for arm in range(len(proof.docket.settled)):
        left += arm != hung and proof.docket.settled[arm] == OPEN
    return left == 0


def measure_row(board: Board, arms: Arms, proof: Proof, certifies: bool, hung: int, row: Reals) -> None:
    """Count wrong labels and settled arms, without the arm that hangs."""
    for arm in range(len(board.seen)):
        label = proof.docket.settled[arm] if certifies else OPEN
        if arm == hung:
            continue
        row[SETTLED] += label != OPEN
        answer = leaning_in_repetition(board, arms, arm) if label == OPEN else label
        row[WRONG] += answer == OPEN or is_false_in_repetition(answer, arms.mean[arm], arms.low_edge, arms.high_edge)


def run_pool(
    seed: int,
    begin: int,
    end: int,
    way: int,
    times: int,
    budget: int,
    certifies: bool,
    boards: Boards,
    rules: Rules,
    arms: Arms,
    proof: Proof,
    slots: Slots,
    seconds: Reals,
    state: Words,
    words: Words,
    rows: Times,
) -> None:
    """Play the repetitions from ``begin`` to ``end``: every free worker takes a pull at once."""
    board, other = boards
    count = len(board.seen)
    for row in range(begin, end):
        draw_loop_instance(arms, seed, row, state)
        start_stream(words, seed, row, DELAYS)
        set_seconds(seconds, times, row % count, words)
        hanging = row % count if times == HANGS else -1
        wipe_repetition(board)
        rule, other_rule = rules
        if certifies:
            open_repetition_proof(board, proof)
        rescore_boards(board, other, rule, other_rule)
        free = capacity = empty_delay_slots(slots)
        clock, issued, hung, over = 0.0, 0, 0, False
        while not over:
            coming = capacity - free - hung
            waits = way == OBSERVED and issued == count * rule.warmup and coming > 0
            if free > 0 and issued < budget and not waits:
                scores = other.best if rule.alternates and (issued + 1) % 2 == 0 else board.best
                arm = choose_by(way, board, choose_from_boards(board, other, rule, issued + 1), scores[1])
                issued += 1
                board.pending[arm] += 1
                if certifies:
                    issue_in_repetition(proof, arm, issued)
                start_pull_of_repetition(arms, arm, state)
                reward = drawn_in_loop(arms, arm, state)
                rule = rescore_boards_after_ask(board, other, arm, rule, other_rule, issued)
                free -= 1
                slot = slots.free[free]
                slots.pull[slot] = issued
                slots.arm[slot] = arm
                slots.reward[slot] = reward
                hung += arm == hanging
                lasts = seconds[arm] * stream_exponential(state)
                put_delay_due(slots, slot, math.inf if arm == hanging else clock + lasts)
            elif coming > 0:
                slot = int(slots.winner[1])
                clock = slots.due[len(slots.due) // 2 + slot]
                arm = slots.arm[slot]
                board.pending[arm] -= 1
                see_in_repetition(board, arms, arm, slots.reward[slot])
                if certifies:
                    learn_in_repetition(board, proof, arms, arm, slots.pull[slot], slots.reward[slot], False)
                    over = are_settled(proof, hanging)
                rescore_arm_on_boards(board, other, arm, rule, other_rule)
                slots.pull[slot] = 0
                slots.free[free] = slot
                free += 1
                put_delay_due(slots, slot, math.inf)
            else:
                over = True  # the budget is spent, or every worker hangs
        rows[row, CLOCK] = clock
        rows[row, ISSUED] = issued
        rows[row, HUNG] = hung
        measure_row(board, arms, proof, certifies, hanging, rows[row])
