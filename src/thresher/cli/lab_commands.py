"""`thresher simulate`, `plan` and `compare`. Nothing heavy is imported before a command runs."""

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from ..core.parameters import BARS
from ..core.sentences import question_sentence_of, sentence_wording
from ..errors import InvalidInput
from ..run.signals import until_stop_signal
from ..text.phrasing import plural
from ..text.quantities import duration_text, percent_text
from . import lab_options as lab
from .error_wording import naming_options_in_errors
from .options import Amount, Number, PolicyName, Whole, option, option_of_parameter, storage_option, study_of_option
from .output import put_output, say, standard_output

if TYPE_CHECKING:
    from rich.table import Table

    from ..lab.comparing import Comparison
    from ..lab.planning import Plan
    from ..lab.result import Result, ResultCertificates


Made = TypeVar("Made")  # what the work returns
NINE_OF_TEN = "nine of ten"  # a heading of the plan's table


def completed_lab_command(work: Callable[[], Made]) -> Made:
    """Do all of the work and return its result. After a signal, say so in one line and exit: nothing is written."""
    results: list[Made] = []
    status = until_stop_signal(lambda: results.append(work()))
    if status:
        say("stopped; nothing was written")
        os._exit(status)  # a thread may be running machine code or compiling, and a normal exit would crash it
    return results[0]


def drawn_lab_command(
    picture: str | None, work: Callable[[], Made], draw: Callable[[Made, Path], None], *, force: bool
) -> Made:
    """The result of the work, which is also drawn to ``picture``. Raises before the work if that cannot be written."""
    if picture is None:
        return completed_lab_command(work)
    from ..lab.pictures import PICTURE, check_ready
    from ..text.files import replacing_file

    if not picture.lower().endswith((".png", ".pdf", ".svg")):
        raise InvalidInput("--picture", picture, "must end with .png, .pdf or .svg")
    check_ready()

    def work_and_draw() -> Made:
        with replacing_file(picture, PICTURE, force=force) as partial:
            result = work()
            draw(result, partial)
        return result

    return completed_lab_command(work_and_draw)


def print_lab_data(style: str, rows: list[dict[str, Any]], data: dict[str, Any]) -> None:
    """Print rows as CSV, or all data as JSON."""
    from ..lab.result import csv_text

    if style == "json":
        put_output(json.dumps(data, indent=1))
    else:
        put_output(csv_text(rows), end="")


def share_in_lab_command(share: float, error: float | None, *, sign: str = "", decimals: int = 2) -> str:
    """A share with its standard error, if that is known.

    >>> share_in_lab_command(0.5, 0.01), share_in_lab_command(0.5, None)
    ('50.00% ± 1.00%', '50.00%')
    """
    return f"{share:{sign}.{decimals}%}" + ("" if error is None else f" ± {error:.{decimals}%}")


def print_lab_result(result: "Result") -> None:
    """Print the measurements at each checkpoint, and a summary below."""
    from rich.console import Console
    from rich.table import Table

    setup = result.setup
    delay = "every reward seen at once" if str(setup.timing) == "none" else f"delay {setup.timing}"
    arms = f"{setup.family} {'arm' if setup.arms == 1 else 'arms'}"
    title = f"{question_sentence_of(setup.spec)} {setup.rules}, {arms}, {delay}"
    shares = {"arms right": "accuracy", "all right": "success"}
    if setup.within:
        shares[f"all right, ± {sentence_wording(setup.spec).distance(setup.within)}"] = "success_within"
    if result.certificates is not None:
        title += f", confidence {setup.confidence:g}" + (", error rate" if setup.ranks else "")
        shares |= {"arms settled": "settled", "wrongly settled": "any_wrong_settled"}
    console = Console(file=standard_output())
    narrow = console.width < 100 and len(shares) > 4
    table = Table(title=title, title_justify="left", padding=(0, 0 if narrow else 1))
    for name in ("pulls", *shares, *(("seconds",) if setup.timing.timed else ())):
        table.add_column(name, justify="right")
    for row in result.rows():
        cells = [f"{row['pulls']:,}"]
        for name in shares.values():
            cells.append(share_in_lab_command(row[name], row[f"{name}_se"], decimals=1 if narrow else 2))
        table.add_row(*cells, *([f"{row['seconds']:,.1f}"] if "seconds" in row else []))
    console.print(table)
    console.print("; ".join(_summary(result)), highlight=False)


