"""Utility of the private chain against epsilon, beside MST and AIM.

Run from the repository root: ``python benchmarks/quality/private.py [--tables a,b] [--methods a,b] [--epsilons 1,10]
[--splits 100-109]``. Each table is split in half, at most 10,000 people inside and as many outside. Utility is that of
boosting (two classes: AUC; numbers: R2) or of a random forest (more classes: accuracy), trained on the release and
tested outside. Pairs: mean total variation distance of all two-way margins, ten bins. Bounds and categories are those
of the whole table (for MST and AIM, bounds are those of the people inside). Figures are kept in
benchmarks/results/private.json, so a run goes on where it stopped; ``--report`` writes private.md from them. MST and
AIM run in an environment of their own (``--environments FOLDER``, made where it is missing) with the iterations that
their tool has by default.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import frontier  # noqa: E402
import frontier_judge as judging  # noqa: E402
import numpy as np  # noqa: E402
import private_report as reporting  # noqa: E402
import pyarrow as pa  # noqa: E402
from numpy.typing import NDArray  # noqa: E402
from sklearn.ensemble import (  # noqa: E402
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.metrics import roc_auc_score  # noqa: E402

Matrix = NDArray[np.float64]
RESULTS = ROOT / "benchmarks" / "results"
METHODS = ("private", "private without target", "mst", "aim", "chain", "original")
LEVELS = 40  # categories of a column that a model sees


def declared(table: pa.Table, columns: judging.Columns) -> object:
    """Schema with the whole table's bounds and categories as declared domains, as a steward would know them."""
    import sfumato as sf

    fields = []
    for name in columns.names:
        if name in columns.categories:
            domain = sf.Domain(declared=True, categories=columns.categories[name])
            fields.append(sf.Field(name, sf.Kind.NOMINAL, domain=domain))
            continue
        values = np.asarray(table[name].cast(pa.float64()).to_numpy(), dtype=float)
        whole = bool((values == np.round(values)).all())
        domain = sf.Domain(declared=True, low=float(values.min()), high=float(values.max()))
        fields.append(sf.Field(name, sf.Kind.INTEGER if whole else sf.Kind.CONTINUOUS, domain=domain))
    return sf.Schema(tuple(fields))


def synthesize(
    method: str, epsilon: float, name: str, seed: int, environments: Path, limit: int
) -> tuple[pa.Table, float]:
    """A table made from the people inside, and the CPU seconds that it took."""
    import sfumato as sf

    inside, _, columns = frontier.split(name, seed)
    if method in ("mst", "aim"):
        make = frontier.peer(f"{method}-eps{epsilon:g}", environments, limit)
    elif method == "chain":
        make = frontier.METHODS["chain, leaf 50"]
    elif method == "original":
        return inside, 0.0
    else:
        target = None if method.endswith("without target") else columns.target
        schema = declared(whole(name, columns), columns)

        def make(table: pa.Table, _: judging.Columns, seed: int) -> pa.Table:
            return sf.sanitize(
                table, sf.PrivateChain(epsilon=epsilon), schema=schema, target=target, report=False, seed=seed
            ).table

    before = frontier.cpu_seconds()
    return make(inside, columns, seed), frontier.cpu_seconds() - before


def whole(name: str, columns: judging.Columns) -> pa.Table:
    """The whole table, its target as the split has it."""
    table = frontier.TABLES[name].load()
    return table.select(list(columns.names))


def features(rows: Matrix, target: int, usual: dict[int, NDArray[np.int64]]) -> Matrix:
    """Columns but the target: numbers as they are, categories as indicators of the most frequent ones."""
    made = []
    for place in range(rows.shape[1]):
        if place == target:
            continue
        made.append(rows[:, [place]] if place not in usual else (rows[:, [place]] == usual[place]).astype(float))
    return np.hstack(made)


def utility(released: Matrix, inside: Matrix, outside: Matrix, columns: judging.Columns, target: int) -> float:
    """What a model that is trained on the release achieves outside."""
    usual = {
        int(place): np.argsort(-np.bincount(inside[:, place].astype(int)), kind="stable")[:LEVELS]
        for place in np.flatnonzero(columns.nominal)
    }
    train, test = (features(rows, target, usual) for rows in (released, outside))
    answer, truth = released[:, target], outside[:, target]
    if not columns.nominal[target]:
        return float(HistGradientBoostingRegressor(random_state=0).fit(train, answer).score(test, truth))
    if len(np.unique(inside[:, target])) == 2:
        if len(np.unique(answer)) < 2:
            return 0.5
        model = HistGradientBoostingClassifier(random_state=0, max_iter=60).fit(train, answer)
        return float(roc_auc_score(truth == model.classes_[1], model.predict_proba(test)[:, 1]))
    forest = RandomForestClassifier(200, random_state=0, n_jobs=1).fit(train, answer)
    return float((forest.predict(test) == truth).mean())


