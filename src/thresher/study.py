"""A study: create it, ask which arm to pull, tell the reward, read the verdict."""

import contextlib
import importlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from .core import checks
from .core import verdict as verdicts
from .core.events import CAUSES, DROPPED, LATE, OUTSIDE, PENDING, TOLD, Cause, Event, EventCause
from .core.ledger import Ledger
from .core.spec import CLIP, NO_PARAMS, Params, Spec, finite
from .core.verdict import Verdict
from .errors import AlreadyTold, CannotGoOn, InvalidInput, OutsideBounds, StoreFailed
from .log.journal import Answer, Draft, Journal
from .log.keys import Keys, marked
from .log.leases import Keeper
from .log.store import Store

LEASE = 60.0  # seconds after which a process that is not heard of counts as gone
SWEEP = 1.0  # seconds between two looks of a busy agent for pulls that were lost


class Pull(NamedTuple):
    """One evaluation to make: of which arm, its how-manieth, and with which seed."""

    id: int  # counts the study's pulls, from 1
    arm: str
    number: int  # counts the arm's pulls, from 1
    params: Params
    seed: int  # in [0, 2³²), no other pull of the study has it


class Study:
    """A question under way. Made by `create_study` and `open_study`; safe to use from several threads.

    >>> import thresher
    >>> study = thresher.create_study("coins", arms=["fair", "loaded"], threshold=0.6, budget=20, confidence=None)
    >>> while pull := study.ask():
    ...     study.tell(pull, pull.arm == "loaded" or pull.number % 2)
    >>> study.verdict().above
    ['loaded']
    """

    def __init__(self, name: str, store: Store, *, lease: float = LEASE) -> None:
        self.name, self.store = name, store
        self._journal = Journal(name, store, lease)
        self._keeper = Keeper(store, name, lease)
        self._keys = Keys(name, store)
        self._next_sweep = 0.0
        self._earlier = self.look(lambda ledger: ledger.told)  # rewards that were there before this process came

    # -- asking and telling -------------------------------------------------------------------------------------

    def ask(self) -> Pull | None:
        """The next pull to make, or None exactly when the study is done."""
        pulls = self.ask_many(1)
        return pulls[0] if pulls else None

    def ask_many(self, n: int) -> list[Pull]:
        """The same as ``n`` times `ask`, in one write; fewer only when the study is done."""
        count = checks.whole("number of pulls", n, least=0)
        if time.monotonic() >= self._next_sweep:
            self.sweep()
        pulls = self._journal.commit(lambda draft: self._ask(draft, count))
        if self.store.leased:
            self._keeper.hold(pull.id for pull in pulls)
        return pulls

    def ask_for(self, n: int, *, lease: float, key: str | None = None) -> list[Pull]:
        """The same as `ask_many`, for work that goes on elsewhere: whoever asked must renew the leases.

        A repeated call with the same ``key`` gives the same pulls, from any process: for callers that lost an answer.
        """
        count, seconds = checks.whole("number of pulls", n, least=0), checks.seconds("lease", lease)
        if time.monotonic() >= self._next_sweep:
            self.sweep()

        def plan(draft: Draft) -> list[Pull]:
            if key is not None:
                draft.key = marked(key)
                known = self._keys.pulls(draft.key, draft.ledger.seq)
                if known:
                    self.store.renew(self.name, known, seconds)
                    return [_pull(draft.ledger, pull) for pull in known]
            return self._ask(draft, count)

        return self._journal.commit(plan, lease=seconds)

    def _ask(self, draft: Draft, n: int) -> list[Pull]:
        ledger, pulls = draft.ledger, []
        if n and ledger.unweighed:
            draft.write("weighed", reason=os.urandom(8).hex())
        for _ in range(n):
            arm = ledger.choose()
            if arm is None:
                break
            draft.write("asked", pull=ledger.issued + 1, arm=arm)
            pulls.append(_pull(ledger, ledger.issued))
        return pulls

    def tell(self, pull: Pull | int, reward: object, *, repeatable: bool = False) -> None:
        """The reward of a pull: a number or a bool. The same again is accepted silently, another is an error.

        The reward of a dropped pull is late: it is accepted once and marked so. ``repeatable`` says that the evaluation
        was, or would have been, made more than once: the verdict then says what that means.

        A reward outside the bounds proves them wrong: it retires its arm, whose label is certified no more, and
        raises `OutsideBounds`.
        """
        number = pull.id if isinstance(pull, Pull) else pull

        def plan(draft: Draft) -> OutsideBounds | None:
            ledger = draft.ledger
            state = ledger.state_of(number)
            try:
                value = ledger.spec.reward(reward)
            except OutsideBounds as error:
                return _retire_for_bounds(draft, number, error)
            if state in (TOLD, LATE) and ledger.pull_reward[number - 1] == value:
                return None
            late = state == DROPPED or None
            cause: EventCause | None = "repeatable" if repeatable else None
            draft.write("told", pull=number, arm=_arm(ledger, number), reward=value, late=late, cause=cause)
            return None

        outside = self._journal.commit(plan)
        if self.store.leased:
            self._keeper.let_go(number)
        if outside is not None:
            raise outside

    def drop(self, pull: Pull | int, *, reason: str = "dropped by hand", cause: Cause = "lost") -> None:
        """Give a pull up: it was ``"lost"``, or it ``"failed"``, which counts against its arm. Again is accepted.

        Any other cause is recorded as ``"lost"``: only a runner knows that a pull never began. Where the specification
        gives failures a reward, a pull that failed is told that reward instead.
        """
        if cause not in CAUSES:
            raise InvalidInput("cause", cause, "must be failed or lost")
        self._drop(pull, cause if cause == "failed" else "lost", reason)

    def _drop(self, pull: Pull | int, cause: Cause, reason: str) -> None:
        number = pull.id if isinstance(pull, Pull) else pull

        def plan(draft: Draft) -> None:
            ledger = draft.ledger
            state, failure = ledger.state_of(number), ledger.spec.failure
            if state in (DROPPED, OUTSIDE):
                return
            if state != PENDING:
                raise AlreadyTold(
                    "pull", number, f"was told {ledger.pull_reward[number - 1]!r} before", "nothing is left to drop"
                )
            arm = _arm(ledger, number)
            if cause == "failed" and isinstance(failure, float):
                draft.write("told", pull=number, arm=arm, reward=failure, cause="failed", reason=reason)
                return
            draft.write("dropped", pull=number, arm=arm, cause=cause, reason=reason)
            if ledger.due is not None:
                why = f"{ledger.streak[arm]} failures in a row, the last: {reason}"
                draft.write("retired", arm=arm, cause="failures", reason=why)

        try:
            self._journal.commit(plan)
        finally:  # where it cannot be written, its lease runs out
            self._keeper.let_go(number)

    def add(self, arm: str, reward: object) -> None:
        """A result already paid for, before the first ask. It counts as a pull, and so towards the budget.

        Results have no order that can be trusted: the certificate looks at them once, all together, at the first ask.
        A reward of None is a pull that came to nothing; it is charged. Give all results that you have, each once: to
        leave out bad ones, or to give good ones twice, is to choose the answer.
        """
        self.add_many([(arm, reward)])

    def add_many(self, results: Iterable[tuple[str, object]]) -> None:
        """The same as `add` for each of the results, in one write: all of them or, if one is wrong, none."""
        self._import((arm, reward, False) for arm, reward in results)

    def _import(self, results: Iterable[tuple[str, object, bool]]) -> None:
        """Arms, rewards (None: dropped), and whether a reward came after its pull was dropped."""
        spec = self.spec
        checked = [(spec.arm(arm), None if value is None else spec.reward(value), late) for arm, value, late in results]

        def plan(draft: Draft) -> None:
            ledger = draft.ledger
            for arm, value, late in checked:
                draft.write("asked", pull=ledger.issued + 1, arm=arm, cause="imported")
                pull = ledger.issued
                if value is None or late:
                    draft.write("dropped", pull=pull, arm=arm, cause="lost", reason="imported without a reward")
                if value is not None:
                    draft.write("told", pull=pull, arm=arm, reward=value, cause="imported", late=late or None)

        self._journal.commit(plan)

    # -- lost work ----------------------------------------------------------------------------------------------

    def renew(self, pulls: Iterable[Pull | int], seconds: float) -> None:
        """Whoever works on these pulls lives: count them as lost no sooner than in so many seconds.

        A study renews the pulls that it handed out itself, as long as its process lives; this is for work that goes
        on elsewhere. Pulls that are not under way any more are left alone, as are all in memory, which has no leases.
        """
        numbers = [pull.id if isinstance(pull, Pull) else pull for pull in pulls]
        self.look(lambda ledger: [ledger.state_of(number) for number in numbers])
        self.store.renew(self.name, numbers, checks.seconds("lease", seconds))

    def sweep(self) -> int:
        """Drop the pulls whose agents are not heard of any more, cause ``"lost"``; says how many."""
        self._next_sweep = time.monotonic() + SWEEP
        if not self.store.leased:
            return 0
        self._let_go_of_ended()
        lost = [pull for pull in self.store.expired(self.name) if not self._keeper.holds(pull)]

        def plan(draft: Draft) -> int:
            gone = [pull for pull in lost if draft.ledger.state_of(pull) == PENDING]
            for pull in gone:
                reason = "its agent was not heard of for the time of its lease"
                draft.write("dropped", pull=pull, arm=_arm(draft.ledger, pull), cause="lost", reason=reason)
            return len(gone)

        return self._journal.commit(plan) if lost else 0

    def _let_go_of_ended(self) -> None:
        """Pulls that we asked for may have been told by another process."""
        held = self._keeper.held
        if held:
            ended = self.look(lambda ledger: [pull for pull in held if ledger.state_of(pull) != PENDING])
            for pull in ended:
                self._keeper.let_go(pull)

    # -- steering -----------------------------------------------------------------------------------------------

    def extend(self, *, budget: int) -> None:
        """Give the study a larger budget: the new total. The same again is accepted, a smaller one refused."""
        self._journal.commit(
            lambda draft: None if budget == draft.ledger.budget else draft.write("extended", budget=budget)
        )

    def retire(self, arm: str, *, reason: str = "retired by hand") -> None:
        """Take an arm out: it is not pulled again. Again is accepted silently."""

        def plan(draft: Draft) -> None:
            number = draft.ledger.spec.arm(arm)
            if number not in draft.ledger.retired:
                draft.write("retired", arm=number, reason=reason)

        self._journal.commit(plan)

    def restore(self, arm: str) -> None:
        """Take a retired arm in again, its failures forgiven. Again is accepted silently."""

        def plan(draft: Draft) -> None:
            number = draft.ledger.spec.arm(arm)
            if number in draft.ledger.retired:
                draft.write("restored", arm=number)

        self._journal.commit(plan)

    # -- reading ------------------------------------------------------------------------------------------------

    def verdict(self) -> Verdict:
        """The answer so far."""
        with contextlib.suppress(StoreFailed):  # what can only be read can be read nevertheless
            self.sweep()
        found = self.look(lambda ledger: verdicts.read(self.name, ledger))
        others = max(0, found.told - self._earlier - self._journal.told)
        since = self._journal.created if self._earlier else None
        return replace(found, earlier=self._earlier, since=since, others=others)

    def look(self, reader: Callable[[Ledger], Answer]) -> Answer:
        """What ``reader`` makes of the newest state; it must not change it."""
        return self._journal.look(reader)

    @property
    def agent(self) -> str:
        """The name under which this process writes: its machine and its number there."""
        return self._journal.agent

    @property
    def created(self) -> str | None:
        """When the study was created, as 2026-11-17T02:41:12Z."""
        return self._journal.created

    @property
    def done(self) -> bool:
        """The budget is issued, or no arm takes pulls any more; some pulls may still be pending."""
        return self.look(lambda ledger: ledger.done)

    @property
    def spec(self) -> Spec:
        """What was asked when the study was created."""
        return self.look(lambda ledger: ledger.spec)

    def events(self, after: int = 0) -> Sequence[Event]:
        """The log, or what came after that number."""
        return [event for page in self.pages(after) for event in page]

    def pages(self, after: int = 0) -> Iterator[Sequence[Event]]:
        """The same as `events`, a page at a time: a long log need not fit into memory."""
        return self._journal.pages(after)

    def pending(self) -> list[Pull]:
        """The pulls that are under way."""
        return self.look(
            lambda ledger: [_pull(ledger, i + 1) for i, state in enumerate(ledger.pull_state) if state == PENDING]
        )

    def figure(self, kind: Literal["arms", "history"] = "arms") -> Any:
        """A plotly figure, for a notebook: every arm against the bar, or how the answer evolved."""
        try:  # drawing is upstairs, and an extra: it is fetched by name, when it is asked for
            charts = importlib.import_module(".web.charts", __package__)
        except ModuleNotFoundError as error:
            rule = f"needs the package {error.name}, which is not there"
            raise CannotGoOn("figure", rule=rule, remedy="pip install 'thresher[web]'") from None
        return charts.figure(self, kind)

    def __repr__(self) -> str:
        return f"<Study {self.name!r}: {self.verdict().answer}>"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return self.verdict()._repr_html_()


