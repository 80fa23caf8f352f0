"""The server's studies: those that it shows, those that it writes to, and the queue of writes.

Readers and writers each have their own store, and so their own connection: a writer that waits for a lock blocks no
reader.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.concurrency import run_in_threadpool

from ..errors import StoreFailed, UnknownStudy
from ..log.journal import acting_in_journal
from ..log.locks import hurry_locks
from ..log.store import Store
from ..study import Study
from .event_stream import EventStream
from .live_study import LiveStudy
from .refusals import Refusal

Result = TypeVar("Result")
WRITERS = 16  # threads that write at once; readers have others
WRITES = 300  # writes that run or wait; further ones are refused
STREAMS = 200  # open streams; further ones are refused
PATIENCE = 20.0  # seconds that a write waits for a thread
LOCKS = 256  # enough that opening a study hardly ever waits for another study
KEPT = 3600.0  # seconds without requests after which a study is forgotten


class ServedStudies:
    """Each study is read at its first request, and forgotten after an hour without requests."""

    def __init__(self, store: Store, reader: Store | None = None) -> None:
        self.store, self.reader = store, reader or store
        self._locks = [threading.Lock() for _ in range(LOCKS)]
        self._streams: dict[str, EventStream] = {}
        self._studies: dict[str, Study] = {}
        self._used: dict[str, float] = {}  # the time of the last request, by study
        self._writers = ThreadPoolExecutor(WRITERS, "thresher-writer")
        self._writes, self._ended = 0, False
        self._tidying: asyncio.Task[None] | None = None

    # -- reading ------------------------------------------------------------------------------------------------

    def known_study(self, name: str) -> LiveStudy | None:
        """The study, if it was read before."""
        event_stream = self._streams.get(name)
        return None if event_stream is None else event_stream.live

    def live_study(self, name: str) -> LiveStudy:
        """The study as it is now. The first read takes time in proportion to its log."""
        try:
            live = self.event_stream(name).live
            live.catch_up()
        except UnknownStudy:  # perhaps it was deleted and created again
            self.forget(name)
            live = self.event_stream(name).live
        return live

    def event_stream(self, name: str) -> EventStream:
        return self._get_or_make(
            self._streams, name, lambda: EventStream(LiveStudy(name, self.reader), lambda: self.forget(name))
        )

    async def stream(self, name: str, after: int) -> AsyncIterator[bytes]:
        """The changes of a study after event ``after``. Too many streams are refused."""
        await run_in_threadpool(self.live_study, name)  # report errors before the stream begins
        event_stream = await run_in_threadpool(self.event_stream, name)
        if sum(opened.viewers for opened in self._streams.values()) >= STREAMS:
            rule, remedy = f"{STREAMS} streams are open already", "close pages that nobody looks at, and try again"
            raise Refusal(503, "stream", None, rule, remedy, retry=30)
        messages = event_stream.view(after)
        first = await anext(messages)  # from here on, the event stream counts this viewer

        async def stream() -> AsyncIterator[bytes]:
            async with contextlib.aclosing(messages):
                yield first
                async for message in messages:
                    yield message

        return stream()

    # -- writing ------------------------------------------------------------------------------------------------

    async def write(self, act: Callable[[], Result], agent: str | None = None) -> Result:
        """Run ``act`` on a thread for writers, and return its result. Too many writes are refused.

        The events that ``act`` writes have the agent's name.
        """
        if self._ended:
            raise _busy("it is shutting down")
        if self._writes >= WRITES:
            raise _busy(f"{WRITES} writes are already waiting")
        self._writes += 1
        try:
            future = self._writers.submit(acting_in_journal(agent)(act))
            result = asyncio.wrap_future(future)
            await asyncio.wait([result], timeout=PATIENCE)
            if future.cancel():  # it has not begun
                others = f"other writes have been waiting for more than {PATIENCE:g} s"
                raise _busy("it is shutting down" if self._ended else others)
            return await result
        finally:
            self._writes -= 1

    def shut_down(self) -> None:
        """Shut down: writes that have not begun are cancelled, and those that wait for a lock give up.

        None of these was acknowledged. Writes in progress are finished.
        """
        self._ended = True
        self._writers.shutdown(wait=False, cancel_futures=True)
        hurry_locks()

    def writable_study(self, name: str) -> Study:
        """The study for asking and telling. It has its own ledger, which readers do not need."""
        return self._get_or_make(self._studies, name, lambda: Study(name, self.store))

    # -- opening and forgetting ---------------------------------------------------------------------------------

    def _get_or_make(self, opened: dict[str, Result], name: str, make: Callable[[], Result]) -> Result:
        """A study that is open already; otherwise one thread opens it."""
        result = opened.get(name)
        if result is None:
            with self._locks[hash((id(opened), name)) % LOCKS]:
                result = opened.get(name)
                if result is None:
                    result = opened[name] = make()
        self._used[name] = time.monotonic()
        return result

    def forget(self, name: str) -> None:
        self._streams.pop(name, None)
        self._studies.pop(name, None)
        self._used.pop(name, None)

    async def tidy_soon(self) -> None:
        """Tidy in the background, because the server's loop must neither wait for a store nor fail."""
        if self._tidying is None or self._tidying.done():
            self._tidying = asyncio.create_task(self.tidy())

    async def tidy(self) -> None:
        with contextlib.suppress(StoreFailed):
            await run_in_threadpool(self._tidy)

    def _tidy(self) -> None:
        opened = {*self._streams, *self._studies, *self._used}
        stored = set(self.reader.studies()) if opened else set()
        oldest = time.monotonic() - KEPT
        for name in opened:
            event_stream = self._streams.get(name)
            if event_stream is not None and event_stream.viewers:  # if the study is gone, the event stream tells them
                continue
            if name not in stored or self._used.get(name, 0.0) < oldest:
                self.forget(name)


def _busy(reason: str) -> Refusal:
    return Refusal(503, "server", None, f"cannot write now: {reason}", "try again in a moment", retry=5)
