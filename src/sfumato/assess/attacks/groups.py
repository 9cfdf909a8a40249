"""Finding a person's group: linkage written for condensed groups [Nin, Herranz & Torra 2008].

A group hides which of its members a person is, not where they are. The attacker looks for the person's group, from the
released rows alone or also from the groups' statistics; who was in which group is used only to score.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.attacks.arms import Arm, success
from sfumato.assess.attacks.halves import draw_halves
from sfumato.assess.attacks.linkage import most_people
from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.assess.frame import Measure, Need
from sfumato.assess.intervals import wilson
from sfumato.assess.neighbours import nearest
from sfumato.assess.study import Study, sample
from sfumato.facts import Fact, Grouped

__all__ = ["GROUP_LINKAGE", "likeliest_groups"]

_Matrix = NDArray[np.float64]
_Places = NDArray[np.int64]

_CANDIDATES = 10  # groups of nearest centre among which the likeliest is looked for
_RIDGE = 0.1  # of the mean variance inside groups
_TAIL = "; guessing is a row drawn at random, and less is better"
_MEANINGS = {
    "group-linkage-nearest-row": "The share of people whose nearest released row was drawn from their own group, so "
    "that an attacker who knows their whole record finds where they are among the groups" + _TAIL,
    "group-linkage-centre": "The share of people whose own group has the mean nearest to them, for an attacker who "
    "knows their whole record and was given the groups' means" + _TAIL,
    "group-linkage-likelihood": "The share of people whose own group is the likeliest, for an attacker who knows their "
    "whole record and was given the groups' means and covariances" + _TAIL,
    "group-linkage-half": "The share of people whose nearest released row, compared in a random half of the columns, "
    "was drawn from their own group" + _TAIL,
    "expected-reidentification": "The chance to pin a person down who finds their group by the nearest released row "
    "and then picks one of its members at random; less is better",
}


def _applies(facts: Sequence[Fact]) -> str | None:
    return None if any(isinstance(fact, Grouped) for fact in facts) else "the table is not known to be made of groups"


@dataclass(frozen=True, eq=False, repr=False)
class _People:
    """Those who are attacked: their records, their groups, and how many of them are the original's; the rest control.

    A held-out person has no group. Theirs is taken to be that of the original row nearest to them.
    """

    rows: _Matrix
    groups: _Places
    inside: int


def _run(study: Study) -> Iterator[Finding]:
    rng = study.generator("group-linkage")
    assert study.workings is not None
    assert study.workings.labels is not None
    assert study.workings.drawn_from is not None
    labels, drawn_from = study.workings.labels, study.workings.drawn_from
    sizes = np.bincount(labels, minlength=int(max(labels.max(), drawn_from.max())) + 1)
    people = _people(study, labels, rng)
    order = rng.permutation(len(study.released))  # of rows that are equally near one is taken at random
    released, source = study.released[order], drawn_from[order]
    by_row = source[nearest(released, people.rows)[0][:, 0]]
    centres, likely = likeliest_groups(study.original, labels, people.rows, rng)
    found = {
        "group-linkage-nearest-row": by_row,
        "group-linkage-centre": centres,
        "group-linkage-likelihood": likely,
    }
    if len(study.pairs) > 1:
        here = study.coordinates(draw_halves([pair.name for pair in study.pairs], rng)[0])
        found["group-linkage-half"] = source[nearest(released[:, here], people.rows[:, here])[0][:, 0]]
    note = "" if people.inside == len(labels) else f"; counted on {people.inside} rows drawn at random"
    guess = float(sizes @ np.bincount(drawn_from, minlength=len(sizes)) / (len(labels) * len(drawn_from)))
    for name, meaning in _MEANINGS.items():
        if name in found:
            hits = (found[name] == people.groups).astype(np.float64)
            yield _finding(name, meaning + note + ".", hits, people.inside, guess)
    if len(study.pairs) == 1:
        name = "group-linkage-half"
        yield not_run(name, Family.ATTACK, Direction.LOWER, _MEANINGS[name] + ".", Need.COLUMNS.value)
    chance = (by_row == people.groups) / np.maximum(sizes[people.groups], 1)
    highest = 1.0 / int(sizes[sizes > 0].min())
    name = "expected-reidentification"
    yield _finding(name, _MEANINGS[name] + note + ".", chance, people.inside, 1 / len(labels), highest)


def _people(study: Study, labels: _Places, rng: np.random.Generator) -> _People:
    most = most_people(study)
    inside = sample(len(labels), most, rng)
    rows, groups = study.original[inside], labels[inside]
    if study.holdout is None:
        return _People(rows, groups, len(inside))
    guests = study.holdout[sample(len(study.holdout), most, rng)]
    likest = labels[nearest(study.original, guests)[0][:, 0]]
    return _People(np.concatenate([rows, guests]), np.concatenate([groups, likest]), len(inside))


def _finding(name: str, meaning: str, chance: _Matrix, inside: int, guess: float, highest: float = 1.0) -> Finding:
    """State a mean chance; it is at most ``highest``, of which it is a share with Wilson's interval."""
    arms = [Arm(float(part.sum()), len(part)) for part in (chance[:inside], chance[inside:]) if len(part)]
    finding = success(name, meaning, arms[0], guess=guess, control=arms[1] if len(arms) > 1 else None)
    if highest == 1.0:
        return finding
    intervals = []
    for arm in arms:
        low, high = wilson(min(arm.hits / highest, arm.attempts), arm.attempts)
        intervals.append((min(low * highest, arm.share), max(high * highest, arm.share)))
    return dataclasses.replace(
        finding, interval=intervals[0], control_interval=intervals[1] if len(intervals) > 1 else None
    )


def likeliest_groups(
    original: _Matrix, labels: _Places, people: _Matrix, rng: np.random.Generator
) -> tuple[_Places, _Places]:
    """Give each person's group of nearest mean, and the likeliest of the few groups whose means are nearest.

    The likelihood is normal, from the group's mean and covariance with a ridge, times the group's size.

    Returns
    -------
    nearest_centre, likeliest : ndarrays of shape (q,)

    Notes
    -----
    A group of fewer members than coordinates is handled by the products between its members (Woodbury), so that no
    d x d matrix is made for it.
    """
    order = np.argsort(labels, kind="stable")
    present, starts = np.unique(labels[order], return_index=True)
    members = np.split(order, starts[1:])
    means = np.stack([original[rows].mean(axis=0) for rows in members])
    within = original - means[np.searchsorted(present, labels)]
    ridge = _RIDGE * float((within**2).mean()) or 1.0
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


def _log_likelihood(members: _Matrix, away: _Matrix, ridge: float) -> _Matrix:
    """Give the log-density of deviations from a group's mean, but for the constant."""
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
    name="group-linkage",
    family=Family.ATTACK,
    source="Nin, Herranz & Torra 2008",
    findings={name: meaning + "." for name, meaning in _MEANINGS.items()},
    run=_run,
    needs=(Need.GROUPS,),
    applies=_applies,
)
