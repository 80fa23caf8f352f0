"""Requests and replies, as the OpenAPI document describes them. The library checks the values."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    create_model,
)

from ..core.events import CallersCause
from ..core.named_items import Params
from ..core.parameters import PARAMETERS, TYPES, SpecArguments
from ..core.pulls import TICKET
from ..core.spec import Spec
from ..depends import stored_depends

Number = StrictInt | StrictFloat
Ticket = Annotated[StrictStr, Field(pattern=f"^{TICKET.pattern}$", examples=["17-3f9c2a41"])]
PullNumber = Annotated[StrictInt, Field(ge=1, le=10**15)]
Id = Annotated[
    Ticket | PullNumber,
    Field(
        description="The pull, as `ask` gave it. Its number alone names the pull of whatever study has the name now."
    ),
]
Seconds = Annotated[Number, Field(gt=0, le=10**9)]
Reward = Number | StrictBool
TWO = Field(min_length=2, max_length=2)
QUESTIONS: list[JsonValue] = [
    {"name": "prompts", "arms": ["terse", "polite"], "at_least": 0.9},
    {"name": "latency", "arms": ["nginx", "caddy"], "at_most": 0.2, "share": 0.95, "unit": "s"},
    {"name": "beaten", "arms": ["current", "new"], "baseline": "current", "margin": 0.02},
]


class Strict(BaseModel):
    """Unknown fields are errors: a misspelt one must not be ignored."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """What was wrong: the thing, the value seen, the rule broken, and what to do."""

    error: str
    value: Any = None
    rule: str
    remedy: str


class Named(Strict):
    """A study to create."""

    name: StrictStr
    if_exists: Literal["error", "join", "revise", "fresh"] = "error"
    version: Annotated[
        StrictStr | None,
        Field(
            description="A text that stands for the code that evaluates. Results hold as long as it is the same, and "
            "agents must name it when they ask."
        ),
    ] = None


STRICT: dict[object, Any] = {  # what JSON has for the types of `SpecArguments`; the others have no form in JSON
    float: Number,
    int: StrictInt,
    str: StrictStr,
    bool: StrictBool,
    tuple[float, float]: tuple[Number, Number],
    Iterable[str]: list[StrictStr],
    Mapping[str, Params]: dict[str, dict[str, Any]],
    type(None): None,
}


def _field(name: str) -> tuple[Any, Any]:
    """The type and the description of a parameter's field."""
    parameter, kinds = PARAMETERS[name], get_args(TYPES[name]) or (TYPES[name],)
    if get_origin(TYPES[name]) in (Literal, tuple):
        kinds = (TYPES[name],)
    strict = [STRICT.get(kind, kind) for kind in kinds if kind in STRICT or get_origin(kind) is Literal]
    default = ... if name in SpecArguments.__required_keys__ else parameter.default
    return Union[tuple(strict)], Field(default, description=parameter.text)  # noqa: UP007 - of a computed tuple


_fields: dict[str, Any] = {name: _field(name) for name in PARAMETERS}
Question: Any = create_model("Question", __base__=Named, **_fields)


class NewStudy(Question):  # type: ignore[misc]  # its fields are the rows of the table
    """The question: a bar, or a baseline. The fields are those of `create_study`."""

    model_config = ConfigDict(json_schema_extra={"examples": QUESTIONS})

    def spec(self) -> Spec:
        spec = Spec(**self.model_dump(include=PARAMETERS.keys()))
        return spec.with_depends(stored_depends(spec, (), self.version))


class Ask(Strict):
    """How many pulls, how long their lease lasts, and of which arm."""

    n: Annotated[StrictInt, Field(ge=1, le=1000)] = 1
    lease: Seconds = 3600
    arm: Annotated[
        StrictStr | None,
        Field(description="The arm, if the caller chooses it, which the log records. None: the study chooses."),
    ] = None
    version: Annotated[
        StrictStr | None,
        Field(description="The version of the code that evaluates. If the study has one, it must be the same."),
    ] = None


class Tell(Strict):
    """A pull's reward, or where pulls are pairs, both rewards."""

    pull: Id
    reward: Reward | Annotated[list[Reward], TWO] = Field(
        description="A number or a bool. Where `ask` names a baseline, the arm's reward and the baseline's.",
        examples=[0.85, True, [0.8, 0.7]],
    )
    note: StrictStr | None = Field(None, description="For people; `pulls()`, the export and the log show it.")
    cost: Number | None = Field(None, ge=0, description="What it cost, in any unit; the verdict has the total.")
    repeatable: StrictBool = Field(
        False, description="Whether the pull was, or would have been, evaluated more than once. The guarantee says so."
    )


