"""Who is alone with a combination of coarse values or holds a rare category, and whether the release shows it.

A combination that one person of the original has and one released row has is a match that an intruder believes in.

Rows alike in the columns that an outsider knows: how few they are, and what they give away of the other columns.

k-anonymity, l-diversity and t-closeness of a table, whoever made it [Sweeney 2002; Machanavajjhala et al. 2007; Li, Li
& Venkatasubramanian 2007].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.algebra import SCORE, SHARE, Measure, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family, Finding
from sfumato.assess.intervals import redraw_interval, wilson
from sfumato.assess.known_labels import column_known, with_known_labels
from sfumato.assess.risk.groups import measure_diversity, places_of_values
from sfumato.assess.standing import CATEGORIES, standing_in
from sfumato.assess.study import ColumnPair, Places, Study, row_keys

__all__ = ["KNOWN_CLASSES", "RAREST_CATEGORY", "UNIQUENESS", "class_findings", "matched"]

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
    yield "unique-rows", Values(_share_alone(before, study, people), baseline=_share_alone(after))
    if len(before) > _FEW:
        some = [rng.choice(len(before), _FEW, replace=False) for _ in range(_DRAWS)]
        mine = [_share_alone([before[at] for at in few], study, people) for few in some]
        theirs = [_share_alone([after[at] for at in few]) for few in some]
        value, redraws = float(np.mean(mine)), rng.choice(mine, size=(_REDRAWS, len(mine))).mean(axis=1)
        yield "unique-rows-on-three-columns", Values(value, redraw_interval(value, redraws), float(np.mean(theirs)))
    else:
        yield "unique-rows-on-three-columns", NotRun(f"the table has no more than {_FEW} columns")
    yield "unique-matches", _matches(study, before, after, held, rng)


def _held(keys: _Keys, persons: Places | None) -> _Keys:
    """Keys that persons hold, each once for a person."""
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
    keys = np.sort(keys)
    apart = np.concatenate([[True], keys[1:] != keys[:-1], [True]])
    return float((apart[1:] & apart[:-1]).mean())


def _matches(
    study: Study,
    before: Sequence[Places],
    after: Sequence[Places],
    held: Sequence[Places] | None,
    rng: np.random.Generator,
) -> Values | NotRun:
    """How many people who are alone have one match, beside columns shuffled and people held out."""
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
    Number("unique-rows", "Rows that nobody shares", SHARE).means(
        "The share of people in the original who are alone with their combination of categories and of tenths that "
        "their numbers lie in, beside the share of released rows that are alone with theirs (baseline); such "
        "people can be told apart by what others know of them, and less is better"
    ),
    Number("unique-rows-on-three-columns", "Rows that nobody shares, on three columns", SHARE).means(
        f"The same where only {_FEW} columns are known, on average over columns drawn at random; less is better"
    ),
    Number("unique-matches", "Unique people whose row is still unique", SHARE).means(
        "The share of people alone with their combination of coarse values whose combination is found in exactly "
        "one released row, beside a release whose columns are shuffled (baseline) and people held out (control); "
        "above the control, rows show who was in, and less is better"
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
        "rarest-category", "People who hold the rarest released category", Scale((1.0, None), "count").more.owners
    ).means(
        "How many people of the original hold the rarest of their categories that stand in the released table: a "
        "category of one or a few people shows that they were in it, and more is better; the baseline is the "
        "rarest category of all"
    )
)


KNOWN_CLASSES = Measure(
    "known-classes",
    Family.PRIVACY,
    "Sweeney 2002; Machanavajjhala et al. 2007; Li, Li & Venkatasubramanian 2007",
    lambda _: (),
).finds(
    Number("known-class-smallest", "Rows alike in known columns, fewest (k)", Scale((1.0, None), "count").more).means(
        "The fewest released rows that are alike in all columns that an outsider is taken to know, beside the fewest "
        "people of the original who are (baseline); 1 means that somebody stands out by them"
    ),
    Number("known-class-diversity", "Values among rows alike, fewest (l)", Scale((1.0, None)).more).means(
        "The fewest different values of a further column, a missing cell counting as one, among released rows that are "
        "alike in the known columns; 1 means that these give it away"
    ),
    Number("known-class-closeness", "Distance of rows alike from all, largest (t)", SCORE).means(
        "How far the values of a further column among released rows alike in the known columns are from those of the "
        "whole table, where that is farthest; 0 means that what is known tells nothing more"
    ),
)


def class_findings(study: Study) -> tuple[Finding, ...]:
    """Findings about rows alike in the known columns; the further columns are the target, or all others."""
    return KNOWN_CLASSES.findings(_run_known(study))


def _run_known(study: Study) -> Iterator[Stated]:
    known, held = study.known, {column_known(study, told) for told in study.known}
    study = with_known_labels(study)
    given = [study.pair(name) for name in known]
    before, after = _classes(given, original=True), _classes(given, original=False)
    yield (
        "known-class-smallest",
        Values(
            float(np.bincount(after).min()),
            baseline=float(study.holders(before, 1).min()),
            range=(1.0, float(len(after))),
        ),
    )
    others = [pair for pair in study.pairs if pair.name not in held.union(known)]
    if study.target is not None and study.target not in held:
        others = [study.pair(study.target)]
    if not others:
        raise NotRun("all columns are taken to be known")
    made = [_secret(pair, after, original=False) for pair in others]
    was = [_secret(pair, before, original=True) for pair in others]
    yield "known-class-diversity", Values(min(few for few, _ in made), baseline=min(few for few, _ in was))
    yield "known-class-closeness", Values(max(far for _, far in made), baseline=max(far for _, far in was))


def _classes(pairs: Sequence[ColumnPair], *, original: bool) -> np.ndarray:
    """Class of each row: those alike in all columns share one."""
    sides = (pair.original if original else pair.released for pair in pairs)
    keys = row_keys(places_of_values(cells).astype(np.uint64) for cells in sides)
    return np.asarray(np.unique(keys, return_inverse=True)[1].ravel())


def _secret(pair: ColumnPair, classes: np.ndarray, *, original: bool) -> tuple[float, float]:
    """Fewest values of a column in a class, and the largest distance of a class from the whole table."""
    cells = pair.original if original else pair.released
    found = measure_diversity(classes, places_of_values(cells), ordered=pair.is_number)
    return float(found.distinct.min()), float(found.closeness.max())
