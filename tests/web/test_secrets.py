"""The server's replies and its log contain no secrets."""

import subprocess
import sys

import pytest

from thresher.errors import InvalidInput, UnknownStudy
from thresher.web.refusals import refusal_of, refusal_reply

WORD = "hunter2"


@pytest.mark.parametrize("accept", [b"text/html", b"application/json"])
@pytest.mark.parametrize(
    "error",
    [
        UnknownStudy("study", f"postgresql://me:a@{WORD}@host", "is not in this store"),
        InvalidInput("reason", "x" * 180 + f" token={WORD}", "must be shorter"),
        InvalidInput("file", None, f"cannot be read (password={WORD})", f"try --api-key {WORD}"),
        InvalidInput("params", {"api_key": WORD}, "must be plain JSON"),
    ],
    ids=lambda error: error.what,
)
def test_a_reply_contains_no_secret(error: InvalidInput, accept: bytes) -> None:
    refused = refusal_reply(refusal_of(error), {"headers": [(b"accept", accept)], "method": "GET"})
    assert WORD.encode() not in refused.body


def test_a_server_that_fails_logs_no_secret() -> None:
    program = f"""
import logging, thresher.web.request_checks as checks
logging.basicConfig()
try:
    raise ValueError("password={WORD}")
except ValueError:
    checks.log.exception("GET /token={WORD} failed")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "ValueError: password=***" in done.stderr
    assert WORD not in done.stderr
