"""The four mechanisms: own units, what passes, what is refused, and that the key shows nowhere."""

from __future__ import annotations

import dataclasses
import logging
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import read_csv, write_csv

import sfumato as sf
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import Enhanced, PassedThrough, Shuffled, draw_claims
from sfumato.methods.geometry import Hybrid, Rotation, Scaling, Translation
from sfumato.methods.geometry.facts import TargetMoved, Transformed
from sfumato.methods.geometry.key import Add, Key, Mult, Rotate
from sfumato.methods.geometry.transformations import KeyedOwnerDetails, hybrid, invert
from sfumato.methods.protocol import Mechanism, MethodResult
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Domain, Field, Kind, Schema

pytestmark = pytest.mark.usefixtures("without_figures")

MECHANISMS: list[Any] = [Translation(), Scaling(), Rotation(), Rotation(pairs="disjoint"), Hybrid()]
KEY = Key((Add("age", -3.21875), Mult("salary", 1.03515625), Rotate(("age", "salary"), 13.70703125, (1.0, 1000.0))))
TERMS = ("3.21875", "1.03515625", "1.035156", "13.70703125", "13.70703")


def people(rows: int = 60, *, categories: bool = False, missing: bool = False) -> pa.Table:
    rng = np.random.default_rng(1)
    age = rng.integers(20, 65, rows)
    salary = (1000 * age + rng.normal(0, 8000, rows)).round()
    table = {"age": pa.array(age, mask=np.arange(rows) < 3 if missing else None), "salary": pa.array(salary)}
    town = {"town": pa.array(rng.choice(["a", "b"], rows))} if categories else {}
    return pa.table(table | town)


def run(mechanism: Mechanism, table: pa.Table, seed: int = 4) -> tuple[Codec, MethodResult]:
    codec = Codec.fit(table, Schema.infer(table))
    return codec, mechanism.sanitize(codec.encode(table), rng=np.random.default_rng(seed))


def released(codec: Codec, sanitized: MethodResult) -> pa.Table:
    return codec.decode(sanitized.records.values, moved=sanitized.records.moved)


def matrix(table: pa.Table) -> np.ndarray:
    return np.column_stack([table.column(name).to_numpy() for name in ("age", "salary")])


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.method)
def test_the_key_in_the_workings_moves_the_original_in_its_own_units_to_the_released_rows(mechanism: Any) -> None:
    table = people()
    codec, sanitized = run(mechanism, table)
    workings = sanitized.workings
    assert isinstance(workings, KeyedOwnerDetails)
    assert workings.key is not None
    assert workings.origin is not None
    wanted = hybrid(matrix(table).astype(float), workings.key, ("age", "salary"))
    found = matrix(released(codec, sanitized))
    np.testing.assert_array_equal(found, np.rint(wanted)[workings.origin])
    assert [field.type for field in released(codec, sanitized).schema] == [pa.int64(), pa.float64()]
    back = invert(found, workings.key, ("age", "salary"))
    spread = matrix(table).std(axis=0)
    rounding = 2 * 0.5 / spread.min()  # factors are 0.5 or more, and turns keep lengths in these units
    np.testing.assert_allclose(back / spread, (matrix(table) / spread)[workings.origin], rtol=0, atol=1.01 * rounding)
    assert sorted(workings.origin.tolist()) == list(range(60))


def test_moved_numbers_are_not_clipped_and_whole_ones_stay_whole() -> None:
    table = people()
    declared = Domain(declared=True, low=0, high=120)
    fields = (Field("age", Kind.INTEGER, domain=declared), Field("salary", Kind.CONTINUOUS))
    codec = Codec.fit(table, Schema(fields))
    key = Key((Add("age", 500.25), Mult("salary", -2.5)))
    sanitized = Hybrid(key=key).sanitize(codec.encode(table), rng=np.random.default_rng(1))
    found = released(codec, sanitized)
    assert [field.type for field in found.schema] == [pa.int64(), pa.float64()]
    assert sorted(found.column("age").to_pylist()) == sorted(age + 500 for age in table.column("age").to_pylist())
    assert found.column("salary").to_numpy().max() < 0


def test_whole_numbers_moved_beyond_what_a_double_tells_apart_are_refused() -> None:
    with pytest.raises(OptionError, match=r"moves 60 whole numbers of column 'age' beyond 2\^53"):
        released(*run(Hybrid(key=Key((Mult("age", 1e15), Mult("salary", 2)))), people()))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_whole_numbers_of_a_narrow_type_are_widened_where_they_leave_it(library: str) -> None:
    frame = pytest.importorskip(library).DataFrame({"age": np.repeat(np.arange(20, 60, dtype=np.int8), 2)})
    table = sf.sanitize(frame, Translation(shifts={"age": (500, 600)}), report=False).table
    assert str(table["age"].dtype).lower() == "int64"
    assert table["age"].min() > 500


