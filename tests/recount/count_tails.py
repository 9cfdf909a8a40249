"""Recounts of the ends of columns: limits of numbers and dates, and values held by few persons."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tests.recount.evidence import NUMBERS, Evidence
from tests.recount.patterns import Parts, differs

__all__ = ["coded", "coded_before_noise", "coded_sums", "left"]

_MOST_OF_A_JOINT_TAIL = 10
"""Persons that a cut-off of a joint run takes at most, as ``docs/several-owners.md`` has it."""

_MOSTLY = 0.9  # share of who holds another value than the commonest, from which on values are mostly common


def coded(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """No released number lies beyond that of the k-th most extreme person; a chain shows none of few among common ones.

    Groups draw numbers from their spread, also those between common ones that few or nobody holds. Beyond a limit that
    a long tail is drawn from, numbers lie as far as that goes. A column that a rule makes from others, and a weight
    that was scaled afterwards, follow from coded ones.
    """
    yield from _of_levels(evidence, parts)
    exempt = {evidence.options.get("weight"), *_made_by_rules(evidence)}
    for name in evidence.columns(NUMBERS):
        if name in exempt:
            continue
        if "smooth" not in parts:
            yield from _beyond_limits(evidence, name, _level(evidence))
        if evidence.request["method"] == "chain":
            yield from _held_by_few(evidence, name, int(parts["k"]))


def _of_levels(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Levels, the number of columns, and whether common values are spoken of, which a stream does not make."""
    k, stream = int(parts["k"]), evidence.request["kind"] == "stream"
    yield from differs("level", k, _stated(evidence, k))
    for part, expected in (("between", k), ("beyond", k - 1), ("rare", k)):
        if part in parts:
            yield from differs(f"persons ({part})", int(parts[part]), expected)
    if "columns" in parts:
        yield from differs("columns", int(parts["columns"]), len(evidence.columns(NUMBERS)))
    yield from differs("common values spoken of", "rare" in parts, not stream)
    yield from differs("long tails spoken of", "smooth" in parts, evidence.options.get("tails") == "smooth")


def _stated(evidence: Evidence, k: int) -> int:
    """The level that is to be stated; that of groups by class follows from a tolerance where no level is given."""
    if "k" not in evidence.options and "level" not in evidence.options:
        return max(2, k)
    return evidence.options["k"] if evidence.request["kind"] == "stream" else evidence.public_level


def _level(evidence: Evidence) -> int:
    """The level that limits are computed by: in a stream, that of all its records."""
    return int(evidence.options["k"]) if evidence.request["kind"] == "stream" else evidence.highest_level


def _made_by_rules(evidence: Evidence) -> set[str]:
    """Columns that a rule makes from others."""
    rules = evidence.fact("column-rules-kept").get("rules", [])
    return {rule.split(" = ")[0] for rule in rules if " = " in rule}


def _beyond_limits(evidence: Evidence, name: str, k: int) -> Iterator[str]:
    least, greatest = evidence.person_extremes(name)
    cells = evidence.numbers(evidence.released, name)
    cells = cells[~np.isnan(cells)]
    if not len(cells):
        return
    low, high = least[min(k, len(least)) - 1], greatest[-min(k, len(greatest))]
    if len(greatest) < 2 * k:  # one number, which all persons of the column decide
        low, high = least[0], greatest[-1]
        yield from differs(f"numbers of column {name!r}", 1, len(np.unique(cells)))
    outside = int(((cells < low - 1e-9) | (cells > high + 1e-9)).sum())
    if outside:
        yield f"column {name!r}: {outside} cells lie beyond the number of the {k}-th most extreme person"


def _held_by_few(evidence: Evidence, name: str, k: int) -> Iterator[str]:
    """In a column of mostly common values, no released number is that of fewer than k persons."""
    held = pd.DataFrame({"number": evidence.coarse_numbers(evidence.original, name), "person": evidence.persons})
    frequencies = held.dropna().drop_duplicates().groupby("number")["person"].size()
    level = _level(evidence)
    rare, rest = int(frequencies[frequencies < level].sum()), int(frequencies.sum() - frequencies.max())
    if (frequencies >= level).any() and (rare < level or rare <= (1 - _MOSTLY) * rest):
        few = np.isin(
            evidence.numbers(evidence.released, name), frequencies.index[frequencies < k].to_numpy(dtype=np.float64)
        )
        if few.any():
            yield f"column {name!r} of common values: {int(few.sum())} cells are numbers that fewer than {k} hold"


def left(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The owner asked for it."""
    yield from _of_levels(evidence, parts | {"rare": parts["k"]} if evidence.request["kind"] != "stream" else parts)
    yield from differs("what becomes of tails", evidence.options.get("tails"), "keep")


def coded_before_noise(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Levels and columns; noise leads no number beyond that of the k-th most extreme person, where none is declared.

    Owners of rows declare bounds, within which noise leads beyond a cut-off, and count no common values.
    """
    together = evidence.options["partition"] == "horizontal"
    k = min(int(evidence.options["k"]), _MOST_OF_A_JOINT_TAIL)
    columns = evidence.columns(NUMBERS)
    for name in () if together else columns:
        yield from _beyond_limits(evidence, name, k)
    yield from differs("level", int(parts["k"]), k)
    yield from differs("common values spoken of", "rare" in parts, not together)
    for part, expected in (("between", k), ("beyond", k - 1), ("rare", k), ("columns", len(columns))):
        if part in parts:
            yield from differs(part, int(parts[part]), expected)


def coded_sums(evidence: Evidence, name: str) -> tuple[float, float]:
    """The least and the greatest sum of a column whose numbers are coded at limits between ranks k and 2k - 1."""
    k = _level(evidence)
    least, greatest = evidence.person_extremes(name)
    inner, outer = min(2 * k - 1, len(least)) - 1, min(k, len(least)) - 1
    numbers = evidence.numbers(evidence.original, name)
    steps = np.diff(np.unique(numbers[~np.isnan(numbers)]))
    slack = 0.0 if not len(steps) else len(numbers) * float(steps.min()) / 2
    few = np.nansum(np.clip(numbers, least[outer], greatest[-1 - inner]))
    many = np.nansum(np.clip(numbers, least[inner], greatest[-1 - outer]))
    return float(few) - slack, float(many) + slack
