"""Over HTTP, a reward reaches only the study and the draw that it belongs to."""

from asgi import BEARER, request
from coins import COINS, a_store, coins_app, get, post  # noqa: F401 - fixtures

from thresher.log.store import MemoryStore
from thresher.web.request_checks import CheckedApp


def test_a_straggler_of_a_deleted_study_tells_nothing_to_its_successor(app: CheckedApp, store: MemoryStore) -> None:
    stale = post(app, "/coins/ask", {"n": 2}).data["pulls"]
    store.delete("coins")
    assert get(app, "/coins").status == 404
    post(app, "", COINS)
    fresh = post(app, "/coins/ask", {"n": 2}).data["pulls"]
    assert [pull["id"] for pull in stale] == [pull["id"] for pull in fresh]
    bodies = {"tell": {"pull": stale[0]["pull"], "reward": 1}}
    bodies |= {path: {"pulls": [fresh[0]["pull"], stale[1]["pull"]]} for path in ("renew", "drop")}
    for path, body in bodies.items():
        reply = post(app, f"/coins/{path}", body)
        assert (reply.status, reply.data["error"]) == (404, "pull")
        assert "was not issued by this study as it is now" in reply.data["rule"]
    assert get(app, "/coins").data["pending"] == 2
    assert post(app, "/coins/tell", {"pull": fresh[0]["pull"], "reward": 1}).data["pull"] == fresh[0]["pull"]


def test_pulls_that_are_handed_out_again_count_as_repeated(app: CheckedApp) -> None:
    post(app, "", {"name": "certain", "arms": ["a"], "at_least": 0.5})
    asked = [post(app, "/certain/ask", **{"idempotency-key": "one"}).data["pulls"] for _ in range(3)]
    assert asked[0] == asked[1] == asked[2]
    assert "repeated" not in get(app, "/certain/verdict").data["guarantee"]
    post(app, "/certain/tell", {"pull": asked[0][0]["pull"], "reward": 1})
    assert "Some evaluations were, or may have been" in get(app, "/certain/verdict").data["guarantee"]
    assert [event["kind"] for event in get(app, "/certain/events").data["events"][1:]] == ["asked", "repeated", "told"]
    assert b"asked again" in request(app, "GET", "/api/studies/certain/arms", headers=BEARER).body


def test_a_client_can_say_that_it_evaluated_more_than_once(app: CheckedApp) -> None:
    post(app, "", {"name": "certain", "arms": ["a"], "at_least": 0.5})
    (pull,) = post(app, "/certain/ask").data["pulls"]
    post(app, "/certain/tell", {"pull": pull["pull"], "reward": 1, "repeatable": True})
    assert "Some evaluations were, or may have been" in get(app, "/certain/verdict").data["guarantee"]
