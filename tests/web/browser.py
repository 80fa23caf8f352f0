"""A real browser: Debian's chromium, driven by Playwright."""

import contextlib
import shutil
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from running import Served

import thresher
from thresher.web.charts import plotly_script
from thresher.web.pages import PLOTLY
from thresher.web.standalone import report

ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--in-process-gpu",
    "--renderer-process-limit=1",  # pages of a profile share what one process compiled: the charts' library is large
]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def why_not() -> str | None:
    """Why there is no browser here; None: there is one."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed: the dev extra brings it"
    return None if CHROMIUM else "there is no chromium here: apt-get install chromium"


class Tab(NamedTuple):
    page: Any
    complaints: list[str]  # of the console, and of scripts that failed
    origins: set[str]  # of all requests


@contextlib.contextmanager
def browser(*more: str) -> Iterator[Any]:
    reason = why_not()
    if reason:
        pytest.skip(reason)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=[*ARGS, *more])
        try:
            yield chromium
        finally:
            chromium.close()


def tab(chromium: Any, **options: Any) -> Tab:
    """A fresh profile with one page, and what happens in it."""
    page = chromium.new_context(**options).new_page()
    page.set_default_timeout(90_000)  # a busy machine is slow, not wrong
    found = Tab(page, [], set())
    page.on("console", lambda line: found.complaints.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found.complaints.append(str(error)))
    page.on("request", lambda request: found.origins.add("/".join(request.url.split("/")[:3])))
    page.on("dialog", lambda dialog: found.complaints.append(f"dialog {dialog.message}"))
    return found


# -- what the tests of the page share

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
STATE = "document.getElementById('pulse').dataset.state"


class Profile(NamedTuple):
    """A profile whose first page stays open, because its process has compiled the scripts."""

    tab: Tab
    still: str  # the address of something that draws nothing

    def opened(self, address: str, *, viewport: Any = None, color_scheme: str = "light") -> Tab:
        self.tab.page.set_viewport_size(viewport or {"width": 1280, "height": 720})
        self.tab.page.emulate_media(color_scheme=color_scheme)
        self.tab.complaints.clear()
        self.tab.origins.clear()
        self.tab.page.goto(address)
        return self.tab

    def rests(self) -> bool:
        """Close the other pages; false if the server has ended."""
        from playwright.sync_api import Error

        for page in self.tab.page.context.pages[1:]:
            page.close()
        try:
            self.tab.page.goto(self.still)
        except Error:
            return False
        return True


PROFILES: dict[Served, Profile] = {}  # by server; they end with the browser


@pytest.fixture(name="chromium", scope="module")
def a_chromium() -> Iterator[Any]:
    with browser("--host-resolver-rules=MAP rebound.example 127.0.0.1") as found:
        yield found
        PROFILES.clear()


@pytest.fixture(autouse=True)
def closed_tabs(chromium: Any) -> Iterator[None]:
    """A page that stays open draws a running study for as long as the other tests last."""
    yield
    kept = {profile.tab.page.context: server for server, profile in PROFILES.items()}
    for context in chromium.contexts:
        if context not in kept:
            context.close()
        elif not PROFILES[kept[context]].rests():
            context.close()
            del PROFILES[kept[context]]


def entered(chromium: Any, server: Served, path: str, **options: Any) -> Tab:
    """The page of the profile that has the server's session.

    Tests share that page, one after the other: it takes a fifth of the time if it has compiled its scripts before.
    """
    if server not in PROFILES:
        PROFILES[server] = Profile(tab(chromium), f"{server.url}/static/icon.svg")
        assert PROFILES[server].tab.page.context.request.get(server.entry).ok
    return PROFILES[server].opened(server.url + path, **options)


def read(chromium: Any, server: Served, study: thresher.Study, **options: Any) -> Tab:
    """The report of a study, as if the server had it.

    It links to the library of the charts, which the page has compiled before; `test_report` reads one that includes it.
    """
    before, start, script = report(study).partition(f"<script>{plotly_script().read_text(encoding='utf-8')[:100]}")
    _, end, after = script.partition("</script>")
    assert start
    assert end
    found = entered(chromium, server, "/static/icon.svg", **options)
    text = f"{before}<script src='{PLOTLY}'>{end}{after}"
    found.page.route("**/report.html", lambda route: route.fulfill(body=text, content_type="text/html"), times=1)
    found.page.goto(f"{server.url}/report.html")
    return found


def hurried(page: Any) -> None:
    """Shorten the pauses of the document that is open now: it tries again and reads again ten times as often."""
    page.evaluate(
        "(() => { const wait = window.setTimeout;"
        " window.setTimeout = (act, pause = 0, ...more) => wait(act, pause / 10, ...more); })()"
    )


def until(page: Any, expression: str) -> None:
    """Wait until it holds. Playwright's own waiting evaluates strings in the page, which its policy forbids."""
    end = time.monotonic() + 90
    while not page.evaluate(expression):
        assert time.monotonic() < end, f"never came: {expression}"
        page.wait_for_timeout(20)
