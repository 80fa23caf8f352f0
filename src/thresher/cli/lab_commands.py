"""`thresher simulate`, `plan` and `compare`. Nothing heavy is imported before a command runs."""

import json
import math
from typing import TYPE_CHECKING, Any

import click

from ..core.parameters import BARS
from ..core.sentences import question_of
from ..errors import InvalidInput
from ..text.phrasing import plural
from ..text.quantities import duration
from . import lab_options as lab
from .error_wording import naming_options
from .options import Number, PolicyName, Whole, of_parameter
from .output import put, say, standard_output

if TYPE_CHECKING:
    from ..lab.comparing import Comparison
    from ..lab.planning import Plan
    from ..lab.result import Certificates, Result


# Tables for people, of the laboratory's commands.

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
    title = f"{question_of(setup.spec)} {setup.rules}, {setup.family} {'arm' if setup.arms == 1 else 'arms'}, {delay}"
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
    title = f"{question_of(plan.setup.spec)} {arms}, {plural(plan.workers, 'worker')}"
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


@click.command()
@click.option(
    "--policy",
    type=PolicyName(),
    help="How to choose the next arm, or module:function [default: anytime-evt; with --confidence balanced].",
)
@click.option(
    "--family", help="uniform, bernoulli, beta, normal, clipped or constant [default: uniform; with --cases bernoulli]."
)
@lab.ARMS
@lab.QUESTION
@lab.MEANS
@lab.SPREAD
@lab.BOUNDS
@click.option("--recorded", type=click.Path(), help="Resample the rewards in a CSV with arm,reward, or in an export.")
@click.option(
    "--matrix",
    type=click.Path(),
    help="Replay an eval: CSV with a row per arm and a column per case, or with arm,case,reward, or an export.",
)
@click.option(
    "--cases", type=Whole(1), help="Each arm meets this many cases, each once; drawn again in each repetition."
)
@of_parameter("find")
@click.option("--budget", type=Whole(), help="Pulls [default: 20000; with cases, all cases of all arms].")
@lab.CHECKPOINTS
@click.option("--repetitions", type=Whole(), default=100, help="How many studies to simulate.")
@lab.DELAY
@click.option("--seconds-per-pull", type=Number(), default=1.0, help="On the simulated clock.")
@click.option(
    "--confidence",
    help="off, or a number: settle arms at this confidence [default: off; with cases, a rate or --find 0.95].",
)
@click.option(
    "--lost",
    type=lab.PAIR,
    default="0:0",
    help="Share of pulls lost, BAD:GOOD: with a reward below the bar, and with another.",
)
@click.option("--hung", type=Number(), default=0.0, help="Share of pulls that never return.")
@click.option("--failure", default="worst", help="What a lost pull counts as: worst or ignore.")
@lab.THREADS
@lab.SEED
@lab.OUTPUT
def simulate(
    recorded: str | None,
    matrix: str | None,
    style: str,
    threads: int | None,
    seed: int,
    repetitions: int,
    **given: Any,
) -> None:
    r"""Simulate a policy many times on arms whose means are known, and measure how often its labels are right.

    The defaults are those of Section 4.1 of the paper, with small variance.

    Examples:
      thresher simulate --policy evt --repetitions 1000
      thresher simulate --policy ap-evt --delay fifo:100 --format json
      thresher simulate --family bernoulli --means 0.7:0.99 --at-least 0.9 \
        --arms 40 --budget 4000
      thresher simulate --delay workers:16:failures:5 --seconds-per-pull 3
      thresher simulate --recorded results.csv --at-least 0.5 --budget 2000
      thresher simulate --family bernoulli --means 0.7:0.99 --at-least 0.9 \
        --arms 40 --confidence 0.95 --tolerance 0.02
      thresher simulate --cases 500 --means 0.7:0.99 --at-least 0.9 --arms 40 \
        --guarantee rate
      thresher simulate --matrix last-month.csv --at-least 0.9
      thresher simulate --matrix last-month.csv --baseline current --margin 0.02
      thresher simulate --family normal --means 0.1:0.3 --spreads 0.05 \
        --at-most 0.25 --share 0.95 --confidence 0.95
    """
    from ..lab import delays
    from ..lab import simulate as play
    from ..lab.result import progress_bar

    certifies = bool(given["cases"] or matrix or given["find"] is not None or given["guarantee"] != "all")
    same = (
        "policy", "arms", "means", "spreads", "bounds", "budget", "checkpoints", "tolerance", "lost", "hung", "failure",
        "guarantee", "find",
    )  # fmt: skip
    with naming_options(given):
        setup = lab.setup_of(
            recorded,
            matrix,
            family=given["family"] or ("bernoulli" if given["cases"] else "uniform"),
            cases=given["cases"] or 0,
            delay=delays.parse(given["delay"], seconds=given["seconds_per_pull"]),
            confidence=lab.confidence_in(given["confidence"] or ("0.95" if certifies else "off")),
            **{name: given[name] for name in same},
            **lab.question_in(given),
        )

    def work() -> "Result":
        with progress_bar("simulating", max(1, repetitions) * setup.budget) as progress:
            return play(setup, repetitions=repetitions, seed=seed, threads=threads, progress=progress)

    result = lab.whole(work)
    if style == "table":
        print_result(result)
    else:
        print_data(style, result.rows(), result.to_json())


