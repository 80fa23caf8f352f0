"""Wrong certified labels stay within the risk: shares, pairs and baselines on cases, at the bar and beside it.

Seeded; margins are such that an honest change of seed would fail less than once in a million.
"""

import pytest
from chances import most

from thresher.lab import Result, Setup, simulate

REPETITIONS = 1500
ARMS = Setup(policy="uniform", family="bernoulli", arms=4, budget=2400, checkpoints=(2400,), confidence=0.95)
ARMS = ARMS.but(delay="workers:1")  # as if rewards came at once, in a loop that other tests use
AGAINST = ARMS.but(means=[0.5, 0.6, 0.599, 0.55], baseline=0)
ON_CASES = AGAINST.but(cases=300, budget=1200, checkpoints=(1200,))
HARD = {  # arms on the bar, where only "below" is wrong, and just on the wrong side of it
    "mean at most": ARMS.but(means=[0.5, 0.5001, 0.501, 0.51], at_most=0.5),
    "share": ARMS.but(means=[0.9, 0.8999, 0.899, 0.89], at_least=0.5, share=0.9),
    "share at most": ARMS.but(means=[0.1, 0.1001, 0.101, 0.11], at_most=0.5, share=0.9),
    "pairs with a margin": AGAINST.but(margin=0.1),
    "pairs with a ratio": AGAINST.but(ratio=1.0, share=0.8, lower_is_better=True, means=[0.5, 0.4, 0.401, 0.42]),
    "cases": ON_CASES.but(margin=0.1),
    "cases, lower is better": ON_CASES.but(margin=-0.1, lower_is_better=True),
}


def played(setup: Setup) -> Result:
    return simulate(setup, repetitions=REPETITIONS, seed=41, per_arm=False)


@pytest.mark.parametrize("name", HARD)
def test_no_label_is_wrong_with_the_confidence_asked_for(name: str) -> None:
    result = played(HARD[name])
    certificates = result.certificates
    assert certificates is not None
    assert (result.measures.mislabelled[:, -1] > 0).sum() <= most(REPETITIONS, 0.05)
    assert certificates.share[-1] > 0.005  # something is settled


@pytest.mark.parametrize("margin", [0.05, 0.1])
def test_few_labels_of_each_list_are_wrong_where_the_error_rate_is_bounded(margin: float) -> None:
    """The share of a list is at most 1, so that many lists of one arm would be the worst case of the margin."""
    result = played(ON_CASES.but(guarantee="rate", margin=margin, arms=9, means=(0.5, 0.65), budget=2700))
    certificates = result.certificates
    assert certificates is not None
    assert certificates.share[-1] > 0.5
    for wrong, _ in certificates.false_shares.values():
        assert wrong * REPETITIONS <= most(REPETITIONS, 0.05)


def test_a_baseline_counts_neither_as_settled_nor_as_open() -> None:
    result = played(AGAINST.but(means=[0.5, 0.95, 0.05, 0.9], margin=0.1))
    assert result.certificates is not None
    assert result.certificates.finished == 1.0
    assert result.accuracy[-1] > 0.999
    assert result.pulls_per_second > 0
