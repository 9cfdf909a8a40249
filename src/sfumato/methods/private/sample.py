"""The verb `sfumato.sample`: rows from the model that left with a release, at no further cost of privacy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from sfumato.core.errors import OptionError
from sfumato.core.progress import tell
from sfumato.core.randomness import Randomness
from sfumato.methods.private.stored import StoredModel
from sfumato.tables.levels import meets_all, parse_conditions

__all__ = ["sample", "sample_batches"]

_BATCH = 50_000
_TRIES = 500_000  # rows after which a rule that hardly any row fulfils is refused
_LEAST = 1e-4  # share of rows that must fulfil it


def sample(
    model: str | Path, *, rows: int | None = None, where: str | None = None, seed: int | None = None
) -> pa.Table:
    """Rows drawn from the model of a private release.

    Parameters
    ----------
    model : path
        ``model.json`` of a release.
    rows : int, optional
        By default as many as the noisy number of people.
    where : str, optional
        Only rows that fulfil this rule, such as ``"age >= 65 and sex == f"``.
    seed : int, optional
        Draw the same rows again.

    Raises
    ------
    OptionError
        If there is no such model, or hardly any row fulfils the rule.
    """
    return pa.Table.from_batches(
        [batch for part in sample_batches(StoredModel.load(model), rows, where, seed) for batch in part.to_batches()]
    )


def sample_batches(
    stored: StoredModel, rows: int | None = None, where: str | None = None, seed: int | None = None
) -> Iterator[pa.Table]:
    """Rows in parts, so that any number needs little memory; at least one part."""
    rows = max(1, round(stored.model.people)) if rows is None else rows
    if rows < 1:
        raise OptionError("rows must be at least 1")
    conditions = () if where is None else parse_conditions(where)
    if where is not None and not conditions:
        raise OptionError("the rule of where cannot be read; write it as 'age >= 65 and sex == f'")
    rng, found, drawn = Randomness(seed).generator("sample"), 0, 0
    while found < rows:
        many = _BATCH if conditions else min(_BATCH, rows - found)
        part = stored.draw(many, rng)
        drawn += many
        if conditions:
            part = part.filter(pa.array(meets_all(conditions, part, stored.schema)))
        part = part.slice(0, rows - found)
        found += part.num_rows
        if drawn >= _TRIES and found < _LEAST * drawn:
            raise OptionError("fewer than 1 in 10,000 rows fulfil the rule of where; take a wider one")
        tell("drawing rows", found / rows)
        yield part
