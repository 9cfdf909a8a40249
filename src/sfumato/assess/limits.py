"""Sentences on the limits of a policy, and on commands that may help to meet it."""

from __future__ import annotations

import itertools
import shlex

from sfumato.assess.glossary import term_of
from sfumato.assess.numbers import CI, percent, percent_range

__all__ = ["attack_name", "command_words", "limit_name", "limit_number", "limit_range", "limit_sentence"]

_NAMES = {
    "linkage-excess": "excess record linkage",
    "attribute-excess": "excess attribute inference",
    "singling-out-excess": "excess singling out",
    "membership-auc": "membership inference AUC",
    "membership-tpr": "membership inference TPR at 1\u00a0% FPR",
    "control": "the control group",
    "min_group_size": "the minimum group size",
    "rare": "hiding of rare categories",
}
_AUC = "membership-auc"
_SPECIAL = {
    "membership-outliers": "membership inference on outliers",
    "outlier-inference": "attribute inference on outliers",
    "extreme-values-disclosed": "singling out by extreme values",
    "exact-row-matches": "exact matches of whole rows",
    "unique-values-disclosed": "singling out by unique values",
    "membership-tpr": "membership inference, TPR at 1\u00a0% FPR",
    "group-linkage-": "linkage to the group",
    "expected-reidentification": "re-identification within the group",
    "label-inference": "attribute inference of the target",
}
"""Attacks by the beginning of a finding's name whose term alone would mislead."""


def attack_name(finding: str) -> str:
    """Established name of an attack, for the middle of a sentence, with the column that it attacks.

    Examples
    --------
    >>> attack_name("attribute-inference-all-columns/pay"), attack_name("linkage-rank")
    ('attribute inference of "pay"', 'record linkage')
    """
    from sfumato.assess.numbers import spoken_name

    first, _, column = finding.partition("/")
    special = next((words for start, words in _SPECIAL.items() if first.startswith(start)), None)
    if special is not None:
        return f'{special} of "{column}"' if column else special
    term = term_of(first)
    if term is None:
        name = spoken_name(finding)
        return f"{name[:1].lower()}{name[1:]}"
    return f'{term.name} of "{column}"' if column else term.name


def limit_name(limit: str, finding: str | None = None) -> str:
    """What a limit is on, for the middle of a sentence; of an excess by the attack that was measured.

    Examples
    --------
    >>> limit_name("attribute-excess", "attribute-inference-all-columns/pay")
    'excess attribute inference of "pay"'
    """
    if finding and limit == "singling-out-excess":
        kinds = {"outlier-inference": " by rare combinations", "extreme-values-disclosed": " by extreme values"}
        return f"{_NAMES[limit]}{kinds.get(finding, '')}"
    if finding and limit in ("linkage-excess", "attribute-excess"):
        if finding == "known-input-recovery":
            return "excess recovery of cells by a known-input attack"
        return f"excess {attack_name(finding)}"
    return _NAMES.get(limit, limit)


def limit_number(limit: str, value: float) -> str:
    """An excess or a score under a limit: an AUC as a number, all others as a percentage.

    Examples
    --------
    >>> print(limit_number("membership-auc", 0.6), limit_number("linkage-excess", 0.039))
    0.60 3.9\u00a0%
    """
    return f"{value:.2f}" if limit == _AUC else percent(value)


def limit_range(limit: str, interval: tuple[float, float]) -> str:
    """A confidence interval under a limit."""
    low, high = interval
    return f"{low:.2f}\u2013{high:.2f}" if limit == _AUC else percent_range(low, high)


def limit_sentence(
    limit: str, finding: str | None, value: float, allowed: float, interval: tuple[float, float] | None
) -> str:
    """The excess or score under a limit with its interval and the limit, without a full stop.

    Examples
    --------
    >>> print(limit_sentence("linkage-excess", "linkage-rank", 0.039, 0.05, (0.0, 0.086)))
    Excess record linkage 3.9\u00a0% (95\u00a0% CI 0\u20138.6\u00a0%); limit 5\u00a0%
    """
    name = limit_name(limit, finding)
    ends = "" if interval is None else f" ({CI} {limit_range(limit, interval)})"
    number, most = limit_number(limit, value), limit_number(limit, allowed)
    return f"{name[:1].upper()}{name[1:]} {number}{ends}; limit {most}"


def command_words(line: str) -> str:
    """What a suggested command changes, in a sentence.

    Examples
    --------
    >>> print(command_words("sfumato sanitize people.csv -o out --method chain --leaf 400 --holdout 0.3"))
    Use method chain; draw each value from at least 400 records; hold out 30\u00a0% of the people as control group.
    """
    words = shlex.split(line)
    told = [_OPTIONS[name].format(_percentage(value)) for name, value in itertools.pairwise(words) if name in _OPTIONS]
    sentence = "; ".join(told) or "run it again with the same options"
    return f"{sentence[:1].upper()}{sentence[1:]}."


_OPTIONS = {
    "--method": "use method {}",
    "--k": "use groups of at least {} people",
    "--leaf": "draw each value from at least {} records",
    "--identifier": 'drop the column "{}"',
    "--holdout": "hold out {} of the people as control group",
    "--measure-key": "hold out some people as control group",
}


def _percentage(value: str) -> str:
    """A share below 1 as a percentage; anything else as it is."""
    try:
        return percent(float(value)) if 0.0 < float(value) < 1.0 else value
    except ValueError:
        return value
