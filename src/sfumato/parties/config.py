"""What one party of a joint run is told: ``party.toml``."""

from __future__ import annotations

import datetime
import os
import stat
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.documents import Unparsable, parse_toml, read_text
from sfumato.errors import OptionError, PrivacyLeakWarning
from sfumato.parties.certificates import Identity, fingerprint_of, read_fingerprint
from sfumato.parties.entries import Entries
from sfumato.parties.place import Address, Peer, Place, check_name

if TYPE_CHECKING:
    from sfumato.parties.plan import JointPlan
    from sfumato.tables.schema import Schema

__all__ = ["DataSource", "PartyConfig"]

_FORMAT = 1
_LEAST_TIMEOUT, _MOST_TIMEOUT = 2.0, 86_400.0
_METHOD = {"k": "whole", "groups": "whole", "response_weight": "number", "b": "number", "guarantee": "text"}
_METHOD |= {"rho1": "number", "rho2": "number", "rounds": "whole", "centres": "text", "few": "text", "noise": "text"}
_OF_PLAN = ("rounds", "centres", "few", "noise")


@dataclass(frozen=True)
class DataSource:
    """The rows or columns that this party brings.

    Parameters
    ----------
    file : path
        The table.
    key : str, optional
        Column that says which rows of the owners belong together, for a vertical partition.
    columns : tuple of str, optional
        The columns to take; all but the key where it is not given.
    schema : path, optional
        Schema file of those columns; for a horizontal partition the same at all parties.
    """

    file: Path
    key: str | None = None
    columns: tuple[str, ...] | None = None
    schema: Path | None = None

    def load_schema(self) -> Schema | None:
        """Read the schema file, if there is one."""
        from sfumato.tables.schema import Schema

        return None if self.schema is None else Schema.load(self.schema)


@dataclass(frozen=True)
class PartyConfig:
    """One party's settings, checked.

    Parameters
    ----------
    run : str
        Name of the run.
    rank : int
        Which of the parties this one is.
    peers : tuple of Peer
    identity : Identity
    listen : Address
    plan : JointPlan
        What all parties agree on.
    data : DataSource
    interpreter : path, optional
        The Python of the engine's own environment.
    timeout, wait, step : float
    output : path, optional
    """

    run: str
    rank: int
    peers: tuple[Peer, ...]
    identity: Identity
    listen: Address
    plan: JointPlan
    data: DataSource
    interpreter: Path | None
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
        return _config(Entries(document, ""), path.parent)

    @property
    def name(self) -> str:
        """Name of this party."""
        return self.peers[self.rank].name

    def with_seed(self, seed: int | None) -> PartyConfig:
        """Make a rehearsal of it, which all parties must do alike."""
        return replace(self, plan=replace(self.plan, seed=seed))

    def settings(self) -> dict[str, Any]:
        """Give what all parties must have alike, as plain values.

        Of a horizontal partition the public part of the schema belongs to it.
        """
        from sfumato.tables.toml import field_to_document

        document = self.plan.document()
        schema = self.data.load_schema()
        if schema is None or self.plan.partition != "horizontal":
            return document
        fields = [field_to_document(field) for field in schema.public_part()]
        return {**document, "columns": [field["name"] for field in fields], "schema": _by_name(fields)}

    def place(self, version: str) -> Place:
        """Give what the network needs to know, beside the version of the package."""
        settings = self.settings()
        own = (self.rank, self.peers, self.run, self.identity, self.listen)
        return Place(*own, settings, version, self.timeout, self.wait, self.step)


def _config(entries: Entries, folder: Path) -> PartyConfig:
    if entries.take("format", "whole") != _FORMAT:
        raise OptionError(f"the party's settings have no 'format = {_FORMAT}'; this version reads no other")
    run, me = entries.need("run"), entries.need("me")
    peers, files = _peers(entries.tables("party"), folder)
    names = [peer.name for peer in peers]
    if me not in names:
        raise OptionError(f"this party is {me!r} and no [[party]] has that name; there are {', '.join(names)}")
    rank = names.index(me)
    timeout = _seconds(entries, "timeout", 60.0)
    listen = entries.take("listen")
    plan, interpreter, data = _plan(entries, tuple(names), folder)
    output = entries.take("output")
    config = PartyConfig(
        run,
        rank,
        peers,
        _identity(entries.table("tls"), folder, [file for place, file in enumerate(files) if place != rank]),
        Address("127.0.0.1", peers[rank].address.port) if listen is None else Address.parse(listen),
        plan,
        data,
        interpreter,
        timeout,
        _seconds(entries, "wait", timeout),
        _seconds(entries, "step", 1800.0),
        None if output is None else folder / output,
    )
    entries.done("format, run, me, partition, listen, timeout, wait, step, output, party, tls, engine, data, method")
    _check_own(config)
    return config


