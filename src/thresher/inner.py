"""What thresher's own runners, adapters and services do with a study, and users cannot."""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from .core.guarantees import Words
from .core.verdict import Verdict
from .errors import AlreadyTold, OutsideBounds
from .log import calls
from .log.journal import Draft
from .study import Pull, Study, look


def ask_for_reply(study: Study, n: int, *, lease: float, key: str | None, arm: str | None = None) -> calls.Asked:
    """The same as `Study.ask_many`, with what a reply needs besides the pulls, from the same read of the store."""
    return study._ask(n, lease, key, calls.Host(arm))


def ask_for_cases(study: Study, arm: str, cases: Sequence[int]) -> list[Pull]:
    """Pulls of the arm on these cases, for adapters alone: their host has shuffled the cases."""
    return study._ask(len(cases), None, None, calls.Host(arm, cases)).pulls


def others_pulls(study: Study) -> int:
    """With cases: how many pending pulls of other agents may still free one, where none is left to ask for."""
    pending = look(study, lambda ledger: ledger.pending_pulls() if ledger.waits else [])
    return sum(not study._keeper.holds(pull) for pull in pending)


def tell_for_reply(
    study: Study, pull: int, reward: object, *, note: str | None = None, cost: float | None = None
) -> bool:
    """The same as `Study.tell`. Returns whether the reward was late."""
    return study._tell(pull, reward, repeatable=False, note=note, cost=cost)


class Telling(NamedTuple):
    """A reward that is to be told; the fields are the arguments of `Study.tell`."""

    pull: int
    reward: object
    repeatable: bool = False
    note: str | None = None
    cost: float | None = None


def tell_together(study: Study, rewards: Sequence[Telling]) -> dict[int, OutsideBounds]:
    """The same as `Study.tell` for several pulls, in one write. Returns the errors of rewards outside the bounds.

    A pull that another agent has dropped and told another reward since keeps that one.
    """

    def plan(draft: Draft) -> dict[int, OutsideBounds]:
        found = {}
        for pull, reward, repeatable, note, cost in rewards:
            with contextlib.suppress(AlreadyTold):
                told = calls.tell(draft, pull, reward, repeatable=repeatable, note=note, cost=cost)
                if told.outside is not None:
                    found[pull] = told.outside
        return found

    outside = study._journal.commit(plan)
    if study.store.leased:
        for each in rewards:
            study._keeper.let_go(each.pull)
    return outside


def verdict_in(study: Study, words: Words) -> Verdict:
    """The same as `Study.verdict`, with the guarantee in these words."""
    return study._verdict(words)


def accept(study: Study, evaluator: str) -> None:
    """Record that another evaluator measures the same thing. A repeated call is accepted."""
    study._journal.commit(lambda draft: calls.accept(draft, evaluator))
