"""The change feed: one watch per study for all its viewers. Without viewers, the store is not polled."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool

from ..errors import ThresherError, UnknownStudy
from ..text.logs import log
from .json_shapes import encoded
from .live_study import Live

TICK = 0.15  # seconds between two polls of the store while nothing is new
PAUSE = 0.5  # seconds between two messages, at least: people do not read faster
SHARE = 0.01  # of a second more for each viewer, so that many viewers do not slow the agents down
BEHIND = 50  # messages queued for one viewer; a slower one must reconnect
SLOWING = (5.0, 15.0, 60.0)  # seconds without news after which the rate is sent again, because it falls
BEAT = 15.0  # seconds of silence after which a stream sends a sign of life
AWAY = 2.0  # seconds between two polls of a store that failed
PIECE = 1 << 16  # bytes of a long message that are sent at once
ALWAYS = 0  # the number of a message for all viewers, whatever they know


class Message(NamedTuple):
    """A message to viewers; ``seq`` is the last event they know after it."""

    seq: int
    text: bytes


def message(kind: str, data: object, seq: int | None = None) -> bytes:
    r"""A server-sent event.

    >>> message("change", {"a": 1}, 7)
    b'id: 7\nevent: change\ndata: {"a":1}\n\n'
    """
    number = b"" if seq is None else b"id: %d\n" % seq
    return b"%sevent: %s\ndata: %s\n\n" % (number, kind.encode(), encoded(data))


async def pieces(text: bytes) -> AsyncGenerator[bytes]:
    """A long text in parts, with turns for others. A connection buffers a part, instead of a copy of the whole."""
    for at in range(0, len(text), PIECE):
        yield text[at : at + PIECE]
        await asyncio.sleep(0)


class Feed:
    """The viewers of one study."""

    def __init__(self, live: Live, forget: Callable[[], None] = lambda: None) -> None:
        self.live, self._forget = live, forget
        self._viewers: set[asyncio.Queue[Message | None]] = set()
        self._watch: asyncio.Task[None] | None = None
        self._mark = live.seq  # the last event that was sent to all viewers
        self._quiet = self._said = time.monotonic()  # when the last news came, and when the last message was sent
        self._slowed = 0  # how often the rate was sent since then
        self._trouble = ""  # why the last poll failed
        self._catching_up = threading.Lock()
        self._first = Message(-1, b"")  # the last first message, for viewers who knew the events up to `_first_after`
        self._first_after = -1

    @property
    def viewers(self) -> int:
        """How many follow this study. One who reads too slowly no longer counts."""
        return len(self._viewers)

    async def view(self, after: int) -> AsyncGenerator[bytes]:
        """What changes after event ``after``, until the viewer leaves."""
        queue: asyncio.Queue[Message | None] = asyncio.Queue(BEHIND)
        self._viewers.add(queue)
        try:
            yield b"retry: 1000\n\n"
            if self._watch is None or self._watch.done():
                self._mark = self.live.seq  # each viewer catches up with this on its own
                self._watch = asyncio.create_task(self._look_on())
            known, text = await run_in_threadpool(self._missed, after)
            async for piece in pieces(text):
                yield piece
            while (news := await queue.get()) is not None:
                if news.seq > known or news.seq == ALWAYS:
                    async for piece in pieces(news.text):
                        yield piece
        finally:
            self._viewers.discard(queue)

    def _missed(self, after: int) -> Message:
        """The first message to a new viewer; empty if it knows all.

        It is the same for all who know the same events, as long as nothing was sent to all after it.
        """
        with self._catching_up:
            if after != self._first_after or self._first.seq < self._mark:
                self._first, self._first_after = self._changed_since(after), after
            return self._first

    def _changed_since(self, after: int) -> Message:
        seq = self.live.seq
        if after > seq:  # it knows another log
            return Message(seq, message("reset", {}))
        return Message(seq, b"") if after == seq else self._changed(after)

    async def _look_on(self) -> None:
        try:
            while self._viewers:
                await asyncio.sleep(await self._step())
        except UnknownStudy:
            self._forget()
            there = await run_in_threadpool(self.live.store.read, self.live.name, 0, 1)
            self._send(Message(ALWAYS, message("reset" if there else "gone", {})))
        finally:  # however the watch ended: remaining pages reconnect, and start another
            self._send(None)

    async def _step(self) -> float:
        """Poll once and tell all viewers; returns the seconds until the next poll."""
        now = time.monotonic()
        try:
            found = await run_in_threadpool(self._news)
        except UnknownStudy:
            raise
        except ThresherError as error:  # a store that is briefly away, or a damaged log
            if str(error) != self._trouble:
                log.warning(str(error))
            self._trouble, found = str(error), None
        else:
            self._trouble = ""
        if found is not None:
            self._quiet, self._slowed = now, 0
        elif self._slowed < len(SLOWING) and now - self._quiet >= SLOWING[self._slowed]:
            self._slowed += 1
            found = Message(ALWAYS, message("head", await run_in_threadpool(self.live.head)))
        elif now - self._said >= BEAT:
            found = Message(ALWAYS, message("beat", {}))
        if found is not None:
            self._said = now
            self._send(found)
            return PAUSE + SHARE * len(self._viewers)
        return AWAY if self._trouble else TICK

    def _news(self) -> Message | None:
        if self.live.catch_up() == self._mark:
            return None
        found = self._changed(self._mark)
        self._mark = found.seq
        return found

    def _changed(self, after: int) -> Message:
        change = self.live.since(after)
        return Message(change["seq"], message("change", change, change["seq"]))

    def _send(self, text: Message | None) -> None:
        for queue in list(self._viewers):
            try:
                queue.put_nowait(text)
            except asyncio.QueueFull:  # it reads too slowly: end the connection, and let it reconnect
                self._viewers.discard(queue)
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)
