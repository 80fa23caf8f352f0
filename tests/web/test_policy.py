"""Custom scores over HTTP: a server uses the functions that it was started with, and imports none."""

import pytest
import rewritten
from asgi import server
from coins import COINS, get, post

import thresher
from thresher.core import custom_scores
from thresher.core.policies import Policy, custom
from thresher.log.store import MemoryStore


def test_agents_create_and_ask_by_the_name_of_a_function_that_the_server_knows() -> None:
    app = server()
    custom(rewritten.thirds)  # thresher serve --policy rewritten:thirds
    assert post(app, "", {**COINS, "policy": "rewritten:thirds"}).status == 201
    pulls = post(app, "/coins/ask", {"n": 4}).data["pulls"]
    for pull in pulls:
        post(app, "/coins/tell", {"pull": pull["pull"], "reward": 0.25})
    assert len(post(app, "/coins/ask").data["pulls"]) == 1
    assert get(app, "/coins").data["policy"] == "custom(rewritten:thirds)"


def test_a_name_that_the_server_does_not_know_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_scores, "KNOWN", {})
    for name in ("os:system", "rewritten:thirds"):
        reply = post(server(), "", {**COINS, "policy": name})
        assert reply.status == 422
        assert "is not a policy that thresher knows" in reply.data["rule"]


def test_a_study_whose_function_is_missing_is_read_but_not_asked() -> None:
    store = MemoryStore()
    policy = Policy("nosuchmodule:score", digest="ab" * 16)
    thresher.create_study("coins", arms=["fair", "loaded"], at_least=0.5, policy=policy, storage=store)
    app = server(store)
    for path in ("", "/verdict", "/events"):
        assert get(app, f"/coins{path}").status == 200
    reply = post(app, "/coins/ask")
    assert reply.status == 422
    assert "is never imported by itself" in reply.data["rule"]
    assert get(app, "/coins").data["issued"] == 0


def test_a_broken_function_is_one_line_of_json() -> None:
    def broken(gap: float, scatter: float, seen: int, weight: float, exploration: float) -> float:
        return -1.0

    store = MemoryStore()
    study = thresher.create_study("coins", arms=["fair", "loaded"], at_least=0.5, policy=custom(broken), storage=store)
    for pull in study.ask_many(4):
        study.tell(pull, 1.0)
    reply = post(server(store), "/coins/ask")
    assert reply.status == 422
    assert "returned -1.0 for arm 'fair' with gap=0.5" in reply.data["rule"]
