"""Attacks on a shadow release, whose success is known for each person: members and controls are attacked alike.

All people of the table are known to the attacker, who does not know which of them are members. Record linkage is mutual
[Domingo-Ferrer & Torra 2001], linkability and singling out are those of [Giomi et al. 2023], and membership is inferred
from distances and from the ratio of densities in the release and among other people [van Breugel et al. 2023].
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from sfumato.assess.algebra import SHARE, Measure, Number, Values
from sfumato.assess.attacks.inference import tolerance_of
from sfumato.assess.attacks.linkage import pick_near, split_columns, whitening
from sfumato.assess.attacks.singling import SortedRows, conjunctions, find_fits, single_conditions
from sfumato.assess.audit.intervals import FALSE_ALARMS, AreaSeries, Estimate, RateSeries, Series, TailSeries
from sfumato.assess.findings import Family, Finding
from sfumato.assess.study import Column, ColumnPair, Matrix, Places, read_columns
from sfumato.core.arrays import Bools
from sfumato.core.neighbours import nearest, nearest_persons, nearest_without_each_column
from sfumato.core.records import BlockKind, Layout
from sfumato.tables.codec import Codec

__all__ = ["SHADOWS", "AttackedPeople", "Scored", "shadow_findings"]

Scored = tuple[str, Places, Matrix]
"""Name of an attack, the places of the rows that were attacked, and the success or score of each."""

_NEAR = 5  # neighbours whose distance tells a density
_PREDICATES, _MOST_PREDICATES = 1_000, 6_000  # of each kind of description; more of many columns, which isolate fewer
_PAIRS = 2e9  # products of attacked rows, released rows and coordinates in one search
_FEWEST, _MOST = 1_500, 6_000  # people attacked in a release
_TIED = 6  # people who are equally near to a released row, of whom a link may name each
_SLACK = 1e-9


@dataclass(frozen=True, eq=False, repr=False)
class AttackedPeople:
    """The people of a table as an attacker knows them, prepared once for all shadow releases.

    ``ranks`` are the same coordinates with numbers as ranks among these people, which no skew hides anybody in.
    ``whitened`` are the coordinates after ``white``, which makes distances those of Mahalanobis among these people.
    ``others`` and ``other_ranks`` are the distances to the nearest other people, who are the reference.
    """

    codec: Codec
    columns: tuple[Column, ...]
    values: Matrix
    ranks: Matrix
    white: Matrix
    whitened: Matrix
    others: Matrix
    other_ranks: Matrix
    tolerances: tuple[float, ...]
    whose: Places
    rows: SortedRows

    @classmethod
    def of(cls, original: pa.Table, codec: Codec, persons: Places | None) -> AttackedPeople:
        """Read the people of an original table."""
        columns, fields = read_columns(original, codec), codec.schema.encoded
        values = _frozen(codec.encode(original, unseen="mean").values)
        ranks = _frozen(_ranked(values, values, codec.layout))
        white = whitening(values)
        whose = np.arange(len(values)) if persons is None else np.unique(persons, return_inverse=True)[1]
        each = None if persons is None else whose
        near = min(_NEAR, int(whose.max()))
        others, other_ranks = (
            nearest_persons(view, view, each, near, own=np.arange(len(view)))[1] for view in (values, ranks)
        )
        pairs = (ColumnPair(*parts) for parts in zip(fields, columns, columns, strict=True))
        tolerances = tuple(tolerance_of(pair) for pair in pairs)
        rows = SortedRows.of(columns, whose)
        whitened = _whitened(values, white)
        return cls(codec, columns, values, ranks, white, whitened, others, other_ranks, tolerances, whose, rows)

    @property
    def persons(self) -> int:
        """How many there are."""
        return int(self.whose.max()) + 1

    def series(self) -> dict[str, Series]:
        """An empty series for each attack, by the name of its finding."""
        columns = [field.name for field in self.codec.schema.encoded]
        several = len(columns) > 1
        rates = [*(f"shadow-linkage-{view}" for view in ("euclid", "mahalanobis", "rank")), "shadow-singling-out"]
        rates += [*(f"shadow-attribute-inference/{name}" for name in columns), "shadow-linkability"] if several else []
        made: dict[str, Series] = {name: RateSeries(self.persons) for name in rates}
        made |= {f"shadow-auc-{name}": AreaSeries(self.persons) for name in _SCORES}
        return made | {f"shadow-tpr-{name}": TailSeries(self.persons) for name in _SCORES}

    def attacked(self, member: Bools, rng: np.random.Generator) -> Places:
        """Rows to attack in a release with these members: one of each person, of many people some of either kind."""
        order = rng.permutation(len(self.whose))
        rows = order[np.unique(self.whose[order], return_index=True)[1]]
        width = int(member.sum()) * self.values.shape[1]
        most = int(np.clip(_PAIRS / max(1, width), _FEWEST, _MOST))
        if len(rows) <= most:
            return rows
        inside, outside = rows[member[self.whose[rows]]], rows[~member[self.whose[rows]]]
        controls = min(len(outside), most // 2)
        some = (rng.permutation(side)[:count] for side, count in ((inside, most - controls), (outside, controls)))
        return np.sort(np.concatenate(list(some)))

    def attack(self, released: pa.Table, rows: Places, rng: np.random.Generator) -> Iterator[Scored]:
        """Success or score of every attack of `series` with a released table on the given rows."""
        made = read_columns(released, self.codec)
        values = _frozen(self.codec.encode(released, unseen="mean").values)
        ranks = _frozen(_ranked(values, self.values, self.codec.layout))
        for way, mine, its, others in (
            ("euclid", self.values, values, self.others),
            ("rank", self.ranks, ranks, self.other_ranks),
        ):
            places, distances = nearest(its, mine[rows], min(others.shape[1], len(its)))
            yield f"shadow-linkage-{way}", rows, self._links(mine, its, places[:, 0], rows)
            for name, score in _memberships(distances, others[rows], way).items():
                yield from ((f"shadow-{kind}-{name}", rows, score) for kind in ("auc", "tpr"))
        whitened = _whitened(values, self.white)
        links = nearest(whitened, self.whitened[rows], 1)[0][:, 0]
        yield "shadow-linkage-mahalanobis", rows, self._links(self.whitened, whitened, links, rows)
        yield "shadow-singling-out", rows, self._isolated(SortedRows.of(made), rng)[rows]
        if len(self.columns) > 1:
            yield "shadow-linkability", rows, self._joined(values, rows, rng)
            yield from self._inferred(values, made, rows)

    def _links(self, mine: Matrix, its: Matrix, links: Places, rows: Places) -> Matrix:
        """Mutual links: 1/t if t people, the attacked person among them, are nearest to their nearest released row."""
        found, where = np.unique(links, return_inverse=True)
        near, apart = nearest(mine, its[found], min(_TIED, len(mine)))
        alike = apart <= apart[:, :1] + _SLACK * (1.0 + apart[:, :1])
        own = (self.whose[near][where] == self.whose[rows][:, None]) & alike[where]
        people = np.where(alike, self.whose[near], -1)
        count = np.array([len(np.unique(each[each >= 0])) for each in people])
        return np.asarray(own.any(axis=1) / count[where])

    def _isolated(self, released: SortedRows, rng: np.random.Generator) -> Matrix:
        """For each row, the share of descriptions that isolate its person, times the number of people."""
        ordered = np.array([column.grid is not None for column in self.codec.columns])
        most = int(np.clip(100 * len(ordered), _PREDICATES, _MOST_PREDICATES))
        kinds = [single_conditions(released, ordered, most, rng)]
        kinds += [conjunctions(released, ordered, most, rng)] if len(ordered) > 1 else []
        found, tried = np.zeros(self.persons), 0
        for predicates in kinds:
            if len(predicates):
                counts, places = find_fits(predicates, self.rows)
                found += np.bincount(self.whose[places[counts == 1]], minlength=self.persons)
                tried += len(predicates)
        return np.asarray(found[self.whose] * (self.persons / max(1, tried)))

    def _joined(self, values: Matrix, rows: Places, rng: np.random.Generator) -> Matrix:
        """Whether two random halves of the columns lead to the same released row."""
        names = [field.name for field in self.codec.schema.encoded]
        first, second = (
            pick_near(np.ascontiguousarray(values[:, here]), self.values[np.ix_(rows, here)], 1, rng)[:, 0]
            for here in (self._coordinates(half) for half in split_columns(names, rng))
        )
        return np.asarray(first == second, dtype=np.float64)

    def _coordinates(self, columns: Sequence[str]) -> Places:
        blocks = [np.arange(block.start, block.stop) for block in self.codec.layout if block.column in columns]
        return np.concatenate(blocks)

    def _inferred(self, values: Matrix, released: Sequence[Column], rows: Places) -> Iterator[Scored]:
        """Whether the released row nearest by all other columns holds a person's value of a column."""
        fields = self.codec.schema.encoded
        owner = np.empty(values.shape[1], dtype=np.int64)
        for place, field in enumerate(fields):
            owner[self._coordinates([field.name])] = place
        near = nearest_without_each_column(values, self.values[rows], owner, 1)[:, :, 0]
        for place, (field, mine, its) in enumerate(zip(fields, self.columns, released, strict=True)):
            truth, guess = mine.values[rows], its.values[near[place]]
            right = np.abs(guess - truth) <= self.tolerances[place] + _SLACK * np.abs(truth)
            present = ~mine.absent[rows]
            hits = (right & ~its.absent[near[place]]).astype(np.float64)
            yield f"shadow-attribute-inference/{field.name}", rows[present], hits[present]


