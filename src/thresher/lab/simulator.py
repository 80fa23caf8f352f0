"""Runs a setup over many repetitions, on all cores."""

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..core import checks, columns, state
from ..core.board import Board, Rule
from ..core.evidence import CHARGED, LEFT_OUT
from ..core.policies import second_policy_rule
from ..errors import InvalidInput
from ..text.machine import available_cores
from ..text.quantities import edges_quantity_text
from . import compiled_scores, compiler, families
from .compiled_scores import InvalidScore, compiled_score_failed, invalid_compiled_score
from .delays import NONE, Timing, blank_delay_slots
from .families import Reals
from .repetition import (
    Arms,
    Measures,
    Proof,
    Trace,
    blank_repetition_measures,
    blank_repetition_proof,
    blank_repetition_trace,
    repetition_zeros,
)
from .result import Result
from .setup import Setup

# Work divided among threads.

Item = TypeVar("Item")


def run_simulator_threads(work: Callable[[Item], None], items: Sequence[Item], threads: int) -> None:
    """Do the work for every item in this many threads; raise the first error.

    Ctrl-C works at once: a thread inside machine code cannot be stopped, so nothing waits for it, here or at the end of
    the program. That is why even a single item is worked on in another thread.

    >>> doubles = []
    >>> run_simulator_threads(lambda number: doubles.append(2 * number), [1, 2, 3], threads=2)
    >>> sorted(doubles)
    [2, 4, 6]
    """
    left = deque(items)
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def work_on_items() -> None:
        failure: BaseException | None = None
        try:
            while left:
                try:
                    item = left.popleft()
                except IndexError:  # another thread took the last item
                    break
                work(item)
        except BaseException as error:
            failure = error
        ended.put(failure)

    crew = [threading.Thread(target=work_on_items, daemon=True) for _ in range(min(threads, len(items)))]
    try:
        for thread in crew:
            thread.start()
        for _ in crew:
            failure = _wait_for(ended)
            if failure is not None:
                raise failure
    finally:
        left.clear()


def _wait_for(ended: "SimpleQueue[BaseException | None]") -> BaseException | None:
    """How the next thread ended. The waits are short: a signal just before a wait is noticed only when it is over."""
    while True:
        try:
            return ended.get(timeout=0.5)
        except Empty:
            continue


def run_simulator_aside(work: Callable[[], None]) -> None:
    """Work in another thread, while the calling thread waits and can be interrupted.

    A compiler calls back into Python, where an exception raised by a signal would only be printed.
    """
    run_simulator_threads(lambda _: work(), [None], threads=1)


Progress = Callable[[int], None]  # called with the number of pulls since the last call
MOST_CELLS = 500_000_000
MOST_REPETITIONS = 100_000_000
PULLS_PER_CHUNK = 2_000_000