def test_units_decide_what_is_turned() -> None:
    table = people()
    key = Rotation(units={"salary": 1000}, degrees=(40, 50)).new_key(
        run(Rotation(), table)[1].records.layout, rng=rng()
    )
    turn = key.steps[0]
    assert isinstance(turn, Rotate)
    units = dict(zip(turn.pair, turn.units, strict=True))
    assert units["salary"] == 1000
    assert units["age"] == pytest.approx(np.std(table.column("age").to_numpy()))


def rng() -> np.random.Generator:
    return np.random.default_rng(6)


def test_categories_are_refused_with_column_and_count_unless_they_may_pass() -> None:
    table = people(categories=True)
    with pytest.raises(PrivacyRefusal, match=r"1 columns are no plain numbers .* 'town'"):
        run(Rotation(), table)
    codec, sanitized = run(Rotation(pass_categories=True), table)
    origin = sanitized.workings.origin if sanitized.workings is not None else None
    assert released(codec, sanitized).column("town").equals(table.column("town").take(pa.array(origin)))
    assert PassedThrough(1, 0) in sanitized.facts


@pytest.mark.parametrize("kind", [Kind.DATE, Kind.ORDINAL])
def test_dates_and_orders_are_no_plain_numbers(kind: Kind) -> None:
    cells = ["2020-01-31", "2021-01-31", "2022-01-31"] if kind is Kind.DATE else ["low", "mid", "high"]
    domain = Domain() if kind is Kind.DATE else Domain(categories=tuple(cells))
    table = pa.table({"a": [1.5, 2.5, 4.0], "b": [1.5, 3.5, 3.0], "c": cells})
    schema = Schema((Field("a", Kind.CONTINUOUS), Field("b", Kind.CONTINUOUS), Field("c", kind, domain=domain)))
    records = Codec.fit(table, schema).encode(table)
    with pytest.raises(PrivacyRefusal, match="'c'"):
        Rotation().sanitize(records, rng=rng())
    assert Rotation(pass_categories=True).sanitize(records, rng=rng()).records.moved == {"a", "b"}


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.method)
def test_missing_cells_stay_missing_and_no_other_cell_does(mechanism: Any) -> None:
    table = people(missing=True)
    codec, sanitized = run(mechanism, table)
    found = released(codec, sanitized)
    assert [found.column(name).null_count for name in ("age", "salary")] == [3, 0]
    gone = np.asarray(found.column("age").is_null())
    assert (np.asarray(sanitized.workings.origin)[gone] < 3).all()


def test_no_cell_of_a_turned_row_with_a_missing_cell_is_released_as_it_is() -> None:
    table = people(missing=True)
    codec, sanitized = run(Rotation(), table)
    origin = sanitized.workings.origin
    before = table.column("salary").take(pa.array(origin)).to_numpy()
    assert (before != released(codec, sanitized).column("salary").to_numpy()).all()


def test_levels_and_strata_are_refused_for_nothing_meets_them() -> None:
    table = people()
    codec = Codec.fit(table, Schema.infer(table))
    levels = np.zeros(60, dtype=np.int64)
    levels[:7] = 5
    with pytest.raises(PrivacyRefusal, match="7 records have a privacy level"):
        Rotation().sanitize(codec.encode(table, levels=levels), rng=rng())
    with pytest.raises(OptionError, match="strata"):
        Rotation().sanitize(codec.encode(table, strata=levels), rng=rng())


def test_facts_name_kinds_and_columns_and_the_certificate_says_how_many_rows_undo_it() -> None:
    facts = run(Hybrid(key=KEY), people())[1].facts
    assert facts == (Transformed(("add", "mult", "rotate"), ("age", "salary"), 3), Shuffled(60))
    _, refused = draw_claims(facts)
    assert any("reversible by anyone who knows 3 independent rows" in each.reason for each in refused)


