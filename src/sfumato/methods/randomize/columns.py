"""A column of records as a noise specification sees it: places of its domain out of coordinates, and answers back."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.core.distributions.domains import UNITS, Dates, Integers, Labels, Reals
from sfumato.core.distributions.noise import DiscreteGaussian, DiscreteLaplace, exact
from sfumato.core.distributions.operators import Additive, Membership, Operator
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError, PrivacyRefusal, SchemaError
from sfumato.core.records import CATEGORY_SCALE, Answers, Block, BlockKind, Extent, Layout, columns_of

__all__ = [
    "MISSING",
    "Places",
    "RandomizedColumn",
    "fit_column",
    "places_of_layout",
    "read_numbers",
    "spec_for_epsilon",
    "write_numbers",
]

MISSING = ""
"""The label that stands for a missing cell, in a specification of labels that has it."""


@dataclass(frozen=True)
class Places:
    """The coordinates of a column: those of its values, and the one that says what is missing."""

    block: Block
    gap: Block | None

    @property
    def extent(self) -> Extent:
        """The values that the column may take."""
        assert self.block.extent is not None
        return self.block.extent

    @property
    def is_number(self) -> bool:
        """Whether the column holds numbers or dates, not labels."""
        return not self.extent.labels

    def has_observed(self, spec: NoiseSpec) -> bool:
        """Say whether a specification made for the column tells what was read off the data."""
        labels = spec.domain.values if isinstance(spec.domain, Labels) else ()
        return not self.extent.declared or len(labels) > len(self.extent.labels)


@dataclass(frozen=True)
class RandomizedColumn:
    """One column with its specification.

    ``answers`` is the place of each answer among the column's labels, -1 for a missing cell; empty for numbers.
    ``labels_gap`` says that a missing cell is one more label.
    """

    places: Places
    spec: NoiseSpec
    answers: tuple[int, ...] = ()
    labels_gap: bool = False

    @property
    def name(self) -> str:
        """The column's name."""
        return self.places.block.column

    @property
    def passes_missing(self) -> bool:
        """Whether there are missing cells that stay so."""
        return self.places.gap is not None and not self.labels_gap

    @property
    def moves(self) -> bool:
        """Whether answers are numbers or dates that may lie beyond the column's bounds."""
        return self.places.is_number and not self.spec.recodes

    @property
    def grid(self) -> tuple[str, float, float] | None:
        """The grid on which answers lie, where they are plain numbers."""
        released = self.spec.released
        if not self.moves or self.places.extent.dates or isinstance(released, Labels):
            return None
        return self.name, float(released.low), float(released.step)

    def randomize(self, values: Floats, rng: np.random.Generator) -> Answers | None:
        """Replace the column's cells by answers; a missing cell that is no label stays missing.

        If answers are of another kind than the cells they come back, and each cell is replaced by a value
        that fits its answer best.
        """
        absent = _absent(values, self.places)
        if self.places.is_number:
            return self._randomize_numbers(values, ~absent, rng)
        return self._randomize_labels(values, absent, rng)

    def _randomize_numbers(self, values: Floats, present: Bools, rng: np.random.Generator) -> Answers | None:
        block, domain = self.places.block, _numeric_domain(self)
        numbers = read_numbers(values[present, block.start], block, domain)
        try:
            codes = domain.encode(numbers)
        except SchemaError as error:
            raise SchemaError(f"column {self.name!r}: {error}") from None
        sent = self.spec.operator.randomize(codes, rng)
        places = _fitting(self.spec.operator, sent, rng) if self.spec.recodes else None
        answers = self.spec.decode_output(sent) if places is None else domain.decode(places)
        values[present, block.start] = write_numbers(answers, block, domain)
        return None if places is None else self._answers(sent, present)

    def _answers(self, sent: Ints, asked: Bools) -> Answers:
        codes = np.full(len(asked), -1, dtype=np.int64)
        codes[asked] = sent
        released = self.spec.released
        if not isinstance(released, Labels):
            return Answers(self.name, codes, most=released.size - 1)
        if MISSING in released.values:
            codes[codes == released.values.index(MISSING)] = -1
        return Answers(self.name, codes, released.values, ordered=self.places.is_number)

    def _randomize_labels(self, values: Floats, absent: Bools, rng: np.random.Generator) -> Answers | None:
        assert isinstance(self.spec.domain, Labels)
        place = {label: index for index, label in enumerate(self.spec.domain.values)}
        known = _array([place.get(label, -1) for label in (*self.places.extent.labels, MISSING)])
        codes = np.where(absent, len(known) - 1, _label_codes(values, self.places))
        asked = np.full(len(values), True) if self.labels_gap else ~absent
        truth = known[codes[asked]]
        strange = int((truth < 0).sum())
        if strange:
            raise SchemaError(
                f"column {self.name!r} has {strange} values that are none of the {len(place)} labels of its "
                "specification; add them there, or fix them"
            )
        sent = self.spec.operator.randomize(truth, rng)
        shown = _fitting(self.spec.operator, sent, rng) if self.spec.recodes else sent
        _write_labels(values, self.places, np.flatnonzero(asked), _array(self.answers)[shown])
        return self._answers(sent, asked) if self.spec.recodes else None


