"""Eval sets: each arm meets the cases in its own order, place by place, and counts each of them once.

An arm's order is a permutation of the cases, keyed by the arm, the study's seed and what was imported. Place n is the
n-th case in that order that was not imported. A pull takes its arm's lowest free place: one that was never tried, or
whose pull was dropped and may be tried again. With an order that all arms share, what other arms did on the next case
would tell something about it before the bet.

The rules of this file are those of `board.py`. A place keeps the docket's entry of its first pull, so evidence is
committed in the order of places.
"""

from collections.abc import MutableSequence, Sequence
from typing import NamedTuple

FREE, OUT, KNOWN, FAILED = 0, 1, 2, 3  # a place may be tried, is being tried, has its reward, failed too often
ROUNDS = 12  # with 4, the first places are biased and the sums of prefixes vary 17 % too much


class Sheet(NamedTuple):
    """What is known about the places of every arm. Without cases, ``cases`` is 0 and the columns are empty."""

    cases: int  # M
    places: MutableSequence[int]  # of an arm: how many places it has, M less the imported ones
    lowest: MutableSequence[int]  # of an arm: its lowest free place, counted from 0; `places` if there is none
    least: MutableSequence[float]  # of an arm: the scaled sum of what is imported or committed; charged places are 0,
    most: MutableSequence[float]  # ... or 1
    state: Sequence[MutableSequence[int]]  # of an arm and a place: FREE, OUT, KNOWN or FAILED
    entry: Sequence[MutableSequence[int]]  # of an arm and a place: its first pull
    place: MutableSequence[int]  # of a pull


def mixed_place_word(word: int, key: int) -> int:
    """A word of 32 bits that depends on every bit of both.

    >>> mixed_place_word(1, 2) != mixed_place_word(2, 1), 0 <= mixed_place_word(WORD, WORD) <= WORD
    (True, True)
    """
    return stirred_place_word((word + key * 0x1E3779B1 + 0x7F4A7C15) & WORD)


def place_key(number: int, seed: int) -> int:
    """A key of 32 bits from a number and a seed of any size; arm k uses the numbers 2k and 2k + 1.

    >>> place_key(0, 7) != place_key(1, 7), place_key(0, 7) != place_key(0, 7 + (1 << 64))
    (True, True)
    """
    key = mixed_place_word(number, 1)
    while True:
        key = mixed_place_word(key, seed & WORD)
        seed >>= 32
        if seed == 0:
            return key


def case_at_place(position: int, cases: int, key: int, other_key: int) -> int:
    """The case at a position of the permutation that the two keys of 32 bits choose; both count from 0.

    A Feistel network over the smallest even number of bits that holds all cases; what lies outside is permuted again.

    >>> sorted(case_at_place(position, 5, 1, 2) for position in range(5))
    [0, 1, 2, 3, 4]
    """
    bits = 3
    while (1 << (2 * bits)) < cases:
        bits += 1
    mask = (1 << bits) - 1
    while True:
        left, right = position >> bits, position & mask
        for turn in range(ROUNDS):
            word = mixed_place_word(right + (turn << 20), key if turn % 2 == 0 else other_key)
            left, right = right, left ^ (word >> 8 & mask)
        position = (left << bits) | right
        if position < cases:
            return position


def first_free_place(states: MutableSequence[int], place: int) -> int:
    """The first free place from this one on; one after the last if there is none."""
    while place < len(states) and states[place] != FREE:
        place += 1
    return place


def take_place(sheet: Sheet, arm: int, pull: int) -> bool:
    """Give the pull its arm's lowest free place. Returns whether the place was never tried before."""
    return take_place_at(sheet, arm, pull, sheet.lowest[arm])


def take_place_at(sheet: Sheet, arm: int, pull: int, place: int) -> bool:
    """Give the pull a free place of its arm. Returns whether the place was never tried before."""
    sheet.state[arm][place] = OUT
    sheet.place[pull] = place
    if sheet.lowest[arm] == place:
        sheet.lowest[arm] = first_free_place(sheet.state[arm], place + 1)
    if sheet.entry[arm][place] == 0:
        sheet.entry[arm][place] = pull
        return True
    return False


def fill_place(sheet: Sheet, arm: int, place: int, state: int) -> None:
    """A place is KNOWN or FAILED: it is not tried again."""
    sheet.state[arm][place] = state
    if sheet.lowest[arm] == place:
        sheet.lowest[arm] = first_free_place(sheet.state[arm], place + 1)


def free_place(sheet: Sheet, arm: int, place: int) -> None:
    """A place may be tried again."""
    sheet.state[arm][place] = FREE
    sheet.lowest[arm] = min(sheet.lowest[arm], place)


def arms_waiting_for_places(sheet: Sheet, settled: Sequence[int], pending: Sequence[int]) -> int:
    """How many arms have no free place, but can still be settled by their pending pulls."""
    count = 0
    for arm in range(len(sheet.lowest)):
        count += are_places_used_up(sheet, arm) and settled[arm] == 0 and pending[arm] > 0
    return count


def are_places_finished(
    sheet: Sheet, settled: Sequence[int], pending: Sequence[int], others: int, found: int, find: int
) -> bool:
    """Whether no arm takes more pulls, or the arms that are to be found (0: all) are found, or cannot be.

    ``others`` arms take pulls, and ``found`` are certified to reach the bar.
    """
    if others == 0 or find == 0:
        return others == 0
    lacking = find - found
    if lacking <= others:
        return lacking <= 0
    return lacking > others + arms_waiting_for_places(sheet, settled, pending)


def are_places_used_up(sheet: Sheet, arm: int) -> bool:
    """Whether the arm has no free place."""
    return sheet.cases > 0 and sheet.lowest[arm] >= sheet.places[arm]


# Seeds of pulls: a bijection on 32 bits, keyed by the study's seed, of an index made from the arm and the number.
#
# `stirred_place_word` is compiled: the rules of `board.py` hold for it.

WORD = 0xFFFFFFFF


class History(NamedTuple):
    """The pulls of an arm as long as nothing changes that their rewards depend on; it may go on in later revisions."""

    seed: int  # drawn when it began: its pulls' seeds and its order of cases follow from it
    arm: int  # the number of its arm then
    arms: int  # how many there were then
    most: int  # the most arms that were asked about in any revision that it was in
    revision: int  # in which it began
    low_edge: float  # the edges then, scaled: they decide how large its bets are
    high_edge: float
    tolerance: float


def seed_of_place(seed: int, arm: int, arms: int, number: int, case: int | None = None) -> int:
    """The seed of a pull: of its arm's `History`, the first three, and its number within it, and nothing else.

    So the seed of an arm's n-th pull is fixed, whichever arms are chosen before it: someone who knows the seeds cannot
    steer lucky ones to an arm by telling rewards at the right moment. With cases, the arm and the case decide: a case
    that is tried again has the same seed.
    """
    word, key = ((number - 1 if case is None else case) * arms + arm + 1) & WORD, seed
    while True:
        word = stirred_place_word((word + (key & WORD) * 0x9E3779B1 + 0x7F4A7C15) & WORD)
        key >>= 32
        if not key:
            return word


def stirred_place_word(word: int) -> int:
    """A permutation of the words of 32 bits: each step can be undone.

    >>> len({stirred_place_word(word) for word in range(1000)})
    1000
    """
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & WORD
    word = ((word ^ (word >> 15)) * 0x735A2D97) & WORD
    return word ^ (word >> 15)
