"""The session of a party: operations on numbers that no party sees, which the protocols are written in.

Shares modulo 2^64 and masked sums go over a channel, and an engine compares and multiplies. In one process, with a
thread for each party, an engine computes in the clear: it protects nothing, and serves to test a protocol. All opened
values are then kept, and every engine must give the same results.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import SfumatoError
from sfumato.core.progress import tell
from sfumato.core.randomness import Randomness
from sfumato.parties.arithmetic import (
    SECRET_BYTES,
    Engine,
    Operation,
    add_masks,
    evaluate,
    expand_share,
    read_secret,
    read_words,
    result_shapes,
    to_words,
)
from sfumato.parties.channel import LocalChannel, PartyChannel, PartyError, local_channels
from sfumato.parties.ledger import Leak, Transcript, refuse_undeclared

__all__ = ["PlainEngine", "Session", "SharedArray", "computing_parties", "plain_sessions", "run_in_threads"]

Shape = tuple[int, ...]
Whole = NDArray[np.int64]
Words = NDArray[np.uint64]


class SharedArray:
    """Secret-shared numbers: the first and the last party hold words that add up to them modulo 2^64."""

    __slots__ = ("_words", "shape")

    def __init__(self, shape: Shape, words: NDArray[np.uint64] | None) -> None:
        if words is not None and words.shape != shape:
            raise ValueError(f"a share of shape {words.shape} does not fit {shape}")
        self.shape = shape
        self._words = words

    def __repr__(self) -> str:
        return f"SharedArray(shape={self.shape})"


class Session:
    """One party's session; all parties call the same methods in the same order.

    Numbers are whole, modulo 2^64; `parties.arithmetic` makes them of others. Those that are compared differ by less
    than 2^62.

    Parameters
    ----------
    engine : Engine or None
        None at a party that does not compute.
    computing : tuple of int
        The first and the last party, and of ABY3 a third.
    leaks : mapping of str to Leak
        What the protocol declares to show; nothing else is.
    seed : int, optional
        Makes a dry run; the same at all parties.
    keep : bool
        Keep opened values in the transcript's memory.
    """

    def __init__(
        self,
        channel: PartyChannel,
        engine: Engine | None,
        computing: tuple[int, ...],
        leaks: Mapping[str, Leak],
        *,
        seed: int | None = None,
        keep: bool = False,
    ) -> None:
        self.rank, self.names = channel.rank, channel.names
        self.transcript = Transcript(keep=keep)
        self._channel, self._engine, self._computing, self._leaks = channel, engine, computing, leaks
        self._randomness = Randomness(seed)
        self._phase, self._sums, self._secrets = "start", 0, dict[int, bytes]()
        self._heard = [hashlib.sha256() for _ in self.names]  # of what each party has sent to all, itself included
        self._ends = (0, self.parties - 1)
        if not set(self._ends) <= set(computing) or (engine is None) != (self.rank not in computing):
            raise ValueError(f"parties {computing} compute, and party {self.rank} has {engine!r}")

    def __repr__(self) -> str:
        return f"Session(rank={self.rank}, parties={self.parties})"

    @property
    def parties(self) -> int:
        """Number of parties."""
        return len(self.names)

    @property
    def computing(self) -> tuple[int, ...]:
        """The parties that hold shares or help to compute."""
        return self._computing

    @property
    def traffic(self) -> dict[str, int]:
        """Bytes and messages that this party has sent so far, and the bytes of its engine."""
        engine = 0 if self._engine is None else self._engine.sent
        return {"bytes": self._channel.sent, "messages": self._channel.messages, "engine_bytes": engine}

    def phase(self, name: str) -> None:
        """Begin a phase, for transcript and progress."""
        self._phase = name
        tell(name, 0.0)

    def share(self, values: Whole | None, owner: int, shape: Shape, label: str) -> SharedArray:
        """Shares of the owner's numbers for the first and the last party; other parties pass None.

        One of the two gets a short secret that its share grows from, so only one share travels, or none where the
        owner holds one itself.
        """
        first, last = self._ends
        grower = last if owner == first else first
        keeper = last if grower == first else first
        entry = self._log("shared", label, shape, self._ends, owner)
        kind = f"{entry}:share"
        if self.rank == owner:
            if values is None or values.shape != shape:
                raise ValueError(f"the owner contributes no numbers of shape {shape}")
            seed = secrets.token_bytes(SECRET_BYTES)
            rest = to_words(values) - expand_share(seed, shape)
            if grower != owner:
                self._channel.send(grower, kind, seed)
            if keeper != owner:
                self._channel.send(keeper, kind, rest.tobytes())
            return SharedArray(
                shape, rest if keeper == owner else expand_share(seed, shape) if grower == owner else None
            )
        if self.rank == grower:
            return SharedArray(shape, expand_share(self._secret_of(owner, kind), shape))
        if self.rank == keeper:
            return SharedArray(shape, read_words(self._channel.receive(owner, kind), shape, self.names[owner]))
        return SharedArray(shape, None)

    def add(self, *terms: SharedArray) -> SharedArray:
        """Add numbers of equal shapes."""
        total = terms[0]
        for term in terms[1:]:
            total = self._each(lambda a, b: a + b, total, term)
        return total

    def subtract(self, left: SharedArray, right: SharedArray) -> SharedArray:
        """Subtract numbers of equal shapes."""
        return self._each(lambda a, b: a - b, left, right)

    def scale(self, shared: SharedArray, factor: int | Whole) -> SharedArray:
        """Multiply with public whole numbers."""
        public = to_words(np.asarray(factor, dtype=np.int64))
        shape = np.broadcast_shapes(shared.shape, public.shape)
        return SharedArray(shape, None if shared._words is None else shared._words * public)

    def join(self, parts: Sequence[SharedArray]) -> SharedArray:
        """Concatenate along the first axis."""
        shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
        words = [part._words for part in parts if part._words is not None]
        return SharedArray(shape, np.concatenate(words) if words else None)

    def part(self, shared: SharedArray, rows: slice | Whole) -> SharedArray:
        """Take public rows along the first axis."""
        count = len(np.arange(shared.shape[0])[rows])
        return SharedArray((count, *shared.shape[1:]), None if shared._words is None else shared._words[rows])

    def arrange(self, shared: SharedArray, shape: Shape, axes: tuple[int, ...] | None = None) -> SharedArray:
        """Reshape, then transpose if axes are given."""
        target = shape if axes is None else tuple(shape[axis] for axis in axes)
        if shared._words is None:
            return SharedArray(target, None)
        words = shared._words.reshape(shape)
        return SharedArray(target, words if axes is None else np.ascontiguousarray(words.transpose(axes)))

    def _each(self, function: Callable[[Words, Words], Words], left: SharedArray, right: SharedArray) -> SharedArray:
        if left.shape != right.shape:
            raise ValueError(f"shapes {left.shape} and {right.shape} differ")
        if left._words is None or right._words is None:
            return SharedArray(left.shape, None)
        return SharedArray(left.shape, function(left._words, right._words))

    def less_than(self, left: SharedArray, right: SharedArray) -> SharedArray:
        """1 where left is less, else 0."""
        return self._run(Operation("less_than", (left.shape, right.shape)), left, right)[0]

    def argmin(self, shared: SharedArray) -> SharedArray:
        """Place of the least of each row, of equal ones the first."""
        return self._run(Operation("argmin", (shared.shape,)), shared)[0]

    def extremes(self, shared: SharedArray) -> tuple[SharedArray, SharedArray]:
        """Minimum and maximum of each column."""
        low, high = self._run(Operation("extremes", (shared.shape,)), shared)
        return low, high

    def top(self, shared: SharedArray, count: int, bits: int) -> SharedArray:
        """Mark the smallest with 1; numbers lie from 0 to below 2^bits, of equal ones the lower places are taken."""
        return self._run(Operation("top", (shared.shape,), count=count, bits=bits), shared)[0]

    def cross(self, left: SharedArray, right: SharedArray) -> SharedArray:
        """Left^T right modulo 2^64; of three axes for each place of the first."""
        return self._run(Operation("cross", (left.shape, right.shape)), left, right)[0]

    def _run(self, operation: Operation, *inputs: SharedArray) -> tuple[SharedArray, ...]:
        shapes = result_shapes(operation)
        self._log("engine", operation.name, inputs[0].shape, self._computing)
        if self._engine is None:
            return tuple(SharedArray(shape, None) for shape in shapes)
        with self._channel.waiting(*(rank for rank in self._computing if rank != self.rank)):
            results = self._engine.run(operation, [shared._words for shared in inputs])
        return tuple(SharedArray(shape, words) for shape, words in zip(shapes, results, strict=True))

    def open(self, shared: SharedArray, label: str, to: tuple[int, ...] | None = None) -> Whole | None:
        """Open numbers to some parties, by default to all; None at the others."""
        to = tuple(range(self.parties)) if to is None else to
        names = tuple(self.names[rank] for rank in to)
        refuse_undeclared(self._leaks, "opened", label, names, self.parties)
        entry = self._log("opened", label, shared.shape, to)
        kind = f"{entry}:open"
        if self.rank in self._ends and shared._words is not None:
            for other in to:
                if other != self.rank:
                    self._channel.send(other, kind, shared._words.tobytes())
        if self.rank not in to:
            return None
        total = np.zeros(shared.shape, dtype=np.uint64)
        for end in self._ends:
            if end == self.rank and shared._words is not None:
                words = shared._words
            elif end != self.rank:
                words = read_words(self._channel.receive(end, kind), shared.shape, self.names[end])
            total = total + words
            if len(to) == self.parties:
                self._hear(end, entry, words.tobytes())
        return self._seen(entry, total.view(np.int64))

    def open_to_all(self, shared: SharedArray, label: str) -> Whole:
        """Open numbers to all parties."""
        opened = self.open(shared, label)
        assert opened is not None  # this party is one of them
        return opened

    def sum(self, values: Whole, label: str) -> Whole:
        """Secure sum of the numbers of all parties, under masks, opened to all."""
        refuse_undeclared(self._leaks, "sum", label, self.names, self.parties)
        entry = self._log("sum", label, values.shape, tuple(range(self.parties)))
        if not self._secrets:
            self._agree_on_secrets()
        hidden = add_masks(values, self.rank, self._secrets, self._sums)
        self._sums += 1
        kind = f"{entry}:sum"
        others = range(1, self.parties)
        if self.rank:
            self._channel.send(0, kind, hidden.tobytes())
            total = read_words(self._channel.receive(0, kind), values.shape, self.names[0])
        else:
            total = hidden
            for other in others:
                total = total + read_words(self._channel.receive(other, kind), values.shape, self.names[other])
            for other in others:
                self._channel.send(other, kind, total.tobytes())
        self._hear(0, entry, total.tobytes())
        return self._seen(entry, total.view(np.int64))

    def broadcast(self, payload: bytes | None, owner: int, label: str, count: int) -> bytes:
        """Send the owner's message of the given number of values to all."""
        refuse_undeclared(self._leaks, "told", label, self.names, self.parties)
        entry = self._log("told", label, (count,), tuple(range(self.parties)), owner)
        kind = f"{entry}:tell"
        if self.rank != owner:
            payload = self._channel.receive(owner, kind)
        elif payload is None:
            raise ValueError("the owner contributes no message")
        else:
            for other in range(self.parties):
                if other != owner:
                    self._channel.send(other, kind, payload)
        self._hear(owner, entry, payload)
        return payload

    def compare_views(self) -> None:
        """Refuse to go on if any party has sent other values to one party than to another.

        Each party tells the others a digest of all that each has sent to everybody: messages, shares of opened numbers
        and sums.

        Raises
        ------
        PartyError
            Naming the party whose values differ, and the one that has others.
        """
        own = b"".join(heard.digest() for heard in self._heard)
        size = hashlib.sha256().digest_size
        for rank, view in enumerate(self._swap("views", own)):
            for sender, place in enumerate(range(0, len(own), size)):
                if view[place : place + size] != own[place : place + size] or len(view) != len(own):
                    who, other = self.names[sender], self.names[rank]
                    raise PartyError(
                        f"party {who!r} sent other values to {other!r} than to this party, or {other!r} reports them "
                        "wrongly; nothing is released, do not repeat the run with them"
                    )

    def end(self) -> None:
        """Leave the run without a word: the others know all that they need to end by themselves."""
        self._channel.close()

    def _hear(self, sender: int, entry: int, payload: bytes) -> None:
        self._heard[sender].update(f"{entry} {len(payload)} ".encode() + payload)

    def public_rng(self, label: str) -> np.random.Generator:
        """Generator that all parties share; each commits to its part before it sees another's."""
        entry = self._log("tossed", label, (1,), tuple(range(self.parties)))
        if self._randomness.seed is not None:
            return self._randomness.generator(f"{label}, {entry}")
        from randomgen import ChaCha

        own = secrets.token_bytes(SECRET_BYTES)
        promises = self._swap(f"{entry}:promise", hashlib.sha256(own).digest())
        parts = self._swap(f"{entry}:toss", own)
        for rank, (promise, part) in enumerate(zip(promises, parts, strict=True)):
            if not hmac.compare_digest(promise, hashlib.sha256(part).digest()):
                raise PartyError(
                    f"party {self.names[rank]!r} sent a random value that differs from its commitment; do not repeat "
                    "the run with it"
                )
        key = hashlib.sha256(b"sfumato toss" + b"".join(parts)).digest()
        return np.random.Generator(ChaCha(key=int.from_bytes(key, "little"), rounds=20))

    def private_rng(self, purpose: str) -> np.random.Generator:
        """Generator that only this party has."""
        return self._randomness.generator(f"{purpose}, party {self.rank}")

    def secret(self, label: str) -> bytes:
        """Secret of all parties, drawn by the first one and sent to each."""
        entry = self._log("tossed", label, (1,), tuple(range(self.parties)))
        if self._randomness.seed is not None:
            return self._randomness.generator(f"{label}, {entry}").bytes(SECRET_BYTES)
        if self.rank:
            return self._secret_of(0, f"{entry}:secret")
        drawn = secrets.token_bytes(SECRET_BYTES)
        for other in range(1, self.parties):
            self._channel.send(other, f"{entry}:secret", drawn)
        return drawn

    def _swap(self, kind: str, own: bytes) -> list[bytes]:
        for other in range(self.parties):
            if other != self.rank:
                self._channel.send(other, kind, own)
        return [own if other == self.rank else self._channel.receive(other, kind) for other in range(self.parties)]

    def _agree_on_secrets(self) -> None:
        """Secret that this party has with each other one: the lower of two draws it."""
        for other in range(self.rank + 1, self.parties):
            self._secrets[other] = secrets.token_bytes(SECRET_BYTES)
            self._channel.send(other, "secret", self._secrets[other])
        for other in range(self.rank):
            self._secrets[other] = self._secret_of(other, "secret")

    def _secret_of(self, sender: int, kind: str) -> bytes:
        return read_secret(self._channel.receive(sender, kind), self.names[sender])

    def _log(self, action: str, label: str, shape: Shape, to: tuple[int, ...], owner: int | None = None) -> int:
        names = tuple(self.names[rank] for rank in to)
        whose = None if owner is None else self.names[owner]
        return self.transcript.add(self._phase, action, label, shape, names, whose).number

    def _seen(self, entry: int, values: Whole) -> Whole:
        if self.transcript.keep:
            self.transcript.values[entry] = values.copy()
        return values


