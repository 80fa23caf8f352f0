"""What evaluators share is set up before the first pull and cleaned up after the last, exactly once."""

import asyncio
import contextlib
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from engines import causes, make, run

import thresher
from thresher.errors import CannotGoOn, InvalidInput
from thresher.study import Pull


class Client:
    """Notes what happens to it."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.tasks: list[object] = []
        self.used = self.after = 0

    def use(self, pull: Pull) -> float:
        self.after += self.did != ["set up"]
        self.used += 1
        return pull.seed / 2**32

    def set_up(self) -> "Client":
        self.did.append("set up")
        return self

    def clean_up(self, client: "Client") -> None:
        assert client is self
        self.did.append("cleaned up")

    async def set_up_later(self) -> "Client":
        await asyncio.sleep(0)
        self.tasks.append(asyncio.current_task())
        return self.set_up()

    async def clean_up_later(self, client: "Client") -> None:
        await asyncio.sleep(0)
        self.tasks.append(asyncio.current_task())
        self.clean_up(client)

    @contextlib.contextmanager
    def context(self) -> Iterator["Client"]:
        yield self.set_up()
        self.clean_up(self)

    @contextlib.asynccontextmanager
    async def context_later(self) -> AsyncIterator["Client"]:
        yield await self.set_up_later()
        await self.clean_up_later(self)


class EitherWay:
    """A context manager for both kinds of evaluators."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def __enter__(self) -> Client:
        return self._client.set_up()

    def __exit__(self, *_: object) -> None:
        self._client.clean_up(self._client)

    async def __aenter__(self) -> Client:
        return await self._client.set_up_later()

    async def __aexit__(self, *_: object) -> None:
        await self._client.clean_up_later(self._client)


def plainly(pull: Pull, client: Client) -> float:
    return client.use(pull)


async def later(pull: Pull, client: Client) -> float:
    await asyncio.sleep(0)
    return client.use(pull)


def forms(client: Client, engine: str) -> dict[str, Any]:
    plain = {
        "context manager": client.context(),
        "functions": (client.set_up, client.clean_up),
        "either": EitherWay(client),
    }
    if engine == "threads":
        return plain
    return plain | {
        "async context manager": client.context_later(),
        "coroutine functions": (client.set_up_later, client.clean_up_later),
        "one of each": (client.set_up_later, client.clean_up),
        "returns a coroutine": (lambda: client.set_up_later(), client.clean_up),
    }


FORMS = [(engine, form) for engine in ("threads", "asyncio", "arun") for form in forms(Client(), engine)]
HERE = ("threads", "asyncio", "arun")


def options(engine: str) -> dict[str, Any]:
    return {"workers": 4} if engine != "threads" else {"workers": 4, "executor": "threads"}


@pytest.mark.parametrize(("engine", "form"), FORMS)
def test_every_form_is_set_up_and_cleaned_up_once(engine: str, form: str) -> None:
    client = Client()
    shared = forms(client, engine)[form]
    verdict = run(engine, make(budget=40), plainly if engine == "threads" else later, shared=shared, **options(engine))
    assert (verdict.told, client.used, client.after) == (40, 40, 0)
    assert client.did == ["set up", "cleaned up"]
    if len(client.tasks) == 2:  # as cancel scopes and task groups require
        assert client.tasks[0] is client.tasks[1]


@pytest.mark.parametrize("engine", HERE)
def test_both_sides_of_a_pair_get_it(engine: str) -> None:
    client = Client()
    study = make("old", "a", at_least=None, baseline="old", budget=10)
    evaluate = plainly if engine == "threads" else later
    verdict = run(engine, study, evaluate, shared=client.context(), **options(engine))
    assert (verdict.told, client.used) == (10, 20)


@pytest.mark.parametrize("engine", [*HERE, "processes"])
def test_a_set_up_that_fails_ends_the_run_with_one_error_and_no_pull_is_issued(engine: str) -> None:
    study = make()
    evaluate = plainly if engine in ("threads", "processes") else later
    where = {"executor": engine} if engine == "processes" else options(engine)
    threads = set(threading.enumerate())
    with pytest.raises(CannotGoOn, match=r"^shared: its set-up failed: LookupError: no such database.*[^\n]*$"):
        run(engine, study, evaluate, shared=(_fails, print), **where)
    assert len(study.events()) == 1
    assert {thread for thread in threading.enumerate() if "loop" in thread.name} <= threads


def _fails(*_: object) -> None:
    raise LookupError("no such database")


@pytest.mark.parametrize("engine", HERE)
def test_a_clean_up_that_fails_is_logged_and_the_verdict_is_kept(engine: str, caplog: pytest.LogCaptureFixture) -> None:
    evaluate = plainly if engine == "threads" else later
    shared = (Client().set_up, _fails)
    assert run(engine, make(budget=10), evaluate, shared=shared, **options(engine)).told == 10
    assert "shared: its clean-up failed: LookupError: no such database" in caplog.text


@pytest.mark.parametrize("engine", HERE)
def test_it_is_cleaned_up_after_an_error_when_nothing_uses_it_any_more(engine: str) -> None:
    client, ended = Client(), []

    async def fails(pull: Pull, client: Client) -> float:
        try:
            if pull.id > 6:
                await asyncio.sleep(3600)
        finally:
            ended.append(list(client.did))
        raise LookupError("no such model")

    def fails_plainly(pull: Pull, client: Client) -> float:
        raise LookupError("no such model")

    with pytest.raises(CannotGoOn, match="no such model"):
        run(
            engine,
            make("a", "b", "c"),
            fails_plainly if engine == "threads" else fails,
            shared=client.context(),
            **options(engine),
        )
    assert client.did == ["set up", "cleaned up"]
    assert all(did == ["set up"] for did in ended)


