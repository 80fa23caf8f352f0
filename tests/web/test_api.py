"""The HTTP interface keeps the library's promises."""

from pathlib import Path

import pytest
from asgi import BEARER, request, server
from coins import COINS, a_store, coins_app, get, post  # noqa: F401 - fixtures

import thresher
from thresher.log.store import MemoryStore, open_store
from thresher.web.request_checks import CheckedApp


def test_a_study_runs_from_beginning_to_end_over_http(app: CheckedApp) -> None:
    while pulls := post(app, "/coins/ask", {"n": 3}).data["pulls"]:
        for pull in pulls:
            told = post(app, "/coins/tell", {"pull": pull["pull"], "reward": pull["arm"] == "loaded"})
            assert told.data == {"pull": pull["pull"], "reward": float(pull["arm"] == "loaded"), "late": False}
    verdict = get(app, "/coins/verdict").data
    assert (verdict["reached"], verdict["missed"], verdict["done"]) == (["loaded"], ["fair"], True)
    assert post(app, "/coins/ask").data == {"pulls": [], "done": True, "wait": False}
    assert post(app, "/coins/extend", {"budget": 50}).data["budget"] == 50
    assert len(post(app, "/coins/ask", {"n": 99}).data["pulls"]) == 10


def test_repeating_a_key_returns_the_same_pulls_also_from_another_server(app: CheckedApp, store: MemoryStore) -> None:
    first = post(app, "/coins/ask", {"n": 2}, **{"idempotency-key": "job 1"}).data
    assert post(app, "/coins/ask", {"n": 2}, **{"idempotency-key": "job 2"}).data != first
    assert post(app, "/coins/ask", {"n": 2}, **{"idempotency-key": "job 1"}).data == first
    assert post(server(store), "/coins/ask", {"n": 2}, **{"idempotency-key": "job 1"}).data == first
    assert get(app, "/coins").data["issued"] == 4


def test_an_agent_may_choose_the_arm_and_the_log_says_so(app: CheckedApp) -> None:
    asked = post(app, "/coins/ask", {"n": 2, "arm": "loaded"}).data
    assert [pull["arm"] for pull in asked["pulls"]] == ["loaded", "loaded"]
    assert post(app, "/coins/ask", {"arm": None}).data["pulls"][0]["arm"] == "fair"
    events = get(app, "/coins/events").data["events"]
    assert [event["cause"] for event in events] == [None, "chosen", "chosen", None]
    refused = post(app, "/coins/ask", {"arm": "bent"})
    assert (refused.status, refused.data["rule"]) == (404, "is not an arm of this study")
    assert post(app, "/coins/ask", {"arm": 3}).status == 422


def test_agents_name_the_version_that_the_study_has(app: CheckedApp) -> None:
    asked = {**COINS, "name": "versions", "if_exists": "revise"}
    assert post(app, "", {**asked, "version": "1"}).data["revision"] == 1
    (pull,) = post(app, "/versions/ask", {"version": "1"}).data["pulls"]
    for version in ("2", None):
        refused = post(app, "/versions/ask", {"version": version})
        assert (refused.status, refused.data["rule"]) == (409, "the study's results are those of version '1'")
    assert post(app, "", {**asked, "version": "2"}).data["revision"] == 2
    assert post(app, "/versions/ask", {"version": "1"}).status == 409
    assert post(app, "/versions/tell", {"pull": pull["pull"], "reward": 1}).status == 200
    assert get(app, "/versions").data["told"] == 0, "it is a result of version 1"
    assert post(app, "/versions/ask", {"version": "2"}).status == 200
    assert post(app, "/coins/ask", {"version": "2"}).data["rule"] == "the study has none"


def test_new_studies_draw_their_seeds(app: CheckedApp) -> None:
    seeds = set()
    for name in ("one", "two"):
        post(app, "", {**COINS, "name": name})
        seeds |= {pull["seed"] for pull in post(app, f"/{name}/ask", {"n": 10}).data["pulls"]}
    assert len(seeds) == 20


