"""Settings of one party of a joint run: ``party.toml``, read, and written with keys for all parties of a trial."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.documents import DocumentMismatch, Unparsable, parse_json, parse_toml, read_text, typed, write_json
from sfumato.core.documents import toml_value as _toml
from sfumato.core.errors import OptionError, PrivacyLeakWarning, SfumatoError, shown
from sfumato.core.replacing import put_in_place, reason, work_folder
from sfumato.parties.peers import (
    Address,
    Identity,
    KeyAndCertificate,
    NetworkSettings,
    Peer,
    TrialAuthority,
    check_name,
    fingerprint_of,
    read_fingerprint,
)

if TYPE_CHECKING:
    from sfumato.methods.condense import Condensation
    from sfumato.methods.perturb.laplace_pca import LaplacePCA
    from sfumato.parties.plan import JointPlan
    from sfumato.tables.schema import Schema

__all__ = ["PartyConfig", "PartyTrial", "write_trial"]

_FORMAT = 1
_LEAST_TIMEOUT, _MOST_TIMEOUT = 2.0, 86_400.0
_WORDS = {"tuple[str": "a list of texts", "_Party": "a list of tables", "str": "a text in quotes"}
_WORDS |= {"float": "a number", "int": "a whole number"}
_OF_PLAN = ("rounds", "centres", "few", "noise", "rows_are_people", "common", "holdout")


@dataclass(frozen=True)
class DataSource:
    """Rows or columns that this party contributes."""

    file: Path  # the table
    key: str | None = None  # column that says which rows of the owners belong together, for a vertical partition
    columns: tuple[str, ...] | None = None  # the columns to take; all but the key where it is not given
    schema: Path | None = None  # schema file of those columns; for a horizontal partition the same at all parties

    def load_schema(self) -> Schema | None:
        """Read the schema file, if there is one."""
        from sfumato.tables.schema import Schema

        return None if self.schema is None else Schema.load(self.schema)


@dataclass(frozen=True)
class PartyConfig:
    """One party's settings, checked."""

    run: str  # name of the run
    rank: int  # which of the parties this one is
    peers: tuple[Peer, ...]
    identity: Identity
    listen: Address
    plan: JointPlan  # what all parties agree on
    data: DataSource
    interpreter: Path | None  # the Python of the engine's own environment
    timeout: float
    wait: float
    step: float
    output: Path | None

    @classmethod
    def load(cls, path: str | Path) -> PartyConfig:
        """Read ``party.toml``; paths in it are relative to its folder.

        Raises
        ------
        OptionError
            Which names the entry that is missing, unknown or wrong.
        """
        path = Path(path)
        try:
            document = parse_toml(read_text(path, "settings file", "write one with 'sfumato party init'"))
        except Unparsable as error:
            raise OptionError(f"{str(path)!r} is not valid TOML ({error}); fix it there") from None
        if document.get("format") != _FORMAT:
            raise OptionError(f"the party's settings have no 'format = {_FORMAT}'; this version reads no other")
        try:
            return _config(typed(_File, document), path.parent)
        except DocumentMismatch as wrong:
            raise OptionError(_sentence(wrong)) from None

    @property
    def name(self) -> str:
        """Name of this party."""
        return self.peers[self.rank].name

    @property
    def files(self) -> tuple[Path, ...]:
        """Files that this party reads, besides its settings."""
        own, identity = self.data, self.identity
        found = (own.file, own.schema, identity.key, identity.certificate, identity.authority, *identity.trusted)
        return tuple(file for file in found if file is not None)

    def with_plan(self, **choices: Any) -> PartyConfig:
        """The same with other choices of the plan, which all parties must make alike."""
        return replace(self, plan=replace(self.plan, **choices))

    def settings(self) -> Mapping[str, Any]:
        """What all parties must have alike, as plain values.

        Of a horizontal partition the public part of the schema belongs to it.
        """
        from sfumato.tables.schema import field_to_document

        document = self.plan.document()
        schema = self.data.load_schema()
        if schema is None or self.plan.partition != "horizontal":
            return document
        fields = [field_to_document(field) for field in schema.public_part()]
        public = {
            "columns": [field["name"] for field in fields],
            "schema": {each.pop("name"): each for each in fields},
        }
        # dates, which a domain may have as bounds, as texts
        settings: Mapping[str, Any] = parse_json(write_json({**document, **public}))
        return settings

    def network_settings(self, version: str) -> NetworkSettings:
        """Settings of the network."""
        settings = self.settings()
        own = (self.rank, self.peers, self.run, self.identity, self.listen)
        return NetworkSettings(*own, settings, version, self.timeout, self.wait, self.step)


