"""Linking a person's record to a released row by distance [Domingo-Ferrer & Torra 2001], and two halves of a record.

Where it is known from whose record a released row was made, a link counts when it leads to one's own row. Of other
tables, whose rows may descend from nobody, a link counts when it is mutual: the released row nearest to the person has
nobody of the original nearer than this person. An outsider, who knows some columns, compares in these. A release of
unrelated data links many people so, too: one part of the original links the other, and held-out people, each in the
seat of an original, link mutually as often where the release owes nothing to the originals.

Linking a person by all of their records at once, where released rows of a person stay together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import (
    SHARE,
    Measure,
    Need,
    NotRun,
    Number,
    Stated,
    split_in_tenths,
    split_in_two,
    success,
    where,
)
from sfumato.assess.attacks.inference import FEW_COLUMNS, HALF_COLUMNS, outsiders
from sfumato.assess.findings import Family, Tries, wilson
from sfumato.assess.risk.uniqueness import known_as, with_known_labels
from sfumato.assess.study import Matrix, Places, Study, bits_of, drawn_note, given, row_keys
from sfumato.core.groups.facts import Grouped
from sfumato.core.neighbours import BOX_DIMENSIONS, nearest
from sfumato.core.records import BlockKind, Layout, width

__all__ = [
    "GROUP_LINKAGE",
    "LINKABILITY",
    "LINKAGE",
    "LINKED_PERSONS",
    "OWN_ROW_LINKAGE",
    "chance_in_common",
    "likeliest_groups",
    "most_people",
    "mutual_links",
    "pick_near",
    "rank_view",
    "split_columns",
    "whitening",
]

_View = Callable[[Matrix], Matrix]
_RIDGE = 0.01  # of the mean variance: categories that nobody or everybody has leave the covariance without an inverse
_SLACK = 1e-9  # distances that differ by less are equal
_DIGITS = 9  # of whitened coordinates, whose last ones differ between machines: people who are equally near stay so
_SEATS = 10  # a round of the control replaces at most one row in ten by a held-out record
_BLOCK = 4_000_000  # distances that are held at a time
_PAIRS = 500_000_000  # most comparisons in one search without a tree: fewer people are attacked in a larger table
_FEWEST = 400
_WAYS = {  # how rows are compared, in a few words and in a sentence
    "euclid": ("Euclidean distance", "in standard deviations of the columns"),
    "mahalanobis": (
        "Mahalanobis distance",
        "by Mahalanobis distance, which discounts correlated columns",
    ),
    "rank": ("ranks", "by rank, which no change of scale hides"),
    FEW_COLUMNS.name: ("few columns known", "in the quasi-identifiers"),
    HALF_COLUMNS.name: ("half of the columns known", "in half of the columns, those that take the fewest values"),
}
_OWN_ROWS = "each released row was made from one person's record, so that links to one's own row are counted instead"


def _run_linkage(study: Study) -> Iterator[Stated]:
    if study.workings.origin is not None:
        raise NotRun(_OWN_ROWS, applies=False)
    known, wide = outsiders(study), with_known_labels(study)
    nobody = {
        way: linkage_tries(other, view)[0]
        for other in split_in_two(wide)
        for way, view in _views(study, other, known).items()
    }
    for way, view in _views(study, wide, known).items():
        attack, control = linkage_tries(wide, view)
        note = study.looked(int(attack.of)) + _named(study, known.get(way))
        guess = nobody.get(way, 1 / study.people)
        yield f"linkage-{way}", success(attack, guess=guess, control=control, note=note)


def _named(study: Study, columns: Sequence[str] | None) -> str:
    """Note on the columns that an outsider is taken to know."""
    return "" if not columns else f"; known are {', '.join(known_as(study, column) for column in columns)}"


def linkage_tries(study: Study, view: _View | None = None) -> tuple[Tries, Tries | None]:
    """Links of people of the original, and of the control group; by default in standard deviations of the columns."""
    rng, view = study.generator("linkage"), view or (lambda rows: rows)
    people = study.attacked(most_people(study), rng)
    released = view(study.released)
    hits = mutual_links(view(study.original), released, people, study.persons)
    control = None
    if study.holdout is not None:
        outside = rng.permutation(study.attacked_outside(max(len(people), _FEWEST // 8), rng))
        control = _control(study, view, released, outside, rng)
    return Tries(float(hits.sum()), len(hits)), control


def most_people(study: Study) -> int:
    """How many people to attack where each is compared with all rows several times."""
    if study.original.shape[1] <= BOX_DIMENSIONS:
        return study.sizes.attempts
    rows = max(len(study.original), len(study.released))
    return min(study.sizes.attempts, max(_FEWEST, _PAIRS // rows))


def _views(study: Study, wide: Study, known: Mapping[str, Sequence[str]]) -> dict[str, _View]:
    """Coordinates in which each way compares, as functions of a whole table; those of outsiders are what they know.

    ``wide`` has the study's columns first, and then quasi-identifiers that an attacker knows only by their labels.
    """
    own: _View = (lambda rows: rows) if len(wide.pairs) == len(study.pairs) else _within(np.arange(width(study.layout)))
    white = whitening(own(wide.released))
    views: dict[str, _View] = {
        "euclid": own,
        "mahalanobis": lambda rows: np.round(own(rows) @ white, _DIGITS),
        "rank": lambda rows: rank_view(own(rows), study.layout),
    }
    return views | {name: _within(wide.coordinates(columns)) for name, columns in known.items()}


def _within(coordinates: Places) -> _View:
    return lambda rows: np.ascontiguousarray(rows[:, coordinates])


def whitening(rows: Matrix) -> Matrix:
    """The matrix after which Euclid's distance is Mahalanobis', with a ridge of a hundredth of the mean variance.

    Of all such matrices the symmetric one: no choice of axes is left, which would differ between machines.

    Examples
    --------
    >>> rows = np.array([[-2.0, -1.0], [-2.0, 1.0], [2.0, -1.0], [2.0, 1.0]])
    >>> (rows @ whitening(rows)).std(axis=0).round(1).tolist()
    [1.0, 1.0]
    """
    d = rows.shape[1]
    centred = rows - rows.mean(axis=0)
    covariance = centred.T @ centred / len(rows)
    ridge = _RIDGE * float(np.trace(covariance)) / d
    values, vectors = np.linalg.eigh(covariance + (ridge or 1.0) * np.eye(d))
    return np.asarray(vectors / np.sqrt(values) @ vectors.T)


def rank_view(rows: Matrix, layout: Layout) -> Matrix:
    """Each ordered column replaced by its rank in its own table, spread to variance 1; categories stay as they are.

    Equal values share their mean rank, and missing cells lie in the middle.

    Examples
    --------
    >>> from sfumato.core.records import Block
    >>> layout = (Block("a", BlockKind.NUMBER, 0, 1),)
    >>> rank_view(np.array([[1.0], [5.0], [700.0]]), layout).ravel().round(2).tolist()
    [-1.15, 0.0, 1.15]
    """
    from scipy.stats import rankdata

    ranked = rows.copy()
    missing = {block.column: block.start for block in layout if block.kind is BlockKind.MISSING}
    for block in layout:
        if block.kind is BlockKind.NUMBER:
            absent = rows[:, missing[block.column]] > 0.5 if block.column in missing else np.zeros(len(rows), np.bool_)
            values = rows[~absent, block.start]
            ranked[absent, block.start] = 0.0
            if len(values):
                share = (rankdata(values) - 0.5) / len(values) - 0.5
                ranked[~absent, block.start] = np.sqrt(12.0) * share
    return ranked


def mutual_links(population: Matrix, released: Matrix, people: Places, persons: Places | None = None) -> Matrix:
    """How confidently, for each person, the released row nearest to them has them as its nearest.

    ``people`` are places in the population. 1 is a mutual link, 1/t where t people of the population are equally near
    to the released row, else 0. Where ``persons`` says whom each row of the population is about, a person is as near
    as the nearest of their rows.

    Examples
    --------
    >>> population = np.array([[0.0], [1.0], [1.0], [5.0]])
    >>> mutual_links(population, np.array([[0.1], [1.0]]), np.arange(4)).tolist()
    [1.0, 0.5, 0.5, 0.0]
    >>> mutual_links(population, np.array([[0.1], [1.0]]), np.arange(4), np.array([0, 1, 1, 2])).tolist()
    [1.0, 1.0, 1.0, 0.0]
    """
    links = nearest(released, population[people])[0][:, 0]
    rows, where = np.unique(links, return_inverse=True)
    found, near = nearest(population, released[rows], min(2, len(population)))
    slack = _SLACK * (1.0 + near[:, 0])
    who = np.arange(len(population)) if persons is None else persons
    hits: Matrix = (who[found[where, 0]] == who[people]).astype(np.float64)
    tied = near[:, -1] <= near[:, 0] + slack if len(population) > 1 else np.zeros(len(rows), np.bool_)
    for row, alike in _within_reach(population, released[rows[tied]], (near[:, 0] + slack)[tied]):
        here = np.flatnonzero(where == np.flatnonzero(tied)[row])
        nearest_people = np.unique(who[alike])
        hits[here] = np.isin(who[people[here]], nearest_people) / len(nearest_people)
    return hits


def _within_reach(rows: Matrix, centres: Matrix, reach: Matrix) -> Iterator[tuple[int, Places]]:
    """Rows that are within reach of each centre, at least the nearest; distances are held in blocks."""
    norms = (rows**2).sum(axis=1)
    own = (centres**2).sum(axis=1)
    rounding = 1e-13 * (own + norms.max())  # of a square that is expanded
    step = max(1, _BLOCK // len(rows))
    for start in range(0, len(centres), step):
        here = slice(start, start + step)
        squares = norms - 2.0 * (centres[here] @ rows.T)
        most = reach[here] ** 2 + rounding[here] - own[here]
        most = np.maximum(most, squares.min(axis=1))
        for place, near in enumerate(squares <= most[:, None]):
            yield start + place, np.flatnonzero(near)


def _control(study: Study, view: _View, released: Matrix, outside: Places, rng: np.random.Generator) -> Tries:
    """Links of held-out people, who take the seats of some originals: they are ranked and compared among the others.

    A person brings all of their rows.
    """
    assert study.holdout is not None
    n, hits = len(study.original), 0.0
    rows = np.arange(len(study.holdout)) if study.held_persons is None else np.argsort(study.held_persons)
    persons = np.arange(len(rows)) if study.held_persons is None else study.held_persons
    first, last = (np.searchsorted(persons[rows], persons[outside], side) for side in ("left", "right"))
    rounds = (np.cumsum(last - first) - 1) // max(1, n // _SEATS)
    for guests in np.split(np.arange(len(outside)), np.flatnonzero(np.diff(rounds)) + 1):
        brought = [rows[first[guest] : last[guest]] for guest in guests]
        seats = rng.choice(n, min(n, sum(map(len, brought))), replace=False)
        came = np.concatenate(brought)[: len(seats)]
        population = study.original.copy()
        population[seats] = study.holdout[came]
        who = None if study.persons is None else study.persons.copy()
        if who is not None:
            numbers = np.repeat(np.arange(len(guests)), [len(some) for some in brought])
            who[seats] = who.max() + 1 + numbers[: len(seats)]
        attacked = seats[np.isin(came, outside[guests])]
        hits += float(mutual_links(view(population), released, attacked, who).sum())
    return Tries(hits, len(outside))


_SOURCE = "Domingo-Ferrer & Torra 2001; Torra, Abowd & Domingo-Ferrer 2006"
LINKAGE = Measure("linkage", Family.ATTACK, _SOURCE, _run_linkage).finds(
    *(
        Number(f"linkage-{way}", f"Record linkage, {spoken}", SHARE).means(
            f"Record linkage: the share of people for whom the nearest released row, compared {words}, has no other "
            "original record nearer to it. Such a link may still be wrong. Control: the same for held-out people; "
            "baseline: links between two parts of the original"
        )
        for way, (spoken, words) in _WAYS.items()
    ),
)


def _run_own(study: Study) -> Iterator[Stated]:
    rng = study.generator("own-row-linkage")
    people = study.attacked(most_people(study), rng)
    order = rng.permutation(len(study.released))  # of rows that are equally near one is taken at random
    origin = given(study.workings.origin)[order]
    known, wide = outsiders(study), with_known_labels(study)
    for way, view in _views(study, wide, known).items():
        released, original = view(wide.released)[order], view(wide.original)
        found = origin[nearest(released, original[people])[0][:, 0]] == people
        tries = Tries(float(found.sum()), len(found))
        note = study.looked(len(people)) + _named(study, known.get(way))
        guess = 1 / len(study.original)
        yield f"own-row-linkage-{way}", success(tries, guess=guess, control=None, note=note, aside="")


OWN_ROW_LINKAGE = Measure("own-row-linkage", Family.ATTACK, _SOURCE, _run_own, needs=(Need.ORIGIN,)).finds(
    *(
        Number(f"own-row-linkage-{way}", f"Record linkage to own row, {spoken}", SHARE).means(
            f"Record linkage: the share of people for whom the nearest released row, compared {words}, is the one made "
            "from their own record. Baseline: guessing one row at random; held-out people have no such row, so there "
            "is no control"
        )
        for way, (spoken, words) in _WAYS.items()
    )
)


def _run_persons(study: Study) -> Iterator[Stated]:
    if study.linked is None or study.persons is None:
        raise NotRun("released rows do not say which of them belong to one person", applies=False)
    most = int(np.unique(study.persons, return_counts=True)[1].max())
    held = None
    if study.holdout is not None and study.held_persons is not None:
        held = _persons(study.holdout, study.held_persons, most)
    whole = dataclasses.replace(
        study,
        original=_persons(study.original, study.persons, most),
        released=_persons(study.released, study.linked, most),
        holdout=held,
        held=None,
        persons=None,
        held_persons=None,
    )
    attack, control = linkage_tries(whole)
    guess = next((linkage_tries(other)[0] for other in split_in_two(whole)), 1 / study.people)
    note = drawn_note(int(attack.of), study.people, "people")
    yield "linkage-persons", success(attack, guess=guess, control=control, note=note)


def _persons(rows: Matrix, persons: Places, most: int) -> Matrix:
    """Mean of the rows of each person, and their number, for at most ``most`` rows."""
    codes, counts = np.unique(persons, return_inverse=True, return_counts=True)[1:]
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, codes, rows)
    return np.ascontiguousarray(np.column_stack([sums / counts[:, None], np.minimum(counts, most)]))


LINKED_PERSONS = Measure(
    "linked-persons",
    Family.ATTACK,
    "Domingo-Ferrer & Torra 2001, on the means of persons",
    _run_persons,
).finds(
    Number("linkage-persons", "Record linkage, all rows of a person", SHARE).means(
        "Record linkage of persons: the share of people for whom the nearest released person, compared by the mean and "
        "the number of all rows, has no other original person nearer to it. Control: the same for held-out people; "
        "baseline: links between two parts of the original"
    )
)


_SPLITS = 4  # ways to halve the columns, each tried on its own share of the people
_NEAR = {"linkability": 1, "linkability-ten-nearest": 10}


def _run_linkability(study: Study) -> Iterator[Stated]:
    rng = study.generator("linkability")
    most = study.sizes.attempts
    people = rng.permutation(study.attacked(most, rng))
    outside = None if study.holdout is None else rng.permutation(study.attacked_outside(most, rng))
    hits = {name: [0, 0] for name in _NEAR}
    halving = study.shared_generator("linkability-halves")  # how columns are halved decides how many are joined
    for split in range(_SPLITS):
        parts = [study.original[people[split::_SPLITS]]]
        if study.holdout is not None and outside is not None:
            parts.append(study.holdout[outside[split::_SPLITS]])
        halves = split_columns([pair.name for pair in study.pairs], halving)
        found = _joined(study, np.concatenate(parts), halves, rng)
        for name, joined in found.items():
            hits[name][0] += int(joined[: len(parts[0])].sum())
            hits[name][1] += int(joined[len(parts[0]) :].sum())
    for name, count in _NEAR.items():
        control = None if outside is None else Tries(hits[name][1], len(outside))
        guess, note = chance_in_common(len(study.released), count), study.looked(len(people))
        yield name, success(Tries(hits[name][0], len(people)), guess=guess, control=control, note=note)


def _joined(
    study: Study, people: Matrix, halves: tuple[list[str], list[str]], rng: np.random.Generator
) -> dict[str, NDArray[np.bool_]]:
    """Whose halves lead to a common row."""
    if not len(people):
        return {name: np.zeros(0, dtype=np.bool_) for name in _NEAR}
    picks = []
    for half in halves:
        here = study.coordinates(half)
        picks.append(pick_near(study.released[:, here], people[:, here], max(_NEAR.values()), rng))
    first, second = picks
    return {name: (first[:, :count, None] == second[:, None, :count]).any(axis=(1, 2)) for name, count in _NEAR.items()}


def split_columns(columns: list[str], rng: np.random.Generator) -> tuple[list[str], list[str]]:
    """Two random halves of the columns; of an odd number either half may get the one more."""
    order = rng.permutation(len(columns))
    cut = (len(columns) + int(rng.integers(2))) // 2
    return [columns[place] for place in order[:cut]], [columns[place] for place in order[cut:]]


def chance_in_common(rows: int, count: int) -> float:
    """Chance that two random samples of the given sizes have a row in common.

    Examples
    --------
    >>> chance_in_common(4, 1), chance_in_common(4, 3)
    (0.25, 1.0)
    """
    count = min(count, rows)
    apart = [(rows - count - step) / (rows - step) for step in range(count)]
    return 1.0 - float(np.prod(np.maximum(apart, 0.0)))


def pick_near(rows: Matrix, queries: Matrix, count: int, rng: np.random.Generator) -> Places:
    """Places of the rows nearest to each query, in rising distance; of those that are alike some at random.

    Fewer than ``count`` where there are fewer rows.

    Examples
    --------
    >>> rows = np.array([[3.0], [0.0], [1.0]])
    >>> pick_near(rows, np.array([[0.1]]), 2, np.random.default_rng(1)).tolist()
    [[1, 2]]
    """
    count = min(count, len(rows))
    mixed = row_keys(bits_of(column) for column in rows.T)
    shuffled = rng.permutation(len(rows))
    order = shuffled[np.argsort(mixed[shuffled], kind="stable")]  # rows alike, of one spot, together, at random inside
    start = np.flatnonzero(np.concatenate([[True], mixed[order][1:] != mixed[order][:-1]]))
    near = nearest(rows[order[start]], queries, min(count, len(start)))[0]
    sizes = np.diff(start, append=len(rows))[near]
    before = np.cumsum(sizes, axis=1) - sizes
    turn = rng.integers(0, sizes)
    picks = np.empty((len(queries), count), dtype=np.int64)
    everyone = np.arange(len(queries))
    for place in range(count):
        which = (before <= place).sum(axis=1) - 1
        spot, size = near[everyone, which], sizes[everyone, which]
        member = (turn[everyone, which] + place - before[everyone, which]) % size
        picks[:, place] = order[start[spot] + member]
    return picks


LINKABILITY = Measure(
    "linkability",
    Family.ATTACK,
    "Giomi, Boenisch, Wehmeyer & Tasnádi 2023",
    _run_linkability,
    needs=(Need.COLUMNS,),
    stand_ins=split_in_tenths,
).finds(
    Number("linkability", "Linkability of two halves, nearest row", SHARE).means(
        "Linkability: how often the two halves of a person's columns lead to the same released row, so that two "
        "sources can be connected through the release. Control: the same for held-out people"
    ),
    Number("linkability-ten-nearest", "Linkability of two halves, ten nearest rows", SHARE).means(
        "Linkability: how often the ten released rows nearest to one half of a person's columns and the ten nearest "
        "to the other half share a row. Control: the same for held-out people"
    ),
)


_CANDIDATES = 10  # groups of nearest centre among which the likeliest is looked for
_GROUP_RIDGE = 0.1  # of the mean variance inside groups


def _run_groups(study: Study) -> Iterator[Stated]:
    rng = study.generator("group-linkage")
    labels, drawn_from = given(study.workings.labels), given(study.workings.drawn_from)
    sizes = np.bincount(labels, minlength=int(max(labels.max(), drawn_from.max())) + 1)
    people, groups, inside = _with_groups(study, labels, rng)
    order = rng.permutation(len(study.released))  # of rows that are equally near one is taken at random
    released, source = study.released[order], drawn_from[order]
    by_row = source[nearest(released, people)[0][:, 0]]
    centres, likely = likeliest_groups(study.original, labels, people, rng)
    found = {"nearest-row": by_row, "mean": centres, "likelihood": likely}
    if len(study.pairs) > 1:
        here = study.coordinates(split_columns([pair.name for pair in study.pairs], rng)[0])
        found["half-columns"] = source[nearest(released[:, here], people[:, here])[0][:, 0]]
    note = drawn_note(inside, len(labels))
    guess = float(sizes @ np.bincount(drawn_from, minlength=len(sizes)) / (len(labels) * len(drawn_from)))
    for name, guessed in found.items():
        attack, control = _tries((guessed == groups).astype(np.float64), inside)
        yield f"group-linkage-{name}", success(attack, guess=guess, control=control, note=note)
    if "half-columns" not in found:
        yield "group-linkage-half-columns", NotRun(Need.COLUMNS.value)
    attack, control = _tries((by_row == groups) / np.maximum(sizes[groups], 1), inside)
    values = success(attack, guess=1 / len(labels), control=control, note=note)
    highest = 1.0 / int(sizes[sizes > 0].min())
    limits = None if control is None else _limits(control, highest)
    compared = dataclasses.replace(values, interval=_limits(attack, highest), control_interval=limits)
    yield "expected-reidentification", compared if highest < 1.0 else values


def _with_groups(study: Study, labels: Places, rng: np.random.Generator) -> tuple[Matrix, Places, int]:
    """Those who are attacked, their groups, and how many of them are the original's; the rest are the control.

    A held-out person has no group. Theirs is taken to be that of the original row nearest to them.
    """
    most = most_people(study)
    inside = study.attacked(most, rng)
    rows, groups = study.original[inside], labels[inside]
    if study.holdout is None:
        return rows, groups, len(inside)
    guests = study.holdout[study.attacked_outside(most, rng)]
    likest = labels[nearest(study.original, guests)[0][:, 0]]
    return np.concatenate([rows, guests]), np.concatenate([groups, likest]), len(inside)


def _tries(chance: Matrix, inside: int) -> tuple[Tries, Tries | None]:
    attack, control = chance[:inside], chance[inside:]
    others = Tries(float(control.sum()), len(control)) if len(control) else None
    return Tries(float(attack.sum()), len(attack)), others


def _limits(tries: Tries, highest: float) -> tuple[float, float]:
    """Interval of a mean chance that is at most ``highest``, of which it is a share."""
    low, high = wilson(min(tries.hits / highest, tries.of), tries.of)
    return min(low * highest, tries.share), max(high * highest, tries.share)


def likeliest_groups(
    original: Matrix, labels: Places, people: Matrix, rng: np.random.Generator
) -> tuple[Places, Places]:
    """Each person's group of nearest mean, and the likeliest of the few groups whose means are nearest.

    The likelihood is normal, from the group's mean and covariance with a ridge, times the group's size. A group of
    fewer members than coordinates is handled by products between its members (Woodbury): no d x d matrix is made.
    """
    order = np.argsort(labels, kind="stable")
    present, starts = np.unique(labels[order], return_index=True)
    members = np.split(order, starts[1:])
    means = np.stack([original[rows].mean(axis=0) for rows in members])
    within = original - means[np.searchsorted(present, labels)]
    ridge = _GROUP_RIDGE * float((within**2).mean()) or 1.0
    shuffled = rng.permutation(len(present))  # of means that are equal one is taken at random
    near = shuffled[nearest(means[shuffled], people, min(_CANDIDATES, len(present)))[0]]
    score = np.empty(near.shape)
    flat, where = near.ravel(), np.argsort(near.ravel(), kind="stable")
    for pairs in np.split(where, np.flatnonzero(np.diff(flat[where])) + 1):
        group = flat[pairs[0]]
        away = people[pairs // near.shape[1]] - means[group]
        score.ravel()[pairs] = _log_likelihood(within[members[group]], away, ridge) + np.log(len(members[group]))
    best = near[np.arange(len(people)), np.argmax(score, axis=1)]
    return present[near[:, 0]], present[best]


def _log_likelihood(members: Matrix, away: Matrix, ridge: float) -> Matrix:
    """Log-density of deviations from a group's mean, but for the constant."""
    k, d = members.shape
    if k > d:
        covariance = members.T @ members / k + ridge * np.eye(d)
        solved = np.linalg.solve(covariance, away.T)
        return np.asarray(-0.5 * ((away.T * solved).sum(axis=0) + np.linalg.slogdet(covariance)[1]))
    inner = members @ members.T / (k * ridge) + np.eye(k)
    along = members @ away.T
    explained = (along * np.linalg.solve(inner, along)).sum(axis=0) / (k * ridge)
    squares = ((away**2).sum(axis=1) - explained) / ridge
    return np.asarray(-0.5 * (squares + np.linalg.slogdet(inner)[1] + d * np.log(ridge)))


