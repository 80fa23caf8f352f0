"""inspect_ai: which tasks or models reach the bar on their samples? Each task stops as soon as it is settled.

    from thresher.adapters.inspect import sift

    verdict = sift([terse(), polite(), step_by_step()], at_least=0.9, model="openai/gpt-4o")

The arms are the tasks, and the cases are their samples. inspect_ai is imported when it is needed.
"""

import copy
import functools
import hashlib
import json
import math
import os
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from ..core.parameters import Guarantee
from ..core.spec import Spec
from ..core.verdict import Verdict
from ..create import take_up_study
from ..depends import source_digest
from ..errors import CannotGoOn, InvalidInput
from ..log.store import Storage
from ..run.evaluator_errors import names_refused_evaluator_error
from ..study import Study
from ..text.phrasing import listed_phrase
from ..text.quantities import PERCENT
from .host_gate import HostGate

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalLog, EvalSpec, Transcript
    from inspect_ai.model import Model
    from inspect_ai.scorer import SampleScore
    from inspect_ai.solver import TaskState
    from inspect_ai.util import EarlyStop


# The reward in the scores of a sample.

Value = Callable[[Any], float]  # turns a score's value into a reward
SHARES = (0.0, 1.0)  # the bounds of scores that are shown in percent
WORDS = {"c": 1.0, "i": 0.0, "p": 0.5, "n": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def inspect_scorer(names: Iterable[str], wanted: str | None) -> str:
    """The task's scorer that gives the reward.

    >>> inspect_scorer(["match"], None), inspect_scorer(["match", "inspect_ai/includes"], "includes")
    ('match', 'includes')
    >>> inspect_scorer(["match", "includes"], None)
    Traceback (most recent call last):
    thresher.errors.InvalidInput: scorer None: the task has several: match, includes; name one, as scorer='match'
    """
    known = [name.rsplit("/", 1)[-1] for name in names]
    if not known:
        raise InvalidInput("scorer", wanted, "the task has none, so its samples have no reward", "give it a scorer")
    if wanted is None and len(known) > 1:
        rule = f"the task has several: {', '.join(known)}"
        raise InvalidInput("scorer", wanted, rule, f"name one, as scorer={known[0]!r}")
    if wanted is not None and wanted not in known:
        raise InvalidInput("scorer", wanted, "is not a scorer of the task", f"it has {listed_phrase(known)}")
    return wanted or known[0]


def inspect_reward(scores: Mapping[str, Any], scorer: str, value: Value | None) -> float | None:
    """The reward in a sample's scores, or None if the scorer gave none, or says that the sample cannot be scored."""
    score = scores.get(scorer)
    if score is None:
        return None
    scored = score.score.value
    reward = inspect_number(scored) if value is None else value(scored)
    return None if isinstance(reward, float) and math.isnan(reward) else reward


def inspect_number(value: object) -> float:
    """The number that inspect_ai's metrics make of a value. Values that they count as 0 with a warning are errors here.

    >>> inspect_number("C"), inspect_number("P"), inspect_number(True), inspect_number("0.25"), inspect_number("no")
    (1.0, 0.5, 1.0, 0.25, 0.0)
    >>> inspect_number({"helpful": 1})
    Traceback (most recent call last):
    thresher.errors.InvalidInput: score {'helpful': 1}: is not a number; pass value=, a function that makes it one
    """
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str) and value.lower() in WORDS:
        return WORDS[value.lower()]
    try:
        return float(value)  # type: ignore[arg-type]  # anything else raises
    except (TypeError, ValueError):
        remedy = "pass value=, a function that makes it one"
        raise InvalidInput("score", value, "is not a number", remedy) from None


# What the scores of a task depend on: its model, solver, scorer and samples, the options of the eval, and the files
# that define these. If they change, the study gets another revision, and the task is evaluated again.

