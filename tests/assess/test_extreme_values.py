"""The attack on extreme values: the method is run again with and without one extreme person."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks import inference
from sfumato.assess.attacks.inference import EXTREME_VALUES, _beyond
from sfumato.assess.figures.bars import attack_figures
from sfumato.assess.findings import Finding, gains
from sfumato.assess.plain import risk_sentence, risky_kinds
from sfumato.assess.report import Report
from sfumato.assess.study import Study, StudyDetails, study_of
from sfumato.core.arrays import Floats, Ints
from sfumato.engines import measured, memory
from sfumato.engines.memory import run_in_memory
from sfumato.engines.outcome import Comparison
from sfumato.engines.plan import make_plan
from sfumato.methods.protocol import Mechanism, OwnerDetails
from sfumato.options import RunOptions
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Domain, Field, Kind, Schema
from tests.assess.cases import fit

ROWS, K = 600, 10
WHOLE = "extreme-values-disclosed"
METHODS: dict[str, Mechanism] = {
    "chain": sf.Chain(k=K, leaf=20),
    "condense": sf.Condensation(k=K, effort="fast"),
    "condense-paper": sf.Condensation(k=K, grouping="paper"),
}


def people(seed: int = 3, rows: int = ROWS) -> pa.Table:
    """People with a skewed number, a whole one, a date and a number written as text."""
    rng = np.random.default_rng(seed)
    days = rng.integers(9_000, 12_000, rows)
    return pa.table(
        {
            "pay": np.exp(rng.normal(size=rows)).round(3),
            "steps": rng.integers(0, 20_000, rows),
            "born": [datetime.date(1970, 1, 1) + datetime.timedelta(days=int(day)) for day in days],
            "weight": [f"{each:.1f}" for each in rng.normal(70, 12, rows)],
            "sex": rng.choice(["F", "M"], rows).tolist(),
        }
    )


def studied(table: pa.Table, mechanism: Mechanism = METHODS["chain"], seed: int = 5, **told: Any) -> Study:
    outcome = run_in_memory(table, make_plan(table, mechanism, RunOptions(seed=seed, **told)))
    compared = outcome.comparison
    assert isinstance(compared, Comparison)
    return study_of(
        compared.original,
        compared.released,
        compared.codec,
        facts=outcome.facts,
        workings=outcome.compared_workings,
        details=StudyDetails(compared.records),
        rng=np.random.default_rng(seed),
    )


def found(study: Study) -> dict[str, Finding]:
    return {finding.name: finding for finding in run_measure(EXTREME_VALUES, study)}


def with_method(method: Any, table: pa.Table | None = None, codec: Codec | None = None) -> Study:
    """A study of a method that is given the numbers of a redraw, with the person's in place, and the cells."""
    table = people().select(["pay", "steps"]) if table is None else table
    study = study_of(table, table, codec or fit(table), rng=np.random.default_rng(5))

    def redraw(rows: Ints, cells: Mapping[str, float], _: np.random.Generator) -> Mapping[str, Floats] | None:
        numbers = {pair.name: pair.original.take(rows).values.copy() for pair in study.pairs}
        for name, value in cells.items():
            numbers[name][0] = value
        return method(numbers, cells)  # type: ignore[no-any-return]

    return replace(study, workings=OwnerDetails(redraw=redraw))


def copied(numbers: dict[str, Floats], cells: Mapping[str, float]) -> dict[str, Floats]:
    return numbers


# ------------------------------------------------------------------------------------------------ what the attack finds


def test_a_copy_shows_the_extreme_person_and_nothing_without_that_person() -> None:
    findings = found(with_method(copied))
    assert set(findings) == {WHOLE, f"{WHOLE}/pay", f"{WHOLE}/steps"}
    for finding in findings.values():
        assert finding.value == 1.0
        assert finding.control is not None
        assert finding.control <= 0.1  # that person may hold the end of a redraw by chance, one in 400
    assert findings[WHOLE].attempts == 24
    assert gains(findings.values())[0].certain


@pytest.mark.parametrize("method", METHODS)
def test_a_release_with_coded_tails_shows_nobody(method: str) -> None:
    findings = found(studied(people(), METHODS[method]))
    assert {finding.value for finding in findings.values()} == {0.0}
    assert {finding.control for finding in findings.values()} == {0.0}
    assert not any(gain.certain for gain in gains(findings.values()))


