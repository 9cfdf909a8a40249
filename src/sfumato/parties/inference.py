"""What a joint run shows each owner of another's cells, and how well its table predicts [BCG10, sec. 4.2 and 5.1].

Every owner sees the exact means and covariances of the groups and the noised components of every record; an owner of
columns also knows which record is whose, and its own cells of it. The best linear estimate of another's cells from all
of these has an error that follows from the statistics alone, so that each owner finds it without the others' cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.assess.algebra import SIZE, Measure, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family
from sfumato.assess.study import Study
from sfumato.assess.utility.prediction import TrainingSet, correlations, predict
from sfumato.core.arrays import Floats
from sfumato.core.facts import Context, Fact
from sfumato.core.records import BlockKind, Layout
from sfumato.core.threads import one_blas_thread
from sfumato.parties.plan import JointResult, SeenGroups
from sfumato.parties.rounds import SeenRounds

__all__ = ["MEASURES", "SeenRelease", "estimate_errors", "largest_inference"]

_MOST_WIDE = 256  # coordinates, of which a matrix is inverted for each group
_MOST_ROWS = 5_000  # of the release that a model is trained on
_FOLDS = 10


@dataclass(frozen=True, eq=False, repr=False)
class SeenRelease(SeenRounds):
    """What this owner has seen of a joint run, besides its rounds."""

    rank: int = 0
    parties: tuple[str, ...] = ()
    noise: str = ""  # how owners of columns drew it; "" for owners of rows
    target: str | None = None
    result: JointResult | None = None


def estimate_errors(seen: SeenGroups, variances: Floats, known: slice) -> Floats:
    """Mean squared error of the best linear estimate of each coordinate in each group, of shape (g, d).

    Parameters
    ----------
    seen : SeenGroups
    variances : ndarray of shape (g, m)
        Of the noise on each component, in coordinates; of a component that does not vary nothing is seen.
    known : slice
        Coordinates that are known exactly.
    """
    covariance, axes = seen.statistics.covariance, seen.axes
    errors = np.empty(seen.statistics.mean.shape)
    with one_blas_thread():
        for group, (spread, directions) in enumerate(zip(covariance, axes, strict=True)):
            noised = directions[:, seen.scales[group] > 0]
            observed = np.hstack([np.eye(len(spread))[:, known], noised])
            noise = np.zeros(observed.shape[1])
            noise[observed.shape[1] - noised.shape[1] :] = variances[group, seen.scales[group] > 0]
            with_all = spread @ observed
            among = observed.T @ with_all + np.diag(noise)
            unit = np.sqrt(np.maximum(np.diag(among), np.finfo(float).tiny))
            with_all, among = with_all / unit, among / np.outer(unit, unit)
            explained = with_all @ np.linalg.pinv(among, rcond=1e-10, hermitian=True) * with_all
            errors[group] = np.maximum(np.diag(spread) - explained.sum(axis=1), 0.0)
    return errors


def largest_inference(seen: SeenRelease) -> tuple[float, float, str]:
    """Smallest error of another owner's estimate of own numbers, that from group means alone, and the other's name.

    Root mean squares, in standard deviations of each column.
    """
    result, groups = seen.result, None if seen.result is None else seen.result.seen_groups
    if result is None or groups is None:
        raise NotRun("what the owners saw of the groups was not recorded")
    if result.values.shape[1] > _MOST_WIDE:
        raise NotRun(f"the owners have more than {_MOST_WIDE} coordinates")
    own = _own_numbers(result.layout, groups.spans, seen.rank)
    statistics, share = groups.statistics, groups.statistics.sizes / groups.statistics.sizes.sum()
    within = np.einsum("gjj->gj", statistics.covariance)
    centre = share @ statistics.mean
    whole = share @ (within + (statistics.mean - centre) ** 2)
    own = own[whole[own] > 0]
    if not len(own):
        raise NotRun("this owner has no column of numbers that varies")

    def deviation(errors: Floats) -> float:
        return float(np.sqrt(((share @ errors)[own] / whole[own]).mean()))

    found = []
    for viewer, name in enumerate(seen.parties):
        if viewer != seen.rank:
            variances = _variance_factor(seen, viewer) * groups.scales**2
            known = groups.spans[viewer] if groups.spans else slice(0, 0)
            found.append((deviation(estimate_errors(groups, variances, known)), name))
    best, whose = min(found)
    return best, deviation(within), whose


def _own_numbers(layout: Layout, spans: Sequence[slice], rank: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    span = spans[rank] if spans else slice(0, layout[-1].stop)
    numbers = (each.start for each in layout if each.kind is BlockKind.NUMBER)
    return np.array([start for start in numbers if span.start <= start < span.stop], dtype=np.int64)


def _variance_factor(seen: SeenRelease, viewer: int) -> float:
    """Variance of the noise that this owner did not draw, in squares of its scale: 2 of Laplace, 1 of one half."""
    computes = viewer in (0, len(seen.parties) - 1)
    draws = {"each": 1 if computes else 2, "split": 0.5 if computes else 1}
    return 2.0 * draws.get(seen.noise, 1)


def _not_joint(facts: Sequence[Fact]) -> str | None:
    return None if Context(tuple(facts)).has("joint") else "the table was not made by several owners together"


def _seen(study: Study) -> SeenRelease:
    if not isinstance(study.workings, SeenRelease):
        raise NotRun("what this owner saw of the run was not recorded")
    return study.workings


def _run_inference(study: Study) -> Iterator[Stated]:
    best, means, whose = largest_inference(_seen(study))
    yield "party-cells-error", Values(best, baseline=means, note=f"; {whose!r} comes closest")


INFERENCE = Measure(
    "joint-inference",
    Family.ATTACK,
    "Banu, Chandra & Ganapathi 2010, security analysis of section 4.2",
    _run_inference,
    applies=_not_joint,
).finds(
    Number("party-cells-error", "Error of another party's estimate of this party's cells", SIZE.owners.more).means(
        "Root mean square error of the best linear estimate that another party can make of this party's numbers, in "
        "standard deviations, from its own cells, the statistics of the groups and the noised rows: 1 is guessing, 0 "
        "is exact knowledge. Baseline: the mean of the group alone"
    )
)


def _run_correlation(study: Study) -> Iterator[Stated]:
    seen = _seen(study)
    result = seen.result
    if result is None or seen.target is None:
        raise NotRun("the owners named no column to predict")
    block = next((each for each in result.layout if each.column == seen.target), None)
    if block is None or block.kind is not BlockKind.NUMBER:
        raise NotRun("the column to predict holds no numbers")
    others = [each for each in result.layout if each.column != seen.target]
    if not others:
        raise NotRun("there is no column to predict from")
    rng = study.generator("joint correlation")
    values = result.values[rng.permutation(len(result.values))[:_MOST_ROWS]]
    if len(values) < 2 * _FOLDS:
        raise NotRun("the release has too few rows for ten folds")
    truth = values[:, block.start]
    rows = np.hstack([values[:, each.where] for each in others])
    guess, fold = np.empty(len(values)), np.arange(len(values)) % _FOLDS
    for turn in range(_FOLDS):
        out = fold == turn
        lesson = TrainingSet(rows[~out], truth[~out])
        guess[out] = predict("boosting", lesson, rows[out], classes=0, seed=int(rng.integers(2**31)))
    yield "joint-correlation", Values(float(correlations(np.ones((1, len(truth))), truth, guess)[0]), baseline=0.0)


CORRELATION = Measure(
    "joint-correlation",
    Family.UTILITY,
    "Banu, Chandra & Ganapathi 2010, section 5.1",
    _run_correlation,
    applies=_not_joint,
).finds(
    Number("joint-correlation", "Correlation within the release, ten folds", Scale((-1.0, 1.0)).more.owners).means(
        "Correlation of the target in the released rows of all parties with the predictions of boosted trees that "
        "learned from the other nine tenths: 1 is best, 0 is guessing. It does not compare with the original, which "
        "no party has"
    )
)

MEASURES = (INFERENCE, CORRELATION)
