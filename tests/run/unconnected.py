"""A scheduler and a client of Dask that are connected to nothing."""

import asyncio
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from thresher.run.engines import dask as remote
from thresher.run.engines.engine import outcome
from thresher.study import Pull

NAME = "thresher-0102"


def pull(number: int) -> Pull:
    return Pull(number, "a", 1, {}, 7)


class Scheduler:
    """What the client and our plugin on the scheduler say."""

    def __init__(self) -> None:
        self.workers: dict[str, Any] = {"w1": (2, 2, True, False)}
        self.begun: dict[str, str] = {}
        self.allowed, self.forbidden = 0, list[str]()
        self.asked: list[str] = []
        self.did: list[object] = []

    async def answer(self, what: str, **given: Any) -> Any:
        self.asked.append(what)
        if what == "status":
            return {"workers": dict(self.workers), "begun": dict(self.begun), "allowed": self.allowed}
        if what == "forbid":
            self.forbidden = [key for key in given["keys"] if key not in self.begun]
            return self.forbidden
        return None


class Client:
    """In place of Dask's."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.status, self.id, self._scheduler = "running", "client-1", scheduler
        self.scheduler = SimpleNamespace(address="tcp://scheduler", **{NAME: scheduler.answer})
        self.loop = SimpleNamespace(asyncio_loop=asyncio.new_event_loop())
        self.tasks: dict[str, Any] = {}
        self._thread = threading.Thread(target=self.loop.asyncio_loop.run_forever, daemon=True)
        self._thread.start()

    def sync(self, function: Callable[..., Any], *args: Any, **given: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(function(*args, **given), self.loop.asyncio_loop).result(20)

    def register_plugin(self, plugin: Any, name: str) -> None:
        if isinstance(plugin, remote.Marks):
            assert (plugin.name, plugin._client) == (NAME, "client-1")
        self._scheduler.did.append((type(plugin).__name__, name))

    def subscribe_topic(self, name: str, handler: Callable[[Any], None]) -> None:
        self.arrive = handler
        self._scheduler.did.append(("subscribe", name))

    def unregister_scheduler_plugin(self, name: str) -> None:
        self._scheduler.did.append(("remove marks", name))

    def unregister_worker_plugin(self, name: str) -> None:
        self._scheduler.did.append(("remove evaluator", name))

    def unsubscribe_topic(self, name: str) -> None:
        self._scheduler.did.append(("unsubscribe", name))

    def submit(self, function: Any, *args: Any, key: str, **given: Any) -> Any:
        ended = asyncio.Event()

        async def exception() -> None:
            await ended.wait()

        self.tasks[key] = SimpleNamespace(
            exception=exception, ended=ended, args=args, given=given, released=False, release=lambda: None
        )
        return self.tasks[key]

    def end(self, key: str, value: float) -> None:
        self.arrive((0.0, [key, outcome(lambda _: value, pull(1))]))
        self.loop.asyncio_loop.call_soon_threadsafe(self.tasks[key].ended.set)

    def close(self) -> None:
        async def end() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        self.sync(end)
        self.loop.asyncio_loop.call_soon_threadsafe(self.loop.asyncio_loop.stop)
        self._thread.join(20)
        self.loop.asyncio_loop.close()
