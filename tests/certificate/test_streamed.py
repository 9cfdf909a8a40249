"""Facts of a stream that bear no certificate, and what its epochs say in few and in many."""

from __future__ import annotations

import dataclasses

import pytest

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import Claim, Context
from sfumato.stream.facts import EpochPublished, Maintained
from sfumato.tables.facts import RareValues

KEPT = Maintained("AY05 dynamic maintenance", "strict", 5, 9, 0, 12, 0, 0, 0, 0, 0)
FIRST = EpochPublished(1, 9, 0, 120, 12)


def claims_of(kept: Maintained, *ledger: EpochPublished) -> str:
    return "\n".join(str(each) for each in kept.claims(Context(ledger)) if isinstance(each, Claim))


@pytest.mark.parametrize("epochs", [(), (2,), (1, 3), (2, 1), (1, 1)])
def test_a_ledger_with_gaps_bears_no_certificate(epochs: tuple[int, ...]) -> None:
    ledger = [dataclasses.replace(FIRST, epoch=epoch) for epoch in epochs]
    with pytest.raises(PrivacyRefusal, match=f"ledger of epochs has {len(epochs)} lines with gaps"):
        claims_of(KEPT, *ledger)


def test_a_family_that_left_with_fewer_fresh_records_than_k_bears_no_certificate() -> None:
    hasty = dataclasses.replace(FIRST, epoch=2, fresh=4)
    with pytest.raises(PrivacyRefusal, match="in 1 epochs a family was released with too few new records"):
        claims_of(KEPT, FIRST, hasty)
    assert "at least 5 new records" in claims_of(KEPT, FIRST, dataclasses.replace(hasty, fresh=5))
    assert claims_of(KEPT, FIRST, EpochPublished(2, 0, 9, 120, 0))  # nothing left anew, so nothing was hasty


def test_short_groups_of_a_strict_split_bear_no_certificate_and_the_papers_do() -> None:
    short = dataclasses.replace(KEPT, short=2)
    with pytest.raises(PrivacyRefusal, match="2 groups are smaller than a level inside"):
        claims_of(short, FIRST)
    assert claims_of(dataclasses.replace(short, split="paper"), FIRST)


@pytest.mark.parametrize(
    ("renewed", "repeated", "words"),
    [
        (1, 1, "In epoch 2, 1 family changed and 1 was repeated."),
        (3, 6, "In epoch 2, 3 families changed and 6 were repeated."),
        (0, 9, "In epoch 2, 0 families changed and 9 were repeated."),
    ],
)
def test_an_epoch_is_told_in_one_and_in_many(renewed: int, repeated: int, words: str) -> None:
    told = claims_of(KEPT, FIRST, EpochPublished(2, renewed, repeated, 120, 7 if renewed else 0))
    assert words in told
    assert f"at least {7 if renewed else 12} new records" in told


def test_where_nothing_was_ever_renewed_k_is_the_least_that_could_have_been() -> None:
    assert "at least 5 new records" in claims_of(KEPT, dataclasses.replace(FIRST, renewed=0, repeated=9, fresh=0))


def test_categories_of_which_nothing_is_said_bear_no_certificate() -> None:
    kept = dataclasses.replace(KEPT, category_columns=1)
    with pytest.raises(PrivacyRefusal, match="no fact covers rare categories"):
        claims_of(kept, FIRST)
    assert list(kept.claims(Context((FIRST, RareValues("lift", 5, 1)))))
