"""Functions of exactly rounded operations, drawn at random: for tests that compare live and compiled decisions."""

import linecache
import math
from collections.abc import Callable
from itertools import count

from hypothesis import strategies as st

FAMILIES = ("uniform", "bernoulli", "constant")
NUMBERS = ("gap", "scatter", "seen", "weight", "exploration", "0.5", "2.0", "3", "1e-9", "1e200", "0.1")
_FILES = count(1)


def expressions() -> st.SearchStrategy[str]:
    """Expressions of the five arguments that live Python evaluates without an exception, mostly."""

    def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        pairs = st.tuples(inner, inner)
        return st.one_of(
            st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda one: f"({one[0]} {one[1]} {one[2]})"),
            pairs.map(lambda one: f"({one[0]} / ({one[1]}) if ({one[1]}) != 0 else {one[0]})"),
            inner.map(lambda one: f"math.sqrt(abs({one}))"),
            pairs.map(lambda one: f"max({one[0]}, {one[1]})"),
            pairs.map(lambda one: f"min({one[0]}, {one[1]})"),
            st.tuples(inner, st.sampled_from(["<", "<=", "==", "!="]), inner, inner).map(
                lambda one: f"({one[0]} if {one[0]} {one[1]} {one[2]} else {one[3]})"
            ),
            inner.map(lambda one: f"(-{one})"),
        )

    return st.recursive(st.sampled_from(NUMBERS), grown, max_leaves=9)


def scored(text: str) -> Callable[[float, float, int, float, float], float]:
    """A function of that expression whose source can be read; what is not a number counts as infinity."""
    source = (
        "import math\n\n\n"
        "def score(gap, scatter, seen, weight, exploration):\n"
        f"    value = abs({text}) * 1.0\n"
        "    return value if value >= 0.0 else math.inf\n"
    )
    file = f"<score {next(_FILES)}>"
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, object] = {"__name__": "scores_of_chance", "math": math}
    exec(compile(source, file, "exec"), namespace)
    found: Callable[[float, float, int, float, float], float] = namespace["score"]  # type: ignore[assignment]
    return found
