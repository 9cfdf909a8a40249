"""Domains: places and values are the same thing counted differently, and nothing outside gets in or is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.domains import (
    Integers,
    Labels,
    Reals,
    Universe,
    domain_from_document,
    domain_to_document,
)
from sfumato.core.errors import OptionError, SchemaError

DOMAINS: list[Universe] = [Integers(-3, 12), Reals(-1.5, 2.0, 0.1), Reals(0, 1, 0.125), Labels(("no", "yes", "a b"))]


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_every_place_comes_back_from_its_value(domain: Universe) -> None:
    codes = np.arange(domain.size)
    np.testing.assert_array_equal(domain.encode(domain.decode(codes)), codes)
    np.testing.assert_array_equal(domain.places(domain.decode(codes)), codes)


@pytest.mark.parametrize("domain", DOMAINS, ids=repr)
def test_a_domain_comes_back_from_its_document(domain: Universe) -> None:
    assert domain_from_document(domain_to_document(domain)) == domain


@pytest.mark.parametrize("domain", DOMAINS[:3], ids=repr)
def test_numbers_beyond_the_ends_have_places_too(domain: Universe) -> None:
    codes = np.array([-1000, -1, domain.size, 12_345])
    np.testing.assert_array_equal(domain.places(domain.decode(codes)), codes)


@given(st.floats(-1.5, 2.0))
def test_a_real_number_goes_to_the_nearest_place(x: float) -> None:
    domain = Reals(-1.5, 2.0, 0.1)
    nearest = domain.decode(domain.encode([x]))[0]
    assert abs(nearest - x) <= 0.05 + 1e-12


def test_numbers_on_a_decimal_grid_are_the_doubles_that_are_written() -> None:
    np.testing.assert_array_equal(Reals(0, 1, 0.1).decode(np.arange(11)), [float(f"0.{k}") for k in range(10)] + [1.0])


def test_whole_numbers_stay_whole() -> None:
    assert Integers(5, 9).decode([0]).dtype == np.int64
    np.testing.assert_array_equal(Integers(5, 9).encode([5.0, 9.0]), [0, 4])


@pytest.mark.parametrize(
    ("domain", "values", "count"),
    [
        (Integers(0, 5), [1, 6, -1], 2),
        (Integers(0, 5), [1.5, float("nan"), 2], 2),
        (Reals(0, 1, 0.5), [0.2, 1.0001, float("nan"), float("inf")], 3),
        (Labels(("a", "b")), ["a", "c", None, 3], 3),
    ],
)
def test_what_lies_outside_is_counted(domain: Universe, values: list[Any], count: int) -> None:
    with pytest.raises(SchemaError, match=rf"^{count} values "):
        domain.encode(values)


def test_no_error_shows_a_value() -> None:
    cases: list[tuple[Universe, Any]] = [
        (Integers(0, 5), [98765]),
        (Integers(0, 5), ["secret"]),
        (Reals(0, 1, 0.5), [98765.4321]),
        (Labels(("a", "b")), ["secret"]),
    ]
    for domain, values in cases:
        for method in (domain.encode, domain.places):
            if method == domain.places and values == [98765]:
                continue  # a whole number beyond the ends is a place
            with pytest.raises(SchemaError) as told:
                method(values)
            assert "secret" not in str(told.value)
            assert "98765" not in str(told.value)


def test_a_released_number_off_the_grid_is_none_of_its_places() -> None:
    with pytest.raises(SchemaError, match=r"^2 values are not on the grid"):
        Reals(0, 1, 0.5).places([0.5, 0.6, 1e300])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Integers(3, 3),
        lambda: Integers(5, 1),
        lambda: Integers(0, True),
        lambda: Integers(0, 1.5),  # type: ignore[arg-type]
        lambda: Integers(0, 2**60),
        lambda: Integers(2**60, 2**60 + 5),
        lambda: Integers(-(2**53), 5 - 2**53),
        lambda: Integers("0", 1),  # type: ignore[arg-type]
        lambda: Reals(0, 1, 0.3),
        lambda: Reals(0, 1, 0),
        lambda: Reals(0, 1, -0.5),
        lambda: Reals(0, float("inf"), 1),
        lambda: Reals(0, float("nan"), 1),
        lambda: Reals(1e15, 1e15 + 1, 0.5**10),
        lambda: Labels(("a",)),
        lambda: Labels(("a", "a")),
        lambda: Labels((1, 2)),  # type: ignore[arg-type]
        lambda: domain_from_document({"kind": "colours"}),
        lambda: domain_from_document({"kind": "integers", "low": 0}),
        lambda: domain_from_document({"kind": "integers", "low": 0, "high": 1, "grid": 1}),
        lambda: domain_from_document({"kind": "labels", "values": "ab"}),
        lambda: domain_from_document([]),  # type: ignore[arg-type]
    ],
)
def test_domains_that_are_none_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(OptionError):
        make()
