"""How ``thresher run`` ends: what the run required, the verdict, what to do next, and the exit status."""

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import click

from ..core.verdict import Verdict
from ..errors import CannotGoOn, InvalidInput, StoreFailed, shown
from ..study import Study
from ..text.phrasing import only, plural
from . import FINISHED, NOT_MET, say
from .options import address_of, is_kept
from .output import print_verdict
from .resumable_study import pulls_made


class Requirement(NamedTuple):
    """What an option requires."""

    side: str  # reached or missed
    least: str  # all, any, or a number


class Required(click.ParamType[Requirement]):
    """What ``--require`` takes.

    >>> Required().convert("reached=3", None, None)
    Requirement(side='reached', least='3')
    """

    name = "requirement"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Requirement:
        """The requirement that the text says."""
        found = re.fullmatch(r"(reached|missed)=(all|any|[1-9][0-9]{0,17})", str(value).strip())
        if found is None:
            rule = "must be reached or missed, =, and all, any or a number of arms; write reached=all, for example"
            self.fail(f"{shown(value, 60)} {rule}", param, ctx)
        return Requirement(found[1], found[2])


def check_requirements(required: Sequence[Requirement], *, arms: int) -> None:
    """Raise if so many arms cannot meet the requirements."""
    for side, least in required:
        if least.isdigit() and int(least) > arms:
            raise InvalidInput("--require", f"{side}={least}", only(arms, "arm"), "require fewer, or all")


def are_met(verdict: Verdict, required: Sequence[Requirement]) -> bool:
    """Whether the requirements hold; prints on standard error which do not. Nothing is required of the baseline."""
    fine, arms = True, len(verdict.rows) - (verdict.baseline is not None)
    sure = verdict.confidence is not None
    for side, least in required:
        option, names = f"--require {side}={least}", verdict.reached if side == "reached" else verdict.missed
        found = [name for name in names if verdict[name].certified or not sure]
        needed = {"all": arms, "any": 1}.get(least) or int(least)
        if len(found) < needed:
            fine = False
            one, what = len(found) == 1, "to reach the bar" if side == "reached" else "not to reach the bar"
            if sure:
                does = f"{'is' if one else 'are'} certified {what}"
            else:
                does = f"reach{'es' if one else ''} the bar" if side == "reached" else f"miss{'es' if one else ''} it"
            say(f"{option}: {len(found):,} of {plural(arms, 'arm')} {does}")
        elif verdict.told == verdict.earlier + verdict.imported:
            say(f"{option}: met by {'earlier runs' if verdict.earlier else 'imported results'}; nothing new was run")
    return fine


def conclude(
    study: Study, status: int, given: Mapping[str, Any], required: Sequence[Requirement], *, pulls: int
) -> int:
    """Print the verdict, say what to do next, and return the exit status. ``pulls`` had been made before this run."""
    try:
        verdict, ran = study.verdict(), pulls_made(study) > pulls
    except StoreFailed as error:
        if status == FINISHED:
            raise
        say(f"stopped; the verdict so far cannot be read: {error}")
        return status
    print_verdict(verdict, given["style"], ran=ran)
    if status != FINISHED and verdict.done and not verdict.pending:
        say("stopped, when the study had just finished: this is its verdict")
        say_kept(study)
        return status
    if status != FINISHED:
        say(f"stopped; {_so_far(study)}")
        return status
    if not verdict.told:
        reason = next((row.reason for row in verdict.rows if row.reason), None) or _last_reason(study)
        raise CannotGoOn("run", rule=f"no pull gave a reward, the last: {reason}", remedy="fix the command")
    if given["seconds"] is not None and not verdict.done:
        say(f"stopped, because the time of --for is over; {_so_far(study)}")
    elif verdict.cases or verdict.earlier < verdict.told:  # else the first line has said where the study is
        say_kept(study, cases=bool(verdict.cases))
    return FINISHED if are_met(verdict, required) else NOT_MET


def say_kept(study: Study, *, cases: bool = False) -> None:
    """Say where the study is, by which name, and what to do with it, if it is stored."""
    if is_kept(study):
        what = "cases {} lists the hardest cases" if cases else "verdict {} prints this again"
        where = f"kept as study {shown(study.name)} in {address_of(study.store)}"
        say(f"{where}; thresher {what.format(shlex.quote(study.name))}")


def _last_reason(study: Study) -> str:
    """Why the last pull was dropped. A pull that was lost is no failure of its arm, so no row has its reason."""
    dropped = [event for event in study.events() if event.kind == "dropped"]
    return (dropped[-1].reason or "no reason was given") if dropped else "no pull was made"


def _so_far(study: Study) -> str:
    """What a verdict is, if more pulls could follow."""
    if is_kept(study):
        return f"this is the verdict so far of study {shown(study.name)}, and the same command resumes it"
    return "this is the verdict so far, and nothing was stored: a new run starts over"
