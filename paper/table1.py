"""Table 1: how hard the paper's problems are, what its theorems require, and what simulation needed.

The theorems hold for one instance, so the simulation plays one too: the instance whose H_EVT is the median.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import thresher as policies
from thresher import Policy
from thresher.lab import Setup, instances, simulate, theory

from . import figures
from .figures import Added

RISK = 0.05
INSTANCES = 1001
PULLS = (*(digit * 10**power for power in (3, 4) for digit in (1, 2, 3, 5, 7)), 100_000, 200_000)


def table1(repetitions: int, seed: int, *, added: Added = figures.NOTHING) -> Iterator[dict[str, Any]]:
    """A row for each section, variance and algorithm; ``rounds_simulated`` is None beyond ``most_pulls``.

    Of a user's policy, only the simulation is known.
    """
    for section, spreads in (("4.1", figures.SPREADS_41), ("4.2", figures.SPREADS_42)):
        for setting in spreads:
            yield from _setting(section, setting, repetitions, seed, added)


def _setting(section: str, setting: str, repetitions: int, seed: int, added: Added) -> Iterator[dict[str, Any]]:
    make = figures.setup_41 if section == "4.1" else figures.setup_42
    base = make(setting, policies.evt(), PULLS[-1]).but(delay="none")
    drawn = instances(base, repetitions=INSTANCES, seed=seed)
    bar = base.spec.stated_bar
    hard = {
        algorithm: [theory.hardness(list(means), list(spreads), bar, algorithm) for means, spreads in drawn]
        for algorithm in ("apt", "evt")
    }
    middle = int(np.argsort(hard["evt"])[INSTANCES // 2])
    means, deviations = (list(map(float, column)) for column in drawn[middle])
    fixed = base.but(means=means, spreads=[float(deviation * 3.0**0.5) for deviation in deviations])
    rows: tuple[tuple[str, Policy, theory.Algorithm | None], ...] = (
        ("ATP", policies.apt(), None),
        ("EVT", policies.evt(), "evt"),
        ("EVT_pf", policies.evt_pf(), "ap-evt-pf"),
        *((name, policy, None) for name, policy in added.items()),
    )
    for name, policy, theorem in rows:
        yield {
            "section": section,
            "setting": setting,
            "algorithm": name,
            "hardness": None if name in added else float(np.median(hard["evt" if theorem else "apt"])),
            "rounds_printed": theorem and theory.rounds(RISK, means, deviations, bar, theorem, corrected=False),
            "rounds_corrected": theorem and theory.rounds(RISK, means, deviations, bar, theorem),
            **_simulated(fixed.but(policy=policy), repetitions, seed),
            "most_pulls": PULLS[-1],
        }


def _simulated(setup: Setup, repetitions: int, seed: int) -> dict[str, Any]:
    """The first of PULLS at which all arms are right in 95 % of repetitions."""
    groups = [(pulls,) for pulls in PULLS] if setup.rules.follows_budget else [PULLS[:-2], PULLS]
    for points in groups:
        result = simulate(setup.but(budget=points[-1], checkpoints=points), repetitions=repetitions, seed=seed)
        for pulls, success, error in zip(points, result.success, result.success_se, strict=True):
            if success >= 1.0 - RISK:
                return {"rounds_simulated": pulls, "success": float(success), "success_se": float(error)}
    return {"rounds_simulated": None, "success": float(result.success[-1]), "success_se": float(error)}


def page(rows: Sequence[dict[str, Any]]) -> str:
    """The table as Markdown."""
    lines = [
        "# Table 1: hardness, required rounds, rounds that simulation needed",
        "",
        f"H: median over {INSTANCES:,} instances. Rounds by the theorems, at risk {RISK:g}, on the "
        "instance whose H_EVT is the median (Propositions 1 and 2, as printed and with erratum 3 corrected; for ATP "
        "the paper gives no constant). Simulated: the first n of "
        f"{', '.join(f'{pulls:,}' for pulls in PULLS)} at which all arms are right in at least "
        f"{1 - RISK:.0%} of repetitions on that instance, and the share there ± one standard error.",
        "",
        "| section | setting | algorithm | H | rounds, printed | rounds, corrected | simulated | all arms right |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        cells = [
            row["section"],
            row["setting"],
            row["algorithm"],
            f"{row['hardness']:,.0f}" if row["hardness"] else "–",
        ]
        cells += [f"{row[name]:.2e}" if row[name] else "–" for name in ("rounds_printed", "rounds_corrected")]
        cells.append(f"{row['rounds_simulated']:,}" if row["rounds_simulated"] else f"> {row['most_pulls']:,}")
        cells.append(f"{row['success']:.3f} ± {row['success_se']:.3f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
