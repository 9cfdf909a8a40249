"""Undoing a geometric method without one known row: independent components, and the digits of the released numbers.

A turn is undone by a search for independent components [Chen & Liu 2005; Guo & Wu 2007]. Numbers that were counted in a
decimal step lie on a lattice; a factor stretches it, and whoever sees its spacing knows the factor, since steps are
powers of ten.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm

import numpy as np

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Stated, Values
from sfumato.assess.attacks.known_input import CLOSE, NOTHING, MovedColumns, moved_columns, not_moved
from sfumato.assess.findings import Family, redraw_interval, wilson
from sfumato.assess.study import ColumnPair, Matrix, Places, Study, drawn_note, given, sample
from sfumato.core.facts import Fact
from sfumato.methods.geometry.facts import Transformed
from sfumato.tables.grid import decimals_of_numbers

__all__ = ["COMPONENTS", "DIGITS", "find_factor", "find_spacing", "match_components", "unmix"]

_QUANTILES = 99
_REDRAWS = 200
_ROUNDS = 500  # of FastICA, at most
_SEARCHES = 3
_FLAT = 1e-9  # deviations, below which a direction has no spread
_NORMAL = 0.3745672075  # mean of log cosh under the standard normal law
_MOST_STEPS = 1_000_000  # of the original's step in a released number, beyond which no lattice is looked for
_ROUNDING = 1e-12  # relative, of a released number that was written in full
_CHANCE = 1e-3  # that a lattice is seen where there is none
_PROBES = 12  # smallest numbers, by which most spacings are refused
_FARTHEST = 20_000  # last digits from 0 within which the smallest rounded numbers must lie
_MANY = 100_000  # spacings that may be left: where there are more nothing stands out
_APART = 0.02  # last digits by which multiples of neighbouring spacings differ at the numbers looked at
_SIMPLE = 12  # largest denominator of a simple ratio
_SPREAD = 499  # positions by which free ones of a spacing are counted
_WIDEST = 32.0  # last digits that a spacing is looked for up to


def unmix(released: Matrix, rng: np.random.Generator) -> Matrix | None:
    """Independent components; None where the rows do not bear any.

    Directions in which the released rows do not spread are left out first. Of several searches the one counts whose
    components are least like normal laws.
    """
    from sklearn.decomposition import FastICA
    from sklearn.exceptions import ConvergenceWarning

    standard = _standard(released)
    rank = int(np.linalg.matrix_rank(standard, tol=_FLAT * np.sqrt(standard.size)))
    if rank < 1 or len(released) <= rank + 1:
        return None
    found = []
    settled = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)  # what did not attacks, too
    with settled, np.errstate(divide="ignore", invalid="ignore"):  # in the directions that are left out
        for _ in range(_SEARCHES):
            seed = int(rng.integers(2**31))
            search = FastICA(n_components=rank, whiten="unit-variance", max_iter=_ROUNDS, random_state=seed)
            found.append(np.asarray(search.fit_transform(standard)))
    return max(found, key=_negentropy)


def _negentropy(components: Matrix) -> float:
    """How far components of deviation 1 are from normal laws [Hyvarinen 1999, eq. 5]."""
    size = np.abs(components)
    contrast = (size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)).mean(axis=0)  # log cosh, without overflow
    return float(((contrast - _NORMAL) ** 2).sum())


def match_components(components: Matrix, known: Matrix) -> tuple[Places, Places]:
    """Components matched to columns by the shape of their distributions, either way round.

    From the rows that are ``known`` the distribution of each column is publicly known; rows are not matched to rows.
    First the columns that got a component, then the component of each.
    """
    from scipy.optimize import linear_sum_assignment

    grid = np.linspace(0.01, 0.99, _QUANTILES)
    columns = np.quantile(_standard(known), grid, axis=0).T
    shapes = np.quantile(_standard(components), grid, axis=0).T
    upright = np.abs(columns[:, None] - shapes[None]).mean(axis=2)
    flipped = np.abs(columns[:, None] + shapes[None, :, ::-1]).mean(axis=2)
    places, which = linear_sum_assignment(np.minimum(upright, flipped))
    return np.asarray(places, dtype=np.int64), np.asarray(which, dtype=np.int64)


def _standard(values: Matrix) -> Matrix:
    """Columns brought to mean 0 and deviation 1; one that differs by rounding alone is constant."""
    centre, spread = values.mean(axis=0), values.std(axis=0)
    alike = spread <= _FLAT * np.abs(centre)
    return np.asarray(np.where(alike, 0.0, (values - centre) / np.where(alike, 1.0, spread)))


def _run(study: Study) -> Iterator[Stated]:
    rng = study.generator("ica")
    moved = moved_columns(study, study.sizes.training, rng)
    components = unmix(moved.after, rng)
    if components is None:
        raise NotRun("the released rows are too few, or do not differ enough, for components")
    places, which = match_components(components, _public(study, moved))
    matched = np.zeros_like(moved.before)  # a column without a component is not recovered
    matched[:, places] = components[:, which]
    kept, rows = moved.spread > 0, len(moved.before)
    values = _correlations(moved.before[:, kept], matched[:, kept], rng)
    value, interval = float(values[0]), redraw_interval(float(values[0]), values[1:])
    baseline = float(_correlations(moved.before[:, kept], moved.after[:, kept], rng, redraws=0)[0])
    note = drawn_note(rows, len(study.released))
    yield "ica-correlation", Values(value, interval, baseline, attempts=rows, note=note)


def _public(study: Study, moved: MovedColumns) -> Matrix:
    """Rows from which the columns' distributions are known: the control group, else the original itself."""
    if study.held is None:
        return moved.before
    cells = {pair.name: cells for pair, cells in zip(study.pairs, study.held, strict=True)}
    whole = ~np.any([cells[name].absent for name in moved.names], axis=0)
    if whole.sum() < _QUANTILES:
        return moved.before
    return np.column_stack([cells[name].values[whole] for name in moved.names])


