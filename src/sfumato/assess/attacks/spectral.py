"""Filters that take noise off again: spectral filtering and the Bayes estimate, beside the plain released value.

Kargupta, Datta, Wang, Sivakumar 2003; Huang, Du, Chen 2005. Independent noise on columns that go together spreads over
all directions, the data over few: what is left in those few is nearly the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import holding
from sfumato.assess.study import Study, sample
from sfumato.facts import ComponentNoise, Fact, Noised, Randomized
from sfumato.laws.operators import Additive
from sfumato.laws.spec import NoiseSpec
from sfumato.records import BlockKind

__all__ = ["SPECTRAL", "bayes_estimate", "randomized_specs", "redraw_rows", "spectral_filter"]

_Matrix = NDArray[np.float64]

_ROWS = 20_000  # rows whose error is counted; the filters learn from all
_REDRAWS = 200
_NEAR = 0.1  # part of a column's range
_WAYS = ("the released value", "spectral filtering", "the Bayes estimate")
_ERROR = (
    "How far, in standard deviations, the best of three attackers stays from the true numbers, beside the size of the "
    "noise as it was added; more is better, and 1 is what guessing the mean gives"
)
_COLUMN = (
    "How far, in standard deviations, the best of three attackers stays from the true {column}, beside the size of the "
    "noise as it was added; more is better, and 1 is what guessing the mean gives"
)
_CLOSE = (
    "The share of numbers that the best of three attackers gives to within a tenth of their column's range, beside "
    "guessing the mean; less is better"
)


def spectral_filter(released: _Matrix, noise: _Matrix) -> _Matrix:
    """Keep the directions in which the released rows vary more than noise alone can [Kargupta et al. 2003].

    Parameters
    ----------
    released : ndarray of shape (n, d)
    noise : ndarray of shape (d, d)
        Covariance of the noise; columns are brought to noise of variance 1 first.

    Notes
    -----
    Of n rows of independent noise of variance 1 no eigenvalue exceeds (1 + sqrt(d / n))^2, for large n and d.
    """
    n, d = released.shape
    size = np.sqrt(np.diag(noise))
    if not (size > 0).all():
        return released
    mean = released.mean(axis=0)
    white = (released - mean) / size
    eigenvalues, eigenvectors = np.linalg.eigh(white.T @ white / n)
    signal = eigenvectors[:, eigenvalues > (1.0 + np.sqrt(d / n)) ** 2]
    return np.asarray(mean + white @ signal @ signal.T * size)


def bayes_estimate(released: _Matrix, noise: _Matrix) -> _Matrix:
    """Give what is most likely behind the released rows if the data are Gaussian [Huang, Du, Chen 2005, sec. 6].

    The covariance of the data is that of the released rows less that of the noise.

    Parameters
    ----------
    released : ndarray of shape (n, d)
    noise : ndarray of shape (d, d)
        Covariance of the noise.
    """
    mean = released.mean(axis=0)
    centred = released - mean
    eigenvalues, eigenvectors = np.linalg.eigh(centred.T @ centred / len(released) - noise)
    data = eigenvectors * np.maximum(eigenvalues, 0.0) @ eigenvectors.T
    return np.asarray(mean + centred @ np.linalg.pinv(data + noise, hermitian=True) @ data)


def randomized_specs(facts: Iterable[Fact]) -> dict[str, NoiseSpec]:
    """Give the laws that columns were randomized by, which every recipient knows."""
    return {fact.column: NoiseSpec.from_json(fact.spec) for fact in facts if isinstance(fact, Randomized)}


def _with_added_noise(facts: Sequence[Fact]) -> set[str] | None:
    """Name the columns that noise was added to; None for all of them."""
    if any(isinstance(fact, Noised | ComponentNoise) for fact in facts):
        return None
    return {name for name, spec in randomized_specs(facts).items() if isinstance(spec.operator, Additive)}


def _applies(facts: Sequence[Fact]) -> str | None:
    if _with_added_noise(facts) != set():
        return None
    return "no noise of a stated law was put on the numbers, so there is none to filter off"


def _run(study: Study) -> Iterable[Finding]:
    assert study.workings is not None
    assert study.workings.origin is not None
    rng, origin = study.generator("noise-filter"), study.workings.origin
    known = np.flatnonzero((origin >= 0) & (origin < len(study.original)))
    names, places, there = _columns(study, known, origin[known])
    if not names:
        return SPECTRAL.not_run("no column is a number that differs between people and is released")
    true, got = study.original[origin[known]][:, places], study.released[known][:, places]
    noise = _noise_covariance(study, np.where(there, got - true, 0.0), there)
    guesses = (got, spectral_filter(got, noise), bayes_estimate(got, noise))
    rows = sample(len(known), _ROWS, rng)
    note = f"; counted on {len(rows)} rows drawn at random" if len(rows) < len(study.released) else ""
    there, true = there[rows], true[rows]
    errors = np.stack([np.where(there, guess[rows] - true, 0.0) for guess in guesses])
    best = int(np.argmin((errors**2).sum(axis=(1, 2))))
    guessed = np.where(there, got.mean(axis=0) - true, 0.0)
    return (
        _of_all(errors, best, there, note, rng),
        _of_near(errors[best], guessed, _NEAR * np.ptp(study.original[:, places], axis=0), there, note, rng),
        *(_of_column(name, errors[:, :, j], there[:, j], note, rng) for j, name in enumerate(names)),
    )


def _columns(
    study: Study, released: NDArray[np.int64], original: NDArray[np.int64]
) -> tuple[list[str], list[int], NDArray[np.bool_]]:
    """Find the columns of numbers that differ between people, their coordinates, and which cells both tables have."""
    names, places, there = [], [], []
    noised = _with_added_noise(study.facts)
    for block in study.layout:
        if block.kind is not BlockKind.NUMBER or (noised is not None and block.column not in noised):
            continue
        pair = study.pair(block.column)
        both = ~pair.released.absent[released] & ~pair.original.absent[original]
        if both.sum() >= 2 and np.ptp(study.original[original[both], block.start]) > 0:
            names.append(block.column)
            places.append(block.start)
            there.append(both)
    return names, places, np.column_stack(there) if there else np.zeros((len(released), 0), dtype=np.bool_)


def _noise_covariance(study: Study, added: _Matrix, there: NDArray[np.bool_]) -> _Matrix:
    """Give the covariance of the noise, which the certificate states, as it was added: cut at bounds and enhanced."""
    noised = study.fact(Noised)
    variance = (added**2).sum(axis=0) / there.sum(axis=0)
    if study.fact(ComponentNoise) is None and (noised is None or not noised.correlated):
        return np.diag(variance)
    return np.asarray(added.T @ added / len(added))


def _of_all(errors: _Matrix, best: int, there: NDArray[np.bool_], note: str, rng: np.random.Generator) -> Finding:
    squares, cells = (errors**2).sum(axis=2), there.sum(axis=1)
    meaning = f"{_ERROR}; here the best is {_WAYS[best]}{note}."
    return _error("noise-filtered-error", meaning, squares[best], squares[0], cells, rng)


def _of_column(name: str, errors: _Matrix, there: NDArray[np.bool_], note: str, rng: np.random.Generator) -> Finding:
    squares = errors**2
    best = int(np.argmin(squares.sum(axis=1)))
    meaning = f"{_COLUMN.format(column=name)}; here the best is {_WAYS[best]}{note}."
    return _error(f"noise-filtered-error/{name}", meaning, squares[best], squares[0], there.astype(np.int64), rng)


def _error(
    name: str, meaning: str, squares: _Matrix, raw: _Matrix, cells: NDArray[np.int64], rng: np.random.Generator
) -> Finding:
    """State a root-mean-square error beside that of the released value, which is the noise as it was added."""
    value = float(np.sqrt(squares.sum() / cells.sum()))
    return Finding(
        name,
        Family.ATTACK,
        value,
        Direction.HIGHER,
        (0.0, None),
        meaning,
        interval=holding(value, np.sqrt(redraw_rows(squares, cells, rng))),
        baseline=float(np.sqrt(raw.sum() / cells.sum())),
        attempts=int(cells.sum()),
    )


def _of_near(
    errors: _Matrix,
    guessed: _Matrix,
    reach: _Matrix,
    there: NDArray[np.bool_],
    note: str,
    rng: np.random.Generator,
) -> Finding:
    cells = there.sum(axis=1)
    hits = ((np.abs(errors) <= reach) & there).sum(axis=1).astype(np.float64)
    value = float(hits.sum() / cells.sum())
    return Finding(
        "noise-cells-near",
        Family.ATTACK,
        value,
        Direction.LOWER,
        (0.0, 1.0),
        f"{_CLOSE}{note}.",
        interval=holding(value, redraw_rows(hits, cells, rng)),
        baseline=float(((np.abs(guessed) <= reach) & there).sum() / cells.sum()),
        attempts=int(cells.sum()),
        unit="share",
    )


def redraw_rows(sums: _Matrix, cells: NDArray[np.int64], rng: np.random.Generator) -> _Matrix:
    """Give the mean a cell of so many redraws of the rows; the cells of a row stay together."""
    n = len(sums)
    means = np.full(_REDRAWS, float(sums.sum() / cells.sum()))
    terms = np.column_stack([sums, cells])
    for place in range(_REDRAWS):
        upper, lower = np.bincount(rng.integers(0, n, size=n), minlength=n) @ terms
        if lower > 0:
            means[place] = upper / lower
    return means


SPECTRAL = Measure(
    name="noise-filter",
    family=Family.ATTACK,
    source="Kargupta, Datta, Wang & Sivakumar 2003; Huang, Du & Chen 2005",
    findings={"noise-filtered-error": _ERROR + ".", "noise-cells-near": _CLOSE + "."},
    run=_run,
    higher=frozenset({"noise-filtered-error"}),
    needs=(Need.ORIGIN,),
    applies=_applies,
)
