"""Which pull a caller means, and whether it is one of this study's log."""

from ..errors import UnknownPull
from .ledger import Ledger
from .pulls import Pull, id_of


def id_in(ledger: Ledger, pull: "Pull | int | str") -> int:
    """The id of a pull that this log has issued. Raises `UnknownPull` if it is one of another study or log."""
    number = id_of(pull)
    if isinstance(pull, int):
        return number
    ledger.state_of(number)
    if _tag_of(ledger, pull) not in (None, ledger.pull_tag[number - 1]):
        rule = "was not issued by this study as it is now, but by another one or before the store was set back"
        given = pull.id if isinstance(pull, Pull) else pull
        raise UnknownPull("pull", given, rule, "drop this work, and ask again")
    return number


def _tag_of(ledger: Ledger, pull: "Pull | str") -> int | None:
    """The tag that the caller knows; −1, which no pull has, if it is obviously another pull."""
    if isinstance(pull, str):
        return int(pull.partition("-")[2], 16)
    at, arms = pull.id - 1, ledger.spec.arms
    is_other = pull.number != ledger.pull_number[at] or pull.arm != arms[ledger.pull_arm[at]]
    return -1 if is_other else pull.tag
