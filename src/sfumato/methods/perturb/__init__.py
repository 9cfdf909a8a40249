"""Noise on numbers: additive, Y = X + e, and multiplicative, Y = X e, where e has mean 1 [OZ03, sec. 3.1]."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from sfumato.core.arguments import Option, option
from sfumato.core.arrays import Floats
from sfumato.core.distributions.noise import (
    LAWS,
    Law,
    Means,
    Pairs,
    add_noise,
    check_columns,
    check_enhance,
    check_size,
    choose_step,
    enhance_rows,
    law_of_size,
    means_of,
    pairs_of,
    snap,
)
from sfumato.core.errors import OptionError, PrivacyRefusal, SchemaError
from sfumato.core.facts import Enhanced, Fact, PassedThrough, Shuffled
from sfumato.core.records import Block, BlockKind, Layout, Records, columns_of
from sfumato.methods.perturb.facts import Noised
from sfumato.methods.protocol import MethodResult, OwnerDetails, Traits, check_parameters, refuse_levels, refuse_strata

__all__ = [
    "AdditiveNoise",
    "MultiplicativeNoise",
    "check_records",
    "finish",
    "make_noise",
    "number_blocks",
    "perturb_additively",
    "perturb_with_shape",
]


Noise: TypeAlias = "AdditiveNoise | MultiplicativeNoise"


def number_blocks(layout: Layout) -> tuple[Block, ...]:
    """Blocks that get noise."""
    return tuple(block for block in layout if block.kind is BlockKind.NUMBER)


def _number_places(layout: Layout) -> list[int]:
    """Coordinates that get noise."""
    return [block.start for block in number_blocks(layout)]


def check_records(records: Records, noise: Noise) -> None:
    """Refuse records that noise cannot protect as requested.

    Raises
    ------
    PrivacyRefusal
        For categories that nobody allowed to be published as they are.
    """
    if not len(number_blocks(records.layout)):
        raise OptionError("no column is a number, so there is nothing to add noise to; use another method")
    categories = [block for block in records.layout if block.kind in (BlockKind.CATEGORY, BlockKind.CODE)]
    if categories and not noise.pass_categories:
        raise PrivacyRefusal(
            f"{len(categories)} columns are categories, the first is {categories[0].named}: noise would publish them "
            "as they are; leave them out, use another method, or allow it with --pass-categories"
        )
    refuse_levels(records, "noise")
    refuse_strata(records, "noise")
    names = [block.column for block in number_blocks(records.layout)]
    check_columns(pairs_of(noise.enhance_laws), means_of(noise.enhance_means), names)


def finish(records: Records, values: Floats, noise: Noise, rng: np.random.Generator) -> MethodResult:
    """Add enhancement noise, restore missing cells, shuffle, and state the facts."""
    blocks = number_blocks(records.layout)
    facts: list[Fact] = [Noised(noise.law, noise.kind, noise.size, len(blocks), noise.correlated, noise.grid)]
    if noise.enhance:
        named, means = dict(noise.enhance_laws), dict(noise.enhance_means)
        laws = [law_of_size(named.get(block.column, noise.law), noise.enhance_size, noise.grid) for block in blocks]
        places = _number_places(records.layout)
        centres = [means.get(block.column, 0.0) for block in blocks]
        values[:, places], chosen = enhance_rows(values[:, places], noise.enhance, laws, rng, centres)
        facts.append(Enhanced(noise.enhance, len(chosen)))
    _restore_missing(records, values)
    categories = sum(block.kind in (BlockKind.CATEGORY, BlockKind.CODE) for block in records.layout)
    missing = sum(block.kind is BlockKind.MISSING for block in records.layout)
    if categories or missing:
        facts.append(PassedThrough(categories, missing))
    order = rng.permutation(len(records)).astype(np.int64)
    noised = frozenset(block.column for block in blocks)
    released = records.made(values[order], unbounded=noised)
    return MethodResult(released, (*facts, Shuffled(len(records))), OwnerDetails(origin=order))


def _restore_missing(records: Records, values: Floats) -> None:
    """Restore the coordinates of missing cells, which hold no number to hide."""
    for block, missing in columns_of(records.layout):
        if block.kind is BlockKind.NUMBER and missing is not None:
            values[records.values[:, missing.start] > 0.5, block.where] = block.fill


class _Noise:
    """Shared part of both kinds of noise."""

    method: ClassVar[str] = "noise"
    traits: ClassVar[Traits] = Traits(synthetic=False, codes=True)

    if TYPE_CHECKING:
        law: str
        size: float
        enhance: float
        enhance_size: float
        enhance_laws: Pairs | Mapping[str, str]
        enhance_means: Means | Mapping[str, float]

    def __post_init__(self) -> None:
        check_parameters(self)
        object.__setattr__(self, "enhance_laws", pairs_of(self.enhance_laws))
        object.__setattr__(self, "enhance_means", means_of(self.enhance_means))
        if self.law not in LAWS:
            raise OptionError(f"unknown noise distribution {self.law!r}; choose one of {', '.join(LAWS)}")
        check_size("size", self.size)
        check_enhance(self)

    @property
    def grid(self) -> float:
        """Step of the grid for noise and products, in standard deviations of a column.

        It is one for all rows: on another one those with more noise would stand out.
        """
        return choose_step(min(self.size, self.enhance_size) if self.enhance else self.size)


@dataclass(frozen=True)
class AdditiveNoise(_Noise):
    """Independent noise added to every number.

    Parameters
    ----------
    law : {"gaussian", "uniform", "laplace"}
        Uniform noise is bounded: a number near its end proves that the original was high, or low.
    size : float
        Standard deviation of the noise, in standard deviations of the column.
    correlated : bool
        Give the noise of a row the data's own correlations, so that no filter can tell it from the data; Gaussian only.
    enhance : float
        Share of the rows, drawn at random, that get more noise on top: the privacy enhance rho [OZ03, sec. 5.4].
    enhance_size : float
        Standard deviation of what they get, in standard deviations of the column.
    enhance_laws : mapping of str to str
        Columns and the law of what they get on top; ``law`` for those that are not named.
    enhance_means : mapping of str to float
        Columns and the mean of what they get on top, in standard deviations of the column; 0 for those that are not
        named.
    pass_categories : bool
        Publish categories as they are. Noise does not change them, so without it they are refused.

    Examples
    --------
    >>> AdditiveNoise(size=0.5).method
    'noise'
    >>> AdditiveNoise(law="cauchy")
    Traceback (most recent call last):
        ...
    sfumato.core.errors.OptionError: unknown noise distribution 'cauchy'; choose one of gaussian, uniform, laplace
    """

    kind: str = field(
        default="additive",
        init=False,
        metadata={
            "option": Option(
                "noise: kind of noise.  [default: additive]", choices=("additive", "multiplicative"), spelled="noise"
            )
        },
    )
    law: str = option("gaussian", "noise: distribution of the noise.  [default: gaussian]", choices=LAWS)
    size: float = option(1.0, "noise: standard deviation of the noise, in standard deviations of each column.")
    correlated: bool = option(False, "noise: give the noise the correlations of the data.")
    enhance: float = 0.0
    enhance_size: float = 1.0
    enhance_laws: Pairs | Mapping[str, str] = ()
    enhance_means: Means | Mapping[str, float] = ()
    pass_categories: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.correlated and self.law != "gaussian":
            raise OptionError("noise with the data's correlations is Gaussian; choose the law 'gaussian'")

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Add noise to the numbers of every row and shuffle the rows."""
        check_records(records, self)
        values = records.values.copy()
        places = _number_places(records.layout)
        law = law_of_size(self.law, self.size, self.grid)
        if self.correlated:
            values[:, places] = perturb_with_shape(records.values[:, places], law, rng)
        else:
            for place in places:
                values[:, place] = perturb_additively(records.values[:, place], law, rng)
        return finish(records, values, self, rng)


