"""Geometric transformations of confidential numbers for clustering: outsourcing obfuscation [OZ03]."""

from __future__ import annotations

from sfumato.geometry.draw import Ranges
from sfumato.geometry.key import Add, Key, Mult, Rotate
from sfumato.geometry.mechanism import Hybrid, Rotation, Scaling, Translation
from sfumato.geometry.transformations import invert

__all__ = ["Add", "Hybrid", "Key", "Mult", "Ranges", "Rotate", "Rotation", "Scaling", "Translation", "invert"]
