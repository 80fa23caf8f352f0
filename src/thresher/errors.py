"""The errors. Each is one line that names the value, the rule it breaks and what to do about it."""

from collections.abc import Sequence

from .text.masking import masked
from .text.naming import Naming
from .text.phrasing import listed_phrase

UNSAID = object()
PROVED = ": the bounds are wrong"  # about rewards outside the bounds
LONGEST = 1_000_000  # characters of an exception's text that are read


class ThresherError(Exception):
    """The root of every error that thresher raises on purpose. Its ``text`` may be a `Naming`.

    >>> raise InvalidInput("at_least", 1.5, "must lie strictly inside the bounds", "pass other bounds")
    Traceback (most recent call last):
    thresher.errors.InvalidInput: at_least 1.5: must lie strictly inside the bounds; pass other bounds
    """

    def __init__(self, what: str, value: object = UNSAID, rule: str = "", remedy: str = "") -> None:
        self.what, self.rule, self.remedy = what, rule, remedy
        self.value = None if value is UNSAID else value
        head = what if value is UNSAID else f"{what} {shown(value)}"
        parts = f"{{head}}{': {rule}' if rule else ''}{'; {remedy}' if remedy else ''}"
        self.text: str = Naming(parts, head=head, rule=rule, remedy=remedy)
        super().__init__(str(self.text))


def missing_package(error: ImportError, extra: str) -> tuple[str, str]:
    """The rule and the remedy for a package that cannot be imported; raises the error if it is about one of our own.

    >>> missing_package(ModuleNotFoundError("No module named 'ray'", name="ray"), "ray")
    ('needs the package ray, which is not installed', "pip install 'thresher[ray]'")
    >>> missing_package(ImportError("no pq wrapper available"), "postgres")[0]
    'needs a package that cannot be imported (ImportError: no pq wrapper available)'
    """
    if (error.name or "").startswith("thresher"):
        raise error
    rule = f"needs the package {error.name}, which is not installed"
    if not isinstance(error, ModuleNotFoundError):
        rule = f"needs a package that cannot be imported ({error_line(error)})"
    return rule, f"pip install 'thresher[{extra}]'"


class InvalidInput(ThresherError, ValueError):
    """A value that breaks a rule; nothing was changed."""


class OutsideBounds(InvalidInput):
    """A reward outside the bounds of its study: it proves them wrong, so nothing can be certified about its arm.

    ``arms`` are those that were retired for it.
    """

    arms: tuple[str, ...] = ()

    def of(self, arms: Sequence[str]) -> "OutsideBounds":
        """The same error, as one that says that these arms are retired for such rewards.

        >>> error = OutsideBounds("reward", 7.0, "must lie within the bounds (0, 1)", "give other bounds")
        >>> error.of(["a", "b"]).rule.partition(": ")[2]
        "the bounds are wrong, so arms 'a', 'b' are retired and not certified"
        """
        who = f"arm {shown(arms[0])} is" if len(arms) == 1 else f"arms {listed_phrase(arms, show=shown)} are"
        rule = self.rule if not self.arms else self.rule.partition(PROVED)[0]
        remedy = self.remedy if self.arms else Naming("start over: {remedy}", remedy=self.remedy)
        error = OutsideBounds(self.what, self.value, f"{rule}{PROVED}, so {who} retired and not certified", remedy)
        error.arms = tuple(arms)
        return error


class UnknownArm(InvalidInput, KeyError):
    """The study has no arm of that name."""

    __str__ = Exception.__str__  # a KeyError alone would put quotes around the text


class UnknownArgument(InvalidInput, TypeError):
    """A function has no argument of that name, or takes it only by name."""


class NoScore(InvalidInput):
    """The study's policy is a user's function, which was not passed in, or has changed since."""


class ScoreFailed(InvalidInput):
    """A user's score function raised an exception, or returned something that is no score."""


class UnknownStudy(ThresherError, LookupError):
    """No study of that name is in that store."""


class StudyDeleted(UnknownStudy):
    """The study was deleted or set back, or another took its name, while this process worked on it."""


class StudyExists(ThresherError, ValueError):
    """A study of that name already exists, or differs from what was asked for."""


class UnknownPull(ThresherError, LookupError):
    """The study never issued a pull of that id."""


class AlreadyTold(ThresherError, ValueError):
    """The pull was already told another reward, or it was told and so cannot be dropped."""


class Conflict(ThresherError):
    """Another agent appended first; the caller folds what it wrote and decides again."""


class StoreFailed(ThresherError):
    """The store cannot be used: a full disk, a lost server, a file that is not a store."""


class DamagedStudy(StoreFailed):
    """The log of the study is damaged. Other studies in the store are not affected."""


class Interrupted(StoreFailed):
    """The connection was lost while writing: the events may or may not have been written."""


class CannotGoOn(ThresherError):
    """A run stopped early because nothing worked; its ``__cause__`` is what the evaluator raised, if it raised."""

    def with_cause(self, error: BaseException | None) -> "CannotGoOn":
        """Set ``__cause__``, so that the error can be raised later without ``from``."""
        self.__cause__ = error
        return self


class EvaluationFailed(ThresherError):
    """An evaluation gave no reward; the text says why.

    ``kind`` is the same for two failures with the same error, and empty if the exception's type and place decide that.
    ``transient`` errors are temporary, such as a timeout. ``refused``: the evaluation could not begin, as when a
    connection is refused. ``output`` is what a command printed last, and ``traceback`` what an evaluator raised in
    another process, as text.
    """

    def __init__(
        self,
        text: str,
        *,
        kind: str = "",
        transient: bool = False,
        refused: bool = False,
        output: str = "",
        traceback: str = "",
    ) -> None:
        super().__init__(text)
        self.kind, self.transient, self.refused = kind, transient, refused
        self.output, self.traceback = output, traceback
        if traceback:
            self.add_note(f"\nThe traceback of the process where it was raised:\n\n{traceback}")


class NoReward(EvaluationFailed, ValueError):
    """An evaluation finished, but its result is not a number."""


class Busy(Exception):
    """An evaluator raises this to say "not begun, try later": it is called again with the same pull, without a charge.

    Raise it before the outcome is known. Afterwards, the next call is a second draw: what is certified is then the mean
    of what the evaluator finally returns, and the guarantee says so.

    >>> Busy(after=2.5).after
    2.5
    """

    def __init__(self, after: float = 1.0) -> None:
        super().__init__(after)
        self.after = float(after)


def shown(value: object, limit: int = 120) -> str:
    r"""A value as errors show it: without secrets, on one line, and shortened.

    >>> print(shown("a\nb"), shown(0.5), shown("password=x y"), shown(10**5000))
    'a\nb' 0.5 'password=*** y' an int that is too long to be shown
    """
    try:
        text = repr(masked(value)) if isinstance(value, str) else masked(repr(value))
    except Exception:  # an integer with thousands of digits, or a broken __repr__
        name = type(value).__name__
        return f"{'an' if name[0] in 'aeiou' else 'a'} {name} that is too long to be shown"
    text = text.replace("\n", "\\n")
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def error_line(error: BaseException) -> str:
    r"""An exception in one line, without secrets.

    >>> error_line(ValueError("no\nroute")), error_line(KeyError())
    ('ValueError: no route', 'KeyError')
    """
    text = " ".join(masked(_words(error)).split())[:300]
    if isinstance(error, ThresherError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _words(error: BaseException) -> str:
    try:
        return str(error)[:LONGEST]
    except Exception:  # a broken __str__
        return ""