def _summary(result: "Result") -> list[str]:
    """The parts of the line below the table."""
    parts = [f"{plural(result.repetitions, 'repetition')}, seed {result.seed}"]
    if result.certificates is not None:
        parts += _certified(result.certificates, is_replay=result.setup.recorded is not None)
    if result.measures.in_flight.max() > 0:
        parts.append(f"at most {int(result.measures.in_flight.max()):,} unobserved (τ)")
        parts.append(f"η {float(result.measures.ratio.mean()):.2f} on average")
    if result.idle is not None:
        parts.append(f"workers idle {result.idle:.1%} of the time")
    parts.append(f"{result.pulls_per_second / 1e6:,.1f} million pulls a second")
    return parts


def _certified(certificates: "ResultCertificates", *, is_replay: bool) -> list[str]:
    """When everything was settled or found, as a share of a full run, and how many of each list are wrong."""
    used, error = certificates.used
    after = f"{used:,.0f}" + ("" if error is None else f" ± {error:,.0f}") + " pulls"
    if certificates.find is not None:
        parts = [
            f"{plural(certificates.find, 'arm')} found in {certificates.found:.1%} of repetitions, which took {after}"
        ]
    elif certificates.finished < 1.0:
        parts = [f"all arms settled in {certificates.finished:.1%} of repetitions within the budget"]
    else:
        parts = [f"all arms settled after {after}"]
    share = used / certificates.full_run if certificates.full_run else 0.0
    if certificates.full_run and is_replay:
        parts.append(f"thresher would have needed {share:.1%} of the {certificates.full_run:,} recorded pulls")
    elif certificates.full_run:
        parts.append(f"{share:.1%} of a full run, which takes {certificates.full_run:,} pulls")
    for name, wrong in certificates.false_shares.items():
        does = "reach" if name == "reached" else "miss"
        parts.append(f"of the arms certified to {does} the bar, {share_in_lab_command(*wrong)} were wrong")
    return parts


def number_in_lab_command(value: float) -> str:
    """A number of three digits.

    >>> number_in_lab_command(15_436.2), number_in_lab_command(98.74)
    ('15,400', '98.7')
    """
    return f"{float(f'{value:.3g}'):,.6g}"


def choices_table_of_lab_command(plan: "Plan", cost: float | None, *, narrow: bool) -> "Table":
    """What certifying every arm takes, by tolerance and guarantee."""
    from rich.table import Table

    wording = sentence_wording(plan.setup.spec)
    risk = percent_text(round(1.0 - (plan.setup.confidence or 0.0), 12), exact=True)
    guarantees = {"all": "no answer wrong", "rate": f"{risk} may be wrong"}
    title = "What it takes until every arm is certified (* as you asked)"
    table = Table(title=title, title_justify="left", padding=(0, 0 if narrow else 1))
    names = ["give or take", "guarantee", "pulls", NINE_OF_TEN, *(["full run"] if plan.setup.cases else []), "time"]
    for name in [*names, *(["cost"] if cost is not None else [])]:
        is_words = name == "guarantee"  # only words are folded on a narrow screen, so that no number is cut off
        table.add_column(name, justify="left" if is_words else "right", no_wrap=not is_words)
    for choice in plan.choices:
        is_first = choice.guarantee == "all" or len({other.guarantee for other in plan.choices}) == 1
        more = "" if choice.finished == 1.0 else "> "
        ends = f"{choice.low:,} – {f'{choice.high:,}' if choice.high is not None else '…'}"
        cells = [wording.distance(choice.tolerance) if is_first else ""]
        cells += [
            guarantees[choice.guarantee] + (" *" if choice.asked else ""),
            more + number_in_lab_command(choice.pulls),
            ends,
        ]
        if choice.full_run_share is not None:
            cells.append(f"{more}{choice.full_run_share:.0%}")
        cells.append("" if choice.seconds is None else duration_text(choice.seconds))
        if cost is not None:
            cells.append(more + number_in_lab_command(cost * choice.pulls))
        table.add_row(*cells, style="bold" if choice.asked else "")
    return table


