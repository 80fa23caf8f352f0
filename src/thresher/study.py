"""A study: ask which arm to pull, tell the reward, read the verdict."""

import importlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import chain
from typing import Any, Literal, NamedTuple, NoReturn

from .core import checks
from .core.events import CALLERS, LATE, NO_CAUSE, PENDING, CallersCause, Cause, Event
from .core.guarantee import USUAL, Words
from .core.hard_cases import CaseRow, hardest_cases
from .core.pulls import Pull, PullRow, Pulls, pull_id_in, pull_id_of, pull_of, pull_rows
from .core.results import Result, checked_result, result_from_row
from .core.revisions import Changes, Taking, spec_changes
from .core.sentences import changes_sentence
from .core.spec import Spec
from .core.state import State
from .core.verdict import Verdict, verdict_of
from .errors import CannotGoOn, InvalidInput, OutsideBounds, missing_package
from .log import event_writing
from .log.call_keys import CallKeys, call_key_digest
from .log.event_writing import Telling
from .log.journal import Answer, Journal, JournalDraft
from .log.locks import LeaseKeeper
from .log.store import Store
from .text.phrasing import listed_phrase, plural

__all__ = ["LEASE", "SWEEP", "Pull", "PullRow", "Pulls", "Study", "Telling"]

_tuple = tuple.__new__  # what Telling(…) does, in a third of the time
LEASE = 60.0  # seconds after which the pulls of a process whose heartbeat stopped count as lost
SWEEP = 1.0  # seconds between two checks of a busy agent for lost pulls


