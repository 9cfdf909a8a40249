"""Laplace noise on the principal components of groups, with a worst-case guarantee [BCG10, alg. 2, for one owner]."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sfumato.core.arguments import option
from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.amplification import GUARANTEES, solve_b
from sfumato.core.distributions.noise import DiscreteLaplace, draw_laplace, snap
from sfumato.core.errors import LevelError, OptionError, PrivacyLeakWarning, PrivacyRefusal
from sfumato.core.facts import Fact, Shuffled
from sfumato.core.groups import eigen, facts_of_groups, label_by_stratum, response_weights
from sfumato.core.progress import tell
from sfumato.core.records import BlockKind, Layout, Records
from sfumato.core.threads import one_blas_thread
from sfumato.methods.perturb import number_blocks
from sfumato.methods.perturb.facts import ComponentNoise
from sfumato.methods.protocol import MethodResult, OwnerDetails, Traits, check_parameters

__all__ = [
    "ALGORITHMS",
    "USUAL_K",
    "USUAL_RHO1",
    "LaplacePCA",
    "component_noise",
    "component_places",
    "component_ranges",
    "flatten",
    "form_groups",
    "levels_to_reach",
    "most_components",
    "noise_scales",
    "perturb_group",
    "perturb_groups",
    "principal_axes",
    "project",
    "rotate_back",
    "state_facts",
]

ALGORITHMS = {
    "modified": "K-means with small clusters filled from larger ones",
    "holistic": "K-means with small clusters dissolved",
}
"""The groupings, and how a certificate names each."""

USUAL_K, _B, USUAL_RHO1 = 100, 0.2, 0.001  # of the paper's experiments and example
_LEAST_B, _MOST_B = 0.01, 1000.0  # below there is no bound left, above no data
_TINY = 3  # the ranges of three records are nearly the records


@dataclass(frozen=True)
class LaplacePCA:
    """Laplace noise along the principal components of each record's group, scaled to their ranges.

    Records alike in what will be predicted, the target, are grouped. Each released row descends from one record.

    Parameters
    ----------
    k : int, optional
        The floor: a group has at least max(k, the highest level asked for) records. 100 where neither it nor
        ``groups`` is given.
    groups : int, optional
        The number of groups instead, each of at least floor(n / groups) records.
    response_weight : float
        Weight of the target in the distance, the other columns share the rest [BCG10, eq. 1]. Without a target all
        columns weigh the same.
    b : float, optional
        Noise of scale b times the range bounds the odds by the factor e^(1/b); the paper's 0.2 where neither it nor
        ``rho2`` is given.
    guarantee : {"component", "record"}
        What that factor bounds. For ``"component"``, as in the paper, each principal component gets noise of scale b
        times its range; for m components at once the factor is e^(m/b). For ``"record"`` each gets m times as much, so
        that the factor e^(1/b) holds for whatever is asked of a record or a column.
    rho1, rho2 : float, optional
        Choose b so that what has probability rho1 looks no more probable than rho2 after the release, nor what has
        rho2 less probable than rho1. rho1 alone is the probability that the certificate's bound is stated for; 0.001
        where it is not given.
    grouping : {"modified", "holistic"}
        ``"modified"`` fills small clusters from larger ones [BCG10, alg. 2], ``"holistic"`` dissolves them [BCG10,
        sec. 3.1]: the paper's "weighted holistic with guarantee".

    Examples
    --------
    >>> LaplacePCA(k=50).method
    'laplace-pca'
    >>> round(LaplacePCA(rho1=0.001, rho2=0.13).noise, 4), LaplacePCA(guarantee="record").scale(9)
    (0.1998, 1.8)
    """

    method: ClassVar[str] = "laplace-pca"
    grid: ClassVar[float] = 2.0**-20
    """Step of the grid that components are counted in, in standard deviations of the columns."""

    k: int | None = None
    groups: int | None = option(None, "laplace-pca: number of groups, instead of --k.")
    response_weight: float = 0.8
    b: float | None = option(
        None, "laplace-pca: noise scale in ranges; odds change by at most e^(1/b).  [default: 0.2]"
    )
    guarantee: str = option(
        "component", "laplace-pca: bound the odds of each component, or of the whole record.", choices=GUARANTEES
    )
    rho1: float | None = option(None, "laplace-pca: prior probability.  [default: 0.001]")
    rho2: float | None = option(None, "laplace-pca: largest posterior probability, which determines b.")
    grouping: str = "modified"

    def __post_init__(self) -> None:
        check_parameters(self)
        _check_sizes(self.k, self.groups)
        for name, chosen, choices in (
            ("guarantee", self.guarantee, GUARANTEES),
            ("grouping", self.grouping, tuple(ALGORITHMS)),
        ):
            if chosen not in choices:
                raise OptionError(f"there is no {name} {chosen!r}; choose one of {', '.join(choices)}")
        if not 0.0 <= self.response_weight <= 1.0:
            raise OptionError("response_weight must lie between 0 and 1; the default is 0.8")
        if self.rho1 is not None and not 0.0 < self.rho1 < 1.0:
            raise OptionError("rho1 is a probability between 0 and 1; the paper's example has 0.001")
        if self.rho2 is not None and (self.b is not None or self.rho1 is None):
            raise OptionError("rho2 needs rho1, and says how large b must be; give either rho1 and rho2, or b")
        if not _LEAST_B <= self.noise <= _MOST_B:
            raise OptionError(f"b must lie between {_LEAST_B:g} and {_MOST_B:g}; the default is 0.2")

    @property
    def traits(self) -> Traits:
        """Properties that an engine needs to know."""
        return Traits(synthetic=False, floor=self.k, row_is_person=True, codes=True, grouped=True)

    @property
    def noise(self) -> float:
        """The given b, or one solved from rho1 and rho2, or the paper's."""
        if self.rho1 is not None and self.rho2 is not None:
            return solve_b(self.rho1, self.rho2)
        return _B if self.b is None else self.b

    def scale(self, components: int) -> float:
        """Scale of the noise on each of m components, in ranges of the component."""
        return self.noise * (components if self.guarantee == "record" else 1)

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Group the records, add noise to the components of each group, and shuffle the rows.

        Implements [BCG10, alg. 2] for one owner.
        """
        weights = response_weights(records.layout, records.target, self.response_weight)
        levels, labels = form_groups(self, records, weights, rng)
        components = most_components(records.layout)
        values, order, noised = perturb_groups(records, labels, self.scale(components), self.grid, rng)
        if noised > components:
            raise PrivacyRefusal(
                f"a group varies in {noised} components where {components} are possible; nothing is released. Please "
                "report this as a defect"
            )
        shuffled = rng.permutation(len(records))
        origin = order[shuffled]
        noised_columns = frozenset(block.column for block in number_blocks(records.layout))
        released = records.made(values[shuffled], unbounded=noised_columns)
        workings = OwnerDetails(labels, levels, labels[origin], origin)
        return MethodResult(released, state_facts(self, records, levels, labels, components), workings)


def form_groups(
    mechanism: LaplacePCA, records: Records, weights: Floats, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Level that each record's group must reach, and its group [BCG10, alg. 2, lines 4 to 11].

    Groups never cross strata. Every group of a stratum reaches the highest level in it.
    """
    from sfumato.core.groups.kmeans import filled_groups, holistic_groups

    levels = levels_to_reach(mechanism, records)
    scaled = records.values * np.sqrt(weights)

    def group(rows: Ints) -> list[Ints]:
        size = int(levels[rows].max())
        count = mechanism.groups or len(rows) // size
        if mechanism.grouping == "modified":
            return filled_groups(scaled[rows], count, rng)
        return holistic_groups(scaled[rows], size, rng, clusters=count)

    return levels, label_by_stratum(records.values, levels, records.strata, group)