@dataclass(frozen=True)
class _Party:
    name: str
    address: str
    fingerprint: str
    certificate: str | None = None


@dataclass(frozen=True)
class _Tls:
    key: str
    certificate: str
    authority: str | None = None


@dataclass(frozen=True)
class _Engine:
    protocol: str = "cheetah"
    interpreter: str | None = None


@dataclass(frozen=True)
class _Data:
    file: str
    key: str | None = None
    columns: tuple[str, ...] | None = None
    schema: str | None = None
    target: str | None = None


@dataclass(frozen=True)
class _Method:
    name: str = "laplace-pca"
    k: int | None = None
    groups: int | None = None
    response_weight: float | None = None
    b: float | None = None
    guarantee: str | None = None
    rho1: float | None = None
    rho2: float | None = None
    rounds: int | None = None
    centres: str | None = None
    few: str | None = None
    noise: str | None = None
    rows_are_people: bool | None = None
    common: float | None = None
    holdout: float | None = None


@dataclass(frozen=True)
class _File:
    """Entries of ``party.toml``."""

    format: int
    run: str
    me: str
    partition: str
    tls: _Tls
    data: _Data
    party: tuple[_Party, ...] = ()
    engine: _Engine = _Engine()
    method: _Method = _Method()
    listen: str | None = None
    timeout: float = 60.0
    wait: float | None = None
    step: float = 1800.0
    output: str | None = None


def _sentence(wrong: DocumentMismatch) -> str:
    """Name the entry of ``party.toml`` that is missing, unknown or of another type."""
    where = wrong.path[:-1] if wrong.problem == "wrong" else wrong.path
    table = f"[[{where[0]}]] number {int(where[1]) + 1}" if len(where) > 1 else f"[{where[0]}]" if where else ""
    named = f"the entry {shown(wrong.entry)}{f' in {table}' if table else ''} of the party's settings"
    if wrong.problem == "missing":
        return f"{named} is missing; add it"
    if wrong.problem == "unknown":
        return f"{named} is unknown; known are {', '.join(wrong.hint.__dataclass_fields__)}"
    wanted = next((words for kind, words in _WORDS.items() if kind in str(wrong.hint)), "a table")
    return f"{named} is not {wanted}; fix it"


def _config(file: _File, folder: Path) -> PartyConfig:
    if not file.run:
        raise OptionError("the entry 'run' of the party's settings is missing; add it")
    peers = _peers(file.party)
    names = [peer.name for peer in peers]
    if file.me not in names:
        raise OptionError(f"this party is {file.me!r} and no [[party]] has that name; there are {', '.join(names)}")
    rank, listen = names.index(file.me), file.listen
    others = [each.certificate for place, each in enumerate(file.party) if place != rank]
    config = PartyConfig(
        file.run,
        rank,
        peers,
        _identity(file.tls, folder, others),
        Address("127.0.0.1", peers[rank].address.port) if listen is None else Address.parse(listen),
        _plan(file, tuple(names)),
        _data(file.data, file.partition, folder),
        _under(folder, file.engine.interpreter),
        _seconds("timeout", file.timeout),
        _seconds("wait", file.timeout if file.wait is None else file.wait),
        _seconds("step", file.step),
        _under(folder, file.output),
    )
    _check_own(config)
    return config


def _under(folder: Path, name: str | None) -> Path | None:
    return None if name is None else folder / name


def _peers(parties: tuple[_Party, ...]) -> tuple[Peer, ...]:
    if len(parties) < 2:
        raise OptionError(f"the settings name {len(parties)} parties; a joint run has two or more [[party]]")
    peers = []
    for party in parties:
        check_name(party.name)
        pin = read_fingerprint(party.fingerprint)
        if pin is None:
            raise OptionError(
                f"the fingerprint of party {party.name!r} is not a SHA-256; write its 64 hexadecimal digits"
            )
        peers.append(Peer(party.name, Address.parse(party.address), pin))
    for what, found in (("name", [peer.name for peer in peers]), ("certificate", [peer.fingerprint for peer in peers])):
        if len(set(found)) < len(found):
            raise OptionError(f"two parties have the same {what}; each has its own")
    return tuple(peers)