class Study(AbstractContextManager["Study"]):
    """One question and its answer so far. Made by `create_study` and `open_study`; safe to use from several threads.

    ``with study:`` closes it at the end.

    >>> import thresher
    >>> study = thresher.create_study("coins", arms=["fair", "loaded"], at_least=0.6, budget=20, confidence=None)
    >>> while pull := study.ask():
    ...     study.tell(pull, pull.arm == "loaded" or pull.number % 2)
    >>> study.verdict().reached
    ['loaded']
    """

    def __init__(self, name: str, store: Store, *, lease: float = LEASE) -> None:
        self.name, self.store = name, store
        self._journal = Journal(name, store, lease)
        self._keys: CallKeys | None = None  # those of repeated calls, once there is one
        self._keeper, self._next_sweep = LeaseKeeper(store, name, lease), 0.0
        self._earlier = peek_study(self, lambda ledger: ledger.own_told)  # rewards from before
        self._measured: Spec | None = None  # see `keep_to_depends`
        self.changes: str | None = None  # what the revision that this object made has changed, in a sentence
        self._checked_revision = 0

    # -- asking and telling -------------------------------------------------------------------------------------

    def ask(self, *, arm: str | None = None) -> Pull | None:
        """The next pull to make, or None exactly when the study is `done`.

        With cases, that may change: what other agents lose is free again, and a baseline's last reward opens the other
        arms. So where several agents share a study, ask again while pulls are `pending`; `run` does.

        With ``arm``, the caller chooses the arm, which the log records: for hosts that decide what runs next. None then
        also means that this arm takes no pulls: it is settled or retired, has no case left or waits for the baseline.
        """
        if arm is None and self._measured is None and time.monotonic() < self._next_sweep:  # nothing else to look at
            pulls = self._journal.commit(event_writing.write_ask_events, 1, event_writing.ANY)
            if pulls and self.store.leased:
                self._keeper.hold([pulls[0].id])
        else:
            pulls = exchange_in_study(self, (), 1, arm=arm).pulls
        return pulls[0] if pulls else None

    def ask_many(
        self, n: int, *, arm: str | None = None, lease: float | None = None, key: str | None = None
    ) -> list[Pull]:
        """The same as ``n`` times `ask`, in one write; fewer pulls only when `ask` would return None.

        This process renews the pulls' leases as long as it lives; with ``lease``, in seconds, for work done elsewhere,
        the caller does. A repeated call with the same ``key``, from any process, returns the same pulls. The log
        records that, and the verdict says that these evaluations may have been repeated.
        """
        return exchange_in_study(self, (), n, arm=arm, lease=lease, key=key).pulls

    def tell(
        self,
        pull: Pull | int | str,
        reward: object,
        *,
        repeatable: bool = False,
        note: str | None = None,
        cost: float | None = None,
    ) -> None:
        """Tell the reward of a pull: a number or a bool. The same again is accepted; a different one is an error.

        The reward of a dropped pull is late: it is accepted once, and marked as late. ``repeatable`` says that the
        evaluation was, or would have been, made more than once: the verdict then says what that means. A ``note`` and a
        ``cost``, at least 0, are kept for people: `pulls` has them, and the verdict the total cost. Those of the first
        call stay: the same reward again changes neither. A reward outside the bounds proves them wrong: it retires its
        arm, which is then not certified, and raises `OutsideBounds`; the reason of the retirement keeps its note
        and its cost, which does not count in the total.
        """
        telling = _tuple(Telling, (pull, reward, repeatable, note, cost))
        outside = self._journal.commit(event_writing.write_tell_event, telling)
        if self.store.leased:
            self._keeper.let_go(pull_id_of(pull))
        if outside is not None:
            raise outside

    def tell_many(self, rewards: Iterable[Telling | tuple[Pull | int | str, object]]) -> None:
        """The same as `tell` for each of the rewards, in one write: all of them or, if one is refused, none.

        Each is ``(pull, reward)``, or a `Telling`, which has the other arguments of `tell`. Those outside the bounds
        are recorded, as all others are, and then `OutsideBounds` names the arms that were retired for them.
        """
        self.exchange(rewards, 0)

    def exchange(
        self,
        rewards: Iterable[Telling | tuple[Pull | int | str, object]],
        n: int,
        *,
        arm: str | None = None,
        lease: float | None = None,
        key: str | None = None,
    ) -> list[Pull]:
        """The same as `tell_many` and then `ask_many`, in one write: all of it or, if anything is refused, nothing.

        If a reward lies outside the bounds, all rewards are recorded, no pull is handed out, and `OutsideBounds` is
        raised: call `ask_many` to go on with the other arms. A repeated call with the same ``key`` returns the same
        pulls, and records the rewards once.

        >>> import thresher
        >>> study = thresher.create_study("coins", arms=["fair", "loaded"], at_least=0.6, budget=20, confidence=None)
        >>> pulls = study.ask_many(4)
        >>> while pulls:
        ...     pulls = study.exchange([(pull, pull.arm == "loaded" or pull.number % 2) for pull in pulls], 4)
        >>> study.verdict().reached
        ['loaded']
        """
        exchanged = exchange_in_study(self, event_writing.tellings_of(rewards), n, arm=arm, lease=lease, key=key)
        exchanged.raise_outside()
        return exchanged.pulls

    def _write_exchange(
        self,
        draft: JournalDraft,
        rewards: Sequence[Telling],
        n: int,
        host: event_writing.Host,
        lease: float | None,
        key: str | None,
        lost: Sequence[int],
        is_final: bool,
        check: Callable[[State], None] | None,
    ) -> "Exchanged":
        """Rewards first, then lost pulls, then asks."""
        ledger = draft.ledger
        if n and self._measured is not None:
            self._check_measured(self._measured, ledger)
        if n and check is not None:
            check(ledger)
        known = [] if key is None else self._pulls_of_key(draft, key)
        outside = event_writing.write_tell_events(draft, rewards, is_final=is_final) if rewards else {}
        if lost:
            event_writing.write_lost_events(draft, lost)
        if outside or not (n or known):
            pulls = []
        elif known:
            event_writing.write_repeated_ask_events(draft, known)
            self.store.renew(self.name, known, lease or self._keeper.seconds)
            pulls = [pull_of(ledger, pull) for pull in known]
        else:
            pulls = event_writing.write_ask_events(draft, n, host, lease)
        late = [telling.pull for telling in rewards if ledger.state_of(pull_id_of(telling.pull)) == LATE]
        wait = False
        if n and not pulls and ledger.cases is not None:
            wait = ledger.may_take_more(None if host.arm is None else ledger.spec.arm(host.arm))
        return Exchanged(pulls, outside, late, ledger.done, wait)

    def _check_measured(self, measured: Spec, ledger: State) -> None:
        """Raise if another agent's revision depends on other files than this process has."""
        if ledger.revision != self._checked_revision:
            changes = spec_changes(measured, ledger.spec)
            if names := (*changes.common, *changes.files):
                rule = f"was revised by another agent: {listed_phrase(names)} changed"
                raise CannotGoOn("study", self.name, rule, "start again with the same files")
            self._checked_revision = ledger.revision

    def _pulls_of_key(self, draft: JournalDraft, key: str) -> list[int]:
        """The pulls that an earlier call with this key handed out. The events of this call carry the key, too."""
        if self._keys is None:
            self._keys = CallKeys(self.name, self.store)
            self._journal.on_write = self._keys.follow
        draft.key = call_key_digest(key)
        return [pull for pull in self._keys.pulls(draft.key, draft.ledger.last) if draft.ledger.goes_on(pull)]

    def drop(self, pull: Pull | int | str, *, reason: str = "dropped by hand", cause: CallersCause = "failed") -> None:
        """Drop a pull: it ``"failed"``, which counts against its arm, or it was ``"lost"`` with whatever evaluated it.

        A case that was lost is tried again, so say that only if its outcome cannot be the reason. Dropping twice is
        accepted. If the specification gives failures a reward, a failed pull is told that reward instead.
        """
        if cause not in CALLERS:
            raise InvalidInput("cause", cause, NO_CAUSE)
        give_up_in_study(self, pull, cause=cause, reason=reason)

    def add(self, arm: str, reward: object, *, case: str | int | None = None) -> None:
        """Add an earlier result, before the first ask. It counts as a pull, and so towards the budget.

        The order of results cannot be trusted: the certificate looks at them once, all together, at the first ask.
        A reward of None is a pull without a reward; it is charged. Give all results that you have, each once: if
        you leave out bad ones, or give good ones twice, you choose the answer yourself.

        Where the study has cases, every result names its ``case``, and each case of an arm counts once. Such results
        are known values, not samples: what is certified is about all cases, and only the others are drawn.
        """
        self.add_many([(arm, reward, case)])

    def add_many(self, results: Iterable[tuple[str, object] | tuple[str, object, str | int | None]]) -> None:
        """The same as `add` for each of the results, in one write: all of them or, if one is wrong, none."""
        import_into_study(self, map(result_from_row, results))

    # -- lost work ----------------------------------------------------------------------------------------------

    def renew(self, pulls: Pull | int | str | Iterable[Pull | int | str], seconds: float) -> None:
        """Renew the leases of pulls that are evaluated elsewhere: they count as lost no sooner than after ``seconds``.

        A study renews the pulls that it handed out itself. Pulls that are no longer pending are left alone.
        """
        named = [pulls] if isinstance(pulls, Pull | int | str) else list(pulls)
        numbers = peek_study(self, lambda ledger: [pull_id_in(ledger, pull) for pull in named])
        self.store.renew(self.name, numbers, checks.checked_seconds("lease", seconds))

    def sweep(self) -> int:
        """Drop the pulls whose agents' heartbeat stopped, with cause ``"lost"``. Returns how many."""
        lost = self._lost()
        return self._journal.commit(event_writing.write_lost_events, lost) if lost else 0

    def _lost(self) -> list[int]:
        """The pulls whose leases have run out: the next write drops those that are still pending."""
        self._next_sweep = time.monotonic() + SWEEP
        if not self.store.leased:
            return []
        held = self._keeper.held
        ended = peek_study(self, lambda ledger: [pull for pull in held if ledger.state_of(pull) != PENDING])
        for pull in ended:  # told or dropped by another process
            self._keeper.let_go(pull)
        return [pull for pull in self.store.expired(self.name) if not self._keeper.holds(pull)]

    # -- steering -----------------------------------------------------------------------------------------------

    def extend(self, *, budget: int) -> None:
        """Give the study a larger budget: the new total. The same total again is accepted, a smaller one is refused."""
        self._journal.commit(event_writing.write_extended_event, budget)

    def retire(self, arm: str, *, reason: str = "retired by hand") -> None:
        """Retire an arm: it takes no more pulls. A repeated call is accepted."""
        self._journal.commit(event_writing.write_retired_event, arm, reason)

    def restore(self, arm: str) -> None:
        """Let a retired arm take pulls again, with its failures forgiven. A repeated call is accepted."""
        self._journal.commit(event_writing.write_restored_event, arm)

    # -- reading: nothing here writes ---------------------------------------------------------------------------

    def verdict(self) -> Verdict:
        """The answer so far."""
        return study_verdict_in_words(self, USUAL)

    @property
    def spec(self) -> Spec:
        """What is asked; another agent may make a new revision of it."""
        return self._journal.spec

    @property
    def revision(self) -> int:
        """The number of the study's revision: 1, and one more with each change of what it asks."""
        return peek_study(self, lambda ledger: ledger.revision)

    @property
    def agent(self) -> str:
        """The name under which this process writes: its machine and its process number."""
        return self._journal.agent

    @property
    def created(self) -> str | None:
        """When the study was created, as 2026-11-17T02:41:12Z."""
        return self._journal.created

    @property
    def done(self) -> bool:
        """The budget is issued, or no arm takes more pulls; some may be pending, and a dropped case is free again."""
        return peek_study(self, lambda ledger: ledger.done)

    def events(self, after: int = 0) -> Sequence[Event]:
        """The log, or the events after that number."""
        return [event for page in self.pages(after) for event in page]

    def pages(self, after: int = 0) -> Iterator[Sequence[Event]]:
        """The same as `events`, a page at a time: a long log need not fit into memory."""
        return self._journal.pages(after)

    def pulls(self) -> Pulls:
        """Every pull as a row, with its state, reward, agent and times; ``to_frame()`` makes a DataFrame of them."""
        return pull_rows(chain.from_iterable(self.pages()))

    def pending(self) -> list[Pull]:
        """The pulls that are pending."""
        return peek_study(self, lambda ledger: [pull_of(ledger, pull) for pull in ledger.pending_pulls()])

    def cases(self) -> list[CaseRow]:
        """The cases that have a reward, the hardest first, each with the arms' rewards."""
        return peek_study(self, hardest_cases)

    def figure(self, kind: Literal["arms", "history"] = "arms") -> Any:
        """A plotly figure, for a notebook: every arm against the bar, or how the answer evolved."""
        try:  # charts are an extra and belong to a higher layer: import them only here
            charts = importlib.import_module(".web.charts", __package__)
        except ModuleNotFoundError as error:
            rule, remedy = missing_package(error, "web")
            raise CannotGoOn("figure", rule=rule, remedy=remedy) from None
        return charts.chart_of_study(self, kind)

    def close(self) -> None:
        """Stop renewing leases and close the store's files and connections; the next use opens them again."""
        self._keeper.let_go_of_all()
        self.store.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        arms, spec = plural(len(self.spec.arms), "arm"), self.spec
        return f"<Study {self.name!r}: {arms}, {spec.bar_name} {spec.stated_bar:.12g}>"

    def __reduce__(self) -> NoReturn:
        remedy = "pass its name and storage, and call open_study there"
        raise InvalidInput("study", self.name, "cannot be pickled or copied: it holds connections and leases", remedy)

    def _repr_html_(self) -> str:
        return self.verdict()._repr_html_()


