"""How many pulls a problem needs: `thresher plan`."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..core import checks, policies
from ..core.parameters import Guarantee
from ..errors import InvalidInput
from . import delays
from .compiler import CompilerChoices
from .families import Reals
from .parallel_compile import compile_in_parallel
from .recorded import Recorded
from .result import (
    RANGE,
    Result,
    Rows,
    first_columns,
    first_reached,
    number_in_result,
    resampled,
    standard_error_of_result,
)
from .setup import Setup
from .simulator import check_setup_of_simulator, checked_simulation, simulate, simulated_kind

# A pilot: a few rewards of each arm, from which each repetition of a plan draws the arms anew.
#
# Twenty rewards do not say where an arm's mean is, and the pulls that it needs grow with the inverse square of its
# distance from the bar. So a plan that takes the pilot's means for the true means says little. Here every repetition
# draws every arm from its posterior, by a Bayesian bootstrap: rewards get random weights, and two more rewards that
# count half are the prior. For passes and failures, they are a pass and a failure, so the chance of a pass is
# Beta(½ + passes, ½ + failures). Otherwise they differ from the arm's mean as two rewards of the pilot differ from the
# means of their arms.

CHANCES, REWARDS = "pilot_chances", "pilot_rewards"  # families
DRAWS, FEWEST_DRAWS = 1000, 16  # per arm, from its posterior
SIZE = 64  # rewards that stand for a drawn distribution
MOST_NUMBERS = 8_000_000  # in the draws of all arms
PRIOR = 0.5  # the weight of a reward of the prior; with 1, plans were too long for arms that never failed


@dataclass(frozen=True)
class PlanningPilot(Recorded):
    """Draws of every arm from its posterior.

    >>> pilot = PlanningPilot(("a", "b"), ((1.0, 1.0, 1.0), (0.0, 1.0)))
    >>> [round(float(chances.mean()), 1) for chances in pilot.samples.reshape(2, -1)]
    [0.9, 0.5]
    """

    low: float = 0.0  # the bounds of the rewards
    high: float = 1.0

    @property
    def family(self) -> str:
        """How the laboratory draws from it."""
        return CHANCES if self.pass_or_fail and (self.low, self.high) == (0.0, 1.0) else REWARDS

    @cached_property
    def draws(self) -> int:
        """How many draws there are per arm."""
        numbers = 1 if self.family == CHANCES else SIZE + 1
        return min(DRAWS, max(FEWEST_DRAWS, MOST_NUMBERS // (numbers * len(self.names))))

    @cached_property
    def samples(self) -> Reals:
        """The draws, arm after arm. A draw is a chance, or a mean and the SIZE rewards that have it."""
        random, pool, arms = np.random.default_rng(0), self._deviations(), list[Any]()
        for rewards in self.rewards:
            if self.family == CHANCES:
                passes = sum(rewards)
                arms.append(random.beta(PRIOR + passes, PRIOR + len(rewards) - passes, self.draws))
            else:
                arms.append(self._drawn(np.array(rewards), pool, random).ravel())
        return np.concatenate(arms)

    @property
    def counts(self) -> Reals:
        """How many rewards stand for a draw."""
        return np.full(len(self.names), 0.0 if self.family == CHANCES else float(SIZE))

    @property
    def begins(self) -> Reals:
        """The index of the first draw, by arm."""
        return np.arange(len(self.names), dtype=np.float64) * self.draws

    @property
    def ends(self) -> Reals:
        """The end of the draws, by arm; a little less, because rounding must not reach the next arm's."""
        return self.begins + (self.draws - 1e-3)

    def _deviations(self) -> Reals:
        """How far rewards are from their arm's mean, over all arms with at least two rewards."""
        by_arm = [
            (np.array(rewards) - np.mean(rewards)) * np.sqrt(len(rewards) / (len(rewards) - 1))
            for rewards in self.rewards
            if len(rewards) > 1
        ]
        pool: Reals = np.concatenate(by_arm) if by_arm else np.zeros(1)
        return pool

    def _drawn(self, rewards: Reals, pool: Reals, random: np.random.Generator) -> Rows:
        """A row per draw: the mean of its rewards, then SIZE rewards, at even steps of their weights."""
        more = np.clip(rewards.mean() + random.choice(pool, (self.draws, 2)), self.low, self.high)
        known = np.hstack([np.tile(rewards, (self.draws, 1)), more])
        shapes = np.array([1.0] * len(rewards) + [PRIOR] * 2)
        order = np.argsort(known, axis=1)
        known = np.take_along_axis(known, order, axis=1)
        weights = random.standard_gamma(shapes[order])
        upto = np.cumsum(weights, axis=1) / weights.sum(axis=1, keepdims=True)
        steps = (np.arange(SIZE) + 0.5) / SIZE
        rows = np.stack([row[np.searchsorted(edges, steps)] for row, edges in zip(known, upto[:, :-1], strict=True)])
        means = (known * weights).sum(axis=1) / weights.sum(axis=1)
        rows = np.clip(rows + (means - rows.mean(axis=1))[:, None], self.low, self.high)
        return np.hstack([rows.mean(axis=1, keepdims=True), rows])


