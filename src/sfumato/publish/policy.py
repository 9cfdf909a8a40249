"""A policy: limits on the excess success of attacks, and requirements that a release must meet.

Policies are written by hand and passed around, so that a file from outside is hostile until it is read. If a policy is
not met, the command that was run is suggested again with other options.
"""

from __future__ import annotations

import math
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato.assess.report import ExceededLimit, Report
from sfumato.core.documents import CommentedValue, read_text, toml_entries, write_toml
from sfumato.core.errors import OptionError, shown
from sfumato.core.facts import Context, Fact
from sfumato.core.groups.facts import Grouped
from sfumato.engines.outcome import Recipe
from sfumato.methods.catalogue import all_parameters
from sfumato.methods.chain.facts import ChainSynthesis

__all__ = [
    "BUILT_IN",
    "KEEP",
    "LIMITS",
    "PURPOSES",
    "REQUIRE",
    "USUAL",
    "Policy",
    "command_with",
    "sanitize_words",
    "what_to_try",
    "words_of",
]

_FORMAT = 1
_MOST_BYTES = 1 << 16
_LONGEST_NAME = 60
_WIDTH = 100  # of a comment
_MOST_PERSONS = 1_000_000_000
_WRITE_ONE = "choose trusted, research or public, or write one with 'sfumato policy research -o FILE'"

LIMITS = {
    "linkage-excess": "Record linkage: share of members who are linked to a released row, minus that of the control "
    "group; the largest over the linkage, own-row linkage and linkability attacks.",
    "attribute-excess": "Attribute inference: success of an attacker who knows the other columns, on members "
    "minus the control group; the largest over columns. If a secret key moved all rows, also of an attacker who knows "
    "a "
    "few rows, minus the baseline.",
    "singling-out-excess": "Singling out: predicates read off the release that isolate one member, minus those that "
    "isolate one person of the control group; the larger of singling out and rare combinations. Extreme values that "
    "disclose one person may exceed it too.",
    "membership-auc": "Membership inference: AUC of the strongest attack; 0.5 is chance.",
    "membership-tpr": "Membership inference: true-positive rate at 1 % false positives; judged if the control group "
    "has at least 1,000 people.",
}
"""What every limit is on, in one sentence."""

REQUIRE = {
    "control": "A control group: people of the same population whose records were not used.",
    "min_group_size": "Every group that rows are drawn from holds at least this many people; a method without groups "
    "does not meet it.",
    "rare": "No category held by too few people appears in the release; remove the line to allow rare categories.",
    "tails": "No number or date lies beyond a cut-off computed from enough people; remove the line to allow extreme "
    "values.",
}
"""What every requirement asks, in one sentence."""

PROOF = {
    "epsilon": "A method that proves differential privacy with at most this epsilon meets the limits and requirements "
    "without measurement.",
    "delta": "Largest probability that its bound may fail.",
}
"""What a proof must at least give, in one sentence each."""

KEEP = {
    "utility-loss": "For tune only: the largest loss of predictive accuracy, compared with a model trained on the "
    "original.",
}
"""What tune must not fall below, in one sentence each."""

PURPOSES = {
    "trusted": "For recipients who are bound by contract and work in a controlled environment.",
    "research": "For researchers who sign a data-use agreement and pass nothing on.",
    "public": "For publication: once released, the table cannot be withdrawn.",
}
"""For whom each built-in policy is."""

_PARTS = {"limits": LIMITS, "require": REQUIRE, "proof": PROOF, "keep": KEEP}
_RANGES = {"membership-auc": (0.5, 1.0), "epsilon": (0.0, 100.0)}  # of all others 0 to 1


