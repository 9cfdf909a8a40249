"""Condensation as a mechanism: group records, keep the groups' statistics, draw synthetic records from them [AY05]."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from sfumato.core.arguments import Panel, option
from sfumato.core.arrays import Ints
from sfumato.core.errors import LevelError, OptionError
from sfumato.core.groups import response_weights
from sfumato.core.records import Records
from sfumato.methods.protocol import MethodResult, Traits, check_parameters

__all__ = ["ALGORITHMS", "PAPER", "SCORES", "Condensation", "check_k", "check_options", "effective_levels"]

ALGORITHMS = {
    "compact": "principal-axis tree and local search",
    "mdav": "MDAV",
    "paper": "AY05 ConstructGroups",
    "modified": "KCG12 modified condensation",
    "holistic": "K-means with small clusters dissolved",
}
"""The groupings, and how a certificate names each."""

SCORES = ("plain", "normal")
"""What groups and their statistics are of."""

_EFFORTS = ("fast", "default", "thorough")
_WEIGHTED = ("modified", "holistic")  # the groupings that weigh the response by default
_USUAL_WEIGHT = 0.8  # [BCG10, sec. 5.2]


@dataclass(frozen=True)
class Condensation:
    """Group condensation with a privacy level for each record.

    Parameters
    ----------
    k : int
        The floor: a record's level is max(k, the level it asks for).
    grouping : {"compact", "mdav", "paper", "modified", "holistic"}
        ``"compact"`` searches for groups of low sum of squares with every record's own level, ``"paper"`` is
        ConstructGroups [AY05, sec. 2]. At the highest level of all: ``"mdav"`` is exact MDAV, ``"modified"`` fills the
        small clusters of K-means [KCG12, fig. 3], ``"holistic"`` dissolves them [BCG10, sec. 3.1].
    effort : {"fast", "default", "thorough"}
        How long the compact grouping searches.
    allow_level_1 : bool
        Level 1 is no protection: such a record may stand alone and is then published as it is.
    response_weight : float, optional
        Weight of the target in the distance, the other columns share the rest [BCG10, eq. 1]. Without it the groupings
        ``"modified"`` and ``"holistic"`` take 0.8, and to all others all columns weigh the same, as they do without a
        target.
    scores : {"plain", "normal"}
        Values that are grouped: the numbers themselves, as in the papers, or their normal scores (quantiles of a normal
        distribution by rank), which make skewed columns symmetric. Scores become numbers again by means over at least
        k people.

    Examples
    --------
    >>> Condensation(k=10).method
    'condense'
    >>> Condensation(k=1)
    Traceback (most recent call last):
        ...
    sfumato.core.errors.LevelError: k is 1, which is no protection; use k of at least 2 or allow level 1 explicitly
    """

    k: int = option(
        10,
        "Minimum group size of all records.  [default: 10 to 50, 2 with --level; classwise chooses; block 5]",
        Panel.FIRST,
    )
    grouping: str = option("compact", "How records are grouped.  [default: compact]", choices=tuple(ALGORITHMS))
    effort: str = option("default", "How long the compact grouping searches.", choices=_EFFORTS)
    allow_level_1: bool = option(
        False, "Allow records with a minimum group size of 1, which are not protected.", Panel.PRIVACY
    )
    response_weight: float | None = option(None, "Weight of the target in the distance between records.")
    scores: str = option(
        "plain", "condense: form groups on the numbers themselves, or on their normal scores.", choices=SCORES
    )

    def __post_init__(self) -> None:
        check_parameters(self)
        check_k(self.k, allow_level_1=self.allow_level_1)
        check_options(self.grouping, self.effort)
        if self.scores not in SCORES:
            raise OptionError(f"there are no scores {self.scores!r}; choose one of {', '.join(SCORES)}")
        weight = self.response_weight
        if weight is not None and not 0.0 <= weight <= 1.0:
            raise OptionError("response_weight must lie between 0 and 1; the default is 0.8")

    @property
    def traits(self) -> Traits:
        """Properties that an engine needs to know."""
        paper = self.grouping == "paper"
        return Traits(
            synthetic=True,
            floor=self.k,
            level_1=self.allow_level_1,
            links=True,
            codes=True,
            paper_law=paper,
            grouped=True,
        )

    @property
    def method(self) -> str:
        """The method's name on the command line."""
        return "condense-paper" if self.grouping == "paper" else "condense"

    def sanitize(self, records: Records, *, rng: np.random.Generator) -> MethodResult:
        """Replace the records by as many synthetic ones, drawn from the statistics of their groups."""
        from sfumato.methods.condense.classwise import partition_layers, synthesize_linked
        from sfumato.methods.condense.compact import CompactSearch
        from sfumato.methods.condense.synthesize import NormalScores, synthesize
        from sfumato.methods.condense.warm import compile_ahead

        compile_ahead()
        if self.scores == "normal":
            highest = int(effective_levels(records.levels, self.k, allow_level_1=self.allow_level_1).max())
            scored = NormalScores.of(records, max(2, highest))
            return scored.back(replace(self, scores="plain").sanitize(scored.records, rng=rng))
        levels = effective_levels(records.levels, self.k, allow_level_1=self.allow_level_1)
        weights, weight = None, self.response_weight
        if weight is None and self.grouping in _WEIGHTED:
            weight = _USUAL_WEIGHT
        if weight is not None:
            weights = response_weights(records.layout, records.target, weight)
        if records.linked:
            return synthesize_linked(records, levels, rng, weights=weights, grouping=self.grouping, effort=self.effort)
        labels, kept = partition_layers(
            records.values if weights is None else records.values * np.sqrt(weights),
            levels,
            records.strata,
            records.persons,
            rng,
            grouping=self.grouping,
            effort=self.effort,
            search=CompactSearch(among=records.among),
        )
        return synthesize(records, labels, levels, ALGORITHMS[self.grouping], rng, kept=kept)


PAPER = partial(Condensation, grouping="paper")
"""The method condense-paper."""


def check_k(k: int, *, allow_level_1: bool) -> None:
    """Refuse a minimum level below 2."""
    if k < 1:
        raise LevelError("k must be a whole number of at least 2")
    if k == 1 and not allow_level_1:
        raise LevelError("k is 1, which is no protection; use k of at least 2 or allow level 1 explicitly")


def check_options(grouping: str, effort: str) -> None:
    """Refuse a grouping or an effort that there is not; loads nothing."""
    for name, chosen, choices in (("grouping", grouping, ALGORITHMS), ("effort", effort, _EFFORTS)):
        if chosen not in choices:
            raise OptionError(f"there is no {name} {chosen!r}; choose one of {', '.join(choices)}")


def effective_levels(asked: Ints, k: int, *, allow_level_1: bool) -> Ints:
    """max(k, requested level) of each record; 0 requests none."""
    if (asked < 0).any():
        raise LevelError(f"{int((asked < 0).sum())} privacy levels are negative; levels are whole numbers from 2")
    low = int(((asked == 1) & ~np.bool_(allow_level_1)).sum())
    if low:
        raise LevelError(
            f"{low} records have privacy level 1, which is no protection; raise them to at least 2 "
            "or allow level 1 explicitly"
        )
    return np.maximum(asked, k).astype(np.int64)
