"""The server's studies: those it watches, those it writes to, and the queue of writes.

Readers and writers each have their own store, and so their own connection: a writer that waits for a lock blocks no
reader.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from ..errors import StoreFailed, UnknownStudy
from ..log.journal import acting_as
from ..log.locks import hurry
from ..log.store import Store
from ..study import Study
from .event_stream import Feed
from .live_study import Live
from .refusals import Refusal

Found = TypeVar("Found")
WRITERS = 16  # threads that write at once; readers have others
WRITES = 300  # writes that run or wait; further ones are refused
STREAMS = 200  # that are open at once; further ones are refused
PATIENCE = 20.0  # seconds that a write waits for a thread
OPENING = 256  # locks, so that one study is read once, and hardly ever waits for another
LONG = 3600.0  # seconds without requests after which a study is forgotten


class ServedStudies:
    """Studies: each is read when it is first asked for, and forgotten after an hour without requests."""

    def __init__(self, store: Store, reader: Store | None = None) -> None:
        self.store, self.reader = store, reader or store
        self._opening = [threading.Lock() for _ in range(OPENING)]
        self._feeds: dict[str, Feed] = {}
        self._studies: dict[str, Study] = {}
        self._used: dict[str, float] = {}  # when each was last asked for
        self._writers = ThreadPoolExecutor(WRITERS, "thresher-writer")
        self._writes, self._ended = 0, False
        self._tidying: asyncio.Task[None] | None = None

    # -- reading ------------------------------------------------------------------------------------------------

    def known(self, name: str) -> Live | None:
        """The watched study, if it was read before."""
        feed = self._feeds.get(name)
        return None if feed is None else feed.live

    def live(self, name: str) -> Live:
        """The study as it is now; the first read takes time in proportion to its log."""
        try:
            found = self.feed(name).live
            found.catch_up()
        except UnknownStudy:  # perhaps it was deleted and created again
            self.forget(name)
            found = self.feed(name).live
        return found

    def feed(self, name: str) -> Feed:
        return self._opened(self._feeds, name, lambda: Feed(Live(name, self.reader), lambda: self.forget(name)))

    async def stream(self, name: str, after: int) -> AsyncIterator[bytes]:
        """What changes in a study after event ``after``. Too many streams are refused."""
        await run_in_threadpool(self.live, name)  # report errors before the stream begins
        feed = await run_in_threadpool(self.feed, name)
        if sum(each.viewers for each in self._feeds.values()) >= STREAMS:
            rule, remedy = f"{STREAMS} streams are open already", "close pages that nobody looks at, and try again"
            raise Refusal(503, "stream", None, rule, remedy, retry=30)
        messages = feed.view(after)
        first = await anext(messages)  # from here on it counts
        return _after(first, messages)

    # -- writing ------------------------------------------------------------------------------------------------

    async def write(self, act: Callable[[], Found], agent: str | None = None) -> Found:
        """Run ``act``, which may write, on a thread for writers, and return its result. Too many writes are refused.

        The events that it writes carry the agent's name.
        """
        if self._ended:
            raise _busy("it is shutting down")
        if self._writes >= WRITES:
            raise _busy(f"{WRITES} writes are already waiting")
        self._writes += 1
        try:
            work = self._writers.submit(acting_as(agent)(act))
            result = asyncio.wrap_future(work)
            await asyncio.wait([result], timeout=PATIENCE)
            if work.cancel():  # it has not begun
                others = f"other writes have been waiting for more than {PATIENCE:g} s"
                raise _busy("it is shutting down" if self._ended else others)
            return await result
        finally:
            self._writes -= 1

    def end(self) -> None:
        """Shut down: writes that have not begun are cancelled, and those that wait for a lock give up.

        None of them was acknowledged. Writes in progress are finished.
        """
        self._ended = True
        self._writers.shutdown(wait=False, cancel_futures=True)
        hurry()

    def study(self, name: str) -> Study:
        """The study, to ask and to tell. It has its own ledger, which readers do not need."""
        return self._opened(self._studies, name, lambda: Study(name, self.store))

    # -- opening and forgetting ---------------------------------------------------------------------------------

    def _opened(self, shelf: dict[str, Found], name: str, make: Callable[[], Found]) -> Found:
        """What is on the shelf; if nothing is there yet, one thread makes it."""
        found = shelf.get(name)
        if found is None:
            with self._opening[hash((id(shelf), name)) % OPENING]:
                found = shelf.get(name)
                if found is None:
                    found = shelf[name] = make()
        self._used[name] = time.monotonic()
        return found

    def forget(self, name: str) -> None:
        self._feeds.pop(name, None)
        self._studies.pop(name, None)
        self._used.pop(name, None)

    async def tidy_soon(self) -> None:
        """Tidy in the background: the server's loop must neither wait for a store nor fail."""
        if self._tidying is None or self._tidying.done():
            self._tidying = asyncio.create_task(self.tidy())

    async def tidy(self) -> None:
        with contextlib.suppress(StoreFailed):
            await run_in_threadpool(self._tidy)

    def _tidy(self) -> None:
        held = {*self._feeds, *self._studies, *self._used}
        there = set(self.reader.studies()) if held else set()
        old = time.monotonic() - LONG
        for name in held:
            feed = self._feeds.get(name)
            if feed is not None and feed.viewers:  # its feed tells the viewers
                continue
            if name not in there or self._used.get(name, 0.0) < old:
                self.forget(name)


async def _after(first: bytes, rest: AsyncGenerator[bytes]) -> AsyncIterator[bytes]:
    async with contextlib.aclosing(rest):
        yield first
        async for each in rest:
            yield each


def _busy(why: str) -> Refusal:
    return Refusal(503, "server", None, f"cannot write now: {why}", "try again in a moment", retry=5)
