"""Noise laws on a declared grid: the only source of privacy noise."""

from __future__ import annotations

from sfumato.core.laws.amplification import combine, downward_bound, gamma_for, gamma_for_downward, upward_bound
from sfumato.core.laws.domains import Integers, Labels, Reals, Universe, domain_from_document, domain_to_document
from sfumato.core.laws.integers import draw_gaussian, draw_geometric, draw_laplace
from sfumato.core.laws.noise import (
    LAWS,
    DiscreteGaussian,
    DiscreteLaplace,
    DiscreteUniform,
    Law,
    add_noise,
    choose_step,
    law_of_size,
    snap,
)
from sfumato.core.laws.operators import (
    Additive,
    KeepOrReplace,
    Membership,
    Mixture,
    Operator,
    Response,
    ShiftModulo,
    likelihoods,
    transition,
)
from sfumato.core.laws.spec import NoiseSpec

__all__ = [
    "LAWS",
    "Additive",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteUniform",
    "Integers",
    "KeepOrReplace",
    "Labels",
    "Law",
    "Membership",
    "Mixture",
    "NoiseSpec",
    "Operator",
    "Reals",
    "Response",
    "ShiftModulo",
    "Universe",
    "add_noise",
    "choose_step",
    "combine",
    "domain_from_document",
    "domain_to_document",
    "downward_bound",
    "draw_gaussian",
    "draw_geometric",
    "draw_laplace",
    "gamma_for",
    "gamma_for_downward",
    "law_of_size",
    "likelihoods",
    "snap",
    "transition",
    "upward_bound",
]
