"""Which pull a caller means: its tickets, and whether a pull is one of this study's log."""

from ..errors import UnknownPull
from .ledger import Ledger
from .pulls import Pull, id_of


def ticket_of(ledger: Ledger, pull: int) -> str:
    """The id of a pull and a tag that hardly any other event has: no pull of another study or log has the same."""
    return f"{pull}-{ledger.pull_tag[pull - 1]:08x}"


def id_in(ledger: Ledger, pull: "Pull | int | str") -> int:
    """The id of a pull that this log has issued. Raises `UnknownPull` if it is one of another study or log."""
    number = id_of(pull)
    if not isinstance(pull, int):
        ledger.state_of(number)
        if not (_is_same(ledger, pull) if isinstance(pull, Pull) else pull == ticket_of(ledger, number)):
            given = pull.id if isinstance(pull, Pull) else pull
            rule = "was not issued by this study as it is now, but by another one or before the store was set back"
            raise UnknownPull("pull", given, rule, "drop this work, and ask again")
    return number


def _is_same(ledger: Ledger, pull: Pull) -> bool:
    arm, case, spec = ledger.pull_arm[pull.id - 1], ledger.case_of(pull.id), ledger.spec
    if pull.number != ledger.pull_number[pull.id - 1] or pull.arm != spec.arms[arm]:
        return False
    return pull.case == (None if case is None else spec.case_name(case))
