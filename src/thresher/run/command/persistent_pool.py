"""A program as an evaluator that stays: it is started once per worker, and answers one pull after the other.

It is called like any evaluator, on every engine. Its processes belong to the process that calls it, wherever that is: a
copy of this evaluator that was sent there finds them by its settings.
"""

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...core import named_items
from ...core.named_items import ARMS
from ...core.spec import Spec
from ...errors import CannotGoOn, InvalidInput, shown
from ...log.locks import renewed
from ...study import Pull
from ...text.phrasing import listed
from ..lost_workers import EvaluatorRefused
from .exit_status import CommandFailed, cannot_start
from .guard import GRACE
from .persistent_process import Gone, PersistentProcess
from .protocol import PROTOCOL, Greeting
from .reward import TimedOut

PATIENCE = 60.0  # seconds in which an evaluator that is to name the arms must do so
NAME_THEM = 'name them with --arms FILE or --arm NAME, or let it print {"arms": [...]} first'


@dataclass(frozen=True)
class PersistentEvaluator:
    r"""Gives pulls to processes that stay. Each thread keeps its process, so both sides of a pair run in the same one.

    >>> evaluate = PersistentEvaluator(("sed", "-u", r's/.*"pull":\([0-9]*\).*/{"pull": \1, "reward": 0.5}/'))
    >>> evaluate(Pull(1, "a", 1, {}, 5)), evaluate(Pull(2, "b", 1, {}, 6))
    (0.5, 0.5)
    >>> evaluate.stop()
    """

    argv: tuple[str, ...]  # never a shell command line
    timeout: float | None = None  # seconds from the moment when a pull is written
    per_process: int = 1  # threads that share a process, and so the pulls that are pending in it
    arms: frozenset[str] | None = None  # those of the study; a process that names others is refused
    baseline: str | None = None  # where pulls are pairs: the arm whose side has the pull's id with a minus sign

    def __call__(self, pull: Pull) -> float:
        """The reward that a process answers."""
        return _pool(self).evaluate(pull, -pull.id if pull.arm == self.baseline else pull.id)

    def asked(self, spec: Spec) -> "PersistentEvaluator":
        """The same evaluator for this question."""
        evaluator = replace(self, arms=frozenset(spec.arms), baseline=spec.baseline if spec.pairs else None)
        with _LOCK:
            if self in _POOLS:
                pool = _POOLS[evaluator] = _POOLS.pop(self)
                pool.settings = evaluator
        return evaluator

    def arms_named(self) -> Sequence[object]:
        """Start a process and let it name the arms; it is kept for pulls."""
        named: list[object] = []
        try:
            process = _start(self.argv, lambda greeting: named.append(_checked(greeting).arms))
            try:
                process.greeting(PATIENCE)
                arms = _listed(named)
            except BaseException:
                process.end(0.0)
                raise
        except TimedOut:
            rule = f"there are none, and COMMAND printed nothing within {PATIENCE:g} s"
            raise InvalidInput("arms", rule=rule, remedy=NAME_THEM) from None
        except CommandFailed as error:
            remedy = "correct it, or name the arms with --arms FILE or --arm NAME"
            raise CannotGoOn("arms", rule=f"there are none, and {error}", remedy=remedy) from None
        _pool(self).adopt(process)
        return arms

    def rest(self) -> None:
        """End the processes of this process that have nothing to do: a run is over."""
        self._end(kill=False)

    def stop(self) -> None:
        """End all processes of this process."""
        self._end(kill=True)

    def _end(self, *, kill: bool) -> None:
        with _LOCK:
            pool = _POOLS.pop(self, None)
        if pool is not None:
            pool.end(kill=kill)


