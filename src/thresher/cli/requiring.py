"""Requirements of a run: how many arms must have which label, for the exit status."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import click

from ..core.verdict import Verdict
from ..errors import InvalidInput, shown
from ..text.plural import only, plural
from . import say


class Requirement(NamedTuple):
    """What an option requires."""

    option: str  # as it was given
    side: str  # above, below, reached or missed
    least: str  # all, any, or a number


class Required(click.ParamType[Requirement]):
    """What ``--require`` takes.

    >>> Required().convert("reached=3", None, None)
    Requirement(option='--require reached=3', side='reached', least='3')
    """

    name = "requirement"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Requirement:
        """The requirement that the text says."""
        found = re.fullmatch(r"(reached|missed)=(all|any|[1-9][0-9]{0,17})", str(value).strip())
        if found is None:
            rule = "must be reached or missed, =, and all, any or a number of arms; write reached=all, for example"
            self.fail(f"{shown(value, 60)} {rule}", param, ctx)
        return Requirement(f"--require {found[0]}", found[1], found[2])


def requirements(above: str | None, below: str | None, more: Sequence[Requirement], *, arms: int) -> list[Requirement]:
    """All requirements of a command line about so many arms, if they can be met."""
    sides = (("above", above), ("below", below))
    for one in more:
        if one.least.isdigit() and int(one.least) > arms:
            raise InvalidInput("--require", f"{one.side}={one.least}", only(arms, "arm"), "require fewer, or all")
    return [*(Requirement(f"--require-{side} {least}", side, least) for side, least in sides if least), *more]


def are_met(verdict: Verdict, required: Sequence[Requirement]) -> bool:
    """Whether the requirements hold; prints on standard error which do not. Nothing is required of the baseline."""
    fine, arms = True, len(verdict.rows) - (verdict.baseline is not None)
    sure = "" if verdict.confidence is None else "certified "
    for option, side, least in required:
        names: list[str] = getattr(verdict, side)
        found = [name for name in names if verdict[name].certified or verdict.confidence is None]
        needed = {"all": arms, "any": 1}.get(least) or int(least)
        if len(found) < needed:
            fine = False
            what = {"reached": "to reach the bar", "missed": "not to reach the bar"}.get(side, side)
            one = len(found) == 1
            does = f"{'is' if one else 'are'} {sure}{what}"
            if not sure and what != side:
                does = f"reach{'es' if one else ''} the bar" if side == "reached" else f"miss{'es' if one else ''} it"
            say(f"{option}: {len(found):,} of {plural(arms, 'arm')} {does}")
        elif verdict.told == verdict.earlier + verdict.imported:
            say(f"{option}: met by {'earlier runs' if verdict.earlier else 'imported results'}; nothing new was run")
    return fine
