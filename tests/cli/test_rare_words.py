"""The lines of the command on rare categories and on extreme values."""

from __future__ import annotations

import pytest

from sfumato.core.facts import Context
from sfumato.tables.facts import RareValues, TailsCoded

GONE = ": none is released"


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (RareValues("pool", 5, 2), GONE),
        (RareValues("lift", 5, 3), GONE),
        (RareValues("pool", 5, 2, 0, ("town",)), f"{GONE}; 1 column with rare categories only dropped"),
        (
            RareValues("pool", 5, 2, 0, ("town", "code")),
            f"{GONE}; 2 columns with rare categories only dropped",
        ),
        (RareValues("keep", 5, 3), " are released as they are"),
        (RareValues("pool", 5, 3, 1), " are released as they are"),
    ],
)
def test_no_count_of_rare_categories_or_cells_is_printed(fact: RareValues, words: str) -> None:
    assert fact.treatment == f"Rare categories (fewer than 5 persons){words}."


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("code", "coded to random cut-offs"),
        ("smooth", "drawn from a smooth tail"),
        ("keep", "released as they are"),
    ],
)
def test_the_treatment_of_extreme_values_is_printed(method: str, words: str) -> None:
    assert TailsCoded(method, 5, 2).summary(Context(()), "csv")[1] == f"Extreme values (fewer than 5 persons): {words}."
