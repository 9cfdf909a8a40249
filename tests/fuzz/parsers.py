"""Every reader of hostile input: a new one joins with a line in ``PARSERS`` and a folder of seeds."""

from __future__ import annotations

import atexit
import hashlib
import io
import json
import shutil
import ssl
import tempfile
from collections.abc import Callable
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato import documents
from sfumato.collect.access import Access
from sfumato.collect.app import Collector
from sfumato.collect.client import _document
from sfumato.collect.http import Refused, Request, parse_json
from sfumato.collect.kept import KeptAnswers
from sfumato.collect.opening import url_of
from sfumato.collect.survey import Question, Survey
from sfumato.collect.tokens import check_token
from sfumato.engines import agreed, joint_run
from sfumato.errors import BadInput
from sfumato.geometry.key import Key
from sfumato.laws.domains import Integers, Labels
from sfumato.laws.priors import read_prior
from sfumato.laws.properties import holds
from sfumato.laws.spec import NoiseSpec
from sfumato.methods import make_mechanism
from sfumato.parties import vertical
from sfumato.parties.channel import PartyError
from sfumato.parties.config import PartyConfig
from sfumato.parties.engine.frames import FrameError, pack, unpack
from sfumato.parties.greeting import Hello, difference, read_verdict
from sfumato.parties.links import Link, Mail
from sfumato.parties.wire import Lost, Wire
from sfumato.parties.words import read_words
from sfumato.privacy.certificate import Certificate
from sfumato.publish import Policy, joint_folder
from sfumato.publish.signature import Signature, Verifier
from sfumato.publish.verify import verify_release
from sfumato.recipe import Recipe
from sfumato.scale.source import open_source
from sfumato.sklearn.snapshot import read_snapshot
from sfumato.stream.connectors.lines import read_lines
from sfumato.stream.connectors.reading import Reading
from sfumato.stream.connectors.redis_stream import RedisPlace
from sfumato.stream.epochs import Publication
from sfumato.stream.families import entry_of_left, families_left
from sfumato.stream.format import Head
from sfumato.stream.kept_rows import KeptRow
from sfumato.stream.settings import EpochLine, Progress, Settings, document_of, entry_of
from sfumato.tables.codec import Codec
from sfumato.tables.files import read_file
from sfumato.tables.levels import levels_of_table
from sfumato.tables.schema import Schema
from sfumato.tables.stored_codec import codec_from_document, codec_to_document
from tests.fuzz.fuzzing import Parser

__all__ = ["PARSERS"]

_TOKEN_KEY = bytes(32)
_OF_PEER = (PartyError, Lost)


def _text(read: Callable[[str], Any]) -> Callable[[bytes], Any]:
    """Take bytes as the text of a file; what is not UTF-8 is refused before."""
    return lambda data: read(data.decode("utf-8", "replace"))


def _bytes(write: Callable[[Any], str]) -> Callable[[Any], bytes]:
    return lambda found: write(found).encode()


@cache
def _folder() -> Path:
    """A folder in memory where there is one, for thousands of small files are written; removed at the end."""
    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _file(name: str, read: Callable[[Path], Any]) -> Callable[[bytes], Any]:
    """Read the bytes as a file of that name."""

    def through(data: bytes) -> Any:
        path = _folder() / name
        path.write_bytes(data)
        return read(path)

    return through


# ------------------------------------------------------------------------------------------------- tables and releases


@cache
def _table() -> pa.Table:
    return pa.table({"age": [30, 40, 50, None], "city": ["quetzal", "b", "quetzal", None], "born": ["2001-02-03"] * 4})


@cache
def _table_schema() -> Schema:
    return Schema.infer(_table())


def _levels(text: str) -> Any:
    levels, schema = levels_of_table(text, _table(), _table_schema())
    return levels.tolist(), schema


def _recipe(text: str) -> Recipe:
    recipe = Recipe.from_toml(text)
    make_mechanism(recipe.method, dict(recipe.parameters))
    return recipe


def _schema(text: str) -> Schema:
    schema = Schema.from_toml(text).without_reasons()
    schema.describe(domains=True)
    return schema


def _spec(text: str) -> NoiseSpec:
    spec = NoiseSpec.from_toml(text)
    spec.describe()
    return spec


def _inferred(path: Path) -> Schema:
    return Schema.infer(read_file(path)[0])


def _cells(path: Path) -> Any:
    return read_file(path)[0].to_pylist()


def _read_source(path: Path) -> pa.Table:
    source = open_source(path)
    return source.head(source.schema.names, 5)


def _verified(name: str) -> Callable[[bytes], Any]:
    """Check a release whose file of that name is hostile and certified as it is."""

    def through(data: bytes) -> Any:
        folder = _folder() / f"release of {name}"
        if not folder.exists():
            shutil.copytree(Path(__file__).parent / "release", folder)
        certificate = folder / "certificate.json"
        before = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        (folder / name).write_bytes(data)
        if name != certificate.name:
            told = certificate.read_text(encoding="utf-8").replace(before, hashlib.sha256(data).hexdigest())
            certificate.write_text(told, encoding="utf-8")
        for check in verify_release(folder):
            assert check.detail.isprintable(), check.detail
        return None

    return through