def _identity(tls: _Tls, folder: Path, others: list[str | None]) -> Identity:
    trusted = tuple(folder / file for file in others if file is not None)
    if tls.authority is None and len(trusted) < len(others):
        raise OptionError(
            f"{len(others) - len(trusted)} other parties have no 'certificate' and [tls] no 'authority'; give one"
        )
    return Identity(folder / tls.key, folder / tls.certificate, _under(folder, tls.authority), trusted)


def _plan(file: _File, names: tuple[str, ...]) -> JointPlan:
    from sfumato.parties.plan import JointPlan

    chosen = {name: value for name, value in vars(file.method).items() if value is not None}
    method = chosen.pop("name")
    mechanism = _mechanism(method, {name: value for name, value in chosen.items() if name not in _OF_PLAN})
    choices = {name: value for name, value in chosen.items() if name in _OF_PLAN}
    return JointPlan(file.partition, names, mechanism, target=file.data.target, engine=file.engine.protocol, **choices)


def _mechanism(name: str, parameters: Mapping[str, Any]) -> LaplacePCA | Condensation:
    """Method of a joint run by its name and the entries of ``[method]``."""
    from sfumato.parties.plan import METHODS

    if name not in METHODS:
        raise OptionError(f"several owners cannot run the method {shown(name)}; choose one of {', '.join(METHODS)}")
    known = {field.name for field in fields(METHODS[name])}
    strange = next((each for each in parameters if each not in known), None)
    if strange is not None:
        raise OptionError(f"the method {name!r} has no {strange!r}; leave it out of [method]")
    return METHODS[name](**{"grouping": "modified", **parameters})


def _data(data: _Data, partition: str, folder: Path) -> DataSource:
    if partition == "vertical" and data.key is None:
        raise OptionError("a vertical partition needs 'key' in [data], the column that all parties have in common")
    if partition == "horizontal" and data.key is not None:
        raise OptionError("'key' in [data] is for a vertical partition; leave it out")
    return DataSource(folder / data.file, data.key, data.columns, _under(folder, data.schema))


def _seconds(key: str, value: float) -> float:
    if not _LEAST_TIMEOUT <= value <= _MOST_TIMEOUT:
        raise OptionError(f"{key!r} lies between {_LEAST_TIMEOUT:g} and {_MOST_TIMEOUT:g} seconds; the default is 60")
    return float(value)


def _check_own(config: PartyConfig) -> None:
    """Refuse missing files and a certificate that is not the pinned one, before any connection."""
    for path, what in ((config.data.file, "data file"), (config.data.schema, "schema file")):
        if path is not None and not path.is_file():
            raise OptionError(f"the {what} {str(path)!r} is not there; check its name")
    if config.interpreter is not None and not config.interpreter.is_file():
        raise OptionError(f"the interpreter {str(config.interpreter)!r} is not there; check its name")
    _warn_readable(config.identity.key)
    if fingerprint_of(config.identity.certificate) != config.peers[config.rank].fingerprint:
        raise OptionError(
            f"the certificate {str(config.identity.certificate)!r} has not the fingerprint that is pinned for "
            f"{config.name!r}, this party; check both"
        )


def _warn_readable(key: Path) -> None:
    if os.name == "posix" and key.is_file() and stat.S_IMODE(key.stat().st_mode) & 0o077:
        warnings.warn(
            PrivacyLeakWarning(f"the key {str(key)!r} is open to others; close it with chmod 600"), stacklevel=4
        )


_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class PartyTrial:
    """A trial of a joint run, with all parties on one machine or a few."""

    parties: Mapping[str, Address]  # in the order of their ranks
    partition: str  # {"horizontal", "vertical"}
    data: Mapping[str, Path] = field(default_factory=dict)  # the table of each party, as far as it is known
    run: str = "trial"
    # key, target: columns
    key: str | None = None
    target: str | None = None
    schema: Path | None = None  # of a horizontal partition, with declared domains; copied to every party
    k: int | None = None
    method: str = "laplace-pca"  # or "condense"
    engine: str = "cheetah"  # {"cheetah", "aby3"}
    timeout: float = 60.0

    def __post_init__(self) -> None:
        from sfumato.parties.plan import JointPlan

        mechanism = _mechanism(self.method, {} if self.k is None else {"k": self.k})
        JointPlan(self.partition, tuple(self.parties), mechanism, self.target, self.engine)
        for name in self.parties:
            check_name(name)
        strange = sorted(set(self.data) - set(self.parties))
        if strange:
            raise OptionError(f"there are data for {strange[0]!r}, which is no party; name it with --party")
        if self.partition == "vertical" and self.key is None:
            raise OptionError(
                "a vertical partition needs the column that all parties have in common; name it with --key"
            )
        if self.partition == "horizontal" and self.key is not None:
            raise OptionError("--key is for a vertical partition; leave it out")
        if self.partition == "vertical" and self.schema is not None:
            raise OptionError(
                "--schema is for a horizontal partition, where owners share one; name those of columns in party.toml"
            )
        if len(set(self.parties.values())) < len(self.parties):
            raise OptionError("two parties have the same address; each has its own port")


