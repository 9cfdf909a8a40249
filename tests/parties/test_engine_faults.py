"""The engine when something goes wrong: dead, silent and foreign workers, and what does not belong into the pipe."""

from __future__ import annotations

import io
import os
import signal
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import OptionError
from sfumato.parties.arithmetic import Operation
from sfumato.parties.channel import PartyError
from sfumato.parties.engine import worker
from sfumato.parties.engine.worker import FrameError, pack, unpack
from sfumato.parties.spu import SpuEngine, engine_python
from tests.parties.engines import free_addresses, need_engine, split, start_engines, together

Pipe = subprocess.Popen[bytes]


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Pipe]:
    """A worker without a party, in a folder of its own."""
    need_engine()
    command = [str(engine_python()), "-I", worker.__file__]
    with subprocess.Popen(command, cwd=tmp_path, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, bufsize=0) as process:
        yield process
        process.kill()


def say(process: Pipe, header: dict[str, Any]) -> dict[str, Any]:
    write(process, b"".join(pack(header)))
    return answer(process)


def write(process: Pipe, data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)


def answer(process: Pipe) -> dict[str, Any]:
    out = process.stdout
    assert out is not None

    def read(size: int) -> bytearray:
        data = bytearray()
        while len(data) < size:
            data += out.read(size - len(data))
        return data

    return unpack(read)[0]


def start(**changes: Any) -> dict[str, Any]:
    ways = ["127.0.0.1:9", "127.0.0.1:10"]
    return {"do": "start", "protocol": "cheetah", "rank": 0, "addresses": ways, "timeout": 60.0, **changes}


def test_commands_that_cannot_be_carried_out_are_refused_in_a_sentence_each(pipe: Pipe) -> None:
    for command, words in (
        (start(protocol="semi2k"), "dealer"),
        (start(protocol="aby3"), "exactly 3"),
        (start(rank=2), "exactly 2"),
        (start(addresses=["127.0.0.1:9"] * 3), "exactly 2"),
        (start(addresses=["127.0.0.1:9", "0.0.0.0:10"]), "127.0.0.1 only"),
        (start(addresses="127.0.0.1:9"), "addresses"),
        (start(timeout="soon"), "timeout"),
        ({"do": "run", "name": "argmin"}, "in this order"),
        ({"do": "dance"}, "in this order"),
    ):
        assert words in say(pipe, command)["error"]


@pytest.mark.parametrize("data", [struct.pack("<I", 1 << 31), struct.pack("<I", 4) + b"\xff\xfe{}"])
def test_what_is_no_frame_ends_the_worker(pipe: Pipe, data: bytes) -> None:
    write(pipe, data)
    assert "invalid frame" in answer(pipe)["error"]
    assert pipe.wait(300) == 1


@pytest.mark.slow
def test_a_worker_leaves_no_file_where_it_runs(pipe: Pipe, tmp_path: Path) -> None:
    assert "error" not in say(pipe, {"do": "load"})
    assert list(tmp_path.iterdir()) == []


def test_a_worker_is_gone_when_its_pipe_closes_even_while_it_waits_for_others(pipe: Pipe) -> None:
    write(pipe, b"".join(pack(start(addresses=free_addresses(2), timeout=600.0))))
    time.sleep(1.0)
    assert pipe.poll() is None
    assert pipe.stdin is not None
    pipe.stdin.close()
    assert pipe.wait(300) == 0


def test_a_fellow_that_never_comes_is_an_error_within_the_timeout() -> None:
    need_engine()
    with pytest.raises(PartyError, match="no answer in time"):
        SpuEngine("cheetah", 0, dict(enumerate(free_addresses(2))), timeout=1.0)


@pytest.mark.slow  # the worker receives the same above
def test_protocols_and_numbers_of_parties_that_are_unsafe_are_refused() -> None:
    need_engine()
    with pytest.raises(PartyError, match="dealer"):
        SpuEngine("semi2k", 0, dict(enumerate(free_addresses(2))))
    with pytest.raises(OptionError, match="party 1 does not compute"):
        SpuEngine("cheetah", 1, dict(zip((0, 2), free_addresses(2), strict=True)))


def test_a_killed_worker_ends_the_work_at_every_party() -> None:
    need_engine()
    gave_up = threading.Event()
    engines = start_engines("cheetah", (0, 1), failed=gave_up.is_set)
    values = np.arange(4_000, dtype=np.int64).reshape(-1, 8)
    operation = Operation("argmin", (values.shape,))
    os.kill(engines[1].pid, signal.SIGSTOP)  # or a fast machine is done before the other is killed

    def work(engine: SpuEngine, share: Any) -> str:
        try:
            engine.run(operation, [share])
        except PartyError as error:
            gave_up.set()  # as the channel would tell the others
            return str(error)
        return "finished"

    def kill() -> str:
        time.sleep(0.7)
        os.kill(engines[0].pid, signal.SIGKILL)
        os.kill(engines[1].pid, signal.SIGCONT)
        return "killed"

    pairs = zip(engines, split(values), strict=True)
    actions: list[Callable[[], str]] = [*(partial(work, engine, share) for engine, share in pairs), kill]
    said = together(actions)
    assert "status -9" in said[0]
    assert "another party gave up" in said[1]
    for engine in engines:
        assert not Path(f"/proc/{engine.pid}").exists()  # reaped
        with pytest.raises(PartyError, match="has ended"):
            engine.run(operation, [values.view(np.uint64)])
        engine.close()


@pytest.mark.slow
def test_waiting_for_a_party_that_gave_up_ends_with_its_words() -> None:
    need_engine()
    words: list[str] = []
    engines = start_engines("cheetah", (0, 3), failed=lambda: words[0] if words else None)
    values = np.array([[3, 1, 2]], dtype=np.int64)
    threading.Timer(0.5, lambda: words.append("party 'south' gave up: its file was not found")).start()
    with pytest.raises(PartyError, match="its file was not found"):
        engines[0].run(Operation("argmin", ((1, 3),)), [values.view(np.uint64)])  # the others do not call
    for engine in engines:
        engine.close()
        assert not Path(f"/proc/{engine.pid}").exists()


def test_an_interpreter_that_is_not_there_is_bad_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SFUMATO_ENGINE_PYTHON", str(tmp_path / "python"))
    with pytest.raises(OptionError, match="SFUMATO_ENGINE_PYTHON"):
        engine_python()


@given(shapes=st.lists(st.lists(st.integers(0, 5), max_size=3).map(tuple), max_size=4))
def test_frames_give_back_what_was_packed(shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(1)
    arrays = [rng.integers(0, 1 << 64, size=shape, dtype=np.uint64) for shape in shapes]
    header, read = unpack(io.BytesIO(b"".join(pack({"do": "run"}, arrays))).read)
    assert header == {"do": "run"}
    assert [array.tolist() for array in read] == [array.tolist() for array in arrays]


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"{",
        b'{"shapes": 3}',
        b'{"shapes": [3]}',
        b'{"shapes": [[-1]]}',
        b'{"shapes": [[true]]}',
        b'{"shapes": [[1, 1, 1, 1]]}',
        b'{"shapes": [[1099511627776]]}',
        b'{"shapes": [[65536, 65536, 65536]]}',
        b'{"shapes": [[1], [1], [1], [1], [1], [1], [1], [1], [1]]}',
    ],
)
def test_a_header_that_could_not_be_ours_is_refused_before_anything_is_read(text: bytes) -> None:
    stream = io.BytesIO(struct.pack("<I", len(text)) + text + bytes(64))
    with pytest.raises(FrameError):
        unpack(stream.read)
    assert stream.tell() <= 4 + len(text)
