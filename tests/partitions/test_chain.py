"""The chain in cells: each cell is a chain of its own, and what is stated of all of them is true of the whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.assess import measure
from sfumato.assess.attacks.membership import LEAVES
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal
from sfumato.core.facts import Fact, HeldOut, Shuffled, Stratified
from sfumato.core.groups.facts import Partitioned
from sfumato.engines import measured
from sfumato.engines.outcome import Comparison
from sfumato.engines.partitions import run as engine
from sfumato.engines.partitions.memory_limit import FileSpill
from sfumato.engines.partitions.partition import PartitionResult, merge_facts, sanitize_partition
from sfumato.methods.chain import columns as of_chain
from sfumato.methods.chain.facts import ChainSynthesis, PersonsBounded
from sfumato.publish import sanitize as sanitizing
from sfumato.publish.verify import verify_release
from sfumato.tables.facts import ColumnRulesKept, RareValues, RowsDrawn, TailsCoded
from sfumato.tables.source import open_source
from tests.cli.conftest import Run
from tests.cli.conftest import run as at_the_command_line  # noqa: F401 - a fixture
from tests.partitions.test_partitions import FAST, KEY, people, run, the

CHAIN = sf.Chain(k=4, leaf=20)
TOWNS = ["Oslo", "Bern", "Rome"]


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> list[PartitionResult]:
    """What comes of each cell of a run."""
    done = list[PartitionResult]()

    def watched(*told: Any) -> PartitionResult:
        done.append(sanitize_partition(*told))
        return done[-1]

    monkeypatch.setattr(engine, "sanitize_partition", watched)
    return done


def of_cells(kind: type[Fact], cells: list[PartitionResult]) -> list[Any]:
    return [fact for cell in cells for fact in cell.facts if isinstance(fact, kind)]


def test_a_table_and_its_file_give_the_same_chains_however_they_are_read_and_put_aside(tmp_path: Path) -> None:
    table = people()
    told: dict[str, Any] = {"person": "who", "level": "level", "holdout": 0.1, "target": "ill"}
    first = run(table, CHAIN, **told)
    pa.parquet.write_table(table, tmp_path / "people.parquet", row_group_size=77)
    (tmp_path / "aside").mkdir()
    spill = FileSpill(tmp_path / "aside", KEY)
    again = run(open_source(tmp_path / "people.parquet"), CHAIN, spill=spill, **told)
    assert isinstance(first.table, pa.Table)
    assert first.table.equals(again.table)
    assert first.facts == again.facts
    assert the(Partitioned, first).cells > 2
    assert run(table, CHAIN, seed=6, **told).table != first.table


def test_what_is_stated_of_leaves_holds_for_all_cells(cells: list[PartitionResult]) -> None:
    outcome = run(people(), CHAIN, person="who", level="level")
    chained, persons, parts = the(ChainSynthesis, outcome), the(PersonsBounded, outcome), the(Partitioned, outcome)
    each = of_cells(ChainSynthesis, cells)
    assert parts == Partitioned(len(cells), min(cell.rows_in for cell in cells))
    assert (chained.records, chained.rows, the(Shuffled, outcome).rows) == (900, 900, 900)
    assert [cell.table.num_rows for cell in cells] == [cell.rows_in for cell in cells]
    assert (chained.k, chained.leaf, chained.violations) == (10, 20, 0)
    for place, name in enumerate(chained.columns):
        own = [(fact, fact.columns.index(name)) for fact in each]
        assert chained.leaves[place] == sum(fact.leaves[at] for fact, at in own) >= len(cells)
        assert chained.smallest[place] == min(fact.smallest[at] for fact, at in own) >= 20
        assert chained.alike[place] == sum(fact.alike[at] for fact, at in own)
    assert (chained.kept, chained.moved) == tuple(
        sum(getattr(fact, name) for fact in each) for name in ("kept", "moved")
    )
    assert persons == PersonsBounded(450)
    assert the(RareValues, outcome).k == the(TailsCoded, outcome).k == 10  # of levels 4 and 12
    assert isinstance(outcome.table, pa.Table)
    assert set(outcome.table.column("town").to_pylist()) == set(TOWNS)


def test_a_number_counts_as_rare_by_the_highest_level_of_the_table_in_every_cell(
    monkeypatch: pytest.MonkeyPatch, cells: list[PartitionResult]
) -> None:
    rng, asked = np.random.default_rng(8), list[int]()
    age = rng.permutation(np.repeat(np.arange(40, 70), 20))
    table = pa.table(
        {"age": age, "pay": rng.permutation(np.repeat(np.arange(200.0), 3)), "level": np.where(age > 67, 30, 4)}
    )
    usual = of_chain.read_columns

    def watched(records: Any, k: int) -> Any:
        asked.append(k)
        return usual(records, k)

    monkeypatch.setattr(of_chain, "read_columns", watched)
    outcome = run(table, CHAIN, most_rows=150, level="level", tails="keep")
    fact = the(ChainSynthesis, outcome)
    assert len(asked) == len(cells) > 2
    assert set(asked) == {30}
    assert (fact.k, fact.kept, fact.moved) == (20, 0, 1200)  # an age has 20 persons, a pay 3


def test_strata_rules_dates_and_missing_cells_go_through() -> None:
    rng, table = np.random.default_rng(9), people().drop_columns(["who", "level"])
    table = table.append_column("seen", pa.array(np.datetime64("2020-01-01") + rng.integers(0, 900, 900)))
    table = table.filter(pa.compute.is_in(table.column("town"), pa.array(TOWNS)))
    outcome = run(table, CHAIN, strata="town")
    released = outcome.table
    assert isinstance(released, pa.Table)
    assert (the(Stratified, outcome).strata, the(Partitioned, outcome).cells) == (3, 6)
    before, after = (Counter(each.column("town").to_pylist()) for each in (table, released))
    assert after == before  # each cell is of one stratum, and gives as many rows as it holds
    assert the(ColumnRulesKept, outcome).rules == ("age <= since",)
    assert (released.column("age").to_numpy() <= released.column("since").to_numpy()).all()
    assert 0 < released.column("ill").null_count < 100
    assert pa.types.is_date(released.schema.field("seen").type)
    with pytest.raises(LevelError, match="stratum"):
        run(table, sf.Chain(k=4, leaf=400), strata="town")


def test_an_order_of_columns_that_there_are_not_is_refused_before_rows_are_cut(cells: list[PartitionResult]) -> None:
    with pytest.raises(OptionError, match="the order names 'pya'"):
        run(people().drop_columns(["who"]), sf.Chain(k=4, leaf=20, order=("pya",)))
    assert not cells


def test_a_column_that_some_cells_draw_twice_is_said_to_be_and_other_columns_are_refused() -> None:
    one = ChainSynthesis(("class", "age"), (1, 2), (60, 25), (0, 1), 60, 60, 5, 20, 0, 7, 9)
    two = ChainSynthesis(("age", "class"), (3, 1), (20, 80), (0, 0), 80, 80, 5, 20, 0, 1, 2, ("class",), ("class",))
    (fact, cut) = merge_facts([(one,), (two,)], [60, 80], persons=None, classes=2, pairs=False)
    assert fact == ChainSynthesis(
        ("age", "class"), (5, 2), (20, 60), (1, 0), 140, 140, 5, 20, 0, 8, 11, ("class",), ("class",)
    )
    assert cut == Partitioned(2, 60)
    other = ChainSynthesis(("age", "town"), (1, 1), (60, 60), (0, 0), 60, 60, 5, 20, 0, 7, 9)
    with pytest.raises(PrivacyRefusal, match="different facts"):
        merge_facts([(one,), (other,)], [60, 60], persons=None, classes=2, pairs=False)


@pytest.mark.parametrize(("mechanism", "rows"), [(CHAIN, 2000), (CHAIN, 101), (FAST, 333)])
def test_rows_that_are_asked_for_are_shared_out_by_the_sizes_of_cells(
    mechanism: Any, rows: int, cells: list[PartitionResult]
) -> None:
    outcome = run(people(), mechanism, person="who", rows=rows)
    made = the(RowsDrawn, outcome)
    assert (made.rows, made.where) == (rows, "")
    assert made.records == outcome.rows_in
    assert outcome.rows_out == the(Shuffled, outcome).rows == rows
    assert isinstance(outcome.table, pa.Table)
    assert outcome.table.num_rows == rows
    assert len(cells) > 2
    if mechanism is CHAIN:  # which leaves no record out: no cell is a row away from its share
        assert all(abs(each.table.num_rows - rows * each.rows_in / 900) < 1.0 for each in cells)


def test_whole_places_are_measured_with_all_released_rows_that_lie_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "REGION_ROWS", 40)
    table = people().drop_columns(["who", "level", "since"])
    everything = run(table, CHAIN, holdout=0.2)
    some = run(table, CHAIN, holdout=0.2, measured=300)
    assert some.table == everything.table  # what is measured changes no row
    compared, whole = some.comparison, everything.comparison
    assert isinstance(compared, Comparison)
    assert isinstance(whole, Comparison)
    assert whole.original.num_rows == whole.released.num_rows == everything.rows_out
    assert 200 < compared.original.num_rows < 450
    assert "whole neighbourhoods, drawn at random, with all rows that were made of them" in compared.notes[0]
    held, shown = (Counter(map(str, each.to_pylist())) for each in (compared.released, whole.released))
    assert all(shown[row] >= count for row, count in held.items())
    assert 0.6 < compared.released.num_rows / compared.original.num_rows < 1.6
    assert compared.outside is not None
    assert 0 < compared.outside.num_rows < the(HeldOut, everything).rows


@pytest.mark.usefixtures("short_reports")
def test_who_grows_the_trees_anew_attacks_a_chain_in_cells_and_who_knows_them_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sanitizing, "partition_rows", lambda *_: 250)
    monkeypatch.setattr(measure, "catalogue", lambda: (LEAVES,))
    table = people().drop_columns(["who", "level"])
    told: dict[str, Any] = {"holdout": 0.3, "seed": 4, "memory": "1G", "rows_are_people": True}
    ways: tuple[dict[str, Any], ...] = ({"no_rules": True}, {"target": "pay", "no_rules": True}, {}, {"memory": None})
    for more in ways:  # rules are kept in the last two, which is not in cells
        report = sf.sanitize(table, CHAIN, **(told | more)).report
        assert report is not None
        assert report["membership-auc-refitted-trees"].value is not None
        assert str(report["membership-original-trees"].reason).endswith("for rules, strata or cells part it")


def test_with_no_method_named_a_file_in_cells_is_a_chain_and_its_folder_verifies(
    at_the_command_line: Run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sanitizing, "partition_rows", lambda *_: 250)
    table = people().drop_columns(["who"])
    pa.csv.write_csv(table, tmp_path / "people.csv")
    pa.csv.write_csv(table.slice(0, 150), tmp_path / "few.csv")
    told = ("--engine", "partitions", "--level", "level", "--rows-are-people", "--no-report")
    done = at_the_command_line("sanitize", tmp_path / "people.csv", "-o", tmp_path / "out", *told)
    assert done.code == 0, done.err
    assert all(check.holds for check in verify_release(tmp_path / "out" / "release"))
    certificate = sf.Certificate.from_json((tmp_path / "out" / "release" / "certificate.json").read_text())
    assert certificate.method == "chain"
    (cut,) = (fact for fact in certificate.facts if isinstance(fact, Partitioned))
    assert any(f"two of the {cut.cells} partitions of the table" in claim.claim for claim in certificate.claims)
    assert any("Every leaf lies within one partition of the table." in claim.basis for claim in certificate.claims)
    few = sf.sanitize(
        tmp_path / "few.csv", folder=tmp_path / "few", engine="partitions", seed=1, report=False, rows_are_people=True
    )
    assert few.certificate.method == "condense"  # as in memory, below 200 rows
