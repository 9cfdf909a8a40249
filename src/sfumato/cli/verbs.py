"""Verbs of one call each: demo, inspect, policy, verify, web and doctor.

The demo shows a made-up population of patients: numbers, categories, dates, missing cells, and a rule between two
columns. The doctor says what is installed here, what is missing and how to get it, and compiles ahead of the first run.
"""

from __future__ import annotations

import os
import platform
import re
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

import sfumato as sf
from sfumato import __version__
from sfumato.cli.console import Console, Verb, tell_error, verb
from sfumato.cli.options import (
    COUNT,
    FILE,
    INPUT,
    check_new,
    check_output,
    options,
    take_reading,
    usual,
    write_private,
)
from sfumato.core.arguments import Panel
from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.progress import tell
from sfumato.tables.reading import describe_reading, read_people

if TYPE_CHECKING:
    import pyarrow as pa

    from sfumato.methods.protocol import Mechanism

__all__ = ["demo", "doctor", "inspect", "policy", "population", "verify", "warm", "web"]

_LEAF = 200


@click.command(cls=Verb)
@click.option("-o", "--output", default="demo", show_default=True, type=click.Path(path_type=Path), help="Folder.")
@options("seed", overwrite="Replace an earlier demo.")
@verb
def demo(console: Console, output: Path, seed: int | None, overwrite: bool) -> None:
    """Inspect, sanitize, measure and judge a built-in table of made-up patients."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from sfumato.certificate.signature import Signer

    check_output(output, overwrite=overwrite)
    table = population()
    console.say(f"A table of {table.num_rows:,} made-up patients, one stay in hospital each:\n")
    schema = sf.inspect(table, target="back_within_90_days")
    console.say(schema.describe())
    console.say(
        f"\nEvery value is drawn from a group of at least {_LEAF} people with similar values. "
        "Half of the people are the control group.\n"
    )
    with console.progress():
        release = sf.sanitize(
            table, sf.Chain(leaf=_LEAF), schema=schema, holdout=0.5, seed=seed, policy="research", despite_policy=True
        )
        signer = None if seed is not None else Signer(Ed25519PrivateKey.generate())  # for this demo alone, kept nowhere
        release.save(output, overwrite=overwrite, sign=signer or False)
    if release.report is not None:
        console.say(release.report.summary())
    found = sf.verify(output, signer=None if signer is None else signer.fingerprint)
    console.say(f"Check by sfumato verify: {found.verdict}")
    if signer is not None:
        console.say("Signed with a key that was created for this demo and not stored.")
    console.say("\nWhere to look:")
    console.say(f"  {output / 'owner' / 'report.html'}            the report; open it in a browser")
    console.say(f"  {output / 'release' / 'table.csv'}            the released table")
    console.say(f"  {output / 'release' / 'certificate.json'}     claims, and conclusions that do not follow")
    console.result({"folder": str(output), "holds": found.holds, "levels": release.certificate.levels})


@click.command(cls=Verb)
@click.argument("source", metavar="INPUT", type=INPUT)
@options(first=True, output="Write the schema to this TOML file.", schema="Check an edited schema.")
@options("identifiers", "target", "person", first=True)
@usual(
    "--k",
    default=10,
    type=COUNT,
    panel=Panel.FIRST,
    words="Minimum frequency of a released category, in persons.",
)
@click.option(
    "--declare",
    is_flag=True,
    panel=Panel.FIRST,
    help="Write a template of declared domains, without values from the data, for you to fill in.",
)
@options(overwrite="Replace an existing file.")
@options("missing", "sheet", "header_row", "encoding", "delimiter", "decimal", "query")
@verb
def inspect(
    console: Console,
    source: str,
    output: Path | None,
    identifiers: tuple[str, ...],
    target: str | None,
    person: str | None,
    k: int,
    declare: bool,
    overwrite: bool,
    **arguments: Any,
) -> None:
    """Propose a schema: role and kind of each column, its treatment, and the reason.

    INPUT is a .csv, .csv.gz, .xlsx, .ods, .sqlite, .parquet, .arrow or .feather file, - for CSV on standard input, or a
    database URL with --query.
    """
    from sfumato.tables.schema import field_to_document

    check_new(output, overwrite=overwrite)
    if declare and output is None:
        raise OptionError("--declare writes a schema; say where with -o schema.toml")
    reading, query, missing = take_reading(arguments)
    table, form = read_people(source, reading, query=query, missing=missing)
    found = sf.inspect(table, identifiers=identifiers, target=target, person=person, k=k, declare=declare, **arguments)
    console.say(f"{table.num_rows} rows, {table.num_columns} columns")
    console.say_broken(f"{describe_reading(source, form)}\n")
    console.say(found.describe(domains=True, width=console.width))
    if found.dropped:
        named = ", ".join(map(repr, found.dropped))
        console.say_broken(f"\nDropped: {len(found.dropped)} of {len(found)} columns ({named}); the reasons are above.")
    if output is not None:
        write_private(output, found.to_toml(), "schema")
        kept = "edit it, then pass it with --schema. Keep it private: it contains observed bounds."
        if declare:
            kept = "fill in low and high, or categories, from what is public knowledge; then pass it with --schema."
        console.say_broken(f"\nWritten to {output}: {kept}")
    numerals = {name: list(getattr(form.numerals, name)) for name in ("commas", "thousands", "doubtful")}
    sheet = None if form.sheet is None else form.sheet.name
    read: dict[str, object] = {"format": form.format.value, "delimiter": form.delimiter, "sheet": sheet, **numerals}
    read |= {"encoding": form.encoding, "header_row": form.header_row, "detected": list(form.found)}
    document: dict[str, object] = {
        "rows": table.num_rows,
        "read": read,
        "columns": [_jsonable(field_to_document(f)) for f in found],
        "rules": list(found.rules),
        "dropped": found.dropped,
    }
    console.result(document)


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_jsonable(item) for item in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


_USUAL_POLICY = "research"


@click.command(cls=Verb)
@click.argument("name", required=False, metavar="[NAME|FILE]")
@options(output="Write the policy to this TOML file.", overwrite="Replace an existing file.")
@verb
def policy(console: Console, name: str | None, output: Path | None, overwrite: bool) -> None:
    """Print a policy as TOML to edit: trusted, research, public, or one from a file.

    Without NAME the three are listed. A policy sets limits on the excess risk of attacks; sanitize, evaluate and tune
    apply it with --policy.
    """
    from sfumato.publish.policy import BUILT_IN, PURPOSES, Policy

    if name is None and output is None:
        for each, purpose in PURPOSES.items():
            console.say(f"{each:<9} {purpose}")
        console.say("\n'sfumato policy NAME' prints one as TOML, and -o FILE writes it to a file to edit.")
        console.result({"policies": list(BUILT_IN.values())})
        return
    chosen = Policy.load(name or _USUAL_POLICY)
    if output is None:
        console.say(chosen.to_toml().rstrip("\n"))
    else:
        check_new(output, overwrite=overwrite)
        write_private(output, chosen.to_toml(), "policy", private=False)
        console.say(f"Written to {output}: edit it, then pass it with --policy {output}.")
    console.result({**vars(chosen), "file": None if output is None else str(output)})


@click.command(cls=Verb)
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path))
@click.option(
    "--signer",
    multiple=True,
    metavar="FINGERPRINT|FILE",
    help="Expected signer: SHA256:..., or a public key (PEM, or a line ssh-ed25519 ...); of several owners each.",
)
@click.option("--require-signature", is_flag=True, help="Exit with 3 if the release is not signed.")
@click.option(
    "--allow-unknown", is_flag=True, help="Accept a method and facts of an extension, without a check of them."
)
@options(most_bytes="Largest table, in bytes, also unpacked.  [default: what the certified rows need, at most 64 GiB]")
@verb
def verify(
    console: Console,
    folder: Path,
    signer: tuple[str, ...],
    require_signature: bool,
    allow_unknown: bool,
    most_bytes: int | None,
) -> None:
    """Check a release without the original: hashes, certificate against table, dry run, signature.

    FOLDER is the folder 'release' or its parent. Exits with 3 if a check fails. Without --signer it proves integrity.
    With --signer, and a fingerprint or key received through another channel, it also proves who made the release.
    """
    found = sf.verify(
        folder,
        signer=signer or None,
        require_signature=require_signature,
        allow_unknown=allow_unknown,
        most_bytes=most_bytes,
    )
    console.say(found.describe())
    entries = {
        name: getattr(found, name) for name in ("holds", "intact", "signed_by", "confirmed", "checks", "unproved")
    }
    console.result(entries)
    if not found:
        failing = ", ".join(check.name for check in found if not check.holds)
        tell_error(f"sfumato: the release failed verification ({failing}); do not use it")
        sys.exit(3)


@click.command(cls=Verb)
@usual("--port", default=0, type=click.IntRange(0, 65_535), words="Port; 0 is any free one.")
@usual("--limit", default=500, type=click.IntRange(1, 100_000), words="Largest file, in megabytes.")
@click.option("--no-browser", is_flag=True, help="Do not open a browser; print the address only.")
@click.option("--save", type=FILE, metavar="FOLDER", help="Folder in which releases can be saved.")
@click.option("--stream", metavar="FILE|URL", help="Show the status of this stream.")
@click.option("--survey", metavar="FILE|URL", help="Show the status of this survey (database).")
@verb
def web(
    console: Console,
    port: int,
    limit: int,
    no_browser: bool,
    save: Path | None,
    stream: str | None,
    survey: str | None,
) -> None:
    """Open a local web page: choose a file, check the columns, choose a policy, read the report, download the release.

    All data stay on this machine. When it ends (Ctrl-C), everything but downloads and saved releases is deleted.
    """
    import webbrowser

    from sfumato.web import serve

    def ready(url: str) -> None:
        console.say(f"The page is at {url}\nOnly this machine can open it. Ctrl-C ends it and deletes its files.")
        console.result({"url": url})
        if not no_browser:
            webbrowser.open(url)

    serve(ready, port=port, most_bytes=limit * 1_000_000, save=save, stream=stream, survey=survey)
    console.say("Ended; all files but downloads and saved releases are deleted.")


_TOWNS = ("Aldbrook", "Bexmouth", "Calder", "Dunholm", "Eastry", "Fenwick", "Garth", "Holm")
_WARDS = ("medicine", "surgery", "cardiology", "geriatrics", "obstetrics")
_CAUSES = ("heart", "lung", "joint", "injury", "infection", "metabolic", "birth", "other")


def population(count: int = 16_000, seed: int = 20_261) -> pa.Table:
    """Table of made-up patients, one stay in hospital each; nobody in it exists.

    Examples
    --------
    >>> population(5).column_names[:4]
    ['patient', 'age', 'sex', 'town']
    """
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng(seed)
    age = np.clip(np.rint(rng.gamma(9.0, 6.4, count)), 18, 99).astype(np.int64)
    woman = rng.random(count) < 0.53
    town = rng.choice(len(_TOWNS), count, p=[0.27, 0.2, 0.15, 0.12, 0.1, 0.08, 0.05, 0.03])
    smoker = rng.random(count) < 0.32 - 0.002 * (age - 18) + 0.05 * (town == 3)
    mass = rng.normal(25.5 + 0.03 * (age - 50) - 1.2 * smoker, 4.2, count).clip(15, 52)
    pressure = rng.normal(104 + 0.42 * age + 0.7 * (mass - 25) + 4 * smoker, 12.5, count)
    sugar = rng.normal(4.7 + 0.012 * age + 0.06 * (mass - 25), 0.55, count) + (rng.random(count) < 0.09) * rng.gamma(
        2.0, 1.6, count
    )
    leaning = np.stack(
        [
            0.05 * (age - 60) + 0.03 * (pressure - 130),
            1.3 * smoker + 0.01 * (age - 50),
            0.03 * (age - 55) + 0.08 * (mass - 26),
            -0.03 * (age - 40),
            np.full(count, -0.1),
            0.9 * (sugar - 5.6),
            np.where(woman & (age < 46), 1.4, -9.0),
            np.full(count, 0.1),
        ],
        axis=1,
    )
    cause = np.argmax(leaning + rng.gumbel(size=leaning.shape), axis=1)
    usual = np.array([2, 0, 1, 1, 0, 0, 4, 0])[cause]
    ward = np.where(rng.random(count) < 0.82, usual, rng.choice(3, count))
    ward = np.where((age > 79) & (ward != 4) & (rng.random(count) < 0.5), 3, ward)
    stay = np.minimum(rng.poisson(rng.gamma(2.2, 1.4 + 0.02 * age + 1.1 * (cause == 0) + 0.7 * (ward == 3))), 90)
    admitted = np.datetime64("2024-01-01") + rng.integers(0, 731, count)
    paid = np.where(rng.random(count) < 0.62, 0.0, np.round(rng.gamma(1.5, 40.0, count) * (1 + stay / 8), 2))
    danger = -4.6 + 0.035 * (age - 50) + 0.09 * stay + 0.55 * smoker + 0.35 * (sugar - 5.5) + 0.6 * (cause == 1)
    back = rng.random(count) < 1 / (1 + np.exp(-danger - 1.6))

    def gaps(share: float) -> object:
        return rng.random(count) < share

    return pa.table(
        {
            "patient": [f"P{number:06d}" for number in rng.choice(900_000, count, replace=False) + 100_000],
            "age": age,
            "sex": np.where(woman, "f", "m"),
            "town": np.array(_TOWNS)[town],
            "admitted": pa.array(admitted.astype("datetime64[D]")),
            "discharged": pa.array((admitted + stay).astype("datetime64[D]")),
            "ward": np.array(_WARDS)[ward],
            "cause": np.array(_CAUSES)[cause],
            "mass_index": pa.array(np.round(mass, 1), mask=gaps(0.06)),
            "pressure": np.rint(pressure).astype(np.int64),
            "sugar": pa.array(np.round(sugar.clip(2.5), 1), mask=gaps(0.12)),
            "smoker": pa.array(smoker, mask=gaps(0.04)),
            "paid": paid,
            "back_within_90_days": np.where(back, "yes", "no"),
        }
    )


_REQUIREMENT = re.compile(r"""([A-Za-z0-9._-]+)[^;]*(?:;.*extra == ['"]([a-z]+)['"].*)?""")
_USES = {
    "excel": ".xlsx and .ods files",
    "stream": "state of a stream in PostgreSQL",
    "survey": "surveys of randomized answers",
    "web": "the local page, sfumato web",
}
"""What each extra is for; one that is not listed is for developers."""


@click.command(cls=Verb)
@click.option("--warm", "warmed", is_flag=True, help="Compile now, so that the first run does not wait.")
@verb
def doctor(console: Console, warmed: bool) -> None:
    """List installed and missing components and how to install them; --warm compiles before the first run."""
    if warmed:
        with console.progress():
            warm()
    found = _examine()
    for line in _lines(found):
        console.say(line)
    console.result(found.to_json())


def warm() -> None:
    """Compile the default path: sanitize small tables by the chain and by each grouping, and what a report calls."""
    import numpy as np
    import pyarrow as pa

    from sfumato.assess.warm import compile_ahead, compile_report, wait_for_report
    from sfumato.methods.chain import Chain
    from sfumato.methods.condense import Condensation
    from sfumato.methods.condense.compact import in_fewer_columns
    from sfumato.publish.sanitize import sanitize

    table = pa.table({"age": [20 + row % 50 for row in range(60)], "word": ["a", "b", None] * 20})
    steps: list[Mechanism] = [Chain(k=5, leaf=10)]
    steps += [Condensation(k=5, grouping=grouping) for grouping in ("compact", "mdav", "paper")]
    compile_ahead()
    for place, mechanism in enumerate(steps):
        tell("compiling groups", place / len(steps))
        sanitize(table, mechanism, level="age > 50: 8, else: 5", report=False)
    in_fewer_columns(np.eye(2, 3))
    wait_for_report()
    compile_report()
    tell("compiling groups", 1.0)


@dataclass(frozen=True)
class Installation:
    """Versions, machine, compiled code, browser, engine for secure computation, extensions, and missing extras."""

    sfumato: str
    python: str
    system: str
    cores: int
    memory_gb: float | None
    packages: dict[str, str | None]
    compiled: bool
    browser: str | None
    engine: str | None
    extensions: dict[str, str]
    extras: dict[str, list[str]]  # packages that each lacks

    def to_json(self) -> dict[str, object]:
        """Document for other programs."""
        extras = {name: {"for": _USES[name], "missing": missing} for name, missing in self.extras.items()}
        return {**vars(self), "extras": extras}


def _examine() -> Installation:
    needed, extras = _requirements()
    return Installation(
        __version__,
        platform.python_version(),
        f"{platform.system()} {platform.machine()}",
        os.cpu_count() or 1,
        _memory(),
        {name: _version(name) for name in needed},
        _is_compiled(),
        _browser(),
        _engine(),
        _extensions(),
        {name: [each for each in extras.get(name, ()) if _version(each) is None] for name in _USES},
    )


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Names of the packages that are needed, and of those of each extra, as the installation states them."""
    needed: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in metadata.requires("sfumato") or ():
        stated = _REQUIREMENT.fullmatch(line)
        if stated is None or (stated[2] is not None and _not_for_here(line)):
            continue
        (needed if stated[2] is None else extras.setdefault(stated[2], [])).append(stated[1])
    return needed, extras


def _not_for_here(line: str) -> bool:
    return "sys_platform != 'win32'" in line.replace('"', "'") and platform.system() == "Windows"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _is_compiled() -> bool:
    """Whether the first run of the default path has nothing to wait for."""
    from sfumato.assess.warm import share_compiled
    from sfumato.core.compiled import is_cached, share_cached
    from sfumato.methods.chain import trees
    from sfumato.methods.condense.leaves import improve_leaves

    return share_compiled() == share_cached(trees.__name__) == 1.0 and is_cached(improve_leaves)


def _browser() -> str | None:
    from sfumato.publish.folder import find_browser

    try:
        return find_browser()
    except OptionError:
        return None


def _engine() -> str | None:
    from sfumato.registry import secure_engine

    try:
        return str(secure_engine())
    except SfumatoError:
        return None


def _extensions() -> dict[str, str]:
    """Package of each extension, or why extensions cannot be used."""
    from sfumato.registry import extensions

    try:
        return {each.name: each.package for each in extensions()}
    except OptionError as error:
        return {"error": str(error)}


def _lines(found: Installation) -> list[str]:
    memory = "" if found.memory_gb is None else f", {found.memory_gb:g} GB of memory"
    cores = f"{found.cores} core{'' if found.cores == 1 else 's'}"
    lines = [f"sfumato {found.sfumato} on Python {found.python}, {found.system}, {cores}{memory}."]
    lacking = [name for name, version in found.packages.items() if version is None]
    there = ", ".join(f"{name} {version}" for name, version in found.packages.items() if version is not None)
    lines.append(f"Installed:    {there}.")
    if lacking:
        lines.append(f"Needed and missing:  {', '.join(lacking)}; pip install --force-reinstall sfumato")
    kept = "cached" if found.compiled else "not cached; sfumato doctor --warm compiles it, within a minute"
    lines.append(f"Compiled code:       {kept}.")
    browser = found.browser or "none; install Chromium or Chrome, or print summary.html from another browser"
    lines.append(f"Browser for PDF:     {browser}.")
    engine = found.engine or "none; see docs/several-owners.md for an environment with spu 0.9.5"
    lines.append(f"Secure computation:  {engine}.")
    added = ", ".join(f"{name} ({package})" for name, package in found.extensions.items())
    lines.append(f"Extensions:          {added or 'none'}.")
    for name, missing in found.extras.items():
        state = f"missing ({', '.join(missing)}); pip install 'sfumato[{name}]'" if missing else "installed"
        lines.append(f"Extra {name + ':':<14} {state}. For {_USES[name]}.")
    return lines
