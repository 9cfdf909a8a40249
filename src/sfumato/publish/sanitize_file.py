"""sanitize_file: a file of any length in, a release folder out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from sfumato.core.errors import OptionError
from sfumato.engines.cells.run import in_cells
from sfumato.engines.chunks.run import SAMPLE_ROWS, Geometric
from sfumato.engines.chunks.source import Source, open_people
from sfumato.engines.recipe import Recipe
from sfumato.engines.spark import ClusterFile, open_on_spark
from sfumato.mechanisms.methods import FEWEST_FOR_CHAIN
from sfumato.mechanisms.protocol import Mechanism
from sfumato.publish.folder import check_folder
from sfumato.publish.judge import asked_policy
from sfumato.publish.large import check_moved, release_by_cells, release_moved, release_moved_on_spark, release_on_spark
from sfumato.publish.policy import Policy
from sfumato.publish.release import Release, check_budget, signer_of
from sfumato.publish.signature import Signer
from sfumato.publish.told import as_told, method_of
from sfumato.tables.files import FileForm
from sfumato.tables.schema import Schema

__all__ = ["file_of", "sanitize_file"]


def file_of(
    source: str | Path | Source | ClusterFile,
    engine: Literal["chunks", "spark"] = "chunks",
    master: str | None = None,
    **reading: Any,
) -> Source | ClusterFile:
    """A file as people write it, for the engine that will read it; ``form`` says how it is written."""
    if isinstance(source, Source | ClusterFile):
        return source
    return open_people(source, **reading) if engine == "chunks" else open_on_spark(source, master, **reading)


def sanitize_file(
    source: str | Path | Source | ClusterFile,
    folder: str | Path,
    mechanism: Mechanism | None = None,
    *,
    method: str | None = None,
    recipe: Recipe | str | Path | None = None,
    schema: Schema | str | Path | None = None,
    target: str | None = None,
    level: str | int | None = None,
    strata: str | None = None,
    identifiers: Iterable[str] = (),
    person: str | None = None,
    rows_are_people: bool = False,
    public: Iterable[str] = (),
    holdout: float | Any | None = None,
    no_rules: bool | None = None,
    rare: str | None = None,
    rows: int | None = None,
    new_key: str | Path | None = None,
    batch_rows: int | None = None,
    sample_rows: int = SAMPLE_ROWS,
    seed: int | None = None,
    report: bool = True,
    budget: float | None = None,
    known: Iterable[str] = (),
    encoding: str = "utf-8",
    delimiter: str | None = None,
    decimal: str | None = None,
    sign: str | Path | Signer | None = None,
    overwrite: bool = False,
    spreadsheet_safe: bool = False,
    policy: Policy | str | Path | None = None,
    despite_policy: bool = False,
    memory: str | int | None = None,
    resume_key: str | Path | None = None,
    engine: Literal["chunks", "spark"] = "chunks",
    master: str | None = None,
    form: FileForm | None = None,
    command: Sequence[str] = (),
    **parameters: Any,
) -> Release:
    """Sanitize a file of any length and write a whole release folder, certified and measured.

    Geometric methods move it batch by batch; others cut it into cells, which are sanitized one after the other. Memory
    is bounded by a batch or a cell, and by a sample. Folder and key appear together or not at all.

    Parameters
    ----------
    source : path, or what `file_of` gave
        A .parquet, .csv, .csv.gz, .arrow or .feather file; the released table is of the same format, unless ``form``
        says another.
    folder : path
        For ``release/`` and ``owner/``.
    mechanism : Mechanism, optional
        Translation, Scaling, Rotation or Hybrid, with a key or together with ``new_key``; Chain, Condensation,
        ClasswiseCondensation or Randomization.
    method, recipe, **parameters
        In place of a mechanism, as in `sanitize`.
    schema : Schema or path, optional
        By default proposed from the sample; bounds and steps seen there do not bind the other rows.
    target, identifiers, person, rows_are_people, public
        As in `sanitize`.
    level, strata, holdout, no_rules, rare, rows
        As in `sanitize`; not for geometric methods.
    new_key : path, optional
        Draw a key, with the spreads of the sample, and write it here before the table.
    batch_rows : int, optional
        Rows of a batch; see `sfumato.engines.chunks.transform_file`.
    sample_rows : int
        Rows that are drawn at random for the schema, the key and the report.
    seed : int, optional
        Makes a rehearsal: reproducible and marked as not for release.
    report : bool
        Whether to measure, on the sample.
    budget : float, optional
        Seconds that the measuring may take.
    known : iterable of str
        Columns that an outsider is taken to know.
    encoding : str
        Of CSV.
    delimiter : str, optional
        Of CSV; without it, what its header says.
    decimal : {".", ","}, optional
        Mark before decimals of CSV; without it, what its numbers say.
    sign : path or Signer, optional
        The private key to sign the certificate with. A rehearsal is not signed.
    overwrite : bool
        Replace an earlier release of that name.
    spreadsheet_safe : bool
        Write CSV with an apostrophe before what a spreadsheet would take for a formula.
    policy : Policy, str or path, optional
        What the release must meet: one that is built in, by its name, or a file.
    despite_policy : bool
        Release it all the same where it does not; the certificate says so.
    memory : str or int, optional
        How much a run in cells may take, such as ``"2G"``; by default ``"1.5G"``, or half of
        what the machine has where that is less.
    resume_key : path, optional
        File of a key that makes a run in cells resumable where it is stopped: written with mode 600 at the first run,
        read at the next, and removed once the release is there. It must not lie in the folder.
    engine : {"chunks", "spark"}
        Who does the work: this machine, or a cluster that reads the source (Parquet or CSV) by itself.
    master : str, optional
        Of the cluster, such as ``"spark://host:7077"``; by default what Spark's own settings say.
    form : FileForm, optional
        How to write the table; by default as the source is written.
    command : sequence of str
        Words of the command line that asked for it, for what to try next.

    Raises
    ------
    PolicyNotMet
        Where the policy is not met, or it cannot be told; neither folder nor key is written.
    """
    told: dict[str, Any] = {"schema": schema, "target": target, "identifiers": identifiers, "public": public}
    told |= {"person": person, "seed": seed}
    whole = {"level": level, "strata": strata, "holdout": holdout, "no_rules": no_rules or None, "rare": rare}
    whole["rows"] = rows
    check_folder(folder, overwrite=overwrite)
    reading = {"encoding": encoding, "delimiter": delimiter, "decimal": decimal}
    file: Source | ClusterFile | None = None
    if method is None and mechanism is None and recipe is None:
        file = file_of(source, engine, master, **reading)
        method = method_of(parameters, file.first_rows(FEWEST_FOR_CHAIN))
    chosen, told, policy = as_told(mechanism, method, parameters, {**told, **whole}, recipe, policy)
    check_budget(budget)
    asked = asked_policy(policy, report=report, despite=despite_policy)
    moved = isinstance(chosen, Geometric)
    if (new_key is not None or batch_rows is not None) and not moved:
        raise OptionError("keys and batches are for methods that move a file row by row; leave them out")
    told |= {"rows_are_people": rows_are_people, "no_rules": bool(told["no_rules"])}
    said: dict[str, Any] = {
        "report": report,
        "budget": budget,
        "known": tuple(known),
        "signer": signer_of(sign, rehearsal=told["seed"] is not None),
        "overwrite": overwrite,
        "spreadsheet_safe": spreadsheet_safe,
        "policy": asked,
        "despite_policy": despite_policy,
    }
    if moved:  # what cannot be is refused before the file is read
        check_moved(chosen, told, new_key, folder)
    else:
        in_cells(chosen, told)
    file = file_of(source, engine, master, **reading) if file is None else file
    if moved:
        said |= {"new_key": new_key, "batch_rows": batch_rows, "sample_rows": sample_rows}
        if isinstance(file, ClusterFile):
            return release_moved_on_spark(file, folder, chosen, told, **said)
        return release_moved(file, folder, chosen, told, **said)
    said |= {"memory": memory, "form": form, "command": command}
    if isinstance(file, ClusterFile):
        return release_on_spark(file, folder, chosen, told, **said)
    return release_by_cells(file, folder, chosen, told, resume_key=resume_key, **said)
