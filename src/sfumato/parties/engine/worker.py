"""The engine's own program: reads commands from a pipe, computes with its fellows, writes results back.

It runs in an environment of its own (the library spu needs an older numpy and an older Python), one process a party,
and imports nothing of the package above its folder. When the pipe closes it is gone at once.

A frame of the pipe is a short JSON header, then whole numbers of 64 bits. The party's end reads and writes them with
the same functions.
"""

from __future__ import annotations

import json
import os
import queue
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

if not __package__:  # started as a program: its folder is the package, and nothing above that is looked at
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    __package__ = Path(__file__).resolve().parent.name

from .party import EngineRefusal, Party, load

__all__ = ["FrameError", "main", "pack", "unpack"]

Words = NDArray[np.uint64]

Header = dict[str, Any]
"""JSON header of a frame: the command or the answer, without the shapes of its arrays."""

_Frame = tuple[Header, list[Words]]

_HEADER = 1 << 16  # bytes of the longest header
_ARRAYS = 8  # arrays of a frame
_CELLS = 1 << 28  # numbers of all its arrays: 2 GiB
_DIMENSIONS = 3


def main() -> int:
    """Serve one party until it says stop."""
    out = os.dup(1)
    os.dup2(2, 1)  # what the libraries print must not get into the pipe
    frames: queue.SimpleQueue[_Frame | FrameError] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(frames,), daemon=True).start()
    party, own = None, 0
    while True:
        frame = frames.get()
        if isinstance(frame, FrameError):
            _write(out, {"error": f"the pipe carried an invalid frame: {frame}"}, [])
            return 1
        header, arrays = frame
        command, results = header.get("do"), []
        try:
            if command == "load":
                load()
            elif command == "start" and party is None:
                party = _start(header)
                own = _written()
            elif command == "run" and party is not None:
                results = _run(party, header, arrays)
            elif command != "stop":
                raise EngineRefusal("the engine takes the commands load, start, run and stop, in this order")
            answer: Header = {"cpu": time.process_time(), "sent": max(0, _written() - own)}
        except EngineRefusal as refusal:
            answer, results = {"error": str(refusal)}, []
        except RuntimeError:  # the library's own words may hold addresses and places in its code
            answer, results = {"error": "the joint computation failed"}, []
        own += _write(out, answer, results)
        if command == "stop":
            os._exit(0)  # the library's threads need no farewell


def _start(header: Header) -> Party:
    addresses = _field(header, "addresses", list)
    return Party(_field(header, "protocol", str), _field(header, "rank", int), addresses, header.get("timeout", 0))


def _run(party: Party, header: Header, arrays: list[Words]) -> list[Words]:
    operands = tuple(tuple(shape) for shape in _field(header, "operands", list))
    count, bits = _field(header, "count", int), _field(header, "bits", int)
    return party.run(_field(header, "name", str), operands, count, bits, arrays)


def _field(header: Header, name: str, kind: type) -> Any:
    value = header.get(name)
    if type(value) is not kind:
        raise EngineRefusal(f"the command has no valid entry {name}")
    return value


def _listen(frames: queue.SimpleQueue[_Frame | FrameError]) -> None:
    """Read frames while the other thread computes, so that the end of the pipe is noticed at any time."""
    while True:
        try:
            frames.put(unpack(_read))
        except FrameError as error:
            frames.put(error)
            return


def _read(size: int) -> bytearray:
    data = bytearray(size)
    view, place = memoryview(data), 0
    while place < size:
        got = os.readv(0, [view[place : place + (1 << 20)]])
        if got == 0:
            os._exit(0)  # the party is gone
        place += got
    return data


def _write(out: int, header: Header, arrays: list[Words]) -> int:
    written = 0
    for part in pack(header, arrays):
        view = memoryview(part)
        while view:
            done = os.write(out, view)
            written += done
            view = view[done:]
    return written


def _written() -> int:
    """Bytes that this process has written so far, to the network above all; 0 where the system is silent."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("wchar:")), 0)


class FrameError(ValueError):
    """What came is not a frame."""


def pack(header: Header, arrays: Sequence[Words] = ()) -> Iterator[bytes]:
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


def unpack(read: Callable[[int], bytes | bytearray]) -> tuple[Header, list[Words]]:
    """Read one frame.

    Parameters
    ----------
    read : callable
        Returns exactly the requested number of bytes.

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
        raise FrameError(f"a header cannot have {length} bytes")
    try:
        header = json.loads(bytes(read(length)).decode())
    except (ValueError, RecursionError):  # not UTF-8, not JSON, or a number of thousands of digits
        raise FrameError("the header is not JSON") from None
    if not isinstance(header, dict) or not isinstance(header.get("shapes"), list):
        raise FrameError("the header does not list the shapes of its arrays")
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
            raise FrameError("the shape of an array is not valid")
        size = 1
        for side in shape:
            if type(side) is not int or not 0 <= side <= _CELLS:
                raise FrameError("the shape of an array is not valid")
            size *= side
        cells += size
    if cells > _CELLS:
        raise FrameError(f"{cells} numbers are too many for a frame")


if __name__ == "__main__":
    sys.exit(main())
