"""Sample sizes: more time limit never means fewer, and a time limit that cannot be kept gives the smallest."""

from __future__ import annotations

import dataclasses

import pytest

from sfumato.assess import study as module
from sfumato.assess.study import Sizes, choose_sizes
from sfumato.core.documents import plain


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_slowness", lambda: 1.0)


def test_without_a_time_limit_sizes_are_the_usual_ones() -> None:
    assert choose_sizes(30_000, 50, 14) == Sizes()


def test_more_people_are_attacked_where_that_is_quick_and_never_more_than_for_a_policy() -> None:
    assert choose_sizes(1_000, 10, 10).attempts == Sizes().attempts
    assert choose_sizes(5_000, 10, 10).attempts == choose_sizes(5_000, 10, 10, judged=True).attempts == 10_000
    assert 2_000 < choose_sizes(30_000, 20, 14).attempts < choose_sizes(30_000, 20, 14, judged=True).attempts


def test_a_huge_table_gets_fewer_attempts_but_never_a_handful() -> None:
    assert 100 <= choose_sizes(10_000_000, 100, 20).attempts < Sizes().attempts


def test_more_time_never_means_fewer_rows() -> None:
    chosen = [choose_sizes(30_000, 100, 14, time_limit) for time_limit in (0.1, 10.0, 20.0, 40.0, 100.0, 1e6)]
    for name in ("attempts", "training", "testing", "queries"):
        counts = [getattr(each, name) for each in chosen]
        assert counts == sorted(counts)
    assert chosen[0].attempts < chosen[-1].attempts


def test_a_time_limit_is_kept_by_the_estimate_unless_even_the_least_is_too_much() -> None:
    kept = choose_sizes(30_000, 100, 14, 100.0)
    assert kept.estimate is not None
    assert kept.estimate <= 100.0
    least = choose_sizes(10_000_000, 100, 14, 0.001)
    assert least.estimate is not None
    assert least.estimate > 0.001
    assert least.attempts == 100


def test_sizes_say_time_limit_and_estimate() -> None:
    document = plain(choose_sizes(1000, 5, 5, 60.0))
    assert document["time_limit"] == 60.0
    assert set(document) == {field.name for field in dataclasses.fields(Sizes)}
