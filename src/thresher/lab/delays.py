"""When rewards come back: the delay models and the service times of workers.

Up to ``capacity`` pulls can be pending. When that many are, a reward comes back: the oldest (FIFO), a random one, the
first that is done (workers), or all of them (batch). So a policy decides with at most capacity − 1 pulls pending. For
FIFO and random order that number is the paper's τ, hence capacity = τ + 1; and as in the paper's Step 1, the warm-up is
observed before the first decision. Workers and batches have no special warm-up.
"""

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..core.board import climb_board, play_board_match
from ..core.columns import tree_columns_size
from ..errors import InvalidInput
from .families import Reals
from .repetition import Counts, repetition_zeros
from .streams import Words, stream_exponential, stream_fraction, stream_gaussian

NONE, FIFO, BATCH, RANDOM, WORKERS = range(5)
STEADY, EXPONENTIAL, LOGNORMAL, FAILURES = range(4)
MODELS = {"none": NONE, "fifo": FIFO, "batch": BATCH, "random": RANDOM, "workers": WORKERS}
SERVICES = {"constant": STEADY, "exponential": EXPONENTIAL, "lognormal": LOGNORMAL, "failures": FAILURES}
MOST_PENDING = 1_000_000  # pending pulls


def delay_of_service(kind: int, seconds: float, shape: float, failed: bool, state: Words) -> float:
    """How long a pull takes: ``seconds`` on average, but with FAILURES, failures take ``shape`` times as long."""
    if kind == EXPONENTIAL:
        return seconds * stream_exponential(state)
    if kind == LOGNORMAL:
        return seconds * math.exp(shape * stream_gaussian(state) - 0.5 * shape * shape)
    if kind == FAILURES:
        return seconds * stream_exponential(state) * (shape if failed else 1.0)
    return seconds


@dataclass(frozen=True)
class Delay:
    """A delay model; `parsed_delay` reads it from a string.

    >>> parsed_delay("fifo:50").capacity
    51
    """

    model: int = NONE
    capacity: int = 1
    service: int = STEADY
    shape: float = 0.0
    seconds: float = 1.0

    @property
    def timed(self) -> bool:
        """Whether the model has a clock."""
        return self.model in (BATCH, WORKERS)

    @property
    def warm(self) -> bool:
        """Whether the warm-up is observed before rewards are delayed."""
        return self.model in (FIFO, RANDOM)

    def __str__(self) -> str:
        """What `parsed_delay` reads.

        >>> str(parsed_delay("workers:8:lognormal:0.5"))
        'workers:8:lognormal:0.5'
        """
        name = next(name for name, model in MODELS.items() if model == self.model)
        if self.model == NONE:
            return name
        parts = [name, str(self.capacity - self.warm)]
        if self.timed and self.service != STEADY:
            parts.append(next(name for name, kind in SERVICES.items() if kind == self.service))
            parts += [f"{self.shape:g}"] if self.service in (LOGNORMAL, FAILURES) else []
        return ":".join(parts)


def checked_delay(delay: object) -> Delay:
    """The delay, if it is valid: it need not come from `parsed_delay`.

    >>> checked_delay("soon")
    Traceback (most recent call last):
    thresher.errors.InvalidInput: delay 'soon': must be a Delay or what parse reads; write fifo:50, for example
    """
    if not isinstance(delay, Delay):
        raise InvalidInput("delay", delay, "must be a Delay or what parse reads", "write fifo:50, for example")
    known = delay.model in MODELS.values() and delay.service in SERVICES.values()
    numbers = all(isinstance(value, int | float) and math.isfinite(value) for value in (delay.shape, delay.seconds))
    if not (known and numbers and isinstance(delay.capacity, int) and 1 <= delay.capacity <= MOST_PENDING + 1):
        raise InvalidInput("delay", repr(delay), "has a number that no delay has", "have it read by parse")
    if delay.seconds <= 0 or delay.shape < 0:
        raise InvalidInput("delay", repr(delay), "must take a positive time", "have it read by parse")
    return delay


