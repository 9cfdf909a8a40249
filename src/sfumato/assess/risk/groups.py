"""The groups: how large, compact and flat they are, and how well one predicts the target of its members.

Mostly for the owner. The covariance of k records has rank k - 1 at most. Where that is less than the table's own,
synthetic rows stay in the flat that the k people span.

l-diversity and t-closeness inside groups [Machanavajjhala et al. 2007; Li, Li & Venkatasubramanian 2007]. Class-wise
groups hold one class by design, so that the class of every synthetic row is certain (errata KCG12.5).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.assess.algebra import COUNT, SCORE, SHARE, SIZE, Measure, Need, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family, median_interval, wilson
from sfumato.assess.study import Column, Matrix, Places, Study, drawn_note, given, sample
from sfumato.core.facts import Fact
from sfumato.core.groups.facts import Grouped
from sfumato.core.neighbours import nearest
from sfumato.methods.chain.facts import ChainSynthesis
from sfumato.methods.protocol import OwnerDetails

__all__ = [
    "COMPACTNESS",
    "CONDITIONING",
    "DIVERSITY",
    "GROUPS",
    "compactness",
    "group_sizes",
    "group_spectra",
    "measure_diversity",
    "places_of_values",
]

TINY = 3
"""Mean and covariance of two records give both away, and three are not far from it."""
_SHUFFLES = 5
_ASKING = 10  # records of the lowest levels, of which the highest is reported
_MANY = 200_000  # people of whom one shuffle is enough


def group_sizes(workings: OwnerDetails, facts: Sequence[Fact] = ()) -> Iterator[Stated]:
    """Group sizes, records that got their level, and groups too small to protect; all exact counts.

    Where only the groups are known, each of their records is taken to ask for the highest level inside. Without
    these only the smallest group is known, and that only where a fact states it. The baselines of the sizes are the
    smallest, median and largest level asked for.
    """
    if workings.labels is not None and workings.levels is not None:
        asked = workings.levels
        _, places, sizes = np.unique(workings.labels, return_inverse=True, return_counts=True)
        got = sizes[places]
    elif workings.sizes is not None and workings.highest is not None:
        sizes = workings.sizes
        asked, got = np.repeat(workings.highest, sizes), np.repeat(sizes, sizes)
    else:
        for fact in [fact for fact in facts if isinstance(fact, Grouped)][-1:]:
            bounds = (1.0, float(fact.records))
            yield "group-size-smallest", Values(float(fact.smallest), baseline=1.0, range=bounds)
        for chain in [fact for fact in facts if isinstance(fact, ChainSynthesis)]:
            bounds = (1.0, float(chain.records))
            yield "group-size-smallest", Values(float(min(chain.smallest)), baseline=float(chain.leaf), range=bounds)
        raise NotRun(Need.GROUPS.value)
    bounds = (1.0, float(len(got)))
    whole = [fact.smallest for fact in facts if isinstance(fact, Grouped) and fact.records > len(got)]
    sizes_and_all = np.append(sizes, np.array(whole, dtype=np.int64))  # where these are some groups of a large table
    lowest = float(np.sort(asked)[min(_ASKING, len(asked)) - 1])  # so that no one person's level shows
    yield "group-size-smallest", Values(float(sizes_and_all.min()), baseline=lowest, range=bounds)
    for name, how in (("median", np.median), ("largest", np.max)):
        yield f"group-size-{name}", Values(float(how(sizes)), baseline=float(how(asked)), range=bounds)
    yield "level-met", Values(float((got >= asked).mean()), baseline=1.0)
    yield "groups-below-four", Values(float((sizes <= TINY).sum()), baseline=0.0, range=(0.0, float(len(sizes))))


GROUPS = Measure(
    "groups",
    Family.PRIVACY,
    "Aggarwal & Yu 2005",
    lambda study: group_sizes(study.workings, study.facts),
    needs=(Need.GROUP_SIZES,),
    of_groups=True,
    figure="groups/sizes",
).finds(
    Number("group-size-smallest", "Smallest group", Scale((1.0, None), "count").more).means(
        "The number of records in the smallest group"
    ),
    Number("group-size-median", "Median group", Scale((1.0, None), "count").more.owners).means(
        "The median number of records per group"
    ),
    Number("group-size-largest", "Largest group", Scale((1.0, None), "count").owners).means(
        "The number of records in the largest group; large groups lose detail"
    ),
    Number("level-met", "Records at or above their level", SHARE.more.owners, figure="groups/levels").means(
        "The share of records whose group is at least as large as their level; it must be all"
    ),
    Number("groups-below-four", "Groups of 3 or fewer records", COUNT.owners, figure="").means(
        "The number of groups of 3 records or fewer, whose statistics nearly reveal their members"
    ),
)


def compactness(values: Matrix, labels: Places) -> Iterator[Stated]:
    """SSQ and information loss, 100 * SSE / SST, of the encoded original under its groups.

    The baseline is the expectation for groups of the same number filled at random: SST * (n - g) / (n - 1).
    """
    inside = squares_inside(values, labels)
    whole = float(((values - values.mean(axis=0)) ** 2).sum())
    n, g = len(values), len(np.unique(labels))
    chance = (n - g) / (n - 1) if n > 1 else 0.0
    yield "ssq", Values(inside, baseline=whole * chance, range=(0.0, whole))
    if whole == 0.0:
        raise NotRun("no column of the original varies")
    yield "information-loss", Values(min(100.0, 100.0 * inside / whole), baseline=100.0 * chance)


def squares_inside(values: Matrix, labels: Places) -> float:
    """Squared distances of records, added up, to the mean of their group.

    Examples
    --------
    >>> squares_inside(np.array([[0.0], [2.0], [7.0]]), np.array([0, 0, 1]))
    2.0
    """
    order = np.argsort(labels, kind="stable")
    starts = np.flatnonzero(np.diff(labels[order], prepend=labels.min(initial=0) - 1))
    sizes = np.diff(starts, append=len(labels))
    total = 0.0
    for column in values.T:
        cells = column[order]
        mean = np.add.reduceat(cells, starts) / sizes
        total += float(((cells - np.repeat(mean, sizes)) ** 2).sum())
    return total


COMPACTNESS = Measure(
    "compactness",
    Family.UTILITY,
    "Domingo-Ferrer & Mateo-Sanz 2002",
    lambda study: compactness(study.original, given(study.workings.labels)),
    needs=(Need.GROUPS,),
    uncompared={},
    of_groups=True,
).finds(
    Number("ssq", "Within-group sum of squares", SIZE.owners).means(
        "The sum of squared distances of records to the mean of their group; smaller groups are more homogeneous"
    ),
    Number("information-loss", scale=Scale((0.0, 100.0), "percent").owners).means(
        "Within-group sum of squares as a percentage of the total: 0 loses nothing, 100 is a single group"
    ),
)


@dataclass(frozen=True, eq=False, repr=False)
class Diversity:
    """Size, different values, 2^entropy and distance to the whole table, of each group."""

    sizes: Places
    distinct: Places
    effective: Matrix
    closeness: Matrix

    def summary(self) -> dict[str, float]:
        """The numbers of the findings."""
        return {
            "diversity-smallest": float(self.distinct.min()),
            "diversity-median": float(np.median(self.distinct)),
            "diversity-entropy-smallest": float(self.effective.min()),
            "diversity-entropy-median": float(np.median(self.effective)),
            "groups-homogeneous": float((self.distinct == 1).mean()),
            "closeness-largest": float(self.closeness.max()),
            "closeness-mean": float(np.average(self.closeness, weights=self.sizes)),
        }


def measure_diversity(labels: Places, codes: Places, *, ordered: bool) -> Diversity:
    """Each group's diversity and closeness from the places of the target's values, 0 to v - 1.

    ``codes`` are the places of the target's values. Where these are ``ordered`` closeness is the earth mover's distance
    between ranks, else total variation.

    Examples
    --------
    >>> found = measure_diversity(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1]), ordered=False)
    >>> found.distinct.tolist(), found.closeness.tolist()
    ([1, 2], [0.25, 0.25])
    """
    groups, sizes = np.unique(labels, return_inverse=True, return_counts=True)[1:]
    order = np.lexsort((codes, groups))
    where, what = groups[order], codes[order]
    fresh = np.flatnonzero((np.diff(where, prepend=-1) != 0) | (np.diff(what, prepend=-1) != 0))
    counts = np.diff(np.append(fresh, len(codes)))
    group, value = where[fresh], what[fresh]  # one entry a value that a group holds
    share = counts / sizes[group]
    entropy = np.bincount(group, -share * np.log2(share), len(sizes))
    whole = np.bincount(codes) / len(codes)
    if ordered:
        closeness = _movers(where, what, sizes, whole)
    else:
        inside = np.bincount(group, np.abs(share - whole[value]) - whole[value], len(sizes))
        closeness = np.clip((inside + 1.0) / 2, 0.0, 1.0)
    distinct = np.bincount(group, minlength=len(sizes))
    return Diversity(sizes, distinct, np.minimum(np.exp2(entropy), distinct), closeness)


def _movers(where: Places, what: Places, sizes: Places, whole: Matrix) -> Matrix:
    """Earth mover's distance between each group's ranks and the whole table's, ranks from 0 to 1.

    It is the area between two quantile functions. Member i of a group is constant between (i - 1)/k and i/k, where the
    whole table's function is below it up to a point and above it from there, so its part comes from an integral.
    """
    ranks = np.arange(len(whole)) / max(len(whole) - 1, 1)
    knots = np.append(0.0, np.cumsum(whole))
    areas = np.append(0.0, np.cumsum(whole * ranks))
    size, place = sizes[where], np.arange(len(where)) - np.append(0, np.cumsum(sizes))[where]
    begin, end, own = place / size, (place + 1) / size, ranks[what]
    cut = np.clip(knots[what + 1], begin, end)
    low, middle, high = (np.interp(at, knots, areas) for at in (begin, cut, end))
    parts = own * (cut - begin) - (middle - low) + (high - middle) - own * (end - cut)
    return np.clip(np.bincount(where, parts, len(sizes)), 0.0, 1.0)


def _run_diversity(study: Study) -> Iterator[Stated]:
    pair, labels = study.pair(given(study.target)), given(study.workings.labels)
    codes = places_of_values(pair.original)
    found = measure_diversity(labels, codes, ordered=pair.is_number).summary()
    rng, shuffles = study.generator("diversity"), _SHUFFLES if len(codes) < _MANY else 1
    by_chance = [
        measure_diversity(labels, rng.permutation(codes), ordered=pair.is_number).summary() for _ in range(shuffles)
    ]
    for name, value in found.items():
        bounds = (1.0, float(codes.max() + 1)) if name.startswith("diversity") else None
        yield name, Values(value, baseline=float(np.mean([chance[name] for chance in by_chance])), range=bounds)


def places_of_values(cells: Column) -> Places:
    """Places of a column's values in their order; a missing cell is one more value, above all others."""
    values, codes = np.unique(cells.values, return_inverse=True)
    codes = np.where(cells.absent, len(values), codes.ravel())
    return np.unique(codes, return_inverse=True)[1].ravel().astype(np.int64)


