"""The laboratory's certificates equal a live study's: same rewards, same labels, same capitals bit for bit."""

import pytest
from lab_replay import compare, live

from thresher.core.ledger import fold
from thresher.lab import Setup, trace

MEANS = (0.05, 0.1, 0.25, 0.55, 0.8, 0.85, 0.95)
PROBLEM = Setup(
    family="bernoulli", arms=7, means=list(MEANS), at_least=0.5, budget=900, confidence=0.95, policy="balanced"
)
RUNS = {
    "at once": PROBLEM.but(budget=9000),
    "at once, with a tolerance": PROBLEM.but(tolerance=0.2),
    "workers, failures slow": PROBLEM.but(delay="workers:9:failures:20"),
    "workers, with a tolerance": PROBLEM.but(delay="workers:9:failures:20", tolerance=0.2),
    "lost pulls": PROBLEM.but(delay="workers:9:failures:5", lost=(0.1, 0.05)),
    "lost pulls, ignored": PROBLEM.but(delay="workers:9:failures:5", lost=(0.1, 0.05), failure="ignore"),
    "hung pulls": PROBLEM.but(delay="workers:40:exponential", hung=0.02),
    "other bounds": PROBLEM.but(bounds=(-3.0, 5.0), at_least=1.0, means=[8 * mean - 3 for mean in MEANS], tolerance=2),
}


@pytest.mark.parametrize("name", RUNS)
def test_compiled_evidence_equals_a_live_study_bit_for_bit(name: str) -> None:
    setup = RUNS[name]
    played = trace(setup, repetition=1, seed=8)
    ledger = fold(live(setup, played).events())
    assert sum(label != 0 for label in ledger.docket.settled) >= 3  # something is compared
    compare(ledger, played)
    assert sum(ledger.docket.charged) > 0 or setup.failure == "ignore" or max(*setup.lost, setup.hung) == 0
    if name in ("at once", "at once, with a tolerance", "other bounds"):
        assert ledger.issued < setup.budget  # it ended when all were settled
