"""How a run begins and ends: its defaults, its limits, its engine, and what evaluators share."""

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
from thresher.run.evaluators import Shared, entered, entered_async, is_coroutine, read_shared
from thresher.run.loop import Limits, run_on
from thresher.study import Pull


def defaults(function: Callable[..., object]) -> dict[str, object]:
    parameters = inspect.signature(function).parameters.values()
    return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}


def test_the_defaults_are_those_that_are_documented() -> None:
    limits = {"in_flight": None, "timeout": None, "seconds": None, "give_up": 600.0}
    others = {"on_progress": None, "shared": None}
    assert defaults(thresher.arun) == {"workers": 16, **limits, **others}
    assert defaults(thresher.run) == {"workers": None, "executor": None, "resources": None, **limits, **others}
    assert limits.items() <= defaults(Limits).items()


@pytest.mark.parametrize("given", [{"in_flight": 1}, {"timeout": 0.001}, {"seconds": 1e-9}, {"give_up": 1}])
def test_the_least_limits_are_accepted(given: dict[str, Any]) -> None:
    Limits(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"in_flight": 0},
        {"timeout": 0},
        {"seconds": -1},
        {"give_up": 0},
    ],
)
def test_smaller_limits_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(given))):
        Limits(**given)


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
    run_on(engine, study, Limits(), None)
    assert engine.did == ["prepare", ("close", True), "release"]
    assert study.verdict().told == 8


def test_an_engine_that_cannot_be_prepared_is_closed_and_no_pull_is_issued() -> None:
    engine, study = Noted(prepares=False), make(budget=8)
    with pytest.raises(CannotGoOn, match="its set-up failed"):
        run_on(engine, study, Limits(), None)
    assert engine.did == ["prepare", ("close", True), "release"]
    assert len(study.events()) == 1


def test_after_the_run_a_signal_has_its_usual_effect() -> None:
    with pytest.raises(KeyboardInterrupt):
        run_on(Noted(number=signal.SIGINT), make(budget=8), Limits(), None)
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        with pytest.raises(KeyboardInterrupt):  # whatever else handles it, the run did not come to its end
            run_on(Noted(number=signal.SIGINT), make(budget=8), Limits(), None)
    finally:
        signal.signal(signal.SIGINT, before)
    got: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: got.append(number))
    try:
        engine = Noted(number=signal.SIGTERM)
        run_on(engine, make(budget=8), Limits(), None)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert (got, engine.did[-1]) == ([signal.SIGTERM], "release")


# -- what evaluators share -------------------------------------------------------------------------------------------


class Plain:
    """A context manager that notes how it is used."""

    def __init__(self) -> None:
        self.did: list[object] = []

    def __enter__(self) -> str:
        self.did.append("entered")
        return "thing"

    def __exit__(self, *error: object) -> None:
        self.did.append(error)


class Later:
    """The same for coroutines."""

    def __init__(self) -> None:
        self.did: list[object] = []

    async def __aenter__(self) -> str:
        self.did.append("awaited")
        return "thing"

    async def __aexit__(self, *error: object) -> None:
        self.did.append(error)


class Both(Plain, Later):
    """One that can be used either way."""


async def coroutine(*_: object) -> None: ...


def fail(_: object) -> None:
    raise KeyError("no")


@pytest.mark.parametrize(
    ("given", "awaits", "is_pair", "is_async"),
    [
        (Plain(), False, False, False),
        (Plain(), True, False, False),
        (Later(), True, False, True),
        (Both(), False, False, False),
        (Both(), True, False, True),
        ((dict, print), False, True, False),
        ([dict, print], True, True, False),
        ((coroutine, print), True, True, True),
        ((dict, coroutine), True, True, True),
    ],
)
def test_what_can_be_shared_is_recognised(given: Any, awaits: bool, is_pair: bool, is_async: bool) -> None:
    found = read_shared(given, awaits=awaits)
    assert found is not None
    assert (found.is_pair, found.is_async) == (is_pair, is_async)
    assert read_shared(None, awaits=awaits) is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (5, r"must be a context manager or a pair of functions, \(set_up, clean_up\)$"),
        (Plain, r"must be a context manager or a pair of functions, \(set_up, clean_up\); pass what it returns"),
        ((dict,), "must be a context manager or a pair"),
        ((dict, 5), "must be a context manager or a pair"),
        (
            Later(),
            "needs an event loop, which a plain evaluator does not run on; make the evaluator a coroutine function",
        ),
        ((coroutine, print), "needs an event loop"),
    ],
)
def test_what_cannot_be_shared_is_refused(given: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        read_shared(given, awaits=False)


def test_it_is_set_up_and_cleaned_up_however_the_block_ends(caplog: pytest.LogCaptureFixture) -> None:
    manager = Plain()
    with entered(read_shared(manager, awaits=False)) as more:
        assert (more, manager.did) == (("thing",), ["entered"])
    assert manager.did[1:] == [(None, None, None)]
    did: list[object] = []
    with pytest.raises(LookupError), entered(Shared(lambda: "it", did.append)):
        raise LookupError("no")
    assert did == ["it"]
    with entered(None) as more:
        assert more == ()
    with entered(Shared(dict, fail)):
        pass
    assert "shared: its clean-up failed: KeyError: 'no'; no reward is lost" in caplog.text
    words = "shared: its set-up failed: KeyError: 'no'; no pull was issued"
    with pytest.raises(CannotGoOn, match=words), entered(Shared(lambda: fail(0), print)):
        pass
    words = "its set-up returned a coroutine, which a plain evaluator cannot await"
    with pytest.raises(InvalidInput, match=words), entered(Shared(lambda: coroutine(), print)):
        pass


def test_in_an_event_loop_each_part_may_be_a_coroutine(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        manager = Later()
        async with entered_async(read_shared(manager, awaits=True)) as more:
            assert (more, manager.did) == (("thing",), ["awaited"])
        assert manager.did[1:] == [(None, None, None)]
        async with entered_async(None) as more:
            assert more == ()
        did: list[object] = []
        with pytest.raises(LookupError):
            async with entered_async(Shared(lambda: "it", did.append)):
                raise LookupError("no")
        assert did == ["it"]
        async with entered_async(Shared(dict, fail)):
            pass
        assert "shared: its clean-up failed: KeyError: 'no'; no reward is lost" in caplog.text
        with pytest.raises(CannotGoOn, match="its set-up failed: KeyError: 'no'"):
            async with entered_async(Shared(lambda: fail(0), print)):
                pass

    asyncio.run(main())


def test_coroutine_functions_are_recognised_in_every_form() -> None:
    class Called:
        async def __call__(self) -> None: ...

    import functools

    assert all(map(is_coroutine, (coroutine, Called(), functools.partial(functools.partial(coroutine, 1), 2))))
    assert not any(map(is_coroutine, (len, Called, Plain(), functools.partial(len), 5, lambda: coroutine())))
