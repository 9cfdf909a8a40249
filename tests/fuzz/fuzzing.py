"""What is asked of every reader of hostile input, and how an input that fails is made small."""

from __future__ import annotations

import json
import random
import re
import resource
import signal
import sys
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import sfumato
from sfumato.core.errors import BadInput, PrivacyRefusal, SfumatoError
from tests.fuzz.mutation import Mutator

__all__ = ["CELLS", "GOLDENS", "Parser", "bounded_time", "fuzz", "fuzz_guided", "golden_bytes"]

CELLS = ("quetzal", "7193.25")
"""What stands in seeds where a table has cells and a key its terms: no message may repeat it."""

GOLDENS = Path(__file__).parent.parent / "goldens" / "folders"
"""Texts of the release and the owner's folder of many runs."""

_SEEDS = Path(__file__).parent / "seeds"
_EXAMPLES = 2_000
_SECONDS = 15.0  # of processor time, where a thousandth is usual
_tried = [0]  # inputs so far
_MEGABYTES = 512
_LONGEST_MESSAGE = 1_500
_NAMING = ("name", "column", "columns", "method", "me", "run", "target", "strata", "level", "key", "address", "units")
_CHOSEN = "parameters"  # of a mechanism: what its owner typed, and no cell
_SOURCES = str(Path(sfumato.__file__).parent)


@dataclass(frozen=True)
class Parser:
    """A reader of hostile input.

    Parameters
    ----------
    name : str
        Also the folder of its seeds: texts, and bytes in hexadecimal where the ending is .hex.
    read : callable
        What the program does with such bytes.
    write : callable, optional
        Writes again what was read, which then reads the same.
    refuses : tuple of exception types
        How it may refuse; errors of the house have messages that people read.
    golden : str, optional
        Pattern of the golden files that it reads.
    examples : int
        Inputs that are tried in make test.
    """

    name: str
    read: Callable[[bytes], Any]
    write: Callable[[Any], bytes] | None = None
    refuses: tuple[type[Exception], ...] = (BadInput, PrivacyRefusal)
    golden: str | None = None
    examples: int = _EXAMPLES

    @property
    def seeds(self) -> list[bytes]:
        """Inputs that are kept, and golden files, which are always of the form of today."""
        paths = sorted((_SEEDS / self.name).iterdir())
        assert paths, f"there are no seeds for {self.name}"
        golden = [] if self.golden is None else sorted(GOLDENS.glob(self.golden))
        return [golden_bytes(path) for path in golden] + [
            bytes.fromhex(path.read_text()) if path.suffix == ".hex" else path.read_bytes() for path in paths
        ]


def golden_bytes(path: Path) -> bytes:
    """Bytes of a golden file, in which the time is left out."""
    return path.read_bytes().replace(b'"created": "then"', b'"created": "2026-01-02T03:04:05+00:00"')


def fuzz(parser: Parser, rng: random.Random) -> None:
    """Try the seeds, and inputs made from them."""
    seeds = parser.seeds
    mutator = Mutator(seeds)
    with bounded_time():
        for seed in seeds:
            _try(parser, seed)
        for _ in range(parser.examples):
            _try(parser, mutator.draw(rng))


def fuzz_guided(parser: Parser, rng: random.Random) -> None:
    """Try ten times as many inputs, and go on from those that reach lines that none reached before."""
    mutator = Mutator(parser.seeds)
    reached: set[tuple[str, int]] = set()
    with bounded_time():
        for seed in list(mutator.seeds):
            with _lines(reached):
                _try(parser, seed)
        for _ in range(10 * parser.examples):
            data, before = mutator.draw(rng), len(reached)
            with _lines(reached):
                _try(parser, data)
            if len(reached) > before:
                mutator.seeds.append(data)


def _try(parser: Parser, data: bytes) -> None:
    before = _peak()
    failure = _failure(parser, data)
    grown = _peak() - before  # of one input: what Arrow keeps of each damaged gzip adds up, and is not ours
    assert grown < _MEGABYTES, f"{parser.name}: an input took {grown} MiB: {data[:200]!r}"
    if failure is not None:
        small = _smaller(parser, data, failure.partition(":")[0])
        raise AssertionError(f"{parser.name}: {failure}; fix it and keep as a seed: {small!r}")


def _failure(parser: Parser, data: bytes) -> str | None:
    """What is wrong with how an input is taken, None where nothing is."""
    _tried[0] += 1
    try:
        found = parser.read(data)
        if parser.write is None:
            return None
        again = parser.read(parser.write(found))
    except parser.refuses as error:
        return _wrong_words(str(error), data) if isinstance(error, SfumatoError) else None
    except Exception as error:  # noqa: BLE001 (whatever it is, it is what a fuzzer looks for)
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None if again == found else "round trip: what was read is written as something else"


def _wrong_words(message: str, data: bytes) -> str | None:
    if not message.isprintable() or not message:
        return f"message: not one line of printable text: {message[:200]!r}"
    if len(message) > _LONGEST_MESSAGE:
        return f"length: the message has {len(message)} characters"
    said = re.sub(r"there is no column .*; the columns are", "", message)  # a name that the caller wrote, told back
    told = [cell for cell in CELLS if cell in said and cell not in _shown(data)]
    return f"cell: the message repeats one: {message[:200]}" if told else None


def _shown(data: bytes) -> str:
    """What messages may repeat of an input: keys and names of columns."""
    text = data.decode("utf-8", "replace")
    for read in (json.loads, tomllib.loads):
        try:
            return "\n".join(_names(read(text), named=True))
        except (ValueError, RecursionError):
            continue
    return text.lstrip("\r\n").splitlines()[0] if text.strip() else ""  # a header may stand below empty lines


def _names(value: Any, *, named: bool, chosen: bool = False) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inside in value.items():
            yield key
            yield from _names(inside, named=key in _NAMING, chosen=chosen or key == _CHOSEN)
    elif isinstance(value, list):
        for inside in value:
            yield from _names(inside, named=named, chosen=chosen)
    elif named or chosen:
        yield str(value)


def _smaller(parser: Parser, data: bytes, kind: str) -> bytes:
    """Leave parts out as long as it fails in the same way."""
    size = len(data) // 2
    while size:
        place = 0
        while place < len(data):
            without = data[:place] + data[place + size :]
            failure = _failure(parser, without)
            if failure is not None and failure.startswith(f"{kind}:"):
                data = without
            else:
                place += size
        size //= 2
    return data


@contextmanager
def bounded_time() -> Iterator[None]:
    """End an input that is still being read when the clock has struck twice.

    It is the processor's time that is counted, so load does not matter; and one clock for all inputs, for to set it
    anew for each of them takes as long as reading a small one.
    """
    struck = [-1]

    def strike(_signal: int, _frame: FrameType | None) -> None:
        if struck[0] == _tried[0]:
            raise TimeoutError(f"it takes more than {_SECONDS:g} s of processor time")
        struck[0] = _tried[0]

    before = signal.signal(signal.SIGVTALRM, strike)
    signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS, _SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.0)
        signal.signal(signal.SIGVTALRM, before)


def _peak() -> int:
    """Most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


@contextmanager
def _lines(reached: set[tuple[str, int]]) -> Iterator[None]:
    """Note the lines of the package that run."""

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(_SOURCES):
            return None
        if event == "line":
            reached.add((code.co_filename, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)
