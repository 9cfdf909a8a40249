"""The attack on the rounds of K-means against the protocol itself: opened centres give rows away, hidden ones none."""

from __future__ import annotations

import pytest

from benchmarks.parties.rows import Case, attack, attack_rounded, watch_rows
from benchmarks.parties.tables import coordinates
from sfumato.parties.horizontal import leaks

RUNS = 4


@pytest.fixture(scope="module")
def runs() -> list[dict[str, float]]:
    table = coordinates("mixed", rows=400)
    return [attack(table, watch_rows(table, Case("mixed", 3, 8), seed)) for seed in range(RUNS)]


def test_opened_centres_give_rows_of_the_others_away_and_the_attacker_knows_which(runs: list[dict[str, float]]) -> None:
    claimed, right = (sum(run[f"each round: {what}"] for run in runs) for what in ("claimed", "right"))
    assert right > 10  # about 80 are usual
    assert right > 0.9 * claimed


def test_centres_rounded_as_the_protocol_does_still_give_rows_away() -> None:
    table = coordinates("mixed", rows=400)
    found = [attack_rounded(watch_rows(table, Case("mixed", 3, 8), seed, fine=False)) for seed in range(RUNS)]
    claimed, right = (sum(run[f"rounded: {what}"] for run in found) for what in ("claimed", "right"))
    assert right > 3  # about 20 are usual
    assert right > 0.8 * claimed
    assert all(run["rounded: off"] < 0.3 for run in found if run["rounded: right"])


def test_guesses_of_hidden_centres_give_no_row_away(runs: list[dict[str, float]]) -> None:
    assert sum(run["hidden: claimed"] for run in runs) > 10
    assert sum(run["hidden: right"] for run in runs) == 0


def test_guesses_of_hidden_centres_are_better_than_means_of_the_own_rows(runs: list[dict[str, float]]) -> None:
    guessed, plain = (sum(run[f"hidden: {what} off"] for run in runs) for what in ("centres", "own means"))
    assert guessed < plain


def test_hidden_centres_are_not_among_what_the_protocol_declares() -> None:
    assert "centres" in leaks("each")
    assert "centres" not in leaks("last")
