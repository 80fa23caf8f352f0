"""No access without a token: every method and path, with every kind of wrong request."""

import logging

import pytest
from asgi import BEARER, HOST, READER, TOKEN, WRITE_TOKEN, Reply, an_app, request, server  # noqa: F401 - the fixture

from thresher.errors import InvalidInput
from thresher.log.store import MemoryStore
from thresher.web import server as web_server
from thresher.web.request_checks import CheckedApp, RequestAccess

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
KNOCKS = {  # the headers and the host of a request, and the statuses that it may get
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


@pytest.mark.parametrize("knock", KNOCKS)
@pytest.mark.parametrize("method", METHODS)
def test_requests_without_access_are_refused_whatever_their_method_and_path(
    app: CheckedApp, method: str, knock: str
) -> None:
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
def test_health_is_open_but_not_to_other_names(app: CheckedApp, knock: str) -> None:
    headers, host, statuses = KNOCKS[knock]
    assert request(app, "GET", "/healthz").data == {"ok": True}
    assert request(app, "GET", "/healthz", headers=headers, host=host).status in statuses


@pytest.mark.parametrize("path", ["/x/../api/studies", "//api//studies", "/./api/%73tudies", "/../../api/studies/"])
def test_a_path_means_the_same_however_it_is_written(app: CheckedApp, path: str) -> None:
    assert request(app, "GET", path, headers=BEARER).data == {"format": 1, "studies": ["coins"]}


def test_a_caller_refused_by_the_checks_is_disconnected(app: CheckedApp) -> None:
    wrong = {"authorization": "Bearer wrong"}
    replies = {
        401: request(app, "GET", "/api/studies"),
        403: request(app, "POST", "/api/studies", headers=READER),
        421: request(app, "GET", "/api/studies", headers=BEARER, host="evil.example"),
        429: [request(app, "GET", "/", headers=wrong, client="10.1.1.1") for _ in range(20)][-1],
    }
    assert {status: reply.status for status, reply in replies.items()} == {status: status for status in replies}
    assert {reply.headers.get("connection") for reply in replies.values()} == {"close"}
    other = request(app, "POST", "/api/studies", headers={**BEARER, "origin": "http://evil.example"})
    assert (other.status, other.headers["connection"]) == (403, "close")
    assert "connection" not in request(app, "GET", "/api/nothing", headers=BEARER).headers


def test_a_redirect_never_leads_to_another_host(app: CheckedApp) -> None:
    for path in ["//evil.example/", "/%2F/evil.example", "/\\evil.example", "/x/..//evil.example"]:
        where = request(app, "GET", f"{path}?token={TOKEN}").headers["location"]
        assert where.startswith("/")
        assert not where.startswith(("//", "/\\"))


def test_a_token_in_the_address_does_not_allow_writing(app: CheckedApp) -> None:
    assert request(app, "POST", f"/api/studies/coins/ask?token={WRITE_TOKEN}").status == 401


def test_its_own_pages_may_call_it(app: CheckedApp) -> None:
    reply = request(app, "POST", "/api/studies/coins/ask", headers={**BEARER, "origin": f"http://{HOST}"})
    assert reply.status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "BREW"])
def test_without_write_nothing_can_be_changed(method: str) -> None:
    reply = request(server(write=False), method, "/api/studies", headers=READER, json_body={})
    assert (reply.status, reply.data["remedy"]) == (403, "start it with --write")


@pytest.mark.parametrize("path", ["/healthz", "/", "/api/studies", "/nothing", "/static/style.css", "/docs"])
def test_every_reply_carries_security_headers(app: CheckedApp, path: str) -> None:
    headers = request(app, "GET", path, headers=BEARER).headers
    policy = headers["content-security-policy"]
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert scripts == "script-src 'self'"
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_an_internal_error_is_one_sentence(
    app: CheckedApp, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(MemoryStore):
        def studies(self) -> list[str]:
            raise RuntimeError("secret detail")

    with caplog.at_level(logging.ERROR, "thresher"):
        reply = request(server(Broken()), "GET", "/api/studies", headers=BEARER)
    assert reply.status == 500
    assert reply.data["rule"] == "something went wrong"
    assert b"secret" not in reply.body
    assert "secret detail" in caplog.text
    assert TOKEN not in caplog.text


def test_a_browser_gets_an_error_page(app: CheckedApp) -> None:
    reply = request(app, "GET", "/", headers={"accept": "text/html"})
    assert reply.status == 401
    assert reply.headers["content-type"].startswith("text/html")
    assert b"thresher serve printed" in reply.body


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "0", "0x0", "::ffff:0.0.0.0"])
def test_every_way_to_write_all_addresses_needs_a_name(host: str) -> None:
    with pytest.raises(InvalidInput, match=r"--allow-host|this machine knows"):
        web_server.run_server(MemoryStore(), web_server.Options(host=host), lambda _: None)


@pytest.mark.parametrize("token", ["", "short", "with space in it", 'quote"quote"', "line\nline-line"])
def test_a_token_with_unsafe_characters_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        web_server.server_token(token)
    assert token == "" or token not in str(caught.value)


def test_tokens_are_new_at_every_start() -> None:
    assert web_server.server_token(None) != web_server.server_token(None)
    assert len(web_server.server_token(None)) >= 32


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_an_error_is_logged_without_the_query(method: str, caplog: pytest.LogCaptureFixture) -> None:
    async def broken(scope: object, receive: object, send: object) -> None:
        raise RuntimeError("it broke")

    app = CheckedApp(broken, RequestAccess(TOKEN, {HOST}, WRITE_TOKEN))
    with caplog.at_level(logging.DEBUG):
        reply = request(app, method, "/api/ab?key=hidden-in-the-query", headers=BEARER)
    assert reply.status == 500
    assert f"{method} /api/ab failed" in caplog.text
    assert "hidden-in-the-query" not in caplog.text
    assert b"hidden-in-the-query" not in reply.body
