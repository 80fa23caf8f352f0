"""What Sections 4.1 and 4.2 claim, each against the measured figures, with a verdict.

A difference counts when it is more than two of its standard errors; "holds in part" names what does not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from .paper import DELTAS, PULLS_41, SPREADS_41, SPREADS_42, TAUS, Row

HOLDS, PARTLY, FAILS, OPEN = "holds", "holds in part", "does not hold", "not decided by these data"
SURE = 2.0  # standard errors
NICE = 0.5  # of τ: what we call a nice speed-up


@dataclass(frozen=True)
class Claim:
    """One claim, in the paper's words, and what was measured."""

    section: str
    words: str
    verdict: str
    measured: tuple[str, ...]


def claims_41(rows: Sequence[Row]) -> list[Claim]:
    """The three observations below Figure 1."""
    table = {(row["setting"], row["algorithm"], row["n"]): row for row in rows}
    evt = [_duel(table, "EVT", "ATP", measure) for measure in ("success", "accuracy")]
    free = [_duel(table, "EVT_pf", "ATP", measure) for measure in ("success", "accuracy")]
    own = [_duel(table, "EVT", "EVT_pf", measure) for measure in ("success", "accuracy")]
    return [
        Claim(
            "4.1",
            "EVT and EVT_pf outperform ATP overall.",
            _joined([evt[0].verdict, free[0].verdict]),
            (*(duel.text for duel in (*evt, *free)),),
        ),
        Claim("4.1", "EVT overall outperforms EVT_pf.", own[0].verdict, tuple(duel.text for duel in own)),
        _advantage(table),
    ]


def besides(rows: Sequence[Row]) -> list[str]:
    """What Figure 1 shows and the paper does not say."""
    table = {(row["setting"], row["algorithm"], row["n"]): row for row in rows}
    pairs = (("uniform", "ATP"), ("uniform", "EVT_pf"), ("anytime EVT", "EVT"))
    return [_duel(table, one, other, "accuracy").text for one, other in pairs]


@dataclass(frozen=True)
class Duel:
    """One algorithm against another over all settings and numbers of pulls."""

    verdict: str
    text: str


def _duel(table: dict[tuple[str, str, int], Row], one: str, other: str, measure: str) -> Duel:
    better, worse, even, examples = 0, 0, 0, []
    for setting, pulls in product(SPREADS_41, PULLS_41):
        first, second = table[setting, one, pulls], table[setting, other, pulls]
        gap, error = _difference(first, second, measure)
        better, worse, even = (
            better + (gap > SURE * error),
            worse + (gap < -SURE * error),
            even + (abs(gap) <= SURE * error),
        )
        if pulls == 20_000:
            examples.append(f"{setting} {_share(first, measure)} against {_share(second, measure)}")
    verdict = HOLDS if better and not worse else PARTLY if better > worse else OPEN if not (better or worse) else FAILS
    words = {"success": "all arms right", "accuracy": "share of arms right"}[measure]
    text = (
        f"{one} against {other}, {words}: better at {better}, worse at {worse}, even at {even} of "
        f"{better + worse + even} points; at n = 20,000: {'; '.join(examples)}."
    )
    return Duel(verdict, text)


def _advantage(table: dict[tuple[str, str, int], Row]) -> Claim:
    """EVT_pf over ATP, averaged over the numbers of pulls (which share repetitions: errors are added, not averaged)."""
    means, errors = {}, {}
    for setting in SPREADS_41:
        pairs = [
            _difference(table[setting, "EVT_pf", pulls], table[setting, "ATP", pulls], "success") for pulls in PULLS_41
        ]
        means[setting] = sum(gap for gap, _ in pairs) / len(pairs)
        errors[setting] = sum(error for _, error in pairs) / len(pairs)
    sure = [
        means["small"] - means[setting] > SURE * math.hypot(errors["small"], errors[setting])
        for setting in ("median", "large")
    ]
    verdict = HOLDS if all(sure) else PARTLY if any(sure) else OPEN
    figures = "; ".join(f"{setting} {means[setting]:+.3f} ± {errors[setting]:.3f}" for setting in SPREADS_41)
    return Claim(
        "4.1",
        "The advantage of EVT_pf over ATP is more obvious when the variance is small.",
        verdict,
        (f"Difference in the share of runs with all arms right, mean over n: {figures}.",),
    )


def claims_42(rows: Sequence[Row]) -> list[Claim]:
    """The three observations below Figure 2."""
    table = {(row["setting"], row["algorithm"], row["delta"], row["tau"]): row for row in rows}
    return [_nice(table), _rivals(table), _variance(table)]


Speeds = dict[tuple[str, str, float, int], Row]


