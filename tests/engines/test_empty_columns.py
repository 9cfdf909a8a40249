"""A column without any value is dropped with a word by every engine, and nobody is said to be known by it."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.core.errors import PrivacyLeakWarning
from sfumato.core.facts import ColumnsDropped, Fact
from sfumato.methods.geometry import Hybrid, Translation
from sfumato.methods.geometry.key import Add, Key
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties.plan import JointPlan
from sfumato.parties.publish import joint_in_one_process
from sfumato.publish.release import Release
from sfumato.publish.sanitize import sanitize
from sfumato.stream.entries import cut_batches
from sfumato.stream.session import StreamSession
from sfumato.tables.schema import Field, Kind, Schema

KEY = Key((Add("age", 3.0), Add("pay", -2.0)))


def _people(rows: int = 60, *, last: str | None = None) -> pa.Table:
    """Numbers, names, and a column of notes that are all missing, except the last one if it is given."""
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "name": [f"person {place}" for place in range(rows)],
            "age": rng.integers(20, 70, rows),
            "pay": rng.normal(30, 5, rows).round(1),
            "note": pa.array([*([None] * (rows - 1)), last], pa.string()),
        }
    )


def _dropped(facts: tuple[Fact, ...]) -> ColumnsDropped:
    (fact,) = (fact for fact in facts if isinstance(fact, ColumnsDropped))
    return fact


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_in_chunks_is_looked_through_to_its_last_row(tmp_path: Path, ending: str) -> None:
    for last, empty in ((None, ("note",)), ("x", ())):
        table = _people(last=last)
        path = tmp_path / f"in.{ending}"
        if ending == "csv":
            pa.csv.write_csv(table, path)
        else:
            pa.parquet.write_table(table, path)
        done = sanitize(
            path,
            Hybrid(key=KEY),
            folder=tmp_path / "out",
            engine="partitions",
            identifiers=["name", "note"],
            batch_rows=7,
            overwrite=True,
            report=False,
        )
        others = ("name",) if empty else ("name", "note")
        assert _dropped(done.certificate.facts) == ColumnsDropped(others, (), empty)


def test_a_column_that_is_empty_in_the_sample_of_a_file_is_dropped_with_a_word(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pa.parquet.write_table(_people().drop_columns(["name"]), path)
    with pytest.warns(UserWarning, match="any of the 60 rows were dropped: 1, the first is 'note'"):
        sanitize(
            path,
            Translation(),
            folder=tmp_path / "out",
            engine="partitions",
            new_key=tmp_path / "key.toml",
            seed=1,
            report=False,
        )


def test_a_stream_forgets_that_a_column_is_empty_with_its_first_value(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with pytest.warns(UserWarning, match="any of the 60 rows were dropped: 1, the first is 'note'"):
        sf.stream(state, _people(), identifiers=["name"], k=5, seed=1)
    for number, (last, empty) in enumerate(((None, ("note",)), ("x", ()), (None, ()))):
        with StreamSession.open(state) as session:
            session.ingest(cut_batches([_people(40, last=last)], 40, source=str(number)))
        release = sf.stream(state).publish(tmp_path / str(number), report=False)
        others = ("name",) if empty else ("name", "note")
        assert _dropped(release.certificate.facts) == ColumnsDropped(others, (), empty)


def _joint(*tables: pa.Table) -> Release:
    plan = JointPlan("vertical", ("bank", "shop"), LaplacePCA(k=10))
    with warnings.catch_warnings(action="ignore", category=PrivacyLeakWarning):
        return joint_in_one_process(list(tables), plan, key="name", report=False)[0]


def test_owners_of_columns_drop_an_empty_one_with_a_word() -> None:
    bank, shop = _people().select(["name", "age", "note"]), _people().select(["name", "pay"])
    with pytest.warns(UserWarning, match="any of the 60 rows were dropped: 1, the first is 'note'"):
        release = _joint(bank, shop)
    assert _dropped(release.certificate.facts) == ColumnsDropped(("name",), (), ("note",))
    (claim,) = [claim for claim in release.certificate.claims if claim.claim.startswith("The release omits")]
    assert claim.claim == "The release omits 1 direct identifier and 1 empty column."
    assert claim.basis.startswith("1 direct identifier: 'name'. 1 empty column: 'note'.")


@pytest.mark.parametrize("told", [{"method": "condense", "k": 5}, {"method": "noise"}], ids=["condense", "noise"])
def test_a_column_whose_few_values_are_all_held_out_is_dropped_with_a_word(told: dict[str, Any]) -> None:
    """Who is held out is chance, and the one who has a value may be among them."""
    table = _people(last="x")
    note = Field("note", Kind.NOMINAL)  # inferred, it would be dropped at once
    schema = Schema(tuple(note if field.name == "note" else field for field in Schema.infer(table)))
    for seed in range(8):  # half of the people each time: the one is kept eight times in one case of 256
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            release = sf.sanitize(table, holdout=0.5, seed=seed, report=False, schema=schema, **told)
        words = "without a value in any of the 30 rows were dropped: 1, the first is 'note'"
        if any(words in str(each.message) for each in said):
            assert _dropped(release.certificate.facts).empty == ("note",)
            assert release.table.column_names == ["age", "pay"]
            return
    pytest.fail("the one who has a value was never held out")
