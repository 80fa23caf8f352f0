"""The studies of a pytest run: which test to run next, and what is known about each."""

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ...core.parameters import MAX_SEED
from ...core.rows import Row, label_of
from ...core.sentences import Words
from ...core.state import State
from ...core.verdict import Verdict
from ...create import create_study
from ...errors import InvalidInput
from ...log.commands import Telling
from ...log.store import open_store
from ...study import Study, give_up, peek, tell_together, verdict_in
from .repeating import Outcome
from .session_options import Options

Status = Literal["steady", "failing", "flaky", "open", "error", "skipped"]
STATES = {("above", True): "steady", ("below", True): "failing", ("retired", False): "retired"}  # by label, certified
SKIPPED = "skipped: "  # begins the reason why a test that skips itself is retired
LONGEST = 900  # characters of a test's name that are kept in an arm's
SLOW, WAIT, MOST = 0.02, 0.2, 64  # rewards are written after a run this long, after this time, or when so many wait
WORDS = Words(arms="tests", rewards="the outcomes of a test's runs")
LEAST = 2  # runs of each test that a budget must allow: the warm-up


class Ask(NamedTuple):
    """One run to make."""

    nodeid: str
    seed: int
    number: int  # counts the test's runs, from 1
    pull: int  # in the study of the test's bar


class Result(NamedTuple):
    """What is known about one test."""

    nodeid: str
    at_least: float
    status: Status
    flaky: bool  # both outcomes were seen
    row: Row
    tally: "Tally"

    @property
    def runs(self) -> int:
        """How many runs were made, with or without a reward."""
        return self.row.seen + self.row.charged


@dataclass
class Tally:
    """What was seen of one test."""

    passes: int = 0
    failures: int = 0  # failed assertions and other exceptions
    seconds: float = 0.0
    seed: int | None = None  # of the first run that failed
    first: Outcome | None = None  # the first run that failed, or had no reward
    lines: list[str] = field(default_factory=list)  # what else there is to say
    aside: str | None = None  # the first error in tearing down shared fixtures after this test

    def add(self, seed: int, outcome: Outcome) -> None:
        """Count a run."""
        self.seconds += outcome.seconds
        self.failures += outcome.failed
        self.passes += outcome.reward is not None and not outcome.failed
        better = self.first is None or not self.first.failed  # a failed assertion says more than an error in setup
        if (outcome.failed and better) or (outcome.failure is not None and self.first is None):
            self.first, self.seed = outcome, seed