def test_it_is_cleaned_up_when_the_run_is_cancelled() -> None:
    client, all_began = Client(), asyncio.Barrier(5)

    async def hangs(pull: Pull, client: Client) -> float:
        try:
            await all_began.wait()
            await asyncio.sleep(3600)
        finally:
            assert client.did == ["set up"]
            client.used += 1
        return 0.5

    async def main() -> None:
        study = make()
        running = asyncio.create_task(thresher.arun(study, hangs, workers=4, shared=client.context_later()))
        await all_began.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (client.did, client.used) == (["set up", "cleaned up"], 4)
        assert study.pending() == []

    asyncio.run(main())


@pytest.mark.parametrize("engine", ["threads", "asyncio"])
def test_it_is_cleaned_up_after_ctrl_c(engine: str) -> None:
    client, study = Client(), make(budget=10**6)

    def interrupts(pull: Pull, client: Client) -> float:
        if pull.id == 20:
            os.kill(os.getpid(), signal.SIGINT)
        return client.use(pull)

    async def interrupts_later(pull: Pull, client: Client) -> float:
        return interrupts(pull, client)

    evaluate: Any = interrupts if engine == "threads" else interrupts_later
    with pytest.raises(KeyboardInterrupt):
        thresher.run(study, evaluate, workers=4, shared=client.context())
    assert (client.did, client.after) == (["set up", "cleaned up"], 0)
    assert study.pending() == []


@pytest.mark.parametrize("engine", ["threads", "asyncio"])
def test_ctrl_c_ends_a_set_up_that_hangs(engine: str) -> None:
    main = threading.main_thread().ident

    async def hangs_later() -> None:
        threading.Timer(0.1, signal.pthread_kill, [main, signal.SIGINT]).start()
        await asyncio.sleep(3600)

    def hangs() -> None:
        threading.Timer(0.1, signal.pthread_kill, [main, signal.SIGINT]).start()
        time.sleep(3600)

    study, threads = make(), set(threading.enumerate())
    evaluate: Any = plainly if engine == "threads" else later
    with pytest.raises(KeyboardInterrupt):
        thresher.run(study, evaluate, shared=(hangs if engine == "threads" else hangs_later, print))
    assert len(study.events()) == 1
    assert {thread for thread in threading.enumerate() if "loop" in thread.name} <= threads


# -- processes -------------------------------------------------------------------------------------------------------

FOLDER = "THRESHER_TEST_FOLDER"


def _noted(what: str) -> None:
    Path(os.environ[FOLDER], f"{what}-{os.getpid()}-{time.monotonic_ns()}").touch()


def _set_up() -> int:
    _noted("up")
    time.sleep(0.8)
    return os.getpid()


def _clean_up(pid: int) -> None:
    assert pid == os.getpid()
    _noted("down")


def _evaluate(pull: Pull, pid: int) -> float:
    assert pid == os.getpid()
    time.sleep(3600 if pull.arm == "first-hangs" and pull.number == 1 else 0.005)
    return 0.5


def test_each_process_sets_it_up_before_its_first_pull_and_cleans_it_up_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The set-up takes longer than a pull may; it is not part of a pull's time."""
    monkeypatch.setenv(FOLDER, str(tmp_path))
    study = make("a", "first-hangs", budget=100)
    verdict = thresher.run(study, _evaluate, workers=2, executor="processes", timeout=0.6, shared=(_set_up, _clean_up))
    killed = len(causes(study))  # one, or more on a busy machine
    assert (verdict.told, killed > 0) == (100 - killed, True)
    pids = {what: [file.name.split("-")[1] for file in tmp_path.glob(f"{what}-*")] for what in ("up", "down")}
    assert len(pids["up"]) == len(set(pids["up"])) == len(pids["down"]) + killed
    assert set(pids["down"]) < set(pids["up"])


# -- refused ---------------------------------------------------------------------------------------------------------

REFUSED: list[tuple[Any, Any, dict[str, Any], str]] = [
    (plainly, Client().context_later(), {}, "make the evaluator a coroutine function"),
    (plainly, (Client().set_up_later, print), {}, "make the evaluator a coroutine function"),
    (plainly, (lambda: Client().set_up_later(), print), {}, "its set-up returned a coroutine"),
    (plainly, Client().context(), {"executor": "processes"}, "pass a pair of functions"),
    (plainly, Client().context(), {"executor": ThreadPoolExecutor}, "the pool's initializer"),
    (plainly, Client().context(), {"executor": "dask"}, "functools.cache"),
    (later, Client().context_later, {}, "must be a context manager or a pair of functions, .*; pass what it returns"),
    (later, 3, {}, "shared 3: must be a context manager or a pair"),
    (later, (print,), {}, "must be a context manager or a pair"),
]


@pytest.mark.parametrize(("evaluate", "shared", "where", "message"), REFUSED)
def test_what_cannot_be_shared_is_refused_in_one_line(
    evaluate: Any, shared: Any, where: dict[str, Any], message: str
) -> None:
    study = make()
    with pytest.raises(InvalidInput, match=message) as caught:
        thresher.run(study, evaluate, shared=shared, **where)
    assert "\n" not in str(caught.value)
    assert len(study.events()) == 1
