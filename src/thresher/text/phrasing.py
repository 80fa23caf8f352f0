"""How counts and lists are written: what is plural, and how a list ends."""

from collections.abc import Callable, Sequence

MOST_NAMED = 5  # names in a sentence


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "arm"), plural(2000, "arm"), plural(0, "pull")
    ('1 arm', '2,000 arms', '0 pulls')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def only_this_many(count: int, noun: str) -> str:
    """Why there cannot be more.

    >>> only_this_many(1, "arm"), only_this_many(2, "arm")
    ('there is only 1 arm', 'there are only 2 arms')
    """
    return f"there {'is' if count == 1 else 'are'} only {plural(count, noun)}"


def listed_phrase(names: Sequence[str], most: int = MOST_NAMED, *, show: Callable[[str], str] = str) -> str:
    """Names in a sentence; beyond the first few, only how many more there are, unless that is one.

    >>> listed_phrase(["a"]), listed_phrase(["a", "b", "c"], 2), listed_phrase(["a", "b", "c", "d"], 2)
    ('a', 'a, b, c', 'a, b and 2 more')
    """
    if len(names) <= most + 1:
        return ", ".join(map(show, names))
    return f"{', '.join(map(show, names[:most]))} and {len(names) - most:,} more"


def either_phrase(words: Sequence[str]) -> str:
    """Alternatives, as a sentence lists them.

    >>> either_phrase(["a", "b", "c"])
    'a, b or c'
    """
    return f"{', '.join(words[:-1])} or {words[-1]}"
