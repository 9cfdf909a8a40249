"""Recounts of changed cells: exchanged, blocked, widened, drawn rows of persons, noise, and moves by a key."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tests.recount.evidence import LABELS, NUMBERS, Evidence, names_in
from tests.recount.patterns import Parts, beyond, differs

__all__ = [
    "alike",
    "blocked",
    "blocked_rest",
    "bounds",
    "drawn_persons",
    "exchanged",
    "exchanged_cells",
    "extra_rows",
    "extra_share",
    "hidden_label",
    "missing_stayed",
    "moved",
    "moved_target",
    "noise",
    "share_error",
    "shown_labels",
    "unchanged",
    "unchanged_gaps",
    "unlike",
    "untouched",
    "widened",
]

_SURE = 7.0
"""Standard deviations that a moment may lie from what the noise makes of it."""


def _named(parts: Parts) -> Iterator[str]:
    yield from differs("columns", int(parts["count"]), len(names_in(parts["columns"])))


# ------------------------------------------------------------------------------------------ cells as they are, or not


def exchanged(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Each column holds the cells that it held."""
    yield from _named(parts)
    for name in names_in(parts["columns"]):
        before, after = (sorted(frame[name]) for frame in (evidence.original, evidence.released))
        if before != after:
            yield f"column {name!r} has other cells than the original"


