"""The change feed: one watch a study, however many look on. Nobody looks on: nobody polls the store."""

import asyncio
import json
import logging
import threading
from collections import deque
from collections.abc import AsyncGenerator

from starlette.concurrency import run_in_threadpool

from ..errors import ThresherError, UnknownStudy
from ..store import Store
from .live import Live

log = logging.getLogger("thresher")
TICK = 0.4  # seconds between two looks at the store
KEPT = 150  # messages kept for viewers that lost their connection for a moment
BEHIND = 50  # messages that wait for one viewer; a slower one begins anew
SLOWING = (12, 40, 160)  # looks without news after which the rate is told again: nobody works any more
QUIET = 15.0  # seconds after which a silent stream says that it lives


def message(kind: str, data: object, seq: int | None = None) -> bytes:
    r"""A server-sent event.

    >>> message("change", {"a": 1}, 7)
    b'id: 7\nevent: change\ndata: {"a":1}\n\n'
    """
    number = "" if seq is None else f"id: {seq}\n"
    return f"{number}event: {kind}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()


class Feed:
    """The viewers of one study."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self._viewers: set[asyncio.Queue[bytes | None]] = set()
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=KEPT)  # (number before it, message)
        self._sent = live.seq  # up to where viewers know the study
        self._idle = 0  # looks that found nothing, in a row
        self._watch: asyncio.Task[None] | None = None

    def fresh(self) -> Live:
        """The study as it is now; while somebody looks on, as it was a moment ago."""
        if not self._viewers:
            self.live.look()
        return self.live

    async def view(self, after: int) -> AsyncGenerator[bytes]:
        """What changed after event ``after``, for as long as it is wanted."""
        queue: asyncio.Queue[bytes | None] = asyncio.Queue(BEHIND)
        self._viewers.add(queue)
        if self._watch is None or self._watch.done():
            self._sent = self.live.seq
            self._watch = asyncio.create_task(self._look_on())
        missed = self._missed(after)
        try:
            yield b"retry: 1000\n\n"
            for old in missed:
                yield old
            while True:
                try:
                    text: bytes | None = await asyncio.wait_for(queue.get(), QUIET)
                except TimeoutError:
                    text = b": still here\n\n"
                if text is None:
                    return
                yield text
        finally:
            self._viewers.discard(queue)

    def _missed(self, after: int) -> list[bytes]:
        if after == self._sent:
            return []
        if any(before == after for before, _ in self._kept):
            return [text for before, text in self._kept if before >= after]
        return [message("reset", {})]

    async def _look_on(self) -> None:
        while self._viewers:
            before = self._sent
            try:
                text = await run_in_threadpool(self._news)
            except UnknownStudy:
                self._send(message("gone", {}))
                self._send(None)
                return
            except ThresherError as error:  # a store that is away for a moment; the pages say so by themselves
                log.warning(str(error))
                text = None
            if text is not None:
                if self.live.seq != before:
                    self._kept.append((before, text))
                self._send(text)
                self._sent = self.live.seq
            await asyncio.sleep(TICK)

    def _news(self) -> bytes | None:
        behind = self.live.seq != self._sent  # somebody looked besides, just as the first viewer came
        change = self.live.look()
        if behind:
            return message("reset", {})
        if not change.arms and not change.events:
            self._idle += 1
            return message("head", self.live.head()) if self._idle in SLOWING else None
        self._idle = 0
        return message("change", self.live.change_json(change), change.seq)

    def _send(self, text: bytes | None) -> None:
        for queue in list(self._viewers):
            try:
                queue.put_nowait(text)
            except asyncio.QueueFull:  # it reads too slowly: the connection ends, and it begins anew
                self._viewers.discard(queue)
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)


class House:
    """All that the server watches; a study is read when somebody first asks for it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._opening: dict[str, threading.Lock] = {}
        self._feeds: dict[str, Feed] = {}

    def known(self, name: str) -> Live | None:
        """The study, if it was read before."""
        feed = self._feeds.get(name)
        return None if feed is None else feed.live

    def live(self, name: str) -> Live:
        """The study; reading it for the first time takes as long as it is."""
        return self.feed(name).live

    def feed(self, name: str) -> Feed:
        """The study's viewers."""
        found = self._feeds.get(name)
        if found is not None:
            return found
        with self._lock:
            opening = self._opening.setdefault(name, threading.Lock())
        with opening:
            try:
                if name not in self._feeds:
                    self._feeds[name] = Feed(Live(name, self.store))
                return self._feeds[name]
            finally:
                with self._lock:  # names that nobody has must not pile up
                    self._opening.pop(name, None)

    def forget(self, name: str) -> None:
        """The study was deleted."""
        self._feeds.pop(name, None)
