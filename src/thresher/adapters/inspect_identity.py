"""What measures the rewards of `sift`: a study is not resumed with another model, solver, scorer or dataset.

The names of the arms do not show this. Of a solver or a scorer, only its name and arguments count, not its code.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..text.phrasing import listed

if TYPE_CHECKING:
    from inspect_ai import Task
    from inspect_ai.dataset import Sample

MODEL = "INSPECT_EVAL_MODEL"  # the environment variable with the model, if none is given
HARMLESS = {  # settings of how a model is called that change no answer
    *("max_retries", "timeout", "attempt_timeout", "stream_idle_timeout", "max_connections", "adaptive_connections"),
    *("cache", "cache_prompt", "batch"),
}
COUNTING = {  # options of eval that change scores, besides the settings of how a model is called
    *("model_base_url", "model_args", "model_roles", "task_args", "solver", "sandbox"),
    *("message_limit", "token_limit", "turn_limit", "time_limit", "working_limit", "cost_limit"),
}


def identity(
    arms: "Mapping[str, Task]",
    samples: "Mapping[str, Mapping[str, Sample]]",
    options: Mapping[str, Any],
    value: Callable[[Any], float] | None,
    scorer: str | None,
) -> str:
    """A text that is the same for all calls that measure the same thing."""
    from inspect_ai.model import GenerateConfig

    counting = (COUNTING | GenerateConfig.model_fields.keys()) - HARMLESS
    otherwise = options.get("model") or os.environ.get(MODEL)
    parts = {
        arm: [
            task.model or otherwise,
            task.config,
            [task.setup, task.solver, task.scorer, task.sandbox, task.model_roles],
            [_content(sample) for _, sample in sorted(samples[arm].items())],
        ]
        for arm, task in arms.items()
    }
    given = {key: found for key, found in options.items() if key in counting}
    text = json.dumps([parts, given, value, scorer], sort_keys=True, default=_plain)
    models = sorted({str(task.model or otherwise) for task in arms.values()})
    return f"inspect_ai with {listed(models)}: {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def _content(sample: "Sample") -> list[Any]:
    """What a sample asks, without the ids of its messages, which are drawn at random."""
    asked = sample.input if isinstance(sample.input, str) else [(each.role, each.text) for each in sample.input]
    return [sample.id, asked, sample.target, sample.choices]


def _plain(found: object) -> object:
    """Objects that JSON does not know, without what differs from process to process."""
    from inspect_ai._util.registry import is_registry_object, registry_log_name, registry_params
    from inspect_ai.model import Model
    from pydantic import BaseModel

    if isinstance(found, Model):
        return [str(found), found.config]
    if is_registry_object(found):
        return [registry_log_name(found), registry_params(found)]
    if isinstance(found, Sequence):  # such as a chain of solvers
        return list(found)
    if isinstance(found, BaseModel):
        return {key: given for key, given in found.model_dump(exclude_none=True).items() if key not in HARMLESS}
    named = found if hasattr(found, "__qualname__") else type(found)
    return f"{named.__module__}.{named.__qualname__}"
