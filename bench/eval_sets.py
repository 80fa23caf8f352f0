"""What certificates cost: on eval sets, as ratios to the theory, with the error rate bounded, and to find one arm."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

import thresher
from thresher.lab import Setup, simulate

from .kano import benchmark
from .report import Figure

RISK = 0.05
PROMPTS = Setup(family="bernoulli", arms=40, means=(0.7, 0.99), at_least=0.9, confidence=1 - RISK)
SHARES = {
    "all": {100: 0.65, 200: 0.58, 500: 0.44, 1000: 0.35, 2000: 0.255, 5000: 0.17},
    "rate": {100: 0.64, 200: 0.54, 500: 0.39, 1000: 0.30, 2000: 0.21},
}
POINTS = 0.03
TOLERANCES = (0.01, 0.02, 0.03, 0.05)
WITHIN = {  # guarantee, arms, cases (0: draws): what each of these tolerances costs
    ("all", 40, 500): (0.379, 0.320, 0.262, 0.164),
    ("all", 40, 1000): (0.278, 0.217, 0.161, 0.093),
    ("all", 40, 2000): (0.193, 0.133, 0.093, 0.050),
    ("all", 40, 0): (34_300, 15_000, 9_100, 4_400),
    ("all", 300, 500): (None, 0.36, 0.30, None),
    ("rate", 40, 500): (None, 0.261, 0.192, None),
    ("rate", 40, 0): (None, 9_400, 5_500, None),
    ("rate", 300, 500): (None, 0.26, 0.195, None),
}
CASES = {  # bar: means
    0.5: (0.3, 0.4, 0.6, 0.7, 0.8),
    0.7: (0.5, 0.6, 0.8, 0.85, 0.9),
    0.9: (0.7, 0.8, 0.85, 0.94, 0.96, 0.98),
    0.95: (0.8, 0.9, 0.97, 0.99),
}
NEAREST = 0.01  # no mean is nearer to the bar
RATES = {40: 0.70, 300: 0.58}  # arms: at most this share of the pulls that "all" needs
FIRST = 60  # pulls until one arm is found


def pulls(setup: Setup, repetitions: int, seed: int = 1) -> float:
    """Mean pulls until everything is settled, or found."""
    result = simulate(setup, repetitions=repetitions, seed=seed, per_arm=False).certificates
    assert result is not None
    assert result.finished == 1.0, "the budget is too small"
    return result.used[0]


def shares() -> Iterator[Figure]:
    """Pulls as a share of a full run."""
    for guarantee, targets in SHARES.items():
        for cases, target in targets.items():
            setup = PROMPTS.but(cases=cases, guarantee=guarantee, budget=40 * cases, checkpoints=(40 * cases,))
            share = pulls(setup, max(40, 4_000_000 // setup.budget)) / setup.budget
            yield Figure(f"{guarantee}, {cases:,} cases: share of a full run", share, "", target, within=POINTS)


def tolerated() -> Iterator[Figure]:
    """What a tolerance costs: a share of a full run, or pulls; and how many arms are wrong by more than it."""
    wrong = 0
    for (guarantee, arms, cases), targets in WITHIN.items():
        for tolerance, target in zip(TOLERANCES, targets, strict=True):
            if target is None:
                continue
            budget = arms * cases or 10_000_000
            asked = {"arms": arms, "cases": cases, "guarantee": guarantee, "tolerance": tolerance}
            setup = PROMPTS.but(**asked, budget=budget, checkpoints=(budget,))
            result = simulate(setup, repetitions=16_000 // arms, seed=1, per_arm=False)
            assert result.certificates is not None
            used = result.certificates.used[0] / (budget if cases else 1)
            if guarantee == "all":
                wrong += int(result.measures.mislabelled[:, -1].sum())
            where, unit = (f"{cases:,} cases", "") if cases else ("draws", "pulls")
            what = f"{guarantee}, {arms} arms, {where}, ± {tolerance:g}"
            yield Figure(what, used, unit, target, within=target * (0.05 if cases else 0.1))
    yield Figure("all of these, guarantee all: arms wrong by more than the tolerance", wrong, "arms", 40, at_most=True)


LIVE = {  # guarantee, cases, tolerance: three of the cells above, where 40 arms are asked about
    ("all", 500, 0.02): 0.320,
    ("rate", 500, 0.03): 0.192,
    ("all", 0, 0.05): 4_400,
}
STUDIES = 12


def live() -> Iterator[Figure]:
    """The same from live studies: a few, so within two standard errors more."""
    for (guarantee, cases, tolerance), target in LIVE.items():
        draw, used = np.random.default_rng(1), list[float]()
        for _ in range(STUDIES):
            rates = draw.uniform(0.7, 0.99, 40)
            study = thresher.create_study(
                "live",
                arms=[str(arm) for arm in range(40)],
                at_least=0.9,
                tolerance=tolerance,
                guarantee=guarantee,  # type: ignore[arg-type]
                cases=cases or None,
            )
            issued = 0
            while pull := study.ask():
                study.tell(pull, bool(draw.random() < rates[int(pull.arm)]))
                issued += 1
            used.append(issued / (40 * cases or 1))
        error = float(np.std(used, ddof=1)) / STUDIES**0.5
        where, unit = (f"{cases:,} cases", "") if cases else ("draws", "pulls")
        margin = target * (0.05 if cases else 0.1) + 2 * error
        yield Figure(
            f"{STUDIES} live studies, {guarantee}, {where}, ± {tolerance:g}",
            float(np.mean(used)),
            unit,
            target,
            within=margin,
        )


def cost(mean: float, bar: float, arms: int) -> float:
    """Pulls of one of ``arms`` arms ÷ (ln(arms / risk) / KL)."""
    level = arms / RISK
    divergence = sum(p * math.log(p / b) for p, b in ((mean, bar), (1 - mean, 1 - bar)) if p > 0)
    alone = PROMPTS.but(policy="uniform", arms=1, means=mean, at_least=bar, confidence=1 - 1 / level, budget=200_000)
    return pulls(alone.but(checkpoints=(200_000,)), 4000) * divergence / math.log(level)


def ratios() -> Iterator[Figure]:
    """Pulls until one arm is settled, as a ratio to what the theory needs at least."""
    ratios = [cost(mean, bar, 40) for bar, means in CASES.items() for mean in means]
    title = f"{len(ratios)} Bernoulli arms, K = 40: pulls / (ln(K/risk) / KL)"
    yield Figure(f"{title}, on average", float(np.mean(ratios)), "times", 1.31, at_most=True)
    yield Figure(f"{title}, the worst", max(ratios), "times")
    for bar, most in ((0.9, 1.31), (0.95, 1.31), (0.99, 1.31), (0.5, None)):  # .5: 13 pulls, where 9.6 are needed
        title = f"an arm that never fails against {bar:g}: the same"
        yield Figure(title, cost(1.0, bar, 40), "times", most, at_most=True)


def rates() -> Iterator[Figure]:
    """The error rate bounded: pulls, next to ruling out errors."""
    for arms, most in RATES.items():
        draw, used = np.random.default_rng(1), {"all": 0.0, "rate": 0.0}
        for _ in range(1200 // arms):
            means = draw.uniform(0.7, 0.99, 10 * arms)
            means = means[abs(means - 0.9) >= NEAREST][:arms]
            budget = 20_000 * arms
            setup = PROMPTS.but(arms=arms, means=means.tolist(), budget=budget, checkpoints=(budget,))
            for guarantee in used:
                used[guarantee] += pulls(setup.but(guarantee=guarantee), 4)
        yield Figure(f"{arms} arms: pulls with rate / with all", used["rate"] / used["all"], "", most, at_most=True)


def finding() -> Iterator[Figure]:
    """The first arm of Kano et al.'s first benchmark."""
    setup = benchmark(1).but(policy=None, find=1)
    yield Figure("benchmark 1: the first arm, with find", pulls(setup, 4000), "pulls", FIRST, at_most=True)


