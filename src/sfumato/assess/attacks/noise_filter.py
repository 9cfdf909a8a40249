"""Taking noise off again: filters of noised numbers, beside the plain released value, and the best guess of an answer.

Kargupta, Datta, Wang, Sivakumar 2003; Huang, Du, Chen 2005. Independent noise on columns that go together spreads over
all directions, the data over few: what is left in those few is nearly the data. The bounds of noise on principal
components are relative to what a group tells, and each owner of a joint release knows the groups, so that attacker
draws every noised row towards the mean of its group.

The best guess behind a randomized answer is by Bayes' rule, with the distribution that all answers give away. Agrawal &
Srikant 2000 for the distribution; Evfimievski, Gehrke & Srikant 2003 for what a single answer tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, SIZE, Measure, Need, NotRun, Number, Stated, Values, where
from sfumato.assess.findings import Family, Tries, redraw_interval
from sfumato.assess.study import CATEGORIES, Column, ColumnPair, Matrix, Places, Study, drawn_note, given, sample
from sfumato.core.distributions.domains import Dates, Labels, Universe
from sfumato.core.distributions.operators import Additive, Operator, likelihoods
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.facts import Fact
from sfumato.core.records import BlockKind
from sfumato.methods.perturb.facts import ComponentNoise, Noised
from sfumato.methods.randomize.facts import Randomized
from sfumato.tables.dates import unit_of
from sfumato.tables.grid import label_of

__all__ = [
    "BEST_GUESS",
    "GROUP_FILTER",
    "NOISE_FILTER",
    "bayes_estimate",
    "best_guesses",
    "estimate_in_group",
    "estimate_prior",
    "randomized_specs",
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
    hint = f"; here the best is {_WAYS[best]}{note}"
    yield "noise-filtered-error", _error(totals[best], float(totals[0].sum()), cells, hint, rng)
    guessed = np.where(there, got.mean(axis=0) - true, 0.0)
    reach = _NEAR * np.ptp(study.original[:, places], axis=0)
    yield "noise-filtered-near", _near(errors[best], guessed, reach, there, note, rng)
    for j, name in enumerate(names):
        of_column = errors[:, :, j] ** 2
        best = int(np.argmin(of_column.sum(axis=1)))
        hint = f"; here the best is {_WAYS[best]}{note}"
        raw, cells = float(of_column[0].sum()), there[:, j].astype(np.int64)
        yield f"noise-filtered-error/{name}", _error(of_column[best], raw, cells, hint, rng)


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
    """Mean of each cell over the given number of redraws of the rows; cells of a row stay together."""
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
    Number("noise-filtered-error", "Noise filtering, remaining error", SIZE.more, figure="").means(
        "Noise filtering: the error, in standard deviations, of the best of three attackers, beside the size of the "
        "added noise; 1 is what guessing the mean gives"
    ),
    Number("noise-filtered-near", "Noise filtering, within 10\u00a0% of the range", SHARE).means(
        "Noise filtering: the share of numbers that the best of three attackers estimates to within a tenth of the "
        "column's range. Baseline: the mean"
    ),
    Number("noise-filtered-error/", scale=SIZE.more, figure="").means(
        "Noise filtering: the error, in standard deviations, of the best of three attackers on {column}, beside the "
        "size of the added noise; 1 is what guessing the mean gives"
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
    variances = np.maximum(eigenvalues, 0.0)
    share = np.divide(variances, variances + variance, out=np.zeros_like(variances), where=variances + variance > 0)
    return np.asarray(mean + (noised - mean) @ axes * share @ axes.T)


def _run_in_groups(study: Study) -> Iterator[Stated]:
    fact = given(study.fact(ComponentNoise))
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
    yield "group-filtered-near", _near(errors[best], idle, reach, there, note, rng)


def _groups(study: Study, known: Places) -> Iterator[tuple[Places, Places]]:
    """Records of each group, and the places among the known rows of those that descend from it."""
    labels, drawn_from = given(study.workings.labels), given(study.workings.drawn_from)[known]
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
    needs=(Need.GROUPS, Need.ROW_GROUPS, Need.ORIGIN),
    applies=where(
        ComponentNoise, "no noise was put on the principal components of groups, so there is none to filter off"
    ),
).finds(
    Number("group-filtered-error", "Noise filtering within groups, remaining error", SIZE.more, figure="").means(
        "Noise filtering: the error, in standard deviations, of an attacker who knows a record's group, its "
        "statistics and the noise distribution. Baseline: the mean of the group; an error no less than the baseline "
        "means that the row adds nothing to its group"
    ),
    Number("group-filtered-near", "Noise filtering within groups, within 10\u00a0% of the range", SHARE).means(
        "Noise filtering: the share of numbers that an attacker who knows a record's group, its statistics and the "
        "noise distribution estimates to within a tenth of the column's range. Baseline: the mean of the group"
    ),
)


_MOST = 1000  # values of a domain of which each can be guessed; noise filters speak of finer ones
_ITERATIONS = 200
_STILL = 1e-7  # total change of the estimate at which it stands still
_OFF = 1e-6  # part of a step by which a number may miss its place
_NOWHERE = -(2**62)  # the place of a cell that has none


def estimate_prior(counts: Places, chances: Matrix) -> Matrix:
    """How frequent each value is, estimated from how often each answer came, from uniform on [Agrawal, Srikant 2000].

    ``chances`` of shape (m, size) are P[answer | value], each row up to a factor.

    Examples
    --------
    >>> chances = np.array([[0.9, 0.2], [0.1, 0.8]])
    >>> estimate_prior(np.array([550, 450]), chances).round(3).tolist()
    [0.5, 0.5]
    """
    prior = np.full(chances.shape[1], 1.0 / chances.shape[1])
    shares = counts / counts.sum()
    for _ in range(_ITERATIONS):
        evidence = chances @ prior
        weights = np.divide(shares, evidence, out=np.zeros_like(shares), where=evidence > 0)
        after = prior * (weights @ chances)
        total = after.sum()
        if not total > 0:
            return prior
        after /= total
        change = float(np.abs(after - prior).sum())
        prior = after
        if change < _STILL:
            break
    return prior


def best_guesses(answers: Places, operator: Operator) -> Places:
    """The value behind each answer: the one of the highest posterior.

    Examples
    --------
    >>> from sfumato.core.distributions.operators import KeepOrReplace
    >>> best_guesses(np.array([0, 0, 0, 0, 1]), KeepOrReplace(2, 0.6)).tolist()
    [0, 0, 0, 0, 0]
    """
    seen, where, counts = np.unique(answers, return_inverse=True, return_counts=True)
    chances = likelihoods(operator, seen)
    prior = estimate_prior(counts, chances)
    return np.asarray(np.argmax(chances * prior, axis=1)[where], dtype=np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class _CellGuesses:
    """Which cells of a column were attacked, and which of them hit."""

    name: str
    tried: NDArray[np.bool_]
    hits: NDArray[np.bool_]
    most_frequent: float


def _run_guess(study: Study) -> Iterator[Stated]:
    released, original = study.descent()
    answers = study.workings.answers
    guessed = [
        found
        for name, spec in randomized_specs(study.facts).items()
        if spec.domain.size <= _MOST
        and (pair := next((pair for pair in study.pairs if pair.name == name), None)) is not None
        and (found := _guess_column(pair, spec, released, original, answers.get(name))) is not None
    ]
    if not guessed:
        raise NotRun(f"no randomized column has a domain of at most {_MOST} values and cells to guess")
    hits = np.sum([each.hits for each in guessed], axis=0).astype(np.float64)
    cells = np.sum([each.tried for each in guessed], axis=0).astype(np.int64)
    value, count = float(hits.sum() / cells.sum()), int(cells.sum())
    constant = math.fsum(each.most_frequent * int(each.tried.sum()) for each in guessed)
    interval = redraw_interval(value, redraw_rows(hits, cells, study.generator("bayes-inference")))
    yield "bayes-inference", Values(value, interval, constant / count, attempts=count)
    for each in guessed:
        tries = Tries(int(each.hits.sum()), int(each.tried.sum()))
        baseline, count = each.most_frequent, int(tries.of)
        yield f"bayes-inference/{each.name}", Values(tries.share, tries.interval, baseline, attempts=count)


def _guess_column(
    pair: ColumnPair, spec: NoiseSpec, released: Places, original: Places, answers: Places | None
) -> _CellGuesses | None:
    """Guess a column; ``answers`` are its answers where they are of another kind than its values."""
    true = _codes(pair, pair.original, spec.domain)[original]
    got = (_codes(pair, pair.released, spec.released) if answers is None else answers)[released]
    outputs = spec.operator.outputs
    possible = got != _NOWHERE if outputs is None else (got >= outputs.start) & (got < outputs.stop)
    there = (true >= 0) & (true < spec.domain.size) & possible
    if not there.any():
        return None
    hits = np.zeros(len(there), dtype=np.bool_)
    hits[there] = best_guesses(got[there], spec.operator) == true[there]
    most = int(np.bincount(true[there]).max())
    return _CellGuesses(pair.name, there, hits, most / int(there.sum()))


def _codes(pair: ColumnPair, cells: Column, domain: Universe) -> Places:
    """Place of each cell in a domain, possibly beyond its ends; `_NOWHERE` for cells that have none."""
    if isinstance(domain, Labels):
        if pair.field.kind not in CATEGORIES:
            return np.full(len(cells.values), _NOWHERE)
        place = {label: index for index, label in enumerate(domain.values)}
        labels = [label_of(category) for category in pair.field.domain.categories or ()]
        gap = _NOWHERE if "" in labels else place.get("", _NOWHERE)  # the empty text is a missing cell, else a label
        codes = np.array([place.get(label, _NOWHERE) for label in labels] or [_NOWHERE], dtype=np.int64)
        known = np.clip(cells.values, 0, len(codes) - 1).astype(np.int64)
        return np.where(cells.absent, gap, codes[known])
    if pair.field.kind in CATEGORIES:
        return np.full(len(cells.values), _NOWHERE)
    if isinstance(domain, Dates):
        counts = domain.counts(np.rint(cells.values).astype(np.int64) * unit_of(pair.field))
        return np.where(cells.absent, _NOWHERE, counts - domain.low)
    steps = (cells.values - float(domain.low)) / float(domain.step)
    near = np.isfinite(steps) & (np.abs(steps) < 2.0**52) & ~cells.absent
    whole = np.rint(np.where(near, steps, 0.0))
    return np.where(near & (np.abs(steps - whole) <= _OFF), whole, _NOWHERE).astype(np.int64)


def _guessed_number(name: str, what: str, spoken: str = "", figure: str | None = None) -> Number:
    meaning = (
        f"The share of {what} that are guessed exactly from the released one, by Bayes' rule and the distribution that "
        "all released values give away, beside always guessing the most frequent value; less is better"
    )
    return Number(name, spoken, SHARE, figure).means(meaning)


BEST_GUESS = Measure(
    "bayes-inference",
    Family.ATTACK,
    "Agrawal & Srikant 2000; Evfimievski, Gehrke & Srikant 2003",
    _run_guess,
    needs=(Need.ORIGIN,),
    applies=where(Randomized, "no column was randomized by a stated law, so there is no answer to guess behind"),
).finds(
    _guessed_number("bayes-inference", "randomized values", "Bayes inference of randomized values"),
    _guessed_number("bayes-inference/", "values of {column}", figure="attacks/bayes-inference"),
)