@pytest.mark.parametrize("method", [Translation, Scaling, Rotation, Hybrid], ids=lambda method: method.method)
def test_a_share_of_the_rows_gets_noise_after_the_move_and_all_others_none(method: Any) -> None:
    table = people().set_column(0, "age", people().column("age").cast(pa.float64()))
    fields = Schema((Field("age", Kind.CONTINUOUS), Field("salary", Kind.CONTINUOUS)))
    codec = Codec.fit(table, fields)
    sanitized = method(enhance=0.1, enhance_size=2.0).sanitize(codec.encode(table), rng=rng())
    workings = sanitized.workings
    assert isinstance(workings, KeyedOwnerDetails)
    assert workings.key is not None
    assert Enhanced(0.1, 6) in sanitized.facts
    wanted = hybrid(matrix(table), workings.key, ("age", "salary"))
    spread = wanted.std(axis=0)
    off = (matrix(released(codec, sanitized)) - wanted[workings.origin]) / spread
    step = 2.0**-15  # of the grid that all rows are brought to, so that nobody stands out by it
    assert (np.abs(off) <= 0.51 * step).all(axis=1).sum() == 54
    places = (matrix(released(codec, sanitized)) - wanted.mean(axis=0)) / spread / step
    np.testing.assert_allclose(places, np.rint(places), rtol=0, atol=1e-4)


def test_extra_noise_has_the_size_and_the_law_that_were_asked_for() -> None:
    """Uniform noise of deviation s ends at s sqrt(3). Of 4,000 Gaussian ones the deviation is off by 9 % in 1e-15."""
    table = people(4_000)
    codec, sanitized = run(Translation(enhance=1.0, enhance_size=3.0, enhance_laws=(("age", "uniform"),)), table)
    workings = sanitized.workings
    assert isinstance(workings, KeyedOwnerDetails)
    assert workings.key is not None
    wanted = hybrid(matrix(table).astype(float), workings.key, ("age", "salary"))[workings.origin]
    off = (matrix(released(codec, sanitized)) - wanted) / matrix(table).std(axis=0)
    assert 3.0 < np.abs(off[:, 0]).max() <= 3.0 * math.sqrt(3) + 0.1
    assert np.abs(off[:, 1]).max() > 3.0 * math.sqrt(3)
    assert off.std(axis=0) == pytest.approx([3.0, 3.0], rel=0.09)


@pytest.mark.parametrize("laws", [{"age": "uniform"}, (("age", "uniform"),), [["age", "uniform"]]])
def test_laws_of_extra_noise_are_a_mapping_like_shifts_and_units(laws: Any) -> None:
    assert Translation(enhance=0.1, enhance_laws=laws).enhance_laws == (("age", "uniform"),)


def test_extra_noise_has_the_mean_that_was_asked_for_in_the_rows_that_get_it() -> None:
    """A mean of 2,000 numbers of deviation 1 is off by 0.15 with a chance below 1e-10."""
    table = people(4_000)
    codec, sanitized = run(Translation(enhance=0.5, enhance_means={"age": 2.0}), table)
    workings = sanitized.workings
    assert isinstance(workings, KeyedOwnerDetails)
    assert workings.key is not None
    wanted = hybrid(matrix(table).astype(float), workings.key, ("age", "salary"))[workings.origin]
    off = (matrix(released(codec, sanitized)) - wanted) / matrix(table).std(axis=0)
    got = np.abs(off[:, 1]) > 1e-3
    assert off[got].mean(axis=0) == pytest.approx([2.0, 0.0], abs=0.15)
    assert abs(off[~got].mean()) < 0.05


def test_exact_digits_of_a_file_in_batches_are_those_of_memory(tmp_path: Path) -> None:
    values = np.random.default_rng(2).integers(100, 999, size=(50, 2)) / [10.0, 1.0]
    table = pa.table({"age": values[:, 0], "salary": values[:, 1].astype(np.int64)})
    key = Key((Mult("age", 0.931), Mult("salary", 1.035)))
    whole = sf.sanitize(table, Scaling(key=key, exact_digits=True), report=False)
    write_csv(table, tmp_path / "in.csv")
    exact = Scaling(key=key, exact_digits=True)
    done = sf.sanitize(
        tmp_path / "in.csv", exact, folder=tmp_path / "out", engine="partitions", report=False, sign=False
    )
    wanted = sorted(zip(*whole.table.to_pydict().values(), strict=True))
    assert sorted(zip(*read_csv(done.table).to_pydict().values(), strict=True)) == wanted
    assert wanted == sorted((round(age * 0.931, 4), round(pay * 1.035)) for age, pay in values.tolist())
    assert Transformed(("mult",), ("age", "salary"), 1, exact_digits=True) in done.certificate.facts


def test_what_is_said_of_a_key_allows_for_the_rows_with_extra_noise() -> None:
    claims, refused = draw_claims(run(Rotation(enhance=0.1), people())[1].facts)
    assert any(claim.claim == "6 rows, drawn at random, received additional noise." for claim in claims)
    because = " ".join(each.reason for each in refused)
    assert "Nothing was drawn" not in because
    assert "The 6 rows with additional noise do not count among these" in because
    assert "additional noise" not in " ".join(
        each.reason for each in draw_claims(run(Rotation(), people())[1].facts)[1]
    )


