"""Attacks that cost too much for every shadow release: they run on a few, and can only make a verdict stricter.

A classifier of released rows against a reference sample [Hayes et al. 2019], frequencies of cells and pairs of cells
[Homer et al. 2008; Dwork et al. 2015], the outermost values of columns, attribute inference by boosted trees trained on
the release [Hittmeir et al. 2020], and the linear reconstruction of a secret bit from many counts [Dinur & Nissim 2003;
Annamalai et al. 2024]. The reference sample is a random half of the people, who are not scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.study import Column, Matrix, Places

if TYPE_CHECKING:
    from sfumato.assess.audit.attacks import AttackedPeople, NormalScoreColumns

__all__ = ["FEW", "STRICTER", "attack_few"]

FEW = 6
"""Shadow releases that these attacks run on."""

STRICTER = (
    "shadow-auc-likelihood",
    "shadow-auc-classifier",
    "shadow-auc-frequencies",
    "shadow-auc-extremes",
    "shadow-attribute-inference-model/",
    "shadow-attribute-inference-counts/",
)
"""Names of these attacks, and of the likelihood ratio on few people; they may exceed a limit and never keep it open."""

_TRAINED = 2_000  # rows of either kind that models are trained on
_TREES, _ROUNDS = 30, 60
_COLUMNS = 2  # whose values are inferred in a release
_MOST_CLASSES = 30
_OUTERMOST, _FEWEST_EXTREME = 10, 30  # values at either end of a column, and people who hold any of them
_PAIRS = 500  # products of two cells
_QUERIES = 800
_BINS = 4
_SLACK = 1e-9


def attack_few(
    people: AttackedPeople, values: Matrix, made: Sequence[Column], rows: Places, rng: np.random.Generator
) -> Iterator[NormalScoreColumns]:
    """Success or score of every one of these attacks on a released table, of people who are not reference."""
    reference = (rng.random(people.persons) < 0.5)[people.whose]
    scored, known = rows[~reference[rows]], rows[reference[rows]]
    if not len(scored) or not len(known):
        return
    yield "shadow-auc-classifier", scored, _classifier(values, people.values[known], people.values[scored], rng)
    yield "shadow-auc-frequencies", scored, _frequencies(people, made, scored, known, rng)
    attacked, score = _extremes(people, made, rows)
    if len(attacked) >= _FEWEST_EXTREME:
        yield "shadow-auc-extremes", attacked, score
    if len(people.columns) < 2:
        return
    for place in map(int, rng.permutation(len(people.columns))[:_COLUMNS]):
        name = people.codec.schema.encoded[place].name
        hits = _by_model(people, values, made, place, scored, rng)
        if hits is not None:
            present = ~people.columns[place].absent[scored]
            yield f"shadow-attribute-inference-model/{name}", scored[present], hits[present]
        yield f"shadow-attribute-inference-counts/{name}", rows, _by_counts(people, made, place, rows, rng)


def _some(rows: Matrix, rng: np.random.Generator, most: int = _TRAINED) -> Matrix:
    return rows[rng.permutation(len(rows))[:most]]


def _classifier(values: Matrix, reference: Matrix, scored: Matrix, rng: np.random.Generator) -> Matrix:
    """How much more like released rows than like other people a person is, by fully grown trees."""
    from sklearn.ensemble import ExtraTreesClassifier

    most = min(_TRAINED, len(values), len(reference))
    sides = _some(values, rng, len(values)), _some(reference, rng, most)
    labels = np.repeat([1, 0], [len(side) for side in sides])
    seed = int(rng.integers(2**31))
    model = ExtraTreesClassifier(_TREES, min_samples_leaf=2, class_weight="balanced", random_state=seed, n_jobs=1)
    model.fit(np.vstack(sides), labels)
    return np.asarray(model.predict_proba(scored)[:, 1])


def _is_number(people: AttackedPeople, place: int) -> bool:
    return people.codec.columns[place].grid is not None


def _binned(people: AttackedPeople, columns: Sequence[Column], bins: int) -> list[NDArray[np.int64]]:
    """Each column in bins of quantiles among the people, categories as they are, and missing cells apart."""
    found = []
    for place, (column, other) in enumerate(zip(columns, people.columns, strict=True)):
        known = np.unique(other.present)
        if len(known) > bins and _is_number(people, place):
            known = np.unique(np.quantile(other.present, np.linspace(0.0, 1.0, bins + 1)[1:-1]))
            codes = np.searchsorted(known, column.values, side="right")
        else:
            codes = np.searchsorted(known, column.values)
        found.append(np.where(column.absent, -1, codes).astype(np.int64))
    return found


def _frequencies(
    people: AttackedPeople, made: Sequence[Column], scored: Places, known: Places, rng: np.random.Generator
) -> Matrix:
    """How far a person's cells, and pairs of them, are more frequent in the release than among other people."""
    mine, its = (_binned(people, columns, 10) for columns in (people.columns, made))
    width = len(mine)
    pairs = [(place, place) for place in range(width)]
    if width > 1:
        pairs += [tuple(rng.choice(width, 2, replace=False)) for _ in range(min(_PAIRS, width * (width - 1) // 2))]
    score = np.zeros(len(scored))
    for one, two in pairs:
        base = int(max(mine[two].max(), its[two].max())) + 2
        here, there = ((side[one] + 1) * base + side[two] + 1 for side in (mine, its))
        size = int(max(here.max(), there.max())) + 1
        released = np.bincount(there, minlength=size) / len(there)
        usual = np.bincount(here[known], minlength=size) / len(known)
        spread = np.sqrt(np.maximum(released + usual, 1.0 / len(known)))
        score += ((released - usual) / spread)[here[scored]]
    return score


def _extremes(people: AttackedPeople, made: Sequence[Column], rows: Places) -> tuple[Places, Matrix]:
    """People who alone hold an outermost value of a number or date, and in how many of such columns it is released."""
    holds, found = np.zeros(len(rows)), np.zeros(len(rows))
    for place, (mine, its) in enumerate(zip(people.columns, made, strict=True)):
        if not _is_number(people, place) or not len(mine.present):
            continue
        ordered, frequency = np.unique(mine.present, return_counts=True)
        outermost = np.concatenate([ordered[:_OUTERMOST], ordered[-_OUTERMOST:]])
        outermost = outermost[np.isin(outermost, ordered[frequency == 1])]  # what one person alone has
        cells = mine.values[rows]
        here = np.isin(cells, outermost) & ~mine.absent[rows]
        holds += here
        found += here & np.isin(cells, its.present)
    held = np.flatnonzero(holds)
    return rows[held], found[held] / holds[held]


def _by_model(
    people: AttackedPeople, values: Matrix, made: Sequence[Column], place: int, scored: Places, rng: np.random.Generator
) -> Matrix | None:
    """Whether boosted trees trained on the release name a person's value; None of too many classes."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    mine, its = people.columns[place], made[place]
    others = people.coordinates([field.name for here, field in enumerate(people.codec.schema.encoded) if here != place])
    rows = np.flatnonzero(~its.absent)
    rows = rows[rng.permutation(len(rows))[:_TRAINED]]
    if len(np.unique(its.values[rows])) < 2 or (
        not _is_number(people, place) and len(np.unique(its.values[rows])) > _MOST_CLASSES
    ):
        return None
    kind = HistGradientBoostingRegressor if _is_number(people, place) else HistGradientBoostingClassifier
    seed = int(rng.integers(2**31))
    model = kind(max_iter=_ROUNDS, learning_rate=0.3, min_samples_leaf=2, early_stopping=False, random_state=seed)
    model.fit(values[np.ix_(rows, others)], its.values[rows])
    guess, truth = model.predict(people.values[np.ix_(scored, others)]), mine.values[scored]
    return np.asarray(np.abs(guess - truth) <= people.tolerances[place] + _SLACK * np.abs(truth), dtype=np.float64)


def _by_counts(
    people: AttackedPeople, made: Sequence[Column], place: int, rows: Places, rng: np.random.Generator
) -> Matrix:
    """Whether the linear reconstruction of one bit of a column, from counts of random groups, is right for a person.

    The bit is the upper half of a number or the commonest category. A count is how many more rows of a group have the
    bit than its share says; the bits of all people that explain the counts best, in least squares, are the guess.
    """
    mine, its = people.columns[place], made[place]
    if not _is_number(people, place):
        known, counts = np.unique(mine.present, return_counts=True)
        bit, released = (side.values == known[counts.argmax()] for side in (mine, its))
    else:
        middle = float(np.median(mine.present)) if len(mine.present) else 0.0
        bit, released = (side.values > middle for side in (mine, its))
    others = [here for here in range(len(made)) if here != place]
    cells, drawn = (
        np.array([codes[here] for here in others])
        for codes in (_binned(people, columns, _BINS) for columns in (people.columns, made))
    )
    share, scale = float(bit.mean()), len(bit) / max(1, len(released))
    queries, found_counts = [], []
    for _ in range(min(_QUERIES, 2 * len(rows))):
        asked = rng.choice(len(others), min(len(others), int(rng.integers(1, 4))), replace=False)
        like = cells[asked, rng.choice(rows)][:, None]
        there = (drawn[asked] == like).all(axis=0)
        queries.append((cells[asked][:, rows] == like).all(axis=0))
        found_counts.append(scale * float((released[there] - share).sum()))
    matrix = np.array(queries, dtype=np.float64)
    gram = matrix @ matrix.T
    gram[np.diag_indices_from(gram)] += 1.0 + 0.01 * np.diag(gram)
    found = matrix.T @ np.linalg.solve(gram, np.array(found_counts) * (len(rows) / len(bit)))
    return np.asarray((found > 0.0) == bit[rows], dtype=np.float64)