PACKAGES = "site-packages"
MODEL = "INSPECT_EVAL_MODEL"  # the environment variable with the default model
HARMLESS = {  # settings for calling a model that change no answer
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections", "adaptive_connections"),
    *("cache", "cache_prompt", "batch"),
}
COUNTING = {  # options of eval that change scores, besides the settings for calling a model
    *("model_base_url", "model_args", "model_roles", "task_args", "solver", "sandbox"),
    *("message_limit", "token_limit", "turn_limit", "time_limit", "working_limit", "cost_limit"),
}


def inspect_depends(
    arms: "Mapping[str, Task]",
    samples: "Mapping[str, Mapping[str, Sample]]",
    options: Mapping[str, Any],
    value: Callable[[Any], float] | None,
    scorer: str | None,
) -> dict[str, Any]:
    """Digests of what all scores, those of a task and those of a sample depend on: see `revisions.Depends`."""
    from inspect_ai import __version__
    from inspect_ai.model import GenerateConfig

    counting = (COUNTING | GenerateConfig.model_fields.keys()) - HARMLESS
    settings = {key: setting for key, setting in options.items() if key in counting}
    common = {"inspect_ai": __version__, "the options of the eval": _digest([settings, value, scorer])}
    common |= _source_files([settings, value])
    shared = {}  # the samples that are the same for all tasks
    for case in common_sample_ids(samples):
        digests = {_digest(_sample_content(own[case])) for own in samples.values()}
        if len(digests) == 1:
            shared[case] = {"the sample": digests.pop()}
    of_arms = {}
    for arm, task in arms.items():
        model = task.model or options.get("model") or os.environ.get(MODEL)
        parts = [task.config, task.setup, task.solver, task.scorer, task.sandbox, task.model_roles]
        own = [_sample_content(sample) for case, sample in sorted(samples[arm].items()) if case not in shared]
        of_arms[arm] = {f"task {arm}": _digest([model, parts]), **_source_files(parts)}
        of_arms[arm] |= {f"the samples of {arm}": _digest(own)} if own else {}
    return {"files": common, "arms": of_arms, "cases": shared}


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=_without_process)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _source_files(values: object) -> dict[str, str]:
    """The digests of the files that define solvers, scorers and functions. Packages are not among these."""
    files: dict[str, str] = {}

    def note(value: object) -> object:
        defined = value if hasattr(value, "__qualname__") else type(value)
        module = sys.modules.get(defined.__module__)
        if PACKAGES not in (getattr(module, "__file__", None) or PACKAGES):
            files.update(source_digest(defined))  # type: ignore[arg-type]
        return _without_process(value)

    json.dumps(values, default=note)
    return files


def _sample_content(sample: "Sample") -> list[Any]:
    """The content of a sample, without the ids of its messages, which are random."""
    asked = (
        sample.input
        if isinstance(sample.input, str)
        else [message.model_dump(exclude={"id"}, exclude_none=True) for message in sample.input]
    )
    others = [sample.choices, sample.metadata, sample.sandbox, sample.files, sample.setup]
    return [sample.id, asked, sample.target, *others]


def _without_process(value: object) -> object:
    """An object that JSON does not know, without anything that differs from process to process."""
    from inspect_ai._util.registry import is_registry_object, registry_log_name, registry_params
    from inspect_ai.model import Model
    from pydantic import BaseModel

    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, Model):
        arguments = {name: argument for name, argument in value.model_args.items() if name != "api_key"}
        return [str(value), value.config, value.api.base_url, arguments]
    if is_registry_object(value):
        return [registry_log_name(value), registry_params(value)]
    if isinstance(value, Sequence):  # such as a chain of solvers
        return list(value)
    if isinstance(value, BaseModel):
        return {key: field for key, field in value.model_dump(exclude_none=True).items() if key not in HARMLESS}
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}.{named.__qualname__}"


# The EarlyStopping object of inspect_ai. It asks an arm's gate about each sample, and tells it the scores.

Answer = TypeVar("Answer")
LONGEST = 300  # characters of an error of inspect_ai that are shown
NUMBERED = 5  # a shuffled list of more samples than this is not in order by chance
_started: "WeakKeyDictionary[Study, dict[str, InspectStopping]]" = WeakKeyDictionary()  # the last to start, by arm