def print_plan(plan: "Plan", cost: float | None = None) -> None:
    """Print what the question takes, then the pulls and the time of each target with each policy."""
    from rich.console import Console
    from rich.table import Table

    from ..lab.planning import ALL_SETTLED, ROUGH, PlanningPilot

    is_pilot = isinstance(plan.setup.recorded, PlanningPilot)
    policies = list(plan.curves)
    most = max((need.pulls or need.beyond) for need in plan.needs)
    arms = "arms of the pilot" if is_pilot else f"{plan.setup.family} arms"
    title = f"{question_sentence_of(plan.setup.spec)} {arms}, {plural(plan.workers, 'worker')}"
    title += ", error rate" if plan.setup.ranks else ""
    console = Console(file=standard_output())
    wide, narrow = console.width >= 110, console.width < 90  # wide has room for bars
    if plan.choices:
        console.print(choices_table_of_lab_command(plan, cost, narrow=narrow))
        console.print()
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
        time = "" if need.seconds is None else duration_text(need.seconds)
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
        words = "An arm near the bar is settled late or never; with a --tolerance, either answer about it is right."
        console.print(words, highlight=False)


@click.command()
@option(
    "--policy P",
    "How to choose the next arm, or module:function [default: anytime-evt; with --confidence balanced].",
    type=PolicyName(),
)
@option(
    "--family F", "uniform, bernoulli, beta, normal, clipped or constant [default: uniform; with --cases bernoulli]."
)
@lab.ARMS
@lab.QUESTION
@lab.MEANS
@lab.SPREAD
@lab.BOUNDS
@option("--recorded FILE", "Resample the rewards in a CSV with arm,reward, or in an export.", type=click.Path())
@option(
    "--matrix FILE",
    "Replay an eval: CSV with a row per arm and a column per case, or with arm,case,reward, or an export.",
    type=click.Path(),
)
@option("--cases N", "Each arm meets this many cases, each once; drawn again in each repetition.", type=Whole(1))
@option_of_parameter("find")
@option("--budget N", "Pulls [default: 20000; with cases, all cases of all arms].", type=Whole())
@lab.CHECKPOINTS
@option("--repetitions N", "How many studies to simulate.", type=Whole(), default=100)
@lab.DELAY
@option("--seconds-per-pull S", "On the simulated clock.", type=Number(), default=1.0)
@option(
    "--confidence C",
    "off, or a number: settle arms at this confidence [default: off; with cases, a rate or --find 0.95].",
)
@option(
    "--lost BAD:GOOD",
    "Share of pulls lost: with a reward below the bar, and with another.",
    type=lab.PAIR,
    default="0:0",
)
@option("--hung SHARE", "Share of pulls that never return.", type=Number(), default=0.0)
@option("--failure REWARD", "What a lost pull counts as: worst or ignore.", default="worst")
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
    **options: Any,
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

    certifies = bool(options["cases"] or matrix or options["find"] is not None or options["guarantee"] != "all")
    same = (
        "policy", "arms", "means", "spreads", "bounds", "budget", "checkpoints", "lost", "hung", "failure", "find",
    )  # fmt: skip
    with naming_options_in_errors(options):
        setup = lab.setup_of_lab_options(
            recorded,
            matrix,
            family=options["family"] or ("bernoulli" if options["cases"] else "uniform"),
            cases=options["cases"] or 0,
            delay=delays.parsed_delay(options["delay"], seconds=options["seconds_per_pull"]),
            confidence=lab.confidence_in_lab_option(options["confidence"] or ("0.95" if certifies else "off")),
            **{name: options[name] for name in same},
            **lab.question_in_lab_options(options),
        )

    def work() -> "Result":
        with progress_bar("simulating", max(1, repetitions) * setup.budget) as progress:
            return play(setup, repetitions=repetitions, seed=seed, threads=threads, progress=progress)

    result = completed_lab_command(work)
    if style == "table":
        print_lab_result(result)
    else:
        print_lab_data(style, result.rows(), result.to_json())


