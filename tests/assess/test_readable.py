"""A newcomer reads report.html alone: the visible text answers five questions, and every number is the measured one."""

from __future__ import annotations

import dataclasses
import re
from html import unescape

import pytest

from sfumato.assess.findings import excess_interval, gains
from sfumato.assess.glossary import CI, limit_range, limit_sentence
from sfumato.assess.plain import risk_sentence, use_sentence
from sfumato.assess.report import LimitResult, Report, Ruling
from sfumato.assess.verdict import FAMILIES
from tests.assess.recorded import OUTCOMES, recorded

NAMES = tuple(OUTCOMES)
MAY_IT_BE_RELEASED = {
    "meets": 'Meets policy "trusted". You may release it under that policy.',
    "inconclusive": 'Inconclusive for policy "research". Do not release it yet.',
    "refused": 'Does not meet policy "research". Do not release it.',
}
RISKS = ("Singling out", "Linkability", "Inference", "Membership inference")
LOWERS = "Larger groups (--k, --leaf) and dropped or coarsened columns lower the risk"


def page_text(name: str) -> str:
    """Visible text of the owner's page before the details."""
    report, certificate = recorded(name)
    html = report.to_html(certificate=certificate).partition("<body")[2].partition('id="rest"')[0]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", re.sub(r"</?(abbr|strong|span)[^>]*>", "", html))))


def spaced(text: str) -> str:
    return text.replace("\u00a0", " ")


@pytest.mark.parametrize("name", NAMES)
def test_may_it_be_released(name: str) -> None:
    report, _ = recorded(name)
    assert report.verdict is not None
    assert report.verdict.outcome is OUTCOMES[name]
    assert MAY_IT_BE_RELEASED[name] in page_text(name)
    others = {sentence for other, sentence in MAY_IT_BE_RELEASED.items() if other != name}
    assert not any(sentence in page_text(name) for sentence in others)


def test_a_dry_run_that_meets_its_policy_may_not_be_released() -> None:
    report, certificate = recorded("meets")
    seeded = {**certificate, "randomness": "dry-run"}
    for html in (report.to_html(certificate=seeded), report.to_summary(certificate=seeded)):
        assert "You may release it" not in html
        assert "This is a dry run; only a run without a seed may be released." in html


@pytest.mark.parametrize("name", NAMES)
def test_why(name: str) -> None:
    report, _ = recorded(name)
    assert report.verdict is not None
    text = page_text(name)
    if name == "meets":
        assert "measured limits are met: the upper end of each confidence interval is at most the limit." in text
        return
    reasons = [spaced(reason) for reason in report.verdict.reasons]
    assert reasons
    assert all(f"{reason}." in text for reason in reasons)
    assert any(f"; limit {5} %" in reason for reason in reasons)


@pytest.mark.parametrize("name", NAMES)
def test_which_attack_is_the_worst_by_how_much_and_how_sure(name: str) -> None:
    report, _ = recorded(name)
    assert report.verdict is not None
    text = page_text(name)
    assert spaced(risk_sentence(report.findings, report.verdict)) in text
    for risk in RISKS:
        assert f"{risk} " in text
    for result in report.verdict.limits:
        sentence = limit_sentence(result.limit, None, result.value, result.allowed, result.interval)
        low_to_high = re.search(r"95.% CI [^)]*", sentence)
        assert low_to_high is not None
        assert spaced(low_to_high.group()) in text


@pytest.mark.parametrize("name", NAMES)
def test_what_would_lower_it(name: str) -> None:
    report, _ = recorded(name)
    text = page_text(name)
    assert (LOWERS if name != "meets" else "To lower the risk further, use larger groups (--k, --leaf)") in text
    if name == "inconclusive":
        assert "A larger hold-out set or more attacked records would narrow the interval." in text
    for column in report.columns[:1]:
        assert f"{column.column} :" in text.partition("Columns contributing most to risk")[2] or column.rare == 0


@pytest.mark.parametrize("name", NAMES)
def test_how_useful_it_is(name: str) -> None:
    report, _ = recorded(name)
    assert spaced(use_sentence(report.findings, report.target)) in page_text(name)
    assert 'Predicting "ill": AUC 0.' in page_text(name)


# --------------------------------------------------------------------------------------------- numbers of sentences

_NUMBER = re.compile(r"\u2212?\d+(?:\.\d+)?")


def numbers(text: str) -> list[float]:
    """Numbers of a sentence, but for those of the words 95 % CI and 1 % FPR."""
    text = re.sub(r"95\s%\sCI|[15]\s%\sFPR", "", text)
    return [float(number.replace("\u2212", "-")) for number in _NUMBER.findall(text)]


