"""The glossary: every term of reports and documentation, how numbers are written, and the name of each limit.

Tooltips and the glossary of a report use it, and ``docs/list_terms.py`` writes ``docs/glossary.md`` from it.
"""

from __future__ import annotations

import itertools
import re
import shlex
from dataclasses import dataclass
from html import escape

__all__ = [
    "CI",
    "MODELS",
    "TERMS",
    "Term",
    "attack_name",
    "command_words",
    "explain",
    "limit_name",
    "limit_number",
    "limit_range",
    "limit_sentence",
    "linked_terms",
    "percent",
    "percent_range",
    "score",
    "score_range",
    "show",
    "spoken_name",
    "term_of",
]

MODELS = {
    "1nn": "nearest neighbour",
    "boosting": "gradient boosting",
    "logistic": "logistic regression",
    "linear": "linear regression",
    "ridge": "ridge regression",
}
"""Models by the last word of a finding's name."""

_PERCENT, _DASH, _MINUS = "\u00a0%", "\u2013", "\u2212"
CI = f"95{_PERCENT} CI"
"""Confidence interval, as it stands before its limits."""


def show(value: float | None, unit: str = "") -> str:
    """A number with about three digits.

    Examples
    --------
    >>> show(0.01234), show(12.0, "count"), show(0.99999), show(None)
    ('0.0123', '12', 'above 0.9999', '–')
    >>> print(show(0.5, "share"), show(0.99999, "share"))
    50\u00a0% just under 100\u00a0%
    """
    if value is None:
        return "\u2013"
    if unit == "share":
        text = f"{100 * value:.3g}"
        return f"just under 100{_PERCENT}" if text == "100" and value < 1 else f"{text}{_PERCENT}"
    if unit == "percent":
        return f"{value:.3g}{_PERCENT}"
    if unit == "count":
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    if 0.9 <= abs(value) < 1:
        return f"{value:.4f}" if abs(value) < 0.99995 else ("above 0.9999" if value > 0 else "below -0.9999")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def spoken_name(name: str) -> str:
    """Name of a finding as words; what stands after the slash is a column and stays as it is.

    Examples
    --------
    >>> spoken_name("marginal-distance/net-pay"), spoken_name("ssq")
    ('Marginal distance: net-pay', 'Within-group sum of squares')
    >>> spoken_name("recall-boosting/red"), spoken_name("accuracy-smallest-class-1nn")
    ('Recall, gradient boosting: red', 'Accuracy on the smallest class, nearest neighbour')
    """
    from sfumato.assess.measure import number_of

    first, slash, column = name.partition("/")
    words = next((each.spoken for each in map(number_of, (first, f"{first}/")) if each and each.spoken), None)
    words = words or _as_it_stands(first)
    return f"{words}: {column}" if slash else words


def _as_it_stands(name: str) -> str:
    head, _, tail = name.rpartition("-")
    words = ", ".join(part for part in (head, MODELS[tail]) if part) if tail in MODELS else name
    words = words.replace("-", " ")
    return words[:1].upper() + words[1:]


def percent(share: float) -> str:
    """A share as a percentage, with one decimal below 10 and above 99.

    Examples
    --------
    >>> print(*map(percent, (0.724, 0.0123, 0.0004, 0.998, 0.0, 0.05, -0.03)), sep=", ")
    72\u00a0%, 1.2\u00a0%, 0.04\u00a0%, 99.8\u00a0%, 0\u00a0%, 5\u00a0%, \u22123\u00a0%
    """
    return f"{_hundredths(share)}{_PERCENT}"


def percent_range(low: float, high: float) -> str:
    """Two shares as a range of percentages; with "to" if one is below 0.

    Examples
    --------
    >>> print(percent_range(0.003, 0.11), percent_range(-0.02, 0.086))
    0.3\u201311\u00a0% \u22122 to 8.6\u00a0%
    """
    between = " to " if low < 0.0 else _DASH
    return f"{_hundredths(low)}{between}{percent(high)}"


def _hundredths(share: float) -> str:
    value = abs(100 * share)
    if 0 < value < 0.05:
        text = f"{value:.1g}" if value >= 0.0001 else "0"
    elif 9.95 <= value <= 99 or value >= 100:
        text = f"{value:.0f}"
    else:
        text = f"{value:.1f}".removesuffix(".0") if value < 99.95 else f"{value:.4g}"
    return f"{_MINUS if share < 0 and text != '0' else ''}{text}"