def margins(released: Matrix, inside: Matrix, columns: judging.Columns) -> tuple[float, float]:
    """Mean total variation distance of the columns (20 bins) and of their pairs (10 bins)."""
    fine, coarse = (codes(released, inside, columns, bins) for bins in (20, 10))
    single = [_distance(ours, theirs) for ours, theirs in fine]
    pairs = []
    for i, (ours, theirs) in enumerate(coarse):
        for other, their_other in coarse[:i]:
            size = max(other.max(), their_other.max()) + 1
            pairs.append(_distance(ours * size + other, theirs * size + their_other))
    return float(np.mean(single)), float(np.mean(pairs))


def codes(
    released: Matrix, inside: Matrix, columns: judging.Columns, bins: int
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Categories, or bins between quantiles of the people inside."""
    made = []
    for place, nominal in enumerate(columns.nominal):
        sides = released[:, place], inside[:, place]
        if nominal:
            made.append((sides[0].astype(np.int64), sides[1].astype(np.int64)))
            continue
        edges = np.unique(np.quantile(sides[1], np.linspace(0, 1, bins + 1)[1:-1]))
        made.append((np.searchsorted(edges, sides[0], "left"), np.searchsorted(edges, sides[1], "left")))
    return made


def _distance(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> float:
    size = max(ours.max(), theirs.max()) + 1
    shares = [np.bincount(side, minlength=size) / len(side) for side in (ours, theirs)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def measure(
    method: str, epsilon: float, name: str, seed: int, environments: Path, limit: int, *, all_targets: bool
) -> dict[str, float]:
    """Figures of one method on one split."""
    inside, outside, columns = frontier.split(name, seed)
    released, seconds = synthesize(method, epsilon, name, seed, environments, limit)
    made, people, others = (judging.numbers(each, columns) for each in (released, inside, outside))
    single, pairs = margins(made, people, columns)
    found = {"utility": utility(made, people, others, columns, columns.last), "columns": single, "pairs": pairs}
    if all_targets:
        found["every target"] = float(
            np.mean([utility(made, people, others, columns, place) for place in range(len(columns.names))])
        )
    return found | {"seconds": seconds}


def main() -> None:
    """Measure what is asked for and not yet kept; write the report where it is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="adult,magic,waveform,abalone")
    parser.add_argument("--methods", default="private", help=", ".join(METHODS))
    parser.add_argument("--epsilons", default="0.5,1,3,10")
    parser.add_argument("--splits", default="100-109", help="first and last, which seed the random halves")
    parser.add_argument("--limit", type=int, default=2_400, help="CPU seconds of another tool's run")
    parser.add_argument("--every-target", action="store_true", help="predict each column in turn, too")
    parser.add_argument("--kept", type=Path, default=RESULTS / "private.json")
    parser.add_argument("--environments", type=Path, default=ROOT / ".venv-peers")
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    kept: dict[str, dict[str, float]] = json.loads(asked.kept.read_text()) if asked.kept.exists() else {}
    first, _, last = asked.splits.partition("-")
    for seed in range(int(first), int(last or first) + 1):
        for name in asked.tables.split(","):
            for method in asked.methods.split(","):
                without = method in ("chain", "original")
                for epsilon in [np.inf] if without else [float(each) for each in asked.epsilons.split(",")]:
                    key = f"{name}; {method}; {epsilon:g}; {seed}"
                    if key in kept and (not asked.every_target or "every target" in kept[key]):
                        continue
                    kept[key] = measure(
                        method, epsilon, name, seed, asked.environments, asked.limit, all_targets=asked.every_target
                    )
                    figures = ", ".join(f"{what} {figure:.3f}" for what, figure in kept[key].items())
                    print(f"{key}: {figures}", flush=True)
                    asked.kept.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n")
    if asked.report:
        reporting.write_report(kept, RESULTS, ROOT / "docs")


if __name__ == "__main__":
    main()
