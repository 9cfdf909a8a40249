"""Noise laws on a declared grid: the only source of privacy noise."""

from __future__ import annotations

from sfumato.laws.grid import add_noise, choose_step, snap
from sfumato.laws.integers import draw_gaussian, draw_geometric, draw_laplace
from sfumato.laws.noise import LAWS, DiscreteGaussian, DiscreteLaplace, DiscreteUniform, Law, law_of_size

__all__ = [
    "LAWS",
    "DiscreteGaussian",
    "DiscreteLaplace",
    "DiscreteUniform",
    "Law",
    "add_noise",
    "choose_step",
    "draw_gaussian",
    "draw_geometric",
    "draw_laplace",
    "law_of_size",
    "snap",
]