_SEVERAL = Scale((1.0, None)).more.owners
DIVERSITY = Measure(
    "diversity",
    Family.PRIVACY,
    "Machanavajjhala et al. 2007; Li, Li & Venkatasubramanian 2007",
    _run_diversity,
    needs=(Need.TARGET, Need.GROUPS),
).finds(
    Number("diversity-smallest", "Distinct l-diversity, minimum", _SEVERAL).means(
        "l-diversity: the fewest different values of the target in a group, missing counted as one; 1 means that "
        "membership in that group reveals the target"
    ),
    Number("diversity-median", "Distinct l-diversity, median", _SEVERAL).means(
        "l-diversity: the median number of different values of the target in a group"
    ),
    Number("diversity-entropy-smallest", "Entropy l-diversity, minimum", _SEVERAL).means(
        "Entropy l-diversity: as the fewest values of the target in a group, but values of few members count little; "
        "1 is worst"
    ),
    Number("diversity-entropy-median", "Entropy l-diversity, median", _SEVERAL).means(
        "Entropy l-diversity: the median number of equally frequent values of the target in a group"
    ),
    Number("groups-homogeneous", "Homogeneous groups", SHARE.owners).means(
        "The share of groups whose members all have the same value of the target, so that linkage to the group "
        "reveals it; always 1 for groups made class by class"
    ),
    Number("closeness-largest", "t-closeness of groups, largest distance", SCORE.owners).means(
        "t-closeness: the largest distance between the distribution of the target in a group and in the whole table: "
        "0 reveals nothing, 1 reveals it"
    ),
    Number("closeness-mean", "t-closeness of groups, mean distance", SCORE.owners).means(
        "t-closeness: the mean distance, over people, between the distribution of the target in their group and in "
        "the whole table"
    ),
)