def test_repeating_a_reward_is_accepted_and_a_different_one_is_not(app: CheckedApp) -> None:
    post(app, "/coins/ask")
    told = [post(app, "/coins/tell", {"pull": 1, "reward": reward}) for reward in (1, True, 0.5)]
    assert [reply.status for reply in told] == [200, 200, 409]
    assert told[2].data["rule"] == "it was told 1.0 before"
    assert get(app, "/coins").data["told"] == 1


def test_a_note_and_a_cost_are_kept_for_people(app: CheckedApp) -> None:
    post(app, "/coins/ask")
    said = {"pull": 1, "reward": 1, "note": "password=hunter2, cut off", "cost": 0.25}
    assert post(app, "/coins/tell", said).data == {"pull": 1, "reward": 1.0, "late": False}
    events = get(app, "/coins/events").data["events"]
    assert "cut off" in str(events[-1])
    assert "hunter2" not in str(events[-1])
    assert get(app, "/coins/verdict").data["cost"] == 0.25
    assert post(app, "/coins/tell", said | {"cost": -1}).status == 422


def test_a_dropped_pulls_reward_is_late_and_accepted(app: CheckedApp) -> None:
    post(app, "/coins/ask")
    assert post(app, "/coins/drop", {"pulls": [1], "reason": "gone"}).data == {"pulls": [1]}
    assert post(app, "/coins/tell", {"pull": 1, "reward": 0.5}).data["late"]
    assert post(app, "/coins/drop", {"pulls": [1]}).status == 409


