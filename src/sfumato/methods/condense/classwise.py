"""Class-wise condensation: each class condensed separately, with a group size that divides them all [KCG12, fig. 5]."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from sfumato.core.arrays import Ints
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal, SchemaError
from sfumato.core.option import offered
from sfumato.core.records import Block, BlockKind, Records
from sfumato.methods.condense import ALGORITHMS, check_k, check_options, effective_levels
from sfumato.methods.condense.facts import ClassPure
from sfumato.methods.protocol import MethodResult, Traits, check_parameters

__all__ = [
    "FLOOR",
    "MOST_CLASSES",
    "ClasswiseCondensation",
    "GroupSize",
    "approximate_gcd",
    "check_pure",
    "choose_size",
    "classes_of",
    "units_of",
]

FLOOR = 5
"""Smallest group where no k is given: a tenth of a class of a few records would be no group at all."""

MOST_CLASSES = 20
"""Most distinct values of a numeric target that is taken as a class; more are a response."""

_TOLERANCES = (0.05, 0.2)
"""Shares of the smallest class between which the paper took t."""


@dataclass(frozen=True)
class GroupSize:
    """Group size g* chosen from the class sizes, and the unit t in which classes were counted."""

    size: int
    unit: int


@dataclass(frozen=True)
class ClasswiseCondensation:
    """Separate condensation of each class, so that no group mixes classes.

    The target of the records is the class. It is certain for each group (l = 1), and the certificate says so.

    Parameters
    ----------
    k : int, optional
        The floor: a record's level is max(k, the level it asks for). Without it the group size is the approximate
        greatest common divisor of the classes, which is large: a twentieth of the smallest class or more, and never
        less than 5. A group is larger if a record inside asks for a higher level.
    tolerance : float, optional
        The unit t that classes are counted in, as a share of the smallest class, as figure 5 has it; it is raised to 5.
        By default the unit between 0.05 and 0.2, the shares that the paper took, with which the divisor is largest.
        Not used if k is given.
    grouping : {"compact", "mdav", "paper", "modified", "holistic"}, optional
        As in `Condensation`, but compact groups may differ in width, so that dense regions of a class stay whole.
        Without it whichever of ``"compact"`` and the paper's own ``"modified"`` does better in a trial on the records
        themselves (`methods.condense.partition`); the certificate says which, and that it was chosen so.
    effort : {"fast", "default", "thorough"}
        How long the compact grouping searches.
    allow_level_1 : bool
        Level 1 is no protection: such a record may stand alone and is then published as it is.

    Examples
    --------
    >>> ClasswiseCondensation(k=5).method
    'classwise'
    """

    method: ClassVar[str] = "classwise"

    k: int | None = None
    tolerance: float | None = field(
        default=None,
        metadata=offered(
            "classwise: unit of the GCD, as a share of the smallest class.  [default: the best of 0.05 to 0.2]"
        ),
    )
    grouping: str | None = None
    effort: str = "default"
    allow_level_1: bool = False

    def __post_init__(self) -> None:
        check_parameters(self)
        check_k(FLOOR if self.k is None else self.k, allow_level_1=self.allow_level_1)
        check_options(self.grouping or "compact", self.effort)
        if self.tolerance is not None and not 0.0 < self.tolerance <= 1.0:
            raise OptionError("tolerance is a share of the smallest class, above 0 and at most 1; try 0.1")

    @property
    def traits(self) -> Traits:
        """Properties that an engine needs to know."""
        floor = FLOOR if self.k is None else self.k
        return Traits(synthetic=True, floor=floor, level_1=self.allow_level_1, codes=True, classed=True, grouped=True)

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Replace the records by as many synthetic ones of the same classes.

        Implements [KCG12, fig. 5]. Where the records have strata too, a group crosses neither.
        """
        from sfumato.methods.condense.layers import first_of_person, layers_of, partition_layers
        from sfumato.methods.condense.partition import better_grouping, can_try
        from sfumato.methods.condense.synthesize import synthesize
        from sfumato.methods.condense.warm import compile_ahead

        compile_ahead()
        block, classes = classes_of(records)
        cells = np.unique(np.column_stack([classes, records.strata]), axis=0, return_inverse=True)[1].ravel()
        floor = FLOOR if self.k is None else self.k
        levels = effective_levels(records.levels, floor, allow_level_1=self.allow_level_1)
        first = first_of_person(cells, records.persons)
        _check_sizes(block.column, cells[first], levels[first])
        size = None if self.k is not None else choose_size(np.bincount(cells[first]), floor, self.tolerance)
        least = levels if size is None else np.maximum(levels, size.size)
        grouping, chosen = self.grouping, ""
        if grouping is None:
            layers = layers_of(cells, records.persons, least)
            rows = np.flatnonzero(layers.begins) if not layers.begins.all() else slice(None)
            parts = np.unique(layers.code[rows], return_inverse=True)[1].ravel()
            tried = (records.values[rows], least[rows], classes[rows], parts)
            grouping = better_grouping(*tried, records.layout, rng, shared=block.where)
            chosen = ", chosen by trial" if can_try(*tried) else ""
        labels, kept = partition_layers(
            records.values,
            least,
            cells,
            records.persons,
            rng,
            grouping=grouping,
            effort=self.effort,
            widths=True,
            among=records.among,
        )  # the nearest of several classes is asked for: dense regions stay whole
        check_pure(labels, cells if kept is None else cells[kept])
        algorithm = f"class-wise: {ALGORITHMS[grouping]}{chosen}"
        sanitized = synthesize(records, labels, levels, algorithm, rng, shared=block.where, kept=kept)
        chosen_size = {} if size is None else dataclasses.asdict(size)
        pure = ClassPure(block.column, int(classes.max()) + 1, **chosen_size)
        return dataclasses.replace(sanitized, facts=(pure, *sanitized.facts))


