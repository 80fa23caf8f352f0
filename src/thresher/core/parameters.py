"""The parameters of a question, in one table: whatever takes them is made from it.

A row of the table is a field of `SpecArguments`: its name, its type, and a `Parameter` with all else that is said about
it. The arguments of `create_study` and their explanations, the checks, what a log stores, the options of the command
line, the fields of an HTTP request and the checks of a simulated setup follow from the row. What a specification keeps
of it is an attribute of `Spec`, and how parameters go together is decided there.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, Protocol, Required, TypedDict, get_args, get_type_hints

from ..errors import InvalidInput
from ..text.masking import masked
from ..text.naming import Naming
from . import checks, policies
from .named_arguments import argument_table
from .named_items import Params
from .policies import Policy


class FrameParameter(Protocol):
    """What is needed of a pandas DataFrame."""

    @property
    def columns(self) -> Any: ...
    @property
    def index(self) -> Any: ...
    @property
    def to_dict(self) -> Any: ...


class File(Protocol):
    """A `pathlib.Path`."""

    def __fspath__(self) -> str: ...


Named = Iterable[str] | Iterable[Params] | Mapping[str, Params] | FrameParameter | File
Guarantee = Literal["all", "rate"]
Bounds = tuple[float, float]
Check = Callable[[str, Any], Any]  # takes the name and the value; returns the value as it is kept, or raises


class Parameter(NamedTuple):
    """What is said about a parameter besides its name and type."""

    help: str  # for every surface; each writes the names in braces in its own words
    more: str = ""  # for readers of Python and HTTP, who have more room
    check: Check | None = None  # of the value by itself; None: `Spec` checks it together with others
    default: Any = None
    without: str = ""  # what its absence means, if the default is None
    metavar: str = ""  # what its option takes; an option without one is a flag
    none: str = ""  # the word for None on a command line
    scale: Literal["", "reward", "share"] = ""  # what its number is measured in; "": neither, so it has no unit
    always_stored: bool = False  # the others are left out of a log where they have their default

    @property
    def text(self) -> str:
        """What the parameter means, for readers of Python and HTTP.

        >>> Parameter("Pulls in total.", without="until every arm is settled", metavar="N").text
        'Pulls in total. None: until every arm is settled.'
        """
        without = f"None: {self.without}." if self.without else ""
        return str(Naming(" ".join(filter(None, [self.help, self.more, without]))))


# -- checks of one value -------------------------------------------------------------------------------------------

BARS = ("at_least", "at_most")  # the names by which a bar can be given
MAX_BUDGET = 10**15  # pulls; stores count with 64 bits
MAX_SEED = 2**128 - 1
MAX_EVALUATOR = 10_000  # characters
MAX_REWARD = 1e100  # without bounds: beyond it, squares of rewards leave the range of floats
LONGEST_UNIT = 16  # characters


def flag_parameter(name: str, value: object) -> bool:
    """A bool."""
    if value not in (False, True):
        raise InvalidInput(name, value, "must be True or False")
    return bool(value)


def bounds_parameter(name: str, value: object) -> Bounds:
    """The range of rewards."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        raise InvalidInput(name, value, "must be a pair (low, high), or None")
    low, high = (checks.checked_number(name, end) for end in value)
    if not low < high:
        remedy = Naming(f"did you mean {{bounds=({high:g}, {low:g})}}?")
        raise InvalidInput(name, value, "the lower bound must come first and be smaller", remedy)
    if math.isinf(high - low) or max(abs(low), abs(high)) > MAX_REWARD:
        raise InvalidInput(name, value, f"must lie within ±{MAX_REWARD:g}", "scale the rewards")
    return low, high


def ratio_parameter(name: str, value: object) -> float:
    """How many times the baseline's reward."""
    ratio = checks.checked_number(name, value)
    if not 0.0 < ratio <= MAX_REWARD:
        raise InvalidInput(name, value, "must be a number above 0", "write 1.05 for five percent more")
    return ratio


def unit_parameter(name: str, value: object) -> str:
    """The unit of rewards, for people."""
    is_text = isinstance(value, str) and value.isprintable() and value == value.strip()
    if not is_text or not 0 < len(str(value)) <= LONGEST_UNIT:
        raise InvalidInput(name, value, f"must be a text of 1 to {LONGEST_UNIT} characters", "write s, for example")
    return str(value)


def guarantee_parameter(name: str, value: object) -> Guarantee:
    """What certificates promise."""
    if value not in ("all", "rate"):
        rule = "must be 'all' (no certified answer is wrong) or 'rate' (few of them are, on average)"
        raise InvalidInput(name, value, rule)
    return value


