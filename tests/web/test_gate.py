"""No access without a token: every method and path, with every kind of wrong request."""

import logging

import pytest
from asgi import BEARER, HOST, READER, TOKEN, WRITE_TOKEN, Reply, request, server

from thresher import create_study
from thresher.errors import InvalidInput
from thresher.log.memory import MemoryStore
from thresher.web import serving
from thresher.web.gate import MOST_BYTES, Access, Gate

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"]
PATHS = [
    "/",
    "/api/studies",
    "/api/studies/coins/verdict",
    "/api/studies/coins/ask",
    "/study/coins",
    "/static/style.css",
    "/docs",
    "/openapi.json",
    "/nothing/here",
    "/x/../api/studies",
    "/healthz/../api/studies",
    "/healthz/%2e%2e/api/studies",
    "//api//studies",
    "/./api/%73tudies",
    "/x/healthz",
    "/api/studies/healthz",
    "/study/coins/healthz",
    "/x%2Fhealthz",
    "/healthz/x",
    "/healthzz",
]
KNOCKS = {  # what comes with the request, and what it must get
    "foreign host": ({**BEARER}, "evil.example:8765", {421}),
    "host with another port": ({**BEARER}, "127.0.0.1:1", {421}),
    "host that only begins right": ({**BEARER}, f"{HOST}.evil.example", {421}),
    "no host": ({**BEARER}, None, {400}),
    "foreign origin": ({**BEARER, "origin": "http://evil.example"}, HOST, {403}),
    "null origin": ({**BEARER, "origin": "null"}, HOST, {403}),
    "origin of another port": ({**BEARER, "origin": "http://127.0.0.1:9"}, HOST, {403}),
    "no token": ({}, HOST, {401}),
    "wrong token": ({"authorization": f"Bearer {TOKEN}x"}, HOST, {401, 429}),
    "empty token": ({"authorization": "Bearer "}, HOST, {401, 429}),
    "another scheme": ({"authorization": f"Basic {TOKEN}"}, HOST, {401, 429}),
    "wrong cookie": ({"cookie": "thresher=wrong"}, HOST, {401}),
    "cookie of another name": ({"cookie": f"other={TOKEN}"}, HOST, {401}),
    "the token as a cookie": ({"cookie": f"thresher={WRITE_TOKEN}"}, HOST, {401}),
}


@pytest.fixture(scope="module")
def app() -> Gate:
    store = MemoryStore()
    create_study("coins", arms=["a", "b"], threshold=0.5, budget=20, storage=store)
    return server(store)


@pytest.mark.parametrize("knock", KNOCKS)
@pytest.mark.parametrize("method", METHODS)
def test_requests_without_access_are_refused_whatever_their_method_and_path(app: Gate, method: str, knock: str) -> None:
    headers, host, statuses = KNOCKS[knock]
    for path in PATHS:
        reply = request(app, method, path, headers=headers, host=host)
        assert reply.status in statuses, (method, path, reply)
        assert b"Traceback" not in reply.body
        assert TOKEN.encode() not in reply.body
        assert WRITE_TOKEN.encode() not in reply.body
        if method != "HEAD":
            assert set(reply.data) == {"error", "value", "rule", "remedy"}


@pytest.mark.parametrize("knock", [name for name in KNOCKS if "host" in name or "origin" in name])
def test_health_is_open_but_not_to_other_names(app: Gate, knock: str) -> None:
    headers, host, statuses = KNOCKS[knock]
    assert request(app, "GET", "/healthz").data == {"ok": True}
    assert request(app, "GET", "/healthz", headers=headers, host=host).status in statuses


@pytest.mark.parametrize("path", ["/x/../api/studies", "//api//studies", "/./api/%73tudies", "/../../api/studies/"])
def test_a_path_means_the_same_however_it_is_written(app: Gate, path: str) -> None:
    assert request(app, "GET", path, headers=BEARER).data == {"format": 1, "studies": ["coins"]}


def test_a_body_with_two_lengths_is_refused(app: Gate) -> None:
    both = {**BEARER, "content-length": "2", "transfer-encoding": "chunked"}
    for headers in (both, {**both, "transfer-encoding": "identity"}):
        reply = request(app, "POST", "/api/studies/coins/ask", headers=headers, body=b"{}")
        assert (reply.status, reply.data["error"], reply.headers["connection"]) == (400, "Content-Length", "close")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Authorization", BEARER["authorization"]),
        ("Thresher-Agent", "one"),
        ("Last-Event-ID", "1"),
        ("Idempotency-Key", "one"),
    ],
)
def test_a_header_that_identifies_comes_only_once(app: Gate, name: str, value: str) -> None:
    issued = request(app, "GET", "/api/studies/coins", headers=BEARER).data["issued"]
    for other in (value, "another"):
        headers = {**BEARER, name.lower(): value}
        reply = request(app, "POST", "/api/studies/coins/ask", headers=headers, more=[(name, other)])
        assert (reply.status, reply.data["error"], reply.headers["connection"]) == (400, name, "close")
        assert b"another" not in reply.body
    assert request(app, "GET", "/api/studies/coins", headers=BEARER).data["issued"] == issued