@click.command()
@option("--study NAME", "Instead of a simulation: how much more this study will take.", to="name")
@lab.QUESTION
@option("--arms K", "How many arms.", type=Whole())
@option("--family F", "bernoulli, uniform, beta, normal or clipped.", default="bernoulli")
@option("--means RANGE", "Where you expect the arms' means: LO:HI, or A,B,C,…", type=lab.RANGE)
@lab.SPREAD
@lab.BOUNDS
@option(
    "--pilot FILE",
    "Instead of --arms and --means: rewards so far, as CSV with arm,reward, or an export.",
    type=click.Path(),
)
@option("--cases N", "Each arm is to be judged by its mean on this many cases, an eval set.", type=Whole(1))
@option(
    "--policy P",
    "The policy to plan for, or module:function [default: balanced; anytime-evt with --confidence off].",
    type=PolicyName(),
)
@option("--confidence C", "Settle arms at this confidence, or off.", default="0.95")
@option("--workers W", "How many pulls run at once.", type=Whole(), default=1)
@option("--seconds-per-pull S", "How long a pull takes.", type=Number(), default=1.0)
@option("--service HOW", "constant, exponential, lognormal:0.5, failures:5.", default="constant")
@option("--cost-per-pull C", "What a pull costs, in any currency.", type=Number())
@lab.PICTURE
@lab.THREADS
@lab.SEED
@storage_option
@lab.OUTPUT
def plan(
    name: str | None,
    storage: str | None,
    pilot: str | None,
    picture: str | None,
    force: bool,
    style: str,
    threads: int | None,
    seed: int,
    cost_per_pull: float | None,
    **options: Any,
) -> None:
    r"""Estimate how many pulls, and how much time, a problem will need.

    First what it takes until every arm is certified, with your tolerance and others, and with both guarantees. Then it
    simulates your problem with the default policy, with equal allocation, and with equal allocation that skips settled
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

    With --study, it estimates how much more that study will take: for its own question, or with another bar, tolerance,
    confidence or guarantee. Nothing in the study changes.

      thresher plan --study prompts
      thresher plan --study prompts --at-least 0.95 --tolerance 0.02
    """
    if name is not None:
        _plan_study(name, storage, style, cost_per_pull, options)
        return
    from ..lab import Setup, pictures, planning
    from ..lab.planning import pilot_setup

    if pilot is None and (options["arms"] is None or options["means"] is None):
        missing = "--arms" if options["arms"] is None else "--means"
        raise InvalidInput(missing, rule="is missing", remedy="give it, or --pilot with the rewards so far")
    if pilot is not None and (options["arms"] is not None or options["means"] is not None):
        raise InvalidInput("pilot", pilot, "already gives the arms and their rewards", "leave out --arms and --means")
    with naming_options_in_errors(options):
        shared = {
            **{name: options[name] for name in ("policy", "bounds")},
            **lab.question_in_lab_options(options),
            "confidence": lab.confidence_in_lab_option(options["confidence"]),
            "cases": options["cases"] or 0,
            "budget": 10**12,  # not used: the plan finds the number of pulls
        }
        if all(shared[name] is None for name in (*BARS, "baseline", "margin", "ratio")):
            raise InvalidInput("--at-least", rule="is missing", remedy="give it, --at-most, or a --baseline")
        if pilot is not None:
            data, shared["cases"] = lab.pilot_in_lab_option(pilot, shared["cases"])
            shared["baseline"] = lab.numbered_lab_baseline(shared["baseline"], data.names)
            if data.lost:
                share = f"{data.lost:,} of the pilot's {data.pulls:,} pulls"
                say(f"{share} were lost or are pending; the plan loses the same share")
            setup = pilot_setup(data, **shared)
        else:
            shared["baseline"] = lab.numbered_lab_baseline(shared["baseline"], ())
            setup = Setup(**shared, **{name: options[name] for name in ("family", "arms", "means", "spreads")})
    timing = {"workers": options["workers"], "seconds": options["seconds_per_pull"], "service": options["service"]}

    def work() -> "Plan":
        return planning.plan(setup, seed=seed, threads=threads, **timing)

    with naming_options_in_errors(options):
        result = drawn_lab_command(picture, work, pictures.draw_plan, force=force)
    if style == "table":
        print_plan(result, cost_per_pull)
    else:
        full = {} if result.full_run is None else {"full_run": result.full_run.to_json()}
        costs = {} if cost_per_pull is None else {"cost_per_pull": cost_per_pull}
        choices = [
            {**vars(choice), **({} if cost_per_pull is None else {"cost": cost_per_pull * choice.pulls})}
            for choice in result.choices
        ]
        everything = {
            "format": 1,
            "workers": result.workers,
            **costs,
            **full,
            "choices": choices,
            "needs": result.rows(),
        }
        print_lab_data(style, result.rows(), everything)


