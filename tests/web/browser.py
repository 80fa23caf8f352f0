"""A real browser: Debian's chromium, driven by Playwright."""

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

ARGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
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