def places_of_layout(layout: Layout) -> tuple[Places, ...]:
    """Pair the coordinates of every column with those that say what is missing in it."""
    return tuple(Places(block, gap) for block, gap in columns_of(layout))


def fit_column(places: Places, spec: NoiseSpec) -> RandomizedColumn:
    """Put a column and its specification together.

    Raises
    ------
    SchemaError
        If the one has values that the other cannot hold.
    """
    name = places.block.column
    if places.is_number:
        if isinstance(spec.domain, Labels):
            raise SchemaError(
                f"column {name!r} holds numbers and its specification labels; declare the column nominal, or specify "
                "numbers"
            )
        _check_dates(places.block, spec)
        return RandomizedColumn(places, spec)
    return _fit_labels(places, spec)


def _fit_labels(places: Places, spec: NoiseSpec) -> RandomizedColumn:
    name, labels = places.block.column, places.extent.labels
    if not isinstance(spec.domain, Labels):
        raise SchemaError(
            f"column {name!r} holds labels and its specification numbers; declare the column integer or continuous, or "
            "specify labels"
        )
    place = {label: index for index, label in enumerate(labels)}
    labels_gap = MISSING in spec.domain.values and MISSING not in place
    if labels_gap and places.gap is None:
        raise SchemaError(
            f"the specification of column {name!r} has a label for missing cells (the empty text) and no cell is "
            "missing; leave the label out"
        )
    if labels_gap:
        place[MISSING] = -1
    # recoded answers leave as they are; cells then hold one of the labels that fit, which are those of the domain
    answers = spec.domain.values if spec.recodes else _labels_of(spec)
    unknown = sum(answer not in place for answer in answers)
    if unknown:
        raise SchemaError(
            f"the specification of column {name!r} has {unknown} labels that the column does not list; declare them "
            "among its categories in the schema"
        )
    return RandomizedColumn(places, spec, tuple(place[answer] for answer in answers), labels_gap)


def _numeric_domain(column: RandomizedColumn) -> Integers | Reals:
    domain = column.spec.domain
    assert not isinstance(domain, Labels)
    return domain


def _labels_of(spec: NoiseSpec) -> tuple[str, ...]:
    assert isinstance(spec.released, Labels)
    return spec.released.values


