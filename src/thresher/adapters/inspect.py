"""inspect_ai: which tasks, or models, reach the bar on their samples? Each stops as soon as it is settled.

    from thresher.adapters.inspect import sift

    verdict = sift([terse(), polite(), step_by_step()], at_least=0.9, model="openai/gpt-4o")

The arms are the tasks, and the cases are their samples. inspect_ai is imported when it is needed.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.spec import Guarantee
from ..core.verdict import Verdict
from ..errors import InvalidInput
from ..log.store import Storage
from ..study import Study
from .inspect_scores import Value
from .inspect_sifting import Sifting
from .inspect_stopping import Stopping

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.model import Model

OWN = {"models", "scorer", "value", "bounds", "confidence", "guarantee", "budget", "storage", "name", "seed"}
__all__ = ["Stopping", "asift", "sift", "stopping"]


def stopping(study: Study, arm: str, *, scorer: str | None = None, value: Value | None = None) -> Stopping:
    """What to pass as ``Task(early_stopping=…)``, so that the task stops when the arm of the study is settled.

    The study's cases are the ids of the samples. inspect_ai decides the order of samples, so the dataset must be
    shuffled, for example with ``sample_shuffle=True``; the verdict names this assumption. If there are several scores,
    ``scorer`` names the one that is the reward, and ``value`` turns its value into a number.

    >>> import thresher
    >>> study = thresher.create_study("sums", arms=["terse"], at_least=0.9, cases=["2 + 2", "7 * 6"])
    >>> stop = stopping(study, "terse")  # for Task(…, early_stopping=stop)
    """
    spec = study.spec
    spec.arm(arm)
    if spec.cases is None:
        raise InvalidInput("study", study.name, "has no cases", "create it with cases=, the ids of the samples")
    if spec.baseline is not None:
        raise InvalidInput("study", study.name, "compares with a baseline, which goes first", "ask about a bar")
    if spec.guarantee == "rate":
        rule = "guarantee 'rate' needs an order of the samples for each arm that no other arm shares"
        raise InvalidInput("study", study.name, rule, "use sift, or guarantee='all'")
    return Stopping(study, arm, scorer=scorer, value=value, shuffled=False)


def sift(
    tasks: "Sequence[Task] | Mapping[str, Task] | Task",
    *,
    at_least: float,
    models: "Sequence[str | Model] | Mapping[str, str | Model] | None" = None,
    scorer: str | None = None,
    value: Value | None = None,
    bounds: tuple[float, float] = (0.0, 1.0),
    confidence: float = 0.95,
    guarantee: Guarantee = "all",
    budget: int | None = None,
    storage: Storage = None,
    name: str = "inspect",
    seed: int | None = None,
    **eval_options: Any,
) -> Verdict:
    """Which of these tasks, or models, have a mean score of at least the bar? Each stops as soon as that is settled.

    All tasks run at once, on the same samples, in an order that the study draws for each task. Any other argument goes
    to `inspect_ai.eval`.

    The arguments:
        tasks: tasks with the same sample ids: a list, ``{name: task}``, or one task with several ``models``.
        at_least: the bar that the mean score over all samples must reach.
        models: evaluate every task with each of these: a list, or ``{name: model}``. Arms are named ``task@model``.
        scorer: the scorer whose score counts; needed if a task has several.
        value: turns the value of a score into a number within the bounds. By default C is 1, P is 0.5, I and N are 0.
        bounds: where these numbers can lie.
        confidence: how sure all settled labels together must be.
        guarantee: see `thresher.create_study`.
        budget: samples, over all tasks. None: until every task is settled.
        storage: where to keep the study, as ``"sqlite:///evals.db"``; the same call resumes it. None: in memory.
        name: the study's name.
        seed: keys the orders of the samples. None: every new study draws its own.

    ``fail_on_error`` means what it means to inspect_ai. A sample whose error is tolerated counts as the worst; an eval
    that ends with an error or is cancelled loses the samples that were running, and the same call runs them again.
    """
    with Sifting(
        tasks,
        models,
        eval_options,
        scorer=scorer,
        value=value,
        at_least=at_least,
        bounds=bounds,
        confidence=confidence,
        guarantee=guarantee,
        budget=budget,
        storage=storage,
        name=name,
        seed=seed,
    ) as sifting:
        if sifting.tasks:
            from inspect_ai import eval as evaluate

            sifting.logs = evaluate(sifting.tasks, **sifting.options)
    return sifting.verdict()


async def asift(tasks: "Sequence[Task] | Mapping[str, Task] | Task", *, at_least: float, **options: Any) -> Verdict:
    """The same as `sift`, with the same arguments, as a coroutine. inspect_ai runs one eval at a time."""
    mine = {key: options.pop(key) for key in OWN & options.keys()}
    with Sifting(tasks, mine.pop("models", None), options, at_least=at_least, **mine) as sifting:
        if sifting.tasks:
            from inspect_ai import eval_async as evaluate

            sifting.logs = await evaluate(sifting.tasks, **sifting.options)
    return sifting.verdict()
