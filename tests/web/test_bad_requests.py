"""Requests with access that are malformed: addresses, lengths, bodies and rewards that break parsers."""

import pytest
from asgi import BEARER, HOST, READER, TOKEN, WRITE_TOKEN, Reply, an_app, request, server  # noqa: F401 - the fixture

from thresher.web.request_checks import MOST_BYTES, CheckedApp


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", BEARER["authorization"]),
        ("Thresher-Agent", "one"),
        ("Last-Event-ID", "1"),
        ("Idempotency-Key", "one"),
    ],
)
def test_a_header_that_identifies_comes_only_once(app: CheckedApp, name: str, value: str) -> None:
    issued = request(app, "GET", "/api/studies/coins", headers=BEARER).data["issued"]
    for other in (value, "another"):
        headers = {**BEARER, name.lower(): value}
        reply = request(app, "POST", "/api/studies/coins/ask", headers=headers, more=[(name, other)])
        assert (reply.status, reply.data["error"], reply.headers["connection"]) == (400, name, "close")
        assert b"another" not in reply.body
    assert request(app, "GET", "/api/studies/coins", headers=BEARER).data["issued"] == issued


def test_lengths_of_thousands_of_digits_break_nothing(app: CheckedApp) -> None:
    reply = request(app, "POST", "/api/studies", headers={**BEARER, "content-length": "9" * 5000})
    assert reply.status == 413
    for number in ("9" * 5000, "-1", "x", "\xb2"):
        reply = request(app, "GET", "/api/studies/coins/stream", headers={**BEARER, "last-event-id": number})
        assert (reply.status, reply.data["error"]) == (400, "Last-Event-ID")


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/studies/%ff", 400),
        ("/study/%ed%a0%80", 400),
        ("/study/coins/arm/%f0%9f", 400),
        ("/study/%00", 404),
        ("/study/coins/arm/%E2%80%AE", 404),
        ("/api/studies/coins/arms/nobody", 404),
        ("/api/studies/%zz", 404),
        ("/" + "a" * 5000, 404),
        ("/api/studies/coins/events?after=%ff", 422),
        ("/api/studies/coins/events?limit=%00&%ff=%ed%a0%80", 422),
        ("/?token=%ed%a0%80", {401, 429}),
    ],
)
def test_lone_surrogates_in_addresses_are_refused_with_a_message(
    app: CheckedApp, path: str, status: int | set[int], kind: str
) -> None:
    reply = request(app, "GET", path, headers={**BEARER, "accept": kind})
    assert reply.status in (status if isinstance(status, set) else {status})
    assert b"Traceback" not in reply.body
    assert len(reply.body) < 3000


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("", {"name": "\ud800", "arms": ["a"], "at_least": 0.5}, 422),
        ("", {"name": "x", "arms": ["\udfff"], "at_least": 0.5}, 422),
        ("", {"name": "x", "arms": ["a"], "at_least": 0.5, "\ud800": 1}, 422),
        ("", {"name": "x", "arms": ["a"], "at_least": 0.5, "policy": "\ud800"}, 422),
        ("/coins/tell", {"pull": "\ud800", "reward": 1}, 422),
    ],
)
def test_lone_surrogates_in_bodies_are_refused_with_a_message(
    app: CheckedApp, path: str, body: object, status: int
) -> None:
    reply = request(app, "POST", f"/api/studies{path}", headers=BEARER, json_body=body)
    assert (reply.status, set(reply.data)) == (status, {"error", "value", "rule", "remedy"})


def test_lone_surrogates_in_parameters_reach_the_evaluator(app: CheckedApp) -> None:
    new = {"name": "halves", "arms": {"a": {"k": "\ud800"}}, "at_least": 0.5}
    assert request(app, "POST", "/api/studies", headers=BEARER, json_body=new).status == 201
    asked = request(app, "POST", "/api/studies/halves/ask", headers=BEARER)
    assert asked.data["pulls"][0]["params"] == {"k": "\ud800"}
    assert request(app, "GET", "/api/studies/halves/arms/a", headers=BEARER).data["params"] == {"k": "\ud800"}
    assert request(app, "GET", "/api/studies/halves/events", headers=BEARER).status == 200


