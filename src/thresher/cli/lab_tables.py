"""Tables for people, of the laboratory's commands."""

import json
from typing import TYPE_CHECKING, Any

from ..core.sentences import question
from ..text.phrasing import plural
from ..text.quantities import duration
from . import put, standard_output

if TYPE_CHECKING:
    from ..lab.planning import Plan
    from ..lab.result import Certificates, Result
    from ..lab.setup import Setup

NINE_OF_TEN = "nine of ten"  # the heading of the range


def print_data(style: str, rows: list[dict[str, Any]], data: dict[str, Any]) -> None:
    """Print rows as CSV, or all data as JSON."""
    from ..lab.result import csv_text

    put(json.dumps(data, indent=1) if style == "json" else csv_text(rows), end="\n" if style == "json" else "")


def within(share: float, error: float | None, *, sign: str = "") -> str:
    """A share with its standard error, if that is known.

    >>> within(0.5, 0.01), within(0.5, None)
    ('50.00% ± 1.00%', '50.00%')
    """
    return f"{share:{sign}.2%}" + ("" if error is None else f" ± {error:.2%}")


def print_result(result: "Result") -> None:
    """Print what was measured at each checkpoint, and a summary below."""
    from rich.console import Console
    from rich.table import Table

    setup = result.setup
    delay = "every reward seen at once" if str(setup.timing) == "none" else f"delay {setup.timing}"
    title = f"{asked_by(setup)} {setup.rules}, {setup.family} {'arm' if setup.arms == 1 else 'arms'}, {delay}"
    shares = {"arms right": "accuracy", "all right": "success"}
    if result.certificates is not None:
        title += f", confidence {setup.confidence:g}" + (", error rate" if setup.ranks else "")
        shares |= {"arms settled": "settled", "wrongly settled": "any_wrong_settled"}
    table = Table(title=title, title_justify="left")
    for name in ("pulls", *shares, *(("seconds",) if setup.timing.timed else ())):
        table.add_column(name, justify="right")
    for row in result.rows():
        cells = [f"{row['pulls']:,}"]
        for name in shares.values():
            cells.append(within(row[name], row[f"{name}_se"]))
        table.add_row(*cells, *([f"{row['seconds']:,.1f}"] if "seconds" in row else []))
    console = Console(file=standard_output())
    console.print(table)
    console.print("; ".join(_words(result)), highlight=False)


def asked_by(setup: "Setup") -> str:
    """What a setup asks, in words."""
    from ..lab.setup import look_of

    return question(look_of(setup), setup.contenders)


def _words(result: "Result") -> list[str]:
    words = [f"{plural(result.repetitions, 'repetition')}, seed {result.seed}"]
    if result.certificates is not None:
        words += _certified(result.certificates, is_replay=result.setup.recorded is not None)
    if result.measures.in_flight.max() > 0:
        words.append(f"at most {int(result.measures.in_flight.max()):,} unobserved (τ)")
        words.append(f"η {float(result.measures.ratio.mean()):.2f} on average")
    if result.idle is not None:
        words.append(f"workers idle {result.idle:.1%} of the time")
    words.append(f"{result.pulls_per_second / 1e6:,.1f} million pulls a second")
    return words


def _certified(found: "Certificates", *, is_replay: bool) -> list[str]:
    """When everything was settled or found, what that is of a full run, and how many labels of each list are wrong."""
    used, error = found.used
    after = f"{used:,.0f}" + ("" if error is None else f" ± {error:,.0f}") + " pulls"
    if found.find is not None:
        words = [f"{plural(found.find, 'arm')} found in {found.found:.1%} of repetitions, which took {after}"]
    elif found.finished < 1.0:
        words = [f"all arms settled in {found.finished:.1%} of repetitions within the budget"]
    else:
        words = [f"all arms settled after {after}"]
    share = used / found.full_run if found.full_run else 0.0
    if found.full_run and is_replay:
        words.append(f"thresher would have needed {share:.1%} of the {found.full_run:,} recorded pulls")
    elif found.full_run:
        words.append(f"{share:.1%} of a full run, which takes {found.full_run:,} pulls")
    for name, wrong in found.false_shares.items():
        words.append(f"of the arms settled {name}, {within(*wrong)} were wrong")
    return words


def print_plan(plan: "Plan") -> None:
    """Print what each target takes, with a bar for each policy."""
    from rich.console import Console
    from rich.table import Table

    from ..lab.planning import ALL_SETTLED, ROUGH, Pilot

    is_pilot = isinstance(plan.setup.recorded, Pilot)
    policies = list(plan.curves)
    most = max((need.pulls or need.beyond) for need in plan.needs)
    arms = "arms of the pilot" if is_pilot else f"{plan.setup.family} arms"
    title = f"{asked_by(plan.setup)} {arms}, {plural(plan.workers, 'worker')}"
    title += ", error rate" if plan.setup.ranks else ""
    console = Console(file=standard_output())
    wide, narrow = console.width >= 110, console.width < 90  # there is room for bars; there is little room
    table = Table(title=title, title_justify="left", padding=(0, 0 if narrow else 1))
    folded = ("to have", "with") if narrow else ("to have",)
    for name in ("to have", "with", "pulls", NINE_OF_TEN, "time", "runs", *([""] if wide else [])):
        side: Any = "left" if name in ("to have", "with", "") else "right"
        table.add_column(name, justify=side, no_wrap=name not in folded)
    for need in plan.needs:
        beyond = f"> {need.beyond:,}"
        low, pulls, high = (beyond if end is None else f"{end:,}" for end in (need.low, need.pulls, need.high))
        bar = "█" * max(1, round(24 * (need.pulls or need.beyond) / most)) + ("…" if need.pulls is None else "")
        target = need.target if need.policy == policies[0] else ""
        time = "" if need.seconds is None else duration(need.seconds)
        ends = "" if need.low is None else f"{low} – {high}"
        cells = (target, need.policy, pulls, ends, time, f"{need.repetitions:,}")
        table.add_row(*cells, *([bar] if wide else []))
    console.print(table)
    if plan.full_run is not None:
        console.print(plan.full_run.sentence(), highlight=False)
    ranges = f"{NINE_OF_TEN}: where the number of pulls lies in nine of ten resamples of the runs"
    ranges += "; for arms settled, in nine of ten runs." if plan.setup.certifies else "."
    if is_pilot:
        ranges += " Each run draws the arms from what the pilot leaves possible."
    console.print(ranges, highlight=False)
    fewest = min(need.repetitions for need in plan.needs)
    if fewest < ROUGH:
        words = f"runs: the number of simulated studies. Figures from few runs (here as few as {fewest}) are rough."
        console.print(words, highlight=False)
    if any(need.pulls is None and need.target == ALL_SETTLED[0] for need in plan.needs) and not plan.setup.tolerance:
        words = "An arm near the bar is settled late or never; with a --tolerance, it is settled as close."
        console.print(words, highlight=False)