def classes_of(records: Records) -> tuple[Block, Ints]:
    """Block of the class, and the class number of each record.

    A numeric target is a class too if it has few distinct values.
    """
    if records.target is None:
        raise OptionError("class-wise condensation needs a class; name the target column")
    blocks = {block.kind: block for block in records.layout if block.column == records.target}
    absent = blocks.pop(BlockKind.MISSING, None)
    if absent is not None and (missing := int(records.values[:, absent.start].sum())):
        raise SchemaError(
            f"column {records.target!r} has {missing} missing cells, so the class of those records is unknown; fill "
            "them in or leave those rows out"
        )
    (block,) = blocks.values()
    if block.kind is BlockKind.CATEGORY:
        codes = np.argmax(records.values[:, block.where], axis=1)
        return block, np.unique(codes, return_inverse=True)[1].astype(np.int64)
    distinct, codes = np.unique(records.values[:, block.start], return_inverse=True)
    if len(distinct) > MOST_CLASSES:
        raise OptionError(
            f"column {records.target!r} is numeric with {len(distinct)} distinct values, which is a response and not a "
            "class; use the method condense, or declare the column nominal"
        )
    return block, codes.astype(np.int64)


def choose_size(counts: Ints, floor: int, tolerance: float | None = None) -> GroupSize:
    """Choose the group size from the sizes of the classes [KCG12, fig. 5, step 1].

    The unit t is the share ``tolerance`` of the smallest class and at least the floor. Without a tolerance it is the
    unit of 5 to 20 % of the smallest class with which the size is largest, the smallest of equally good ones.

    Notes
    -----
    The paper sets t to 5 to 20 % of the smallest class and does not say to which. One fixed share falls back to t if
    the numbers of units have no common divisor: of classes of 49, 50 and 51 a tenth gives 5, the choice gives 49
    (errata KCG12.4).

    Examples
    --------
    >>> choose_size(np.array([49, 50, 51]), 5), choose_size(np.array([49, 50, 51]), 5, 0.1)
    (GroupSize(size=49, unit=7), GroupSize(size=5, unit=5))
    """
    smallest = int(counts.min())
    if tolerance is not None:
        unit = max(floor, round(tolerance * smallest))
        return GroupSize(approximate_gcd(counts.tolist(), unit), unit)
    low, high = (share * smallest for share in _TOLERANCES)
    first = max(floor, math.ceil(low))
    units = np.arange(first, max(first, math.floor(high)) + 1)
    divisor = np.zeros(len(units), dtype=np.int64)
    for count in counts.tolist():
        divisor = np.gcd(divisor, count // units)
    unit = int(units[np.argmax(units * divisor)])
    return GroupSize(approximate_gcd(counts.tolist(), unit), unit)


def check_pure(labels: Ints, cells: Ints) -> None:
    """Fail closed if a group mixes two classes or two strata."""
    pairs = np.unique(np.column_stack([labels, cells]), axis=0)
    mixed = len(pairs) - len(np.unique(labels))
    if mixed:
        raise PrivacyRefusal(f"{mixed} groups mix classes; nothing is released. Please report this as a defect")


def _check_sizes(column: str, cells: Ints, levels: Ints) -> None:
    """Refuse levels that exceed the number of persons in a class, given one record of each."""
    sizes = np.bincount(cells)
    highest = np.zeros(len(sizes), dtype=np.int64)
    np.maximum.at(highest, cells, levels)
    short = np.flatnonzero(sizes < highest)
    if len(short):
        worst = short[np.argmin(sizes[short])]
        raise LevelError(
            f"{len(short)} of {len(sizes)} classes of column {column!r} (within strata, if there are some) have "
            f"fewer records than the highest privacy level in them ({int(sizes[short].sum())} records in all; the "
            f"smallest has {sizes[worst]} and level {highest[worst]}); recode them into one class or leave those rows "
            "out, lower the level (--k), or use the method condense, whose groups may mix classes"
        )


def approximate_gcd(counts: Sequence[int], tolerance: int) -> int:
    """Largest multiple of t that divides every class, up to fewer than t records per group.

    Implements g* = t * GCD(floor(|C_1|/t), ..., floor(|C_m|/t)) [KCG12, fig. 5, theorem 1]: class i makes
    ``units_of(counts, t)[i] * t / g*`` groups, each of at least g* records.

    Parameters
    ----------
    counts : sequence of int
        Records of each class.
    tolerance : int
        The paper's t: the smallest group size, and the unit in which classes are counted. It sets t to 5 to 20 % of
        the smallest class.

    Raises
    ------
    LevelError
        If a class is smaller than t: it has no unit, so that the divisor would ignore it (errata KCG12.2).

    Notes
    -----
    Where the numbers of units have no common divisor the result is t itself, and it jumps as counts or t change by one
    (50 and 25 units give 25 t, 50 and 24 give 2 t, 50 and 23 give t). Of one class it is all its units: one group, or
    nearly so. It is never below t and never above the smallest class.

    Examples
    --------
    >>> approximate_gcd([15, 10], 5), approximate_gcd([1001, 501], 20)
    (5, 500)
    """
    return tolerance * math.gcd(*units_of(counts, tolerance))


def units_of(counts: Sequence[int], tolerance: int) -> tuple[int, ...]:
    """Number of units of t records in each class, floor(|C_i|/t) [KCG12, fig. 5, step 1-2].

    Examples
    --------
    >>> units_of([1001, 501], 20)
    (50, 25)
    """
    if tolerance < 1:
        raise OptionError("the tolerance t must be a whole number of records, at least 1; try a tenth of a class")
    if not len(counts):
        raise LevelError("there are 0 classes; provide records of at least one")
    smallest = min(range(len(counts)), key=lambda place: counts[place])
    if counts[smallest] < tolerance:
        raise LevelError(
            f"class {smallest + 1} of {len(counts)} has {counts[smallest]} records, fewer than the smallest group of "
            f"{tolerance}; lower the level or the tolerance, or pool classes"
        )
    return tuple(int(count) // tolerance for count in counts)