def pilot_setup(data: Recorded, **settings: Any) -> Setup:
    """A setup whose arms are drawn from what the rewards of a pilot leave possible.

    If pulls of the pilot were lost, the plan loses the share (lost + ½) / (pulls + 1) of its pulls.

    >>> pilot_setup(Recorded(("a", "b"), ((1.0, 1.0), (0.2, 0.4))), at_least=0.5, budget=10).family
    'pilot_rewards'
    """
    low, high = settings.get("bounds", (0.0, 1.0))
    data.check_bounds(low, high)
    if data.lost:
        share = (data.lost + 0.5) / (data.pulls + 1)
        settings = {**settings, "lost": (share, share), "delay": "workers:1"}  # pulls can be lost only with workers
    pilot = PlanningPilot(data.names, data.rewards, data.pulls, data.lost, data.unseen, low, high)
    return Setup(family=pilot.family, recorded=pilot, **settings)


# How many pulls a study with cases saves, compared with a full run of every case of every arm.

SAVING = 0.05  # less than this is not worth the trouble


@dataclass(frozen=True)
class PlannedFullRun:
    """The pulls of a full run, and those that settle every arm: their mean, and a range for nine of ten studies."""

    pulls: int
    needed: float
    needed_se: float | None
    low: int
    high: int

    @property
    def share(self) -> float:
        """The share of a full run's pulls that is needed."""
        return self.needed / self.pulls

    @property
    def saves(self) -> bool:
        """Whether the saving is worth the trouble."""
        return self.share <= 1.0 - SAVING

    def sentence(self) -> str:
        """For people.

        >>> print(PlannedFullRun(20_000, 8_700.0, 12.0, 7_900, 9_600).sentence())
        A full run takes 20,000 pulls and is exact. thresher settles every arm after about 8,700 (44 %), in nine of \
ten studies after 7,900 to 9,600.
        >>> print(PlannedFullRun(40, 39.2, 0.1, 38, 40).sentence())
        A full run takes 40 pulls and is exact. thresher would save less than 5 % of them: run every case of every arm.
        """
        full = f"A full run takes {self.pulls:,} pulls and is exact."
        if not self.saves:
            return f"{full} thresher would save less than {100 * SAVING:g} % of them: run every case of every arm."
        about = float(f"{self.needed:.3g}")
        return (
            f"{full} thresher settles every arm after about {about:,.0f} ({100 * self.share:.0f} %), "
            f"in nine of ten studies after {self.low:,} to {self.high:,}."
        )

    def to_json(self) -> dict[str, float | int | bool | None]:
        """The same for programs."""
        return {**vars(self), "share": self.share, "saves": self.saves}


def planned_full_run(result: Result) -> PlannedFullRun:
    """The pulls of a full run and of the result's repetitions."""
    used = result.measures.used[:, 0]
    low, high = np.quantile(used, RANGE, method="inverted_cdf")
    error = number_in_result(standard_error_of_result(result.measures.used)[0])
    return PlannedFullRun(result.setup.arms * result.setup.cases, float(used.mean()), error, int(low), int(high))


# What a study takes until every arm is certified, by how exact the answer has to be.

POINTS = (0, 1, 2, 3, 5)  # tolerances, in hundredths of the range of rewards, or of a share
CHOICE_PULLS = 300_000  # of all repetitions of a choice; more only if FEWEST repetitions take more
TRIED = 8  # repetitions of a choice, to see how long they are; enough where some are not finished
FEWEST_CHOICES = 3  # tolerances that fit; else tenths of these are shown


@dataclass(frozen=True)
class Choice:
    """The pulls and seconds until every arm is certified, with a tolerance and a guarantee: means over studies.

    Nine of ten studies take between ``low`` and ``high`` pulls. If some were not finished (``finished`` is the share
    that were), ``pulls`` is less than the mean, ``seconds`` is None, and so may be ``high``.
    """

    tolerance: float
    guarantee: Guarantee
    asked: bool  # whether this is the question that the plan was asked about
    pulls: float
    pulls_se: float | None
    low: int
    high: int | None
    full_run_share: float | None  # with cases
    seconds: float | None
    finished: float
    repetitions: int