@click.command()
@lab.QUESTION
@click.option("--arms", type=Whole(), help="How many arms.")
@click.option("--family", default="bernoulli", help="bernoulli, uniform, beta, normal or clipped.")
@click.option("--means", type=lab.RANGE, help="Where you expect the arms' means: LO:HI, or A,B,C,…")
@lab.SPREAD
@lab.BOUNDS
@click.option(
    "--pilot",
    type=click.Path(),
    help="Instead of --arms and --means: rewards so far, as CSV with arm,reward, or an export.",
)
@click.option("--cases", type=Whole(1), help="Each arm is to be judged by its mean on this many cases, an eval set.")
@click.option(
    "--policy",
    type=PolicyName(),
    help="The policy to plan for, or module:function [default: balanced; anytime-evt with --confidence off].",
)
@click.option("--confidence", default="0.95", help="Settle arms at this confidence, or off.")
@click.option("--workers", type=Whole(), default=1, help="How many pulls run at once.")
@click.option("--seconds-per-pull", type=Number(), default=1.0, help="How long a pull takes.")
@click.option("--service", default="constant", help="constant, exponential, lognormal:0.5, failures:5.")
@lab.PICTURE
@lab.THREADS
@lab.SEED
@lab.OUTPUT
def plan(
    pilot: str | None, picture: str | None, force: bool, style: str, threads: int | None, seed: int, **given: Any
) -> None:
    r"""Estimate how many pulls, and how much time, a problem will need.

    Simulates your problem with the default policy, with equal allocation, and with equal allocation that skips settled
    arms: how many pulls until the labels are right, and until they are settled. With --cases, it also says what that
    is of a full run. From a pilot, each simulated study draws the arms anew from what the pilot leaves possible.

    Examples:
      thresher plan --at-least 0.9 --arms 40 --means 0.7:0.99 --workers 16 \
        --seconds-per-pull 3
      thresher plan --at-least 0.9 --arms 40 --means 0.7:0.99 --tolerance 0.02
      thresher plan --at-least 0.9 --arms 40 --means 0.7:0.99 --cases 500 \
        --guarantee rate
      thresher plan --at-least 0.5 --pilot results.csv --picture plan.png
      thresher plan --baseline 0 --margin 0.05 --arms 10 --means 0.5:0.8
    """
    from ..lab import Setup, pictures, planning
    from ..lab.planning import pilot_setup

    if pilot is None and (given["arms"] is None or given["means"] is None):
        missing = "--arms" if given["arms"] is None else "--means"
        raise InvalidInput(missing, rule="is missing", remedy="give it, or --pilot with the rewards so far")
    if pilot is not None and (given["arms"] is not None or given["means"] is not None):
        raise InvalidInput("pilot", pilot, "already gives the arms and their rewards", "leave out --arms and --means")
    with naming_options(given):
        shared = {
            **{name: given[name] for name in ("policy", "tolerance", "guarantee", "bounds")},
            **lab.question_in(given),
            "confidence": lab.confidence_in(given["confidence"]),
            "cases": given["cases"] or 0,
            "budget": 10**12,  # not used: the plan finds the number of pulls
        }
        if all(shared[name] is None for name in (*BARS, "baseline", "margin", "ratio")):
            raise InvalidInput("--at-least", rule="is missing", remedy="give it, --at-most, or a --baseline")
        if pilot is not None:
            data, shared["cases"] = lab.pilot_in(pilot, shared["cases"])
            shared["baseline"] = lab.numbered(shared["baseline"], data.names)
            if data.lost:
                share = f"{data.lost:,} of the pilot's {data.pulls:,} pulls"
                say(f"{share} were lost or are pending; the plan loses the same share")
            setup = pilot_setup(data, **shared)
        else:
            shared["baseline"] = lab.numbered(shared["baseline"], ())
            setup = Setup(**shared, **{name: given[name] for name in ("family", "arms", "means", "spreads")})
    timing = {"workers": given["workers"], "seconds": given["seconds_per_pull"], "service": given["service"]}

    def work() -> "Plan":
        return planning.plan(setup, seed=seed, threads=threads, **timing)

    with naming_options(given):
        found = lab.drawn(picture, work, pictures.draw_plan, force=force)
    if style == "table":
        print_plan(found)
    else:
        full = {} if found.full_run is None else {"full_run": found.full_run.to_json()}
        print_data(style, found.rows(), {"format": 1, "workers": found.workers, **full, "needs": found.rows()})