_SCORES = ("distance", "relative", "density-ratio", "density-ratio-rank")


def _memberships(distances: Matrix, others: Matrix, way: str) -> dict[str, Matrix]:
    """Scores of membership from distances to released rows and to other people, the nearest first."""
    tiny = 1e-3 * (float(np.median(others[:, 0])) or 1.0)  # keeps a distance of 0 from being infinitely suspect
    near, density = (np.log(others[:, place] + tiny) - np.log(distances[:, place] + tiny) for place in (0, -1))
    if way == "rank":
        return {"density-ratio-rank": density}
    return {"distance": -distances[:, 0], "relative": near, "density-ratio": density}


def _frozen(values: Matrix) -> Matrix:
    """Rows that nobody may write to, so that searches among them share their boxes."""
    values = np.ascontiguousarray(values)
    values.setflags(write=False)
    return values


def _whitened(values: Matrix, white: Matrix) -> Matrix:
    """Coordinates without correlations; their last digits, which differ between machines, are dropped."""
    return _frozen(np.round(values @ white, 9))


def _ranked(values: Matrix, among: Matrix, layout: Layout) -> Matrix:
    """Numbers replaced by their rank among those of some people, spread to variance 1."""
    ranked = values.copy()
    for block in layout:
        if block.kind is BlockKind.NUMBER:
            ordered = np.sort(among[:, block.start])
            places = sum(np.searchsorted(ordered, values[:, block.start], side) for side in ("left", "right"))
            ranked[:, block.start] = np.sqrt(12.0) * (places / (2 * len(ordered)) - 0.5)
    return ranked


