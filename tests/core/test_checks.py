"""What is accepted and what is refused at the boundary: each limit, and the first value beyond it."""

import math
from typing import Any

import numpy
import pytest

from thresher.core import checks
from thresher.core.events import LAST, event_date
from thresher.core.sentences import short_in_sentence
from thresher.errors import InvalidInput


def refused(check: Any, value: object, words: str, **given: Any) -> None:
    with pytest.raises(InvalidInput, match=words):
        check("it", value, **given)


def test_names_are_printable_text_of_up_to_1000_characters() -> None:
    assert checks.checked_name("arm", "x" * 1000) == "x" * 1000
    refused(
        checks.checked_name, "x" * 1001, "must not be longer than 1000 characters; put the long text into a parameter"
    )
    refused(checks.checked_name, " ", "must not be empty; give it a name")
    refused(checks.checked_name, 5, "must be a string")
    refused(checks.checked_name, "a\nb", "must be printable, on one line; put the text into a parameter")
    assert checks.checked_text("note", "a\nb") == "a\nb"
    refused(checks.checked_text, 5, "must be a string")


def test_whole_numbers_lie_between_their_limits() -> None:
    assert [checks.checked_whole("it", value, least=2, most=4) for value in (2, 3, 4)] == [2, 3, 4]
    refused(checks.checked_whole, 1, "must be a whole number of at least 2", least=2)
    refused(checks.checked_whole, 5, "must be a whole number of at most 4", least=2, most=4)
    assert checks.checked_whole("it", 2**63 - 1, least=0) == 2**63 - 1
    refused(checks.checked_whole, 2**63, "must be a whole number of at most 9,223,372,036,854,775,807", least=0)
    assert [checks.checked_whole("it", numpy.int64(value), least=2, most=4) for value in (2, 4)] == [2, 4]
    assert type(checks.checked_whole("it", numpy.int64(2), least=2)) is int
    refused(checks.checked_whole, numpy.int64(5), "must be a whole number of at most 4", least=2, most=4)
    for value in (True, 2.0, "3", None):
        refused(checks.checked_whole, value, "must be a whole number of at least 0; count", least=0, remedy="count")


def test_numbers_lie_between_their_limits_and_are_finite() -> None:
    assert [checks.checked_number("it", value, 0, 1) for value in (0, 0.5, 1)] == [0.0, 0.5, 1.0]
    for value in (-0.1, 1.1):
        refused(checks.checked_number, value, "must be a number from 0 to 1", low=0, high=1)
    refused(checks.checked_number, -0.1, "must be a number of at least 0", low=0)
    for each in (True, math.nan, math.inf, "1", None):
        refused(checks.checked_number, each, "must be a finite number")
    assert checks.checked_pair("bounds", [0, 2]) == (0.0, 2.0)
    for other in ((1,), (1, 2, 3), "ab", 5):
        refused(checks.checked_pair, other, "must be two numbers")


def test_shares_lie_strictly_between_0_and_1_and_a_percentage_is_answered_with_the_share() -> None:
    assert [checks.checked_share("it", value) for value in (0.001, 0.999)] == [0.001, 0.999]
    for value in (0, 1, -1, True, "0.5", math.nan):
        refused(checks.checked_share, value, "must lie strictly between 0 and 1; think", remedy="think")
    refused(checks.checked_share, 95, r"must lie strictly between 0 and 1; write 0\.95")
    refused(checks.checked_share, 2, r"; write 0\.02")
    refused(checks.checked_share, 99.5, r"; write 0\.995")
    refused(checks.checked_share, 1.9, "between 0 and 1$")
    refused(checks.checked_share, 100, "between 0 and 1$")


def test_times_are_above_0_and_at_most_31_years() -> None:
    assert [checks.checked_seconds("it", value) for value in (1e-9, 1, 1e9)] == [1e-9, 1.0, 1e9]
    for value in (0, -1, 1.0000001e9, True, "1", math.nan):
        refused(checks.checked_seconds, value, "must be a number of seconds above 0, and at most 1,000,000,000")


def test_every_time_of_a_log_has_a_date() -> None:
    assert event_date(None) is None
    dates = [event_date(seconds) for seconds in (-5.0, 0.0, float(LAST), LAST + 1.0)]
    assert [f"{date:%Y-%m-%d %H:%M:%S}" for date in dates if date] == ["1970-01-01 00:00:00"] * 2 + [
        "9999-12-31 23:59:59"
    ] * 2


def test_a_name_beside_others_has_at_most_40_characters() -> None:
    assert short_in_sentence("x" * 40) == "x" * 40
    assert short_in_sentence("x" * 41) == "x" * 39 + "…"


def test_numbers_of_numpy_are_numbers_and_arrays_are_not() -> None:
    assert [checks.as_float(value) for value in (numpy.float32(0.5), numpy.bool_(True), numpy.array(0.25))] == [
        0.5,
        1.0,
        0.25,
    ]
    assert [checks.as_float(value) for value in (numpy.array([0.5]), numpy.array([[0.5]]), "1", 1j)] == [None] * 4
    assert [checks.as_float(value) for value in (10**400, -(10**400))] == [math.inf, -math.inf]
