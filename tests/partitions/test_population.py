"""How people stand in a whole file is counted in its cells as if all rows were at hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess.risk.uniqueness import population_uniqueness
from sfumato.engines.outcome import Comparison
from sfumato.engines.partitions import population
from sfumato.tables.persons import persons_of_table
from tests.partitions.test_partitions import people, run


def people_of_towns(rows: int) -> pa.Table:
    """People, dated by the month, some of whose numbers only one holds; no category is rare."""
    table = people(rows).drop_columns(["level"])
    town = pa.array([["Oslo", "Bern", "Rome"][row % 3] for row in range(rows)])
    months = np.array("1950-01", dtype="datetime64[M]") + np.random.default_rng(4).integers(0, 500, rows)
    born = pa.array([f"{month}-01" for month in months.astype(str)]).cast(pa.date32())
    return table.set_column(table.column_names.index("town"), "town", town).append_column("born", born)


@pytest.mark.parametrize("person", [None, "who"])
@pytest.mark.parametrize("mechanism", [sf.Chain(k=4, leaf=20), sf.Condensation(k=4, effort="fast")])
def test_cells_count_what_all_rows_show(person: str | None, mechanism: Any) -> None:
    whole = people_of_towns(900) if person else people_of_towns(900).drop_columns(["who"])
    table, outside = whole.slice(0, 700), whole.slice(700)
    told: dict[str, Any] = {"person": person} if person else {}
    outcome = run(table, mechanism, measured=200, holdout=outside, **told)
    compared = outcome.comparison
    assert isinstance(compared, Comparison)
    assert compared.original.num_rows < 500
    whose = persons_of_table(table, compared.codec.schema), persons_of_table(outside, compared.codec.schema)
    every = (np.arange(700), np.arange(200))
    expected = population_uniqueness((table, pa.table(outcome.table), outside), compared.codec, whose, *every)
    assert any((one.frequencies == 1).any() and one.chance.any() for one in expected)
    for one, two in zip(compared.standings, expected, strict=True):
        for name in ("shown", "chance", "control_shown"):
            assert getattr(one, name).tolist() == getattr(two, name).tolist(), name
        most = 21 if person and one.fewest is None else 700  # persons of a number are distinguished up to here
        for name in ("frequencies", "control_frequencies"):
            assert np.minimum(getattr(one, name), most).tolist() == np.minimum(getattr(two, name), most).tolist(), name
        assert one.fewest == two.fewest
        assert (one.persons is None) == (person is None)
        if one.persons is not None and two.persons is not None:
            pairs = np.unique(np.column_stack([one.persons, two.persons]), axis=0)
            assert len(pairs) == len(np.unique(one.persons)) == len(np.unique(two.persons))
    assert any("was counted over all rows, for 700 of them" in note for note in compared.notes)


def test_some_people_are_asked_for_where_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(population, "_PEOPLE", 50)
    outcome = run(people_of_towns(900).drop_columns(["who"]), sf.Chain(k=4, leaf=20), measured=200, holdout=0.2)
    compared = outcome.comparison
    assert isinstance(compared, Comparison)
    assert {len(one.frequencies) for one in compared.standings} == {50}
    assert {len(one.control_frequencies) for one in compared.standings} == {50}
    assert all((one.frequencies != 0).all() for one in compared.standings)  # they are in the table
