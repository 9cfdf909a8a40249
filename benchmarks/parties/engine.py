"""The engine's five operations: processor time and bytes of each party over the number of rows, both protocols.

Run from the repository root: ``python benchmarks/parties/engine.py [--quick] [--rows 1000 10000 100000]``. One worker
process a party, all on this machine, connected directly. Each operation runs twice: the first time it is compiled and
the protocol sets itself up for such sizes, the second time is what repeating it costs. Every result is compared with
numpy's. Bytes are those that the system counts as written by the worker.
"""

from __future__ import annotations

import argparse
import os
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.parties.arithmetic import Operation, evaluate
from sfumato.parties.spu import SpuEngine

COMPUTING = {"cheetah": (0, 1), "aby3": (0, 1, 2)}
RESULT = Path(__file__).resolve().parents[1] / "results" / "parties_engine.md"
BITS = 40
Arrays = list[NDArray[np.int64]]

HEAD = """# The engine of secure computation: what an operation costs

`python benchmarks/parties/engine.py`; {cores} cores, load {load:.1f} at the end. Processor seconds and megabytes are
those of the first, the second and, with aby3, the third party. *first* compiles and sets up, *again* repeats. All
results equal numpy's. `top` takes one in a hundred of numbers of {bits} bits; `cross` multiplies five columns by five.

| protocol | operation | shape | wall s, first | wall s, again | CPU s, first | CPU s, again | MB, again | peak MB |
|---|---|---|---:|---:|---|---|---|---:|
"""


def start(protocol: str) -> list[SpuEngine]:
    """Start the engines of all computing parties."""
    ranks = COMPUTING[protocol]
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in ranks]
    ports = [server.getsockname()[1] for server in servers]
    addresses = {rank: f"127.0.0.1:{port}" for rank, port in zip(ranks, ports, strict=True)}
    for server in servers:
        server.close()
    with ThreadPoolExecutor(len(ranks)) as pool:
        return list(pool.map(lambda rank: SpuEngine(protocol, rank, addresses, timeout=600.0), ranks))


def run(engines: list[SpuEngine], operation: Operation, values: Arrays) -> float:
    """Run an operation, compare it with numpy, and give its wall time."""
    masks = [np.random.default_rng().integers(0, 1 << 64, size=v.shape, dtype=np.uint64) for v in values]
    held: list[list[NDArray[np.uint64] | None]] = [[None] * len(values) for _ in engines]
    held[0], held[-1] = list(masks), [v.view(np.uint64) - mask for v, mask in zip(values, masks, strict=True)]
    began = time.perf_counter()
    with ThreadPoolExecutor(len(engines)) as pool:
        calls = [pool.submit(partial(e.run, operation, h)) for e, h in zip(engines, held, strict=True)]
        shares = [call.result() for call in calls]
    wall = time.perf_counter() - began
    for first, last, want in zip(shares[0], shares[-1], evaluate(operation, values), strict=True):
        assert first is not None
        assert last is not None
        np.testing.assert_array_equal((first + last).view(np.int64), want)
    return wall


def cases(n: int, rng: np.random.Generator) -> Iterator[tuple[Operation, Arrays]]:
    """Give the operations on n rows and their inputs."""

    def draw(*shape: int) -> NDArray[np.int64]:
        return rng.integers(0, 1 << BITS, size=shape)

    yield Operation("less_than", ((n,), (n,))), [draw(n), draw(n)]
    yield Operation("argmin", ((n, 8),)), [draw(n, 8)]
    yield Operation("extremes", ((n, 8),)), [draw(n, 8)]
    yield Operation("top", ((n,),), count=n // 100, bits=BITS), [draw(n)]
    yield Operation("cross", ((n, 5), (n, 5))), [draw(n, 5), draw(n, 5)]
    groups = (10, n // 10, 5)
    yield Operation("cross", (groups, groups)), [draw(*groups), draw(*groups)]


def peak(engines: list[SpuEngine]) -> float:
    """Give the largest memory of a worker so far, in megabytes."""
    lines = [line for engine in engines for line in Path(f"/proc/{engine.pid}/status").read_text().splitlines()]
    return max(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(protocol: str, rows: list[int]) -> Iterator[str]:
    """Give the lines of a protocol."""
    engines = start(protocol)
    for n in rows:
        for operation, values in cases(n, np.random.default_rng(7)):
            seen = []
            for _ in range(2):
                before = [(e.cpu_seconds, e.sent) for e in engines]
                wall = run(engines, operation, values)
                spent = [(e.cpu_seconds - s, e.sent - b) for e, (s, b) in zip(engines, before, strict=True)]
                cpu = ", ".join(f"{seconds:.2f}" for seconds, _ in spent)
                seen.append((f"{wall:.1f}", cpu, ", ".join(f"{sent / 1e6:.2f}" for _, sent in spent)))
            (wall1, cpu1, _), (wall2, cpu2, sent2) = seen
            shape = " x ".join(map(str, operation.shapes[0]))
            yield (
                f"| {protocol} | {operation.name} | {shape} | {wall1} | {wall2} | {cpu1} | {cpu2} | {sent2} "
                f"| {peak(engines):.0f} |"
            )
    for engine in engines:
        engine.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a thousand rows, nothing is written")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    options = parser.parse_args()
    lines = []
    for protocol in COMPUTING:
        for line in measure(protocol, [1_000] if options.quick else options.rows):
            print(line, flush=True)
            lines.append(line)
    if not options.quick:
        head = HEAD.format(cores=os.cpu_count(), load=os.getloadavg()[0], bits=BITS)
        RESULT.write_text(head + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
