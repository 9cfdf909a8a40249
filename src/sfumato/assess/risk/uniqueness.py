"""Who is alone with a value, with a combination of coarse values or a rare category, and whether the release shows it.

Where only some rows of large tables are measured, how people stand in a column is counted over all rows first: who is
alone with a value among some people need not be alone among all. A combination that one person of the original has and
one released row has is a match that an intruder believes in.

Rows alike in the columns that an outsider knows, be it by labels of a hierarchy, a postcode by its first places, a date
by its month: how few they are, and what they give away of the other columns.

k-anonymity, l-diversity and t-closeness of a table, whoever made it [Sweeney 2002; Machanavajjhala et al. 2007; Li, Li
& Venkatasubramanian 2007].
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.assess.algebra import SCORE, SHARE, Measure, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family, Finding, redraw_interval, wilson
from sfumato.assess.risk.groups import measure_diversity, places_of_values
from sfumato.assess.risk.population import population_risk
from sfumato.assess.study import (
    CATEGORIES,
    Column,
    ColumnPair,
    Matrix,
    Places,
    Study,
    once,
    read_column,
    row_keys,
    share_alone,
    value_codes,
)
from sfumato.core.arrays import count_persons
from sfumato.tables.codec import Codec
from sfumato.tables.dates import is_monthly
from sfumato.tables.recoding import column_and_level, label_values
from sfumato.tables.schema import Domain, Field, Kind, Schema

__all__ = [
    "KNOWN_CLASSES",
    "NEAR",
    "RAREST_CATEGORY",
    "UNIQUENESS",
    "NumberSteps",
    "PopulationUniqueness",
    "chance_of",
    "class_findings",
    "known_as",
    "matched",
    "population_uniqueness",
    "standing_in",
    "with_known_labels",
]

NEAR = 8
"""Numbers to either side of a unique one that chance would show as often."""


@dataclass(frozen=True, eq=False, repr=False)
class PopulationUniqueness:
    """How some rows of the original, and rows held out, stand in one column of the whole tables.

    They are those that are measured, or others drawn from all; ``persons`` and ``held_persons`` tell whose they are.
    ``frequencies`` count persons of the original with a row's value, -1 if its cell is missing; ``shown`` tells
    whether the released table shows it, ``chance`` how often it would show a number that one alone holds if it knew
    nobody. ``fewest`` are the persons who hold the rarest category that is released, None
    where none is, and the rarest of all; None for numbers.
    """

    frequencies: Places
    shown: NDArray[np.bool_]
    chance: NDArray[np.float64]
    control_frequencies: Places
    control_shown: NDArray[np.bool_]
    fewest: tuple[int | None, int] | None
    persons: Places | None = None
    held_persons: Places | None = None

    def take(self, inside: Places, outside: Places) -> PopulationUniqueness:
        """That of some rows."""
        held = (self.control_frequencies[outside], self.control_shown[outside])
        persons = None if self.persons is None else self.persons[inside]
        whose = persons, None if self.held_persons is None else self.held_persons[outside]
        return PopulationUniqueness(
            self.frequencies[inside], self.shown[inside], self.chance[inside], *held, self.fewest, *whose
        )


def standing_in(study: Study, place: int) -> PopulationUniqueness:
    """How people stand in a column, in the whole tables where these were larger than what is measured."""
    if study.standings:
        return study.standings[place]
    whose = (study.persons, study.held_persons)
    return _uniqueness(study.pairs[place], None if study.held is None else study.held[place], *whose)


def population_uniqueness(
    tables: tuple[pa.Table, pa.Table, pa.Table | None],
    codec: Codec,
    whose: tuple[Places | None, Places | None],
    inside: Places,
    outside: Places,
) -> tuple[PopulationUniqueness, ...]:
    """How some rows stand in the original, the released table and the control group, column after column.

    ``whose`` are the persons of the original and of those held out.
    """
    found = []
    for field in codec.schema.encoded:
        original, released, *held = (read_column(table, codec, field) for table in tables if table is not None)
        whole = _uniqueness(ColumnPair(field, original, released), held[0] if held else None, *whose)
        found.append(whole.take(inside, outside))
    return tuple(found)


def _uniqueness(
    pair: ColumnPair, held: Column | None, persons: Places | None, held_persons: Places | None
) -> PopulationUniqueness:
    columns = [pair.original, pair.released, *(() if held is None else (held,))]
    cuts = np.cumsum([len(column.values) for column in columns])[:-1]
    original, released, *others = np.split(value_codes(*columns), cuts)
    slots = int(max(codes.max(initial=0) for codes in (original, released, *others))) + 1
    frequencies, shown = count_persons(original, persons, slots), np.bincount(released, minlength=slots) > 0
    frequencies[0], shown[0] = -1, False
    outside = others[0] if others else np.empty(0, dtype=np.int64)
    fewest = None
    if pair.field.kind in CATEGORIES:
        many, there = frequencies[1:], shown[1:]
        rarest = many[(many > 0) & there]
        fewest = (int(rarest.min()) if len(rarest) else None, int(many[many > 0].min(initial=len(original))))
    unique, chance = frequencies[original] == 1, np.zeros(len(original))
    if pair.is_number and unique.any():
        steps = NumberSteps.of(pair.field, pair.original.present)
        taken, stands = steps.places(pair.original.present), steps.places(pair.released.present, exact=True)
        own = steps.places(pair.original.values[unique])
        chance[unique] = chance_of(own, np.unique(taken), np.unique(stands))
    whose = (persons, held_persons)
    return PopulationUniqueness(
        frequencies[original], shown[original], chance, frequencies[outside], shown[outside], fewest, *whose
    )


@dataclass(frozen=True)
class NumberSteps:
    """Numbers counted in steps of the smallest gap between two that are held, and dates by the month in months."""

    first: float
    step: float
    monthly: bool

    @classmethod
    def of(cls, field: Field, held: NDArray[np.float64]) -> NumberSteps:
        """Steps of a column in which these numbers are held."""
        if is_monthly(field):
            return cls(0.0, 1.0, monthly=True)
        found = np.unique(held)
        gap = float(np.diff(found).min()) if len(found) > 1 else 1.0
        return cls(float(found[0]) if len(found) else 0.0, gap, monthly=False)

    def places(self, values: NDArray[np.float64], *, exact: bool = False) -> NDArray[np.float64]:
        """Number of steps to each value, or only to those that lie on a step."""
        places = ((_months(values) if self.monthly else values) - self.first) / self.step
        near = np.rint(places)
        on_step = np.abs(places - near) <= 1e-6 * np.maximum(1.0, np.abs(places)) ** 0.5
        return np.asarray(near[on_step] if exact else near)


def chance_of(own: NDArray[np.float64], held: NDArray[np.float64], shown: NDArray[np.float64]) -> NDArray[np.float64]:
    """How often the release shows numbers next to each unique one that nobody of the original holds.

    Numbers are identified by their positions on the steps of a column: unique ones, held ones, and those that are
    shown. A release of unrelated data shows the neighbours as often as the unique one itself. Where all of them are
    held, all count.
    """
    free, seen, every = (np.zeros(len(own)) for _ in range(3))
    for near in (*range(-NEAR, 0), *range(1, NEAR + 1)):
        stands, nobodys = np.isin(own + near, shown), ~np.isin(own + near, held)
        free += nobodys
        seen += nobodys & stands
        every += stands
    return np.asarray(np.where(free > 0, seen / np.maximum(free, 1.0), every / (2 * NEAR)))


def _months(days: NDArray[np.float64]) -> NDArray[np.float64]:
    """Months since 1970 of days since then."""
    return np.asarray(days.astype(np.int64).view("datetime64[D]").astype("datetime64[M]").view(np.int64), np.float64)


def with_known_labels(study: Study) -> Study:
    """The study with a further column for each that an outsider knows by its labels; itself where there is none.

    Both tables and the rows held out have the labels of their own cells.
    """
    return _widened(study) if any(_level(study, each) for each in study.quasi_identifiers) else study


def column_known(study: Study, known: str) -> str:
    """The column of the tables that an outsider knows, be it by its labels."""
    return column_and_level(known, [pair.name for pair in study.pairs])[0]


def known_as(study: Study, known: str) -> str:
    """How an outsider knows a column, in words."""
    level = _level(study, known)
    return f"{column_known(study, known)} at level {level} of its hierarchy" if level else known


def _level(study: Study, known: str) -> int:
    return column_and_level(known, [pair.name for pair in study.pairs])[1]


@once
def _widened(study: Study) -> Study:
    pairs, held = list(study.pairs), None if study.held is None else list(study.held)
    layout, sides = list(study.layout), [[study.original], [study.released]]
    if study.holdout is not None:
        sides.append([study.holdout])
    for known in (each for each in study.quasi_identifiers if _level(study, each)):
        place = next(place for place, pair in enumerate(study.pairs) if pair.name == column_known(study, known))
        pair = study.pairs[place]
        outside = None if study.held is None else study.held[place]
        columns, field = _labelled(known, _level(study, known), pair, outside)
        pairs.append(ColumnPair(field, columns[0], columns[1]))
        if held is not None:
            held.append(columns[2])
        tables = [_texts(column, field) for column in columns]
        codec = Codec.fit(tables[0], Schema((field,)), codes=True)
        start = layout[-1].stop
        layout += [dataclasses.replace(each, start=start + each.start, stop=start + each.stop) for each in codec.layout]
        for side, table in zip(sides, tables, strict=True):
            side.append(codec.encode(table, unseen="mean").values)
    original, released, *holdout = (np.hstack(side) for side in sides)
    return dataclasses.replace(
        study,
        pairs=tuple(pairs),
        held=None if held is None else tuple(held),
        layout=tuple(layout),
        original=original,
        released=released,
        holdout=holdout[0] if holdout else None,
    )


def _labelled(known: str, level: int, pair: ColumnPair, outside: Column | None) -> tuple[list[Column], Field]:
    """A column's labels in the original, the released table and the rows held out, and the field that they share."""
    columns = [pair.original, pair.released, *(() if outside is None else (outside,))]
    values = np.unique(np.concatenate([column.present for column in columns]))
    labels = label_values(pair.field, level, values)
    names = dict.fromkeys(labels if pair.is_number else sorted(labels))
    code = {name: place for place, name in enumerate(names)}
    places: Matrix = np.array([code[label] for label in labels], dtype=np.float64)
    kind = Kind.ORDINAL if pair.is_number else Kind.NOMINAL
    field = Field(known, kind, domain=Domain(categories=tuple(names) or ("*",)))
    return [_placed(column, values, places) for column in columns], field


