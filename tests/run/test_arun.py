"""`thresher.arun` works in the caller's event loop, with the caller's clients, and decides as `run` does."""

import asyncio
import contextlib
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from aiohttp import ClientSession, web
from engines import FOREVER, Clock, causes, make

import thresher
from thresher.errors import CannotGoOn, InvalidInput
from thresher.log.store import MemoryStore
from thresher.run.loop import Progress
from thresher.study import Pull


async def half(pull: Pull) -> float:
    await asyncio.sleep(0)
    return pull.seed / 2**32


@contextlib.asynccontextmanager
async def server(answer: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncIterator[str]:
    """The address of a real server on this machine, in this event loop."""
    application = web.Application()
    application.router.add_get("/{seed}", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("library", ["aiohttp", "httpx"])
@pytest.mark.parametrize("durable", [False, True])
def test_sixty_four_evaluations_use_a_client_of_the_callers_loop(library: str, durable: bool, tmp_path: Path) -> None:
    at_once: list[int] = [0, 0]

    async def answer(request: web.Request) -> web.Response:
        at_once[0] += 1
        at_once[1] = max(at_once)
        await asyncio.sleep(0.01)
        at_once[0] -= 1
        return web.Response(text=str(int(request.match_info["seed"]) / 2**32))

    async def main() -> thresher.Verdict:
        storage = f"sqlite:///{tmp_path}/thresher.db?durability=normal" if durable else None
        study = make("a", "b", budget=200, storage=storage)
        async with (
            server(answer) as address,
            ClientSession() if library == "aiohttp" else httpx.AsyncClient(trust_env=False) as client,
        ):

            async def evaluate(pull: Pull) -> float:
                if isinstance(client, httpx.AsyncClient):
                    return float((await client.get(f"{address}/{pull.seed}")).text)
                async with client.get(f"{address}/{pull.seed}") as reply:
                    return float(await reply.text())

            verdict = await thresher.arun(study, evaluate, workers=64)
        for row in study.pulls():
            assert row.reward == row.seed / 2**32
        study.close()
        return verdict

    verdict = asyncio.run(main())
    assert (verdict.told, verdict.pending, verdict.done) == (200, 0, True)
    assert 32 < at_once[1] <= 64


def test_one_worker_decides_exactly_as_run_does() -> None:
    def seen(study: thresher.Study) -> list[Any]:
        return [(event.kind, event.pull, event.arm, event.reward) for event in study.events()]

    options: dict[str, Any] = {"budget": 200, "confidence": 0.9, "policy": None}
    here, there = make("a", "b", "c", **options), make("a", "b", "c", **options)
    assert asyncio.run(thresher.arun(here, half, workers=1)).rows == thresher.run(there, half, workers=1).rows
    assert seen(here) == seen(there)


def test_evaluations_run_in_the_callers_thread_with_the_callers_context() -> None:
    user = contextvars.ContextVar("user", default="nobody")
    seen = set()

    async def evaluate(pull: Pull) -> float:
        seen.add((threading.get_ident(), user.get()))
        user.set("somebody else")  # no other task sees this
        return 0.5

    async def main() -> None:
        user.set("ada")
        await thresher.arun(make(budget=20), evaluate)
        assert user.get() == "ada"

    asyncio.run(main())
    assert seen == {(threading.get_ident(), "ada")}


def test_writing_to_the_store_does_not_block_the_loop() -> None:
    released = threading.Event()

    async def main() -> thresher.Verdict:
        study = make(budget=4)
        tell = study.tell

        def slow(*args: Any, **options: Any) -> None:
            assert released.wait(30)  # set from the loop, which a write must not block
            tell(*args, **options)

        study.tell = slow  # type: ignore[method-assign]
        running = asyncio.create_task(thresher.arun(study, half))
        asyncio.get_running_loop().call_later(0.05, released.set)
        return await running

    assert asyncio.run(main()).told == 4


def test_progress_is_reported_in_the_loop_and_what_it_raises_ends_the_run() -> None:
    seen: list[tuple[int, Progress]] = []

    def note(progress: Progress) -> None:
        seen.append((threading.get_ident(), progress))

    def fail(progress: Progress) -> None:
        raise LookupError("no such table")

    asyncio.run(thresher.arun(make(budget=20), half, on_progress=note))
    assert {thread for thread, _ in seen} == {threading.get_ident()}
    assert seen[-1][1].told == 20
    study = make(budget=10**6)
    with pytest.raises(LookupError, match="no such table"):
        asyncio.run(thresher.arun(study, half, on_progress=fail))
    assert study.pending() == []


def test_several_runs_at_once_in_one_loop() -> None:
    async def main() -> None:
        same, other = make(budget=300), make(budget=100)
        verdicts = await asyncio.gather(
            *(thresher.arun(same, half, workers=8) for _ in range(3)), thresher.arun(other, half, workers=8)
        )
        assert same.verdict().told == 300
        assert verdicts[-1].told == 100
        assert same.pending() == other.pending() == []
        assert len({row.id for row in same.pulls()}) == 300

    asyncio.run(main())


def test_a_coroutine_that_blocks_the_loop_only_makes_it_slow() -> None:
    async def evaluate(pull: Pull) -> float:
        time.sleep(0.002)
        return 0.5

    async def main() -> thresher.Verdict:
        return await thresher.arun(make(budget=50), evaluate, timeout=60.0, on_progress=lambda _: time.sleep(0.01))

    assert asyncio.run(main()).told == 50


def test_an_evaluator_that_always_fails_ends_the_run_and_leaves_nothing_behind() -> None:
    async def evaluate(pull: Pull) -> float:
        if pull.id > 6:
            await asyncio.sleep(3600)
        raise LookupError("no such model")

    async def main() -> None:
        study = make("a", "b", "c", budget=100)
        with pytest.raises(CannotGoOn, match=r"3 arms failed with the same error .*no such model") as caught:
            await thresher.arun(study, evaluate, workers=8)
        assert isinstance(caught.value.__cause__, LookupError)
        assert study.pending() == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def test_seconds_let_running_evaluations_end(clock: Clock) -> None:
    async def evaluate(pull: Pull) -> float:
        if pull.id == 4:
            clock.end_the_run()
        while not clock.ahead:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.05 * pull.id)
        return 0.5

    study = make(budget=100)
    verdict = asyncio.run(thresher.arun(study, evaluate, workers=4, seconds=FOREVER))
    assert (verdict.told, causes(study)) == (4, [])


BAD: list[tuple[Any, dict[str, Any], str]] = [
    (lambda pull: 0.5, {}, r"evaluate .*: must be a coroutine function, .*; write async def, or use thresher.run"),
    (half, {"workers": 0}, "workers 0: "),
    (half, {"in_flight": 0}, "in_flight 0: "),
    (half, {"timeout": -1}, "timeout -1: "),
    (half, {"on_progress": half}, "on_progress .*: must be a plain function"),
    (3, {}, "evaluate 3: must be a function"),
]


@pytest.mark.parametrize(("evaluate", "options", "message"), BAD)
def test_bad_input_is_refused_before_anything_begins(evaluate: Any, options: dict[str, Any], message: str) -> None:
    study = make()
    with pytest.raises(InvalidInput, match=message):
        asyncio.run(thresher.arun(study, evaluate, **options))
    assert len(study.events()) == 1


def test_a_keyboard_interrupt_in_an_evaluation_reaches_the_caller() -> None:
    async def evaluate(pull: Pull) -> float:
        await asyncio.sleep(0)
        if pull.id == 10:
            raise KeyboardInterrupt
        return 0.5

    study = make(budget=10**6)
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(thresher.arun(study, evaluate, workers=4))
    assert study.pending() == []
    assert "failed" not in causes(study)


def test_evaluations_that_were_cancelled_have_time_to_clean_up() -> None:
    async def cleaned_up() -> bool:
        task = asyncio.ensure_future(asyncio.sleep(0))
        await asyncio.wait([task], timeout=20)
        return task.done()

    assert asyncio.run(cleaned_up())


def test_nothing_is_set_up_for_a_study_that_cannot_be_read() -> None:
    study, made = make(storage=MemoryStore()), list[bool]()
    study.store.delete("s")

    async def evaluate(pull: Pull, shared: object) -> float:
        return 0.5

    with pytest.raises(thresher.StudyDeleted):
        asyncio.run(thresher.arun(study, evaluate, shared=(lambda: made.append(True), lambda _: None)))
    assert made == []
