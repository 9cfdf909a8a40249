"""Independent components: a turn is undone without one known row [Chen & Liu 2005; Guo & Wu 2007]."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks.known_input import NOTHING, Moved, moved_columns, not_moved
from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import holding
from sfumato.assess.study import Study
from sfumato.facts import Fact, Transformed

__all__ = ["COMPONENTS", "match_components", "unmix"]

_QUANTILES = 99
_REDRAWS = 200
_ROUNDS = 500  # of FastICA, at most
_SEARCHES = 3
_FLAT = 1e-9  # deviations, below which a direction has no spread
_NORMAL = 0.3745672075  # mean of log cosh under the standard normal law

_Matrix = NDArray[np.float64]

_MEANING = (
    "How well the original columns are recovered from the released rows alone, by searching for independent components "
    "and telling them apart by publicly known distributions: the mean absolute correlation with the original columns, "
    "beside that of the released columns as they are (baseline); 1 is full recovery up to scale"
)


def unmix(released: _Matrix, rng: np.random.Generator) -> _Matrix | None:
    """Search for independent components; None where the rows do not bear any.

    Directions in which the released rows do not spread are left out first. Of several searches the one counts whose
    components are least like normal laws.
    """
    from sklearn.decomposition import FastICA

    standard = _standard(released)
    rank = int(np.linalg.matrix_rank(standard, tol=_FLAT * np.sqrt(standard.size)))
    if rank < 1 or len(released) <= rank + 1:
        return None
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a search that did not settle is still an attack
        for _ in range(_SEARCHES):
            seed = int(rng.integers(2**31))
            search = FastICA(n_components=rank, whiten="unit-variance", max_iter=_ROUNDS, random_state=seed)
            found.append(np.asarray(search.fit_transform(standard)))
    return max(found, key=_negentropy)


def _negentropy(components: _Matrix) -> float:
    """Measure how far components of deviation 1 are from normal laws [Hyvarinen 1999, eq. 5]."""
    size = np.abs(components)
    contrast = (size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)).mean(axis=0)  # log cosh, without overflow
    return float(((contrast - _NORMAL) ** 2).sum())


def match_components(components: _Matrix, known: _Matrix) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Match components to columns by the shape of their distributions, either way round.

    Parameters
    ----------
    components : ndarray of shape (n, c)
    known : ndarray of shape (m, d)
        Rows from which the distribution of each column is publicly known; rows are not matched to rows.

    Returns
    -------
    places : ndarray
        Columns that got a component.
    which : ndarray
        The component of each.
    """
    from scipy.optimize import linear_sum_assignment

    grid = np.linspace(0.01, 0.99, _QUANTILES)
    columns = np.quantile(_standard(known), grid, axis=0).T
    shapes = np.quantile(_standard(components), grid, axis=0).T
    upright = np.abs(columns[:, None] - shapes[None]).mean(axis=2)
    flipped = np.abs(columns[:, None] + shapes[None, :, ::-1]).mean(axis=2)
    places, which = linear_sum_assignment(np.minimum(upright, flipped))
    return np.asarray(places, dtype=np.int64), np.asarray(which, dtype=np.int64)


def _standard(values: _Matrix) -> _Matrix:
    """Bring columns to mean 0 and deviation 1; one that differs by rounding alone is constant."""
    centre, spread = values.mean(axis=0), values.std(axis=0)
    alike = spread <= _FLAT * np.abs(centre)
    return np.asarray(np.where(alike, 0.0, (values - centre) / np.where(alike, 1.0, spread)))


def _run(study: Study) -> Iterable[Finding]:
    rng = study.generator(COMPONENTS.name)
    moved = moved_columns(study, study.sizes.training, rng)
    if moved is None:
        return COMPONENTS.not_run(NOTHING)
    components = unmix(moved.after, rng)
    if components is None:
        return COMPONENTS.not_run("the released rows are too few, or do not differ enough, for components")
    places, which = match_components(components, _public(study, moved))
    matched = np.zeros_like(moved.before)  # a column without a component is not recovered
    matched[:, places] = components[:, which]
    kept = moved.spread > 0
    values = _correlations(moved.before[:, kept], matched[:, kept], rng)
    baseline = _correlations(moved.before[:, kept], moved.after[:, kept], rng, redraws=0)[0]
    rows = len(moved.before)
    note = f"; counted on {rows} rows drawn at random" if rows < len(study.released) else ""
    return (
        Finding(
            "ica-correlation",
            Family.ATTACK,
            float(values[0]),
            Direction.LOWER,
            (0.0, 1.0),
            _MEANING + note + ".",
            interval=holding(float(values[0]), values[1:]),
            baseline=float(baseline),
            attempts=rows,
        ),
    )


def _public(study: Study, moved: Moved) -> _Matrix:
    """Give rows from which the columns' distributions are known: people held out, else the original itself."""
    if study.held is None:
        return moved.before
    cells = {pair.name: cells for pair, cells in zip(study.pairs, study.held, strict=True)}
    whole = ~np.any([cells[name].absent for name in moved.names], axis=0)
    if whole.sum() < _QUANTILES:
        return moved.before
    return np.column_stack([cells[name].values[whole] for name in moved.names])


def _correlations(before: _Matrix, after: _Matrix, rng: np.random.Generator, redraws: int = _REDRAWS) -> _Matrix:
    """Give the mean absolute correlation of columns with columns, and behind it that of redraws of the rows."""
    x, y, n = _standard(before), _standard(after), len(before)
    terms = np.concatenate([x, y, x * x, y * y, x * y], axis=1)
    weights = np.ones((redraws + 1, n))
    for place in range(1, redraws + 1):
        weights[place] = np.bincount(rng.integers(0, n, size=n), minlength=n)
    mx, my, xx, yy, xy = np.split(weights @ terms / n, 5, axis=1)
    square = (xx - mx * mx) * (yy - my * my)
    found = np.divide(np.abs(xy - mx * my), np.sqrt(np.maximum(square, 0)), out=np.zeros_like(xy), where=square > 1e-24)
    return np.asarray(np.minimum(found, 1.0).mean(axis=1))


def _not_turned(facts: Sequence[Fact]) -> str | None:
    turned = any(isinstance(fact, Transformed) and "rotate" in fact.operations for fact in facts)
    return not_moved(facts) or (None if turned else "no column was mixed with another, so there is nothing to unmix")


COMPONENTS = Measure(
    name="ica",
    family=Family.ATTACK,
    source="Chen & Liu 2005; Guo & Wu 2007; Hyvarinen 1999",
    findings={"ica-correlation": _MEANING + "."},
    run=_run,
    needs=(Need.ORIGIN,),
    applies=_not_turned,
)
