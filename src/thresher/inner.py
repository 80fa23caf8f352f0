"""What thresher's own runners, adapters and services do with a study, and users cannot.

`peek`, `give_up` and `import_pulls` in `study.py` are for them, too.
"""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from .core.ledger import Ledger
from .core.pulls import id_of
from .core.sentences import Words
from .core.verdict import Verdict
from .errors import AlreadyTold, OutsideBounds
from .log import commands
from .log.commands import Telling
from .log.journal import Draft
from .study import Pull, Study, peek

__all__ = [  # what other rooms use of this file
    "Asked",
    "Telling",
    "accept",
    "ask_for_cases",
    "ask_for_reply",
    "others_pulls",
    "record_files",
    "tell_for_reply",
    "tell_together",
    "verdict_in",
]


class Asked(NamedTuple):
    """What an ask returns."""

    pulls: list[Pull]
    done: bool  # as `Study.done`, after these pulls
    wait: bool = False  # there are none now, but a later ask may get some: what is pending may free a case


def ask_for_reply(study: Study, n: int, *, lease: float, key: str | None, arm: str | None = None) -> Asked:
    """The same as `Study.ask_many`, with what a reply needs besides the pulls, from the same read of the store."""
    found = []  # by the last decision; the pulls may be those of an earlier one, whose answer was lost

    def note(ledger: Ledger, pulls: list[Pull]) -> None:
        named = None if arm is None else ledger.spec.arm(arm)
        found.append((ledger.done, n > 0 and not pulls and ledger.may_take_more(named)))

    pulls = study._ask(n, lease, key, commands.host_for(study.spec, arm), then=note)
    return Asked(pulls, *found[-1])


def ask_for_cases(study: Study, arm: str, cases: Sequence[int]) -> list[Pull]:
    """Pulls of the arm on these cases, for adapters alone: their host has shuffled the cases."""
    return study._ask(len(cases), None, None, commands.Host(arm, cases))


def others_pulls(study: Study) -> int:
    """With cases: how many pending pulls of other agents may still free one, where none is left to ask for."""
    pending = peek(study, lambda ledger: ledger.pending_pulls() if ledger.waits else [])
    return sum(not study._keeper.holds(pull) for pull in pending)


def tell_for_reply(study: Study, given: Telling) -> bool:
    """The same as `Study.tell`. Returns whether the reward was late."""
    return study._tell(given)


def tell_together(study: Study, rewards: Sequence[Telling]) -> dict[int, OutsideBounds]:
    """The same as `Study.tell` for several pulls, in one write. Returns the errors of rewards outside the bounds.

    A pull that another agent has dropped and told another reward since keeps that one.
    """

    def plan(draft: Draft) -> dict[int, OutsideBounds]:
        found = {}
        for each in rewards:
            with contextlib.suppress(AlreadyTold):
                told = commands.tell(draft, each)
                if told.outside is not None:
                    found[id_of(each.pull)] = told.outside
        return found

    try:
        return study._journal.commit(plan)
    finally:  # if it cannot be written, the leases run out
        for each in rewards if study.store.leased else ():
            study._keeper.let_go(id_of(each.pull))


def verdict_in(study: Study, words: Words) -> Verdict:
    """The same as `Study.verdict`, with the guarantee in these words."""
    return study._verdict(words)


def accept(study: Study, evaluator: str) -> None:
    """Record that another evaluator measures the same thing. A repeated call is accepted."""
    study._journal.commit(lambda draft: commands.accept(draft, evaluator))


def record_files(study: Study, digests: Callable[[Ledger], Mapping[str, str]]) -> None:
    """Record what measures the rewards; ``digests`` checks on the newest state whether it may."""
    study._journal.commit(lambda draft: commands.record_files(draft, digests(draft.ledger)))
