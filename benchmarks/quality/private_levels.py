"""What an epsilon for each person gains over giving everybody the strictest one, on Adult.

Levels are independent of the table, or follow the income that is to be predicted. Utility is the AUC of boosting,
trained on the release and tested on the control group; marginals are the mean total variation of single columns.

Run: python -m benchmarks.quality.private_levels
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import sfumato as sf
from benchmarks.data import load_table

RESULT = Path(__file__).parents[1] / "results" / "private_levels.md"
TARGET, ROWS, SPLITS = "income", 10_000, 5
LEVELS = ("0.5", "1", "3")
CASES: dict[str, tuple[float, str, tuple[float, ...] | None]] = {
    "a third each, independent": (3.0, "trust", (1 / 3, 1 / 3, 1 / 3)),
    "a tenth at 0.5, a fifth at 1, independent": (3.0, "trust", (0.1, 0.2, 0.7)),
    "income above 50K at 0.5, others at 3": (3.0, "income == >50K: 0.5, else: 3", None),
    "income above 50K at 3, others at 0.5": (3.0, "income == >50K: 3, else: 0.5", None),
}


def schema_of(table: pd.DataFrame) -> sf.Schema:
    """Declared domains: bounds that are public for these columns, and the categories of the whole table."""
    bounds = {"age": (17, 90), "fnlwgt": (10_000, 1_500_000), "education_num": (1, 16), "capital_gain": (0, 99_999)}
    bounds |= {"capital_loss": (0, 4_500), "hours_per_week": (1, 99)}
    fields = []
    for name in table.columns:
        if name in bounds:
            domain = sf.Domain(declared=True, low=bounds[name][0], high=bounds[name][1])
            fields.append(sf.Field(name, sf.Kind.INTEGER, domain=domain))
        else:
            labels = LEVELS if name == "trust" else tuple(sorted(table[name].astype(str).unique()))
            fields.append(sf.Field(name, sf.Kind.NOMINAL, domain=sf.Domain(declared=True, categories=labels)))
    return sf.Schema(tuple(fields))


def utility(released: pd.DataFrame, inside: pd.DataFrame, outside: pd.DataFrame) -> tuple[float, float]:
    """AUC on the control group, and mean total variation of single columns."""
    columns = [name for name in outside.columns if name != TARGET]
    joint = pd.concat([released[columns], outside[columns]]).copy()
    texts = [name for name in columns if not pd.api.types.is_numeric_dtype(outside[name])]
    for name in texts:
        joint[name] = joint[name].astype(str).astype("category").cat.codes
    train, test = joint.iloc[: len(released)], joint.iloc[len(released) :]
    model = HistGradientBoostingClassifier(random_state=0)
    model.fit(train, released[TARGET] == ">50K")
    auc = roc_auc_score(outside[TARGET] == ">50K", model.predict_proba(test)[:, 1])
    apart = []
    for name in outside.columns:
        if name in texts or name == TARGET:
            one, two = (each[name].astype(str).value_counts(normalize=True) for each in (released, inside))
        else:
            edges = np.unique(np.quantile(inside[name], np.linspace(0, 1, 11)[1:-1]))
            one, two = (
                pd.Series(np.searchsorted(edges, each[name], side="right")).value_counts(normalize=True)
                for each in (released, inside)
            )
        apart.append(0.5 * one.sub(two, fill_value=0.0).abs().sum())
    return float(auc), float(np.mean(apart))


def measure(table: pd.DataFrame, shares: tuple[float, ...] | None, **how: Any) -> tuple[float, float]:
    """Mean utility over splits."""
    found = []
    for split in range(SPLITS):
        rng = np.random.default_rng(500 + split)
        order = rng.permutation(len(table))
        inside, outside = table.iloc[order[:ROWS]].copy(), table.iloc[order[ROWS : 2 * ROWS]]
        schema = schema_of(table)
        if shares is not None:
            inside["trust"] = rng.choice(LEVELS, ROWS, p=shares)
            schema = schema_of(table.assign(trust="1"))
        made = sf.sanitize(
            inside, method="private", schema=schema, target=TARGET, report=False, seed=90 + split, rows=ROWS, **how
        )
        found.append(utility(made.table, inside.drop(columns="trust", errors="ignore"), outside))
    auc, apart = np.mean(found, axis=0)
    return float(auc), float(apart)


def main() -> None:
    """Write the table of results."""
    table = load_table("adult_train").to_pandas()
    lines = [
        "# An epsilon for each person",
        "",
        f"Adult, {ROWS:,} people, delta 1e-5, means of {SPLITS} splits; pooling was chosen on other splits.",
        "The smallest epsilon is 0.5, the largest 3.",
        "`python -m benchmarks.quality.private_levels`",
        "",
        "|who has which epsilon|AUC|single columns, total variation|",
        "|---|---|---|",
    ]
    for epsilon in (0.5, 3.0):
        auc, apart = measure(table, None, epsilon=epsilon)
        lines.append(f"|everybody {epsilon:g}|{auc:.3f}|{apart:.4f}|")
        print(lines[-1], file=sys.stderr)
    for name, (epsilon, rule, shares) in CASES.items():
        auc, apart = measure(table, shares, epsilon=epsilon, epsilon_of=rule)
        lines.append(f"|{name}|{auc:.3f}|{apart:.4f}|")
        print(lines[-1], file=sys.stderr)
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
