"""Masking takes time in proportion to a text, whatever it holds."""

import time
from collections.abc import Callable

import pytest

from thresher.text.masking import masked, masked_words

LONG = 40_000  # characters
JUNK = [
    *("x", "x:", "://", "postgresql://me:", "http://a:b@", "http://a:1/", "p='", "a= ", "\\", "-", "a.", "日"),
    *("password=", "password='", 'password="', "password=''", "'password=x ", "&password=a", "x\\'password='"),
    *("token=\\'", "token=\\\\'\\", "token=)", "--password ", "'--password', '", "Bearer ", "Cookie:", "secret: ["),
    *("-----BEGIN PRIVATE KEY-----", "sk-", "ghp_a", "eyJ.", "?signature", "&a-", "\n", "password=\n", "aB"),
]


def is_quick(work: Callable[[], object], seconds: float) -> bool:
    """Whether one of three tries is: the collector of garbage may take part in any."""

    def tried() -> float:
        began = time.thread_time()
        work()
        return time.thread_time() - began

    return any(tried() < seconds for _ in range(3))


@pytest.mark.parametrize("text", JUNK)
def test_a_large_text_of_anything_is_masked_at_once(text: str) -> None:
    """It takes less than 0.1 s; in time that grows with its square, it would take longer than this."""
    long = text * (LONG // len(text))
    assert is_quick(lambda: masked(long), 0.5)
    assert is_quick(lambda: masked_words(long.split(" ")), 0.5)


def test_an_ordinary_line_is_masked_in_a_tenth_of_a_millisecond() -> None:
    line = "2026-11-17 02:41:12 INFO case=17 reward=0.75 latency: 1.2s url=https://host:8080/v1?model=x tokens=512 "
    line = f"{line:x<200}"
    masked(line)
    best = min(_seconds(line) for _ in range(20))
    assert best < 3e-4  # about 50 µs; machines that run tests are slow and busy


def _seconds(line: str) -> float:
    began = time.process_time()
    for _ in range(50):
        masked(line)
    return (time.process_time() - began) / 50
