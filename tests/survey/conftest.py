"""Databases and collectors that several tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="sfumato[survey] is not installed: no collector to test")
pytest.importorskip("starlette", reason="sfumato[survey] is not installed: no collector to test")

from sfumato.core.database import engine, locate, transaction
from sfumato.survey.store import AnswerStore
from tests.survey.postgres import postgres_cluster, postgres_programs
from tests.survey.process import Running, collector, tokens


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    programs = postgres_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed on this machine: tested on SQLite only")
    pytest.importorskip("psycopg", reason="psycopg is not installed: tested on SQLite only")
    with postgres_cluster(programs) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of either kind."""
    if request.param == "sqlite":
        return str(tmp_path / "survey.db")
    url: str = request.getfixturevalue("postgres")
    with transaction(engine(locate(url)), write=True) as connection:
        for name in ("survey", "used", "counts"):
            connection.exec_driver_sql(f"drop table if exists sfumato_{name}")
    return url


@pytest.fixture
def store(place: str) -> Iterator[AnswerStore]:
    opened = AnswerStore.open(place)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("collector")


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Running]:
    """A collector without a rate limit, on SQLite."""
    options = ("--rate", "0", "--title", "Ages", "--question", "How old are you?")
    with collector(str(folder / "survey.db"), folder, *options) as started:
        yield started


@pytest.fixture(scope="module")
def unused(running: Running, folder: Path) -> Iterator[str]:
    """Tokens of that collector, a fresh one at each next()."""
    assert running.url
    return iter(tokens(str(folder / "survey.db"), 400))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that nobody has signed but itself."""
    import datetime
    import ipaddress

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "survey")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "key.pem").write_bytes(key.private_bytes(*form))
    return folder / "cert.pem", folder / "key.pem"
