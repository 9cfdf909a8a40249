"""Differencing attack on a stream: sums of a publication minus those of the one before are the sums of arrivals.

An attacker who keeps every publication needs nothing else (errata AY05.10); publication by epochs prevents it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, Measure, NotRun, Number, Stated, Values
from sfumato.assess.findings import Family, Finding, wilson
from sfumato.assess.study import Matrix, Places, Study
from sfumato.core.facts import Context, Fact
from sfumato.core.neighbours import nearest
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout
from sfumato.methods.protocol import OwnerDetails

__all__ = [
    "DIFFERENCING",
    "PublicationSummary",
    "StreamPublications",
    "changed_units",
    "difference",
    "difference_findings",
]

EXACT = 1e-3
"""Standard deviations within which a number counts as recovered: a mean of several records is no record."""
_NOT_AT_HAND = "the earlier publications, or the records that arrived between them, are not available"


@dataclass(frozen=True, eq=False, repr=False)
class PublicationSummary:
    """What one publication shows: units with their counts and the sums of their coordinates.

    A unit is a group, or a single row, whose count is 1.
    """

    count: Places
    total: Matrix

    @classmethod
    def of_rows(cls, rows: Matrix) -> PublicationSummary:
        """Published rows as units of their own."""
        return cls(np.ones(len(rows), dtype=np.int64), np.asarray(rows))

    @classmethod
    def of_groups(cls, count: Places, mean: Matrix) -> PublicationSummary:
        """Published statistics of groups as units."""
        return cls(np.asarray(count), np.asarray(mean) * np.asarray(count)[:, None])

    @property
    def mean(self) -> Matrix:
        """The mean of each unit."""
        return np.asarray(self.total / self.count[:, None])


@dataclass(frozen=True, eq=False, repr=False)
class StreamPublications(OwnerDetails):
    """The publications of a stream, one after the other, and who came between two of them; for the owner alone."""

    layout: Layout = ()  # of all coordinates here, in which numbers are in standard deviations
    # rows, statistics: each publication, as rows and as statistics of groups; None where the like was never published
    rows: tuple[PublicationSummary, ...] | None = None
    statistics: tuple[PublicationSummary, ...] | None = None
    arrived: tuple[Matrix, ...] = ()  # records that came between a publication and the next


def difference(before: PublicationSummary, after: PublicationSummary, *, apart: bool) -> Matrix:
    """Claims of who arrived between two publications: one claim a record, none if nothing differs.

    Units that are in both to the last bit cancel. Of the others sums and counts are subtracted: those of a single
    arrival are the arrival itself, those of several give no more than their mean, which is claimed for each.

    ``apart`` says whether units of the two can be matched: each that differs is then paired with the closest
    one before, as a group and its halves do. Rows cannot.

    Examples
    --------
    >>> before = PublicationSummary.of_groups(np.array([3, 4]), np.array([[1.0], [5.0]]))
    >>> after = PublicationSummary.of_groups(np.array([3, 5]), np.array([[1.0], [6.0]]))
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
            PublicationSummary(left.count[[unit]], left.total[[unit]]),
            PublicationSummary(right.count[goes_with == unit], right.total[goes_with == unit]),
        )
        for unit in range(len(left.count))
    ]
    return np.concatenate([np.empty((0, d)), *parts])


def changed_units(these: PublicationSummary, others: PublicationSummary) -> PublicationSummary:
    """Units but those that the other publication holds too, as often as it does."""
    both = np.concatenate([np.column_stack([one.count, one.total]) for one in (others, these)])
    _, kind = np.unique(both, axis=0, return_inverse=True)
    known, own = np.bincount(kind[: len(others.count)], minlength=kind.max() + 1), kind[len(others.count) :]
    order = np.argsort(own, kind="stable")
    firsts = np.searchsorted(own[order], own[order])
    again = np.empty(len(own), dtype=np.int64)
    again[order] = np.arange(len(own)) - firsts  # how many equal ones stand before
    kept = again >= known[own]
    return PublicationSummary(these.count[kept], these.total[kept])


def _claims(before: PublicationSummary, after: PublicationSummary) -> Matrix:
    came = int(after.count.sum() - before.count.sum())
    if came < 1:
        return np.empty((0, after.total.shape[1]))
    return np.tile((after.total.sum(axis=0) - before.total.sum(axis=0)) / came, (came, 1))