# -- For thresher's own runners, adapters and services -----------------------------------------------------------------


def peek_study(study: Study, reader: Callable[[State], Answer]) -> Answer:
    """What ``reader`` returns for the newest state, which it must not change."""
    return study._journal.peek(reader)


def give_up_in_study(study: Study, pull: Pull | int | str, *, cause: Cause, reason: str) -> None:
    """Drop a pull with any cause: only runners know whether it ever began."""
    number = pull_id_of(pull)
    try:
        study._journal.commit(event_writing.write_drop_events, pull, cause, reason)
    finally:  # if it cannot be written, the lease runs out
        study._keeper.let_go(number)


def import_into_study(study: Study, rows: Iterable[Result]) -> None:
    """Add results from elsewhere: all of them or none."""
    checked = [checked_result(study.spec, row) for row in rows]
    study._journal.commit(event_writing.write_result_events, checked)


class Exchanged(NamedTuple):
    """What an exchange did."""

    pulls: list[Pull]
    outside: dict[int, OutsideBounds]  # the errors of rewards outside the bounds, by pull; then there are no pulls
    late: list[Pull | int | str]  # those of the pulls that were told whose reward was late
    done: bool  # as `Study.done`, after these pulls
    wait: bool  # there are none now, but a later ask may get some: what is pending may free a case

    def raise_outside(self) -> None:
        """Raise one error for all rewards outside the bounds, if there are any."""
        if self.outside:
            errors = list(self.outside.values())
            raise errors[0].of(list(dict.fromkeys(chain.from_iterable(error.arms for error in errors))))


