"""Kinds of questions over HTTP: limits, shares and baselines."""

from typing import Any
from urllib.parse import quote

import pytest
from coins import a_store, coins_app, get, post  # noqa: F401 - fixtures

import thresher
from thresher.log.store import MemoryStore
from thresher.text.quantities import amount_text
from thresher.web.json_shapes import COLUMNS
from thresher.web.live_study import LiveStudy
from thresher.web.log_follower import LogFollower
from thresher.web.request_checks import CheckedApp

PAIRS: dict[str, Any] = {
    "name": "pairs",
    "arms": {"old": {"k": 1}, "new": {"k": 2}},
    "baseline": "old",
    "margin": 0.1,
    "lower_is_better": True,
    "unit": "s",
}


def test_a_study_with_a_limit_and_a_share(app: CheckedApp) -> None:
    new = {"name": "times", "arms": ["a", "b"], "at_most": 0.2, "share": 0.9, "unit": "s", "budget": 40}
    head = post(app, "", new).data
    assert head["question"] == "Which of 2 arms stay within 200 ms in at least 90 % of pulls?"
    assert (head["asks"], head["bar"], head["at_most"], head["share"]) == ("share", 0.9, 0.2, 0.9)
    assert (head["lower_is_better"], head["unit"], head["baseline"], head["ratio"]) == (True, "s", None, None)
    for pull in post(app, "/times/ask", {"n": 8}).data["pulls"]:
        reward = 0.1 if pull["arm"] == "a" else 0.3
        assert post(app, "/times/tell", {"pull": pull["pull"], "reward": reward}).data["reward"] == reward
    table = get(app, "/times/arms").data
    assert [table["standings"][standing] for standing in table["standing"]] == ["open", "misses"]
    assert (table["reached"], table["estimate"]) == ([1, 0], [1.0, 0.0])
    assert (table["median"], table["quantile"], table["baseline"]) == ([0.1, 0.3], [0.1, 0.3], [None, None])
    assert table["history"]["points"][-1] == [8, 0, 1, 1]  # issued, reached, missed, open
    arm = get(app, "/times/arms/a").data
    assert arm["evidence"][-1]["reaching"] > 1 > arm["evidence"][-1]["missing"], "it is within the limit"
    assert all(0 <= point["low"] <= point["high"] <= 1 for point in arm["evidence"]), "a share"


def test_the_evidence_of_a_mean_at_most_is_on_the_scale_of_rewards(app: CheckedApp) -> None:
    new = {"name": "times", "arms": ["a"], "at_most": 2, "bounds": [0, 10], "budget": 40}
    assert post(app, "", new).data["bar"] == 2
    for pull in post(app, "/times/ask", {"n": 40}).data["pulls"]:
        post(app, "/times/tell", {"pull": pull["pull"], "reward": 1})
    arm = get(app, "/times/arms/a").data
    last = arm["evidence"][-1]
    assert 0 <= last["low"] <= 1 <= last["high"] < 10
    assert last["reaching"] > 1 > last["missing"]