# ------------------------------------------------------------------------------------------------------------- parties


@cache
def _party() -> tuple[Path, str]:
    """Folder of a party whose settings are hostile, and the fingerprint of its certificate."""
    from sfumato.parties.certificates import self_signed

    folder = _folder() / "party"
    folder.mkdir()
    made = self_signed("bank", "127.0.0.1")
    (folder / "key.pem").write_bytes(made.key)
    (folder / "key.pem").chmod(0o600)
    (folder / "certificate.pem").write_bytes(made.certificate)
    (folder / "data.csv").write_text("id,age\n1,2\n", encoding="utf-8")
    return folder, made.fingerprint


def _config(data: bytes) -> Any:
    folder, fingerprint = _party()
    (folder / "party.toml").write_bytes(data.replace(b"OWN-FINGERPRINT", fingerprint.encode()))
    return PartyConfig.load(folder / "party.toml").settings()


class _Told:
    """A session in which the other party tells hostile bytes."""

    names, rank, parties = ("bank", "shop"), 0, 2

    def __init__(self, data: bytes) -> None:
        self._data = data

    def tell(self, payload: bytes | None, owner: int, label: str, count: int) -> bytes:
        return payload if payload is not None else self._data

    def read(self) -> dict[str, int]:
        return {"bytes": 1, "messages": 2, "engine_bytes": 3}


class _Plain:
    """TLS and the connection below, with hostile bytes already decrypted."""

    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def read(self, size: int) -> bytes:
        data = self._data.read(size)
        if not data:
            raise ssl.SSLZeroReturnError
        return data

    def write(self, data: bytes) -> None:
        """Take what this end answers."""

    def is_closing(self) -> bool:
        return False


def _frames(data: bytes) -> Any:
    """Take frames in as a party does, until the connection ends or breaks a rule."""
    wire = Wire.__new__(Wire)
    plain = _Plain(data)
    wire._tls, wire._writer = plain, plain  # type: ignore[assignment]
    wire._out, wire._held, wire.carried = ssl.MemoryBIO(), bytearray(), 0
    mail = Mail(("bank", "shop"))
    link = Link(1, wire, mail, clock=lambda: 0.0)
    while True:
        try:
            wire.receive().send(None)  # nothing waits here, so it ends at once
        except StopIteration as received:
            link._take(*received.value)
        except Lost:
            mail.check()
            raise


def _hello(data: bytes) -> Hello:
    hello = Hello.from_bytes(data)
    mine = Hello("0.1.0", "trial", "channel", 0, "", {"k": 5, "columns": ["age"]})
    told = difference(mine, hello, "shop")
    assert told is None or (told.isprintable() and len(told) < 600), told
    return hello


def _verdict(data: bytes) -> str:
    reason = read_verdict(data)
    assert reason.isprintable()
    return reason


def _unpack(data: bytes) -> tuple[dict[str, Any], list[Any]]:
    stream = io.BytesIO(data)

    def exactly(size: int) -> bytes:
        found = stream.read(size)
        if len(found) < size:
            raise FrameError("the pipe ended")
        return found

    header, arrays = unpack(exactly)
    return header, [(array.shape, array.tobytes()) for array in arrays]


def _pack(found: tuple[dict[str, Any], list[Any]]) -> bytes:
    header, arrays = found
    return b"".join(pack(header, [np.frombuffer(data, dtype="<u8").reshape(shape) for shape, data in arrays]))


# ------------------------------------------------------------------------------------------------ surveys and streams


@cache
def _survey() -> Survey:
    keep = {"name": "keep-or-replace", "keep": 0.75}
    return Survey(
        (
            Question("smokes", NoiseSpec(Labels(("no", "yes")), keep)),
            Question("age", NoiseSpec(Integers(0, 99), {"name": "laplace", "scale": 2.5})),
        )
    )


def _answer(data: bytes) -> Any:
    """Take an answer as the collector does, up to where it is stored."""
    document = parse_json(data)
    if not isinstance(document, dict):
        raise Refused(400, "no object")
    collector = Collector.__new__(Collector)
    collector._key, collector._survey = _TOKEN_KEY, _survey()
    return collector._submission(document)


