"""What both kinds of noise do around it: refuse what noise cannot hide, enhance, shuffle, and state the facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from sfumato.errors import LevelError, OptionError, PrivacyRefusal
from sfumato.facts import Enhanced, Fact, Noised, Shuffled, Untouched
from sfumato.laws import law_of_size
from sfumato.laws.enhance import check_columns, enhance_rows
from sfumato.mechanism import Sanitized, Workings
from sfumato.records import Block, BlockKind, Layout, Records

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.perturb.additive import AdditiveNoise
    from sfumato.perturb.multiplicative import MultiplicativeNoise

    Noise: TypeAlias = AdditiveNoise | MultiplicativeNoise

__all__ = ["check_records", "finish", "number_blocks", "number_places"]


def number_blocks(layout: Layout) -> tuple[Block, ...]:
    """Give the blocks that get noise."""
    return tuple(block for block in layout if block.kind is BlockKind.NUMBER)


def number_places(layout: Layout) -> list[int]:
    """Give the coordinates that get noise."""
    return [block.start for block in number_blocks(layout)]


def check_records(records: Records, noise: Noise) -> None:
    """Refuse records that noise cannot do justice to.

    Raises
    ------
    PrivacyRefusal
        For categories that nobody allowed to be published as they are.
    """
    if not len(number_blocks(records.layout)):
        raise OptionError("no column is a number, so there is nothing to add noise to; use another method")
    categories = [block.column for block in records.layout if block.kind is BlockKind.CATEGORY]
    if categories and not noise.pass_categories:
        raise PrivacyRefusal(
            f"{len(categories)} columns are categories, the first is {categories[0]!r}: noise would publish them as "
            "they are; leave them out, use another method, or allow it with pass_categories (--pass-categories)"
        )
    asked = int((records.levels > 0).sum())
    if asked:
        raise LevelError(f"{asked} records ask for a privacy level, which noise does not give; use condense for them")
    if records.strata.any():
        raise OptionError("noise makes no groups, so there is nothing to keep apart; leave strata out")
    check_columns(noise.enhance_laws, (block.column for block in number_blocks(records.layout)))


def finish(records: Records, values: NDArray[np.float64], noise: Noise, rng: np.random.Generator) -> Sanitized:
    """Enhance, put missing cells back, shuffle, and state what was done."""
    import numpy as np

    facts: list[Fact] = []
    blocks = number_blocks(records.layout)
    facts.append(Noised(noise.law, noise.kind, noise.size, len(blocks), noise.correlated, noise.grid))
    if noise.enhance:
        named = dict(noise.enhance_laws)
        laws = [law_of_size(named.get(block.column, noise.law), noise.enhance_size, noise.grid) for block in blocks]
        places = number_places(records.layout)
        values[:, places], chosen = enhance_rows(values[:, places], noise.enhance, laws, rng)
        facts.append(Enhanced(noise.enhance, len(chosen)))
    _restore_missing(records, values)
    categories = sum(block.kind is BlockKind.CATEGORY for block in records.layout)
    missing = sum(block.kind is BlockKind.MISSING for block in records.layout)
    if categories or missing:
        facts.append(Untouched(categories, missing))
    order = rng.permutation(len(records)).astype(np.int64)
    nothing = np.zeros(len(records), dtype=np.int64)
    noised = frozenset(block.column for block in blocks)
    released = Records(values[order], records.layout, nothing, nothing.copy(), records.target, unbounded=noised)
    return Sanitized(released, (*facts, Shuffled(len(records))), Workings(origin=order))


def _restore_missing(records: Records, values: NDArray[np.float64]) -> None:
    """Give missing cells back what they had: there is no number in them to hide."""
    numbers = {block.column: block for block in number_blocks(records.layout)}
    for block in records.layout:
        if block.kind is BlockKind.MISSING and block.column in numbers:
            absent = records.values[:, block.start] > 0.5
            values[absent, numbers[block.column].where] = numbers[block.column].fill