class Exchange(Ask):
    """Rewards to record, and then how many pulls to hand out, as for `ask`."""

    rewards: Annotated[list[Tell], Field(max_length=1000)] = Field(description="Each as `tell` takes it.")
    n: Annotated[StrictInt, Field(ge=0, le=1000)] = 1


class Renew(Strict):
    """Pulls that are still being worked on."""

    pulls: Annotated[list[Id], Field(min_length=1, max_length=10_000)]
    lease: Seconds = 3600


class Drop(Strict):
    """Pulls to drop."""

    pulls: Annotated[list[Id], Field(min_length=1, max_length=1000)]
    cause: CallersCause = Field(
        "failed", description="failed counts against the arm; a case that was lost is tried again."
    )
    reason: StrictStr = "dropped over HTTP"


class Extend(Strict):
    """The new total of pulls."""

    budget: StrictInt


class PullOut(BaseModel):
    """One evaluation to make."""

    pull: Ticket = Field(description="Its ticket: what to tell, renew or drop. Any other study refuses it.")
    id: int = Field(description="Counts the study's pulls, from 1.")
    arm: str
    number: int
    seed: int
    params: dict[str, Any]
    case: str | int | None = Field(None, description="Its case, where the study has cases.")
    case_params: dict[str, Any] | None = None
    baseline: str | None = Field(
        None, description="The arm to evaluate as well, with the same seed, where the study compares in pairs."
    )
    baseline_params: dict[str, Any] | None = None
    baseline_first: bool | None = Field(None, description="Which of the two to evaluate first.")


class Asked(BaseModel):
    """Pulls; none, and ``done``, when the study needs no more. An arm that was named may need no more before that."""

    pulls: list[PullOut]
    done: bool
    wait: bool = Field(description="There are none now, but ask again later: what is pending may free a case.")


class ExchangedOut(Asked):
    """Pulls as from `ask`; all rewards were recorded."""

    late: list[Id] = Field(description="The pulls of those rewards that were late, as they were named.")


class Told(BaseModel):
    """What was recorded."""

    pull: Id
    reward: float | Annotated[list[float], TWO] = Field(description="The reward, or the arm's and the baseline's.")
    late: bool


class Pulls(BaseModel):
    """The pulls that were acted on."""

    pulls: list[Id]


class CaseOut(BaseModel):
    """One case, and what the arms made of it."""

    case: str | int
    failed: int
    passed: int
    mean: float
    rewards: list[tuple[int, float]] = Field(description="An arm's number and its reward, the worst first.")
    failed_by: list[int] = Field(description="The numbers of those arms that failed it.")
    missing_by: list[int] = Field(description="The numbers of arms whose evaluation of it failed for good.")
    mean_text: str = Field(description="The mean, as people read it.")
    texts: list[str] = Field(description="The first rewards, as people read them.")


class CasesOut(BaseModel):
    """The hardest cases of a study."""

    format: int = 1
    seq: int
    cases: int
    seen: int = Field(description="How many cases have a reward.")
    rows: list[CaseOut]


class Summary(BaseModel):
    """The question, the answer so far, what it took and what is left."""

    model_config = ConfigDict(extra="allow")
    format: int
    study: str
    question: str
    answer: str
    headline: str = Field(description="The answer, after the question if arms are open.")
    spent: str = Field(description="What the answer took so far, in a sentence.")
    reached: int = Field(description="How many arms reach the bar; with `missed` and `open`, all but a baseline.")
    missed: int
    open: int
    retired: int = Field(description="How many of the open arms take no more pulls.")
    left: int | None = Field(description="About how many pulls are left, an estimate; null: there is no telling.")
    full_run: int | None = Field(description="Pulls that the same answer takes without choosing arms.")
    asks: Literal["mean", "share", "difference"] = Field(description="What is compared with the bar.")
    bar: float = Field(description="The bar: a mean, a share, or the arm's mean less the baseline's.")
    tolerance: float = Field(description="Within it of the bar, either answer is right.")
    edges: Annotated[list[float], TWO] = Field(description="The bar less and plus the tolerance.")
    at_least: float | None = Field(description="The bar as it was given: this, at_most, or with a baseline margin.")
    at_most: float | None
    margin: float | None
    lower_is_better: bool
    share: float | None
    baseline: str | None
    ratio: float | None
    unit: str | None
    revision: int = Field(description="How often the study was asked again after something changed, from 1.")
    revision_text: str | None = Field(description="What this revision changed, in a sentence; null in the first.")
    seq: int
    issued: int
    told: int
    pending: int
    budget: int | None
    done: bool


class Studies(BaseModel):
    """All studies of the store."""

    format: int = 1
    studies: list[str]


class Events(BaseModel):
    """Lines of the log; continue with ``after=next``."""

    format: int = 1
    events: list[dict[str, Any]]
    next: int