def test_a_caller_refused_at_the_gate_is_disconnected(app: Gate) -> None:
    wrong = {"authorization": "Bearer wrong"}
    found = {
        401: request(app, "GET", "/api/studies"),
        403: request(app, "POST", "/api/studies", headers=READER),
        421: request(app, "GET", "/api/studies", headers=BEARER, host="evil.example"),
        429: [request(app, "GET", "/", headers=wrong, client="10.1.1.1") for _ in range(20)][-1],
    }
    assert {status: reply.status for status, reply in found.items()} == {status: status for status in found}
    assert {reply.headers.get("connection") for reply in found.values()} == {"close"}
    other = request(app, "POST", "/api/studies", headers={**BEARER, "origin": "http://evil.example"})
    assert (other.status, other.headers["connection"]) == (403, "close")
    assert "connection" not in request(app, "GET", "/api/nothing", headers=BEARER).headers


def test_lengths_of_thousands_of_digits_break_nothing(app: Gate) -> None:
    reply = request(app, "POST", "/api/studies", headers={**BEARER, "content-length": "9" * 5000})
    assert reply.status == 413
    for given in ("9" * 5000, "-1", "x", "\xb2"):
        reply = request(app, "GET", "/api/studies/coins/stream", headers={**BEARER, "last-event-id": given})
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
    app: Gate, path: str, status: int | set[int], kind: str
) -> None:
    reply = request(app, "GET", path, headers={**BEARER, "accept": kind})
    assert reply.status in (status if isinstance(status, set) else {status})
    assert b"Traceback" not in reply.body
    assert len(reply.body) < 3000


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("", {"name": "\ud800", "arms": ["a"], "threshold": 0.5}, 422),
        ("", {"name": "x", "arms": ["\udfff"], "threshold": 0.5}, 422),
        ("", {"name": "x", "arms": ["a"], "threshold": 0.5, "\ud800": 1}, 422),
        ("", {"name": "x", "arms": ["a"], "threshold": 0.5, "policy": "\ud800"}, 422),
        ("/coins/drop", {"pulls": [1], "reason": "\ud800"}, 422),
        ("/coins/tell", {"pull": "\ud800", "reward": 1}, 422),
    ],
)
def test_lone_surrogates_in_bodies_are_refused_with_a_message(app: Gate, path: str, body: object, status: int) -> None:
    reply = request(app, "POST", f"/api/studies{path}", headers=BEARER, json_body=body)
    assert (reply.status, set(reply.data)) == (status, {"error", "value", "rule", "remedy"})


def test_lone_surrogates_in_parameters_reach_the_evaluator(app: Gate) -> None:
    new = {"name": "halves", "arms": {"a": {"k": "\ud800"}}, "threshold": 0.5}
    assert request(app, "POST", "/api/studies", headers=BEARER, json_body=new).status == 201
    asked = request(app, "POST", "/api/studies/halves/ask", headers=BEARER)
    assert asked.data["pulls"][0]["params"] == {"k": "\ud800"}
    assert request(app, "GET", "/api/studies/halves/arms/a", headers=BEARER).data["params"] == {"k": "\ud800"}
    assert request(app, "GET", "/api/studies/halves/events", headers=BEARER).status == 200


@pytest.mark.parametrize("body", [b"[" * 200_000, b'{"a":' * 100_000, b"1" * 5000, b'{"pull": 1, "reward": 1e999}'])
def test_bodies_that_break_parsers_are_refused(app: Gate, body: bytes) -> None:
    headers = {**BEARER, "content-type": "application/json"}
    assert request(app, "POST", "/api/studies/coins/tell", headers=headers, body=body).status in (400, 404, 422)


LARGEST = 1.7976931348623157e308  # stands for infinity in a log
HUGE: dict[
    str, tuple[dict[str, object], int, list[str]]
] = {  # what becomes of a study's only arm: the same as in the library
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


def told_huge(reward: str, extra: dict[str, object]) -> tuple[Gate, Reply]:
    app = server()
    new = {"name": "big", "arms": ["a"], "threshold": 0.5, **extra}
    assert request(app, "POST", "/api/studies", headers=BEARER, json_body=new).status == 201
    request(app, "POST", "/api/studies/big/ask", headers=BEARER)
    body = f'{{"pull": 1, "reward": {reward}}}'.encode()
    headers = {**BEARER, "content-type": "application/json"}
    return app, request(app, "POST", "/api/studies/big/tell", headers=headers, body=body)


def test_a_body_of_another_kind_is_refused(app: Gate) -> None:
    reply = request(app, "POST", "/api/studies", headers={**BEARER, "content-type": "text/plain"}, body=b"{}")
    assert (reply.status, reply.data["rule"]) == (415, "must be application/json")


def test_a_redirect_never_leads_to_another_host(app: Gate) -> None:
    for path in ["//evil.example/", "/%2F/evil.example", "/\\evil.example", "/x/..//evil.example"]:
        where = request(app, "GET", f"{path}?token={TOKEN}").headers["location"]
        assert where.startswith("/")
        assert not where.startswith(("//", "/\\"))


def test_a_token_in_the_address_does_not_allow_writing(app: Gate) -> None:
    assert request(app, "POST", f"/api/studies/coins/ask?token={WRITE_TOKEN}").status == 401


def test_its_own_pages_may_call_it(app: Gate) -> None:
    reply = request(app, "POST", "/api/studies/coins/ask", headers={**BEARER, "origin": f"http://{HOST}"})
    assert reply.status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "BREW"])