def score(value: float) -> str:
    """A score with three decimals.

    Examples
    --------
    >>> score(0.7184), score(-0.0001)
    ('0.718', '0.000')
    """
    return f"{round(value, 3) + 0.0:.3f}".replace("-", _MINUS)


def score_range(low: float, high: float) -> str:
    """Two scores as a range; with "to" if one is below 0.

    Examples
    --------
    >>> print(score_range(0.7, 0.735), score_range(-0.1, 0.2))
    0.700\u20130.735 \u22120.100 to 0.200
    """
    return f"{score(low)}{' to ' if low < 0.0 else _DASH}{score(high)}"


@dataclass(frozen=True)
class Term:
    """A term and its explanation, one clause without a full stop."""

    name: str
    meaning: str
    also: tuple[str, ...] = ()  # other forms that a tooltip explains as well


TERMS: tuple[Term, ...] = (
    # data and release
    Term("synthetic data", "rows drawn from a model of the table", ("synthetic rows",)),
    Term("utility", "how well analyses on the release agree with analyses on the original"),
    Term("disclosure risk", "what an attacker can learn about a person from the release", ("risk",)),
    Term("direct identifier", "a column that names a person, such as a name or a social security number"),
    Term("quasi-identifier", "a column that an attacker may know from elsewhere", ("quasi-identifiers",)),
    Term("sensitive attribute", "a column whose value would harm a person if it became known"),
    Term("target", "the column that models are trained to predict"),
    Term("transactions", "records that are sets of items, such as shopping transactions", ("itemsets",)),
    Term("data owner", "who holds the original table and answers for the release"),
    Term("party", "one of several data owners who compute a release together"),
    Term("partition", "a block of rows of a large table that is processed together"),
    Term("dry run", "a reproducible, seeded run whose output must not be released"),
    # attacks
    Term("membership inference", "can an attacker tell whether a person's record was used?"),
    Term("attribute inference", "can an attacker who knows some columns infer another?"),
    Term("singling out", "can an attacker isolate one person's record?"),
    Term("linkability", "can records of the same person be connected?"),
    Term("record linkage", "can an attacker who knows a person's record find a released record for it?"),
    Term("inference", "can an attacker deduce a value of a person's record?"),
    Term("known-input attack", "can an attacker who knows some original rows undo the transformation?"),
    Term("members", "people whose records were used to make the release"),
    Term(
        "control group",
        "people of the same population whose records were not used",
        ("hold-out set", "control"),
    ),
    Term(
        "shadow release",
        "a release of the same method without some of the people, made to measure the risk and never published",
        ("shadow releases",),
    ),
    Term("excess risk", "attack success on members minus success on the control group", ("excess",)),
    Term("baseline", "attack success without the release, by guessing or on unrelated data"),
    Term("AUC", "area under the ROC curve: 0.5 is guessing, 1 is always right"),
    Term("TPR at 1 % FPR", "members identified if at most 1 % of the control group is named by mistake"),
    # groups and values
    Term("equivalence class", "records with the same quasi-identifiers", ("group",)),
    Term("record level", "the minimum group size that holds for one record"),
    Term("minimum group size", "the fewest original records that a released record may be made from"),
    Term("rare value", "a value that fewer people have than the minimum frequency", ("rare category", "rare values")),
    Term("minimum frequency", "the fewest people who must share a category before it is released"),
    Term("top and bottom coding", "values beyond a cut-off are replaced"),
    # differential privacy
    Term("differential privacy", "a bound on how much one person can change the distribution of the output"),
    Term("privacy budget", "the parameters ε and δ that bound what the output reveals; smaller is stricter"),
    Term("zCDP", "zero-concentrated differential privacy, with one parameter \u03c1 that adds up over steps"),
    Term("unit of privacy", "what one change of the table may add or remove, such as one person"),
    Term("neighbouring tables", "two tables that differ in one unit of privacy"),
    Term("noise distribution", "the distribution of the random values that are added (the key law in a specification)"),
    # methods
    Term("sequential CART", "one decision tree per column, fitted on the columns before it, as in synthpop"),
    Term("chain", "the sequential tree synthesizer of sfumato, which draws each value from a leaf of minimum size"),
    # statistics and policy
    Term(
        "confidence interval",
        "the range that contains the true value in 95 % of samples",
        ("95 % CI", "CI"),
    ),
    Term("significant", "larger than chance explains, at the stated error rate"),
    Term("inconclusive", "the sample is too small to decide"),
    Term("policy", "the limits and requirements that a release must meet"),
    Term("limit", "the largest excess or score that the policy allows"),
    Term("verdict", "whether the release meets the policy, does not meet it, or the result is inconclusive"),
)
"""Every term, by subject."""