def _correlations(before: Matrix, after: Matrix, rng: np.random.Generator, redraws: int = _REDRAWS) -> Matrix:
    """Mean absolute correlation of columns with columns, and behind it that of redraws of the rows."""
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
    "ica",
    Family.ATTACK,
    "Chen & Liu 2005; Guo & Wu 2007; Hyvarinen 1999",
    _run,
    needs=(Need.ORIGIN,),
    applies=_not_turned,
    figure="attacks/scores",
).finds(
    Number("ica-correlation", "Independent component analysis, correlation").means(
        "Independent component analysis: the mean absolute correlation of recovered and original columns, for an "
        "attacker who has the release and publicly known distributions. Baseline: the released columns themselves; 1 "
        "is full recovery up to scale"
    )
)


def find_factor(released: Matrix) -> float | None:
    """Factor by which numbers in steps of a power of ten were multiplied; None if no spacing stands out.

    Of all powers of ten the one is taken that leaves the factor nearest to 1.

    Examples
    --------
    >>> heights = np.array([1.62, 1.75, 1.81, 1.58, 1.93, 1.7])
    >>> round(find_factor(1.3718 * heights), 9)
    1.3718
    """
    spacing = find_spacing(released)
    return None if spacing is None else float(spacing / 10.0 ** np.rint(np.log10(spacing)))


def find_spacing(released: Matrix) -> float | None:
    """Largest number of which all released numbers are multiples, up to how they were rounded."""
    values = np.unique(np.abs(released[released != 0]))
    if len(values) < 3:
        return None
    decimals = decimals_of_numbers(values)
    if decimals is None:
        return _common_measure(values)
    common = int(np.gcd.reduce(np.rint(values * 10.0**decimals).astype(np.int64)))
    whole = str(common).rstrip("0") in ("1", "2", "5")  # the step of a rounded number, not of a stretched one
    return _comb(values, common * 10.0**-decimals) if whole else float(common * 10.0**-decimals)


def _common_measure(values: Matrix) -> float | None:
    """Common measure of numbers that were written in full, from their ratios to the smallest."""
    whole = 1
    for value in values[sample(len(values), 10 * _PROBES, np.random.default_rng(0))]:
        ratio = Fraction(float(value / values[0])).limit_denominator(_MOST_STEPS)
        if abs(float(ratio) * values[0] - value) > _ROUNDING * value:
            return None
        whole = lcm(whole, ratio.denominator)
        if whole > _MOST_STEPS:
            return None
    return float(values[0] / whole)