def agrees(text: str, values: tuple[float, ...], unit: float) -> bool:
    """Whether a sentence says these values, in this order and in this unit, up to rounding to what it shows."""
    shown = numbers(text)
    return len(shown) == len(values) and all(
        abs(number - unit * value) <= (0.5 if abs(number) >= 9.9 and unit > 1 else 0.05 if unit > 1 else 0.005) + 1e-9
        for number, value in zip(shown, values, strict=True)
    )


def sentence_of(result: LimitResult) -> tuple[str, tuple[float, ...], float]:
    text = limit_sentence(result.limit, None, result.value, result.allowed, result.interval)
    return text, (result.value, *result.interval, result.allowed), 1.0 if result.limit == "membership-auc" else 100.0


def results() -> list[LimitResult]:
    found = []
    for name in NAMES:
        verdict = recorded(name)[0].verdict
        assert verdict is not None
        found += list(verdict.limits)
    return found


@pytest.mark.parametrize("result", results(), ids=lambda result: f"{result.limit}-{result.outcome}")
def test_the_numbers_of_a_reason_are_the_measured_ones_and_a_changed_one_is_noticed(result: LimitResult) -> None:
    text, values, unit = sentence_of(result)
    assert agrees(text, values, unit)
    for found in _NUMBER.finditer(re.sub(r"95\s%\sCI", lambda match: "x" * len(match.group()), text)):
        if re.match(r"[15]\s%\sFPR", text[found.start() :]):
            continue
        for digit in range(found.start(), found.end()):
            if text[digit] in "0123456789":
                changed = f"{text[:digit]}{(int(text[digit]) + 5) % 10}{text[digit + 1 :]}"
                assert not agrees(changed, values, unit), changed
    other = dataclasses.replace(result, value=result.value + 0.07)
    assert not agrees(sentence_of(other)[0], values, unit)


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_is_judged_by_the_numbers_of_its_finding(name: str) -> None:
    report, _ = recorded(name)
    assert report.verdict is not None
    for result in report.verdict.limits:
        finding = report[result.finding]
        assert FAMILIES[result.limit](finding.name)
        if finding.name.startswith("singling-out-"):  # both kinds are pooled
            assert result.value == pytest.approx(result.members - (result.control or 0.0))
            continue
        assert result.members == pytest.approx(finding.value)
        if result.control is not None:
            assert result.control == pytest.approx(finding.control)
            assert result.value == pytest.approx(finding.excess)
        low, high = result.interval
        outcome = Ruling.MEETS if high <= result.allowed else Ruling.INCONCLUSIVE
        assert result.outcome is (Ruling.DOES_NOT_MEET if low > result.allowed else outcome)


@pytest.mark.parametrize("name", NAMES)
def test_the_risk_sentence_has_the_numbers_of_the_attack_with_the_largest_excess(name: str) -> None:
    report, _ = recorded(name)
    ranked = sorted((gain for gain in gains(report.findings) if not gain.conceded), key=lambda gain: not gain.certain)
    top, certain = ranked[0], sum(gain.certain for gain in ranked)
    assert top.finding.unit == "share"
    said = risk_sentence(report.findings)
    counts, rest = said.split("Largest excess: ")
    assert numbers(counts) == ([float(certain)] if certain else []) + [float(len(ranked))]
    interval = excess_interval(top.finding)
    assert interval is not None
    values = (top.excess, *(interval if top.certain else ()), top.finding.value or 0.0, top.against)
    first = rest.partition(". ")[0]
    assert agrees(first, values, 100.0)
    assert not agrees(re.sub(r"\d", lambda match: str((int(match.group()) + 5) % 10), first), values, 100.0)


@pytest.mark.parametrize("name", NAMES)
def test_the_excess_of_every_attack_is_in_the_json_document(name: str) -> None:
    report: Report = recorded(name)[0]
    for finding, document in zip(report.findings, report.to_json()["findings"], strict=True):
        against = finding.control if finding.control is not None else finding.baseline
        attack = finding.family.value == "attack" and finding.direction.value == "lower-is-better"
        low, high = finding.range
        bounded = low is not None and high is not None and low >= 0.0 and high <= 1.0
        if finding.value is None or against is None or not attack or not bounded:
            assert document["excess"] is None
        else:
            assert document["excess"] == pytest.approx(finding.value - against)


def test_the_excess_of_a_judged_attack_has_the_interval_of_its_reason() -> None:
    report, _ = recorded("refused")
    assert report.verdict is not None
    result = next(each for each in report.verdict.limits if each.limit == "linkage-excess")
    interval = limit_range(result.limit, result.interval)
    assert f"({CI} {interval}); limit" in " ".join(report.verdict.reasons)
    assert f"59\u00a0% ({CI} {interval}): " in risk_sentence([report[result.finding]], report.verdict)
