"""The answer of a study: which arms reach the bar, which miss it, which are open, and how sure that is."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from typing import Any

from . import checks, row_text, sentences
from .evidence import OPEN
from .forecast import forecast_left
from .guarantee import USUAL, Words, guarantee, guarantee_hints
from .rows import Row, Standing, row_of, standing_in_row
from .sentences import SentenceWording, sentence_wording
from .state import State

FORMAT = 1  # of the JSON


@dataclass(frozen=True)
class Verdict:
    """The answer so far. Every arm but a baseline is in one of ``reached``, ``missed`` and ``open``.

    Only certified answers count as reached and missed; in a study without certificates, the means do. A row has what
    is known about an arm, also about an open one.

    >>> from thresher import create_study
    >>> study = create_study("coins", arms=["fair", "loaded"], at_least=0.6, budget=20, confidence=None)
    >>> while pull := study.ask():
    ...     study.tell(pull, pull.arm == "loaded")
    >>> verdict = study.verdict()
    >>> verdict.reached, verdict["fair"].reached, "loaded" in verdict, len(verdict)
    (['loaded'], False, True, 2)
    >>> [(row.arm, row.mean) for row in verdict]
    [('fair', 0.0), ('loaded', 1.0)]
    """

    study: str
    at_least: float | None  # the bar, in the words in which it was given; at_most and margin: None
    at_most: float | None
    margin: float | None
    bounds: tuple[float, float] | None
    policy: str
    confidence: float | None
    budget: int | None
    issued: int
    told: int
    pending: int
    done: bool
    guarantee: str
    hints: tuple[str, ...]
    rows: tuple[Row, ...]
    left: int | None = None  # about how many pulls the study still takes, an estimate; None: there is no telling
    full_run: int | None = None  # pulls that the same answer takes without choosing: see `verdict_full_run`
    tolerance: float = 0.0  # within it of the bar, either answer is right
    cases: int | None = None  # how many the eval set has; None: rewards have no cases
    find: int | None = None  # how many arms that reach the bar are enough; None: every arm is to be labelled
    lower_is_better: bool = False  # arms reach the bar from above
    share: float | None = None  # of pulls that must be within the bar; None: the mean counts
    baseline: str | None = None  # the arm that the others are compared with, by the margin
    ratio: float | None = None  # of the baseline's reward; None: the difference counts
    unit: str | None = None  # of rewards
    outside: tuple[str, ...] = ()  # arms that returned a reward outside the bounds: not certified, whatever their label
    cost: float | None = None  # of all rewards together, as the evaluator said; None: it never said
    seconds: float | None = field(default=None, compare=False)  # that the run took; None: not one run made all pulls
    imported: int = 0  # rewards that came from an import
    earlier: int = field(default=0, compare=False)  # other rewards that were there when this process opened the study
    since: str | None = field(default=None, compare=False)  # when it was created; None in later revisions
    others: int = field(default=0, compare=False)  # rewards that other agents have told since then
    events: int = field(default=0, compare=False)  # how many the log has
    head: str | None = field(default=None, compare=False)  # the digest of the last event, and so of all of them
    revision: int = 1
    held: int = 0  # results of earlier revisions that this one took over
    promised: float | None = None  # with which probability all answers of all revisions are right; None: revision 1

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __contains__(self, arm: object) -> bool:
        return arm in self._rows if isinstance(arm, str) else arm in self.rows

    def __getitem__(self, arm: str) -> Row:
        """The row of an arm."""
        if not isinstance(arm, str) or arm not in self._rows:
            raise checks.arm_check_error(arm, list(self._rows))
        return self._rows[arm]

    @cached_property
    def _rows(self) -> dict[str, Row]:
        return {row.arm: row for row in self.rows}

    def _standing(self, *standings: Standing) -> list[str]:
        return [row.arm for row in self.rows if row.standing in standings]

    @property
    def reached(self) -> list[str]:
        """The arms that reach the bar."""
        return self._standing("reaches")

    @property
    def missed(self) -> list[str]:
        """The arms that miss the bar."""
        return self._standing("misses")

    @property
    def open(self) -> list[str]:
        """The arms without an answer; some may be retired."""
        return self._standing("open", "retired")

    @property
    def retired(self) -> list[str]:
        """The open arms that take no more pulls, by hand or after failures; `Row.reason` says why."""
        return self._standing("retired")

    @cached_property
    def wording(self) -> SentenceWording:
        """What the study asks, for sentences, tables and pictures."""
        bars = (self.at_least, self.at_most, self.margin)
        stated_bar = next((bar for bar in bars if bar is not None), 0.0)
        return SentenceWording(stated_bar, *(getattr(self, name) for name in SentenceWording._fields[1:]))

    @property
    def question(self) -> str:
        """What the study asks."""
        return sentences.question_sentence(self.wording, len(self.rows) - (self.baseline is not None))

    @property
    def edges(self) -> tuple[float, float]:
        """The bar less and plus the tolerance, on the scale of what is asked about."""
        return self.wording.edges

    @property
    def answer(self) -> str:
        """How many arms reach the bar, how many miss it and how many are open, in a sentence."""
        counts = len(self.reached), len(self.missed), len(self.open)
        if self.find is not None:
            return sentences.found_sentence(self.reached, self.find, *counts[1:], done=self.done)
        return sentences.answer_sentence(self.wording, *counts, certifies=self.confidence is not None)

    @property
    def headline(self) -> str:
        """The answer, after the question if arms are open."""
        return f"{self.question} {self.answer}" if self.open else self.answer

    @property
    def spent(self) -> str:
        """What the answer took and what is left, in a sentence."""
        took = (self.issued, self.pending, self.budget, self.full_run, self.cost)
        return sentences.spent_sentence(*took, left=self.left, done=self.done, seconds=self.seconds)

    @property
    def origin(self) -> str | None:
        """How many rewards are from earlier runs or other agents, in a sentence; None: all are our own or imported."""
        return sentences.origin_sentence(self.earlier, self.told, self.since, self.others)

    @property
    def remarks(self) -> list[str]:
        """What else a reader of the answer must know, a sentence or two each."""
        return [*([self.origin] if self.origin else []), self.guarantee, *self.hints]

    # -- as data and as text ------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The verdict as JSON-ready data; ``"format"`` says which shape it has."""
        head = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "rows"}
        texts = {name: getattr(self, name) for name in ("question", "answer", "headline", "spent")}
        parts = {name: getattr(self, name) for name in ("edges", "reached", "missed", "open", "retired")}
        return {"format": FORMAT, **head, **texts, **parts, "rows": [asdict(row) for row in self.rows]}

    def to_json(self) -> str:
        """The verdict as JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_csv(self) -> str:
        """The rows as CSV text, names of columns first. A name or reason is never a formula to a spreadsheet."""
        return row_text.rows_as_csv(self.rows)

    def to_markdown(self) -> str:
        """The answer and a table in Markdown, in which names are text and nothing else."""
        return row_text.rows_as_markdown(self.rows, self.wording, f"**{self.headline}** {self.spent}", self.remarks)

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame; an error if pandas is not installed."""
        return row_text.rows_as_frame([asdict(row) for row in self.rows])

    def lines(self, width: int | None = None) -> Iterator[row_text.Line]:
        """The table and the sentences as ``print(verdict)`` shows them, in pieces with a style each."""
        if self.origin:
            yield from (((self.origin, "notice"),), ())
        yield from row_text.rows_as_table(self.rows, self.wording, width)
        yield from row_text.row_failures_text(self.rows)
        yield ((self.headline, "strong"), (f" {self.spent}", ""))
        yield ((self.guarantee, "quiet"),)
        for hint in self.hints:
            yield ((hint, "notice"),)

    def __str__(self) -> str:
        return "\n".join("".join(text for text, _ in line).rstrip() for line in self.lines())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return row_text.rows_as_html(self.rows, self.wording, self.headline, self.spent, self.remarks)