def _nice(table: Speeds) -> Claim:
    lines, reached = [], []
    for name, delta in product(("AP-EVT", "AP-EVT_pf"), DELTAS):
        up_to = [
            tau for tau in TAUS if all(_speed(table[setting, name, delta, tau]) >= NICE * tau for setting in SPREADS_42)
        ]
        reached.append(max(up_to, default=0))
        at = "; ".join(
            f"τ = {tau}: {', '.join(_shown(table[setting, name, delta, tau]) for setting in SPREADS_42)}"
            for tau in (10, 100, 500)
        )
        lines.append(
            f"{name}, δ = {delta:g}, small, median, large: {at}; at least τ/2 in all three up to τ = {reached[-1]}."
        )
    verdict = HOLDS if min(reached) >= 500 else PARTLY if max(reached) >= 10 else FAILS
    return Claim("4.2", "Both algorithms achieve a nice speedup property.", verdict, tuple(lines))


def _rivals(table: Speeds) -> Claim:
    lines, verdicts = [], []
    for delta in DELTAS:
        pulls, speeds = [0, 0, 0], [0, 0, 0]
        for setting, tau in product(SPREADS_42, TAUS):
            one, other = table[setting, "AP-EVT", delta, tau], table[setting, "AP-EVT_pf", delta, tau]
            pulls[_sign(_pulls(other) - _pulls(one), _hypot(one, other, "pulls_to_95_se"))] += 1
            speeds[_sign(_speed(one) - _speed(other), _hypot(one, other, "speedup_se"))] += 1
        verdicts.append(HOLDS if speeds[1] and not speeds[-1] else PARTLY if pulls[1] > pulls[-1] else FAILS)
        lines.append(
            f"δ = {delta:g}, AP-EVT against AP-EVT_pf: by pulls to 95 % better at {pulls[1]}, worse at {pulls[-1]}, "
            f"even at {pulls[0]} of {sum(pulls)} points; by speed-up better at {speeds[1]}, worse at {speeds[-1]}, "
            f"even at {speeds[0]}."
        )
    return Claim("4.2", "AP-EVT overall outperforms AP-EVT_pf.", _joined(verdicts), tuple(lines))


def _variance(table: Speeds) -> Claim:
    lines, verdicts = [], []
    for name, delta in product(("AP-EVT", "AP-EVT_pf"), DELTAS):
        counts = [0, 0, 0]
        for tau in TAUS:
            small, large = (table[setting, name, delta, tau] for setting in ("small", "large"))
            counts[_sign(_speed(large) - _speed(small), _hypot(small, large, "speedup_se"))] += 1
        verdicts.append(HOLDS if counts[1] and not counts[-1] else FAILS if counts[-1] >= counts[1] else PARTLY)
        if counts[0] == sum(counts):
            verdicts[-1] = OPEN
        lines.append(
            f"{name}, δ = {delta:g}: the speed-up at large variance is higher than at small at {counts[1]}, lower at "
            f"{counts[-1]}, even at {counts[0]} of {sum(counts)} values of τ."
        )
    return Claim("4.2", "The speedup is better when the variance is large.", _joined(verdicts), tuple(lines))


def _joined(verdicts: Sequence[str]) -> str:
    """Of several parts: all alike, or in part."""
    if len(set(verdicts)) == 1:
        return verdicts[0]
    return PARTLY if set(verdicts) & {HOLDS, PARTLY} else FAILS if FAILS in verdicts else OPEN


def _difference(one: Row, other: Row, measure: str) -> tuple[float, float]:
    error = math.hypot(one[f"{measure}_se"], other[f"{measure}_se"])
    return one[measure] - other[measure], 0.0 if math.isnan(error) else error


def _share(row: Row, measure: str) -> str:
    return f"{row[measure]:.3f} ± {row[f'{measure}_se']:.3f}"


def _sign(gap: float, error: float) -> int:
    """1, −1 or 0: a difference that counts; a line that never arrives is worse than one that does."""
    if math.isnan(gap):
        return 0
    return 1 if gap > SURE * error else -1 if gap < -SURE * error else 0


def _hypot(one: Row, other: Row, column: str) -> float:
    return math.hypot(one[column] or 0.0, other[column] or 0.0)


def _speed(row: Row) -> float:
    return row["speedup"] if row["speedup"] is not None else 0.0


def _pulls(row: Row) -> float:
    return row["pulls_to_95"] if row["pulls_to_95"] is not None else math.inf


def _shown(row: Row) -> str:
    error = f" ± {row['speedup_se']:.1f}" if row["speedup_se"] is not None else ""
    return f"{row['speedup']:.1f}{error}" if row["speedup"] is not None else "never"
