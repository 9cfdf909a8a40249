"""What was sent to whom in a joint run: every opened value, every sum, every message, every share; never a value.

All parties take every step together, so all write the same transcript.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.documents import write_json
from sfumato.errors import PrivacyRefusal

__all__ = ["ACTIONS", "Entry", "Leak", "Transcript", "refuse_undeclared"]

ACTIONS = ("opened", "sum", "told", "tossed", "shared", "engine")
"""What an entry can be; the first four are seen in the clear."""

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Leak:
    """One kind of value that a protocol declares to open.

    Parameters
    ----------
    label : str
        The name under which the protocol opens it.
    action : {"opened", "sum", "told"}
    to : {"all", "owner"}
        Who sees it: every party, or the one whom it concerns.
    what : str
        For people: what is seen and what that means.
    implied : bool
        Whether it follows from other openings anyway.
    """

    label: str
    action: str
    to: str
    what: str
    implied: bool = False


@dataclass(frozen=True)
class Entry:
    """One step of a run.

    Parameters
    ----------
    number : int
        Place in the run, from 0.
    phase : str
        What the protocol was doing, such as ``"round 3"``.
    action : str
        One of `ACTIONS`.
    shape : tuple of int
        Of the numbers; (count,) of a message.
    to : tuple of str
        Parties that saw it: in the clear, or as a share where the action is ``"shared"`` or ``"engine"``.
    owner : str or None
        Whose numbers they are, where they are one party's.
    """

    number: int
    phase: str
    action: str
    label: str
    shape: Shape
    to: tuple[str, ...]
    owner: str | None = None


@dataclass(repr=False)
class Transcript:
    """The steps of a run so far.

    Parameters
    ----------
    keep : bool
        Keep opened values in memory, beside the entries: for tests and attacks, never for a release.
    """

    keep: bool = False
    entries: list[Entry] = field(default_factory=list)
    values: dict[int, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Transcript(entries={len(self.entries)})"

    def __len__(self) -> int:
        return len(self.entries)

    def add(
        self, phase: str, action: str, label: str, shape: Shape, to: tuple[str, ...], owner: str | None = None
    ) -> Entry:
        """Write one step down."""
        entry = Entry(len(self.entries), phase, action, label, shape, to, owner)
        self.entries.append(entry)
        return entry

    def to_json_lines(self) -> str:
        """Write the steps as JSON, one a line; the same at every party."""
        return "".join(write_json(entry, "compact", escaped=True) + "\n" for entry in self.entries)


def refuse_undeclared(leaks: Mapping[str, Leak], action: str, label: str, to: tuple[str, ...], parties: int) -> None:
    """Refuse to show what the protocol does not declare, or to more parties than it declares."""
    leak = leaks.get(label)
    if leak is None or leak.action != action:
        raise PrivacyRefusal(
            f"the protocol would show {label!r} ({action}) to {len(to)} of {parties} parties and does not declare it; "
            "nothing is released. Please report this as a defect"
        )
    if leak.to == "owner" and len(to) > 1:
        raise PrivacyRefusal(
            f"the protocol would show {label!r} to {len(to)} parties and declares one; nothing is released. Please "
            "report this as a defect"
        )
