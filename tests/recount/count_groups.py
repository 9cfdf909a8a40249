"""Recounts of rows that were drawn: groups and leaves, persons, and numbers that few hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tests.recount.evidence import NUMBERS, Evidence, names_in
from tests.recount.patterns import Parts, beyond, differs

__all__ = [
    "alone",
    "chosen_size",
    "classes",
    "combination",
    "constant_in_persons",
    "copied",
    "dealt_numbers",
    "drawn_rows",
    "group_count",
    "groups",
    "leaves",
    "left_out",
    "most_rows",
    "noised_groups",
    "partitions",
    "released_persons",
    "same_records",
    "scores",
    "several_records",
    "single_valued",
    "strata",
    "tiny_groups",
    "unlabelled",
]

_NEAR = 20  # original numbers around a released one by which the chance of lying on one is stated


def groups(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """All records are in groups; sizes and numbers of groups go together, and no group is below the lowest level."""
    records = int(parts["records"])
    yield from differs("records", records, evidence.condensed)
    sizes = evidence.certificate["levels"]
    smallest = int(parts.get("smallest", 1))
    floor = int(np.maximum(evidence.levels, evidence.options.get("k", 1)).min())
    if "smallest" in parts:
        yield from differs("smallest group", smallest, sizes["smallest_group"])
        yield from beyond("smallest group", smallest, floor, records / sizes["groups"])
    if "persons" in parts:
        yield from differs("persons", int(parts["persons"]), evidence.person_count)
    if "alone" in parts:
        ones = int((evidence.levels == 1).sum())
        yield from beyond("records alone", int(parts["alone"]), 0 if "smallest" in parts else 1, ones)


def group_count(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The groups, of the smallest size or more, fit into the records."""
    sizes, groups_told = evidence.certificate["levels"], int(parts.get("groups", 1))
    yield from differs("groups", groups_told, sizes["groups"])
    yield from beyond("groups", groups_told, 1, len(evidence.original) / max(1, sizes["smallest_group"]))


