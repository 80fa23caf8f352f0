"""How many pulls a problem will need: `thresher plan`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from thresher import policies
from thresher.errors import InvalidInput
from thresher.policies import Policy

from . import delays
from .crossing import first_columns, first_reached, resampled
from .recorded import Recorded
from .results import Result
from .setup import Setup
from .simulator import available_cores, simulate
from .warming import compile_together

TARGETS = (("90 % of arms right", 0.90), ("95 % of arms right", 0.95), ("99 % of arms right", 0.99))
ALL_RIGHT = ("all arms right with probability 0.9", 0.9)
STAGES = ((40, 40_000), (200, 10_000), (1500, 2_500), (6000, 1_000))  # pulls an arm, and repetitions times arms
FEWEST, MOST = 20, 1000  # repetitions
LONGEST = 6_500_000  # pulls of the last stage over all repetitions: many arms go without it
GROWTH = 1.04  # from one checkpoint to the next


@dataclass(frozen=True)
class Need:
    """The pulls and seconds that one policy needs for one target; None: more than ``beyond`` pulls."""

    target: str
    policy: str
    pulls: int | None
    pulls_se: float | None
    seconds: float | None
    beyond: int


class Curve(NamedTuple):
    """What was measured at each number of pulls."""

    pulls: list[int]
    accuracy: list[float]
    accuracy_se: list[float]
    success: list[float]


@dataclass(frozen=True)
class Plan:
    """All needs, and the curves that they were read from."""

    setup: Setup
    workers: int
    needs: tuple[Need, ...]
    curves: dict[str, Curve]  # by policy

    def rows(self) -> list[dict[str, Any]]:
        """A row for each target and policy."""
        return [vars(need) for need in self.needs]


def plan(
    setup: Setup,
    *,
    workers: int = 1,
    seconds: float = 1.0,
    service: str = "constant",
    seed: int = 0,
    threads: int | None = None,
) -> Plan:
    """Simulate the problem with the setup's policy and with equal allocation until the targets are met.

    The answer depends on the arguments alone. Give a policy that needs no budget: the budget is what is looked for.

    >>> problem = Setup(family="bernoulli", arms=5, means=(0.1, 0.9), threshold=0.5, budget=10, confidence=0.95)
    >>> [need.policy for need in plan(problem, workers=2).needs[:2]]
    ['balanced', 'uniform']
    """
    if setup.rules.needs_budget:
        remedy = "choose balanced, anytime-evt, ap-evt-pf, lsa, apt or uniform"
        raise InvalidInput("policy", str(setup.rules), "needs the budget that is looked for", remedy)
    if isinstance(workers, bool) or not isinstance(workers, int) or not 1 <= workers <= delays.MOST:
        raise InvalidInput("workers", workers, f"must be a whole number from 1 to {delays.MOST:,}")
    delay = delays.parse(f"workers:{workers}:{service}", seconds=seconds)
    chosen = [setup.rules, policies.uniform()] if setup.rules != policies.uniform() else [setup.rules]
    compile_together([(policy, setup.family, True, False) for policy in chosen])
    found = [_needs(setup, policy, delay, seed, threads) for policy in chosen]
    needs = [need for group in zip(*(mine for mine, _ in found), strict=True) for need in group]
    return Plan(
        setup, workers, tuple(needs), {str(policy): curve for policy, (_, curve) in zip(chosen, found, strict=True)}
    )


def _needs(
    setup: Setup, policy: Policy, delay: delays.Delay, seed: int, threads: int | None
) -> tuple[list[Need], Curve]:
    open_targets = [*TARGETS, ALL_RIGHT]
    needs: dict[str, Need] = {}
    curve = Curve([], [], [], [])
    for per_arm, cells in STAGES:
        points = _points(setup.arms * policy.warmup, max(per_arm * setup.arms, 4 * delay.capacity))
        repetitions = min(MOST, max(FEWEST, cells // setup.arms))
        if (per_arm, cells) == STAGES[-1] and points[-1] * repetitions > LONGEST:
            break
        # a run waits for every reward at its budget: stop looking before it
        line = setup.but(policy=policy, delay=delay, budget=points[-1] + 1, checkpoints=points)
        result = simulate(line, repetitions=repetitions, seed=seed, threads=threads or available_cores(), per_arm=False)
        for target, level in list(open_targets):
            need = _read(target, level, str(policy), result, points, seed)
            needs[target] = need
            if need.pulls is not None:
                open_targets.remove((target, level))
        begin = curve.pulls[-1] if curve.pulls else 0
        new = [place for place, pulls in enumerate(points) if pulls > begin]
        curve.pulls.extend(points[place] for place in new)
        for column, values in (
            (curve.accuracy, result.accuracy),
            (curve.accuracy_se, result.accuracy_se),
            (curve.success, result.success),
        ):
            column.extend(float(values[place]) for place in new)
        if not open_targets:
            break
    return [needs[target] for target, _ in (*TARGETS, ALL_RIGHT)], curve


def _read(target: str, level: float, policy: str, result: Result, points: Sequence[int], seed: int) -> Need:
    right = (result.measures.wrong == 0).astype(np.float64) if target == ALL_RIGHT[0] else result.shares
    right = right[:, :-1]
    place = first_reached(right, level)
    if place is None:
        return Need(target, policy, None, None, None, points[-1])
    again = first_columns(resampled(right, seed), level)
    pulls = np.where(
        np.isfinite(again), np.array([*points, points[-1]])[np.minimum(again, len(points)).astype(int)], np.inf
    )
    error = float(pulls.std(ddof=1)) if np.isfinite(pulls).all() else None
    clock = result.clock
    assert clock is not None
    return Need(target, policy, points[place], error, float(clock[place]), points[-1])


def _points(first: int, last: int) -> tuple[int, ...]:
    points, value = [], float(max(1, first))
    while value < last:
        points.append(int(value))
        value = max(value + 1.0, value * GROWTH)
    return (*points, last)


def pilot_setup(data: Recorded, **settings: Any) -> Setup:
    """A setup from rewards measured so far.

    Passes and failures become Bernoulli arms with the mean (passes + ½) / (pulls + 1), so that three passes out of
    three are not taken for certainty; other rewards are resampled as they are.

    >>> pilot_setup(Recorded(("a", "b"), ((1.0, 1.0, 1.0), (0.0, 1.0))), threshold=0.5, budget=10).means
    [0.875, 0.5]
    """
    if data.pass_or_fail and settings.get("bounds", (0.0, 1.0)) == (0.0, 1.0):
        means = [(sum(rewards) + 0.5) / (len(rewards) + 1) for rewards in data.rewards]
        return Setup(family="bernoulli", arms=len(means), means=means, spreads=0.0, **settings)
    return Setup(family="recorded", recorded=data, **settings)


def draw(plan: Plan, path: Path) -> None:
    """The picture: share of arms right and chance of all right against pulls."""
    from .plots import BLUE, GREY, _band, _percent, picture

    with picture(path, 1, 2, (10.0, 4.0), sharex=True) as (_, axes):
        left, right = axes[0]
        for (name, (pulls, accuracy, error, success)), colour, mark in zip(
            plan.curves.items(), (BLUE, GREY), ("-", "--"), strict=False
        ):
            left.plot(pulls, accuracy, color=colour, linestyle=mark, label=name, linewidth=1.8)
            _band(left, pulls, accuracy, error, colour)
            right.plot(pulls, success, color=colour, linestyle=mark, label=name, linewidth=1.8)
        for _, level in TARGETS:
            left.axhline(level, color="#B5B5B5", linewidth=0.8, zorder=0)
        right.axhline(ALL_RIGHT[1], color="#B5B5B5", linewidth=0.8, zorder=0)
        for need in plan.needs:
            if need.pulls is None:
                continue
            axis, level = (right, ALL_RIGHT[1]) if need.target == ALL_RIGHT[0] else (left, dict(TARGETS)[need.target])
            first = need.policy == next(iter(plan.curves))
            colour = BLUE if first else GREY
            axis.plot(need.pulls, level, marker="o", color=colour, markersize=5)
            place = {"xytext": (-5, 4), "ha": "right"} if first else {"xytext": (5, -11), "ha": "left"}
            axis.annotate(
                f"{need.pulls:,}", (need.pulls, level), textcoords="offset points", fontsize=8, color=colour, **place
            )
        left.set_ylim(top=1.005)
        left.set_title("share of arms right")
        right.set_title("chance that all arms are right")
        for axis in (left, right):
            axis.set_xscale("log")
            axis.set_xlabel("pulls")
            axis.yaxis.set_major_formatter(_percent())
            axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        left.legend(loc="lower right")
