"""The protocols in one process: a thread a party, and an engine that computes in the clear.

It protects nothing. It is there to see what a protocol does: every opened value is kept, and what it gives is what any
engine must give.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import SfumatoError
from sfumato.engines.parties.ledger import Leak
from sfumato.engines.parties.ports import LocalChannel, Operation, PartyError, evaluate, local_channels
from sfumato.engines.parties.session import Session

__all__ = ["PlainEngine", "computing_parties", "plain_sessions", "play_together", "run_together"]

Words = NDArray[np.uint64]
T = TypeVar("T")

_MOST_WAIT = 600.0  # seconds that a thread waits for the others


def computing_parties(engine: str, parties: int) -> tuple[int, ...]:
    """Parties that compute: the first and the last, and for ABY3 the second too."""
    return (0, 1, parties - 1) if engine == "aby3" else (0, parties - 1)


class _Table:
    """Where the threads of one process put their shares and find their results."""

    def __init__(self, computing: tuple[int, ...]) -> None:
        self.barrier = threading.Barrier(len(computing), timeout=_MOST_WAIT)
        self.shares: dict[int, Sequence[Words | None]] = {}
        self.results: dict[int, tuple[Words | None, ...]] = {}


class PlainEngine:
    """An engine in the clear, of one thread; the threads of a run share a table."""

    def __init__(self, table: _Table, rank: int, ends: tuple[int, int]) -> None:
        self.sent = 0
        self._table, self._rank, self._ends = table, rank, ends

    def run(self, operation: Operation, inputs: Sequence[Words | None]) -> tuple[Words | None, ...]:
        """Put shares on the table, compute once all are there, and take the own shares of the results."""
        self._table.shares[self._rank] = inputs
        try:
            self._table.barrier.wait()
            if self._rank == self._ends[0]:
                self._compute(operation)
            self._table.barrier.wait()
        except threading.BrokenBarrierError:
            raise PartyError("another party left the computation; start all parties again") from None
        return self._table.results[self._rank]

    def _compute(self, operation: Operation) -> None:
        first, last = (self._table.shares[end] for end in self._ends)
        clear = [(a + b).view(np.int64) for a, b in zip(first, last, strict=True) if a is not None and b is not None]
        results = [np.ascontiguousarray(result).view(np.uint64) for result in evaluate(operation, clear)]
        masks = [
            np.frombuffer(secrets.token_bytes(result.nbytes), np.uint64).reshape(result.shape) for result in results
        ]
        self._table.results = {rank: (None,) * len(results) for rank in self._table.shares}
        self._table.results[self._ends[0]] = tuple(masks)
        self._table.results[self._ends[1]] = tuple(a - b for a, b in zip(results, masks, strict=True))

    def close(self) -> None:
        """Let go the threads that still wait."""
        self._table.barrier.abort()


PlainSession = tuple[Session, LocalChannel, PlainEngine | None]


def plain_sessions(
    names: tuple[str, ...],
    leaks: Mapping[str, Leak],
    *,
    engine: str = "cheetah",
    seed: int | None = None,
    keep: bool = True,
) -> tuple[PlainSession, ...]:
    """Session, channel and engine of each party of one process."""
    computing = computing_parties(engine, len(names))
    table = _Table(computing)
    made = []
    for channel in local_channels(names, timeout=_MOST_WAIT):
        own = PlainEngine(table, channel.rank, (0, len(names) - 1)) if channel.rank in computing else None
        made.append((Session(channel, own, computing, leaks, seed=seed, keep=keep), channel, own))
    return tuple(made)


def run_together(
    function: Callable[[Session, int], T],
    names: tuple[str, ...],
    leaks: Mapping[str, Leak],
    *,
    engine: str = "cheetah",
    seed: int | None = None,
    keep: bool = True,
) -> list[T]:
    """Run a protocol in one process, a thread a party, and give what each party has in the end.

    Parameters
    ----------
    function : callable
        Takes the session and the rank.
    names : tuple of str
    leaks : mapping of str to Leak
        What the protocol declares to show.
    engine : {"cheetah", "aby3"}
        Which parties take part in computing; the arithmetic is in the clear either way.
    keep : bool
        Keep opened values in the transcripts.

    Raises
    ------
    SfumatoError
        The first that any party raised.
    """
    sessions = plain_sessions(names, leaks, engine=engine, seed=seed, keep=keep)
    return play_together(lambda rank: function(sessions[rank][0], rank), sessions)


def play_together(function: Callable[[int], T], sessions: Sequence[PlainSession]) -> list[T]:
    """Call a function for each rank in a thread of its own; where one fails, the others are let go.

    Raises
    ------
    SfumatoError
        The first that any party raised.
    """
    results: dict[int, T] = {}
    errors: dict[int, BaseException] = {}

    def play(rank: int) -> None:
        try:
            results[rank] = function(rank)
        except BaseException as error:  # noqa: BLE001 - handed to the caller below
            errors[rank] = error
            sessions[rank][1].abort(str(error) if isinstance(error, SfumatoError) else type(error).__name__)
            for _, _, engine in sessions:
                if engine is not None:
                    engine.close()

    threads = [threading.Thread(target=play, args=(rank,), daemon=True) for rank in range(len(sessions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise min(errors.values(), key=lambda error: isinstance(error, PartyError))
    return [results[rank] for rank in range(len(sessions))]
