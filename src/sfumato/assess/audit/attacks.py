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

from sfumato.assess.algebra import SHARE, SIZE, Measure, Number, Values
from sfumato.assess.attacks.inference import tolerance_of
from sfumato.assess.attacks.linkage import pick_near, split_columns, whitening
from sfumato.assess.attacks.singling import SortedRows, conjunctions, find_fits, single_conditions
from sfumato.assess.audit.few_shadows import STRICTER, attack_few
from sfumato.assess.audit.intervals import FALSE_ALARMS, AreaSeries, Estimate, RateSeries, Series, TailSeries
from sfumato.assess.audit.likelihood import LikelihoodSeries
from sfumato.assess.findings import Family, Finding
from sfumato.assess.study import Column, ColumnPair, Matrix, Places, read_columns
from sfumato.core.arrays import Bools
from sfumato.core.neighbours import nearest, nearest_persons, nearest_without_each_column
from sfumato.core.records import BlockKind, Layout
from sfumato.tables.codec import Codec

EXPOSED = "shadow-exposed-"
"""How findings on the most exposed people begin."""

__all__ = ["EXPOSED", "SHADOWS", "AttackedPeople", "NormalScoreColumns", "shadow_findings"]

NormalScoreColumns = tuple[str, Places, Matrix]
"""Name of an attack, the places of the rows that were attacked, and the success or score of each."""

_NEAR = 5  # neighbours whose distance tells a density
_PREDICATES, _MOST_PREDICATES = 1_000, 6_000  # of each kind of description; more of many columns, which isolate fewer
_PAIRS = 2e9  # products of attacked rows, released rows and coordinates in one search
_FEWEST, _MOST = 1_500, 6_000  # people attacked in a release
_TIED = 6  # people who are equally near to a released row, of whom a link may name each
_SLACK = 1e-9
_TINY = 1e-3  # keeps a distance of 0 from being infinitely suspect
_DECLARED = "shadow-attribute-inference-declared"
_SHARE_EXPOSED, _FEWEST_EXPOSED, _MOST_EXPOSED = 0.05, 40, 200


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
    declared: tuple[str, ...]  # columns that an outsider is declared to know, if any
    exposed: Places  # rows of the most exposed people, one of each
    sampled: Places  # rows of as many people at random

    @classmethod
    def of(
        cls, original: pa.Table, codec: Codec, persons: Places | None, declared: Sequence[str] = (), seed: int = 0
    ) -> AttackedPeople:
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
        known = tuple(field.name for field in fields if field.name in declared)
        known = () if len(known) == len(fields) else known
        exposed, sampled = most_exposed(others[:, -1], whose, np.random.default_rng(seed))
        return cls(
            codec, columns, values, ranks, white, whitened, others, other_ranks, tolerances, whose, rows,
            known, exposed, sampled,
        )  # fmt: skip

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
        if self.declared:
            rates = [
                *(f"{_DECLARED}/{name}" for name in columns if name not in self.declared),
                "shadow-linkage-declared",
            ]
            made |= {name: RateSeries(self.persons) for name in rates}
        made |= {
            name: RateSeries(self.persons)
            for each in STRICTER
            if each.endswith("/")
            for name in map(each.__add__, columns)
        }
        made |= {name: AreaSeries(self.persons) for name in STRICTER if not name.endswith("/")}
        made |= {name: LikelihoodSeries(self.persons) for name in ("shadow-auc-likelihood", "shadow-exposed-auc")}
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

    def attack(
        self, released: pa.Table, rows: Places, rng: np.random.Generator, *, all_of_them: bool = False
    ) -> Iterator[NormalScoreColumns]:
        """Success or score of the attacks of `series` with a released table on the given rows.

        Those that cost much run if all of them are asked for.
        """
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
        if self.declared:
            yield from self._by_declared(values, made, rows)
        for name, these in (("shadow-auc-likelihood", self.sampled), ("shadow-exposed-auc", self.exposed)):
            yield name, these, self._statistics(values, ranks, made, these)
        if all_of_them:
            yield from attack_few(self, values, made, rows, rng)

    def _by_declared(self, values: Matrix, released: Sequence[Column], rows: Places) -> Iterator[NormalScoreColumns]:
        """Record linkage and attribute inference of an outsider who knows the declared columns alone."""
        here = self.coordinates(self.declared)
        mine, its = _frozen(self.values[:, here]), _frozen(values[:, here])
        near = nearest(its, mine[rows], 1)[0][:, 0]
        yield "shadow-linkage-declared", rows, self._links(mine, its, near, rows)
        for place, field in enumerate(self.codec.schema.encoded):
            if field.name not in self.declared:
                yield f"{_DECLARED}/{field.name}", *self._hits(place, released[place], near, rows)

    def _statistics(self, values: Matrix, ranks: Matrix, released: Sequence[Column], rows: Places) -> Matrix:
        """What an attacker who knows the algorithm compares between releases with and without a person.

        Distances to the nearest and the fifth released row, of numbers as they are and as ranks, the density of
        released rows around the person, and how many released cells are equal to the person's, and how rare they are.
        """
        found = []
        for mine, its in ((self.values, values), (self.ranks, ranks)):
            distances = nearest(its, mine[rows], min(_NEAR, len(its)))[1]
            found += [-np.log(distances[:, 0] + _TINY), -np.log(distances[:, -1] + _TINY)]
            found.append(np.exp(-0.5 * distances**2).sum(axis=1))
        equal, rare = np.zeros(len(rows)), np.zeros(len(rows))
        for known, made in zip(self.columns, released, strict=True):
            ordered, cells = np.sort(made.values), known.values[rows]
            low, high = (np.searchsorted(ordered, cells, side) for side in ("left", "right"))
            equal += high > low
            rare -= np.log((high - low + 0.5) / (len(ordered) + 1.0))
        return np.column_stack([*found, equal, rare])

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
            for here in (self.coordinates(half) for half in split_columns(names, rng))
        )
        return np.asarray(first == second, dtype=np.float64)

    def coordinates(self, columns: Sequence[str]) -> Places:
        """Coordinates of some columns."""
        blocks = [np.arange(block.start, block.stop) for block in self.codec.layout if block.column in columns]
        return np.concatenate(blocks)

    def _inferred(self, values: Matrix, released: Sequence[Column], rows: Places) -> Iterator[NormalScoreColumns]:
        """Whether the released row nearest by all other columns holds a person's value of a column."""
        fields = self.codec.schema.encoded
        owner = np.empty(values.shape[1], dtype=np.int64)
        for place, field in enumerate(fields):
            owner[self.coordinates([field.name])] = place
        near = nearest_without_each_column(values, self.values[rows], owner, 1)[:, :, 0]
        for place, (field, its) in enumerate(zip(fields, released, strict=True)):
            yield f"shadow-attribute-inference/{field.name}", *self._hits(place, its, near[place], rows)

    def _hits(self, place: int, its: Column, near: Places, rows: Places) -> tuple[Places, Matrix]:
        """Whose value of a column is known, and whether given released rows hold it."""
        mine = self.columns[place]
        truth, guess = mine.values[rows], its.values[near]
        right = np.abs(guess - truth) <= self.tolerances[place] + _SLACK * np.abs(truth)
        present = ~mine.absent[rows]
        return rows[present], (right & ~its.absent[near])[present].astype(np.float64)


