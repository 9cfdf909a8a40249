"""Noise on numbers: additive and multiplicative [OZ03, sec. 3.1]."""

from __future__ import annotations

from sfumato.perturb.additive import AdditiveNoise
from sfumato.perturb.multiplicative import MultiplicativeNoise
from sfumato.perturb.noise import make_noise

__all__ = ["AdditiveNoise", "MultiplicativeNoise", "make_noise"]
