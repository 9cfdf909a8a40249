"""The difference of two publications: what left after an arrival, minus what left before it, is the arrival.

Sums after minus sums before are the sums of what came in between (errata AY05.10). Whoever keeps every publication of a
stream needs nothing else; publication by epochs is what stops it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.assess.frame import Measure
from sfumato.assess.intervals import wilson
from sfumato.assess.neighbours import nearest
from sfumato.assess.study import Study
from sfumato.facts import EpochPublished, Fact
from sfumato.mechanism import Workings
from sfumato.records import CATEGORY_SCALE, Block, BlockKind, Layout

__all__ = ["DIFFERENCING", "Shown", "Watched", "changed_units", "difference", "difference_findings"]

EXACT = 1e-3
"""Standard deviations within which a number counts as recovered: a mean of several records is no record."""

_Matrix = NDArray[np.float64]

_NOT_AT_HAND = "the earlier publications, or who came between them, are not at hand"
_WATCHER = "someone recovers who keeps every publication of a stream and takes each from the next"
_ROWS = (
    f"The share of arriving records that {_WATCHER}, from the published rows, beside guessing one of them (baseline)"
)
_STATISTICS = (
    f"The share of arriving records that {_WATCHER}, where counts and sums of groups are published, beside guessing "
    "the mean of one (baseline)"
)
_COLUMN = (
    f"The share of arriving cells of {{column}} that {_WATCHER}, beside guessing that of a published row (baseline)"
)


@dataclass(frozen=True, eq=False, repr=False)
class Shown:
    """What one publication shows: units with their counts and the sums of their coordinates.

    A unit is a group, or a single row, whose count is 1.
    """

    count: NDArray[np.int64]
    total: _Matrix

    @classmethod
    def of_rows(cls, rows: _Matrix) -> Shown:
        """Take published rows as units of their own."""
        return cls(np.ones(len(rows), dtype=np.int64), np.asarray(rows))

    @classmethod
    def of_groups(cls, count: NDArray[np.int64], mean: _Matrix) -> Shown:
        """Take published statistics of groups."""
        return cls(np.asarray(count), np.asarray(mean) * np.asarray(count)[:, None])

    @property
    def mean(self) -> _Matrix:
        """The mean of each unit."""
        return np.asarray(self.total / self.count[:, None])


@dataclass(frozen=True, eq=False, repr=False)
class Watched(Workings):
    """The publications of a stream, one after the other, and who came between two of them; for the owner alone.

    Parameters
    ----------
    layout : tuple of Block
        Of all coordinates here, in which numbers are in standard deviations.
    rows, statistics : tuple of Shown or None
        Each publication, as rows and as statistics of groups; None where the like was never published.
    arrived : tuple of ndarray of shape (m, d)
        Records that came between a publication and the next.
    """

    layout: Layout = ()
    rows: tuple[Shown, ...] | None = None
    statistics: tuple[Shown, ...] | None = None
    arrived: tuple[_Matrix, ...] = ()


def difference(before: Shown, after: Shown, *, apart: bool) -> _Matrix:
    """Claim who arrived between two publications: one claim a record, none where nothing differs.

    Units that are in both to the last bit cancel. Of the others sums and counts are subtracted: those of a single
    arrival are the arrival itself, those of several give no more than their mean, which is claimed for each.

    Parameters
    ----------
    before, after : Shown
    apart : bool
        Whether units of the two can be told to belong together: each that differs then goes with the closest one
        before, as a group and its halves do. Rows cannot.

    Examples
    --------
    >>> before = Shown.of_groups(np.array([3, 4]), np.array([[1.0], [5.0]]))
    >>> after = Shown.of_groups(np.array([3, 5]), np.array([[1.0], [6.0]]))
    >>> difference(before, after, apart=True).tolist()
    [[10.0]]
    """
    left, right = changed_units(before, after), changed_units(after, before)
    d = after.total.shape[1]
    if not len(right.count):
        return np.empty((0, d))
    if not apart or not len(left.count):
        return _claims(left, right)
    goes_with = nearest(left.mean, right.mean)[0][:, 0]
    parts = [
        _claims(
            Shown(left.count[[unit]], left.total[[unit]]),
            Shown(right.count[goes_with == unit], right.total[goes_with == unit]),
        )
        for unit in range(len(left.count))
    ]
    return np.concatenate([np.empty((0, d)), *parts])


def changed_units(these: Shown, others: Shown) -> Shown:
    """Leave out the units that the other publication holds too, as often as it does."""
    both = np.concatenate([np.column_stack([one.count, one.total]) for one in (others, these)])
    _, kind = np.unique(both, axis=0, return_inverse=True)
    known, own = np.bincount(kind[: len(others.count)], minlength=kind.max() + 1), kind[len(others.count) :]
    order = np.argsort(own, kind="stable")
    firsts = np.searchsorted(own[order], own[order])
    again = np.empty(len(own), dtype=np.int64)
    again[order] = np.arange(len(own)) - firsts  # how many equal ones stand before
    kept = again >= known[own]
    return Shown(these.count[kept], these.total[kept])


def _claims(before: Shown, after: Shown) -> _Matrix:
    came = int(after.count.sum() - before.count.sum())
    if came < 1:
        return np.empty((0, after.total.shape[1]))
    return np.tile((after.total.sum(axis=0) - before.total.sum(axis=0)) / came, (came, 1))


@dataclass(frozen=True, eq=False, repr=False)
class _Told:
    """Of each arrival and each column, whether the attacker has it right, and whether a guess has."""

    columns: tuple[str, ...]
    told: NDArray[np.bool_]
    guessed: NDArray[np.bool_]


def _attack(
    shown: Sequence[Shown], arrived: Sequence[_Matrix], layout: Layout, rng: np.random.Generator, *, apart: bool
) -> _Told:
    """Take all differences; what they do not tell for certain the attacker guesses, as one without them must."""
    columns = tuple(dict.fromkeys(block.column for block in layout))
    told, guessed = [], []
    for before, after, people in zip(shown[:-1], shown[1:], arrived, strict=True):
        if not len(people):
            continue
        guesses = before.mean[rng.integers(0, len(before.count), len(people))]
        _, lucky = _tells(guesses, people, layout, columns)
        certain, right = _tells(difference(before, after, apart=apart), people, layout, columns)
        told.append(np.where(certain, right, lucky))
        guessed.append(lucky)
    return _Told(columns, np.concatenate(told), np.concatenate(guessed))


def _tells(
    claims: _Matrix, people: _Matrix, layout: Layout, columns: tuple[str, ...]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell of each person and column whether the closest claim is certain about the cell, and whether it is right."""
    shape = (len(people), len(columns))
    if not len(claims):
        return np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    claim = claims[nearest(claims, people)[0][:, 0]]
    certain, right = np.ones(shape, dtype=np.bool_), np.ones(shape, dtype=np.bool_)
    for block in layout:  # the block that says what is missing follows that of its column
        place, (sure, same) = columns.index(block.column), _compare(claim, people, block)
        if block.kind is BlockKind.MISSING:
            gap, gone = np.abs(claim[:, block.start] - 1.0) <= EXACT, people[:, block.start] > 0.5
            certain[:, place] = sure & (certain[:, place] | gap)  # of a gap there is no more to know
            right[:, place] = same & (right[:, place] | gone)
        else:
            certain[:, place], right[:, place] = sure, same
    return certain, right


