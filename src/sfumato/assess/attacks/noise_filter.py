"""Filters that take noise off again: spectral filtering and Bayes estimates, beside the plain released value.

Kargupta, Datta, Wang, Sivakumar 2003; Huang, Du, Chen 2005. Independent noise on columns that go together spreads over
all directions, the data over few: what is left in those few is nearly the data. The bounds of noise on principal
components are relative to what a group tells, and each owner of a joint release knows the groups, so that attacker
draws every noised row towards the mean of its group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, SIZE, Measure, Need, NotRun, Number, Stated, Values, where
from sfumato.assess.findings import Family
from sfumato.assess.intervals import redraw_interval
from sfumato.assess.study import Matrix, Places, Study, drawn_note, sample
from sfumato.core.facts import ComponentNoise, Fact, Noised, Randomized
from sfumato.core.laws.operators import Additive
from sfumato.core.laws.spec import NoiseSpec
from sfumato.core.records import BlockKind

__all__ = [
    "GROUP_FILTER",
    "NOISE_FILTER",
    "bayes_estimate",
    "estimate_in_group",
    "randomized_specs",
    "redraw_rows",
    "spectral_filter",
]

_ROWS = 20_000  # rows whose error is counted; the filters learn from all
_REDRAWS = 200
_NEAR = 0.1  # part of a column's range
_WAYS = ("the released value", "spectral filtering", "the Bayes estimate")
_GROUP_WAYS = ("the released value", "the Bayes estimate within the group")
_NO_NUMBERS = "no column is a number that differs between people and is released"


def spectral_filter(released: Matrix, noise: Matrix) -> Matrix:
    """Rows in the directions alone in which the released rows vary more than noise alone can [Kargupta et al. 2003].

    ``noise`` of shape (d, d) is its covariance; columns are brought to noise of variance 1 first.

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


def bayes_estimate(released: Matrix, noise: Matrix) -> Matrix:
    """What is most likely behind the released rows if the data are Gaussian [Huang, Du, Chen 2005, sec. 6].

    The covariance of the data is that of the released rows less that of the noise.
    """
    mean = released.mean(axis=0)
    centred = released - mean
    eigenvalues, eigenvectors = np.linalg.eigh(centred.T @ centred / len(released) - noise)
    data = eigenvectors * np.maximum(eigenvalues, 0.0) @ eigenvectors.T
    return np.asarray(mean + centred @ np.linalg.pinv(data + noise, hermitian=True) @ data)


def randomized_specs(facts: Iterable[Fact]) -> dict[str, NoiseSpec]:
    """The laws that columns were randomized by, which every recipient knows."""
    return {fact.column: NoiseSpec.from_json(fact.spec) for fact in facts if isinstance(fact, Randomized)}


def _with_added_noise(facts: Sequence[Fact]) -> set[str] | None:
    """Columns that noise was added to; None for all of them."""
    if any(isinstance(fact, Noised | ComponentNoise) for fact in facts):
        return None
    return {name for name, spec in randomized_specs(facts).items() if isinstance(spec.operator, Additive)}


def _applies(facts: Sequence[Fact]) -> str | None:
    if _with_added_noise(facts) != set():
        return None
    return "no noise of a stated law was put on the numbers, so there is none to filter off"


def _run(study: Study) -> Iterator[Stated]:
    rng, (known, origin) = study.generator("noise-filter"), study.descent()
    names, places, there = _columns(study, known, origin, _with_added_noise(study.facts))
    if not names:
        raise NotRun(_NO_NUMBERS)
    true, got = study.original[origin][:, places], study.released[known][:, places]
    noise = _noise_covariance(study, np.where(there, got - true, 0.0), there)
    guesses = (got, spectral_filter(got, noise), bayes_estimate(got, noise))
    rows = sample(len(known), _ROWS, rng)
    note = drawn_note(len(rows), len(study.released))
    there, true = there[rows], true[rows]
    errors = np.stack([np.where(there, guess[rows] - true, 0.0) for guess in guesses])
    totals, cells = (errors**2).sum(axis=2), there.sum(axis=1)
    best = int(np.argmin((errors**2).sum(axis=(1, 2))))
    told = f"; here the best is {_WAYS[best]}{note}"
    yield "noise-filtered-error", _error(totals[best], float(totals[0].sum()), cells, told, rng)
    guessed = np.where(there, got.mean(axis=0) - true, 0.0)
    reach = _NEAR * np.ptp(study.original[:, places], axis=0)
    yield "noise-cells-near", _near(errors[best], guessed, reach, there, note, rng)
    for j, name in enumerate(names):
        of_column = errors[:, :, j] ** 2
        best = int(np.argmin(of_column.sum(axis=1)))
        told = f"; here the best is {_WAYS[best]}{note}"
        raw, cells = float(of_column[0].sum()), there[:, j].astype(np.int64)
        yield f"noise-filtered-error/{name}", _error(of_column[best], raw, cells, told, rng)


