"""Find which of 40 classifiers read 93 % of 800 held-out digits right, give or take 2 points.

The 800 digits are the cases of an eval set: what is certified is the accuracy on exactly these digits. A pull lets one
classifier read one digit. Each classifier is trained once, by the worker that needs it first. The study ends when
every classifier is settled at a confidence of 95 %, after 32,000 pulls at the latest, which is what a full run takes.
Then the example makes the full run, which is affordable here, and says which answers differ. It needs scikit-learn.

With --baseline, it asks instead which of the other 39 beat that one by a margin on the same digits, and says what the
plain bar would have taken: the baseline's accuracy plus the margin.

  python examples/classifiers.py
  python examples/classifiers.py --tolerance 0         the exact question, which takes longer
  python examples/classifiers.py --baseline
  python examples/classifiers.py --baseline --margin 0
  python examples/classifiers.py --storage sqlite:///classifiers.db
  thresher cases classifiers --storage sqlite:///classifiers.db       the hardest digits first
"""

import functools
import importlib
import os
import threading
from typing import Any

import telling

import thresher

BAR = 0.93
TOLERANCE = 0.02  # within it of the bar, either answer is right
CURRENT = "LinearDiscriminantAnalysis solver=lsqr shrinkage=0.1"  # the baseline, unless another one is named
MARGIN = 0.02
HELD_OUT = 800  # of 1,797 digits; the classifiers learn from the others
PIXELS = 64


def classifiers() -> dict[str, dict[str, Any]]:
    """The arms: a model, its arguments, how many digits it learns from, and how many pixels of each it sees."""
    knn, tree, forest = "neighbors.KNeighborsClassifier", "tree.DecisionTreeClassifier", "ensemble.ExtraTreesClassifier"
    svc, logistic, bayes = "svm.SVC", "linear_model.LogisticRegression", "naive_bayes.GaussianNB"
    lda, qda = (f"discriminant_analysis.{kind}DiscriminantAnalysis" for kind in ("Linear", "Quadratic"))
    models: list[tuple[str, dict[str, Any], int, int]] = [
        *((knn, {"n_neighbors": k}, learned, PIXELS) for k in (1, 5, 20) for learned in (997, 300, 80)),
        *((knn, {"n_neighbors": 3}, 997, pixels) for pixels in (40, 24, 12)),
        *((tree, {"max_depth": depth}, 997, PIXELS) for depth in (3, 6, 12)),
        *((forest, {"n_estimators": n}, learned, PIXELS) for n in (3, 10, 30) for learned in (997, 300)),
        *((svc, {"C": c, "gamma": 0.02}, 997, PIXELS) for c in (0.03, 0.1, 0.3, 1, 10)),
        *((svc, {"C": 10, "gamma": 0.02}, learned, PIXELS) for learned in (300, 100)),
        *((logistic, {"C": c, "tol": 0.001}, 997, PIXELS) for c in (0.001, 0.01, 0.03, 0.1, 1)),
        (logistic, {"C": 1, "tol": 0.001}, 100, PIXELS),
        *((bayes, {"var_smoothing": share}, 997, PIXELS) for share in (0.01, 0.1)),
        *((qda, {"reg_param": share}, 997, PIXELS) for share in (0.02, 0.3)),
        (lda, {"solver": "lsqr", "shrinkage": 0.1}, 997, PIXELS),
        ("linear_model.RidgeClassifier", {}, 997, PIXELS),
    ]
    return {
        _name(model, given, learned, pixels): {
            "model": model,
            "arguments": given,
            "learned": learned,
            "pixels": pixels,
        }
        for model, given, learned, pixels in models
    }


def _name(model: str, given: dict[str, Any], learned: int, pixels: int) -> str:
    words = [model.partition(".")[2], *(f"{name}={value}" for name, value in given.items() if name != "tol")]
    words += [f"learned={learned}"] if learned != 997 else []
    return " ".join([*words, f"pixels={pixels}"] if pixels != PIXELS else words)


class Digits:
    """The data, and the classifiers that have been trained so far. All workers share it."""

    def __init__(self) -> None:
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split

        images, labels = load_digits(return_X_y=True)
        split = train_test_split(range(len(labels)), test_size=HELD_OUT, random_state=0)
        self._images, self._labels = images / 16, labels
        self.learned_from, self._held_out = split
        self._trained: dict[str, Any] = {}
        self._locks: dict[str, threading.Lock] = {}

    def cases(self) -> dict[str, dict[str, int]]:
        """The held-out digits, such as "7 in image 1204"."""
        images = sorted(self._held_out)
        return {f"{self._labels[image]} in image {image}": {"image": image} for image in images}

    def reads(self, pull: thresher.Pull) -> bool:
        """The evaluator: whether the arm's classifier reads the case's digit right."""
        return self.right(pull.arm, pull.params, [pull.case_params["image"]]) == 1

    def right(self, arm: str, params: Any, images: list[int]) -> int:
        """How many of these digits the arm's classifier reads right."""
        found = self._classifier(arm, params).predict(self._images[images][:, _seen(params["pixels"])])
        return int((found == self._labels[images]).sum())

    def _classifier(self, arm: str, params: Any) -> Any:
        """The arm's classifier, trained by the first call; other workers that need it wait."""
        with self._locks.setdefault(arm, threading.Lock()):
            if arm not in self._trained:
                module, _, kind = params["model"].partition(".")
                model = getattr(importlib.import_module(f"sklearn.{module}"), kind)(**params["arguments"])
                if "random_state" in model.get_params():
                    model.set_params(random_state=0)
                chosen = self.learned_from[: params["learned"]]
                self._trained[arm] = model.fit(self._images[chosen][:, _seen(params["pixels"])], self._labels[chosen])
        return self._trained[arm]


