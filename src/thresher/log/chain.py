r"""The chain of a log: every event carries a digest of itself and of all events before it.

A digest is a 16-byte BLAKE2b over the previous event's digest and the event's fields. No two events give the same
bytes, and every version of Python gives the same ones:

- the numbers: a byte that says which of seq, pull, arm, time, reward, late and budget are present (1, 2, 4, …), then
  these, 8 bytes each, little endian; rewards and times as floats, the others as integers;
- the texts: kind, key, agent, reason, cause, and the specification as JSON with sorted keys. Each is ``=`` and its
  text, or nothing if it is absent, and they are separated by NUL, which no text contains. Absent texts at the end
  are left out.

The study's name is not part of it: a renamed study keeps its chain.
"""

import json
import struct
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, NamedTuple

from ..core.events import Event

SIZE = 16  # bytes of a digest
START = b"thresher chain 1"  # what the first event follows
_FORMS = "qqqddqq"  # of seq, pull, arm, time, reward, late, budget
_ASKED, _TOLD = struct.Struct("<Bqqqd").pack, struct.Struct("<Bqqqdd").pack  # as nearly all events are

_EMPTY = blake2b(digest_size=SIZE)


class Head(NamedTuple):
    """The end of a log: its last event's number and digest."""

    seq: int
    digest: bytes | None  # as the event has it


def link(before: bytes, event: tuple[Any, ...]) -> bytes:
    """The digest of an event that follows the one with the digest ``before``. Raises ValueError if it is not an event.

    >>> link(START, Event(1, "created", key="k")).hex()
    '3b82c4a8832b36398f7f8cd150324edd'
    """
    seq, kind, pull, arm, reward, reason, cause, late, budget, spec, key, time, agent, _ = event
    try:
        if pull is None or arm is None or time is None or late is not None or budget is not None:
            numbers = _numbers(seq, pull, arm, time, reward, late, budget)
        elif reward is None:
            numbers = _ASKED(0b1111, seq, pull, arm, time)
        else:
            numbers = _TOLD(0b11111, seq, pull, arm, time, reward)
        if key is None or agent is None or reason is not None or cause is not None or spec is not None:
            texts = _texts(kind, key, agent, reason, cause, None if spec is None else json.dumps(spec, sort_keys=True))
        else:
            texts = "=" + kind + "\0=" + key + "\0=" + agent
            if texts.count("\0") != 2:
                raise ValueError("a text holds a NUL")
        digest = _EMPTY.copy()  # a copy costs half as much as a new one
        digest.update(before + numbers + texts.encode())
        return digest.digest()
    except (struct.error, TypeError) as error:
        raise ValueError(f"a field is of the wrong type ({error})") from None


def _numbers(*values: float | None) -> bytes:
    there = [number for number in range(len(values)) if values[number] is not None]
    form = "".join(_FORMS[number] for number in there)
    return struct.pack(f"<B{form}", sum(1 << number for number in there), *(values[number] for number in there))


def _texts(*texts: str | None) -> str:
    joined = "\0".join(["" if text is None else "=" + text for text in texts])
    if joined.count("\0") != len(texts) - 1:
        raise ValueError("a text holds a NUL")
    return joined.rstrip("\0")


def chained(events: Iterable[Event]) -> list[Event]:
    """The events of a whole log, with their digests.

    >>> [event.digest.hex()[:4] for event in chained([Event(1, "created", key="k"), Event(2, "asked", 1, 0)])]
    ['3b82', 'a52e']
    """
    log, digest = [], START
    for event in events:
        digest = link(digest, event)
        log.append(event._replace(digest=digest))
    return log
