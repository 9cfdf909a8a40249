"""The same records in the same order at owners of different columns: keys compared as HMACs under a common secret.

No key is sent. Whoever has the secret of the run, that is every party, could test guesses of keys against HMACs that
another told; they are told only where the sets of keys differ, to count by how much. Private set intersection would not
even allow that.
"""

from __future__ import annotations

import datetime
import hmac
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import TableError
from sfumato.engines.parties.ledger import Leak
from sfumato.engines.parties.ports import PartyError
from sfumato.engines.parties.session import Session

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["LEAKS", "align_keys", "key_texts"]

_HASH = 32  # bytes

LEAKS: dict[str, Leak] = {
    leak.label: leak
    for leak in (
        Leak.told(
            "digest of keys",
            "Each owner tells the number of its keys and one digest of all of them under a secret of the run: all see "
            "whether the owners have the same records.",
        ),
        Leak.told(
            "keyed hashes",
            "Only where the owners have different records, and then the run ends: each tells the hashes of its keys "
            "under a secret that all parties have, so that a party can test guesses of another's keys.",
        ),
    )
}
"""What aligning shows."""


def align_keys(session: Session, keys: Sequence[Any] | pa.ChunkedArray | pa.Array) -> NDArray[np.int64]:
    """Order that brings this owner's rows into the order of all: ``rows[order]``.

    All parties call it together. The order is that of the keys' HMACs, so it tells nothing of the keys.

    Parameters
    ----------
    keys : sequence or Arrow column
        One key a row: whole numbers, text or dates, none missing and none twice.

    Raises
    ------
    TableError
        At this party for keys that cannot be used; at every party where the keys differ.
    """
    texts = key_texts(keys)
    session.phase("aligning records")
    secret = session.secret("secret of the keys")
    marks = [hmac.digest(secret, b"key " + text.encode(), "sha256") for text in texts]
    order = sorted(range(len(marks)), key=marks.__getitem__)
    ordered = b"".join(marks[row] for row in order)
    own = len(marks).to_bytes(8, "little") + hmac.digest(secret, b"all keys" + ordered, "sha256")
    told = [
        session.tell(own if owner == session.rank else None, owner, "digest of keys", 1)
        for owner in range(session.parties)
    ]
    if len(set(told)) > 1:
        _refuse_different(session, ordered, [int.from_bytes(each[:8], "little") for each in told])
    return np.array(order, dtype=np.int64)


def key_texts(keys: Sequence[Any] | pa.ChunkedArray | pa.Array) -> list[str]:
    """Write keys so that owners who store them differently write them alike.

    Whole numbers in decimal, text in the Unicode form NFC without blanks around it, dates as in ISO 8601 and midnight
    without its hours.

    Raises
    ------
    TableError
        With counts, for missing keys, keys that stand twice, and kinds that no two owners would surely write alike.

    Examples
    --------
    >>> key_texts([7, "A-7", datetime.date(2024, 2, 29)])
    ['7', 'A-7', '2024-02-29']
    """
    cells = keys.to_pylist() if hasattr(keys, "to_pylist") else list(keys)
    missing = sum(cell is None or (isinstance(cell, str) and not cell.strip()) for cell in cells)
    if missing:
        raise TableError(f"the key column has {missing} missing cells; give every record a key, or leave it out")
    texts = [_text(cell) for cell in cells]
    unusable = sum(text is None for text in texts)
    if unusable:
        raise TableError(
            f"{unusable} keys are neither whole numbers nor text nor dates without a time zone; write the key column "
            "as text, alike at all parties"
        )
    known = [text for text in texts if text is not None]
    twice = len(known) - len(set(known))
    if twice:
        raise TableError(f"{twice} cells of the key column repeat a key that stands above; bring each record once")
    return known


def _text(cell: Any) -> str | None:
    if isinstance(cell, str):
        return unicodedata.normalize("NFC", cell.strip())
    if isinstance(cell, int | np.integer) and not isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, datetime.datetime):
        if cell.tzinfo is not None:
            return None
        return cell.date().isoformat() if cell.time() == datetime.time() else cell.isoformat()
    return cell.isoformat() if isinstance(cell, datetime.date) else None


def _refuse_different(session: Session, ordered: bytes, counts: list[int]) -> None:
    """Count at every party how the keys differ, and say so."""
    sets = []
    for owner, count in enumerate(counts):
        told = session.tell(ordered if owner == session.rank else None, owner, "keyed hashes", count)
        if len(told) != _HASH * count:
            raise PartyError(
                f"party {session.names[owner]!r} told {len(told)} bytes of keys where {_HASH * count} were due; start "
                "all parties again"
            )
        sets.append({told[place : place + _HASH] for place in range(0, len(told), _HASH)})
    common, every = set.intersection(*sets), set.union(*sets)
    found = ", ".join(
        f"{name!r} has {len(own - common)} that another party lacks and lacks {len(every - own)} that another has"
        for name, own in zip(session.names, sets, strict=True)
    )
    raise TableError(
        f"the parties have {len(common)} keys in common and others that differ: {found}; bring the same records at all "
        "parties, with keys written alike"
    )
