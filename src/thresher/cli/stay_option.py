"""``thresher run --stay``: a program that is started once per worker and answers pulls, line by line."""

from collections.abc import Mapping, Sequence
from typing import Any

import click
from click.core import ParameterSource

from ..core import checks
from ..core.named_items import SHAPES, listed
from ..core.spec import Params
from ..errors import InvalidInput
from ..run.command.persistent_pool import Staying
from ..run.command.process import CASE, PULL_FIELDS
from ..text.machine import available_cores
from .question_options import ARMS_OF_COMMANDS, arms_given
from .run_checks import check_program, placeholders

STAY = "--stay"
ANSWERS = 'COMMAND answers {"pull": …, "reward": …} instead'


def staying(command: Sequence[str], given: dict[str, Any], *, engine: str, elsewhere: bool) -> Staying | None:
    """The evaluator of ``--stay``, or None without it. Options that do not go together are refused."""
    if not given["stay"]:
        if given["per_process"] is not None:
            raise InvalidInput("--per-process", given["per_process"], f"has no effect without {STAY}", f"add {STAY}")
        return None
    _check_options(given)
    per_process = 1 if given["per_process"] is None else checks.whole("--per-process", given["per_process"], least=1)
    if per_process > 1 and (engine in ("processes", "dask") or engine.startswith("ray")):
        rule = f"a worker of --engine {engine} has one pull at a time"
        raise InvalidInput("--per-process", per_process, rule, "use --engine threads, or more --workers instead")
    check_program(command, elsewhere=elsewhere)
    return Staying(tuple(command), given["timeout"], per_process)


def _check_options(given: dict[str, Any]) -> None:
    context = click.get_current_context()
    for option, name in (("--reward", "reward"), ("--pass", "passing"), ("--fail", "failing")):
        if context.get_parameter_source(name) != ParameterSource.DEFAULT:
            raise InvalidInput(option, given[name], f"has no effect with {STAY}", f"leave it out: {ANSWERS}")


def arms_of(evaluate: Staying, given: dict[str, Any], *, engine: str) -> dict[str, Params]:
    """The arms of the options, or those that the evaluator names itself."""
    if given["file"] or given["names"]:
        return arms_given(given["file"], given["names"])
    try:
        arms = listed(evaluate.arms_named(), "COMMAND's greeting", ARMS_OF_COMMANDS)
        if not arms:
            raise InvalidInput("arms", rule="COMMAND's greeting names none", remedy=SHAPES)
        return arms
    finally:
        if engine != "threads":  # pulls are made elsewhere
            evaluate.stop()


def check_placeholders(argv: Sequence[str], arms: Mapping[str, Params]) -> None:
    """Raise if COMMAND has a placeholder: it is started before there is a pull."""
    known = {*PULL_FIELDS, CASE, *(key for params in arms.values() for key in params)}
    for name in sorted(placeholders(*argv)):
        if name in known or name.startswith(f"{CASE}."):
            rule = f"has no value with {STAY}: COMMAND is started once, for all pulls"
            remedy = "leave it out: COMMAND reads it from each pull's line"
            raise InvalidInput("placeholder", f"{{{name}}}", rule, remedy)


def workers_of(evaluate: object, workers: int | None, engine: str) -> int | None:
    """How many pulls an engine makes at once: with ``--per-process``, several in each process of its workers."""
    if isinstance(evaluate, Staying) and evaluate.per_process > 1 and engine == "threads":
        return (workers or available_cores()) * evaluate.per_process
    return workers
