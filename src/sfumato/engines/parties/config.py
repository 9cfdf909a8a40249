"""What one party of a joint run is told: ``party.toml``."""

from __future__ import annotations

import os
import stat
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.core.documents import Misfit, Unparsable, parse_json, parse_toml, read_text, typed, write_json
from sfumato.core.errors import OptionError, PrivacyLeakWarning, shown
from sfumato.engines.parties.peers import Address, Identity, Peer, Place, check_name, fingerprint_of, read_fingerprint

if TYPE_CHECKING:
    from sfumato.engines.parties.plan import JointPlan
    from sfumato.tables.schema import Schema

__all__ = ["DataSource", "PartyConfig"]

_FORMAT = 1
_LEAST_TIMEOUT, _MOST_TIMEOUT = 2.0, 86_400.0
_WORDS = {"tuple[str": "a list of texts", "_Party": "a list of tables", "str": "a text in quotes"}
_WORDS |= {"float": "a number", "int": "a whole number"}
_OF_PLAN = ("rounds", "centres", "few", "noise", "rows_are_people")


@dataclass(frozen=True)
class DataSource:
    """The rows or columns that this party brings."""

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
            raise OptionError(f"{str(path)!r} is not valid TOML ({error}); mend it there") from None
        if document.get("format") != _FORMAT:
            raise OptionError(f"the party's settings have no 'format = {_FORMAT}'; this version reads no other")
        try:
            return _config(typed(_File, document), path.parent)
        except Misfit as wrong:
            raise OptionError(_sentence(wrong)) from None

    @property
    def name(self) -> str:
        """Name of this party."""
        return self.peers[self.rank].name

    def with_seed(self, seed: int | None) -> PartyConfig:
        """Make a rehearsal of it, which all parties must do alike."""
        return replace(self, plan=replace(self.plan, seed=seed))

    def settings(self) -> dict[str, Any]:
        """What all parties must have alike, as plain values.

        Of a horizontal partition the public part of the schema belongs to it.
        """
        from sfumato.tables.schema import field_to_document

        document = self.plan.document()
        schema = self.data.load_schema()
        if schema is None or self.plan.partition != "horizontal":
            return document
        fields = [field_to_document(field) for field in schema.public_part()]
        document |= {
            "columns": [field["name"] for field in fields],
            "schema": {each.pop("name"): each for each in fields},
        }
        settings: dict[str, Any] = parse_json(
            write_json(document)
        )  # dates, which a domain may have as bounds, as texts
        return settings

    def place(self, version: str) -> Place:
        """What the network needs to know, beside the version of the package."""
        settings = self.settings()
        own = (self.rank, self.peers, self.run, self.identity, self.listen)
        return Place(*own, settings, version, self.timeout, self.wait, self.step)


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


@dataclass(frozen=True)
class _File:
    """What ``party.toml`` says, entry by entry."""

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


def _sentence(wrong: Misfit) -> str:
    """Name the entry of ``party.toml`` that is missing, unknown or of another type."""
    where = wrong.path[:-1] if wrong.problem == "wrong" else wrong.path
    table = f"[[{where[0]}]] number {int(where[1]) + 1}" if len(where) > 1 else f"[{where[0]}]" if where else ""
    named = f"the entry {shown(wrong.entry)}{f' in {table}' if table else ''} of the party's settings"
    if wrong.problem == "missing":
        return f"{named} is missing; add it"
    if wrong.problem == "unknown":
        return f"{named} is unknown; known are {', '.join(wrong.hint.__dataclass_fields__)}"
    wanted = next((words for kind, words in _WORDS.items() if kind in str(wrong.hint)), "a table")
    return f"{named} is not {wanted}; mend it"


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
    from sfumato.engines.parties.plan import JointPlan
    from sfumato.mechanisms.perturb.laplace_pca import LaplacePCA

    given = {name: value for name, value in vars(file.method).items() if value is not None}
    mechanism = LaplacePCA(**{name: value for name, value in given.items() if name not in _OF_PLAN})
    choices = {name: value for name, value in given.items() if name in _OF_PLAN}
    return JointPlan(file.partition, names, mechanism, target=file.data.target, engine=file.engine.protocol, **choices)


def _data(data: _Data, partition: str, folder: Path) -> DataSource:
    if partition == "vertical" and data.key is None:
        raise OptionError("a vertical partition needs 'key' in [data], the column that all parties have in common")
    if partition == "horizontal" and data.key is not None:
        raise OptionError("'key' in [data] is for a vertical partition; leave it out")
    return DataSource(folder / data.file, data.key, data.columns, _under(folder, data.schema))


def _seconds(key: str, value: float) -> float:
    if not _LEAST_TIMEOUT <= value <= _MOST_TIMEOUT:
        raise OptionError(f"{key!r} lies between {_LEAST_TIMEOUT:g} and {_MOST_TIMEOUT:g} seconds; the usual is 60")
    return float(value)


def _check_own(config: PartyConfig) -> None:
    """Refuse before anybody is called what cannot go well."""
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