WIDE = 3.0
"""A group is too wide for a member whose distance to it is this multiple of that to the nearest people."""
_TOLERANCE = 1e-10  # of the largest variance: below it a direction counts as having none
_CELLS = 2_000_000  # in one block
_WORK = 2e10  # multiplications that the spectra of all groups may cost; of more groups a sample is taken
_MEMBERS = 200  # people of larger groups are not asked for that many neighbours
_FEWEST, _MOST = 10, 50_000  # groups whose spectra are looked at


def group_spectra(values: Matrix, members: Iterable[Places]) -> tuple[Places, Matrix]:
    """Rank and condition of groups: directions with variance, and longest deviation by shortest that is not flat.

    ``members`` are arrays of shape (b, s): places of the s members of each of b groups of the same size. The condition
    of a group of rank 0 or 1 is 1.
    """
    ranks, conditions = [np.empty(0, np.int64)], [np.empty(0)]
    for places in members:
        centred = values[places]
        centred = centred - centred.mean(axis=1, keepdims=True)
        across = centred.transpose(0, 2, 1)
        square = centred @ across if centred.shape[1] <= centred.shape[2] else across @ centred
        variances = np.maximum(np.linalg.eigvalsh(square)[:, ::-1], 0.0)
        there = variances > _TOLERANCE * np.maximum(variances[:, :1], 1e-12 * centred.shape[1])
        rank = there.sum(axis=1)
        shortest = np.take_along_axis(variances, np.maximum(rank - 1, 0)[:, None], axis=1)[:, 0]
        ranks.append(rank)
        conditions.append(np.sqrt(np.divide(variances[:, 0], shortest, out=np.ones(len(rank)), where=rank > 0)))
    return np.concatenate(ranks), np.concatenate(conditions)