@dataclass(frozen=True)
class Policy:
    """Limits on attacks, and requirements; what is not named is not required.

    Parameters
    ----------
    name : str
        One line of at most 60 characters. It stands on public pages.
    limits : mapping of str to float
        By the names of `LIMITS`.
    require : mapping
        By the names of `REQUIRE`: ``control`` true or false, ``min_group_size`` a whole number, ``rare`` and
        ``tails`` "hidden".
    keep : mapping of str to float
        By the names of `KEEP`; for tuning alone.
    proof : mapping of str to float
        By the names of `PROOF`, both or none.

    Raises
    ------
    OptionError
        For an entry that is unknown, of the wrong type or out of range.

    Examples
    --------
    >>> Policy("strict", limits={"linkage-excess": 0.01}, require={"control": True}).limits
    {'linkage-excess': 0.01}
    """

    name: str
    limits: Mapping[str, float] = field(default_factory=dict)
    require: Mapping[str, bool | int | str] = field(default_factory=dict)
    keep: Mapping[str, float] = field(default_factory=dict)
    proof: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_name(self.name)
        for part, known in _PARTS.items():
            entries = getattr(self, part)
            if not isinstance(entries, Mapping):
                raise OptionError(f"{part!r} of a policy is not a table of names and values; write it as [{part}]")
            unknown = [key for key in entries if key not in known]
            if unknown:
                known_names = ", ".join(known)
                raise OptionError(
                    f"the policy's {part!r} has an unknown entry {shown(unknown[0])}; it knows {known_names}"
                )
            checked = {key: _checked(key, entries[key]) for key in known if key in entries}
            object.__setattr__(self, part, checked)
        if self.proof and len(self.proof) < len(PROOF):
            raise OptionError("the policy's 'proof' needs both epsilon and delta; write both, or remove the section")
        if not (self.limits or self.proof) and not any(value is not False for value in self.require.values()):
            raise OptionError("the policy has no limit and no requirement; add at least one")

    @property
    def title(self) -> str:
        """Name for readers: of one that has a built-in policy's name and other numbers, it says so."""
        built_in = BUILT_IN.get(self.name)
        return self.name if built_in is None or built_in == self else f"{self.name} (edited)"

    def to_toml(self) -> str:
        """TOML to edit, with a sentence on every entry."""
        parts = {
            part: {key: CommentedValue(value, _wrapped(meanings[key])) for key, value in getattr(self, part).items()}
            for part, meanings in _PARTS.items()
            if getattr(self, part)
        }
        return write_toml({"format": _FORMAT, "name": self.name, **parts}, _wrapped(" ".join(_sentences(self))))

    @classmethod
    def from_toml(cls, text: str) -> Policy:
        """Policy that a TOML text holds.

        Raises
        ------
        OptionError
            For what is not exactly a policy, in one sentence.
        """
        document = toml_entries(text, "policy", "fix it", ("name", *_PARTS))
        if "name" not in document:
            raise OptionError('the policy has no name; write one, as in name = "ours"')
        return cls(**document)

    @classmethod
    def load(cls, name_or_path: str | Path | Policy) -> Policy:
        """Built-in policy of that name, or the one in that file.

        Raises
        ------
        OptionError
            If there is neither, or the file holds no policy.
        """
        if isinstance(name_or_path, Policy):
            return name_or_path
        if name_or_path in BUILT_IN:
            return BUILT_IN[str(name_or_path)]
        return cls.from_toml(read_text(name_or_path, "policy", _WRITE_ONE, most=_MOST_BYTES))


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or not name.strip() or name != name.strip():
        raise OptionError("the name of a policy must be a text, not empty and without a space at either end; fix it")
    if len(name) > _LONGEST_NAME or not name.isprintable():
        raise OptionError(f"the name of a policy must be one line of at most {_LONGEST_NAME} characters; shorten it")


def _checked(key: str, value: Any) -> Any:
    """Value of an entry, of its type and in its range."""
    if key == "control":
        if not isinstance(value, bool):
            raise OptionError("the policy's 'control' must be true or false; write one of them")
        return value
    if key in ("rare", "tails"):
        if value != "hidden":
            raise OptionError(f"the policy's {key!r} must be 'hidden'; write that, or remove the line")
        return value
    if key == "min_group_size":
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _MOST_PERSONS:
            raise OptionError("the policy's 'min_group_size' must be a whole number of 1 or more; fix it")
        return value
    low, high = _RANGES.get(key, (0.0, 1.0))
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise OptionError(f"the policy's {key!r} must be a finite number; fix it")
    if not low <= value <= high:
        raise OptionError(f"the policy's {key!r} must lie between {low:g} and {high:g}; fix it")
    return float(value)


def _sentences(policy: Policy) -> tuple[str, ...]:
    purpose = PURPOSES.get(policy.name) if policy.title == policy.name else None
    return (
        *((purpose,) if purpose else ()),
        "An excess is the success of an attack on members minus its success on the control group.",
        "A limit is met if the upper end of the 95 % interval is at most the limit, and exceeded if the lower end is "
        "above it; otherwise the result is inconclusive.",
        "Remove a line to require less, and give an edited policy its own name.",
    )


def _wrapped(text: str) -> str:
    return "\n".join(textwrap.wrap(text, _WIDTH))


BUILT_IN: dict[str, Policy] = {}
"""The policies that come with the package, by name."""

