"""Scores, statistics and the tournament."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thresher.core import board, question
from thresher.core.board import Rule, doubled_formula_exploration
from thresher.core.columns import blank_board_columns

FORMULAS = [
    board.uniform_formula,
    board.apt_formula,
    board.evt_formula,
    board.evt_supplement_formula,
    board.evt_pf_formula,
    board.lsa_formula,
    board.cheapest_formula,
]
gaps = st.floats(0, 1)
counts = st.integers(1, 10**6)


RULE = Rule(board.evt_formula, bar=0.5, exploration=4.0, pending_weight=1.0, warmup=2, slack=0.0)

steps = st.lists(
    st.tuples(st.integers(0, 12), st.sampled_from(["assign", "observe", "drop", "shut", "open"]), st.floats(0, 1)),
    max_size=80,
)


@given(st.integers(1, 13), steps, st.sampled_from(FORMULAS))
def test_the_tournament_finds_what_a_linear_search_finds(
    arms: int, moves: list[tuple[int, str, float]], formula: board.Formula
) -> None:
    columns, rule = blank_board_columns(arms), RULE._replace(formula=formula)
    board.rescore_board(columns, rule)
    for arm, move, reward in moves:
        arm %= arms
        if move == "assign":
            columns.pending[arm] += 1
        elif move == "observe":
            board.observe_on_board(columns, arm, reward, reward)
        elif move == "drop" and columns.pending[arm]:
            columns.pending[arm] -= 1
        elif move in ("shut", "open"):
            columns.shut[arm] = move == "shut"
        board.rescore_arm_on_boards(columns, columns, arm, rule, rule)
        scores = [board.score_on_board(columns, k, rule) for k in range(arms)]
        first = min(range(arms), key=scores.__getitem__)  # on a tie the lowest arm
        assert board.choose_from_boards(columns, columns, RULE, 1) == (first if scores[first] < board.NEVER else -1)


@given(st.integers(1, 9), st.integers(0, 8), st.lists(st.floats(0, 1), max_size=20), st.sampled_from(FORMULAS))
def test_assign_then_release_leaves_no_trace(arms: int, arm: int, rewards: list[float], formula: board.Formula) -> None:
    columns, rule = blank_board_columns(arms), RULE._replace(formula=formula)
    arm %= arms
    for reward in rewards:
        board.observe_on_board(columns, arm, reward, reward)
    board.rescore_board(columns, rule)
    before = [column[:] for column in columns]
    columns.pending[arm] += 1
    board.rescore_arm_on_boards(columns, columns, arm, rule, rule)
    columns.pending[arm] -= 1
    board.rescore_arm_on_boards(columns, columns, arm, rule, rule)
    assert [column[:] for column in columns] == before


def test_warm_up_takes_the_arms_in_turn_and_then_the_formula_decides() -> None:
    columns = blank_board_columns(3)
    board.rescore_board(columns, RULE)
    order = []
    for _ in range(6):
        arm = board.choose_from_boards(columns, columns, RULE, 1)
        order.append(arm)
        board.observe_on_board(columns, arm, [0.1, 0.52, 0.9][arm], 0.0)
        board.rescore_arm_on_boards(columns, columns, arm, RULE, RULE)
    assert order == [0, 1, 2, 0, 1, 2]
    assert board.choose_from_boards(columns, columns, RULE, 1) == 1


def test_an_arm_whose_first_rewards_are_pending_waits_unless_all_do() -> None:
    columns = blank_board_columns(2)
    for arm in (0, 0, 1, 1, 1):
        columns.pending[arm] += 1
    board.rescore_board(columns, RULE)
    assert board.choose_from_boards(columns, columns, RULE, 1) == 0  # all wait: the one with the fewest pending
    columns.pending[1] -= 1
    board.observe_on_board(columns, 1, 0.9, 0.9)
    board.rescore_arm_on_boards(columns, columns, 1, RULE, RULE)
    assert board.choose_from_boards(columns, columns, RULE, 1) == 1


def test_an_arm_with_too_many_pending_pulls_for_its_rewards_waits_unless_all_do() -> None:
    columns, rule = blank_board_columns(2), RULE._replace(pending_ratio=0.5)
    for arm, reward in ((0, 0.5), (0, 0.5), (1, 0.9), (1, 1.0)):  # arm 0 is on the bar: EVT would always pull it
        board.observe_on_board(columns, arm, reward, reward)
    chosen = []
    for _ in range(6):
        board.rescore_board(columns, rule)
        chosen.append(board.choose_from_boards(columns, columns, RULE, 1))
        columns.pending[chosen[-1]] += 1
    assert chosen == [0, 0, 1, 1, 0, 1]  # up to one above half of its two rewards; then the fewest pending


@given(st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_mean_and_scatter_are_those_of_the_textbook(rewards: list[float]) -> None:
    columns = blank_board_columns(1)
    for reward in rewards:
        board.observe_on_board(columns, 0, reward, reward)
    mean = math.fsum(rewards) / len(rewards)
    assert columns.mean[0] == pytest.approx(mean, abs=1e-12)
    assert columns.scatter[0] == pytest.approx(math.fsum((x - mean) ** 2 for x in rewards), abs=1e-9)
    assert columns.scatter[0] >= 0


@given(st.floats(0, 1), st.integers(1, 200))
def test_a_constant_arm_has_no_spread(reward: float, pulls: int) -> None:
    columns = blank_board_columns(1)
    for _ in range(pulls):
        board.observe_on_board(columns, 0, reward, reward)
    assert columns.scatter[0] == pytest.approx(0, abs=1e-30)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=100))
def test_the_total_is_as_good_as_an_exact_sum(rewards: list[float]) -> None:
    columns = blank_board_columns(1)
    for reward in rewards:
        board.observe_on_board(columns, 0, 0.5, reward)
    scale = max(1.0, max(map(abs, rewards)))
    assert columns.total[0] + columns.residue[0] == pytest.approx(math.fsum(rewards), rel=1e-15, abs=1e-15 * scale)


@pytest.mark.parametrize("failing", range(10))
def test_nine_passes_of_ten_reach_nine_tenths_in_every_order(failing: int) -> None:
    columns = blank_board_columns(1)
    for number in range(10):
        reward = float(number != failing)
        board.observe_on_board(columns, 0, reward, reward)
    assert question.is_above(columns.total[0] + columns.residue[0], 10, 0.9)


@given(st.floats(0.001, 0.999), st.integers(1, 300))
def test_a_constant_reward_on_the_bar_is_above(bar: float, pulls: int) -> None:
    columns = blank_board_columns(1)
    for _ in range(pulls):
        board.observe_on_board(columns, 0, bar, bar)
    assert question.is_above(columns.total[0] + columns.residue[0], pulls, bar)


# -- formulas, against the forms that the paper prints ------------------------------------------------------------


@given(gaps, st.floats(0, 0.25), counts, st.integers(0, 1000), st.floats(0, 1), st.floats(1e-3, 1e6))
def test_formulas_are_those_of_the_paper(
    gap: float, variance: float, seen: int, pending: int, delta: float, a: float
) -> None:
    scatter, e = variance * seen, seen + delta * pending
    sigma = math.sqrt(scatter / seen)
    printed = {
        board.uniform_formula: e,
        board.apt_formula: math.sqrt(e) * gap,
        board.evt_formula: gap * (a / e + math.sqrt(a / e) * sigma) ** -1,
        board.evt_supplement_formula: gap / (math.sqrt(2 * sigma**2 * a / e) + 3 * a / e),
        board.lsa_formula: 1.35 * e * gap**2 + 0.5 * math.log(e),
    }
    for formula, value in printed.items():
        assert formula(gap, scatter, seen, e, a) == pytest.approx(value, rel=1e-9, abs=1e-12)


@given(st.floats(1e-4, 1), st.floats(0, 0.25), counts)
def test_the_parameter_free_form_is_that_of_the_paper_where_that_has_digits(
    gap: float, variance: float, seen: int
) -> None:
    sigma = math.sqrt(variance)
    printed = math.sqrt(seen) * (math.sqrt(variance + gap) - sigma)
    assert board.evt_pf_formula(gap, variance * seen, seen, float(seen), 1.0) == pytest.approx(printed, rel=1e-6)


def test_the_parameter_free_form_keeps_its_digits_at_small_gaps() -> None:
    one, two = (board.evt_pf_formula(gap, 0.25, 1, 1.0, 1.0) for gap in (1e-18, 2e-18))
    assert two == pytest.approx(2 * one) == pytest.approx(2e-18)


@given(gaps, st.floats(0, 0.25), counts, st.integers(0, 1000), st.floats(1e-9, 1e15))
def test_scores_are_finite_and_not_negative(gap: float, variance: float, seen: int, pending: int, a: float) -> None:
    for formula in FORMULAS:
        score = formula(gap, variance * seen, seen, float(seen + pending), a)
        assert 0 <= score < board.WAITING


@pytest.mark.parametrize(
    "formula", [board.apt_formula, board.evt_formula, board.evt_supplement_formula, board.evt_pf_formula]
)
def test_a_mean_on_the_bar_scores_zero(formula: board.Formula) -> None:
    assert formula(0.0, 0.0, 3, 3.0, 5.0) == 0.0
    assert formula(0.0, 0.3, 3, 3.0, 5.0) == 0.0


@given(st.floats(0.01, 1), st.floats(0, 0.25), counts, st.integers(1, 500))
def test_pending_pulls_make_an_arm_less_urgent(gap: float, variance: float, seen: int, pending: int) -> None:
    for formula in (
        board.uniform_formula,
        board.apt_formula,
        board.evt_formula,
        board.evt_supplement_formula,
        board.evt_pf_formula,
        board.lsa_formula,
    ):
        here = formula(gap, variance * seen, seen, float(seen), 10.0)
        assert formula(gap, variance * seen, seen, float(seen + pending), 10.0) > here


@given(st.integers(1, 1000), st.integers(0, 10**7))
def test_exploration_doubles_with_the_pulls(arms: int, issued: int) -> None:
    a = doubled_formula_exploration(1.0, issued, arms)
    assert math.log2(a) % 1 == 0
    assert a <= max(1.0, issued / arms) < 2 * a


def test_doubling_step_by_step_is_doubling_at_once() -> None:
    a, rng = 1.0, random.Random(1)
    for issued in sorted(rng.sample(range(100_000), 500)):
        a = doubled_formula_exploration(a, issued, 37)
        assert a == doubled_formula_exploration(1.0, issued, 37)