class InspectStopping:
    """Stops a task's samples as soon as its arm of a study is settled: an ``EarlyStopping`` of inspect_ai.

    `stopping` makes one. When an eval is cancelled or ends with an error, pulls may stay pending. ``close()``, or the
    end of a ``with`` block, drops them.
    """

    def __init__(self, study: Study, arm: str, *, scorer: str | None, value: Value | None, shuffled: bool) -> None:
        self.gate = HostGate(study, arm)
        self.error: BaseException | None = None  # the first error, which inspect_ai only logs
        self._study, self._arm, self._wanted, self._value = study, arm, scorer, value
        self._scorer = scorer or ""
        self._tolerant = False  # whether the task continues after an error
        self._transcripts: dict[int, Transcript] = {}  # by case: of samples that began and have no scores yet
        self._shuffled = shuffled  # whether the study, not the host, orders the samples

    async def start_task(self, task: "EvalSpec", samples: "list[Sample]", epochs: int) -> str:
        """Called by inspect_ai when the task begins."""
        return await self._call(lambda: self._start(task, [sample.id for sample in samples], epochs))

    async def schedule_sample(self, id: str | int, epoch: int) -> "EarlyStop | None":  # noqa: A002 - their name
        """Called by inspect_ai when a sample is about to run."""
        from inspect_ai.log import transcript
        from inspect_ai.util import EarlyStop

        case = self._study.spec.case(id)
        reason = await self._call(lambda: self.gate.begin(case))
        if reason is not None:
            return EarlyStop(id=id, epoch=epoch, reason=reason)
        self._transcripts[case] = transcript()
        return None

    async def complete_sample(self, id: str | int, epoch: int, scores: "dict[str, SampleScore]") -> None:  # noqa: A002
        """Called by inspect_ai when a sample has its scores."""
        case = self._study.spec.case(id)
        self._transcripts.pop(case, None)
        await self._call(lambda: self._tell(case, scores))

    async def complete_task(self) -> dict[str, Any]:
        """Called by inspect_ai when all samples of the task have ended."""
        await self._call(lambda: self.gate.end(finished=True))
        row = self._study.verdict()[self._arm]
        return {"study": self._study.name, "arm": self._arm, "reached": row.reached, "certified": row.certified}

    def cleanup(
        self, own_cleanup: "Callable[[TaskState], Awaitable[None]] | None"
    ) -> "Callable[[TaskState], Awaitable[None]]":
        """The value for `Task(cleanup=…)`, which is called even for a sample whose error is tolerated."""

        async def clean(state: "TaskState") -> None:
            if self._tolerant and self._scorer not in (state.scores or {}):
                self.gate.ended(self._study.spec.case(state.sample_id))
            if own_cleanup is not None:
                await own_cleanup(state)

        return clean

    def close(self) -> None:
        """Drop all pending pulls.

        Samples that raised an error have failed. Others that began and have no score are lost; the rest never began.
        """
        while self._transcripts:
            case, transcript = self._transcripts.popitem()
            if error := inspect_error(transcript):
                refused = names_refused_evaluator_error(error.partition("(")[0])
                self.gate.fail(case, error[:LONGEST], cause="refused" if refused else "failed")
        self.gate.end(finished=False)

    def __enter__(self) -> "InspectStopping":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self, task: "EvalSpec", ids: list[Any], epochs: int) -> str:
        self.close()  # the pulls that an earlier attempt of the task left
        if (earlier := _started.setdefault(self._study, {}).get(self._arm)) not in (None, self):
            earlier.close()
        _started[self._study][self._arm] = self
        check_eval(epochs, task.config.log_samples, task.config.sample_id)
        self._tolerant = task.config.fail_on_error not in (None, True) or task.config.continue_on_fail is True
        self._scorer = inspect_scorer([known.name for known in task.scorers or []], self._wanted)
        cases = [self._case(sample) for sample in ids]
        if not self._shuffled:
            self._check_shuffled(task, ids)
            self.gate.follow(cases)
        return "thresher"

    def _check_shuffled(self, task: "EvalSpec", ids: list[Any]) -> None:
        """Check that each remaining sample is equally likely to be the next one, whatever was seen before."""
        name, count = task.dataset.name or task.task, self._study.spec.case_count
        if not task.dataset.shuffled:
            rule = "is not shuffled, and the first samples need not be like the others"
            raise InvalidInput("dataset", name, rule, "pass sample_shuffle=True to eval, or use sift")
        if task.dataset.samples != count:
            rule = f"has {task.dataset.samples} samples, and the study {count} cases"
            raise InvalidInput("dataset", name, rule, "they must be the same; limit= of eval is fine")
        if len(ids) > NUMBERED and [*map(str, ids)] == [*map(str, range(1, len(ids) + 1))]:
            rule = "is in order, so its samples were numbered after it was shuffled, in another way each time"
            raise InvalidInput("dataset", name, rule, "give the samples ids")

    def _case(self, sample: Any) -> int:
        try:
            return self._study.spec.case(sample)
        except InvalidInput as error:
            raise InvalidInput("sample", sample, "is not a case of the study", error.remedy) from None

    def _tell(self, case: int, scores: "dict[str, SampleScore]") -> None:
        try:
            reward = inspect_reward(scores, self._scorer, self._value)
        except BaseException:
            self.gate.fail(case, "its score could not be read")
            raise
        if reward is None:
            self.gate.fail(case, f"no score of {self._scorer}")
        else:
            self.gate.tell(case, reward)

    async def _call(self, act: Callable[[], Answer]) -> Answer:
        """Call ``act``, on a thread if the store may block, and remember the first error."""
        import anyio

        try:
            return await anyio.to_thread.run_sync(act) if self._study.store.leased else act()
        except Exception as error:
            self.error = self.error or error
            raise


