"""The claims of Sections 4.1 and 4.2, each compared with the measured figures, with a verdict.

Every verdict comes from one rule, `judged`. A claim compares curves at many points, so some points differ by chance;
a curve counts as better than another only if chance cannot explain it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from .figures import DELTAS, PULLS_41, SPREADS_41, SPREADS_42, TAUS, Row

HOLDS, PARTLY, FAILS, OPEN = "holds", "holds in part", "does not hold", "not decided by these data"
CLEAR = 2.0  # standard errors at which a single point is counted as better or worse
BEYOND = 4.0  # at which one point is enough: by chance one in 30,000 on either side, and a claim has dozens of points
OFTEN = 0.2  # the share of points that is enough; by chance it would be one in forty
FEW = 3  # the fewest points that are enough: neighbours share repetitions, so two may be the same luck
OVERALL = 2.5  # standard errors at which the mean over all points is enough
NICE = 0.5  # the share of τ that we call a nice speed-up
RULE = (
    f"A point is counted as better or worse when the difference is more than {CLEAR:g} standard errors. A claim has "
    f"points for it, or against it, only when one of them lies beyond {BEYOND:g} standard errors, or at least "
    f"{OFTEN:.0%} of all points, and {FEW}, are counted so, or the mean over the points is beyond {OVERALL:g} of its "
    "own. It holds with points for it and none against it, holds in part with both, does not hold with only points "
    "against it, and is not decided with neither. A claim with several parts holds if all of them do, holds in part "
    "if they differ, and is not decided while an undecided part could change the verdict."
)


@dataclass(frozen=True)
class Tally:
    """Differences at many points, and the verdict."""

    better: int
    worse: int
    even: int
    verdict: str

    @property
    def points(self) -> int:
        return self.better + self.worse + self.even


def judged(differences: Iterable[tuple[float, float]]) -> Tally:
    """The verdict on "above zero" for differences with their standard errors, by RULE.

    A difference that is not finite (one line never reaches the level) is counted, but is never enough by itself.

    >>> judged([(0.05, 0.01), (0.0, 0.01)]).verdict, judged([(0.02, 0.01), (-0.021, 0.01)] * 2 + [(0, 1)] * 7).verdict
    ('holds', 'not decided by these data')
    """
    points = list(differences)
    known = [(gap, error) for gap, error in points if math.isfinite(gap)]
    mean = sum(gap for gap, _ in known)
    whole = sum(error for _, error in known)  # points share repetitions, so their errors add up
    counts = []
    sides = []
    for sign in (1.0, -1.0):
        count = sum(sign * gap > CLEAR * error for gap, error in points)
        far = any(sign * gap > BEYOND * error for gap, error in known)
        counts.append(count)
        sides.append(far or count >= max(FEW, OFTEN * len(points)) or sign * mean > OVERALL * whole)
    verdict = {(True, False): HOLDS, (True, True): PARTLY, (False, True): FAILS}.get((sides[0], sides[1]), OPEN)
    return Tally(counts[0], counts[1], len(points) - sum(counts), verdict)


@dataclass(frozen=True)
class Claim:
    """One claim, in the paper's words, and what was measured."""

    section: str
    words: str
    verdict: str
    measured: tuple[str, ...]


def claims_41(rows: Sequence[Row]) -> list[Claim]:
    """The three observations below Figure 1."""
    table = _by(rows, "n")
    duels = []
    for pair in (("EVT", "ATP"), ("EVT_pf", "ATP"), ("EVT", "EVT_pf")):
        (verdict, text), (_, more) = (_duel(table, *pair, measure) for measure in ("success", "accuracy"))
        duels.append((verdict, (text, more)))
    (evt, evt_texts), (free, free_texts), (own, own_texts) = duels
    return [
        Claim("4.1", "EVT and EVT_pf outperform ATP overall.", joined([evt, free]), evt_texts + free_texts),
        Claim("4.1", "EVT overall outperforms EVT_pf.", own, own_texts),
        _advantage(table),
    ]


def besides(rows: Sequence[Row]) -> list[str]:
    """What Figure 1 shows but the paper does not say."""
    table = _by(rows, "n")
    pairs = (("uniform", "ATP"), ("uniform", "EVT_pf"), ("anytime EVT", "EVT"))
    return [_duel(table, *pair, "accuracy")[1] for pair in pairs]


def added_41(rows: Sequence[Row], added: Iterable[str]) -> list[str]:
    """A user's policies against EVT and ATP."""
    table = _by(rows, "n")
    duels = (
        (name, other, *_duel(table, name, other, measure))
        for name, other, measure in product(added, ("EVT", "ATP"), ("success", "accuracy"))
    )
    return [f"That {name} outperforms {other} **{_spoken(verdict)}**. {text}" for name, other, verdict, text in duels]


