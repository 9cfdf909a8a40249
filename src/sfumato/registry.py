"""Methods, measures, facts and commands by name, each with the module that holds it, which is loaded at its first use.

The verticals (`parties`, `stream`, `survey`, `transactions`) are known here alone: the core loads them by name and
imports none. Other installed packages add methods and measures by an entry point of the group ``sfumato.extensions``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sfumato.core.errors import OptionError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = [
    "COMMANDS",
    "GROUP",
    "Extension",
    "extension_measures",
    "extensions",
    "load_command",
    "load_facts",
    "load_method",
    "load_own_method",
    "load_status",
    "method_names",
    "secure_engine",
    "vertical_attacks",
    "vertical_measures",
]

COMMANDS: Mapping[str, str] = MappingProxyType(
    {
        "demo": "cli.verbs",
        "inspect": "cli.verbs",
        "tune": "cli.evaluate",
        "sanitize": "cli.sanitize",
        "sample": "cli.evaluate",
        "evaluate": "cli.evaluate",
        "policy": "cli.verbs",
        "verify": "cli.verbs",
        "signing-key": "cli.evaluate",
        "breach": "survey.estimate_commands",
        "survey": "survey.commands",
        "transactions": "transactions.commands",
        "stream": "stream.commands",
        "reconstruct": "survey.estimate_commands",
        "relate": "survey.estimate_commands",
        "party": "parties.commands",
        "web": "cli.verbs",
        "doctor": "cli.verbs",
    }
)
"""Commands in the order of the help, and the module of each."""

_METHODS: Mapping[str, str] = MappingProxyType(
    {
        "condense": "methods.condense:Condensation",
        "condense-paper": "methods.condense:PAPER",
        "classwise": "methods.condense.classwise:ClasswiseCondensation",
        "chain": "methods.chain:Chain",
        "private": "methods.private:PrivateChain",
        "translate": "methods.geometry:Translation",
        "scale": "methods.geometry:Scaling",
        "rotate": "methods.geometry:Rotation",
        "hybrid": "methods.geometry:Hybrid",
        "noise": "methods.perturb:make_noise",
        "laplace-pca": "methods.perturb.laplace_pca:LaplacePCA",
        "randomize": "methods.randomize:Randomization",
        "swap": "methods.modify.swap:Swapping",
        "subsample": "methods.modify.swap:Subsampling",
        "aggregate": "methods.modify:Aggregation",
        "block": "methods.modify:Blocking",
        "downgrade": "methods.modify.swap:Downgrading",
    }
)
"""Methods in the order of the help, and the module and the name there of what makes the mechanism of each."""

_MEASURES = ("transactions.measures",)  # modules with MEASURES, which a release of the vertical alone has
_ATTACKS = ("parties.rounds", "parties.inference")  # modules with MEASURES, which run on every table that they apply to
_FACTS = (
    "core.facts.release",
    "core.groups.facts",
    "tables.facts",
    *dict.fromkeys(".".join([*module.partition(":")[0].split(".")[:2], "facts"]) for module in _METHODS.values()),
    "parties.facts",
    "stream.facts",
    "transactions.facts",
)
_STATUS = {"stream": "stream.run", "survey": "survey.estimate"}  # modules with status_page

GROUP = "sfumato.extensions"
"""Group of the entry points of other packages. Each names a module with ``METHODS``, mechanisms by name, with
``MEASURES``, a sequence of measures and attacks, or with both."""


@dataclass(frozen=True)
class Extension:
    """Methods and measures of another installed package.

    Parameters
    ----------
    name : str
        Name of the entry point.
    package : str
        The package and its version.
    methods : mapping of str to callable
        Mechanisms by name.
    measures : tuple of Measure
        Measures and attacks; they run in every report.
    """

    name: str
    package: str
    methods: Mapping[str, Callable[..., Any]]
    measures: tuple[Any, ...]


def load_command(name: str) -> Any:
    """Command of this name; raises KeyError if there is none."""
    return getattr(_module(COMMANDS[name]), name.replace("-", "_"))


def load_status(name: str) -> Any:
    """Function that tells the local page how a stream or a survey stands; raises KeyError if there is none."""
    return _module(_STATUS[name]).status_page


def secure_engine() -> Path:
    """Python interpreter with the engine for secure computation; raises OptionError if there is none."""
    found: Path = _module("parties.spu").engine_python()
    return found


def method_names() -> tuple[str, ...]:
    """Methods: our own, then those of extensions."""
    return (*_METHODS, *(name for extension in extensions() for name in extension.methods))


def load_method(name: str) -> Callable[..., Any]:
    """What makes the mechanism of this name from its parameters; raises KeyError if there is no such method."""
    own = load_own_method(name)
    if own is not None:
        return own
    return {method: each for extension in extensions() for method, each in extension.methods.items()}[name]


def load_own_method(name: str) -> Callable[..., Any] | None:
    """What makes the mechanism of this name; None if it is no method of the core. Loads no extension."""
    if name not in _METHODS:
        return None
    module, _, inside = _METHODS[name].partition(":")
    made: Callable[..., Any] = getattr(_module(module), inside)
    return made


def vertical_attacks() -> tuple[Any, ...]:
    """Attacks of the verticals on tables; on other tables than theirs they do not apply."""
    return tuple(measure for name in _ATTACKS for measure in _module(name).MEASURES)


def vertical_measures() -> tuple[Any, ...]:
    """Measures that the verticals add."""
    return tuple(measure for name in _MEASURES for measure in _module(name).MEASURES)


def extension_measures(ours: Iterable[Any]) -> tuple[Any, ...]:
    """Measures of extensions; they and their numbers must have other names than ``ours`` and than one another."""
    found: list[Any] = []
    taken = {name for measure in ours for name in _names_of(measure)}
    for extension in extensions():
        for measure in extension.measures:
            _refuse_names_taken(extension, _names_of(measure), taken)
            taken |= _names_of(measure)
            found.append(measure)
    return tuple(found)


def _names_of(measure: Any) -> set[str]:
    return {measure.name, *(number.name for number in measure.numbers)}


def _refuse_names_taken(extension: Extension, names: Iterable[str], taken: Iterable[str]) -> None:
    twice = sorted(set(names) & set(taken))
    if twice:
        raise OptionError(
            f"the extension {extension.name!r} ({extension.package}) adds {twice[0]!r}, a name that is already in use; "
            "uninstall the package, or have its author choose another name"
        )


def load_facts() -> frozenset[str]:
    """Load the facts of the package, not those of extensions, and name their modules."""
    return frozenset(_module(name).__name__ for name in _FACTS)


@cache
def extensions() -> tuple[Extension, ...]:
    """Extensions of all installed packages, by name.

    Raises
    ------
    OptionError
        If one cannot be loaded. Code of other packages runs here, so that `verify` never calls this.
    """
    from importlib.metadata import entry_points

    found = [_loaded(each) for each in sorted(entry_points(group=GROUP), key=lambda each: each.name)]
    taken = set(_METHODS)
    for extension in found:
        _refuse_names_taken(extension, extension.methods, taken)
        taken |= extension.methods.keys()
    return tuple(found)


def _loaded(entry: EntryPoint) -> Extension:
    package = "an unknown package" if entry.dist is None else f"{entry.dist.name} {entry.dist.version}"
    try:
        module = entry.load()
        methods, measures = dict(getattr(module, "METHODS", {})), tuple(getattr(module, "MEASURES", ()))
        misnamed = next((name for name, made in methods.items() if made.method != name), None)
    except Exception as error:  # noqa: BLE001 (whatever the code of others raises)
        why = type(error).__name__
    else:
        if misnamed is None:
            return Extension(entry.name, package, MappingProxyType(methods), measures)
        why = f"its method {misnamed!r} has another name in its class"
    raise OptionError(f"the extension {entry.name!r} ({package}) cannot be loaded ({why}); update or uninstall it")


def _module(name: str) -> Any:
    return import_module(f"sfumato.{name}")
