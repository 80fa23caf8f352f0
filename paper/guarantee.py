"""Why the guarantee needs the order of issue, measured; and how evidence grows.

`python -m paper guarantee` draws both; docs/explanation/guarantee.md shows the picture.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from thresher.lab import Setup, certificate, simulate, trace
from thresher.lab.pictures import BLUE, GREY, ORANGE, RED, percent, picture

from .plots import note

WORKERS = (1, 2, 5, 10, 20, 50, 100, 200)
SLOWER = (5, 20)  # how many times longer a failure takes than a success
BUDGET = 2000
RUNS = 12  # drawn
LEVEL = 10 / 0.05  # of ten arms at confidence 0.95


def bad_arm(workers: int, slower: int) -> Setup:
    """One arm of mean .45 against a bar of .5, pulled by all workers; exponential times, longer for failures."""
    return Setup(
        policy="uniform",
        family="bernoulli",
        arms=1,
        means=0.45,
        at_least=0.5,
        budget=BUDGET,
        checkpoints=(BUDGET,),
        confidence=0.95,
        delay=f"workers:{workers}:failures:{slower}",
    )


def label_by_arrival(setup: Setup, *, repetition: int, seed: int = 0) -> int:
    """The label of a setup's only arm if rewards are committed as they come back; OPEN, ABOVE or BELOW.

    Certificates must not do this: if bad rewards take longer, the first ones back are good ones, and an arm below the
    bar looks as if it were above.

    >>> sure = Setup("uniform", "bernoulli", 1, 0.5, means=1.0, budget=99, confidence=0.95, delay="workers:4")
    >>> label_by_arrival(sure, repetition=0) == certificate.ABOVE
    True
    """
    played = trace(setup.but(confidence=None, tolerance=0.0, policy=setup.policy), repetition=repetition, seed=seed)
    stakes, (low, high) = setup.stakes, setup.bounds
    capital = certificate.fresh_capital()
    for pull, reward in zip(played.pull, played.reward, strict=True):
        if pull < 0 and reward == reward:  # NaN: lost
            scaled = (reward - low) / (high - low)
            label = certificate.commit_to_capital(capital, stakes, scaled, scaled)
            if label != certificate.OPEN:
                return label
    return certificate.OPEN


def orders(repetitions: int, seed: int) -> Iterator[dict[str, Any]]:
    """The share of repetitions in which the arm is wrongly settled "above", by the order in which rewards count."""
    for slower in SLOWER:
        for workers in WORKERS:
            setup = bad_arm(workers, slower)
            arrival = sum(
                label_by_arrival(setup, repetition=run, seed=seed) == certificate.ABOVE for run in range(repetitions)
            )
            issue = simulate(setup, repetitions=repetitions, seed=seed).measures.mislabelled[:, -1].sum()
            yield {
                "slower": slower,
                "workers": workers,
                "repetitions": repetitions,
                "arrival": arrival / repetitions,
                "issue": float(issue) / repetitions,
            }


class Growth(NamedTuple):
    """One arm's capitals after each of its rewards, until it is settled."""

    above: list[float]
    below: list[float]


def growth(seed: int, run: int) -> Growth:
    """One of ten arms of mean .6 against a bar of .5."""
    setup = Setup(policy="uniform", family="bernoulli", arms=1, means=0.6, at_least=0.5, budget=BUDGET)
    setup = setup.but(delay="workers:1")  # the same as no delay, in machine code that exists already
    stakes = setup.but(confidence=0.95).stakes._replace(level=LEVEL)
    capital = certificate.fresh_capital()
    growth = Growth([1.0], [1.0])
    played = trace(setup, repetition=run, seed=seed)
    for reward in played.reward[::2]:  # every reward is in the trace twice: asked, told
        label = certificate.commit_to_capital(capital, stakes, reward, reward)
        growth.above.append(certificate.mean_capital(capital, 0))
        growth.below.append(certificate.mean_capital(capital, certificate.BETS))
        if label != certificate.OPEN:
            break
    return growth


def draw(rows: Sequence[dict[str, Any]], runs: Sequence[Growth], path: Path) -> None:
    """Left: evidence that grows until it crosses the level. Right: order of issue against order of arrival."""
    with picture(path, 1, 2, (10.5, 4.2)) as (_, axes):
        _growth(axes[0, 0], runs)
        _orders(axes[0, 1], rows)


def _orders(axis: Any, rows: Sequence[dict[str, Any]]) -> None:
    for slower, mark in zip(SLOWER, ("s", "o"), strict=True):
        mine = [row for row in rows if row["slower"] == slower]
        workers = [row["workers"] for row in mine]
        worst = slower == SLOWER[-1]
        for column, colour in (("arrival", RED), ("issue", BLUE)):
            style = {"color": colour, "marker": mark, "markersize": 5, "linewidth": 1.6}
            share = [row[column] for row in mine]
            axis.plot(workers, share, markerfacecolor=colour if worst else "white", **style)
        at = next((row["workers"], row["arrival"]) for row in mine if row["workers"] == (20 if worst else 50))
        beside: dict[str, Any] = {"offset": (-8, 4), "ha": "right"} if worst else {"offset": (9, -6), "ha": "left"}
        note(axis, f"failures {slower}×\nslower", at, va="center", color=RED, **beside)
    axis.axhline(0.05, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
    note(axis, "allowed: 5 %", (1, 0.05), (0, 4), color="#505050")
    note(axis, "counted as they come back", (1, 0.93), color=RED, fontsize=9.5, weight="bold")
    note(axis, "counted in the order of issue", (13, -0.062), color=BLUE, fontsize=9.5, weight="bold", va="center")
    axis.set_xscale("log")
    axis.set_xticks([1, 2, 5, 10, 20, 50, 100, 200], ["1", "2", "5", "10", "20", "50", "100", "200"])
    axis.minorticks_off()
    axis.set(ylim=(-0.11, 1.04), yticks=[0, 0.25, 0.5, 0.75, 1.0])
    axis.yaxis.set_major_formatter(percent())
    label = "workers, all on one arm of mean 0.45 against 0.5"
    axis.set(xlabel=label, title="Studies that wrongly say that it reaches the bar")


def _growth(axis: Any, runs: Sequence[Growth]) -> None:
    middle = sorted(runs, key=lambda run: len(run.above))[len(runs) // 2]
    for run in runs:
        strong = run is middle
        style = {"linewidth": 1.8 if strong else 0.8, "alpha": 1.0 if strong else 0.35, "zorder": 3 if strong else 2}
        axis.plot(range(len(run.above)), run.above, color=BLUE, **style)
        axis.plot(len(run.above) - 1, run.above[-1], "o", color=BLUE, markersize=6.5 if strong else 3.5, zorder=4)
    pulls = len(middle.above) - 1
    axis.plot(range(pulls + 1), middle.below, color=ORANGE, linewidth=1.6)
    note(axis, "its capital\nfor missing it", (pulls, middle.below[-1]), (6, -9), color="#8A5F00")
    note(axis, f"settled after {pulls:,} pulls", (pulls, middle.above[-1]), (0, 8), color=BLUE)
    axis.axhline(LEVEL, color=GREY, linewidth=1.0, linestyle=(0, (4, 3)))
    note(axis, "the level: K / risk = 10 / 0.05 = 200", (4, 330), color="#505050")
    axis.set(yscale="log", ylim=(0.15, 1200), xlim=(0, 1.06 * max(len(run.above) for run in runs)))
    axis.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axis.minorticks_off()
    title = "Capital for reaching the bar: twelve such arms"
    axis.set(xlabel="pulls of an arm of mean 0.6 against 0.5", title=title)
