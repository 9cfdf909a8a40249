"""What an owner learns from the rounds of a joint K-means: opened centres, hidden centres, opened clusters.

Run from the repository root: ``python benchmarks/parties/trajectory.py [--quick] [--data FOLDER]``.
Rows (horizontal): the first of r owners sees sizes and centres of all clusters in every round and knows its own rows.
It claims rows of the others (``benchmarks.parties.rounds``) without knowing any truth; here its claims are
counted against the truth: right is a row of another owner within 0.001 standard deviations in every coordinate, or
within what the owners' rounding leaves open where that is more (0.01 to 0.02 at 10,000 rows in 10 groups). Rows are
dealt at random, equally many to each owner unless said; response weight 0.8; groups are those of the protocol, run in
one process, with centres opened to 22 bits or so, as exactly as there is room for. The protocol rounds them to 12 bits,
which blurs sums: there a simpler attacker claims a row where one cluster lost what one other gained, within the blur,
and it is right where just this one row moved so. The same owner against hidden centres: it has the clusters of its own
rows, all sizes and the groups' statistics, guesses the centres (``benchmarks.parties.hidden_centres``) and
differences them. Columns
(vertical): the first owner predicts the others' columns from its own, from the groups, and from the clusters of all
rounds; R^2 in five-fold cross-validation, so it is taken to know four fifths of the others' rows already; the better
of ridge regression and extra trees, mean over the others' coordinates.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from threadpoolctl import threadpool_limits

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.parties.columns import owned_columns, predicted, watch_columns  # noqa: E402
from benchmarks.parties.reports import COLOURS, draw, head, mean, row, save  # noqa: E402
from benchmarks.parties.rows import Case, attack, attack_rounded, watch_rows  # noqa: E402
from benchmarks.parties.tables import TITLES, coordinates  # noqa: E402

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEEDS, QUICK_SEEDS = 5, 2
GROUPS = {"concrete": (5, 10, 20, 50), "boston_housing": (5, 10, 25), "mixed": (5, 10, 20, 50)}
OWNERS = (2, 3, 5)
Found = dict[Case, list[dict[str, float]]]
Columns = dict[tuple[str, int], list[dict[str, float]]]


def cases(quick: bool) -> list[Case]:
    """Vary owners and groups on all sets, rounds, rows and the attacker's share on one or two."""
    if quick:
        return [Case(name, 3, 10) for name in GROUPS] + [Case("concrete", 3, 10, share=0.95)]
    made = [Case(name, r, g) for name, groups in GROUPS.items() for g in groups for r in OWNERS]
    made += [Case("concrete", 3, 10, rounds) for rounds in (3, 5, 10, 100)]
    made += [Case("concrete", 3, 10, rows=rows) for rows in (3_000, 10_000)]
    made += [Case("concrete", 3, rows // 103, rows=rows) for rows in (3_000, 10_000)]
    return made + [Case(name, 3, 10, share=share) for name in GROUPS for share in (0.8, 0.95)]


def of_rows(quick: bool, folder: str | None) -> Found:
    found: Found = {}
    for case in cases(quick):
        table = coordinates(case.name, folder, case.rows)
        found[case] = [
            attack(table, watch_rows(table, case, seed)) | attack_rounded(watch_rows(table, case, seed, fine=False))
            for seed in range(QUICK_SEEDS if quick else SEEDS)
        ]
        print(case, flush=True)
    return found


def of_columns(quick: bool, folder: str | None) -> Columns:
    found = {}
    for name in ("concrete",) if quick else GROUPS:
        table = coordinates(name, folder)
        (own, _), (others, _) = owned_columns(table, 2)
        for g in (5,) if quick else (5, 10):
            found[name, g] = [
                predicted(own, others, watch_columns(table, 2, g, 20, seed), seed) for seed in range(1 if quick else 2)
            ]
            print(name, g, flush=True)
    return found


def _which(case: Case) -> str:
    which = TITLES[case.name]
    which += "" if case.rounds == 20 else f", {case.rounds} rounds at most"
    return which if case.share is None else f"{which}, attacker has {case.share:.0%}"


def _share(runs: list[dict[str, float]], what: str) -> float:
    return sum(run[what] for run in runs) / sum(run["others"] for run in runs)


def _row_lines(found: Found) -> list[str]:
    lines = ["## Rows: centres opened in every round", ""]
    names = ("set", "rows", "owners", "groups", "rounds", "others' rows", "of them moved", "claimed", "right")
    lines += head(*names, "share of others' rows")
    for case, runs in found.items():
        counts = [mean([run[f"each round: {what}"] for run in runs]) for what in ("claimed", "right")]
        ran, others = (mean([run[what] for run in runs], 0) for what in ("rounds run", "others"))
        moved = f"{np.mean([run['moved'] for run in runs]):.0%}"
        whole = f"{_share(runs, 'each round: right'):.1%}"
        first = (_which(case), int(runs[0]["rows"]), case.parties, case.g)
        lines.append(row(*first, ran, others, moved, *counts, whole))
    return [*lines, "", *_total(found)]


def _rounded_lines(found: Found) -> list[str]:
    lines = ["## Rows: centres opened in every round, rounded as the protocol does", ""]
    lines += ["Off: median root mean square error of right claims, in standard deviations.", ""]
    lines += head("set", "rows", "owners", "groups", "claimed", "right", "share of others' rows", "off")
    for case, runs in found.items():
        counts = [mean([run[f"rounded: {what}"] for run in runs]) for what in ("claimed", "right")]
        off = [run["rounded: off"] for run in runs if run["rounded: right"]]
        first = (_which(case), int(runs[0]["rows"]), case.parties, case.g)
        middle = f"{np.median(off):.3f}" if off else "-"
        lines.append(row(*first, *counts, f"{_share(runs, 'rounded: right'):.1%}", middle))
    some = [run for runs in found.values() for run in runs]
    claimed, right = (sum(run[f"rounded: {what}"] for run in some) for what in ("claimed", "right"))
    return [*lines, "", f"Over all {len(some)} runs {claimed:.0f} rows were claimed and {right:.0f} were right.", ""]


def _total(found: Found) -> list[str]:
    runs = [run for some in found.values() for run in some]
    claimed, right = (sum(run[f"each round: {what}"] for run in runs) for what in ("claimed", "right"))
    filled, groups, hidden = (
        tuple(int(sum(run[f"{name}: {what}"] for run in runs)) for what in ("claimed", "right"))
        for name in ("filling", "groups", "hidden")
    )
    n = len(runs)
    return [
        f"Over all {n} runs {claimed:.0f} rows were claimed and {right:.0f} were right. Clusters before and after they",
        f"were filled gave {filled[0]} claims more, {filled[1]} right. With centres opened or hidden, the groups'",
        f"statistics alone gave {groups[0]} claims, {groups[1]} right: groups with one or two rows of the others.",
        f"With hidden centres {hidden[0]} differences were taken and {hidden[1]} were a row.",
        "",
    ]


def _hidden_lines(found: Found) -> list[str]:
    lines = ['## Rows: centres hidden (`centres = "last"`)', ""]
    lines += ["Root mean square errors in standard deviations, mean over runs.", ""]
    lines += head(
        "set",
        "rows",
        "owners",
        "groups",
        "centre guessed, off by",
        "own mean, off by",
        "differences",
        "that are a row",
        "from a difference to the nearest row",
        "from a group mean to the nearest row",
        "groups' statistics: right",
    )
    for case, runs in found.items():
        off, plain, near, guess = (
            f"{np.nanmean([run[f'hidden: {what}'] for run in runs]):.3f}"
            for what in ("centres off", "own means off", "nearest row", "nearest row to a group mean")
        )
        claimed, right, small = (
            f"{np.mean([run[what] for run in runs]):.1f}"
            for what in ("hidden: claimed", "hidden: right", "groups: right")
        )
        lines.append(
            row(
                _which(case), int(runs[0]["rows"]), case.parties, case.g, off, plain, claimed, right, near, guess, small
            )
        )
    return [*lines, ""]


def _column_lines(found: Columns) -> list[str]:
    lines = ["## Columns: clusters of all rows opened in every round", "", "R^2 for the others' coordinates.", ""]
    names = list(next(iter(found.values()))[0])
    lines += head("set", "groups", *names, "gain by the rounds")
    for (name, g), runs in found.items():
        cells = [mean([run[what] for run in runs], 3) for what in names]
        gain = mean([run[names[2]] - run[names[1]] for run in runs], 3)
        lines.append(row(TITLES[name], g, *cells, gain))
    return [*lines, ""]


def _picture(found: Found) -> None:
    def panel(name: str) -> Any:
        def drawn(axes: Axes) -> None:
            for colour, r in zip(COLOURS, OWNERS, strict=False):
                same = {case.g: runs for case, runs in found.items() if case == Case(name, r, case.g)}
                for style, what, label in (
                    ("-o", "each round: right", f"{r} owners, opened each round"),
                    ("--", "hidden: right", f"{r} owners, hidden"),
                ):
                    shares = [_share(runs, what) for runs in same.values()]
                    axes.plot(list(same), shares, style, color=colour, ms=4, label=label)
            axes.set(xlabel="groups", ylabel="others' rows recovered exactly", title=TITLES[name])
            axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")

        return drawn

    draw("parties_trajectory.svg", "Rows that one owner reads off the rounds of K-means", [panel(n) for n in GROUPS])


def report(rows: Found, columns: Columns, seconds: float) -> Sequence[str]:
    return [
        "# What an owner learns from the rounds of a joint K-means",
        "",
        "`python benchmarks/parties/trajectory.py`; its first lines say how. Measured: mean ± standard deviation over",
        f"runs, run s with seed s. The whole run took {seconds / 60:.1f} minutes on 2 shared cores.",
        "",
        *_row_lines(rows),
        *_rounded_lines(rows),
        *_hidden_lines(rows),
        *_column_lines(columns),
    ]


def _one_thread() -> None:
    threadpool_limits(limits=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="A few cases, two runs; writes nothing.")
    parser.add_argument("--data", help="Folder of the benchmark tables.")
    options = parser.parse_args()
    begin = time.perf_counter()
    with ProcessPoolExecutor(2, initializer=_one_thread) as pool:
        asked = pool.submit(of_columns, options.quick, options.data)
        rows = pool.submit(of_rows, options.quick, options.data).result()
        print("\n".join([*_row_lines(rows), *_hidden_lines(rows)]), flush=True)
        columns = asked.result()
    lines = report(rows, columns, time.perf_counter() - begin)
    print("\n".join(lines))
    if not options.quick:
        save("parties_trajectory.md", lines)
        _picture(rows)


if __name__ == "__main__":
    main()
