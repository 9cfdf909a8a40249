"""What the command says of rare categories and of tails."""

from __future__ import annotations

import pytest

from sfumato.cli.sanitize import rare_words, tail_words
from sfumato.core.facts import RareValues, TailsCoded

GONE = "none that fewer than 5 persons hold is left"


@pytest.mark.parametrize(
    ("fact", "words"),
    [
        (RareValues("pool", 5, 2), GONE),
        (RareValues("lift", 5, 3), GONE),
        (RareValues("pool", 5, 2, 0, ("town",)), f"{GONE}; 1 column without a value that 5 persons hold dropped"),
        (
            RareValues("pool", 5, 2, 0, ("town", "code")),
            f"{GONE}; 2 columns without a value that 5 persons hold dropped",
        ),
        (RareValues("keep", 5, 3), "those that fewer than 5 persons hold are left as they are"),
        (RareValues("pool", 5, 3, 1), "those that fewer than 5 persons hold are left as they are"),
    ],
)
def test_no_count_of_rare_categories_or_cells_is_said(fact: RareValues, words: str) -> None:
    assert rare_words(fact) == f"Rare categories: {words}."


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("code", "coded to random cut-offs"),
        ("smooth", "drawn from a smooth tail"),
        ("keep", "left as they are"),
    ],
)
def test_what_became_of_tails_is_said(method: str, words: str) -> None:
    assert tail_words(TailsCoded(method, 5, 2)) == f"Tails: values beyond those of 5 persons are {words}."