def inspect_error(transcript: "Transcript") -> str | None:
    """The error of a sample, as inspect_ai writes it, or None if it had none or was cancelled with its task."""
    errors = [event.error.message for event in transcript.events if event.event == "error"]
    return next((error for error in errors if not error.startswith("Cancelled")), None)


def check_eval(epochs: Any, log_samples: bool | None = None, sample_id: object = None) -> None:
    """Refuse options of an eval with which no study of its samples can run."""
    if (getattr(epochs, "epochs", epochs) or 1) > 1:
        raise InvalidInput("epochs", epochs, "each sample is a case, and a case counts once", "run one epoch")
    if log_samples is False:
        raise InvalidInput("log_samples", False, "inspect_ai stops no sample early without them", "leave it out")
    if sample_id is not None:
        rule = "samples chosen by hand need not be like the others"
        raise InvalidInput("sample_id", sample_id, rule, "leave it out; limit= is fine")


# One call of `sift`: a study whose arms are tasks and whose cases are samples.


class InspectSifting:
    """Within the ``with`` block, the caller evaluates ``tasks`` with ``options`` and sets ``logs``."""

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
        arms = inspect_arms(tasks, models)
        self.options = _checked_options(options, len(arms))
        samples = {arm: inspect_samples(arm, task, scorer) for arm, task in arms.items()}
        spec = Spec(
            arms=list(arms),
            cases=common_sample_ids(samples),
            tries=1 + (options.get("retry_on_error") or 0),
            max_failures=None,  # fail_on_error says when errors end a task
            unit=PERCENT if question.get("bounds", SHARES) == SHARES else None,
            depends=inspect_depends(arms, samples, options, value, scorer),
            **question,
        )
        self.study, _ = take_up_study(name, spec, storage=storage)
        self.logs: list[EvalLog] = []
        self.stops: dict[str, InspectStopping] = {}
        self.tasks: list[Task] = []
        for arm, task in arms.items():
            stop = InspectStopping(self.study, arm, scorer=scorer, value=value, shuffled=True)
            order = [] if stop.gate.over() else stop.gate.upcoming()
            if order:
                self.stops[arm] = stop
                self.tasks.append(self._ordered(task, samples[arm], order, stop))

    def _ordered(self, task: "Task", samples: "dict[str, Sample]", order: list[int], stop: InspectStopping) -> "Task":
        """A copy of the task whose samples are in the study's own order of the arm."""
        from inspect_ai.dataset import MemoryDataset

        ordered = [samples[str(self.study.spec.case_name(case))] for case in order]
        task = copy.copy(task)
        task.dataset = MemoryDataset(ordered, task.dataset.name, task.dataset.location, shuffled=True)
        task.early_stopping, task.cleanup = stop, stop.cleanup(task.cleanup)
        return task

    def __enter__(self) -> "InspectSifting":
        return self

    def __exit__(self, *_: object) -> None:
        for stop in self.stops.values():
            stop.close()
        self.study.close()

    def verdict(self) -> Verdict:
        """The verdict after the eval. Our own errors are raised. A task's error is a warning, unless nothing ran."""
        for stop in self.stops.values():
            if stop.error is not None:
                raise stop.error
        with self.study:
            verdict = self.study.verdict()
        failed = [log for log in self.logs if log.status == "error"]
        for log in failed:
            reason = (log.error.message if log.error else "no reason was given")[:LONGEST]
            if verdict.told == 0 and len(failed) == len(self.logs):
                raise CannotGoOn(f"task {log.eval.task}", rule=f"ended with an error: {reason}", remedy=log.location)
            warnings.warn(f"task {log.eval.task} with {log.eval.model} ended with an error: {reason}", stacklevel=3)
        return verdict


