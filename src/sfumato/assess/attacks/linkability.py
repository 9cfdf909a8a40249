"""Linking two halves of a person's columns through the released table [Giomi et al. 2023, linkability].

The attacker has some columns of a person from one source and the rest from another, and takes them for the same person
where both lead to the same released row.

Finding a person's group [Nin, Herranz & Torra 2008].

A group hides which of its members a person is, not where they are. The attacker looks for the person's group, from the
released rows alone or also from the groups' statistics; who was in which group is used only to score.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Stated, split_in_tenths, success, where
from sfumato.assess.attacks.linkage import most_people
from sfumato.assess.findings import Family, Tries, wilson
from sfumato.assess.study import Matrix, Places, Study, bits_of, drawn_note, given, row_keys
from sfumato.core.groups.facts import Grouped
from sfumato.core.neighbours import nearest

__all__ = ["GROUP_LINKAGE", "LINKABILITY", "chance_in_common", "likeliest_groups", "pick_near", "split_columns"]

_SPLITS = 4  # ways to halve the columns, each tried on its own share of the people
_NEAR = {"linkability": 1, "linkability-ten-nearest": 10}


def _run(study: Study) -> Iterator[Stated]:
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
    _run,
    needs=(Need.COLUMNS,),
    stand_ins=split_in_tenths,
    figure="attacks/all",
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
    told = dataclasses.replace(values, interval=_limits(attack, highest), control_interval=limits)
    yield "expected-reidentification", told if highest < 1.0 else values


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
    figure="attacks/all",
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
