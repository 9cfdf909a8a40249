"""Rows alike in the columns that an outsider knows: how few they are, and what they give away of the other columns.

k-anonymity, l-diversity and t-closeness of a table, whoever made it [Sweeney 2002; Machanavajjhala et al. 2007; Li, Li
& Venkatasubramanian 2007].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sfumato.assess.algebra import SCORE, Measure, NotRun, Number, Scale, Stated, Values
from sfumato.assess.findings import Family, Finding
from sfumato.assess.known_labels import column_known, with_known_labels
from sfumato.assess.risk.groups import measure_diversity, places_of_values
from sfumato.assess.study import ColumnPair, Study, row_keys

__all__ = ["KNOWN_CLASSES", "class_findings"]

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
    return KNOWN_CLASSES.findings(_run(study))


def _run(study: Study) -> Iterator[Stated]:
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
