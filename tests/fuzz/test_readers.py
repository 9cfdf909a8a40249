import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

import sfumato
from tests.fuzz.parsers import PARSERS

pytest.importorskip("starlette", reason="sfumato[survey] is not installed, and its readers are not tried")

_ROOT = Path(sfumato.__file__).parent

_READ = frozenset(
    (
        *("parse_json", "parse_toml", "from_json", "loads", "typed", "open_regular"),
        *("frombuffer", "unpack", "unpack_from", "fromhex", "b64decode", "fromisoformat"),
        *("read_schema", "open_stream", "open_file", "read_csv", "open_csv", "read_table", "ParquetFile"),
        *("urlsplit", "SimpleCookie", "PEM_cert_to_DER_cert", "load_verify_locations"),
    )
)
_READ_OF = {"load": "np", "reader": "csv", "from_bytes": "int"}

_ANY = re.compile("|".join((*_READ, *_READ_OF)))

_OWN = {
    "parties/peers.py KeyAndCertificate.fingerprint": "a certificate that was made here",
    "assess/attacks/noise_filter.py randomized_specs": "specifications in facts, which noise-spec-json tries",
    "methods/randomize/__init__.py Randomization._columns": "specifications, which noise-spec-json tries",
    "parties/engine/party.py _uniform": "bytes that were drawn here",
    "parties/engine/worker.py _listen": "frames of this party's own program, which engine-frame tries",
    "parties/arithmetic.py expand_mask": "bytes that were drawn here",
    "parties/session.py PlainEngine._compute": "bytes that were drawn here",
    "parties/session.py Session.public_rng": "a digest that was made here",
    "parties/spu.py SpuEngine._ask": "frames of this party's own engine, which engine-frame tries",
    "parties/arithmetic.py expand_share": "bytes that grew from a secret here",
    "core/randomness.py Randomness._key": "a digest that was made here",
    "engines/partitions/first_pass.py RowHash.of_rows": "numbers that were drawn here",
    "engines/partitions/first_pass.py RowHash.of_persons": "digests that were made here",
    "engines/partitions/run.py FileRows._resumed": "frames under the run's own key",
    "engines/partitions/gather.py gather": "frames under the run's own key",
    "engines/partitions/memory_limit.py table_of": "frames under the run's own key, or of its own cluster",
    "engines/partitions/memory_limit.py FileSpill._found": "lengths of frames, which are under the run's own key",
    "engines/partitions/population.py PopulationCounts.add": "frames under the run's own key, or of its own cluster",
    "engines/spark/parts.py open_on_spark": "rows of the run's own cluster",
    "engines/spark/parts.py number_rows": "numbers that were drawn here",
    "engines/spark/run.py ClusterRows.people.mapped": "counts of the run's own cluster",
    "engines/spark/run.py _passes": "rows of the run's own cluster",
    "engines/spark/run.py _ColumnsSeen.from_bytes": "rows of the run's own cluster",
    "engines/spark/run.py _transform": "rows of the run's own cluster",
    "stream/spark.py _Encode._encoded": "digests that were made here",
    "stream/spark.py _cells_processor.CellProcessor.handleInputRows": "rows of the run's own cluster",
    "stream/spark.py changes_of": "rows of the run's own cluster",
    "stream/cellwise.py carried_in": "files of the stream's own batches, at the owner's",
    "stream/cellwise.py _from_bytes": "the state store of the run's own cluster",
    "stream/cellwise.py _read": "the state store of the run's own cluster",
    "stream/cellwise.py _unpacked": "the state store of the run's own cluster",
    "stream/publish.py stream_on_spark": "digests that were made here",
    "engines/spark/run.py _add_up": "rows of the run's own cluster",
    "certificate/__init__.py certify": "what was written a moment before",
    "sklearn/dynamic.py write_snapshot": "what was written a moment before",
    "web/worker.py Worker._listen": "lines of the page's own program",
    "web/steps.py Steps.run": "orders of the page, whose choices web-choices tries",
    "web/steps.py Steps._sanitize": "orders of the page, whose choices web-choices tries",
    "web/visit.py WebSession.compared": "a file of the page's own program, in a folder of its own",
    "web/worker.py _Orders._listen": "orders of the page, whose choices web-choices tries",
}
"""Functions that read nothing from outside, and what they read."""


def _calls(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    """Functions with the readers that they call."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _calls(child, f"{name}.{child.name}" if name else child.name)
        elif isinstance(child, ast.Call):
            called = child.func
            if isinstance(called, ast.Name) and called.id in _READ:
                yield name, called.id
            elif isinstance(called, ast.Attribute):
                of = _READ_OF.get(called.attr)
                if called.attr in _READ or (of and isinstance(called.value, ast.Name) and called.value.id == of):
                    yield name, called.attr
            yield from _calls(child, name)
        else:
            yield from _calls(child, name)


@cache
def _entered() -> tuple[set[tuple[str, str]], list[str]]:
    """Files and functions of the package that the seeds of all parsers reach, and parsers that read none of theirs."""
    reached: set[CodeType] = set()

    def note(frame: FrameType, _event: str, _argument: Any) -> None:
        reached.add(frame.f_code)

    before = sys.gettrace()
    refused = []
    for parser in PARSERS:
        read = 0
        for seed in parser.seeds:
            sys.settrace(note)
            try:
                parser.read(seed)
                read += 1
            except Exception:  # noqa: BLE001 (what it may be, others ask)
                pass
            finally:
                sys.settrace(before)
        if not read:
            refused.append(parser.name)
    return {(code.co_filename, code.co_qualname.replace(".<locals>", "")) for code in reached}, refused


def test_every_function_that_reads_what_comes_from_outside_has_a_fuzzer() -> None:
    reached, _ = _entered()
    unfuzzed = []
    for path in sorted(_ROOT.rglob("*.py")):
        place = path.relative_to(_ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        if not _ANY.search(text):
            continue
        for name, reader in _calls(ast.parse(text), ""):
            if (str(path), name) not in reached and f"{place} {name}" not in _OWN:
                unfuzzed.append(f"{place}: {name} calls {reader}")
    assert not unfuzzed, "\n".join(unfuzzed)


def test_every_fuzzer_begins_with_an_input_that_is_read() -> None:
    """Where even the first input is refused, what comes after the refusal is never tried."""
    assert _entered()[1] == ["frames", "disconnect"], "which end when the connection is lost, so that they are refused"