def perturb_additively(x: Floats, law: Law, rng: np.random.Generator) -> Floats:
    """Y = X + e for one attribute, independently of all others [OZ03, sec. 3.1].

    X is brought to the grid of the law first, so that Y says nothing by its last digits [Mironov 2012].
    """
    return add_noise(x, law, rng)


def perturb_with_shape(x: Floats, law: Law, rng: np.random.Generator) -> Floats:
    """Y = X + L e, where L L' is the correlation matrix of X: noise correlated as the data.

    L is the symmetric root, which a matrix without full rank has as well. The sum is brought to the law's grid.
    """
    if len(x) < 2 or not x.shape[1]:
        return np.column_stack([add_noise(column, law, rng) for column in x.T]) if x.size else x.copy()
    centred = x - x.mean(axis=0)
    deviation = np.sqrt(np.mean(centred**2, axis=0))
    centred = np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0)
    correlation = centred.T @ centred / len(x)
    np.fill_diagonal(correlation, 1.0)  # a constant column gets noise of its own
    eigenvalues, eigenvectors = np.linalg.eigh(correlation)
    root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0)) @ eigenvectors.T
    return np.asarray(snap(x + law.values(x.shape, rng) @ root, law.step) * law.step)


_FINENESS = 42  # steps of the factor are far finer than those of the product, which so leaves no place out


