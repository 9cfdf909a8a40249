"""Transactions of very many items: what is usual for them, what is refused, and a release that verifies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import OptionError
from sfumato.publish import verify_rows
from sfumato.transactions import facts
from sfumato.transactions.facts import TransactionsRandomized, TransactionsReleased
from sfumato.transactions.verb import TransactionSource


def shop(items: int, transactions: int = 270) -> TransactionSource:
    rng = np.random.default_rng(1)
    lists = [sorted({f"item {place}" for place in rng.integers(0, items, 3)}) for _ in range(transactions)]
    return sf.transactions(pa.table({"items": lists}))


@pytest.mark.parametrize(("items", "operator", "insert"), [(200, "flip", 0.1), (3_000, "select-a-size", 0.042)])
def test_what_is_usual_makes_up_at_most_ten_entries_for_each_true_one(
    items: int, operator: str, insert: float, tmp_path: Path
) -> None:
    source = shop(items)
    release = source.randomize(report=False)
    facts = {type(fact): fact for fact in release.certificate.facts}
    told, counted = facts[TransactionsRandomized], facts[TransactionsReleased]
    assert isinstance(told, TransactionsRandomized)
    assert isinstance(counted, TransactionsReleased)
    assert (told.operator, told.chosen) == (operator, True)
    assert told.insert == pytest.approx(insert, rel=0.1)
    assert counted.entries < 12 * len(source.table.transactions.items)
    assert any("This operator is the default" in claim.basis for claim in release.certificate.claims)
    assert release.certificate.parameters["operator"] == "usual"
    folder = release.save(tmp_path / "out") / "release"
    assert sf.verify(folder).holds
    text = (folder / "certificate.json").read_text()
    (folder / "certificate.json").write_text(text.replace('"usual"', '"flip"'))
    assert not sf.verify(folder).holds


def test_an_operator_that_would_make_up_too_much_is_refused_before_it_is_drawn_unless_allowed() -> None:
    told: dict[str, Any] = {"operator": "flip", "insert": 0.5, "report": False}
    with pytest.raises(OptionError, match=r"about \d\d,\d+ random entries would be added .* most_entries=\d\d000$"):
        shop(1_000).randomize(**told, most_entries=50_000)
    with pytest.warns(UserWarning, match="nearly all of them random"):
        shop(1_000).randomize(**told, most_entries=100_000)


def test_many_made_up_entries_are_warned_of_and_verify_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    lists = [sorted({f"item {place}" for place in rng.integers(0, 3_000, 3)}) for _ in range(2_000)]
    with pytest.warns(UserWarning, match="times as many entries, nearly all of them random"):
        release = sf.transactions(pa.table({"items": lists})).randomize(operator="flip", report=False)
    release.save(tmp_path / "out")
    monkeypatch.setattr(verify_rows, "_FREE", 1 << 10)
    monkeypatch.setattr(verify_rows, "_CELL", 1)
    assert sf.verify(tmp_path / "out" / "release").holds
    monkeypatch.setattr(facts, "_BYTES", 0)
    assert not sf.verify(tmp_path / "out" / "release").holds
