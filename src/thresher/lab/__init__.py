"""The laboratory: the core, compiled, over thousands of repetitions.

>>> from thresher import lab
>>> result = lab.simulate(lab.Setup(policy="anytime-evt", arms=20, budget=1000), repetitions=50, seed=1)
>>> bool(result.accuracy[-1] > 0.9)
True
"""

from ..errors import ThresherError, missing_package

try:
    import numba as _numba
    import numpy as _numpy
except ImportError as missing:
    rule, remedy = missing_package(missing, "lab")
    raise ThresherError("the laboratory", rule=rule, remedy=remedy) from missing


from ..core import evidence as certificate
from . import pictures, theory
from .comparing import Comparison, compare, labelled
from .delays import Delay
from .result import Result, csv_text, first_columns, first_reached, progress_bar, resampled
from .setup import Setup
from .simulator import instances, simulate, trace

__all__ = [
    "Comparison", "Delay", "Result", "Setup", "certificate", "compare", "csv_text", "first_columns", "first_reached",
    "instances", "labelled", "pictures", "progress_bar", "resampled", "simulate", "theory", "trace",
]  # fmt: skip
del _numba, _numpy