GROUP_LINKAGE = Measure(
    "group-linkage",
    Family.ATTACK,
    "Nin, Herranz & Torra 2008",
    _run_groups,
    needs=(Need.GROUPS, Need.ROW_GROUPS),
    applies=where(Grouped, "the table is not known to be made of groups"),
).finds(
    Number("group-linkage-nearest-row", "Group linkage, nearest row", SHARE).means(
        "Linkage to the group: the share of people for whom the nearest released row was drawn from their own group; "
        "the attacker knows the whole record. Baseline: a row at random"
    ),
    Number("group-linkage-mean", "Group linkage, group mean", SHARE).means(
        "Linkage to the group: the share of people for whom their own group has the nearest mean; the attacker knows "
        "the whole record and the means of all groups. Baseline: a row at random"
    ),
    Number("group-linkage-likelihood", "Group linkage, likelihood", SHARE).means(
        "Linkage to the group: the share of people for whom their own group is the most likely; the attacker knows "
        "the whole record and the means and covariances of all groups. Baseline: a row at random"
    ),
    Number("group-linkage-half-columns", "Group linkage, half of the columns", SHARE).means(
        "Linkage to the group: the share of people for whom the nearest released row, compared in a random half of "
        "the columns, was drawn from their own group. Baseline: a row at random"
    ),
    Number("expected-reidentification", "Expected re-identification within the group", SHARE).means(
        "The chance to re-identify a person by finding the group through the nearest released row and picking one of "
        "its members at random"
    ),
)
