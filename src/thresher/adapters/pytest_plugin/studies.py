"""The studies of a pytest session: which test to run next, and the result of each test."""

import hashlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ...core.forecast import forecast_left
from ...core.guarantee import Words
from ...core.parameters import MAX_SEED
from ...core.rows import Row, standing_in_row
from ...core.sentences import changes_sentence
from ...core.spec import Spec
from ...core.state import State
from ...core.verdict import Verdict
from ...create import take_up_study
from ...errors import CannotGoOn, InvalidInput
from ...log.event_writing import Telling
from ...log.store import open_store
from ...study import Pull, Study, exchange_in_study, give_up_in_study, peek_study, study_verdict_in_words
from ...text.quantities import PERCENT
from .repeating import RepeatedOutcome
from .session_options import Options, SessionBar

Status = Literal["reaches", "misses", "open", "error", "skipped"]
SKIPPED = "skipped: "  # the start of the reason why a test that skips itself is retired
LONGEST = 900  # characters of a test's name that are kept in the arm's name
SLOW = 0.02  # seconds of a run after which its reward is written at once
WAIT, MOST = 0.2, 64  # other rewards are written after this many seconds, or when this many wait
WORDS = Words(arms="tests", rewards="the outcomes of a test's runs")
LEAST = 2  # runs of each test that a budget must allow, for the warm-up


class Ask(NamedTuple):
    """One run to make."""

    nodeid: str
    seed: int
    number: int  # counts the test's runs, from 1
    pull: int  # in the study of the test's bar


class PytestStudyResult(NamedTuple):
    """The result of one test."""

    nodeid: str
    bar: SessionBar
    status: Status
    flaky: bool  # both outcomes were seen
    row: Row
    tally: "PytestStudyTally"

    @property
    def runs(self) -> int:
        """The number of runs, with or without a reward."""
        return self.row.seen + self.row.charged


@dataclass
class PytestStudyTally:
    """The runs of one test, counted."""

    passes: int = 0
    failures: int = 0  # failed assertions and other exceptions
    seconds: float = 0.0
    seed: int | None = None  # of the first run that failed
    first: RepeatedOutcome | None = None  # the first run that failed, or had no reward
    errors: list[str] = field(default_factory=list)  # of rewards that the study refused
    teardown_error: str | None = None  # the first error in tearing down shared fixtures after this test

    def add(self, seed: int, outcome: RepeatedOutcome) -> None:
        """Count a run."""
        self.seconds += outcome.seconds
        self.failures += outcome.failed
        self.passes += outcome.reward is not None and not outcome.failed
        is_better = self.first is None or not self.first.failed  # a failed assertion says more than an error in setup
        if (outcome.failed and is_better) or (outcome.failure is not None and self.first is None):
            self.first, self.seed = outcome, seed