@dataclass(frozen=True)
class MultiplicativeNoise(_Noise):
    """Every number multiplied by independent noise of mean 1. Zeros stay zero.

    Parameters
    ----------
    law : {"gaussian", "uniform", "laplace"}
        Uniform factors are bounded: the product proves between which numbers the original lies.
    size : float
        Standard deviation of the factor: 0.1 changes a number by about a tenth of itself.
    enhance, enhance_size, enhance_laws, enhance_means, pass_categories
        As in `AdditiveNoise`: what some rows get on top is added.

    Examples
    --------
    >>> MultiplicativeNoise(size=0.2)
    MultiplicativeNoise(kind='multiplicative', law='gaussian', size=0.2, enhance=0.0, enhance_size=1.0,
        enhance_laws=(), enhance_means=(), pass_categories=False)
    """

    correlated: ClassVar[bool] = False

    kind: str = dataclasses.field(default="multiplicative", init=False)
    law: str = "gaussian"
    size: float = 0.2
    enhance: float = 0.0
    enhance_size: float = 1.0
    enhance_laws: Pairs | Mapping[str, str] = ()
    enhance_means: Means | Mapping[str, float] = ()
    pass_categories: bool = False

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Multiply the numbers of every row by noise and shuffle the rows."""
        check_records(records, self)
        zeros = _zeros(records)
        values = records.values.copy()
        law = law_of_size(self.law, self.size, choose_step(self.size, _FINENESS))
        for place, zero in zeros.items():
            values[:, place] = perturb_multiplicatively(records.values[:, place], zero, law, self.grid, rng)
        return finish(records, values, self, rng)


def perturb_multiplicatively(x: Floats, zero: float, law: Law, step: float, rng: np.random.Generator) -> Floats:
    """Y = X e for one attribute, where e = 1 + noise of the law [OZ03, sec. 3.1].

    ``x`` counts in standard deviations from the mean and ``zero`` is where the number 0 lies in that count. The product
    is brought to a grid of the given step, so that Y says nothing by its last digits [Mironov 2012].

    Raises
    ------
    SchemaError
        For numbers so far from 0 that one step of the factor would leap over places of the grid.
    """
    if float(np.abs(x - zero).max(initial=0.0)) * law.step > step:
        raise SchemaError("a column differs too little to be multiplied, for its size; use additive noise")
    return np.asarray(snap(x + (x - zero) * law.values(x.shape, rng), step) * step)


def _zeros(records: Records) -> dict[int, float]:
    """Coordinate of 0 in each numeric column; dates and ordinals have none."""
    zeros, without = {}, []
    for block in number_blocks(records.layout):
        if block.centre is None or block.scale is None:
            without.append(block.column)
        else:
            zeros[block.start] = -block.centre / block.scale
    if without:
        raise SchemaError(
            f"{len(without)} columns are dates or orders, which cannot be multiplied, the first is {without[0]!r}; use "
            "additive noise or leave them out"
        )
    return zeros


def make_noise(kind: str = "additive", **parameters: Any) -> AdditiveNoise | MultiplicativeNoise:
    """Build noise of a kind; the default size depends on the kind.

    Examples
    --------
    >>> make_noise("multiplicative", size=0.1).method
    'noise'
    """
    given = {name: value for name, value in parameters.items() if name != "size" or value is not None}
    if kind == "additive":
        return AdditiveNoise(**given)
    if kind != "multiplicative":
        raise OptionError(f"there is no kind of noise {kind!r}; choose 'additive' or 'multiplicative'")
    if given.pop("correlated", False):
        raise OptionError("multiplicative noise is drawn for each column alone; leave correlated out")
    return MultiplicativeNoise(**given)
