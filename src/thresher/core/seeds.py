"""Seeds of pulls: a bijection on 32 bits, keyed by the study's seed, of an index made from the arm and the number.

`stirred` is compiled: the rules of `kernel.py` hold for it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .spec import Spec

WORD = 0xFFFFFFFF


def seed_of(arm: int, number: int, spec: "Spec", case: int | None = None) -> int:
    """The seed of a study's pull, by its arm and its number among the arm's pulls.

    With cases, the arm and the case decide: a case that is tried again has the same seed.
    """
    if case is not None:
        number = case + 1
    assert spec.seed is not None  # every study has one
    return pull_seed(seed_index(arm, number, len(spec.arms)), spec.seed)


def seed_index(arm: int, number: int, arms: int) -> int:
    """What a pull's seed is computed from: its arm and its number within the arm, and nothing else.

    So the seed of an arm's n-th pull is fixed, whichever arms are chosen before it: someone who knows the seeds cannot
    steer lucky ones to an arm by telling rewards at the right moment.

    >>> [seed_index(arm, number, 2) for number in (1, 2) for arm in (0, 1)]
    [1, 2, 3, 4]
    """
    return (number - 1) * arms + arm + 1


def pull_seed(index: int, study_seed: int) -> int:
    """An integer in [0, 2³²). No two indices below 2³² share one.

    >>> len({pull_seed(index, 7) for index in range(1, 1001)})
    1000
    >>> pull_seed(1, 7) == pull_seed(1, 8)
    False
    """
    word, key = index & WORD, study_seed
    while True:
        word = stirred((word + (key & WORD) * 0x9E3779B1 + 0x7F4A7C15) & WORD)
        key >>= 32
        if not key:
            return word


def stirred(word: int) -> int:
    """A permutation of the words of 32 bits: each step can be undone.

    >>> len({stirred(word) for word in range(1000)})
    1000
    """
    word = ((word ^ (word >> 16)) * 0x21F0AAAD) & WORD
    word = ((word ^ (word >> 15)) * 0x735A2D97) & WORD
    return word ^ (word >> 15)