# ``thresher compare``: several policies on the same draws. Nothing heavy is imported before the command runs.

CLEAR = 3  # standard errors at which a difference is marked
BY_CHANCE = math.erfc(CLEAR / math.sqrt(2.0))  # how often that happens between equal policies: 1 in 370
ENOUGH = 100  # repetitions without which the standard errors are too uncertain to mark anything
HELP = """Compare policies: how often their labels are right after so many pulls, on the same arms and the same rewards.

Every repetition draws arms and rewards once, for all policies: the n-th pull of an arm gives each of them the same
reward. So the differences from the first policy, with their standard errors, are known far better than the figures
themselves. A * marks differences of at least 3 standard errors; in a table of many cells, a few may be chance, and the
last line says how many to expect. A POLICY is a name, such as evt, or module:function for a score of your own.

Examples:
  thresher compare --policy evt --policy mine:score
  thresher compare --policy anytime-evt --policy uniform --policy mine:score \\
    --family bernoulli --picture mine.png
  thresher compare --policy ap-evt --policy mine:score --delay fifo:100 \\
    --repetitions 10000 --format csv
  thresher compare --policy balanced --policy mine:score --confidence 0.95 \\
    --arms 40 --means 0.7:0.99 --at-least 0.9
"""


@click.command(help=HELP)
@click.option(
    "--policy", "policies", type=PolicyName(), multiple=True, help="A policy; repeat it. The first is the reference."
)
@click.option(
    "--family",
    "kinds",
    multiple=True,
    help="uniform, bernoulli, beta, normal, clipped or constant; repeat it [default: the first five; with --confidence "
    "bernoulli, beta and clipped].",
)
@lab.ARMS
@click.option("--at-least", type=Number(), default=0.7, help="The bar that an arm's mean must reach.")
@lab.MEANS
@lab.SPREAD
@click.option("--budget", type=Whole(), default=20_000, help="Pulls.")
@lab.CHECKPOINTS
@lab.DELAY
@click.option("--confidence", default="off", help="off, or a number: settle arms at this confidence.")
@click.option("--repetitions", type=Whole(), default=1000, help="How many studies to simulate with each policy.")
@lab.PICTURE
@lab.THREADS
@lab.SEED
@lab.OUTPUT
def compare(picture: str | None, style: str, force: bool, **given: Any) -> None:
    """Compare, print, and draw."""
    from ..lab import comparing, pictures
    from ..lab.result import progress_bar

    words = {**given, "policy": None, "family": None}  # options that may be given several times
    with naming_options(words):
        asked = {
            **{
                name: given[name] for name in ("arms", "at_least", "means", "spreads", "budget", "checkpoints", "delay")
            },
            "confidence": lab.confidence_in(given["confidence"]),
        }
        if "recorded" in given["kinds"]:
            raise InvalidInput("--family", "recorded", "compare draws its arms", "choose another family")
        kinds = list(dict.fromkeys(given["kinds"] or comparing.families(asked["confidence"])))
        many = len(comparing.named(given["policies"])) * len(kinds)

    def work() -> "list[Comparison]":
        fixed = {"kinds": kinds, **asked, **{name: given[name] for name in ("repetitions", "seed", "threads")}}
        comparing.prepared(given["policies"], **fixed, shows=True)
        with progress_bar("comparing", many * given["repetitions"] * given["budget"]) as progress:
            return comparing.compare(given["policies"], **fixed, progress=progress)

    with naming_options(words):
        found = lab.drawn(picture, work, pictures.draw_comparison, force=force)
    if style == "table":
        _print(found)
    else:
        rows = [row for one in found for row in one.rows()]
        settings = {name: given[name] for name in ("arms", "budget", "delay", "repetitions", "seed")}
        print_data(style, rows, {"format": 1, "at_least": given["at_least"], **settings, "results": rows})