def depends_parameter(name: str, value: object) -> dict[str, Any]:
    """The files on which results depend: those of all results, and by name those of arms and of cases."""
    data: dict[str, Any] = dict(value) if isinstance(value, Mapping) else {"": value}
    groups = [data.get("files", {}), *data.get("arms", {}).values(), *data.get("cases", {}).values()]
    is_proper = not data.keys() - {"files", "arms", "cases"}
    if not is_proper or not all(isinstance(digest, str) for files in groups for digest in files.values()):
        raise InvalidInput(name, value, "must have files, arms and cases, with digests by name")
    return {key: group for key, group in data.items() if group}


def evaluator_parameter(value: object) -> str:
    """What identifies an evaluator: any text that a log can keep."""
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_EVALUATOR:
        rule = f"must be a text of 1 to {MAX_EVALUATOR:,} characters"
        raise InvalidInput("evaluator", value, rule, "name the command or the version that measures the rewards")
    return value


def masked_parameter(name: str, value: object) -> str:
    """The same without secrets."""
    return masked(evaluator_parameter(value))[:MAX_EVALUATOR]


_sure = partial(
    checks.checked_share, remedy=Naming("write one such as 0.95, or {confidence=None} to go without certificates")
)
_share = partial(checks.checked_share, remedy="write one such as 0.95")
_count = partial(checks.checked_whole, least=1)

# -- the table -----------------------------------------------------------------------------------------------------


class SpecArguments(TypedDict, total=False):
    """What a study can be asked. All but the arms may be left out."""

    arms: Required[
        Annotated[
            Named,
            Parameter("The options: names, or names with parameters, which reach the evaluator.", always_stored=True),
        ]
    ]
    at_least: Annotated[
        float | None,
        Parameter(
            "The bar that an arm's mean must reach, such as 0.9.",
            "It lies strictly inside the bounds. A mean on the bar reaches it.",
            check=checks.checked_number,
            metavar="B",
            scale="reward",
        ),
    ]
    at_most: Annotated[
        float | None,
        Parameter(
            "The bar that an arm's mean must stay within, where lower is better.",
            "A mean on the bar does.",
            check=checks.checked_number,
            metavar="B",
            scale="reward",
        ),
    ]
    share: Annotated[
        float | None,
        Parameter(
            "Ask about pulls, not means: at least this share of them must reach the bar. It needs no {bounds}.",
            "The bar is then a limit for single pulls.",
            check=_share,
            metavar="S",
            scale="share",
        ),
    ]
    baseline: Annotated[
        str | None,
        Parameter(
            "Compare the other arms with this one, in pairs or on the same cases, not with a bar.",
            "With cases it goes first, through all of them; without, every pull evaluates the arm and the baseline, and"
            " its reward is the pair.",
            metavar="NAME",
        ),
    ]
    margin: Annotated[
        float | None,
        Parameter(
            "By how much to beat the baseline; if negative, how much may be lost to it.",
            check=checks.checked_number,
            without="0",
            metavar="M",
            scale="reward",
        ),
    ]
    ratio: Annotated[
        float | None,
        Parameter(
            "How many times the baseline's reward to reach, or stay within, in half of the pairs or a {share} of them.",
            check=ratio_parameter,
            metavar="R",
        ),
    ]
    lower_is_better: Annotated[
        bool, Parameter("With a baseline: lower rewards are better.", check=flag_parameter, default=False)
    ]
    unit: Annotated[
        str | None,
        Parameter(
            "The unit of rewards, for people; times in s are shown in ms where that reads better.",
            check=unit_parameter,
        ),
    ]
    bounds: Annotated[
        tuple[float, float] | None,
        Parameter(
            "The range of rewards; {bounds=None} takes them as they are.",
            "Then nothing is certified unless a {share} is asked about.",
            check=bounds_parameter,
            default=(0.0, 1.0),
            metavar="LO:HI",
            none="none",
            scale="reward",
            always_stored=True,
        ),
    ]
    budget: Annotated[
        int | None,
        Parameter(
            "Pulls in total.",
            "All agents share it.",
            check=partial(checks.checked_whole, least=1, most=MAX_BUDGET),
            without="until every arm is settled",
            metavar="N",
            always_stored=True,
        ),
    ]
    policy: Annotated[
        Policy | str | None,
        Parameter(
            f"How to choose the next arm: {', '.join(policies.CONSTRUCTORS)}; or {{thresher.custom}}, a score of your"
            " own.",
            without="balanced with certificates ({find}: cheapest), anytime-evt without",
            metavar="P",
            always_stored=True,
        ),
    ]
    confidence: Annotated[
        float | None,
        Parameter(
            "How sure to be of all answers together; {confidence=None} certifies nothing.",
            check=_sure,
            default=0.95,
            metavar="C",
            none="off",
            scale="share",
            always_stored=True,
        ),
    ]
    tolerance: Annotated[
        float,
        Parameter(
            "Within this distance of the bar, either answer is right; it saves most of the pulls.",
            check=partial(checks.checked_number, low=0.0, remedy="write one such as 0.02, or 0 for none"),
            default=0.0,
            metavar="T",
            scale="reward",
            always_stored=True,
        ),
    ]
    failure: Annotated[
        float | Literal["worst", "ignore"],
        Parameter(
            "What a failed pull counts as: worst, ignore, or a reward.",
            default="worst",
            metavar="REWARD",
            always_stored=True,
        ),
    ]
    seed: Annotated[
        int | None,
        Parameter(
            "The pulls' seeds and the order of cases follow from it.",
            "An arm that was mended where it failed should not meet just that again.",
            check=partial(checks.checked_whole, least=0, most=MAX_SEED),
            without="a new one for every new study",
            metavar="S",
            always_stored=True,
        ),
    ]
    max_failures: Annotated[
        int | None,
        Parameter(
            "Retire an arm after this many failures in a row.",
            "None: never. With cases, only cases that failed for good, or could not begin, count.",
            check=_count,
            default=3,
            metavar="N",
            always_stored=True,
        ),
    ]
    clip: Annotated[
        bool,
        Parameter(
            "Count a reward outside the bounds as the nearest bound. Without this, it retires its arm.",
            "Such a reward proves the bounds wrong, so its arm is not certified.",
            check=flag_parameter,
            default=False,
        ),
    ]
    cases: Annotated[
        int | Named | None,
        Parameter(
            "An eval set: how many cases, their names, or names with parameters.",
            "Every pull then evaluates one case, each case of an arm counts once, and what is certified is the mean"
            " over exactly these cases.",
        ),
    ]
    tries: Annotated[
        int,
        Parameter(
            "How often to try a case that fails.",
            "By default only what says nothing about the outcome is tried again, such as a refused connection; with"
            " more tries, the guarantee says which answers rest on them.",
            check=partial(checks.checked_whole, least=1, most=1000),
            default=1,
            metavar="N",
        ),
    ]
    guarantee: Annotated[
        Guarantee,
        Parameter(
            "Certify that no answer is wrong, or that few are on average, which takes far fewer pulls for many arms.",
            "all: with probability {confidence}, no certified answer is wrong. rate: of the arms certified to reach the"
            " bar, at most 1 − {confidence} are wrong on average, and likewise of those certified to miss it.",
            check=guarantee_parameter,
            default="all",
            metavar="[all|rate]",
        ),
    ]
    find: Annotated[
        int | None,
        Parameter(
            "End when this many arms are certified to reach the bar.",
            "It also ends when there cannot be that many.",
            check=_count,
            metavar="M",
        ),
    ]


