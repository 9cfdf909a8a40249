"""Every measure and every attack of a report, in the order in which they run; loaded when they are asked for."""

from __future__ import annotations

from functools import cache

from sfumato.assess.algebra import Measure, Number

__all__ = ["basic", "catalogue", "declared"]


def basic() -> tuple[Measure, ...]:
    """What every report begins with: groups, near rows and columns."""
    from sfumato.assess.risk.closest import CLOSEST
    from sfumato.assess.risk.groups import COMPACTNESS, GROUPS
    from sfumato.assess.utility.comparison import COLUMNS

    return GROUPS, COMPACTNESS, CLOSEST, COLUMNS


def catalogue() -> tuple[Measure, ...]:
    """All other measures, and the attacks."""
    return (*_utility(), *_risk(), *_attacks())


@cache
def declared() -> dict[str, Number]:
    """Every number that is declared, by its name before a slash."""
    from sfumato.assess.baskets import BASKET_ATTACKS, BASKETS
    from sfumato.assess.measure import EPOCHS
    from sfumato.assess.risk.uniqueness import KNOWN_CLASSES
    from sfumato.assess.utility.distortion import COSTS

    measures = (*basic(), *catalogue(), EPOCHS, KNOWN_CLASSES, COSTS, BASKETS, BASKET_ATTACKS)
    numbers = [number for measure in measures for number in measure.numbers]
    return {number.name.removesuffix("/"): number for number in reversed(numbers)}


def _utility() -> tuple[Measure, ...]:
    from sfumato.assess.utility.clustering import CLUSTERING
    from sfumato.assess.utility.comparison import QUERIES
    from sfumato.assess.utility.distortion import CHANGES, DISTANCES
    from sfumato.assess.utility.prediction import ENDURANCE, PREDICTION, RESPONSES
    from sfumato.assess.utility.propensity import PROPENSITY, PROPENSITY_AUC
    from sfumato.assess.utility.rules import COLUMN_RULES, RULES

    mined = PREDICTION, RESPONSES, ENDURANCE, PROPENSITY, PROPENSITY_AUC, QUERIES, RULES, CLUSTERING, DISTANCES
    return (*mined, COLUMN_RULES, CHANGES)


def _risk() -> tuple[Measure, ...]:
    from sfumato.assess.risk.closest import NEIGHBOUR_RATIO
    from sfumato.assess.risk.groups import CONDITIONING, DIVERSITY
    from sfumato.assess.risk.uncertainty import INTERVAL, UNCERTAINTY
    from sfumato.assess.risk.uniqueness import RAREST_CATEGORY, UNIQUENESS
    from sfumato.assess.utility.distortion import PERTURBATION, SECURITY

    first = INTERVAL, UNCERTAINTY, PERTURBATION, SECURITY, UNIQUENESS
    return (*first, RAREST_CATEGORY, NEIGHBOUR_RATIO, DIVERSITY, CONDITIONING)


def _attacks() -> tuple[Measure, ...]:
    from sfumato.assess.attacks.differencing import DIFFERENCING, ROUNDS
    from sfumato.assess.attacks.inference import ATTRIBUTE_INFERENCE
    from sfumato.assess.attacks.known_input import KNOWN_INPUT, PUBLIC_MOMENTS
    from sfumato.assess.attacks.labels import HIDDEN_LABEL, LABEL_INFERENCE, SWAPPED_ROWS
    from sfumato.assess.attacks.linkability import GROUP_LINKAGE, LINKABILITY
    from sfumato.assess.attacks.linkage import LINKAGE, LINKED_PERSONS, OWN_ROW_LINKAGE
    from sfumato.assess.attacks.membership import LEAVES, MEMBERSHIP, OUTLIERS
    from sfumato.assess.attacks.noise_filter import BEST_GUESS, GROUP_FILTER, NOISE_FILTER
    from sfumato.assess.attacks.rare_combinations import RARE_COMBINATIONS, UNIQUE_VALUES, WHOLE_ROWS
    from sfumato.assess.attacks.singling import SINGLING_OUT
    from sfumato.assess.attacks.unknown_input import COMPONENTS, DIGITS

    linking = LINKAGE, OWN_ROW_LINKAGE, LINKED_PERSONS, GROUP_LINKAGE, LINKABILITY, SINGLING_OUT
    inferring = ATTRIBUTE_INFERENCE, LABEL_INFERENCE, MEMBERSHIP, LEAVES, OUTLIERS, RARE_COMBINATIONS
    shown = UNIQUE_VALUES, WHOLE_ROWS
    undoing = NOISE_FILTER, GROUP_FILTER, BEST_GUESS, KNOWN_INPUT, COMPONENTS, PUBLIC_MOMENTS, DIGITS
    return (*linking, *inferring, *shown, *undoing, DIFFERENCING, ROUNDS, SWAPPED_ROWS, HIDDEN_LABEL)
