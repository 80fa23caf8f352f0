"""Viewers get changes: the same for all viewers, and the same as if the study were read from the start."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest

import thresher
from thresher.errors import StoreFailed
from thresher.log.store import START, MemoryStore
from thresher.study import give_up_in_study
from thresher.web.event_stream import EventStream
from thresher.web.json_shapes import encoded_json_shape
from thresher.web.live_study import LiveStudy


def test_what_is_sent_is_what_changed() -> None:
    store = MemoryStore()
    study = thresher.create_study("big", arms=[f"arm {k}" for k in range(2000)], at_least=0.5, storage=store)
    live = LiveStudy("big", store)
    pull = study.ask()
    assert pull
    study.tell(pull, 1)
    live.catch_up()
    change = live.since(1)
    assert [row[0] for row in change["rows"]] == [0]
    assert len(encoded_json_shape(change)) < 1200
    assert live.since(3)["rows"] == []
    table = json.loads(live.table())
    assert (table["seen"][0], table["seq"], change["head"]["leaning"]) == (1, 3, [1, 0, len(study.spec.arms) - 1])
    assert change["head"]["answer"].startswith("0 reach it, 0 miss it, "), "a leaning is no answer"


def test_cases_make_no_update_larger() -> None:
    store, names = MemoryStore(), [f"a long name of a case {k}" for k in range(2000)]
    study = thresher.create_study("evals", arms=["a", "b"], at_least=0.5, cases=names, storage=store)
    live = LiveStudy("evals", store)
    assert live.head()["cases"] == 2000
    pull = study.ask()
    assert pull
    study.tell(pull, 1)
    live.catch_up()
    assert len(encoded_json_shape(live.since(1))) < 1200


def test_the_cases_of_a_large_study_are_cut() -> None:
    store, arms = MemoryStore(), [f"arm {k}" for k in range(300)]
    study = thresher.create_study("evals", arms=arms, at_least=0.5, cases=40, storage=store)
    study.add_many([(arm, (k + case) % 7 / 7, case) for k, arm in enumerate(arms) for case in range(40)])
    live = LiveStudy("evals", store)
    page = json.loads(live.cases(10))
    assert (page["cases"], page["seen"], len(page["rows"])) == (40, 40, 10)
    for row in page["rows"]:
        rewards = [reward for _, reward in row["rewards"]]
        assert (len(rewards), rewards == sorted(rewards), row["failed"] + row["passed"]) == (200, True, 300)
    assert len(json.loads(live.cases(1000))["rows"]) == 40


def test_failures_and_the_guarantee_are_sent_when_they_change() -> None:
    store = MemoryStore()
    study = thresher.create_study("coins", arms=["a", "b"], at_least=0.5, budget=300, storage=store)
    live = LiveStudy("coins", store)
    first = study.ask()
    assert first
    study.drop(first, cause="failed", reason="boom" * 200)
    live.catch_up()
    head = live.since(1)["head"]
    assert [(trouble["arm"], len(trouble["reason"])) for trouble in head["troubles"]] == [("a", 300)]
    assert "guarantee" not in head
    known = live.follower.seq
    while live.head()["reached"] == 0 and (pull := study.ask()):
        study.tell(pull, 1)
        live.catch_up()
    head = live.since(known)["head"]
    assert "troubles" not in head
    assert "certified answer is right" in head["guarantee"]


def test_an_evaluation_that_could_not_begin_is_shown_as_a_failure() -> None:
    store = MemoryStore()
    study = thresher.create_study("coins", arms=["a"], at_least=0.5, cases=9, storage=store)
    live, first = LiveStudy("coins", store), study.ask()
    assert first
    give_up_in_study(study, first, cause="refused", reason="connection refused")
    live.catch_up()
    assert [trouble["reason"] for trouble in live.since(1)["head"]["troubles"]] == ["connection refused"]


def test_the_first_ask_after_an_import_changes_every_arm() -> None:
    store = MemoryStore()
    study = thresher.create_study("coins", arms=["a", "b", "c"], at_least=0.5, storage=store)
    study.add_many([(arm, 1) for arm in "ab" for _ in range(30)])
    live = LiveStudy("coins", store)
    assert "weighed all together" in live.head()["guarantee"]
    assert live.head()["reached"] == 0
    known = live.follower.seq
    study.ask()
    live.catch_up()
    change = live.since(known)
    assert [row[0] for row in change["rows"]] == [0, 1, 2]
    assert change["head"]["reached"] == 2
    assert "both certified answers are right" in change["head"]["guarantee"]
    assert live.table() == LiveStudy("coins", store).table()


def test_a_reward_outside_the_bounds_changes_the_guarantee() -> None:
    store = MemoryStore()
    study = thresher.create_study("coins", arms=["a", "b"], at_least=0.5, storage=store)
    live = LiveStudy("coins", store)
    with pytest.raises(thresher.InvalidInput):
        study.tell(study.ask_many(1)[0], 2)
    live.catch_up()
    head = live.since(1)["head"]
    assert "a reward lay outside the bounds: 'a'" in head["guarantee"]
    assert [trouble["arm"] for trouble in head["troubles"]] == ["a"]


def moved(study: thresher.Study, live: LiveStudy | None, every: int) -> None:
    """Run a study with failures, lost pulls and rewards that come in another order than the pulls were issued."""
    waiting = []
    for at in range(1500):
        pull = study.ask()
        if pull is None:
            break
        waiting.append(pull)
        if len(waiting) > 5:
            pull = waiting.pop(at % 3)
            if at % 11 == 0:
                study.drop(pull, cause="failed", reason="boom")
            else:
                study.tell(pull, 7 * at % 10 < {"a": 6, "b": 7, "c": 8, "d": 10}[pull.arm])
        if live is not None and at % every == 0:
            live.catch_up()


@pytest.mark.parametrize("every", [1, 7, 400])
def test_a_followed_study_equals_one_read_from_the_start(every: int) -> None:
    store = MemoryStore()
    study = thresher.create_study("coins", arms=["a", "b", "c", "d"], at_least=0.7, budget=1500, storage=store)
    live = LiveStudy("coins", store)
    moved(study, live, every)
    assert live.table() == LiveStudy("coins", store).table()


def test_the_history_is_what_happened_and_ends_with_the_verdict() -> None:
    store = MemoryStore()
    study = thresher.create_study("coins", arms=["a", "b", "c", "d"], at_least=0.7, budget=1500, storage=store)
    moved(study, None, 1)
    history = json.loads(LiveStudy("coins", store).table())["history"]
    step, points = history["step"], history["points"]
    assert (step, len(points) > 100) == (4, True)
    then = MemoryStore()  # the log as it was when pull 800 was issued
    log = store.read("coins")
    end = next(at for at, event in enumerate(log) if event.pull == 800 and event.kind == "asked") + 1
    then.append("coins", log[:end], before=START)
    past = thresher.open_study("coins", storage=then).verdict()
    assert points[800 // step] == [800, len(past.reached), len(past.missed), len(past.open)]
    now = study.verdict()
    assert points[-1] == [now.issued, len(now.reached), len(now.missed), len(now.open)]


def test_a_page_that_was_away_gets_the_points_of_the_history_that_it_lacks() -> None:
    store = MemoryStore()
    study = thresher.create_study("coins", arms=["a", "b", "c", "d"], at_least=0.7, budget=1500, storage=store)
    live = LiveStudy("coins", store)
    moved(study, live, 100)
    whole = json.loads(live.table())["history"]
    asked = [event.seq for event in store.read("coins") if event.kind == "asked"]
    for pull in (1, 4, 800, 1499):
        missed = json.loads(encoded_json_shape(live.since(asked[pull - 1])))["history"]
        assert missed["step"] == whole["step"]
        assert missed["points"] == [point for point in whole["points"][:-1] if point[0] > pull] + whole["points"][-1:]


def test_viewers_share_one_watch_and_a_latecomer_misses_nothing() -> None:
    store = MemoryStore()
    study = thresher.create_study("coins", arms=["a", "b"], at_least=0.5, budget=100, storage=store)
    reads = 0
    read = store.read

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal reads
        reads += 1
        return read(*args, **kwargs)

    store.read = counted  # type: ignore[method-assign]

    async def watch() -> list[bytes]:
        stream = EventStream(LiveStudy("coins", store))
        viewers = [stream.view(1) for _ in range(20)]
        for viewer in viewers:
            assert await anext(viewer) == b"retry: 1000\n\n"
        before = reads
        study.ask()
        texts = [await anext(viewer) for viewer in viewers]
        assert reads - before < 20  # not 20 times anything
        newcomer = stream.view(1)
        await anext(newcomer)
        missed = json.loads((await anext(newcomer)).partition(b"data: ")[2])
        assert missed["rows"] == json.loads(texts[0].partition(b"data: ")[2])["rows"]
        pull = study.ask()
        assert pull
        texts += [await anext(viewer) for viewer in [*viewers, newcomer]]
        stranger = stream.view(77)
        await anext(stranger)
        assert b"event: reset" in await anext(stranger)
        for viewer in [*viewers, newcomer, stranger]:
            await viewer.aclose()
        return texts

    texts = asyncio.run(watch())
    assert {text.partition(b"\n")[0] for text in texts} == {b"id: 2", b"id: 3"}  # some may get it as new viewers
    assert texts[0].startswith(b"id: 2\nevent: change\n")
    assert texts[-1].startswith(b"id: 3\nevent: change\n")


def test_a_long_first_message_is_made_once_for_all_and_sent_in_pieces() -> None:
    store = MemoryStore()
    study = thresher.create_study("big", arms=[f"arm {k}" for k in range(3000)], at_least=0.5, storage=store)
    study.ask_many(3000)
    live, made = LiveStudy("big", store), []
    since = live.since
    live.since = lambda after: made.append(after) or since(after)  # type: ignore[func-returns-value,method-assign]

    async def first(viewer: AsyncGenerator[bytes]) -> list[bytes]:
        await anext(viewer)
        parts = [await anext(viewer)]
        while not parts[-1].endswith(b"\n\n"):
            parts.append(await anext(viewer))
        return parts

    async def watch() -> list[list[bytes]]:
        stream = EventStream(live)
        viewers = [stream.view(1) for _ in range(20)]
        messages = await asyncio.gather(*map(first, viewers))
        for viewer in viewers:
            await viewer.aclose()
        return messages

    messages = asyncio.run(watch())
    assert made == [1]
    assert all(parts == messages[0] for parts in messages)
    assert len(messages[0]) > 2
    assert max(map(len, messages[0])) <= 1 << 16
    assert len(json.loads(b"".join(messages[0]).partition(b"data: ")[2])["rows"]) == 3000


def test_what_viewers_are_sent_is_made_off_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making it waits for a lock that long reads of the study hold."""
    store = MemoryStore()
    thresher.create_study("coins", arms=["a"], at_least=0.5, storage=store)
    monkeypatch.setattr("thresher.web.event_stream.SLOWING", (0.0,))
    live, threads = LiveStudy("coins", store), set[int]()
    head = live.head
    live.head = lambda: threads.add(threading.get_ident()) or head()  # type: ignore[func-returns-value,method-assign]

    async def watch() -> bytes:
        viewer = EventStream(live).view(1)
        await anext(viewer)
        message = await anext(viewer)
        await viewer.aclose()
        return message

    assert b"event: head" in asyncio.run(watch())
    assert threading.get_ident() not in threads


