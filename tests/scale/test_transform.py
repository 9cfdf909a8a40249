"""Files moved by a key in one pass: the numbers of the mechanism, in bounded memory, whole or not at all."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.assess.attacks.unknown_input import find_factor
from sfumato.core.errors import BadInput, OptionError, PrivacyRefusal, SchemaError, TableError
from sfumato.core.facts import ColumnsDropped, PassedThrough, RandomnessSource, Shuffled, ShuffledWithin
from sfumato.core.randomness import Randomness
from sfumato.engines.outcome import Outcome
from sfumato.engines.partitions.batches import try_on_sample
from sfumato.engines.partitions.gather import PartitionSettings
from sfumato.engines.partitions.memory_limit import Spill
from sfumato.engines.partitions.run import FileRows
from sfumato.methods.geometry import Add, Hybrid, Key, Mult, Rotate
from sfumato.methods.geometry.facts import Transformed
from sfumato.options import RunOptions
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Field, Kind, Role, Schema
from sfumato.tables.source import form_of, open_people, runs_of_rows

KEY = Key(
    (
        Add("age", -3.21875),
        Mult("salary", 1.03515625),
        Rotate(("age", "salary"), 13.70703125, (1.0, 1000.0)),
        Rotate(("salary", "debt"), 200.5, (1000.0, 500.0)),
    )
)
SOURCES, TARGETS = ["parquet", "csv", "csv.gz", "arrow"], ["parquet", "csv", "arrow"]


def people(rows: int = 101, *, missing: bool = False) -> pa.Table:
    rng = np.random.default_rng(1)
    age, salary = rng.integers(20, 65, rows), rng.normal(40_000, 9_000, rows).round(2)
    gone = rng.random(rows) < 0.2 if missing else None
    return pa.table(
        {"age": pa.array(age), "salary": pa.array(salary, mask=gone), "debt": pa.array(rng.normal(size=rows))}
    )


def save(table: pa.Table, path: Path) -> Path:
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=17)
    elif path.suffix == ".arrow":
        pa.feather.write_feather(table, str(path), compression="uncompressed", chunksize=17)
    else:
        with pa.output_stream(str(path), compression="detect") as stream:
            pa.csv.write_csv(table, stream)
    return path


def load(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return pa.parquet.read_table(path)
    if path.suffix == ".arrow":
        return pa.feather.read_table(str(path))
    return pa.csv.read_csv(path, parse_options=pa.csv.ParseOptions(newlines_in_values=True))


def transform(source: Path, target: Path, key: Key, *, pass_categories: bool = False, **choices: Any) -> Outcome:
    """Move a file as a run in batches does; ``choices`` are options of the run."""
    rows, options = FileRows(open_people(source), Spill()), RunOptions(rows_are_people=True, **choices)
    randomness = Randomness(options.seed).repeatable()
    settings = PartitionSettings(randomness, place=target, form=form_of(target), batch_rows=options.batch_rows)
    return rows.transform(
        try_on_sample(rows, Hybrid(key=key, pass_categories=pass_categories), options, settings), settings
    )


def numbered(table: pa.Table) -> pa.Table:
    """The same rows with their numbers, which pass."""
    return table.append_column("row", pa.array(range(table.num_rows)))


def in_order(table: pa.Table) -> pa.Table:
    """Rows in the order of their numbers."""
    return table.take(pa.array(np.argsort(table.column("row").cast(pa.int64()).to_numpy()))).drop_columns(["row"])


def in_memory(table: pa.Table, *, whole: bool = True) -> pa.Table:
    """Move a table by the mechanism and put the rows back into their old order; ages are whole numbers, or not."""
    kinds = {"age": Kind.INTEGER if whole else Kind.CONTINUOUS}
    fields = (Field(name, kinds.get(name, Kind.CONTINUOUS)) for name in table.column_names)
    codec = Codec.fit(table, Schema(tuple(fields)))
    sanitized = Hybrid(key=KEY).sanitize(codec.encode(table), rng=np.random.default_rng(2))
    records = sanitized.records
    released = codec.decode(records.values, moved=records.moved, grids=records.grids)
    assert sanitized.workings.origin is not None
    return released.take(pa.array(np.argsort(sanitized.workings.origin)))


def matrix(table: pa.Table) -> np.ndarray:
    return np.column_stack([table.column(name).to_numpy() for name in ("age", "salary", "debt")])


@pytest.mark.parametrize("missing", [False, True], ids=["whole", "missing"])
@pytest.mark.parametrize("ending", TARGETS)
@pytest.mark.parametrize("batch_rows", [1, 10, 1000])
def test_a_file_gets_the_numbers_of_the_mechanism(tmp_path: Path, ending: str, missing: bool, batch_rows: int) -> None:
    table = people(missing=missing)
    source = save(numbered(table), tmp_path / f"in.{ending}")
    transform(source, tmp_path / f"out.{ending}", KEY, batch_rows=batch_rows, public=("row",))
    found, expected = in_order(load(tmp_path / f"out.{ending}")), in_memory(table)
    assert found.schema.field("age").type == pa.int64()
    assert found.column("salary").null_count == table.column("salary").null_count
    fine = 1e-6 if ending == "csv" else 1e-12 * 40_000
    np.testing.assert_allclose(matrix(found), matrix(expected), rtol=1e-12, atol=fine)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_kind_of_file_becomes_every_other(tmp_path: Path, source: str, target: str) -> None:
    table = people().append_column("town", pa.array(['a "b", c', "d", "e\nf"] * 33 + ["g", "h"]))
    path = save(numbered(table), tmp_path / f"in.{source}")
    transform(path, tmp_path / f"out.{target}", KEY, pass_categories=True, public=("row",))
    found = in_order(load(tmp_path / f"out.{target}"))
    assert found.column("town").to_pylist() == table.column("town").to_pylist()
    expected = in_memory(table.drop(["town"]))
    np.testing.assert_allclose(matrix(found), matrix(expected), rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize("factor", [0.73, 1.37, 2.7])
def test_whole_numbers_do_not_tell_their_factor(tmp_path: Path, factor: float) -> None:
    source = save(people(600).select(["age"]), tmp_path / "in.parquet")
    transform(source, tmp_path / "out.parquet", Key((Mult("age", factor),)), seed=1)
    written = load(tmp_path / "out.parquet").column("age")
    assert written.type == pa.int64()
    assert find_factor(written.to_numpy().astype(np.float64)) is None


@pytest.mark.parametrize("factor", [0.73, 1.37, 2.7])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_numbers_that_lie_in_steps_do_not_tell_their_factor(tmp_path: Path, ending: str, factor: float) -> None:
    rng = np.random.default_rng(3)
    columns = {
        "salary": rng.integers(20, 90, 600) * 1000,
        "weight": rng.normal(70, 12, 600).round(1),
        "price": rng.integers(1, 400, 600) * 0.25,
    }
    source = save(pa.table(columns), tmp_path / f"in.{ending}")
    key = Key(tuple(Mult(name, factor) for name in columns))
    transform(source, tmp_path / f"out.{ending}", key, seed=1, batch_rows=50)
    written = load(tmp_path / f"out.{ending}")
    assert [name for name in columns if find_factor(written.column(name).to_numpy().astype(float)) is not None] == []


def test_a_finer_number_in_the_last_row_is_not_rounded_away(tmp_path: Path) -> None:
    weights = np.append(np.full(100, 70.5), [81.25, 60.125])
    source = save(numbered(pa.table({"weight": weights})), tmp_path / "in.parquet")
    schema = Schema((Field("weight", Kind.CONTINUOUS), Field("row", Kind.INTEGER, Role.PUBLIC)))
    transform(source, tmp_path / "out.parquet", Key((Add("weight", 1.0),)), batch_rows=10, schema=schema)
    assert in_order(load(tmp_path / "out.parquet")).column("weight").to_pylist() == (weights + 1.0).tolist()


def test_shuffled_rows_stay_whole_and_in_their_batch(tmp_path: Path) -> None:
    source = save(numbered(people()), tmp_path / "in.parquet")
    done = transform(source, tmp_path / "out.parquet", KEY, public=("row",), batch_rows=20)
    found = load(tmp_path / "out.parquet")
    rows = found.column("row").to_numpy()
    assert not (rows == np.arange(101)).all()
    edges = [0, 20, 40, 60, 80, 101]
    for low, high in pairwise(edges):
        assert sorted(rows[low:high]) == list(range(low, high))
    expected = matrix(in_memory(people()))[rows]
    np.testing.assert_allclose(matrix(found), expected, rtol=1e-12, atol=1e-7)
    assert (done.rows_out, done.facts[-1]) == (101, ShuffledWithin(20))


def test_the_facts_say_what_was_done_and_how_far_rows_were_shuffled(tmp_path: Path) -> None:
    table = people(missing=True).append_column("name", pa.array([f"n{row}" for row in range(101)]))
    source = save(table, tmp_path / "in.parquet")
    done = transform(source, tmp_path / "out.parquet", KEY, identifiers=("name",), batch_rows=20)
    columns = ("age", "salary", "debt")
    assert done.facts == (
        RandomnessSource("release", "ChaCha20"),
        ColumnsDropped(("name",), ()),
        Transformed(("add", "mult", "rotate"), columns, KEY.known_rows),
        PassedThrough(0, 1),
        ShuffledWithin(20),
    )
    whole = transform(source, tmp_path / "a.parquet", KEY, identifiers=("name",), seed=1)
    assert whole.facts[0] == RandomnessSource("dry-run", "PCG64")
    assert whole.facts[-1] == Shuffled(101)
    assert whole.schema.names == columns


def test_a_fraction_in_a_column_of_whole_numbers_is_refused(tmp_path: Path) -> None:
    schema = Schema((Field("age", Kind.INTEGER), *(Field(name, Kind.CONTINUOUS) for name in ("salary", "debt"))))
    table = people().set_column(0, "age", pa.array([30.0] * 100 + [30.5]))
    refused(tmp_path, table, "'age' holds 1 values off its step; declare it continuous", SchemaError, schema=schema)


def test_no_metadata_and_no_key_are_in_what_is_written(tmp_path: Path) -> None:
    table = people().replace_schema_metadata({"pandas": "secret words"})
    done = transform(save(table, tmp_path / "in.parquet"), tmp_path / "out.parquet", KEY)
    assert load(tmp_path / "out.parquet").schema.metadata is None
    written = (tmp_path / "out.parquet").read_bytes() + repr(done).encode()
    for secret in (b"secret words", b"3.21875", b"1.0351", b"13.707"):
        assert secret not in written


def refused(tmp_path: Path, table: pa.Table, words: str, kind: type[Exception], **options: Any) -> str:
    source = save(table, tmp_path / f"in.{options.pop('ending', 'parquet')}")
    key = options.pop("key", KEY)
    with pytest.raises(kind, match=words) as caught:
        transform(source, tmp_path / "out.parquet", key, **options)
    assert [path.name for path in tmp_path.iterdir()] == [source.name]
    return str(caught.value)


def test_what_would_pass_as_it_is_without_being_allowed_to_is_refused(tmp_path: Path) -> None:
    town = people().append_column("town", pa.array(["a", "b"] * 50 + ["a"]))
    refused(tmp_path, town, "1 columns are no plain numbers .* 'town'", PrivacyRefusal)
    weight = people().append_column("weight", pa.array(np.linspace(50.5, 90.25, 101)))
    refused(tmp_path, weight, "leaves 1 columns of numbers as they are, the first is 'weight'", PrivacyRefusal)
    fields = [Field(name, Kind.CONTINUOUS) for name in ("age", "salary", "debt")]
    levels = Schema((*fields, Field("level", Kind.INTEGER, Role.LEVEL)))
    asked = people().append_column("level", pa.array([3] * 101))
    refused(tmp_path, asked, "101 records have a privacy level", PrivacyRefusal, schema=levels)


def test_names_that_are_not_in_the_file_are_named(tmp_path: Path) -> None:
    refused(tmp_path, people(), "names 1 columns .* 'wage'", OptionError, key=Key((*KEY.steps, Add("wage", 2))))
    refused(tmp_path, people(), "no column 'salry'; did you mean 'salary'", OptionError, identifiers=("salry",))
    refused(tmp_path, people(), "a batch cannot have 0 rows", OptionError, batch_rows=0)


def test_a_cell_that_is_no_number_is_counted_never_shown_and_leaves_nothing_behind(tmp_path: Path) -> None:
    texts = ["1.5"] * 90 + ["forty-two"] * 11
    table = people().set_column(2, "debt", pa.array(texts))
    numbers = Schema(tuple(Field(name, Kind.CONTINUOUS) for name in ("age", "salary", "debt")))
    for ending in ("csv", "parquet"):
        said = refused(
            tmp_path, table, "'debt' .* 11 cells are not numbers", SchemaError, ending=ending, schema=numbers
        )
        assert "forty-two" not in said
        (tmp_path / f"in.{ending}").unlink()
    endless = people().set_column(2, "debt", pa.array([np.inf] + [1.0] * 100))
    refused(tmp_path, endless, "'debt' holds 1 infinite", SchemaError)


def test_terms_too_large_for_doubles_are_refused(tmp_path: Path) -> None:
    large = Key((Mult("debt", 1e200), Mult("debt", 1e200)))
    with np.errstate(over="ignore"):
        refused(tmp_path, people().select(["debt"]), "moves 101 numbers beyond", OptionError, key=large)


def test_a_gap_that_first_comes_late_in_a_csv_file_is_a_gap(tmp_path: Path) -> None:
    rows = 100_050
    (tmp_path / "in.csv").write_text("x\n" + "1.5\n" * rows + "NA\n")
    done = transform(tmp_path / "in.csv", tmp_path / "out.parquet", Key((Add("x", 1.0),)))
    cells = load(tmp_path / "out.parquet").column("x")
    assert (cells.null_count, set(cells.drop_null().to_pylist())) == (1, {2.5})
    assert len(cells) == rows + 1
    assert PassedThrough(0, 1) in done.facts


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("in.csv", b"", "is empty"),
        ("in.csv", b"age,salary,debt\n", "no rows"),
        ("in.csv", b"age,age\n1,2\n", "stands 2 times"),
        ("in.csv", b"age,\n1,2\n", "1 column without a name"),
        ("in.csv", b"age,salary,debt\n1,2,3\n1,2\n1\n", "2 rows .* 3 cells"),
        ("in.csv", b"age,salary,debt\n1,2,\xff\xfe\n", "is not UTF-8 at byte offset 20"),
        ("in.parquet", b"PAR1 no", "cannot be read"),
        ("in.arrow", b"ARROW no", "cannot be read"),
        ("in.xlsx", b"", "known endings"),
    ],
)
def test_a_file_that_is_none_is_refused_in_one_sentence(tmp_path: Path, name: str, content: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=words):
        transform(tmp_path / name, tmp_path / "out.csv", KEY)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with pytest.raises(BadInput, match="there is no file"):
        transform(tmp_path / "none.csv", tmp_path / "out.csv", KEY)


@given(sizes=st.lists(st.integers(0, 30), max_size=20), rows=st.integers(1, 25))
def test_no_run_is_short_unless_the_whole_stream_is_and_no_row_is_lost(sizes: list[int], rows: int) -> None:
    total = sum(sizes)
    cuts = np.cumsum([0, *sizes])
    batches = [pa.record_batch({"x": np.arange(low, high)}) for low, high in pairwise(cuts)]
    runs = list(runs_of_rows(batches, rows))
    assert [cell for run in runs for cell in run.column("x").to_pylist()] == list(range(total))
    if total >= rows:
        assert all(rows <= len(run) < 2 * rows for run in runs)
    else:
        assert len(runs) == (total > 0)
