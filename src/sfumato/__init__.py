"""sfumato: a table that can be mined in place of the real one, with a certificate and a report."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.assess.report import Report
    from sfumato.condense.classwise import ClasswiseCondensation
    from sfumato.condense.mechanism import Condensation
    from sfumato.geometry.key import Key
    from sfumato.geometry.mechanism import Hybrid, Rotation, Scaling, Translation
    from sfumato.laws.calculator import breach
    from sfumato.laws.spec import NoiseSpec
    from sfumato.perturb import AdditiveNoise, LaplacePCA, MultiplicativeNoise
    from sfumato.privacy.certificate import Certificate
    from sfumato.publish import Policy, PolicyNotMet, Release
    from sfumato.publish.evaluate import evaluate
    from sfumato.publish.sanitize import sanitize, sanitize_file
    from sfumato.publish.verify import verify_release as verify
    from sfumato.randomize.mechanism import Randomization
    from sfumato.recipe import Recipe
    from sfumato.tables.schema import Domain, Field, Kind, Role, Schema
    from sfumato.tuning.run import tune
    from sfumato.verbs import inspect, reconstruct, stream

__all__ = [
    "AdditiveNoise",
    "Certificate",
    "ClasswiseCondensation",
    "Condensation",
    "Domain",
    "Field",
    "Hybrid",
    "Key",
    "Kind",
    "LaplacePCA",
    "MultiplicativeNoise",
    "NoiseSpec",
    "Policy",
    "PolicyNotMet",
    "Randomization",
    "Recipe",
    "Release",
    "Report",
    "Role",
    "Rotation",
    "Scaling",
    "Schema",
    "Translation",
    "__version__",
    "breach",
    "evaluate",
    "inspect",
    "reconstruct",
    "sanitize",
    "sanitize_file",
    "stream",
    "tune",
    "verify",
]

_HOMES = {
    "AdditiveNoise": "sfumato.perturb",
    "Certificate": "sfumato.privacy.certificate",
    "ClasswiseCondensation": "sfumato.condense.classwise",
    "Condensation": "sfumato.condense.mechanism",
    "Domain": "sfumato.tables.schema",
    "Field": "sfumato.tables.schema",
    "Hybrid": "sfumato.geometry.mechanism",
    "Key": "sfumato.geometry.key",
    "Kind": "sfumato.tables.schema",
    "LaplacePCA": "sfumato.perturb",
    "MultiplicativeNoise": "sfumato.perturb",
    "NoiseSpec": "sfumato.laws.spec",
    "Policy": "sfumato.publish",
    "PolicyNotMet": "sfumato.publish",
    "Randomization": "sfumato.randomize.mechanism",
    "Recipe": "sfumato.recipe",
    "Release": "sfumato.publish",
    "Report": "sfumato.assess.report",
    "Role": "sfumato.tables.schema",
    "Rotation": "sfumato.geometry.mechanism",
    "Scaling": "sfumato.geometry.mechanism",
    "Schema": "sfumato.tables.schema",
    "Translation": "sfumato.geometry.mechanism",
    "breach": "sfumato.laws.calculator",
    "evaluate": "sfumato.publish.evaluate",
    "inspect": "sfumato.verbs",
    "reconstruct": "sfumato.verbs",
    "sanitize": "sfumato.publish.sanitize",
    "sanitize_file": "sfumato.publish.sanitize",
    "stream": "sfumato.verbs",
    "tune": "sfumato.tuning.run",
    "verify": "sfumato.publish.verify:verify_release",
}
"""Where a name lives, and what it is called there if otherwise."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    module, _, inside = _HOMES[name].partition(":")
    value = getattr(import_module(module), inside or name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """Keeps a verb a function, although a room of the same name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOMES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted(__all__)
