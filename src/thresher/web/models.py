"""Requests and replies, as the OpenAPI document describes them. The library checks the values."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool, StrictFloat, StrictInt, StrictStr

from ..core.events import CallersCause
from ..core.pulls import TICKET
from ..core.spec import Spec

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


class NewStudy(Strict):
    """The question: a bar, or a baseline. The fields are those of `create_study`."""

    model_config = ConfigDict(json_schema_extra={"examples": QUESTIONS})
    name: StrictStr
    arms: list[StrictStr] | dict[str, dict[str, Any]] = Field(description="Names, or names with parameters.")
    at_least: Number | None = Field(None, description="The bar. An arm reaches it if its mean is at least this.")
    at_most: Number | None = Field(None, description="The bar where lower is better: the mean is at most this.")
    share: Number | None = Field(
        None, description="The bar is a limit, and this share of pulls must be within it: 0.95. It needs no bounds."
    )
    baseline: StrictStr | None = Field(
        None, description="One of the arms: the others are compared with it, and there is no bar."
    )
    margin: Number | None = Field(None, description="By how much an arm must beat the baseline; 0 if left out.")
    ratio: Number | None = Field(
        None, description="Instead of a margin: the ratio to the baseline in half of the pairs, or in `share`: 1.05."
    )
    lower_is_better: StrictBool = Field(False, description="With a baseline: whether a lower reward is a better one.")
    unit: StrictStr | None = Field(None, description="The unit of rewards, for people; `s` is shown as s, ms or µs.")
    bounds: tuple[Number, Number] | None = (0, 1)
    budget: StrictInt | None = None
    policy: StrictStr | None = None
    confidence: Number | None = 0.95
    tolerance: Number = 0
    failure: Number | Literal["worst", "ignore"] = "worst"
    seed: StrictInt | None = Field(
        None, description="The pulls' seeds and the order of cases follow from it. Every new study draws its own."
    )
    max_failures: StrictInt | None = 3
    clip: StrictBool = False
    evaluator: StrictStr | None = None
    cases: StrictInt | list[StrictStr] | dict[str, dict[str, Any]] | None = Field(
        None, description="An eval set: how many cases, their names, or names with parameters."
    )
    tries: StrictInt = 1
    guarantee: Literal["all", "rate"] = "all"
    find: StrictInt | None = None
    if_exists: Literal["error", "join"] = "error"

    def spec(self) -> Spec:
        return Spec(**self.model_dump(exclude={"name", "if_exists"}))


class Ask(Strict):
    """How many pulls, how long their lease lasts, and of which arm."""

    n: Annotated[StrictInt, Field(ge=1, le=1000)] = 1
    lease: Seconds = 3600
    arm: Annotated[
        StrictStr | None,
        Field(description="The arm, if the caller chooses it, which the log records. None: the study chooses."),
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


class Renew(Strict):
    """Pulls that are still being worked on."""

    pulls: Annotated[list[Id], Field(min_length=1, max_length=10_000)]
    lease: Seconds = 3600


class Drop(Strict):
    """Pulls to drop."""

    pulls: Annotated[list[Id], Field(min_length=1, max_length=1000)]
    cause: CallersCause = Field("lost", description="failed counts against the arm; lost does not.")
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
    """The question, the answer so far, and the progress."""

    model_config = ConfigDict(extra="allow")
    format: int
    study: str
    question: str
    answer: str
    asks: Literal["mean", "share", "difference"] = Field(description="What is compared with the bar.")
    bar: float = Field(description="The bar: a mean, a share, or the arm's mean less the baseline's.")
    at_least: float | None = Field(description="The bar as it was given: this, at_most, or with a baseline margin.")
    at_most: float | None
    margin: float | None
    lower_is_better: bool
    share: float | None
    baseline: str | None
    ratio: float | None
    unit: str | None
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