def _request(data: bytes) -> Any:
    """Take headers as the collector does, one a line, the address of the client first."""
    first, *lines = data.split(b"\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    scope = {"headers": headers, "client": (first.decode("latin-1"), 1), "scheme": "http"}

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    request = Request.of(scope, receive)
    return request.client, request.name, Access("secret").allows(request)


def _kept(path: Path) -> Any:
    folder = path.with_suffix("")
    folder.mkdir(exist_ok=True)
    (folder / f"{hashlib.sha256(b'token').hexdigest()[:32]}.json").write_bytes(path.read_bytes())
    return KeptAnswers(folder).of("token")


def _lines(data: bytes) -> list[str]:
    return [identity for identity, _ in islice(read_lines(io.BytesIO(data), Reading(rows=2)), 50)]


def _codec(data: bytes) -> Codec:
    return codec_from_document(documents.parse_json(data))


def _rows(path: Path) -> Any:
    return read_prior(path, Labels(("a", "b", "c"))).tolist()


def _snapshot(data: bytes) -> Any:
    return read_snapshot(b"sfumato condenser 1\n" + hashlib.sha256(data).digest() + data)


def _json(document: Any) -> bytes:
    return json.dumps(document).encode()


def _settings(shape: Any) -> Callable[[bytes], Any]:
    return lambda data: document_of(shape, data)


def _entry(found: Any) -> bytes:
    return entry_of("x", found).body


PARSERS = (
    Parser("certificate", _text(Certificate.from_json), _bytes(Certificate.to_json)),
    Parser("released-certificate", _verified("certificate.json"), examples=300),
    Parser("released-schema", _verified("schema.toml"), examples=300),
    Parser("released-table", _verified("table.csv"), examples=300),
    Parser("signature", Signature.from_bytes, _bytes(Signature.to_text)),
    Parser("public-key", _file("key.pub", Verifier.load)),
    Parser("schema", _text(_schema), _bytes(Schema.to_toml)),
    Parser("recipe", _text(_recipe), _bytes(Recipe.to_toml)),
    Parser("policy", _text(Policy.from_toml), _bytes(Policy.to_toml)),
    Parser("key", _text(Key.from_toml), _bytes(Key.to_toml)),
    Parser("noise-spec", _text(_spec), _bytes(NoiseSpec.to_toml)),
    Parser("noise-spec-json", _file("spec.json", NoiseSpec.read), _bytes(lambda spec: spec.canonical)),
    Parser("csv", _file("table.csv", _cells)),
    Parser("csv-inferred", _file("inferred.csv", _inferred), examples=300),
    Parser("csv-gz", _file("table.csv.gz", _cells)),
    Parser("parquet", _file("table.parquet", _cells)),
    Parser("arrow", _file("table.arrow", _cells)),
    Parser("csv-in-batches", _file("batches.csv", _read_source)),
    Parser("parquet-in-batches", _file("batches.parquet", _read_source), examples=300),
    Parser("lines", _lines),
    Parser("prior", _file("prior.csv", _rows)),
    Parser("levels", _text(_levels)),
    Parser("property", _text(lambda text: holds(text, Integers(0, 1000)).tolist())),
    Parser("property-of-labels", _text(lambda text: holds(text, Labels(("no", "yes"))).tolist())),
    Parser("party-config", _config),
    Parser("hello", _hello, Hello.to_bytes, refuses=(ValueError,)),
    Parser("verdict", _verdict, refuses=(ValueError,)),
    Parser("frames", _frames, refuses=_OF_PEER),
    Parser("engine-frame", _unpack, _pack, refuses=(FrameError,)),
    Parser("shares", lambda data: read_words(data, (2, 3), "shop").tolist(), refuses=_OF_PEER),
    Parser("told-agreement", lambda data: agreed._document(data, "shop"), refuses=_OF_PEER),
    Parser("told-columns", lambda data: vertical._read(data, "shop"), refuses=_OF_PEER),
    Parser("told-cells", lambda data: joint_run._from_ipc(data, "shop", 2), refuses=_OF_PEER),
    Parser("told-traffic", lambda data: joint_run._traffic(_Told(data), _Told(data)), refuses=_OF_PEER),  # type: ignore[arg-type]
    Parser("told-hashes", lambda data: joint_folder._differing(data, {"table.csv": "0" * 64})),
    Parser("token", _text(lambda text: check_token(_TOKEN_KEY, text))),
    Parser("survey", lambda data: Survey.from_document(_document(data)), lambda survey: _json(survey.to_document())),
    Parser("answer", _answer, refuses=(Refused,)),
    Parser("request", _request),
    Parser("kept-answer", _file("kept.json", _kept)),
    Parser("redis-url", _text(RedisPlace.of_url)),
    Parser("database-url", _text(url_of)),
    Parser("stream-head", lambda data: Head.from_body(data, "state"), lambda head: head.to_entry().body),
    Parser("stream-settings", _settings(Settings), _entry),
    Parser("stream-progress", _settings(Progress), _entry),
    Parser("stream-epoch", _settings(EpochLine), _entry),
    Parser(
        "stream-codec", _codec, lambda codec: _json(codec_to_document(codec)), refuses=(BadInput, documents.Unparsable)
    ),
    Parser("stream-kept-row", lambda data: KeptRow.from_bytes(data, 2).to_bytes(), bytes),
    Parser("stream-families", families_left, lambda left: entry_of_left({str(f): e for f, e in left.items()}).body),
    Parser("stream-publication", lambda data: Publication.from_entries(data, {})),
    Parser("snapshot", _snapshot, examples=300),
)
