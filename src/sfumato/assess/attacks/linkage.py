"""Linking a person's record to a released row by distance [Domingo-Ferrer & Torra 2001].

Where it is known from whose record a released row was made, a link counts when it leads to one's own row. Of other
tables, whose rows may descend from nobody, a link counts when it is mutual: the released row nearest to the person has
nobody of the original nearer than this person. An outsider, who knows some columns, compares in these. A release that
knows nobody links many people so, too: one part of the original links the other, and held-out people, each in the seat
of an original, link mutually as often where the release owes nothing to the originals.

Linking a person by all of their records at once, where released rows of a person stay together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Stated, split_in_two, success
from sfumato.assess.attacks.inference import FEW_COLUMNS, HALF_COLUMNS, outsiders
from sfumato.assess.findings import Family, Tries
from sfumato.assess.risk.uniqueness import known_as, with_known_labels
from sfumato.assess.study import Matrix, Places, Study, drawn_note, given
from sfumato.core.neighbours import BOX_DIMENSIONS, nearest
from sfumato.core.records import BlockKind, Layout, width

__all__ = ["LINKAGE", "LINKED_PERSONS", "OWN_ROW_LINKAGE", "most_people", "mutual_links", "rank_view", "whitening"]

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


def _run(study: Study) -> Iterator[Stated]:
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
LINKAGE = Measure("linkage", Family.ATTACK, _SOURCE, _run, figure="attacks/all").finds(
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


OWN_ROW_LINKAGE = Measure(
    "own-row-linkage", Family.ATTACK, _SOURCE, _run_own, needs=(Need.ORIGIN,), figure="attacks/all"
).finds(
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
    figure="attacks/all",
).finds(
    Number("linkage-persons", "Record linkage, all rows of a person", SHARE).means(
        "Record linkage of persons: the share of people for whom the nearest released person, compared by the mean and "
        "the number of all rows, has no other original person nearer to it. Control: the same for held-out people; "
        "baseline: links between two parts of the original"
    )
)