def give_up(study: Study, pull: Pull, *, cause: Cause, reason: str) -> None:
    """For runners alone, which know whether a pull ever began: drop it with any cause."""
    study._drop(pull, cause, reason)


def import_pulls(study: Study, rows: Iterable[tuple[str, object, bool]]) -> None:
    """Add the pulls of another study: arm, reward or None, and whether the reward was late; all of them or none."""
    study._import(rows)


def accept(study: Study, evaluator: str) -> None:
    """Record that another evaluator measures the same; again is accepted silently."""

    def plan(draft: Draft) -> None:
        if evaluator not in draft.ledger.evaluators:
            draft.write("accepted", reason=evaluator)

    study._journal.commit(plan)


def _retire_for_bounds(draft: Draft, pull: int, error: OutsideBounds) -> OutsideBounds:
    """The arm of a pull whose reward lies outside the bounds takes no further pulls."""
    ledger = draft.ledger
    state, arm, reward = ledger.state_of(pull), _arm(ledger, pull), finite(float(error.value))  # type: ignore[arg-type]
    if state in (PENDING, DROPPED) or arm not in ledger.outside:
        low, high = ledger.spec.bounds or (0.0, 1.0)
        what = f"pull {pull} returned {error.value!r}, outside the bounds ({low:g}, {high:g})"
        draft.write("retired", arm=arm, pull=pull, reward=reward, cause="bounds", reason=f"{what}; {CLIP}")
    rule = f"{error.rule}: they are wrong, so arm {ledger.spec.arms[arm]!r} is retired and not certified"
    return OutsideBounds("reward", error.value, rule, CLIP)


def _arm(ledger: Ledger, pull: int) -> int:
    return ledger.pull_arm[pull - 1]


def _pull(ledger: Ledger, pull: int) -> Pull:
    spec, arm = ledger.spec, ledger.pull_arm[pull - 1]
    params = NO_PARAMS if spec.params is None else spec.params[arm]
    return Pull(pull, spec.arms[arm], ledger.pull_number[pull - 1], params, ledger.seed_of(pull))
