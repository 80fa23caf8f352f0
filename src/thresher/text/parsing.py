"""Numbers and JSON from others, with our own error for whole numbers of thousands of digits, which Python refuses."""

import json
import sys
from collections.abc import Callable
from typing import Any


def read_json(text: str, object_pairs_hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The value of JSON text. Raises ValueError with a message for people.

    >>> read_json('{"a": 1' + "0" * 5000 + "}")
    Traceback (most recent call last):
    ValueError: a whole number in it has 5,001 digits, more than the 4,300 that can be read
    """
    try:
        return json.loads(text, parse_int=whole, object_pairs_hook=object_pairs_hook)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def whole(text: str) -> int:
    """A whole number.

    >>> whole("17")
    17
    """
    try:
        return int(text)
    except ValueError:
        digits, most = sum(map(str.isdigit, text)), sys.get_int_max_str_digits()
        if not 0 < most < digits:
            raise
        words = f"a whole number in it has {digits:,} digits, more than the {most:,} that can be read"
        raise ValueError(words) from None
