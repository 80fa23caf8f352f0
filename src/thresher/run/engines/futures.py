"""Other people's executors: anything in the shape of ``concurrent.futures.Executor``.

Their size, their processes and their settings have no public names. So `run` is told how many ``workers`` there are, a
worker that hangs is left alone, and a pool that breaks is replaced only by calling the function that made it.
"""

import inspect
import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any

from ...errors import CannotGoOn, InvalidInput, error_line
from ...study import Pull
from ..failures import WorkerLost
from .local import Engine, Evaluate
from .outcomes import evaluate_to_outcome, unpack_outcome


class FuturesAdapter(Engine):
    """Any ``concurrent.futures.Executor``, or a function that makes one."""

    def __init__(
        self, evaluate: Evaluate, executor: Executor | Callable[[], Executor], workers: int | None, default: int
    ) -> None:
        self.evaluate = evaluate
        self._make = None if isinstance(executor, Executor) else executor
        self._executor = executor if isinstance(executor, Executor) else _made(executor)
        self._is_new = True  # it has taken no pull
        self._size = workers or _size(self._executor) or default
        self._here: dict[Future[object], Pull] = {}  # the current executor's pulls, in the order of submission
        self._hung: set[Future[object]] = set()  # those of them that timed out
        self._lost: dict[Future[object], Sequence[Pull]] = {}  # the pulls that were lost together, for each of them
        self._failed: BaseException | None = None  # why there is no executor any more
        super().__init__(self._size)

    @property
    def room(self) -> int:
        """Zero while a broken executor's pulls come back: each must be judged before the run can end."""
        if self._failed is None:
            return super().room
        if self._lost:
            return 0
        raise self._failed

    def submit(self, pull: Pull) -> "Future[object]":
        """Submit the pull. A broken pool is replaced first, because this pull has not begun."""
        while self._failed is None:
            try:
                future: Future[object] = self._executor.submit(evaluate_to_outcome, self.evaluate, pull)
            except BrokenExecutor:
                self._replace()
            except RuntimeError as error:  # it was shut down
                raise CannotGoOn("executor", self._executor, error_line(error), "pass one that is open") from None
            else:
                self._here[future], self._is_new = pull, False
                return future
        never: Future[object] = Future()
        never.cancel()
        never.set_running_or_notify_cancel()
        return never

    def began(self, future: "Future[object]") -> bool:
        """Whether it runs. Pools report some queued pulls as running, but only one per worker can be."""
        return future.running() and future in itertools.islice(
            (other for other in self._here if not other.done()), self._size
        )

    def result(self, future: "Future[object]") -> object:
        """The reward. A broken pool is replaced; the pulls in it are lost."""
        try:
            data: Any = future.result()
        except BrokenExecutor as error:
            if future in self._here:
                self._replace()
            raise WorkerLost(f"the pool broke: {error_line(error)}", self._lost[future]) from None
        finally:
            self._here.pop(future, None)
            self._lost.pop(future, None)
        return unpack_outcome(data)

    def stop(self, future: "Future[object]") -> None:
        """Count one worker less until the call returns."""
        if future not in self._here or future.cancel():  # its pool was replaced, or it had not begun
            return
        self.say_hung()
        self._hung.add(future)
        self._count()
        future.add_done_callback(self._came_back)
        if self.workers < 1:
            rule = "each of its workers hangs in a pull that timed out"
            raise CannotGoOn("executor", rule=rule, remedy="use processes")

    def _came_back(self, future: "Future[object]") -> None:
        """Count the worker of a call that returned after all."""
        self._hung.discard(future)
        self._count()

    def _count(self) -> None:
        self.workers = 0 if self._failed is not None else self._size - len(self._hung)

    def close(self, *, wait: bool) -> None:
        """Shut the executor down if we made it. Executors that can kill their busy processes do so."""
        if self._make is None:
            return
        if not wait and (kill := getattr(self._executor, "kill_workers", None)):  # from Python 3.14
            kill()
        else:
            options = {"cancel_futures": True, "kill_workers": not wait}
            known = inspect.signature(self._executor.shutdown).parameters
            self._executor.shutdown(wait=wait, **{name: value for name, value in options.items() if name in known})

    def _replace(self) -> None:
        """Note which pulls a broken pool lost. The user's function makes another pool, if this one ever worked."""
        lost = tuple(pull for future, pull in self._here.items() if _broke(future))
        self._lost |= dict.fromkeys(self._here, lost)
        self._here, self._hung = {}, set()
        try:
            if self._make is None or self._is_new:
                remedy = "make one that works" if self._make else "pass a function that makes one, and makes another"
                raise CannotGoOn("executor", self._executor, "broke: one of its workers died", remedy)
            self._executor.shutdown(wait=False)
            self._executor, self._is_new = _made(self._make), True
        except Exception as error:
            self._failed = error
        self._count()


def _made(make: Callable[[], Executor]) -> Executor:
    executor = make()
    if not isinstance(executor, Executor):
        raise InvalidInput("executor", make, f"made {executor!r:.100}, which is not a concurrent.futures.Executor")
    return executor


def _size(executor: Executor) -> int | None:
    """Only mpi4py's executors tell their size."""
    size = getattr(executor, "num_workers", None)
    return size if isinstance(size, int) and size > 0 else None


def _broke(future: "Future[object]") -> bool:
    """Whether a pull was lost with its pool, or is about to be."""
    return not future.done() or (not future.cancelled() and isinstance(future.exception(), BrokenExecutor))
