"""Commands that list, create, extend and delete studies, and retire or restore their arms."""

import json
import sys
from typing import Any

import click

from ..core.sentences import pulls_in_sentence
from ..create import create_from_spec
from ..errors import DamagedStudy, InvalidInput, StudyExists, shown
from ..run.command.reward import MEASURED
from ..study import Study, peek_study
from ..text.masking import masked_line
from ..text.phrasing import plural
from . import FINISHED, NOT_MET
from .import_export import import_of_baseline_results
from .options import (
    Whole,
    address_in_storage_option,
    format_option,
    name_argument,
    option,
    storage_option,
    store_of_option,
    study_of_option,
    study_of_option_or_damage,
    with_name_and_storage_options,
)
from .output import print_lines, put_output, say, say_done, standard_output
from .question_options import arm_options, arms_in_question_options, question_cases, specification_of_question_options
from .read_commands import summary_of_status_command

arm_argument = click.argument("arm", metavar="ARM")


@click.command()
@storage_option
@format_option("text", "json")
def studies(storage: str | None, style: str) -> int:
    """List the studies in a store: name, state, pulls, when it was created, question, command, answer and revision.

    On a terminal, each has a few lines; in files and pipes one, with tabs. Exit status 1 means that a study is damaged.

    Examples:
      thresher studies
      thresher studies --storage postgresql://me@server/lab --format json
    """
    store = store_of_option(storage)
    rows: list[dict[str, Any]] = []
    for name in store.studies():
        study, damage = study_of_option_or_damage(name, store)
        summary = (
            {"study": name, "storage": address_in_storage_option(store)}
            if study is None
            else summary_of_status_command(study)
        )
        rows.append({**summary, "damaged": damage or None})
    if style == "json":
        put_output(json.dumps({"format": 1, "studies": rows}, indent=2, ensure_ascii=False))
    elif not rows:
        say(f"there are no studies in {address_in_storage_option(store)}")
    for row in rows if style == "text" else ():
        if row["damaged"]:
            put_output(f"{shown(row['study'])[1:-1]}\t{masked_line(row['damaged'])}")
            continue
        state = "done" if row["done"] and not row["waits"] else "open"
        pulls = f"{pulls_in_sentence(row['issued'], row['budget'], None)}, {row['pending']:,} pending"
        head = [row["study"], state, pulls, row["created"] or ""]
        if standard_output().isatty():
            head += [f"revision {row['revision']}"] if row["revision"] > 1 else []
            texts = [f"{row['question']} {row['answer']}", row["command"]]
            print_lines(["  ".join(head), *(f"    {text}" for text in texts if text)])
        else:
            texts = [row["question"], row["command"] or "", row["answer"], f"revision {row['revision']}"]
            put_output("\t".join([*head, *texts]))
    return NOT_MET if any(row["damaged"] for row in rows) else FINISHED


@click.command()
@name_argument
@arm_options
@option(
    "--reward [seconds|cpu-seconds]",
    "Rewards are times that thresher run --study NAME measures.",
    type=click.Choice(MEASURED),
)
@storage_option
def create(name: str, storage: str | None, **options: Any) -> None:
    """Create study NAME, for agents that ask and tell.

    Examples:
      thresher create prompts --at-least 0.9 --arms prompts.txt --budget 2000
      thresher create prompts --at-least 90% --tolerance 2% --arms prompts.txt
      thresher create rivals --baseline current --arms prompts.txt --cases 500
    """
    options["cases"] = question_cases(options["cases"])
    spec, store = (
        specification_of_question_options(arms_in_question_options(options["file"], options["names"]), options),
        store_of_option(storage),
    )
    results = import_of_baseline_results(options, spec)
    try:
        study = create_from_spec(name, spec, storage=store)
    except StudyExists:
        rule = f"already exists in {address_in_storage_option(store)}"
        raise StudyExists("study", name, rule, "thresher status shows it, thresher delete removes it") from None
    cases = f" and {plural(spec.case_count, 'case')}" if spec.cases is not None else ""
    say_done(name, f"created in {address_in_storage_option(store)}, with {plural(len(spec.arms), 'arm')}{cases}")
    if results is not None:
        results.bring(study)


@click.command()
@with_name_and_storage_options
@option("--budget N", "The new total of pulls.", type=Whole(), required=True)
def extend(study: Study, budget: int) -> None:
    """Give study NAME a larger budget.

    Example:
      thresher extend prompts --budget 4000
    """
    before = peek_study(study, lambda ledger: ledger.budget)
    study.extend(budget=budget)
    change = f"extended from {before:,} to {plural(budget, 'pull')}"
    say_done(study.name, f"its budget is already {budget:,}" if budget == before else change)


@click.command()
@with_name_and_storage_options
@arm_argument
@option("--reason TEXT", "Why, for the log and the verdict.", default="retired by hand")
def retire(study: Study, arm: str, reason: str) -> None:
    """Retire ARM of study NAME: it takes no more pulls. Its rewards are kept, and restore lets it take pulls again.

    Example:
      thresher retire prompts terse --reason "too expensive"
    """
    before = _is_retired(study, arm)
    study.retire(arm, reason=reason)
    say_done(study.name, f"arm {shown(arm)} {'was already' if before else 'is'} retired")


@click.command()
@with_name_and_storage_options
@arm_argument
def restore(study: Study, arm: str) -> None:
    """Let the retired ARM of study NAME take pulls again, with its failures forgiven.

    Example:
      thresher restore prompts terse
    """
    before = _is_retired(study, arm)
    study.restore(arm)
    say_done(study.name, f"arm {shown(arm)} {'is restored' if before else 'was not retired'}")
    if peek_study(study, lambda ledger: ledger.spec.arm(arm) in ledger.outside):
        reason = f"arm {shown(arm)} returned a reward outside the bounds"
        never = "no arm can" if arm == study.spec.baseline else "it can never"
        say(f"warning: {reason}, so {never} be certified in this study; create one with the right --bounds")


def _is_retired(study: Study, arm: str) -> bool:
    return peek_study(study, lambda ledger: ledger.spec.arm(arm) in ledger.retired)


@click.command()
@name_argument
@option("--yes", "Do not ask for confirmation.")
@storage_option
def delete(name: str, yes: bool, storage: str | None) -> None:
    """Delete study NAME and its log. This cannot be undone. Agents that still work on it stop with a message.

    Example:
      thresher delete prompts --yes
    """
    store = store_of_option(storage)
    try:
        study = study_of_option(name, store)
        issued, told, pending = peek_study(study, lambda ledger: (ledger.issued, ledger.told, ledger.pending))
        still = f", {pending:,} of them pending," if pending else ""
        description = f"study {shown(name)} with {plural(issued, 'pull')}{still} and {plural(told, 'reward')}"
    except DamagedStudy:
        description = f"study {shown(name)}, which is damaged"
    if not yes and not _is_agreed(name, f"Delete {description}?"):
        raise click.Abort
    with store.turn(name):
        store.delete(name)
    say_done(name, "deleted")


def _is_agreed(name: str, question: str) -> bool:
    """Whether the user agrees to delete a study. Without a terminal, the answer may come from a pipe."""
    if sys.stdin is not None and sys.stdin.isatty():
        return click.confirm(question, err=True)
    answer = "" if sys.stdin is None else sys.stdin.readline()
    if not answer:
        rule = "is deleted only if you agree, and there is no terminal to ask on"
        raise InvalidInput("study", name, rule, "add --yes")
    click.echo(f"{question} {answer.strip()}", err=True)
    return answer.strip().lower() in ("y", "yes")
