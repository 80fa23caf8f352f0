r"""The chain of a log: every event carries a digest of itself and of all that came before it.

A digest is the first 16 bytes of BLAKE2b over the digest of the event before and the event's fields. The fields are
written so that two different events never give the same text, and that the text is the same in every version of Python:

- numbers in decimals, times and rewards as exact hexadecimal fractions (``float.hex``), separated by blanks;
- texts behind a NUL, which no text holds, and ``=``; a text that is absent is the NUL alone;
- fields that few events have come last, behind another NUL, and only if one of them is there;
- the specification as JSON with sorted keys.

The study's name is no part of it: a study that is renamed keeps its chain.
"""

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from .events import Event

SIZE = 16  # bytes of a digest
START = b"thresher chain 1"  # what the first event follows


class Head(NamedTuple):
    """The end of a log: its last event's number and digest."""

    seq: int
    digest: bytes | None  # None: version 0.1 wrote it, without digests


def link(before: bytes, event: Event) -> bytes:
    """The digest of an event that follows the one with the digest ``before``.

    >>> link(START, Event(1, "created", key="k")).hex()
    'ec0f57fd52ea0d53b8bd2a1d0b1d3b9b'
    """
    seq, kind, pull, arm, reward, reason, cause, late, budget, spec, key, time, agent, _ = event
    worth, when = "" if reward is None else reward.hex(), "" if time is None else time.hex()
    text = (  # by +, which refuses what is no text, as a damaged file may hold
        f"{seq!r} {pull!r} {arm!r} {worth} {when}\0="
        + kind
        + ("\0" if key is None else "\0=" + key)
        + ("\0" if agent is None else "\0=" + agent)
    )
    if reason is not None or cause is not None or late is not None or budget is not None or spec is not None:
        setting = None if spec is None else json.dumps(spec, sort_keys=True)
        text += f"\0{late!r} {budget!r}{_text(reason)}{_text(cause)}{_text(setting)}"
    return blake2b(before + text.encode(), digest_size=SIZE).digest()


def _text(text: str | None) -> str:
    return "\0" if text is None else "\0=" + text


def chained(events: Iterable[Event], before: bytes = START) -> list[Event]:
    """The events with their digests, behind an event with the digest ``before``.

    >>> [event.digest.hex()[:4] for event in chained([Event(1, "created", key="k"), Event(2, "asked", 1, 0)])]
    ['ec0f', '']
    """
    found = []
    for event in events:
        before = link(before, event)
        found.append(event._replace(digest=before))
    return found