def _compare(claim: _Matrix, true: _Matrix, block: Block) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Compare one block; a share of a category, or of a gap, is no certainty."""
    claim, true = claim[:, block.where], true[:, block.where]
    if block.kind is BlockKind.NUMBER:
        return np.ones(len(claim), dtype=np.bool_), np.asarray((np.abs(claim - true) <= EXACT)[:, 0])
    scale = CATEGORY_SCALE if block.kind is BlockKind.CATEGORY else 1.0
    whole = np.minimum(np.abs(claim), np.abs(claim - scale)) <= EXACT
    if block.kind is BlockKind.MISSING:
        return np.asarray(whole[:, 0]), np.asarray((np.abs(claim - true) < 0.5)[:, 0])
    return np.asarray(whole.all(axis=1)), np.asarray(claim.argmax(axis=1) == true.argmax(axis=1))


def _applies(facts: Sequence[Fact]) -> str | None:
    if sum(isinstance(fact, EpochPublished) for fact in facts) > 1:
        return None
    return "the table is not one of several publications of a stream, so there is no difference to take"


def _run(study: Study) -> Iterable[Finding]:
    if not isinstance(study.workings, Watched):
        return DIFFERENCING.not_run(_NOT_AT_HAND)
    return difference_findings(study.workings, study.generator(DIFFERENCING.name))


def difference_findings(watched: Watched, rng: np.random.Generator) -> tuple[Finding, ...]:
    """What the differences of publications give away of those who came between them, beside guessing."""
    if not sum(map(len, watched.arrived)):
        return DIFFERENCING.not_run(_NOT_AT_HAND)
    found: list[Finding] = []
    for name, meaning, shown in (
        ("arrivals-recovered", _ROWS, watched.rows),
        ("arrivals-recovered-statistics", _STATISTICS, watched.statistics),
    ):
        if shown is None:
            because = "nothing of that kind was published"
            found.append(not_run(name, Family.ATTACK, Direction.LOWER, f"{meaning}.", because))
            continue
        result = _attack(shown, watched.arrived, watched.layout, rng, apart=shown is watched.statistics)
        found.append(_finding(name, meaning, np.all(result.told, axis=1), np.all(result.guessed, axis=1)))
        if shown is watched.rows:
            found += [
                _finding(
                    f"{name}/{column}", _COLUMN.format(column=column), result.told[:, place], result.guessed[:, place]
                )
                for place, column in enumerate(result.columns)
            ]
    return tuple(found)


def _finding(name: str, meaning: str, hits: NDArray[np.bool_], guesses: NDArray[np.bool_]) -> Finding:
    return Finding(
        name,
        Family.ATTACK,
        float(hits.mean()),
        Direction.LOWER,
        (0.0, 1.0),
        f"{meaning}.",
        interval=wilson(int(hits.sum()), len(hits)),
        baseline=float(guesses.mean()),
        attempts=len(hits),
        unit="share",
    )


DIFFERENCING = Measure(
    name="differencing",
    family=Family.ATTACK,
    source="Aggarwal & Yu 2005 undone by differences; Denning, Denning & Schwartz 1979",
    findings={"arrivals-recovered": f"{_ROWS}.", "arrivals-recovered-statistics": f"{_STATISTICS}."},
    run=_run,
    applies=_applies,
)
