"""Numbers with units: read exactly, and nothing else is read as one."""

import time
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.text.quantities import SCALES, Quantity, read_quantity

NUMBERS = st.decimals(min_value=-(10**9), max_value=10**9, places=6, allow_nan=False).map(lambda number: f"{number:f}")


@given(NUMBERS, st.sampled_from(sorted(SCALES)), st.sampled_from(["", " "]))
def test_a_number_with_a_unit_is_the_nearest_float(number: str, unit: str, between: str) -> None:
    found = read_quantity(f" {number}{between}{unit} ")
    assert isinstance(found, Quantity)
    assert found == float(Fraction(number) * Fraction(str(SCALES[unit])))
    assert (found.unit, repr(found), f"{found}") == (unit, f"{number}{between}{unit}", f"{number}{between}{unit}")


@given(st.floats(allow_nan=False))
def test_a_plain_number_is_itself_and_has_no_unit(number: float) -> None:
    found = read_quantity(repr(number))
    assert found == number
    assert type(found) is float


@given(st.integers(1, 99))
def test_a_percentage_is_the_share_that_people_write(percent: int) -> None:
    assert read_quantity(f"{percent}%") == float(f"0.{percent:02}")


@given(st.text(max_size=12))
def test_other_text_is_no_number_and_raises_nothing(text: str) -> None:
    found = read_quantity(text)
    assert found is None or isinstance(found, float)
    if isinstance(found, Quantity):
        assert float(Decimal(text.strip().removesuffix(found.unit).strip()) * SCALES[found.unit]) == found


@pytest.mark.parametrize(
    "text",
    ["", "%", "ms", "5 %%", "1_0ms", "5ss", "5S", "5 sec", "1e3s", "--5s", "1.2.3s", "٣ms", "5m s", "infs", "nan%"],
)
def test_what_only_looks_like_a_number_with_a_unit_is_none(text: str) -> None:
    assert read_quantity(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("200ms", 0.2),
        ("1.5s", 1.5),
        ("50us", 5e-5),
        ("50µs", 5e-5),
        ("50μs", 5e-5),
        ("2min", 120),
        ("2m", 120),
        ("1h", 3600),
    ],
)
def test_times_are_seconds(text: str, seconds: float) -> None:
    assert read_quantity(text) == seconds


def test_a_number_of_thousands_of_digits_is_read() -> None:
    assert read_quantity("9" * 5000 + "s") == float("inf")


@pytest.mark.parametrize("end", ["", "xyz", ".", " " * 10**5 + "."], ids=["a number", "unit", "dot", "spaces"])
def test_long_texts_are_read_at_once(end: str) -> None:
    """In time that grows with the square of the number of digits, each would take minutes."""
    began = time.process_time()
    read_quantity("9" * 10**5 + end)
    assert time.process_time() - began < 1
