"""Two tokens and their sessions: what they allow, for how long, and that nobody else can make one."""

import time

import pytest
from asgi import BEARER, READER, TOKEN, WRITE_TOKEN, request, server

from thresher import create_study
from thresher.log.store import MemoryStore
from thresher.web.request_checks import CheckedApp


@pytest.fixture(scope="module")
def app() -> CheckedApp:
    store = MemoryStore()
    create_study("coins", arms=["a", "b"], at_least=0.5, budget=20, storage=store)
    return server(store)


def session(app: CheckedApp, token: str = TOKEN) -> str:
    """The cookie that a browser gets for a token."""
    return request(app, "GET", f"/?token={token}").headers["set-cookie"].partition(";")[0].partition("=")[2]


def test_the_token_in_the_address_becomes_a_session_and_leaves_the_address(app: CheckedApp) -> None:
    reply = request(app, "GET", f"/study/coins?a=1&token={TOKEN}")
    assert (reply.status, reply.headers["location"], reply.body) == (303, "/study/coins?a=1", b"")
    cookie = reply.headers["set-cookie"]
    assert TOKEN not in cookie
    assert {"HttpOnly", "SameSite=Strict", "Max-Age=43200"} <= set(cookie.split("; "))
    assert "Secure" not in cookie  # it would not come back without TLS
    assert request(app, "GET", "/api/studies", headers={"cookie": f"a=b; {cookie.split(';')[0]}"}).status == 200


@pytest.mark.parametrize(
    "cookie",
    [
        "thresher=old; thresher={}",
        "thresher={}; thresher=old",
        "no cookie at all; thresher={}",
        "x=\xff\xfe; ;;=; (a:[1])=b; thresher={}",
        'q="a;b"; thresher="{}"',
    ],
)
def test_odd_cookies_of_other_programs_do_no_harm(app: CheckedApp, cookie: str) -> None:
    cookies = cookie.format(session(app))
    assert request(app, "GET", "/api/studies", headers={"cookie": cookies}).status == 200


@pytest.mark.parametrize(
    "cookie", ["", ";", "=", "thresher", "thresher=", "thresher=\xe9", "Thresher={}", "thresher=..."]
)
def test_a_cookie_that_is_not_a_session_is_refused(app: CheckedApp, cookie: str) -> None:
    cookies = cookie.format(session(app))
    assert request(app, "GET", "/api/studies", headers={"cookie": cookies}).status == 401


def test_a_session_cannot_be_made_or_changed_by_others(app: CheckedApp, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = session(app)
    role, end, rest = mine.split(".", 2)
    forged = [mine.replace("read", "write", 1), f"{role}.{int(end) + 1}.{rest}", mine[:-1], f"{mine}0", mine + "\xe9"]
    for cookie in [*forged, session(server())]:  # the last one is another server's
        assert request(app, "GET", "/api/studies", headers={"cookie": f"thresher={cookie}"}).status == 401, cookie
    now = time.time()
    for hours, status in ((11.9, 200), (12.1, 401)):
        monkeypatch.setattr("thresher.web.request_checks.time.time", lambda hours=hours: now + 3600 * hours)
        assert request(app, "GET", "/api/studies", headers={"cookie": f"thresher={mine}"}).status == status


def test_a_token_that_reads_cannot_write(app: CheckedApp) -> None:
    reading = [READER, {"cookie": f"thresher={session(app)}"}]
    for headers in reading:
        reply = request(app, "POST", "/api/studies/coins/ask", headers=headers)
        assert (reply.status, "may only read" in reply.data["rule"]) == (403, True)
        assert request(app, "GET", "/api/studies", headers=headers).status == 200
    for headers in [BEARER, {"cookie": f"thresher={session(app, WRITE_TOKEN)}"}]:
        assert request(app, "POST", "/api/studies/coins/ask", headers=headers).status == 200


def test_two_different_tokens_in_one_address_are_refused() -> None:
    assert request(server(), "GET", f"/?token={TOKEN}&token={WRITE_TOKEN}").status == 401


def test_wrong_tokens_are_throttled_per_address_and_right_ones_are_not() -> None:
    app = server()
    wrong = {"authorization": "Bearer wrong-wrong"}
    statuses = [request(app, "GET", "/api/studies", headers=wrong).status for _ in range(12)]
    assert statuses == [401] * 10 + [429] * 2
    reply = request(app, "GET", "/?token=wrong-wrong")
    assert (reply.status, 1 <= int(reply.headers["retry-after"]) <= 60) == (429, True)
    assert request(app, "GET", "/api/studies", headers=wrong, client="10.0.0.9").status == 401
    assert request(app, "GET", "/api/studies", headers=READER).status == 200
    assert request(app, "GET", "/api/studies").status == 401  # a missing token is not a wrong one
    assert request(app, "GET", "/healthz").status == 200


def test_a_wrong_token_in_the_address_is_refused_even_with_the_right_cookie() -> None:
    app = server()
    assert request(app, "GET", "/?token=wrong", headers={"cookie": f"thresher={session(app)}"}).status == 401