def _placed(column: Column, values: Matrix, places: Matrix) -> Column:
    found = np.zeros(len(column.values))
    found[~column.absent] = places[np.searchsorted(values, column.present)]
    return Column(found, column.absent)


def _texts(column: Column, field: Field) -> pa.Table:
    """The labels as a table of one column."""
    names = pa.array(field.domain.categories, pa.string())
    return pa.table({field.name: names.take(pa.array(column.values.astype(np.int64), mask=column.absent))})


_PARTS = 10  # numbers are known to the tenth of the table that they lie in
_FEW = 3
_DRAWS = 10
_REDRAWS = 200
_Keys = NDArray[np.uint64]
_NOBODY = "nobody in the original is alone with a combination of coarse values"


def _keys(columns: Sequence[Places]) -> _Keys:
    return row_keys(codes.astype(np.uint64) for codes in columns)


def _count(keys: _Keys, among: _Keys) -> Places:
    """Count how often each key occurs among others; both are sorted."""
    return np.asarray(np.searchsorted(among, keys, "right") - np.searchsorted(among, keys, "left"))


def matched(keys: _Keys, original: _Keys, released: _Keys, *, inside: bool) -> tuple[int, int]:
    """Count the people whom nobody else in the original equals, and those of them who equal exactly one released row.

    Examples
    --------
    >>> keys = np.array([1, 2, 3, 3], dtype=np.uint64)
    >>> matched(keys, keys, np.array([1, 1, 2], dtype=np.uint64), inside=True)
    (2, 1)
    """
    people = np.sort(keys)  # sorted keys are looked up fast
    alone = people[_count(people, np.sort(original)) == (1 if inside else 0)]
    return len(alone), int((_count(alone, np.sort(released)) == 1).sum())


