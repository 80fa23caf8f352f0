"""`thresher simulate` and `thresher plan`. Nothing heavy is imported before a command runs."""

from typing import TYPE_CHECKING, Any

import click

from ..core.parameters import BARS
from ..errors import InvalidInput
from . import lab_options as lab
from . import say
from .error_wording import naming_options
from .lab_tables import print_data, print_plan, print_result
from .options import Number, PolicyName, Whole, guarantee_option

if TYPE_CHECKING:
    from ..lab.planning import Plan
    from ..lab.result import Result


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
@guarantee_option
@click.option("--find", type=Whole(), help="End when this many arms are settled above.")
@click.option("--budget", type=Whole(), help="Pulls [default: 20000; with cases, all cases of all arms].")
@lab.CHECKPOINTS
@click.option("--repetitions", type=Whole(), default=100, help="How many studies to simulate.")
@lab.DELAY
@click.option("--seconds-per-pull", type=Number(), default=1.0, help="On the simulated clock.")
@click.option(
    "--confidence",
    help="off, or a number: settle arms at this confidence [default: off; with cases, a rate or --find 0.95].",
)
@lab.TOLERANCE
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
    """Simulate a policy many times on arms whose means are known, and measure how often its labels are right.

    The defaults are those of Section 4.1 of the paper, with small variance.

    Examples:
    thresher simulate --policy evt --repetitions 1000
    thresher simulate --policy ap-evt --delay fifo:100 --format json
    thresher simulate --family bernoulli --means 0.7:0.99 --at-least 0.9 --arms 40 --budget 4000
    thresher simulate --delay workers:16:failures:5 --seconds-per-pull 3
    thresher simulate --recorded results.csv --at-least 0.5 --budget 2000
    thresher simulate --family bernoulli --means 0.7:0.99 --at-least 0.9 --arms 40 --confidence 0.95 --tolerance 0.02
    thresher simulate --cases 500 --means 0.7:0.99 --at-least 0.9 --arms 40 --guarantee rate
    thresher simulate --matrix last-month.csv --at-least 0.9
    thresher simulate --matrix last-month.csv --baseline current --margin 0.02
    thresher simulate --family normal --means 0.1:0.3 --spreads 0.05 --at-most 0.25 --share 0.95 --confidence 0.95
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
@lab.TOLERANCE
@guarantee_option
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
    """Estimate how many pulls, and how much time, a problem will need.

    Simulates your problem with the default policy, with equal allocation, and with equal allocation that skips settled
    arms: how many pulls until the labels are right, and until they are settled. With --cases, it also says what that
    is of a full run. From a pilot, each simulated study draws the arms anew from what the pilot leaves possible.

    Examples:
    thresher plan --at-least 0.9 --arms 40 --means 0.7:0.99 --workers 16 --seconds-per-pull 3
    thresher plan --at-least 0.9 --arms 40 --means 0.7:0.99 --tolerance 0.02
    thresher plan --at-least 0.9 --arms 40 --means 0.7:0.99 --cases 500 --guarantee rate
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