def tiny_groups(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Groups of three or fewer are no more than there are groups, and none if the floor is above three."""
    sizes = evidence.certificate["levels"]
    yield from beyond("tiny groups", int(parts["groups"]), 1, sizes["groups"])
    yield from beyond("smallest group", sizes["smallest_group"], 1, 3)


def alone(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Records that stand alone asked for level 1."""
    yield from beyond("records alone", int(parts["alone"]), 1, int((evidence.levels == 1).sum()))


def drawn_rows(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The number of rows; with a fine column, only rows of groups that do not vary equal an original record."""
    rows = len(evidence.released)
    if "rows" in parts:
        yield from differs("rows", int(parts["rows"]), rows)
    if "smallest" in parts:
        yield from differs("smallest group", int(parts["smallest"]), evidence.certificate["levels"]["smallest_group"])
    if "drawn" in parts:
        yield from beyond("drawn rows", int(parts["drawn"]), 1, rows - int((evidence.levels == 1).sum() and 1))
    same = rows - int(parts["drawn"]) if "drawn" in parts else 0
    shared = evidence.shared
    fine = [
        name
        for name in evidence.columns(("continuous",))
        if evidence.frequencies(name).size > 0.3 * len(evidence.original) > 15
    ]
    if len(fine) < 2 or evidence.certificate["levels"]["smallest_group"] <= 3:
        return  # few steps, or groups whose statistics give their records: drawn rows may lie on these
    both = evidence.tuples(evidence.original, shared).index.intersection(
        evidence.tuples(evidence.released, shared).index
    )
    if len(both) > same + (len(evidence.original) if "mixed" in parts else 0):
        yield f"{len(both)} released rows are original records, and {same} may be"


def copied(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Released numbers lie on those that fewer than k hold no more often than by chance.

    The chance of each released number is that of a grid point near it to be such a number, among the twenty originals
    around it. Three times as many may be, as draws are denser where numbers are, and the tail of a Poisson law.
    """
    k = int(parts["k"])
    if "level" in parts:
        yield from differs("level", k, int(parts["level"]))
    floor = int(np.maximum(evidence.levels, evidence.options.get("k", 1)).min())
    if k < floor:
        yield f"fewer than {k} is stated where every record asks for {floor}"
    for name in evidence.columns(NUMBERS):
        if name == evidence.options.get("weight"):
            continue
        values, expected = _on_rare(evidence, name, k)
        limit = 3 * expected + 6.5 * np.sqrt(3 * expected) + 8
        if values > limit:
            yield f"column {name!r}: {values} cells are numbers that fewer than {k} hold, {expected:.1f} by chance"
    if "kept" in parts:
        yield from differs("level", k, int(parts["same"]))
        coded = evidence.fact("tails-coded").get("method", "keep") != "keep"
        yield from differs("coding spoken of", "coded" in parts, coded)
        yield from _kept_numbers(evidence, parts, k, coded=coded)


def _on_rare(evidence: Evidence, name: str, k: int) -> tuple[int, float]:
    """Released cells on numbers held by fewer than k persons, and the number expected by chance."""
    frequencies = evidence.frequencies(name)
    originals = np.sort(frequencies.index.to_numpy(dtype=np.float64))
    few = np.sort(frequencies.index[frequencies < k].to_numpy(dtype=np.float64))
    cells = evidence.cells(evidence.released, name).dropna().to_numpy(dtype=np.float64)
    if not len(few) or len(originals) < 2:
        return 0, 0.0
    step = float(np.diff(np.unique(np.r_[originals, cells])).min())
    ends = np.searchsorted(originals, cells)
    low = originals[np.maximum(ends - _NEAR // 2, 0)]
    high = originals[np.minimum(ends + _NEAR // 2, len(originals) - 1)]
    within = np.searchsorted(few, high, "right") - np.searchsorted(few, low, "left")
    points = np.maximum((high - low) / step + 1, 1)
    return int(np.isin(cells, few).sum()), float((within / points).clip(0, 1).sum())


def _kept_numbers(evidence: Evidence, parts: Parts, k: int, *, coded: bool) -> Iterator[str]:
    """Numbers that were moved and those that stayed are all that were drawn; enough hold those that stayed."""
    names = [name for name in evidence.fact("chain-synthesis")["columns"] if name in evidence.columns(NUMBERS)]
    there = sum(int((~evidence.missing(evidence.released, name)).sum()) for name in names)
    kept, moved = int(parts["kept"]), int(parts["moved"])
    yield from differs("numbers moved and kept", kept + moved, there)
    common = sum(_held_by_enough(evidence, name, k, coded=coded) for name in names)
    yield from beyond("numbers as enough hold them", kept, 0, common)


def _held_by_enough(evidence: Evidence, name: str, k: int, *, coded: bool) -> int:
    """Drawn numbers that at least k persons have; of a column that a rule puts after another, distances to that.

    Where tails are coded so are those at the limits, and distances between coded numbers. Cells that few lack are held.
    """
    before = [rule.split(" <= ")[0] for rule in evidence.fact("column-rules-kept").get("rules", []) if
              rule.endswith(f" <= {name}")]  # fmt: skip
    tables = []
    for frame in (evidence.original, evidence.released):
        values = evidence.numbers(frame, name) - (evidence.numbers(frame, before[0]) if before else 0.0)
        tables.append(pd.Series(values).round(9))
    held = pd.DataFrame({"value": tables[0], "person": evidence.persons}).dropna().drop_duplicates()
    frequencies = held.groupby("value")["person"].size()
    lacking = len(np.unique(evidence.persons[tables[0].isna()]))
    enough = tables[1].isin(frequencies.index[frequencies + (lacking if lacking < k else 0) >= k])
    if coded:
        limits = tables[1].isin([tables[1].min(), tables[1].max()])
        enough = tables[1].notna() if before else enough | limits
    return int(enough.sum())


# ----------------------------------------------------------------------------------------------------------- persons


def left_out(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Records that no group takes are those beyond one of each person, or beyond those that k persons have."""
    linked = "keep_persons" in evidence.options
    which = "beyond the number of records that enough persons have" if linked else "that no group could take"
    yield from differs("records left out", parts["which"], which)
    records = np.bincount(evidence.persons)
    least = evidence.person_count
    if linked:
        most = np.sort(records)[-evidence.highest_level]
        least = int(np.minimum(records, most).sum())
    yield from beyond("records in groups", evidence.condensed, least, len(evidence.original))


def several_records(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Records and persons of the original."""
    yield from differs("records", int(parts["records"]), evidence.condensed)
    yield from differs("persons", int(parts["persons"]), evidence.person_count)


def released_persons(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Released persons, and enough original ones with at least as many records for each number of rows."""
    column, smallest = evidence.fact("persons-linked")["column"], int(parts["smallest"])
    rows = evidence.released[column].value_counts()
    yield from differs("released persons", int(parts["persons"]), len(rows))
    times = np.bincount(np.unique(evidence.persons, return_counts=True)[1])
    for many in sorted(set(rows)):
        if times[many:].sum() < smallest:
            yield f"fewer than {smallest} persons have {many} records, and a released person has as many rows"


def dealt_numbers(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The new numbers are from 1 on, and go with no column."""
    numbers = evidence.released[parts["column"]].astype(int)
    people = numbers.nunique()
    yield from differs("numbers of persons", sorted(set(numbers)), list(range(1, people + 1)))
    for name in evidence.columns(NUMBERS):
        means = pd.Series(evidence.numbers(evidence.released, name)).groupby(numbers.to_numpy()).mean().dropna()
        if means.nunique() > 1 and len(means) > 30:
            order = pd.Series(means.index.to_numpy(dtype=float), index=means.index)
            if abs(means.rank().corr(order.rank())) * np.sqrt(len(means) - 1) > 6.5:
                yield f"the numbers of persons go with column {name!r}"


def constant_in_persons(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The named columns never change within a released person, nor within an original one."""
    column = evidence.fact("persons-linked")["column"]
    yield from differs("columns", int(parts["count"]), len(names_in(parts["columns"])))
    for name in names_in(parts["columns"]):
        for what, frame, who in (
            ("released", evidence.released, evidence.released[column].to_numpy()),
            ("original", evidence.original, evidence.persons),
        ):
            values = pd.DataFrame({"value": frame[name].to_numpy(), "who": who})
            several = int((values[values["value"] != ""].groupby("who")["value"].nunique() > 1).sum())
            if several:
                yield f"{several} {what} persons have two values in column {name!r}"


def most_rows(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The most rows of a released person."""
    column = evidence.fact("persons-linked")["column"]
    yield from differs("most rows", int(parts["most"]), int(evidence.released[column].value_counts().max()))


# ----------------------------------------------------------------------------------------------- chain, strata, cells


def leaves(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Rows, leaf and columns of a chain."""
    yield from differs("rows", int(parts["rows"]), len(evidence.released))
    yield from differs("leaf", int(parts["leaf"]), int(evidence.options.get("leaf", parts["leaf"])))
    yield from differs("leaf of persons", int(parts.get("of_leaf", parts["leaf"])), int(parts["leaf"]))
    yield from beyond("smallest leaf", int(parts["smallest"]), max(int(parts["leaf"]), int(evidence.levels.min())),
                      evidence.person_count)  # fmt: skip
    if "frequency" in parts:
        yield from differs("persons or records of a number", int(parts["frequency"]), evidence.public_level)
    yield from beyond("columns", int(parts["columns"]), 1, len(evidence.released.columns))
    made = set[str]()
    for rule in evidence.fact("column-rules-kept").get("rules", []):
        made |= {rule.split(" = ")[0]} if " = " in rule else {rule.split(" -> ")[-1]} if " -> " in rule else set()
    yield from differs("columns", int(parts["columns"]), len(evidence.released.columns) - len(made))
    yield from beyond("regressed columns", int(parts.get("regressed", 0)), 0, len(evidence.columns(NUMBERS)))
    yield from beyond("columns drawn twice", int(parts.get("twice", 0)), 0, int(parts["columns"]))
    if ("by_person" in parts) != ("person" in evidence.options):
        yield "leaves are stated in persons where there is no column of them, or in records where there is"


def single_valued(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Leaves with one value alone are some of all, and all of a column that has one value."""
    total, same = int(parts["leaves"]), int(parts["same"])
    yield from beyond("leaves with one value", same, 0, total)
    fact = evidence.fact("chain-synthesis")
    yield from differs("leaves", total, sum(fact["leaves"]))
    for name, count, one in zip(fact["columns"], fact["leaves"], fact["alike"], strict=True):
        if (
            name in evidence.original
            and (evidence.original[name] != "").all()
            and evidence.original[name].nunique() == 1
        ):
            yield from differs(f"leaves with one value of {name!r}", one, count)


def partitions(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Parts of a table hold all its records."""
    yield from beyond("smallest part", int(parts["smallest"]), 1, len(evidence.original) / int(parts["parts"]))


def classes(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Every class has as many rows as records, and there are as many classes."""
    before, after = (frame[parts["column"]].value_counts() for frame in (evidence.original, evidence.released))
    if "classes" in parts:
        yield from differs("classes", int(parts["classes"]), len(before))
    if len(evidence.original) == len(evidence.released) and not before.sort_index().equals(after.sort_index()):
        yield f"the classes of {parts['column']!r} have other counts than in the original"


def chosen_size(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The size is the greatest common divisor of the classes in these units, and no group is smaller."""
    size, unit = int(parts["size"]), int(parts["unit"])
    yield from beyond("group size", size, unit, evidence.certificate["levels"]["smallest_group"])
    counts = evidence.original[evidence.fact("class-pure")["column"]].value_counts()
    if evidence.person_count == len(evidence.original) and not evidence.fact("stratified"):
        yield from differs("group size", size, unit * int(np.gcd.reduce(counts.to_numpy() // unit)))


def unlabelled(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The number of original rows without a class, or of persons if fewer; no released row lacks one."""
    whole = pd.concat(evidence.tables, ignore_index=True)
    absent = evidence.missing(whole, parts["column"])
    if "rows" in parts:
        yield from differs("rows without a class", int(parts["rows"]), int(absent.sum()))
    else:
        column = evidence.options.get("person")
        persons = int(absent.sum()) if column is None else whole.loc[absent, column].nunique()
        yield from beyond("persons without a class", persons, 1, int(parts["fewer"]) - 1)
    if evidence.missing(evidence.released, parts["column"]).any():
        yield "released rows lack a class"


def scores(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Columns of numbers that were scored are among those of numbers, and k is the highest level."""
    yield from beyond("columns", int(parts["columns"]), 1, len(evidence.columns(NUMBERS)))
    yield from differs("level", int(parts["k"]), evidence.public_level)


def combination(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The level of a chain is the one that is stated for all."""
    yield from differs("level", int(parts["k"]), evidence.public_level)


def noised_groups(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Groups that scale noise: a size as stated before, of records that are all there."""
    yield from differs("smallest group", int(parts["smallest"]), evidence.certificate["levels"]["smallest_group"])


def same_records(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Rows of groups that do not vary have the numbers of an original record, unless tails were coded."""
    same = int(parts["same"])
    yield from beyond("rows that are records", same, 1, len(evidence.original))
    numbers = evidence.columns(NUMBERS)
    if "rows" in evidence.options or evidence.fact("tails-coded").get("method", "keep") != "keep" or not numbers:
        return
    before, after = (evidence.tuples(frame, numbers) for frame in (evidence.original, evidence.released))
    both = int(np.minimum(before.reindex(after.index, fill_value=0), after).sum())
    if both < same:
        yield f"{same} rows are said to be records as they are, and {both} have the numbers of one"


def strata(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The strata are those asked for, and every stratum has as many rows as records."""
    yield from differs("strata", parts.get("column", parts["strata"]), parts["strata"])
    yield from differs("strata", parts["strata"], evidence.options.get("strata"))
    yield from classes(evidence, {"column": parts["strata"]})
