"""Differences: what was shown after an arrival, or in a round, minus what was shown before, is the arrival or the row.

Sums after minus sums before are the sums of what came in between (errata AY05.10). Whoever keeps every publication of a
stream needs nothing else; publication by epochs is what stops it. So does an owner of rows with the centres of a joint
K-means that are opened round by round [BCG10, line 4; errata 7]: what one cluster has lost from one round to the next,
and one other gained, is a row, where it is one row.
"""

from __future__ import annotations

import math
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
    "ROUNDS",
    "PublicationSummary",
    "SeenRounds",
    "StreamPublications",
    "changed_units",
    "claimed_rows",
    "difference",
    "difference_findings",
]

EXACT = 1e-3
"""Standard deviations within which a number counts as recovered: a mean of several records is no record."""
_NOT_AT_HAND = "the earlier publications, or who came between them, are not at hand"


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
    told, guessed = [], []
    for before, after, people in zip(shown[:-1], shown[1:], watched.arrived, strict=True):
        if not len(people):
            continue
        guesses = before.mean[rng.integers(0, len(before.count), len(people))]
        _, lucky = _tells(guesses, people, layout, columns)
        certain, right = _tells(difference(before, after, apart=apart), people, layout, columns)
        told.append(np.where(certain, right, lucky))
        guessed.append(lucky)
    return np.concatenate(told), np.concatenate(guessed)


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
        told, guessed = _attack(shown, watched, columns, rng)
        yield name, _recovered(np.all(told, axis=1), np.all(guessed, axis=1))
        for place, column in enumerate(columns if shown is watched.rows else ()):
            yield f"{name}/{column}", _recovered(told[:, place], guessed[:, place])


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
    figure="attacks/all",
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


@dataclass(frozen=True, eq=False, repr=False)
class SeenRounds(OwnerDetails):
    """What an owner saw of the rounds of a joint K-means, in whole steps; for this owner alone."""

    own: Places | None = None  # its rows
    labels_seen: Places | None = None  # their clusters in each round
    counts: Places | None = None  # rows of all owners in each cluster
    centres: Places | None = None  # means of the clusters over all owners, each owner's part rounded
    owners: int = 0


def claimed_rows(seen: SeenRounds) -> tuple[Places, Matrix]:
    """Moves and rows of the others that an owner claims.

    It takes its own part of every mean off to the step, so that what blurs a sum is the others' rounding.
    """
    if seen.own is None or seen.labels_seen is None or seen.counts is None or seen.centres is None:
        return np.empty((0, 3), dtype=np.int64), np.empty((0, 0))
    g = seen.counts.shape[1]
    count, total = seen.counts.copy(), np.empty(seen.centres.shape)
    for t, labels in enumerate(seen.labels_seen):
        count[t] -= np.bincount(labels, minlength=g)
        sums, size = np.zeros(total.shape[1:], dtype=np.int64), np.maximum(seen.counts[t], 1)[:, None]
        np.add.at(sums, labels, seen.own)
        total[t] = (seen.centres[t] - (2 * sums + size) // (2 * size)) * size
    blur = seen.counts * math.sqrt((seen.owners - 1) / 12.0)
    return paired_moves(count, total, np.asarray(blur, dtype=np.float64))


def paired_moves(count: Places, total: Matrix, blur: Matrix, *, apart: float = 4.0) -> tuple[Places, Matrix]:
    """Rows claimed where rounding blurs sums: what one cluster lost is what one other gained in the same round.

    Counts and sums are those of the others' rows in each cluster, of shape (t, g) and (t, g, d); ``blur`` is the
    standard deviation of what rounding does to a coordinate of these sums, and loss and gain may differ by ``apart`` of
    them. First the moves (round, cluster before, cluster after), then the rows, loss and gain averaged by how sure they
    are; a loss or a gain that fits several others is not claimed.

    Examples
    --------
    >>> count, total = np.array([[2, 1], [1, 2]]), np.array([[[5.0], [1.0]], [[2.0], [4.0]]])
    >>> paired_moves(count, total, np.full((2, 2), 0.1))[1].tolist()
    [[3.0]]
    """
    change, moved = np.diff(count, axis=0), np.diff(total, axis=0)
    spread = blur[1:] ** 2 + blur[:-1] ** 2
    moves, rows = [], []
    for t in range(len(change)):
        lost, gained = np.flatnonzero(change[t] == -1), np.flatnonzero(change[t] == 1)
        both = np.sqrt(spread[t, lost][:, None] + spread[t, gained])
        differ = np.abs(-moved[t, lost][:, None] - moved[t, gained]).max(axis=2, initial=0.0)
        fits = differ <= apart * both
        sure = fits & (fits.sum(axis=1, keepdims=True) == 1) & (fits.sum(axis=0, keepdims=True) == 1)
        for i, j in zip(*np.nonzero(sure), strict=True):
            a, b = lost[i], gained[j]
            share = spread[t, b] / max(spread[t, a] + spread[t, b], np.finfo(float).tiny)
            moves.append((t, a, b))
            rows.append(-share * moved[t, a] + (1.0 - share) * moved[t, b])
    d = total.shape[2]
    return np.array(moves, dtype=np.int64).reshape(-1, 3), np.array(rows, dtype=np.float64).reshape(-1, d)


def _not_opened(facts: Sequence[Fact]) -> str | None:
    joint = Context(tuple(facts)).one("joint")
    if joint is None:
        return "the table was not made by several owners together"
    return None if joint.centres == "each" else "cluster centres were not opened round by round"


def _run_rounds(study: Study) -> Iterator[Stated]:
    seen = study.workings
    if not isinstance(seen, SeenRounds) or seen.counts is None or seen.own is None:
        raise NotRun("what this owner saw of the rounds is not at hand")
    others = int(seen.counts[0].sum()) - len(seen.own)
    if not others:
        raise NotRun("no other owner has rows")
    share = min(1.0, len(claimed_rows(seen)[1]) / others)
    yield "party-rows-inferred", Values(share, baseline=0.0, attempts=others)


ROUNDS = Measure(
    "joint-rounds",
    Family.ATTACK,
    "Banu, Chandra & Ganapathi 2010 undone by differences of rounds",
    _run_rounds,
    applies=_not_opened,
    figure="attacks/all",
).finds(
    Number("party-rows-inferred", "Rows of other parties inferred from clustering rounds", SHARE.owners).means(
        "The share of other parties' rows that this party can infer from the cluster centres of every round and its "
        "own rows. It does not know which are right; in trials most were. None if centres stay hidden (baseline)"
    )
)
