"""Membership inference: whether someone was in the original, guessed from how near the released rows come.

Three scores of one person: the distance to the nearest released row; that distance as a ratio to the one to the
nearest person of a reference sample, since people in thin regions are far from everybody [after Carlini et al. 2022];
and a classifier that learns from half of the members and non-members what tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.assess.algebra import SHARE, Measure, Need, NotRun, Number, Stated, Values, success, where
from sfumato.assess.findings import Family, Tries
from sfumato.assess.study import Matrix, Places, Study, once, sample
from sfumato.core.neighbours import nearest
from sfumato.methods.chain.facts import ChainSynthesis

__all__ = ["LEAVES", "MEMBERSHIP", "OUTLIERS", "accuse_outliers", "area", "area_tries", "threshold"]

FALSE_ALARMS = 0.01
"""Share of people who were not in whom the accuser may accuse [Carlini et al. 2022]."""
_FEWEST = 10  # people in each half that a classifier learns from
_OUTLYING = 0.05  # share of people who are farthest from everybody, and of others whom they may be accused with
_FEWEST_OUTLIERS = 10
_NEAR = 5  # neighbours whose distance the classifier sees


@dataclass(frozen=True, eq=False, repr=False)
class _Suspects:
    """What an attacker sees of people: scores, more is more suspect, and features that a classifier learns from."""

    distance: Matrix
    relative: Matrix
    features: Matrix
    alone: Matrix  # how far they are from everybody else
    people: Matrix  # in coordinates

    def take(self, places: Places) -> _Suspects:
        return _Suspects(*(scores[places] for scores in vars(self).values()))

    def __len__(self) -> int:
        return len(self.distance)


def area(members: Matrix, others: Matrix) -> float:
    """Area under the ROC curve: how often a member scores above someone else, ties counting half.

    Examples
    --------
    >>> area(np.array([2.0, 3.0]), np.array([1.0, 2.0]))
    0.875
    """
    return float(_placements(members, others).mean())


def _placements(these: Matrix, those: Matrix) -> Matrix:
    """For each score, the share of the other side's scores below it, ties counting half."""
    ordered = np.sort(those)
    below, up_to = (np.searchsorted(ordered, these, side=side) for side in ("left", "right"))
    return np.asarray((below + up_to) / (2 * len(those)))


def area_tries(members: Matrix, others: Matrix, *, worth: float = 1.0) -> Tries:
    """Area as coin throws, of which DeLong's variance says how many it is worth.

    ``worth`` is the part of the throws that count where scores are not independent. The interval stays within 0 and 1
    and is not empty where the variance is 0, as it is for a verbatim copy.
    """
    value = area(members, others)
    ups, downs = _placements(members, others), _placements(others, members)
    throws = min(len(ups), len(downs))
    if throws > 1:
        variance = ups.var(ddof=1) / len(ups) + downs.var(ddof=1) / len(downs)
        even = value * (1 - value) / variance if variance > 0.0 else throws
        throws = max(1, int(np.rint(worth * min(even, len(ups) + len(downs)))))
    return Tries(value * throws, throws)


def _looked(study: Study) -> tuple[_Suspects, _Suspects, np.random.Generator]:
    """Members and the control group, prepared once for all attacks."""
    members, others, state = _look_once(study)
    rng = study.generator("membership")
    rng.bit_generator.state = state
    return members, others, rng


@once
def _look_once(study: Study) -> tuple[_Suspects, _Suspects, Any]:
    """Equal numbers of members and controls, as the attacker sees them, and the probability that is left."""
    rng = study.generator("membership")
    assert study.holdout is not None
    count = min(study.sizes.attempts, study.people, study.people_outside)
    inside = study.original[study.attacked(count, rng)]
    outside = study.attacked_outside(count, rng)
    rest = np.setdiff1d(np.arange(len(study.holdout)), outside)
    if study.held_persons is not None:  # a person's other row would stand in for the one that is attacked
        rest = rest[~np.isin(study.held_persons[rest], study.held_persons[outside])]
    more = rest[sample(len(rest), max(0, study.sizes.training - count), rng)]
    reference = study.holdout[np.concatenate([outside, more])]
    people = np.concatenate([inside, study.holdout[outside]])
    seen = _see(study, people, _reference_distance(reference, people, count, rng))
    return seen.take(np.arange(count)), seen.take(np.arange(count, 2 * count)), rng.bit_generator.state


