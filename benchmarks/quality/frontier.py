"""Use against leak, for our methods over sizes and for the tools that people use instead.

Run from the repository root: ``python benchmarks/quality/frontier.py [--tables a,b] [--methods a,b] [--splits N]``.
Each table is split in half, at most 10,000 people inside and as many outside; every method makes a table from those
inside; ``frontier_judge.py`` says how useful it is on the control group and what five attackers learn. Peers run in
environments of their own, which are made where they are missing (``--environments FOLDER``), and are stopped after
``--limit`` CPU seconds. What was judged is kept (``--cache FOLDER``, which begins with what stands in
benchmarks/results/frontier.json), so a run goes on where it stopped; ``--again`` measures anew. ``--report`` writes
frontier.md, frontier.json and a picture a table from what is kept. A table of yours is asked for as FILE.csv:TARGET.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import frontier_judge as judging  # noqa: E402
import frontier_peers as peers  # noqa: E402
import frontier_report as reporting  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.csv  # noqa: E402
from numpy.typing import NDArray  # noqa: E402

from benchmarks.data import load_table  # noqa: E402
from sfumato.core.errors import SfumatoError  # noqa: E402

MOST = 10_000
RESULTS = ROOT / "benchmarks" / "results"
Make = Callable[[pa.Table, judging.Columns, int], pa.Table]


@dataclass(frozen=True)
class Table:
    """A benchmark table: where it is, whether its target holds classes, and whether it is judged or only reported."""

    load: Callable[[], pa.Table]
    target: str
    classes: bool = False
    judged: bool = True


def _population() -> pa.Table:
    from sfumato.cli.verbs import population

    return population(2 * MOST).drop_columns(["patient"])


TABLES = {
    "adult": Table(lambda: load_table("adult_train"), "income"),
    "magic": Table(lambda: load_table("magic_gamma"), "class"),
    "abalone": Table(lambda: load_table("abalone"), ""),
    "waveform": Table(lambda: load_table("waveform5000_noise"), "", classes=True),
    "patients": Table(_population, "back_within_90_days"),
    "pima": Table(lambda: load_table("pima_diabetes"), "", classes=True, judged=False),
    "german": Table(lambda: load_table("german_credit_numeric"), "", classes=True, judged=False),
    "concrete": Table(lambda: load_table("concrete"), "", judged=False),
    "wdbc": Table(lambda: load_table("wdbc"), "", classes=True, judged=False),
}
"""Without a target's name the last column is it. The patients are made up (``sfumato.cli.verbs``)."""


def told(name: str) -> str:
    """Name of a table that is asked for, by its own or as FILE.csv:TARGET; numbers of a target are no classes."""
    path, colon, target = name.rpartition(":")
    if not colon:
        return name
    TABLES[Path(path).stem] = Table(lambda: pyarrow.csv.read_csv(path), target)
    return Path(path).stem


def _ours(name: str, **parameters: object) -> Make:
    def make(table: pa.Table, columns: judging.Columns, seed: int) -> pa.Table:
        import sfumato as sf

        mechanism = getattr(sf, name)(**parameters)
        return sf.sanitize(table, mechanism, target=columns.target, report=False, seed=seed).table

    return make


def _usual(table: pa.Table, columns: judging.Columns, seed: int) -> pa.Table:
    """What comes out where neither a method nor a size is said."""
    import sfumato as sf

    return sf.sanitize(table, target=columns.target, report=False, seed=seed).table


def _cart(leaf: int) -> Make:
    """Columns one after the other, target first, each cell copied from a leaf of a tree: what synthpop's CART does."""

    def make(table: pa.Table, columns: judging.Columns, seed: int) -> pa.Table:
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        rng = np.random.default_rng(seed)
        rows = judging.numbers(table, columns)
        marks = np.where(np.isnan(rows), np.nanmin(rows, axis=0) - 1, rows)
        order = [columns.last, *(place for place in range(rows.shape[1]) if place != columns.last)]
        drawn = np.empty(rows.shape, dtype=np.int64)  # the row that a cell is copied from
        drawn[:, order[0]] = rng.integers(len(rows), size=len(rows))
        for before, place in enumerate(order[1:], 1):
            known = order[:before]
            kind = DecisionTreeClassifier if columns.nominal[place] else DecisionTreeRegressor
            tree = kind(min_samples_leaf=leaf, random_state=seed).fit(marks[:, known], marks[:, place])
            new = np.column_stack([marks[drawn[:, other], other] for other in known])
            homes, leaves = tree.apply(marks[:, known]), tree.apply(new)
            by = np.argsort(homes, kind="stable")
            first = np.searchsorted(homes[by], leaves, "left")
            last = np.searchsorted(homes[by], leaves, "right")
            drawn[:, place] = by[rng.integers(first, last)]
        return pa.table({n: table[n].take(pa.array(drawn[:, i])) for i, n in enumerate(columns.names)})

    return make


