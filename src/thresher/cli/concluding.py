"""How ``thresher run`` ends: the verdict, what to do next, and the exit status."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import CannotGoOn, StoreFailed, shown
from ..study import Study
from . import FINISHED, NOT_MET, say
from .kept_study import pulls_made
from .options import address_of, is_kept
from .output import print_verdict
from .requiring import Requirement, are_met


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
