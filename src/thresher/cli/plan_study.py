"""`thresher plan --study NAME`: about how much more a study will take, for its own question or another one."""

import json
import os
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import chain, pairwise
from typing import Any, NamedTuple

from ..core import ledger as ledgers
from ..core.events import Event
from ..core.parameters import BARS, MAX_BUDGET
from ..core.revisions import spec_changes
from ..core.rows import Row
from ..core.sentences import remaining_in_sentence, standing_in_sentence
from ..core.spec import Spec
from ..core.state import State
from ..core.verdict import Verdict, verdict_of
from ..errors import InvalidInput
from ..log.event_writing import SEED_BYTES
from ..study import Study
from ..text.escapes import escaped_visible
from ..text.quantities import duration_text
from .output import print_lines, put_output

ASKED = (*BARS, "share", "margin", "ratio", "tolerance", "confidence", "guarantee")  # what a plan may ask instead
LAST = 1000  # rewards from which the pace is taken
USUAL = 0.95  # the share of the times between two rewards that belongs to the pace; the rest are pauses
ESTIMATE = "An estimate: rewards are assumed to go on as they were, and an arm near the bar may take much longer."


class StudyPlan(NamedTuple):
    """What is left of a study."""

    verdict: Verdict  # as it would be now, for the question of the plan
    seconds: float | None  # about how long it will take; None: there is no telling
    cost: float | None

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON-ready data."""
        verdict = self.verdict
        names = ("study", "question", "answer", "issued", "pending", "left")
        arms = [{"arm": row.arm, "standing": row.standing, "left": row.left} for row in verdict.rows]
        head = {name: getattr(verdict, name) for name in names}
        return {"format": 1, **head, "seconds": self.seconds, "cost": self.cost, "arms": arms}


def plan_of_study(
    study: Study, asked: Mapping[str, Any], *, seconds_per_pull: float | None = None, cost_per_pull: float | None = None
) -> StudyPlan:
    """Read the log, ask this question instead in memory, and estimate what is left. Nothing is written."""
    times: deque[float] = deque(maxlen=LAST)
    ledger = ledgers.fold_ledger(_noting(chain.from_iterable(study.pages()), times))
    spec = _asked_instead(ledger.spec, asked)
    if spec.confidence is None:
        rule = "has no confidence, so nothing but its budget or its cases ends it"
        raise InvalidInput("study", study.name, rule, "thresher status says how much of them is left")
    if ledger.unweighed:
        _apply(ledger, Event(0, "weighed", reason=os.urandom(8).hex()))
    if spec_changes(ledger.spec, spec).any:
        _apply(ledger, Event(0, "revised", spec=spec.to_json()))
    elif ledger.budget is not None:
        _apply(ledger, Event(0, "extended", budget=MAX_BUDGET))
    verdict = verdict_of(study.name, ledger)
    pace = _pace(times) if seconds_per_pull is None else seconds_per_pull
    price = cost_per_pull
    if price is None and ledger.cost is not None:
        price = ledger.cost / ledger.told
    left = verdict.left
    return StudyPlan(verdict, *(None if left is None or each is None else left * each for each in (pace, price)))


def _apply(ledger: State, event: Event) -> None:
    ledgers.apply_to_ledger(ledger, event._replace(seq=ledger.seq + 1))


def _noting(events: Iterator[Event], times: deque[float]) -> Iterator[Event]:
    """The events, while the times of rewards are noted."""
    for event in events:
        if event.kind == "told" and event.time is not None and event.cause != "imported":
            times.append(event.time)
        yield event


def _pace(times: deque[float]) -> float | None:
    """The seconds from one reward to the next, without the pauses between two runs."""
    gaps = sorted(max(0.0, after - before) for before, after in pairwise(times))
    usual = gaps[: max(1, int(USUAL * len(gaps)))]
    return sum(usual) / len(usual) if usual else None


def _asked_instead(spec: Spec, asked: Mapping[str, Any]) -> Spec:
    """The specification with another question, and with the largest budget, if any."""
    fields = {name: value for name, value in spec.to_json().items() if name not in ("format", "settling_constant")}
    for group in (BARS, ("margin", "ratio")):  # only one of each
        if any(name in asked for name in group):
            fields = {name: value for name, value in fields.items() if name not in group}
    fields |= {**asked, "policy": spec.policy}
    if spec.budget is not None:
        fields["budget"] = MAX_BUDGET
    return Spec(**fields).seeded(int.from_bytes(os.urandom(SEED_BYTES)))


def print_study_plan(plan: StudyPlan, style: str) -> None:
    """Print it: a sentence, and what is left of each open arm."""
    if style == "json":
        put_output(json.dumps(plan.to_dict(), indent=2, ensure_ascii=False))
    elif style == "csv":
        put_output(plan.verdict.to_csv(), end="")
    else:
        print_lines(_lines(plan))


def _lines(plan: StudyPlan) -> Iterator[str]:
    verdict = plan.verdict
    yield f"{verdict.question} {verdict.answer}"
    if verdict.left is None:
        yield "How much is left cannot be told yet: an open arm has no reward, or lies on the bar."
    else:
        yield f"{_left_text(plan)}."
    is_open = [row for row in verdict.rows if row.standing == "open"]
    width = max((len(escaped_visible(row.arm)) for row in is_open), default=0)
    yield from (_arm_line(row, width) for row in is_open)
    if verdict.left:
        yield ESTIMATE


def _left_text(plan: StudyPlan) -> str:
    """About how much is left, in words."""
    left = plan.verdict.left
    if not left:
        return "Nothing is left to evaluate"
    text = remaining_in_sentence(left)
    text = f"{text[0].upper()}{text[1:]}"
    text += "" if plan.seconds is None else f", {duration_text(plan.seconds)}"
    return text if plan.cost is None else f"{text}, at a cost of about {plan.cost:,.3g}"


def _arm_line(row: Row, width: int) -> str:
    left = "no telling yet" if row.left is None else remaining_in_sentence(row.left)
    return f"  {escaped_visible(row.arm).ljust(width)}  {standing_in_sentence(row)}: {left}"
