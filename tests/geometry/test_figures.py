"""The printed examples of the paper: figures 2 to 5, all six rows [OZ03, sec. 4]."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.mechanisms.geometry.key import Add, Key, Mult, Rotate
from sfumato.mechanisms.geometry.transformations import hybrid, invert, rotate, scale, translate

COLUMNS = ("age", "salary")
PEOPLE = np.array(
    [[29.0, 48_000], [38, 72_000], [34, 51_000], [43, 65_000], [42, 60_000], [48, 53_000]]
)  # student, executive, professor, lawyer, dentist, nurse

FIGURE_2 = Key((Add("age", -3), Add("salary", 5000)))
FIGURE_3 = Key((Mult("age", 0.94), Mult("salary", 1.035)))
FIGURE_4 = Key((Rotate(COLUMNS, 13.7, (1.0, 1000.0)),))
FIGURE_5 = Key((Add("age", 2), Mult("salary", 0.93)))


def printed(values: np.ndarray) -> list[tuple[int, int]]:
    """Round ages and cut salaries to the unit, as the paper prints them."""
    return [(round(age), int(salary + 1e-6)) for age, salary in values]


def test_translation_gives_figure_2() -> None:
    assert printed(translate(PEOPLE, FIGURE_2)) == [
        (26, 53_000),
        (35, 77_000),
        (31, 56_000),
        (40, 70_000),
        (39, 65_000),
        (45, 58_000),
    ]


def test_scaling_gives_figure_3_but_for_the_age_of_the_executive_which_is_misprinted() -> None:
    """Errata OZ03.2: 38 * 0.94 = 35.72 is printed 35."""
    assert printed(scale(PEOPLE, FIGURE_3)) == [
        (27, 49_680),
        (36, 74_520),
        (32, 52_785),
        (40, 67_275),
        (39, 62_100),
        (45, 54_855),
    ]


def test_rotation_gives_figure_4_but_for_the_salary_of_the_dentist_which_is_misprinted() -> None:
    """Errata OZ03.2: 48,345.75 is printed 48,354; OZ03.1: salaries are turned in thousands."""
    assert printed(rotate(PEOPLE, FIGURE_4)) == [
        (40, 39_766),
        (54, 60_951),
        (45, 41_496),
        (57, 52_966),
        (55, 48_345),
        (59, 40_123),
    ]


def test_the_first_row_of_figure_4_before_rounding_is_that_of_the_errata() -> None:
    np.testing.assert_allclose(rotate(PEOPLE, FIGURE_4)[0], [39.54, 39_766], rtol=1e-4)


def test_hybrid_gives_figure_5() -> None:
    assert printed(hybrid(PEOPLE, FIGURE_5)) == [
        (31, 44_640),
        (40, 66_960),
        (36, 47_430),
        (45, 60_450),
        (44, 55_800),
        (50, 49_290),
    ]


@pytest.mark.parametrize("key", [FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_5], ids=["2", "3", "4", "5"])
def test_the_key_gives_the_people_of_figure_2a_back(key: Key) -> None:
    np.testing.assert_allclose(invert(hybrid(PEOPLE, key), key), PEOPLE, rtol=1e-12)


@pytest.mark.parametrize(
    ("key", "wanted"),
    [(Key((Mult("age", 0.93), Mult("salary", 0.89))), (0.49, 1.21)), (FIGURE_2, (0.0, 0.0))],
    ids=["SDP", "TDP"],
)
def test_sec_of_scaling_and_translation_is_that_of_table_2(key: Key, wanted: tuple[float, float]) -> None:
    from sfumato.assess.utility.distortion import security

    moved = hybrid(PEOPLE, key)
    found = [100 * security(PEOPLE[:, column], moved[:, column]) for column in (0, 1)]
    np.testing.assert_allclose(found, wanted, atol=1e-10)