LARGE_BODIES = [b"[" * 200_000, b'{"a":' * 100_000, b"1" * 5000, b'{"pull": 1, "reward": 1e999}']


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"x"', b"\xff", *LARGE_BODIES])
def test_bodies_that_are_not_json_or_break_parsers_are_refused(app: CheckedApp, body: bytes) -> None:
    headers = {**BEARER, "content-type": "application/json"}
    reply = request(app, "POST", "/api/studies/coins/tell", headers=headers, body=body)
    assert reply.status in (400, 404, 422)
    assert set(reply.data) == {"error", "value", "rule", "remedy"}


LARGEST = 1.7976931348623157e308  # stands for infinity in a log
HUGE: dict[
    str, tuple[dict[str, object], int, list[str]]
] = {  # fields of the study, the status, and the arms outside their bounds: the same as in the library
    "bounds": ({}, 422, ["a"]),
    "clip": ({"clip": True}, 200, []),
    "no bounds": ({"bounds": None, "confidence": None, "budget": 9}, 422, []),
}


@pytest.mark.parametrize("kind", HUGE)
@pytest.mark.parametrize("reward", ["1e999", "-1e999", "1" * 500])
def test_a_reward_that_no_float_can_hold_proves_bounds_wrong_as_it_does_in_the_library(reward: str, kind: str) -> None:
    """If it were refused and forgotten, an evaluator could choose which of its outcomes count."""
    extra, status, outside = HUGE[kind]
    app, reply = told_huge(reward, extra)
    assert (reply.status, len(reply.body) < 600) == (status, True)
    if status == 200:
        assert reply.data["reward"] == (-LARGEST if reward.startswith("-") else LARGEST)
    assert request(app, "GET", "/api/studies/big/verdict", headers=BEARER).data["outside"] == outside


def test_a_reward_of_thousands_of_digits_is_not_json_that_can_be_read() -> None:
    app, reply = told_huge("1" * 5000, {})
    assert (reply.status, "4,300 digits" in reply.data["rule"]) == (400, True)
    assert request(app, "GET", "/api/studies/big", headers=BEARER).data["seq"] == 2


def told_huge(reward: str, extra: dict[str, object]) -> tuple[CheckedApp, Reply]:
    app = server()
    new = {"name": "big", "arms": ["a"], "at_least": 0.5, **extra}
    assert request(app, "POST", "/api/studies", headers=BEARER, json_body=new).status == 201
    request(app, "POST", "/api/studies/big/ask", headers=BEARER)
    body = f'{{"pull": 1, "reward": {reward}}}'.encode()
    headers = {**BEARER, "content-type": "application/json"}
    return app, request(app, "POST", "/api/studies/big/tell", headers=headers, body=body)


def test_a_body_of_another_kind_is_refused(app: CheckedApp) -> None:
    reply = request(app, "POST", "/api/studies", headers={**BEARER, "content-type": "text/plain"}, body=b"{}")
    assert (reply.status, reply.data["rule"]) == (415, "must be application/json")


def test_large_bodies_are_refused_whether_or_not_they_say_so(app: CheckedApp) -> None:
    stated = {**BEARER, "content-length": str(MOST_BYTES + 1)}
    assert request(app, "POST", "/api/studies", headers=stated).status == 413
    parts = [b"x" * 100_000] * 11
    assert request(app, "POST", "/api/studies", headers=BEARER, body=parts).status == 413
    assert request(app, "POST", "/api/studies", headers={**BEARER, "content-length": "-1"}).status == 413
    small = [b'{"name": "x", ', b'"arms": ["a"], "at_least": 0.5}']
    kind = {"content-type": "application/json"}
    assert request(app, "POST", "/api/studies", headers={**BEARER, **kind}, body=small).status == 201


