"""Evaluators that always fail, and runs that they end."""

from collections.abc import Callable
from typing import Any

import pytest
from engines import causes

import thresher

ARMS = tuple("abcdefgh")


def wrong_key(pull: thresher.Pull) -> object:
    return {"width": 1}["depth"]


def ended(study: thresher.Study, evaluate: Callable[..., object], **options: Any) -> thresher.CannotGoOn:
    """The error of a run that ended early; checks that it did not wait, as in an outage, and retired no arm."""
    with pytest.raises(thresher.CannotGoOn) as caught:  # which is not: every evaluation failed for so long
        thresher.run(study, evaluate, **options)
    assert "every evaluation failed for" not in str(caught.value)
    assert study.verdict().retired == []
    assert study.verdict().pending == 0
    assert set(causes(study)) <= {"outage", "lost", "cancelled"}
    return caught.value
