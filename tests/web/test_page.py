"""What a person sees: the page in a real browser, of a study that runs in another process."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from browser import HOSTILE, STATE, a_chromium, closed_tabs, entered, hurried, tab, until  # noqa: F401 - fixtures
from running import Served, served

import thresher
from thresher.log.stores import open_store

ARMS = [*(f"prompt {k:02}" for k in range(30)), HOSTILE, "'\"&amp;</td>"]
AGENT = """
import random, sys, time, thresher
study = thresher.open_study("prompts", storage=sys.argv[1])
def evaluate(pull):
    time.sleep(0.1)
    if pull.arm == "prompt 07" and pull.number == 1:
        raise RuntimeError("<b>out of memory</b>")
    return random.Random(pull.seed).random() < 0.35 + 0.02 * study.spec.arms.index(pull.arm)
thresher.run(study, evaluate, workers=4)
"""


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    storage = f"sqlite:///{tmp_path_factory.mktemp('page')}/s.db?durability=normal"
    thresher.create_study("prompts", arms=ARMS, threshold=0.6, budget=200_000, storage=storage)
    for name in ("coins", "dice", "cards"):
        thresher.create_study(name, arms=["fair", "loaded"], threshold=0.5, budget=500, storage=storage)
    return storage


@pytest.fixture(scope="module")
def server(storage: str, chromium: Any) -> Iterator[Served]:
    """It sends news more often than people read, so that tests need not wait."""
    patience = {"feed.PAUSE": 0.15}
    with (
        served(storage, patience=patience) as found,
        subprocess.Popen([sys.executable, "-c", AGENT, storage]) as agent,
    ):
        try:
            yield found
        finally:
            agent.terminate()


def test_the_token_lets_a_browser_in_and_leaves_the_address(chromium: Any, server: Served) -> None:
    page, complaints, _ = tab(chromium)
    page.goto(server.entry)
    assert page.url == f"{server.url}/"
    page.get_by_role("link", name="prompts").click()
    page.wait_for_url("**/study/prompts")
    page.get_by_text("Which of 32 arms reach 0.6?").wait_for()
    assert complaints == []


def test_a_running_study_is_shown_and_updates_without_reload(chromium: Any, server: Served) -> None:
    page, complaints, origins = entered(chromium, server, "/study/prompts")
    page.evaluate("window.mark = 1")
    page.wait_for_selector("#pulse[data-state=live]")
    page.wait_for_selector("#chart-arms .main-svg")
    number = "Number(document.getElementById('f-told').textContent.replaceAll(',', ''))"
    before = page.evaluate(number)
    until(page, f"{number} > {before} + 20")
    page.wait_for_selector("#events li")
    page.get_by_role("cell", name="<b>out of memory</b>").wait_for()  # as text
    assert page.evaluate("window.mark") == 1
    assert origins == {server.url}
    assert complaints == []


def test_nothing_jumps_while_it_updates(chromium: Any, server: Served) -> None:
    page = entered(chromium, server, "/study/prompts").page
    page.wait_for_selector("#chart-arms .main-svg")
    places = "[...document.querySelectorAll('main > *')].slice(0, 8).map((node) => node.getBoundingClientRect().top)"
    before, told = page.evaluate(places), page.locator("#f-told").text_content()
    until(page, f"document.getElementById('f-told').textContent !== '{told}'")
    assert page.evaluate(places) == before


def test_search_and_filter_show_only_matching_arms(chromium: Any, server: Served) -> None:
    page = entered(chromium, server, "/study/prompts").page
    page.wait_for_selector("#rows tr")
    page.get_by_role("searchbox").fill("PROMPT 1")
    until(page, "document.querySelectorAll('#rows tr').length === 10")
    page.get_by_role("searchbox").fill("")
    page.get_by_label("Filter by label").select_option("below")
    until(
        page,
        "(rows => rows.length > 0 && rows.length < 32 && rows.every(row => row.className === 'below'))"
        "([...document.querySelectorAll('#rows tr')])",
    )


def test_an_arm_has_its_own_page(chromium: Any, server: Served) -> None:
    page, complaints, _ = entered(chromium, server, "/study/prompts")
    page.wait_for_selector("#rows tr")
    page.get_by_role("searchbox").fill("prompt 29")
    page.get_by_role("link", name="prompt 29").first.click()
    page.get_by_role("heading", name="prompt 29").wait_for()
    page.wait_for_selector("#chart-rewards .main-svg")
    page.wait_for_selector("#chart-evidence .main-svg")
    page.wait_for_selector("#pulls tr")
    assert complaints == []


def test_the_page_shows_the_servers_sentences(chromium: Any, server: Served) -> None:
    page = entered(chromium, server, "/study/prompts").page
    page.wait_for_selector("#pulse[data-state=live]")
    texts = "['question', 'answer', 'guarantee', 'head'].map((id) => document.getElementById(id).textContent)"
    until(page, f"{texts}.every((text) => text.length > 10)")
    question, answer, guarantee, log = page.evaluate(texts)
    assert question == "Which of 32 arms reach 0.6?"
    counts = r"\d+ do(es)? \(\d+ certified\), \d+ do(es)? not \(\d+ certified\).* after [\d,]+ of 200,000 pulls"
    assert re.fullmatch(rf"{counts}(, \d+ pending)?\.", answer)
    assert "certified" in guarantee
    assert log.startswith("Head of the log: event ")


def test_hostile_names_stay_text(chromium: Any, server: Served) -> None:
    page, complaints, origins = entered(chromium, server, "/study/prompts")
    page.wait_for_selector("#chart-arms .main-svg")
    page.get_by_role("searchbox").fill("onerror")
    page.get_by_role("link", name=HOSTILE).first.click()
    page.get_by_role("heading", name=HOSTILE).wait_for()
    page.wait_for_selector("#chart-rewards .main-svg")
    assert page.locator("main img, main script").count() == 0
    assert (complaints, origins) == ([], {server.url})


def test_a_rebinding_attempt_is_refused(chromium: Any, server: Served) -> None:
    page = tab(chromium).page
    reply = page.goto(server.entry.replace("127.0.0.1", "rebound.example"))
    assert reply.status == 421
    assert not page.context.cookies()


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_it_fits_a_phone_and_follows_the_scheme(chromium: Any, server: Served, width: int, scheme: str) -> None:
    found = entered(chromium, server, "/study/prompts", viewport={"width": width, "height": 800}, color_scheme=scheme)
    found.page.wait_for_selector("#rows tr")
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    ground = found.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(ground[4:].split(",")[0]) < 128) == (scheme == "dark")


def test_it_can_be_used_with_the_keyboard_and_has_names_for_everything(chromium: Any, server: Served) -> None:
    page = entered(chromium, server, "/study/prompts").page
    page.wait_for_selector("#rows tr")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the table of arms"
    page.keyboard.press("Enter")
    page.wait_for_url("**#arms")
    nameless = page.evaluate(
        "[...document.querySelectorAll('input, select, button, progress, a, [role=img], [tabindex]')].filter((node) =>"
        " !node.getAttribute('aria-label') && !node.textContent.trim() && !node.closest('.main-svg')).length"
    )
    assert nameless == 0
    assert page.evaluate("document.documentElement.lang") == "en"


def test_the_interface_is_described(chromium: Any, server: Served) -> None:
    page, complaints, origins = entered(chromium, server, "/docs")
    page.get_by_text("/api/studies/{study}/ask").click()
    page.get_by_text("Repeating an Idempotency-Key").wait_for()
    assert (complaints, origins) == ([], {server.url})


TOLD = "document.getElementById('f-told').textContent"
NOTICE = "document.getElementById('notice').textContent"


def test_open_pages_outlive_their_server_and_continue_with_a_new_session(chromium: Any, storage: str) -> None:
    with served(storage) as first:
        page = entered(chromium, first, "/study/coins").page
        arm = page.context.new_page()
        arm.goto(f"{first.url}/study/coins/arm/fair")
        for each in (page, arm):
            until(each, f"{STATE} === 'live'")
            hurried(each)
        os.kill(first.pid, signal.SIGKILL)
        for each in (page, arm):
            until(each, f"{STATE} === 'lost' && document.getElementById('pulse').textContent.startsWith('lost since ')")
            until(each, f"{NOTICE}.includes('keeps trying')")
    study = thresher.open_study("coins", storage=storage)
    for pull in study.ask_many(2):
        study.tell(pull, 1)
    with served(storage, "--port", first.url.rpartition(":")[2], "--token", "another-token-for-tests") as second:
        for each in (page, arm):
            until(each, f"{NOTICE}.includes('Your session has expired')")
        page.context.new_page().goto(second.entry)  # as the user does, in another tab
        until(page, f"{STATE} === 'live' && document.getElementById('notice').hidden && {TOLD} === '2'")
        until(arm, f"{STATE} === 'live' && document.getElementById('f-seen').textContent === '1'")
        for each in page.context.pages:
            each.close()  # the server need not wait for them


def test_a_page_says_that_there_is_no_reward_yet_and_that_its_study_was_deleted(
    chromium: Any, server: Served, storage: str
) -> None:
    page, complaints, _ = entered(chromium, server, "/study/dice")
    page.get_by_text("No reward has come back yet.").wait_for()
    page.get_by_text("0 do (0 certified), 0 do not (0 certified), 2 undecided").first.wait_for()
    until(page, f"{STATE} === 'live'")
    assert complaints == []
    open_store(storage).delete("dice")
    until(page, f"{NOTICE}.includes('was deleted')")
    assert "Which of 2 arms" in page.locator("h1").text_content()
    reply = page.goto(f"{server.url}/study/dice")
    assert reply.status == 404
    page.get_by_text("is not in this store").wait_for()


def test_answers_that_fail_are_asked_for_again(chromium: Any, server: Served) -> None:
    page = entered(chromium, server, "/").page
    failing = [503, 0]  # refused, and no answer at all

    def fail(route: Any) -> None:
        status = failing.pop(0)
        if status:
            route.fulfill(status=status, body="<p>a proxy's page</p>")
        else:
            route.abort()

    page.route("**/api/studies/cards/arms", fail, times=2)
    page.goto(f"{server.url}/study/cards")
    until(page, f"{STATE} === 'live' && document.querySelectorAll('#rows tr').length === 2")
    assert failing == []
    assert page.locator("#notice").is_hidden()


def test_rows_stay_where_they_are_while_one_is_focused(chromium: Any, server: Served) -> None:
    page = entered(chromium, server, "/study/prompts").page
    page.wait_for_selector("#rows tr")
    hurried(page)  # it draws rows after every change
    page.locator("#rows a").nth(5).focus()
    names = "[...document.querySelectorAll('#rows a')].map((link) => link.textContent).join()"
    before, told = page.evaluate(names), page.evaluate(TOLD)
    page.evaluate("window.row = document.activeElement")
    until(page, f"{TOLD} !== '{told}'")
    drawn = page.evaluate("performance.getEntriesByName('change').length")
    until(page, f"performance.getEntriesByName('change').length > {drawn} + 5")
    assert page.evaluate(names) == before
    assert page.evaluate("document.activeElement === window.row")


def test_screen_readers_are_not_told_every_number(chromium: Any, server: Served) -> None:
    page = entered(chromium, server, "/study/prompts").page
    until(page, f"{STATE} === 'live'")
    page.evaluate(
        "window.said = 0; new MutationObserver((found) => { window.said += found.length; })"
        ".observe(document.getElementById('spoken'), { childList: true, characterData: true, subtree: true })"
    )
    changes = "performance.getEntriesByName('change').length"
    before = page.evaluate(changes)
    until(page, f"{changes} > {before} + 5")
    assert page.evaluate("window.said") <= 2  # a sentence replaces the one before
    assert page.locator("main [aria-live]").count() == 0
