"""Tables in cells: the same rows whichever way they come, levels met in every cell, and what is learnt of all rows."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import OptionError, PrivacyRefusal, SchemaError, SfumatoError
from sfumato.core.facts import Fact, HeldOut, Shuffled, Stratified
from sfumato.core.groups.facts import Grouped, Partitioned
from sfumato.core.randomness import Randomness
from sfumato.engines.memory import run_in_memory
from sfumato.engines.outcome import Comparison, Outcome
from sfumato.engines.partitions import grow_partition_tree, grow_tree, leaf_in, leaves_of, merge_leaves
from sfumato.engines.partitions.first_pass import RowBlock, RowHash, witnesses
from sfumato.engines.partitions.gather import PartitionSettings
from sfumato.engines.partitions.memory_limit import (
    FileSpill,
    Spill,
    needed_bytes,
    parse_size,
    partition_rows,
    usual_memory,
)
from sfumato.engines.partitions.partition import merge_facts
from sfumato.engines.partitions.run import FileRows, run_partitioned
from sfumato.engines.plan import Plan
from sfumato.methods.condense.compact import CompactSearch, compact_groups
from sfumato.methods.condense.facts import ClassPure, PersonsInDistinctGroups
from sfumato.methods.randomize.facts import Randomized
from sfumato.options import RunOptions
from sfumato.tables.facts import ColumnRulesKept, RareValues, TailsCoded
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.schema import Schema
from sfumato.tables.source import TableSource, open_source
from tests.examples import examples

KEY = bytes(range(32))
FAST = sf.Condensation(k=4, effort="fast")


def people(rows: int = 900) -> pa.Table:
    rng = np.random.default_rng(3)
    age = rng.integers(18, 90, rows)
    town = rng.choice(["Oslo", "Bern", "Rome"], rows)
    town[rows // 2 : rows // 2 + 2] = "Assisi"  # a category of two persons
    return pa.table(
        {
            "who": [f"p{row % (rows // 2)}" for row in range(rows)],
            "age": age,
            "since": age + rng.integers(0, 9, rows),
            "pay": np.round(rng.lognormal(3.0, 1.0, rows), 2),
            "town": town.tolist(),
            "ill": pa.array([None if row % 40 == 7 else bool(row % 3) for row in range(rows)]),
            "level": rng.choice([4, 4, 4, 12], rows),
        }
    )


def source_of(table: pa.Table) -> TableSource:
    return TableSource(Path("table"), FileForm(FileFormat.ARROW), table.schema, table.num_rows, table=table)


def run(
    table: pa.Table | TableSource, mechanism: Any = FAST, *, most_rows: int = 250, seed: int = 5, **told: Any
) -> Outcome:
    source = table if isinstance(table, TableSource) else source_of(table)
    randomness = Randomness(seed).repeatable()
    spill = told.pop("spill", None) or Spill()
    measured = told.pop("measured", 1_000_000)
    options = RunOptions(**{"rows_are_people": "person" not in told, **told})
    settings = PartitionSettings(randomness, most_rows=most_rows, measured=measured)
    return run_partitioned(FileRows(source, spill), mechanism, options, settings)


def the(kind: type[Fact], outcome: Outcome) -> Any:
    (fact,) = (fact for fact in outcome.facts if isinstance(fact, kind))
    return fact


def test_a_table_and_its_file_give_the_same_rows_however_they_are_read_and_put_aside(tmp_path: Path) -> None:
    table = people()
    told: dict[str, Any] = {"person": "who", "level": "level", "holdout": 0.1}
    first = run(table, **told)
    pa.parquet.write_table(table, tmp_path / "people.parquet", row_group_size=77)
    (tmp_path / "aside").mkdir()
    spill = FileSpill(tmp_path / "aside", KEY)
    again = run(open_source(tmp_path / "people.parquet"), spill=spill, **told)
    assert isinstance(first.table, pa.Table)
    assert first.table.equals(again.table)
    assert first.facts == again.facts
    assert the(Partitioned, first).cells > 2
    assert run(table, seed=6, **told).table != first.table


def test_levels_are_met_and_people_are_counted_over_all_cells() -> None:
    outcome = run(people(), person="who", level="level")
    grouped, cells, apart = the(Grouped, outcome), the(Partitioned, outcome), the(PersonsInDistinctGroups, outcome)
    assert grouped.violations == 0
    assert grouped.smallest >= 4
    assert grouped.records <= 900
    assert apart.persons == 450
    assert 12 <= cells.smallest <= 900 // cells.cells
    assert outcome.rows_out == grouped.records == the(Shuffled, outcome).rows
    stated = 10  # no person's level of its own: the highest of the declared ones that ten persons ask for
    assert the(RareValues, outcome) == RareValues("pool", stated, 2, by_person=True)
    assert the(TailsCoded, outcome) == TailsCoded("code", stated, 3, by_person=True)
    assert isinstance(outcome.table, pa.Table)
    assert set(outcome.table.column("town").to_pylist()) == {"Oslo", "Bern", "Rome"}  # two persons are of a fourth


@pytest.mark.parametrize("in_partitions", [False, True], ids=["memory", "partitions"])
def test_rare_cells_of_people_held_out_are_filled_as_those_of_the_others_are(*, in_partitions: bool) -> None:
    """If they were missing instead, every attack would succeed more often on the people of the release."""
    rng = np.random.default_rng(8)
    towns = np.where(rng.random(1600) < 0.6, rng.integers(0, 4, 1600), rng.integers(4, 40, 1600))
    kinds = {"town": [f"t{town}" for town in towns], "region": [f"r{town % 4}" for town in towns]}
    table, rules = pa.table(kinds | {"age": rng.integers(18, 90, 1600)}), ("town -> region",)
    schema = Schema(Schema.infer(table).without_rules().fields, rules)
    if in_partitions:
        outcome = run(table, sf.Chain(k=30), most_rows=900, schema=schema, holdout=0.5)
    else:
        options = RunOptions(rows_are_people=True, holdout=0.5)
        outcome = run_in_memory(table, Plan(sf.Chain(k=30), schema, options, Randomness(5).repeatable()))
    compared = outcome.comparison
    assert isinstance(compared, Comparison)
    assert compared.outside is not None
    inside, outside = (Counter(part.column("town").to_pylist()) for part in (compared.original, compared.outside))
    assert None not in outside
    assert set(outside) <= set(inside)
    assert all(row["region"] == f"r{int(row['town'][1:]) % 4}" for row in compared.outside.to_pylist())
    for town in inside:  # a difference of two shares: six standard deviations
        assert abs(inside[town] / inside.total() - outside[town] / outside.total()) < 6 * np.sqrt(0.25 * 2 / 600)


def test_what_is_measured_is_every_row_beside_what_was_made_of_its_group() -> None:
    outcome = run(people(), person="who", level="level", holdout=0.2)
    compared, workings = outcome.comparison, outcome.workings
    assert isinstance(compared, Comparison)
    assert workings.labels is not None
    assert workings.drawn_from is not None
    assert workings.levels is not None
    sizes = np.bincount(workings.labels)
    assert (sizes[workings.labels] >= workings.levels).all()
    assert np.array_equal(sizes, np.bincount(workings.drawn_from))
    assert compared.original.num_rows == outcome.rows_in
    assert compared.outside is not None
    assert compared.outside.num_rows == the(HeldOut, outcome).rows > 100
    held = set(compared.outside.column("who").to_pylist())
    assert len(held) * 2 == compared.outside.num_rows  # all rows of a person are on one side
    sums = {name: np.bincount(workings.labels, compared.original.column(name).to_numpy()) for name in ("age", "pay")}
    made = {name: np.bincount(workings.drawn_from, compared.released.column(name).to_numpy()) for name in sums}
    for name, spread in (("age", 25.0), ("pay", 80.0)):
        assert np.abs(sums[name] - made[name]).max() / sizes.min() < spread  # the means of groups are near


def test_only_some_neighbourhoods_are_measured_and_the_report_says_so() -> None:
    table = people().drop_columns(["who"])
    outcome = run(table, measured=0)
    assert not isinstance(outcome.comparison, Comparison)
    some = run(table, measured=300)
    assert isinstance(some.comparison, Comparison)
    assert some.workings.labels is not None
    assert some.workings.drawn_from is not None
    assert some.comparison.original.num_rows < 900
    assert np.array_equal(np.bincount(some.workings.labels), np.bincount(some.workings.drawn_from))
    assert "of the 900 rows: whole neighbourhoods" in some.comparison.notes[0]
    assert "was counted over all rows, for 900 of them" in some.comparison.notes[0]
    assert some.table == outcome.table  # what is measured changes no row


def test_strata_and_classes_never_mix() -> None:
    outcome = run(people().drop_columns(["who", "level"]), strata="town", rare="keep", mechanism=PAIRS)
    assert the(Stratified, outcome).strata == 4
    assert isinstance(outcome.comparison, Comparison)
    assert outcome.workings.labels is not None
    pairs = {
        (group, town)
        for group, town in zip(
            outcome.workings.labels.tolist(), outcome.comparison.original.column("town").to_pylist(), strict=True
        )
    }
    assert len(pairs) == the(Grouped, outcome).groups
    by_class = run(
        people().drop_columns(["who", "level"]), sf.ClasswiseCondensation(effort="fast"), target="town", rare="pool"
    )
    pure = the(ClassPure, by_class)
    assert pure.classes == 3
    assert 5 <= pure.unit < pure.size <= the(Grouped, by_class).smallest
    assert the(Grouped, by_class).algorithm == "class-wise: principal-axis tree and local search"


@pytest.mark.parametrize("mechanism", [sf.ClasswiseCondensation(k=5), sf.Chain(k=30, leaf=30)])
def test_a_missing_class_is_refused_if_it_cannot_leave(mechanism: Any) -> None:
    with pytest.raises(SchemaError, match=r"column 'ill' lacks the class of some rows.*sanitized in partitions; fill"):
        run(people().drop_columns(["who", "level"]), mechanism, target="ill")


PAIRS = sf.Condensation(k=2, effort="fast")


def test_rules_are_kept_in_all_cells_and_those_that_ten_late_rows_break_are_left_out() -> None:
    table = people().select(["age", "since", "pay"])
    kept = run(table)
    assert the(ColumnRulesKept, kept).rules == ("age <= since",)
    assert isinstance(kept.table, pa.Table)
    assert (kept.table.column("age").to_numpy() <= kept.table.column("since").to_numpy()).all()
    late = table.set_column(1, "since", pa.array([*table.column("since").to_pylist()[:-1], 1]))
    with pytest.warns(UserWarning, match="fewer than 10 cells do not fit the others: 1, the first is 'since'"):
        kept = run(late)
    assert the(ColumnRulesKept, kept).rules == ("age <= since",)
    assert isinstance(kept.table, pa.Table)
    assert (kept.table.column("age").to_numpy() <= kept.table.column("since").to_numpy()).all()
    many = table.set_column(1, "since", pa.array([*table.column("since").to_pylist()[:-10], *[1] * 10]))
    assert not any(isinstance(fact, ColumnRulesKept) for fact in run(many).facts)
    fields = tuple(dataclasses.replace(field, repair=False) for field in sf.Schema.infer(late))
    told = sf.Schema(fields, ("age <= since",))
    with pytest.raises(SchemaError, match="1 of 900 rows break the rule 'age <= since'"):
        run(late, schema=told)


def test_each_cell_is_randomized_by_the_same_laws() -> None:
    table = people().select(["town", "ill"]).filter(pa.array([row % 40 != 7 for row in range(900)]))
    outcome = run(table, sf.Randomization(epsilon=2.0, allow_observed=True), rare="keep")
    assert sum(isinstance(fact, Randomized) for fact in outcome.facts) == 2
    assert outcome.rows_out == table.num_rows
    assert not any(isinstance(fact, Partitioned) for fact in outcome.facts)


def test_rows_that_change_what_a_column_is_are_found_wherever_they_stand() -> None:
    table = people(3_000).select(["age", "pay"])
    age = [str(each) for each in table.column("age").to_pylist()]
    age[2_900] = "?"
    pay = table.column("pay").to_pylist()
    pay[2_950:2_960] = [round(1.23456 + place / 100, 5) for place in range(10)]
    outcome = run(pa.table({"age": age, "pay": pay}))
    assert outcome.recipe.schema["age"].kind.value == "integer"
    assert outcome.recipe.schema["age"].missing == ("?",)
    step = outcome.recipe.schema["pay"].domain.step
    assert isinstance(step, float)
    assert step < 0.01


@pytest.mark.parametrize(
    ("mechanism", "told", "words"),
    [
        (sf.Swapping(), {"target": "town"}, "'swap' needs all rows at once"),
        (sf.LaplacePCA(), {}, "'laplace-pca' needs all rows at once"),
        (sf.AdditiveNoise(correlated=True), {}, "correlated=True needs all rows at once"),
        (sf.AdditiveNoise(enhance=0.1), {}, "enhance= needs all rows at once"),
        (FAST, {"rows": 3}, "3 rows are too few for the [0-9]+ cells"),
        (sf.Chain(), {"where": "age > 60"}, "where= needs all rows at once"),
        (sf.AdditiveNoise(), {"rows": 10}, "'noise' makes no synthetic rows"),
        (FAST, {"keep_persons": True}, "keep_persons=True needs all rows at once"),
        (FAST, {"holdout": 1.5}, "between 0 and 1"),
    ],
)
def test_what_needs_all_rows_at_once_is_refused(mechanism: Any, told: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        run(people(60).drop_columns(["who", "level"]), mechanism, most_rows=12, **told)


@examples(30)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=60), st.integers(1, 4), st.data())
def test_witnesses_tell_whether_k_persons_hold_a_value_and_those_of_parts_hold_those_of_the_whole(
    rows: list[tuple[int, int]], k: int, data: Any
) -> None:
    table = pa.table({"v": [f"v{value}" for value, _ in rows], "n": [float(value) for value, _ in rows]})
    schema = sf.Schema(
        (
            sf.Schema.infer(pa.table({"v": ["a", "b"] * 30}))["v"],
            sf.Schema.infer(pa.table({"n": [0.5, 2.25] * 9 + [7.125]}))["n"],
        )
    )
    persons = np.array([person for _, person in rows], dtype=np.uint64)
    found = witnesses(table, schema, k, persons)
    for value in {value for value, _ in rows}:
        everybody = {person for each, person in rows if each == value}
        seen = {rows[place][1] for place in found if rows[place][0] == value}
        assert min(len(everybody), k) == min(len(seen), k)
    cut = data.draw(st.integers(0, len(rows)))
    first = witnesses(table.slice(0, cut), schema, k, persons[:cut])
    second = witnesses(table.slice(cut), schema, k, persons[cut:]) + cut
    both = np.concatenate([first, second])
    again = both[witnesses(table.take(pa.array(both)), schema, k, persons[both])]
    assert again.tolist() == found.tolist()


@examples(30)
@given(st.integers(2, 120), st.integers(1, 40), st.integers(1, 3), st.integers(0, 2**32))
def test_cuts_give_every_row_one_leaf_of_few_rows(rows: int, most: int, width: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(size=(rows, width))
    tree, leaves = grow_tree(values, most)
    leaf = leaf_in(tree, values, np.arange(rows))
    counts = np.bincount(leaf, minlength=leaves)
    assert sorted(leaves_of(tree)) == list(range(leaves))
    assert counts.max() <= max(most, 1)
    assert counts.min() >= min(rows, (most + 1) // 2)


def test_leaves_with_too_few_people_are_joined_with_their_neighbours() -> None:
    table, values = pa.table({"x": np.arange(80.0)}), np.arange(80.0)[:, None]
    cuts = grow_partition_tree(table, values, (), 80, 10)
    assert cuts.leaves == 8
    assert len(merge_leaves(cuts, [10] * 8, None, 10)) == 8
    assert len(merge_leaves(cuts, [10] * 8, None, 11)) == 4
    assert merge_leaves(cuts, [10] * 8, [10, 3, *[10] * 6], 5)[0] == (0, 1)
    assert merge_leaves(cuts, [10] * 8, None, 81) == [tuple(range(8))]


def test_rows_put_aside_stand_nowhere_in_the_clear_and_cannot_be_altered(tmp_path: Path) -> None:
    spill = FileSpill(tmp_path, KEY)
    spill.add(3, pa.table({"town": ["Samarkand"] * 200}))
    spill.flush()
    (file,) = tmp_path.iterdir()
    assert b"Samar" not in file.read_bytes()
    assert spill.rows([3]).num_rows == 200
    with pytest.raises(SfumatoError, match="altered"):
        FileSpill(tmp_path, bytes(32)).rows([3])
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(SfumatoError, match="altered"):
        FileSpill(tmp_path, KEY).rows([3])
    file.rename(tmp_path / "leaf-4")
    with pytest.raises(SfumatoError, match="altered"):
        FileSpill(tmp_path, KEY).rows([4])


def test_cells_that_say_different_things_are_not_certified() -> None:
    one, two = (Shuffled(5),), (Shuffled(6), Partitioned(1, 2))
    assert merge_facts([one, one], [5, 5], persons=None, classes=1, pairs=False) == (Shuffled(10),)
    for parts in ([one, two], [two, (Shuffled(6), Partitioned(2, 2))]):
        with pytest.raises(PrivacyRefusal, match="different facts"):
            merge_facts(parts, [5, 6], persons=None, classes=1, pairs=False)


def test_sizes_are_read_and_larger_memory_makes_larger_cells() -> None:
    assert [parse_size(text) for text in ("10", "1k", "512M", "2GiB", "0.5 g")] == [10, 1024, 2**29, 2**31, 2**29]
    for wrong in ("", "M", "-1G", "1X", "0", "1e9", True, 0):
        with pytest.raises(OptionError, match="512M or 2G"):
            parse_size(wrong)
    assert partition_rows(1, 10) == 100_000
    assert partition_rows(8 << 30, 10) > partition_rows(2 << 30, 10) > 100_000
    assert 1 << 26 < usual_memory() <= 3 << 29


def test_a_million_rows_of_twenty_columns_are_chained_at_once_and_condensed_in_cells() -> None:
    kinds = pa.schema([(f"x{place}", pa.float64()) for place in range(20)])
    source = TableSource(Path("table"), FileForm(FileFormat.ARROW), kinds, 1_000_000)
    assert needed_bytes(source, None) == needed_bytes(source, "chain") < 3 << 29 < needed_bytes(source, "condense")


def test_numbers_by_chance_hang_on_the_row_alone_and_are_spread_evenly() -> None:
    chance = RowHash.of(Randomness(4).repeatable(), None, 0.25)
    rows = np.arange(40_000)
    drawn = chance.of_rows(rows, "a")
    assert np.array_equal(chance.of_rows(rows[100:200], "a"), drawn[100:200])
    assert not np.array_equal(chance.of_rows(rows, "b"), drawn)
    held = chance.held_out(RowBlock(pa.table({"x": rows}), rows))
    assert abs(held.mean() - 0.25) < 0.012  # five deviations and a half: once in 2e7
    assert RowHash.of(Randomness().repeatable(), None, None).key != chance.key


def test_a_cell_is_searched_as_long_as_the_table_that_it_is_of() -> None:
    values, levels = np.random.default_rng(6).normal(size=(600, 3)), np.full(600, 5)

    def ssq(among: int) -> float:
        groups = compact_groups(values, levels, np.random.default_rng(2), search=CompactSearch(among=among))
        return sum(float(((values[rows] - values[rows].mean(axis=0)) ** 2).sum()) for rows in groups)

    assert ssq(1 << 24) != ssq(0) == ssq(600) == ssq(100_000)
    table = people().select(["age", "pay"])
    assert task_rows(table) == [900] * 4


def task_rows(table: pa.Table) -> list[int]:
    """Records that each partition of a table receives."""
    told = list[int]()

    class Watched(sf.Condensation):
        def sanitize(self, records: Any, *, rng: np.random.Generator) -> Any:
            told.append(records.among)
            return super().sanitize(records, rng=rng)

    run(table, Watched(k=4, effort="fast"))
    return told