def test_viewers_learn_when_a_study_is_deleted_or_replaced() -> None:
    async def watch(store: MemoryStore, *, again: bool) -> bytes:
        thresher.create_study("coins", arms=["a"], at_least=0.5, storage=store)
        viewer = EventStream(LiveStudy("coins", store)).view(1)
        await anext(viewer)
        store.delete("coins")
        if again:
            thresher.create_study("coins", arms=["a"], at_least=0.5, storage=store)
        return b"".join([text async for text in viewer])  # it ends

    assert b"event: gone" in asyncio.run(watch(MemoryStore(), again=False))
    assert b"event: reset" in asyncio.run(watch(MemoryStore(), again=True))


def test_a_store_that_fails_for_a_moment_ends_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    study = thresher.create_study("coins", arms=["a"], at_least=0.5, storage=store)
    monkeypatch.setattr("thresher.web.event_stream.AWAY", 0.05)
    read, failing = store.read, True

    def flaky(*args: Any, **kwargs: Any) -> Any:
        if failing:
            raise StoreFailed("storage", rule="is away")
        return read(*args, **kwargs)

    async def watch() -> bytes:
        nonlocal failing
        viewer = EventStream(LiveStudy("coins", store)).view(1)
        await anext(viewer)
        store.read = flaky  # type: ignore[method-assign]
        told = asyncio.create_task(anext(viewer))
        await asyncio.sleep(0.3)
        failing = False
        study.ask()
        return await told

    assert b"event: change" in asyncio.run(watch())
