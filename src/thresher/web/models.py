"""Requests and replies, as the OpenAPI document describes them. The library checks the values."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from ..core.events import Cause
from ..core.spec import Spec

Number = StrictInt | StrictFloat
Id = Annotated[StrictInt, Field(ge=1, le=10**15, description="The pull's id, as ask gave it.")]
Seconds = Annotated[Number, Field(gt=0, le=10**9)]


class Strict(BaseModel):
    """Unknown fields are errors: a misspelt one must not be ignored."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """What was wrong: the thing, the value seen, the rule broken, and what to do."""

    error: str
    value: Any = None
    rule: str
    remedy: str


class NewStudy(Strict):
    """The question. The fields are those of `create_study`."""

    name: StrictStr
    arms: list[StrictStr] | dict[str, dict[str, Any]] = Field(description="Names, or names with parameters.")
    threshold: Number
    bounds: tuple[Number, Number] | None = (0, 1)
    budget: StrictInt | None = None
    policy: StrictStr | None = None
    confidence: Number | None = 0.95
    tolerance: Number = 0
    failure: Number | Literal["worst", "ignore"] = "worst"
    seed: StrictInt | None = None
    max_failures: StrictInt | None = 3
    clip: StrictBool = False
    evaluator: StrictStr | None = None
    cases: StrictInt | list[StrictStr] | dict[str, dict[str, Any]] | None = Field(
        None, description="An eval set: how many cases, their names, or names with parameters."
    )
    tries: StrictInt = 3
    guarantee: Literal["all", "rate"] = "all"
    find: StrictInt | None = None
    if_exists: Literal["error", "join"] = "error"

    def spec(self) -> Spec:
        return Spec(**self.model_dump(exclude={"name", "if_exists"}))


class Ask(Strict):
    """How many pulls, and how long their lease lasts."""

    n: Annotated[StrictInt, Field(ge=1, le=1000)] = 1
    lease: Seconds = 3600


class Tell(Strict):
    """A pull's reward: a number or a bool."""

    pull: Id
    reward: Number | StrictBool


class Renew(Strict):
    """Pulls that are still being worked on."""

    pulls: Annotated[list[Id], Field(min_length=1, max_length=10_000)]
    lease: Seconds = 3600


class Drop(Strict):
    """Pulls to drop."""

    pulls: Annotated[list[Id], Field(min_length=1, max_length=1000)]
    cause: Cause = Field(
        "lost", description="failed, which counts against the arm, or lost. Any other is recorded as lost."
    )
    reason: Annotated[StrictStr, Field(max_length=10_000)] = "dropped over HTTP"


class Extend(Strict):
    """The new total of pulls."""

    budget: StrictInt


class PullOut(BaseModel):
    """One evaluation to make."""

    pull: int
    arm: str
    number: int
    seed: int
    params: dict[str, Any]
    case: str | int | None = Field(None, description="Its case, where the study has cases.")
    case_params: dict[str, Any] | None = None


class Asked(BaseModel):
    """Pulls; none, and ``done``, when the study needs no more."""

    pulls: list[PullOut]
    done: bool


class Told(BaseModel):
    """What was recorded."""

    pull: int
    reward: float
    late: bool


class Pulls(BaseModel):
    """The pulls that were acted on."""

    pulls: list[int]


class CaseOut(BaseModel):
    """One case, and what the arms made of it."""

    case: str | int
    failed: int
    passed: int
    mean: float
    rewards: list[tuple[int, float]] = Field(description="An arm's number and its reward, the lowest first.")


class CasesOut(BaseModel):
    """The hardest cases of a study."""

    format: int = 1
    seq: int
    cases: int
    seen: int = Field(description="How many cases have a reward.")
    rows: list[CaseOut]


class Summary(BaseModel):
    """The question, the answer so far, and the progress."""

    model_config = ConfigDict(extra="allow")
    format: int
    study: str
    question: str
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
