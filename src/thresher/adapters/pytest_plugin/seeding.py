"""Seeds: each run draws different random numbers, and the same seed draws the same numbers again."""

import random
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

GOLDEN = 0x9E3779B9  # separates the seeds of setup, call and teardown
SEED = pytest.StashKey[int]()


@contextmanager
def of_pull(config: pytest.Config, seed: int) -> Iterator[None]:
    """Use this seed within the block."""
    config.stash[SEED] = seed
    randomly, hypothesis = _randomly_seed(config), _hypothesis_seed()
    if randomly is not None:  # pytest-randomly seeds setup, call and teardown from this option
        config.option.randomly_seed = seed
    try:
        yield
    finally:
        if randomly is not None:
            config.option.randomly_seed = randomly
        _set_hypothesis(hypothesis)
        del config.stash[SEED]


def load_numpy() -> None:
    """Load numpy, if it is installed: a test that loads it by itself would draw before it is seeded."""
    if find_spec("numpy"):
        import_module("numpy.random")


def _randomly_seed(config: pytest.Config) -> int | None:
    """The seed of pytest-randomly; None if it is not active."""
    found = getattr(config.option, "randomly_seed", None)
    return found if isinstance(found, int) else None  # a word, if the plugin is blocked


def _seed(config: pytest.Config, phase: int) -> None:
    seed = config.stash.get(SEED, None)
    if seed is None:
        return
    value = (seed + phase * GOLDEN) % 2**32
    random.seed(value)
    numpy = _numpy_random()
    if numpy is not None:
        numpy.seed(value)
    _set_hypothesis(value)


def _hypothesis_seed() -> int | None:
    """The seed of all of Hypothesis's tests, as --hypothesis-seed sets it."""
    return getattr(sys.modules.get("hypothesis.core"), "global_force_seed", None)


def _set_hypothesis(seed: int | None) -> None:
    core: Any = sys.modules.get("hypothesis.core")
    if core is not None:
        core.global_force_seed = seed


def _numpy_random() -> Any:
    """The module ``numpy.random``, if numpy is loaded; newer versions load it when it is first used."""
    return getattr(sys.modules.get("numpy"), "random", None)


class Seeding:
    """Seeds every phase of a test. What a shared fixture draws does not shift the numbers that tests draw."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        _seed(item.config, 0)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> None:
        _seed(item.config, 1)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> None:
        _seed(item.config, 2)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        numpy = _numpy_random()
        state, states = random.getstate(), None if numpy is None else numpy.get_state()
        try:
            return (yield)
        finally:
            random.setstate(state)
            if numpy is not None:
                numpy.set_state(states)
