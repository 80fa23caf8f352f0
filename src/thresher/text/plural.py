"""Counts and lists in words."""

from collections.abc import Callable, Sequence

MOST_NAMED = 5  # names in a sentence


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "arm"), plural(2000, "arm"), plural(0, "pull")
    ('1 arm', '2,000 arms', '0 pulls')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def only(count: int, noun: str) -> str:
    """Why there cannot be more.

    >>> only(1, "arm"), only(2, "arm")
    ('there is only 1 arm', 'there are only 2 arms')
    """
    return f"there {'is' if count == 1 else 'are'} only {plural(count, noun)}"


def listed(names: Sequence[str], most: int = MOST_NAMED, *, show: Callable[[str], str] = str) -> str:
    """Names in a sentence; beyond the first few, only how many more there are.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c"], 2)
    ('a', 'a, b, c', 'a, b and 1 more')
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(show, names[:most])) + more


def either(words: Sequence[str]) -> str:
    """Alternatives, as a sentence lists them.

    >>> either(["a", "b", "c"])
    'a, b or c'
    """
    return f"{', '.join(words[:-1])} or {words[-1]}"