def added_42(rows: Sequence[Row], added: Iterable[str]) -> list[str]:
    """A user's policies against AP-EVT, with delayed rewards."""
    table = _by(rows, "delta", "tau")
    verdicts = []
    for name, delta in product(added, DELTAS):
        pulls, _, text = _race(table, name, "AP-EVT", delta)
        verdicts.append(f"That {name} outperforms AP-EVT at δ = {delta:g} **{_spoken(pulls)}**, by pulls. {text}")
    return verdicts


def _by(rows: Sequence[Row], *columns: str) -> dict[Any, Row]:
    """The rows by setting, algorithm and these columns."""
    return {tuple(row[name] for name in ("setting", "algorithm", *columns)): row for row in rows}


def _spoken(verdict: str) -> str:
    return f"is {verdict}" if verdict == OPEN else verdict


def _duel(table: dict[tuple[str, str, int], Row], first: str, other: str, measure: str) -> tuple[str, str]:
    """One algorithm against another over all settings and numbers of pulls: the verdict, and the text."""
    pairs = {key: (table[key[0], first, key[1]], table[key[0], other, key[1]]) for key in product(SPREADS_41, PULLS_41)}
    tally = judged(_difference(*pair, measure) for pair in pairs.values())
    examples = [
        f"{setting} {_share(first, measure)} against {_share(second, measure)}"
        for (setting, pulls), (first, second) in pairs.items()
        if pulls == 20_000
    ]
    words = {"success": "all arms right", "accuracy": "share of arms right"}[measure]
    text = (
        f"{first} against {other}, {words}: better at {tally.better}, worse at {tally.worse}, even at {tally.even} of "
        f"{tally.points} points; at n = 20,000: {'; '.join(examples)}."
    )
    return tally.verdict, text


def _advantage(table: dict[tuple[str, str, int], Row]) -> Claim:
    """EVT_pf over ATP, averaged over the numbers of pulls (which share repetitions, so their errors add up)."""
    means, errors = {}, {}
    for setting in SPREADS_41:
        duels = ((table[setting, "EVT_pf", pulls], table[setting, "ATP", pulls]) for pulls in PULLS_41)
        pairs = [_difference(*duel, "success") for duel in duels]
        means[setting] = sum(gap for gap, _ in pairs) / len(pairs)
        errors[setting] = sum(error for _, error in pairs) / len(pairs)
    others = ("median", "large")
    tally = judged((means["small"] - means[spread], math.hypot(errors["small"], errors[spread])) for spread in others)
    figures = "; ".join(f"{setting} {means[setting]:+.3f} ± {errors[setting]:.3f}" for setting in SPREADS_41)
    words = "The advantage of EVT_pf over ATP is more obvious when the variance is small."
    text = f"Difference in the share of runs with all arms right, mean over n: {figures}."
    return Claim("4.1", words, tally.verdict, (text,))


def claims_42(rows: Sequence[Row]) -> list[Claim]:
    """The three observations below Figure 2."""
    table = _by(rows, "delta", "tau")
    return [_nice(table), _rivals(table), _variance(table)]


Speeds = dict[tuple[str, str, float, int], Row]


def _nice(table: Speeds) -> Claim:
    lines, verdicts = [], []
    for name, delta in product(("AP-EVT", "AP-EVT_pf"), DELTAS):
        rows = [table[setting, name, delta, tau] for setting, tau in product(SPREADS_42, TAUS)]
        verdicts.append(judged((_speed(row) - NICE * row["tau"], row["speedup_se"] or 0.0) for row in rows).verdict)
        up_to = [
            tau for tau in TAUS if all(_speed(table[setting, name, delta, tau]) >= NICE * tau for setting in SPREADS_42)
        ]
        at = "; ".join(
            f"τ = {tau}: {', '.join(_shown(table[setting, name, delta, tau]) for setting in SPREADS_42)}"
            for tau in (10, 100, 500)
        )
        last = max(up_to, default=0)
        lines.append(f"{name}, δ = {delta:g}, small, median, large: {at}; at least τ/2 in all three up to τ = {last}.")
    return Claim("4.2", "Both algorithms achieve a nice speedup property.", joined(verdicts), tuple(lines))


def _rivals(table: Speeds) -> Claim:
    lines, verdicts = [], []
    for delta in DELTAS:
        *verdicts_of_race, text = _race(table, "AP-EVT", "AP-EVT_pf", delta)
        verdicts += verdicts_of_race
        lines.append(text)
    return Claim("4.2", "AP-EVT overall outperforms AP-EVT_pf.", joined(verdicts), tuple(lines))


