"""Commands for agents that are not Python programs: ask, tell, renew, drop. Nothing heavy is imported here."""

import json
import time
from collections.abc import Iterator
from itertools import chain
from typing import Any

import click

from ..core.events import CALLERS, NO_CAUSE, PENDING
from ..core.pulls import TICKET, pull_id_in, pull_id_of, pull_row_json
from ..core.state import State
from ..errors import AlreadyTold, CannotGoOn, InvalidInput, ThresherError, UnknownPull, shown
from ..study import Pull, Study, Telling, exchange_in_study, peek_study
from ..text.phrasing import plural
from . import FINISHED, NOT_MET
from .options import (
    Duration,
    Number,
    Whole,
    format_option,
    name_argument,
    option,
    scores_option,
    storage_option,
    study_of_option,
    with_name_and_storage_options,
)
from .output import print_lines, say, say_done

PAUSE = 1.0  # seconds between two asks with --wait
MOST = 100_000  # pulls of one ask; a study without a budget has no other limit

ASK = """Hand out the next pull of study NAME, or several: which arm to evaluate, and with which seed.

Prints one line per pull: its ticket, such as 17-3f9c2a41, the arm, the number and the seed, separated by tabs, and its
case if the study has cases; or a JSON object. Tell, drop or renew the pull by its ticket: any other study refuses it,
even one that gets this one's name. Exit status 1 without output means that the study is done.

When the pull's lease ends, the next ask or run of any agent drops it as lost, and a reward that arrives later is late.

In a study with cases, other agents may have the last cases. A case whose pull is lost is free again, and the last
reward of a baseline opens the other arms. With --wait, ask waits for that instead of ending.

With --arm you choose the arm, and the log records that you did. Exit status 1 then also means that this arm takes no
more pulls: it is settled or retired, or has no case left.

If the arms are compared with a baseline, without cases, every pull evaluates both with the same seed. The line then
ends with the baseline and which of the two comes first: arm or baseline.

Examples:
  thresher ask prompts
  thresher ask prompts -n 8 --lease 2h --format json
  thresher ask prompts --arm terse
  thresher ask evals --wait
"""


class AgentPullName(click.ParamType["int | str"]):
    """A pull: its ticket, or its number.

    >>> AgentPullName().convert("17-3f9c2a41", None, None), AgentPullName().convert("17", None, None)
    ('17-3f9c2a41', 17)
    """

    name = "pull"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """The ticket or the number in the text."""
        text = str(value).strip()
        if TICKET.fullmatch(text):
            return text
        if "-" in text[1:]:
            self.fail(f"{shown(text, 60)} is not a pull; write it as ask printed it, such as 17-3f9c2a41", param, ctx)
        return Whole().convert(text, param, ctx)


@click.command(help=ASK)
@with_name_and_storage_options
@click.option("-n", "count", type=Whole(1, MOST), default=1, help="How many pulls.")
@option("--arm NAME", "Pull this arm, instead of the one that the study chooses.")
@option("--wait", "While other agents have the last cases, wait until one is free again or all are told.")
@option("--lease DURATION", "Time after which the next ask drops the pull as lost.", type=Duration(), default="1h")
@scores_option
@format_option("text", "json")
def ask(
    study: Study, count: int, arm: str | None, wait: bool, lease: float, scores: tuple[object, ...], style: str
) -> int:
    """Print pulls."""
    while (reply := exchange_in_study(study, (), count, lease=lease, arm=arm)).wait and wait:
        time.sleep(PAUSE)
    pulls = reply.pulls
    try:
        print_lines(
            json.dumps({"format": 1, **pull_row_json(pull)}) if style == "json" else _line(pull) for pull in pulls
        )
    except CannotGoOn as error:
        for pull in pulls:  # nobody has read their tickets
            study.drop(pull, reason="the answer to the ask could not be written", cause="lost")
        raise CannotGoOn(error.what, rule=error.rule, remedy="the pulls of this ask were dropped") from None
    return FINISHED if pulls else NOT_MET


def _line(pull: Pull) -> str:
    line = f"{pull.ticket}\t{pull.arm}\t{pull.number}\t{pull.seed}"
    if pull.baseline is not None:
        return f"{line}\t{pull.baseline}\t{'baseline' if pull.baseline_first else 'arm'}"
    return line if pull.case is None else f"{line}\t{pull.case}"


@click.command(context_settings={"ignore_unknown_options": True})
@with_name_and_storage_options
@click.argument("pull", type=AgentPullName())
@click.argument("reward", type=Number())
@click.argument("baseline", type=Number(), required=False)
@option("--note TEXT", "A note about the evaluation.")
@option("--cost NUMBER", "The cost of the evaluation, in any unit; the verdict has the total.", type=Number())
@option("--repeatable", "It was, or would have been, evaluated more than once; the guarantee says so.")
@format_option("text", "json")
def tell(
    study: Study, pull: int | str, reward: float, baseline: float | None, repeatable: bool, style: str, **remarks: Any
) -> None:
    """Tell the REWARD of PULL, a number. Telling the same reward again is fine: a lost reply may be retried.

    PULL is the ticket that ask printed. Its number alone, 17, means a pull of whatever study has the name now.

    Telling again does not change the note or the cost.

    If a pull evaluates an arm and the baseline, tell both: the arm's REWARD and then the BASELINE's.

    Examples:
      thresher tell prompts 17-3f9c2a41 0.85
      thresher tell prompts 17-3f9c2a41 0.85 --cost 0.02 --note 'was cut off'
      thresher tell rivals 17-3f9c2a41 0.85 0.8
    """
    rewards, number = _rewards_of_pull(study, reward, baseline), pull_id_of(pull)
    told = exchange_in_study(study, [Telling(pull, rewards, repeatable, **remarks)], 0)
    told.raise_outside()
    late = bool(told.late)
    if style == "json":
        print_lines([json.dumps({"format": 1, "pull": pull, "reward": rewards, "late": late})])
    elif remark := peek_study(study, lambda ledger: _remark_on_reward(ledger, number, late=late)):
        say(f"the reward of pull {number} {remark}")


