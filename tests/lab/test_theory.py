"""The paper's theory, compared with calculations by hand."""

import ast
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.errors import InvalidInput
from thresher.lab import theory

MEANS, SPREADS, BAR = [0.25, 1.0], [0.5, 0.25], 0.5  # gaps 1/4 and 1/2


def test_hardness_in_its_four_forms() -> None:
    assert theory.hardness(MEANS, SPREADS, BAR, "apt") == 16 + 4
    assert theory.hardness(MEANS, SPREADS, BAR, "evt") == (4 + 4) + (0.25 + 2)
    doubled = {"pending_weight": 0.5, "pending_ratio": 2.0}
    assert theory.hardness(MEANS, SPREADS, BAR, "ap-evt", **doubled) == 4 * 10.25
    assert theory.hardness(MEANS, SPREADS, BAR, "ap-evt-pf", **doubled) == 2 * 10.25
    assert theory.hardness([0.5], [0.1], 0.5) == math.inf


def test_proposition_1() -> None:
    # δη = 1: C₁ = 128, C₂ = 8√2·2^1.5 + 96 = 32 + 96 = 128; H = 128·(4 + 0.25) + 128·(4 + 2) = 1312
    n = 400_000
    spare = n - 2 - 0.5 * 100
    expected = 5 * n * 2 * math.exp(-spare / 1312 / 8)
    bound = theory.error_bound(n, MEANS, SPREADS, BAR, pending_weight=0.5, pending_ratio=2.0, in_flight=100)
    assert bound == pytest.approx(expected, rel=1e-9)
    # sequential: C₁ = 32, C₂ = 8√2 + 48
    hard = 32 * 4.25 + (8 * math.sqrt(2) + 48) * 6
    expected = 5 * n * 2 * math.exp(-(n - 2) / hard / 8)
    assert theory.error_bound(n, MEANS, SPREADS, BAR, "evt") == pytest.approx(expected, rel=1e-9)
    assert theory.error_bound(10, MEANS, SPREADS, BAR, "evt") == 1.0


def test_proposition_2_printed_and_corrected() -> None:
    n = 2_000_000
    printed = 5 * n * 2 * math.exp(-(n - 2) / (16 * 10.25) / 64)
    corrected = 5 * n * 2 * math.exp(-(n - 2) / (64 * 10.25) / 64)
    bounds = [theory.error_bound(n, MEANS, SPREADS, BAR, "ap-evt-pf", corrected=fixed) for fixed in (False, True)]
    assert bounds == pytest.approx([printed, corrected], rel=1e-9)


def test_rounds_are_the_first_that_satisfy_the_bound() -> None:
    for algorithm in ("evt", "ap-evt", "ap-evt-pf"):
        n = theory.rounds(0.05, MEANS, SPREADS, BAR, algorithm, in_flight=30)
        bounds = [theory.error_bound(pulls, MEANS, SPREADS, BAR, algorithm, in_flight=30) for pulls in (n, n - 1)]
        assert bounds[0] <= 0.05 < bounds[1]
    assert theory.rounds(0.05, [0.5], [0.1], 0.5) == math.inf


def test_lower_bound_printed_and_corrected() -> None:
    assert theory.lower_bound(10, 50, 2, corrected=False) == pytest.approx(math.exp(-2 - 16 * math.log(100)))
    assert theory.lower_bound(10, 54, 2) == pytest.approx(math.exp(-2 - 17 * math.log(100)))


def test_the_best_pending_weight_needs_the_fewest_rounds() -> None:
    # η = 1: a pending pull costs 8·H′(δ)·ln(5nK/ε), about 90,000 at δ = 0 and 140,000 at δ = 1; τ lies between
    tau, eta = 115_000.0, 1.0
    best = theory.best_pending_weight(0.05, MEANS, SPREADS, BAR, in_flight=tau, pending_ratio=eta)
    assert 0.0 < best < 1.0

    def needed(weight: float) -> float:
        return theory.rounds(0.05, MEANS, SPREADS, BAR, pending_weight=weight, in_flight=tau, pending_ratio=eta)

    assert needed(best) <= min(needed(step / 50) for step in range(51))


@pytest.mark.parametrize("name", ["ap-evt", "apt"])
def test_bad_input_is_named(name: str) -> None:
    with pytest.raises(InvalidInput, match="one for each of 1 means"):
        theory.hardness([0.1], [], 0.5)
    with pytest.raises(InvalidInput, match="risk 0"):
        theory.rounds(0.0, MEANS, SPREADS, BAR)
    with pytest.raises(InvalidInput, match="no constant"):
        theory.error_bound(10, MEANS, SPREADS, BAR, "apt")
    with pytest.raises(InvalidInput, match="pending_weight 2"):
        theory.hardness(MEANS, SPREADS, BAR, "ap-evt", pending_weight=2)


arm = st.tuples(st.floats(0, 1), st.floats(0, 1))


@given(arms=st.lists(arm, min_size=1, max_size=20), bar=st.floats(0, 1))
def test_variance_never_makes_a_problem_harder(arms: list[tuple[float, float]], bar: float) -> None:
    """H_EVT ≤ H_ATP for rewards in [0, 1], whose variance is at most mean · (1 − mean)."""
    means = [mean for mean, _ in arms]
    spreads = [share * math.sqrt(mean * (1 - mean)) for mean, share in arms]
    evt, atp = (theory.hardness(means, spreads, bar, name) for name in ("evt", "apt"))
    assert evt <= atp * (1 + 1e-12)


def test_theory_imports_nothing_heavy() -> None:
    tree = ast.parse(Path(theory.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert names == {"math"}
