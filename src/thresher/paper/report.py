"""`thresher paper`: writes data, pictures and claims to a folder, all or nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from ..core import checks
from ..core.policies import Policy
from ..errors import InvalidInput
from ..lab import pictures
from ..lab.comparing import labelled
from ..lab.compiler import Kind as Loop
from ..lab.warming import compile_together
from ..lab.writing import csv_text, progress_bar, whole_folder
from ..text.files import Kind, check
from . import certificate_plots, claims, figures, guarantee, kano, plots, table1
from .claims import Claim
from .figures import Added, Row

LOOPS = {  # what each part compiles, besides those of users' scores
    "figure1": Loop(),
    "figure2": Loop(delayed=True),
    "table1": Loop(),
    "certificates": Loop(certifies=True),
    "guarantee": Loop(certifies=True, delayed=True),
}
PARTS = tuple(LOOPS)
HEADS = {  # how the files begin
    "figure1.csv": "setting",
    "figure2.csv": "setting",
    "figure2_errors.csv": "setting",
    "table1.csv": "section",
    "table1.md": "# Table 1: hardness",
    "certificates.csv": "benchmark",
    "certificates.md": "# Pulls until every arm is settled",
    "guarantee.csv": "slower",
    "claims.md": "# The paper's claims",
    **{f"{part}.png": "\x89PNG" for part in PARTS},
    **{f"{part}.pdf": "%PDF" for part in PARTS},
}


def write(
    what: str | Sequence[str],
    out: str | Path,
    *,
    repetitions: int = 100,
    seed: int = 0,
    force: bool = False,
    policies: Sequence[Policy | str] = (),
) -> list[str]:
    """Play some of PARTS, or ``all``, and write them to the folder; return the names of the files.

    ``policies`` are added to the figures, to table 1 and to the claims. Either everything is written or nothing. Files
    that an earlier call did not write are not replaced, except with ``force``.
    """
    parts = _parts([what] if isinstance(what, str) else what)
    added = _added(policies, what)
    checks.whole("repetitions", repetitions, least=1, most=1_000_000, remedy="the paper has 100")
    checks.whole("seed", seed, least=0)
    pictures.check_ready()
    judging = added if repetitions > 1 else {}  # one repetition has no errors, so no verdicts
    found: list[Claim] = []
    more: list[str] = []
    with whole_folder(out) as folder:
        for name, head in HEADS.items():
            if name.startswith((*parts, "claims")):
                check(Path(out, name), _kind(head), force=force)
        compile_together([loop for part in parts for loop in _loops(part, added)], shows=True)
        if "figure1" in parts:
            with progress_bar("figure 1", figures.figure1_pulls(repetitions, added)) as progress:
                rows = list(figures.figure1(repetitions, seed, progress, added=added))
            _put(folder / "figure1.csv", csv_text(rows))
            plots.figure1(rows, folder / "figure1")
            found += claims.claims_41(rows)
            more += claims.besides(rows) + claims.added_41(rows, judging)
        if "figure2" in parts:
            rows = _counted("figure 2", figures.figure2(repetitions, seed, added=added), figures.figure2_rows(added))
            _put(folder / "figure2.csv", csv_text(rows, figures.FIGURE2_COLUMNS))
            _put(folder / "figure2_errors.csv", csv_text(rows))
            plots.figure2(rows, folder / "figure2")
            found += claims.claims_42(rows)
            more += claims.added_42(rows, judging)
        if "table1" in parts:
            rows = _counted("table 1", table1.table1(repetitions, seed, added=added), 6 * (3 + len(added)))
            _put(folder / "table1.csv", csv_text(rows))
            plots.table1(rows, folder / "table1")
            _put(folder / "table1.md", _table(rows))
        if "certificates" in parts:
            rows = _counted("certificates", kano.rows(repetitions, seed), kano.ROWS)
            _put(folder / "certificates.csv", csv_text(rows))
            certificate_plots.certificates(rows, folder / "certificates")
            _put(folder / "certificates.md", kano.table(rows))
        if "guarantee" in parts:
            count = len(guarantee.WORKERS) * len(guarantee.SLOWER)
            rows = _counted("guarantee", guarantee.orders(repetitions, seed), count)
            _put(folder / "guarantee.csv", csv_text(rows))
            runs = [guarantee.growth(seed, run) for run in range(guarantee.RUNS)]
            certificate_plots.guarantee(rows, runs, folder / "guarantee")
        if repetitions == 1:
            found = [replace(claim, verdict=claims.OPEN) for claim in found]
        if found:
            _put(folder / "claims.md", claims_page(found, more, repetitions, seed))
        return sorted(file.name for file in folder.iterdir())


def _counted(what: str, rows: Iterable[Row], count: int) -> list[Row]:
    """All rows, with a bar that shows how many there are already."""
    found = []
    with progress_bar(what, count) as progress:
        for row in rows:
            found.append(row)
            if progress is not None:
                progress(1)
    return found


def _parts(what: Sequence[str]) -> list[str]:
    for part in what:
        if part not in (*PARTS, "all"):
            raise InvalidInput("part", part, "is not a part of the paper", f"choose one of {', '.join(PARTS)}, all")
    return [part for part in PARTS if part in what or "all" in what]


def _added(given: Sequence[Policy | str], what: str | Sequence[str]) -> Added:
    """The policies to add, by their names in figures and tables."""
    found = labelled(given)
    alone = [part for part in ("certificates", "guarantee") if part in what]
    if found and alone:
        rule = f"{alone[0]} is about settling arms, so no policy can be added to it"
        raise InvalidInput("policy", next(iter(found)), rule, "add it to figure1, figure2 or table1")
    return found


def _loops(part: str, added: Added) -> list[Loop]:
    """What a part compiles."""
    users = [each for each in added.values() if each.is_custom and not LOOPS[part].certifies]
    return [LOOPS[part], *(LOOPS[part]._replace(formula=each.formula, digest=each.digest) for each in users)]


def _kind(head: str) -> Kind:
    return Kind("a file that thresher paper wrote", lambda found: found.startswith(head.encode("latin-1")))


def _put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def claims_page(found: Sequence[Claim], more: Sequence[str], repetitions: int, seed: int) -> str:
    """The claims as Markdown: a summary, then the measurements."""
    lines = [
        "# The paper's claims, measured",
        "",
        f"Written by `thresher paper` with {repetitions:,} repetitions and seed {seed}. ± is one standard error over "
        "repetitions. Verdicts on Section 4.1 use all arms right, the paper's measure; a speed-up is called nice "
        "if it is at least τ/2.",
        "",
        claims.RULE,
        "",
        "| section | claim | verdict |",
        "|---|---|---|",
        *(f"| {claim.section} | {claim.words} | **{claim.verdict}** |" for claim in found),
    ]
    for claim in found:
        lines += ["", f"## {claim.section}: {claim.words}", "", f"Verdict: **{claim.verdict}**.", ""]
        lines += [f"- {line}" for line in claim.measured]
    if more:
        lines += ["", "## Not in the paper", "", *(f"- {line}" for line in more)]
    return "\n".join(lines) + "\n"


def _table(rows: Sequence[Row]) -> str:
    lines = [
        "# Table 1: hardness, required rounds, rounds that simulation needed",
        "",
        f"H: median over {table1.INSTANCES:,} instances. Rounds by the theorems, at risk {table1.RISK:g}, on the "
        "instance whose H_EVT is the median (Propositions 1 and 2, as printed and with erratum 3 corrected; for ATP "
        "the paper gives no constant). Simulated: the first n of "
        f"{', '.join(f'{pulls:,}' for pulls in table1.PULLS)} at which all arms are right in at least "
        f"{1 - table1.RISK:.0%} of repetitions on that instance, and the share there ± one standard error.",
        "",
        "| section | setting | algorithm | H | rounds, printed | rounds, corrected | simulated | all arms right |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        cells = [
            row["section"],
            row["setting"],
            row["algorithm"],
            f"{row['hardness']:,.0f}" if row["hardness"] else "–",
        ]
        cells += [f"{row[name]:.2e}" if row[name] else "–" for name in ("rounds_printed", "rounds_corrected")]
        cells.append(f"{row['rounds_simulated']:,}" if row["rounds_simulated"] else f"> {row['most_pulls']:,}")
        cells.append(f"{row['success']:.3f} ± {row['success_se']:.3f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