def exchange_in_study(
    study: Study,
    rewards: Sequence[Telling],
    n: int,
    *,
    arm: str | None = None,
    cases: Sequence[int] | None = None,
    lease: float | None = None,
    key: str | None = None,
    is_final: bool = False,
    check: Callable[[State], None] | None = None,
) -> Exchanged:
    """The same as `Study.exchange`, with all that a runner or a reply needs, from the same read of the store.

    Final rewards will not be told again: a pull that was told another one meanwhile keeps that, and if they cannot be
    written, the leases run out. ``check`` may refuse asks on the newest state. Only adapters name ``cases``: their host
    has shuffled them.
    """
    n = n if n in (0, 1) else checks.checked_whole("number of pulls", n, least=0)
    host = event_writing.ANY if arm is None else event_writing.Host(study.spec.arms[study.spec.arm(arm)], cases)
    seconds = None if lease is None else checks.checked_seconds("lease", lease)
    key = None if key is None else checks.checked_text("key", key)
    lost = study._lost() if n and time.monotonic() >= study._next_sweep else ()
    exchanged: Exchanged | None = None
    try:
        exchanged = study._journal.commit(study._write_exchange, rewards, n, host, seconds, key, lost, is_final, check)
    finally:
        if study.store.leased and (exchanged is not None or is_final):
            for telling in rewards:
                study._keeper.let_go(pull_id_of(telling.pull))
    if lease is None and exchanged.pulls and study.store.leased:
        study._keeper.hold([pull.id for pull in exchanged.pulls])
    return exchanged


