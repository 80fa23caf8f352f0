"""The experiments of the paper's Section 4, as data.

Section 4.1 as printed: uniform arms around means U(.6, .8), never clipped though some leave [0, 1], against 0.7, each
time with a new instance. Section 4.2: means U(.3, .7) against 0.5, rewards back first in, first out, at most τ pending.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import thresher as policies
from thresher import Policy
from thresher.lab import Setup, first_columns, first_reached, resampled, simulate

Row = dict[str, Any]
Added = Mapping[str, Policy]  # a user's policies, by the names in figures and tables

ARMS = 100
PULLS_41 = (1000, 2000, 3000, 5000, 7000, 10_000, 15_000, 20_000, 30_000, 50_000, 70_000, 100_000)
SPREADS_41 = {"small": (0.15, 0.25), "median": (0.25, 0.35), "large": (0.35, 0.45)}
ALGORITHMS_41: Added = {
    "ATP": policies.apt(),
    "EVT": policies.evt(),
    "EVT_pf": policies.evt_pf(),
    "uniform": policies.uniform(),
    "anytime EVT": policies.anytime_evt(),
}

BUDGET_42 = 20_000
SPREADS_42 = {"small": (0.05, 0.15), "median": (0.1, 0.2), "large": (0.15, 0.25)}
DELTAS = (0.0, 0.5, 1.0)
TAUS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
LEVEL = 0.95
STEP = 5  # pulls between measurements
ALGORITHMS_42 = ("AP-EVT", "AP-EVT_pf")
HORIZONS = (1500, 5000, BUDGET_42)  # most lines reach the level early; the others play to the end

NOTHING: Added = {}
FIGURE2_COLUMNS = ("setting", "algorithm", "delta", "tau", "pulls_to_95", "speedup")


def setup_41(setting: str, policy: Policy, budget: int) -> Setup:
    """Section 4.1 with that variance."""
    return Setup(policy=policy, spreads=SPREADS_41[setting], budget=budget, arms=ARMS)


def setup_42(setting: str, policy: Policy, budget: int, tau: int = 0) -> Setup:
    """Section 4.2 with that variance and at most τ pending pulls."""
    return Setup(
        policy=policy,
        at_least=0.5,
        means=(0.3, 0.7),
        spreads=SPREADS_42[setting],
        budget=budget,
        arms=ARMS,
        delay=f"fifo:{tau}",
    )


def figure1(
    repetitions: int, seed: int, progress: Callable[[int], None] | None = None, *, added: Added = NOTHING
) -> Iterator[Row]:
    """A row for each variance, algorithm and number of pulls n; EVT plays each n separately, with a = n/K."""
    for setting in SPREADS_41:
        for name, policy in {**ALGORITHMS_41, **added}.items():
            whole = setup_41(setting, policy, PULLS_41[-1])
            runs = (
                [whole.but(budget=pulls, checkpoints=(pulls,)) for pulls in PULLS_41]
                if policy.follows_budget
                else [whole.but(checkpoints=PULLS_41)]
            )
            for run in runs:
                result = simulate(run, repetitions=repetitions, seed=seed, progress=progress)
                for row in result.rows():
                    pulls = row.pop("pulls")
                    known = {key: math.nan if value is None else value for key, value in row.items()}
                    yield {"setting": setting, "algorithm": name, "n": pulls, "repetitions": repetitions, **known}


def figure1_pulls(repetitions: int, added: Added = NOTHING) -> int:
    lines = [*ALGORITHMS_41.values(), *added.values()]
    pulls = sum(sum(PULLS_41) if policy.follows_budget else PULLS_41[-1] for policy in lines)
    return len(SPREADS_41) * repetitions * pulls


def figure2_rows(added: Added = NOTHING) -> int:
    return len(SPREADS_42) * len((*ALGORITHMS_42, *added)) * len(DELTAS) * (1 + len(TAUS))


def algorithm_42(name: str, delta: float, added: Added = NOTHING) -> Policy:
    """AP-EVT with a = n/K for the whole budget, AP-EVT_pf, or a user's policy, with that δ."""
    if name in added:
        mine = replace(added[name], pending_weight=delta)
        return replace(mine, exploration=BUDGET_42 / ARMS) if mine.follows_budget else mine
    if name == "AP-EVT":
        return policies.ap_evt(BUDGET_42 / ARMS, pending_weight=delta)
    return policies.ap_evt_pf(pending_weight=delta)


@dataclass(frozen=True)
class Line:
    """When one line of figure 2 reaches the level: in pulls, and over resampled repetitions."""

    pulls: int | None
    resampled: np.ndarray[tuple[int], np.dtype[np.float64]]


def reach(setting: str, policy: Policy, tau: int, repetitions: int, seed: int) -> Line:
    """Play until the mean share of arms right is 95 %, measured every five pulls."""
    for horizon in HORIZONS:
        points = tuple(range(STEP, horizon + 1, STEP))
        # at its budget a run waits for every reward, so measure before it
        setup = setup_42(setting, policy, horizon + STEP, tau).but(checkpoints=points)
        result = simulate(setup, repetitions=repetitions, seed=seed, per_arm=False)
        shares = result.shares[:, :-1]
        index = first_reached(shares, LEVEL)
        again = first_columns(resampled(shares, seed), LEVEL)
        if index is not None and (np.isfinite(again).all() or horizon == HORIZONS[-1]):
            break
    return Line(None if index is None else (index + 1) * STEP, (again + 1) * STEP)


def figure2(repetitions: int, seed: int, *, added: Added = NOTHING) -> Iterator[Row]:
    """A row for each variance, algorithm, δ and τ."""
    for setting in SPREADS_42:
        for name in (*ALGORITHMS_42, *added):
            alone = reach(setting, algorithm_42(name, 0.0, added), 0, repetitions, seed)
            for delta in DELTAS:
                yield _row(setting, name, delta, 0, alone, alone)
                for tau in TAUS:
                    line = reach(setting, algorithm_42(name, delta, added), tau, repetitions, seed)
                    yield _row(setting, name, delta, tau, line, alone)


def _row(setting: str, name: str, delta: float, tau: int, line: Line, alone: Line) -> Row:
    """The speed-up by the paper's definition, and its standard error over resampled repetitions."""
    both = line.pulls is not None and alone.pulls is not None and tau > 0
    with np.errstate(invalid="ignore"):
        speedups = alone.resampled / line.resampled * tau
    sure = both and bool(np.isfinite(speedups).all())
    return {
        "setting": setting,
        "algorithm": name,
        "delta": delta,
        "tau": tau,
        "pulls_to_95": line.pulls,
        "pulls_to_95_se": float(line.resampled.std(ddof=1)) if np.isfinite(line.resampled).all() else None,
        "speedup": alone.pulls / line.pulls * tau if both else None,  # type: ignore[operator]
        "speedup_se": float(speedups.std(ddof=1)) if sure else None,
    }
