"""The page and the HTTP interface of a study with several revisions."""

import asyncio
import json
from typing import Any

import pytest
from asgi import server
from browser import Site, until
from coins import get, post
from revised import CASES, revisions, rewarded

import thresher
from thresher.core.evidence import OPEN, mean_capital
from thresher.core.ledger import fold_ledger
from thresher.log.store import MemoryStore, Store, open_store
from thresher.web import report
from thresher.web.charts import chart_of_study
from thresher.web.event_stream import EventStream
from thresher.web.live_study import LiveStudy
from thresher.web.log_follower import LogFollower

REVISION_3 = (
    "Revision 3: arm short is new, arm polite is gone, case x3 is new, case q3 is gone, the bar is 0.5, not 0.8 · "
)


@pytest.fixture(name="store")
def a_store() -> MemoryStore:
    return MemoryStore()


def revise(store: Store) -> thresher.Study:
    """The next revision of a study in which nothing was pulled yet."""
    return thresher.create_study(
        "ask", arms=["short", "terse", "long", "cot"], at_least=0.7, cases=CASES, storage=store, if_exists="revise"
    )


def test_a_follower_is_the_same_as_one_that_reads_the_log_from_the_start(store: MemoryStore) -> None:
    revisions(store, last=5)
    live = LiveStudy("ask", store)
    rewarded(revise(store), 7)
    live.catch_up()
    fresh = LiveStudy("ask", store)
    assert json.loads(live.table()) == json.loads(fresh.table())
    assert json.loads(live.table())["names"] == ["short", "terse", "long", "cot"]
    volatile = ("rate", "seconds_left", "facts")
    heads = [{key: value for key, value in each.head().items() if key not in volatile} for each in (live, fresh)]
    assert heads[0] == heads[1]
    verdict = thresher.open_study("ask", storage=store).verdict()
    head = live.head()
    assert (head["question"], head["answer"], head["revision"]) == (verdict.question, verdict.answer, 4)
    assert (head["reached"], head["missed"], head["open"]) == tuple(
        map(len, (verdict.reached, verdict.missed, verdict.open))
    )


def test_every_revision_has_its_own_history(store: MemoryStore) -> None:
    verdicts = revisions(store)
    for revision, verdict in enumerate(verdicts, start=1):
        study = thresher.open_study("ask", storage=store, revision=revision)
        points = LogFollower("ask", study.store).points
        assert [point.issued for point in points] == sorted(point.issued for point in points)
        assert points[0].issued == verdict.held
        assert points[-1][1:] == (len(verdict.reached), len(verdict.missed), len(verdict.open))
        assert tuple(chart_of_study(study, "history").data[0].x) == tuple(point.issued for point in points)


def test_a_long_history_keeps_its_first_point_and_round_ones(store: MemoryStore) -> None:
    settings: dict[str, Any] = {"at_least": 0.5, "confidence": None, "budget": 3000, "storage": store}
    study = thresher.create_study("means", arms=["a", "b"], **settings)
    for number in range(33):
        pull = study.ask(arm="a")
        assert pull
        study.tell(pull, number % 2)
    study = thresher.create_study("means", arms=["a", "b", "c"], if_exists="revise", **settings)
    for pull in study.ask_many(1500):
        study.tell(pull, pull.number % 2)
    follower = LogFollower("means", store)
    step, counts = follower.history.step, [point.issued for point in follower.points]
    assert step > 1
    assert (counts[0], counts[-1]) == (33, 1533)
    assert counts[1:-1] == list(range(counts[1], 1533, step))
    assert counts[1] - counts[0] <= step
    assert counts[1] % step == 0


def test_viewers_of_an_earlier_revision_are_told_to_begin_anew(store: MemoryStore) -> None:
    revisions(store, last=5)
    live = LiveStudy("ask", store)
    before = live.follower.seq

    async def watch() -> list[bytes]:
        stream = EventStream(live)
        viewer, late = stream.view(before), stream.view(before)
        assert await anext(viewer) == b"retry: 1000\n\n"
        news = asyncio.ensure_future(anext(viewer))
        await asyncio.sleep(0)
        rewarded(revise(store), 2)
        messages = [await asyncio.wait_for(news, 30)]
        await anext(late)
        messages.append(await asyncio.wait_for(anext(late), 30))
        for each in (viewer, late):
            await each.aclose()
        return messages

    for message in asyncio.run(watch()):
        assert b"event: reset" in message