_FORMS = {form: term for term in TERMS for form in (term.name, *term.also)}
_OF_FINDINGS = (
    ("linkability", "linkability"),
    ("membership-", "membership inference"),
    ("attribute-inference-", "attribute inference"),
    ("label-inference", "attribute inference"),
    ("hidden-label-inference", "attribute inference"),
    ("outlier-inference", "attribute inference"),
    ("singling-out-", "singling out"),
    ("unique-values-disclosed", "singling out"),
    ("extreme-values-disclosed", "singling out"),
    ("linkage-", "record linkage"),
    ("own-row-linkage-", "record linkage"),
    ("shadow-linkage-", "record linkage"),
    ("shadow-linkability", "linkability"),
    ("shadow-attribute-inference", "attribute inference"),
    ("shadow-singling-out", "singling out"),
    ("shadow-auc-", "membership inference"),
    ("shadow-tpr-", "membership inference"),
    ("group-linkage-", "record linkage"),
    ("expected-reidentification", "record linkage"),
    ("exact-row-matches", "record linkage"),
    ("known-input-recovery", "known-input attack"),
    ("known-input-rows", "known-input attack"),
)


def explain(name: str) -> str:
    """The clause that explains a term.

    Examples
    --------
    >>> explain("singling out")
    "can an attacker isolate one person's record?"
    """
    return _FORMS[name].meaning


def term_of(finding: str) -> Term | None:
    """The established name of an attack, by the name of its finding; None for what has none.

    Examples
    --------
    >>> term_of("own-row-linkage-rank").name, term_of("query-error")
    ('record linkage', None)
    """
    name = next((name for start, name in _OF_FINDINGS if finding.startswith(start)), None)
    return None if name is None else _FORMS[name]


def linked_terms(text: str) -> str:
    """A sentence as HTML: escaped, and each term explained by a tooltip at its first occurrence.

    Examples
    --------
    >>> linked_terms("Meets the <policy>")
    'Meets the &lt;<abbr title="the limits and requirements that a release must meet">policy</abbr>&gt;'
    """
    pieces: list[str] = []
    seen: set[str] = set()
    end = 0
    for found in _ANY.finditer(text):
        words = found.group().replace("\u00a0", " ")
        term = _FORMS.get(words) or _FORMS[words[:1].lower() + words[1:]]
        if term.name not in seen:
            seen.add(term.name)
            abbreviation = f'<abbr title="{escape(term.meaning)}">{escape(found.group())}</abbr>'
            pieces += [escape(text[end : found.start()]), abbreviation]
            end = found.end()
    return "".join([*pieces, escape(text[end:])])


def _pattern() -> re.Pattern[str]:
    """Matches any form of a term, with a small or a capital first letter, but not inside quotation marks or names."""
    forms = sorted(_FORMS, key=len, reverse=True)
    choices = [f"[{form[0].lower()}{form[0].upper()}]{re.escape(form[1:])}" for form in forms]
    words = "|".join(choices).replace(r"\ ", "[ \u00a0]")
    return re.compile(rf"(?<![\w\"-])(?:{words})(?![\w\"-])")


_ANY = _pattern()


_NAMES = {
    "linkage-excess": "excess record linkage",
    "attribute-excess": "excess attribute inference",
    "singling-out-excess": "excess singling out",
    "membership-auc": "membership inference AUC",
    "membership-tpr": "membership inference TPR at 1\u00a0% FPR",
    "control": "the control group",
    "min_group_size": "the minimum group size",
    "rare": "hiding of rare categories",
    "tails": "hiding of extreme values",
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
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "\u2212") if limit == _AUC else percent(value)


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
    clauses = [
        _OPTIONS[name].format(_percentage(value)) for name, value in itertools.pairwise(words) if name in _OPTIONS
    ]
    sentence = "; ".join(clauses) or "run it again with the same options"
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
