"""Which pull a caller means, and whether it is one of this study's log."""

from ..errors import UnknownPull
from .ledger import Ledger
from .pulls import Pull, id_of


def id_in(ledger: Ledger, pull: "Pull | int | str", remedy: str = "pass what ask returned") -> int:
    """The id of a pull that this log has issued. Raises `UnknownPull` if it is one of another study or log."""
    if type(pull) is Pull and 0 < pull.id <= ledger.issued and pull.tag == ledger.pull_tag[pull.id - 1]:
        return pull.id
    number = id_of(pull, remedy=remedy)
    if isinstance(pull, int):
        return number
    ledger.state_of(number)
    if not _is_same(ledger, pull, number - 1):
        rule = "was not issued by this study as it is now, but by another one or before the store was set back"
        given = pull.id if isinstance(pull, Pull) else pull
        raise UnknownPull("pull", given, rule, "drop this work, and ask again")
    return number


def _is_same(ledger: Ledger, pull: "Pull | str", at: int) -> bool:
    """Whether a ticket has the right tag, or a pull without one the right arm and number."""
    if isinstance(pull, str):
        return int(pull.partition("-")[2], 16) == ledger.pull_tag[at]
    if pull.tag is not None:
        return pull.tag == ledger.pull_tag[at]
    return (pull.arm, pull.number) == (ledger.spec.arms[ledger.pull_arm[at]], ledger.pull_number[at])
