"""Strata of a stream: groups never mix categories of a column, also not after an interruption [AY05, sec. 3]."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import sfumato as sf
from sfumato.core.errors import BadInput, OptionError
from sfumato.core.facts import Stratified
from sfumato.engines.outcome import Recipe
from sfumato.publish.verify import verify_release
from sfumato.stream.session import StreamSession
from sfumato.tables.field import Domain, Kind, Role
from sfumato.tables.schema import Schema
from tests.stream.cases import ROWS, SCHEMA, begin, groups_of, look, people, take

CLASSES = ("a", "b", "late")


def labelled(kind: Kind = Kind.NOMINAL) -> Schema:
    """The usual schema with the note as a class of three categories, one of which comes late."""
    note = dataclasses.replace(
        SCHEMA["note"], kind=kind, role=Role.TARGET, domain=Domain(declared=True, categories=CLASSES)
    )
    return dataclasses.replace(SCHEMA, fields=tuple(note if each.name == "note" else each for each in SCHEMA.fields))


def people_of_classes(rows: int = 600, *, share: float = 0.0) -> pa.Table:
    """People without missing classes; the third class begins after 300 of them."""
    table = people(rows, share=share)
    codes = np.random.default_rng(1).integers(0, 3, rows)
    codes[:300] %= 2
    note, level = (table.column_names.index(name) for name in ("note", "level"))
    levels = np.array(table.column("level")).copy()
    levels[:100] = np.minimum(levels[:100], 6)  # records that a stream begins with cannot wait
    table = table.set_column(level, "level", pa.array(levels))
    return table.set_column(note, "note", pa.array([CLASSES[code] for code in codes]))


def classes_of_groups(state: Path) -> dict[str, int]:
    """Records in groups by class; of each group the class is read off its mean."""
    with StreamSession.open(state, write=False) as session:
        rows, layout = session.maintainer.rows(), session.codec.layout
        block = next(each for each in layout if each.column == "note")
        places = rows.mean[:, block.where]
        assert ((places > 0.1).sum(axis=1) == 1).all()  # a mixed group would lie between categories
        codes = places.argmax(axis=1)
        assert (codes == rows.stratum).all()
        return {name: int(rows.count[codes == code].sum()) for code, name in enumerate(CLASSES)}


@pytest.mark.parametrize("kind", [Kind.NOMINAL, Kind.ORDINAL])
@pytest.mark.parametrize("split", ["strict", "paper"])
def test_no_group_mixes_classes_and_every_class_keeps_its_number_of_records(
    tmp_path: Path, split: str, kind: Kind
) -> None:
    table, state = people_of_classes(), tmp_path / "s.db"
    begin(state, table, schema=labelled(kind), strata="note", split=split, level=5, k=5)
    take(state, table.slice(100, 500))
    counts = {each["values"]: each["counts"] for each in pc.value_counts(table.column("note")).to_pylist()}
    if kind is Kind.NOMINAL:
        assert classes_of_groups(state) == counts
    assert look(state).pending == 0
    sf.stream(state).publish(tmp_path / "out", report=False, sign=False)
    with StreamSession.open(state) as session:
        made = session.left()
    assert made is not None
    released = pc.value_counts(made.table.column("note")).to_pylist()
    assert {each["values"]: each["counts"] for each in released} == counts


def test_without_strata_groups_of_the_same_stream_mix_classes(tmp_path: Path) -> None:
    table, state = people_of_classes(), tmp_path / "s.db"
    begin(state, table, schema=labelled(), level=5, k=5)
    take(state, table.slice(100, 500))
    with pytest.raises(AssertionError):
        classes_of_groups(state)


def test_a_stream_of_strata_that_is_opened_again_for_each_batch_is_the_same_bit_for_bit(tmp_path: Path) -> None:
    table = people_of_classes(share=0.05)  # records of level 60 wait
    for name in ("whole", "parts"):
        begin(tmp_path / name, table, schema=labelled(), strata="note")
    take(tmp_path / "whole", table)
    for end in range(4 * ROWS, 601, 3 * ROWS):
        take(tmp_path / "parts", table.slice(0, end))
    take(tmp_path / "parts", table)
    assert look(tmp_path / "whole").pending > 0
    assert groups_of(tmp_path / "whole") == groups_of(tmp_path / "parts")
    assert look(tmp_path / "whole") == dataclasses.replace(
        look(tmp_path / "parts"), batches=look(tmp_path / "whole").batches, digest=look(tmp_path / "whole").digest,
        last_batch=look(tmp_path / "whole").last_batch,
    )  # fmt: skip


def test_a_class_that_comes_late_waits_until_it_can_form_a_group(tmp_path: Path) -> None:
    table, state = people_of_classes(), tmp_path / "s.db"
    begin(state, table.slice(0, 300), 300, schema=labelled(), strata="note", level=5, k=5, batch_rows=2)
    late = table.slice(300).filter(pc.equal(table.slice(300).column("note"), "late"))
    with StreamSession.open(state) as session:
        groups = len(session.maintainer.ids)
        assert session.ingest([("four", late.slice(0, 4))]).pending == 4
        assert len(session.maintainer.ids) == groups
        assert session.ingest([("fifth", late.slice(4, 1))]).pending == 1
        assert (len(session.maintainer.ids), session.maintainer.pending) == (groups + 1, 0)
    assert look(state).pending == 0
    assert classes_of_groups(state)["late"] == 5


def test_the_certificate_says_that_the_class_is_certain_and_the_recipe_begins_such_a_stream(tmp_path: Path) -> None:
    table, state = people_of_classes(), tmp_path / "s.db"
    begin(state, table, schema=labelled(), strata="note", seed=None)
    take(state, table)
    release = sf.stream(state).publish(tmp_path / "out", report=False, sign=False)
    fact = next(each for each in release.certificate.facts if isinstance(each, Stratified))
    assert fact == Stratified("note", 3, is_target=True)
    assert any("l = 1" in each.reason for each in release.certificate.refused)
    assert all(check.holds for check in verify_release(tmp_path / "out" / "release"))
    recipe = Recipe.load(tmp_path / "out" / "owner" / "recipe.toml")
    assert recipe.options.strata == "note"
    sf.stream(tmp_path / "again.db", table, recipe=recipe)
    assert sum(classes_of_groups(tmp_path / "again.db").values()) == look(tmp_path / "again.db").records
    with pytest.raises(OptionError, match="strata"):
        sf.stream(tmp_path / "third.db", table, recipe=recipe, strata="note")


def test_rows_to_measure_by_are_kept_of_a_stream_of_strata(tmp_path: Path) -> None:
    (key := tmp_path / "key").write_bytes(bytes(range(32)))
    key.chmod(0o600)
    table, state = people_of_classes(), tmp_path / "s.db"
    begin(state, table, schema=labelled(), strata="note", measure_rows=50, measure_key=key)
    take(state, table, measure_key=key)
    status = look(state)
    assert (status.rows_kept, status.outside) == (50, 50)
    assert sum(classes_of_groups(state).values()) == status.records


def test_a_row_without_a_class_is_kept_out_and_counted(tmp_path: Path) -> None:
    table, state = people_of_classes(), tmp_path / "s.db"
    begin(state, table, schema=labelled(), strata="note")
    note = table.column_names.index("note")
    lacking = table.slice(100, ROWS).set_column(note, "note", pa.array(["?"] * 3 + ["b"] * (ROWS - 3)))
    assert take(state, lacking).quarantined == 3
    assert look(state).quarantine == {"note": 3}


def test_strata_that_a_stream_cannot_keep_apart_are_refused_with_a_sentence(tmp_path: Path) -> None:
    table = people_of_classes()
    with pytest.raises(OptionError, match="declare it nominal"):
        begin(tmp_path / "s.db", table, schema=labelled(), strata="age", level=3)
    note = table.column_names.index("note")
    lacking = table.slice(0, 100).set_column(note, "note", pa.array(["?"] * 7 + ["b"] * 93))
    with pytest.raises(BadInput, match="'note' has 7 missing cells"):
        begin(tmp_path / "s.db", lacking, schema=labelled(), strata="note")
    with pytest.raises(BadInput, match="fewer records"):
        begin(tmp_path / "s.db", people_of_classes().slice(299, 12), 12, schema=labelled(), strata="note", level=5)
    begin(tmp_path / "s.db", table, schema=labelled(), strata="note", level=5)
    with pytest.raises(OptionError, match="does not keep strata apart"):
        sf.stream(tmp_path / "s.db").on_spark(None, tmp_path / "out", checkpoint=tmp_path / "checkpoint")
