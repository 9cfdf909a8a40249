"""One party's end of a computation on secret shares.

Values come in as two additive shares modulo 2^64, the first and the last computing party's; results go out in the same
way, the first party's share being a fresh mask and the last one's the result less the mask. Nothing else is opened.

What is computed are jax programs over whole numbers of 64 bits that nobody sees, each compiled for the shapes of one
piece of an operation. Comparisons are exact where the numbers lie less than 2^62 apart; sums and products wrap modulo
2^64. None opens anything on its way.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["EngineRefusal", "Party", "load"]

Words = NDArray[np.uint64]
Shape = tuple[int, ...]

OPERATIONS = ("less_than", "argmin", "extremes", "top", "cross")
"""Names of the operations; ``less_than`` takes vectors and ``cross`` stacks of matrices."""

Piece = tuple[slice, ...]
"""What a piece takes of every input, and the axis-wise place that its results take."""

_CELLS = 1 << 17  # numbers of one piece: bounds the memory, to about 1.4 GB a party, for a few more messages

_PARTIES = {"cheetah": 2, "aby3": 3}
"""Protocols that need no trusted dealer, and how many compute in each."""

_RETRY = 0.2  # seconds between two attempts to reach a fellow


class EngineRefusal(ValueError):
    """A command that cannot be carried out."""


class Party:
    """One end of the joint computation.

    Parameters
    ----------
    protocol : str
        ``cheetah`` or ``aby3``.
    rank : int
        Among the computing parties.
    addresses : sequence of str
        Addresses that this party listens on, and the near ends of the ways to the others; all on this machine.
    timeout : float
        Seconds of silence after which a fellow is given up.
    """

    def __init__(self, protocol: str, rank: int, addresses: Sequence[str], timeout: float) -> None:
        _check_start(protocol, rank, addresses, timeout)
        load()
        import spu
        from spu import libspu

        settings = libspu.RuntimeConfig(
            protocol=getattr(libspu.ProtocolKind, protocol.upper()), field=libspu.FieldType.FM64, fxp_fraction_bits=18
        )
        settings.experimental_enable_colocated_optimization = True  # an input stays with its owner: nothing is sent
        link = libspu.link.create_brpc(_describe(libspu, addresses, timeout), rank)
        self._rank, self._parties = rank, len(addresses)
        self._ways = link.spawn()  # a channel of its own for shares of results
        self._runtime, self._io = spu.Runtime(link, settings), spu.Io(len(addresses), settings)
        self._library = libspu
        self._compiled: dict[tuple[Any, ...], Any] = {}

    def run(self, name: str, shapes: tuple[Shape, ...], count: int, bits: int, inputs: Sequence[Words]) -> list[Words]:
        """Do an operation and give this party's shares of the results, none to one that only helps."""
        if name not in OPERATIONS:
            raise EngineRefusal(f"the engine has {', '.join(OPERATIONS)}, not {name!r}")
        holds = self._rank in (0, self._parties - 1)
        if [array.shape for array in inputs] != (list(shapes) if holds else []):
            raise EngineRefusal("the arrays are not of the shapes that the operation names")
        cuts = pieces(name, shapes)
        if not cuts or _is_known(name, shapes, count):
            return [share for shape in _result_shapes(name, shapes) for share in self._known(shape, 1 if count else 0)]
        done = []
        for piece in cuts:
            parts = tuple(
                tuple(len(range(*part.indices(side))) for side, part in zip(shape, piece, strict=True))
                for shape in shapes
            )
            done.append(self._run_piece(name, parts, count, bits, [array[piece] for array in inputs]))
        if not holds:
            return []
        if name == "cross":
            return [np.sum([parts[0] for parts in done], axis=0, dtype=np.uint64)]
        return [np.concatenate(parts) for parts in zip(*done, strict=True)]

    def _run_piece(
        self, name: str, shapes: tuple[Shape, ...], count: int, bits: int, inputs: Sequence[Words]
    ) -> list[Words]:
        results = _result_shapes(name, shapes)
        executable = self._compile(name, shapes, bits, results)
        masks = [_uniform(shape) for shape in results] if self._rank == 0 else []
        last = self._parties - 1
        values = {f"a{i}": (0, shape, inputs, i) for i, shape in enumerate(shapes)}
        values |= {f"b{i}": (last, shape, inputs, i) for i, shape in enumerate(shapes)}
        values |= {f"m{i}": (0, shape, masks, i) for i, shape in enumerate(results)}
        for label, (owner, shape, held, i) in values.items():
            self._put(label, owner, held[i] if self._rank == owner else np.zeros(shape, dtype=np.uint64))
        labels = list(values)
        if name == "top":
            labels.append("count")
            public = self._library.Visibility.VIS_PUBLIC
            self._runtime.set_var("count", self._io.make_shares(np.array(count, dtype=np.int64), public)[self._rank])
        self._runtime.run(executable)
        for label in labels:
            self._runtime.del_var(label)
        shares = [self._take(f"y{i}") for i in range(len(results))]
        if self._rank < last:
            for share in shares:
                self._ways.send(last, _join([share.meta, *share.share_chunks]))
            return masks
        return [self._reveal(share) for share in shares]

    def _put(self, label: str, owner: int, values: Words) -> None:
        """Make an input that its owner alone holds; what the others put in its place is zero and takes no part."""
        secret = self._library.Visibility.VIS_SECRET
        shares = self._io.make_shares(np.ascontiguousarray(values).view(np.int64), secret, owner)
        self._runtime.set_var(label, shares[self._rank])

    def _take(self, label: str) -> Any:
        share = self._runtime.get_var(label)
        self._runtime.del_var(label)
        if b".AShr<FM64>" not in share.meta:  # the one kind of share that tells no more than the value
            raise EngineRefusal("the engine gave a result in a form that may not be sent")
        return share

    def _reveal(self, own: Any) -> Words:
        """Put the result less its mask together from the shares of all."""
        shares = []
        for rank in range(self._parties - 1):
            parts = _part(self._ways.recv(rank))
            meta, chunks = b"".join(parts[:1]), parts[1:]
            if meta != own.meta:
                raise EngineRefusal("another party computed something else; start all parties again with one version")
            share = self._library.Share()
            share.meta, share.share_chunks = meta, chunks
            shares.append(share)
        return np.asarray(self._io.reconstruct([*shares, own]), dtype=np.int64).view(np.uint64)

    def _known(self, shape: Shape, value: int) -> list[Words]:
        """Share a number that everybody knows."""
        if self._rank == 0:
            mask = _uniform(shape)
            self._ways.send(self._parties - 1, (np.uint64(value) - mask).astype("<u8").tobytes())
            return [mask]
        if self._rank < self._parties - 1:
            return []
        return [_words(self._ways.recv(0), shape)]

    def _compile(self, name: str, shapes: tuple[Shape, ...], bits: int, results: tuple[Shape, ...]) -> Any:
        """Compile the program for some shapes; how many ``top`` takes is a public input, not part of it."""
        key = (name, shapes, bits)
        if key not in self._compiled:
            from spu.utils import frontend

            compute, width, outputs = program(name, bits), len(shapes), len(results)

            def masked(*held: Any) -> tuple[Any, ...]:
                inputs = [held[i] + held[width + i] for i in range(width)]
                masks, public = held[2 * width : 2 * width + outputs], held[2 * width + outputs :]
                return tuple(y - mask for y, mask in zip(compute(*inputs, *public), masks, strict=True))

            labels = [f"{letter}{i}" for letter in "ab" for i in range(width)] + [f"m{i}" for i in range(outputs)]
            seen = [self._library.Visibility.VIS_SECRET] * len(labels)
            blanks = [np.zeros(shape, dtype=np.int64) for shape in (*shapes, *shapes, *results)]
            if name == "top":
                labels, seen = [*labels, "count"], [*seen, self._library.Visibility.VIS_PUBLIC]
                blanks.append(np.zeros((), dtype=np.int64))
            names = [f"y{i}" for i in range(outputs)]
            self._compiled[key], _ = frontend.compile(
                frontend.Kind.JAX, masked, blanks, {}, labels, seen, lambda _: names
            )
        return self._compiled[key]


