"""Any number drawn lands in the domain; no release piles up at one person's extreme."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sfumato.core.records import width
from sfumato.tables.codec import Codec
from sfumato.tables.schema import DateStep, Domain, Field, Kind, Role, Schema
from tests.examples import examples

DRAWN = st.floats(allow_nan=False, allow_infinity=False)


def codec_of(cells: Any, kind: Kind, domain: Domain, min_frequency: int = 2, **parts: Any) -> Codec:
    return Codec.fit(
        pa.table({"c": cells}), Schema((Field("c", kind, domain=domain, **parts),)), min_frequency=min_frequency
    )


def decoded(codec: Codec, coordinates: Any) -> list[Any]:
    cells: list[Any] = codec.decode(np.asarray(coordinates, dtype=np.float64).reshape(-1, 1)).column("c").to_pylist()
    return cells


@examples(200, few=50)
@given(hnp.arrays(np.float64, (12, 1), elements=DRAWN), st.booleans(), st.sampled_from(["float64", "float32", "text"]))
def test_any_draw_lies_inside_the_bounds_and_on_the_step(
    drawn: np.ndarray[Any, Any], declared: bool, form: str
) -> None:
    cells: Any = np.array([0.5, 1.25, 9.75, 2.0])
    cells = [str(cell) for cell in cells] if form == "text" else cells.astype(form)
    codec = codec_of(cells, Kind.CONTINUOUS, Domain(declared, 0.5, 10.1, 0.25))
    numbers = np.array([float(cell) for cell in decoded(codec, drawn)])
    assert ((numbers >= 0.5) & (numbers <= 10.1)).all()
    assert (numbers * 4 == np.rint(numbers * 4)).all()


@examples(200, few=50)
@given(
    hnp.arrays(np.float64, (12, 1), elements=DRAWN),
    st.sampled_from([pa.int8(), pa.uint8(), pa.int64(), pa.uint64(), pa.float64(), pa.string()]),
    st.booleans(),
    st.sampled_from([None, 1.0, 3.0]),
)
def test_any_draw_of_an_unbounded_integer_fits_its_type(
    drawn: np.ndarray[Any, Any], kind: pa.DataType, declared: bool, step: float | None
) -> None:
    cells = pa.array([0, 6, 9, 60]).cast(kind)
    numbers = [int(cell) for cell in decoded(codec_of(cells, Kind.INTEGER, Domain(declared, step=step)), drawn)]
    assert all(number % int(step or 1) == 0 for number in numbers)
    assert all(0 <= number <= 60 for number in numbers) or declared


@examples(100)
@given(
    hnp.arrays(np.float64, (12, 1), elements=DRAWN),
    st.sampled_from([pa.date32(), pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.string()]),
    st.sampled_from([Domain(declared=True), Domain(step=DateStep.MICROSECOND), Domain()]),
)
def test_any_draw_of_a_date_fits_its_type(drawn: np.ndarray[Any, Any], kind: pa.DataType, domain: Domain) -> None:
    days = pa.array([datetime.date(2020, 1, 1), datetime.date(2020, 3, 1), datetime.date(2021, 1, 1)])
    cells = days.cast(kind) if not pa.types.is_timestamp(kind) else days.cast(pa.timestamp("s")).cast(kind)
    back = decoded(codec_of(cells, Kind.DATE, domain), drawn)
    texts = [str(cell)[:10] for cell in back]
    assert all("0001" <= text[:4] <= "9999" for text in texts)
    assert domain.declared or all("2020-01-01" <= text <= "2021-01-01" for text in texts)


@examples(100)
@given(hnp.arrays(np.float64, (9, 9), elements=DRAWN))
def test_any_draw_of_categories_gives_one_of_them(drawn: np.ndarray[Any, Any]) -> None:
    table = pa.table({"w": ["a", "b", None, "c"], "o": ["x", "y", "x", "y"], "b": [True, None, False, True]})
    fields = (
        Field("w", Kind.NOMINAL),
        Field("o", Kind.ORDINAL, Role.TARGET, Domain(categories=("x", "mid", "y"))),
        Field("b", Kind.BOOLEAN),
    )
    codec = Codec.fit(table, Schema(fields))
    back = codec.decode(drawn[:, : width(codec.layout)])
    assert set(back.column("w").to_pylist()) <= {"a", "b", "c", None}
    assert set(back.column("o").to_pylist()) <= {"x", "mid", "y"}
    assert set(back.column("b").to_pylist()) <= {True, False, None}


def test_nothing_piles_up_at_an_extreme_that_one_person_holds() -> None:
    rng = np.random.default_rng(7)
    cells = rng.uniform(0.0, 1.0, 500)
    codec = codec_of(cells, Kind.CONTINUOUS, Domain(), min_frequency=5)
    for far in (3.0, 300.0):
        back = np.array(decoded(codec, rng.normal(0.0, far, 20_000)))
        assert back.min() >= cells.min()
        assert back.max() <= cells.max()
        assert np.isin(back, [cells.min(), cells.max()]).sum() <= 2


def test_whole_numbers_beyond_somebodys_extreme_are_folded_back_inside() -> None:
    codec = codec_of([20, 30, 30, 40], Kind.INTEGER, Domain())
    column = codec.columns[0]
    beyond = (np.array([43.0, 17.0]) - 20 - column.mean) / column.scale
    assert decoded(codec, beyond) == [37, 23]


@pytest.mark.parametrize(
    ("cells", "domain"), [([20, 20, 30, 40, 40], Domain()), ([20, 30, 30, 40], Domain(declared=True, low=20, high=40))]
)
def test_a_shared_or_declared_bound_cuts(cells: list[int], domain: Domain) -> None:
    assert decoded(codec_of(cells, Kind.INTEGER, domain), [-50.0, 50.0]) == [20, 40]


def test_one_shared_and_one_lonely_extreme_cut_and_fold() -> None:
    codec = codec_of([20, 20, 30, 40], Kind.INTEGER, Domain())
    column = codec.columns[0]
    assert decoded(codec, (np.array([41.0, 15.0, 99.0]) - 20 - column.mean) / column.scale) == [39, 20, 20]


def test_the_crowd_decides_what_is_shared() -> None:
    cells = [20, 20, 20, 30, 40, 40]
    folds = [
        codec_of(cells, Kind.INTEGER, Domain(), min_frequency=min_frequency).columns[0].grid
        for min_frequency in (2, 3, 4)
    ]
    assert [(grid.fold_low, grid.fold_high) for grid in folds if grid] == [(False, False), (False, True), (True, True)]


def test_a_lonely_extreme_of_observed_ordinal_categories_folds() -> None:
    cells = ["low", "mid", "mid", "high", "high"]
    for declared, expected in [(False, "mid"), (True, "low")]:
        codec = codec_of(cells, Kind.ORDINAL, Domain(declared, categories=("low", "mid", "high")))
        column = codec.columns[0]
        assert decoded(codec, [(-1.0 - column.mean) / column.scale]) == [expected]


def test_a_declared_bound_off_the_step_is_not_overstepped() -> None:
    codec = codec_of([0, 3, 9], Kind.INTEGER, Domain(declared=True, low=0, high=11, step=3.0))
    assert decoded(codec, [50.0]) == [9]


def test_fractional_bounds_of_whole_numbers_hold() -> None:
    codec = codec_of([1.0, 2.0, 3.0], Kind.INTEGER, Domain(declared=True, low=0.5, high=3.5))
    assert decoded(codec, [-50.0, 50.0]) == [1.0, 3.0]


def test_a_text_with_fixed_decimals_keeps_them() -> None:
    codec = codec_of(["0.50", "1.00", "12.25"], Kind.CONTINUOUS, Domain(), format="0.00")
    assert set(map(len, decoded(codec, np.linspace(-0.9, 0.0, 50)))) == {4}
