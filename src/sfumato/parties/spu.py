"""The engine for secure computation: a worker process with its own Python, connected by a pipe.

The worker runs SecretFlow SPU: ``cheetah`` for two computing parties, ``aby3`` for three. It listens on this machine
alone; the way to the other parties is the relay's business.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sfumato.core.errors import OptionError
from sfumato.parties.arithmetic import Operation, result_shapes
from sfumato.parties.channel import PartyError
from sfumato.parties.engine import worker

__all__ = ["SpuEngine", "engine_python"]

Words = NDArray[np.uint64]

_POLL = 0.1  # seconds between two looks at the worker and at the other parties
_SHUTDOWN = 2.0  # seconds that a worker has to end by itself
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C.UTF-8", "JAX_PLATFORMS": "cpu"}


def engine_python(python: str | Path | None = None) -> Path:
    """Python interpreter of the engine's environment; raises OptionError if there is none.

    Parameters
    ----------
    python : str or Path, optional
        Its interpreter; otherwise the environment variable ``SFUMATO_ENGINE_PYTHON`` names it, otherwise it is looked
        for in ``.venv-parties`` of the working folder and of the checkout that the package runs from.
    """
    named = python or os.environ.get("SFUMATO_ENGINE_PYTHON")
    folders = (Path.cwd(), Path(__file__).resolve().parents[3])
    places = [Path(named)] if named else [folder / ".venv-parties" / "bin" / "python" for folder in folders]
    for place in places:
        if os.access(place, os.X_OK) and place.is_file():
            return place.absolute()  # not resolved: the link is what makes it that environment's
    raise OptionError(
        "no Python with the engine for secure computation was found: run 'make engine' in the checkout, or install "
        "spu==0.9.5 and numpy<2 for a Python 3.10 or 3.11 and name its interpreter in SFUMATO_ENGINE_PYTHON"
    )


class SpuEngine:
    """One computing party's engine.

    Parameters
    ----------
    protocol : str
        ``cheetah`` or ``aby3``.
    rank : int
        Of this party among all.
    computing : sequence of int
        Ranks of the parties that compute, the first and the last of all among them.
    addresses : sequence of str
        One for each computing party, in that order: where this one listens, and the near ends of the ways to the
        others, all on 127.0.0.1.
    python : str or Path, optional
        Interpreter of the engine's environment, see `engine_python`.
    timeout : float
        Seconds of silence between the engines after which the work is given up.
    longest : float
        Seconds that one operation may take in all.
    failed : callable, optional
        Says whether another party has given up, by something true, best by a sentence. It is asked often.
    blocking : callable, optional
        Names the parties that hold this one up, for what is said when time is over.

    Attributes
    ----------
    sent : int
        Bytes that this party's engine has sent, by the system's count of what it writes; 0 if that is not told.
    cpu_seconds : float
        Processor time of the worker so far.
    """

    def __init__(
        self,
        protocol: str,
        rank: int,
        addresses: Mapping[int, str],
        *,
        python: str | Path | None = None,
        timeout: float = 60.0,
        longest: float = 3600.0,
        failed: Callable[[], object] | None = None,
        blocking: Callable[[], str] | None = None,
    ) -> None:
        if rank not in addresses:
            raise OptionError(f"party {rank} does not compute; name the address of each party that does")
        self.sent, self.cpu_seconds = 0, 0.0
        self._helps = rank not in (min(addresses), max(addresses))
        self._longest, self._failure, self._blocking = (
            longest,
            failed or (lambda: None),
            blocking or (lambda: "its fellows"),
        )
        self._process = subprocess.Popen(
            [engine_python(python), "-I", str(Path(worker.__file__).resolve())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_ENVIRONMENT,
            cwd=os.sep,
            bufsize=0,
            start_new_session=True,  # an interrupt from the keyboard is this process's to handle
        )
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        self._pipe, self._in, self._out = stdin, stdin.fileno(), stdout.fileno()
        for end in (self._in, self._out):
            os.set_blocking(end, False)
        place, ways = list(addresses).index(rank), list(addresses.values())
        self._ask({"do": "load"})  # takes seconds, and is nobody's silence
        start = {"do": "start", "protocol": protocol, "rank": place, "addresses": ways, "timeout": timeout}
        self._ask(start, longest=timeout)

    def run(self, operation: Operation, inputs: Sequence[Words | None]) -> tuple[Words | None, ...]:
        """Fresh shares of the results for shares of the inputs; see `Engine`."""
        held = [array for array in inputs if array is not None]
        if [array.shape for array in held] != ([] if self._helps else list(operation.shapes)):
            raise ValueError(f"{operation.name!r} needs shares of {operation.shapes} at the first and the last party")
        shapes = [_plain_shape(operation.name, shape) for shape in operation.shapes]
        command = {
            "do": "run",
            "name": operation.name,
            "operands": shapes,
            "count": operation.count,
            "bits": operation.bits,
        }
        shares = [np.asarray(array, np.uint64).reshape(shape) for array, shape in zip(held, shapes, strict=False)]
        results = self._ask(command, shares)
        wanted = result_shapes(operation)
        if self._helps:
            return tuple(None for _ in wanted)
        return tuple(array.reshape(shape) for array, shape in zip(results, wanted, strict=True))

    def close(self) -> None:
        """End the worker and wait until it is gone."""
        if self._process.returncode is None and not self._pipe.closed:
            try:
                self._write(worker.pack({"do": "stop"}), time.monotonic() + _SHUTDOWN)
                self._process.wait(_SHUTDOWN)
            except (PartyError, subprocess.TimeoutExpired):
                pass
        self._end()

    def __enter__(self) -> SpuEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """Number of the worker's process."""
        return self._process.pid

    def _ask(self, command: worker.Header, arrays: Sequence[Words] = (), longest: float | None = None) -> list[Words]:
        """Send a command and wait for its answer; after any failure the worker is ended."""
        if self._process.returncode is not None:
            raise PartyError("this party's engine has ended; start all parties again")
        end = time.monotonic() + (longest or self._longest)
        try:
            self._write(worker.pack(command, arrays), end)
            answer, results = worker.unpack(lambda size: self._read(size, end))
            if "error" in answer:
                raise PartyError(
                    f"this party's engine gave up while it computed with {self._blocking()}: {answer['error']}"
                )
        except worker.FrameError as error:
            self._end()
            raise PartyError(f"this party's engine sent an invalid answer: {error}") from None
        except BaseException:
            self._end()
            raise
        self.sent, self.cpu_seconds = int(answer["sent"]), float(answer["cpu"])
        return results

    def _write(self, parts: Iterable[bytes], end: float) -> None:
        for part in parts:
            view = memoryview(part)
            while view:
                self._wait(end, write=True)
                try:
                    view = view[os.write(self._in, view[: 1 << 16]) :]
                except BrokenPipeError:
                    raise PartyError(self._death()) from None

    def _read(self, size: int, end: float) -> bytearray:
        data, place = bytearray(size), 0
        view = memoryview(data)
        while place < size:
            self._wait(end, write=False)
            count = os.readv(self._out, [view[place:]])
            if count == 0:
                raise PartyError(self._death())
            place += count
        return data

    def _wait(self, end: float, *, write: bool) -> None:
        """Wait until the pipe is ready; raises if time is over or another party has failed."""
        watched = ([], [self._in]) if write else ([self._out], [])
        while not any(select.select(*watched, [], _POLL)):
            if reason := self._failure():
                raise PartyError(
                    reason if isinstance(reason, str) else "another party gave up; start all parties again"
                )
            if time.monotonic() > end:
                raise PartyError(
                    f"this party's engine got no answer in time from {self._blocking()}; start all parties again"
                )

    def _death(self) -> str:
        try:
            status = self._process.wait(_SHUTDOWN)
        except subprocess.TimeoutExpired:
            return "this party's engine closed its pipe; start all parties again"
        return f"this party's engine ended with status {status}; start all parties again"

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


def _plain_shape(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Shape in which the worker knows an operation: vectors to compare, stacks of matrices to multiply."""
    if name == "less_than":
        return (int(np.prod(shape, dtype=np.int64)),)
    if name == "cross" and len(shape) == 2:
        return (1, *shape)
    return shape
