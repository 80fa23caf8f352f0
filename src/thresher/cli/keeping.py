"""The study of ``thresher run``: made once, and gone on with by the same command."""

import hashlib
import json
import shlex
from collections.abc import Sequence
from typing import Any

from .. import spec as specs
from ..differences import differences
from ..errors import StudyExists
from ..journal import plain
from ..opening import create_study, open_study
from ..store import Store
from ..store.masking import masked_words
from ..study import Study
from . import say
from .storage import is_kept, place_of


def kept_study(name: str | None, store: Store, asked: dict[str, Any]) -> Study:
    """The study that was asked for: a new one, or the one that is there; a larger budget extends it."""
    spec = specs.specify(**asked)
    name = name or f"run-{fingerprint(spec)}"
    try:
        return create_study(name, **asked, storage=store)
    except StudyExists:
        study = open_study(name, storage=store)
    first, budget = study.look(lambda ledger: (ledger.spec, ledger.budget))
    unlike = differences(first, spec)
    grown = spec.budget is not None and budget is not None and spec.budget > budget
    if spec.budget not in (budget, first.budget) and not grown:
        unlike.append(f"budget is {budget}, not {spec.budget}")
    if unlike:
        rule = f"is in {place_of(store)} with another specification: {'; '.join(unlike)}"
        raise StudyExists("study", name, rule, "name another --study, or ask as before; a larger --budget is fine")
    if grown:
        study.extend(budget=spec.budget or 0)
    _say_what_is_there(study)
    return study


def _say_what_is_there(study: Study) -> None:
    verdict = study.verdict()
    where = f"study {study.name!r} in {place_of(study.store)}"
    if verdict.done:
        say(f"{where} is finished: a larger --budget goes on, thresher delete {study.name} begins anew")
    elif verdict.issued:
        say(f"{where} goes on: {verdict.issued:,} pulls were made before")


def fingerprint(spec: specs.Spec) -> str:
    """A few letters made from a specification, whatever its budget; the same on every machine."""
    data = spec.to_json()
    for name in ("budget", "settling_constant"):  # the latter follows from the rest, by a logarithm
        del data[name]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:8]


def note_command(study: Study, argv: Sequence[str], reward: str) -> None:
    """Record what this agent runs beside its name, and point out where another ran something else."""
    if not is_kept(study):
        return
    text = shlex.join(masked_words(list(argv))) + ("" if reward == "last-float" else f" (--reward {reward})")
    text = plain(text)
    others = [other for other in study.store.notes(study.name).values() if other != text]
    if others:
        say(f"another command was run for this study before: {others[-1]}")
    study.store.note(study.name, study.agent, text)