_EXCESS = (
    "{term} on shadow releases: {what}. Each shadow release of the same method and table has other members and "
    "controls; the verdict is on the method"
)
_NEAREST = "the share of people whose nearest released row has nobody nearer to it"
_MEMBERSHIP = "how well {score} separates members from controls"
_SPOKEN = {
    "distance": ("distance", "the distance to the nearest released row"),
    "relative": ("relative distance", "that distance relative to the one to the nearest other person"),
    "density-ratio": ("density ratio", "the density of released rows around a person relative to that of other people"),
    "density-ratio-rank": ("density ratio, ranks", "the same ratio of densities for numbers as ranks"),
}


def _numbers() -> Iterator[Number]:
    linkage = _EXCESS.format(term="Record linkage", what=_NEAREST)
    yield Number("shadow-linkage-euclid", "Record linkage, shadow releases", SHARE).means(linkage)
    yield Number("shadow-linkage-mahalanobis", "Record linkage, shadow releases, Mahalanobis distance", SHARE).means(
        _EXCESS.format(term="Record linkage by Mahalanobis distance", what=_NEAREST)
    )
    yield Number("shadow-linkage-rank", "Record linkage, shadow releases, ranks", SHARE).means(
        _EXCESS.format(term="Record linkage by ranks", what=_NEAREST)
    )
    yield Number("shadow-linkability", "Linkability of two halves, shadow releases", SHARE).means(
        _EXCESS.format(
            term="Linkability", what="how often the two halves of a person's columns lead to the same released row"
        )
    )
    yield Number("shadow-attribute-inference/", "Attribute inference, shadow releases", SHARE, figure="").means(
        _EXCESS.format(
            term="Attribute inference of {column}",
            what="how often the released row nearest by all other columns has the person's value",
        )
    )
    yield Number("shadow-singling-out", "Singling out, shadow releases", SHARE).means(
        _EXCESS.format(
            term="Singling out",
            what="the share of descriptions, each unique in the release, that fit one person alone, were all people "
            "members",
        )
    )
    for name, (spoken, score) in _SPOKEN.items():
        yield Number(f"shadow-auc-{name}", f"Membership inference, shadow releases, {spoken}").means(
            _EXCESS.format(term="Membership inference", what=f"AUC, {_MEMBERSHIP.format(score=score)}")
        )
    for name, (spoken, score) in _SPOKEN.items():
        yield Number(
            f"shadow-tpr-{name}", f"Membership inference, shadow releases, TPR at 1\u00a0% FPR, {spoken}", SHARE
        ).means(
            _EXCESS.format(
                term="Membership inference",
                what=f"true positive rate at a false positive rate of 1 %, {_MEMBERSHIP.format(score=score)}",
            )
        )


SHADOWS = Measure(
    "shadow-releases",
    Family.ATTACK,
    "Shokri et al. 2017; Giomi et al. 2023; van Breugel et al. 2023",
    lambda _: (),
).finds(
    *(
        dataclasses.replace(each, figure="attacks/scores") if each.name.startswith("shadow-auc-") else each
        for each in _numbers()
    )
)


def shadow_findings(estimates: Mapping[str, Estimate]) -> tuple[Finding, ...]:
    """A finding of each attack: success on members and controls, with intervals that hold together."""
    return tuple(
        dataclasses.replace(finding, people_interval=estimates[finding.name].people)
        for finding in SHADOWS.findings((name, _found(name, each)) for name, each in estimates.items())
    )


def _found(name: str, estimate: Estimate) -> Values:
    note = f"; {estimate.releases} shadow releases, {estimate.controls:,} attacks on controls"
    low, high = estimate.table
    if name.startswith("shadow-auc-"):
        return Values(estimate.value, estimate.table, 0.5, attempts=estimate.controls, note=note)
    control = FALSE_ALARMS if name.startswith("shadow-tpr-") else max(0.0, estimate.members - estimate.value)
    base = 0.0 if name.startswith("shadow-tpr-") else control
    value = min(1.0, base + estimate.value)
    return Values(value, (min(base + low, value), max(base + high, value)), control, control, estimate.controls, note)
