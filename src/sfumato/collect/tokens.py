"""Tokens: the right to answer once, signed by the survey and known to nobody afterwards.

A token is 16 random bytes and 16 bytes of HMAC-SHA256 over them, written in base64url. The key lies in the survey's
database: whoever can read it there could as well write answers there, so a key pair would protect nothing more. Of a
used token two values stay: its *mark*, a hash by which it is known again, and the *seal* of its answer, which only the
token itself can open (see `seal`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Iterator, Sequence

from sfumato.core.errors import BadInput

__all__ = ["KEY_BYTES", "TokenError", "check_token", "mark", "mint", "seal"]

KEY_BYTES = 32
_BYTES = 16  # of either half
_LETTERS = 43  # of 32 bytes in base64url without padding


class TokenError(BadInput):
    """A token that this survey did not sign."""


def mint(key: bytes, count: int) -> Iterator[str]:
    """Make fresh tokens; their order means nothing, and none is kept.

    Examples
    --------
    >>> key = bytes(32)
    >>> tokens = list(mint(key, 3))
    >>> len(set(tokens)), {len(token) for token in tokens}
    (3, {43})
    >>> check_token(key, tokens[0]) == base64.urlsafe_b64decode(tokens[0] + "=")
    True
    """
    for _ in range(count):
        number = secrets.token_bytes(_BYTES)
        yield base64.urlsafe_b64encode(number + _signature(key, number)).decode("ascii").rstrip("=")


def check_token(key: bytes, token: str) -> bytes:
    """Bytes of a token that this key signed.

    Raises
    ------
    TokenError
        For any other text; it does not say what is wrong with it.
    """
    try:
        data = base64.b64decode(token + "=", altchars=b"-_", validate=True) if len(token) == _LETTERS else b""
    except (binascii.Error, ValueError):
        data = b""
    number = data[:_BYTES]
    known = hmac.compare_digest(data[_BYTES:], _signature(key, number))
    # the last letter holds two bits that mean nothing: only one way to write a token counts
    if not known or base64.urlsafe_b64encode(data).decode("ascii") != token + "=":
        raise TokenError("this is not a token of this survey; copy it again, all 43 letters of it")
    return data


def mark(token: bytes) -> bytes:
    """Hash a token: by it the survey knows that the token was used, without keeping the token."""
    return hashlib.sha256(b"sfumato-token-mark-v1\0" + token).digest()


def seal(token: bytes, codes: Sequence[int]) -> bytes:
    """Bind an answer to its token so that a repeated answer is known as the same one.

    The key is the token, which is not stored: the database alone does not say which answer belongs to which mark.
    Whoever kept the list of tokens can try out the few possible answers.
    """
    text = ",".join(map(str, codes)).encode("ascii")
    return hmac.digest(token, b"sfumato-answer-seal-v1\0" + text, "sha256")[:_BYTES]


def _signature(key: bytes, number: bytes) -> bytes:
    return hmac.digest(key, b"sfumato-token-v1\0" + number, "sha256")[:_BYTES]
