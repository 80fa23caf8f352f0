"""The evaluator's side of ``thresher run --stay``: a Python function answers pulls, line by line."""

import asyncio
import contextlib
import inspect
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ..core import checks
from ..core.named_items import ARMS, items_from_python
from ..core.parameters import Named
from ..create import read_items_to_create
from ..depends import checked_version
from ..errors import Busy, InvalidInput, error_line
from ..run.command.protocol import PROTOCOL
from ..run.evaluator_errors import traceback_text
from ..study import Pull

FIELDS = ("reward", "note", "cost")  # of a mapping that a function returns
CHUNK = 1 << 16


def evaluator(
    function: Callable[[Pull], object], *, arms: Named | None = None, version: str | None = None, workers: int = 1
) -> None:
    """Answer the pulls that ``thresher run --stay`` writes to standard input, until there are no more.

    The function takes a `Pull` and returns a number or a bool, or ``{"reward": 0.8, "note": "…", "cost": 0.02}``. If it
    raises an exception, the pull has failed; `Busy` asks for the pull again later. What it prints goes to standard
    error. A coroutine function runs all pulls that have come at once; a plain one as many as ``workers``, in threads.

    With ``arms``, as `create_study` takes them, the study needs no ``--arms``. A ``version`` is a text that stands for
    the code: when it changes, no earlier result holds::

        # evaluate.py: thresher run --stay --at-least 0.9 -- python evaluate.py
        import thresher

        model = load()  # once

        def evaluate(pull):
            return model.is_right(pull.arm, seed=pull.seed)

        thresher.evaluator(evaluate, arms=["terse", "polite"])
    """
    if not callable(function):
        raise InvalidInput("function", function, "must be a function that takes a pull")
    checks.checked_whole("workers", workers, least=1)
    version = None if version is None else checked_version(version)
    with _own_streams() as (incoming, outgoing):
        answers = EvaluatorAnswers(outgoing)
        named = {"arms": arms if arms is None else _arms_json(arms), "version": version}
        answers.put({"protocol": PROTOCOL} | {name: value for name, value in named.items() if value is not None})
        called = function if inspect.isroutine(function) else type(function).__call__
        if inspect.iscoroutinefunction(called):
            asyncio.run(_answer_together(function, incoming, answers))
        elif workers == 1:
            for pull in _pulls(incoming):
                _answer(function, pull, answers)
        else:
            with ThreadPoolExecutor(workers) as threads:
                for pull in _pulls(incoming):
                    threads.submit(_answer, function, pull, answers)


class EvaluatorAnswers:
    """Writes answers, one per line, from any thread."""

    def __init__(self, file: int) -> None:
        self._file, self._lock = file, threading.Lock()

    def put(self, answer: Mapping[str, Any]) -> None:
        line = json.dumps(answer).encode() + b"\n"
        with self._lock:
            while line:
                line = line[os.write(self._file, line) :]


@contextlib.contextmanager
def _own_streams() -> Iterator[tuple[int, int]]:
    """Take the process's input and output, so that the function and its child processes cannot read or write them."""
    sys.stdout.flush()
    incoming, outgoing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    try:
        yield incoming, outgoing
    finally:
        sys.stdout.flush()
        os.dup2(incoming, 0)
        os.dup2(outgoing, 1)
        os.close(incoming)
        os.close(outgoing)


def _arms_json(arms: Named) -> list[object]:
    """The arms as the first line lists them."""
    named = read_items_to_create(arms, ARMS) if isinstance(arms, Path) else items_from_python(arms, ARMS)
    if not isinstance(named, Mapping):
        return named
    for name, params in named.items():
        if "name" in params:
            raise InvalidInput("arm", name, "its parameter 'name' takes the place of the name", "rename it")
    return [{"name": name, **params} for name, params in named.items()]


def _pulls(file: int) -> Iterator[Pull]:
    rest = b""
    while data := os.read(file, CHUNK):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line.strip():
                yield _pull(line)


def _pull(line: bytes) -> Pull:
    """The pull on a line. Missing fields, as in a line that somebody typed, have defaults."""
    try:
        data = json.loads(line)
        return Pull(
            data["pull"],
            data["arm"],
            data.get("number", 1),
            data.get("params", {}),
            data.get("seed", 0),
            data.get("case"),
            data.get("case_params", {}),
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        remedy = 'write lines such as {"pull": 1, "arm": "a"}'
        raise InvalidInput("line", line.decode("utf-8", "replace"), "is not a pull", remedy) from None


def _answer(function: Callable[[Pull], object], pull: Pull, answers: EvaluatorAnswers) -> None:
    try:
        answer = _answer_of(pull, function(pull))
    except BaseException as error:
        answer = _failure_of(pull, error)
    answers.put(answer)


async def _answer_together(function: Callable[[Pull], Any], incoming: int, answers: EvaluatorAnswers) -> None:
    """Evaluate every pull as soon as it arrives."""
    loop, tasks = asyncio.get_running_loop(), set[asyncio.Task[None]]()
    over = loop.create_future()

    async def evaluate(pull: Pull) -> None:
        try:
            answer = _answer_of(pull, await function(pull))
        except BaseException as error:
            answer = _failure_of(pull, error)
        answers.put(answer)

    def begin(pull: Pull) -> None:
        task = loop.create_task(evaluate(pull))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    def read() -> None:
        try:
            for pull in _pulls(incoming):
                loop.call_soon_threadsafe(begin, pull)
        except BaseException as error:
            loop.call_soon_threadsafe(over.set_exception, error)
        else:
            loop.call_soon_threadsafe(over.set_result, None)

    threading.Thread(target=read, daemon=True).start()
    await over
    while tasks:
        await asyncio.wait(tasks)


def _answer_of(pull: Pull, value: object) -> dict[str, Any]:
    """The answer for a value that the function returned."""
    fields = dict(value) if isinstance(value, Mapping) else {"reward": value}
    unknown = [key for key in fields if key not in FIELDS]
    reward = checks.as_float(fields.get("reward"))
    if unknown or reward is None:
        rule = f"has {unknown[0]!r}" if unknown else "has no number as its reward"
        raise InvalidInput("result", value, rule, 'return a number, or {"reward": …, "note": …, "cost": …}')
    note, cost = fields.get("note"), checks.as_float(fields.get("cost"))
    answer: dict[str, Any] = {"pull": pull.id, "reward": reward}
    if note is not None:
        answer["note"] = str(note)
    if cost is not None:
        answer["cost"] = cost
    return answer


def _failure_of(pull: Pull, error: BaseException) -> dict[str, Any]:
    """The answer for an error that the function raised. Its traceback goes to standard error."""
    is_main = threading.current_thread() is threading.main_thread()
    if (
        isinstance(error, KeyboardInterrupt | GeneratorExit) and is_main
    ):  # in another thread, it would not end the process
        raise error
    if isinstance(error, Busy):
        return {"pull": pull.id, "busy": error.after}
    sys.stderr.write(f"{traceback_text(error)}\n")
    sys.stderr.flush()
    return {"pull": pull.id, "error": error_line(error)}
