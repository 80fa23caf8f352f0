"""What the digest of a score covers, what is refused because it cannot, and which functions count as exact."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from test_decisions import study_of

import thresher
from thresher.core import scores
from thresher.core.policies import custom

HEAD = "def score(gap, scatter, seen, weight, exploration"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(scores, "_KNOWN", {})
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in ("mine", "others"):
        sys.modules.pop(name, None)


def module(folder: Path, text: str, others: str = "") -> ModuleType:
    """The module `mine` of that source, imported in what counts as a new process."""
    (folder / "mine.py").write_text(text)
    (folder / "others.py").write_text(others)
    for name in ("mine", "others"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return importlib.import_module("mine")


CHANGES = {
    "default": (f"K = 1.0\n{HEAD}, k=K):\n    return gap * k\n", "K = 1.0", "K = 2.0"),
    "default by name": (f"K = 1.0\n{HEAD}, *, k=K):\n    return gap * k\n", "K = 1.0", "K = 2.0"),
    "default of a helper": (
        f"K = 1.0\ndef half(x, k=K):\n    return x * k\n{HEAD}):\n    return half(gap)\n",
        "K = 1.0",
        "K = 2.0",
    ),
    "alias": (f"from math import log as f\n{HEAD}):\n    return f(weight)\n", "log as", "exp as"),
    "module": (f"import math as m\n{HEAD}):\n    return m.sqrt(weight)\n", "import math", "import cmath"),
    "tuple": (f"K = (1.0, (2.0, 3.0))\n{HEAD}):\n    return gap * K[1][0]\n", "2.0", "4.0"),
    "length of a tuple": (f"K = ((),)\n{HEAD}):\n    return gap * len(K)\n", "((),)", "()"),
    "another name": (
        "def f(x):\n    return x\ndef g(x):\n    return x / 2\na = f\nb = g\nc = f\n"
        f"{HEAD}):\n    return a(gap) + b(gap) * c(gap)\n",
        "c = f",
        "c = g",
    ),
    "hidden builtin": (f"{HEAD}):\n    return abs(gap)\n", HEAD, f"def abs(x):\n    return x * x\n{HEAD}"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_changes_a_score_changes_its_digest(name: str, folder: Path) -> None:
    text, before, after = CHANGES[name]
    one = custom(module(folder, text).score)
    assert one.obstacle is None
    assert custom(module(folder, text).score) == one
    assert custom(module(folder, text.replace(before, after, 1)).score) != one


OTHERS = f"import others\n{HEAD}):\n    return others.half(gap) * others.K\n"


@pytest.mark.parametrize(("before", "after"), [("K = 1", "K = 2"), ("x / 2", "x / 3")])
def test_what_another_module_defines_counts(before: str, after: str, folder: Path) -> None:
    others = "K = 1\ndef half(x):\n    return x / 2\n"
    one = custom(module(folder, OTHERS, others).score)
    assert one.is_exact
    assert custom(module(folder, OTHERS, others).score) == one
    assert custom(module(folder, OTHERS, others.replace(before, after)).score) != one


def test_functions_in_a_tuple_have_the_same_digest_in_every_process(folder: Path) -> None:
    text = f"def half(x):\n    return x / 2\nALL = (half,)\n{HEAD}):\n    return ALL[0](gap)\n"
    assert custom(module(folder, text).score) == custom(module(folder, text).score)


UNCLEAR = {
    "list": f"K = [1.0]\n{HEAD}):\n    return gap * K[0]\n",
    "class": f"class Settings:\n    k = 1.0\n{HEAD}):\n    return gap * Settings.k\n",
    "object": f"class S:\n    k = 1.0\ns = S()\n{HEAD}):\n    return gap * s.k\n",
    "attribute of the function": f"{HEAD}):\n    return gap * score.k\nscore.k = 2.0\n",
    "mutable default": f"{HEAD}, k=[1.0]):\n    return gap * k[0]\n",
    "import inside": f"{HEAD}):\n    from others import K\n    return gap * K\n",
    "global": f"K = 1\n{HEAD}):\n    global K\n    K += 1\n    return K\n",
    "globals": f"K = 1\n{HEAD}):\n    return globals()['K']\n",
    "getattr": f"import others\n{HEAD}):\n    return getattr(others, 'K')\n",
    "eval": f"{HEAD}):\n    return eval('gap')\n",
    "environment": f"import os\n{HEAD}):\n    return float(os.environ['K'])\n",
    "closure": f"def made(k):\n    def half(x):\n        return x * k\n    return half\nhalf = made(2)\n{HEAD}):\n"
    "    return half(gap)\n",
    "decorator": "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def wrapper(*given):\n"
    f"        return 2 * f(*given)\n    return wrapper\n@twice\n{HEAD}):\n    return gap\n",
    "partial": f"import functools\nf = functools.partial(max, 3.0)\n{HEAD}):\n    return f(gap)\n",
    "cached": f"import functools\n@functools.cache\ndef f(x):\n    return x\n{HEAD}):\n    return f(gap)\n",
    "disguised": "import functools, math\ndef made(k):\n    def sqrt(x):\n        return x * k\n"
    "    return functools.wraps(math.sqrt)(sqrt)\nf = made(2.0)\n" + f"{HEAD}):\n    return f(gap)\n",
    "array": f"import numpy as np\nK = np.zeros(5000)\n{HEAD}):\n    return gap * K[2]\n",
    "vectorized": f"import numpy as np\nf = np.vectorize(lambda x: x * 2)\n{HEAD}):\n    return float(f(gap))\n",
    "enumeration": f"import enum\nclass E(enum.IntEnum):\n    A = 1\nK = E.A\n{HEAD}):\n    return gap * K\n",
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_what_a_digest_cannot_cover_is_refused_for_stored_studies(name: str, folder: Path) -> None:
    policy = custom(module(folder, UNCLEAR[name], "K = 1.0\n").score)
    assert policy.obstacle is not None
    with pytest.raises(thresher.InvalidInput, match="cannot be kept in a store: ") as raised:
        thresher.create_study(
            "s", arms=["a", "b"], threshold=0.5, budget=8, policy=policy, storage=f"sqlite:///{folder}/s.db"
        )
    assert "\n" not in str(raised.value)
    assert not policy.is_exact


CONSTANT = f"K = 1.0\ndef half(x):\n    return x / 2\n{HEAD}):\n    return half(gap) * K\n"


@pytest.mark.parametrize("name", ["K", "half", "abs"])
def test_a_name_that_is_set_after_custom_stops_the_ask(name: str, folder: Path) -> None:
    mine = module(folder, CONSTANT.replace("half(gap)", "abs(half(gap))"))
    study = study_of(custom(mine.score), 2, 20)
    study.ask_many(4)
    before = len(study.events())
    mine.__dict__[name], old = (lambda x: x) if name != "K" else 2.0, mine.__dict__.get(name)
    for ask in (study.ask, lambda: thresher.verify(study.events())):
        with pytest.raises(thresher.NoScore, match="has changed since the study was created; restore it"):
            ask()
    assert len(study.events()) == before
    if old is None:
        del mine.__dict__[name]
    else:
        mine.__dict__[name] = old
    assert study.ask() is not None


def test_a_module_that_is_loaded_again_is_the_same_if_its_source_is(folder: Path) -> None:
    mine = module(folder, CONSTANT)
    study = study_of(custom(mine.score), 2, 20)
    importlib.reload(mine)
    assert study.ask() is not None
    (folder / "mine.py").write_text(CONSTANT.replace("K = 1.0", "K = 2.5"))
    importlib.reload(mine)
    with pytest.raises(thresher.NoScore, match="has changed since"):
        study.ask()
    assert study_of(custom(mine.score), 2, 20).ask() is not None
    with pytest.raises(thresher.NoScore, match="has changed since"):
        study.ask()


def test_a_file_that_was_edited_after_its_import_describes_nothing(folder: Path) -> None:
    mine = module(folder, CONSTANT)
    (folder / "mine.py").write_text(CONSTANT.replace("half(gap) * K", "half(gap) + K"))
    policy = custom(mine.score)
    assert policy.obstacle == "the file of score has changed since it was imported"
    assert not policy.is_exact


# -- exact operations ----------------------------------------------------------------------------------------------

INEXACT = {
    "variable that hides a function": f"import math\nfrom math import sqrt\n{HEAD}):\n    sqrt = math.pow\n"
    "    return sqrt(gap, 0.3)\n",
    "argument that hides a function": f"import math\nfrom math import sqrt\n{HEAD}, sqrt=math.log):\n"
    "    return sqrt(weight)\n",
    "function as an argument": f"import math\ndef use(abs, x):\n    return abs(x)\n{HEAD}):\n"
    "    return use(math.log, weight)\n",
    "hidden builtin": f"from math import log as abs\n{HEAD}):\n    return abs(weight)\n",
    "complex": f"{HEAD}):\n    return abs(gap + 1j * weight)\n",
    "complex constant": f"K = 1j\n{HEAD}):\n    return abs(gap + K * weight)\n",
    "operators of a class": "class K(float):\n    def __mul__(self, other):\n        return float(self) ** other\n"
    f"K = K(2.0)\n{HEAD}):\n    return K * gap\n",
    "equal to everything": "class Any:\n    def __eq__(self, other):\n        return True\n"
    "    def __call__(self, x):\n        return x ** 0.3\n    __hash__ = None\n"
    f"f = Any()\n{HEAD}):\n    return f(gap)\n",
    "key": f"import math\n{HEAD}):\n    return max(gap, weight, key=math.log)\n",
    "operator module": f"import operator\n{HEAD}):\n    return operator.pow(gap, 0.3)\n",
    "numpy": f"import numpy as np\n{HEAD}):\n    return np.sqrt(gap)\n",
    "numpy constant": f"import numpy as np\nK = np.float32(0.1)\n{HEAD}):\n    return gap * K\n",
    "power in place": f"{HEAD}):\n    gap **= 0.3\n    return gap\n",
    "whole division": f"{HEAD}):\n    gap //= 0.3\n    return gap\n",
    "text": f"{HEAD}):\n    return float(f'{{gap:.3f}}')\n",
    "method": f"{HEAD}):\n    return gap.__pow__(0.3)\n",
    "inner function": f"import math\n{HEAD}):\n    def abs(x):\n        return x * 2\n    return abs(gap)\n",
    "sum": f"{HEAD}):\n    return sum((gap, weight))\n",
    "default of a helper": f"import math\ndef f(x, abs=math.log):\n    return abs(x)\n{HEAD}):\n    return f(weight)\n",
}


@pytest.mark.parametrize("name", INEXACT)
def test_nothing_else_passes_for_exact(name: str, folder: Path) -> None:
    assert not custom(module(folder, INEXACT[name]).score).is_exact


EXACT = {
    "default": f"{HEAD}, k=2.0):\n    return gap * k\n",
    "annotations": "from typing import Any\ndef score(gap: 'float', scatter: Any, seen: int, weight: list[int], "
    "exploration: float) -> float:\n    '''A score.'''\n    x: dict[str, int] = gap\n    return x\n",
    "loop over constants": f"K = (1.0, 2)\n{HEAD}):\n    for k in K:\n        gap += k\n    return gap\n",
    "variable called like a function": f"import math\n{HEAD}):\n    sqrt = math.sqrt(gap)\n    return sqrt\n",
    "helper with names": f"def half(x, by=2):\n    return x / by\n{HEAD}):\n    return half(gap, by=4)\n",
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_functions_are_known_as_such(name: str, folder: Path) -> None:
    policy = custom(module(folder, EXACT[name]).score)
    assert policy.is_exact
    assert policy.obstacle is None


def test_a_wrapper_is_not_taken_for_what_it_wraps(folder: Path) -> None:
    wrapper = HEAD.replace("score", "wrapper")
    text = f"{HEAD}):\n    return gap\n{wrapper}):\n    return gap ** 0.3\nwrapper.__wrapped__ = score\n"
    mine = module(folder, text)
    assert custom(mine.score).is_exact
    assert not custom(mine.wrapper).is_exact
    assert custom(mine.wrapper).digest != custom(mine.score).digest
