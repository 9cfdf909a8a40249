"""The weights of a distance that knows the response [BCG10, eq. 1]."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core.errors import OptionError
from sfumato.core.groups import response_weights
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind

LAYOUT = (
    Block("age", BlockKind.NUMBER, 0, 1, (0.0,)),
    Block("age", BlockKind.MISSING, 1, 2),
    Block("town", BlockKind.CATEGORY, 2, 5, (0.0,) * 3),
    Block("class", BlockKind.CATEGORY, 5, 7, (0.0,) * 2),
)


def test_every_coordinate_of_a_column_carries_the_weight_of_the_column() -> None:
    np.testing.assert_allclose(response_weights(LAYOUT, "class", 0.8), [0.1, 0.1, 0.1, 0.1, 0.1, 0.8, 0.8])
    np.testing.assert_allclose(response_weights(LAYOUT, "age", 0.5), [0.5, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25])


def test_two_classes_lie_as_far_apart_as_the_weight_says() -> None:
    rows = np.zeros((2, 7))
    rows[0, 5] = rows[1, 6] = CATEGORY_SCALE
    scaled = rows * np.sqrt(response_weights(LAYOUT, "class", 0.8))
    assert ((scaled[0] - scaled[1]) ** 2).sum() == pytest.approx(0.8)


def test_without_a_target_all_columns_weigh_the_same() -> None:
    np.testing.assert_allclose(response_weights(LAYOUT, None, 0.8), 1.0 / 3.0)


def test_a_response_alone_keeps_a_weight_whatever_is_asked() -> None:
    np.testing.assert_array_equal(response_weights(LAYOUT[:2], "age", 0.0), [1.0, 1.0])


@pytest.mark.parametrize("w", [-0.01, 1.01, float("nan")])
def test_a_weight_outside_0_to_1_is_refused(w: float) -> None:
    with pytest.raises(OptionError, match="between 0 and 1"):
        response_weights(LAYOUT, "class", w)


def test_a_target_that_is_not_there_is_refused() -> None:
    with pytest.raises(OptionError, match="column 'pay' is not among the 3 sanitized ones"):
        response_weights(LAYOUT, "pay", 0.8)
