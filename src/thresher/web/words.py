"""Sentences of the page. The browser writes the same ones when numbers change; the first one comes with the page."""

from collections.abc import Mapping
from typing import Any

from ..core.spec import Spec


def question(spec: Spec) -> str:
    """What a study asks, in a sentence."""
    return f"Which of {len(spec.arms):,} arms reach {spec.threshold:g}?"


def answered(head: Mapping[str, Any]) -> str:
    """The answer so far, in a sentence.

    >>> labels, certified = {"above": 2, "below": 1, "close": 0, "undecided": 0, "retired": 0}, {"above": 1}
    >>> answered({"labels": labels, "certified": certified, "confidence": 0.95, "open": 2})
    '2 above, 1 below; 1 certified, 2 still open.'
    """
    counts = [f"{count:,} {label}" for label, count in head["labels"].items() if count or label in ("above", "below")]
    sure = sum(head["certified"].values())
    tail = f"; {sure:,} certified, {head['open']:,} still open" if head["confidence"] is not None else ""
    return f"{', '.join(counts)}{tail}."
