"""Private set intersection: owners of columns find the keys that all have, and none learns a key that it lacks.

Each owner hides its keys by a secret exponent on Curve25519, and the hidden keys go from owner to owner until all
exponents are on them, in whatever order. Equal keys are then equal, and nobody can test a guess alone [Meadows 1986;
Huberman, Franklin and Hogg 1999].
"""

from __future__ import annotations

import hmac
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from numpy.typing import NDArray

from sfumato.core.documents import MOST_BYTES, Unparsable, from_json, write_json
from sfumato.core.errors import TableError
from sfumato.parties.channel import PartyError
from sfumato.parties.ledger import Leak
from sfumato.parties.session import Session
from sfumato.parties.vertical import key_text

__all__ = ["LEAKS", "KeyCounts", "intersect_keys"]

_POINT = 32  # bytes
_MOST_KEYS = 2**22

LEAKS = {
    leak.label: leak
    for leak in (
        Leak.message(
            "key counts", "how many keys an owner has, and how many cells of the key column are missing or repeated"
        ),
        Leak.message(
            "hidden keys",
            "Keys under secret exponents. With those of all owners on them each owner learns how many keys every two "
            "have in common, and which of its own keys the others have; of a key that it lacks it learns nothing.",
        ),
    )
}
"""What `intersect_keys` shows, by label."""


@dataclass(frozen=True)
class KeyCounts:
    """Keys of an owner that can be matched, and cells of its key column that are missing or repeat another."""

    keys: int
    missing: int
    repeated: int


def intersect_keys(session: Session, cells: pa.ChunkedArray, least: float) -> tuple[NDArray[np.int64], list[KeyCounts]]:
    """Rows of the keys that all owners have, in one order at all, and the counts of all owners.

    All parties call it together. Rows whose key is missing or stands twice are left out.

    Parameters
    ----------
    cells : Arrow column
    least : float
        Share of each owner's keys that must be common, to which all owners have agreed.

    Raises
    ------
    TableError
        At every party, if fewer are common; no row is matched then.
    """
    session.phase("matching keys")
    texts = [key_text(cell) for cell in cells.to_pylist()]
    times = Counter(text for text in texts if text)
    rows = np.array([row for row, text in enumerate(texts) if text and times[text] == 1], dtype=np.int64)
    rows = session.private_rng("order of the keys").permutation(rows)
    missing = sum(not text for text in texts)
    counts = _swap_counts(session, KeyCounts(len(rows), missing, len(texts) - missing - len(rows)))
    hidden = _hide_keys(session, [texts[row] or "" for row in rows.tolist()], [each.keys for each in counts])
    common = set.intersection(*map(set, hidden))
    few = [name for name, each in zip(session.names, counts, strict=True) if len(common) < max(1.0, least * each.keys)]
    if few:
        told = ", ".join(f"{name!r} {each.keys}" for name, each in zip(session.names, counts, strict=True))
        raise TableError(
            f"the parties have {len(common)} keys in common, of {told}, and agreed on at least {least:.0%} of each; "
            "use the same records, with keys written alike, or agree on a smaller share"
        )
    place = dict(zip(hidden[session.rank], rows.tolist(), strict=True))
    return np.array([place[point] for point in sorted(common)], dtype=np.int64), counts


def _swap_counts(session: Session, own: KeyCounts) -> list[KeyCounts]:
    found = []
    for owner, name in enumerate(session.names):
        payload = write_json(own).encode() if owner == session.rank else None
        try:
            each = from_json(KeyCounts, session.broadcast(payload, owner, "key counts", 3), most=MOST_BYTES)
        except Unparsable:
            raise PartyError(f"party {name!r} sent no counts that can be read; start all parties again") from None
        if not all(0 <= count <= _MOST_KEYS for count in (each.keys, each.missing, each.repeated)):
            raise PartyError(f"party {name!r} sent counts of keys that cannot be; start all parties again")
        found.append(each)
    return found


def _hide_keys(session: Session, texts: list[str], counts: list[int]) -> list[list[bytes]]:
    """Keys of each owner with the exponents of all on them, each in the order that its owner drew."""
    salt = session.secret("secret of the keys")
    exponent = X25519PrivateKey.from_private_bytes(session.private_rng("exponent of the keys").bytes(_POINT))
    points = [hmac.digest(salt, b"key " + text.encode(), "sha256") for text in texts]
    current: list[list[bytes]] = [points if owner == session.rank else [] for owner in range(session.parties)]
    for hop in range(session.parties):
        for owner in range(session.parties):
            sender = (owner + hop) % session.parties
            payload = _raised(exponent, current[owner], session) if sender == session.rank else None
            payload = session.broadcast(payload, sender, "hidden keys", counts[owner])
            current[owner] = [payload[start : start + _POINT] for start in range(0, len(payload), _POINT)]
            if len(payload) != _POINT * counts[owner] or len(set(current[owner])) < counts[owner]:
                raise PartyError(
                    f"party {session.names[sender]!r} sent other hidden keys than it was given; start all parties again"
                )
    return current


def _raised(exponent: X25519PrivateKey, points: list[bytes], session: Session) -> bytes:
    try:
        return b"".join(exponent.exchange(X25519PublicKey.from_public_bytes(point)) for point in points)
    except ValueError:  # a point of small order, which hides nothing
        raise PartyError(f"a party sent {session.names[session.rank]!r} a key that is no point; start again") from None
