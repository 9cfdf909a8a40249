"""k, l and t over the columns that an outsider knows, of any table."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.assess.risk.uniqueness import class_findings
from sfumato.assess.study import StudyDetails, study_of
from sfumato.core.errors import OptionError
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Schema
from tests.examples import examples


def people(seed: int, rows: int = 80) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "town": [f"t{place}" for place in rng.integers(0, 3, rows)],
            "sex": [("f", "m")[place] for place in rng.integers(0, 2, rows)],
            "age": rng.integers(20, 24, rows),
            "ill": [("no", "yes", "maybe")[place] for place in rng.integers(0, 3, rows)],
        }
    )


def found(table: pa.Table, released: pa.Table, known: list[str], target: str | None = None) -> dict[str, Any]:
    codec = Codec.fit(table, Schema.infer(table, target=target))
    study = study_of(
        table, released, codec, details=StudyDetails(quasi_identifiers=known), rng=np.random.default_rng(1)
    )
    return {finding.name: finding for finding in class_findings(study)}


@given(seed=st.integers(0, 10_000))
@examples(30)
def test_k_l_and_t_are_those_that_counting_by_hand_gives(seed: int) -> None:
    table, released = people(seed), people(seed + 1)
    numbers = found(table, released, ["town", "sex"], "ill")
    classes = defaultdict(list)
    for row in released.to_pylist():
        classes[row["town"], row["sex"]].append(row["ill"])
    whole = Counter(released.column("ill").to_pylist())
    far = max(
        sum(abs(Counter(members)[name] / len(members) - count / 80) for name, count in whole.items()) / 2
        for members in classes.values()
    )
    assert numbers["equivalence-class-smallest"].value == min(map(len, classes.values()))
    assert numbers["equivalence-class-diversity"].value == min(len(set(members)) for members in classes.values())
    assert numbers["equivalence-class-closeness"].value == pytest.approx(far)
    assert numbers["equivalence-class-smallest"].baseline == min(
        Counter((row["town"], row["sex"]) for row in table.to_pylist()).values()
    )


def test_without_a_target_the_worst_of_all_other_columns_is_shown() -> None:
    table = people(3)
    alike = pa.table({**{name: table.column(name) for name in ("town", "sex", "ill")}, "age": np.full(80, 21)})
    numbers = found(table, alike, ["town"])
    assert numbers["equivalence-class-diversity"].value == 1.0
    every = found(table, table, table.column_names)
    assert every["equivalence-class-diversity"].status == "not-run"


def test_evaluate_takes_known_columns_of_a_table_of_any_make() -> None:
    table = people(5)
    report = sf.evaluate(table, people(6), quasi_identifiers=["town", "sex"], target="ill", seed=1, time_limit=1)
    names = {finding.name for finding in report.findings}
    assert {"equivalence-class-smallest", "equivalence-class-diversity", "equivalence-class-closeness"} <= names
    with pytest.raises(OptionError, match="no column 'height' that is measured"):
        sf.evaluate(table, people(6), quasi_identifiers=["height"], seed=1)
