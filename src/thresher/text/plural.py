"""Counts in words."""


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "arm"), plural(2000, "arm"), plural(0, "pull")
    ('1 arm', '2,000 arms', '0 pulls')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def listed(names: list[str], most: int = 5) -> str:
    """Names in a sentence; beyond the first few, only how many more there are.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b", "c"], 2)
    ('a', 'a, b and c', 'a, b and 1 more')
    """
    if len(names) > most:
        names = [*names[:most], f"{len(names) - most:,} more"]
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