def _reference_distance(reference: Matrix, people: Matrix, count: int, rng: np.random.Generator) -> Matrix:
    """How far everybody is from the nearest of the reference sample, oneself excepted.

    The second half of the people are the first of the reference sample. For each of the first half, who are not in it,
    one of the sample drawn at random is left out instead, so that both halves are compared with equally many.
    """
    size = len(reference)
    if size < 2:
        return np.ones(len(people))
    near = nearest(reference, people[:count], 2)[1]
    without = near[np.arange(count), (rng.random(count) < 1 / size).astype(np.int64)]
    return np.concatenate([without, nearest(reference, people[count:], own=np.arange(count))[1][:, 0]])


def _see(study: Study, people: Matrix, reference: Matrix) -> _Suspects:
    places, distances = nearest(study.released, people, min(_NEAR, len(study.released)))
    tiny = 1e-3 * (float(np.median(reference)) or 1.0)  # keeps a distance of 0 from being infinitely suspect
    relative = np.log(distances[:, 0] + tiny) - np.log(reference + tiny)
    apart = (people - study.released[places[:, 0]]) ** 2
    blocks = [apart[:, study.coordinates([pair.name])].sum(axis=1) for pair in study.pairs]
    density = np.log(distances.mean(axis=1) + tiny)
    features = [distances, np.log(distances + tiny), density[:, None], relative[:, None], np.stack(blocks, axis=1)]
    return _Suspects(-distances[:, 0], -relative, np.concatenate(features, axis=1), reference, people)


def threshold(others: Matrix) -> float:
    """The score that at most `FALSE_ALARMS` of people like the others exceed, or the highest score of few.

    Another person exceeds the r-th highest of n scores with probability r / (n + 1).
    """
    ordered = np.sort(others)[::-1]
    return float(ordered[max(1, int(FALSE_ALARMS * (len(ordered) + 1))) - 1])


