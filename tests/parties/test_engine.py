"""The engine against numpy: every operation, in both protocols, one worker process a party."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from sfumato.parties.arithmetic import Operation
from sfumato.parties.spu import SpuEngine
from tests.examples import at_length, examples, sized
from tests.parties.engines import assert_exact, need_engine, run_shares, start_engines

FAR = (1 << 61) - 1  # two such numbers of unlike sign lie as far apart as the engine promises to compare

few_examples = examples(5)


# In make test the whole protocol of test_vertical runs with aby3, and test_engine_faults with cheetah.
@pytest.fixture(scope="module", params=at_length("cheetah", "aby3"))
def engines(request: pytest.FixtureRequest) -> Iterator[list[SpuEngine]]:
    """Engines of three owners; with cheetah only the first and the last of them compute."""
    need_engine()
    running = start_engines(request.param, (0, 2) if request.param == "cheetah" else (0, 1, 2))
    yield running
    for engine in running:
        engine.close()


def random_numbers(*shape: int, bound: int = FAR) -> NDArray[np.int64]:
    return np.random.default_rng(shape).integers(-bound, bound, size=shape, endpoint=True)


def test_less_than_is_exact_to_the_ends_of_the_promised_range(engines: list[SpuEngine]) -> None:
    ends = np.array([-FAR, -FAR, FAR, FAR, 0, -1, 0, FAR, FAR - 1], dtype=np.int64)
    others = np.array([FAR, -FAR, FAR, -FAR, 0, 0, -1, FAR - 1, FAR], dtype=np.int64)
    a = np.concatenate([ends, random_numbers(31)]).reshape(5, 8)
    b = np.concatenate([others, random_numbers(31)]).reshape(5, 8)
    assert_exact(engines, Operation("less_than", (a.shape, b.shape)), a, b)


@pytest.mark.parametrize("shape", [(4, 1), (37, 5), (1, 3), (3, 2)])
def test_argmin_is_exact(engines: list[SpuEngine], shape: tuple[int, int]) -> None:
    assert_exact(engines, Operation("argmin", (shape,)), random_numbers(*shape))


@few_examples
@given(rows=st.lists(st.lists(st.integers(-2, 2), min_size=7, max_size=7), min_size=6, max_size=6))
def test_argmin_gives_the_first_of_equals(engines: list[SpuEngine], rows: list[list[int]]) -> None:
    assert_exact(engines, Operation("argmin", ((6, 7),)), np.array(rows, dtype=np.int64))


def test_argmin_gives_the_least_of_any_numbers_and_the_first_of_a_few_equals(engines: list[SpuEngine]) -> None:
    equals = np.array([[0] * 5, [2, 1, 1, 2, 1], [-1, 2, -2, -2, 0], [2, 2, 2, 1, 1]], dtype=np.int64)
    assert_exact(engines, Operation("argmin", ((7, 5),)), np.concatenate([equals, random_numbers(3, 5)]))


@pytest.mark.parametrize("shape", [(37, 3), (2, 2), (1, 3), (5, 1)])
def test_extremes_are_exact(engines: list[SpuEngine], shape: tuple[int, int]) -> None:
    assert_exact(engines, Operation("extremes", (shape,)), random_numbers(*shape))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((3, 7, 2), (3, 7, 4)),
        ((9, 1), (9, 1)),
        ((23, 3), (23, 2)),
        ((1, 2), (1, 3)),
        ((1, 5, 2), (1, 5, 2)),
    ],
)
def test_cross_products_wrap_as_numpy_does(engines: list[SpuEngine], a: tuple[int, ...], b: tuple[int, ...]) -> None:
    whole = (1 << 63) - 1
    assert_exact(engines, Operation("cross", (a, b)), random_numbers(*a, bound=whole), random_numbers(*b, bound=whole))


@pytest.mark.parametrize(("n", "count"), [(37, 0), (37, 37), (37, 1), (37, 20), (37, 36)])
def test_top_marks_exactly_the_smallest(engines: list[SpuEngine], n: int, count: int) -> None:
    values = np.abs(random_numbers(n, bound=(1 << 50) - 1))
    assert_exact(engines, Operation("top", ((n,),), count=count, bits=50), values)


@few_examples
@given(values=st.lists(st.integers(0, 3), min_size=11, max_size=11), wide=st.booleans())
def test_top_takes_the_lower_places_of_equals(engines: list[SpuEngine], values: list[int], wide: bool) -> None:
    assert_lower_places(engines, values, wide)


@pytest.mark.parametrize("wide", [False, True])
def test_top_takes_the_lower_places_of_a_few_equals(engines: list[SpuEngine], wide: bool) -> None:
    assert_lower_places(engines, [2, 1, 3, 1, 0, 1, 2, 0, 1, 3, 1], wide)


def assert_lower_places(engines: list[SpuEngine], values: list[int], wide: bool) -> None:
    bits = 61 if wide else 2  # with 61 bits no room is left to tell equals apart by their places
    scaled = np.array(values, dtype=np.int64) << (bits - 2)
    assert_exact(engines, Operation("top", ((11,),), count=4, bits=bits), scaled)


def test_one_number_can_be_taken_or_left(engines: list[SpuEngine]) -> None:
    for count in (0, 1):
        assert_exact(engines, Operation("top", ((1,),), count=count, bits=8), np.array([200], dtype=np.int64))


def test_nothing_comes_out_of_nothing(engines: list[SpuEngine]) -> None:
    assert_exact(engines, Operation("argmin", ((0, 3),)), random_numbers(0, 3))
    assert_exact(engines, Operation("cross", ((0, 3), (0, 2))), random_numbers(0, 3), random_numbers(0, 2))


@pytest.mark.parametrize(("size", "bits"), [(40, 1), (1_280, 8), (12_800, 8)])
def test_both_result_shares_are_uniform_and_fresh(engines: list[SpuEngine], size: int, bits: int) -> None:
    ones, twos = np.ones(size, dtype=np.int64), np.full(size, 2, dtype=np.int64)
    operation = Operation("less_than", (ones.shape, twos.shape))
    runs = [run_shares(engines, operation, [ones, twos]) for _ in range(2)]
    for side in (0, 1):
        shares = [run[side][0] for run in runs]
        assert not np.any(shares[0] == shares[1])
        for shift in (0, 64 - bits):  # the lowest bits and the highest
            seen = np.concatenate([share >> np.uint64(shift) for share in shares]) & np.uint64((1 << bits) - 1)
            found = np.bincount(seen.astype(np.int64), minlength=1 << bits)
            # false alarm of each: 1e-12
            expected = 2 * size / (1 << bits)
            assert np.sum((found - expected) ** 2 / expected) < stats.chi2.isf(1e-12, (1 << bits) - 1)


def test_the_shares_of_a_known_result_are_uniform_too(engines: list[SpuEngine]) -> None:
    first, last = run_shares(engines, Operation("top", ((64,),), count=64, bits=5), [np.arange(64) // 2])
    for share in (first[0], last[0]):
        assert len(np.unique(share)) == 64  # two of 64 uniform words are equal once in 2^53 runs


def test_large_inputs_are_cut_and_joined(engines: list[SpuEngine]) -> None:
    values = random_numbers(27_000, 5)
    assert_exact(engines, Operation("cross", (values.shape, values.shape)), values, values)
    if len(engines) == 3:  # the quicker protocol; the cutting is the same
        assert_exact(engines, Operation("argmin", (values.shape,)), values)
        assert_exact(engines, Operation("extremes", ((3, 45_000),)), values.reshape(3, 45_000))


def test_work_and_bytes_are_counted(engines: list[SpuEngine]) -> None:
    before = [(engine.sent, engine.cpu_seconds) for engine in engines]
    values = random_numbers(*sized((7, 5), (40, 6)))
    assert_exact(engines, Operation("argmin", (values.shape,)), values)
    for engine, (sent, seconds) in zip(engines, before, strict=True):
        assert engine.sent > sent
        assert engine.cpu_seconds > seconds


def test_shares_of_other_shapes_are_refused(engines: list[SpuEngine]) -> None:
    with pytest.raises(ValueError, match="needs shares"):
        engines[0].run(Operation("argmin", ((3, 2),)), [np.zeros((2, 3), dtype=np.uint64)])
