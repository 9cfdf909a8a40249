"""The section for regulators and reviewers: the facts under each framework, and what is not covered."""

from __future__ import annotations

import dataclasses

import pytest

from sfumato.assess.page import Standard, standards
from sfumato.assess.report import Report
from tests.assess.recorded import OUTCOMES, recorded

PRIVACY = {"epsilon": 1.5, "delta": 1e-5, "unit": "person", "neighbours": "add or remove one person"}


def named(found: list[Standard]) -> dict[str, Standard]:
    return {each.name.partition(":")[0].partition(",")[0]: each for each in found}


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_facts_are_those_of_the_report(name: str) -> None:
    report, certificate = recorded(name)
    found = named(standards(report, certificate, owner=True))
    assert list(found) == [
        "WP29 opinion 05/2014 and EDPB",
        "ISO/IEC 27559",
        "HIPAA expert determination",
    ]
    risks = dict(found["WP29 opinion 05/2014 and EDPB"].facts)
    assert list(risks) == ["Singling out", "Linkability", "Inference", "Further: membership inference"]
    for risk, limit in (("Singling out", "singling-out-excess"), ("Linkability", "linkage-excess")):
        assert report.verdict is not None
        (result,) = (each for each in report.verdict.limits if each.limit == limit)
        status = {"meets": "met", "does-not-meet": "exceeded", "inconclusive": "inconclusive"}[result.outcome.value]
        assert risks[risk].endswith(f", {status}.")
    iso = dict(found["ISO/IEC 27559"].facts)
    assert f"{report.rows_original:,} original records" in iso["Population or sample"]
    assert f"a control group of {report.rows_held_out:,} records" in iso["Population or sample"]
    assert "outliers" in iso["Maximum risk"]
    assert report.verdict is not None
    hipaa = dict(found["HIPAA expert determination"].facts)
    assert certificate["method"] in hipaa["Methods"]
    assert report.verdict.heading in hipaa["Results"]


def test_every_framework_says_what_is_not_covered_and_nothing_is_a_legal_conclusion() -> None:
    report, certificate = recorded("meets")
    for standard in standards(report, {**certificate, "privacy": PRIVACY}, owner=True):
        assert len(standard.not_covered.split()) > 5
        text = " ".join([standard.name, *(fact for _, fact in standard.facts)]).lower()
        for word in ("compliant", "complies", "anonymous", "satisfies"):
            assert word not in text


def test_a_privacy_budget_is_mapped_only_if_the_certificate_has_one() -> None:
    report, certificate = recorded("meets")
    found = named(standards(report, {**certificate, "privacy": PRIVACY}, owner=True))
    facts = dict(found["NIST SP 800-226"].facts)
    assert (facts["Unit of privacy"], facts["Epsilon"], facts["Delta"]) == ("person", "1.5", "1e-05")
    assert facts["Trust model"].startswith("Central")
    assert "NIST SP 800-226" not in named(standards(report, certificate, owner=True))


def test_what_was_not_measured_is_said() -> None:
    empty = Report((), (), 10, 10)
    found = named(standards(empty, {}, owner=True))
    assert dict(found["WP29 opinion 05/2014 and EDPB"].facts)["Singling out"] == "Not measured."
    assert "no control group" in dict(found["ISO/IEC 27559"].facts)["Population or sample"]
    assert dict(found["HIPAA expert determination"].facts)["Methods"] == "There is no certificate of the method."


def test_the_public_section_has_no_number_of_the_owner_alone() -> None:
    report, certificate = recorded("refused")
    hidden = tuple(dataclasses.replace(finding, public=False) for finding in report.findings)
    found = named(standards(dataclasses.replace(report, findings=hidden), certificate, owner=False))
    assert dict(found["WP29 opinion 05/2014 and EDPB"].facts)["Inference"] == "Not measured."
    assert dict(found["ISO/IEC 27559"].facts)["Maximum risk"].startswith("Not measured")
