"""Records of several owners brought into one order by their keys, with no key sent."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import SfumatoError, TableError
from sfumato.parties.channel import PartyError
from sfumato.parties.session import Session
from sfumato.parties.vertical import LEAKS, align_keys, key_texts
from tests.examples import examples
from tests.parties.conftest import Together
from tests.parties.owners import NAMES


def aligned(together: Together, keys: list[Any], **options: Any) -> list[list[int]]:
    def play(session: Session, rank: int) -> list[int]:
        order: list[int] = align_keys(session, keys[rank]).tolist()
        return order

    return together(play, NAMES[: len(keys)], LEAKS, **options)


@examples(30)
@given(
    st.lists(st.text(max_size=8).filter(str.strip), unique_by=lambda text: key_texts([text])[0], max_size=12),
    st.randoms(),
)
def test_all_owners_get_their_rows_in_the_same_order_of_keys(together: Together, keys: list[str], chance: Any) -> None:
    own = [keys, chance.sample(keys, len(keys)), chance.sample(keys, len(keys))]
    orders = aligned(together, own)
    first, *others = [[key_texts(mine)[place] for place in order] for mine, order in zip(own, orders, strict=True)]
    assert sorted(first) == sorted(key_texts(keys))
    assert all(other == first for other in others)


def test_keys_that_are_stored_differently_are_written_alike(together: Together) -> None:
    day = datetime.date(2024, 2, 29)
    own = [
        pa.chunked_array([pa.array([12, 7, 400], pa.int32())]),
        ["400", "12", "7"],
        pa.array(["7", "400", "12"]).dictionary_encode(),
    ]
    orders = aligned(together, own)
    found = [[key_texts(mine)[place] for place in order] for mine, order in zip(own, orders, strict=True)]
    assert found[0] == found[1] == found[2]
    assert key_texts(["Zu\u0308rich"]) == key_texts(["Z\u00fcrich"])
    assert key_texts(pa.array([day])) == key_texts(pa.array([datetime.datetime(2024, 2, 29)])) == ["2024-02-29"]
    assert key_texts([np.int64(5), datetime.datetime(2024, 2, 29, 7, 30)]) == ["5", "2024-02-29T07:30:00"]


def test_the_order_is_new_in_every_run_and_the_same_in_a_dry_run(together: Together) -> None:
    keys = [str(number) for number in range(30)]
    first, again = aligned(together, [keys, keys]), aligned(together, [keys, keys])
    assert first[0] == first[1]
    assert first != again  # the same only once in 30! runs
    assert first[0] != list(range(30))
    assert aligned(together, [keys, keys], seed=4) == aligned(together, [keys, keys], seed=4)


def test_different_keys_are_counted_at_every_party_and_none_is_shown(together: Together) -> None:
    own = [["k-one", "k-two", "k-three"], ["k-two", "k-three", "k-four", "k-five"], ["k-three", "k-two"]]

    def play(session: Session, rank: int) -> str:
        with pytest.raises(TableError) as caught:
            align_keys(session, own[rank])
        return str(caught.value)

    texts = together(play, NAMES[:3], LEAKS)
    assert len(set(texts)) == 1
    assert "2 keys in common" in texts[0]
    assert "'ann' has 1 that another party lacks and lacks 2" in texts[0]
    assert "'bob' has 2 that another party lacks and lacks 1" in texts[0]
    assert "'cat' has 0 that another party lacks and lacks 3" in texts[0]
    assert not any(key in texts[0] for keys in own for key in keys)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ([1, None, None], "2 missing cells"),
        (["a", "a", "b", "a"], "2 cells of the key column repeat"),
        ([7, "7"], "1 cells of the key column repeat"),
        (pa.array([1.0, 2.0]), "2 keys are neither whole numbers nor text nor dates"),
        ([True, False], "2 keys are neither"),
        ([datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)], "1 keys are neither"),
    ],
)
def test_keys_that_cannot_be_used_are_refused_with_a_count(keys: Any, words: str) -> None:
    with pytest.raises(TableError, match=words):
        key_texts(keys)


def test_a_party_with_unusable_keys_ends_the_run_at_all_others(together: Together) -> None:
    heard: list[SfumatoError] = []

    def play(session: Session, rank: int) -> None:
        try:
            align_keys(session, [1, 2] if rank else [1, 1])
        except PartyError as error:
            heard.append(error)
            raise

    with pytest.raises(TableError, match="1 cells"):
        together(play, NAMES[:3], LEAKS)
    assert len(heard) == 2
    assert all("'ann' gave up" in str(error) for error in heard)


def test_equal_keys_tell_no_hash_of_a_key(together: Together) -> None:
    keys = [[3, 1, 2], [2, 3, 1]]
    told: list[bytes] = []

    def play(session: Session, rank: int) -> list[str]:
        tell = session.broadcast

        def listen(payload: bytes | None, owner: int, label: str, count: int) -> bytes:
            told.append(tell(payload, owner, label, count))
            return told[-1]

        session.broadcast = listen  # type: ignore[method-assign]
        align_keys(session, keys[rank])
        return [entry.label for entry in session.transcript.entries if entry.action == "told"]

    assert together(play, NAMES[:2], LEAKS) == [["digest of keys"] * 2] * 2
    assert {len(each) for each in told} == {40}  # a count and one digest


@pytest.mark.parametrize("together", ["plain", pytest.param("cheetah", marks=pytest.mark.slow)], indirect=True)
def test_aligning_needs_no_engine(together: Together) -> None:
    def play(session: Session, rank: int) -> tuple[list[int], list[str]]:
        order = align_keys(session, [5, 6] if rank else [6, 5]).tolist()
        return order, [entry.action for entry in session.transcript.entries]

    (here, actions), (there, _) = together(play, NAMES[:2], LEAKS)
    assert here == there[::-1]
    assert "engine" not in actions


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_text_is_a_missing_key(empty: str) -> None:
    with pytest.raises(TableError, match="1 missing"):
        key_texts(["A", empty])


def test_blanks_around_a_key_are_no_part_of_it() -> None:
    assert key_texts([" A-7", "B"]) == ["A-7", "B"]
