"""sfumato: a table that can be mined in place of the real one, with a certificate and a report."""

from __future__ import annotations

import sys
from importlib import import_module
from inspect import isfunction
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.assess.report import Report
    from sfumato.certificate import Certificate
    from sfumato.certificate.signature import new_signing_key, signing_key
    from sfumato.core.distributions.spec import NoiseSpec
    from sfumato.engines.outcome import Recipe
    from sfumato.methods.chain import Chain
    from sfumato.methods.condense import Condensation
    from sfumato.methods.condense.classwise import ClasswiseCondensation
    from sfumato.methods.geometry import Hybrid, Rotation, Scaling, Translation
    from sfumato.methods.geometry.key import Key
    from sfumato.methods.modify import Aggregation, Blocking
    from sfumato.methods.modify.swap import Downgrading, Subsampling, Swapping
    from sfumato.methods.perturb import AdditiveNoise, MultiplicativeNoise
    from sfumato.methods.perturb.laplace_pca import LaplacePCA
    from sfumato.methods.private import PrivateChain
    from sfumato.methods.private.sample import sample
    from sfumato.methods.randomize import Randomization
    from sfumato.publish.evaluate import evaluate
    from sfumato.publish.judge import PolicyNotMet
    from sfumato.publish.policy import Policy
    from sfumato.publish.release import Release
    from sfumato.publish.sanitize import sanitize
    from sfumato.publish.verify import verify_release as verify
    from sfumato.stream.run import stream
    from sfumato.survey.calculator import breach
    from sfumato.survey.verbs import reconstruct, relate
    from sfumato.tables.schema import Domain, Field, Kind, Role, Schema
    from sfumato.transactions.mechanism import TransactionRandomization
    from sfumato.transactions.rules import RuleBlocking, RuleHiding
    from sfumato.transactions.verb import transactions
    from sfumato.tuning.run import tune
    from sfumato.verbs import inspect

__all__ = [
    "AdditiveNoise",
    "Aggregation",
    "Blocking",
    "Certificate",
    "Chain",
    "ClasswiseCondensation",
    "Condensation",
    "Domain",
    "Downgrading",
    "Field",
    "Hybrid",
    "Key",
    "Kind",
    "LaplacePCA",
    "MultiplicativeNoise",
    "NoiseSpec",
    "Policy",
    "PolicyNotMet",
    "PrivateChain",
    "Randomization",
    "Recipe",
    "Release",
    "Report",
    "Role",
    "Rotation",
    "RuleBlocking",
    "RuleHiding",
    "Scaling",
    "Schema",
    "Subsampling",
    "Swapping",
    "TransactionRandomization",
    "Translation",
    "__version__",
    "breach",
    "evaluate",
    "inspect",
    "new_signing_key",
    "reconstruct",
    "relate",
    "sample",
    "sanitize",
    "signing_key",
    "stream",
    "transactions",
    "tune",
    "verify",
]

_HOMES = {
    "AdditiveNoise": "sfumato.methods.perturb",
    "Aggregation": "sfumato.methods.modify",
    "TransactionRandomization": "sfumato.transactions.mechanism",
    "Blocking": "sfumato.methods.modify",
    "Certificate": "sfumato.certificate",
    "Chain": "sfumato.methods.chain",
    "PrivateChain": "sfumato.methods.private",
    "ClasswiseCondensation": "sfumato.methods.condense.classwise",
    "Condensation": "sfumato.methods.condense",
    "Domain": "sfumato.tables.schema",
    "Downgrading": "sfumato.methods.modify.swap",
    "Field": "sfumato.tables.schema",
    "Hybrid": "sfumato.methods.geometry",
    "Key": "sfumato.methods.geometry.key",
    "Kind": "sfumato.tables.schema",
    "LaplacePCA": "sfumato.methods.perturb.laplace_pca",
    "MultiplicativeNoise": "sfumato.methods.perturb",
    "NoiseSpec": "sfumato.core.distributions.spec",
    "Policy": "sfumato.publish.policy",
    "PolicyNotMet": "sfumato.publish.judge",
    "Randomization": "sfumato.methods.randomize",
    "Recipe": "sfumato.engines.outcome",
    "Release": "sfumato.publish.release",
    "Report": "sfumato.assess.report",
    "Role": "sfumato.tables.schema",
    "Rotation": "sfumato.methods.geometry",
    "RuleBlocking": "sfumato.transactions.rules",
    "RuleHiding": "sfumato.transactions.rules",
    "Subsampling": "sfumato.methods.modify.swap",
    "Scaling": "sfumato.methods.geometry",
    "Schema": "sfumato.tables.schema",
    "Swapping": "sfumato.methods.modify.swap",
    "Translation": "sfumato.methods.geometry",
    "transactions": "sfumato.transactions.verb",
    "breach": "sfumato.survey.calculator",
    "evaluate": "sfumato.publish.evaluate",
    "inspect": "sfumato.verbs",
    "new_signing_key": "sfumato.certificate.signature",
    "reconstruct": "sfumato.survey.verbs",
    "relate": "sfumato.survey.verbs",
    "sample": "sfumato.methods.private.sample",
    "sanitize": "sfumato.publish.sanitize",
    "signing_key": "sfumato.certificate.signature",
    "stream": "sfumato.stream.run",
    "tune": "sfumato.tuning.run",
    "verify": "sfumato.publish.verify:verify_release",
}
"""Where a name lives, and what it is called there if otherwise."""


class _Package(ModuleType):
    """The package, in which a public name stays what it is when a subpackage of that name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOMES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}")
    module, _, inside = _HOMES[name].partition(":")
    value = getattr(import_module(module), inside or name)
    if isfunction(value):  # a verb: arguments of a wrong type are refused in one sentence
        from sfumato.core.arguments import checked

        value = checked(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
