"""sfumato: a table that can be mined in place of the real one, with a certificate and a report."""

from __future__ import annotations

from importlib import import_module
from inspect import isfunction
from typing import TYPE_CHECKING, Any

from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.assess.report import Report
    from sfumato.core.laws.calculator import breach
    from sfumato.core.laws.spec import NoiseSpec
    from sfumato.engines.outcome import Recipe
    from sfumato.mechanisms.chain import Chain
    from sfumato.mechanisms.condense import Condensation
    from sfumato.mechanisms.condense.classwise import ClasswiseCondensation
    from sfumato.mechanisms.geometry import Hybrid, Rotation, Scaling, Translation
    from sfumato.mechanisms.geometry.key import Key
    from sfumato.mechanisms.modify.block import Aggregation, Blocking
    from sfumato.mechanisms.modify.downgrade import Downgrading
    from sfumato.mechanisms.modify.swap import Subsampling, Swapping
    from sfumato.mechanisms.perturb import AdditiveNoise, MultiplicativeNoise
    from sfumato.mechanisms.perturb.laplace_pca import LaplacePCA
    from sfumato.mechanisms.randomize import Randomization
    from sfumato.mechanisms.transactions.randomize import TransactionRandomization
    from sfumato.mechanisms.transactions.rules import RuleBlocking, RuleHiding
    from sfumato.privacy.certificate import Certificate
    from sfumato.publish.evaluate import evaluate
    from sfumato.publish.judge import PolicyNotMet
    from sfumato.publish.policy import Policy
    from sfumato.publish.release import Release
    from sfumato.publish.sanitize import sanitize, sanitize_file
    from sfumato.publish.signing_key import new_signing_key, signing_key
    from sfumato.publish.transactions import transactions
    from sfumato.publish.verify import verify_release as verify
    from sfumato.tables.schema import Domain, Field, Kind, Role, Schema
    from sfumato.tuning.run import tune
    from sfumato.verbs import inspect, reconstruct, relate, stream

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
    "sanitize",
    "sanitize_file",
    "signing_key",
    "stream",
    "transactions",
    "tune",
    "verify",
]

_HOMES = {
    "AdditiveNoise": "sfumato.mechanisms.perturb",
    "Aggregation": "sfumato.mechanisms.modify.block",
    "TransactionRandomization": "sfumato.mechanisms.transactions.randomize",
    "Blocking": "sfumato.mechanisms.modify.block",
    "Certificate": "sfumato.privacy.certificate",
    "Chain": "sfumato.mechanisms.chain",
    "ClasswiseCondensation": "sfumato.mechanisms.condense.classwise",
    "Condensation": "sfumato.mechanisms.condense",
    "Domain": "sfumato.tables.schema",
    "Downgrading": "sfumato.mechanisms.modify.downgrade",
    "Field": "sfumato.tables.schema",
    "Hybrid": "sfumato.mechanisms.geometry",
    "Key": "sfumato.mechanisms.geometry.key",
    "Kind": "sfumato.tables.schema",
    "LaplacePCA": "sfumato.mechanisms.perturb.laplace_pca",
    "MultiplicativeNoise": "sfumato.mechanisms.perturb",
    "NoiseSpec": "sfumato.core.laws.spec",
    "Policy": "sfumato.publish.policy",
    "PolicyNotMet": "sfumato.publish.judge",
    "Randomization": "sfumato.mechanisms.randomize",
    "Recipe": "sfumato.engines.outcome",
    "Release": "sfumato.publish.release",
    "Report": "sfumato.assess.report",
    "Role": "sfumato.tables.schema",
    "Rotation": "sfumato.mechanisms.geometry",
    "RuleBlocking": "sfumato.mechanisms.transactions.rules",
    "RuleHiding": "sfumato.mechanisms.transactions.rules",
    "Subsampling": "sfumato.mechanisms.modify.swap",
    "Scaling": "sfumato.mechanisms.geometry",
    "Schema": "sfumato.tables.schema",
    "Swapping": "sfumato.mechanisms.modify.swap",
    "Translation": "sfumato.mechanisms.geometry",
    "transactions": "sfumato.publish.transactions",
    "breach": "sfumato.core.laws.calculator",
    "evaluate": "sfumato.publish.evaluate",
    "inspect": "sfumato.verbs",
    "new_signing_key": "sfumato.publish.signing_key",
    "reconstruct": "sfumato.verbs",
    "relate": "sfumato.verbs",
    "sanitize": "sfumato.publish.sanitize",
    "sanitize_file": "sfumato.publish.sanitize",
    "signing_key": "sfumato.publish.signing_key",
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
    if isfunction(value):  # a verb: arguments of a wrong type are refused in one sentence
        from sfumato.core.arguments import checked

        value = checked(value)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