def _columns(
    study: Study, released: Places, original: Places, noised: set[str] | None = None
) -> tuple[list[str], list[int], NDArray[np.bool_]]:
    """Columns of numbers that differ between people, their coordinates, and which cells both tables have."""
    names, places, there = [], [], []
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


def _noise_covariance(study: Study, added: Matrix, there: NDArray[np.bool_]) -> Matrix:
    """Covariance of the noise, which the certificate states, as it was added: cut at bounds and enhanced."""
    noised = study.fact(Noised)
    variance = (added**2).sum(axis=0) / there.sum(axis=0)
    if study.fact(ComponentNoise) is None and (noised is None or not noised.correlated):
        return np.diag(variance)
    return np.asarray(added.T @ added / len(added))


def _error(squares: Matrix, raw: float, cells: Places, note: str, rng: np.random.Generator) -> Values:
    """A root-mean-square error beside that of another guess, of which the sum of squares is given."""
    value, count = float(np.sqrt(squares.sum() / cells.sum())), int(cells.sum())
    interval = redraw_interval(value, np.sqrt(redraw_rows(squares, cells, rng)))
    return Values(value, interval, float(np.sqrt(raw / count)), attempts=count, note=note)


def _near(
    errors: Matrix, guessed: Matrix, reach: Matrix, there: NDArray[np.bool_], note: str, rng: np.random.Generator
) -> Values:
    """Share of numbers within reach, beside that of a guess."""
    cells = there.sum(axis=1)
    hits = ((np.abs(errors) <= reach) & there).sum(axis=1).astype(np.float64)
    value = float(hits.sum() / cells.sum())
    baseline = float(((np.abs(guessed) <= reach) & there).sum() / cells.sum())
    interval = redraw_interval(value, redraw_rows(hits, cells, rng))
    return Values(value, interval, baseline, attempts=int(cells.sum()), note=note)


def redraw_rows(sums: Matrix, cells: Places, rng: np.random.Generator) -> Matrix:
    """Mean a cell of so many redraws of the rows; the cells of a row stay together."""
    n = len(sums)
    means = np.full(_REDRAWS, float(sums.sum() / cells.sum()))
    terms = np.column_stack([sums, cells])
    for place in range(_REDRAWS):
        upper, lower = np.bincount(rng.integers(0, n, size=n), minlength=n) @ terms
        if lower > 0:
            means[place] = upper / lower
    return means


NOISE_FILTER = Measure(
    "noise-filter",
    Family.ATTACK,
    "Kargupta, Datta, Wang & Sivakumar 2003; Huang, Du & Chen 2005",
    _run,
    needs=(Need.ORIGIN,),
    applies=_applies,
).finds(
    Number("noise-filtered-error", "Error that is left after filtering the noise", SIZE.more).means(
        "How far, in standard deviations, the best of three attackers stays from the true numbers, beside the size "
        "of the noise as it was added; more is better, and 1 is what guessing the mean gives"
    ),
    Number("noise-cells-near", "Numbers found to a tenth of their range", SHARE).means(
        "The share of numbers that the best of three attackers gives to within a tenth of their column's range, "
        "beside guessing the mean; less is better"
    ),
    Number("noise-filtered-error/", scale=SIZE.more).means(
        "How far, in standard deviations, the best of three attackers stays from the true {column}, beside the "
        "size of the noise as it was added; more is better, and 1 is what guessing the mean gives"
    ),
)