def _peers(tables: list[Entries], folder: Path) -> tuple[tuple[Peer, ...], list[Path | None]]:
    if len(tables) < 2:
        raise OptionError(f"the settings name {len(tables)} parties; a joint run has two or more [[party]]")
    peers, files = [], []
    for entries in tables:
        name, pin = entries.need("name"), read_fingerprint(entries.need("fingerprint"))
        check_name(name)
        if pin is None:
            raise OptionError(f"the fingerprint of party {name!r} is not a SHA-256; write its 64 hexadecimal digits")
        peers.append(Peer(name, Address.parse(entries.need("address")), pin))
        file = entries.take("certificate")
        files.append(None if file is None else folder / file)
        entries.done("name, address, fingerprint, certificate")
    for what, found in (("name", [peer.name for peer in peers]), ("certificate", [peer.fingerprint for peer in peers])):
        if len(set(found)) < len(found):
            raise OptionError(f"two parties have the same {what}; each has its own")
    return tuple(peers), files


def _identity(entries: Entries, folder: Path, others: list[Path | None]) -> Identity:
    key, certificate, authority = entries.need("key"), entries.need("certificate"), entries.take("authority")
    entries.done("key, certificate, authority")
    trusted = tuple(file for file in others if file is not None)
    if authority is None and len(trusted) < len(others):
        raise OptionError(
            f"{len(others) - len(trusted)} other parties have no 'certificate' and [tls] no 'authority'; give one"
        )
    return Identity(folder / key, folder / certificate, None if authority is None else folder / authority, trusted)


def _plan(entries: Entries, names: tuple[str, ...], folder: Path) -> tuple[JointPlan, Path | None, DataSource]:
    from sfumato.parties.plan import JointPlan
    from sfumato.perturb.laplace_pca import LaplacePCA

    engine, data, method = entries.table("engine"), entries.table("data"), entries.table("method")
    given = {name: method.take(name, kind) for name, kind in _METHOD.items()}
    given = {name: value for name, value in given.items() if value is not None}
    method.done(", ".join(_METHOD))
    target, interpreter = data.take("target"), engine.take("interpreter")
    mechanism = LaplacePCA(**{name: value for name, value in given.items() if name not in _OF_PLAN})
    plan = JointPlan(
        entries.need("partition"),
        names,
        mechanism,
        target=target,
        engine=engine.take("protocol", default="cheetah"),
        **{name: value for name, value in given.items() if name in _OF_PLAN},
    )
    engine.done("protocol, interpreter")
    return plan, None if interpreter is None else folder / interpreter, _data(data, plan.partition, folder)


def _data(entries: Entries, partition: str, folder: Path) -> DataSource:
    file, key, schema = entries.need("file"), entries.take("key"), entries.take("schema")
    columns = entries.take("columns", "texts")
    entries.done("file, key, columns, schema, target")
    if partition == "vertical" and key is None:
        raise OptionError("a vertical partition needs 'key' in [data], the column that all parties have in common")
    if partition == "horizontal" and key is not None:
        raise OptionError("'key' in [data] is for a vertical partition; leave it out")
    return DataSource(
        folder / file, key, None if columns is None else tuple(columns), None if schema is None else folder / schema
    )


def _seconds(entries: Entries, key: str, default: float) -> float:
    value = float(entries.take(key, "number", default))
    if not _LEAST_TIMEOUT <= value <= _MOST_TIMEOUT:
        raise OptionError(f"{key!r} lies between {_LEAST_TIMEOUT:g} and {_MOST_TIMEOUT:g} seconds; the usual is 60")
    return value


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


def _by_name(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {field["name"]: {key: _plain(value) for key, value in field.items() if key != "name"} for field in fields}


def _plain(value: Any) -> Any:
    """Write dates, which a domain may have as bounds, as texts that go over the wire."""
    if isinstance(value, dict):
        return {key: _plain(inside) for key, inside in value.items()}
    return value.isoformat() if isinstance(value, datetime.date) else value