def _run_conditioning(study: Study) -> Iterator[Stated]:
    rng, values = study.generator("conditioning"), study.original
    groups, sizes = np.unique(given(study.workings.labels), return_inverse=True, return_counts=True)[1:]
    order = rng.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    starts = np.cumsum(sizes) - sizes
    whole = _rank_of_table(values)
    chosen = _affordable(sizes, values.shape[1], rng)
    members = [_blocks(who, starts, sizes, chosen, values.shape[1]) for who in (order, rng.permutation(order))]
    (rank, condition), (other_rank, other_condition) = (group_spectra(values, each) for each in members)
    part, flat = len(rank) < len(sizes), int((rank < whole).sum())
    note = drawn_note(len(rank), len(sizes), "groups")
    flat_by_chance = float((other_rank < whole).mean())
    yield (
        "groups-singular",
        Values(flat / len(rank), wilson(flat, len(rank)) if part else None, flat_by_chance, note=note),
    )
    bounds = (0.0, float(whole))
    yield "group-rank-smallest", Values(float(rank.min()), baseline=float(other_rank.min()), note=note, range=bounds)
    middle, by_chance = float(np.median(condition)), float(np.median(other_condition))
    yield "group-condition-median", Values(middle, median_interval(condition) if part else None, by_chance, note=note)
    yield "group-outliers", _wide(study, groups, sizes, (order, starts), rng)


def _rank_of_table(values: Matrix) -> int:
    """Count the directions in which the whole table varies; the coordinates of a category depend on one another."""
    centred = values - values.mean(axis=0)
    variances = np.linalg.eigvalsh(centred.T @ centred)
    return int((variances > _TOLERANCE * max(variances[-1], 1e-12 * len(values))).sum())