def most_components(layout: Layout) -> int:
    """Number of components in which a group can vary: one per coordinate, one less per category list.

    Examples
    --------
    >>> from sfumato.core.records import Block
    >>> most_components((Block("age", BlockKind.NUMBER, 0, 1), Block("town", BlockKind.CATEGORY, 1, 4)))
    3
    """
    bound = sum(block.kind is BlockKind.CATEGORY for block in layout)
    return max(1, layout[-1].stop - bound) if layout else 1


def perturb_groups(
    records: Records, labels: Ints, scale: float, step: float, rng: np.random.Generator
) -> tuple[Floats, Ints, int]:
    """Perturb each group's records, group after group [BCG10, alg. 2, lines 12 to 28].

    Returns
    -------
    values : ndarray of shape (n, d)
        With categories and missing cells settled to the counts of the group.
    order : ndarray of shape (n,)
        The record that each row descends from.
    noised : int
        Most components that got noise in a group.
    """
    from sfumato.core.groups.discrete import as_numbers, assign_codes, coded_blocks, discretize_noised, ranked_rows

    order, sizes = np.argsort(labels, kind="stable"), np.bincount(labels)
    ends = np.cumsum(sizes)
    values, mean = np.empty(records.values.shape), np.empty((len(sizes), records.values.shape[1]))
    noised = 0
    with one_blas_thread():  # many small matrices: threads only cost
        for group, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True)):
            members = records.values[order[end - size : end]]
            mean[group] = members.mean(axis=0)
            values[end - size : end], moved = perturb_group(members, scale, step, rng)
            noised = max(noised, moved)
            tell("adding noise", end / len(order))
    values = discretize_noised(values, sizes.astype(np.int64), mean, as_numbers(records.layout))
    for block, mark in coded_blocks(records.layout):
        ranked = ranked_rows(records.values, labels, block, mark)
        assign_codes(values, labels[order], block, mark, records.values[ranked, block.start])
    return values, order.astype(np.int64), noised


def _check_sizes(k: int | None, groups: int | None) -> None:
    if k is not None and groups is not None:
        raise OptionError("k and groups both say how large groups are; give one of them")
    if k is not None and k < 2:
        raise LevelError("k must be a whole number of at least 2")
    if groups is not None and groups < 1:
        raise OptionError("groups must be a whole number of at least 1")


