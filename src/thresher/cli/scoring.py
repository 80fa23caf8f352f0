"""``--policy module:function``: a score function of the user's. Only what a command line names is ever imported."""

import importlib
import sys
from pathlib import Path
from typing import Any

import click

from ..core import policies
from ..core.policies import Policy
from ..errors import InvalidInput, told_of
from .options import option

EXAMPLE = "write --policy module:function, with the file module.py in this folder"


class PolicyName(click.ParamType[Any]):
    """The name of a policy, or module:function, where the function is a score, or the object a policy.

    A function is passed to `custom` with its defaults; for other settings, name a policy that the module makes.
    """

    name = "policy"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The policy; a plain name stays as it is, for the library to look up."""
        return imported(value) if isinstance(value, str) and ":" in value else value


def imported(text: str) -> Policy:
    """The policy at module:name, which is imported now."""
    module, _, name = text.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise InvalidInput("--policy", text, "must be a name, or module:function", EXAMPLE)
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InvalidInput("--policy", text, f"there is no module {error.name!r}", EXAMPLE) from None
    except (Exception, SystemExit) as error:  # a script without a main guard may exit: nothing was done yet
        raise InvalidInput("--policy", text, f"importing it raised {told_of(error)}", "correct the module") from error
    for part in name.split("."):
        if not hasattr(found, part):
            raise InvalidInput("--policy", text, f"{module} has no {name}", EXAMPLE)
        found = getattr(found, part)
    if isinstance(found, Policy):
        return found
    try:
        return policies.custom(found)
    except InvalidInput as error:  # about the object: say where it is
        raise InvalidInput("--policy", text, error.rule, error.remedy) from None


scores_option = option(
    "--policy MODULE:FUNCTION",
    "The score function of a study that was created with one; repeat it for more. Reading does not need it.",
    to="scores",
    type=PolicyName(),
    multiple=True,
)