def _fitting(operator: Operator, sent: Ints, rng: np.random.Generator) -> Ints:
    """A place for each answer, of those that send it most likely: the middle one of a class, else any of them."""
    if isinstance(operator, Membership):
        classes = np.array(operator.cells)
        order, sizes = np.argsort(classes, kind="stable"), np.bincount(classes)
        return np.asarray(order[np.cumsum(sizes) - sizes + sizes // 2][sent], dtype=np.int64)
    seen, where = np.unique(sent, return_inverse=True)
    found = np.empty(len(sent), dtype=np.int64)
    for code, chances in enumerate(operator.probabilities(seen)):
        likely = np.flatnonzero(chances >= chances.max() * (1.0 - 1e-9))
        rows = np.flatnonzero(where == code)
        found[rows] = rng.choice(likely, size=len(rows))
    return found


def _absent(values: Floats, places: Places) -> Bools:
    if places.gap is None:
        return np.zeros(len(values), dtype=np.bool_)
    return np.asarray(values[:, places.gap.start] > 0.5)


def _label_codes(values: Floats, places: Places) -> Ints:
    block, extent = places.block, places.extent
    if block.kind is BlockKind.CATEGORY:
        return np.asarray(np.argmax(values[:, block.where], axis=1), dtype=np.int64)
    drawn = np.rint(values[:, block.start] * extent.unit + extent.origin)
    return np.clip(drawn, 0, len(extent.labels) - 1).astype(np.int64)


def _write_labels(values: Floats, places: Places, rows: Ints, answers: Ints) -> None:
    block, extent = places.block, places.extent
    values[np.ix_(rows, np.arange(block.start, block.stop))] = block.fill  # what a missing cell has
    present = answers >= 0
    there, labels = rows[present], answers[present]
    if block.kind is BlockKind.CATEGORY:
        values[there, block.where] = 0.0
        values[there, block.start + labels] = CATEGORY_SCALE
    else:
        values[there, block.start] = (labels - extent.origin) / extent.unit
    if places.gap is not None:
        values[rows, places.gap.start] = np.where(present, 0.0, 1.0)


def _array(numbers: Any) -> Ints:
    return np.array(numbers, dtype=np.int64)


_FINENESS = (
    1000  # places that a range without a step of its own has at least; a power of ten gives at most ten times it
)


def spec_for_epsilon(places: Places, epsilon: float, *, allow_observed: bool, pass_missing: bool) -> NoiseSpec:
    """Specification that spends epsilon on one column.

    Labels get the k-ary response that keeps the most information, numbers Laplace noise with a scale of range / epsilon
    on the column's own step. A missing cell of a column of labels is one more label.

    Raises
    ------
    PrivacyRefusal
        If the domain would be read off the data.
    OptionError
        If the column has no bounds at all.
    """
    extent, name = places.extent, places.block.column
    labels_gap = bool(extent.labels) and places.gap is not None and not pass_missing and MISSING not in extent.labels
    if not allow_observed and (labels_gap or not extent.declared):
        raise _refusal(places, labels_gap=labels_gap and extent.declared)
    if extent.labels:
        labels = (*extent.labels, MISSING) if labels_gap else extent.labels
        if len(labels) < 2:
            raise OptionError(f"column {name!r} has a single label, so there is nothing to hide; drop the column")
        return NoiseSpec(Labels(labels), {"name": "response", "epsilon": epsilon})
    if extent.low is None or extent.high is None:
        raise OptionError(
            f"column {name!r} is declared without a lower and an upper bound, so no noise hides every number of it; "
            "declare both in the schema, or give a specification with --spec"
        )
    if not extent.low < extent.high:
        raise OptionError(f"column {name!r} has a single value, so there is nothing to hide; drop the column")
    domain = _dates_between(extent) if extent.dates else _numbers(extent.low, extent.high, extent.step)
    scale = float((exact(domain.high) - exact(domain.low)) / exact(epsilon))
    return NoiseSpec(domain, {"name": "laplace", "scale": scale})


def _refusal(places: Places, *, labels_gap: bool) -> PrivacyRefusal:
    name = places.block.column
    if labels_gap:
        return PrivacyRefusal(
            f"column {name!r} has missing cells: that there are some is read off the data; list the empty text among "
            "the labels of a specification with --spec, publish which are missing with --pass-missing, or allow it "
            "with --allow-observed"
        )
    what = "categories" if places.extent.labels else "bounds"
    return PrivacyRefusal(
        f"the {what} of column {name!r} were read off the data, so no guarantee would hold for outliers; "
        "declare them in the schema, give a specification with --spec, or allow it with --allow-observed"
    )


def _numbers(low: float, high: float, step: float | None) -> Integers | Reals:
    """Domain of numbers between two bounds; without a step on a decimal grid, a little wider if need be."""
    if step == 1.0 and low.is_integer() and high.is_integer():
        return Integers(int(low), int(high))
    grid = float(f"1e{math.floor(math.log10((high - low) / _FINENESS))}") if step is None else step
    steps = math.ceil((exact(high) - exact(low)) / exact(grid))
    return Reals(low, float(exact(low) + steps * exact(grid)), grid)


_NEAR = 1e-9  # part of the range by which arithmetic may carry a number beyond its bound
_WHOLE = 1e-6  # how far from a whole number arithmetic may carry one
_SCALES, _DEVIATIONS = 8.0, 5.0  # of noise that dates have room for beyond their bounds: all but 2 in 10,000 answers


def read_numbers(coordinates: Floats, block: Block, domain: Integers | Reals) -> Floats | Ints:
    """Numbers behind coordinates; dates are counted in the unit of the domain, and what is below it is cut off."""
    if not isinstance(domain, Dates):
        numbers = coordinates * float(block.scale or 1.0) + float(block.centre or 0.0)
        return _snap_to_domain(numbers, domain)
    extent = _extent(block)
    counts = np.rint(coordinates * extent.unit + extent.origin).astype(np.int64)
    return domain.counts(_as_moments(counts, extent))


def write_numbers(numbers: Floats | Ints, block: Block, domain: Integers | Reals) -> Floats:
    """Coordinates of numbers; of dates that a column cannot hold, those of the first or the last that it can."""
    if not isinstance(domain, Dates):
        return np.asarray((numbers - float(block.centre or 0.0)) / float(block.scale or 1.0))
    extent = _extent(block)
    first, last = _room(domain, extent)
    moments = domain.moments(np.clip(np.rint(numbers).astype(np.int64), first, last))
    counts = moments.view("datetime64[us]").astype(f"datetime64[{_unit(extent)}]").view(np.int64)
    return np.asarray((counts - extent.origin) / extent.unit)


def _dates_between(extent: Extent) -> Dates:
    """Domain of the dates of a column between its bounds, by its step."""
    assert extent.low is not None
    assert extent.high is not None
    counts = np.array([extent.low, extent.high], dtype=np.int64)
    low, high = Dates(0, 1, extent.dates).counts(_as_moments(counts, extent)).tolist()
    return Dates(low, high, extent.dates)


def _check_dates(block: Block, spec: NoiseSpec) -> None:
    """Refuse a specification that does not fit a column of dates, or one of dates for another column.

    Raises
    ------
    SchemaError
        If the one counts in numbers and the other in dates.
    OptionError
        If answers lie between two steps of the column, or outside what it can hold.
    """
    domain, extent, name = spec.domain, _extent(block), block.column
    if isinstance(domain, Dates) != bool(extent.dates):
        raise SchemaError(
            f"column {name!r} holds dates and its specification none; give its domain the kind dates"
            if extent.dates
            else f"the specification of column {name!r} is of dates and the column holds none; specify numbers"
        )
    if not isinstance(domain, Dates):
        return
    units = list(UNITS)
    if units.index(domain.unit) > units.index(extent.dates):
        raise OptionError(
            f"the specification of column {name!r} counts in {domain.unit}s and the column in {extent.dates}s; take "
            f"the unit {extent.dates}"
        )
    released = spec.released
    if not spec.recodes and not isinstance(released, Labels) and float(released.step) % 1.0:
        raise OptionError(f"the law of column {name!r} rounds to parts of a {domain.unit}; use a whole number of them")
    first, last = _room(domain, extent)
    reach = _reach(spec)
    if domain.low - reach < first or domain.high + reach > last:
        raise OptionError(
            f"the noise of column {name!r} would carry dates beyond what the column can hold (years 1 to 9999, or the "
            "hours of a day); use less noise, or a law that stays inside, such as keep-or-replace or shift-modulo"
        )


def _reach(spec: NoiseSpec) -> float:
    """How far beyond the domain answers must have room."""
    operator = spec.operator
    if not isinstance(operator, Additive):
        return 0.0
    law = operator.law
    if isinstance(law, DiscreteLaplace):
        return _SCALES * law.scale
    return _DEVIATIONS * law.sd if isinstance(law, DiscreteGaussian) else float(law.steps)


def _room(domain: Dates, extent: Extent) -> tuple[int, int]:
    """First and last date that a column can hold, as the domain counts."""
    first, last = domain.counts(_as_moments(np.array([extent.first, extent.last], dtype=np.int64), extent)).tolist()
    return int(first) + 1 if domain.unit == "month" else int(first), int(last)


def _as_moments(counts: Ints, extent: Extent) -> Ints:
    return np.asarray(counts.view(f"datetime64[{_unit(extent)}]").astype("datetime64[us]").view(np.int64))


def _unit(extent: Extent) -> str:
    """NumPy's name of what a column of dates counts in: days also where it is by months."""
    return UNITS["day" if extent.dates == "month" else extent.dates]


def _extent(block: Block) -> Extent:
    assert block.extent is not None
    return block.extent


def _snap_to_domain(numbers: Floats, domain: Integers | Reals) -> Floats:
    """Undo what arithmetic in coordinates did to numbers: a hair beyond a bound is the bound."""
    if isinstance(domain, Integers):
        whole = np.rint(numbers)
        return np.where(np.abs(numbers - whole) <= _WHOLE, whole, numbers)
    hair = _NEAR * (domain.high - domain.low)
    near = (numbers >= domain.low - hair) & (numbers <= domain.high + hair)
    return np.where(near, np.clip(numbers, domain.low, domain.high), numbers)
