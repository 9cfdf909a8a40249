"""Hostile inputs made from good ones: bytes, words, lines and whole seeds cut, doubled, swapped and put in each other.

It knows words, texts in quotes, numbers, brackets and lines, which is what JSON, TOML, CSV and the small languages of
this package are made of.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

__all__ = ["Mutator"]

_WORDS = re.compile(rb'"(?:\\.|[^"\\\n])*"|[-+.\w]+|\s+|.', re.DOTALL)

_HOSTILE = tuple(
    word.encode()
    for word in (
        *("0", "-0", "-1", "1.5", "1e999", "-1e999", "1e-320", "NaN", "Infinity", "-Infinity", "nan", "inf", "1_0"),
        *(str(2**31), str(2**53 + 1), str(2**63), str(-(2**63)), str(2**64), "9" * 400, "0x10", "007", "٣", "²"),
        *("true", "false", "null", "[]", "{}", "[[]]", '[{"a": 1}]', '""', "''", '"="', "a.b", '"a b"'),
        *("0001-01-01", "9999-12-31", "2024-02-30", "9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+12:00", "12:00"),
        *('"\\ud800"', '"\\u0000"', '"\\u001b[2J"', '"\\n"', '"\u202e"', "\u2028", "\x00", "\x1b[2J", "\x7f", "\ufeff"),
        *(
            '"' + "x" * 300 + '"',
            '"../../etc"',
            '"%n%s{0}"',
            "#",
            "\\",
            '"',
            "'",
            '"""',
            "`",
            "=",
            ",",
            ":",
            "\r",
            "\n",
        ),
    )
)
_DEEP = (3, 40, 3000)
_WINDOW = 150  # bytes that are taken apart into words at once: the rest of a long input stays as it is
_LONG = "9" * 5000


class Mutator:
    """Draws hostile inputs.

    Parameters
    ----------
    seeds : sequence of bytes
        Inputs to begin with, good ones and hostile ones.
    """

    def __init__(self, seeds: Sequence[bytes]) -> None:
        self.seeds = list(seeds)
        words = {word for seed in seeds for word in _WORDS.findall(seed) if len(word) < 200}
        self._words = sorted(words)
        self._ways: tuple[Callable[[random.Random, bytes], bytes], ...] = (
            self._flip,
            self._cut,
            self._double,
            self._replace,
            self._replace,
            self._insert,
            self._swap,
            self._splice,
            self._repeat_line,
            self._nest,
        )

    def draw(self, rng: random.Random) -> bytes:
        """One input: a seed, changed once or a few times."""
        data = rng.choice(self.seeds)
        for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
            data = rng.choice(self._ways)(rng, data)
        return data

    def _word(self, rng: random.Random) -> bytes:
        if rng.random() < 0.01:
            return _LONG.encode()
        known: Sequence[bytes] = _HOSTILE if rng.random() < 0.5 or not self._words else self._words
        return rng.choice(known)

    def _flip(self, rng: random.Random, data: bytes) -> bytes:
        if not data:
            return bytes([rng.randrange(256)])
        place = rng.randrange(len(data))
        return data[:place] + bytes([rng.randrange(256)]) + data[place + 1 :]

    def _cut(self, rng: random.Random, data: bytes) -> bytes:
        start, end = _span(rng, len(data))
        return data[:start] if rng.random() < 0.2 else data[:start] + data[end:]

    def _double(self, rng: random.Random, data: bytes) -> bytes:
        start, end = _span(rng, len(data))
        return data[:end] + data[start:end] * rng.choice((1, 1, 2, 20)) + data[end:]

    def _replace(self, rng: random.Random, data: bytes) -> bytes:
        before, words, after = _around(rng, data)
        for _ in range(20 if words else 0):  # until it is no blank
            place = rng.randrange(len(words))
            if not words[place].isspace():
                words[place] = self._word(rng)
                break
        return b"".join((before, *words, after))

    def _insert(self, rng: random.Random, data: bytes) -> bytes:
        before, words, after = _around(rng, data)
        words.insert(rng.randint(0, len(words)), self._word(rng))
        return b"".join((before, *words, after))

    def _swap(self, rng: random.Random, data: bytes) -> bytes:
        before, words, after = _around(rng, data)
        if len(words) > 1:
            left, right = rng.randrange(len(words)), rng.randrange(len(words))
            words[left], words[right] = words[right], words[left]
        return b"".join((before, *words, after))

    def _splice(self, rng: random.Random, data: bytes) -> bytes:
        other = rng.choice(self.seeds)
        start, end = _span(rng, len(other))
        place = rng.randint(0, len(data))
        return data[:place] + other[start:end] + data[place if rng.random() < 0.5 else len(data) :]

    def _repeat_line(self, rng: random.Random, data: bytes) -> bytes:
        lines = data.splitlines(keepends=True) or [b""]
        line = rng.choice(lines)
        lines.insert(rng.randint(0, len(lines)), line if line.endswith(b"\n") else line + b"\n")
        return b"".join(lines)

    def _nest(self, rng: random.Random, data: bytes) -> bytes:
        before, words, after = _around(rng, data)
        words = words or [b""]
        place, deep = rng.randrange(len(words)), rng.choice(_DEEP if rng.random() < 0.1 else _DEEP[:2])
        left, right = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"), (b"a.", b""), (b"not ", b"")))
        words[place] = left * deep + words[place] + right * deep
        return b"".join((before, *words, after))


def _around(rng: random.Random, data: bytes) -> tuple[bytes, list[bytes], bytes]:
    """The words around a place, which may begin and end within one, and what is before and after them."""
    start = max(0, rng.randint(-_WINDOW // 2, len(data)) - _WINDOW // 2) if len(data) > _WINDOW else 0
    end = min(len(data), start + _WINDOW)
    return data[:start], _WORDS.findall(data, start, end), data[end:]


def _span(rng: random.Random, length: int) -> tuple[int, int]:
    start = rng.randint(0, length)
    return start, min(length, start + rng.choice((1, 2, 5, 20, 100)))