def test_pairs_are_asked_and_told_over_http(app: CheckedApp, store: MemoryStore) -> None:
    head = post(app, "", PAIRS).data
    assert (head["asks"], head["bar"], head["edges"]) == ("difference", -0.1, [-0.1, -0.1])
    assert head["question"] == "Does the arm beat old by 100 ms?"
    pulls = post(app, "/pairs/ask", {"n": 30}, **{"idempotency-key": "k"}).data["pulls"]
    assert {(pull["arm"], pull["baseline"], pull["baseline_params"]["k"]) for pull in pulls} == {("new", "old", 1)}
    assert {pull["baseline_first"] for pull in pulls} == {True, False}
    assert post(app, "/pairs/ask", {"n": 30}, **{"idempotency-key": "k"}).data["pulls"] == pulls
    for pull in pulls:
        told = post(app, "/pairs/tell", {"pull": pull["pull"], "reward": [0.25, True]})
        assert (told.status, told.data["reward"]) == (200, [0.25, 1.0])
    again = post(app, "/pairs/tell", {"pull": pulls[0]["pull"], "reward": [0.25, 0.5]})
    assert (again.status, again.data["error"]) == (409, "pull 1, the baseline's reward")
    table = get(app, "/pairs/arms").data
    assert table["standings"][table["standing"][0]] == "baseline"
    assert (table["mean"], table["baseline"]) == ([1.0, 0.25], [None, 1.0])
    assert (table["reached"], table["estimate"]) == ([None, 1], [None, -0.75])
    arm = get(app, "/pairs/arms/new").data
    assert {(pull["reward"], pull["baseline"], pull["value"]) for pull in arm["rewards"]} == {(0.25, 1.0, -0.75)}
    assert arm["evidence"][-1]["low"] < -0.75 < arm["evidence"][-1]["high"]
    base = get(app, "/pairs/arms/old").data
    assert (base["row"]["standing"], base["rewards"], base["facts"]) == ("baseline", [], [["mean", "1 s"]])
    follower = LogFollower("pairs", store)
    assert follower.changed[0] == follower.seq, "a pair changes the baseline's row too"


@pytest.mark.parametrize("reward", [0.0, 0.000025, 0.0009999, 0.99996, 12.5, 12345.678])
def test_numbers_are_sent_as_the_library_writes_them(app: CheckedApp, reward: float) -> None:
    cases = {"name": "costs", "arms": ["a"], "at_most": 9, "bounds": [0, 99_999], "cases": ["one", "two"], "unit": "s"}
    pairs = {"name": "pairs", "arms": ["old", "new"], "baseline": "old", "bounds": [-9, 99_999], "unit": "points"}
    for name, new, told in (("costs", cases, reward), ("pairs", pairs, [reward, 7])):
        assert post(app, "", new).status == 201
        pull = post(app, f"/{name}/ask").data["pulls"][0]
        post(app, f"/{name}/tell", {"pull": pull["pull"], "reward": told, "note": "cut off", "cost": 0.5})
        table, arm = get(app, f"/{name}/arms").data, get(app, f"/{name}/arms/{pull['arm']}").data
        assert arm["facts"][0][1] == table["texts"][-1][0]
        if name == "costs":
            assert table["texts"] == [[amount_text(reward, "s")]]
            assert table["events"][-1]["text"] == f"reward {amount_text(reward, 's')}, cost 0.5 · cut off"
            assert arm["rewards"][-1]["text"] == amount_text(reward, "s")
            assert get(app, "/costs/cases").data["rows"][0]["texts"] == [amount_text(reward, "s")]
        else:
            sign = "+" if reward > 7 else ""
            assert table["texts"] == [
                ["", "7 points", ""],
                [f"{sign}{amount_text(reward - 7, 'points')}", amount_text(reward, "points"), "7 points"],
            ]
            assert (
                table["events"][-1]["text"]
                == f"reward {amount_text(reward, 'points')}, old 7 points, cost 0.5 · cut off"
            )
            assert arm["rewards"][-1]["baseline_text"] == "7 points"


def test_a_reward_of_the_wrong_shape_is_refused_in_one_line(app: CheckedApp) -> None:
    post(app, "", PAIRS)
    pull = post(app, "/pairs/ask").data["pulls"][0]["pull"]
    coin = post(app, "/coins/ask").data["pulls"][0]["pull"]
    wrongs = [
        ("pairs", pull, 0.5, "must be a pair: with a baseline and without cases, every pull evaluates both"),
        ("coins", coin, [0.5, 0.5], "must be one number: the pulls of this study are no pairs"),
    ]
    for study, number, reward, rule in wrongs:
        reply = post(app, f"/{study}/tell", {"pull": number, "reward": reward})
        assert (reply.status, reply.data["error"], reply.data["rule"]) == (422, "reward", rule)
    for shape in ([0.5], [0.5, 0.5, 0.5], ["a", "b"], [None, 1], []):
        assert post(app, "/pairs/tell", {"pull": pull, "reward": shape}).status == 422
    assert get(app, "/pairs").data["told"] == 0


