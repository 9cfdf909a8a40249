"""One party's end of a computation on secret shares.

Values come in as two additive shares modulo 2^64, the first and the last computing party's; results go out in the same
way, the first party's share being a fresh mask and the last one's the result less the mask. Nothing else is opened.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .programs import OPERATIONS, Piece, pieces, program

__all__ = ["EngineRefusal", "Party", "load"]

Words = NDArray[np.uint64]
Shape = tuple[int, ...]

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
        Where this party listens, and the near ends of the ways to the others; all on this machine.
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
            parts = tuple(_cut_shape(shape, piece) for shape in shapes)
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
        raise EngineRefusal("the engine talks on 127.0.0.1 alone; give it the near ends of a tunnel")
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


def _cut_shape(shape: Shape, piece: Piece) -> Shape:
    return tuple(len(range(*part.indices(side))) for side, part in zip(shape, piece, strict=True))


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
            raise EngineRefusal("another party sent something else than its share; start all parties again")
        parts.append(data[place + 8 : place + 8 + length])
        place += 8 + length
    return parts


def _words(data: bytes, shape: Shape) -> Words:
    """Words that another party sent, as many as the shape has."""
    if len(data) != 8 * int(np.prod(shape, dtype=np.int64)):
        raise EngineRefusal("another party sent something else than its share; start all parties again")
    return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(shape)
