"""`thresher diff`: what changed between two revisions of a study."""

import json
from collections.abc import Iterator
from typing import NamedTuple

import click

from ..core.revisions import Changes, pulls_with_result_in_revision, spec_changes
from ..core.rows import Standing, standing_in_row
from ..core.sentences import SIGNS, changes_sentence, quoted_name_in_sentence, results_hold_phrase
from ..core.spec import Spec
from ..core.state import State
from ..errors import InvalidInput
from ..study import peek_study
from ..text.escapes import escaped_visible
from ..text.phrasing import listed_phrase
from .options import Whole, format_option, name_argument, storage_option, study_of_option
from .output import print_lines, put_output

FIELDS = {  # of `Changes`, by how the text names them
    "arms": {"new": "arms_new", "gone": "arms_gone", "changed": "arms_changed"},
    "cases": {"new": "cases_new", "gone": "cases_gone", "changed": "cases_changed"},
    "files": {"changed": "files", "changed, on which all results depend": "common"},
}


class RevisionEnd(NamedTuple):
    """A study as it was at the end of a revision."""

    spec: Spec
    results: set[int]  # the pulls that have one
    pulls: int  # how many it had issued
    standings: dict[str, Standing]  # by arm


@click.command()
@name_argument
@click.argument("before", metavar="[R1", type=Whole(1), required=False)
@click.argument("after", metavar="R2]", type=Whole(1), required=False)
@storage_option
@format_option("text", "json")
def diff(name: str, before: int | None, after: int | None, storage: str | None, style: str) -> None:
    """Show what changed between revisions R1 and R2 of study NAME: by default, the last two.

    That is: arms, cases, files, the question; how many results of R1 hold in R2; and the answers that differ at their
    ends.

    Examples:
      thresher diff prompts
      thresher diff prompts 1 3 --format json
    """
    count = study_of_option(name, storage).revision
    if count == 1:
        rule = "has one revision, so there is nothing to compare"
        raise InvalidInput("study", name, rule, "the next one comes when something changed that was run")
    first = max(1, (after or count) - 1) if before is None else before
    second = count if after is None else after
    ends = [peek_study(study_of_option(name, storage, revision=revision), _end_of) for revision in (first, second)]
    changes, turned = _changes(*ends), _turned(*ends)
    if style == "json":
        fields = {name: value for name, value in changes._asdict().items() if name != "common"}
        data = {"format": 1, "study": name, "before": first, "after": second, **fields, "files_of_all": changes.common}
        turns = [{"arm": arm, "before": old, "after": new} for arm, (old, new) in turned.items()]
        put_output(json.dumps({**data, "turned": turns}, indent=2, ensure_ascii=False))
    else:
        print_lines([f"{escaped_visible(name)}, from revision {first} to {second}", *_lines(changes, turned)])


def _end_of(ledger: State) -> RevisionEnd:
    names = enumerate(ledger.spec.arms)
    standings = {name: standing_in_row(ledger, arm) for arm, name in names if arm != ledger.base}
    return RevisionEnd(ledger.spec, set(pulls_with_result_in_revision(ledger)), ledger.last_pull, standings)


def _changes(before: RevisionEnd, after: RevisionEnd) -> Changes:
    """What changed, with the results of the first that hold in the second."""
    results, held = len(before.results), len(before.results & after.results)
    again = sum(pull <= before.pulls for pull in after.results - before.results)
    return spec_changes(before.spec, after.spec)._replace(results=results, held=held, again=again)


def _turned(before: RevisionEnd, after: RevisionEnd) -> dict[str, tuple[Standing, Standing]]:
    """The answers that differ, of arms that both have."""
    both = ((arm, before.standings[arm], now) for arm, now in after.standings.items() if arm in before.standings)
    return {arm: (old, new) for arm, old, new in both if old != new}


def _lines(changes: Changes, turned: dict[str, tuple[Standing, Standing]]) -> Iterator[str]:
    for heading, parts in FIELDS.items():
        names = [(how, getattr(changes, field)) for how, field in parts.items()]
        if heading == "files":
            other = {"count now": changes.files_new, "no longer count": changes.files_gone}
            unchanged = {*changes.files_new, *changes.files_gone}
            names = [(how, [name for name in listed if name not in unchanged]) for how, listed in names]
            names += other.items()
        texts = [f"{listed_phrase(listed, show=quoted_name_in_sentence)} {how}" for how, listed in names if listed]
        yield from _put(heading, texts)
    question = [Changes(evaluator=True)] if changes.evaluator else []
    question += [Changes(question=(difference,)) for difference in changes.question]
    yield from _put("question", list(map(changes_sentence, question)))
    yield from _put("results", [results_hold_phrase(changes) or "there were none"])
    answers = [
        f"{quoted_name_in_sentence(arm)}: {SIGNS[old]} {old} → {SIGNS[new]} {new}" for arm, (old, new) in turned.items()
    ]
    yield from _put("answers", answers or ["none turned"])


def _put(heading: str, texts: list[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f"{'' if number else heading:9} {text}"