def write_trial(folder: Path, trial: PartyTrial, *, keep_authority: bool = False) -> dict[str, Path]:
    """Write a folder for each party with its settings, its key and the certificates of all; give the settings files.

    The folder appears whole or not at all, and an existing one is never replaced.

    Parameters
    ----------
    keep_authority : bool
        Keep the authority's key, in ``authority-key.pem`` beside the parties; otherwise nobody can make certificates
        for them later.
    """
    _refuse_existing(folder)
    schema = None if trial.schema is None else _declared(trial.schema)
    authority = TrialAuthority(trial.run)
    made = {name: authority.issue(name, address.host) for name, address in trial.parties.items()}
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with work_folder(folder) as work:
            for name in trial.parties:
                _write_party(work / name, folder / name, name, trial, made, authority.certificate)
                if schema is not None:
                    _write(work / name / "schema.toml", schema)
            if keep_authority:
                _write(work / "authority-key.pem", authority.key, private=True)
            _refuse_existing(folder)
            put_in_place(work, folder)
    except OSError as error:
        raise SfumatoError(
            f"the folder {str(folder)!r} could not be written ({reason(error)}); make room or choose another place"
        ) from None
    return {name: folder / name / "party.toml" for name in trial.parties}


def _refuse_existing(folder: Path) -> None:
    if folder.exists() or folder.is_symlink():
        raise OptionError(f"the folder {str(folder)!r} exists and is not replaced; choose another")


def _write_party(
    work: Path, place: Path, name: str, trial: PartyTrial, made: Mapping[str, KeyAndCertificate], authority: bytes
) -> None:
    work.mkdir(mode=0o700)
    _write(work / "key.pem", made[name].key, private=True)
    _write(work / "authority.pem", authority)
    for other in trial.parties:
        _write(work / _certificate(name, other), made[other].certificate)
    pins = {other: one.fingerprint for other, one in made.items()}
    _write(work / "party.toml", _settings(name, place, trial, pins).encode())


def _declared(path: Path) -> bytes:
    """Read the schema that all owners of rows get; refuse one whose bounds were observed in rows."""
    from sfumato.tables.schema import Schema

    text = read_text(path, "schema file", "check its name")
    observed = [field.name for field in Schema.from_toml(text).encoded if not field.domain.declared]
    if observed:
        raise OptionError(
            f"the domains of {len(observed)} columns are not declared, the first is {observed[0]!r}; declare bounds "
            "and categories in the schema, which all owners share"
        )
    return text.encode()


def _certificate(me: str, other: str) -> str:
    return "certificate.pem" if other == me else f"certificate-of-{other}.pem"


def _write(path: Path, data: bytes, *, private: bool = False) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if private else 0o644), "wb") as file:
        file.write(data)


def _settings(name: str, place: Path, trial: PartyTrial, pins: Mapping[str, str]) -> str:
    """Write ``party.toml`` with what each entry means."""
    own = trial.parties[name]
    listen = Address("127.0.0.1", own.port) if own.host in _LOOPBACK else own
    parts = [
        _HEAD.format(run=_toml(trial.run), me=_toml(name), partition=_toml(trial.partition), listen=_toml(str(listen)))
        + _line("timeout", f"{trial.timeout:g}", "seconds of silence after which a party is taken for gone")
        + _line("# wait", "600", "seconds to wait for all parties at the start; like timeout if not given")
        + _line("# step", "1800", "seconds that one step of another party may take at most")
        + _line("output", _toml("joint"), "folder for release/ and owner/; -o goes before")
    ]
    parts.append(_PARTIES)
    for other, address in trial.parties.items():
        shown = (_toml(other), _toml(str(address)), _toml(pins[other]), _toml(_certificate(name, other)))
        parts.append("[[party]]\nname = {}\naddress = {}\nfingerprint = {}\ncertificate = {}\n".format(*shown))
    parts += [_TLS, _ENGINE.format(protocol=_toml(trial.engine)), _data_lines(name, place, trial), _method_lines(trial)]
    return "\n".join(parts)


