"""Large tables are measured on whole neighbourhoods, drawn at random."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.engines import measured
from sfumato.engines.memory import run_in_memory
from sfumato.engines.outcome import Comparison, Outcome
from sfumato.engines.plan import make_plan
from sfumato.methods.chain import Chain
from sfumato.methods.condense import Condensation
from sfumato.methods.perturb import AdditiveNoise
from sfumato.methods.protocol import Mechanism
from sfumato.options import RunOptions

ROWS = 3_000


def people(rows: int = ROWS, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 4, rows)
    return pa.table(
        {
            "height": (kind + rng.normal(size=rows)).round(3),
            "visits": rng.poisson(3 + kind),
            "ward": pa.array([f"w{each}" for each in (kind + rng.integers(0, 2, rows)) % 4]),
            "place": np.arange(rows) / 7.0,
        }
    )


@pytest.fixture
def _small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "MEASURED_WHOLE", 1_000)
    monkeypatch.setattr(measured, "MEASURED_ROWS", 900)
    monkeypatch.setattr(measured, "REGION_ROWS", 100)


def compared(mechanism: Mechanism, **told: object) -> tuple[Outcome, Comparison]:
    table = people()
    outcome = run_in_memory(table, make_plan(table, mechanism, RunOptions(seed=5, **told)))  # type: ignore[arg-type]
    assert isinstance(outcome.comparison, Comparison)
    return outcome, outcome.comparison


@pytest.mark.usefixtures("_small_limits")
def test_groups_stay_whole_with_all_rows_that_were_made_of_them() -> None:
    outcome, some = compared(Condensation(k=10))
    whole, part = outcome.workings, some.workings
    assert whole is not None
    assert part is not None
    assert whole.labels is not None
    assert whole.drawn_from is not None
    assert part.labels is not None
    assert part.drawn_from is not None
    assert 0 < some.original.num_rows < ROWS / 2
    assert part.labels.max() + 1 == len(np.unique(part.labels))
    first = np.unique(part.labels, return_index=True)[1]
    numbers = np.rint(some.original["place"].to_numpy() * 7.0).astype(np.int64)[first]
    np.testing.assert_array_equal(np.bincount(part.labels), np.bincount(whole.labels)[whole.labels[numbers]])
    np.testing.assert_array_equal(np.bincount(part.drawn_from), np.bincount(whole.drawn_from)[whole.labels[numbers]])


@pytest.mark.usefixtures("_small_limits")
def test_rows_that_descend_from_people_come_with_them() -> None:
    outcome, some = compared(AdditiveNoise(size=0.01, pass_categories=True))
    assert some.workings is not None
    origin = some.workings.origin
    assert origin is not None
    assert len(origin) == some.original.num_rows == some.released.num_rows
    before, after = (table["place"].to_numpy() for table in (some.original, some.released))
    assert np.abs(after - before[origin]).max() < 0.1 * ROWS
    assert outcome.table.num_rows == ROWS  # type: ignore[union-attr]


@pytest.mark.usefixtures("_small_limits")
def test_rows_of_nobody_are_measured_where_they_lie() -> None:
    _, some = compared(Chain(k=5, leaf=20), holdout=0.3)
    assert some.outside is not None
    numbers = [table.num_rows for table in (some.original, some.released, some.outside)]
    share = numbers[0] / (0.7 * ROWS)
    assert 0.2 < share < 0.7
    assert abs(numbers[1] / (0.7 * ROWS) - share) < 0.1
    assert abs(numbers[2] / (0.3 * ROWS) - share) < 0.1
    assert any(f"{numbers[0]} of the 2100 rows" in note for note in some.notes)


@pytest.mark.usefixtures("_small_limits")
def test_who_is_alone_and_how_rare_a_category_is_are_counted_over_all_rows() -> None:
    _, some = compared(AdditiveNoise(size=0.01, pass_categories=True))
    table = people()
    names = [column.field.name for column in some.codec.columns]
    counts = table["visits"].value_counts().to_pylist()
    counted = {each["values"]: each["counts"] for each in counts}
    mine = some.standings[names.index("visits")].frequencies
    assert mine.tolist() == [counted[value] for value in some.original["visits"].to_pylist()]
    wards = [each["counts"] for each in table["ward"].value_counts().to_pylist()]
    assert some.standings[names.index("ward")].fewest == (min(wards), min(wards))


def test_a_table_that_is_not_large_is_measured_whole() -> None:
    _, some = compared(Condensation(k=10))
    assert some.original.num_rows == ROWS
    assert some.workings is None
    assert not some.notes


@pytest.mark.usefixtures("_small_limits")
@pytest.mark.parametrize("method", ["chain", "condense"])
def test_the_report_of_a_large_table_says_what_it_was_measured_on(method: str) -> None:
    table = people()
    release = sf.sanitize(table, method=method, k=10, seed=2, holdout=0.3, time_limit=1.0)
    assert release.report is not None
    assert release.table.num_rows == 2100
    assert any("of the 2100 rows: whole neighbourhoods" in note for note in release.report.notes)
    smallest = next(each for each in release.report.findings if each.name == "group-size-smallest")
    assert smallest.value == release.certificate.levels["smallest_group"]


@pytest.mark.usefixtures("_small_limits")
def test_an_evaluation_of_a_large_table_says_what_it_was_measured_on() -> None:
    with pytest.warns(UserWarning, match="of the 3000 rows: whole neighbourhoods"):
        report = sf.evaluate(people(), people(seed=4), holdout=people(600, seed=5), seed=1, time_limit=1.0)
    assert report.rows_original < ROWS
