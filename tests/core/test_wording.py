"""Questions and numbers in the words that users read."""

from typing import Any

import pytest

import thresher
from thresher.core.sentences import SentenceWording, question_sentence, quoted_name_in_sentence
from thresher.text.quantities import amount_text, percent_text


@pytest.mark.parametrize(
    ("wording", "asks", "bar"),
    [
        (SentenceWording(0.5), "mean", 0.5),
        (SentenceWording(0.5, lower_is_better=True), "mean", 0.5),
        (SentenceWording(0.2, share=0.95), "share", 0.95),
        (SentenceWording(0.2, share=0.95, baseline="old"), "share", 0.95),
        (SentenceWording(0.05, baseline="old"), "difference", 0.05),
        (SentenceWording(0.05, baseline="old", lower_is_better=True), "difference", -0.05),
    ],
)
def test_the_bar_is_on_the_scale_of_what_is_asked_about(wording: SentenceWording, asks: str, bar: float) -> None:
    assert (wording.asks, wording.bar) == (asks, bar)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", "–"),
        (0.0, "s", "0 s"),
        (1.0, "s", "1 s"),
        (0.999, "s", "999 ms"),
        (-0.25, "s", "-250 ms"),
        (0.001, "s", "1 ms"),
        (0.0009999, "s", "999.9 µs"),
        (0.00099996, "s", "1 ms"),
        (0.5, "points", "0.5 points"),
        (123456.0, None, "1.235e+05"),
        (0.12345, None, "0.1235"),
    ],
)
def test_amounts_have_four_digits_and_their_unit(value: float | None, unit: str | None, text: str) -> None:
    assert amount_text(value, unit) == text


def test_estimates_and_intervals_are_shown_as_what_is_asked_about() -> None:
    share, difference = SentenceWording(0.2, share=0.9, unit="s"), SentenceWording(0.0, baseline="old", unit="s")
    assert [share.estimate(value) for value in (0.5, None)] == ["50 %", "–"]
    assert [difference.estimate(value) for value in (0.5, 0.0, -2.0, None)] == ["+500 ms", "0 s", "-2 s", "–"]
    assert share.span(0.25, 0.75) == "25 – 75 %"
    assert SentenceWording(0.5, unit="s").span(0.5, 0.75) == "500 – 750 ms"
    assert SentenceWording(0.5, unit="s").span(0.5, 1.5) == "500 ms – 1.5 s"
    assert [SentenceWording(0.5).span(*ends) for ends in ((None, 1.0), (0.0, None), (0.0, 1.0))] == ["", "", "0 – 1"]
    assert percent_text(2 / 3) == "66.67 %"


def test_medians_are_rewards_or_ratios() -> None:
    assert SentenceWording(0.2, share=0.5, unit="s").value(0.25) == "250 ms"
    ratio = SentenceWording(0.0, share=0.5, baseline="old", ratio=1.1, unit="s")
    assert [ratio.value(value) for value in (0.25, None)] == ["0.25×", "–"]
    assert [SentenceWording(0.2, share=0.75, lower_is_better=lower).quantile() for lower in (True, False)] == [
        "p75",
        "p25",
    ]


@pytest.mark.parametrize(
    ("wording", "words"),
    [
        (SentenceWording(0.9), "reach 0.9"),
        (SentenceWording(0.2, lower_is_better=True, unit="s"), "stay within 200 ms"),
        (SentenceWording(0.0, baseline="old"), "match or beat old"),
        (SentenceWording(0.02, baseline="old one"), "beat 'old one' by 0.02"),
        (SentenceWording(-0.02, baseline="old"), "lose at most 0.02 to old"),
        (
            SentenceWording(0.0, baseline="old", ratio=1.1, lower_is_better=True, share=0.5),
            "are at most 1.1 times old in at least half of the pairs",
        ),
        (SentenceWording(0.9, share=0.95), "reach 0.9 in at least 95 % of pulls"),
        (SentenceWording(0.9, share=0.95, cases=500), "reach 0.9 in at least 95 % of 500 cases"),
        (SentenceWording(0.9, cases=1), "reach 0.9 on 1 case"),
    ],
)
def test_what_is_asked_is_a_sentence(wording: SentenceWording, words: str) -> None:
    assert question_sentence(wording, 1200) == f"Which of 1,200 arms {words}?"
    assert question_sentence(wording._replace(find=2), 5) == f"Which 2 of 5 arms {words}?"
    does, rest = ("Is", words.removeprefix("are ")) if words.startswith("are ") else ("Does", words)
    assert question_sentence(wording, 1) == f"{does} the arm {rest}?"
    assert question_sentence(wording._replace(find=1), 5) == f"{does} any of 5 arms {rest}?"
    assert quoted_name_in_sentence("x" * 41) == "x" * 39 + "…"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"at_least": 0.99995}, "reach 0.99995?"),
        ({"at_least": 12345.6, "bounds": (0, 100_000)}, "reach 12345.6?"),
        ({"at_most": 0.0123456, "share": 0.99999, "unit": "s"}, "within 12.3456 ms in at least 99.999 % of pulls?"),
        ({"baseline": "a", "margin": 0.000012345}, "by 1.2345e-05?"),
        ({"baseline": "a", "ratio": 1.0000001}, "at least 1.0000001 times a in"),
    ],
)
def test_the_question_has_the_bar_as_it_was_given(asked: dict[str, Any], said: str) -> None:
    study = thresher.create_study("s", arms=["a", "b"], **asked)
    assert said in study.verdict().question


def test_the_guarantee_has_the_confidence_as_it_was_given() -> None:
    study = thresher.create_study("s", arms=["a"], at_least=0.5, confidence=0.99999999)
    assert "with a probability of at least 99.999999 %" in study.verdict().guarantee
