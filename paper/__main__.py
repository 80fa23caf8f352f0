"""`python -m paper PART… --out FOLDER`: the paper's figures, its table, and whether its claims hold."""

import argparse
import importlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from thresher import InvalidInput, Policy, ThresherError, custom
from thresher.lab import csv_text, labelled, pictures, progress_bar

from . import claims, figures, guarantee, plots, table1
from .claims import Claim
from .figures import Added, Row

PARTS = ("figure1", "figure2", "table1", "guarantee")


def write(
    parts: Sequence[str], out: Path, *, repetitions: int = 100, seed: int = 0, policies: Sequence[Policy | str] = ()
) -> list[str]:
    """Play some of PARTS, or ``all``, and write them to the folder, each when it is complete; return the files' names.

    ``policies`` are added to the figures, to table 1 and to the claims.
    """
    wanted = _wanted(parts)
    added = _added(policies, parts)
    if repetitions < 1:
        raise InvalidInput("repetitions", repetitions, "must be at least 1", "the paper has 100")
    pictures.check_ready()
    out.mkdir(parents=True, exist_ok=True)
    judging = added if repetitions > 1 else {}  # one repetition has no errors, so no verdicts
    judged: list[Claim] = []
    more: list[str] = []
    if "figure1" in wanted:
        with progress_bar("figure 1", figures.figure1_pulls(repetitions, added)) as progress:
            rows = list(figures.figure1(repetitions, seed, progress, added=added))
        _put(out / "figure1.csv", csv_text(rows))
        plots.figure1(rows, out / "figure1")
        judged += claims.claims_41(rows)
        more += claims.besides(rows) + claims.added_41(rows, judging)
    if "figure2" in wanted:
        rows = _counted("figure 2", figures.figure2(repetitions, seed, added=added), figures.figure2_rows(added))
        _put(out / "figure2.csv", csv_text(rows, figures.FIGURE2_COLUMNS))
        _put(out / "figure2_errors.csv", csv_text(rows))
        plots.figure2(rows, out / "figure2")
        judged += claims.claims_42(rows)
        more += claims.added_42(rows, judging)
    if "table1" in wanted:
        rows = _counted("table 1", table1.table1(repetitions, seed, added=added), 6 * (3 + len(added)))
        _put(out / "table1.csv", csv_text(rows))
        plots.table1(rows, out / "table1")
        _put(out / "table1.md", table1.page(rows))
    if "guarantee" in wanted:
        count = len(guarantee.WORKERS) * len(guarantee.SLOWER)
        rows = _counted("guarantee", guarantee.orders(repetitions, seed), count)
        _put(out / "guarantee.csv", csv_text(rows))
        runs = [guarantee.growth(seed, run) for run in range(guarantee.RUNS)]
        guarantee.draw(rows, runs, out / "guarantee")
    if repetitions == 1:
        judged = [replace(claim, verdict=claims.OPEN) for claim in judged]
    if judged:
        _put(out / "claims.md", claims.page(judged, more, repetitions, seed))
    begins = (*wanted, "claims")
    return sorted(file.name for file in out.iterdir() if file.name.startswith(begins))


def _counted(part: str, rows: Iterable[Row], count: int) -> list[Row]:
    """All rows, with a bar that shows how many there are already."""
    done = []
    with progress_bar(part, count) as progress:
        for row in rows:
            done.append(row)
            if progress is not None:
                progress(1)
    return done


def _wanted(parts: Sequence[str]) -> list[str]:
    for part in parts:
        if part not in (*PARTS, "all"):
            raise InvalidInput("part", part, "is not a part of the paper", f"choose one of {', '.join(PARTS)}, all")
    return [part for part in PARTS if part in parts or "all" in parts]


def _added(policies: Sequence[Policy | str], parts: Sequence[str]) -> Added:
    """The policies to add, by their names in figures and tables."""
    added = labelled([_imported(policy) for policy in policies])
    if added and "guarantee" in parts:
        rule = "guarantee is about settling arms, so no policy can be added to it"
        raise InvalidInput("policy", next(iter(added)), rule, "add it to figure1, figure2 or table1")
    return added


def _imported(policy: Policy | str) -> Policy | str:
    """The policy at module:name, or the one that a score there makes; anything else stays as it is."""
    if isinstance(policy, Policy) or ":" not in policy:
        return policy
    module, _, name = policy.partition(":")
    try:
        target = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InvalidInput("policy", policy, str(error), "name a score or a policy as module:name") from None
    return target if isinstance(target, Policy) else custom(target)


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def main(words: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(prog="python -m paper", description=__doc__)
    options.add_argument("parts", nargs="+", metavar="PART", help=f"of {', '.join(PARTS)}, all")
    options.add_argument("--out", required=True, type=Path, help="the folder to write to")
    options.add_argument("--repetitions", type=int, default=100, help="the paper has 100, docs/paper 1,000")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument(
        "--policy", dest="policies", action="append", default=[], help="add a policy, or module:function; repeatable"
    )
    arguments = vars(options.parse_args(words))
    try:
        for name in write(arguments.pop("parts"), arguments.pop("out"), **arguments):
            print(name)
    except ThresherError as error:
        print(f"paper: error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
