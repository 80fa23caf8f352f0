"""Comparisons of times on machines that drift are right in pairs. `bench/questions.py` repeats them more often.

Seeded; the margins fail by chance less than once in a million.
"""

import drifting
from chances import most
from drifting import slower

import thresher

RISK, STUDIES, ARMS = 0.05, 50, 4


def test_false_slower_verdicts_of_pairs_stay_within_the_risk() -> None:
    """The arms are as fast as the baseline: exactly half of the pairs are within, the hardest true answer."""
    equal = slower(ARMS)
    names = [arm for arm in equal if arm != "base"]
    false = sum(
        drifting.says_slower(drifting.paired(seed, equal, budget=60 * ARMS), names) for seed in range(1, STUDIES + 1)
    )
    assert false <= most(STUDIES, RISK)


def test_unpaired_comparisons_on_other_workers_are_often_wrong() -> None:
    """Even with a ratio of 1.05: the difference between two machines is larger."""
    equal = slower(ARMS)
    names = [arm for arm in equal if arm != "base"]
    false = sum(
        drifting.says_slower(drifting.unpaired(seed, equal, budget=60 * ARMS, ratio=1.05), names)
        for seed in range(1, STUDIES + 1)
    )
    assert false > STUDIES // 2 > most(STUDIES, RISK)


def test_a_slowdown_of_ten_percent_is_found_in_a_few_pairs() -> None:
    for ratio in (1.0, 1.05):
        counts = [drifting.pairs_until_found(seed, ratio=ratio, arms=1) for seed in range(1, 41)]
        assert sum(counts) / len(counts) <= 40


def test_p95_within_a_limit_that_is_never_exceeded_takes_few_pulls() -> None:
    study = thresher.create_study("p95", arms=[f"arm {each}" for each in range(10)], at_most=0.2, share=0.95, unit="s")
    while pull := study.ask():
        study.tell(pull, 0.1)
    verdict = study.verdict()
    assert len(verdict.reached) == 10
    assert all(row.certified and row.seen <= 150 for row in verdict.rows)
