"""The model that leaves with a private release: rows at no further cost, and nothing that counts did not give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pytest

import sfumato as sf
from sfumato.core.errors import BadInput, OptionError
from sfumato.methods.private import sample as sampling
from sfumato.methods.private.stored import StoredModel
from sfumato.publish.folder import sha256_of
from tests.private.test_release import frame, release


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model") / "out"
    release(frame(), epsilon=3.0).save(place, sign=False)
    return place


@pytest.fixture(scope="module")
def model(folder: Path) -> Path:
    return folder / "release" / "model.json"


def changed(model: Path, tmp_path: Path, *place: Any, to: Any) -> Path:
    """A copy of the model with one entry changed, in the same form."""
    document = json.loads(model.read_text())
    inside = document
    for each in place[:-1]:
        inside = inside[each]
    inside[place[-1]] = to
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":")))
    return path


def test_the_certificate_lists_the_model_and_verify_notices_a_changed_one(folder: Path, tmp_path: Path) -> None:
    model = folder / "release" / "model.json"
    listed = json.loads((folder / "release" / "certificate.json").read_text())["files"]
    assert listed["model.json"] == sha256_of(model)
    assert sf.verify(folder)
    text = model.read_text()
    try:
        model.write_text(text + " ")
        assert not sf.verify(folder)
    finally:
        model.write_text(text)


def test_the_model_has_noisy_counts_and_domains_and_no_count_of_records(model: Path) -> None:
    text = model.read_text()
    document = json.loads(text)
    counts = [document["people"], *(each["total"] for each in document["histograms"])]
    assert len(counts) > 6
    assert sum(count == 900 for count in counts) < len(counts) - 2  # a noisy count may be the true one by chance
    assert StoredModel.from_json(text).to_json() == text
    tables = [column["table"] for column in document["columns"] if column["table"]]
    assert tables
    assert all(isinstance(value, int) for table in tables for value in table)


def test_sampled_rows_are_of_the_released_schema_and_as_many_as_asked(model: Path) -> None:
    table = sf.sample(model, rows=120_000, seed=3)
    assert table.num_rows == 120_000
    assert table.column_names == ["age", "pay", "weight", "seen", "grade", "town", "class"]
    assert pc.min_max(table["age"]).as_py()["min"] >= 18
    assert set(table["town"].unique().to_pylist()) <= {"a", "b", "c", "never seen", None}
    assert table.equals(sf.sample(model, rows=120_000, seed=3))
    assert abs(sf.sample(model).num_rows - 900) < 100


def test_rows_of_a_rule_fulfil_it_and_are_distributed_as_among_all_rows(model: Path) -> None:
    some = sf.sample(model, rows=4_000, where="age >= 60 and class == yes", seed=3)
    assert some.num_rows == 4_000
    assert pc.min(some["age"]).as_py() >= 60
    assert some["class"].unique().to_pylist() == ["yes"]
    every = sf.sample(model, rows=60_000, seed=4)
    alike = every.filter(pc.and_(pc.greater_equal(every["age"], 60), pc.equal(every["class"], "yes")))
    for town in "abc":
        shares = [pc.mean(pc.equal(each["town"], town).cast(pa.float64())).as_py() for each in (some, alike)]
        assert shares[0] == pytest.approx(shares[1], abs=5 * (0.25 / 4_000 + 0.25 / alike.num_rows) ** 0.5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"where": "age"}, "cannot be read"),
        ({"where": "height > 3"}, "height"),
        ({"where": "town == 'nobody'"}, "wider|domain"),
        ({"rows": 0}, "at least 1"),
    ],
)
def test_rows_that_cannot_be_drawn_are_refused(
    model: Path, options: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "_TRIES", 50_000)
    with pytest.raises(BadInput, match=words):
        sf.sample(model, **options)


@pytest.mark.parametrize(
    ("place", "to"),
    [
        (("target",), 99),
        (("people",), -5),
        (("people",), 1e300),
        (("histograms", 0, "shares", 0), -0.1),
        (("histograms", 0, "starts", 1), 10**9),
        (("class_shares", 0), 7),
        (("columns", 0, "parents"), [5, 5]),
        (("columns", 0, "column"), 1000),
        (("columns", 1, "table"), [1]),
        (("columns", 1, "bins", 0), 2**52),
        (("columns", 1, "bins", 0), 1),
        (("columns", 1, "sd"), 5e-324),
        (("schema",), "format = 1"),
        (("types", 0), "no type"),
        (("format",), 2),
        (("extra",), 1),
    ],
)
def test_a_model_that_was_altered_is_refused(model: Path, tmp_path: Path, place: tuple[Any, ...], to: Any) -> None:
    with pytest.raises(OptionError, match="model"):
        StoredModel.load(changed(model, tmp_path, *place, to=to))


def test_released_rows_come_from_the_model_that_leaves(folder: Path, model: Path) -> None:
    """Margins of the release and of rows from the stored model agree as far as chance allows."""
    released = pa.csv.read_csv(folder / "release" / "table.csv")
    drawn = sf.sample(model, rows=40_000, seed=2)
    for name, value in (("town", "a"), ("class", "yes"), ("grade", "mid")):
        shares = [float(np.mean(np.array(each[name].to_pylist()) == value)) for each in (released, drawn)]
        assert shares[0] == pytest.approx(shares[1], abs=5 * (0.25 / released.num_rows) ** 0.5)
