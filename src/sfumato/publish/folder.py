"""Folders that are replaced whole or not at all, their files, and the page among them that a browser prints as PDF."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.certificate import Certificate
from sfumato.certificate.signature import SIGNATURE_FILE
from sfumato.core.documents import Unparsable, open_regular, parse_json, read_bytes, write_json
from sfumato.core.errors import BadInput, OptionError, SfumatoError, shown
from sfumato.core.replacing import put_in_place, reason, work_folder

if TYPE_CHECKING:
    from sfumato.assess.report import Report
    from sfumato.certificate import Certificate

__all__ = [
    "OWNER_SCHEMA",
    "Contents",
    "check_folder",
    "find_browser",
    "own_files",
    "plain_errors",
    "print_summary",
    "replacing_folder",
    "sha256_of",
    "write_report",
    "write_text",
]

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


def write_text(path: Path, text: str, *, mode: int | None = None) -> None:
    """Write a text as UTF-8 with plain line ends, closed to others before the first byte where a mode says so."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666 if mode is None else mode)
    with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
        if mode is not None:  # of a file that stood there
            path.chmod(mode)
        file.write(text)


def sha256_of(path: Path, *, linked: bool = True) -> str:
    """SHA-256 of a regular file, which the name may be a link to."""
    with open_regular(path, linked=linked) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_folder(
    folder: str | Path,
    *,
    overwrite: bool = False,
    contents: Contents | str = Contents.RELEASE,
    inputs: Iterable[object] = (),
) -> Path:
    """Refuse an output folder that exists, unless it may be replaced and holds nothing but an earlier output.

    Parameters
    ----------
    folder : path
    overwrite : bool
    contents : Contents
    inputs : iterable
        What the run reads: tables, schemas, keys. The folder must hold none of them.
    """
    path = Path(folder)
    _check_name(path)
    if not path.exists() and not path.is_symlink():
        _check_parent(path)
        return path
    _refuse_standing(path, path, overwrite=overwrite)
    refuse_own_inputs(path, inputs)
    own_files(path, Contents(contents))
    return path


def _refuse_standing(path: Path, named: Path, *, overwrite: bool) -> None:
    """Refuse to replace what is no folder, and a folder that nobody allowed to replace."""
    if path.is_symlink():
        raise OptionError(f"the output {str(named)!r} is a link; name the folder that it leads to, or another")
    if not path.is_dir():
        raise OptionError(f"the output {str(named)!r} exists and is not a folder; choose another name")
    if not overwrite:
        raise OptionError(f"the output folder {str(named)!r} exists; choose another, or replace it with --overwrite")


def _check_name(path: Path) -> None:
    """Refuse a name that table writers do not accept, that a file system rejects, or that contains a folder."""
    if path.name == "..":
        raise OptionError(f"the output {shown(path)} ends in '..'; name the folder itself")
    try:
        path.absolute().joinpath("release").resolve().as_posix().encode("utf-8")
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError):
        raise OptionError(f"the output {shown(path)} has a name that cannot be used; choose another") from None


def _check_parent(path: Path) -> None:
    """Find out before the work is done whether a folder could be made there."""
    parent = next(parent for parent in path.absolute().parents if parent.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise OptionError(f"no folder can be made in {str(parent)!r}; choose another place for the output")


@contextmanager
def replacing_folder(
    folder: str | Path, *, overwrite: bool = False, contents: Contents | str = Contents.RELEASE
) -> Iterator[Path]:
    """Hidden folder that takes the place of the output once the block has ended well.

    An error or interrupt inside the block removes it and leaves the old output, or nothing. What was replaced is looked
    at again once it is out of the way: if anything has come into it meanwhile, it is put back.
    """
    target = check_folder(folder, overwrite=overwrite, contents=contents).absolute()

    def check(old: Path) -> list[Path]:
        _refuse_standing(old, target, overwrite=overwrite)
        return own_files(old, Contents(contents), named=target)

    made = [parent for parent in target.parents if not parent.exists()]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with work_folder(target) as work:
            yield work
            check_folder(target, overwrite=overwrite, contents=contents)
            put_in_place(work, target, check=check)
    except BaseException:
        for parent in made:
            with suppress(OSError):
                parent.rmdir()
        raise


@contextmanager
def plain_errors(what: str, lost: str = "nothing was changed") -> Iterator[None]:
    """Report a fault of the disk as a sentence about what was to be written, and what is left."""
    try:
        yield
    except OSError as error:
        raise SfumatoError(f"{what} could not be written ({reason(error)}); {lost}") from None


def write_report(folder: Path, report: Report, certificate: Certificate | None) -> None:
    """Write the owner's pages of a report."""
    document = None if certificate is None else certificate.to_document()
    write_text(folder / "report.json", write_json(report.to_json(), "pretty"), mode=0o600)
    write_text(folder / "report.html", report.to_html(edition="owner", certificate=document), mode=0o600)
    write_text(folder / "summary.html", report.to_summary(certificate=document), mode=0o600)


_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
_SECONDS = 60


def find_browser() -> str:
    """Path of a browser that prints: the one that SFUMATO_CHROMIUM names, or one that is installed.

    Raises
    ------
    OptionError
        If there is none.
    """
    found = os.environ.get("SFUMATO_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise OptionError("no Chromium or Chrome was found to make a PDF; print summary.html from any browser instead")
    return found


def print_summary(folder: str | Path) -> Path:
    """Print ``owner/summary.html`` of a release into ``owner/summary.pdf``, for its owner's eyes alone.

    Raises
    ------
    OptionError
        If there is no browser, or no such page.
    SfumatoError
        If the browser did not print.
    """
    page, target = Path(folder, "owner", "summary.html").absolute(), Path(folder, "owner", "summary.pdf").absolute()
    browser = find_browser()
    if not page.is_file():
        raise OptionError(f"there is no {page.name} in {str(page.parent)!r}; make the release with a report")
    with tempfile.TemporaryDirectory(prefix="sfumato-") as profile:
        made = Path(profile, "summary.pdf")
        command = [browser, "--headless", "--disable-gpu", "--no-pdf-header-footer", "--no-first-run"]
        command += [f"--user-data-dir={profile}", f"--print-to-pdf={made}", page.as_uri()]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # it refuses to start for root otherwise; the page runs no script
        try:
            subprocess.run(command, check=True, timeout=_SECONDS, stdin=subprocess.DEVNULL, capture_output=True)
            paper = made.read_bytes()
        except (OSError, subprocess.SubprocessError):
            raise SfumatoError("the browser did not print summary.html; print it from any browser instead") from None
    with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(paper)
    return target
