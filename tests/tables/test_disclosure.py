"""No error, warning or repr of the tables' side ever holds a cell."""

from __future__ import annotations

import datetime
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato.core.errors import BadInput
from sfumato.tables.codec import Codec
from sfumato.tables.frames import to_arrow
from sfumato.tables.schema import DateStep, Domain, Field, Kind, Role, Schema

TEXT = "canary-8642"
NUMBER = 8642.8642
WHOLE = 86428642
HUGE = 2**53 + 8642
DAY = datetime.date(1864, 2, 8)
TOKENS = (TEXT, "8642", "1864", "9007199254749634")


def fit(cells: Any, kind: Kind, **parts: Any) -> Callable[[], Any]:
    field = Field("c", kind, domain=Domain(**parts))
    return lambda: Codec.fit(pa.table({"c": cells}), Schema((field,)))


def encode(cells: Any, others: Any) -> Callable[[], Any]:
    def act() -> Any:
        table = pa.table({"c": cells})
        schema = Schema.infer(table).with_role(Role.CONFIDENTIAL, "c")
        return Codec.fit(table, schema).encode(pa.table({"c": others}))

    return act


TRIGGERS: dict[str, Callable[[], Any]] = {
    "mixed objects": lambda: to_arrow(pd.DataFrame({"c": pd.Series([1, TEXT], dtype=object)})),
    "objects too large": lambda: to_arrow(pd.DataFrame({"c": pd.Series([WHOLE**9, 1], dtype=object)})),
    "mixed categories": lambda: to_arrow(pd.DataFrame({"c": pd.Categorical([1, TEXT])})),
    "text as number": fit([TEXT, "1"], Kind.INTEGER),
    "text as date": fit([TEXT, "2020-01-01"], Kind.DATE),
    "unknown category": fit([TEXT, "a"], Kind.NOMINAL, categories=("a",)),
    "unknown grade": fit([TEXT, "a"], Kind.ORDINAL, categories=("a",)),
    "category of another type": fit([1, 2], Kind.NOMINAL, categories=(TEXT, "a")),
    "category beyond the type": fit(pa.array([1, 2], pa.int8()), Kind.NOMINAL, categories=(WHOLE, 1)),
    "fraction as category of integers": fit([1, 2], Kind.NOMINAL, categories=(NUMBER, 1.0)),
    "outside the bounds": fit([NUMBER, 1.0], Kind.CONTINUOUS, declared=True, low=0, high=2),
    "off the step": fit([NUMBER, 1.0], Kind.CONTINUOUS, declared=True, step=0.5),
    "not whole": fit([NUMBER, 1.0], Kind.INTEGER),
    "beyond 2^53": fit([HUGE, 1], Kind.INTEGER),
    "beyond 2^53 as decimals": fit([HUGE, 1], Kind.CONTINUOUS),
    "beyond 2^53 as text": fit([str(HUGE), "1"], Kind.INTEGER),
    "infinite": fit([WHOLE, np.inf], Kind.CONTINUOUS),
    "date as number": fit([DAY, DAY], Kind.INTEGER),
    "date as category": fit([DAY, DAY], Kind.NOMINAL),
    "time off the step": fit(pa.array([864286428642], pa.timestamp("us")), Kind.DATE, step=DateStep.DAY),
    "time too fine": fit(pa.array([864286428642], pa.timestamp("ns")), Kind.DATE),
    "time too late": lambda: Schema.infer(pa.table({"c": pa.array([8642 * 10**12], pa.timestamp("s"))})),
    "inferred infinite": lambda: Schema.infer(pa.table({"c": [WHOLE, np.inf]})),
    "inferred type": lambda: Schema.infer(pa.table({"c": [[TEXT]]})),
    "too many categories": fit([f"{TEXT}-{row}" for row in range(300)] * 2, Kind.NOMINAL),
    "encoded unknown category": encode(["a", "b", "a"], [TEXT]),
    "encoded text": encode([1, 2, 5], [TEXT]),
    "encoded outside": encode([1, 2, 5], [WHOLE]),
    "encoded off the step": encode([1.5, 2.5, 9000.0], [NUMBER]),
    "encoded huge": encode([1, 2, 5], [HUGE]),
    "encoded type": encode([1, 2, 5], [[WHOLE]]),
    "field with crossed bounds": lambda: Field("c", Kind.INTEGER, domain=Domain(low=WHOLE, high=1)),
    "field with doubled categories": lambda: Field("c", Kind.NOMINAL, domain=Domain(categories=(TEXT, TEXT))),
}


@pytest.mark.parametrize("name", TRIGGERS)
def test_an_error_quotes_no_cell(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        TRIGGERS[name]()
    error = caught.value
    assert "'c'" in str(error)
    shown = "".join(traceback.format_exception(error, limit=0)) + repr(error) + repr(error.args)
    assert not [token for token in TOKENS if token in shown]
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__


def test_no_repr_holds_a_cell() -> None:
    frame = pd.DataFrame({"c": [TEXT, "a", "a"], "n": [NUMBER, 1.0, 2.5], "d": [DAY, DAY, datetime.date(2020, 1, 1)]})
    table, origin = to_arrow(frame)
    schema = Schema.infer(table).with_role(Role.CONFIDENTIAL, "c")
    codec = Codec.fit(table, schema)
    records = codec.encode(table)
    things = [
        origin,
        schema,
        *schema,
        *(field.domain for field in schema),
        codec,
        codec.schema,
        *codec.columns,
        records,
    ]
    things += [column.grid for column in codec.columns]
    shown = "".join(f"{thing!r}{thing!s}" for thing in things)
    assert not [token for token in TOKENS if token in shown]