def _remark_on_reward(ledger: State, pull: int, *, late: bool) -> str:
    """How a reward that was told does not count as usual; empty if it does."""
    if ledger.cases and pull in ledger.cases.spare:
        return "counts nowhere: its case had a reward already, and the first one counts"
    if not late:
        return ""
    if ledger.cases:
        return "is late, because the pull was dropped; it counts, because its case had no other"
    return "is late, because the pull was dropped; it does not count in the certificate"


def _rewards_of_pull(study: Study, reward: float, baseline: float | None) -> float | tuple[float, float]:
    """The reward of a pull, or the pair of the arm's and the baseline's. Raises if the study needs the other."""
    if study.spec.pairs == (baseline is not None):
        return reward if baseline is None else (reward, baseline)
    if baseline is None:
        rule = f"a pull of this study evaluates the baseline {shown(study.spec.baseline)} too"
        raise InvalidInput("reward", reward, rule, "tell both: the arm's reward and then the baseline's")
    raise InvalidInput("reward", baseline, "is a second one, and a pull of this study has one", "tell the first alone")


@click.command()
@with_name_and_storage_options
@click.argument("pulls", type=AgentPullName(), nargs=-1, required=True, metavar="PULL…")
@option("--lease DURATION", "Time from now after which the next ask drops them.", type=Duration(), default="1h")
def renew(study: Study, pulls: tuple[int | str, ...], lease: float) -> int:
    """Renew the leases of PULLs, so that they do not count as lost while you work on them.

    Exit status 1 means that one of them is no longer pending: it was told or dropped.

    Example:
      thresher renew prompts 17-3f9c2a41 18-0b6e77d2 --lease 2h
    """
    study.renew(pulls, lease)
    ended = peek_study(
        study, lambda ledger: [pull for pull in pulls if ledger.state_of(pull_id_in(ledger, pull)) != PENDING]
    )
    if ended:
        say(f"no longer pending, so there is nothing to renew: {shown(ended)}")
    return NOT_MET if ended else FINISHED


@click.command()
@name_argument
@click.argument("pulls", type=AgentPullName(), nargs=-1, metavar="[PULL…]")
@option("--older-than DURATION", "Drop all that have been pending for longer than this.", type=Duration())
@option("--cause [failed|lost]", "failed counts against its arm; what was lost is tried again.", default="failed")
@option("--reason TEXT", "Why, for the log.", default="dropped by hand")
@storage_option
@format_option("text", "json")
def drop(
    name: str,
    pulls: tuple[int | str, ...],
    older_than: float | None,
    storage: str | None,
    style: str,
    cause: Any,
    reason: str,
) -> None:
    """Drop PULLs. A reward that comes later is late: it counts in the statistics, not in the certificate.

    In a study with cases, the first reward of a case counts, late or not.

    Examples:
      thresher drop prompts 17-3f9c2a41 --cause failed --reason "out of memory"
      thresher drop prompts --older-than 2h
    """
    if not pulls and older_than is None:
        remedy = "name them as ask printed them, or give --older-than 2h"
        raise InvalidInput("pulls", rule="none is named", remedy=remedy)
    if pulls and older_than is not None:
        raise InvalidInput("pulls", list(pulls), "name pulls or give --older-than, not both")
    if cause not in CALLERS:
        raise InvalidInput("--cause", cause, NO_CAUSE)
    study = study_of_option(name, storage)
    chosen = list(pulls) if older_than is None else list(_older(study, older_than))
    dropped: list[int | str] = []
    refused: dict[int | str, ThresherError] = {}
    for pull in chosen:
        try:
            study.drop(pull, cause=cause, reason=reason)
            dropped.append(pull)
        except (AlreadyTold, UnknownPull) as error:
            if older_than is None:  # otherwise it was told in the meantime
                refused[pull] = error
    if style == "json":
        errors = [{"pull": pull, "reason": str(error)} for pull, error in refused.items()]
        print_lines([json.dumps({"format": 1, "dropped": dropped, "refused": errors})])
    elif not refused:
        say_done(name, f"dropped {plural(len(dropped), 'pull')}")
    if refused:
        first = next(iter(refused.values()))
        if len(chosen) == 1:
            raise first
        others = f"the others were dropped: {shown(dropped)}" if dropped else ""
        raise InvalidInput("pulls", list(refused), f"were not dropped, the first because: {first}", others)


def _older(study: Study, seconds: float) -> Iterator[int]:
    """The pulls that have been pending for longer than this."""
    pending, limit = {pull.id for pull in study.pending()}, time.time() - seconds
    for event in chain.from_iterable(study.pages()):
        if event.kind == "asked" and event.pull in pending and (event.time or 0.0) < limit:
            yield event.pull