@pytest.mark.parametrize("method", METHODS)
def test_a_release_that_keeps_its_tails_shows_the_extreme_person(method: str) -> None:
    finding = found(studied(people(), METHODS[method], tails="keep"))[WHOLE]
    (gain,) = gains([finding])
    assert gain.certain
    assert gain.controlled
    assert gain.excess > 0.3


def test_one_column_alone_is_tried_often_enough_to_be_called_a_success() -> None:
    findings = found(studied(people().select(["pay", "sex"]), METHODS["condense"], tails="keep"))
    assert findings[f"{WHOLE}/pay"].attempts == 24
    assert gains([findings[WHOLE]])[0].certain


def test_numbers_of_every_type_are_replaced_by_the_extreme_person_s(monkeypatch: pytest.MonkeyPatch) -> None:
    study = studied(people())
    monkeypatch.setattr(memory, "make_rows", lambda job, *_: SimpleNamespace(released=job.original))
    findings = found(study)
    assert set(findings) == {WHOLE, *(f"{WHOLE}/{name}" for name in ("pay", "steps", "born", "weight"))}
    for finding in findings.values():
        assert finding.value == 1.0
        assert finding.control is not None
        assert finding.control <= 0.2


@pytest.mark.parametrize(
    "told", [{}, {"target": "sex"}, {"person": "who"}, {"weight": "share"}, {"level": "20"}, {"holdout": 0.3}], ids=str
)
def test_identifiers_persons_weights_levels_and_rules_leave_the_method_to_be_run_again(told: dict[str, Any]) -> None:
    rng = np.random.default_rng(4)
    table = people().append_column("name", pa.array([f"n{each}" for each in range(ROWS)]))
    table = table.append_column(
        "late", pa.array([day + datetime.timedelta(days=3) for day in people()["born"].to_pylist()])
    )
    table = table.append_column("share", pa.array(rng.gamma(5.0, 1.0, ROWS).round(2)))
    if "person" in told:
        table = table.append_column("who", pa.array([f"p{each}" for each in rng.integers(0, 400, ROWS)]))
    finding = found(studied(table, **told))[WHOLE]
    assert (finding.value, finding.control) == (0.0, 0.0)


def test_the_same_seed_finds_the_same() -> None:
    first, second = (found(studied(people(), tails="keep")) for _ in range(2))
    assert first == second


# --------------------------------------------------------------------------------------------------- each ingredient


def test_both_ends_take_turns() -> None:
    def upper(numbers: dict[str, Floats], cells: Mapping[str, float]) -> dict[str, Floats]:
        return {name: np.maximum(each, np.median(each)) for name, each in numbers.items()}

    assert found(with_method(upper))[WHOLE].value == 0.5


def test_the_end_is_that_of_everybody_but_the_person(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference, "_ROWS", 3)  # so that the person often holds the end before it is replaced

    def end(beyond: float) -> Any:
        return lambda numbers, _: {
            name: np.array([each[1:].min() - beyond, each[1:].max() + beyond]) for name, each in numbers.items()
        }

    within, past = found(with_method(end(0.0)))[WHOLE], found(with_method(end(1e-6)))[WHOLE]
    assert (within.value, within.control) == (0.0, 0.0)
    assert (past.value, past.control) == (1.0, 1.0)  # a method that shows such a value anyway tells of nobody
    assert not gains([past])[0].certain


def test_without_the_person_every_cell_is_the_table_s() -> None:
    seen: list[int] = []

    def method(numbers: dict[str, Floats], cells: Mapping[str, float]) -> dict[str, Floats]:
        seen.append(len(cells))
        return numbers

    found(with_method(method))
    assert seen == [2, 0] * 12


def test_a_part_of_a_large_table_is_redrawn_from_that_part(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("MEASURED_WHOLE", 1_000), ("MEASURED_ROWS", 900), ("REGION_ROWS", 100)):
        monkeypatch.setattr(measured, name, value)
    table = pa.table({"place": np.arange(3_000) / 7.0, "other": np.random.default_rng(1).normal(size=3_000).round(3)})
    study = studied(table)
    assert len(study.original) < 2_000
    redraw = study.workings.redraw
    assert redraw is not None
    monkeypatch.setattr(memory, "make_rows", lambda job, *_: SimpleNamespace(released=job.original))
    rows = np.arange(500)
    released = redraw(rows, {}, np.random.default_rng(0))
    assert released is not None
    np.testing.assert_array_equal(released["place"], study.pairs[0].original.values[rows])


