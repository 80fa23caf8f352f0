"""Seeds of pulls: a bijection of the pull's id on 32 bits, keyed by the study's seed."""

from .spec import Spec

MASK = 0xFFFFFFFF


def seed_of(pull: int, arm: int, number: int, spec: Spec, case: int | None = None) -> int:
    """The seed of a study's pull, by its id, its arm and its number among the arm's pulls.

    With cases, the arm and the case decide: a case that is tried again has the same seed.
    """
    if case is not None:
        number = case + 1
    index = pull if spec.rule == 1 else place(arm, number, len(spec.arms))
    return pull_seed(index, spec.seed)


def place(arm: int, number: int, arms: int) -> int:
    """What a pull's seed is computed from: its arm and its number within the arm, and nothing else.

    So the seed of an arm's n-th pull is fixed, whichever arms are chosen before it: someone who knows the seeds cannot
    steer lucky ones to an arm by telling rewards at the right moment. (Rule 1 computed seeds from the pull's id.)

    >>> [place(arm, number, 2) for number in (1, 2) for arm in (0, 1)]
    [1, 2, 3, 4]
    """
    return (number - 1) * arms + arm + 1


def pull_seed(pull: int, study_seed: int) -> int:
    """An integer in [0, 2³²). No two pulls of a study share one, as long as their places are below 2³².

    Every step is invertible on 32 bits: add a key, multiply by an odd number, xor with a right shift of itself.

    >>> len({pull_seed(pull, 7) for pull in range(1, 1001)})
    1000
    >>> pull_seed(1, 7) == pull_seed(1, 8)
    False
    """
    word, key = pull & MASK, study_seed
    while True:
        word = (word + (key & MASK) * 0x9E3779B1 + 0x7F4A7C15) & MASK
        word = ((word ^ (word >> 16)) * 0x21F0AAAD) & MASK
        word = ((word ^ (word >> 15)) * 0x735A2D97) & MASK
        word ^= word >> 15
        key >>= 32
        if not key:
            return word