def planned_tolerances(setup: Setup) -> list[float]:
    """Tolerances to choose from, smallest first: those that fit between the bar and the bounds, and the setup's own.

    >>> problem = Setup(family="bernoulli", arms=5, means=(0.8, 1.0), at_least=0.9, budget=10, confidence=0.95)
    >>> planned_tolerances(problem), planned_tolerances(problem.but(at_least=0.99, tolerance=0.004))
    ([0.0, 0.01, 0.02, 0.03, 0.05], [0.0, 0.001, 0.002, 0.003, 0.004, 0.005])
    """
    low, high = (0.0, 1.0) if setup.spec.share is not None else setup.bounds
    fitting: list[float] = []
    for digits in range(2, 12):
        steps = [float(Decimal(points).scaleb(-digits) * Decimal(repr(high - low))) for points in POINTS]
        fitting = [step for step in steps if _fits(setup, step)]
        if len(fitting) >= FEWEST_CHOICES:
            break
    return sorted({*fitting, setup.tolerance})


def _fits(setup: Setup, tolerance: float) -> bool:
    try:
        setup.but(tolerance=tolerance)
    except InvalidInput:
        return False
    return True


def planned_choices(asked: Result, loop: CompilerChoices, **shared: Any) -> list[Choice]:
    """What a question takes with each tolerance and guarantee; ``asked`` has been played already, as it was asked."""
    setup = asked.setup
    *_, (most, _) = _stages(setup)
    pulls = most if setup.cases else most // 2
    is_finished = (asked.measures.settled[:, -1] == setup.contenders).all()
    made = []
    for tolerance in planned_tolerances(setup):
        for guarantee in ("all", "rate") if setup.contenders > 1 else (setup.guarantee,):
            is_asked = (tolerance, guarantee) == (setup.tolerance, setup.guarantee)
            if is_asked and (is_finished or setup.budget >= pulls):
                # if some are not finished, what it takes within the pulls that the other choices have
                made.append(_choice(asked, asked=True, most=setup.budget if is_finished else pulls))
                continue
            own = setup.but(tolerance=tolerance, guarantee=guarantee, budget=pulls, checkpoints=(pulls,))
            result = simulate(own, repetitions=TRIED, played_as=loop, **shared)
            if (result.measures.settled[:, -1] == own.contenders).all():
                affordable = int(CHOICE_PULLS / result.measures.used.mean())
                result = simulate(own, repetitions=min(MOST, max(FEWEST, affordable)), played_as=loop, **shared)
            made.append(_choice(result, asked=is_asked, most=pulls))
    return made


def _choice(result: Result, *, asked: bool, most: int) -> Choice:
    """What the repetitions of a choice took, within this many pulls."""
    setup, measures, certificates = result.setup, result.measures, result.certificates
    assert certificates is not None
    used = np.minimum(measures.used, most)
    mean, error = float(used.mean()), number_in_result(standard_error_of_result(used)[0])
    done = (measures.settled[:, -1] == setup.contenders) & (measures.used[:, 0] <= most)
    low, high = np.quantile(np.where(done, used[:, 0], np.inf), RANGE, method="inverted_cdf")
    return Choice(
        setup.tolerance,
        setup.guarantee,
        asked,
        mean,
        error,
        int(min(low, mean)),
        int(high) if np.isfinite(high) else None,
        mean / certificates.full_run if certificates.full_run else None,
        float(measures.ended[:, 0].mean()) if done.all() else None,
        float(done.mean()),
        result.repetitions,
    )


TARGETS = (("90 % of arms right", 0.90), ("95 % of arms right", 0.95), ("99 % of arms right", 0.99))
ALL_RIGHT = ("all arms right with probability 0.9", 0.9)
SETTLED = ("90 % of arms settled", 0.9)
ALL_SETTLED = ("all arms settled with probability 0.9", 0.9)
SETTLING = (SETTLED[0], ALL_SETTLED[0])  # targets that stay reached
SKIPS = "uniform, skips settled"
STAGES = ((40, 20_000), (200, 5_500), (1500, 2_000), (6000, 700))  # pulls an arm, and repetitions times arms
FEWEST, MOST = 20, 1000  # repetitions
ROUGH = 60  # figures from fewer repetitions than this are called rough
LONGEST = 6_500_000  # most pulls of the last stage, over all repetitions; with more, it is skipped
CELLS = 4_000_000  # with cases: repetitions times the pulls of a full run
GROWTH = 1.04  # of the pulls, from a checkpoint to the next


