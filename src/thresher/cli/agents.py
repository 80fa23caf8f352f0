"""What an agent does that is no Python program: ask, tell, renew, drop. Nothing heavy is imported here."""

import json
import time
from collections.abc import Iterator

import click

from ..errors import InvalidInput
from ..events import CAUSES
from ..ledger import LATE
from ..study import Pull, Study
from . import FINISHED, NOT_MET, say
from .storage import format_option, name_argument, storage_option, study_at
from .words import Duration

LEASE = 3600.0

ASK = """Hand out the next pull of study NAME, or several: which arm to evaluate, and with which seed.

Prints a line a pull: id, arm, number and seed, parted by tabs, or an object of JSON. Exit status 1 and no output say
that the study is done. Whoever asks must tell, drop or renew the pull within the time of the lease; then it counts as
lost, and its reward, should it still come, as late.

\b
Examples:
  thresher ask prompts
  thresher ask prompts -n 8 --lease 2h --format json
"""


@click.command(help=ASK, short_help="Hand out the next pull of a study.")
@name_argument
@click.option("-n", "count", type=click.IntRange(1), default=1, show_default=True, help="How many pulls.")
@click.option("--lease", type=Duration(), default="1h", show_default=True, help="After so long it counts as lost.")
@storage_option
@format_option("text", "json")
def ask(name: str, count: int, lease: float, storage: str | None, style: str) -> int:
    """Print pulls."""
    pulls = study_at(name, storage).ask_for(count, lease=lease)
    for pull in pulls:
        click.echo(
            json.dumps(_shown(pull)) if style == "json" else "\t".join(map(str, (pull[0], pull[1], pull[2], pull[4])))
        )
    return FINISHED if pulls else NOT_MET


def _shown(pull: Pull) -> dict[str, object]:
    return {
        "format": 1,
        "pull": pull.id,
        "arm": pull.arm,
        "number": pull.number,
        "seed": pull.seed,
        "params": dict(pull.params),
    }


@click.command(short_help="Tell the reward of a pull.", context_settings={"ignore_unknown_options": True})
@name_argument
@click.argument("pull", type=int)
@click.argument("reward", type=float)
@storage_option
@format_option("text", "json")
def tell(name: str, pull: int, reward: float, storage: str | None, style: str) -> int:
    """Tell the REWARD of PULL, a number. The same again is accepted: a lost answer may be retried.

    \b
    Example:
      thresher tell prompts 17 0.85
    """  # noqa: D301 - click wants the character itself
    study = study_at(name, storage)
    study.tell(pull, reward)
    late = study.look(lambda ledger: ledger.state_of(pull) == LATE)
    if style == "json":
        click.echo(json.dumps({"format": 1, "pull": pull, "reward": reward, "late": late}))
    elif late:
        say(f"the reward of pull {pull} is late: the pull was given up before; it counts nevertheless")
    return FINISHED


@click.command(short_help="Keep pulls from counting as lost.")
@name_argument
@click.argument("pulls", type=int, nargs=-1, required=True, metavar="PULL…")
@click.option("--lease", type=Duration(), default="1h", show_default=True, help="From now on.")
@storage_option
def renew(name: str, pulls: tuple[int, ...], lease: float, storage: str | None) -> int:
    """Say that the work on PULLs goes on: they count as lost no sooner than after another lease.

    \b
    Example:
      thresher renew prompts 17 18 --lease 2h
    """  # noqa: D301 - click wants the character itself
    study_at(name, storage).renew(pulls, lease)
    return FINISHED


@click.command(short_help="Give pulls up.")
@name_argument
@click.argument("pulls", type=int, nargs=-1, metavar="[PULL…]")
@click.option("--older-than", type=Duration(), metavar="DURATION", help="All that are under way for longer than this.")
@click.option(
    "--cause", type=click.Choice(CAUSES), default="lost", show_default=True, help="failed counts for its arm."
)
@click.option("--reason", default="dropped by hand", show_default=True)
@storage_option
@format_option("text", "json")
def drop(
    name: str,
    pulls: tuple[int, ...],
    older_than: float | None,
    cause: str,
    reason: str,
    storage: str | None,
    style: str,
) -> int:
    """Give PULLs up. A reward that still comes is late, and welcome.

    \b
    Examples:
      thresher drop prompts 17 --cause failed --reason "out of memory"
      thresher drop prompts --older-than 2h
    """  # noqa: D301 - click wants the character itself
    if bool(pulls) == (older_than is not None):
        raise InvalidInput("pulls", list(pulls), "name pulls, or give --older-than", "one of the two")
    study = study_at(name, storage)
    chosen = list(pulls) if older_than is None else list(_older(study, older_than))
    for pull in chosen:
        study.drop(pull, cause=cause, reason=reason)
    if style == "json":
        click.echo(json.dumps({"format": 1, "dropped": chosen}))
    elif older_than is not None:
        click.echo(f"{len(chosen)} pulls dropped")
    return FINISHED


def _older(study: Study, seconds: float) -> Iterator[int]:
    under_way, limit = {pull.id for pull in study.pending()}, time.time() - seconds
    for event in study.events():
        if event.kind == "asked" and event.pull in under_way and (event.time or 0.0) < limit:
            yield event.pull