def load() -> None:
    """Import the libraries; their own log stays on the error stream, as settings for it would write a file."""
    try:
        import jax
        import spu  # noqa: F401
    except ImportError:
        raise EngineRefusal("this Python has no spu; make the environment of the engine again") from None
    jax.config.update("jax_enable_x64", True)  # whole numbers of 64 bits


def _check_start(protocol: str, rank: int, addresses: Sequence[str], timeout: float) -> None:
    """Refuse what the library itself would accept and then do unsafely, or never finish."""
    if protocol not in _PARTIES:
        raise EngineRefusal(f"the protocol must be one of {', '.join(_PARTIES)}: others need a dealer that all trust")
    if len(addresses) != _PARTIES[protocol] or not 0 <= rank < len(addresses):
        raise EngineRefusal(f"{protocol} is computed by exactly {_PARTIES[protocol]} parties")
    if any(not isinstance(address, str) or not address.startswith("127.0.0.1:") for address in addresses):
        raise EngineRefusal("the engine listens on 127.0.0.1 only; give it the local ends of a tunnel")
    if not isinstance(timeout, int | float) or not 0 < timeout <= 86_400:
        raise EngineRefusal("the timeout must be above 0 and at most a day, in seconds")


def _describe(library: Any, addresses: Sequence[str], timeout: float) -> Any:
    description = library.link.Desc()
    description.recv_timeout_ms = description.http_timeout_ms = int(timeout * 1000)
    description.connect_retry_interval_ms = int(_RETRY * 1000)
    description.connect_retry_times = max(1, int(timeout / _RETRY))
    for rank, address in enumerate(addresses):
        description.add_party(f"party{rank}", address)
    return description