def _by_key(evidence: Evidence, key: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Original and released rows, joined by a column that identifies every row."""
    return evidence.original.set_index(key).sort_index(), evidence.released.set_index(key).sort_index()


def exchanged_cells(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """How many cells changed, and how far in rank: counted where an untouched column tells every row."""
    names = evidence.fact("swapped")["columns"]
    changed, cells = int(parts["changed"]), int(parts["cells"])
    yield from differs("cells", cells, len(evidence.original) * len(names))
    yield from beyond("changed cells", changed, 0, cells)
    if "leaves" in parts:
        yield from differs("target", parts["target"], evidence.options["target"])
        yield from beyond("leaves", int(parts["leaves"]), 1, len(evidence.original) // max(1, int(parts["smallest"])))
        yield from beyond("smallest leaf", int(parts["smallest"]), 1, evidence.person_count)
    if "window" in parts:
        yield from differs("window", float(parts["window"]), float(evidence.options["window"]))
    if "key" not in evidence.options:
        return
    before, after = _by_key(evidence, evidence.options["key"])
    yield from differs("changed cells", changed, sum(int((before[name] != after[name]).sum()) for name in names))
    if "window" not in parts:
        return
    for name in names:
        values = pd.to_numeric(before[name].replace("", None)).dropna()
        got = pd.to_numeric(after[name].replace("", None)).loc[values.index]
        ranked = np.sort(values.to_numpy())
        nearest = np.maximum(  # ranks between the last of the lower and the first of the higher number
            np.searchsorted(ranked, got, "left") - np.searchsorted(ranked, values, "right"),
            np.searchsorted(ranked, values, "left") - np.searchsorted(ranked, got, "right"),
        )
        if nearest.max() + 1 > math.ceil(float(parts["window"]) / 100 * len(values)):
            yield f"column {name!r}: a cell came from {nearest.max() + 1} ranks away"


def alike(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The fewest rows that are equal in the columns."""
    yield from _named(parts)
    sizes = evidence.tuples(evidence.released, names_in(parts["columns"]))
    yield from differs("fewest equal rows", int(parts["fewest"]), int(sizes.min()))


def unlike(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Rows that are like no other in the columns."""
    yield from _named(parts)
    sizes = evidence.tuples(evidence.released, names_in(parts["columns"]))
    yield from differs("rows like no other", int(parts["alone"]), int((sizes == 1).sum()))


def unchanged(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Cells of a row stay together as in the original: every released combination is one of it."""
    yield from _named(parts)
    names = names_in(parts["columns"])
    lost = _blanked(evidence)
    if lost and "gaps" not in parts:
        yield "cells became missing, and the sentence does not say so"
    whole = [name for name in names if name not in lost]
    before, after = evidence.tuples(evidence.original, whole), evidence.tuples(evidence.released, whole)
    surplus = after.sub(before.reindex(after.index, fill_value=0))
    if len(whole) and (surplus > 0).any():
        yield f"{int((surplus > 0).sum())} combinations of cells are not in the original"
    for name in lost & set(names):
        rest = evidence.cells(evidence.released, name).value_counts()
        if (rest > evidence.cells(evidence.original, name).value_counts().reindex(rest.index, fill_value=0)).any():
            yield f"column {name!r} has cells that are not in the original"
    yield from unchanged_gaps(evidence, parts)


def unchanged_gaps(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Columns of which the release shows which cells are missing, those that became so among them."""
    gaps = sum(bool(evidence.missing(evidence.released, name).any()) for name in _all_unchanged(evidence))
    most = sum(bool(evidence.missing(frame, name).any()) for frame in (evidence.original, evidence.released) for name in
               _all_unchanged(evidence))  # fmt: skip
    yield from beyond("columns with missing cells", int(parts.get("missing", 0)), gaps, most)


def _all_unchanged(evidence: Evidence) -> list[str]:
    return list(evidence.fact("unchanged")["columns"])


def _blanked(evidence: Evidence) -> set[str]:
    """Columns in which cells became missing."""
    shared = evidence.shared
    if len(evidence.released) != len(evidence.original):
        return set()
    return {name for name in shared if (evidence.released[name] == "").sum() > (evidence.original[name] == "").sum()}


def blocked(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Persons behind each combination, at least the level of any of these, and the cells that became missing."""
    yield from _named(parts)
    names = names_in(parts["columns"])
    lost = sum(int((evidence.released[name] == "").sum() - (evidence.original[name] == "").sum()) for name in names)
    yield from differs("cells that became missing", int(parts["cells"]), lost)
    shared = [name for name in evidence.released if name in evidence.original and name not in _blanked(evidence)]
    rows = evidence.released.assign(place=np.arange(len(evidence.released)))
    if not shared or evidence.original.duplicated(shared).any():  # whose a row is cannot be known from the rest of it
        sizes = evidence.tuples(evidence.released, names)
        yield from beyond("persons behind a row", int(parts["least"]), 1, int(sizes.min()))
        return
    who = evidence.original[shared].assign(
        person=evidence.persons, wish=np.maximum(evidence.levels, evidence.options["k"])
    )
    both = rows.merge(who, on=shared, how="left", validate="one_to_one")
    groups = both.groupby(names)
    persons = groups["person"].nunique()
    yield from differs("persons behind a row", int(parts["least"]), int(persons.min()))
    below = int((groups["wish"].max() > persons).sum())
    if below:
        yield f"{below} combinations are shown by fewer persons than one of these asked for"


def blocked_rest(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The label is missing as stated, and other cells became missing as stated."""
    label = parts["label"]
    hidden = int((evidence.released[label] == "").sum())
    yield from differs("hidden labels", int(parts["hidden"]), hidden)
    shared = [name for name in evidence.released if name in evidence.original and name != label]
    lost = sum(int((evidence.released[name] == "").sum() - (evidence.original[name] == "").sum()) for name in shared)
    yield from differs("other cells that became missing", int(parts["cells"]), lost)
    if float(parts["bits"]) > evidence.options["limit"] + 1e-9:
        yield f"{parts['bits']} bits are more than the {evidence.options['limit']} that were allowed"
    for rules in (parts["before"], parts["after"]):
        yield from beyond("rules of a tree", int(rules), 1, hidden)


def shown_labels(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Rows that have their label."""
    yield from differs("rows with the label", int(parts["rows"]), int((evidence.released[parts["label"]] != "").sum()))


def widened(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Every label is that of a value: intervals of numbers, quarters and years of dates, each as often as it should."""
    named = names_in(parts["columns"])
    yield from differs("columns", int(parts["count"]), len(named))
    for text in named:
        name, hierarchy, level = re.fullmatch(r"(.*): (.*), level (\d+)", text).groups()  # type: ignore[union-attr]
        label = _labeller(hierarchy, int(level))
        if label is None:
            continue
        before = evidence.original[name].map(lambda cell, label=label: label(cell) if cell else "").value_counts()
        after = evidence.released[name].value_counts()
        if not before.sort_index().equals(after.sort_index()):
            yield f"column {name!r} has other labels than its values make"


def _labeller(hierarchy: str, level: int) -> Any:
    """What makes a label of a text; None for a hierarchy of the owner's own file."""
    if hierarchy.startswith("intervals "):
        width = float(hierarchy.split()[1]) * 2 ** (level - 1)
        return lambda cell: _interval(float(cell), width)
    if hierarchy == "calendar":
        return {
            1: lambda cell: cell[:7],
            2: lambda cell: f"{cell[:4]}-Q{(int(cell[5:7]) + 2) // 3}",
            3: lambda cell: cell[:4],
        }.get(level)
    return None


def _interval(value: float, width: float) -> str:
    low = math.floor(value / width) * width
    return f"[{low:g}, {low + width:g})"


def drawn_persons(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The number of persons, with all of their rows, which are rows of the original."""
    yield from differs("rows", int(parts["rows"]), len(evidence.released))
    yield from differs("persons", int(parts["persons"]), evidence.person_count)
    drawn = int(parts["drawn"])
    share = evidence.options["share"] * evidence.person_count
    if abs(drawn - share) > 1:
        yield f"{drawn} persons were drawn, and a share of {evidence.options['share']} are {share:.1f}"
    names = evidence.shared
    if evidence.original.duplicated(names).any():
        return
    who = evidence.original[names].assign(person=evidence.persons)
    both = evidence.released.merge(who, on=names, how="left")
    if both["person"].isna().any():
        yield f"{int(both['person'].isna().sum())} rows are not in the original"
        return
    yield from differs("drawn persons", drawn, both["person"].nunique())
    all_rows = int(np.isin(evidence.persons, both["person"].unique()).sum())
    yield from differs("rows of the drawn persons", len(evidence.released), all_rows)


def share_error(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Hoeffding's bound without replacement, with 95 %: and the released categories keep it, all but one in 20."""
    persons = evidence.person_count
    drawn = evidence.fact("sampled")["drawn"]
    error = math.sqrt(math.log(40) * (1 - (drawn - 1) / persons) / (2 * drawn))
    if not 0 <= float(parts["error"]) - error < 0.1 * error:
        yield f"an error of {parts['error']} is stated, {error:.4f} follows"


# ------------------------------------------------------------------------------------------------------------- noise


def _noised(evidence: Evidence) -> list[str]:
    return [name for name in evidence.columns((*NUMBERS, "ordinal")) if evidence.schema[name]["kind"] != "ordinal"]


def noise(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Columns that got noise, and the variance that it adds to those that have fine steps and no bounds."""
    names = _noised(evidence)
    yield from differs("columns", int(parts["columns"]), len(names))
    size, kind = float(parts["size"]), evidence.options.get("kind", "additive")
    yield from differs("size", size, float(evidence.options["size"]))
    law = parts.get("added") or parts["factor"]
    yield from differs("law", law.lower(), evidence.options.get("law", "gaussian"))
    yield from differs("multiplicative", "factor" in parts, kind == "multiplicative")
    yield from differs("grid", parts["grid"], f"{evidence.fact('noised')['grid']:g}")
    bounded = names_in(str(evidence.fact("bounds-kept").get("columns", "")))
    extra = evidence.options.get("enhance", 0.0) * evidence.options.get("enhance_size", 0.0) ** 2
    for name in names:
        before, after = evidence.numbers(evidence.original, name), evidence.numbers(evidence.released, name)
        before, after = before[~np.isnan(before)], after[~np.isnan(after)]
        if name in bounded or len(np.unique(before)) < 30 or len(before) != len(after):
            continue
        yield from (_added if kind == "additive" else _multiplied)(name, before, after, size, extra)


def _added(name: str, before: NDArray[Any], after: NDArray[Any], size: float, extra: float) -> Iterator[str]:
    """The variance of the sum is that of both, up to sampling error; and so is the mean."""
    n, variance = len(before), float(before.var())
    added = size**2 + extra
    error = variance * math.sqrt((4 * added + 8 * added**2) / n)
    if abs(after.var() - variance * (1 + added)) > _SURE * error:
        yield f"column {name!r}: the variance grew by {after.var() / variance - 1:.3f}, {added:.3f} is stated"
    if abs(after.mean() - before.mean()) > _SURE * math.sqrt(added * variance / n):
        yield f"column {name!r}: the mean moved from {before.mean():.3f} to {after.mean():.3f}"


def _multiplied(name: str, before: NDArray[Any], after: NDArray[Any], size: float, extra: float) -> Iterator[str]:
    """The sum of squares grows by the factor's; extra noise adds its share of a variance on top."""
    square = before**2
    expected = float(square.sum()) * (1 + size**2) + len(before) * extra * float((before * (1 + size**2) ** 0.5).var())
    error = math.sqrt(float((square**2).sum()) * (4 * size**2 + 8 * size**4 + 8 * extra))
    if abs(float((after**2).sum()) - expected) > _SURE * error + 0.2 * extra * expected:
        yield f"column {name!r}: the sum of squares is {float((after**2).sum()) / expected:.3f} of what is stated"


def extra_rows(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Rows with extra noise are the share that was asked for."""
    if abs(int(parts["rows"]) - evidence.options["enhance"] * len(evidence.released)) > 1:
        share = evidence.options["enhance"]
        yield f"{parts['rows']} rows got extra noise, of {len(evidence.released)} and a share of {share}"


def extra_share(evidence: Evidence, parts: Parts) -> Iterator[str]:
    yield from differs("share", float(parts["share"]), float(evidence.options["enhance"]))


def untouched(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Columns whose categories, or missing cells, are released as they are: each combination as often as before."""
    labels = [name for name in evidence.columns(LABELS) if name not in {*evidence.fact("swapped").get("columns", ())}]
    moved = set(evidence.fact("transformed").get("columns", ()))
    if moved:
        labels = [name for name in evidence.columns((*LABELS, "date")) if name not in moved]
    if "categories" in parts:
        yield from differs("columns of categories", int(parts["categories"]), len(labels))
        before, after = (
            evidence.tuples(frame, labels).sort_index() for frame in (evidence.original, evidence.released)
        )
        if len(evidence.original) == len(evidence.released) and not before.equals(after):
            yield "the categories of released rows are not those of the original"
    gaps = [name for name in evidence.released if name in evidence.original and (evidence.original[name] == "").any()]
    yield from differs("columns with missing cells", int(parts.get("missing", 0)), len(gaps))
    for name in gaps:
        yield from differs(f"missing cells of {name!r}", int((evidence.released[name] == "").sum()),
                           int((evidence.original[name] == "").sum()))  # fmt: skip


def bounds(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Columns that were kept inside bounds lie inside those that are declared, or inside those of the original."""
    yield from _named(parts)
    for name in names_in(parts["columns"]):
        domain = evidence.schema[name].get("domain", {})
        cells = evidence.numbers(evidence.released, name)
        low, high = domain.get("low", -math.inf), domain.get("high", math.inf)
        if np.nanmin(cells) < low or np.nanmax(cells) > high:
            yield f"column {name!r} goes beyond its bounds"


# ----------------------------------------------------------------------------------------------------------- geometry


def moved(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The owner's key takes the original to the release: the columns, the operations, and the numbers themselves."""
    steps = tomllib.loads((evidence.folder / "key.toml").read_text())["step"]
    columns = {name for step in steps for name in step.get("columns", [step.get("column")])}
    yield from differs("columns", int(parts["columns"]), len(columns))
    yield from differs("operations", parts["operations"], ", ".join(sorted({step["op"] for step in steps})))
    yield from beyond("known rows", int(parts["known"]), 1, len(columns) + 1)
    extra = int(parts.get("rows", 0))
    expected = _by_steps(evidence, sorted(columns), steps)
    after = pd.DataFrame({name: evidence.numbers(evidence.released, name) for name in sorted(columns)})
    found = _matched(expected, after, 2e-5 if extra else 0.0)
    if found < len(after) - extra:
        yield f"{len(after) - found} rows are not the original moved by the key, and {extra} may be others"


def _by_steps(evidence: Evidence, names: list[str], steps: list[dict[str, Any]]) -> pd.DataFrame:
    """The original's numbers, moved step by step; an angle turns clockwise.

    Where a missing cell is turned with another it counts as its column's mean, and is missing afterwards.
    """
    table = pd.DataFrame({name: evidence.numbers(evidence.original, name) for name in names})
    gaps = table.isna()
    table = table.fillna(table.mean())
    for step in steps:
        if step["op"] == "add":
            table[step["column"]] += step["term"]
        elif step["op"] == "mult":
            table[step["column"]] *= step["term"]
        else:
            first, second = step["columns"]
            units = [step.get("units", {}).get(name, 1.0) for name in (first, second)]
            x, y, angle = table[first] / units[0], table[second] / units[1], math.radians(step["degrees"])
            table[first] = (x * math.cos(angle) + y * math.sin(angle)) * units[0]
            table[second] = (y * math.cos(angle) - x * math.sin(angle)) * units[1]
    return table.mask(gaps)


def _matched(expected: pd.DataFrame, after: pd.DataFrame, grid: float) -> int:
    """Released rows that lie within a step of each column of an expected one, a missing cell like a value.

    All rows are on the grid of the noise if some got it, in standard deviations.
    """
    near = np.ones((len(after), len(expected)), dtype=bool)
    for name in after:
        cells, wanted = after[name].to_numpy(), expected[name].to_numpy()
        step = _step(cells)
        close = np.abs(cells[:, None] - wanted[None, :]) <= 0.51 * step + grid * np.nanstd(wanted) + 1e-7 * np.nanmax(
            np.abs(wanted)
        )
        near &= close | (np.isnan(cells)[:, None] & np.isnan(wanted)[None, :])
        near &= np.isnan(cells)[:, None] | ~np.isnan(wanted)[None, :] | close
    return int(near.any(axis=1).sum())


def _step(cells: NDArray[Any]) -> float:
    """The step that numbers are written in: the coarsest power of ten times 1, 2 or 5 that all are multiples of."""
    there = cells[~np.isnan(cells)]
    for power in range(6, -10, -1):
        for factor in (5, 2, 1):
            step = factor * 10.0**power
            if np.all(np.abs(there / step - np.round(there / step)) < 1e-6):
                return step
    return 1e-9


def missing_stayed(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Exchanged columns with missing cells; each has as many as before."""
    names = [name for name in evidence.fact("swapped")["columns"] if (evidence.original[name] == "").any()]
    yield from differs("columns with missing cells", int(parts["missing"]), len(names))
    for name in names:
        if (evidence.original[name] == "").sum() != (evidence.released[name] == "").sum():
            yield f"column {name!r} has other missing cells than the original"


def hidden_label(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The label is the one that was named."""
    yield from differs("label", parts["label"], evidence.options.get("private"))


def moved_target(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The target was named, and the key moves it."""
    yield from differs("target", [parts["column"], parts["same"]], [evidence.options.get("target")] * 2)
    if parts["column"] not in (evidence.folder / "key.toml").read_text():
        yield "the key does not move the target"