Problem = tuple[dict[str, Any], tuple[int, int]]
FINDS: dict[str, Problem] = {  # problems with `find`: what the rule before needed at one worker, and with 16
    "few reach the bar": ({"arms": 100, "means": (0.5, 0.92), "find": 1}, (51_674, 44_201)),
    "three of 100 reach it clearly": ({"arms": 100, "means": [0.6] * 97 + [0.97] * 3, "find": 1}, (497, 1_404)),
    "all are near it": ({"arms": 40, "means": (0.85, 0.95), "find": 3}, (6_816, 4_827)),
    "easy": ({"arms": 40, "means": (0.7, 0.99), "find": 1}, (368, 563)),
    "500 cases": ({"arms": 40, "means": (0.7, 0.99), "find": 5, "cases": 500}, (1_495, 1_972)),
    "500 cases, few reach it": ({"arms": 100, "means": (0.5, 0.93), "find": 3, "cases": 500}, (2_618, 3_610)),
}


def found() -> Iterator[Figure]:
    """Pulls until enough arms are found, on the same instances and draws as the rule before."""
    for name, (asked, before) in FINDS.items():
        for delay, pulls_before in zip(("none", "workers:16"), before, strict=True):
            budget = asked["arms"] * asked.get("cases", 4_000)
            setup = PROMPTS.but(policy=None, common=True, delay=delay, budget=budget, **asked)
            result = simulate(setup, repetitions=400, seed=3, per_arm=False)
            yield Figure(f"find, {name}, {delay}", float(result.measures.used.mean()) / pulls_before, "of before")


def figures() -> Iterator[Figure]:
    yield from shares()
    yield from tolerated()
    yield from live()
    yield from found()
    yield from ratios()
    yield from rates()
    yield from finding()