def _run(study: Study) -> Iterator[Stated]:
    rng = study.generator("uniqueness")
    cuts = [pair.cuts(_PARTS) for pair in study.pairs]
    before = [pair.original.codes(cut) + 1 for pair, cut in zip(study.pairs, cuts, strict=True)]
    after = [pair.released.codes(cut) + 1 for pair, cut in zip(study.pairs, cuts, strict=True)]
    held = None if study.held is None else [cells.codes(cut) + 1 for cells, cut in zip(study.held, cuts, strict=True)]
    people = None if study.persons is None else study.attacked(len(study.original), study.generator("unique-people"))
    yield "sample-uniques", Values(_share_alone(before, study, people), baseline=_share_alone(after))
    if len(before) > _FEW:
        some = [rng.choice(len(before), _FEW, replace=False) for _ in range(_DRAWS)]
        mine = [_share_alone([before[at] for at in few], study, people) for few in some]
        theirs = [_share_alone([after[at] for at in few]) for few in some]
        value, redraws = float(np.mean(mine)), rng.choice(mine, size=(_REDRAWS, len(mine))).mean(axis=1)
        yield "sample-uniques-three-columns", Values(value, redraw_interval(value, redraws), float(np.mean(theirs)))
    else:
        yield "sample-uniques-three-columns", NotRun(f"the table has no more than {_FEW} columns")
    yield "unique-matches", _matches(study, before, after, held, rng)