def estimate_in_group(members: Matrix, noised: Matrix, scale: float) -> Matrix:
    """What is most likely behind noised rows of a group whose statistics are known, if both are Gaussian.

    Mean, covariance and ranges of the components are those of the ``members``; ``scale`` is that of the Laplace noise,
    in ranges of each component: its variance is twice its square.

    Notes
    -----
    In components the estimate is the mean plus lambda / (lambda + 2 (scale range)^2) of the deviation from it.
    """
    mean = members.mean(axis=0)
    centred = members - mean
    eigenvalues, axes = np.linalg.eigh(centred.T @ centred / len(members))
    variance = 2.0 * (scale * np.ptp(centred @ axes, axis=0)) ** 2
    told = np.maximum(eigenvalues, 0.0)
    share = np.divide(told, told + variance, out=np.zeros_like(told), where=told + variance > 0)
    return np.asarray(mean + (noised - mean) @ axes * share @ axes.T)


def _run_in_groups(study: Study) -> Iterator[Stated]:
    fact = study.fact(ComponentNoise)
    assert fact is not None
    rng, (known, origin) = study.generator("group-filter"), study.descent()
    _, places, there = _columns(study, known, origin)
    if not places:
        raise NotRun(_NO_NUMBERS)
    guessed, means = study.released[known].copy(), np.empty((len(known), study.released.shape[1]))
    for members, rows in _groups(study, known):
        guessed[rows] = estimate_in_group(study.original[members], study.released[known[rows]], fact.scale)
        means[rows] = study.original[members].mean(axis=0)
    rows = sample(len(known), _ROWS, rng)
    true, there = study.original[origin[rows]][:, places], there[rows]
    guesses = (study.released[known[rows]][:, places], guessed[rows][:, places])
    errors = np.stack([np.where(there, guess - true, 0.0) for guess in guesses])
    idle = np.where(there, means[rows][:, places] - true, 0.0)
    best = int(np.argmin((errors**2).sum(axis=(1, 2))))
    note = f"; here the best is {_GROUP_WAYS[best]}" + drawn_note(len(rows), len(study.released))
    squares = (errors[best] ** 2).sum(axis=1)
    yield "group-filtered-error", _error(squares, float((idle**2).sum()), there.sum(axis=1), note, rng)
    reach = _NEAR * np.ptp(study.original[:, places], axis=0)
    yield "group-filtered-cells-near", _near(errors[best], idle, reach, there, note, rng)


def _groups(study: Study, known: Places) -> Iterator[tuple[Places, Places]]:
    """Records of each group, and the places among the known rows of those that descend from it."""
    assert study.workings is not None
    assert study.workings.labels is not None
    assert study.workings.drawn_from is not None
    labels, drawn_from = study.workings.labels, study.workings.drawn_from[known]
    members, rows = np.argsort(labels, kind="stable"), np.argsort(drawn_from, kind="stable")
    for group in np.unique(drawn_from):
        first, last = np.searchsorted(labels[members], [group, group + 1])
        begin, end = np.searchsorted(drawn_from[rows], [group, group + 1])
        if last > first:
            yield members[first:last], rows[begin:end]


GROUP_FILTER = Measure(
    "group-filter",
    Family.ATTACK,
    "Huang, Du & Chen 2005; Banerjee, Chen & Gangopadhyay 2010",
    _run_in_groups,
    needs=(Need.GROUPS, Need.ORIGIN),
    applies=where(
        ComponentNoise, "no noise was put on the principal components of groups, so there is none to filter off"
    ),
).finds(
    Number("group-filtered-error", "Error that is left after filtering the noise within groups", SIZE.more).means(
        "How far, in standard deviations, an attacker who knows a record's group, its statistics and the law of "
        "the noise stays from the true numbers, beside guessing the mean of the group; more is better, and no less "
        "than the baseline means that the row adds nothing to what its group told"
    ),
    Number("group-filtered-cells-near", "Numbers found within groups to a tenth of their range", SHARE).means(
        "The share of numbers that an attacker who knows a record's group, its statistics and the law of the noise "
        "gives to within a tenth of their column's range, beside guessing the mean of the group; less is better"
    ),
)