def simulate(
    setup: Setup,
    *,
    repetitions: int = 100,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
    per_arm: bool = True,
    played_as: compiler.CompilerChoices | None = None,
) -> Result:
    """Play a setup ``repetitions`` times. The result depends only on the setup, the repetitions and the seed.

    ``per_arm=False`` does not count the pulls of each arm, which is faster with many checkpoints. ``played_as`` plays
    the setup in the machine code of a loop that can do more: without a confidence, no arm is ever settled there, and
    with the guarantee "all" none is ranked. This saves a compilation if several setups are played.

    >>> setup = Setup(policy="uniform", arms=4, means=[0.1, 0.6, 0.7, 0.9], spreads=0.0, budget=40)
    >>> result = simulate(setup, repetitions=3)
    >>> float(result.accuracy[-1]), result.pulls_per_arm[-1].tolist()
    (1.0, [10.0, 10.0, 10.0, 10.0])
    """
    check_setup_of_simulator(setup)
    repetitions, seed, threads = checked_simulation(repetitions, seed, threads)
    if setup.certifies and (34 + setup.cases) * setup.arms + setup.budget > MOST_CELLS // 4:
        rule = f"with certificates for {setup.arms:,} arms is more than memory should hold"
        raise InvalidInput("budget", setup.budget, rule, "give fewer of either")
    if repetitions * len(setup.checkpoints) + len(setup.checkpoints) * setup.arms > MOST_CELLS:
        rule = f"times {len(setup.checkpoints)} checkpoints is more than memory should hold"
        raise InvalidInput("repetitions", repetitions, rule, "give fewer of either")
    played_as = simulated_kind(setup) if played_as is None else played_as
    certifies, run = played_as.certifies, prepared_simulation(setup, played_as)
    measures = blank_repetition_measures(setup.checkpoints, setup.arms, repetitions, per_arm=per_arm)
    step = max(1, min(-(-repetitions // (4 * threads)), PULLS_PER_CHUNK // setup.budget))
    chunks = [(begin, min(begin + step, repetitions)) for begin in range(0, repetitions, step)]
    lock = threading.Lock()

    def play(chunk: tuple[int, int]) -> None:
        mine = measures._replace(issued=np.zeros_like(measures.issued))
        try:
            run(*_arguments(setup, seed, *chunk, mine, blank_repetition_trace(), certifies))
        except ZeroDivisionError:
            _explain_division(setup, seed, chunk, mine, run, certifies)
            raise
        with lock:  # integers: the order of the sums does not matter
            np.add(measures.issued, mine.issued, out=measures.issued)
            if progress is not None:
                progress((chunk[1] - chunk[0]) * setup.budget)

    before = time.perf_counter()
    run_simulator_threads(play, chunks, threads)
    _check_scores(setup, seed, measures, run, certifies)
    return Result(setup, repetitions, seed, threads, measures, time.perf_counter() - before)


def checked_simulation(repetitions: int, seed: int, threads: int | None = None) -> tuple[int, int, int]:
    """The checked numbers of a simulation; by default there is a thread for each core.

    >>> checked_simulation(0, 0)
    Traceback (most recent call last):
    thresher.errors.InvalidInput: repetitions 0: must be a whole number of at least 1
    """
    repetitions = checks.checked_whole("repetitions", repetitions, least=1, most=MOST_REPETITIONS)
    threads = checks.checked_whole("threads", available_cores() if threads is None else threads, least=1, most=1024)
    return repetitions, checks.checked_whole("seed", seed, least=0), threads


def prepared_simulation(setup: Setup, played_as: compiler.CompilerChoices) -> Callable[..., None]:
    """The loop of this kind, compiled. Nothing is played; the setup is one that it can play."""
    run = compiler.compiled_loop(played_as)
    measures = blank_repetition_measures(setup.checkpoints, setup.arms, 0, per_arm=False)
    _compiled(setup, run, _arguments(setup, 0, 0, 0, measures, blank_repetition_trace(), played_as.certifies))
    return run


class Played(NamedTuple):
    """A repetition, event by event, and its final state, to be replayed in a live study."""

    pull: list[int]  # the id of a pull when it is asked, and minus the id when its reward is told
    arm: list[int]
    reward: list[float]  # NaN: the pull was lost
    other: list[float]  # of a pair: the baseline's reward
    order: int  # the seed of a study that meets the cases in this order, where something other than the reward counts
    board: Board
    proof: Proof


def trace(setup: Setup, *, repetition: int = 0, seed: int = 0) -> Played:
    """Every event of a repetition.

    >>> played = trace(Setup(policy="uniform", arms=2, means=[0.1, 0.9], spreads=0.0, budget=4))
    >>> played.pull, played.arm
    ([1, -1, 2, -2, 3, -3, 4, -4], [0, 0, 1, 1, 0, 0, 1, 1])
    """
    check_setup_of_simulator(setup)
    repetition = checks.checked_whole("repetition", repetition, least=0, most=MOST_REPETITIONS - 1)
    seed = checks.checked_whole("seed", seed, least=0)
    certifies, size = setup.certifies, 2 * setup.budget
    if size > MOST_CELLS or (repetition + 1) * len(setup.checkpoints) > MOST_CELLS:
        rule = f"of repetition {repetition:,} is more than memory should hold"
        raise InvalidInput("budget", setup.budget, rule, "give a smaller budget, or an earlier repetition")
    run = compiler.compiled_loop(simulated_kind(setup))
    written = blank_repetition_trace(size)
    measures = blank_repetition_measures(setup.checkpoints, setup.arms, repetition + 1)
    arguments = _arguments(setup, seed, repetition, repetition + 1, measures, written, certifies)
    try:
        _compiled(setup, run, arguments)
    except ZeroDivisionError:
        _explain_division(setup, seed, (repetition, repetition + 1), measures, run, certifies)
        raise
    _check_scores(setup, seed, measures, run, certifies)
    board, arms, proof, events = arguments[3][0], arguments[5], arguments[9], int(written.length[0])
    pull, arm, reward, other = (column[:events].tolist() for column in written[:4])
    drawn = {pull[at]: (reward[at], other[at]) for at in range(events) if pull[at] > 0}
    for at in range(events):
        if pull[at] < 0 and not math.isnan(reward[at]):  # the value that counted, in place of the reward
            reward[at], other[at] = drawn[-pull[at]]
    return Played(pull, arm, reward, other, int(arms.order[0]), board, proof)


def instances(setup: Setup, *, repetitions: int, seed: int = 0) -> list[tuple[Reals, Reals]]:
    """The true means and standard deviations of the arms in each repetition.

    >>> [(mean, spread)] = instances(Setup(arms=3, means=0.6, spreads=0.3, budget=6), repetitions=1)
    >>> [round(float(value), 4) for value in (mean[0], spread[0])]
    [0.6, 0.1732]
    """
    check_setup_of_simulator(setup)
    repetitions, seed, _ = checked_simulation(repetitions, seed)
    draw = compiler.compiled_instance_drawer()
    arms, random_state, moments = simulated_blank_arms(setup), np.zeros(4, np.uint64), []
    _compiled(setup, draw, (arms, seed, 0, random_state))
    for repetition in range(repetitions):
        draw(arms, seed, repetition, random_state)
        moments.append((arms.mean.copy(), np.sqrt(arms.variance)))
    return moments


def simulated_rules(setup: Setup) -> tuple[Rule, Rule]:
    """The initial rule of each tournament."""
    constant = setup.spec.settling_constant
    first = setup.rules.rule(
        *state.state_aim(setup.stakes, finds=setup.find is not None),
        arms=setup.arms,
        budget=setup.budget,
        constant=constant,
        cases=setup.cases,
        finds=setup.find is not None,
    )
    return first, second_policy_rule(first, constant, setup.cases)


def _arguments(
    setup: Setup, seed: int, begin: int, end: int, measures: Measures, written: Trace, certifies: bool
) -> tuple[Any, ...]:
    board = columns.blank_board_columns(setup.arms, repetition_zeros)
    other = board if setup.rules.second is None else columns.second_board_columns(board, repetition_zeros)
    random_state, delay = np.zeros(4, np.uint64), setup.timing
    mine, other_rule = simulated_rules(setup)
    numbered = (
        compiled_scores.numbered_score(mine, is_custom=setup.rules.is_custom),
        compiled_scores.numbered_score(other_rule),
    )
    fixed = (numbered, simulated_blank_arms(setup), measures, written, random_state, _proof(setup, certifies))
    shared = (seed, begin, end, (board, other), *fixed)
    if delay.model == NONE:
        return shared
    first = setup.contenders * setup.rules.warmup if delay.warm else 0
    seconds = float(delay.seconds) if delay.timed else 0.0
    timing = Timing(
        delay.model, first, delay.service, seconds, float(delay.shape), *map(float, (*setup.lost, setup.hung))
    )
    return (*shared, np.zeros(4, np.uint64), blank_delay_slots(min(delay.capacity, setup.budget + 1)), timing)


def simulated_kind(setup: Setup) -> compiler.CompilerChoices:
    """The kind of loop that a setup needs."""
    users = (setup.rules.formula, setup.rules.digest) if setup.rules.is_custom else ()
    return compiler.CompilerChoices(setup.certifies, setup.ranks, setup.counts, setup.timing.model != NONE, *users)


def _compiled(setup: Setup, run: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    """Call a loop for the first time, which compiles it."""

    def work() -> None:
        with compiler.compiling(delayed=setup.timing.model != NONE):
            run(*arguments)

    run_simulator_aside(work)


def _proof(setup: Setup, certifies: bool) -> Proof:
    return blank_repetition_proof(
        setup.arms if certifies else 0,
        setup.budget if certifies else 0,
        setup.stakes,
        LEFT_OUT if setup.failure == "ignore" else CHARGED,
        base=setup.spec.base,
        cases=setup.cases,
        ranks=setup.ranks,
        find=setup.find or 0,
    )


def simulated_blank_arms(setup: Setup) -> Arms:
    """The arms, before drawing."""
    spec, blank = setup.spec, [np.zeros(setup.arms) for _ in range(4)]
    samples = setup.recorded.samples if setup.recorded is not None else np.zeros(0)
    ranges = (*setup.mean_ranges, *setup.spread_ranges, families.NAMES.index(setup.family), samples)
    low_edge, high_edge = (spec.low_reach, spec.high_reach)
    if not setup.certifies:
        low_edge, high_edge = edges_quantity_text(spec.reach, setup.within)
    scalars = map(float, (*setup.bounds, spec.reach, *spec.span, low_edge, high_edge))
    last = (spec.measure, spec.base, np.zeros(3), np.zeros(3, np.int64), setup.common, np.zeros(setup.arms, np.int64))
    return Arms._make((*ranges, *blank, *scalars, *last))


def _check_scores(setup: Setup, seed: int, measures: Measures, run: Callable[..., None], certifies: bool) -> None:
    """Raise if a repetition ended because of an invalid score. It is played again, for the arguments of the score."""
    if invalid := invalid_compiled_score(measures):
        again = _arguments(setup, seed, invalid.row, invalid.row + 1, measures, blank_repetition_trace(), certifies)
        run(*again)
        raise compiled_score_failed(setup.rules, invalid, measures, again[3][0], simulated_rules(setup)[0])


def _explain_division(
    setup: Setup, seed: int, chunk: tuple[int, int], measures: Measures, run: Callable[..., None], certifies: bool
) -> None:
    """Raise an error that says where a user's score divided by zero. Repetitions are played again, one by one."""
    for row in range(*chunk) if setup.rules.is_custom else ():
        again = _arguments(setup, seed, row, row + 1, measures, blank_repetition_trace(), certifies)
        try:
            run(*again)
        except ZeroDivisionError:
            invalid = InvalidScore(row, None)
            raise compiled_score_failed(
                setup.rules, invalid, measures, again[3][0], simulated_rules(setup)[0]
            ) from None


def check_setup_of_simulator(setup: object) -> None:
    """Raise unless it is a setup."""
    if not isinstance(setup, Setup):
        raise InvalidInput("setup", setup, "must be a Setup", "write lab.Setup(…)")