class SessionStudies:
    """One study for each bar, with the tests that have this bar.

    The risk is divided among the studies in proportion to their tests. So all answers together are right with the
    confidence, and an answer takes as many runs as in one study of all tests.
    """

    def __init__(
        self,
        tests: Mapping[str, SessionBar],
        options: Options,
        *,
        project: str = "",
        code: Mapping[str, Any] | None = None,
        on_run: Callable[["SessionStudies"], None] = lambda _: None,
    ) -> None:
        self.options, self.bars = options, dict(tests)
        self.tallies = {nodeid: PytestStudyTally() for nodeid in tests}
        self.runs = 0  # of this process that have ended
        self.pace: dict[object, float] = {}  # about how many seconds a run takes, by worker
        self._last: dict[object, str] = {}  # the test that ran last, by worker
        self._served = dict.fromkeys(tests.values(), 0.0)  # by bar: runs asked for per open test; the fewest is next
        self._on_run = on_run
        self._told: dict[SessionBar, dict[int, tuple[Ask, float]]] = {}  # rewards that are not written yet, by pull
        self._flush_at = 0.0
        self._names = {nodeid: arm_of_pytest_study(nodeid) for nodeid in tests}
        self._nodeids = {name: nodeid for nodeid, name in self._names.items()}
        if len(self._nodeids) < len(tests):
            raise InvalidInput("tests", rule="two have the same name", remedy="give each test its own name")
        if options.budget is not None and options.budget < LEAST * len(tests):
            rule = f"must be at least {LEAST * len(tests):,}: {LEAST} runs for each of {len(tests):,} tests"
            raise InvalidInput("--thresher-budget", options.budget, rule, "give more, or select fewer tests with -k")
        self._store = open_store(options.storage)
        self.revised: list[str] = []  # what changed since the studies were asked last, for people
        bars = enumerate(sorted(set(tests.values())))
        self.by_bar = {
            bar: self._study(arm_of_pytest_study(f"pytest {project}".strip()), bar, index, code or {})
            for index, bar in bars
        }
        self._revisions = {bar: study.revision for bar, study in self.by_bar.items()}
        for study in self.by_bar.values():
            self._count_earlier(study)
        self.until = math.inf  # the time limit counts from the first run

    def _study(self, name: str, bar: SessionBar, index: int, code: Mapping[str, Any]) -> Study:
        # pytest's order of tests may be random
        members = sorted(nodeid for nodeid, own_bar in self.bars.items() if own_bar == bar)
        options, part = self.options, len(members) / len(self.bars)
        if bar != options.bar:
            name += f" {'±'.join(map(repr, bar if bar.tolerance else bar[:1]))}"
        if options.seed is not None:  # studies with different seeds do not share their draws
            name += f" seed {options.seed}"
        files = {self._names[nodeid]: code["arms"][nodeid] for nodeid in members if code}
        spec = Spec(
            arms=[self._names[nodeid] for nodeid in members],
            at_least=bar.at_least,
            tolerance=bar.tolerance,
            unit=PERCENT,
            budget=None if options.budget is None else options.budget * len(members) // len(self.bars),
            confidence=1 - (1 - options.confidence) * part if part < 1 else options.confidence,
            guarantee=options.guarantee,
            seed=None if options.seed is None else (options.seed + index) % (MAX_SEED + 1),
            depends={"files": code["files"], "arms": files} if code else None,
        )
        study, changes = take_up_study(name, spec, storage=self._store)
        if changes is not None:
            sentence = changes_sentence(changes, arm="test")
            self.revised.append(f"{study.name}, revision {study.revision}: {sentence}")
        return study

    def _count_earlier(self, study: Study) -> None:
        """Count the runs of earlier processes that still hold. Their tracebacks are not kept."""
        tests = peek_study(study, _tests_of_pulls)
        for pull in study.pulls() if tests else ():
            if pull.reward is not None and pull.id in tests:
                tally = self.tallies[self._nodeids[tests[pull.id]]]
                tally.passes += pull.reward > 0
                tally.failures += pull.reward <= 0
                if pull.reward <= 0 and tally.seed is None:
                    tally.seed = pull.seed

    # -- asking and telling -------------------------------------------------------------------------------------

    def ask(self, n: int) -> list[Ask]:
        """Ask for at most ``n`` runs, and at least one unless all studies are `done`."""
        if self.options.seconds is not None:
            self.until = min(self.until, time.monotonic() + self.options.seconds)
        if len(self.by_bar) > 1:
            self._flush()  # the rewards decide how many runs each study gets
        waiting = {bar: _open(study) for bar, study in self.by_bar.items() if not study.done}
        total, asks = sum(waiting.values()), list[Ask]()
        for bar, count in sorted(waiting.items(), key=lambda item: self._served[item[0]]):
            share = max(1, n * count // max(1, total))
            pulls = self._exchange(bar, min(share, n - len(asks)))
            asks += [Ask(self._nodeids[pull.arm], pull.seed, pull.number, pull.id) for pull in pulls]
            self._served[bar] += len(pulls) / max(1, count)
        self._flush()
        return asks

    def _exchange(self, bar: SessionBar, n: int) -> list[Pull]:
        """Write the rewards of one study and ask it for runs, in one write.

        If another session has revised it, its pulls are not for the code of this one.
        """
        study, told = self.by_bar[bar], self._told.pop(bar, {})
        rewards = [Telling(pull, reward) for pull, (_, reward) in told.items()]
        exchanged = exchange_in_study(study, rewards, n, is_final=True)
        for number, error in exchanged.outside.items():
            self.tallies[told[number][0].nodeid].errors.append(str(error))
        if exchanged.outside:
            return self._exchange(bar, n)
        pulls = exchanged.pulls
        if n and study.revision != self._revisions[bar]:
            for pull in pulls:
                give_up_in_study(study, pull, cause="cancelled", reason="the session has other code")
            rule = "was revised by another session, which has other tests or other code"
            raise CannotGoOn("study", study.name, rule, "run pytest again")
        return pulls

    def tell(self, ask: Ask, outcome: RepeatedOutcome, worker: object = None) -> None:
        """Tell the outcome of a run and, with xdist, the worker that made it."""
        self.note_teardown_error(outcome.earlier_error, worker)
        self._last[worker] = ask.nodeid
        self.pace[worker] = 0.8 * self.pace.get(worker, outcome.seconds) + 0.2 * outcome.seconds
        self.tallies[ask.nodeid].add(ask.seed, outcome)
        self.runs += 1
        if outcome.reward is None:
            self._flush()
        if (
            outcome.skipped is not None
        ):  # chance may decide whether the test skips itself, so its pass rate means little
            reason = f"{SKIPPED}{outcome.skipped}"
            self._study_of(ask).drop(ask.pull, reason=reason, cause="failed")
            self._study_of(ask).retire(self._names[ask.nodeid], reason=reason)
        elif outcome.reward is None:
            self._study_of(ask).drop(ask.pull, reason=outcome.failure or "no reward", cause="failed")
        else:
            told = self._told.setdefault(self.bars[ask.nodeid], {})
            told[ask.pull] = ask, outcome.reward
            if outcome.seconds > SLOW or len(told) >= MOST or time.monotonic() > self._flush_at:
                self._flush()
        self._on_run(self)

    def _study_of(self, ask: Ask) -> Study:
        return self.by_bar[self.bars[ask.nodeid]]

    def note_teardown_error(self, error: str | None, worker: object = None) -> None:
        """Note an error in tearing down shared fixtures. It is reported with the test that ran last."""
        if error is not None and worker in self._last:
            tally = self.tallies[self._last[worker]]
            tally.teardown_error = tally.teardown_error or error

    def _flush(self) -> None:
        """Write the rewards that were told. They are written together, because a write may take longer than a test."""
        self._flush_at = time.monotonic() + WAIT
        for bar in list(self._told):
            self._exchange(bar, 0)

    def drop_lost(self, ask: Ask, reason: str) -> None:
        """Drop a run that began and returned no outcome. It is charged."""
        self._flush()
        self._study_of(ask).drop(ask.pull, reason=reason, cause="lost")

    def take_back(self, asks: Iterable[Ask]) -> None:
        """Take back runs that never began, for a reason that has nothing to do with them."""
        for ask in asks:
            give_up_in_study(self._study_of(ask), ask.pull, cause="cancelled", reason="the run ended")

    def drop_all(self, reason: str) -> None:
        """After an interruption, drop the pending runs of this process. Each of them may have begun."""
        for study in self._up_to_date():
            pending = {pull.id for pull in study.pending()}
            for pull in study.pulls() if pending else ():
                if pull.id in pending and pull.agent == study.agent:
                    study.drop(pull.id, reason=reason, cause="lost")

    def close(self) -> None:
        """Close the storage's files and connections."""
        for study in self._up_to_date():
            study.close()

    def _up_to_date(self) -> Iterable[Study]:
        self._flush()
        return self.by_bar.values()

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether there is nothing more to ask for; runs may be pending."""
        return all(study.done for study in self._up_to_date())

    @property
    def open(self) -> int:
        """How many tests take more runs, without the rewards that are not written yet."""
        return sum(map(_open, self.by_bar.values()))

    def counts(self) -> Counter[str]:
        """How many tests reach the bar, miss it, are open and are retired."""
        return Counter(word for study in self._up_to_date() for word in peek_study(study, _standings))

    @property
    def left(self) -> int | None:
        """About how many runs are left, an estimate; None: there is no telling."""
        runs = [peek_study(study, forecast_left) for study in self._up_to_date()]
        return None if None in runs else sum(filter(None, runs))

    @property
    def is_out_of_time(self) -> bool:
        """Whether the time limit has passed, so that no run may begin."""
        return time.monotonic() >= self.until

    @property
    def failed_enough(self) -> bool:
        """Whether as many tests are certified to miss the bar as --maxfail allows."""
        return 0 < self.options.maxfail <= self.counts()["misses"]

    def verdicts(self) -> list[Verdict]:
        """The verdict of each study, with its guarantee in the words of tests and runs."""
        return [study_verdict_in_words(study, WORDS) for study in self._up_to_date()]

    def results(self, verdicts: Sequence[Verdict] | None = None) -> list[PytestStudyResult]:
        """The results of all tests, in their order."""
        verdict_of = dict(zip(self.by_bar, self.verdicts() if verdicts is None else verdicts, strict=True))
        return [self._result(nodeid, verdict_of[bar]) for nodeid, bar in self.bars.items()]

    def _result(self, nodeid: str, verdict: Verdict) -> PytestStudyResult:
        row, tally = verdict[self._names[nodeid]], self.tallies[nodeid]
        flaky = tally.passes > 0 and tally.failures > 0
        status: Status = "open"
        if row.standing == "reaches" or row.standing == "misses":
            status = row.standing
        elif row.arm in verdict.outside or row.retired:
            status = "skipped" if (row.reason or "").startswith(SKIPPED) else "error"
        return PytestStudyResult(nodeid, self.bars[nodeid], status, flaky, row, tally)


def _open(study: Study) -> int:
    return peek_study(study, lambda ledger: ledger.open)


def _standings(ledger: State) -> list[str]:
    return [standing_in_row(ledger, arm) for arm in range(len(ledger.spec.arms))]


def _tests_of_pulls(ledger: State) -> dict[int, str]:
    """The arm of each pull whose history goes on."""
    arms = ((pull, ledger.arm_of(pull)) for pull in range(1, ledger.last_pull + 1))
    return {pull: ledger.spec.arms[arm] for pull, arm in arms if arm is not None}


def arm_of_pytest_study(nodeid: str) -> str:
    """The name of a test's arm: printable, and not too long."""
    plain = "".join(char if char.isprintable() else repr(char)[1:-1] for char in nodeid)
    if plain == nodeid and len(nodeid) <= LONGEST:
        return nodeid
    return f"{plain[:LONGEST]} {hashlib.sha256(nodeid.encode(errors='surrogatepass')).hexdigest()[:12]}"