# ---------------------------------------------------------------------------------------------------- what is not run


def test_a_table_without_numbers_or_dates_has_nothing_to_attack() -> None:
    (finding,) = found(studied(people().select(["sex"]))).values()
    assert finding.value is None
    assert not finding.applies
    assert finding.reason == "no column holds numbers or dates"


def test_a_redraw_with_too_few_people_for_the_method_is_not_run() -> None:
    for study in (with_method(lambda *_: None), studied(people(rows=1_200), sf.Chain(k=K, leaf=500))):
        (finding,) = found(study).values()
        assert finding.applies
        assert finding.reason == "the method refused a redraw of 400 people"


def test_the_table_of_another_tool_and_rows_with_noise_are_not_run() -> None:
    table = people().select(["pay", "steps"])
    others = study_of(table, table, fit(table), rng=np.random.default_rng(5))
    for study in (others, studied(table, sf.AdditiveNoise(size=0.1))):
        (finding,) = found(study).values()
        assert finding.applies
        assert finding.reason == "the method cannot be run again on this table"


def test_declared_bounds_leave_no_room_for_an_extreme_person() -> None:
    table = pa.table({"grade": np.arange(ROWS) % 6, "points": np.arange(ROWS) % 101})
    bounded = Field("grade", Kind.INTEGER, domain=Domain(low=0, high=5, declared=True))
    free = Field("points", Kind.INTEGER, domain=Domain(low=0, high=100))
    grades = table.select(["grade"])
    (alone,) = found(with_method(copied, grades, Codec.fit(grades, Schema((bounded,))))).values()
    assert alone.reason == "the declared bounds of every column leave no room beyond its people"
    both = found(with_method(copied, table, Codec.fit(table, Schema((bounded, free)))))
    assert set(both) == {WHOLE, f"{WHOLE}/points"}


@pytest.mark.parametrize(("sign", "value"), [(1.0, 100.0), (-1.0, 2.0)])
def test_the_extreme_person_stays_within_the_bound_of_that_end(sign: float, value: float) -> None:
    table = pa.table({"points": np.arange(30, 60)})
    field = Field("points", Kind.INTEGER, domain=Domain(low=2, high=100, declared=True))
    (pair,) = with_method(copied, table, Codec.fit(table, Schema((field,)))).pairs
    assert _beyond(pair, np.arange(30), sign) == (59.0 if sign > 0 else 31.0, value)  # the first person is replaced


def test_the_extreme_person_is_three_times_as_far_out_as_the_others() -> None:
    table = pa.table({"points": np.append(np.arange(21), 40)})
    field = Field("points", Kind.INTEGER, domain=Domain(low=0, high=40))
    (pair,) = with_method(copied, table, Codec.fit(table, Schema((field,)))).pairs
    rows = np.append(21, np.arange(22))  # whoever is replaced, and everybody
    assert _beyond(pair, rows, 1.0) == (40.0, 40.0 + 3 * (40.0 - 10.5))
    assert _beyond(pair, rows, -1.0) == (0.0, -3 * 10.5)


# ------------------------------------------------------------------------------------------------------ in the report


def test_the_sentence_says_how_often_with_and_without_the_person() -> None:
    found_here = found(with_method(copied)).values()
    said = risk_sentence(found_here)
    assert "Largest excess: singling out by extreme values, " in said
    assert ": 100\u00a0% on members, " in said
    assert [kind for kind, _ in risky_kinds(found_here)] == ["Extreme values"]


def test_the_recipient_reads_no_number_of_a_single_column() -> None:
    findings = tuple(found(with_method(copied)).values())
    report = Report(findings, attack_figures(findings), ROWS, ROWS)
    assert "pay" in report.to_html(edition="owner")
    public = report.to_html(edition="public")
    assert "Singling out, extreme values" in public
    assert "pay" not in public
    assert [figure.name for figure in report.figures] == ["attacks/all"]
