"""Outcomes between processes: each arrives as what it was, whatever the evaluator returned or raised."""

import pickle
from typing import Any

import pytest

from thresher.errors import Busy, EvaluationFailed, NoReward
from thresher.run.command.reward import CommandFailed
from thresher.run.engines.outcomes import evaluate_to_outcome, unpack_outcome
from thresher.run.failures import EvaluatorLost, EvaluatorRefused
from thresher.study import Pull

PULL = Pull(1, "a", 2, {"depth": 1}, 7, case=3)


class Unsendable(float):
    """A number that cannot be sent."""

    def __reduce__(self) -> Any:
        raise TypeError("stay here")


class Unsendables(tuple[float, float]):
    """A pair that cannot be sent."""

    def __reduce_ex__(self, _: object) -> Any:
        raise TypeError("stay here")


def sent(value: object) -> object:
    """What arrives of an evaluation that returns or raises this."""

    def evaluate(_: Pull) -> object:
        if isinstance(value, BaseException):
            raise value
        return value

    return unpack_outcome(evaluate_to_outcome(evaluate, PULL))


@pytest.mark.parametrize("value", [0.5, 1, True, "text", None, (0.5, 0.25), [1]])
def test_what_can_be_sent_arrives(value: object) -> None:
    assert sent(value) == value


def test_numbers_that_cannot_be_sent_arrive_as_plain_numbers() -> None:
    reward: Any = sent(Unsendable(0.5))
    assert (reward, type(reward)) == (0.5, float)
    pair: Any = sent((Unsendable(0.5), 0.25))
    assert (pair, type(pair), type(pair[0])) == ((0.5, 0.25), tuple, float)
    assert sent(Unsendables((0.5, 0.25))) == (0.5, 0.25)


@pytest.mark.parametrize("value", [lambda: 0, (0.5, lambda: 0), [Unsendable(0.5)]])
def test_what_cannot_be_sent_is_no_reward(value: object) -> None:
    with pytest.raises(NoReward, match=r"TypeError: it returned .*, which cannot be sent between processes") as caught:
        sent(value)
    assert caught.value.kind == "returned what cannot be sent between processes"


def test_an_error_arrives_with_its_place_its_traceback_and_whether_it_is_temporary() -> None:
    with pytest.raises(EvaluationFailed) as caught:
        sent(TimeoutError("slow"))
    error = caught.value
    assert (str(error), error.transient, error.output) == ("TimeoutError: slow", True, "")
    assert (error.kind or "").startswith("builtins.TimeoutError at ")
    assert "raise value" in error.traceback
    with pytest.raises(EvaluationFailed) as caught:
        sent(CommandFailed("exited with 3", kind="exited", output="last words"))
    error = caught.value
    assert (error.kind, error.output, error.traceback, error.transient) == ("exited", "last words", "", False)
    assert not isinstance(error, NoReward)
    with pytest.raises(NoReward, match="printed nothing"):
        sent(NoReward("printed nothing", kind="k"))


def test_what_is_not_about_the_evaluation_arrives_as_it_is() -> None:
    with pytest.raises(KeyboardInterrupt):
        sent(KeyboardInterrupt())
    with pytest.raises(Busy) as busy:
        sent(Busy(after=3.0))
    assert busy.value.after == 3.0
    with pytest.raises(EvaluatorLost, match="it died") as lost:
        sent(EvaluatorLost("it died", [PULL]))
    assert lost.value.together == [PULL]
    with pytest.raises(EvaluatorRefused) as refused:
        sent(EvaluatorRefused("protocol", 2, "another version", "update one"))
    assert str(refused.value) == "protocol 2: another version; update one"


def test_what_cannot_be_read_here_is_no_reward() -> None:
    for data in (b"nonsense", pickle.dumps(5)):
        with pytest.raises(NoReward, match="it returned something that cannot be read here: ") as caught:
            unpack_outcome(data)
        assert caught.value.kind == "returned what cannot be read here"
