"""Every measure and every attack of a report, in the order in which they run."""

from __future__ import annotations

from sfumato.assess.frame import Measure

__all__ = ["catalogue"]


def catalogue() -> tuple[Measure, ...]:
    """List the measures; they are loaded when the list is asked for."""
    return (*_utility(), *_risk(), *_attacks())


def _utility() -> tuple[Measure, ...]:
    from sfumato.assess.utility.clustering import CLUSTERING
    from sfumato.assess.utility.distances import DISTANCES
    from sfumato.assess.utility.endurance import ENDURANCE
    from sfumato.assess.utility.prediction import PREDICTION
    from sfumato.assess.utility.propensity import PROPENSITY
    from sfumato.assess.utility.propensity_auc import PROPENSITY_AUC
    from sfumato.assess.utility.queries import QUERIES
    from sfumato.assess.utility.responses import RESPONSES
    from sfumato.assess.utility.rules import RULES

    return (PREDICTION, RESPONSES, ENDURANCE, PROPENSITY, PROPENSITY_AUC, QUERIES, RULES, CLUSTERING, DISTANCES)


def _risk() -> tuple[Measure, ...]:
    from sfumato.assess.risk.categories import RAREST_CATEGORY
    from sfumato.assess.risk.conditioning import CONDITIONING
    from sfumato.assess.risk.diversity import DIVERSITY
    from sfumato.assess.risk.interval import INTERVAL
    from sfumato.assess.risk.perturbation import PERTURBATION
    from sfumato.assess.risk.ratio import RATIO
    from sfumato.assess.risk.security import SECURITY
    from sfumato.assess.risk.uncertainty import UNCERTAINTY
    from sfumato.assess.risk.uniqueness import UNIQUENESS

    return (INTERVAL, UNCERTAINTY, PERTURBATION, SECURITY, UNIQUENESS, RAREST_CATEGORY, RATIO, DIVERSITY, CONDITIONING)


def _attacks() -> tuple[Measure, ...]:
    from sfumato.assess.attacks.answers import BEST_GUESS
    from sfumato.assess.attacks.components import COMPONENTS
    from sfumato.assess.attacks.differencing import DIFFERENCING
    from sfumato.assess.attacks.digits import DIGITS
    from sfumato.assess.attacks.group_filter import GROUP_FILTER
    from sfumato.assess.attacks.groups import GROUP_LINKAGE
    from sfumato.assess.attacks.halves import LINKABILITY
    from sfumato.assess.attacks.inference import ATTRIBUTE_INFERENCE
    from sfumato.assess.attacks.known_input import KNOWN_INPUT
    from sfumato.assess.attacks.labels import LABEL_INFERENCE
    from sfumato.assess.attacks.linkage import LINKAGE, OWN_ROW_LINKAGE
    from sfumato.assess.attacks.membership import MEMBERSHIP
    from sfumato.assess.attacks.public_moments import PUBLIC_MOMENTS
    from sfumato.assess.attacks.rare import RARE_COMBINATIONS
    from sfumato.assess.attacks.rounds import ROUNDS
    from sfumato.assess.attacks.singling import SINGLING_OUT
    from sfumato.assess.attacks.spectral import SPECTRAL

    return (
        LINKAGE,
        OWN_ROW_LINKAGE,
        GROUP_LINKAGE,
        LINKABILITY,
        SINGLING_OUT,
        ATTRIBUTE_INFERENCE,
        LABEL_INFERENCE,
        MEMBERSHIP,
        RARE_COMBINATIONS,
        SPECTRAL,
        GROUP_FILTER,
        BEST_GUESS,
        KNOWN_INPUT,
        COMPONENTS,
        PUBLIC_MOMENTS,
        DIGITS,
        DIFFERENCING,
        ROUNDS,
    )
