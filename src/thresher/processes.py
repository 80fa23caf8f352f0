"""One worker process with a pipe of its own."""

import contextlib
import multiprocessing
import os
import pickle
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

Evaluate = Callable[[Any], object]


class WorkerDied(Exception):
    """The process that evaluated a pull ended before it answered."""


class Process:
    """Evaluates one pull at a time in another process, and starts a new one after a death."""

    def __init__(self, evaluate: Evaluate) -> None:
        self._evaluate = evaluate
        self._pipe: Connection | None = None
        self._process: Any = None

    def evaluate(self, pull: object) -> object:
        """What the evaluator returns or raises, over there."""
        pipe = self._pipe or self._start()
        try:
            pipe.send_bytes(pickle.dumps(pull))
            answer = pipe.recv_bytes()
        except (EOFError, OSError):
            raise WorkerDied(self._bury()) from None
        fine, result = pickle.loads(answer)  # noqa: S301 - from our own child
        if fine:
            return result
        raise result

    def kill(self) -> None:
        """End the process now; a pull in it fails."""
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Let the process go."""
        if self._pipe is not None:
            self._pipe.close()
            self._process.join()

    def _start(self) -> Connection:
        context: Any = multiprocessing.get_context()
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, self._evaluate, os.getpid()), name="thresher-worker"
        )
        self._process.start()
        theirs.close()
        return self._pipe

    def _bury(self) -> str:
        self._process.join()
        code, self._pipe = self._process.exitcode, None
        return (
            f"its process was ended by {signal.Signals(-code).name}" if code < 0 else f"its process exited with {code}"
        )


def _serve(pipe: Connection, evaluate: Evaluate, parent: int) -> None:
    """The other side: answer until the pipe closes or the parent is gone. Ctrl-C is the parent's business."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with contextlib.suppress(EOFError, OSError):
        while os.getppid() == parent:  # a sibling may hold a copy of the pipe's far end, so its closing is not enough
            if pipe.poll(1.0):
                pipe.send_bytes(_answer(evaluate, pipe.recv_bytes()))


def _answer(evaluate: Evaluate, question: bytes) -> bytes:
    try:
        answer = (True, evaluate(pickle.loads(question)))  # noqa: S301 - from our own parent
    except BaseException as error:
        answer = (False, error)
    try:
        data = pickle.dumps(answer)
        pickle.loads(data)  # noqa: S301 - some exceptions can be written but not read back
    except Exception:
        kind = "returned" if answer[0] else "raised"
        data = pickle.dumps((False, TypeError(f"it {kind} {answer[1]!r:.200}, which cannot be sent between processes")))
    return data