class StoredArguments(SpecArguments, total=False):
    """What a log also has."""

    params: Annotated[list[Params] | tuple[Params, ...] | None, Parameter("Of each arm.", always_stored=True)]
    case_params: Annotated[list[Params] | tuple[Params, ...] | None, Parameter("Of each case.")]
    depends: Annotated[
        Mapping[str, Any] | None,
        Parameter("The files on which results depend, with digests; see `revisions.Depends`.", check=depends_parameter),
    ]
    identity: Annotated[
        str | None,
        Parameter(
            "The program and the file of cases, as a text: the study is found again by it.",
            check=checks.checked_text,
        ),
    ]
    evaluator: Annotated[
        str | None,
        Parameter("What measures the rewards, as a command; see also `depends`.", check=masked_parameter),
    ]
    settling_constant: Annotated[
        float | None,
        Parameter("Of the policy cheapest.", check=checks.checked_number, without="computed", always_stored=True),
    ]


STORED: dict[str, Parameter] = argument_table(StoredArguments)
PARAMETERS = {name: STORED[name] for name in SpecArguments.__annotations__}  # in the order of the table
TYPES: dict[str, Any] = get_type_hints(StoredArguments)
DEFAULTS = {name: parameter.default for name, parameter in STORED.items()}


def may_parameter_be_none(name: str) -> bool:
    """Whether a parameter may be None."""
    return type(None) in get_args(TYPES[name])


def checked_parameters(given: Mapping[str, Any]) -> dict[str, Any]:
    """Every parameter, or its default, checked by itself.

    >>> checked_parameters({"find": 2})["find"], checked_parameters({})["confidence"]
    (2, 0.95)
    """
    values = {**DEFAULTS, **given}
    for name, parameter in STORED.items():
        if parameter.check is not None and not (values[name] is None and may_parameter_be_none(name)):
            values[name] = parameter.check(name, values[name])
    return values
