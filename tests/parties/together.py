"""A protocol of several parties in one process, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from sfumato.parties.ledger import Leak
from sfumato.parties.session import Session, plain_sessions, run_in_threads

T = TypeVar("T")


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
    return run_in_threads(lambda rank: function(sessions[rank][0], rank), sessions)
