"""How a run begins and ends: its defaults, its limits and its engine."""

import asyncio
import inspect
import signal
from collections.abc import Callable
from typing import Any

import pytest
from engines import make
from steps import Scripted

import thresher
from thresher.errors import CannotGoOn, InvalidInput
from thresher.run.evaluators import is_coroutine_evaluator
from thresher.run.loop import Limits, run_loop_on
from thresher.study import Pull


def defaults(function: Callable[..., object]) -> dict[str, object]:
    parameters = inspect.signature(function).parameters.values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.default is not inspect.Parameter.empty
    }


def test_the_defaults_are_those_that_are_documented() -> None:
    limits = {"in_flight": None, "timeout": None, "seconds": None, "give_up": 600.0}
    others = {"on_progress": None, "shared": None}
    assert defaults(thresher.arun) == {"workers": 16, **limits, **others}
    assert defaults(thresher.run) == {"workers": None, "executor": None, "resources": None, **limits, **others}
    assert limits.items() <= defaults(Limits).items()


@pytest.mark.parametrize("options", [{"in_flight": 1}, {"timeout": 0.001}, {"seconds": 1e-9}, {"give_up": 1}])
def test_the_least_limits_are_accepted(options: dict[str, Any]) -> None:
    Limits(**options)


@pytest.mark.parametrize("name", ["run", "arun"])
def test_the_study_comes_first(name: str) -> None:
    words = rf"must be a Study; write {name}\(study, evaluate\), in this order"
    function: Any = getattr(thresher, name)
    with pytest.raises(InvalidInput, match=words):
        asyncio.run(function(lambda _: 0.5, make()))


class Noted(Scripted):
    """Notes what it is told, and answers every pull."""

    def __init__(self, *, prepares: bool = True, number: signal.Signals | None = None) -> None:
        super().__init__(workers=2)
        self.did: list[object] = []
        self._prepares, self._number = prepares, number

    def prepare(self) -> None:
        self.did.append("prepare")
        if not self._prepares:
            raise CannotGoOn("shared", rule="its set-up failed")

    def submit(self, pull: Pull) -> Any:
        future = super().submit(pull)
        if self._number is not None and pull.id == 3:
            signal.raise_signal(self._number)
        future.set_result(0.5)
        return future

    def close(self, *, wait: bool) -> None:
        self.did.append(("close", wait))

    def release(self) -> None:
        self.did.append("release")


def test_an_engine_is_prepared_before_the_first_pull_and_released_after_it_was_closed() -> None:
    engine, study = Noted(), make(budget=8)
    run_loop_on(engine, study, Limits(), None)
    assert engine.did == ["prepare", ("close", True), "release"]
    assert study.verdict().told == 8


def test_an_engine_that_cannot_be_prepared_is_closed_and_no_pull_is_issued() -> None:
    engine, study = Noted(prepares=False), make(budget=8)
    with pytest.raises(CannotGoOn, match="its set-up failed"):
        run_loop_on(engine, study, Limits(), None)
    assert engine.did == ["prepare", ("close", True), "release"]
    assert len(study.events()) == 1


def test_after_the_run_a_signal_has_its_usual_effect() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_loop_on(Noted(number=signal.SIGINT), make(budget=8), Limits(), None)
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with pytest.raises(KeyboardInterrupt):  # whatever else handles it, the run did not come to its end
            run_loop_on(Noted(number=signal.SIGINT), make(budget=8), Limits(), None)
    finally:
        signal.signal(signal.SIGINT, before)
    got: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: got.append(number))
    try:
        engine = Noted(number=signal.SIGTERM)
        run_loop_on(engine, make(budget=8), Limits(), None)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (got, engine.did[-1]) == ([signal.SIGTERM], "release")


async def coroutine(*_: object) -> None: ...


def test_coroutine_functions_are_recognised_in_every_form() -> None:
    class Called:
        async def __call__(self) -> None: ...

    import functools

    assert all(
        map(is_coroutine_evaluator, (coroutine, Called(), functools.partial(functools.partial(coroutine, 1), 2)))
    )
    assert not any(map(is_coroutine_evaluator, (len, Called, object(), functools.partial(len), 5, lambda: coroutine())))