def _affordable(sizes: Places, width: int, rng: np.random.Generator) -> Places:
    """Choose groups at random until their spectra cost enough."""
    drawn = rng.permutation(len(sizes))
    short = np.minimum(sizes[drawn], width).astype(np.float64)
    work = np.cumsum(sizes[drawn] * short * width + 10 * short**3)
    return drawn[: min(_MOST, max(_FEWEST, int(np.searchsorted(work, _WORK))))]


def _blocks(order: Places, starts: Places, sizes: Places, chosen: Places, width: int) -> Iterator[Places]:
    """Members of the chosen groups, groups of the same size together, in blocks of bounded memory.

    Of a very large group a sample suffices: its rank does not depend on one member.
    """
    for size in np.unique(sizes[chosen]):
        begin = starts[chosen[sizes[chosen] == size]]
        several = min(int(size), max(10 * width, _CELLS // width))
        step = max(1, _CELLS // (several * width))
        for at in range(0, len(begin), step):
            yield order[begin[at : at + step, None] + np.arange(several)]


def _wide(
    study: Study, groups: Places, sizes: Places, by_group: tuple[Places, Places], rng: np.random.Generator
) -> Values | NotRun:
    """Each person's distance to the others of the group beside that to as many nearest people."""
    order, starts = by_group
    own = sizes[groups]
    able = np.flatnonzero((own > 1) & (own <= _MEMBERS + 1))
    if not len(able):
        return NotRun(f"every group has a single member or more than {_MEMBERS + 1}")
    people = able[sample(len(able), study.sizes.attempts, rng)]
    values, count = study.original, own[people] - 1
    near = nearest(values, values[people], int(count.max()), own=people)[1] ** 2
    least = np.cumsum(near, axis=1)[np.arange(len(people)), count - 1]
    fellows, others = np.empty(len(people)), np.empty(len(people))
    for size in np.unique(count):
        same = np.flatnonzero(count == size)
        for part in np.array_split(same, max(1, len(same) * int(size) * values.shape[1] // _CELLS)):
            mine = order[starts[groups[people[part]], None] + np.arange(size + 1)]
            fellows[part] = _squares(values, people[part], mine)
            others[part] = _squares(values, people[part], rng.integers(0, len(values), size=(len(part), size)))
    bound = WIDE**2 * least + 1e-12 * count  # rounding is not width
    wide, tried, by_chance = int((fellows > bound).sum()), len(people), float((others > bound).mean())
    interval, note = wilson(wide, tried) if tried < len(values) else None, drawn_note(tried, len(values))
    return Values(wide / tried, interval, by_chance, attempts=tried, note=note)


def _squares(values: Matrix, people: Places, others: Places) -> Matrix:
    """Sum the squared distances of each person to others; to oneself it is 0."""
    return np.asarray(((values[others] - values[people, None]) ** 2).sum(axis=(1, 2)))


CONDITIONING = Measure(
    "conditioning",
    Family.PRIVACY,
    "Aggarwal & Yu 2005; Domingo-Ferrer & Mateo-Sanz 2002",
    _run_conditioning,
    needs=(Need.GROUPS,),
).finds(
    Number("groups-singular", "Groups with singular covariance", SHARE.owners).means(
        "The share of groups with a singular covariance, whose synthetic rows stay in the subspace of their members; "
        "more members than coordinates prevent it"
    ),
    Number("group-rank-smallest", "Group rank, smallest", SIZE.more.owners).means(
        "The smallest rank of a group's covariance; 0 means that the mean is everybody's record. Baseline: random "
        "groups of the same sizes"
    ),
    Number("group-condition-median", "Group condition number, median", Scale((1.0, None)).owners).means(
        "The median condition number of a group: the ratio of its longest to its shortest direction; a nearly flat "
        "group protects little across"
    ),
    Number("group-outliers", "Outliers in their group", SHARE.owners).means(
        "The share of people who are more than 3 times as far from the others of their group as from as many nearest "
        "people: outliers whose group was stretched to include them"
    ),
)