for _name, _gain, _auc, _tpr, _persons, _loss, _epsilon in (
    ("trusted", 0.15, 0.70, 0.10, 5, 0.03, 2.0),  # epsilon: its bounds on membership inference are below the limits
    ("research", 0.05, 0.60, 0.03, 10, 0.05, 1.0),
    ("public", 0.03, 0.55, 0.02, 20, 0.10, 0.5),
):
    BUILT_IN[_name] = Policy(
        _name,
        {**dict.fromkeys(list(LIMITS)[:3], _gain), "membership-auc": _auc, "membership-tpr": _tpr},
        {
            "control": True,
            "min_group_size": _persons,
            **({} if _name == "trusted" else {"rare": "hidden", "tails": "hidden"}),
        },
        {"utility-loss": _loss},
        {"epsilon": _epsilon, "delta": 1e-5},
    )

USUAL = "research"
"""Policy that a report is judged by where none is named; nothing is refused then."""

_HOLD_OUT, _HOLD_OUT_MORE = 0.3, 0.5
_STEPS = (4, 10)  # by how much larger groups are tried
_K, _LEAF = 10, 100  # the strongest attacker got 0.52 to 0.55 on chains of such leaves (benchmarks/results/frontier.md)


def what_to_try(
    report: Report,
    policy: Policy,
    facts: Sequence[Fact],
    exceeded: Sequence[ExceededLimit],
    *,
    unsure: bool,
    command: Sequence[str],
    asked: bool = True,
) -> tuple[str, ...]:
    """Command lines that may help: a control group or a larger one, larger groups, a method with groups.

    ``unsure`` says that some interval holds its limit; ``command`` are the words that made or measured the table, empty
    where they are not known; where nobody ``asked`` for the policy it is not named, for it would refuse what it is not
    met by.
    """
    policy_option = ("--policy", _option_of(policy)) if asked else ()
    if Context(tuple(facts)).has("transactions-released"):
        return ()  # they have no groups
    if Context(tuple(facts)).has("joint"):  # on anything else the owners have to agree in their settings
        line = ["sfumato", "party", "run", "--config", "PARTY", "--holdout", f"{_HOLD_OUT:g}", *policy_option]
        return () if report.rows_held_out else (shlex.join(line),)
    if Context(tuple(facts)).has("maintained"):
        line = ["sfumato", "stream", "publish", "--state", "STATE", "-o", "FOLDER", *policy_option]
        return () if report.rows_held_out else (shlex.join([*line, "--measure-key", "FILE"]),)
    words = list(command) or ["sfumato", "sanitize", "INPUT", "-o", "FOLDER", *policy_option]
    made_here = words[1:2] == ["sanitize"]
    compared = bool(report.rows_held_out or report.sizes.get("shadow_releases"))
    stronger = any(each.limit in policy.limits or each.limit == "min_group_size" for each in exceeded)
    lines = []
    if stronger:
        base = words if made_here else _with(sanitize_words(words), *policy_option)
        if not compared or not made_here:
            base = _with(base, "--holdout", f"{_HOLD_OUT:g}")
        sizes = _sizes(report, policy, facts, gained=any(each.limit in policy.limits for each in exceeded))
        sizes = sizes if made_here else [size for size in sizes if "--k" not in size[:1]]  # of a method not named
        lines += [_with(_without(base, *_dropped(size)), *size) for size in sizes]
    elif not compared:
        lines.append(_with(words, "--holdout", f"{_HOLD_OUT:g}" if made_here else "FILE"))
    elif unsure and made_here:
        if not asked and report.sizes.get("attempts", 0) < report.rows_original:  # with a policy more are attacked
            lines.append(_with(words, "--policy", _option_of(policy)))
        held = words[words.index("--holdout") + 1] if "--holdout" in words else None
        if held != f"{_HOLD_OUT_MORE:g}" and report.rows_held_out < report.rows_original:
            lines.append(_with(words, "--holdout", f"{_HOLD_OUT_MORE:g}"))
        if "--time-limit" in words:
            lines.append(_without(words, "--time-limit"))
        same = [size for size in _sizes(report, policy, facts, gained=True) if "--method" not in size]
        lines += [_with(_without(words, *_dropped(size)), *size) for size in same[:1]]
    return tuple(shlex.join(_replacing(line)) for line in lines)


def proof_to_try(policy: Policy, command: Sequence[str]) -> tuple[str, ...]:
    """Command line of a proof that the policy accepts; ``command`` are the words that made the table."""
    words = command or ("sfumato", "sanitize", "INPUT", "-o", "FOLDER", "--method", "private")
    options = (word for name, value in policy.proof.items() for word in (f"--{name}", f"{value:g}"))
    return (shlex.join(_replacing(_with(words, *options))),)


