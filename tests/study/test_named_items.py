"""Arms and cases in the forms that people have them in: rows, tables, files."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import thresher
from thresher.core.spec import Spec

QUESTIONS = pd.DataFrame({"question": ["2 + 2", "3 * 3"], "answer": [4, 9]})
ROWS = ({"question": "2 + 2", "answer": 4}, {"question": "3 * 3", "answer": 9})


def spec_of(arms: Any = ("a", "b"), cases: Any = None) -> Spec:
    return thresher.create_study("s", arms=arms, cases=cases, at_least=0.5, budget=20).spec


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (QUESTIONS, ("0", "1")),  # the labels of its index
        (QUESTIONS.rename(index={0: "q1", 1: "q2"}), ("q1", "q2")),
        (QUESTIONS.assign(id=[17, 18]), ("17", "18")),
        (QUESTIONS.assign(name=["q1", "q2"]), ("q1", "q2")),
        (list(ROWS), ("1", "2")),
        (({"id": number, **row} for number, row in enumerate(ROWS, start=7)), ("7", "8")),
        ([{"name": "q1", **ROWS[0]}, {"name": "q2", **ROWS[1]}], ("q1", "q2")),
    ],
)
def test_a_row_of_a_table_is_an_arm_or_a_case(table: Any, names: tuple[str, ...]) -> None:
    rows = table if isinstance(table, pd.DataFrame) else list(table)
    of_arms, of_cases = spec_of(arms=rows), spec_of(cases=rows)
    assert (of_arms.arms, of_arms.params) == (names, ROWS)
    assert (of_cases.cases, of_cases.case_params) == (names, ROWS)


def test_an_empty_cell_is_none() -> None:
    cases = spec_of(cases=pd.DataFrame({"hint": [None, "odd"], "answer": [4.0, np.nan]})).case_params
    assert cases == ({"hint": None, "answer": 4.0}, {"hint": "odd", "answer": None})


@pytest.mark.parametrize("names", [np.array(["x", "y"]), pd.Series(["x", "y"]), {"x": 1, "y": 2}.keys(), iter("xy")])
def test_names_may_come_from_anything_that_has_an_order(names: Any) -> None:
    assert spec_of(arms=names).arms == ("x", "y")
    assert all(type(name) is str for name in spec_of(arms=np.array(["x", "y"])).arms)


class Polars:
    """A table of another library: iterating over it gives columns."""

    columns = ("question", "answer")

    def __iter__(self) -> Any:
        return iter(self.columns)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "another table": (
        Polars,
        r"a pandas DataFrame(, a Path or a number| or a Path); give its rows as a list of dicts$",
    ),
    "a set": (lambda: {"x", "y"}, r"a set has no order: write sorted\(…\)$"),
    "a file": (lambda: "x.txt", r"s 'x.txt': must be .*; for a file write Path\('x.txt'\), for one \w+ \['x.txt'\]$"),
    "numbers": (lambda: np.array([1, 2]), "must be a string$"),
    "lists": (lambda: [["x"], ["y"]], "must be a string$"),
    "some names": (
        lambda: [{"name": "x"}, {"depth": 1}],
        "row 2 of .* has no .*name.* or id, and other rows have; name",
    ),
    "columns": (lambda: {"name": ["x", "y"]}, "must be a dict with string keys$"),
    "two columns of a name": (lambda: pd.DataFrame([[1, 2]], columns=["x", "x"]), "column 'x': occurs twice; rename"),
    "numbers as columns": (lambda: pd.DataFrame([[1, 2]]), "must be a dict with string keys$"),
    "two rows of a name": (lambda: QUESTIONS.assign(id=[1, 1]), "row 2 of .*'1': is given twice; give every"),
    "two indexes": (lambda: QUESTIONS.set_index(["question", "answer"]), "must be a string$"),
    "no rows": (lambda: QUESTIONS.iloc[:0], "there must be at least one"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_list_of_names_is_refused_in_one_line(what: str) -> None:
    make, message = REFUSED[what]
    for argument in ("arms", "cases"):
        with pytest.raises(thresher.InvalidInput, match=message) as error:
            spec_of(**{argument: make()})
        assert "\n" not in str(error.value)


def test_a_path_is_read_as_the_command_line_reads_it(tmp_path: Path) -> None:
    arms, cases = tmp_path / "arms.txt", tmp_path / "cases.csv"
    arms.write_text("# models\nsmall\nlarge\n")
    cases.write_text("question,answer\n2 + 2,4\n3 * 3,9\n")
    spec = spec_of(arms, cases)
    assert (spec.arms, spec.cases) == (("small", "large"), ("1", "2"))
    assert spec.case_params == ({"question": "2 + 2", "answer": "4"}, {"question": "3 * 3", "answer": "9"})
    with pytest.raises(thresher.InvalidInput, match=r"cases file '.*none.csv': cannot be read \(No such file"):
        spec_of(arms, tmp_path / "none.csv")
    with pytest.raises(thresher.InvalidInput, match=r"arms PosixPath\('.*'\): must be .*; create_study reads files"):
        Spec(arms=arms, at_least=0.5)


def test_a_very_wide_table_is_read_in_no_time(tmp_path: Path) -> None:
    """20,000 columns took 11 s."""
    wide = tmp_path / "wide.csv"
    wide.write_text("\n".join(",".join([name, *map(str, range(20_000))]) for name in ("name", "a", "b")))
    began = time.process_time()
    assert spec_of(wide).arms == ("a", "b")
    assert time.process_time() - began < 2.0
