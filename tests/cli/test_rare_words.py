"""What the command says of rare values: nothing became of them, one or several did."""

from __future__ import annotations

import pytest

from sfumato.cli.sanitize import rare_words
from sfumato.core.facts import RareValues


@pytest.mark.parametrize(
    ("fact", "told"),
    [
        (RareValues("pool", 10, 2), "none; 10 persons hold each category that is left"),
        (
            RareValues("pool", 10, 2, 1, 1, 1, 0, ("town",)),
            "1 category became others (1 cell), 1 column left with less than two dropped, 1 missing cell of fewer than "
            "10 persons took another record's value; 10 persons hold each category that is left",
        ),
        (
            RareValues("lift", 5, 3, 4, 71),
            "4 categories became others (71 cells); 5 persons hold each category that is left",
        ),
        (RareValues("keep", 5, 3, shown=2), "2 categories that fewer than 5 persons hold are left as they are"),
    ],
)
def test_only_what_was_done_is_said(fact: RareValues, told: str) -> None:
    assert rare_words(fact) == f"Rare values: {told}."
