"""What to try next where a policy is not met: the command that was run, with other options."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from sfumato.assess.report import Exceeded, Report
from sfumato.facts import Fact, Grouped, Joint, Maintained
from sfumato.methods import all_parameters
from sfumato.publish.policy import BUILT_IN, Policy
from sfumato.recipe import Recipe

__all__ = ["what_to_try", "words_of"]

_HOLD_OUT, _HOLD_OUT_MORE = 0.3, 0.5
_STEPS = (4, 10)  # by how much larger groups are tried
_GROUPS = 25  # a group size to begin with where the method has none


def what_to_try(
    report: Report,
    policy: Policy,
    facts: Sequence[Fact],
    exceeded: Sequence[Exceeded],
    *,
    unsure: bool,
    command: Sequence[str],
) -> tuple[str, ...]:
    """Command lines that may help: people held out, larger groups, a method with groups, more people held out.

    ``unsure`` says that some interval holds its limit; ``command`` are the words that made or measured the table, empty
    where they are not known.
    """
    told = _name(policy)
    if any(isinstance(fact, Joint) for fact in facts):
        return ()  # the owners have to agree on anything else
    if any(isinstance(fact, Maintained) for fact in facts):
        line = ["sfumato", "stream", "publish", "--state", "STATE", "-o", "FOLDER", "--policy", told]
        return () if report.rows_held_out else (shlex.join([*line, "--measure-key", "FILE"]),)
    words = list(command) or ["sfumato", "sanitize", "INPUT", "-o", "FOLDER", "--policy", told]
    made_here = words[1:2] == ["sanitize"]
    compared = bool(report.rows_held_out)
    stronger = any(each.limit in policy.limits or each.limit == "persons_per_group" for each in exceeded)
    lines = []
    if stronger:
        base = words if made_here else ["sfumato", "sanitize", words[2], "-o", "FOLDER", "--policy", told]
        if not compared or not made_here:
            base = _with(base, "--holdout", f"{_HOLD_OUT:g}")
        sizes = _sizes(report, policy, facts, gained=any(each.limit in policy.limits for each in exceeded))
        lines += [_with(_without(base, *_dropped(size)), *size) for size in sizes]
    elif not compared:
        lines.append(_with(words, "--holdout", f"{_HOLD_OUT:g}" if made_here else "FILE"))
    elif unsure and made_here:
        if _value(words, "--holdout") != f"{_HOLD_OUT_MORE:g}" and report.rows_held_out < report.rows_original:
            lines.append(_with(words, "--holdout", f"{_HOLD_OUT_MORE:g}"))
        if "--budget" in words:
            lines.append(_without(words, "--budget"))
        lines += [
            _with(_without(words, *_dropped(size)), *size)
            for size in _sizes(report, policy, facts, gained=True)[:1]
            if "--method" not in size
        ]
    return tuple(shlex.join(_replacing(line)) for line in lines)


def words_of(recipe: Recipe, policy: Policy) -> tuple[str, ...]:
    """Words of a command that does what a recipe says, as far as the command line can say it shortly."""
    told = {
        "--method": recipe.method,
        "--k": recipe.parameters.get("k"),
        "--level": recipe.level,
        "--strata": recipe.strata,
        "--target": None if recipe.schema.target is None else recipe.schema.target.name,
        "--holdout": recipe.holdout,
        "--policy": _name(policy),
    }
    words = [word for name, value in told.items() if value is not None for word in (name, str(value))]
    return ("sfumato", "sanitize", "INPUT", "-o", "FOLDER", *words)


def _name(policy: Policy) -> str:
    return policy.name if policy == BUILT_IN.get(policy.name) else "FILE"


def _sizes(report: Report, policy: Policy, facts: Sequence[Fact], *, gained: bool) -> list[tuple[str, ...]]:
    """Options for groups that are larger where attacks gain, as large as a requirement asks, or there at all."""
    asked = int(policy.require.get("persons_per_group", 1))
    groups = [
        fact.asked_min if isinstance(fact, Grouped) else fact.k
        for fact in facts
        if isinstance(fact, Grouped | Maintained)
    ]
    most = report.rows_original // 2
    if not groups:
        return [("--method", "condense", "--k", str(max(_GROUPS, asked)))] if most >= max(_GROUPS, asked) else []
    if not gained:
        return [("--k", str(asked))] if groups[0] < asked <= most else []
    return [("--k", str(size)) for size in (max(asked, step * groups[0]) for step in _STEPS) if size <= most]


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
    told = {name: each for name, each in all_parameters().items() if name != "k"}
    return {f"--{name.replace('_', '-')}": 0 if each.kind is bool else each.width for name, each in told.items()}


def _value(words: Sequence[str], name: str) -> str | None:
    return words[list(words).index(name) + 1] if name in words else None


def _replacing(words: Sequence[str]) -> list[str]:
    """Words of a command that may replace the folder which this run leaves."""
    return list(words) if "--overwrite" in words or "-o" not in words else [*words, "--overwrite"]
