"""Transcript and ledger of a joint run: what each party saw, compared with what the protocol declares.

All parties take every step together, so all write the same transcript: every opened value, every sum, every message,
every share; never a value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.core.documents import plain, write_json
from sfumato.core.errors import PrivacyRefusal

__all__ = ["ACTIONS", "Entry", "Leak", "Ledger", "Transcript", "check", "draw_ledger", "refuse_undeclared"]

ACTIONS = ("opened", "sum", "told", "tossed", "shared", "engine")
"""What an entry can be; the first four are seen in the clear."""

Shape = tuple[int, ...]

_SHOWN = ("opened", "sum", "told")  # in the clear, and about data
_TOSSED = "randomness that all parties have alike and that contains no information on data"
_SHARED = {
    "shared": "numbers of one owner, split in two: neither half says anything of them",
    "engine": "numbers that stayed hidden while they were computed with",
}
_NUMBERED = re.compile(r"(.*\D)(\d+)")
_HOLDERS = 2  # a share that only one party held would be the number itself
_REPORT = "nothing is released. Please report this as a defect"


@dataclass(frozen=True)
class Leak:
    """One kind of value that a protocol declares to open."""

    label: str  # the name under which the protocol opens it
    action: str  # {"opened", "sum", "told"}
    to: str  # {"all", "owner"}: who sees it: every party, or the one whom it concerns
    what: str  # for people: what is seen and what that means
    implied: bool = False  # whether it follows from other openings anyway

    @classmethod
    def message(cls, label: str, what: str, *, implied: bool = False) -> Leak:
        """Numbers that an owner sends to all."""
        return cls(label, "told", "all", what, implied)

    @classmethod
    def sum(cls, label: str, what: str, *, implied: bool = False) -> Leak:
        """A sum over all owners, which all see."""
        return cls(label, "sum", "all", what, implied)

    @classmethod
    def opened(cls, label: str, what: str, *, to: str = "all") -> Leak:
        """What is opened, to all or to the one whom it concerns."""
        return cls(label, "opened", to, what)


@dataclass(frozen=True)
class Entry:
    """One step of a run."""

    number: int  # place in the run, from 0
    phase: str  # what the protocol was doing, such as ``"round 3"``
    action: str  # one of `ACTIONS`
    label: str
    shape: Shape  # of the numbers; (count,) of a message
    # parties that saw it: in the clear, or as a share where the action is ``"shared"`` or ``"engine"``
    to: tuple[str, ...]
    owner: str | None = None  # whose numbers they are, where they are one party's


@dataclass(repr=False)
class Transcript:
    """The steps of a run so far."""

    keep: bool = False  # keep opened values in memory, beside the entries: for tests and attacks, never for a release
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
        shown = f"{label!r} ({action}) to {len(to)} of {parties} parties and does not declare it"
    elif leak.to == "owner" and len(to) > 1:
        shown = f"{label!r} to {len(to)} parties and declares one"
    else:
        return
    raise PrivacyRefusal(f"the protocol would show {shown}; {_REPORT}")


@dataclass(frozen=True)
class LedgerRow:
    """One kind of value, and who saw it."""

    label: str  # its name in the protocol
    what: str  # what it is, for people
    action: str  # one of `sfumato.parties.ledger.ACTIONS`
    clear: bool  # whether it was seen in the clear; else it was held as shares
    to: tuple[str, ...]  # who saw it
    owner: str | None  # whose it is, where it is one party's
    # numbers, times: how many numbers, over how many steps
    numbers: int
    times: int
    phases: tuple[str, ...]  # when, in the order of the run
    implied: bool = False  # whether it follows from other openings anyway


@dataclass(frozen=True)
class Ledger:
    """All rows of a run, and what was declared and did not occur."""

    rows: tuple[LedgerRow, ...]  # what was seen in the clear first
    unused: tuple[Leak, ...] = ()  # declared openings that were not made
    traffic: Mapping[str, Mapping[str, int]] | None = None  # bytes and messages that each party sent, by its name

    @property
    def openings(self) -> tuple[LedgerRow, ...]:
        """Openings in the clear that contain information on data."""
        return tuple(row for row in self.rows if row.action in _SHOWN)

    def to_json(self) -> str:
        """Write the ledger as JSON; the same at every party."""
        seen, unused, sent = plain(self.rows), plain(self.unused), plain(self.traffic or {})
        return write_json({"format": 1, "seen": seen, "declared_and_not_seen": unused, "sent": sent}, "pretty")

    def to_table(self) -> str:
        """Lay out what was seen as a table of text, and below it what the names of the openings mean.

        Examples
        --------
        >>> seen = Transcript()
        >>> _ = seen.add("round 1", "opened", "clusters", (100,), ("a", "b"))
        >>> _ = seen.add("round 2", "opened", "clusters", (100,), ("a", "b"))
        >>> declared = {"clusters": Leak("clusters", "opened", "all", "the cluster of each row")}
        >>> print(draw_ledger(seen, declared).to_table())
        who   saw       how           whose  numbers  times  when
        a, b  clusters  in the clear  all        200      2  round 1 to 2
        <BLANKLINE>
        clusters: the cluster of each row
        """
        head = ("who", "saw", "how", "whose", "numbers", "times", "when")
        lines = [head, *(_line(row) for row in self.rows)]
        widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
        right = {head.index("numbers"), head.index("times")}
        table = [
            "  ".join(
                cell.rjust(size) if place in right else cell.ljust(size)
                for place, (cell, size) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        meanings = dict.fromkeys(f"{row.label}: {row.what}" for row in self.openings)
        return "\n".join([*table, *([""] if meanings else []), *meanings])


def draw_ledger(
    transcript: Transcript, leaks: Mapping[str, Leak], *, traffic: Mapping[str, Mapping[str, int]] | None = None
) -> Ledger:
    """Make the ledger of a run: steps of one kind, with one audience, are one row.

    Parameters
    ----------
    leaks : mapping of str to Leak
        What the protocol declares to show.
    traffic : mapping, optional
        Bytes and messages that each party sent, by its name.
    """
    kinds: dict[tuple[str, str, tuple[str, ...], str | None], list[Entry]] = {}
    for entry in transcript.entries:
        kinds.setdefault((entry.action, entry.label, entry.to, entry.owner), []).append(entry)
    rows = [_row(entries, leaks.get(entries[0].label)) for entries in kinds.values()]
    rows.sort(key=lambda row: (row.action not in _SHOWN, not row.clear))  # stable: else in the order of the run
    seen = {entry.label for entry in transcript.entries if entry.action in _SHOWN}
    return Ledger(tuple(rows), tuple(leak for label, leak in leaks.items() if label not in seen), traffic)


def check(transcript: Transcript, leaks: Mapping[str, Leak]) -> None:
    """Compare what was written down with what the protocol declares.

    A session refuses before it sends; this is the second look, at what did happen.

    Raises
    ------
    PrivacyRefusal
        If anything was shown that is not declared, or to more parties than declared, or a share had one holder.
    """
    for entry in transcript.entries:
        where = f"step {entry.number} ({entry.phase})"
        if entry.action not in ACTIONS:
            raise PrivacyRefusal(f"{where} did something that the ledger has no word for; {_REPORT}")
        if entry.action in _SHOWN:
            _check_shown(entry, leaks.get(entry.label), where)
        elif entry.action in _SHARED and len(set(entry.to)) < _HOLDERS:
            raise PrivacyRefusal(f"{where} gave {entry.label!r} to one party alone, so it hid nothing; {_REPORT}")


def _check_shown(entry: Entry, leak: Leak | None, where: str) -> None:
    if leak is None or leak.action != entry.action:
        raise PrivacyRefusal(
            f"{where} showed {entry.label!r} ({entry.action}) to {len(entry.to)} parties, and the protocol does not "
            f"declare it; {_REPORT}"
        )
    if leak.to != "all" and len(set(entry.to)) > 1:
        raise PrivacyRefusal(
            f"{where} showed {entry.label!r} to {len(entry.to)} parties, and the protocol declares one; {_REPORT}"
        )


def _row(entries: list[Entry], leak: Leak | None) -> LedgerRow:
    first = entries[0]
    clear = first.action not in _SHARED
    declared = leak is not None and first.action in _SHOWN
    words = {"tossed": _TOSSED, **_SHARED}.get(first.action, "not declared")
    return LedgerRow(
        label=first.label,
        what=leak.what if leak is not None and declared else words,
        action=first.action,
        clear=clear,
        to=first.to,
        owner=first.owner,
        numbers=sum(math.prod(entry.shape) for entry in entries),
        times=len(entries),
        phases=tuple(dict.fromkeys(entry.phase for entry in entries)),
        implied=leak.implied if leak is not None and declared else False,
    )


def _line(row: LedgerRow) -> tuple[str, ...]:
    how = "in the clear" if row.clear else "as a share"
    single = row.to[0] if row.action == "opened" and len(row.to) == 1 else "all"  # what is opened to one is its own
    whose = row.owner or ("nobody's" if row.action == "tossed" else single)
    return (", ".join(row.to), row.label, how, whose, str(row.numbers), str(row.times), _spans(row.phases))


def _spans(phases: Iterable[str]) -> str:
    """Write phases that differ in their number alone as one.

    Examples
    --------
    >>> _spans(["start", "round 1", "round 2", "round 3", "filling 7", "filling 2"])
    'start, round 1 to 3, filling 2 to 7 (2 of them)'
    """
    numbers: dict[str, list[int]] = {}
    for phase in phases:
        match = _NUMBERED.fullmatch(phase)
        found = numbers.setdefault(match[1] if match else phase, [])
        if match:
            found.append(int(match[2]))
    return ", ".join(_span(name, sorted(found)) for name, found in numbers.items())


def _span(name: str, numbers: list[int]) -> str:
    if len(numbers) < 2:
        return f"{name}{numbers[0]}" if numbers else name
    low, high = numbers[0], numbers[-1]
    return f"{name}{low} to {high}" + ("" if high - low + 1 == len(numbers) else f" ({len(numbers)} of them)")