def test_http_shows_events_with_the_names_that_arms_had_then(store: MemoryStore) -> None:
    revisions(store)
    app = server(store)
    events = get(app, "/ask/events?limit=10000").data["events"]
    log = thresher.open_study("ask", storage=store).events()
    names, expected = ["terse", "cot"], []
    for event in log:
        names = list(event.spec["arms"]) if event.spec else names
        expected.append(None if event.arm is None else names[event.arm])
    assert [event["arm"] for event in events] == expected
    assert {"polite", "short"} < set(expected)
    head = get(app, "/ask").data
    assert head["revision"] == 3
    assert head["revision_text"].startswith(REVISION_3)
    assert get(app, "/ask/verdict").data["revision"] == 3
    assert get(app, "/ask/arms/short").data["row"]["arm"] == "short"
    assert get(app, "/ask/arms/polite").status == 404
    assert get(app, "/ask/cases").data["cases"] == len(CASES)


def test_the_rewards_of_an_arm_are_in_order_and_its_evidence_ends_where_it_stands(store: MemoryStore) -> None:
    revisions(store, last=12)
    app = server(store)
    state = fold_ledger(thresher.open_study("ask", storage=store).events())
    for arm, name in enumerate(state.spec.arms):
        data = get(app, f"/ask/arms/{name}").data
        assert [pull["number"] for pull in data["rewards"]] == list(range(1, data["asked"] + 1))
        numbers = [point["number"] for point in data["evidence"]]
        assert numbers == sorted(set(numbers))
        if state.docket.settled[arm] == OPEN and data["evidence"]:
            assert data["evidence"][-1]["reaching"] == pytest.approx(mean_capital(state.capitals[arm], 0), rel=1e-5)


def test_a_study_is_revised_over_http(store: MemoryStore) -> None:
    app = server(store)
    question = {"name": "coins", "arms": ["a", "b"], "at_least": 0.5, "budget": 20}
    assert post(app, "", question).status == 201
    pull = post(app, "/coins/ask", {"arm": "a"}).data["pulls"][0]
    post(app, "/coins/tell", {"pull": pull["pull"], "reward": 1})
    revised = post(app, "", {**question, "arms": ["a", "c"], "if_exists": "revise"})
    assert (revised.status, revised.data["revision"], revised.data["told"]) == (201, 2, 1)
    assert revised.data["revision_text"] == "Revision 2: arm c is new, arm b is gone · the 1 result holds."


def test_a_report_says_what_its_revision_changed(store: MemoryStore) -> None:
    revisions(store)
    texts = [report.report(thresher.open_study("ask", storage=store, revision=revision)) for revision in (1, 2, 3)]
    assert "Revision" not in texts[0].partition("<script")[0]
    assert "<p class='note revision'>Revision 2: arm polite is new · all " in texts[1]
    assert REVISION_3 in texts[2]


def make(storage: str) -> None:
    revisions(storage, last=5)


def test_an_open_page_goes_on_with_the_next_revision(site: Site) -> None:
    site.once(make)
    page, complaints, _ = site.open("/study/ask")
    until(page, "document.querySelectorAll('#rows tr').length === 3")
    assert page.inner_text("#revision").startswith(REVISION_3)
    rewarded(revise(open_store(site.storage)), 7)
    until(page, "document.querySelectorAll('#rows tr').length === 4")
    assert {cell.inner_text() for cell in page.query_selector_all("#rows td.name")} == {"short", "terse", "long", "cot"}
    assert page.inner_text("#question").startswith("Which of 4 arms reach 0.7")
    assert page.inner_text("#revision").startswith("Revision 4: arm long is new, case q3 is new, case x3 is gone")
    for width in (1280, 360):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert complaints == []
