"""One call of `sift`: a study whose arms are tasks and whose cases are samples, and the tasks in the study's order."""

import copy
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.verdict import Verdict
from ..create import create_study
from ..errors import CannotGoOn, InvalidInput
from ..log.store import Storage
from .inspect_identity import identity
from .inspect_scores import Value, scorer_of
from .inspect_stopping import Stopping, check_eval

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalLog

LONGEST = 300  # characters of an error of inspect_ai that are shown


class Sifting:
    """Within its ``with`` block, the caller evaluates ``tasks`` with ``options`` and sets ``logs``."""

    def __init__(
        self,
        tasks: Any,
        models: Any,
        options: Mapping[str, Any],
        *,
        scorer: str | None = None,
        value: Value | None = None,
        storage: Storage = None,
        name: str = "inspect",
        **question: Any,
    ) -> None:
        arms = arms_of(tasks, models)
        self.options = _checked(options, len(arms))
        samples = {arm: samples_of(arm, task, scorer) for arm, task in arms.items()}
        self.study = create_study(
            name,
            arms=list(arms),
            cases=common(samples),
            tries=1 + (options.get("retry_on_error") or 0),
            max_failures=None,  # fail_on_error says when errors end a task
            storage=storage,
            if_exists="join",
            evaluator=identity(arms, samples, options, value, scorer),
            **question,
        )
        self.logs: list[EvalLog] = []
        self.stops: dict[str, Stopping] = {}
        self.tasks: list[Task] = []
        for arm, task in arms.items():
            stop = Stopping(self.study, arm, scorer=scorer, value=value, shuffled=True)
            order = [] if stop.gate.over() else stop.gate.upcoming()
            if order:
                self.stops[arm] = stop
                self.tasks.append(self._ordered(task, samples[arm], order, stop))

    def _ordered(self, task: "Task", samples: "dict[str, Sample]", order: list[int], stop: Stopping) -> "Task":
        """A copy of the task whose samples are in the study's own order of the arm."""
        from inspect_ai.dataset import MemoryDataset

        ordered = [samples[str(self.study.spec.case_name(case))] for case in order]
        found = copy.copy(task)
        found.dataset = MemoryDataset(ordered, task.dataset.name, task.dataset.location, shuffled=True)
        found.early_stopping, found.cleanup = stop, stop.cleanup(task.cleanup)
        return found

    def __enter__(self) -> "Sifting":
        return self

    def __exit__(self, *_: object) -> None:
        for stop in self.stops.values():
            stop.close()
        self.study.close()

    def verdict(self) -> Verdict:
        """The answer, after the eval. Our own errors are raised; a task's error is a warning, unless nothing ran."""
        for stop in self.stops.values():
            if stop.error is not None:
                raise stop.error
        with self.study:
            found = self.study.verdict()
        failed = [log for log in self.logs if log.status == "error"]
        for log in failed:
            said = (log.error.message if log.error else "no reason was given")[:LONGEST]
            if found.told == 0 and len(failed) == len(self.logs):
                raise CannotGoOn(f"task {log.eval.task}", rule=f"ended with an error: {said}", remedy=log.location)
            warnings.warn(f"task {log.eval.task} with {log.eval.model} ended with an error: {said}", stacklevel=3)
        return found


def arms_of(tasks: Any, models: Any) -> "dict[str, Task]":
    """The arms: every task, or every task with each of the models."""
    from inspect_ai import Task
    from inspect_ai.model import get_model

    listed = [tasks] if isinstance(tasks, Task) else tasks
    pairs = list(listed.items()) if isinstance(listed, Mapping) else [(None, task) for task in listed]
    each = [None] if models is None else models
    chosen = each.items() if isinstance(each, Mapping) else [(str(model), model) for model in each]
    found: dict[str, Task] = {}
    for given, task in pairs:
        if not isinstance(task, Task):
            raise InvalidInput("task", task, "is not a Task of inspect_ai", "call the function that makes it")
        for label, model in chosen:
            arm, name = task, given or task.name
            if models is not None:
                arm, name = copy.copy(task), f"{name}@{label}"
                arm.model = get_model(model)
            if name in found:
                raise InvalidInput("task", name, "is given twice", "name the tasks, or the models: {name: task}")
            found[name] = arm
    return found


def samples_of(arm: str, task: "Task", scorer: str | None) -> "dict[str, Sample]":
    """The samples of a task by their ids. Samples without one are numbered from 1, as inspect_ai does."""
    from inspect_ai._util.registry import registry_log_name

    if task.sample_source is not None:
        raise InvalidInput("task", arm, "has a SampleSource, so its samples are not known before", "give it a dataset")
    check_eval(task.epochs)
    scorer_of([registry_log_name(each) for each in task.scorer or []], scorer)
    found: dict[str, Sample] = {}
    for number, sample in enumerate(task.dataset, 1):
        if sample.id is None and task.dataset.shuffled:
            rule = "its dataset is shuffled, and its samples have no ids"
            raise InvalidInput("task", arm, rule, "give them ids, or do not shuffle: sift does")
        one = sample if sample.id is not None else sample.model_copy(update={"id": number})
        if str(one.id) in found:
            raise InvalidInput("sample", one.id, f"occurs twice in task {arm!r}", "give samples different ids")
        found[str(one.id)] = one
    if not found:
        raise InvalidInput("task", arm, "has no samples", "give it a dataset")
    return found


def common(samples: "Mapping[str, Mapping[str, Sample]]") -> list[str]:
    """The ids that all tasks share, in a fixed order."""
    if not samples:
        raise InvalidInput("tasks", [], "must not be empty", "give at least one")
    (first, known), *others = samples.items()
    for arm, these in others:
        for one in [*known, *these]:
            if one not in these or one not in known:
                has, lacks = (first, arm) if one in known else (arm, first)
                rule = f"is in task {has!r} and not in task {lacks!r}"
                raise InvalidInput("sample", one, rule, "all tasks need the same sample ids; sift others by themselves")
    return sorted(known)


def _checked(options: Mapping[str, Any], arms: int) -> dict[str, Any]:
    """The options for eval, by default with all tasks at once."""
    limit = options.get("limit")
    check_eval(options.get("epochs"), options.get("log_samples"), options.get("sample_id"))
    if limit is not None and not isinstance(limit, int):
        raise InvalidInput("limit", limit, "the study draws the order of samples", "give a number of samples")
    if options.get("score") is False:
        raise InvalidInput("score", False, "without scores there are no rewards", "leave it out")
    if isinstance(options.get("model"), Sequence) and not isinstance(options["model"], str):
        raise InvalidInput("model", options["model"], "is a list", "pass models=, which makes arms of them")
    return {"max_tasks": max(arms, 1), **options, "sample_shuffle": None}