@dataclass(frozen=True)
class Need:
    """The pulls and seconds that a policy needs for a target; None: more than ``beyond`` pulls.

    ``seconds`` is the mean over repetitions; if the target is that all arms are settled, nine of ten repetitions finish
    within it. ``repetitions`` says how many were played: few of the long runs, so their figures are rough. If the
    target is about settled arms, nine of ten repetitions lie between ``low`` and ``high``; otherwise ``pulls`` does, in
    nine of ten resamples of the repetitions. From a pilot, the arms differ in every repetition.
    """

    target: str
    policy: str
    pulls: int | None
    low: int | None
    high: int | None
    seconds: float | None
    beyond: int
    repetitions: int


class Curve(NamedTuple):
    """The measurements, by number of pulls."""

    pulls: list[int]
    accuracy: list[float]
    accuracy_se: list[float]
    success: list[float]
    settled: list[float]  # empty without certificates


class PlannedLine(NamedTuple):
    """A policy in the plan, with or without certificates."""

    name: str
    setup: Setup

    @property
    def targets(self) -> tuple[tuple[str, float], ...]:
        """The targets of this policy."""
        return (*TARGETS, ALL_RIGHT, *((SETTLED, ALL_SETTLED) if self.setup.certifies else ()))


@dataclass(frozen=True)
class Plan:
    """All needs, and the curves they were read from."""

    setup: Setup
    workers: int
    needs: tuple[Need, ...]
    curves: dict[str, Curve]  # by policy
    choices: tuple[Choice, ...] = ()  # by tolerance and guarantee, with certificates
    full_run: PlannedFullRun | None = None  # with cases

    def rows(self) -> list[dict[str, Any]]:
        """A row per target and policy."""
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

    With a confidence, arms are also settled: see `planned_lines`. With cases, equal allocation is a full run, which is
    exact.

    The answer depends only on the arguments. Give a policy that needs no budget: a plan finds the budget.

    >>> problem = Setup(family="bernoulli", arms=5, means=0.9, at_least=0.5, budget=10, confidence=0.95)
    >>> [need.policy for need in plan(problem, workers=2).needs[:3]]
    ['balanced', 'uniform', 'uniform, skips settled']
    """
    check_setup_of_simulator(setup)
    if setup.rules.needs_budget:
        remedy = "choose balanced, anytime-evt, ap-evt-pf, lsa, apt or uniform"
        raise InvalidInput("policy", str(setup.rules), "needs a budget, which is what a plan finds", remedy)
    checks.checked_whole("workers", workers, least=1, most=delays.MOST_PENDING)
    checks.checked_number("seconds per pull", seconds)
    checked_simulation(FEWEST, seed, threads)
    chosen = planned_lines(setup.but(delay=_delay(workers, service, seconds)))
    shared = {"seed": seed, "threads": threads, "per_arm": False}
    loops = {
        line.name: simulated_kind(line.setup)._replace(certifies=setup.certifies, ranks=setup.certifies)
        for line in chosen
    }
    compile_in_parallel(loops.values())
    played = [_needs(line, loops[line.name], **shared) for line in chosen]
    offered = planned_choices(played[0][2], loops[chosen[0].name], **shared) if setup.certifies else []
    needs = [own[target] for target, _ in chosen[0].targets for own, _, _ in played if target in own]
    curves = {line.name: curve for line, (_, curve, _) in zip(chosen, played, strict=True)}
    return Plan(
        setup, workers, tuple(needs), curves, tuple(offered), planned_full_run(played[0][2]) if setup.cases else None
    )


def _delay(workers: int, service: str, seconds: float) -> delays.Delay:
    """The delay of this many workers; an error is about the service time, because the user gave no delay."""
    try:
        return delays.parsed_delay(f"workers:{workers}:{service}", seconds=seconds)
    except InvalidInput as error:
        if error.what != "delay":
            raise
        remedy = "write constant, exponential, lognormal:0.5 or failures:5"
        raise InvalidInput("service", service, "is not a service time that thresher knows", remedy) from None


def planned_lines(setup: Setup) -> list[PlannedLine]:
    """The setup's policy and equal allocation; with certificates, also uniform that skips settled arms.

    >>> problem = Setup(family="bernoulli", arms=5, means=(0.1, 0.9), at_least=0.5, budget=10, confidence=0.95)
    >>> [line.name for line in planned_lines(problem)]
    ['balanced', 'uniform', 'uniform, skips settled']
    """
    certifies, uniform = setup.certifies, policies.uniform()
    equal = setup.but(policy=uniform)
    own = PlannedLine(SKIPS if certifies and setup.rules == uniform else str(setup.rules), setup)
    uncertified = {"confidence": None, "tolerance": 0.0, "guarantee": "all", "within": setup.within}
    plain = [] if setup.cases else [PlannedLine(str(uniform), equal.but(**uncertified))]
    skipping = [PlannedLine(SKIPS, equal)] if certifies else []
    return list({line.name: line for line in (own, *plain, *skipping)}.values())


def _needs(line: PlannedLine, loop: CompilerChoices, **shared: Any) -> tuple[dict[str, Need], Curve, Result]:
    """The needs of the line, its curve, and the result of the last stage."""
    setup, result = line.setup, None
    left = list(line.targets)
    needs: dict[str, Need] = {}
    curve = Curve([], [], [], [], [])
    for last, repetitions in _stages(setup):
        points = _points(setup.contenders * setup.rules.warmup, last)
        # at its budget a run waits for every reward, so measure before it
        played = setup.but(budget=points[-1] + 1, checkpoints=points)
        result = simulate(played, repetitions=repetitions, played_as=loop, **shared)
        for target, level in list(left):
            need = needs[target] = _read(target, level, line.name, result, points, shared["seed"])
            if need.pulls is not None and need.high is not None:
                left.remove((target, level))
        _extend(curve, result, points)
        if not left:
            break
    assert result is not None
    return needs, curve, result


def _stages(setup: Setup) -> Iterator[tuple[int, int]]:
    """How many pulls to play, and how often: longer and longer runs; with cases, all of them at once."""
    if setup.cases:
        pulls = setup.arms * max(setup.cases, setup.rules.warmup)
        yield int(pulls / (1.0 - max(setup.lost))) + setup.timing.capacity, min(MOST, max(FEWEST // 4, CELLS // pulls))
        return
    for per_arm, cells in STAGES:
        pulls = max(per_arm * setup.arms, 4 * setup.timing.capacity)
        repetitions = min(MOST, max(FEWEST, cells // setup.arms))
        if (per_arm, cells) != STAGES[-1] or pulls * repetitions <= LONGEST:
            yield pulls, repetitions


def _extend(curve: Curve, result: Result, points: Sequence[int]) -> None:
    """Add the points that lie beyond those of the stage before."""
    begin = curve.pulls[-1] if curve.pulls else 0
    new = [index for index, pulls in enumerate(points) if pulls > begin]
    curve.pulls.extend(points[index] for index in new)
    columns = [
        (curve.accuracy, result.accuracy_within),
        (curve.accuracy_se, standard_error_of_result(result.by_repetition("accuracy_within"))),
        (curve.success, result.success_within),
    ]
    if result.certificates is not None:
        columns.append((curve.settled, result.certificates.share))
    for column, values in columns:
        column.extend(float(values[index]) for index in new)


def _reached(target: str, result: Result) -> Rows:
    """The measurement that a target is about: a row per repetition, a column per number of pulls."""
    if target == ALL_SETTLED[0]:
        return np.asarray(result.by_repetition("settled") == 1.0, np.float64)
    return result.by_repetition(
        "success_within" if target == ALL_RIGHT[0] else "settled" if target == SETTLED[0] else "accuracy_within"
    )


def _read(target: str, level: float, policy: str, result: Result, points: Sequence[int], seed: int) -> Need:
    reached = _reached(target, result)[:, :-1]
    index = first_reached(reached, level)
    # an arm that is right may be wrong again later, so it is mostly luck when a repetition reaches such a target
    columns = first_columns(reached if target in SETTLING else resampled(reached, seed), level)
    ends = np.quantile(columns, RANGE, method="inverted_cdf")
    low, high = (points[int(column)] if np.isfinite(column) else None for column in ends)
    if index is None:
        return Need(target, policy, None, low, high, None, points[-1], result.repetitions)
    clock = result.clock
    assert clock is not None
    seconds = float(clock[index])
    if target == ALL_SETTLED[0]:
        ended = np.where(result.measures.settled[:, -1] == result.setup.contenders, result.measures.ended[:, 0], np.inf)
        seconds = float(np.quantile(ended, level, method="inverted_cdf"))
    return Need(target, policy, points[index], low, high, seconds, points[-1], result.repetitions)


def _points(first: int, last: int) -> tuple[int, ...]:
    points, value = [], float(max(1, first))
    while value < last:
        points.append(int(value))
        value = max(value + 1.0, value * GROWTH)
    return (*points, last)
