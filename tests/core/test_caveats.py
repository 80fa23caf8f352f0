"""What else a reader of a guarantee must know, each in a sentence."""

from types import SimpleNamespace
from typing import Any

from thresher.core.sentences import _caveats


def caveats(**given: Any) -> str:
    nothing: dict[str, Any] = {
        "repeatable": False, "hosted": False, "outside": set(), "evaluators": [], "vouched": [], "imported": 0,
        "cases": None, "lacking": 0, "unweighed": False, "spec": SimpleNamespace(arms=["a", "b", "c"], tries=3),
    }  # fmt: skip
    ledger: Any = SimpleNamespace(**nothing | given)
    return _caveats(ledger)


def missing(*counts: int) -> Any:
    return SimpleNamespace(missing=list(counts))


def test_a_plain_study_needs_no_caveat() -> None:
    assert caveats() == ""
    assert caveats(evaluators=["one"], cases=missing(0, 0, 0)) == ""


def test_each_caveat_is_a_sentence() -> None:
    assert caveats(repeatable=True).startswith(
        " Some evaluations were, or may have been, repeated: what is certified is"
    )
    assert caveats(hosted=True).endswith("the host which chose the order of the cases had shuffled them.")
    assert caveats(outside={2, 0}) == " Not certified, because a reward lay outside the bounds: 'a', 'c'."
    assert caveats(unweighed=True) == " Imported results are weighed all together when the first pull is asked for."
    both = caveats(repeatable=True, hosted=True)
    assert both == caveats(repeatable=True) + caveats(hosted=True)


def test_evaluators_that_count_as_the_same_are_named_in_short() -> None:
    words = " The rewards were measured by 2 evaluators that were accepted as equivalent: "
    assert caveats(evaluators=["one", "two"]) == f"{words}'one'; 'two'."
    cut, whole = "x" * 199, "y" * 198
    assert caveats(evaluators=[cut, whole]) == f"{words}'{cut[:198]}…; '{whole}'."


def test_what_was_imported_is_counted() -> None:
    assert (
        caveats(imported=1)
        == " 1 pull was imported; this log does not record when, by what and how often it was evaluated."
    )
    assert (
        caveats(imported=2)
        == " 2 pulls were imported; this log does not record when, by what and how often they were evaluated."
    )


def test_cases_without_a_reward_count_as_the_worst() -> None:
    assert (
        caveats(cases=missing(0, 1, 0)) == " 1 case of 'b' failed 3 times: it has no reward, and counts as the worst."
    )
    several = " 3 cases of 'a', 'b' failed 3 times: they have no reward, and count as the worst."
    assert caveats(cases=missing(2, 1, 0)) == several
    words = "The baseline has no reward for"
    assert caveats(lacking=1) == f" {words} 1 case, which counts as the worst for every arm."
    assert caveats(lacking=2) == f" {words} 2 cases, which count as the worst for every arm."
