"""Simulated studies with means on the edges of the tolerance and just beyond them: few are wrong by more than it.

Seeded; the margins are such that an honest change of seed would fail less than once in a million.
"""

import pytest
from chances import most

from bench.certificates import EDGE_KINDS, EDGES, RISK
from thresher.lab import Setup, simulate

STUDIES = 500
ROUGH = {"delay": "workers:16:failures:5", "lost": (0.1, 0.02), "hung": 0.002}


@pytest.mark.parametrize("name", EDGE_KINDS)
def test_no_answer_is_wrong_by_more_than_the_tolerance_above_the_risk(name: str) -> None:
    setup = Setup(**{**EDGES, **EDGE_KINDS[name], **ROUGH})
    result = simulate(setup, repetitions=STUDIES, seed=7, per_arm=False)
    assert result.certificates is not None
    assert (result.measures.mislabelled[:, -1] > 0).sum() <= most(STUDIES, RISK)
    assert result.certificates.share[-1] > 0.01, "something is settled"