def test_pulls_without_a_heartbeat_are_lost_unless_renewed(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    app = server(store)
    post(app, "", COINS)
    post(app, "/coins/ask", {"n": 2})
    store.renew("coins", [1, 2], -60)
    post(app, "/coins/renew", {"pulls": [2], "lease": 60})
    fresh = server(open_store(f"sqlite:///{tmp_path}/s.db"))  # another server, which sweeps when it is first asked
    post(fresh, "/coins/ask")
    lost = [event["pull"] for event in get(fresh, "/coins/events").data["events"] if event["kind"] == "dropped"]
    assert lost == [1]


@pytest.mark.parametrize(
    ("path", "data", "status", "field"),
    [
        ("/coins/tell", {"pull": 99, "reward": 1}, 404, "pull"),
        ("/coins/tell", {"pull": 1, "reward": float("nan")}, 422, "reward"),
        ("/coins/tell", {"pull": 1}, 422, "reward"),
        ("/coins/drop", {"pulls": [1, 99]}, 404, "pull"),
        ("/coins/extend", {"budget": 3}, 422, "budget"),
        ("/coins/ask", {"n": 0}, 422, "n"),
        ("", COINS, 409, "study"),
        ("", {**COINS, "name": "x", "at_least": 2}, 422, "at_least"),
        ("", {**COINS, "name": "x", "arms": []}, 422, "arms"),
    ],
)
def test_errors_name_value_rule_and_remedy(app: CheckedApp, path: str, data: object, status: int, field: str) -> None:
    post(app, "/coins/ask")
    reply = post(app, path, data)
    assert (reply.status, set(reply.data)) == (status, {"error", "value", "rule", "remedy"})
    assert reply.data["error"].split(".")[0] == field
    assert reply.data["rule"]
    assert post(app, "/coins/tell", {"pull": 1, "reward": 1}).status == 200  # nothing was done partly


CERTAIN = {"name": "certain", "arms": ["good", "bad"], "at_least": 0.6, "budget": 400}


def test_a_reward_outside_the_bounds_is_refused_like_any_other_and_retires_its_arm(app: CheckedApp) -> None:
    post(app, "", CERTAIN)
    pulls = post(app, "/certain/ask", {"n": 2}).data["pulls"]
    for _ in range(2):  # repeating it gives the same reply
        reply = post(app, "/certain/tell", {"pull": pulls[0]["pull"], "reward": 7})
        assert (reply.status, reply.data["error"], reply.data["value"]) == (422, "reward", 7.0)
        assert 'or with "clip": true to count' in reply.data["remedy"]
    name = pulls[0]["arm"]
    verdict = get(app, "/certain/verdict").data
    assert (verdict["outside"], verdict["retired"], verdict["pending"]) == ([name], [name], 1)
    arm = get(app, f"/certain/arms/{name}").data
    assert arm["outside"]
    assert [(pull["state"], pull["reward"]) for pull in arm["rewards"]] == [("outside", 7.0)]
    assert "outside the bounds (0, 1)" in arm["row"]["reason"]
    assert get(app, "/certain/arms").data["outside"] == [1, 0]
    assert get(app, "/certain").data["troubles"][0]["arm"] == name
    assert post(app, "/certain/tell", {"pull": pulls[0]["pull"], "reward": 1}).status == 409


def test_an_arm_that_was_certified_is_not_once_a_reward_lies_outside_the_bounds(app: CheckedApp) -> None:
    post(app, "", CERTAIN)
    spare = post(app, "/certain/ask", {"n": 1}).data["pulls"][0]["pull"]
    while not get(app, "/certain").data["reached"]:
        for pull in post(app, "/certain/ask", {"n": 4}).data["pulls"]:
            post(app, "/certain/tell", {"pull": pull["pull"], "reward": pull["arm"] == "good"})
    before = get(app, "/certain").data
    assert post(app, "/certain/tell", {"pull": spare, "reward": -1}).status == 422
    after = get(app, "/certain").data
    assert (before["reached"], after["reached"]) == (1, 0)
    assert "Not certified, because a reward lay outside the bounds: 'good'" in after["guarantee"]
    assert after["open"] == len(get(app, "/certain/verdict").data["open"])
    row = get(app, "/certain/arms/good").data["row"]
    assert (row["certified"], row["low"], row["high"]) == (False, None, None)


def test_the_lease_of_a_pull_ends_with_a_reward_outside_the_bounds(tmp_path: Path) -> None:
    store = open_store(f"sqlite:///{tmp_path}/s.db")
    app = server(store)
    post(app, "", COINS)
    post(app, "/coins/ask", {"n": 2})
    store.renew("coins", [1, 2], -60)
    post(app, "/coins/tell", {"pull": 1, "reward": 7})
    assert store.expired("coins") == [2]


@pytest.mark.parametrize("cause", ["failed", "lost"])
def test_a_dropped_pull_keeps_its_cause(app: CheckedApp, cause: str) -> None:
    post(app, "/coins/ask")
    assert post(app, "/coins/drop", {"pulls": [1], "cause": cause}).status == 200
    [dropped] = [event for event in get(app, "/coins/events").data["events"] if event["kind"] == "dropped"]
    assert dropped["cause"] == cause


@pytest.mark.parametrize("cause", ["tired", "cancelled", "broken-pool", "outage"])
def test_only_two_causes_are_known(app: CheckedApp, cause: str) -> None:
    document = request(app, "GET", "/openapi.json", headers=BEARER).data
    assert document["components"]["schemas"]["Drop"]["properties"]["cause"]["enum"] == ["failed", "lost"]
    refused = post(app, "/coins/drop", {"pulls": [1], "cause": cause})
    assert (refused.status, refused.data["error"], refused.data["value"]) == (422, "cause", cause)
    assert refused.data["rule"] == "must be failed or lost"


def test_a_verdict_says_how_many_rewards_were_there_before_the_server(app: CheckedApp, store: MemoryStore) -> None:
    for pull in post(app, "/coins/ask", {"n": 3}).data["pulls"]:
        post(app, "/coins/tell", {"pull": pull["pull"], "reward": 1})
    assert get(app, "/coins/verdict").data["earlier"] == 0
    later = server(store)
    assert get(later, "/coins").data["origin"].startswith("Rewards since 20")
    post(later, "/coins/ask")
    post(later, "/coins/tell", {"pull": 4, "reward": 1})
    verdict, head = get(later, "/coins/verdict").data, get(later, "/coins").data
    assert (verdict["earlier"], verdict["told"]) == (3, 4)
    assert verdict["since"].endswith("Z")
    assert head["origin"].startswith("Rewards since 20")
    page = request(later, "GET", "/study/coins", headers={**BEARER, "accept": "text/html"})
    assert b"Rewards since 20" in page.body


@pytest.mark.parametrize("name", ["a/b", "50%", "a%2Fb", "<script>", "été 漢字", "a?b#c", "..."])
def test_any_name_can_be_addressed(app: CheckedApp, name: str) -> None:
    from urllib.parse import quote

    post(app, "", {**COINS, "name": name, "arms": [name, "x"]})
    address = quote(name, safe="")
    assert get(app, f"/{address}").data["study"] == name
    assert get(app, f"/{address}/arms/{address}").data["row"]["arm"] == name


def test_events_come_in_order_and_in_pages(app: CheckedApp) -> None:
    post(app, "/coins/ask", {"n": 5})
    first = get(app, "/coins/events?limit=4").data
    rest = get(app, f"/coins/events?after={first['next']}").data
    assert [event["seq"] for event in first["events"] + rest["events"]] == [1, 2, 3, 4, 5, 6]
    assert rest["events"][0]["arm"] in ("fair", "loaded")
    assert get(app, f"/coins/events?after={rest['next']}").data == {"format": 1, "events": [], "next": rest["next"]}


def test_a_study_created_again_under_its_old_name_is_the_new_one(app: CheckedApp, store: MemoryStore) -> None:
    post(app, "/coins/ask")
    assert get(app, "/coins").data["issued"] == 1
    store.delete("coins")
    assert get(app, "/coins").status == 404
    assert get(app, "/coins/verdict").data["rule"] == "is not in this store"
    assert post(app, "", {**COINS, "at_least": 0.7}).data["issued"] == 0
    assert get(app, "/coins").data["at_least"] == 0.7
    assert post(app, "/coins/ask").data["pulls"][0]["id"] == 1


def test_the_question_is_on_the_page_before_the_log_is_read(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    thresher.create_study("coins", arms=["a", "b"], at_least=0.5, storage=store)
    monkeypatch.setattr("thresher.web.served_studies.LiveStudy", None)  # reading would fail
    page = request(server(store), "GET", "/study/coins", headers={**BEARER, "accept": "text/html"})
    assert (page.status, b"Which of 2 arms reach 0.5?" in page.body) == (200, True)


def test_a_study_shows_the_head_of_its_log(app: CheckedApp) -> None:
    before = get(app, "/coins").data
    post(app, "/coins/ask")
    after, events = get(app, "/coins").data, get(app, "/coins/events").data["events"]
    assert (after["seq"], after["head"]) == (before["seq"] + 1, events[-1]["digest"][:12])
    assert after["head"] != before["head"]
    assert get(app, "/coins/verdict").data["head"] == events[-1]["digest"]
    assert len(events[-1]["digest"]) == 32


def test_a_log_that_was_changed_is_reported(app: CheckedApp, store: MemoryStore) -> None:
    post(app, "", {**COINS, "name": "broken"})
    post(app, "/broken/ask", {"n": 3})
    assert get(app, "/broken").status == 200
    store.logs["broken"][2] = store.logs["broken"][2]._replace(time=1.0)
    assert get(app, "/broken/events?after=1").status == 500
    post(app, "/broken/ask", {"n": 1})
    fresh = server(store)
    assert (get(fresh, "/broken").status, "event 3: does not match" in get(fresh, "/broken").data["rule"]) == (
        500,
        True,
    )


def test_an_exchange_over_http_tells_and_asks_at_once(app: CheckedApp) -> None:
    pulls = post(app, "/coins/ask", {"n": 3}).data["pulls"]
    post(app, "/coins/drop", {"pulls": [pulls[2]["pull"]], "cause": "lost"})
    rewards = [{"pull": pull["pull"], "reward": pull["arm"] == "loaded", "cost": 0.5} for pull in pulls]
    exchanged = post(app, "/coins/exchange", {"rewards": rewards, "n": 2})
    assert (exchanged.status, exchanged.data["late"]) == (200, [pulls[2]["pull"]])
    assert [pull["id"] for pull in exchanged.data["pulls"]] == [4, 5]
    assert (exchanged.data["done"], exchanged.data["wait"]) == (False, False)
    kinds = [event["kind"] for event in get(app, "/coins/events").data["events"]]
    assert kinds == ["created", *["asked"] * 3, "dropped", *["told"] * 3, *["asked"] * 2]


def test_a_repeated_exchange_returns_the_same_pulls_and_records_the_rewards_once(
    app: CheckedApp, store: MemoryStore
) -> None:
    (pull,) = post(app, "/coins/ask").data["pulls"]
    body, key = {"rewards": [{"pull": pull["pull"], "reward": 1}], "n": 2}, {"idempotency-key": "exchange 1"}
    first = post(app, "/coins/exchange", body, **key).data
    assert post(app, "/coins/exchange", body, **key).data == first
    assert post(server(store), "/coins/exchange", body, **key).data == first
    study = get(app, "/coins").data
    assert (study["issued"], study["told"]) == (3, 1)


def test_one_wrong_reward_of_an_exchange_and_nothing_happens(app: CheckedApp) -> None:
    post(app, "/coins/ask", {"n": 2})
    for pull, reward, status, error in ((1, 0, 409, "pull 1, reward"), (7, 1, 404, "pull"), (2, "x", 422, "reward")):
        rewards = [{"pull": 1, "reward": 1}, {"pull": pull, "reward": reward}]
        refused = post(app, "/coins/exchange", {"rewards": rewards, "n": 2})
        assert refused.status == status
        assert error in refused.data["error"]
    assert (get(app, "/coins").data["told"], get(app, "/coins").data["issued"]) == (0, 2)


def test_an_exchange_with_a_reward_outside_the_bounds_records_all_rewards_and_hands_out_nothing(
    app: CheckedApp,
) -> None:
    first, second = post(app, "/coins/ask", {"n": 2}).data["pulls"]
    rewards = [{"pull": first["pull"], "reward": 7}, {"pull": second["pull"], "reward": 1}]
    refused = post(app, "/coins/exchange", {"rewards": rewards, "n": 2})
    assert refused.status == 422
    assert "the bounds are wrong, so arm 'fair' is retired" in refused.data["rule"]
    study = get(app, "/coins").data
    assert (study["issued"], study["told"], study["retired"]) == (2, 1, 1)


def test_an_exchange_that_only_tells_needs_no_version(app: CheckedApp) -> None:
    """An agent whose code is old may still tell what it has; only asks need the present code."""
    asked = {**COINS, "name": "versions", "if_exists": "revise"}
    post(app, "", {**asked, "version": "1"})
    (pull,) = post(app, "/versions/ask", {"version": "1"}).data["pulls"]
    rewards = [{"pull": pull["pull"], "reward": 1}]
    assert post(app, "/versions/exchange", {"rewards": rewards, "n": 1, "version": "2"}).status == 409
    assert get(app, "/versions").data["told"] == 0
    assert post(app, "/versions/exchange", {"rewards": rewards, "n": 0}).data["pulls"] == []
    assert get(app, "/versions").data["told"] == 1
