"""Missing marks: proposed if many persons have them, read in every column, and released as they came."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import OptionError, SchemaError
from sfumato.tables.cells import MissingForms, absent_cells
from sfumato.tables.codec import Codec, codec_from_document, codec_to_document
from sfumato.tables.contact import codes_of_persons
from sfumato.tables.files import read_table
from sfumato.tables.infer import infer_field
from sfumato.tables.schema import Field, Kind, Role, Schema, missing_marks
from sfumato.tables.source import open_people

WEIGHTS = [f"{60 + place / 10}" for place in range(180)]
DATES = [f"{1 + place % 28:02d}.{1 + place % 12:02d}.2021" for place in range(180)]


def infer(cells: list[str], **told: object) -> Field:
    return infer_field("column", pa.chunked_array([pa.array(cells)]), **told)  # type: ignore[arg-type]


@pytest.mark.parametrize(("cells", "kind"), [(WEIGHTS, Kind.CONTINUOUS), (DATES, Kind.DATE)])
def test_a_frequent_word_among_numbers_or_dates_is_proposed_as_missing(cells: list[str], kind: Kind) -> None:
    field = infer([*cells, *["k.A."] * 12, *["nicht erhoben"] * 11, *["NA"] * 3])
    assert (field.kind, field.role) == (kind, Role.CONFIDENTIAL)
    assert field.missing == ("k.A.", "nicht erhoben", "NA")
    assert "missing: 'k.A.' (12 cells), 'nicht erhoben' (11 cells), 'NA' (3 cells)" in field.reason


@pytest.mark.parametrize(("cells", "kind"), [(9, Kind.NOMINAL), (10, Kind.CONTINUOUS)])
def test_a_word_is_a_mark_from_the_fewest_persons_on_that_decide(cells: int, kind: Kind) -> None:
    """Of 19 strays in two words no word is held by ten; of 20 both are."""
    assert infer([*WEIGHTS, *["k.A."] * cells, *["w/o"] * cells]).kind is kind


def test_one_person_makes_no_mark_whatever_rows_they_have() -> None:
    cells = [*WEIGHTS, *["k.A."] * 30]
    persons = np.array([*range(180), *[180] * 30])
    field = infer(cells, persons=persons)
    assert field.kind is Kind.CONTINUOUS
    assert field.missing == ()  # a stray of one person, which a run repairs, and not a mark
    assert field.repair


@pytest.mark.parametrize(
    "strays",
    [
        [word for word in ("a", "b", "c", "d", "e", "f") for _ in range(12)],  # more words than marks
        ["no"] * 200,  # more than half of the cells
        ["< 5"] * 20,  # a value, if a censored one
        ["unknown 7"] * 20,
    ],
)
def test_other_texts_among_numbers_keep_the_column_one_of_categories(strays: list[str]) -> None:
    field = infer([*WEIGHTS, *strays])
    assert field.kind is Kind.NOMINAL
    assert field.missing == ()


def test_infinite_numbers_are_refused_and_no_mark() -> None:
    with pytest.raises(SchemaError, match="holds 12 infinite numbers"):
        infer([*WEIGHTS, *["inf"] * 12])


def test_a_mark_of_one_column_is_one_in_another_with_few_different_numbers() -> None:
    children = [str(place % 5) for place in range(180)]
    words = ["k.A."] * 12
    alone = Schema.infer(pa.table({"children": [*children, *words]}))
    beside = Schema.infer(pa.table({"children": [*children, *words], "weight": [*WEIGHTS, *words]}))
    assert alone["children"].kind is Kind.NOMINAL
    assert beside["children"].kind is Kind.INTEGER
    assert beside["children"].missing == ("k.A.",)


def test_categories_keep_a_word_that_is_a_mark_elsewhere() -> None:
    table = pa.table({"sex": [*["m", "f"] * 90, *["k.A."] * 12], "weight": [*WEIGHTS, *["k.A."] * 12]})
    assert Schema.infer(table)["sex"].domain.categories == ("f", "k.A.", "m")
    assert Schema.infer(table, missing=["k.A."])["sex"].domain.categories == ("f", "m")


@pytest.mark.parametrize("code", [-9, -1, 999, 9999])
def test_a_frequent_number_far_from_all_others_is_pointed_out_and_stays(code: int) -> None:
    field = infer_field("column", pa.chunked_array([[*range(20, 100), *[code] * 10]]))
    assert field.missing == ()
    assert f"{code} (10 cells); if that means missing, say --missing {code}" in field.reason


@pytest.mark.parametrize("cells", [[*range(20, 100), *[99] * 10], [*range(20, 100), *[999] * 4], [*range(-9, 100)]])
def test_a_number_near_others_or_of_few_cells_is_not_pointed_out(cells: list[int]) -> None:
    assert "far from" not in infer_field("column", pa.chunked_array([cells])).reason


def test_numbers_that_are_marks_are_missing_in_columns_of_numbers() -> None:
    for cells in (pa.array([5, -9, None]), pa.array([5.0, -9.0, None]), pa.array(["5", " -9", None])):
        assert absent_cells(cells, ("-9", "k.A.")).tolist() == [False, True, True]


def write_visits(path: Path) -> Path:
    """A file with decimal commas, three ways to write a missing weight, and a mark in its dates."""
    weights = [f"{60 + place / 10:.1f}".replace(".", ",") for place in range(300)]
    marks = ["k.A."] * 60 + [""] * 30 + ["n/a"] * 4 + ["lost"] * 2
    dates = [f"{1 + place % 28:02d}.{1 + place % 12:02d}.2021" for place in range(360)] + ["k.A."] * 36
    rows = [f"{weight};{date}" for weight, date in zip([*weights, *marks], dates, strict=True)]
    path.write_text("\n".join(["Gewicht;Datum", *rows]) + "\n", encoding="utf-8")
    return path


def test_decimal_commas_are_found_beside_marks_in_a_whole_file_and_in_parts(tmp_path: Path) -> None:
    path = write_visits(tmp_path / "visits.csv")
    assert read_table(path).column("Gewicht")[0].as_py() == "60.0"
    assert open_people(path).form.numerals.commas == ("Gewicht",)


def test_decimal_commas_are_found_beside_a_given_mark_with_digits(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("a;b\n" + "1,5;x\n2,5;y\n" * 20 + "code 9;x\n" * 20, encoding="utf-8")
    assert read_table(path).column("a")[0].as_py() == "1,5"
    assert read_table(path, ("code 9",)).column("a")[0].as_py() == "1.5"
    assert open_people(path, missing=("code 9",)).form.numerals.commas == ("a",)


def test_a_declared_schema_reads_decimal_commas_and_its_own_marks(tmp_path: Path) -> None:
    path = write_visits(tmp_path / "visits.csv")
    schema = Schema(
        (
            Field("Gewicht", Kind.CONTINUOUS, missing=("k.A.", "", "n/a", "lost")),
            Field("Datum", Kind.DATE, missing=("k.A.",), format="%d.%m.%Y"),
        )
    )
    release = sf.sanitize(path, schema=schema, k=10, seed=1, report=False)
    made = Counter(release.table.column("Gewicht").to_pylist())
    assert made["k.A."] > made[""] > 0
    assert {"n/a", "lost"}.isdisjoint(made)  # held by fewer than ten persons


def test_marks_are_released_in_their_proportions_and_rare_ones_as_the_commonest() -> None:
    cells = [*["1.5", "2.5"] * 200, *["k.A."] * 60, *[""] * 30, *["n/a"] * 10, *["lost"] * 9]
    table = pa.table({"weight": cells})
    schema = Schema((Field("weight", Kind.CONTINUOUS, missing=("k.A.", "", "n/a", "lost")),))
    codec = Codec.fit(table, schema, min_frequency=10)
    made = Counter(codec.decode(codec.encode(table).values).column("weight").to_pylist())
    assert {mark: made[mark] for mark in ("k.A.", "", "n/a", "lost")} == {"k.A.": 69, "": 30, "n/a": 10, "lost": 0}
    stored = codec_from_document(codec_to_document(codec))
    assert stored.columns[0].gap == codec.columns[0].gap


def test_marks_are_counted_in_persons() -> None:
    table = pa.table({"who": [*range(40), *[40] * 20], "weight": [*["1.5", "2.5"] * 10, *["k.A."] * 20, *["no"] * 20]})
    fields = (Field("who", Kind.NOMINAL, Role.PERSON), Field("weight", Kind.CONTINUOUS, missing=("k.A.", "no")))
    persons = codes_of_persons(table.column("who"))
    codec = Codec.fit(table, Schema(fields), min_frequency=10, persons=persons)
    assert codec.columns[0].gap == "k.A."  # twenty cells of the other are one person's


@pytest.mark.parametrize(("mark", "written"), [("lost", None), ("NA", "NA")])
def test_an_unusual_mark_of_fewer_persons_than_k_is_released_as_an_empty_cell(mark: str, written: str | None) -> None:
    table = pa.table({"weight": [*["1.5", "2.5"] * 50, *[mark] * 9]})
    codec = Codec.fit(table, Schema((Field("weight", Kind.CONTINUOUS, missing=(mark,)),)), min_frequency=10)
    made = codec.decode(codec.encode(table).values).column("weight").to_pylist()
    assert made[100:] == [written] * 9


@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int32(), pa.string())])
def test_categories_come_back_with_all_their_marks(kind: pa.DataType) -> None:
    cells = [*["a", "b"] * 50, *["k.A."] * 20, *["?"] * 20, *[None] * 20]
    table = pa.table({"ward": pa.array(cells, pa.string()).cast(kind)})
    codec = Codec.fit(table, Schema((Field("ward", Kind.NOMINAL, missing=("k.A.", "?")),)))
    made = codec.decode(codec.encode(table).values).column("ward")
    assert made.type == kind
    assert Counter(made.to_pylist()) == Counter(cells)


def test_shares_of_marks_do_not_depend_on_what_a_cell_was() -> None:
    chosen = MissingForms(("k.A.", ""), (0.7, 0.3)).choose(1_000)
    assert np.bincount(chosen).tolist() == [700, 300]
    for part in np.split(chosen, 10):  # evenly mixed
        assert abs(np.bincount(part)[0] - 70) <= 2


def test_a_number_that_means_missing_is_released_as_it_came() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"age": rng.integers(20, 80, 400), "pay": rng.normal(9, 2, 400).round(1)})
    frame.loc[:59, "age"] = -9
    schema = sf.inspect(frame, missing=["-9"])
    assert schema["age"].domain.low == 20
    made = sf.sanitize(frame, k=10, seed=2, report=False, missing=["-9"]).table
    assert made["age"].dtype == frame["age"].dtype
    assert 20 < (made["age"] == -9).sum() < 120
    assert not made["age"].between(-8, 19).any()


def test_given_marks_join_those_of_a_schema_and_are_no_categories() -> None:
    schema = Schema.infer(pa.table({"sex": ["m", "f", "k.A."] * 20}))
    field = schema.with_missing(["k.A."])["sex"]
    assert field.missing == ("k.A.",)
    assert field.domain.categories == ("f", "m")
    assert missing_marks(schema.with_missing(["k.A."]), ["x"]) == ("x", "k.A.")


def test_a_mark_is_one_short_line() -> None:
    with pytest.raises(OptionError, match="a missing mark is one line of at most 200 characters"):
        missing_marks(None, ["a\nb"])


def test_a_run_says_which_columns_have_a_proposed_mark_and_not_the_mark() -> None:
    table = pa.table({"weight": [*WEIGHTS, *["confidential"] * 20]})
    with pytest.warns(
        UserWarning, match="in which a frequent text was taken as missing: 1, the first is 'weight'"
    ) as told:
        sf.sanitize(table, k=10, seed=1, report=False)
    assert not any("confidential" in str(each.message) for each in told)
