"""Domains of dates: counted in their unit, written as ISO texts, randomized like whole numbers."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.domains import UNITS, Dates
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError, SchemaError
from sfumato.methods.randomize import answer
from sfumato.survey.calculator import breach
from sfumato.survey.channel import read_prior
from tests.examples import examples

YEAR = Dates("2020-01-01", "2020-12-31", "day")
TOML = """
format = 1
domain = { kind = "dates", low = 2020-01-01, high = 2020-12-31, unit = "day" }
law = { name = "interval", edges = [2020-04-01, 2020-07-01] }
"""


@given(st.dates(datetime.date(1, 2, 1), datetime.date(9999, 12, 1)), st.sampled_from(["day", "hour", "second"]))
@examples(20)
def test_a_date_comes_back_from_its_count(date: datetime.date, unit: str) -> None:
    domain = Dates(-(2**20), 2**20, unit)
    place = domain.count(date) - domain.low
    assert domain.written([place])[0].startswith(date.isoformat())
    assert domain.count(domain.written([place])[0]) == domain.count(date)
    assert domain.counts(domain.moments([domain.count(date)])) == domain.count(date)


def test_months_are_counted_as_months() -> None:
    months = Dates("2019-11", "2020-02", "month")
    assert months.size == 4
    assert months.written(range(4)) == ["2019-11", "2019-12", "2020-01", "2020-02"]
    np.testing.assert_array_equal(months.encode(["2020-01-01", "2019-11"]), [2, 0])


def test_a_specification_of_dates_is_read_as_it_is_written() -> None:
    spec = NoiseSpec.from_toml(TOML)
    assert spec.released.values == ("2020-01-01..2020-03-31", "2020-04-01..2020-06-30", "2020-07-01..2020-12-31")  # type: ignore[union-attr]
    assert NoiseSpec.from_toml(spec.to_toml()) == spec
    assert NoiseSpec.from_json(spec.canonical).digest == spec.digest
    assert "a date from 2020-01-01 to 2020-12-31, by day" in spec.describe()


@pytest.mark.parametrize(
    ("domain", "words"),
    [
        ({"kind": "dates", "low": "2020-13-01", "high": "2020-12-31", "unit": "day"}, "none of the calendar"),
        ({"kind": "dates", "low": "soon", "high": "2020-12-31", "unit": "day"}, "written as 2020-01-31"),
        ({"kind": "dates", "low": 18262, "high": 18300, "unit": "day"}, "are dates such as"),
        ({"kind": "dates", "low": "2020-01-01", "high": "2020-12-31", "unit": "week"}, "one of month, day"),
        ({"kind": "dates", "low": "2020-01-02", "high": "2020-12-01", "unit": "month"}, "between two steps"),
        ({"kind": "dates", "low": "2020-01-02", "high": "2020-01-01", "unit": "day"}, "at least two values"),
    ],
)
def test_a_domain_that_is_none_of_dates_is_refused(domain: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        NoiseSpec.from_document({"format": 1, "domain": domain, "law": {"name": "laplace", "scale": 3}})


@pytest.mark.parametrize("edges", [[18300], ["2020-04-01", 3], ["soon"], [["2020-04-01"]]])
def test_edges_of_dates_are_dates(edges: list[Any]) -> None:
    with pytest.raises(OptionError, match=r"dates|date"):
        NoiseSpec(YEAR, {"name": "interval", "edges": [*edges, "2020-05-01"]})


def test_values_that_are_no_dates_are_counted_and_not_shown() -> None:
    with pytest.raises(SchemaError, match="2 values are no dates") as told:
        YEAR.encode(["2020-05-01", "31.05.2020", "May"])
    assert "May" not in str(told.value)


def test_a_breach_speaks_of_dates(tmp_path: Any) -> None:
    spec = NoiseSpec(YEAR, {"name": "keep-or-replace", "keep": 0.5})
    found = breach(spec, property="x in 2020-03-01..2020-03-31", output="2020-03-05").to_json()
    assert found["prior"] == pytest.approx(31 / 366)
    assert found["posterior"] > 0.5
    assert found["output"] == "2020-03-05"
    with pytest.raises(OptionError, match="compared with a number"):
        breach(spec, property="x > 5")
    (tmp_path / "prior.csv").write_text("day,chance\n2020-01-01,0.25\n2020-12-31,0.75\n")
    assert read_prior(tmp_path / "prior.csv", YEAR)[-1] == pytest.approx(0.75)
    (tmp_path / "prior.csv").write_text("day\n2020-01-01\n2020-01-01\n")
    assert read_prior(tmp_path / "prior.csv", YEAR)[0] == 1.0


def test_an_answer_about_a_date_is_a_date() -> None:
    spec = NoiseSpec(YEAR, {"name": "laplace", "scale": 30})
    sent = answer("2020-05-01", spec, rng=np.random.default_rng(1))
    assert isinstance(sent, str)
    assert len(spec.encode_output([sent])) == 1


def test_all_units_are_in_order_from_coarse_to_fine() -> None:
    sizes = [Dates("2020-01", "2021-01", unit).size for unit in list(UNITS)[:5]]
    assert sizes == sorted(sizes)
