"""`make bench`: everything, or the parts that are named: `python -m bench engine lab`. Exit 1 if a bar is missed."""

import argparse
import importlib
import sys
from pathlib import Path

from .report import Figure, write_json

PARTS = (
    "engine",
    "asking",
    "lab",
    "scores",
    "warmup",
    "durable",
    "exchange",
    "certificates",
    "revisions",
    "forecast",
    "questions",
    "web",
    "clusters",
    "stay",
    "scale",
    "faults",
    "inspect",
    "pytest",
    "mutants",
)


def main() -> int:
    options = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    options.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all by default")
    options.add_argument("--json", type=Path, default=Path("bench-results.json"))
    given = options.parse_args()
    unknown = [part for part in given.parts if part not in PARTS]
    if unknown:
        options.error(f"no part is called {unknown[0]!r}; there are {', '.join(PARTS)}")
    figures: list[Figure] = []
    for part in given.parts or PARTS:
        for figure in importlib.import_module(f"bench.{part}").figures():
            print(figure, flush=True)
            figures.append(figure)
    write_json(figures, given.json)
    missed = [figure for figure in figures if not figure.held]
    print(f"\n{len(figures) - len(missed)} of {len(figures)} held; {given.json} has the figures")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