class Pool:
    """The processes of this process that run one command, each with the threads that use it."""

    def __init__(self, settings: PersistentEvaluator) -> None:
        self.settings = settings
        self._slots: list[Slot] = []
        self._is_over = False  # processes that are still busy end when they become idle
        self._reset()
        _ALL.add(self)

    def _reset(self) -> None:
        """Start empty, as in a forked child, where the processes are the parent's."""
        self._lock = threading.Lock()
        self._mine = threading.local()
        self._slots.clear()

    def evaluate(self, pull: Pull, key: int) -> float:
        slot: Slot | None = getattr(self._mine, "slot", None)
        if slot is None:
            slot = self._mine.slot = self._slot()
        try:
            return slot.evaluate(pull, key, self.settings)
        finally:
            if self._is_over:
                self.end(kill=False)

    def adopt(self, process: PersistentProcess) -> None:
        """Use a process that runs already."""
        with self._lock:
            self._slots.append(Slot(process))

    def _slot(self) -> "Slot":
        """A place in a process for this thread: where another thread has ended, or where there is room."""
        with self._lock:
            for slot in self._slots:
                slot.threads = [thread for thread in slot.threads if thread.is_alive()]
            room = [slot for slot in self._slots if len(slot.threads) < self.settings.per_process]
            slot = room[0] if room else Slot()
            if not room:
                self._slots.append(slot)
            slot.threads.append(threading.current_thread())
            return slot

    def end(self, *, kill: bool) -> None:
        """End all processes, or only the idle ones: close their inputs, wait a little, kill them."""
        self._is_over = True
        with self._lock:
            processes = [slot.process for slot in self._slots if slot.process is not None]
        idle = [process for process in processes if process.hang_up()]
        for process in processes if kill else idle:
            process.end(GRACE if process in idle else 0.0)


class Slot:
    """A process and the threads that use it."""

    def __init__(self, process: PersistentProcess | None = None) -> None:
        self.process = process
        self.threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def evaluate(self, pull: Pull, key: int, settings: PersistentEvaluator) -> float:
        """The answer to a pull. A process that is gone before the pull has begun is replaced."""
        while True:
            process = self._running(settings)
            with contextlib.suppress(Gone):
                return process.evaluate(pull, key, settings.timeout)
            with self._lock:
                if self.process is process:
                    self.process = None

    def _running(self, settings: PersistentEvaluator) -> PersistentProcess:
        with self._lock:
            if self.process is None or self.process.gone:
                self.process = _start(settings.argv, lambda greeting: _check_arms(_checked(greeting), settings.arms))
            return self.process


_LOCK = threading.Lock()
_POOLS: dict[PersistentEvaluator, Pool] = {}
_ALL = renewed(Pool._reset)


def _reset_in_child() -> None:
    """A thread of the parent may have held the lock."""
    global _LOCK
    _LOCK = threading.Lock()


os.register_at_fork(after_in_child=_reset_in_child)


def _pool(settings: PersistentEvaluator) -> Pool:
    pool = _POOLS.get(settings)
    if pool is None:
        with _LOCK:
            pool = _POOLS.setdefault(settings, Pool(settings))
    return pool


def _start(argv: Sequence[str], greeted: Callable[[Greeting], None]) -> PersistentProcess:
    try:
        return PersistentProcess(argv, greeted)
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
        raise cannot_start(argv[0], error) from None


def _checked(greeting: Greeting) -> Greeting:
    """A greeting of this version of the protocol."""
    if greeting.protocol != PROTOCOL or isinstance(greeting.protocol, bool):
        rule = f"COMMAND speaks another version, and this thresher speaks {PROTOCOL}"
        raise EvaluatorRefused("protocol", greeting.protocol, rule, "update one of the two")
    return greeting


def _listed(named: Sequence[object]) -> list[object]:
    """The arms of a greeting, if it names them in a list."""
    if not named or named[0] is None:
        raise InvalidInput("arms", rule="there are none, and COMMAND names none", remedy=NAME_THEM)
    if not isinstance(named[0], list):
        raise InvalidInput("arms", named[0], "COMMAND must name them in a list", 'print {"arms": ["a", "b"]}')
    return named[0]


def _check_arms(greeting: Greeting, arms: frozenset[str] | None) -> None:
    """Raise if a process names other arms than those of the study."""
    if greeting.arms is None or arms is None:
        return
    listing = greeting.arms if isinstance(greeting.arms, list) else [greeting.arms]
    try:
        names = {*named_items.listed(listing, "COMMAND's greeting", ARMS)}
    except InvalidInput as error:
        raise EvaluatorRefused("arms", rule=str(error)) from None
    if names != arms:
        differing = sorted(names ^ arms)
        rule = f"COMMAND names other arms than the study has: they differ in {listed(differing, show=shown)}"
        raise EvaluatorRefused("arms", len(names), rule, "leave --arms and --arm out, or name the same")