def test_a_target_that_is_a_number_is_moved_and_the_certificate_says_so() -> None:
    release = sf.sanitize(people(), Rotation(), target="salary", report=False)
    assert TargetMoved("salary") in release.certificate.facts
    assert any("The key transformed 'salary'" in each.reason for each in release.certificate.refused)
    named = sf.sanitize(people(categories=True), Rotation(pass_categories=True), target="town", report=False)
    assert not any(isinstance(fact, TargetMoved) for fact in named.certificate.facts)


def test_a_target_that_is_public_leaves_as_it_is() -> None:
    key = Key((Add("age", -3.0),))
    release = sf.sanitize(people(), Translation(key=key), target="salary", public=["salary"], report=False)
    before, after = (
        sorted(zip(table["age"], table["salary"], strict=True))
        for table in (people().to_pydict(), release.table.to_pydict())
    )
    assert after == [(age - 3, salary) for age, salary in before]
    assert not any(isinstance(fact, TargetMoved) for fact in release.certificate.facts)


@pytest.mark.parametrize(
    ("mechanism", "words"),
    [
        (lambda: Translation(key=KEY), "hybrid"),
        (lambda: Rotation(key="key.toml"), "Key.load"),  # type: ignore[arg-type]
        (lambda: Rotation(pairs="magic"), "pairs"),
        (lambda: Rotation(degrees=(20, 20)), "degrees"),
        (lambda: Rotation(units={"age": 0}), "'age'"),
        (lambda: Translation(shifts={"age": (3, 1)}), "'age'"),
        (lambda: Scaling(factor=(1, float("inf"))), "factor"),
        (lambda: Scaling(factor=2), "factor"),  # type: ignore[arg-type]
        (lambda: Rotation(units=7), "units is of type int; give a list or a mapping"),  # type: ignore[arg-type]
        (lambda: Rotation(pass_categories="no"), "give True or False"),  # type: ignore[arg-type]
        (lambda: Rotation(enhance=1.5), "share of the rows"),
        (lambda: Rotation(enhance=0.1, enhance_size=0.0), "enhance_size must lie"),
        (lambda: Rotation(enhance_laws=(("age", "uniform"),)), "needs a share"),
        (lambda: Rotation(enhance_means={"age": 1.0}), "enhance_means needs a share"),
        (lambda: Rotation(enhance=0.1, enhance_means={"age": float("nan")}), "finite numbers"),
        (lambda: Rotation(enhance=0.1, enhance_means={"age": 1e9}), "between -100 and 100"),
        (lambda: run(Rotation(enhance=0.1, enhance_means={"wage": 1.0}), people()), "'wage'"),
        (lambda: run(Rotation(enhance=0.1, enhance_laws=(("wage", "uniform"),)), people()), "'wage'"),
    ],
)
def test_bad_parameters_are_refused(mechanism: Any, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        mechanism()


def test_a_range_for_a_column_that_is_not_there_is_refused() -> None:
    with pytest.raises(OptionError, match="'wage'"):
        run(Rotation(units={"wage": 1000}), people())


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.method)
def test_a_mechanism_can_be_varied_and_keeps_its_key_which_is_no_field(mechanism: Any) -> None:
    key = mechanism.new_key(run(mechanism, people())[1].records.layout, rng=rng())
    keyed = dataclasses.replace(mechanism, key=key)
    assert dataclasses.replace(keyed, pass_categories=True).key is key
    assert keyed == mechanism
    assert "key" not in dataclasses.asdict(keyed)
    assert "key" not in repr(keyed)


@pytest.mark.usefixtures("without_utility")
def test_no_output_of_a_release_but_the_table_shows_a_term_of_the_key(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        mechanism = Hybrid(key=KEY)
        release = sf.sanitize(people(), mechanism, holdout=0.2)
        folder = release.save(tmp_path / "out")
    texts = [path.read_text() for path in sorted(folder.rglob("*")) if path.is_file() and path.stem != "table"]
    assert len(texts) == 9
    texts += [repr(each) for each in (mechanism, release, release.recipe, release.certificate, release.report)]
    texts += [str(release.certificate.to_document()), caplog.text, *capsys.readouterr()]
    assert any(term in KEY.to_toml() for term in TERMS)
    for text in texts:
        assert not any(re.search(rf"(?<![\d.]){re.escape(term)}", text) for term in TERMS)


def test_no_error_shows_a_term_of_the_key() -> None:
    for table, words in ((people().select(["age"]), "'salary'"), (people(categories=True), "'town'")):
        with pytest.raises((OptionError, PrivacyRefusal), match=words) as caught:
            run(Hybrid(key=KEY), table)
        assert not any(term in str(caught.value) for term in TERMS)
