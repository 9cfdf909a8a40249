"""Files released in batches: a whole folder that verifies, a key that gives the file back, or nothing at all."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.assess import measure
from sfumato.assess.attacks.known_input import KNOWN_INPUT
from sfumato.core.errors import OptionError, PrivacyRefusal, SchemaError, SfumatoError
from sfumato.core.facts import Shuffled, ShuffledWithin
from sfumato.engines.outcome import Recipe
from sfumato.engines.partitions import first_pass
from sfumato.engines.partitions.batches import Geometric, TriedOnSample
from sfumato.engines.partitions.gather import PartitionSettings
from sfumato.engines.partitions.run import FileRows
from sfumato.methods.condense import Condensation
from sfumato.methods.geometry import Add, Hybrid, Key, Rotation, Scaling, Translation, invert
from sfumato.methods.geometry.facts import Transformed
from sfumato.publish.release import Release
from sfumato.publish.sanitize import sanitize
from sfumato.publish.verify import verify_release
from sfumato.tables.files import read_file
from sfumato.tables.schema import Domain, Field, Kind, Schema

pytestmark = pytest.mark.usefixtures("short_reports")

ROWS, NAMES = 230, ("age", "pay", "debt")


def people(path: Path, rows: int = ROWS) -> Path:
    rng = np.random.default_rng(3)
    table = pa.table(
        {
            "age": rng.integers(20, 65, rows),
            "pay": rng.normal(40_000, 9_000, rows).round(2),
            "debt": rng.normal(size=rows).round(4),
        }
    )
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path)
    elif path.suffix == ".arrow":
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    else:
        with pa.output_stream(str(path), compression="detect") as stream:
            pa.csv.write_csv(table, stream)
    return path


def numbers(path: Path) -> Any:
    table = read_file(path)[0]
    return np.column_stack([table.column(name).cast(pa.float64()).to_numpy() for name in NAMES])


def in_batches(source: Path, mechanism: Geometric, out: Path, **told: Any) -> Release:
    """A file moved in batches by a new key beside the folder; without a report, unless one is asked for."""
    told = {"new_key": out.with_name("key.toml"), "report": "time_limit" in told, **told}
    return sanitize(source, mechanism, folder=out, engine="partitions", **told)


def assert_gives_back(done: Release, key: Key, source: Path) -> None:
    """Every number comes back, but for what the rounding of the whole ages took."""
    moved, original = numbers(done.table), numbers(source)
    assert (moved[:, 0] == np.rint(moved[:, 0])).all()
    spread = original.std(axis=0)
    back, before = invert(moved, key, NAMES) / spread, original / spread
    near = np.linalg.norm(back[:, None] - before[None], axis=2).argmin(axis=0)
    assert len(set(near.tolist())) == len(before)
    rounding = 2 * 0.5 / spread[0]  # factors are 0.5 or more, and turns keep lengths in these units
    np.testing.assert_allclose(back[near], before, rtol=0, atol=1.01 * rounding)


@pytest.mark.parametrize("ending", ["parquet", "csv", "csv.gz", "arrow"])
@pytest.mark.parametrize("mechanism", [Translation(), Scaling(), Rotation(), Hybrid()], ids=lambda each: each.method)
def test_a_file_of_several_batches_verifies_and_its_key_gives_it_back(
    tmp_path: Path, ending: str, mechanism: Geometric
) -> None:
    source, place = people(tmp_path / f"in.{ending}"), tmp_path / "key.toml"
    done = in_batches(source, mechanism, tmp_path / "out", batch_rows=50)
    assert done.table.name == f"table.{ending.removesuffix('.gz')}"
    assert all(check.holds for check in verify_release(tmp_path / "out" / "release"))
    assert [fact.rows for fact in done.certificate.facts if isinstance(fact, ShuffledWithin)] == [50]
    assert_gives_back(done, Key.load(place), source)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600


def test_a_file_of_one_batch_is_shuffled_whole(tmp_path: Path) -> None:
    done = in_batches(people(tmp_path / "in.parquet"), Rotation(), tmp_path / "out")
    assert [fact.rows for fact in done.certificate.facts if isinstance(fact, Shuffled)] == [ROWS]
    assert all(check.holds for check in verify_release(tmp_path / "out" / "release"))


def test_the_report_is_measured_on_a_sample_and_says_so_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "catalogue", lambda: (KNOWN_INPUT,))
    monkeypatch.setattr(first_pass, "SAMPLE_ROWS", 120)
    source, out = people(tmp_path / "in.parquet"), tmp_path / "out"
    done = in_batches(source, Rotation(), out, batch_rows=50, time_limit=1)
    note = f"Measured on a sample of 120 of the {ROWS} rows of the file"
    assert done.report is not None
    assert f"\n{note}" in done.report.summary()
    report = json.loads((out / "owner" / "report.json").read_text())
    assert report["notes"][0].startswith(note)
    assert "seconds-taken" in {each["name"] for each in report["findings"] if each["value"] is not None}
    assert note in (out / "owner" / "report.html").read_text()
    assert note in (out / "release" / "report-public.html").read_text()
    assert all(check.holds for check in verify_release(out / "release"))
    assert any(finding.name.startswith("known-input-recovery") for finding in done.report.findings)
    assert done.certificate.rows_out == ROWS


def test_the_folder_holds_what_a_release_holds_and_no_term_of_the_key(tmp_path: Path) -> None:
    source, out, place = people(tmp_path / "in.parquet"), tmp_path / "out", tmp_path / "key.toml"
    in_batches(source, Translation(), out, batch_rows=50, time_limit=1)
    files = {str(file.relative_to(out)) for file in out.rglob("*") if file.is_file()}
    assert files == {
        *(f"release/{name}" for name in ("table.parquet", "certificate.json", "certificate.sig")),
        *(f"release/{name}" for name in ("schema.toml", "report-public.html")),
        *(f"owner/{name}" for name in ("report.html", "summary.html", "report.json")),
        *(f"owner/{name}" for name in ("schema-private.toml", "recipe.toml")),
    }
    assert stat.S_IMODE((out / "owner").stat().st_mode) == 0o700
    terms = [repr(step.term) for step in Key.load(place).steps if isinstance(step, Add)]
    assert terms
    for name in files - {"release/table.parquet"}:
        assert not any(term in (out / name).read_text() for term in terms)
    assert Recipe.load(out / "owner" / "recipe.toml").method == "translate"


def test_a_given_key_moves_the_file_and_is_not_written(tmp_path: Path) -> None:
    source, place = people(tmp_path / "in.parquet"), tmp_path / "key.toml"
    in_batches(source, Rotation(), tmp_path / "one")
    key = Key.load(place)
    place.unlink()
    done = in_batches(source, Rotation(key=key), tmp_path / "two", new_key=None, batch_rows=50)
    assert_gives_back(done, key, source)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "one", "two"]


def test_bounds_of_the_sample_do_not_bind_and_declared_ones_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_pass, "SAMPLE_ROWS", 3)
    rows = [*range(20, 219), 1000.5]
    table = pa.table({"age": pa.array(rows, pa.float64()), "pay": np.arange(200.0) ** 1.5})
    pa.parquet.write_table(table, tmp_path / "in.parquet")
    done = in_batches(tmp_path / "in.parquet", Translation(), tmp_path / "out", batch_rows=50)
    assert done.certificate.rows_out == 200
    declared = Field("age", Kind.CONTINUOUS, domain=Domain(declared=True, low=0, high=1000))
    schema = Schema((declared, Field("pay", Kind.CONTINUOUS)))
    with pytest.raises(SchemaError):
        in_batches(tmp_path / "in.parquet", Translation(), tmp_path / "two", schema=schema, new_key=tmp_path / "b.toml")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.parquet", "key.toml", "out"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError, OSError])
def test_what_stops_the_move_leaves_neither_folder_nor_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    source = people(tmp_path / "in.parquet")

    def stop(_rows: FileRows, _tried: TriedOnSample, settings: PartitionSettings) -> None:
        assert (tmp_path / "key.toml").is_file()  # the key comes first
        assert settings.place is not None
        settings.place.write_text("half")
        raise error

    monkeypatch.setattr(FileRows, "transform", stop)
    with pytest.raises((error, SfumatoError)):
        in_batches(source, Rotation(), tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_an_older_release_and_its_key_outlive_a_run_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out, place = people(tmp_path / "in.parquet"), tmp_path / "out", tmp_path / "key.toml"
    in_batches(source, Rotation(), out)
    old = (out / "release" / "table.parquet").read_bytes(), place.read_bytes()
    with pytest.raises(OptionError):
        in_batches(source, Rotation(), out, overwrite=True)
    monkeypatch.setattr(Release, "_write_release", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        in_batches(source, Rotation(), out, new_key=tmp_path / "new.toml", overwrite=True)
    assert ((out / "release" / "table.parquet").read_bytes(), place.read_bytes()) == old
    assert not (tmp_path / "new.toml").exists()


def test_a_dry_run_repeats_to_the_byte(tmp_path: Path) -> None:
    source = people(tmp_path / "in.parquet")
    for name in ("one", "two"):
        in_batches(source, Hybrid(), tmp_path / name, new_key=tmp_path / f"{name}.toml", batch_rows=50, seed=4)
    tables = [(tmp_path / name / "release" / "table.parquet").read_bytes() for name in ("one", "two")]
    assert tables[0] == tables[1]
    assert (tmp_path / "one.toml").read_bytes() == (tmp_path / "two.toml").read_bytes()


def test_without_a_seed_the_order_of_rows_differs(tmp_path: Path) -> None:
    source, key = people(tmp_path / "in.parquet"), Key(tuple(Add(name, 1.0) for name in NAMES))
    tables = [in_batches(source, Translation(key=key), tmp_path / name, new_key=None).table for name in ("one", "two")]
    assert tables[0].read_bytes() != tables[1].read_bytes()


def test_missing_cells_and_categories_pass_only_if_told(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    gone = np.arange(120) % 9 == 0
    table = pa.table(
        {"age": pa.array(rng.normal(size=120), mask=gone), "pay": rng.normal(size=120), "sex": ["f", "m"] * 60}
    )
    pa.parquet.write_table(table, tmp_path / "in.parquet")
    place = tmp_path / "key.toml"
    with pytest.raises(PrivacyRefusal):
        in_batches(tmp_path / "in.parquet", Rotation(), tmp_path / "out")
    assert not place.exists()
    mechanism = Rotation(pass_categories=True)
    done = in_batches(tmp_path / "in.parquet", mechanism, tmp_path / "out", batch_rows=50, time_limit=1)
    assert read_file(done.table)[0].column("age").null_count == int(gone.sum())
    assert all(check.holds for check in verify_release(tmp_path / "out" / "release"))
    assert [fact.columns for fact in done.certificate.facts if isinstance(fact, Transformed)] == [("age", "pay")]


def test_public_columns_with_gaps_are_no_untouched_ones_in_batches_as_in_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    town = pa.array(np.where(np.arange(120) % 2, "a", "b"), mask=np.arange(120) % 9 == 0)
    table = pa.table({"age": rng.normal(size=120), "pay": rng.normal(size=120), "town": town, "rank": range(120)})
    pa.parquet.write_table(table, tmp_path / "in.parquet")
    told: dict[str, Any] = {"public": ["town", "rank"], "report": False}
    done = in_batches(tmp_path / "in.parquet", Rotation(), tmp_path / "out", **told)
    assert all(check.holds for check in verify_release(tmp_path / "out" / "release"))
    assert done.certificate.facts == sf.sanitize(table, Rotation(), **told).certificate.facts


def test_other_mechanisms_and_other_than_one_key_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    nowhere, out = tmp_path / "nowhere.parquet", tmp_path / "out"
    with pytest.raises(OptionError, match="needs all rows at once"):
        sanitize(nowhere, folder=out, engine="partitions", method="swap")
    for told in ({"new_key": tmp_path / "key.toml"}, {"batch_rows": 50}):
        with pytest.raises(OptionError, match="are for methods that move a file row by row"):
            sanitize(nowhere, Condensation(), folder=out, engine="partitions", **told)
    with pytest.raises(OptionError, match="give key= or new_key="):
        in_batches(nowhere, Rotation(), out, new_key=None)
    with pytest.raises(PrivacyRefusal):
        in_batches(nowhere, Rotation(), out, new_key=out / "key.toml")
    with pytest.raises(PrivacyRefusal, match="dry run"):
        in_batches(nowhere, Rotation(), out, seed=1, sign=tmp_path / "sign.pem")