def _plan_study(name: str, storage: str | None, style: str, cost: float | None, options: dict[str, Any]) -> None:
    """Print how much more a study will take."""
    from .plan_study import ASKED, plan_of_study, print_study_plan

    source, command = click.get_current_context().get_parameter_source, click.get_current_context().command
    given = {
        param.name or "": param for param in command.params if source(param.name or "") is ParameterSource.COMMANDLINE
    }
    for other, param in given.items():
        if other not in (*ASKED, "name", "storage", "style", "cost_per_pull", "seconds_per_pull", "workers"):
            rule = "does not go with --study, which knows its arms and their rewards"
            raise InvalidInput(param.opts[0], rule=rule, remedy="leave it out")
    asked = {field: options[field] for field in ASKED if field in given}
    if "confidence" in asked:
        asked["confidence"] = lab.confidence_in_lab_option(asked["confidence"])
    seconds = options["seconds_per_pull"] / options["workers"] if "seconds_per_pull" in given else None
    with naming_options_in_errors(options):
        result = plan_of_study(study_of_option(name, storage), asked, seconds_per_pull=seconds, cost_per_pull=cost)
    print_study_plan(result, style)


# ``thresher compare``: several policies on the same draws.

CLEAR = 3  # standard errors at which a difference is marked
BY_CHANCE = math.erfc(CLEAR / math.sqrt(2.0))  # the share of such differences between equal policies: 1 in 370
ENOUGH = 100  # repetitions; the standard errors of fewer are too uncertain to mark anything
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
@option(
    "--policy P", "A policy; repeat it. The first is the reference.", to="policies", type=PolicyName(), multiple=True
)
@option(
    "--family F",
    "uniform, bernoulli, beta, normal, clipped or constant; repeat it [default: the first five; with --confidence "
    "bernoulli, beta and clipped].",
    to="kinds",
    multiple=True,
)
@lab.ARMS
@option("--at-least B", "The bar that an arm's mean must reach.", type=Amount(), default=0.7)
@lab.MEANS
@lab.SPREAD
@option("--budget N", "Pulls.", type=Whole(), default=20_000)
@lab.CHECKPOINTS
@lab.DELAY
@option("--confidence C", "off, or a number: settle arms at this confidence.", default="off")
@option_of_parameter("tolerance")
@option("--repetitions N", "How many studies to simulate with each policy.", type=Whole(), default=1000)
@lab.PICTURE
@lab.THREADS
@lab.SEED
@lab.OUTPUT
def compare(picture: str | None, style: str, force: bool, **options: Any) -> None:
    """Compare, print, and draw."""
    from ..lab import comparing, pictures
    from ..lab.result import progress_bar

    names = {**options, "policy": None, "family": None}  # these options may be repeated
    with naming_options_in_errors(names):
        same = ("arms", "means", "spreads", "budget", "checkpoints", "delay")
        settings = {name: options[name] for name in same} | lab.question_in_lab_options(options)
        settings["confidence"] = lab.confidence_in_lab_option(options["confidence"])
        if "recorded" in options["kinds"]:
            raise InvalidInput("--family", "recorded", "compare draws its arms", "choose another family")
        kinds = list(dict.fromkeys(options["kinds"] or comparing.compared_families(settings["confidence"])))
        many = len(comparing.compared_policies(options["policies"])) * len(kinds)

    def work() -> "list[Comparison]":
        fixed = {"kinds": kinds, **settings, **{name: options[name] for name in ("repetitions", "seed", "threads")}}
        comparing.prepared_comparison(options["policies"], **fixed, shows=True)
        with progress_bar("comparing", many * options["repetitions"] * options["budget"]) as progress:
            return comparing.compare(options["policies"], **fixed, progress=progress)

    with naming_options_in_errors(names):
        comparisons = drawn_lab_command(picture, work, pictures.draw_comparison, force=force)
    if style == "table":
        print_comparisons(comparisons)
    else:
        rows = [row for comparison in comparisons for row in comparison.rows()]
        shown = {name: options[name] for name in ("arms", "budget", "delay", "repetitions", "seed")}
        print_lab_data(
            style,
            rows,
            {"format": 1, "at_least": options["at_least"], "tolerance": options["tolerance"], **shown, "results": rows},
        )