def command_with(
    words: Sequence[str], options: Sequence[str], policy: Policy, holdout: float | None, *, dropped: Sequence[str]
) -> str:
    """Command line with other options of a method and without those dropped, judged by a policy, with a hold-out."""
    line = _with(_without(words, *_dropped(options)), *options) if options else list(words)
    line = line if holdout is None else _with(line, "--holdout", f"{holdout:g}")
    line = _without(line, *dropped)
    line = line if "--policy" in line else _with(line, "--policy", _option_of(policy))
    return shlex.join(_replacing([word for word in line if word != "--despite-policy"]))


def sanitize_words(command: Sequence[str]) -> list[str]:
    """Words of a run of ours on the original of an evaluation, with the same options for its columns.

    Examples
    --------
    >>> " ".join(sanitize_words(("sfumato", "evaluate", "mine.csv", "theirs.csv", "--target", "pay", "--seed", "1")))
    'sfumato sanitize mine.csv -o FOLDER --target pay'
    """
    tool, _, original, _, *options = command
    return [
        tool,
        "sanitize",
        original,
        "-o",
        "FOLDER",
        *_without(options, "-o", "--seed", "--time-limit", "--most-bytes"),
    ]


def words_of(recipe: Recipe, policy: Policy | None) -> tuple[str, ...]:
    """Words of a command that does what a recipe says, as far as the command line can say it shortly."""
    entries = {
        "--method": recipe.method,
        "--k": recipe.parameters.get("k"),
        "--level": recipe.options.level,
        "--strata": recipe.options.strata,
        "--target": None if recipe.schema.target is None else recipe.schema.target.name,
        "--holdout": recipe.options.holdout,
        "--policy": None if policy is None else _option_of(policy),
    }
    words = [word for name, value in entries.items() if value is not None for word in (name, str(value))]
    return ("sfumato", "sanitize", "INPUT", "-o", "FOLDER", *words)


def _option_of(policy: Policy) -> str:
    return policy.name if policy == BUILT_IN.get(policy.name) else "FILE"


def _sizes(report: Report, policy: Policy, facts: Sequence[Fact], *, gained: bool) -> list[tuple[str, ...]]:
    """Options for a chain or larger groups where attacks gain, and for groups as large as a requirement asks."""
    asked = int(policy.require.get("min_group_size", 1))
    groups = [fact.smallest for fact in facts if isinstance(fact, Grouped)]
    most = report.rows_original // 2
    leaves = [fact.leaf for fact in facts if isinstance(fact, ChainSynthesis)]
    if leaves:
        larger = [max(asked, step * leaves[0]) for step in _STEPS] if gained else [asked] * (leaves[0] < asked)
        return [("--leaf", str(size)) for size in larger if size <= most]
    leaf, k = max(_LEAF, asked), max(_K, asked)
    drawn: list[tuple[str, ...]] = [("--method", "chain", "--k", str(k), "--leaf", str(leaf))] if leaf <= most else []
    if not groups:
        return drawn
    if not gained:
        return [("--k", str(asked))] if groups[0] < asked <= most else []
    return drawn + [("--k", str(size)) for size in (max(asked, step * groups[0]) for step in _STEPS) if size <= most]


def _with(words: Sequence[str], *options: str) -> list[str]:
    """Words of a command with options set to values, in place of what they were."""
    changed = list(words)
    for name, value in zip(options[::2], options[1::2], strict=True):
        changed = [*_without(changed, name), name, value]
    return changed


def _without(words: Sequence[str], *names: str) -> list[str]:
    """Words of a command without some options and their values."""
    kept: list[str] = []
    skip, widths = 0, _widths()
    for word in words:
        if skip:
            skip -= 1
        elif word in names:
            skip = widths.get(word, 1)
        else:
            kept.append(word)
    return kept


def _dropped(size: Sequence[str]) -> tuple[str, ...]:
    """Options that do not go with others: those of the old method with a new one."""
    return (*_widths(), "--noise", "--spec", "--key", "--new-key", "--public") if "--method" in size else ("--groups",)


def _widths() -> dict[str, int]:
    """Options of the parameters that methods have, apart from k, and how many words follow each."""
    entries = {name: each for name, each in all_parameters().items() if name != "k"}
    return {f"--{name.replace('_', '-')}": 0 if each.kind is bool else each.width for name, each in entries.items()}


def _replacing(words: Sequence[str]) -> list[str]:
    """Words of a command that may replace the folder which this run leaves."""
    return list(words) if "--overwrite" in words or "-o" not in words else [*words, "--overwrite"]