class Sift:
    """All tests, each against its bar: one study for each bar.

    The risk is divided among the studies in proportion to their tests, so that all labels together hold at the
    confidence, and a label takes as much evidence as in one study of all tests.
    """

    def __init__(
        self,
        tests: Mapping[str, float],
        options: Options,
        *,
        version: str = "",
        shown: Callable[["Sift"], None] = lambda _: None,
    ) -> None:
        self.options, self.bars = options, dict(tests)
        self.tallies = {nodeid: Tally() for nodeid in tests}
        self.runs = 0  # that ended, in this process
        self.pace: dict[object, float] = {}  # about how many seconds a run takes, by worker
        self._last: dict[object, str] = {}  # the test that ran last, by worker
        self._served = dict.fromkeys(tests.values(), 0.0)  # runs asked for, per open test: the bar with fewest is next
        self._shown = shown  # called after each run
        self._told: list[tuple[Ask, float]] = []  # not written yet
        self._flush_at = 0.0
        self._names = {nodeid: arm_of(nodeid) for nodeid in tests}
        self._nodeids = {name: nodeid for nodeid, name in self._names.items()}
        if len(self._nodeids) < len(tests):
            raise InvalidInput("tests", rule="two have the same name", remedy="give each test its own name")
        if options.budget is not None and options.budget < LEAST * len(tests):
            rule = f"must be at least {LEAST * len(tests):,}: {LEAST} runs for each of {len(tests):,} tests"
            raise InvalidInput("--thresher-budget", options.budget, rule, "give more, or select fewer tests with -k")
        self._store = open_store(options.storage)
        self.studies = {bar: self._study(bar, at, version) for at, bar in enumerate(sorted(set(tests.values())))}
        for study in self.studies.values():
            self._recall(study)
        self.until = math.inf  # the time limit counts from the first run

    def _study(self, bar: float, at: int, version: str) -> Study:
        members = sorted(nodeid for nodeid, its in self.bars.items() if its == bar)  # pytest's order may be random
        options, part = self.options, len(members) / len(self.bars)
        budget = None if options.budget is None else options.budget * len(members) // len(self.bars)
        same = (options.isolation, options.guarantee, options.confidence, options.seed, version)
        bars = [f"{each:g}" for each in self._served]  # in full only if two look alike: stores have short names
        shown = f"{bar:g}" if bars.count(f"{bar:g}") == 1 else repr(bar)
        name = f"pytest {shown} {hashlib.sha256(repr((sorted(self.bars.items()), *same)).encode()).hexdigest()[:12]}"
        question: dict[str, Any] = {
            "arms": [self._names[nodeid] for nodeid in members],
            "at_least": bar,
            "budget": budget,
            "confidence": 1 - (1 - options.confidence) * part if part < 1 else options.confidence,
            "guarantee": options.guarantee,
            "seed": None if options.seed is None else (options.seed + at) % (MAX_SEED + 1),  # no two share their draws
        }
        return create_study(name, storage=self._store, if_exists="join", **question)

    def _recall(self, study: Study) -> None:
        """Count the runs of earlier processes; their tracebacks are not kept."""
        if not peek(study, lambda ledger: ledger.issued):
            return
        for pull in study.pulls():
            if pull.reward is not None:
                tally = self.tallies[self._nodeids[pull.arm]]
                tally.passes += pull.reward > 0
                tally.failures += pull.reward <= 0
                if pull.reward <= 0 and tally.seed is None:
                    tally.seed = pull.seed

    # -- asking and telling -------------------------------------------------------------------------------------

    def ask(self, n: int) -> list[Ask]:
        """At most ``n`` runs to make now, and at least one unless this is `done`."""
        self._flush()
        if self.options.seconds is not None:
            self.until = min(self.until, time.monotonic() + self.options.seconds)
        waiting = {bar: _open(study) for bar, study in self.studies.items() if not study.done}
        everything, found = sum(waiting.values()), list[Ask]()
        for bar, count in sorted(waiting.items(), key=lambda each: self._served[each[0]]):
            share = max(1, n * count // max(1, everything))
            pulls = self.studies[bar].ask_many(min(share, n - len(found)))
            found += [Ask(self._nodeids[pull.arm], pull.seed, pull.number, pull.id) for pull in pulls]
            self._served[bar] += len(pulls) / max(1, count)
        return found

    def tell(self, ask: Ask, outcome: Outcome, worker: object = None) -> None:
        """What came of a run. With xdist, also which worker made it."""
        self.aside(outcome.aside, worker)
        self._last[worker] = ask.nodeid
        self.pace[worker] = 0.8 * self.pace.get(worker, outcome.seconds) + 0.2 * outcome.seconds
        self.tallies[ask.nodeid].add(ask.seed, outcome)
        self.runs += 1
        if outcome.reward is None:
            self._flush()
        if outcome.skipped is not None:  # the outcome may decide whether the test skips: nothing more can be learned
            reason = f"{SKIPPED}{outcome.skipped}"
            self._of(ask).drop(ask.pull, reason=reason, cause="failed")
            self._of(ask).retire(self._names[ask.nodeid], reason=reason)
        elif outcome.reward is None:
            self._of(ask).drop(ask.pull, reason=outcome.failure or "no reward", cause="failed")
        else:
            self._told.append((ask, outcome.reward))
            if outcome.seconds > SLOW or len(self._told) >= MOST or time.monotonic() > self._flush_at:
                self._flush()
        self._shown(self)

    def _of(self, ask: Ask) -> Study:
        return self.studies[self.bars[ask.nodeid]]

    def aside(self, error: str | None, worker: object = None) -> None:
        """An error in tearing down shared fixtures. It is reported with the test that ran last."""
        if error is not None and worker in self._last:
            tally = self.tallies[self._last[worker]]
            tally.aside = tally.aside or error

    def _flush(self) -> None:
        """Write the rewards that were told, together: a single write may take longer than a short test."""
        told, self._told = self._told, []
        self._flush_at = time.monotonic() + WAIT
        for bar, study in self.studies.items():
            mine = {ask.pull: (ask, reward) for ask, reward in told if self.bars[ask.nodeid] == bar}
            if mine:
                outside = tell_together(study, [Telling(pull, reward) for pull, (_, reward) in mine.items()])
                for pull, error in outside.items():
                    self.tallies[mine[pull][0].nodeid].lines.append(str(error))

    def lost(self, ask: Ask, reason: str) -> None:
        """A run that began and never returned an outcome: it is charged."""
        self._flush()
        self._of(ask).drop(ask.pull, reason=reason, cause="lost")

    def unbegun(self, asks: Iterable[Ask]) -> None:
        """Runs that never began, for a reason that has nothing to do with them."""
        for ask in asks:
            give_up(self._of(ask), ask.pull, cause="cancelled", reason="the run ended")

    def drop_all(self, reason: str) -> None:
        """After an interruption, drop the pending runs of this process: each of them may have begun."""
        for study in self._up_to_date():
            for pull in study.pulls() if study.pending() else ():
                if pull.state == "pending" and pull.agent == study.agent:
                    study.drop(pull.id, reason=reason, cause="lost")

    def close(self) -> None:
        """Close the storage's files and connections."""
        for study in self._up_to_date():
            study.close()

    def _up_to_date(self) -> Iterable[Study]:
        self._flush()
        return self.studies.values()

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether there is nothing more to ask for; runs may be pending."""
        return all(study.done for study in self._up_to_date())

    @property
    def open(self) -> int:
        """How many tests take more runs."""
        return sum(map(_open, self._up_to_date()))

    def counts(self) -> Counter[str]:
        """How many tests are steady, failing, retired and open."""
        labels = (label for study in self._up_to_date() for label in peek(study, _labels))
        return Counter(STATES.get(label, "open") for label in labels)

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time limit has passed, so that no run may begin."""
        return time.monotonic() >= self.until

    @property
    def failed_enough(self) -> bool:
        """Whether as many tests are certified to fail too often as --maxfail allows."""
        return 0 < self.options.maxfail <= self.counts()["failing"]

    def verdicts(self) -> list[Verdict]:
        """The verdict of each study, with its guarantee in the words of tests and runs."""
        return [verdict_in(study, WORDS) for study in self._up_to_date()]

    def results(self, verdicts: Sequence[Verdict] | None = None) -> list[Result]:
        """What is known about each test, in their order."""
        found = dict(zip(self.studies, self.verdicts() if verdicts is None else verdicts, strict=True))
        return [self._result(nodeid, found[bar]) for nodeid, bar in self.bars.items()]

    def _result(self, nodeid: str, verdict: Verdict) -> Result:
        row, tally = verdict[self._names[nodeid]], self.tallies[nodeid]
        flaky = tally.passes > 0 and tally.failures > 0
        status: Status = "flaky" if flaky else "open"
        if row.certified:
            status = "steady" if row.label == "above" else "failing"
        elif row.arm in verdict.outside or row.label == "retired":
            status = "skipped" if (row.reason or "").startswith(SKIPPED) else "error"
        return Result(nodeid, self.bars[nodeid], status, flaky, row, tally)


def _open(study: Study) -> int:
    return peek(study, lambda ledger: ledger.open)


def _labels(ledger: State) -> list[tuple[str, bool]]:
    return [label_of(ledger, arm) for arm in range(len(ledger.spec.arms))]


def arm_of(nodeid: str) -> str:
    """The name of a test's arm: printable, and not too long."""
    plain = "".join(char if char.isprintable() else repr(char)[1:-1] for char in nodeid)
    if plain == nodeid and len(nodeid) <= LONGEST:
        return nodeid
    return f"{plain[:LONGEST]} {hashlib.sha256(nodeid.encode(errors='surrogatepass')).hexdigest()[:12]}"
