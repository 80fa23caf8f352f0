"""Studies with long names and every kind of row, and checks for text that a page cuts off or breaks badly."""

import random
import time
from typing import Any
from urllib.parse import quote

import thresher

PHONE = {"width": 360, "height": 740}
NIGHTLY = "nightly-flaky-tests-of-the-payments-service-on-the-main-branch"
IDS = [
    f"tests/unit/test_payments.py::TestRefund::test_partial_refund_is_idempotent[{currency}-{card}-{number}]"
    for currency in ("eur", "usd")
    for card in ("visa", "amex")
    for number in (41, 42, 43)
]
PROMPTS = [f"prompt-{number:02}" for number in range(12)]
KINDS = ["terse", "polite", "chain-of-thought", "few-shot-with-examples", "json-only"]
KINDS += ["self-critique", "tool-use", "plan-then-act", "role-play", "baseline"]
MODELS = [
    f"large-model-temperature-{heat}/system-prompt-{kind}" for heat in ("0.0", "0.3", "0.7", "1.0") for kind in KINDS
]
CASES = [f"legal/contracts/nda-{number:03}/question-about-termination-{number}" for number in range(200)]
UNBROKEN = ["x" * 120, "y" * 120, "日本語の名前" * 12]  # nowhere to break, or any
BROKE = "RuntimeError: /srv/releases/2026-11-17/lib/python3.11/site-packages/payments/gateway.py timed out"


def make(storage: str) -> None:
    """Certified, open, retired and failed arms, pending pulls, an eval set, and names without a separator."""
    for name, arms in (("prompts", PROMPTS), (NIGHTLY, IDS)):
        _mixed(thresher.create_study(name, arms=arms, at_least=0.6, tolerance=0.1, budget=9_000, storage=storage))
    evals = thresher.create_study("evals", arms=MODELS, at_least=0.7, cases=CASES, storage=storage)
    some = [(arm, model, CASES[: (200, 100, 20)[arm % 3]]) for arm, model in enumerate(MODELS[:-2])]
    evals.add_many(
        [(model, (arm * 7 + index * 13) % 97 / 96, case) for arm, model, of in some for index, case in enumerate(of)]
    )
    evals.ask_many(4)
    odd = thresher.create_study("unbroken", arms=UNBROKEN, at_least=-1.234e-10, bounds=(-1, 1), storage=storage)
    odd.add_many([(UNBROKEN[0], -1.2345e-10), (UNBROKEN[1], -1.2345e-7)])


def _mixed(study: thresher.Study) -> None:
    arms, draw = study.spec.arms, random.Random(1)
    means = [0.95, 0.1, 0.6, 0.66, 0.3, 0.7, 0.05, 0.99, 0.5, 0.55, 0.9]
    counts = [120, 120, 1500, 60, 6, 80, 120, 120, 25, 40, 120]
    rows = zip(arms, means, counts, strict=False)  # the last arm has no reward
    study.add_many([(arm, draw.random() < mean) for arm, mean, count in rows for _ in range(count)])
    for pull in study.ask_many(6):
        study.drop(pull, reason=BROKE, cause="failed")
    study.retire(arms[9], reason=f"failed 3 times in a row: {BROKE}")
    study.ask_many(8)
    verdict = study.verdict()
    assert {row.standing for row in verdict} == {"reaches", "misses", "open", "retired"}


def path(study: str, arm: str | None = None) -> str:
    return f"/study/{quote(study, safe='')}" + ("" if arm is None else f"/arm/{quote(arm, safe='')}")


SEEN = """
const seen = (root, what) => [...root.querySelectorAll(what)].filter((node) =>
  node.getClientRects().length && !node.closest('.main-svg, .hidden, .skip, thead, svg'));
// the lines of a text as the browser breaks it
const lines = (node) => {
  const [found, walker] = [[], document.createTreeWalker(node, NodeFilter.SHOW_TEXT)];
  let last = null;
  while (walker.nextNode()) for (let at = 0; at < walker.currentNode.length; at += 1) {
    const range = document.createRange();
    range.setStart(walker.currentNode, at);
    range.setEnd(walker.currentNode, at + 1);
    const box = range.getClientRects()[0];
    if (!box || !box.width) continue;
    if (last === null || Math.abs(box.bottom - last) > 6) found.push('');
    last = box.bottom;
    found[found.length - 1] += range.toString();
  }
  return found;
};
"""
CUT = """() => {%s
  const width = document.documentElement.clientWidth;
  const wide = seen(document, 'header, header *, main, main *').filter((node) => {
    const box = node.getBoundingClientRect();
    const inner = getComputedStyle(node).display !== 'inline' && node.scrollWidth > node.clientWidth;
    return inner || box.left < 0 || box.right > width;
  });
  const cut = seen(document, 'header *, main *').filter((node) => getComputedStyle(node).textOverflow === 'ellipsis');
  const page = document.documentElement.scrollWidth > width ? ['the page'] : [];
  const named = (node) => `${node.tagName}.${node.className} ${node.textContent.slice(0, 60)}`;
  return [...page, ...[...wide, ...cut].map(named)];
}"""
BROKEN = """() => {%s
  const names = seen(document, 'h1, h2, .here, .name, .reward, .events span').map(lines);
  const numbers = seen(document, '.sign, .key, td[data-head]:not(.wrap), td.n, time').map(lines);
  const torn = names.filter((found) => found.slice(0, -1).some((line) => line.trim().length < 4));
  return [...torn, ...numbers.filter((found) => found.length > 1)];
}"""
ROWS = """(rows) => {%s
  return [...document.querySelectorAll(rows)].map((row) => {
    const inside = (node) => {
      const box = node.getBoundingClientRect();
      return box.left >= 0 && box.right <= innerWidth && box.width > 0;
    };
    const [name, answer, mean] = ['.name', '.standing', '.key'].map((part) => row.querySelector(part));
    return [name.textContent, answer.textContent.trim(), mean.textContent, [name, answer, mean].every(inside)];
  });
}"""


def cut(page: Any) -> list[str]:
    """The elements that are wider than their box or the page. Charts take a moment to follow a change of the width."""
    end = time.monotonic() + 20
    while cut := page.evaluate(CUT % SEEN):
        if time.monotonic() > end:
            break
        page.wait_for_timeout(100)
    return list(cut)


def broken(page: Any) -> list[list[str]]:
    """Names with a short line that is not the last, and numbers and answers on two lines."""
    broken: list[list[str]] = page.evaluate(BROKEN % SEEN)
    return broken


def rows(page: Any, selector: str) -> list[tuple[str, str, str, bool]]:
    """Name, answer and mean of each row, and whether all are within the screen."""
    return [tuple(row) for row in page.evaluate(ROWS % SEEN, selector)]