def _race(table: Speeds, name: str, other: str, delta: float) -> tuple[str, str, str]:
    """One algorithm against another over all settings and τ: the verdicts by pulls and by speed-up, and the text."""
    pairs = [
        tuple(table[setting, algorithm, delta, tau] for algorithm in (name, other))
        for setting, tau in product(SPREADS_42, TAUS)
    ]
    pulls = judged((_gap(_pulls(rival), _pulls(own)), _hypot(own, rival, "pulls_to_95_se")) for own, rival in pairs)
    speeds = judged((_gap(_speed(own), _speed(rival)), _hypot(own, rival, "speedup_se")) for own, rival in pairs)
    text = (
        f"δ = {delta:g}, {name} against {other}: by pulls to 95 % better at {pulls.better}, worse at "
        f"{pulls.worse}, even at {pulls.even} of {pulls.points} points; by speed-up better at {speeds.better}, "
        f"worse at {speeds.worse}, even at {speeds.even}."
    )
    return pulls.verdict, speeds.verdict, text


def _variance(table: Speeds) -> Claim:
    lines, verdicts = [], []
    for name, delta in product(("AP-EVT", "AP-EVT_pf"), DELTAS):
        pairs = [tuple(table[setting, name, delta, tau] for setting in ("small", "large")) for tau in TAUS]
        tally = judged(
            (_gap(_speed(large), _speed(small)), _hypot(small, large, "speedup_se")) for small, large in pairs
        )
        verdicts.append(tally.verdict)
        lines.append(
            f"{name}, δ = {delta:g}: the speed-up at large variance is higher than at small at {tally.better}, lower "
            f"at {tally.worse}, even at {tally.even} of {tally.points} values of τ: {tally.verdict}."
        )
    return Claim("4.2", "The speedup is better when the variance is large.", joined(verdicts), tuple(lines))


def joined(verdicts: Sequence[str]) -> str:
    """The verdict on several parts, if the undecided ones cannot change it; otherwise undecided."""
    decided = set(verdicts) - {OPEN}
    if len(decided) > 1 or PARTLY in decided:
        return PARTLY
    return OPEN if OPEN in verdicts else verdicts[0]


def _difference(row: Row, other: Row, measure: str) -> tuple[float, float]:
    """The difference and its error; shares of 0 or 1 have an error too, of about one repetition."""
    least = 1.0 / row["repetitions"] if measure == "success" else 0.0
    error = math.hypot(row[f"{measure}_se"], other[f"{measure}_se"])
    return row[measure] - other[measure], least if math.isnan(error) else max(error, least)


def _share(row: Row, measure: str) -> str:
    return f"{row[measure]:.3f} ± {row[f'{measure}_se']:.3f}"


def _gap(value: float, other: float) -> float:
    """A difference; two lines that never reach the level are even."""
    return 0.0 if value == other else value - other


def _hypot(row: Row, other: Row, column: str) -> float:
    return math.hypot(row[column] or 0.0, other[column] or 0.0)


def _speed(row: Row) -> float:
    return row["speedup"] if row["speedup"] is not None else -math.inf


def _pulls(row: Row) -> float:
    return row["pulls_to_95"] if row["pulls_to_95"] is not None else math.inf


def _shown(row: Row) -> str:
    error = f" ± {row['speedup_se']:.1f}" if row["speedup_se"] is not None else ""
    return f"{row['speedup']:.1f}{error}" if row["speedup"] is not None else "never"


def page(judged: Sequence[Claim], more: Sequence[str], repetitions: int, seed: int) -> str:
    """The claims as Markdown: a summary, then the measurements."""
    lines = [
        "# The paper's claims, measured",
        "",
        f"Written by `python -m paper` with {repetitions:,} repetitions and seed {seed}. ± is one standard error over "
        "repetitions. Verdicts on Section 4.1 use all arms right, the paper's measure; a speed-up is called nice "
        "if it is at least τ/2.",
        "",
        RULE,
        "",
        "| section | claim | verdict |",
        "|---|---|---|",
        *(f"| {claim.section} | {claim.words} | **{claim.verdict}** |" for claim in judged),
    ]
    for claim in judged:
        lines += ["", f"## {claim.section}: {claim.words}", "", f"Verdict: **{claim.verdict}**.", ""]
        lines += [f"- {line}" for line in claim.measured]
    if more:
        lines += ["", "## Not in the paper", "", *(f"- {line}" for line in more)]
    return "\n".join(lines) + "\n"
