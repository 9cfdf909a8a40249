"""Records know which of their columns will be mined."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.records import Block, BlockKind, Records
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Schema

TABLE = pa.table({"age": [30, 40, 50, 61], "class": ["f", "m", "f", "m"]})


@pytest.mark.parametrize("target", [None, "class", "age"])
def test_encoding_names_the_target_of_the_schema(target: str | None) -> None:
    assert Codec.fit(TABLE, Schema.infer(TABLE, target=target)).encode(TABLE).target == target


def test_a_target_outside_the_layout_is_a_mistake_of_the_caller() -> None:
    layout, nothing = (Block("age", BlockKind.NUMBER, 0, 1, (0.0,)),), np.zeros(3, dtype=np.int64)
    assert Records(np.zeros((3, 1)), layout, nothing, nothing.copy()).target is None
    with pytest.raises(ValueError, match="the target 'pay' is not a column"):
        Records(np.zeros((3, 1)), layout, nothing, nothing.copy(), "pay")
