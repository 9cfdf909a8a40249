"""Tokens: signed, single, and of no use to who reads the database."""

from __future__ import annotations

import secrets
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.survey.questions import KEY_BYTES, TokenError, check_token, mark, mint, seal

KEY = secrets.token_bytes(KEY_BYTES)
LETTERS = string.ascii_letters + string.digits + "-_"


def test_a_minted_token_is_known_and_no_two_are_alike() -> None:
    tokens = list(mint(KEY, 500))
    assert len({check_token(KEY, token) for token in tokens}) == 500


def test_the_token_of_another_survey_is_refused() -> None:
    token = next(mint(secrets.token_bytes(KEY_BYTES), 1))
    with pytest.raises(TokenError, match="not a token of this survey"):
        check_token(KEY, token)


@given(st.integers(0, 42), st.sampled_from(LETTERS))
def test_no_letter_of_a_token_can_be_changed(place: int, letter: str) -> None:
    token = next(mint(KEY, 1))
    changed = token[:place] + letter + token[place + 1 :]
    if changed != token:
        with pytest.raises(TokenError):
            check_token(KEY, changed)


@given(st.text(max_size=60))
def test_any_other_text_is_refused_without_being_quoted(text: str) -> None:
    with pytest.raises(TokenError) as refusal:
        check_token(KEY, text)
    assert len(text) < 5 or text not in str(refusal.value)


def test_a_seal_tells_answers_and_tokens_apart() -> None:
    one, two = (check_token(KEY, token) for token in mint(KEY, 2))
    assert seal(one, (1, 23)) == seal(one, (1, 23))
    assert (
        len({seal(one, (1, 23)), seal(one, (12, 3)), seal(one, (123,)), seal(one, (-1, 23)), seal(two, (1, 23))}) == 5
    )


def test_what_is_stored_of_a_token_does_not_hold_it() -> None:
    data = check_token(KEY, next(mint(KEY, 1)))
    for stored in (mark(data), seal(data, (5,))):
        assert data[:8] not in stored
        assert data[16:24] not in stored