def _seen(pixels: int) -> list[int]:
    """The pixels that a classifier sees: this many, spread over the image."""
    return sorted(pixel * 27 % PIXELS for pixel in range(pixels))


def truth(digits: Digits, arms: dict[str, dict[str, Any]], images: list[int], verdict: thresher.Verdict) -> str:
    """How many certified answers differ from those of a full run, and how many of these lie outside the tolerance."""
    shares = {arm: digits.right(arm, params, images) / len(images) for arm, params in arms.items()}
    low, high = verdict.edges
    certified = [row for row in verdict if row.certified]
    differ = [row.arm for row in certified if row.reached != (shares[row.arm] >= BAR)]
    wrong = [arm for arm in differ if not low <= shares[arm] < high]
    reach = sum(share >= BAR for share in shares.values())
    names = "".join(f"\n  {arm}: {shares[arm]:.2%}" for arm in differ)
    return (
        f"the truth, by a full run: {reach} of {len(shares)} classifiers reach {BAR:.0%}. Certified answers that are "
        f"different: {len(differ)} of {len(certified)}; by more than the tolerance: {len(wrong)}{names}"
    )


def against(digits: Digits, arms: dict[str, dict[str, Any]], cases: dict[str, dict[str, int]], given: Any) -> int:
    """Which classifiers beat the baseline by the margin, next to a plain bar and to the truth."""
    base, margin = given.baseline, given.margin
    images = [case["image"] for case in cases.values()]
    right = {arm: digits.right(arm, params, images) for arm, params in arms.items()}
    reach = [arm for arm in arms if arm != base and right[arm] / len(cases) >= bar_of(right[base], len(cases), margin)]
    shared = {"cases": cases, "budget": given.budget, "seed": given.seed}
    study = thresher.create_study(
        "classifiers-against",
        arms=arms,
        baseline=base,
        margin=margin,
        storage=given.storage,
        if_exists="join",
        **shared,
    )
    work = functools.partial(thresher.run, study, digits.reads, workers=given.workers)
    status = telling.carry_out(study, work, given.format)
    verdict = study.verdict()
    telling.say(f"the truth, by a full run: {len(reach)} of {len(arms) - 1} do. {_right(verdict, reach)}")
    telling.say(_shares("compared case by case", verdict.issued, len(arms), len(cases), own=True))
    others = {arm: params for arm, params in arms.items() if arm != base}
    plain = thresher.create_study(
        "classifiers-plain-bar", arms=others, at_least=bar_of(right[base], len(cases), margin), **shared
    )
    thresher.run(plain, digits.reads, workers=given.workers)
    issued = plain.verdict().issued
    telling.say(_shares("against the plain bar", issued, len(arms), len(cases), own=False))
    telling.say(f"the plain bar: {_right(plain.verdict(), reach)}")
    return status


def bar_of(right: int, cases: int, margin: float) -> float:
    """The accuracy that the margin asks for; an accuracy exactly on it reaches it."""
    return (right + round(margin * cases, 6)) / cases


def _right(verdict: thresher.Verdict, reach: list[str]) -> str:
    certified = [row for row in verdict if row.certified]
    known = sum(row.reached == (row.arm in reach) for row in certified)
    return f"{known} of {len(certified)} certified answers are right"


def _shares(how: str, issued: int, arms: int, cases: int, *, own: bool) -> str:
    """Pulls as a share of a full run, with the baseline's own pass and without it."""
    pulls, full = issued - cases * own, arms * cases
    return (
        f"{how}: {pulls + cases:,} pulls with the baseline's own {cases:,}, {(pulls + cases) / full:.0%} of a full run "
        f"({full:,}); {pulls:,} without them, {pulls / (full - cases):.0%}"
    )


def main() -> int:
    """Run the example."""
    options = telling.options(__doc__)
    options.add_argument("--workers", type=int, default=1, metavar="N", help="threads; with 1, pulls repeat exactly")
    options.add_argument(
        "--tolerance", type=float, default=TOLERANCE, metavar="T", help="without --baseline; 0.02 by default"
    )
    options.add_argument("--baseline", nargs="?", const=CURRENT, metavar="ARM", help="compare the others with this one")
    options.add_argument("--margin", type=float, default=MARGIN, metavar="M", help="by how much; 0.02 by default")
    given = options.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread per model: the workers share the cores
    digits = Digits()
    arms, cases = classifiers(), digits.cases()
    if given.quick:
        arms, cases = dict(list(arms.items())[::7]), dict(list(cases.items())[::4])
    if given.baseline is not None:
        return against(digits, {CURRENT: classifiers()[CURRENT], **arms}, cases, given)
    name = "classifiers-quick" if given.quick else "classifiers"
    study = thresher.create_study(
        name,
        arms=arms,
        cases=cases,
        at_least=BAR,
        tolerance=given.tolerance,
        unit="%",
        budget=given.budget,
        seed=given.seed,
        storage=given.storage,
        if_exists="join",
    )
    work = functools.partial(thresher.run, study, digits.reads, workers=given.workers)
    status = telling.carry_out(study, work, given.format)
    telling.say(truth(digits, arms, [case["image"] for case in cases.values()], study.verdict()))
    kept = given.storage or "sqlite:///classifiers.db"
    again = "" if given.storage else f"run again with --storage {kept}, then: "
    telling.say(f"the hardest digits: {again}thresher cases {name} --storage {kept}")
    return status


if __name__ == "__main__":
    telling.end(main)
