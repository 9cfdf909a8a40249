"""Settings, keys and certificates of all parties at once, for a trial: ``sfumato party init``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sfumato.core.documents import read_text
from sfumato.core.documents import toml_value as _toml
from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.replacing import put_in_place, reason, work_folder
from sfumato.engines.parties.peers import Address, Made, TrialAuthority, check_name

__all__ = ["PartyTrial", "write_trial"]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class PartyTrial:
    """What is to be tried."""

    parties: Mapping[str, Address]  # in the order of their ranks
    partition: str  # {"horizontal", "vertical"}
    data: Mapping[str, Path] = field(default_factory=dict)  # the table of each party, as far as it is known
    run: str = "trial"
    # key, target: columns
    key: str | None = None
    target: str | None = None
    schema: Path | None = None  # of a horizontal partition, with declared domains; copied to every party
    k: int | None = None
    engine: str = "cheetah"  # {"cheetah", "aby3"}
    timeout: float = 60.0

    def __post_init__(self) -> None:
        from sfumato.engines.parties.plan import JointPlan
        from sfumato.mechanisms.perturb.laplace_pca import LaplacePCA

        JointPlan(self.partition, tuple(self.parties), LaplacePCA(k=self.k), self.target, self.engine)
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
    work: Path, place: Path, name: str, trial: PartyTrial, made: Mapping[str, Made], authority: bytes
) -> None:
    work.mkdir(mode=0o700)
    _write(work / "key.pem", made[name].key, private=True)
    _write(work / "authority.pem", authority)
    for other in trial.parties:
        _write(work / _certificate(name, other), made[other].certificate)
    pins = {other: one.fingerprint for other, one in made.items()}
    _write(work / "party.toml", _settings(name, place, trial, pins).encode())


def _declared(path: Path) -> bytes:
    """Read the schema that all owners of rows get; one with bounds that were read off rows goes to nobody."""
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
    parts += [_TLS, _ENGINE.format(protocol=_toml(trial.engine)), _data(name, place, trial), _method(trial)]
    return "\n".join(parts)


def _data(name: str, place: Path, trial: PartyTrial) -> str:
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


def _method(trial: PartyTrial) -> str:
    lines = ["[method]  # the same at all parties\n"]
    lines.append(_line("k" if trial.k is not None else "# k", str(trial.k or 100), "records of a group at least"))
    for key, value, meaning in _CHOICES[trial.partition]:
        lines.append(_line(f"# {key}", value, meaning))
    return "".join(lines)


def _line(key: str, value: str, meaning: str) -> str:
    return f"{f'{key} = {value}':<40}  # {meaning}\n"


_HEAD = """\
# One party's settings for a joint run: sfumato party --config party.toml
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
_COMMON: Sequence[tuple[str, str, str]] = (
    ("groups", "10", "the number of groups instead of k"),
    ("response_weight", "0.8", "weight of the target in the distance"),
    ("b", "0.2", "noise in ranges of a component; or rho1 and rho2"),
    ("guarantee", '"component"', 'or "record"'),
    ("rho1", "0.001", "a probability before the release"),
    ("rho2", "0.13", "and what it may look like after it"),
    ("rounds", "20", "rounds of K-means at most"),
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
        ("noise", '"each"', 'first and last draw a whole noise each; "split" halves it and protects from neither'),
    ),
}