def print_comparisons(comparisons: "list[Comparison]") -> None:
    """A table for each family: the first policy's figures, and how far the others are from them."""
    from rich.console import Console
    from rich.table import Table

    console, repetitions = Console(file=standard_output()), comparisons[0].first.repetitions
    for comparison in comparisons:
        first, *others = comparison.results
        for title, measure in _compared(comparison).items():
            table = Table(title=f"{comparison.family} arms: {title}", title_justify="left")
            for name in ("pulls", first, *(f"{other} − {first}" for other in others)):
                table.add_column(name, justify="right", overflow="fold")
            rows = list(comparison.rows())
            for index, pulls in enumerate(comparison.pulls):
                reference, *compared = (row for row in rows if row["pulls"] == pulls)
                figure = share_in_lab_command(reference[measure], reference[f"{measure}_se"])
                differences = [
                    _difference(row[f"{measure}_difference"], row[f"{measure}_difference_se"], repetitions)
                    for row in compared
                ]
                is_last = index == len(comparison.pulls) - 1
                table.add_row(f"{pulls:,}", figure, *differences, end_section=is_last)
            console.print(table)
    words = f"{repetitions:,} repetitions, seed {comparisons[0].first.seed}, the same draws for all policies"
    console.print(f"{words}; ± is one standard error; {_marks(comparisons)}", highlight=False)


def _compared(comparison: "Comparison") -> dict[str, str]:
    """What tables compare, by its title; with a tolerance, whether any arm is wrong, and whether by more than that."""
    setup = comparison.first.setup
    measures = {"arms right": "accuracy"}
    if setup.within:
        measures["all arms right"] = "success"
        measures[f"all arms right, give or take {sentence_wording(setup.spec).distance(setup.within)}"] = (
            "success_within"
        )
    return measures | ({"arms settled": "settled"} if setup.certifies else {})


def _marks(comparisons: "list[Comparison]") -> str:
    """What the stars mean, and how many to expect between equal policies, by chance."""
    first = comparisons[0].first
    if first.repetitions < ENOUGH:
        return f"nothing is marked * below {ENOUGH} repetitions: the errors themselves are not known well enough"
    cells = len(_compared(comparisons[0])) * sum(
        (len(comparison.results) - 1) * len(comparison.pulls) for comparison in comparisons
    )
    chance = f"{cells * BY_CHANCE:.2g} of these {cells}" if cells > 1 else f"one in {1 / BY_CHANCE:.0f}"
    return (
        f"* marks differences of at least {CLEAR} standard errors: between equal policies, {chance} would be marked by "
        "chance, on average"
    )


def _difference(value: float, error: float | None, repetitions: int) -> str:
    text = (
        share_in_lab_command(value, error, sign="+")
        .replace("+0.00%", "0.00%")
        .replace("-0.00%", "0.00%")
        .replace("-", "−")
    )
    is_clear = error is not None and abs(value) >= CLEAR * error and value != 0
    return f"{text}*" if is_clear and repetitions >= ENOUGH else text
