"""The lines that persistent evaluators read and write, one JSON object each: see docs/reference/protocol.md."""

import json
from typing import Any, NamedTuple

from ...core import checks
from ...core.events import total_event_cost
from ...errors import Busy, EvaluationFailed, NoReward, shown
from ...study import Pull
from ..evaluator_errors import TRANSIENT_NAMES, names_refused_evaluator_error

PROTOCOL = 1
VARIABLE = "THRESHER_PROTOCOL"  # in the environment of evaluators
LONGEST = 1_000_000  # bytes of a line that an evaluator prints


class Noted(float):
    """A reward with the evaluator's note and cost.

    >>> Noted(0.5, note="cut off", cost=0.02).note
    'cut off'
    """

    note: str | None
    cost: float | None

    def __new__(cls, reward: float, note: str | None = None, cost: float | None = None) -> "Noted":
        noted = super().__new__(cls, reward)
        noted.note, noted.cost = note, cost
        return noted

    def __reduce__(self) -> tuple[type["Noted"], tuple[object, ...]]:
        return Noted, (float(self), self.note, self.cost)


def protocol_remarks(value: object) -> tuple[str | None, float | None]:
    """The note and the cost of an evaluation's value; if it is a pair, of both sides."""
    sides = value if isinstance(value, tuple) else (value,)
    noted = [side for side in sides if isinstance(side, Noted)]
    notes, costs = [side.note for side in noted if side.note], [side.cost for side in noted if side.cost is not None]
    return "; ".join(notes) or None, total_event_cost(costs) if costs else None


class NotAnAnswer(Exception):
    """A line that is neither an answer nor a greeting. The text quotes it."""


class Answer(NamedTuple):
    """An answer to one pull, which `protocol_reward` reads."""

    pull: int
    data: dict[str, Any]
    line: bytes


class Greeting(NamedTuple):
    """The line that an evaluator may print before its first answer."""

    protocol: object
    arms: object  # None: it names none
    version: object = None  # of what it evaluates; None: it names none


def protocol_pull_line(pull: Pull, key: int) -> bytes:
    """The line that gives an evaluator a pull, under the id ``key``.

    >>> protocol_pull_line(Pull(7, "terse", 1, {"depth": 2}, 5), 7).decode()[:45]
    '{"pull":7,"arm":"terse","params":{"depth":2},'
    """
    data = {
        "pull": key,
        "arm": pull.arm,
        "params": dict(pull.params),
        "seed": pull.seed,
        "number": pull.number,
        "case": pull.case,
        "case_params": dict(pull.case_params),
    }
    return _ENCODE(data).encode() + b"\n"


_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


def read_protocol_line(line: bytes) -> Answer | Greeting:
    """Parse a line. Raises `NotAnAnswer` if it is neither an answer nor a greeting.

    >>> read_protocol_line(b'{"pull": 7, "reward": 0.5}').pull, read_protocol_line(b'{"protocol": 1}').protocol
    (7, 1)
    """
    try:
        data = json.loads(line)
    except RecursionError:
        raise NotAnAnswer(f"printed JSON that is nested too deeply: {quoted_protocol_line(line)}") from None
    except ValueError:  # also text that is not UTF-8
        raise NotAnAnswer(f"printed a line that is not JSON: {quoted_protocol_line(line)}") from None
    if isinstance(data, dict):
        pull = data.get("pull")
        if type(pull) is int:
            return Answer(pull, data, line)
        if pull is None and data.keys() & {*Greeting._fields}:
            return Greeting(data.get("protocol", PROTOCOL), data.get("arms"), data.get("version"))
    raise NotAnAnswer(f'printed JSON that does not answer a "pull": {quoted_protocol_line(line)}')


def protocol_reward(answer: Answer) -> float:
    """The reward of an answer. Raises the error if the answer has one, and `Busy` if the evaluator is busy."""
    data = answer.data
    kinds = [kind for kind in ("reward", "error", "busy") if kind in data]
    if len(kinds) != 1:
        raise _wrong('must have one of "reward", "error" and "busy"', answer)
    note, cost = _note(answer), _cost(answer)
    value = data[kinds[0]]
    if kinds[0] == "reward":
        reward = checks.as_float(value)
        if reward is None or not isinstance(value, int | float):
            raise _wrong("has a reward that is not a number", answer)
        return reward if note is None and cost is None else Noted(reward, note, cost)
    if kinds[0] == "busy":
        seconds = None if isinstance(value, bool) else checks.as_float(value)
        if seconds is None or not 0 <= seconds <= checks.MAX_SECONDS:
            raise _wrong('must say for how many seconds it is "busy"', answer)
        raise Busy(after=seconds)
    if not isinstance(value, str):
        raise _wrong('has an "error" that is not text', answer)
    text = " ".join(value.split())[:1000] or "it said that it failed, but not why"
    remarks = ("" if note is None else f"; note: {note}") + ("" if cost is None else f"; cost: {cost:g}")
    name = text.partition(":")[0].lower()
    is_name = " " not in name
    transient = is_name and any(part in name for part in TRANSIENT_NAMES)
    refused = is_name and names_refused_evaluator_error(name)
    raise EvaluationFailed(f"{text}{remarks}", kind=f"error: {text}", transient=transient or refused, refused=refused)


def _note(answer: Answer) -> str | None:
    note = answer.data.get("note")
    if note is not None and not isinstance(note, str):
        raise _wrong('has a "note" that is not text', answer)
    return note or None


def _cost(answer: Answer) -> float | None:
    value = answer.data.get("cost")
    cost = None if value is None or isinstance(value, bool) else checks.as_float(value)
    if value is not None and (cost is None or not 0 <= cost < float("inf")):
        raise _wrong('has a "cost" that is not a number of at least 0', answer)
    return cost


def _wrong(problem: str, answer: Answer) -> NoReward:
    return NoReward(f"its answer {problem}: {quoted_protocol_line(answer.line)}", kind=f"its answer {problem}")


def quoted_protocol_line(line: bytes) -> str:
    """A line as errors show it."""
    return shown(line.decode("utf-8", "replace").strip(), 200)