def answer_sentence_of(ledger: State) -> str:
    """The same as `Verdict.answer`, without the rows, which take longer."""
    spec, standings = ledger.spec, [standing_in_row(ledger, arm) for arm in range(len(ledger.spec.arms))]
    reached, missed, is_open = (standings.count(name) for name in ("reaches", "misses", "open"))
    is_open += standings.count("retired")
    if spec.find is None:
        return sentences.answer_sentence(sentence_wording(spec), reached, missed, is_open, certifies=ledger.certifies)
    names = [name for name, standing in zip(spec.arms, standings, strict=True) if standing == "reaches"]
    return sentences.found_sentence(names, spec.find, missed, is_open, done=ledger.done)


def verdict_full_run(ledger: State) -> int | None:
    """How many pulls the answer would take without choosing: all cases of all arms, or the same number for each arm.

    Without cases, that number is what the hardest of the settled arms needed, without the pulls that were pending when
    it was settled; None: some arms still take pulls.
    """
    arms = len(ledger.spec.arms)
    if ledger.cases is not None:
        return arms * ledger.cases.count
    if not ledger.certifies or ledger.open:
        return None
    docket = ledger.docket
    needed = [docket.committed[arm] + docket.charged[arm] for arm in range(arms) if docket.settled[arm] != OPEN]
    return ledger.spec.contenders * max(needed) if needed else None


def verdict_of(study: str, ledger: State, words: Words = USUAL) -> Verdict:
    """The verdict of a ledger, its guarantee in these words."""
    spec = ledger.spec
    wording = sentence_wording(spec)
    return Verdict(
        study=study,
        bounds=spec.bounds,
        policy=str(spec.policy),
        confidence=spec.confidence,
        budget=ledger.budget,
        issued=ledger.issued,
        told=ledger.told,
        pending=ledger.pending,
        done=ledger.done,
        guarantee=guarantee(ledger, words),
        hints=guarantee_hints(ledger),
        rows=tuple(row_of(ledger, arm) for arm in range(len(spec.arms))),
        left=forecast_left(ledger),
        full_run=verdict_full_run(ledger),
        outside=tuple(spec.arms[arm] for arm in range(len(spec.arms)) if ledger.is_outside(arm)),
        cost=ledger.cost,
        imported=ledger.told - ledger.own_told,
        events=ledger.seq,
        head=ledger.head,
        revision=ledger.revision,
        held=ledger.lineage.held + ledger.lineage.again if ledger.lineage else 0,
        promised=ledger.lineage.promised if ledger.lineage else None,
        cases=wording.cases,
        find=wording.find,
        **wording.asked,
    )
