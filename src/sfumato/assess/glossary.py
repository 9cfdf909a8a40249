"""The glossary: every term of reports and documentation, with the clause that explains it.

Tooltips and the glossary of a report use it, and ``docs/list_terms.py`` writes ``docs/glossary.md`` from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

__all__ = ["TERMS", "Term", "explain", "linked_terms", "term_of"]


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