def _held(keys: _Keys, persons: Places | None) -> _Keys:
    """Keys of persons, each once for a person."""
    if persons is None:
        return keys
    codes, places = np.unique(keys, return_inverse=True)
    return np.asarray(codes[np.unique(np.column_stack([places.ravel(), persons]), axis=0)[:, 0]])


def _share_alone(columns: Sequence[Places], study: Study | None = None, people: Places | None = None) -> float:
    """Share of rows whose key no other has; of some people, whom nobody else equals."""
    keys = _keys(columns)
    if study is not None and people is not None:
        among = np.sort(_held(keys, study.persons))
        return float((_count(keys[people], among) == 1).mean())
    return share_alone(keys)


def _matches(
    study: Study,
    before: Sequence[Places],
    after: Sequence[Places],
    held: Sequence[Places] | None,
    rng: np.random.Generator,
) -> Values | NotRun:
    """How many people who are alone have one match, beside columns shuffled and the control group."""
    original, released = _keys(before), _keys(after)
    mine = (
        original if study.persons is None else original[study.attacked(len(original), study.generator("unique-people"))]
    )
    original = _held(original, study.persons)
    people, hits = matched(mine, original, released, inside=True)
    if not people:
        return NotRun(_NOBODY)
    shuffled = _keys([rng.permutation(codes) for codes in after])
    others, caught = 0, 0
    if held is not None:
        theirs = _keys(held)
        if study.held_persons is not None:
            theirs = theirs[study.attacked_outside(len(theirs), study.generator("unique-people"))]
        others, caught = matched(theirs, original, released, inside=False)
    by_chance = matched(mine, original, shuffled, inside=True)[1] / people
    found = Values(hits / people, wilson(hits, people), by_chance, attempts=people)
    if others:
        return replace(found, control=caught / others, control_interval=wilson(caught, others))
    missing = "no rows were held out" if held is None else "nobody held out is alone"
    return replace(found, note=f"; control not run: {missing}")


UNIQUENESS = Measure("uniqueness", Family.PRIVACY, "Bethlehem, Keller & Pannekoek 1990; Sweeney 2002", _run).finds(
    Number("sample-uniques", "Sample uniques", SHARE).means(
        "The share of original records that are unique in their categories and tenths of numbers (sample uniques). "
        "Baseline: the share of unique released rows"
    ),
    Number("sample-uniques-three-columns", "Sample uniques on three columns", SHARE).means(
        "The same if only 3 columns are known, on average over random choices of columns"
    ),
    Number("unique-matches", "Unique matches", SHARE).means(
        "The share of sample uniques whose combination of coarse values is found in exactly one released row. "
        "Baseline: a release with shuffled columns; control: held-out people"
    ),
)


def _run_rarest(study: Study) -> Iterator[Stated]:
    places = [place for place, pair in enumerate(study.pairs) if pair.field.kind in CATEGORIES]
    found = [each for place in places if (each := standing_in(study, place).fewest) is not None]
    fewest = [(shown, all_) for shown, all_ in found if shown is not None]
    if not fewest:
        lacking = "no category of the original stands in the released table" if found else "there are no categories"
        raise NotRun(lacking, applies=False)
    shown, all_ = (float(min(side)) for side in zip(*fewest, strict=True))
    yield "rarest-category", Values(shown, baseline=all_)


RAREST_CATEGORY = Measure(
    "rarest-category",
    Family.PRIVACY,
    "the threshold rule of statistical offices: Hundepool et al. 2012, sec. 4.2",
    _run_rarest,
).finds(
    Number(
        "rarest-category", "Frequency of the rarest released category", Scale((1.0, None), "count").more.owners
    ).means(
        "The number of original people with the rarest category that the release contains; a category of one or a few "
        "people reveals that they are members. Baseline: the rarest category of all"
    )
)