def parsed_delay(text: str, *, seconds: float = 1.0) -> Delay:
    """The delay model for a user's text.

    ``none``; ``fifo:50`` and ``random:50``: at most 50 pulls pending, back in order or in random order; ``batch:16``
    and ``workers:16``: 16 at once, synchronous or not, optionally with a service time: ``exponential``,
    ``lognormal:0.5`` (its σ), or ``failures:5`` (exponential, five times as long when the reward is below the bar).

    >>> parsed_delay("workers:16:failures:5")
    Delay(model=4, capacity=16, service=3, shape=5.0, seconds=1.0)
    """
    name, *rest = text.strip().lower().split(":")
    remedy = "write none, fifo:50, random:50, batch:16 or workers:16[:exponential|lognormal:0.5|failures:5]"
    if name not in MODELS:
        raise InvalidInput("delay", text, "is not a delay model that thresher knows", remedy)
    if not math.isfinite(seconds) or seconds <= 0:
        raise InvalidInput("seconds per pull", seconds, "must be a positive number")
    model = MODELS[name]
    if model == NONE:
        if rest:
            raise InvalidInput("delay", text, "none takes no number", remedy)
        return Delay(seconds=seconds)
    decision = int(model in (FIFO, RANDOM))  # a pull that is not pending when it is decided on
    least = 1 - decision
    if not rest or not re.fullmatch(r"[0-9]{1,18}", rest[0]) or not least <= int(rest[0]) <= MOST_PENDING:
        rule = f"{name} needs a whole number from {least} to {MOST_PENDING}"
        raise InvalidInput("delay", text, rule, remedy)
    capacity = int(rest[0]) + decision
    if len(rest) == 1:
        return Delay(model, capacity, seconds=seconds)
    if model not in (BATCH, WORKERS) or rest[1] not in SERVICES:
        raise InvalidInput("delay", text, f"has no service time {rest[1]!r}", remedy)
    kind = SERVICES[rest[1]]
    if kind in (STEADY, EXPONENTIAL):
        if len(rest) > 2:
            raise InvalidInput("delay", text, f"{rest[1]} takes no number", remedy)
        return Delay(model, capacity, kind, 0.0, seconds)
    try:
        (number,) = (float(part) for part in rest[2:])
    except ValueError:
        number = math.nan
    if not 0.0 < number <= 1e6:
        raise InvalidInput("delay", text, f"{rest[1]} needs a positive number", remedy)
    return Delay(model, capacity, kind, number, seconds)


# Pending pulls, and which of them comes back next.


class Slots(NamedTuple):
    """Slots with a pending pull each, and a tournament that finds the pull that is done first."""

    pull: Counts  # 0: free
    arm: Counts
    reward: Reals
    free: Counts
    due: Reals
    winner: Counts


def blank_delay_slots(capacity: int) -> Slots:
    """Columns for this many pending pulls; the tournament's have the types of a board's."""
    nodes = tree_columns_size(capacity)
    pull, arm, free = (np.zeros(capacity, np.int64) for _ in range(3))
    return Slots(pull, arm, np.zeros(capacity), free, repetition_zeros("d", nodes), repetition_zeros("i", nodes))


class Timing(NamedTuple):
    """The delay model and its service times, as the loop needs them."""

    model: int
    at_once: int  # the rewards of the first pulls, up to this number, are seen at once
    service: int
    seconds: float  # 0 if the model has no clock
    shape: float
    lost_below: float  # the chance that a pull is lost when its reward is below the bar,
    lost_above: float  # and when it is not
    hung: float  # the chance that a pull never returns and blocks its worker


def put_delay_due(slots: Slots, slot: int, due: float) -> None:
    """Set when the pull in a slot is done, in the tournament."""
    climb_board(slots.due, slots.winner, slot, due)  # type: ignore[arg-type]  # arrays work like lists


def empty_delay_slots(slots: Slots) -> int:
    """Free every slot; return how many there are."""
    leaves = len(slots.due) // 2
    for leaf in range(leaves):
        slots.due[leaves + leaf] = math.inf
        slots.winner[leaves + leaf] = leaf
    for node in range(leaves - 1, 0, -1):
        play_board_match(slots.due, slots.winner, node)  # type: ignore[arg-type]  # arrays work like lists
    capacity = len(slots.pull)
    for slot in range(capacity):
        slots.pull[slot] = 0
        slots.free[slot] = capacity - 1 - slot
    return capacity


def delay_slot_for(slots: Slots, model: int, issued: int, free: int) -> int:
    """The slot for a new pull: the next slot if rewards come back in order, otherwise any free slot."""
    if model in (FIFO, BATCH):
        return (issued - 1) % len(slots.pull)
    return int(slots.free[free - 1])


def first_delayed_back(slots: Slots, model: int, told: int, state: Words) -> int:
    """The slot whose reward comes back next, after ``told`` rewards have."""
    if model in (FIFO, BATCH):
        return told % len(slots.pull)
    if model == WORKERS:
        return int(slots.winner[1])
    slot = int(stream_fraction(state) * len(slots.pull))
    while slots.pull[slot] == 0:
        slot = int(stream_fraction(state) * len(slots.pull))
    return slot


def owed_delayed(issued: int, budget: int, free: int, pending: int, timing: Timing) -> int:
    """How many pending pulls come back before the next decision; once the budget is issued, all of them."""
    if issued == budget or issued <= timing.at_once:
        return pending
    if free > 0:
        return 0
    return pending if timing.model == BATCH else min(pending, 1)


def hangs_in_delay(timing: Timing, state: Words) -> bool:
    """Whether a pull never returns. Draws nothing if none can hang, so that other runs stay the same."""
    return timing.hung > 0.0 and stream_fraction(state) < timing.hung


def is_lost_in_delay(timing: Timing, failed: bool, state: Words) -> bool:
    """Whether a pull is lost."""
    chance = timing.lost_below if failed else timing.lost_above
    return chance > 0.0 and stream_fraction(state) < chance
