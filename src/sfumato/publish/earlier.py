"""What an earlier output consists of: only its own files are ever replaced, and never what a run reads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any

from sfumato.certificate import Certificate
from sfumato.certificate.signature import SIGNATURE_FILE
from sfumato.core.documents import Unparsable, parse_json, read_bytes
from sfumato.core.errors import BadInput, OptionError, shown
from sfumato.core.replacing import reason

__all__ = ["EVALUATION_FILES", "OWNER_FILES", "OWNER_SCHEMA", "Contents", "own_files", "refuse_own_inputs"]

OWNER_SCHEMA = "schema-private.toml"
"""The owner's schema, with exact extremes and rare categories; another name than that of the schema that leaves."""

OWNER_FILES = frozenset(
    {
        "recipe.toml",
        OWNER_SCHEMA,
        "report.html",
        "report.json",
        "summary.html",
        "summary.pdf",
        "epochs.json",
        "ledger.json",
        "ledger.txt",
        "rules.txt",
        "transcript.jsonl",
    }
)
"""What ``owner/`` of a release may hold, of all methods and engines."""

EVALUATION_FILES = ("report.html", "report-public.html", "report.json", "summary.html")
"""What the folder of an evaluation holds, all of it and nothing else."""

_TUNING_FILES = ("report.html", "report.json", "recipe.toml")
_CERTIFICATE, _REPORT = "certificate.json", "report.json"
_OF_REPORT = {"format", "rows_original", "findings"}
_CHECK = "choose another folder"


class Contents(StrEnum):
    """What a folder is made to hold; only an earlier one of the same is ever replaced."""

    RELEASE = "release"
    EVALUATION = "evaluation"
    TUNING = "tuning"


def own_files(folder: Path, contents: Contents, *, named: Path | None = None) -> list[Path]:
    """Files of the earlier output that a folder holds, by their paths in it; none if it is empty.

    Parameters
    ----------
    folder : path
    contents : Contents
    named : path, optional
        What an error calls the folder; by default its path.

    Raises
    ------
    OptionError
        If the folder holds anything else: another file, a folder, a link, a hidden file.
    """
    named = folder if named is None else named
    try:
        listed = _listed(folder, contents)
        own, foreign = _entries(folder, listed)
    except OSError as error:
        raise OptionError(f"the folder {shown(named)} cannot be read ({reason(error)}); {_CHECK}") from None
    if not foreign:
        return own
    what = "1 other file or folder" if len(foreign) == 1 else f"{len(foreign)} other files or folders"
    if not listed:
        raise OptionError(
            f"the folder {shown(named)} holds no earlier {contents.value} but {what}, such as {shown(min(foreign))}, "
            f"so it is not replaced; {_CHECK}"
        )
    raise OptionError(
        f"the folder {shown(named)} holds {what} beside an earlier {contents.value}, such as {shown(min(foreign))}, "
        f"so it is not replaced; move what is yours elsewhere, or {_CHECK}"
    )


def _entries(folder: Path, listed: set[Path]) -> tuple[list[Path], list[Path]]:
    """Regular files that are listed, and everything else, of which a folder counts as one."""
    parents = {path.parent for path in listed}
    own, foreign, unread = [], [], [Path()]
    while unread:
        place = unread.pop()
        with os.scandir(folder / place) as entries:
            for entry in entries:
                path = place / entry.name
                if path in listed and entry.is_file(follow_symlinks=False):
                    own.append(path)
                elif path in parents and entry.is_dir(follow_symlinks=False):
                    unread.append(path)
                else:
                    foreign.append(path)
    return own, foreign


def _listed(folder: Path, contents: Contents) -> set[Path]:
    """Paths that an earlier output of this kind may hold; none where the folder holds no such output."""
    if contents is Contents.EVALUATION:
        return set(map(Path, EVALUATION_FILES)) if _is_report(folder / _REPORT) else set()
    if contents is Contents.TUNING:
        return set(map(Path, _TUNING_FILES)) if _is_tuning(folder / _REPORT) else set()
    owner = {Path("owner", name) for name in OWNER_FILES}
    if not os.path.lexists(folder / "release"):  # all that is left of a run whose policy was not met
        return owner if _is_report(folder / "owner" / _REPORT) else set()
    leaving = _leaving(folder / "release")
    return {Path("release", name) for name in leaving} | owner if leaving else set()


def _leaving(folder: Path) -> set[str]:
    """Names of files that a release lists in its certificate, with the certificate and its signature."""
    try:
        text = read_bytes(folder / _CERTIFICATE, "certificate", _CHECK, linked=False).decode("utf-8")
        certificate = Certificate.from_json(text)
    except (BadInput, UnicodeDecodeError):
        return set()
    listed = (*certificate.files, *certificate.owner_signatures)
    return {*(name for name in listed if Path(name).name == name), _CERTIFICATE, SIGNATURE_FILE}


def _is_report(path: Path) -> bool:
    document = _document(path)
    return isinstance(document, dict) and document.keys() >= _OF_REPORT


def _is_tuning(path: Path) -> bool:
    document = _document(path)
    return isinstance(document, dict) and document.get("kind") == "tuning" and "format" in document


def _document(path: Path) -> Any:
    try:
        return parse_json(read_bytes(path, "report", _CHECK, linked=False))
    except (BadInput, Unparsable):
        return None


def refuse_own_inputs(folder: Path, inputs: Iterable[object]) -> None:
    """Refuse to replace a folder that the run works in, or that holds a file which it reads.

    Parameters
    ----------
    folder : path
        It exists.
    inputs : iterable
        Tables, schemas, keys and whatever else a run is given; those that name no file are passed over.
    """
    with suppress(FileNotFoundError):  # the working directory may be gone
        here = Path.cwd()
        if any(_is_same(each, folder) for each in (here, *here.parents)):
            raise OptionError(
                f"the output folder {shown(folder)} is the working directory or holds it, so it is not replaced; "
                f"{_CHECK}"
            )
    for each in inputs:
        if isinstance(each, str | os.PathLike) and os.path.lexists(path := Path(each)):
            above = {*path.absolute().parents, *path.resolve().parents}
            if any(_is_same(parent, folder) for parent in above):
                raise OptionError(
                    f"the output folder {shown(folder)} holds {shown(path)}, which this run reads, so it is not "
                    f"replaced; {_CHECK}"
                )


def _is_same(path: Path, folder: Path) -> bool:
    try:
        return path.samefile(folder)
    except OSError:
        return False