KNOWN_CLASSES = Measure(
    "known-classes",
    Family.PRIVACY,
    "Sweeney 2002; Machanavajjhala et al. 2007; Li, Li & Venkatasubramanian 2007",
    lambda _: (),
).finds(
    Number("equivalence-class-smallest", "Smallest equivalence class (k)", Scale((1.0, None), "count").more).means(
        "k-anonymity of the release for the quasi-identifiers: the size of its smallest equivalence class. Baseline: "
        "the original; 1 means that someone is unique"
    ),
    Number("equivalence-class-diversity", "Fewest values in an equivalence class (l)", Scale((1.0, None)).more).means(
        "l-diversity of the release: the fewest different values of a further column in an equivalence class, missing "
        "counted as one; 1 means that the quasi-identifiers reveal it"
    ),
    Number("equivalence-class-closeness", "Largest distance of an equivalence class (t)", SCORE).means(
        "t-closeness of the release: the largest distance between the values of a further column in an equivalence "
        "class and in the whole table; 0 reveals nothing more"
    ),
    Number("population-reidentified", "Expected re-identifications", Scale((0.0, None), "count", public=False)).means(
        "Expected number of rows whose person an intruder names who picks one of the people of the population alike in "
        "the quasi-identifiers, by the declared sampling fraction. Baseline: the original"
    ),
    Number("population-unique", "Unique in the population", Scale((0.0, None), "count", public=False)).means(
        "Expected number of rows whose person is alone in the population with the quasi-identifiers, by the declared "
        "sampling fraction. Baseline: the original"
    ),
    Number("population-class-smallest", "Smallest class in the population (k-map)", Scale((1.0, None)).more).means(
        "Estimated number of people of the population in the smallest equivalence class of the release, by the "
        "declared sampling fraction. Baseline: the original"
    ),
)


def class_findings(study: Study) -> tuple[Finding, ...]:
    """Findings about rows alike in the known columns; the further columns are the target, or all others."""
    return KNOWN_CLASSES.findings(_run_known(study))


_OF_POPULATION = {
    "population-reidentified": "reidentified",
    "population-unique": "unique",
    "population-class-smallest": "smallest",
}


def _run_known(study: Study) -> Iterator[Stated]:
    known, held = study.quasi_identifiers, {column_known(study, each) for each in study.quasi_identifiers}
    study = with_known_labels(study)
    given = [study.pair(name) for name in known]
    before, after = (_classes([getattr(pair, side) for pair in given]) for side in ("original", "released"))
    fewest, bounds = float(np.bincount(after).min()), (1.0, float(len(after)))
    yield "equivalence-class-smallest", Values(fewest, baseline=float(study.frequencies(before, 1).min()), range=bounds)
    fraction = study.options.sampling_fraction
    if fraction is not None:
        whose = np.arange(len(before)) if study.persons is None else study.persons
        first = np.unique(whose, return_index=True)[1]  # a person is one, whatever rows there are
        ours, theirs = (asdict(population_risk(classes, fraction)) for classes in (after, before[first]))
        for name, entry in _OF_POPULATION.items():
            yield name, Values(ours[entry], baseline=theirs[entry])
    others = [pair for pair in study.pairs if pair.name not in held.union(known)]
    if study.target is not None and study.target not in held:
        others = [study.pair(study.target)]
    if not others:
        raise NotRun("all columns are taken to be known")
    made = [_secret(pair.released, after, ordered=pair.is_number) for pair in others]
    was = [_secret(pair.original, before, ordered=pair.is_number) for pair in others]
    yield "equivalence-class-diversity", Values(min(few for few, _ in made), baseline=min(few for few, _ in was))
    yield "equivalence-class-closeness", Values(max(far for _, far in made), baseline=max(far for _, far in was))


def _classes(columns: Sequence[Column]) -> np.ndarray:
    """Class of each row: those alike in all columns share one."""
    keys = row_keys(places_of_values(cells).astype(np.uint64) for cells in columns)
    return np.asarray(np.unique(keys, return_inverse=True)[1].ravel())


def _secret(cells: Column, classes: np.ndarray, *, ordered: bool) -> tuple[float, float]:
    """Fewest values of a column in a class, and the largest distance of a class from the whole table."""
    found = measure_diversity(classes, places_of_values(cells), ordered=ordered)
    return float(found.distinct.min()), float(found.closeness.max())
