"""Find which of 60 settings of scikit-learn reach an accuracy of 97 % on the digits, give or take half a point.

A pull trains one setting on a fresh random split of the data and tests it on unseen digits; the pull's seed chooses
the split. The study ends when every setting is settled at a confidence of 95 %: it reaches the bar or misses it, and
within half a point of it either answer is right. It needs scikit-learn.

  python examples/digits.py
  python examples/digits.py --engine processes --workers 8 --storage sqlite:///digits.db
  python examples/digits.py --engine dask                      a Dask cluster on this machine
  python examples/digits.py --engine dask:scheduler:8786       a cluster that already runs
  python examples/digits.py --engine ray --workers 8
"""

import functools
import os
from typing import Any

import telling

import thresher

BAR, TOLERANCE = 0.97, 0.005
LEAST = 0.9  # lower accuracies count as this: narrow bounds settle sooner, and it is far enough from the bar
TRAINED, TESTED = 900, 400  # of 1,797 digits


def settings() -> dict[str, dict[str, Any]]:
    """The arms: the module and class of a model, and its arguments."""
    svc, knn, trees = "svm.SVC", "neighbors.KNeighborsClassifier", "ensemble.ExtraTreesClassifier"
    bayes, lda = "naive_bayes.GaussianNB", "discriminant_analysis.LinearDiscriminantAnalysis"
    qda, logistic = "discriminant_analysis.QuadraticDiscriminantAnalysis", "linear_model.LogisticRegression"
    models: list[tuple[str, dict[str, Any]]] = [
        *((svc, {"C": c, "gamma": gamma}) for c in (0.3, 1, 3, 10) for gamma in (0.01, 0.02, 0.03, 0.05, 0.1)),
        *((svc, {"kernel": "poly", "degree": degree}) for degree in (2, 3, 4)),
        *((svc, {"kernel": "linear", "C": c}) for c in (0.01, 0.1, 1)),
        *((knn, {"n_neighbors": k, "weights": w}) for k in (1, 3, 5, 8, 12, 20) for w in ("uniform", "distance")),
        *((qda, {"reg_param": share}) for share in (0.05, 0.1, 0.15, 0.2, 0.3, 0.5)),
        *((trees, {"n_estimators": n, "max_features": most}) for n in (20, 40) for most in (2, 4, 8)),
        *((logistic, {"C": c, "tol": 0.001}) for c in (0.1, 0.3, 1, 3)),
        *((lda, {"solver": "lsqr", "shrinkage": share}) for share in (0.01, 0.1, 0.5)),
        *((bayes, {"var_smoothing": share}) for share in (0.01, 0.1)),
        ("linear_model.RidgeClassifier", {"alpha": 1.0}),
    ]
    return {_name(model, given): {"model": model, "arguments": given} for model, given in models}


def _name(model: str, given: dict[str, Any]) -> str:
    return " ".join([model.partition(".")[2], *(f"{name}={value}" for name, value in given.items())])


def digits() -> Any:
    """The data, read once in each process.

    It is kept in scikit-learn's module: engines may send this function to their workers by value, again for each pull,
    and anything kept in its own module would be lost.
    """
    from sklearn import datasets

    kept = vars(datasets)
    if "digits_read" not in kept:
        kept["digits_read"] = datasets.load_digits(return_X_y=True)
    return kept["digits_read"]


def accuracy(pull: thresher.Pull) -> float:
    """The share of unseen digits that the arm's model reads right after training; the seed chooses the split."""
    import importlib

    from sklearn.model_selection import train_test_split

    images, labels = digits()
    split = {"train_size": TRAINED, "test_size": TESTED, "random_state": pull.seed}
    seen, unseen, seen_labels, unseen_labels = train_test_split(images / 16, labels, **split)
    module, _, kind = pull.params["model"].partition(".")
    model = getattr(importlib.import_module(f"sklearn.{module}"), kind)(**pull.params["arguments"])
    if "random_state" in model.get_params():
        model.set_params(random_state=pull.seed)
    return max(LEAST, float(model.fit(seen, seen_labels).score(unseen, unseen_labels)))


def main() -> int:
    """Run the example."""
    options = telling.options(__doc__)
    options.add_argument("--engine", default="processes", help="threads, processes, dask[:ADDRESS] or ray[:ADDRESS]")
    options.add_argument("--workers", type=int, metavar="N", help="by default as many as there are cores")
    given = options.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # one thread per model: the workers share the cores
    digits()  # before the processes start, so that forked ones share it
    arms = settings()
    study = thresher.create_study(
        "digits-quick" if given.quick else "digits",
        arms=dict(list(arms.items())[::10]) if given.quick else arms,
        at_least=BAR,
        tolerance=4 * TOLERANCE if given.quick else TOLERANCE,
        bounds=(LEAST, 1.0),
        unit="%",
        budget=given.budget,
        seed=given.seed,
        storage=given.storage,
        if_exists="join",
    )
    work = functools.partial(thresher.run, study, accuracy, executor=given.engine, workers=given.workers)
    return telling.carry_out(study, work, given.format)


if __name__ == "__main__":
    telling.end(main)
