"""party: one party of a joint sanitization, and the settings of all of them for a trial."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import rich_click as click

from sfumato.cli.console import Console, VerbGroup, verb
from sfumato.cli.options import (
    FILE,
    check_output,
    holdout_of,
    keeping_owner_part,
    options,
    say_dropped,
    signer_at,
    tell_signer,
    usual,
    whereabouts,
)
from sfumato.core.arguments import Panel
from sfumato.core.errors import OptionError
from sfumato.core.progress import listening, tell
from sfumato.options import PublishOptions, options_from
from sfumato.tables.reading import FileReading
from sfumato.version import __version__

if TYPE_CHECKING:
    from sfumato.engines.outcome import Recipe
    from sfumato.parties.config import PartyConfig
    from sfumato.publish.release import Release

__all__ = ["party"]

_COUNTED = ("round", "filling group")  # phases that come again, with a number
_PARTITION = click.Choice(["horizontal", "vertical"])


@click.group(cls=VerbGroup)
def party() -> None:
    """Sanitize a table distributed over several data owners by secure computation.

    'party init' writes settings, keys and certificates for a trial; 'party run' takes part in a run.
    """


@party.command("run")
@click.option("--config", required=True, type=FILE, panel=Panel.FIRST, help="Settings of this party (party.toml).")
@options("output", first=True)
@options(
    holdout="Control group for the attacks: a file, or the share to hold out, the same at all parties.",
    policy="Policy that this owner's part must meet.",
    first=True,
)
@options("encoding", seed="Dry run, if all parties give the same seed.")
@options(recipe="Repeat a run from owner/recipe.toml, at all parties.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "arrow", "xlsx", "ods", "sqlite"]),
    default="csv",
    show_default=True,
    panel=Panel.OUTPUT,
)
@options("time_limit", report="Do not measure utility and risk of this owner's part.")
@options("despite_policy", "no_sign", "overwrite")
@options(sign="Private key (Ed25519) to sign with, instead of this owner's.")
@verb
def run(
    console: Console,
    config: Path,
    output: Path | None,
    holdout: str | None,
    encoding: str | None,
    seed: int | None,
    recipe: Path | None,
    no_sign: bool,
    **publishing: Any,
) -> None:
    """Take part in a joint run, with all other parties at about the same time.

    Every owner receives the same table, certificate and transcript. No owner sees the records of another.
    """
    request = _Request(config, output, holdout, encoding, seed, recipe, no_sign)
    _run(console, request, options_from(PublishOptions, publishing))


@party.command("init")
@click.argument("folder", type=FILE)
@click.option(
    "--party",
    "parties",
    multiple=True,
    required=True,
    metavar="NAME=HOST:PORT",
    panel=Panel.FIRST,
    help="Name of a party; two or more.",
)
@click.option(
    "--partition",
    required=True,
    type=_PARTITION,
    panel=Panel.FIRST,
    help="Partition of the table: owners have rows (horizontal) or columns (vertical).",
)
@click.option("--data", multiple=True, metavar="NAME=FILE", panel=Panel.FIRST, help="Table of a party; repeatable.")
@click.option(
    "--key", metavar="COL", panel=Panel.COLUMNS, help="vertical: record identifier that links the rows of the parties."
)
@options(target="Column to predict, at any party.")
@options(schema="horizontal: schema with declared domains, for all.")
@click.option(
    "--method",
    type=click.Choice(["laplace-pca", "condense"]),
    default="laplace-pca",
    show_default=True,
    panel=Panel.METHOD,
    help="Rows with noise, or synthetic rows from the statistics of groups.",
)
@click.option("--k", type=int, panel=Panel.PRIVACY, help="Minimum group size.  [default: 100; condense 10]")
@usual(
    "--engine",
    type=click.Choice(["cheetah", "aby3"]),
    default="cheetah",
    panel=Panel.ENGINE,
    words="Protocol of the secure computation.",
)
@usual(
    "--timeout",
    type=click.FloatRange(2),
    default=60.0,
    panel=Panel.ENGINE,
    words="Seconds without a message until a party counts as lost.",
)
@usual("--run", default="trial", panel=Panel.OUTPUT, words="Name of the run.")
@click.option("--keep-authority", is_flag=True, panel=Panel.OUTPUT, help="Keep the key of the certificate authority.")
@verb
def init(
    console: Console,
    folder: Path,
    parties: tuple[str, ...],
    data: tuple[str, ...],
    keep_authority: bool,
    **trial: Any,
) -> None:
    """Write FOLDER/NAME/ for every party: party.toml, its key, all certificates with their fingerprints pinned.

    For trials only: this machine holds the keys of all parties. In production each owner creates its own key and sends
    the others its certificate and fingerprint.
    """
    from sfumato.parties.config import PartyTrial, write_trial
    from sfumato.parties.peers import Address

    addresses = {name: Address.parse(text) for name, text in _pairs(parties, "--party NAME=HOST:PORT")}
    tables = {name: Path(text) for name, text in _pairs(data, "--data NAME=FILE")}
    files = write_trial(folder, PartyTrial(addresses, data=tables, **trial), keep_authority=keep_authority)
    for name, path in files.items():
        console.say(f"{name}: sfumato party run --config {path}")
    console.say("Send each folder to its party through a trusted channel; key.pem is private to that party.")
    console.result({"folder": str(folder), "configs": {name: str(path) for name, path in files.items()}})


def _pairs(given: tuple[str, ...], form: str) -> list[tuple[str, str]]:
    pairs = [text.partition("=") for text in given]
    if not all(name and equals and value for name, equals, value in pairs):
        raise OptionError(f"an option is not of the form {form}; fix it")
    names = [name for name, _, _ in pairs]
    if len(set(names)) < len(names):
        raise OptionError(f"a party is named twice in {form}; name each once")
    return [(name, value) for name, _, value in pairs]


class _Request(NamedTuple):
    """Options of the command, besides those of the publication."""

    config: Path
    output: Path | None
    holdout: str | None
    encoding: str | None
    seed: int | None
    recipe: Path | None
    no_sign: bool

    def applied(self, config: PartyConfig) -> tuple[PartyConfig, Any]:
        """Settings with what the command line says of the plan, and a control group that comes as a table."""
        from sfumato.engines.outcome import Recipe

        outside = holdout_of(self.holdout, FileReading(encoding=self.encoding), ())
        if self.recipe is not None:
            config = _replayed(config, Recipe.load(self.recipe), self.seed)
        if isinstance(outside, float):
            return config.with_plan(holdout=outside), None
        return config, outside


def _run(console: Console, request: _Request, publishing: PublishOptions) -> None:
    """Take part in a joint run."""
    from sfumato.parties.config import PartyConfig
    from sfumato.parties.network import connected, notifying_others
    from sfumato.parties.part import own_part
    from sfumato.parties.publish import planned, run_party
    from sfumato.publish.attainable import refuse_unattainable
    from sfumato.publish.judge import asked_policy
    from sfumato.tables.files import read_file

    begin = time.monotonic()
    config = PartyConfig.load(request.config).with_plan(seed=request.seed)
    with notifying_others(config, __version__):
        config, outside = request.applied(config)
        folder = request.output or config.output
        if folder is None:
            raise OptionError("the output folder is not named; give -o FOLDER, or 'output' in the settings")
        check_output(folder, overwrite=publishing.overwrite, inputs=config.files)
        dry_run = config.plan.seed is not None
        signer = signer_at(publishing.sign, folder, no_sign=request.no_sign, dry_run=dry_run)
        publishing = dataclasses.replace(publishing, sign=signer or False)
        despite = publishing.despite_policy
        policy = asked_policy(publishing.policy, report=publishing.report, despite=despite)
        refuse_unattainable(policy, planned(config.plan, control=outside is not None), despite=despite)
        data = config.data
        table, _ = read_file(str(data.file), encoding=request.encoding)
        schema = data.load_schema()
        part = own_part(config.plan, config.rank, table, schema, key=data.key, columns=data.columns, outside=outside)
    if config.plan.noise_in_words:
        console.note(f"sfumato: {config.plan.noise_in_words}")
    others = ", ".join(peer.name for peer in config.peers if peer.name != config.name)
    console.note(f"sfumato: {config.name} waits for {others}")
    with (
        keeping_owner_part(console, folder, overwrite=publishing.overwrite),
        console.progress(lines=True),
        _phases(config.plan.rounds),
        connected(config, __version__) as (channel, engine),
    ):
        console.note("sfumato: all parties are here")
        release = run_party(part, channel, engine, folder, publishing)
        sent = channel.sent + (0 if engine is None else engine.sent)
    _tell(console, release, folder, publishing.form, sent, time.monotonic() - begin)


def _replayed(config: PartyConfig, recipe: Recipe, seed: int | None) -> PartyConfig:
    """The settings of a party with the plan of a recipe, which all parties must take alike."""
    from sfumato.parties.plan import JointPlan

    if recipe.method not in ("joint-laplace-pca", "joint-condense"):
        raise OptionError(f"the recipe is of the method {recipe.method!r} and not of a joint run; run it with sanitize")
    try:
        plan = JointPlan.from_document(recipe.parameters, seed=recipe.options.seed if seed is None else seed)
    except (TypeError, KeyError):
        raise OptionError("the recipe lacks settings of a joint run; use the one that a joint run wrote") from None
    if plan.parties != config.plan.parties:
        raise OptionError("the recipe names other parties than the settings of this one, or in another order; fix one")
    return dataclasses.replace(config, plan=plan)


@contextmanager
def _phases(rounds: int) -> Iterator[None]:
    """Show the phases of the protocol one after the other, its rounds as one that fills."""
    outside, last = copy_context(), ""

    def show(phase: str, _: float) -> None:
        nonlocal last
        words, number = phase.rpartition(" ")[::2]
        counted = words in _COUNTED and number.isdecimal()
        stage = f"{words}s (of {rounds})" if words == "round" else f"{words}s" if counted else phase
        if last not in ("", stage):
            outside.run(tell, last, 1.0)
        outside.run(tell, stage, int(number) / rounds if counted and words == "round" else 0.0)
        last = stage

    with listening(show):
        yield


def _tell(console: Console, release: Release, folder: Path, form: str, sent: int, seconds: float) -> None:
    from sfumato.parties.facts import Joint

    certificate, groups = release.certificate, release.certificate.levels["groups"]
    report, verdict = release.report, None if release.report is None else release.report.verdict
    rounds = next(fact.rounds for fact in certificate.facts if isinstance(fact, Joint))
    parts = [] if report is None else [*report.lines(), *((1, note) for note in report.notes)]
    if certificate.randomness != "release":
        parts.append((0, "DRY RUN: made with a seed, not for release."))
    parts.append((0, f"{certificate.rows_out} rows, {groups} groups; {sent} bytes sent, {seconds:.1f} seconds"))
    console.tell([*parts, *whereabouts(release, folder, form)])
    say_dropped(console, release.dropped)
    tell_signer(console, release)
    console.result(
        {
            "folder": str(folder),
            "table": str(folder / "release" / f"table.{form}"),
            **{key: getattr(certificate, key) for key in ("method", "randomness", "rows_out")},
            "groups": groups,
            "levels": certificate.levels,
            "signed_by": release.signed_by,
            "verdict": None if verdict is None else verdict.to_json(),
            "rounds": rounds,
            "bytes_sent": sent,
            "seconds": round(seconds, 3),
        }
    )