def ask_study_for_cases(study: Study, arm: str, cases: Sequence[int]) -> list[Pull]:
    """Pulls of the arm on these cases, for adapters alone: their host has shuffled the cases."""
    return exchange_in_study(study, (), len(cases), arm=arm, cases=cases).pulls


def study_pulls_of_others(study: Study) -> int:
    """With cases: how many pending pulls of other agents may still free one, where none is left to ask for."""
    pending = peek_study(study, lambda ledger: ledger.pending_pulls() if ledger.waits else [])
    return sum(not study._keeper.holds(pull) for pull in pending)


def study_verdict_in_words(study: Study, words: Words) -> Verdict:
    """The same as `Study.verdict`, with the guarantee in these words."""
    verdict = peek_study(study, lambda ledger: verdict_of(study.name, ledger, words))
    others = max(0, verdict.told - verdict.imported - study._earlier - study._journal.told)
    since = study._journal.created if study._earlier and verdict.revision == 1 else None
    return replace(verdict, earlier=study._earlier, since=since, others=others)


def keep_to_depends(study: Study, spec: Spec) -> None:
    """From now on, ask for no pulls of a revision whose results depend on other files than this specification says."""
    study._measured = spec if spec.depends else None


def revise_study(
    study: Study, spec: Spec, *, taking: Taking = None, check: Callable[[State], None] | None = None
) -> Changes | None:
    """Make the next revision, and say what changed; None if nothing did. ``check`` may refuse on the newest state."""

    def plan(draft: JournalDraft) -> Changes | None:
        if check is not None:
            check(draft.ledger)
        changes = event_writing.write_revised_event(draft, spec, taking)
        study._earlier = draft.ledger.own_told if changes else study._earlier
        return changes

    changes = study._journal.commit(plan)
    study.changes = changes_sentence(changes) if changes else study.changes
    return changes