METHODS: dict[str, Make] = {
    "chain, as it comes": _usual,
    **{f"chain, leaf {leaf}": _ours("Chain", k=10, leaf=leaf) for leaf in (10, 25, 50, 100, 200, 400)},
    **{f"condense, k = {k}": _ours("Condensation", k=k) for k in (10, 25, 50, 100, 250, 500, 1000)},
    **{f"condense normal, k = {k}": _ours("Condensation", k=k, scores="normal") for k in (25, 50, 100, 250)},
    **{f"cart, leaf {leaf}": _cart(leaf) for leaf in (5, 50, 100)},
    "original": lambda table, _columns, _seed: table,
}


class _Stopped(Exception):
    """A tool took more CPU seconds than it may."""


def peer(name: str, environments: Path, limit: int) -> Make:
    def make(table: pa.Table, columns: judging.Columns, seed: int) -> pa.Table:
        python = _environment(peers.PEERS[name], environments)
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            flat = {}
            for field in table.schema:
                values = table[field.name]
                if pa.types.is_date(field.type):
                    values = values.cast(pa.int32())
                flat[field.name] = values.cast(pa.string()) if field.name in columns.categories else values
            pyarrow.csv.write_csv(pa.table(flat), home / "inside.csv")
            layout = {"names": columns.names, "categories": columns.categories, "target": columns.target}
            (home / "columns.json").write_text(json.dumps(layout))
            command = [str(python), str(Path(peers.__file__)), name, folder, str(seed)]
            environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5)),
            )
            if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
                raise _Stopped
            if done.returncode:
                raise RuntimeError(f"{name}: {done.stderr.strip().splitlines()[-1]}")
            texts = dict.fromkeys(columns.categories, pa.string())
            kinds = {n: texts.get(n, pa.float64()) for n in columns.names}
            return pyarrow.csv.read_csv(
                home / "released.csv",
                convert_options=pyarrow.csv.ConvertOptions(column_types=kinds, strings_can_be_null=True),
            )

    return make


def _environment(name: str, folder: Path) -> Path:
    python = folder / name / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / name)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *peers.ENVIRONMENTS[name]], check=True)
        if name in peers.UNFIT:
            subprocess.run([str(python), "-m", "pip", "uninstall", "--yes", *peers.UNFIT[name]], check=True)
    return python


def split(name: str, seed: int) -> tuple[pa.Table, pa.Table, judging.Columns]:
    """People inside and outside, in a random half each, and what the columns are."""
    table = TABLES[name].load()
    target = TABLES[name].target or table.column_names[-1]
    if TABLES[name].classes:
        place = table.column_names.index(target)
        table = table.set_column(place, target, table[target].cast(pa.string()))
    columns = judging.Columns.of(table, target)
    order = np.random.default_rng(seed).permutation(table.num_rows)
    size = min(MOST, table.num_rows // 2)
    return table.take(order[:size]), table.take(order[size : 2 * size]), columns


def measure(name: str, make: Make, seed: int) -> dict[str, float]:
    """Figures of one method on one split, and the CPU seconds that it took, those of its processes included."""
    inside, outside, columns = split(name, seed)
    before = cpu_seconds()
    released = make(inside, columns, seed)
    seconds = cpu_seconds() - before
    released = judging.with_dropped(released, inside)
    rows: list[NDArray[np.float64]] = [judging.numbers(t, columns) for t in (released, inside, outside)]
    return judging.judge(*rows, columns, seed) | {"cpu": seconds}


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Measure what is asked for and not yet kept; write the report where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--methods", default=";".join(METHODS), help="separated by semicolons; peers by name")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--limit", type=int, default=900, help="CPU seconds of another tool's run")
    parser.add_argument("--again", action="store_true", help="drop every split of what is asked for, then measure")
    parser.add_argument("--cache", type=Path, default=ROOT / ".frontier")
    parser.add_argument("--environments", type=Path, default=ROOT / ".venv-peers")
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    reporting.fill(asked.cache, RESULTS / "frontier.json")
    if asked.report:
        reporting.write_report(asked.cache, RESULTS, TABLES)
        return
    tables, methods = [told(name) for name in asked.tables.split(",")], asked.methods.split(";")
    if asked.again:
        for kept in asked.cache.glob("*.json"):
            table, method, _seed = kept.stem.split("; ")
            if table in tables and method in methods:
                kept.unlink()
    makers = METHODS | {name: peer(name, asked.environments, asked.limit) for name in peers.PEERS}
    for seed in range(asked.splits):
        for name in tables:
            for method in methods:
                kept = asked.cache / f"{name}; {method}; {seed}.json"
                if not kept.exists():
                    _keep(kept, name, method, makers[method], seed, asked.limit)


def _keep(kept: Path, name: str, method: str, make: Make, seed: int, limit: int) -> None:
    hint = f"{name}, {method}, split {seed}:"
    try:
        found = measure(name, make, seed)
    except _Stopped:
        kept.write_text(json.dumps({"stopped": limit}))
        print(f"{hint} stopped after {limit} CPU s", flush=True)
    except (RuntimeError, ValueError, SfumatoError) as error:
        print(f"{hint} not measured, {error}", flush=True)
    else:
        kept.write_text(json.dumps(found))
        print(f"{hint} use {found['use']:.3f}, leak {found['leak']:.3f}, {found['cpu']:.1f} CPU s", flush=True)


if __name__ == "__main__":
    main()
