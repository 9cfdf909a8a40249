"""Frames of the pipe between a party and its engine: a short JSON header, then whole numbers of 64 bits.

Both ends read this file, each with its own Python and numpy, so it imports nothing of the package.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FrameError", "pack", "unpack"]

Words = NDArray[np.uint64]

_HEADER = 1 << 16  # bytes of the longest header
_ARRAYS = 8  # arrays of a frame
_CELLS = 1 << 28  # numbers of all its arrays: 2 GiB
_DIMENSIONS = 3


class FrameError(ValueError):
    """What came is not a frame."""


def pack(header: dict[str, Any], arrays: Sequence[Words] = ()) -> Iterator[bytes]:
    """Pieces of a frame, in the order in which they are written."""
    words = [np.ascontiguousarray(array, dtype="<u8") for array in arrays]
    text = json.dumps({**header, "shapes": [list(array.shape) for array in arrays]}).encode()
    _check_shapes([array.shape for array in arrays])
    if len(text) > _HEADER:
        raise FrameError(f"a header of {len(text)} bytes is too long")
    yield struct.pack("<I", len(text)) + text
    for array in words:
        if array.size:
            yield array.tobytes()


def unpack(read: Callable[[int], bytes | bytearray]) -> tuple[dict[str, Any], list[Words]]:
    """Read one frame.

    Parameters
    ----------
    read : callable
        Gives exactly so many bytes.

    Examples
    --------
    >>> import io
    >>> stream = io.BytesIO(b"".join(pack({"do": "run"}, [np.arange(3, dtype=np.uint64)])))
    >>> header, arrays = unpack(stream.read)
    >>> header["do"], arrays[0].tolist()
    ('run', [0, 1, 2])
    """
    (length,) = struct.unpack("<I", read(4))
    if not 0 < length <= _HEADER:
        raise FrameError(f"a header of {length} bytes cannot be")
    try:
        header = json.loads(bytes(read(length)).decode())
    except (ValueError, RecursionError):  # not UTF-8, not JSON, or a number of thousands of digits
        raise FrameError("the header is not JSON") from None
    if not isinstance(header, dict) or not isinstance(header.get("shapes"), list):
        raise FrameError("the header does not tell the shapes of its arrays")
    shapes = header.pop("shapes")
    _check_shapes(shapes)
    return header, [_read_array(read, tuple(shape)) for shape in shapes]


def _read_array(read: Callable[[int], bytes | bytearray], shape: tuple[int, ...]) -> Words:
    size = int(np.prod(shape, dtype=np.int64))
    data = read(8 * size) if size else b""
    return np.frombuffer(data, dtype="<u8").astype(np.uint64, copy=False).reshape(shape)


def _check_shapes(shapes: Sequence[Any]) -> None:
    """Refuse what would take more memory than a frame may; a few arrays of few dimensions are enough."""
    cells = 0
    if len(shapes) > _ARRAYS:
        raise FrameError(f"{len(shapes)} arrays are too many for a frame")
    for shape in shapes:
        if not isinstance(shape, list | tuple) or len(shape) > _DIMENSIONS:
            raise FrameError("an array has no shape that a frame can carry")
        size = 1
        for side in shape:
            if type(side) is not int or not 0 <= side <= _CELLS:
                raise FrameError("an array has no shape that a frame can carry")
            size *= side
        cells += size
    if cells > _CELLS:
        raise FrameError(f"{cells} numbers are too many for a frame")
