"""The changes of a study as server-sent events. All viewers share one poll; without viewers, nothing is polled."""

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool

from ..errors import ThresherError, UnknownStudy
from ..text.logs import log
from .json_shapes import encoded_json_shape
from .live_study import LiveStudy

TICK = 0.15  # seconds between two polls of the store while nothing is new
PAUSE = 0.5  # seconds between two messages, because people do not read faster
SHARE = 0.01  # more seconds between messages for each viewer, so that many viewers do not slow the agents down
BEHIND = 50  # messages queued for a viewer; one that reads more slowly must reconnect
SLOWING = (5.0, 15.0, 60.0)  # seconds without news after which the rate is sent again, because it falls
BEAT = 15.0  # seconds without a message after which a stream sends a sign of life
AWAY = 2.0  # seconds between two polls of a store that failed
PIECE = 1 << 16  # bytes of a long message that are sent at once
ALWAYS = 0  # the number of a message that all viewers get, whatever they know


class Message(NamedTuple):
    """A message to viewers; ``seq`` is the last event they know after it."""

    seq: int
    text: bytes


def server_sent_event(kind: str, data: object, seq: int | None = None) -> bytes:
    r"""A server-sent event.

    >>> server_sent_event("change", {"a": 1}, 7)
    b'id: 7\nevent: change\ndata: {"a":1}\n\n'
    """
    number = b"" if seq is None else b"id: %d\n" % seq
    return b"%sevent: %s\ndata: %s\n\n" % (number, kind.encode(), encoded_json_shape(data))


async def event_stream_pieces(text: bytes) -> AsyncGenerator[bytes]:
    """A long text in parts, so that others get turns, and a connection does not buffer a copy of the whole text."""
    for at in range(0, len(text), PIECE):
        yield text[at : at + PIECE]
        await asyncio.sleep(0)


class EventStream:
    """The viewers of one study."""

    def __init__(self, live: LiveStudy, forget: Callable[[], None] = lambda: None) -> None:
        self.live, self._forget = live, forget
        self._viewers: set[asyncio.Queue[Message | None]] = set()
        self._polling: asyncio.Task[None] | None = None
        self._sent_seq = live.follower.seq  # the last event that was sent to all viewers
        self._changed_at = time.monotonic()  # when the study last changed
        self._sent_at = self._changed_at  # when the last message was sent
        self._rates_sent = 0  # since the last change
        self._failure = ""  # why the last poll failed
        self._first_lock = threading.Lock()
        self._first = Message(-1, b"")  # the last first message to a viewer, who knew the events up to `_first_after`
        self._first_after = -1

    @property
    def viewers(self) -> int:
        """How many viewers the study has. One who reads too slowly no longer counts."""
        return len(self._viewers)

    async def view(self, after: int) -> AsyncGenerator[bytes]:
        """The changes after event ``after``, until the viewer leaves."""
        queue: asyncio.Queue[Message | None] = asyncio.Queue(BEHIND)
        self._viewers.add(queue)
        try:
            yield b"retry: 1000\n\n"
            if self._polling is None or self._polling.done():
                self._sent_seq = self.live.follower.seq  # `_first_message` brings this viewer up to it
                self._polling = asyncio.create_task(self._poll())
            known, text = await run_in_threadpool(self._first_message, after)
            async for piece in event_stream_pieces(text):
                yield piece
            while (queued := await queue.get()) is not None:
                if queued.seq > known or queued.seq == ALWAYS:
                    async for piece in event_stream_pieces(queued.text):
                        yield piece
        finally:
            self._viewers.discard(queue)

    def _first_message(self, after: int) -> Message:
        """The first message to a new viewer, empty if the viewer knows everything.

        Viewers who know the same events get the same message, until a later one is sent to all.
        """
        with self._first_lock:
            if after != self._first_after or self._first.seq < self._sent_seq:
                seq = self.live.follower.seq
                if after > seq or after < self.live.revised:  # the viewer knows another log, or an earlier revision
                    self._first = Message(seq, server_sent_event("reset", {}))
                else:
                    self._first = Message(seq, b"") if after == seq else self._changed(after)
                self._first_after = after
            return self._first

    async def _poll(self) -> None:
        try:
            while self._viewers:
                await asyncio.sleep(await self._step())
        except UnknownStudy:
            self._forget()
            follower = self.live.follower
            events = await run_in_threadpool(follower.store.read, follower.name, 0, 1)
            self._send(Message(ALWAYS, server_sent_event("reset" if events else "gone", {})))
        finally:  # remaining viewers reconnect, and the first of them starts to poll again
            self._send(None)

    async def _step(self) -> float:
        """Poll once and send the changes to all viewers. Returns the seconds until the next poll."""
        now, news = time.monotonic(), None
        try:
            news = await run_in_threadpool(self._news)
            self._failure = ""
        except UnknownStudy:
            raise
        except ThresherError as error:  # the store is briefly unavailable, or the log is damaged
            if str(error) != self._failure:
                log.warning(str(error))
            self._failure = str(error)
        if news is not None:
            self._changed_at, self._rates_sent = now, 0
        elif self._rates_sent < len(SLOWING) and now - self._changed_at >= SLOWING[self._rates_sent]:
            self._rates_sent += 1
            news = Message(ALWAYS, server_sent_event("head", await run_in_threadpool(self.live.head)))
        elif now - self._sent_at >= BEAT:
            news = Message(ALWAYS, server_sent_event("beat", {}))
        if news is not None:
            self._sent_at = now
            self._send(news)
            return PAUSE + SHARE * len(self._viewers)
        return AWAY if self._failure else TICK

    def _news(self) -> Message | None:
        if self.live.catch_up() == self._sent_seq:
            return None
        news = self._changed(self._sent_seq)
        self._sent_seq = news.seq
        return news

    def _changed(self, after: int) -> Message:
        if after < self.live.revised:
            return Message(self.live.follower.seq, server_sent_event("reset", {}))
        change = self.live.since(after)
        return Message(change["seq"], server_sent_event("change", change, change["seq"]))

    def _send(self, news: Message | None) -> None:
        for queue in list(self._viewers):
            try:
                queue.put_nowait(news)
            except asyncio.QueueFull:  # the viewer reads too slowly: end the connection, and let it reconnect
                self._viewers.discard(queue)
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)
