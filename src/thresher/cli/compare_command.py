"""``thresher compare``: several policies on the same draws. Nothing heavy is imported before the command runs."""

import math
from typing import TYPE_CHECKING, Any

import click

from ..errors import InvalidInput
from . import lab_options as lab
from . import standard_output
from .error_wording import naming_options
from .lab_tables import print_data, within
from .options import Number, PolicyName, Whole

if TYPE_CHECKING:
    from ..lab.comparing import Comparison

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
thresher compare --policy anytime-evt --policy uniform --policy mine:score --family bernoulli --picture mine.png
thresher compare --policy ap-evt --policy mine:score --delay fifo:100 --repetitions 10000 --format csv
thresher compare --policy balanced --policy mine:score --confidence 0.95 --arms 40 --means 0.7:0.99 --at-least 0.9
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
