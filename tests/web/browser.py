"""A real browser, chromium with Playwright, and a site that the tests of the page share."""

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from running import Served, served

import thresher
from thresher.log.store import open_store
from thresher.web.assets import PLOTLY
from thresher.web.pages import SCRIPT
from thresher.web.report import report

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
    "--renderer-process-limit=1",  # pages share one process, which compiled the charts' large library
]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def why_not() -> str | None:
    """Why there is no browser here, or None if there is one."""
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
    """A fresh profile with one page, and a record of its complaints and requests."""
    page = chromium.new_context(**options).new_page()
    page.set_default_timeout(90_000)  # a busy machine is slow, not wrong
    opened = Tab(page, [], set())
    page.on("console", lambda line: opened.complaints.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    page.on("request", lambda request: opened.origins.add("/".join(request.url.split("/")[:3])))
    page.on("dialog", lambda dialog: opened.complaints.append(f"dialog {dialog.message}"))
    return opened


HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>"
STATE = "document.getElementById('pulse').dataset.state"
DESK = {"width": 1280, "height": 720}


class Site(NamedTuple):
    """A browser and a server for all tests of the page in a process: fixture ``site``.

    Each file adds its studies to the store, under names of its own. Tests share one page, which takes a fifth of the
    time once its process has compiled the charts' library; a page of another server would compile it again.
    """

    chromium: Any
    server: Served
    storage: str
    tab: Tab
    made: set[Callable[[str], None]]

    def once(self, make: Callable[[str], None]) -> None:
        """Make studies in the store, unless they are already there."""
        if make not in self.made:
            make(self.storage)
            self.made.add(make)

    def open(self, path: str, **options: Any) -> Tab:
        """Load a page in a window of a desktop's size, and forget complaints about earlier pages."""
        self.tab.complaints.clear()
        self.tab.origins.clear()
        self._looks(**options)
        self.tab.page.goto(self.server.url + path)
        return self.tab

    def at(self, path: str, **options: Any) -> Tab:
        """A page as earlier tests left it, for tests that need no fresh page and leave it usable."""
        if self.tab.page.url.partition("#")[0] != self.server.url + path:
            return self.open(path, **options)
        self._looks(**options)
        return self.tab

    def read(self, study: thresher.Study, **options: Any) -> Tab:
        """Load the report of a study, as if the server had it.

        It links to the library of the charts, which the page has compiled before; `test_page_offline` reads one that
        includes it.
        """
        before, start, script = report(study).partition(f"<script>{PLOTLY.read_text(encoding='utf-8')[:100]}")
        _, end, after = script.partition("</script>")
        assert start
        assert end
        text = f"{before}<script src='{SCRIPT}'>{end}{after}"
        self.tab.page.route("**/report.html", lambda route: route.fulfill(body=text, content_type="text/html"), times=1)
        return self.open("/report.html", **options)

    def _looks(self, *, viewport: Any = None, color_scheme: str = "light") -> None:
        if self.tab.page.viewport_size != (viewport or DESK):
            self.tab.page.set_viewport_size(viewport or DESK)
        self.tab.page.emulate_media(color_scheme=color_scheme, reduced_motion="reduce")


@contextlib.contextmanager
def shared_site() -> Iterator[Site]:
    """The server sends news more often than people read, so that tests need not wait."""
    with (
        tempfile.TemporaryDirectory(prefix="thresher-page-") as folder,
        browser("--host-resolver-rules=MAP rebound.example 127.0.0.1") as chromium,
    ):
        storage = f"sqlite:///{folder}/s.db?durability=normal"
        open_store(storage).close()
        with served(storage, patience={"event_stream.PAUSE": 0.15}) as server:
            site = Site(chromium, server, storage, tab(chromium), set())
            assert site.tab.page.context.request.get(server.entry).ok
            yield site
            site.tab.page.context.close()  # the server need not wait for it


def hurry(page: Any) -> None:
    """Shorten the pauses of the open document: it retries and rereads ten times as often."""
    page.evaluate(
        "() => { window.patient = window.setTimeout;"
        " window.setTimeout = (act, pause = 0, ...more) => window.patient(act, pause / 10, ...more); }"
    )


@contextlib.contextmanager
def hurried(page: Any) -> Iterator[None]:
    hurry(page)
    yield
    page.evaluate("() => { window.setTimeout = window.patient; }")


def until(page: Any, expression: str) -> None:
    """Wait until the expression is true. The policy forbids Playwright's own waiting, which evaluates strings."""
    wait = """() => new Promise((resolve) => {
      const [pause, end] = [window.patient ?? window.setTimeout, performance.now() + 90_000];
      const look = () => {
        const came = EXPRESSION;
        if (came || performance.now() > end) resolve(Boolean(came));
        else pause(look, 20);
      };
      look();
    })"""
    assert page.evaluate(wait.replace("EXPRESSION", expression)), f"never came: {expression}"
