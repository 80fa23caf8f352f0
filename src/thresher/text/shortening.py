"""Names that fit a narrow terminal, or an axis, and still differ."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import takewhile

from rich.cells import cell_len

from .line_breaks import folded

_WORDS = re.compile(r"[^\W_]+|[\W_]")


def shortened(name: str, width: int) -> str:
    """A name that fits, without its middle: paths and test ids often begin alike and differ at the end.

    >>> shortened("tests/test_run.py::test_a_reward_is_read", 20)
    'tests/…eward_is_read'
    """
    if cell_len(name) <= width:
        return name
    head, tail = "", ""
    for letter in name:
        if cell_len(head + letter) > (width - 1) // 3:
            break
        head += letter
    for letter in reversed(name):
        if cell_len(head + letter + tail) > width - 1:
            break
        tail = letter + tail
    return f"{head}…{tail}"


@lru_cache(maxsize=16)  # the table is drawn again and again
def distinct(names: tuple[str, ...], width: int) -> dict[str, str]:
    """Names as texts that fit and differ: without their middle, otherwise without what all have, otherwise folded.

    >>> distinct(("test_refund[eur-visa-1]", "test_refund[usd-visa-1]", "test_refund[usd-visa-2]"), 10).values()
    dict_values(['…eur…1…', '…usd…1…', '…usd…2…'])
    """
    found = [shortened(name, width) for name in names]
    if len({*found}) < len(names):
        found = [shortened(name, width) for name in _different(names)]
    if len({*found}) < len(names):
        found = ["\n".join(folded(name, width, cell_len)) for name in names]
    return dict(zip(names, found, strict=True))


def _different(names: Sequence[str]) -> list[str]:
    """Only the words in which names differ."""
    words = [_WORDS.findall(name) for name in names]
    shortest = min(map(len, words))
    if shortest == max(map(len, words)):
        differs = [len({*column}) > 1 for column in zip(*words, strict=True)]
        return [_joined(word if keep else None for word, keep in zip(each, differs, strict=True)) for each in words]
    before = _shared(words)
    after = min(_shared([each[::-1] for each in words]), shortest - before)
    return [
        _joined(word if before <= at < len(each) - after else None for at, word in enumerate(each)) for each in words
    ]


def _shared(words: Sequence[Sequence[str]]) -> int:
    """How many words all begin with.

    >>> _shared(["abc", "abd"])
    2
    """
    return sum(1 for _ in takewhile(lambda column: len({*column}) == 1, zip(*words, strict=False)))


def _joined(words: Iterable[str | None]) -> str:
    """Words, with an ellipsis wherever some are left out.

    >>> _joined(["a", None, None, "b"])
    'a…b'
    """
    return re.sub("…+", "…", "".join("…" if word is None else word for word in words))