def _uniform(shape: Shape) -> Words:
    """Draw a mask from the operating system."""
    size = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64).reshape(shape)


def _result_shapes(name: str, shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
    first = shapes[0]
    if name == "argmin":
        return ((first[0],),)
    if name == "extremes":
        return ((first[1],), (first[1],))
    if name == "cross":
        return ((first[0], first[2], shapes[1][2]),)
    return (first,)


def _is_known(name: str, shapes: tuple[Shape, ...], count: int) -> bool:
    """Say whether the result follows from the operation alone: all or none are taken, or there is one to choose."""
    return (name == "top" and count in (0, shapes[0][0])) or (name == "argmin" and shapes[0][1] == 1)


def _join(parts: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def _part(data: bytes) -> list[bytes]:
    parts, place = [], 0
    while place < len(data):
        length = struct.unpack_from("<Q", data, place)[0] if len(data) - place >= 8 else len(data)
        if length > len(data) - place - 8:
            raise EngineRefusal("what another party sent is not its share; start all parties again")
        parts.append(data[place + 8 : place + 8 + length])
        place += 8 + length
    return parts


def _words(data: bytes, shape: Shape) -> Words:
    """Words that another party sent, as many as the shape has."""
    if len(data) != 8 * int(np.prod(shape, dtype=np.int64)):
        raise EngineRefusal("what another party sent is not its share; start all parties again")
    return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(shape)


# ---------------------------------------------------------------------------------------------------------- programs


def program(name: str, bits: int) -> Callable[..., tuple[Any, ...]]:
    """Function of an operation, from secret inputs to the tuple of secret results.

    ``top`` takes beside them how many it marks, which is public.
    """
    if name == "top":
        return partial(_top, bits=bits)
    known: dict[str, Callable[..., tuple[Any, ...]]] = {
        "less_than": _less_than,
        "argmin": _argmin,
        "extremes": _extremes,
        "cross": _cross,
    }
    return known[name]


def pieces(name: str, shapes: tuple[Shape, ...]) -> list[Piece]:
    """Cut an operation into pieces that bound the memory; results are joined, those of ``cross`` added.

    Examples
    --------
    >>> pieces("argmin", ((100_000, 8),))[0], len(pieces("argmin", ((100_000, 8),)))
    ((slice(0, 16384, None), slice(None, None, None)), 7)
    >>> pieces("top", ((100_000,),))
    [(slice(None, None, None),)]
    """
    shape = shapes[0]
    every = slice(None)
    if name == "argmin":
        return [(part, every) for part in _parts(shape[0], shape[1])]
    if name == "extremes":
        return [(every, part) for part in _parts(shape[1], shape[0])]
    if name == "less_than":
        return [(part,) for part in _parts(shape[0], 1)]
    if name == "cross":
        wide = shape[0] * (shape[2] + shapes[1][2])
        return [(every, part, every) for part in _parts(shape[1], wide)]
    return [(every,)]


def _parts(length: int, width: int) -> list[slice]:
    step = max(1, _CELLS // max(1, width))
    return [slice(start, min(start + step, length)) for start in range(0, length, step)]


def _less_than(a: Any, b: Any) -> tuple[Any]:
    return (_whole(a < b),)


def _argmin(values: Any) -> tuple[Any]:
    """Let neighbours play against each other until one is left; the left one wins a tie, so the first stays."""
    import jax.numpy as jnp

    places = jnp.broadcast_to(jnp.arange(values.shape[1], dtype=jnp.int64), values.shape)
    while (width := values.shape[1]) > 1:
        even = width // 2 * 2
        less = values[:, 1:even:2] < values[:, 0:even:2]
        values, places = (
            jnp.concatenate([jnp.where(less, x[:, 1:even:2], x[:, 0:even:2]), x[:, even:]], axis=1)
            for x in (values, places)
        )
    return (places[:, 0],)


def _extremes(values: Any) -> tuple[Any, Any]:
    """Find minima and maxima in one tournament: the first round parts losers from winners, then both play on."""
    import jax.numpy as jnp

    even = values.shape[0] // 2 * 2
    left, right = values[0:even:2], values[1:even:2]
    low = jnp.where(right < left, right, left)
    high = left + right - low
    low, high = (jnp.concatenate([x, values[even:]], axis=0) for x in (low, high))
    both = jnp.concatenate([low, -high], axis=1)
    while (height := both.shape[0]) > 1:
        even = height // 2 * 2
        left, right = both[0:even:2], both[1:even:2]
        both = jnp.concatenate([jnp.where(right < left, right, left), both[even:]], axis=0)
    half = values.shape[1]
    return both[0, :half], -both[0, half:]


def _cross(a: Any, b: Any) -> tuple[Any]:
    """Multiply group by group."""
    import jax.numpy as jnp

    return (jnp.stack([jnp.matmul(a[j].T, b[j]) for j in range(a.shape[0])]),)


def _top(values: Any, count: Any, *, bits: int) -> tuple[Any]:
    """Take what is less than the last number that is in, then its equals from the first place on until it is enough.

    That number is found bit by bit: one is set where too few numbers are less than what it would make. A network that
    keeps the smallest of ever fewer blocks takes 0.6 of the time for 100 of 10,000 numbers of 40 bits and half the
    bytes, but 2.5 seconds of compiling for each length, which is about what it saves. The library's own selection is
    quicker; it shuffles and then opens comparisons, which tells of ties.
    """
    import jax
    import jax.numpy as jnp

    def step(i: Any, found: Any) -> Any:
        bit = 1 << (bits - 1 - i)
        below = jnp.sum(_whole(values < found + bit))
        return found + _whole(below < count) * bit

    last = jax.lax.fori_loop(0, bits, step, jnp.zeros((), dtype=jnp.int64))
    less = _whole(values < last)
    equal = 1 - less - _whole(last < values)
    return (less + jnp.where(_running_sum(equal) <= count - jnp.sum(less), equal, 0),)


def _running_sum(values: Any) -> Any:
    """Add up in log n shifted sums, all of them local."""
    import jax.numpy as jnp

    shift = 1
    while shift < values.shape[0]:
        values = values + jnp.concatenate([jnp.zeros(shift, values.dtype), values[:-shift]])
        shift *= 2
    return values


def _whole(truth: Any) -> Any:
    import jax.numpy as jnp

    return truth.astype(jnp.int64)
