"""The glossary: every term of the vocabulary, one clause each, the same in tooltips and in the documentation."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from sfumato.assess.glossary import TERMS, explain, linked_terms, term_of
from sfumato.assess.measure import declared
from sfumato.assess.verdict import FAMILIES

DOCS = Path(__file__).resolve().parents[2] / "docs"
VOCABULARY = (
    "synthetic data",
    "utility",
    "disclosure risk",
    "membership inference",
    "attribute inference",
    "singling out",
    "linkability",
    "record linkage",
    "hold-out set",
    "control group",
    "excess risk",
    "baseline",
    "quasi-identifier",
    "direct identifier",
    "sensitive attribute",
    "target",
    "equivalence class",
    "group",
    "rare value",
    "rare category",
    "minimum frequency",
    "top and bottom coding",
    "record level",
    "minimum group size",
    "privacy budget",
    "zCDP",
    "unit of privacy",
    "neighbouring tables",
    "sequential CART",
    "chain",
    "confidence interval",
    "significant",
    "inconclusive",
    "dry run",
    "policy",
    "limit",
    "verdict",
    "transactions",
    "itemsets",
    "noise distribution",
    "partition",
    "data owner",
    "party",
    "AUC",
    "TPR at 1 % FPR",
)


@pytest.mark.parametrize("name", VOCABULARY)
def test_a_term_of_the_vocabulary_is_explained_in_one_clause(name: str) -> None:
    meaning = explain(name)
    assert 3 <= len(meaning.split()) <= 20
    assert not meaning.endswith(".")
    assert meaning[0].islower() or meaning.split()[0] in ("AUC", "TPR")


def test_no_term_is_explained_twice() -> None:
    names = [form for term in TERMS for form in (term.name, *term.also)]
    assert len(names) == len(set(names))


def test_the_page_of_the_documentation_is_written_from_the_list() -> None:
    write_glossary = runpy.run_path(str(DOCS / "list_terms.py"))["write_glossary"]
    assert (DOCS / "glossary.md").read_text("utf-8") == write_glossary(), "run python docs/list_terms.py"


def test_every_attack_that_a_policy_limits_has_an_established_name() -> None:
    names = [number.name for measure in declared() for number in measure.numbers]
    limited = [name for name in names if any(family(name) for family in FAMILIES.values())]
    assert len(limited) > 20
    for name in limited:
        assert term_of(name) is not None, name


def test_a_term_is_explained_at_its_first_occurrence_only_and_never_inside_a_name() -> None:
    text = linked_terms('Excess 3\u00a0% (95\u00a0% CI 1 to 5); excess of "control group" <b>')
    assert text.count("<abbr") == 2
    assert text.startswith('<abbr title="attack success on members minus success on the control group">Excess</abbr>')
    assert ">95\u00a0% CI</abbr>" in text
    assert "&quot;control group&quot; &lt;b&gt;" in text
