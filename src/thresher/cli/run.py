"""``thresher run``: the main job for any program."""

from collections.abc import Callable
from typing import Any

import click

from .. import policies
from ..command import Command
from ..errors import CannotGoOn, InvalidInput
from ..executors import check_name
from ..runner import run as run_study
from ..spec import Params
from ..study import Study
from ..verdict import Verdict
from . import FINISHED, NOT_MET, say
from .arms import checked_arms, read_arms
from .checking import check_command, check_exits, check_reader, check_resources, room_for
from .keeping import kept_study, note_command
from .live import watching
from .output import FORMATS, print_verdict
from .stopping import until_stopped
from .storage import is_kept, storage_option, store_at
from .words import Duration

HELP = """Find out which arms reach a bar by running COMMAND again and again, several at once.

COMMAND is called with an arm in place of {arm}, and prints the reward: the last number on its last line counts.
Other placeholders: {seed}, {number}, {pull}, and {KEY} for each parameter of the arms file; {{ and }} are braces.
The same values are in the environment as THRESHER_ARM, THRESHER_SEED, THRESHER_NUMBER and THRESHER_PULL.

The study is kept in thresher.db, under a name made from what is asked: the same command goes on with it after Ctrl-C,
crash or reboot, a larger --budget extends it, and with the same postgresql:// URL other machines take part.

\b
Examples:
  Which prompts pass 90 % of my cases? evaluate.sh runs one random case and prints 1 or 0.
    thresher run --threshold 0.9 --arms prompts.txt --budget 2000 --workers 8 -- ./evaluate.sh {arm}
\b
  Which tests are flaky? Exit 0 is a pass, exit 1 a failed test; the bar is a pass rate of 99 %. Any other status,
  such as pytest's 4 for a test that does not exist, is a failure of the run and never a reward.
    thresher run --threshold 0.99 --arms tests.txt --budget 5000 --reward exit-code -- pytest -q {arm}
\b
  Which settings beat the baseline? evaluate.py prints {"gain": …} for the same seed on both.
    thresher run --threshold 0 --bounds -1 1 --arms settings.csv --budget 800 --reward json:gain -- \\
      python evaluate.py --depth {depth} --seed {seed}
\b
  The same on a cluster, with the program where its workers can run it:
    thresher run --threshold 0.9 --arms prompts.txt --engine dask:tcp://head:8786 -- /shared/evaluate.sh {arm}
\b
  … and a GPU for each run, as Ray counts them:
    thresher run --threshold 0.9 --arms models.txt --engine ray:head:6379 --resource GPU=1 -- /shared/train.sh {arm}

Exit status: 0 finished, 1 a --require was not met, 2 wrong use, 3 could not go on, 130 Ctrl-C, 143 SIGTERM.
"""