def levels_to_reach(mechanism: LaplacePCA, records: Records) -> Ints:
    """max(k, requested level) of each record; with a number of groups, the share of a group replaces k."""
    if (records.levels < 0).any():
        count = int((records.levels < 0).sum())
        raise LevelError(f"{count} privacy levels are negative; levels are whole numbers from 2")
    if mechanism.groups is None:
        return np.maximum(records.levels, mechanism.k or USUAL_K).astype(np.int64)
    if records.strata.any():
        raise OptionError("groups is a number for the whole table, but each stratum has its own groups; give k instead")
    share, highest = len(records) // mechanism.groups, int(records.levels.max(initial=2))
    if share < max(2, highest):
        raise LevelError(
            f"{mechanism.groups} groups of {len(records)} records have {share} each and the highest privacy level is "
            f"{max(2, highest)}; use fewer groups"
        )
    return np.full(len(records), share, dtype=np.int64)


def state_facts(
    mechanism: LaplacePCA, records: Records, levels: Ints, labels: Ints, components: int
) -> tuple[Fact, ...]:
    """State the facts; warn if groups are so small that ranges nearly equal their members.

    Of several owners the records are the released ones, which are alike wherever the original ones are.
    """
    sizes = np.bincount(labels)
    tiny = int((sizes <= _TINY).sum())
    if tiny:
        warnings.warn(
            f"{tiny} of {len(sizes)} groups have {_TINY} records or fewer: noise in proportion to their ranges hides "
            "little; use a higher k",
            PrivacyLeakWarning,
            stacklevel=3,  # whoever called the mechanism
        )
    grouped, *kept = facts_of_groups(ALGORITHMS[mechanism.grouping], records, sizes, levels, labels, tiny)
    rho1 = USUAL_RHO1 if mechanism.rho1 is None else mechanism.rho1
    scale = mechanism.scale(components)
    noise = ComponentNoise("laplace", scale, components, mechanism.guarantee, rho1, mechanism.grid)
    return (grouped, noise, *kept, Shuffled(rows=len(labels)))


_CONSTANT = 1
"""Range, in steps, up to which a component counts as the same for all records: rounding alone can be one step."""


def principal_axes(covariance: Floats) -> Floats:
    """Infer the transform matrix M from a group's statistics: its columns are the axes, the longest first [line 14]."""
    return np.ascontiguousarray(eigen(covariance)[1][:, ::-1])


def project(values: Floats, axes: Floats) -> Floats:
    """Principal components D M [lines 16 and 21]; of some columns with their rows of M it is a summand."""
    return np.asarray(values @ axes)


def component_places(projected: Floats, step: float) -> Ints:
    """Components rounded to the grid, counted in steps."""
    return snap(projected, step)


def component_ranges(places: Ints) -> Ints:
    """Range (max - min) of each component, in steps [lines 17 and 23]."""
    return np.asarray(places.max(axis=0) - places.min(axis=0))


def flatten(places: Ints, ranges: Ints, centre: Ints) -> Ints:
    """Set components that do not vary to the group's centre, so that they distinguish nobody."""
    return np.where(ranges > _CONSTANT, places, centre)


def noise_scales(ranges: Ints, b: float) -> Floats:
    """Scales b_j = b (max - min) of the noise, in steps; 0 where a component does not vary [lines 17 and 23].

    The scale of the Laplace law and not its standard deviation (errata BCG10.1).
    """
    return np.where(ranges > _CONSTANT, b * ranges, 0.0)


def component_noise(scales: Floats, rows: int, rng: np.random.Generator) -> Ints:
    """Draw Laplace noise for each component of each record, in whole steps [line 18].

    Two owners each draw `core.distributions.draw_geometric` with these scales; the difference has this law [line 24].
    """
    noise = np.zeros((rows, len(scales)), dtype=np.int64)
    for j, scale in enumerate(scales.tolist()):
        if scale > 0:
            DiscreteLaplace(scale)  # refuses a scale that is out of proportion
            noise[:, j] = draw_laplace(scale, rows, rng)
    return noise


def rotate_back(places: Ints, axes: Floats, step: float) -> Floats:
    """Map components back to the columns: D' M^T [lines 19 and 26]."""
    return np.asarray((places * step) @ axes.T)


def perturb_group(values: Floats, b: float, step: float, rng: np.random.Generator) -> tuple[Floats, int]:
    """Perturb the records of one group [BCG10, alg. 2, lines 13 to 19]; tell how many components got noise.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    b : float
        Scale of the noise, in ranges of each component.
    step : float
        Of the grid, in the units of the values.
    rng : numpy.random.Generator

    Notes
    -----
    The paper projects records as they are, not their distances from the mean; the ranges are the same. A group of
    n <= d records varies in n - 1 components at most, and noise moves its rows in those alone. Cost O(n d^2 + d^3).
    """
    mean = values.mean(axis=0)
    centred = values - mean
    axes = principal_axes(centred.T @ centred / len(values))
    places = component_places(project(values, axes), step)
    ranges = component_ranges(places)
    places = flatten(places, ranges, component_places(project(mean, axes), step))
    noise = component_noise(noise_scales(ranges, b), len(values), rng)
    return rotate_back(places + noise, axes, step), int((ranges > _CONSTANT).sum())
