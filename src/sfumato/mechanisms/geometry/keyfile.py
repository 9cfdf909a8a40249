"""The key as a TOML file of its own, closed to others and kept apart from every release."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sfumato.core.documents import Inline, Lines, toml_entries, write_toml
from sfumato.core.errors import OptionError, PrivacyRefusal, SfumatoError
from sfumato.core.replacing import reason, replacing_file
from sfumato.mechanisms.geometry.key import Add, Key, Mult, Rotate, Step

__all__ = ["check_key_path", "keeping_key", "key_from_toml", "key_to_toml", "save_key"]

_FORMAT = 1
_NOTE = """Key of a table that was moved: whoever has it has the original.
Keep it apart from the release, and never send it along."""
_ENTRIES = {
    "add": {"op", "column", "term"},
    "mult": {"op", "column", "term"},
    "rotate": {"op", "columns", "degrees", "units"},
}


def key_to_toml(key: Key) -> str:
    """Write a key as TOML, terms included."""
    steps = Lines(Inline(_to_document(step)) for step in key.steps)
    return write_toml({"format": _FORMAT, "step": steps}, _NOTE)


def _to_document(step: Step) -> dict[str, Any]:
    if not isinstance(step, Rotate):
        return {"op": step.op, "column": step.column, "term": step.term}
    units = {column: unit for column, unit in zip(step.pair, step.units, strict=True) if unit != 1}
    turn = {"op": step.op, "columns": list(step.pair), "degrees": step.degrees}
    return turn | {"units": units} if units else turn


def key_from_toml(text: str) -> Key:
    r"""Read a key from TOML.

    Examples
    --------
    >>> key_from_toml('format = 1\nstep = [{ op = "add", column = "age", term = -3 }]')
    Key(add; 1 columns)
    """
    document = toml_entries(text, "key", "write it as the documentation shows", ("step",))
    steps = document.get("step")
    if not isinstance(steps, list) or not all(isinstance(step, dict) for step in steps):
        raise OptionError("the key has no list 'step'; write one with a table for each operation")
    return Key(tuple(_step(step, place) for place, step in enumerate(steps, start=1)))


def _step(document: dict[str, Any], place: int) -> Step:
    op = document.get("op")
    if not isinstance(op, str) or op not in _ENTRIES:
        raise OptionError(f"step {place} of the key has no operation; choose one of {', '.join(_ENTRIES)}")
    wrong = sorted(set(document) - _ENTRIES[op]) + sorted(_ENTRIES[op] - set(document) - {"units"})
    if wrong:
        raise OptionError(f"step {place} of the key lacks or should not have the entry {wrong[0]!r}; mend it")
    if op != "rotate":
        if not isinstance(document["column"], str):
            raise OptionError(f"the column of step {place} of the key is not a name; write it in quotes")
        return (Add if op == "add" else Mult)(document["column"], document["term"])
    pair, units = document["columns"], document.get("units", {})
    if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
        raise OptionError(f"step {place} of the key does not name two columns to turn; write columns = ['a', 'b']")
    if not isinstance(units, dict) or not set(units) <= set(pair):
        raise OptionError(f"the units of step {place} of the key are not those of its two columns; mend them")
    return Rotate((pair[0], pair[1]), document["degrees"], (units.get(pair[0], 1.0), units.get(pair[1], 1.0)))


def check_key_path(path: str | Path, *, apart_from: str | Path | None = None) -> Path:
    """Refuse a place where a new key must not be written: over a file, or into the folder of a release."""
    place = Path(path)
    if apart_from is not None:
        folder, real = Path(apart_from).resolve(), place.resolve()
        if folder == real or folder in real.parents:
            raise PrivacyRefusal("the key would lie in the output folder, part of which leaves; keep it elsewhere")
    if place.exists() or place.is_symlink():
        raise OptionError(f"there is a file {str(path)!r} already and a key that is overwritten is lost; name another")
    return place


def save_key(key: Key, path: str | Path, *, apart_from: str | Path | None = None) -> Path:
    """Write a key to a new file of mode 600, and never into the folder of a release."""
    place = check_key_path(path, apart_from=apart_from)
    try:
        with replacing_file(place, private=True) as work:
            work.write_text(key.to_toml(), encoding="utf-8", newline="\n")
            check_key_path(place)
    except OSError as error:
        raise SfumatoError(f"the key could not be written ({reason(error)}); name another file") from None
    return place


@contextmanager
def keeping_key(key: Key | None, place: str | Path | None, folder: str | Path) -> Iterator[None]:
    """Write a new key first, for a release without its key is lost; take it back where no release comes of it.

    Parameters
    ----------
    key : Key or None
    place : path or None
        Nothing is written where either is None.
    folder : path
        Of the release: as long as no other folder stands there than before, none has come.
    """
    if key is None or place is None:
        yield
        return
    before = _standing(folder)
    saved = save_key(key, place, apart_from=folder)
    try:
        yield
    except BaseException:
        if _standing(folder) == before:
            saved.unlink(missing_ok=True)
        raise


def _standing(folder: str | Path) -> tuple[int, int] | None:
    try:
        found = Path(folder).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