def test_without_write_nothing_can_be_changed(method: str) -> None:
    reply = request(server(write=False), method, "/api/studies", headers=READER, json_body={})
    assert (reply.status, reply.data["remedy"]) == (403, "start it with --write")


def test_large_bodies_are_refused_whether_or_not_they_say_so(app: Gate) -> None:
    stated = {**BEARER, "content-length": str(MOST_BYTES + 1)}
    assert request(app, "POST", "/api/studies", headers=stated).status == 413
    parts = [b"x" * 100_000] * 11
    assert request(app, "POST", "/api/studies", headers=BEARER, body=parts).status == 413
    assert request(app, "POST", "/api/studies", headers={**BEARER, "content-length": "-1"}).status == 413
    small = [b'{"name": "x", ', b'"arms": ["a"], "threshold": 0.5}']
    kind = {"content-type": "application/json"}
    assert request(app, "POST", "/api/studies", headers={**BEARER, **kind}, body=small).status == 201


def test_a_body_that_does_not_arrive_is_not_waited_for_long(app: Gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thresher.web.gate.SLOW", 0.05)
    reply = request(app, "POST", "/api/studies", headers=BEARER, body=[])
    assert (reply.status, reply.headers["connection"]) == (408, "close")


@pytest.mark.parametrize("path", ["/healthz", "/", "/api/studies", "/nothing", "/static/style.css", "/docs"])
def test_every_reply_carries_security_headers(app: Gate, path: str) -> None:
    headers = request(app, "GET", path, headers=BEARER).headers
    policy = headers["content-security-policy"]
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert scripts == "script-src 'self'"
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_an_internal_error_is_one_sentence(
    app: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(MemoryStore):
        def studies(self) -> list[str]:
            raise RuntimeError("secret detail")

    with caplog.at_level(logging.ERROR, "thresher"):
        reply = request(server(Broken()), "GET", "/api/studies?q=1", headers=BEARER)
    assert reply.status == 500
    assert reply.data["rule"] == "something went wrong"
    assert b"secret" not in reply.body
    assert "secret detail" in caplog.text
    assert TOKEN not in caplog.text


def test_a_browser_gets_an_error_page(app: Gate) -> None:
    reply = request(app, "GET", "/", headers={"accept": "text/html"})
    assert reply.status == 401
    assert reply.headers["content-type"].startswith("text/html")
    assert b"thresher serve printed" in reply.body


def test_names_of_the_server() -> None:
    assert serving.host_headers("10.0.0.5", 80, []) >= {"10.0.0.5", "10.0.0.5:80", "localhost"}
    assert serving.host_headers("0.0.0.0", 9000, ["Box"]) >= {"box", "box:9000", "localhost:9000"}
    assert not {"0.0.0.0", "0.0.0.0:9000"} & serving.host_headers("0.0.0.0", 9000, ["box"])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0", "0x0", "::ffff:0.0.0.0"])
def test_every_way_to_write_all_addresses_needs_a_name(host: str) -> None:
    with pytest.raises(InvalidInput, match=r"--allow-host|this machine knows"):
        serving.serve(MemoryStore(), serving.Options(host=host), lambda _: None)


@pytest.mark.parametrize("token", ["", "short", "with space in it", 'quote"quote"', "line\nline-line"])
def test_a_token_with_unsafe_characters_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        serving.checked_token(token)
    assert token == "" or token not in str(caught.value)


def test_tokens_are_new_at_every_start() -> None:
    assert serving.checked_token(None) != serving.checked_token(None)
    assert len(serving.checked_token(None)) >= 32


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_error_is_logged_without_the_query(method: str, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: object, receive: object, send: object) -> None:
        raise RuntimeError("it broke")

    gate = Gate(broken, Access(TOKEN, {HOST}, WRITE_TOKEN))
    with caplog.at_level(logging.DEBUG):
        reply = request(gate, method, "/api/ab?key=hidden-in-the-query", headers=BEARER)
    assert reply.status == 500
    assert f"{method} /api/ab failed" in caplog.text
    assert "hidden-in-the-query" not in caplog.text
    assert b"hidden-in-the-query" not in reply.body