def inspect_arms(tasks: Any, models: Any) -> "dict[str, Task]":
    """The arms: every task, or every task with each of the models."""
    from inspect_ai import Task
    from inspect_ai.model import get_model

    if isinstance(tasks, Task):
        tasks = [tasks]
    named_tasks = tasks.items() if isinstance(tasks, Mapping) else [(None, task) for task in tasks]
    if models is not None and not isinstance(models, Mapping):
        models = {str(model): model for model in models}
    arms: dict[str, Task] = {}

    def add(name: str, task: Task) -> None:
        if name in arms:
            raise InvalidInput("task", name, "is given twice", "name the tasks, or the models: {name: task}")
        arms[name] = task

    for name, task in named_tasks:
        if not isinstance(task, Task):
            raise InvalidInput("task", task, "is not a Task of inspect_ai", "call the function that makes it")
        if models is None:
            add(name or task.name, task)
            continue
        for known_as, model in models.items():
            with_model = copy.copy(task)
            with_model.model = get_model(model)
            add(f"{name or task.name}@{known_as}", with_model)
    return arms


def inspect_samples(arm: str, task: "Task", scorer: str | None) -> "dict[str, Sample]":
    """The samples of a task by their ids. Samples without one are numbered from 1, as inspect_ai does."""
    from inspect_ai._util.registry import registry_log_name

    if task.sample_source is not None:
        raise InvalidInput("task", arm, "has a SampleSource, so its samples are not known before", "give it a dataset")
    check_eval(task.epochs)
    inspect_scorer([registry_log_name(known) for known in task.scorer or []], scorer)
    samples: dict[str, Sample] = {}
    for number, sample in enumerate(task.dataset, 1):
        if sample.id is None and task.dataset.shuffled:
            rule = "its dataset is shuffled, and its samples have no ids"
            raise InvalidInput("task", arm, rule, "give them ids, or do not shuffle: sift does")
        named = sample if sample.id is not None else sample.model_copy(update={"id": number})
        if str(named.id) in samples:
            raise InvalidInput("sample", named.id, f"occurs twice in task {arm!r}", "give samples different ids")
        samples[str(named.id)] = named
    if not samples:
        raise InvalidInput("task", arm, "has no samples", "give it a dataset")
    return samples


def common_sample_ids(samples: "Mapping[str, Mapping[str, Sample]]") -> list[str]:
    """The ids that all tasks share, in a fixed order."""
    if not samples:
        raise InvalidInput("tasks", [], "must not be empty", "give at least one")
    (first, known), *others = samples.items()
    for arm, ids in others:
        for sample in [*known, *ids]:
            if sample not in ids or sample not in known:
                has, lacks = (first, arm) if sample in known else (arm, first)
                rule = f"is in task {has!r} and not in task {lacks!r}"
                remedy = "all tasks need the same sample ids; sift others by themselves"
                raise InvalidInput("sample", sample, rule, remedy)
    return sorted(known)