def _random_parts(count: int, rng: np.random.Generator) -> tuple[Places, Places]:
    order = rng.permutation(count)
    return order[: count // 2], order[count // 2 :]


def _suspect(learn: tuple[_Suspects, _Suspects], test: Sequence[_Suspects]) -> list[Matrix]:
    """How suspect people are to a model that learnt on others what tells members apart."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    features = np.concatenate([side.features for side in learn])
    classes = np.repeat([1, 0], [len(side) for side in learn])
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)).fit(features, classes)
    return [np.asarray(model.decision_function(side.features)) for side in test]


def _cross(members: _Suspects, others: _Suspects, rng: np.random.Generator) -> Iterator[tuple[_Fold, _Fold]]:
    """All three scores of each half, which the other half is tested by."""
    one, two = _random_parts(len(members), rng), _random_parts(len(others), rng)
    for learn, test in ((0, 1), (1, 0)):
        known = members.take(one[learn]), others.take(two[learn])
        asked = members.take(one[test]), others.take(two[test])
        yield _Fold.of(known, _suspect_within(known, rng)), _Fold.of(asked, _suspect(known, asked))


def _suspect_within(known: tuple[_Suspects, _Suspects], rng: np.random.Generator) -> list[Matrix]:
    """Scores of the people who were learnt from, by a model that has not seen them, so that scores compare fairly."""
    one, two = (_random_parts(len(side), rng) for side in known)
    scores = [np.empty(len(side)) for side in known]
    for learn, test in ((0, 1), (1, 0)):
        teach = known[0].take(one[learn]), known[1].take(two[learn])
        asked = known[0].take(one[test]), known[1].take(two[test])
        for score, places, suspicion in zip(scores, (one[test], two[test]), _suspect(teach, asked), strict=True):
            score[places] = suspicion
    return scores


@dataclass(frozen=True, eq=False, repr=False)
class _Fold:
    """The scores of members and of others, one row a score: by distance, relative, by the classifier."""

    members: Matrix
    others: Matrix

    @staticmethod
    def of(sides: tuple[_Suspects, _Suspects], learnt: Sequence[Matrix]) -> _Fold:
        rows = [
            np.stack([side.distance, side.relative, suspicion]) for side, suspicion in zip(sides, learnt, strict=True)
        ]
        return _Fold(*rows)

    def true_positives(self, score: int) -> float:
        """True positive rate of a score at `FALSE_ALARMS`."""
        return float((self.members[score] > threshold(self.others[score])).mean())


def _run(study: Study) -> Iterator[Stated]:
    members, others, rng = _looked(study)
    half, rest = (others.take(part) for part in _random_parts(len(others), rng))
    note = f"; counted on {len(members)} people of each kind"
    for name, score in (("distance", "distance"), ("distance-relative", "relative")):
        sides = [getattr(people, score) for people in (members, others, half, rest)]
        yield f"membership-auc-{name}", _areas(sides[:2], sides[2:] if len(half) else None, note)
    if len(others) < 4 * _FEWEST:
        raise NotRun(f"fewer than {4 * _FEWEST} people on a side are too few to learn from")
    folds, nobody = list(_cross(members, others, rng)), list(_cross(half, rest, rng))
    attack, control = (_ranked([test for _, test in each], 2) for each in (folds, nobody))
    yield "membership-auc-classifier", _areas(attack, control, note, worth=0.5)
    yield "membership-tpr", _at_one_percent(folds, note)


def _areas(attack: Sequence[Matrix], control: Sequence[Matrix] | None, note: str, *, worth: float = 1.0) -> Values:
    """Area of members against others, beside that of others against others."""
    tries = area_tries(*attack, worth=worth)
    aside = None if control is None else area(*control)
    limits = None if control is None else area_tries(*control, worth=worth).interval
    value, count = area(*attack), len(attack[0])
    return Values(value, tries.interval, 0.5, aside, count, note, control_interval=limits, inside=tries)


def _ranked(folds: Sequence[_Fold], score: int) -> tuple[Matrix, Matrix]:
    """Scores of two halves pooled by ranks.

    What both halves have in common by chance helps both models and what they do not hurts both, so that the two tests
    are worth no more than one.
    """
    members, others = [], []
    for fold in folds:
        both = np.concatenate([fold.members[score], fold.others[score]])
        ranks = _placements(both, both)
        members.append(ranks[: fold.members.shape[1]])
        others.append(ranks[fold.members.shape[1] :])
    return np.concatenate(members), np.concatenate(others)


def _at_one_percent(folds: Sequence[tuple[_Fold, _Fold]], note: str) -> Values:
    """Success of accusing in one half with the score and the line that were chosen on the other."""
    right = wrong = tried = free = 0
    for learn, test in folds:
        score = int(np.argmax([learn.true_positives(place) for place in range(3)]))
        line = threshold(learn.others[score])
        right, tried = right + int((test.members[score] > line).sum()), tried + test.members.shape[1]
        wrong, free = wrong + int((test.others[score] > line).sum()), free + test.others.shape[1]
    few = "" if FALSE_ALARMS * free >= 2 else "; with so few held out the line is above all that it was drawn from"
    return success(Tries(right, tried), guess=FALSE_ALARMS, control=Tries(wrong, free), note=note + few)


_TWO = (
    "Membership inference: AUC of an attacker who separates members from the control group {how}. 0.5 is guessing, 1 "
    "is always right; the control separates two halves of the control group"
)
MEMBERSHIP = Measure(
    "membership",
    Family.ATTACK,
    "Shokri et al. 2017; Carlini et al. 2022; DeLong et al. 1988",
    _run,
    needs=(Need.HOLDOUT,),
    figure="attacks/scores",
).finds(
    Number("membership-auc-distance", "Membership inference, distance").means(
        _TWO.format(how="by the distance to the nearest released row")
    ),
    Number("membership-auc-distance-relative", "Membership inference, relative distance").means(
        _TWO.format(how="by the distance to the nearest released row, relative to the distances between similar people")
    ),
    Number("membership-auc-classifier", "Membership inference, classifier").means(
        _TWO.format(how="by a classifier trained on other members and non-members")
    ),
    Number("membership-tpr", "Membership inference, TPR at 1\u00a0% FPR", SHARE, figure="attacks/all").means(
        "Membership inference: the share of members whom an attacker identifies (true positive rate) at a false "
        "positive rate of 1 %. 1 % is guessing; the control is the share of the control group named by the same rule"
    ),
)


def _run_leaves(study: Study) -> Iterator[Stated]:
    """Areas of the scores of an attacker who knows the algorithm, and of one who knows the trees too."""
    members, others, rng = _looked(study)
    half, rest = (others.take(part) for part in _random_parts(len(others), rng))
    note = f"; counted on {len(members)} people of each kind"
    ways = (study.workings.regrown, study.workings.likelihood)
    for name, score in zip(("membership-auc-refitted-trees", "membership-original-trees"), ways, strict=True):
        if score is None:
            lacking = "the trees are not of the table itself, for rules, strata or cells part it"
            yield name, NotRun(lacking, applies=False)
            continue
        sides = [score(side.people) for side in (members, others, half, rest)]
        yield name, _areas(sides[:2], sides[2:] if len(half) else None, note)


LEAVES = Measure(
    "leaves",
    Family.ATTACK,
    "after Homer et al. 2008",
    _run_leaves,
    needs=(Need.HOLDOUT,),
    applies=where(ChainSynthesis, "the rows were not drawn from the leaves of trees"),
    figure="attacks/scores",
).finds(
    Number("membership-auc-refitted-trees", "Membership inference, refitted trees").means(
        _TWO.format(
            how="by refitting the trees of the method on the release and comparing a person's values with their leaves"
        )
    ),
    Number("membership-original-trees", "Membership inference, original trees").means(
        _TWO.format(how="by the original trees, which only the data owner knows; no policy limits it")
    ),
)


def _run_outliers(study: Study) -> Iterator[Stated]:
    """Success of accusing the people who are farthest from everybody, by the relative score."""
    members, others, _ = _looked(study)
    if len(others) * _OUTLYING < _FEWEST_OUTLIERS:
        raise NotRun(f"fewer than {round(_FEWEST_OUTLIERS / _OUTLYING)} people on a side have too few outlying ones")
    accused, control = (accuse_outliers(people.relative, people.alone, others.relative) for people in (members, others))
    note = f"; counted on {len(members)} people of each kind"
    yield "membership-outliers", success(accused, guess=_OUTLYING, control=control, note=note)


def accuse_outliers(scores: Matrix, distance: Matrix, others: Matrix) -> Tries:
    """How many of the 5 % with the largest distance score above 95 % of the others.

    Each half of the people is compared with the other half of the others, so that nobody sets their own threshold.
    """
    hits = tried = 0
    outlying = distance >= np.quantile(distance, 1 - _OUTLYING)
    for side in (0, 1):
        line = float(np.quantile(others[1 - side :: 2], 1 - _OUTLYING, method="higher"))
        outliers = scores[side::2][outlying[side::2]]
        hits, tried = hits + int((outliers > line).sum()), tried + len(outliers)
    return Tries(hits, tried)


OUTLIERS = Measure("outliers", Family.ATTACK, "after Carlini et al. 2022", _run_outliers, needs=(Need.HOLDOUT,)).finds(
    Number("membership-outliers", "Membership inference on outliers, TPR at 5\u00a0% FPR", SHARE).means(
        "Membership inference on the 5 % of members who are farthest from everybody: the share identified by relative "
        "distance at a false positive rate of 5 %. The control is the share of the outliers of the control group named "
        "by the same rule"
    )
)