def _comb(values: Matrix, last: float) -> float | None:
    """Largest spacing from which all numbers can have been rounded to their last digit.

    A spacing of g last digits has a multiple near about one place in g only, so that a wrong one passes by chance
    alone, and the largest is taken that does not. Small numbers tell roughly, larger ones finer.
    """
    places = np.rint(values / last)
    reach = float(places[min(_PROBES, len(places)) - 1])
    if reach > _FARTHEST:
        return None
    spacings = np.geomspace(_WIDEST, 1.0 + 2 * _APART, int(np.log(_WIDEST) * reach / _APART) + 2)
    spacings = _fitting(places[places <= reach], spacings)
    while reach < places[-1] and 0 < len(spacings) <= _MANY:
        reach *= 2.0
        half = _APART / reach / 2.0  # each spacing gives way to two, half as far apart
        spacings = np.concatenate([spacings * (1.0 - half), spacings * (1.0 + half)])
        spacings = _fitting(places[(reach / 2.0 < places) & (places <= reach)], spacings)
    if not 0 < len(spacings) <= _MANY:
        return None
    tried = np.log(_WIDEST) * reach / _APART
    by_chance = [[_misfit(place[None], spacings) <= 0.5 + _APART for place in some] for some in _other_places(places)]
    free = np.max([np.mean(some, axis=0) for some in by_chance], axis=0)
    telling = [
        place
        for place in np.flatnonzero(tried * free ** len(places) <= _CHANCE)
        if not _fits_anything(float(spacings[place]), reach)
    ]
    if not telling:
        return None
    best = max(telling, key=lambda place: float(spacings[place]))
    alike = np.abs(spacings / spacings[best] - 1.0) <= 4 * _APART / reach  # neighbours that fit as well
    return float(spacings[alike].mean() * last)


def _fitting(places: Matrix, spacings: Matrix) -> Matrix:
    for place in places:
        spacings = spacings[_misfit(place[None], spacings) <= 0.5 + _APART]
    return spacings


def _fits_anything(spacing: float, reach: float) -> bool:
    """Whether a spacing is so near to a simple ratio, like 3/2, that every whole number is near a multiple."""
    ratio = float(Fraction(spacing).limit_denominator(_SIMPLE))
    drift = abs(spacing / ratio - 1.0) * reach
    return drift < 1.0 and bool((_misfit(np.arange(1.0, 2 * _SIMPLE**2), np.array([ratio])) <= 0.5 + _APART).all())


def _other_places(places: Matrix) -> tuple[Matrix, Matrix]:
    """Positions next to the released ones and evenly between them: the number that fits a spacing by chance."""
    near = np.unique(np.concatenate([places + shift for shift in (-2.0, -1.0, 1.0, 2.0)]))
    return near[:: -(-len(near) // _SPREAD)], np.unique(np.rint(np.linspace(places[0], places[-1], _SPREAD)))


def _misfit(places: Matrix, spacings: Matrix) -> Matrix:
    """How far, in last digits, the worst number is from a multiple of each spacing."""
    worst = np.zeros(len(spacings))
    for place in places:
        worst = np.maximum(worst, np.abs(place - spacings * np.rint(place / spacings)))
    return worst


def _not_multiplied(facts: Sequence[Fact]) -> str | None:
    if any(isinstance(fact, Transformed) and "mult" not in fact.operations for fact in facts):
        return "no column was multiplied, and digits tell neither a shift nor a turn"
    return not_moved(facts)


def _run_digits(study: Study) -> Iterator[Stated]:
    fact = given(study.fact(Transformed))
    pairs = [pair for pair in study.pairs if pair.name in fact.columns and pair.is_number]
    hits = guesses = tries = found = 0
    for pair in pairs:
        before, after = _numbers(study, pair)
        spread = float(before.std()) if len(before) else 0.0
        if not spread:
            continue
        factor = find_factor(after)
        mean = np.abs(before - before.mean()) <= CLOSE * spread
        right = mean if factor is None else np.abs(after / factor - before) <= CLOSE * spread
        hits, guesses, tries = hits + int(right.sum()), guesses + int(mean.sum()), tries + len(before)
        found += factor is not None
    if not tries:
        raise NotRun(NOTHING)
    value, people = hits / tries, tries // len(pairs)
    interval = wilson(value * tries / len(pairs), max(1, people))
    note = f"; a spacing stands out in {found} of {len(pairs)} columns"
    yield "digit-spacing-recovery", Values(value, interval, guesses / tries, attempts=people, note=note)


def _numbers(study: Study, pair: ColumnPair) -> tuple[Matrix, Matrix]:
    """Numbers of a column before and after, in rows drawn from those that have both."""
    released, original = study.descent()
    both = np.flatnonzero(~pair.released.absent[released] & ~pair.original.absent[original])
    chosen = both[sample(len(both), study.sizes.attempts, study.generator("digits"))]
    return pair.original.values[original[chosen]], pair.released.values[released[chosen]]


DIGITS = Measure(
    "digits",
    Family.ATTACK,
    "Oliveira & Zaiane 2003 undone by the steps of the original",
    _run_digits,
    needs=(Need.ORIGIN,),
    applies=_not_multiplied,
).finds(
    Number("digit-spacing-recovery", "Numbers recovered from digit spacing", SHARE).means(
        "The share of numbers recovered to a tenth of a standard deviation by an attacker who knows no row, only that "
        "original numbers are multiples of a power of ten; the spacing of released numbers then reveals each factor. "
        "Baseline: guessing the mean"
    )
)
