"""Cases over HTTP."""

from typing import Any

from coins import a_store, coins_app, get, post  # noqa: F401 - fixtures

from thresher.web.request_checks import CheckedApp

EVALS: dict[str, Any] = {
    "name": "evals",
    "arms": ["a", "b"],
    "at_least": 0.5,
    "cases": {"one": {"text": "1 + 1"}, "two": {}},
}


def test_a_pull_carries_its_case_over_http(app: CheckedApp) -> None:
    assert post(app, "", EVALS).data["cases"] == 2
    pulls = post(app, "/evals/ask", {"n": 9}).data["pulls"]
    assert sorted((pull["arm"], pull["case"]) for pull in pulls) == [
        (arm, case) for arm in "ab" for case in ("one", "two")
    ]
    assert all(pull["case_params"] == EVALS["cases"][pull["case"]] for pull in pulls)
    for pull in pulls:
        post(app, "/evals/tell", {"pull": pull["pull"], "reward": pull["case"] == "one"})
    rows = get(app, "/evals/verdict").data["rows"]
    assert [(row["cases"], row["exact"], row["standing"]) for row in rows] == [(2, True, "reaches")] * 2
    page = get(app, "/evals/cases?limit=1").data
    hardest: dict[str, Any] = {"case": "two", "failed": 2, "passed": 0, "mean": 0.0, "rewards": [[0, 0.0], [1, 0.0]]}
    hardest |= {"failed_by": [0, 1], "missing_by": [], "mean_text": "0", "texts": ["0", "0"]}
    assert (page["cases"], page["seen"], page["rows"]) == (2, 2, [hardest])
    arm = get(app, "/evals/arms/a").data
    assert (arm["cases"], {pull["case"] for pull in arm["rewards"]}) == (2, {"one", "two"})


def test_an_agent_is_told_to_come_back_while_others_have_the_last_cases(app: CheckedApp) -> None:
    rivals = {"name": "rivals", "arms": ["new", "old"], "baseline": "old", "bounds": [0, 1], "cases": 2}
    assert post(app, "", rivals).status == 201
    baseline = post(app, "/rivals/ask", {"n": 9}).data
    assert ([pull["arm"] for pull in baseline["pulls"]], baseline["wait"]) == (["old", "old"], False)
    for arm in ({}, {"arm": "new"}, {"arm": "old"}):
        asked = post(app, "/rivals/ask", arm).data
        assert (asked["pulls"], asked["wait"]) == ([], True), arm
    for pull in baseline["pulls"]:
        post(app, "/rivals/tell", {"pull": pull["pull"], "reward": 0.5})
    last = post(app, "/rivals/ask", {"n": 9}).data["pulls"]
    assert [pull["arm"] for pull in last] == ["new", "new"]
    assert post(app, "/rivals/ask").data["wait"], "one of them may be lost"
    for pull in last:
        post(app, "/rivals/tell", {"pull": pull["pull"], "reward": 1})
    assert post(app, "/rivals/ask").data == {"pulls": [], "done": True, "wait": False}


def test_what_is_wrong_with_cases_is_said_over_http(app: CheckedApp) -> None:
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"cases": []}, "cases"),
        ({"cases": ["x", "x"]}, "case"),
        ({"cases": 0}, "cases"),
        ({"find": 3}, "find"),
        ({"guarantee": "rate", "confidence": None}, "guarantee"),
        ({"tries": 0}, "tries"),
    ]
    for wrong, field in wrongs:
        reply = post(app, "", {**EVALS, **wrong})
        assert (reply.status, reply.data["error"]) == (422, field)
    assert post(app, "", {**EVALS, "cases": 10, "tries": 5, "guarantee": "rate"}).status == 201
    assert post(app, "", {**EVALS, "name": "first", "find": 1}).status == 201
    assert (get(app, "/coins/cases").status, get(app, "/coins/cases").data["rule"]) == (422, "this study has none")
    assert get(app, "/evals/cases?limit=1001").status == 422
