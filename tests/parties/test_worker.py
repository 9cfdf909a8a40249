"""Frames between a party and its engine, and the words of a verdict, at the edge of what they may be."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
import pytest

from sfumato.parties.connection import read_verdict, verdict
from sfumato.parties.engine import worker
from sfumato.parties.engine.worker import FrameError, pack, unpack


def test_a_frame_comes_back_as_it_was_packed() -> None:
    arrays = [np.arange(6, dtype=np.uint64).reshape(2, 3), np.empty((0, 4), dtype=np.uint64), np.array([2**64 - 1])]
    data = b"".join(pack({"do": "run", "count": 3}, [array.astype(np.uint64) for array in arrays]))
    header, read = unpack(io.BytesIO(data).read)
    assert header == {"do": "run", "count": 3}
    assert [array.shape for array in read] == [(2, 3), (0, 4), (1,)]
    assert [array.tolist() for array in read] == [[[0, 1, 2], [3, 4, 5]], [], [2**64 - 1]]
    assert all(array.dtype == np.uint64 for array in read)


def header_of(length: int) -> bytes:
    """A header that announces the given number of bytes."""
    text = json.dumps({"shapes": []})
    return (text + " " * (length - len(text))).encode()


def test_a_header_is_as_long_as_it_may_be_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_HEADER", 40)
    assert unpack(io.BytesIO(struct.pack("<I", 40) + header_of(40)).read) == ({}, [])
    for length in (0, 41, 2**32 - 1):
        with pytest.raises(FrameError, match=f"a header cannot have {length} bytes"):
            unpack(io.BytesIO(struct.pack("<I", length) + header_of(41)).read)
    name = "x" * (40 - len(json.dumps({"a": "", "shapes": []})))
    assert b"".join(pack({"a": name})).endswith(b'"shapes": []}')
    with pytest.raises(FrameError, match="a header of 41 bytes is too long"):
        list(pack({"a": name + "x"}))


def test_a_frame_carries_so_many_numbers_and_arrays_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_CELLS", 6)
    monkeypatch.setattr(worker, "_ARRAYS", 2)

    def read(shapes: object) -> list[tuple[int, ...]]:
        text = json.dumps({"shapes": shapes}).encode()
        return [array.shape for array in unpack(io.BytesIO(struct.pack("<I", len(text)) + text + bytes(800)).read)[1]]

    assert read([[2, 2], [2]]) == [(2, 2), (2,)]
    assert read([[6]]) == [(6,)]
    assert read([[], [1, 1, 1]]) == [(), (1, 1, 1)]
    for shapes in ([[7]], [[2, 2], [3]], [[3, 3]], [[1], [1], [1]], [[1, 1, 1, 1]], [[-1]], [[True]], [[1.0]], ["a"]):
        with pytest.raises(FrameError):
            read(shapes)


def test_a_verdict_is_shown_as_plain_words_of_bounded_length() -> None:
    assert read_verdict(verdict("other settings")) == "other settings"
    assert read_verdict(verdict("")) == ""
    assert read_verdict(verdict("a\x1b[2J\nb")) == "a [2J b"
    assert read_verdict(verdict("x" * 1000)) == "x" * 300
