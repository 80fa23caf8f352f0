"""Pulls on a Dask cluster: the user's, or one of our own on this machine."""

import asyncio
import contextlib
import functools
import itertools
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Future
from typing import Any

from distributed import Client, KilledWorker

from ...errors import CannotGoOn, InvalidInput, told_of
from ...study import Pull
from ...text.logs import log
from ..lost import WorkerLost
from .dask_client import PATIENCE, connected, weakly
from .dask_remote import REFUSED, Evaluator, Marks, evaluate_once, leave, still_running
from .engine import Engine, Evaluate, opened
from .resources import sought, with_queue

LOOK = 0.25  # seconds between two looks at the cluster


class Dask(Engine):
    """A run's part of a Dask cluster. Coroutines on the client's own loop talk to the scheduler."""

    def __init__(
        self,
        evaluate: Evaluate,
        executor: "Client | str | Any",
        workers: int | None,
        cores: int,
        needed: dict[str, float] | None = None,
    ) -> None:
        self._closing = contextlib.ExitStack()  # what is ours
        self._needed = needed or {}  # resources of each pull
        if self._needed and executor == "dask":
            rule = "workers that thresher starts have none"
            remedy = "start some with: dask worker ADDRESS --resources 'GPU=1'"
            raise InvalidInput("resources", needed, rule, remedy)
        try:
            self.client, self._own = connected(executor, workers or cores, self._closing)
            self._most = None if self._own else workers
            self._room = asyncio.Semaphore(self._most) if self._most else contextlib.nullcontext()
            self._name = f"thresher-{secrets.token_hex(4)}"
            self._serial = itertools.count(1)
            self._keys: dict[Future[object], str] = {}
            self._pulls: dict[str, Pull] = {}
            self._arrived: dict[str, bytes] = {}  # outcomes of tasks that are about to be done
            self._given_up: set[str] = set()
            self._hung: defaultdict[str, set[str]] = defaultdict(set)  # by worker: pulls that hang there
            self._status: dict[str, Any] = {}
            self._failed: CannotGoOn | None = None
            self._missing = 0.0  # seconds for which our own cluster has been short of workers
            self.sought = sought(self._needed)
            super().__init__(workers or cores)
            self._install(evaluate)
        except BaseException:
            self._closing.close()
            raise

    # -- setting up ---------------------------------------------------------------------------------------------

    def _install(self, evaluate: Evaluate) -> None:
        for remove in (  # a plugin that fails on one worker may stay registered, and keep new workers from starting
            functools.partial(self.client.unregister_scheduler_plugin, self._name),
            functools.partial(self._ask, "end"),
            functools.partial(self.client.unregister_worker_plugin, self._name),
            functools.partial(self.client.unsubscribe_topic, self._name),
        ):
            self._closing.callback(self._quietly, remove)
        try:
            self.client.subscribe_topic(self._name, weakly(self._arrive))  # Dask keeps it as long as the client lives
            self.client.register_plugin(Marks(self._name, self.client.id, self._needed), name=self._name)
            self.client.register_plugin(Evaluator(self._name, evaluate, own=self._own is not None), name=self._name)
        except Exception as error:
            rule = f"cannot take the evaluator: {told_of(error)}"
            remedy = "thresher, and what the evaluator uses, must be installed on the scheduler and its workers"
            raise CannotGoOn("executor", self.client, rule, remedy) from None
        self._see(self._ask("status"))
        if self._status["allowed"]:
            log.warning(
                f"this Dask scheduler runs a task whose worker died up to {self._status['allowed'] + 1} times "
                f"(its allowed-failures is {self._status['allowed']}); thresher lets each pull begin once"
            )
        self._looking = self._soon(self._look())
        self._closing.callback(self._looking.cancel)

    def _quietly(self, call: Callable[[], object]) -> None:
        """Clean up, unless the scheduler is gone."""
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                call()

    # -- asking the scheduler -----------------------------------------------------------------------------------

    async def _question(self, what: str, **given: Any) -> Any:
        """Ask our plugin on the scheduler; stop waiting when the client has lost its connection."""
        asked = asyncio.ensure_future(getattr(self.client.scheduler, self._name)(what=what, **given))
        end = time.monotonic() + PATIENCE
        try:
            while not asked.done():
                if self.client.status != "running" or time.monotonic() >= end:
                    raise self._disconnected()
                await asyncio.wait([asked], timeout=LOOK)
            return asked.result()
        finally:
            asked.cancel()

    def _ask(self, what: str, **given: Any) -> Any:
        return self.client.sync(self._question, what, **given)

    def _soon(self, coroutine: Any) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(coroutine, self.client.loop.asyncio_loop)

    async def _look(self) -> None:
        """Follow the cluster as it grows and shrinks, and the pulls as they begin."""
        while self._failed is None:
            await asyncio.sleep(LOOK)
            try:
                self._see(await self._question("status"))
                await self._free_hung_workers()
                await self._fill_up()
            except (OSError, CannotGoOn):
                self._failed = self._disconnected()

    def _see(self, status: dict[str, Any]) -> None:
        self._status = status
        hung = sum(len(keys) for worker, keys in self._hung.items() if worker in status["workers"])
        threads = sum(slots for _, slots, _, _ in status["workers"].values()) - hung
        self.workers = max(0, threads if self._most is None else min(threads, self._most))

    async def _free_hung_workers(self, *, closing: bool = False) -> set[str]:
        """End workers all of whose threads hang in pulls that we gave up: their nannies restart them.

        When closing, also those with some hung threads, if no other client has work there. Returns their addresses.
        """
        left = set()
        for address, (nthreads, slots, nanny, others_work) in self._status["workers"].items():
            hung = self._hung.get(address)
            if not hung:
                continue
            with contextlib.suppress(Exception):
                hung &= set((await self.client.run(still_running, list(hung), workers=[address]))[address])
                useless = len(hung) >= nthreads or (len(hung) >= slots and not others_work)
                if nanny and hung and (useless or (closing and not others_work)):
                    del self._hung[address]
                    await self.client.run(leave, workers=[address])
                    left.add(address)
        return left

    async def _leave_nothing_hanging(self) -> None:
        """Leave no worker to the next run that hangs or is about to end."""
        self._see(await self._question("status"))
        leaving, end = await self._free_hung_workers(closing=True), time.monotonic() + PATIENCE
        while leaving & self._status["workers"].keys() and time.monotonic() < end:
            await asyncio.sleep(0.05)
            self._see(await self._question("status"))

    async def _end_hung_workers(self) -> None:
        """End hung workers of our own cluster for good: it would wait for their threads, or start them again."""
        nannies = {nanny.worker_address: nanny for nanny in self._own.workers.values()} if self._own else {}
        hung = [address for address in self._hung if address in nannies]
        for address in hung:
            nannies[address].close_gracefully()  # it starts no other
        if hung:
            await asyncio.wait_for(self.client.run(leave, workers=hung), LOOK * 8)

    async def _fill_up(self) -> None:
        """Start another worker in our own cluster if a nanny gave up on one that died while it started."""
        if self._own and len(self._status["workers"]) < len(self._own.worker_spec):
            self._missing += LOOK
            if self._missing >= PATIENCE:
                self._missing = 0.0
                self._own.scale(len(self._own.worker_spec))
        else:
            self._missing = 0.0

    # -- the engine ---------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        if self._failed is not None:
            raise self._failed
        if self.workers == 0:  # a user's cluster may start a worker for one waiting pull
            return 0 if self._own else 1
        return self.workers if self.workers == self._most else with_queue(self.workers)

    def submit(self, pull: Pull) -> "Future[object]":
        """Submit a task with a unique key: Dask would treat equal calls as one."""
        key = f"{self._name}-{pull.id}-{next(self._serial)}"
        self._pulls[key] = pull
        future: Future[object] = self._soon(self._evaluate(key, pull))
        self._keys[future] = key
        return future

    async def _evaluate(self, key: str, pull: Pull) -> bytes:
        async with self._room:  # where pulls beyond the number of workers asked for wait
            task = None
            try:
                task = self.client.submit(
                    evaluate_once, self._name, key, pull, key=key, pure=False, retries=0, resources=self._needed or None
                )
                if (error := await task.exception()) is not None:
                    raise error
                data = self._arrived.pop(key, None)
                if data is None:  # refused, cancelled, or the connection was lost and restored
                    data = await task.result()
                if data == REFUSED:
                    raise await self._death(key, "its worker was lost")
                return data
            except KilledWorker as error:
                raise await self._death(key, f"its worker {error.last_worker.address} died") from None
            except (asyncio.CancelledError, CancelledError):  # Dask's own is of the second kind
                if key in self._given_up or self._looking.cancelled():
                    raise
                if self.client.status == "running":
                    raise WorkerLost("its task was cancelled on the scheduler", ()) from None
                raise self._disconnected() from None
            except OSError as error:
                if self.client.status == "running":
                    raise WorkerLost(f"its worker lost its connection: {told_of(error)}", ()) from None
                raise self._disconnected() from None
            finally:
                self._given_up.discard(key)
                self._arrived.pop(key, None)
                if task is not None:
                    task.release()

    def _arrive(self, event: Any) -> None:
        """An outcome, from our plugin on the scheduler."""
        key, data = event[1]
        if key in self._pulls:
            self._arrived[key] = data

    async def _death(self, key: str, reason: str) -> BaseException:
        together = await self._question("death", key=key)
        if together is None:
            return asyncio.CancelledError("its worker was lost before it began")
        return WorkerLost(reason, [self._pulls[other] for other in together if other in self._pulls])

    def _disconnected(self) -> CannotGoOn:
        address = getattr(self.client.scheduler, "address", "")
        remedy = "the study is as it was: run again once the scheduler is back"
        return CannotGoOn("executor", address, "the connection to the Dask scheduler was lost", remedy)

    def began(self, future: "Future[object]") -> bool:
        return bool(self._status["begun"].get(self._keys[future]))

    def result(self, future: "Future[object]") -> object:
        key = self._keys.pop(future, "")
        data: Any = future.result()
        self._pulls.pop(key, None)  # pulls that died stay: `_death` looks up the pulls that died together
        return opened(data)

    def stop(self, future: "Future[object]") -> None:
        """Give up the task. A single thread cannot be ended; the worker is, once all its threads hang."""
        if worker := self._status["begun"].get(self._keys[future]):
            self._hung[worker].add(self._keys[future])
        self._give_up(future)

    def take_back(self, futures: Iterable["Future[object]"]) -> set["Future[object]"]:
        """The scheduler knows which have begun; if it does not answer, assume that all have."""
        keys = {self._keys[future]: future for future in futures if future in self._keys}
        fresh: list[str] = []
        if self.client.status == "running":
            with contextlib.suppress(Exception):
                fresh = self._ask("forbid", keys=list(keys))
                self._see(self._ask("status"))
        for key in fresh:
            self._give_up(keys[key])
        return {keys[key] for key in fresh}

    def abandon(self, futures: Iterable["Future[object]"]) -> None:
        for future in futures:
            self.stop(future)

    def _give_up(self, future: "Future[object]") -> None:
        key = self._keys.pop(future)
        self._given_up.add(key)
        self._pulls.pop(key, None)
        future.cancel()

    def close(self, *, wait: bool) -> None:
        if self._hung:
            free = self._leave_nothing_hanging if self._own is None else self._end_hung_workers
            self._quietly(lambda: self.client.sync(free))
        self._closing.close()