def most_exposed(far: Matrix, whose: Places, rng: np.random.Generator) -> tuple[Places, Places]:
    """Rows of the people farthest from their fifth nearest other person, and of as many people at random.

    They are one in twenty, 40 at least and 200 at most; of a person the row that is farthest.
    """
    order = np.lexsort((-far, whose))
    first = order[np.unique(whose[order], return_index=True)[1]]
    count = min(len(first), int(np.clip(_SHARE_EXPOSED * len(first), _FEWEST_EXPOSED, _MOST_EXPOSED)))
    return first[np.argsort(-far[first], kind="stable")[:count]], first[rng.permutation(len(first))[:count]]


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


_FEW_SPOKEN = {
    "classifier": ("classifier", "a classifier of released rows against a reference sample"),
    "frequencies": ("frequencies", "how much more frequent a person's cells are in the release than among others"),
    "extremes": ("extreme values", "whether the outermost values of a column are released, of people who hold one"),
    "likelihood": ("likelihood ratio", "a likelihood ratio per person that other shadow releases taught"),
}


def _more_numbers() -> Iterator[Number]:
    yield Number("shadow-exposed-auc", "Membership inference of the most exposed, shadow releases").means(
        _EXCESS.format(
            term="Membership inference",
            what="AUC of a likelihood ratio per person that other shadow releases taught, on the people farthest from "
            "others",
        )
    )
    yield Number("shadow-exposed-epsilon", "Empirical epsilon, lower bound", SIZE).means(
        "What the same attack shows of epsilon: no method with a smaller one could be attacked as well, with 95 % "
        "confidence. It can show that a bound does not hold, never that one does"
    )
    yield Number("shadow-linkage-declared", "Record linkage by declared columns, shadow releases", SHARE).means(
        _EXCESS.format(term="Record linkage by the declared quasi-identifiers", what=_NEAREST)
    )
    for kind, how in (
        ("declared", "released row nearest by the declared quasi-identifiers has the person's value"),
        ("model", "model that boosted trees learn from the release names the person's value"),
        ("counts", "linear reconstruction from many counts finds one bit of the person's value"),
    ):
        yield Number(
            f"shadow-attribute-inference-{kind}/", f"Attribute inference, {kind}, shadow releases", SHARE, figure=""
        ).means(_EXCESS.format(term="Attribute inference of {column}", what=f"how often the {how}"))
    for name, (spoken, score) in _FEW_SPOKEN.items():
        yield Number(f"shadow-auc-{name}", f"Membership inference, shadow releases, {spoken}").means(
            _EXCESS.format(term="Membership inference", what=f"AUC, {_MEMBERSHIP.format(score=score)}")
        )


def _numbers() -> Iterator[Number]:
    yield from _more_numbers()
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
    if name.startswith(("shadow-auc-", "shadow-exposed-auc")):
        return Values(estimate.value, estimate.table, 0.5, attempts=estimate.controls, note=note)
    control = FALSE_ALARMS if name.startswith("shadow-tpr-") else max(0.0, estimate.members - estimate.value)
    base = 0.0 if name.startswith("shadow-tpr-") else control
    value = min(1.0, base + estimate.value)
    return Values(value, (min(base + low, value), max(base + high, value)), control, control, estimate.controls, note)
