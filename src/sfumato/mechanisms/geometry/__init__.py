"""Geometric transformations of confidential numbers for clustering: outsourcing obfuscation [OZ03]."""

from __future__ import annotations

from sfumato.mechanisms.geometry.key import Add, Key, Mult, Rotate
from sfumato.mechanisms.geometry.mechanism import Hybrid, Rotation, Scaling, Translation
from sfumato.mechanisms.geometry.transformations import Ranges, invert

__all__ = ["Add", "Hybrid", "Key", "Mult", "Ranges", "Rotate", "Rotation", "Scaling", "Translation", "invert"]