def test_a_body_that_does_not_arrive_is_not_waited_for_long(app: CheckedApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.web.request_checks.SLOW", 0.05)
    reply = request(app, "POST", "/api/studies", headers=BEARER, body=[])
    assert (reply.status, reply.headers["connection"]) == (408, "close")


NAMES = {"name": "x", "arms": ["a"]}


@pytest.mark.parametrize(
    ("path", "body", "error", "value", "rule", "remedy"),
    [
        ("/coins/tell", {"pull": 1, "reward": "a"}, "reward", "a", "a number or a bool, or two of them", "/docs"),
        ("/coins/tell", {"pull": 1, "reward": [1, "a"]}, "reward", "[1, 'a']", "or two of them", "/docs"),
        ("/coins/tell", {"pull": 1, "rewrad": 0.5}, "rewrad", 0.5, "is not a field", "did you mean 'reward'?"),
        ("/coins/ask", {"n": 1, "lase": 5}, "lase", 5, "is not a field", "did you mean 'lease'?"),
        ("/coins/renew", {"pulls": [1, "a"]}, "pulls", "[1, 'a']", "must be a list of pulls as ask gave them", "/docs"),
        ("/coins/tell", {"pull": "1-xyz", "reward": 1}, "pull", "1-xyz", "such as '17-3f9c2a41', or its", "/docs"),
        ("/coins/ask", {"lease": "long"}, "lease", "long", "must be a number", "/docs"),
        ("/coins/ask", {"nn": 1}, "nn", 1, "is not a field", "did you mean 'n'?"),
        ("/coins/ask", [], "body", "[]", "must be a JSON object", "/docs"),
        ("", [], "body", "[]", "must be a JSON object", "/docs"),
        ("", {**NAMES, "at_leats": 0.5}, "at_leats", 0.5, "is not a field", "did you mean 'at_least'"),
        ("", {**NAMES, "arms": "a", "at_least": 0.5}, "arms", "a", "must be a list of names, or an object", "/docs"),
        ("", {**NAMES, "at_least": 0.5, "bounds": 1}, "bounds", 1, "must be two numbers, or null", "/docs"),
        (
            "",
            {**NAMES, "at_least": 0.5, "if_exists": "x"},
            "if_exists",
            "x",
            "must be 'error', 'join', 'revise' or 'fresh'",
            "/docs",
        ),
        ("", {**NAMES, "at_least": 0.5, "name": "coins"}, "study", "coins", "already exists", '"if_exists": "join"'),
        ("/nobody/ask", {}, "study", "nobody", "is not in this store", "GET /api/studies list"),
    ],
)
def test_a_refusal_names_the_field_its_rule_and_what_a_client_can_do(
    app: CheckedApp, path: str, body: object, error: str, value: object, rule: str, remedy: str
) -> None:
    reply = request(app, "POST", f"/api/studies{path}", headers=BEARER, json_body=body)
    assert (reply.data["error"], reply.data["value"]) == (error, value)
    assert rule in reply.data["rule"]
    assert remedy in reply.data["remedy"]
    assert reply.status in (404, 409, 422)


@pytest.mark.parametrize(
    ("method", "path", "name", "remedy"),
    [
        ("GET", "/coins/events?aftr=1", "aftr", "did you mean 'after'?"),
        ("GET", "/coins/events?limit=5&x=1", "x", "it takes after and limit"),
        ("GET", "?limit=5", "limit", "leave it out"),
        ("POST", "/coins/ask?n=2", "n", "leave it out"),
    ],
)
def test_a_misspelt_parameter_of_an_address_is_refused(
    app: CheckedApp, method: str, path: str, name: str, remedy: str
) -> None:
    reply = request(app, method, f"/api/studies{path}", headers=BEARER)
    assert (reply.status, reply.data["error"], reply.data["remedy"]) == (422, name, remedy)
    assert reply.data["rule"] == "is not a parameter of this address"


def test_a_study_without_a_budget_says_what_to_do_instead_of_extending_it() -> None:
    app = server()
    assert request(app, "POST", "/api/studies", headers=BEARER, json_body={**NAMES, "at_least": 0.5}).status == 201
    reply = request(app, "POST", "/api/studies/x/extend", headers=BEARER, json_body={"budget": 100})
    assert (reply.status, reply.data["remedy"]) == (422, "continue it as it is")


def test_a_refusal_of_the_library_without_a_remedy_gets_one(app: CheckedApp) -> None:
    new = {**NAMES, "at_least": 0.5, "seed": -1}
    reply = request(app, "POST", "/api/studies", headers=BEARER, json_body=new)
    assert (reply.status, reply.data["error"], reply.data["remedy"]) == (422, "seed", "/docs describes what to send")
