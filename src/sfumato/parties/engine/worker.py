"""The engine's own program: reads commands from a pipe, computes with its fellows, writes results back.

It runs in an environment of its own (the library spu needs an older numpy and an older Python), one process a party,
and imports nothing of the package above its folder. When the pipe closes it is gone at once.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

if not __package__:  # started as a program: its folder is the package, and nothing above that is looked at
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    __package__ = Path(__file__).resolve().parent.name

from .frames import FrameError, Words, pack, unpack
from .party import Party, Refused, load

__all__ = ["main"]

_Frame = tuple[dict[str, Any], list[Words]]


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
            _write(out, {"error": f"what came through the pipe is no frame: {frame}"}, [])
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
                raise Refused("the engine knows load, start, run and stop, in this order")
            answer: dict[str, Any] = {"cpu": time.process_time(), "sent": max(0, _written() - own)}
        except Refused as refusal:
            answer, results = {"error": str(refusal)}, []
        except RuntimeError:  # the library's own words may hold addresses and places in its code
            answer, results = {"error": "the joint computation failed"}, []
        own += _write(out, answer, results)
        if command == "stop":
            os._exit(0)  # the library's threads need no farewell


def _start(header: dict[str, Any]) -> Party:
    addresses = _field(header, "addresses", list)
    return Party(_field(header, "protocol", str), _field(header, "rank", int), addresses, header.get("timeout", 0))


def _run(party: Party, header: dict[str, Any], arrays: list[Words]) -> list[Words]:
    operands = tuple(tuple(shape) for shape in _field(header, "operands", list))
    count, bits = _field(header, "count", int), _field(header, "bits", int)
    return party.run(_field(header, "name", str), operands, count, bits, arrays)


def _field(header: dict[str, Any], name: str, kind: type) -> Any:
    value = header.get(name)
    if type(value) is not kind:
        raise Refused(f"the command does not tell its {name}")
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


def _write(out: int, header: dict[str, Any], arrays: list[Words]) -> int:
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


if __name__ == "__main__":
    sys.exit(main())
