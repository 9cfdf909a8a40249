"""How useful a released table is and how much it tells of the people in it, against people like them who are not."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.neighbors import NearestNeighbors

__all__ = ["Columns", "judge", "numbers", "quick_judge", "with_dropped"]

Matrix = NDArray[np.float64]
TARGETS = 2_000
"""People on whom attribute, linking and singling attacks are tried, inside and outside each."""
TREES = 60


@dataclass(frozen=True)
class Columns:
    """Names, which of them are categories with all categories that people have, and the one to predict."""

    names: tuple[str, ...]
    categories: dict[str, tuple[str, ...]]
    target: str

    @property
    def nominal(self) -> NDArray[np.bool_]:
        """Which columns are categories."""
        return np.array([name in self.categories for name in self.names])

    @property
    def last(self) -> int:
        """Place of the target."""
        return self.names.index(self.target)

    @classmethod
    def of(cls, table: pa.Table, target: str) -> Columns:
        """Columns of a table: texts and truth values are categories."""
        texts = {
            field.name
            for field in table.schema
            if pa.types.is_string(field.type) or pa.types.is_large_string(field.type) or pa.types.is_boolean(field.type)
        }
        known = {
            name: tuple(sorted({str(value) for value in table[name].to_pylist() if value is not None}))
            for name in table.column_names
            if name in texts
        }
        return cls(tuple(table.column_names), known, target)


def numbers(table: pa.Table, columns: Columns) -> Matrix:
    """Rows as floats: places of categories (one more for missing, and for words nobody has), days of dates."""
    made = []
    for name in columns.names:
        values = table[name]
        if name in columns.categories:
            places = {word: place for place, word in enumerate(columns.categories[name])}
            made.append(np.array([places.get(str(value), len(places)) for value in values.to_pylist()], dtype=float))
            continue
        if pa.types.is_date(values.type) or pa.types.is_timestamp(values.type):
            values = values.cast(pa.date32()).cast(pa.int32())
        made.append(np.asarray(values.cast(pa.float64()).to_numpy(), dtype=float))
    return np.column_stack(made)


def with_dropped(released: pa.Table, inside: pa.Table) -> pa.Table:
    """The released table, in which a column that was dropped, as too few have its values, is what most people have."""
    for column in inside.schema:
        if column.name not in released.column_names:
            held = inside[column.name].to_pylist()
            usual = max(sorted(set(held), key=str), key=held.count)
            released = released.append_column(column.name, pa.array([usual] * len(released), column.type))
    return released


def judge(released: Matrix, inside: Matrix, outside: Matrix, columns: Columns, seed: int) -> dict[str, float]:
    """All figures of one release: names as in the report's head."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rng = np.random.default_rng(seed)
        found = _use(released, outside, columns) | _likeness(released, inside, columns)
        found |= _unique_values(released, inside, outside, columns)
        shuffled = rng.permutation(len(outside))
        reference, others = outside[shuffled[: len(outside) // 2]], outside[shuffled[len(outside) // 2 :]]
        space = _Space(inside, columns)
        found |= _membership(released, inside, others, reference, columns, space)
        some = rng.permutation(len(inside))[:TARGETS], rng.permutation(len(outside))[:TARGETS]
        people = inside[some[0]], outside[some[1]]
        found |= _attributes(released, *people, columns, space)
        found |= _linking(released, *people, columns, space, rng)
        return found | _singling(released, inside, outside, columns, rng)


def quick_judge(released: Matrix, inside: Matrix, outside: Matrix, columns: Columns, seed: int) -> dict[str, float]:
    """Use, likeness and membership alone, for comparisons of one method with itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = _use(released, outside, columns) | _likeness(released, inside, columns)
        shuffled = np.random.default_rng(seed).permutation(len(outside))
        reference, others = outside[shuffled[: len(outside) // 2]], outside[shuffled[len(outside) // 2 :]]
        return found | _membership(released, inside, others, reference, columns, _Space(inside, columns))


class _Space:
    """Standardized columns, categories at distance 1, missing cells at the mean with a mark of their own."""

    def __init__(self, inside: Matrix, columns: Columns) -> None:
        self.mean, self.spread = np.nanmean(inside, axis=0), np.nanstd(inside, axis=0) + 1e-12
        self.gaps = np.isnan(inside).any(axis=0)
        self.columns = columns

    def block(self, rows: Matrix, place: int) -> NDArray[np.float32]:
        column = rows[:, place]
        name = self.columns.names[place]
        if name in self.columns.categories:
            count = len(self.columns.categories[name]) + 1
            return np.asarray((column[:, None] == np.arange(count)) * np.sqrt(0.5), dtype=np.float32)
        missing = np.isnan(column)
        scaled = np.where(missing, 0.0, (column - self.mean[place]) / self.spread[place])
        return np.column_stack([scaled, missing] if self.gaps[place] else [scaled]).astype(np.float32)

    def points(self, rows: Matrix, places: list[int] | range) -> NDArray[np.float32]:
        return np.hstack([self.block(rows, place) for place in places])


def _use(released: Matrix, outside: Matrix, columns: Columns) -> dict[str, float]:
    target = columns.last
    rest = [place for place in range(len(columns.names)) if place != target]
    marked = [i for i, place in enumerate(rest) if columns.nominal[place]]
    train, test, said, truth = released[:, rest], outside[:, rest], released[:, target], outside[:, target]
    held = ~np.isnan(said)
    train, said = train[held], said[held]
    space = _Space(released, columns)
    flat, flat_test = space.points(released, rest)[held], space.points(outside, rest)
    usual = {"random_state": 0, "early_stopping": False, "max_iter": 80}
    if not columns.nominal[target]:
        boosted = HistGradientBoostingRegressor(categorical_features=marked, **usual).fit(train, said)
        linear = Ridge(1.0).fit(flat, said)
        return {"use": r2_score(truth, boosted.predict(test)), "linear": r2_score(truth, linear.predict(flat_test))}
    if len(np.unique(said)) < 2:
        return {"use": 0.5 if len(np.unique(truth)) == 2 else float(np.mean(truth == said[0])), "linear": 0.5}
    logistic = LogisticRegression(max_iter=300).fit(flat, said)
    if len(np.unique(truth)) == 2:
        boosted = HistGradientBoostingClassifier(categorical_features=marked, **usual).fit(train, said)
        high = truth == truth.max()
        place = int(np.argmax(boosted.classes_ == truth.max()))
        return {
            "use": roc_auc_score(high, boosted.predict_proba(test)[:, place]),
            "linear": roc_auc_score(high, logistic.predict_proba(flat_test)[:, place]),
        }
    forest = RandomForestClassifier(100, random_state=0, min_samples_leaf=2).fit(train, said)
    return {
        "use": accuracy_score(truth, forest.predict(test)),
        "linear": accuracy_score(truth, logistic.predict(flat_test)),
    }


def _likeness(released: Matrix, inside: Matrix, columns: Columns) -> dict[str, float]:
    """Mean distance of the columns' distributions, and mean difference of correlations between any two."""
    apart = []
    for place, nominal in enumerate(columns.nominal):
        ours, theirs = released[:, place], inside[:, place]
        if nominal:
            size = int(max(ours.max(), theirs.max())) + 1
            shares = [np.bincount(side.astype(int), minlength=size) / len(side) for side in (ours, theirs)]
            apart.append(0.5 * np.abs(shares[0] - shares[1]).sum())
        else:
            grid = np.unique(theirs[~np.isnan(theirs)])
            steps = [
                np.searchsorted(np.sort(side[~np.isnan(side)]), grid, "right") / max(1, (~np.isnan(side)).sum())
                for side in (ours, theirs)
            ]
            apart.append(max(np.abs(steps[0] - steps[1]).max(), abs(np.isnan(ours).mean() - np.isnan(theirs).mean())))
    space = _Space(inside, columns)
    every = range(len(columns.names))
    links = []
    for rows in (released, inside):
        points = space.points(rows, every)
        points = points - points.mean(axis=0)
        size = np.sqrt((points**2).sum(axis=0))
        size[size == 0] = 1
        links.append((points / size).T @ (points / size))
    over = np.triu_indices(len(links[0]), 1)
    return {"marginals": float(np.mean(apart)), "pairs": float(np.abs(links[0] - links[1])[over].mean())}


def _unique_values(released: Matrix, inside: Matrix, outside: Matrix, columns: Columns) -> dict[str, float]:
    """Share of people who alone hold a number, and that very number stands in the release."""
    shown = {}
    for side, people in (("unique_in", inside), ("unique_out", outside)):
        hit = np.zeros(len(people), dtype=bool)
        for place in np.flatnonzero(~columns.nominal):
            values, inverse, counts = np.unique(people[:, place], return_inverse=True, return_counts=True)
            alone = (counts == 1) & np.isin(values, released[:, place]) & ~np.isnan(values)
            hit |= alone[inverse]
        shown[side] = float(hit.mean())
    return shown


def _membership(
    released: Matrix, inside: Matrix, others: Matrix, reference: Matrix, columns: Columns, space: _Space
) -> dict[str, float]:
    every = range(len(columns.names))
    people = np.vstack([inside, others])
    member = np.arange(len(people)) < len(inside)
    near = _nearest(space.points(released, every), space.points(people, every), 5)[0]
    usual = _nearest(space.points(reference, every), space.points(people, every), 5)[0]
    scores = {
        "distance": -near[:, 0],
        "calibrated": -near[:, 0] / (usual[:, 0] + 1e-9),
        "calibrated 5th": -near[:, 4] / (usual[:, 4] + 1e-9),
    }
    both = np.vstack([released, reference])
    ours = np.arange(len(both)) < len(released)
    weight = np.where(ours, 0.5 / ours.sum(), 0.5 / (~ours).sum()) * len(both)
    trees = ExtraTreesClassifier(TREES, min_samples_leaf=3, random_state=0)
    boosting = HistGradientBoostingClassifier(max_iter=80, early_stopping=False, random_state=0)
    for name, model in (("trees", trees), ("boosting", boosting)):
        scores[name] = model.fit(both, ours, sample_weight=weight).predict_proba(people)[:, 1]
    found = {f"membership by {name}": roc_auc_score(member, score) for name, score in scores.items()}
    found["leak"] = max(found.values())
    found["tpr"] = max(float(np.mean(s[member] > np.quantile(s[~member], 0.99))) for s in scores.values())
    density = _nearest(space.points(people, every), space.points(inside, every), 2)[0][:, 1]
    far = density >= np.quantile(density, 0.95)
    score = scores["calibrated"]
    found["outliers"] = float(np.mean(score[member][far] > np.quantile(score[~member], 0.95)))
    return found


def _attributes(released: Matrix, inside: Matrix, outside: Matrix, columns: Columns, space: _Space) -> dict[str, float]:
    """Guess a column from the nearest released row by the other columns: hits inside less hits outside, first eight."""
    gains = []
    for place in range(min(8, len(columns.names))):
        rest = [other for other in range(len(columns.names)) if other != place]
        table = space.points(released, rest)
        hits = []
        for people in (inside, outside):
            guess = released[_nearest(table, space.points(people, rest), 1)[1][:, 0], place]
            truth = people[:, place]
            if columns.nominal[place]:
                hit = guess == truth
            else:
                hit = (np.abs(guess - truth) <= 0.05 * space.spread[place]) | (np.isnan(guess) & np.isnan(truth))
            hits.append(hit.mean())
        gains.append(hits[0] - hits[1])
    return {"attributes": float(np.mean(gains)), "worst_attribute": float(np.max(gains))}


def _linking(
    released: Matrix, inside: Matrix, outside: Matrix, columns: Columns, space: _Space, rng: np.random.Generator
) -> dict[str, float]:
    """Two halves of the columns point to the same released row."""
    order = rng.permutation(len(columns.names)).tolist()
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    shares = {}
    for side, people in (("linked_in", inside), ("linked_out", outside)):
        pointed = [_nearest(space.points(released, h), space.points(people, h), 1)[1][:, 0] for h in halves]
        shares[side] = float(np.mean(pointed[0] == pointed[1]))
    return shares


def _singling(
    released: Matrix, inside: Matrix, outside: Matrix, columns: Columns, rng: np.random.Generator, tries: int = 1_000
) -> dict[str, float]:
    """Descriptions by three columns that fit one released row alone, and how often they fit one person alone."""
    size = min(len(inside), len(outside))
    people = inside[rng.permutation(len(inside))[:size]], outside[rng.permutation(len(outside))[:size]]
    spread = np.nanstd(inside, axis=0)
    made, alone = 0, np.zeros(2)
    for _ in range(4 * tries):
        if made == tries:
            break
        places = rng.permutation(len(columns.names))[: min(3, len(columns.names))]
        row = released[rng.integers(len(released))]

        def fits(rows: Matrix, places: NDArray[np.int64] = places, row: Matrix = row) -> int:
            kept = np.ones(len(rows), dtype=bool)
            for place in places:
                if columns.nominal[place] or np.isnan(row[place]):
                    kept &= (rows[:, place] == row[place]) | (np.isnan(rows[:, place]) & np.isnan(row[place]))
                else:
                    kept &= np.abs(rows[:, place] - row[place]) <= 0.02 * spread[place]
            return int(kept.sum())

        if fits(released) == 1:
            made += 1
            alone += [fits(side) == 1 for side in people]
    alone /= max(1, made)
    return {"singled_in": float(alone[0]), "singled_out": float(alone[1])}


def _nearest(
    table: NDArray[np.float32], points: NDArray[np.float32], count: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    return NearestNeighbors(n_neighbors=count, algorithm="brute").fit(table).kneighbors(points)
