"""Laws of the four transformations: the way back, distances, rows on their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.methods.geometry.key import Add, Key, Mult, Rotate
from sfumato.methods.geometry.transformations import KINDS, PAIRS, Ranges, hybrid, invert, rotate, scale, translate

METHODS = {"translate": translate, "scale": scale, "rotate": rotate, "hybrid": hybrid}
NAMES = tuple("abcdefg")


def case(kind: str, d: int, seed: int, pairs: str = "chain") -> tuple[np.ndarray, Key, tuple[str, ...]]:
    rng = np.random.default_rng(seed)
    names, sizes = NAMES[:d], 10.0 ** rng.integers(-3, 6, d)
    ranges = Ranges(
        {name: (-3.0 * size, 3.0 * size) for name, size in zip(names, sizes, strict=True)},
        dict.fromkeys(names, (0.5, 2.0)),
        units=dict(zip(names, sizes.tolist(), strict=True)),
    )
    values = sizes * (rng.normal(size=(40, d)) + rng.normal(size=d))
    return values, Key.generate(names, ranges, rng, kind=kind, pairs=pairs), names


@given(seed=st.integers(0, 10**6), d=st.integers(2, 7), kind=st.sampled_from(KINDS), pairs=st.sampled_from(PAIRS))
def test_the_inverse_of_a_transformation_gives_every_number_back(seed: int, d: int, kind: str, pairs: str) -> None:
    values, key, names = case(kind, d, seed, pairs)
    moved = METHODS[kind](values, key, names)
    sizes = np.abs(values).max(axis=0)
    np.testing.assert_allclose(invert(moved, key, names) / sizes, values / sizes, rtol=0, atol=1e-9)
    assert (moved != values).any(axis=0).all()


@given(seed=st.integers(0, 10**6), d=st.integers(2, 7))
def test_hybrid_with_one_kind_of_operation_is_that_method(seed: int, d: int) -> None:
    for kind in ("translate", "scale", "rotate"):
        values, key, names = case(kind, d, seed)
        np.testing.assert_array_equal(hybrid(values, key, names), METHODS[kind](values, key, names))


@given(seed=st.integers(0, 10**6), d=st.integers(2, 7), pairs=st.sampled_from(PAIRS))
def test_rotation_keeps_distances_in_its_units_and_lengths_from_the_origin(seed: int, d: int, pairs: str) -> None:
    values, key, names = case("rotate", d, seed, pairs)
    units = np.array([key.units[name] for name in names])
    before, after = values / units, rotate(values, key, names) / units
    np.testing.assert_allclose(np.linalg.norm(before, axis=1), np.linalg.norm(after, axis=1), rtol=1e-9)
    apart = [np.linalg.norm(part[:, None] - part[None], axis=2) for part in (before, after)]
    np.testing.assert_allclose(apart[0], apart[1], rtol=1e-8, atol=1e-8)


@given(seed=st.integers(0, 10**6), kind=st.sampled_from(KINDS), cut=st.integers(1, 39))
def test_chunks_come_out_as_the_whole_does(seed: int, kind: str, cut: int) -> None:
    values, key, names = case(kind, 4, seed)
    parts = [METHODS[kind](part, key, names) for part in (values[:cut], values[cut:])]
    np.testing.assert_array_equal(np.concatenate(parts), METHODS[kind](values, key, names))


def test_the_matrix_that_comes_in_is_not_changed() -> None:
    values, key, names = case("hybrid", 4, 1)
    before = values.copy()
    invert(hybrid(values, key, names), key, names)
    np.testing.assert_array_equal(values, before)


def test_a_missing_number_stays_missing_and_so_does_its_partner_in_a_turn() -> None:
    values = np.array([[1.0, np.nan, 3.0]])
    moved = hybrid(values, Key((Rotate(("a", "b"), 20), Add("c", 1))))
    assert np.isnan(moved[0]).tolist() == [True, True, False]


def test_a_quarter_turn_clockwise_carries_the_y_axis_to_the_x_axis() -> None:
    moved = rotate(np.array([[0.0, 1.0]]), Key((Rotate(("x", "y"), 90.0),)))
    np.testing.assert_allclose(moved, [[1.0, 0.0]], atol=1e-15)


@pytest.mark.parametrize("method", ["translate", "scale", "rotate"])
def test_a_method_refuses_a_key_of_another(method: str) -> None:
    key = Key((Add("a", 1.5), Mult("b", 2.5), Rotate(("a", "b"), 20)))
    with pytest.raises(OptionError, match="hybrid"):
        METHODS[method](np.ones((2, 2)), key)


def test_a_key_that_leaves_a_column_as_it_is_is_refused_with_the_column() -> None:
    with pytest.raises(PrivacyRefusal, match="leaves 2 columns of numbers as they are, the first is 'b'"):
        hybrid(np.ones((2, 3)), Key((Add("a", 1.5),)), ("a", "b", "c"))


def test_a_key_for_a_column_that_is_not_there_is_refused_with_the_column() -> None:
    with pytest.raises(OptionError, match="the first is 'z'"):
        hybrid(np.ones((2, 1)), Key((Add("a", 1.5), Add("z", 2.5))), ("a",))