T = TypeVar("T")

_MOST_WAIT = 600.0  # seconds that a thread waits for the others


def computing_parties(engine: str, parties: int) -> tuple[int, ...]:
    """Parties that compute: the first and the last, and for ABY3 the second too."""
    return (0, 1, parties - 1) if engine == "aby3" else (0, parties - 1)


class _ShareExchange:
    """Shares and results that the threads of one process exchange."""

    def __init__(self, computing: tuple[int, ...]) -> None:
        self.barrier = threading.Barrier(len(computing), timeout=_MOST_WAIT)
        self.shares: dict[int, Sequence[Words | None]] = {}
        self.results: dict[int, tuple[Words | None, ...]] = {}


class PlainEngine:
    """An engine in the clear for one thread; the threads of a run exchange their shares."""

    def __init__(self, table: _ShareExchange, rank: int, ends: tuple[int, int]) -> None:
        self.sent = 0
        self._table, self._rank, self._ends = table, rank, ends

    def run(self, operation: Operation, inputs: Sequence[Words | None]) -> tuple[Words | None, ...]:
        """Hand in shares, compute once all are there, and take the own shares of the results."""
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
        """End the threads that still wait."""
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
    table = _ShareExchange(computing)
    made = []
    for channel in local_channels(names, timeout=_MOST_WAIT):
        own = PlainEngine(table, channel.rank, (0, len(names) - 1)) if channel.rank in computing else None
        made.append((Session(channel, own, computing, leaks, seed=seed, keep=keep), channel, own))
    return tuple(made)


def run_in_threads(function: Callable[[int], T], sessions: Sequence[PlainSession]) -> list[T]:
    """Call a function for each rank in its own thread; if one fails, the others end.

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
