"""The examples in the laboratory's docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import thresher.lab

NAMES = ["thresher.paper.theory", "thresher.cli.lab_options", "thresher.lab"] + [
    f"thresher.lab.{module.name}" for module in pkgutil.iter_modules(thresher.lab.__path__)
]


@pytest.mark.parametrize("name", NAMES)
def test_examples_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
