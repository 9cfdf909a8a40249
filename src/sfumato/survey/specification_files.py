"""Noise specifications in files of their own and in certificates."""

from __future__ import annotations

from pathlib import Path

from sfumato.certificate import Certificate
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.documents import Unparsable, parse_json, read_text
from sfumato.core.errors import OptionError
from sfumato.core.facts import Fact
from sfumato.methods.randomize.facts import specs_of

__all__ = ["read_spec"]


def read_spec(path: str | Path, column: str) -> NoiseSpec:
    """Read the specification of a column from its own file or from a certificate.

    Raises
    ------
    OptionError
        If the file is neither, or the certificate has no such column.
    """
    facts = _certified_facts(Path(path))
    if facts is None:
        return NoiseSpec.read(path)
    specs = specs_of(facts)
    if column not in specs:
        names = ", ".join(map(repr, specs)) or "none"
        raise OptionError(f"the certificate has no specification of column {column!r}; it has {names}")
    return specs[column]


def _certified_facts(path: Path) -> tuple[Fact, ...] | None:
    """Read the facts of a certificate; None if the file is something else."""
    if path.suffix.lower() != ".json":
        return None
    try:
        text = read_text(path, "certificate", "name a certificate.json")
        document = parse_json(text)
    except (OptionError, Unparsable):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("facts"), list):
        return None
    return Certificate.from_json(text).facts