def _checked_options(options: Mapping[str, Any], arms: int) -> dict[str, Any]:
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


SIFT_ARGUMENTS = ("models", "tolerance", "scorer", "value", "bounds", "confidence", "guarantee", "budget", "storage")
__all__ = ["InspectStopping", "asift", "sift", "stopping"]


def stopping(study: Study, arm: str, *, scorer: str | None = None, value: Value | None = None) -> InspectStopping:
    """The value for ``Task(early_stopping=…)`` that stops the task when the arm of the study is settled.

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
    return InspectStopping(study, arm, scorer=scorer, value=value, shuffled=False)


def sift(
    tasks: "Sequence[Task] | Mapping[str, Task] | Task",
    *,
    at_least: float,
    tolerance: float = 0.0,
    models: "Sequence[str | Model] | Mapping[str, str | Model] | None" = None,
    scorer: str | None = None,
    value: Value | None = None,
    bounds: tuple[float, float] = SHARES,
    confidence: float = 0.95,
    guarantee: Guarantee = "all",
    budget: int | None = None,
    storage: Storage = None,
    name: str = "inspect",
    seed: int | None = None,
    **eval_options: Any,
) -> Verdict:
    """Which of these tasks or models have a mean score of at least the bar? Each stops as soon as it is settled.

    All tasks run at once, on the same samples, in an order that the study draws for each task. Any other argument goes
    to `inspect_ai.eval`.

    The arguments:
        tasks: tasks with the same sample ids: a list, ``{name: task}``, or one task with several ``models``.
        at_least: the bar that the mean score over all samples must reach.
        tolerance: within this of the bar, either answer is right; this saves most of the samples.
        models: evaluate every task with each of these: a list, or ``{name: model}``. Arms are named ``task@model``.
        scorer: the scorer whose score counts; needed if a task has several.
        value: turns the value of a score into a number within the bounds. By default C is 1, P is 0.5, I and N are 0.
        bounds: where these numbers can lie.
        confidence: how sure all certified answers together must be.
        guarantee: see `thresher.create_study`.
        budget: samples, over all tasks. None: until every task is settled.
        storage: where to keep the study, as ``"sqlite:///evals.db"``. The same call resumes it; if tasks, samples or
            the question changed, only what changed is evaluated. None: in memory.
        name: the study's name.
        seed: keys the orders of the samples. None: every new study draws its own.

    ``fail_on_error`` means what it means to inspect_ai. A sample with an error counts as the worst; an eval that ends
    with one or is cancelled loses the other samples that were running, and the same call runs these again.
    """
    question: dict[str, Any] = {
        "at_least": at_least,
        "tolerance": tolerance,
        "bounds": bounds,
        "confidence": confidence,
        "guarantee": guarantee,
    }
    question |= {"budget": budget, "storage": storage, "name": name, "seed": seed}
    with InspectSifting(tasks, models, eval_options, scorer=scorer, value=value, **question) as sifting:
        if sifting.tasks:
            from inspect_ai import eval as evaluate

            sifting.logs = evaluate(sifting.tasks, **sifting.options)
    return sifting.verdict()


async def asift(tasks: "Sequence[Task] | Mapping[str, Task] | Task", *, at_least: float, **options: Any) -> Verdict:
    """The same as `sift`, with the same arguments, as a coroutine. inspect_ai runs one eval at a time."""
    arguments = {key: options.pop(key) for key in (*SIFT_ARGUMENTS, "name", "seed") if key in options}
    with InspectSifting(tasks, arguments.pop("models", None), options, at_least=at_least, **arguments) as sifting:
        if sifting.tasks:
            from inspect_ai import eval_async as evaluate

            sifting.logs = await evaluate(sifting.tasks, **sifting.options)
    return sifting.verdict()
