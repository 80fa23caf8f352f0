"""Verdicts on claims: what is luck, and what is not."""

import random

from paper import claims
from paper.claims import FAILS, HOLDS, OPEN, PARTLY, judged


def test_a_few_points_that_differ_by_chance_decide_nothing() -> None:
    """By chance about two of 36 points lie beyond two standard errors."""
    even = [(0.5, 1.0)] * 17 + [(-0.5, 1.0)] * 17
    assert judged([*even, (2.3, 1.0), (-2.6, 1.0)]).verdict == OPEN
    assert judged([*even, (2.3, 1.0), (2.6, 1.0)]).verdict == OPEN
    assert judged([*even, (3.9, 1.0)]).verdict == OPEN, "with dozens of points, one so far out comes by chance"


def test_one_point_far_out_many_points_or_a_shifted_mean_are_enough() -> None:
    far = [(0.0, 1.0)] * 35 + [(4.1, 1.0)]
    often = [(0.0, 1.0)] * 28 + [(2.1, 1.0)] * 8
    shifted = [(2.6, 1.0)] * 3 + [(2.5, 1.0)]
    for points in (far, often, shifted):
        assert judged(points).verdict == HOLDS
        assert judged([(-gap, error) for gap, error in points]).verdict == FAILS
    assert judged([*far, (-4.1, 1.0)]).verdict == PARTLY


def test_equal_curves_are_seldom_told_apart() -> None:
    """36 independent points without a difference: the rule decides few sets."""
    draw = random.Random(0).gauss
    verdicts = [judged([(draw(0.0, 1.0), 1.0) for _ in range(36)]).verdict for _ in range(400)]
    assert verdicts.count(OPEN) > 390


def test_a_line_that_never_reaches_the_level_is_counted_but_does_not_decide_alone() -> None:
    assert judged([(0.0, 1.0)] * 9 + [(float("inf"), 0.0)]).verdict == OPEN
    assert judged([(0.0, 1.0)] * 7 + [(float("inf"), 0.0)] * 3).verdict == HOLDS


def test_a_claim_of_several_parts_waits_for_those_that_could_change_its_verdict() -> None:
    assert claims.joined([HOLDS, HOLDS]) == HOLDS
    assert claims.joined([HOLDS, OPEN]) == OPEN
    assert claims.joined([HOLDS, OPEN, FAILS]) == PARTLY
    assert claims.joined([PARTLY, OPEN]) == PARTLY
    assert claims.joined([FAILS, FAILS]) == FAILS
