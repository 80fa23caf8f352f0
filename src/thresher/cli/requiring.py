"""Requirements of a run: how many arms must have which label, for the exit status."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import click

from ..core.verdict import Verdict
from ..errors import InvalidInput, shown
from ..text.phrasing import only, plural
from . import say


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
