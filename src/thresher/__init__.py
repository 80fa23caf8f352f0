"""thresher finds which of K noisy options clear a bar, with as few evaluations as possible."""

from collections.abc import Callable as _Callable
from collections.abc import Mapping as _Mapping
from collections.abc import Sequence as _Sequence
from contextlib import AbstractContextManager as _Context

from ._version import __version__
from .core.events import Event
from .core.policies import Policy, anytime_evt, ap_evt, ap_evt_pf, apt, balanced, cheapest, evt, evt_pf, lsa, uniform
from .core.replay import verify
from .core.row import Row
from .core.spec import Spec
from .core.verdict import Verdict
from .create import create_study, open_study
from .errors import (
    AlreadyTold,
    Busy,
    CannotGoOn,
    DamagedStudy,
    InvalidInput,
    OutsideBounds,
    StoreFailed,
    StudyDeleted,
    StudyExists,
    ThresherError,
    UnknownArm,
    UnknownPull,
    UnknownStudy,
)
from .log.store import Store
from .run.progress import Progress
from .run.runner import run  # this binds the function; the room `run` is reached with `from thresher.run import …`
from .study import Pull, Study

__all__ = [
    "AlreadyTold",
    "Busy",
    "CannotGoOn",
    "DamagedStudy",
    "Event",
    "InvalidInput",
    "OutsideBounds",
    "Policy",
    "Progress",
    "Pull",
    "Row",
    "Spec",
    "Store",
    "StoreFailed",
    "Study",
    "StudyDeleted",
    "StudyExists",
    "ThresherError",
    "UnknownArm",
    "UnknownPull",
    "UnknownStudy",
    "Verdict",
    "__version__",
    "anytime_evt",
    "ap_evt",
    "ap_evt_pf",
    "apt",
    "balanced",
    "cheapest",
    "create_study",
    "evaluator",
    "evt",
    "evt_pf",
    "live",
    "lsa",
    "open_study",
    "run",
    "uniform",
    "verify",
]


def evaluator(
    function: _Callable[[Pull], object],
    *,
    arms: _Sequence[str] | _Mapping[str, _Mapping[str, object]] | None = None,
    workers: int = 1,
) -> None:
    """Answer the pulls that ``thresher run --stay`` writes to standard input, until there are no more.

    The function takes a `Pull` and returns a number or a bool, or ``{"reward": 0.8, "note": "…", "cost": 0.02}``. What
    it raises is a failure of the pull, and `Busy` asks for it again later. What it prints goes to standard error. A
    coroutine function runs as many pulls at once as there are; a plain one as many as ``workers``, in threads.

    With ``arms``, names or ``{name: parameters}``, the study needs no ``--arms``::

        # evaluate.py: thresher run --stay --at-least 0.9 -- python evaluate.py
        import thresher

        model = load()  # once

        def evaluate(pull):
            return model.is_right(pull.arm, seed=pull.seed)

        thresher.evaluator(evaluate, arms=["terse", "polite"])
    """
    from .adapters.evaluator import evaluator as answer  # here: it loads asyncio

    answer(function, arms=arms, workers=workers)


def live(study: Study) -> _Context[_Callable[[Progress], object]]:
    """Show a run while it lasts, as the command line does: a live table on a terminal, elsewhere a line now and then.

    It is written to standard error. Use it around `run`::

        with thresher.live(study) as show:
            thresher.run(study, evaluate, on_progress=show)
    """
    from .cli.livetable import watching  # here: it loads what draws tables

    return watching(study, quiet=False)