def _print(found: "list[Comparison]") -> None:
    """A table for each family: the first policy's figures, and how far the others are from them."""
    from rich.console import Console
    from rich.table import Table

    console, marks = Console(file=standard_output()), found[0].first.repetitions >= ENOUGH
    for one in found:
        first, *others = one.results
        certifies = one.first.setup.certifies
        measures = {"arms right": "accuracy", **({"arms settled": "settled"} if certifies else {})}
        for title, measure in measures.items():
            table = Table(title=f"{one.family} arms: {title}", title_justify="left")
            for name in ("pulls", first, *(f"{other} − {first}" for other in others)):
                table.add_column(name, justify="right", overflow="fold")
            rows = list(one.rows())
            for index, pulls in enumerate(one.pulls):
                mine = [row for row in rows if row["pulls"] == pulls]
                base = within(mine[0][measure], mine[0][f"{measure}_se"])
                apart = [
                    _difference(row[f"{measure}_difference"], row[f"{measure}_difference_se"], marks=marks)
                    for row in mine[1:]
                ]
                table.add_row(f"{pulls:,}", base, *apart, end_section=index == len(one.pulls) - 1)
            console.print(table)
    words = f"{found[0].first.repetitions:,} repetitions, seed {found[0].first.seed}, the same draws for all policies"
    console.print(f"{words}; ± is one standard error; {_marks(found)}", highlight=False)


def _marks(found: "list[Comparison]") -> str:
    """What the stars mean, and how many of them equal policies would get: every cell is another chance."""
    if found[0].first.repetitions < ENOUGH:
        return f"nothing is marked * below {ENOUGH} repetitions: the errors themselves are not known well enough"
    measures = 2 if found[0].first.setup.certifies else 1
    cells = measures * sum((len(one.results) - 1) * len(one.pulls) for one in found)
    chance = f"{cells * BY_CHANCE:.2g} of these {cells}" if cells > 1 else f"one in {1 / BY_CHANCE:.0f}"
    return (
        f"* marks differences of at least {CLEAR} standard errors: between equal policies, {chance} would be marked by "
        "chance, on average"
    )


def _difference(value: float, error: float | None, *, marks: bool) -> str:
    text = within(value, error, sign="+").replace("+0.00%", "0.00%").replace("-0.00%", "0.00%").replace("-", "−")
    return f"{text}*" if marks and error is not None and abs(value) >= CLEAR * error and value != 0 else text