def _attack(
    shown: Sequence[PublicationSummary], watched: StreamPublications, columns: tuple[str, ...], rng: np.random.Generator
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each arrival and each column, whether the attacker has it right, and whether a guess has.

    What differences do not tell for certain the attacker guesses, as one without them must.
    """
    layout, apart = watched.layout, shown is watched.statistics
    inferred, guessed = [], []
    for before, after, people in zip(shown[:-1], shown[1:], watched.arrived, strict=True):
        if not len(people):
            continue
        guesses = before.mean[rng.integers(0, len(before.count), len(people))]
        _, lucky = _tells(guesses, people, layout, columns)
        certain, right = _tells(difference(before, after, apart=apart), people, layout, columns)
        inferred.append(np.where(certain, right, lucky))
        guessed.append(lucky)
    return np.concatenate(inferred), np.concatenate(guessed)


def _tells(
    claims: Matrix, people: Matrix, layout: Layout, columns: tuple[str, ...]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each person and column, whether the closest claim is certain about the cell, and whether it is right."""
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


def _compare(claim: Matrix, true: Matrix, block: Block) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Certainty and truth of one block; a share of a category, or of a gap, is no certainty."""
    claim, true = claim[:, block.where], true[:, block.where]
    if block.kind in (BlockKind.NUMBER, BlockKind.CODE):
        return np.ones(len(claim), dtype=np.bool_), np.asarray((np.abs(claim - true) <= EXACT)[:, 0])
    scale = CATEGORY_SCALE if block.kind is BlockKind.CATEGORY else 1.0
    whole = np.minimum(np.abs(claim), np.abs(claim - scale)) <= EXACT
    if block.kind is BlockKind.MISSING:
        return np.asarray(whole[:, 0]), np.asarray((np.abs(claim - true) < 0.5)[:, 0])
    return np.asarray(whole.all(axis=1)), np.asarray(claim.argmax(axis=1) == true.argmax(axis=1))


def _applies(facts: Sequence[Fact]) -> str | None:
    if len(Context(tuple(facts)).all("epoch-published")) > 1:
        return None
    return "the table is not one of several publications of a stream, so there is no difference to take"


def _run(study: Study) -> Iterator[Stated]:
    if not isinstance(study.workings, StreamPublications):
        raise NotRun(_NOT_AT_HAND)
    yield from _differences(study.workings, study.generator("differencing"))


def difference_findings(watched: StreamPublications, rng: np.random.Generator) -> tuple[Finding, ...]:
    """What the differences of publications give away of those who came between them, beside guessing."""
    return DIFFERENCING.findings(_differences(watched, rng))


def _differences(watched: StreamPublications, rng: np.random.Generator) -> Iterator[Stated]:
    if not sum(map(len, watched.arrived)):
        raise NotRun(_NOT_AT_HAND)
    columns = tuple(dict.fromkeys(block.column for block in watched.layout))
    for name, shown in (
        ("differencing-recovery", watched.rows),
        ("differencing-recovery-statistics", watched.statistics),
    ):
        if shown is None:
            yield name, NotRun("nothing of that kind was published")
            continue
        inferred, guessed = _attack(shown, watched, columns, rng)
        yield name, _recovered(np.all(inferred, axis=1), np.all(guessed, axis=1))
        for place, column in enumerate(columns if shown is watched.rows else ()):
            yield f"{name}/{column}", _recovered(inferred[:, place], guessed[:, place])


def _recovered(hits: NDArray[np.bool_], guesses: NDArray[np.bool_]) -> Values:
    interval = wilson(int(hits.sum()), len(hits))
    return Values(float(hits.mean()), interval, float(guesses.mean()), attempts=len(hits))


_WATCHER = "someone recovers who keeps every publication of a stream and takes each from the next"
DIFFERENCING = Measure(
    "differencing",
    Family.ATTACK,
    "Aggarwal & Yu 2005 undone by differences; Denning, Denning & Schwartz 1979",
    _run,
    applies=_applies,
).finds(
    Number("differencing-recovery", "Differencing attack, published rows", SHARE).means(
        "Differencing attack: the share of arriving records recovered from the difference of successive publications. "
        "Baseline: guessing a published row"
    ),
    Number("differencing-recovery-statistics", "Differencing attack, published statistics", SHARE).means(
        "Differencing attack: the share of arriving records recovered if counts and sums of groups are published. "
        "Baseline: guessing their mean"
    ),
    Number("differencing-recovery/", scale=SHARE, figure="attacks/differencing-recovery").means(
        "Differencing attack: the share of arriving cells of {column} recovered from the difference of successive "
        "publications. Baseline: the cell of a published row"
    ),
)