class RunCommand(click.Command):
    """Lets ``--bounds`` take two numbers, or the word none. What follows COMMAND is its own, even without ``--``."""

    allow_interspersed_args = False

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Turn ``--bounds none`` into a flag."""
        takes = {name: option.nargs for option in self.params if not _is_flag(option) for name in option.opts}
        at = 0
        while at < len(args) and args[at].startswith("-") and args[at] != "--":
            name, equals, value = args[at].partition("=")
            if name == "--bounds" and "none" in (value, *args[at + 1 : at + 2]):
                rest = args[at + (1 if equals else 2) :]
                return super().parse_args(ctx, [*args[:at], "--no-bounds", *rest])
            at += 1 if equals else 1 + takes.get(name, 0)
        return super().parse_args(ctx, args)


def _is_flag(option: click.Parameter) -> bool:
    return isinstance(option, click.Option) and option.is_flag


def arm_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what is asked."""
    options = [
        click.option("--threshold", type=float, required=True, metavar="B", help="The bar: which means reach it?"),
        click.option(
            "--arms", "file", metavar="FILE", help="Arms: a name a line, or CSV or JSON with a name; - is stdin."
        ),
        click.option("--arm", "names", multiple=True, metavar="NAME", help="An arm; may be given several times."),
        click.option("--budget", type=int, metavar="N", help="Pulls, in all. Without one: until every arm is settled."),
        click.option(
            "--bounds",
            type=float,
            nargs=2,
            default=(0.0, 1.0),
            metavar="LO HI",
            help="Where rewards can lie, or none.  [default: 0 1]",
        ),
        click.option("--no-bounds", is_flag=True, hidden=True),
        click.option("--policy", metavar="P", help=f"Which arm comes next: {', '.join(policies.CONSTRUCTORS)}."),
        click.option("--confidence", type=float, metavar="C", help="How sure to be.  [default: 0.95]"),
        click.option("--no-confidence", is_flag=True, help="Go without certificates."),
        click.option(
            "--tolerance",
            type=float,
            default=0.0,
            show_default=True,
            metavar="T",
            help="An arm provably within ± this of the bar is close, and done.",
        ),
        click.option(
            "--failure",
            default="worst",
            show_default=True,
            metavar="REWARD",
            help="worst, ignore, or the reward of a failure.",
        ),
        click.option(
            "--max-failures", type=int, default=3, show_default=True, metavar="N", help="In a row: the arm is retired."
        ),
        click.option(
            "--seed", type=int, default=0, show_default=True, metavar="S", help="Keys the seeds of the pulls."
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command(cls=RunCommand, help=HELP, short_help="Find out which arms reach a bar, with any program.")
@arm_options
@click.option(
    "--engine",
    default="threads",
    show_default=True,
    metavar="WHERE",
    help="threads, processes, dask[:ADDRESS] or ray[:ADDRESS]: where COMMAND runs.",
)
@click.option("--workers", type=int, metavar="W", help="How many at once.  [default: as many as there are cores]")
@click.option(
    "--resource",
    "resources",
    multiple=True,
    metavar="NAME=N",
    help="What a run needs on Dask or Ray, as GPU=1; may be given several times.",
)
@click.option(
    "--timeout", type=Duration(), default="1h", show_default=True, metavar="DURATION", help="For one run of COMMAND."
)
@click.option(
    "--attempts",
    type=int,
    default=1,
    show_default=True,
    metavar="N",
    help="How often a failing run is made, same seed.",
)
@click.option("--for", "seconds", type=Duration(), metavar="DURATION", help="Start nothing after 90s, 10m, 2h …")
@click.option("--give-up", type=Duration(), default="10m", show_default=True, help="When everything fails for so long.")
@click.option(
    "--reward",
    default="last-float",
    show_default=True,
    metavar="HOW",
    help="last-float, exit-code, json:KEY or regex:RE.",
)
@click.option(
    "--pass",
    "passing",
    metavar="CODES",
    help="With exit-code: statuses that mean reward 1, as in 0,5-7.  [default: 0]",
)
@click.option(
    "--fail",
    "failing",
    metavar="CODES",
    help="With exit-code: those that mean reward 0; any other is a failed run.  [default: 1]",
)
@click.option(
    "--require-above", type=click.Choice(["all", "any"]), help="Exit 1 unless so many arms are certified above."
)
@click.option(
    "--require-below", type=click.Choice(["all", "any"]), help="Exit 1 unless so many arms are certified below."
)
@storage_option
@click.option("--study", "name", metavar="NAME", help="The study's name.  [default: made from the specification]")
@click.option(
    "--format", "style", type=click.Choice(FORMATS), default="table", show_default=True, help="Of the verdict."
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- COMMAND [ARGUMENT]...")
def run(command: tuple[str, ...], **given: Any) -> int:
    """Run the study and print its verdict."""
    arms = arms_given(given["file"], given["names"])
    engine, given["resources"] = check_name(given["engine"]), check_resources(given["resources"])
    elsewhere = ":" in engine  # nothing can be said from here of what is to be found there
    if elsewhere and command and "/" in command[0] and not command[0].startswith("/"):
        say(f"{command[0]} is looked for in the folders of the cluster's workers; give a path that is right there")
    reward, argv = check_reader(given["reward"]), check_command(command, arms, elsewhere=elsewhere)
    evaluate = Command(argv, reward, given["timeout"], *check_exits(reward, given["passing"], given["failing"]))
    study = kept_study(given["name"], store_at(given["storage"]), question(arms, given))
    note_command(study, command, " ".join([reward, *_exits_given(given)]))
    try:
        status = until_stopped(lambda: _carry_out(study, evaluate, given))
    except CannotGoOn:
        if given["style"] != "table" or study.look(lambda ledger: ledger.told):  # a table of nothing tells nothing
            print_verdict(study.verdict(), given["style"])
        raise
    finally:
        evaluate.stop()
    verdict = study.verdict()
    print_verdict(verdict, given["style"])
    if status != FINISHED:
        kept = "the same command goes on" if is_kept(study) else "nothing is kept: a new run begins anew"
        say(f"stopped; this is the verdict so far, and {kept}")
        return status
    if not verdict.told:
        reason = next((row.reason for row in verdict.rows if row.reason), "none was made")
        raise CannotGoOn("run", rule=f"no pull gave a reward, the last: {reason}", remedy="mend the command")
    return FINISHED if _met(verdict, given["require_above"], given["require_below"]) else NOT_MET


def _exits_given(given: dict[str, Any]) -> list[str]:
    options = {"--pass": given["passing"], "--fail": given["failing"]}
    return [f"{option} {codes}" for option, codes in options.items() if codes is not None]


def question(arms: dict[str, Params], given: dict[str, Any]) -> dict[str, Any]:
    """What `arm_options` ask, as arguments of `create_study`."""
    return {
        "arms": arms,
        "threshold": given["threshold"],
        "bounds": None if given["no_bounds"] else given["bounds"],
        "budget": given["budget"],
        "policy": given["policy"],
        "confidence": _confidence(given["confidence"], given["no_confidence"], given["no_bounds"]),
        "tolerance": given["tolerance"],
        "failure": _failure(given["failure"]),
        "seed": given["seed"],
        "max_failures": given["max_failures"],
    }


def _carry_out(study: Study, evaluate: Command, given: dict[str, Any]) -> None:
    room_for(given["workers"] or 0)
    with watching(study, quiet=given["quiet"]) as show:
        run_study(
            study,
            evaluate,
            workers=given["workers"],
            executor=given["engine"],
            resources=given["resources"],
            attempts=given["attempts"],
            seconds=given["seconds"],
            on_progress=show,
            give_up=given["give_up"],
        )


def arms_given(file: str | None, names: tuple[str, ...]) -> dict[str, Params]:
    """The arms of `arm_options`."""
    if file and names:
        raise InvalidInput("--arm", names[0], "the arms come from --arms FILE already", "use one of the two")
    if file:
        return read_arms(file)
    if not names:
        raise InvalidInput("arms", "", "there are none", "name them with --arms FILE or --arm NAME")
    return checked_arms(("--arm", name, {}) for name in names)


def _confidence(given: float | None, without: bool, no_bounds: bool) -> float | None:
    if given is not None and (without or no_bounds):
        option = "--no-confidence" if without else "--bounds none"
        raise InvalidInput("--confidence", given, f"certificates are not to be had with {option}", "use one of the two")
    if without or no_bounds:
        return None
    return 0.95 if given is None else given


def _failure(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _met(verdict: Verdict, above: str | None, below: str | None) -> bool:
    """Whether the requirements hold; says on standard error which does not."""
    fine = True
    for side, wanted in (("above", above), ("below", below)):
        found = [row for row in verdict.rows if row.label == side and (row.certified or verdict.confidence is None)]
        needed = {"all": len(verdict.rows), "any": 1, None: 0}[wanted]
        if len(found) < needed:
            fine = False
            certain = "" if verdict.confidence is None else "certified "
            say(f"--require-{side} {wanted}: {len(found):,} of {len(verdict.rows):,} arms are {certain}{side}")
    return fine
