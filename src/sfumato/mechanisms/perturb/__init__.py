"""Noise on numbers: additive and multiplicative [OZ03, sec. 3.1], and on principal components of groups [BCG10]."""

from __future__ import annotations

from sfumato.mechanisms.perturb.laplace_pca import LaplacePCA
from sfumato.mechanisms.perturb.noise import AdditiveNoise, MultiplicativeNoise, make_noise

__all__ = ["AdditiveNoise", "LaplacePCA", "MultiplicativeNoise", "make_noise"]