def test_a_baseline_goes_first_through_the_cases(app: CheckedApp) -> None:
    new = {"name": "evals", "arms": ["old", "new"], "baseline": "old", "cases": ["one", "two", "three"], "budget": 6}
    assert post(app, "", new).status == 201
    before = post(app, "/evals/ask", {"n": 3}).data["pulls"]
    assert {pull["arm"] for pull in before} == {"old"}
    assert all("baseline" not in pull for pull in before)
    for pull in before:
        post(app, "/evals/tell", {"pull": pull["pull"], "reward": pull["case"] != "one"})
    for pull in post(app, "/evals/ask", {"n": 3}).data["pulls"]:
        post(app, "/evals/tell", {"pull": pull["pull"], "reward": pull["case"] != "two"})
    rows = {row["case"]: row for row in get(app, "/evals/cases").data["rows"]}
    assert rows["two"]["failed_by"] == [1]
    assert rows["one"]["failed_by"] == rows["three"]["failed_by"] == []
    rewards = get(app, "/evals/arms/new").data["rewards"]
    assert {pull["case"]: pull["value"] for pull in rewards} == {"one": 1.0, "two": -1.0, "three": 0.0}


def test_arms_that_the_baseline_opens_are_news() -> None:
    store = MemoryStore()
    study = thresher.create_study(
        "evals", arms=["old", "new", "other"], baseline="old", cases=4, budget=12, storage=store
    )
    study.add_many([("new", 1, case) for case in range(4)])
    live = LiveStudy("evals", store)
    known = live.follower.seq
    study.add_many([("old", case % 2, case) for case in range(4)])
    live.catch_up()
    rows = {row[0]: dict(zip(COLUMNS, row[1:], strict=True)) for row in live.since(known)["rows"]}
    assert (rows[1]["estimate"], rows[1]["reached"]) == (0.5, 1)
    assert live.head()["reached"] == len(live.verdict().reached) == 1


def test_a_study_that_looks_for_some_arms_names_what_it_found(app: CheckedApp) -> None:
    for reward, found in ((1, "Found 1 of 1: 'a'."), (0, "Found 0 of 1.")):
        name = f"search {reward}"
        post(app, "", {"name": name, "arms": ["a", "b"], "at_least": 0.5, "find": 1, "budget": 60})
        assert get(app, f"/{quote(name)}").data["answer"] == "Found 0 of 1 so far, 0 miss it, 2 open."
        while pulls := post(app, f"/{quote(name)}/ask", {"n": 1}).data["pulls"]:
            post(app, f"/{quote(name)}/tell", {"pull": pulls[0]["pull"], "reward": reward * (pulls[0]["arm"] == "a")})
        answer = get(app, f"/{quote(name)}").data["answer"]
        assert answer == found
        assert answer == get(app, f"/{quote(name)}/verdict").data["answer"]


def test_what_is_wrong_with_a_question_is_said_over_http(app: CheckedApp) -> None:
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({}, "at_least"),
        ({"at_least": 0.5, "at_most": 0.5}, "at_most"),
        ({"at_least": 0.5, "margin": 0.1}, "margin"),
        ({"at_least": 0.5, "ratio": 1.05}, "ratio"),
        ({"at_least": 0.5, "share": 1.5}, "share"),
        ({"baseline": "c"}, "baseline"),
        ({"baseline": "a", "margin": 3}, "margin"),
        ({"at_least": 0.5, "lower_is_better": True}, "lower_is_better"),
        ({"at_least": 0.5, "unit": " "}, "unit"),
        ({"at_least": 0.5, "lower_is_better": 1}, "lower_is_better"),
    ]
    for wrong, field in wrongs:
        reply = post(app, "", {"name": "x", "arms": ["a", "b"], **wrong})
        assert (reply.status, field in reply.data["error"]) == (422, True), (wrong, reply.data)
