"""One count of persons: of each code, however persons are numbered."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core.arrays import count_persons, number_of_persons
from sfumato.tables.persons import hold_out


@pytest.mark.parametrize("hashes", [False, True])
@pytest.mark.parametrize("size", [0, 1, 6, 40])
def test_a_person_counts_once_for_each_code_whatever_number_it_has(size: int, *, hashes: bool) -> None:
    rng = np.random.default_rng(4)
    for codes_of in (1, 6):
        codes, persons = rng.integers(-1, codes_of, 500), rng.integers(0, 90, 500)
        numbers = rng.integers(-(2**63), 2**63 - 1, 90)[persons] if hashes else persons
        whose = [{int(person) for person in persons[codes == code]} for code in range(codes_of)]
        expected = [*map(len, whose), *[0] * (size - codes_of)]
        assert count_persons(codes, numbers, size).tolist() == expected
        assert number_of_persons(numbers, codes == 0) == len(whose[0])
        assert number_of_persons(numbers, np.flatnonzero(codes == 0)) == len(whose[0])


def test_without_persons_each_row_is_one_and_nothing_counts_nobody() -> None:
    assert count_persons(np.array([2, 0, 2, -1]), None).tolist() == [1, 0, 2]
    assert count_persons(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), 2).tolist() == [0, 0]
    assert (number_of_persons(None, np.array([True, False])), number_of_persons(None, np.array([4, 7]))) == (1, 2)


def test_every_person_is_held_out_as_often_as_any_other_with_all_rows() -> None:
    persons, times, runs = np.repeat(np.arange(20), 3), np.zeros(20), 2_000
    for seed in range(runs):
        out = hold_out(persons, 0.3, np.random.default_rng(seed)).reshape(20, 3)
        assert (out.all(axis=1) == out.any(axis=1)).all()
        assert out[:, 0].sum() == 6
        times += out[:, 0]
    # chance 0.3: deviation sqrt(2000 * 0.21) = 20.5; six deviations
    assert np.abs(times - 0.3 * runs).max() < 6 * 20.5