def _data_lines(name: str, place: Path, trial: PartyTrial) -> str:
    given = trial.data.get(name)
    file = "data.csv" if given is None else os.path.relpath(given.absolute(), place.absolute())
    lines = ["[data]\n", _line("file", _toml(file), "your table; relative to this file")]
    if trial.partition == "vertical":
        lines.append(_line("key", _toml(trial.key), "says which rows of the owners belong together; never released"))
    lines.append(_line("# columns", '["age", "income"]', "the columns to take; all if not given"))
    shown = "schema" if trial.schema is not None else "# schema"
    meaning = "the same at all parties, domains declared" if trial.partition == "horizontal" else "of your columns"
    lines.append(_line(shown, _toml("schema.toml"), f"written by 'sfumato inspect'; {meaning}"))
    target = "# target" if trial.target is None else "target"
    lines.append(_line(target, _toml(trial.target or "income"), "what will be predicted, whoever has it; all the same"))
    return "".join(lines)


def _method_lines(trial: PartyTrial) -> str:
    lines = ["[method]  # the same at all parties\n"]
    condenses = trial.method == "condense"
    lines.append(_line("name", _toml(trial.method), '"laplace-pca": rows with noise; "condense": synthetic rows'))
    usual = trial.k or (10 if condenses else 100)
    lines.append(_line("k" if trial.k is not None else "# k", str(usual), "records of a group at least"))
    for key, value, meaning in _CHOICES[trial.partition]:
        if condenses and key in _OF_NOISE:
            continue
        lines.append(_line(f"# {key}", value, meaning))
    return "".join(lines)


def _line(key: str, value: str, meaning: str) -> str:
    return f"{f'{key} = {value}':<40}  # {meaning}\n"


_HEAD = """\
# One party's settings for a joint run: sfumato party run --config party.toml
# Paths are relative to this file. Lines that begin with '#' show what else can be said.
format = 1
run = {run}
me = {me}
partition = {partition}
listen = {listen}
"""
_PARTIES = """\
# All parties, in one order everywhere; the first and the last compute. The fingerprint is the SHA-256 of the party's
# certificate ('openssl x509 -noout -fingerprint -sha256 -in certificate.pem'): compare it with its owner.
"""
_TLS = """\
[tls]
key = "key.pem"  # stays with you
certificate = "certificate.pem"
authority = "authority.pem"  # who signed all certificates; without it those named above are trusted as they are
"""
_ENGINE = """\
[engine]
protocol = {protocol}  # "cheetah": the first and the last party compute; "aby3": first, second and last
# interpreter = "../.venv-parties/bin/python"  # the engine's own Python
"""
_OF_NOISE = ("groups", "b", "guarantee", "rho1", "rho2", "noise")
_COMMON: Sequence[tuple[str, str, str]] = (
    ("groups", "10", "the number of groups instead of k"),
    ("response_weight", "0.8", "weight of the target in the distance"),
    ("b", "0.2", "noise in ranges of a component; or rho1 and rho2"),
    ("guarantee", '"component"', 'or "record"'),
    ("rho1", "0.001", "a probability before the release"),
    ("rho2", "0.13", "and what it may look like after it"),
    ("rounds", "20", "rounds of K-means at most"),
    ("holdout", "0.3", "share of the people who are the control group"),
)
_CHOICES = {
    "horizontal": (
        *_COMMON,
        ("centres", '"last"', 'keeps centres shared; "each" opens them in every round'),
        ("few", '"refuse"', 'where an owner would see one or two rows of the others bare; or "allow"'),
        ("rows_are_people", "true", "where a column looks like a key of persons and each row is a person all the same"),
    ),
    "vertical": (
        *_COMMON,
        ("common", "0.9", "go on with the keys that all have, if they are this share of each owner's keys"),
        ("noise", '"each"', 'first and last draw a whole noise each; "split" halves it and protects from neither'),
    ),
}
