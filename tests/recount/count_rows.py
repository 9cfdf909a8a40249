"""Recounts of any release: its rows and their order, dropped columns, rules, weights, formulas and rare categories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tests.recount.count_tails import coded_sums
from tests.recount.evidence import LABELS, NUMBERS, Evidence, names_in
from tests.recount.patterns import Parts, beyond, differs

__all__ = [
    "chosen_rows",
    "despite_policy",
    "dropped",
    "dry_run",
    "equal_counts",
    "hidden",
    "months",
    "order",
    "rare_columns",
    "rare_pairs",
    "rules",
    "runs",
    "shown",
    "spreadsheet",
    "unmeasured",
    "weight_column",
    "weights",
    "where",
]

_SURE = 6.5
"""Standard deviations that a count by chance may lie from what is expected: an error of 1e-10 for each."""


# -------------------------------------------------------------------------------------------------------------- rows


def order(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Rows as many as stated, no column in order, and no row like the one before it more than by chance."""
    yield from differs("rows", int(parts["rows"]), len(evidence.released))
    for name in evidence.columns(NUMBERS):
        for what, distance in (("place", 0), ("row before", 1)):
            correlation, rows = _in_order(evidence.numbers(evidence.released, name), distance)
            if rows > 30 and abs(correlation) * np.sqrt(rows - 1) > _SURE:
                yield f"column {name!r} goes with the {what}: correlation {correlation:.2f} over {rows} rows"


def _in_order(values: NDArray[np.float64], distance: int) -> tuple[float, int]:
    """Correlation of ranks with row positions, or with the rank a given lag before."""
    ranks = pd.Series(values).rank()
    other = ranks.shift(distance) if distance else pd.Series(np.arange(len(values), dtype=np.float64))
    both = pd.DataFrame({"rank": ranks, "other": other}).dropna()
    if both["rank"].nunique() < 2 or both["other"].nunique() < 2:
        return 0.0, 0
    return float(both["rank"].corr(both["other"])), len(both)


def runs(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Runs of rows keep their places: in a table sorted by age, the first half of the release is that of the original.

    A row moves by less than the longest run, which is below twice the shortest and a batch, so that where untouched
    columns are released the categories of the first rows are those of as many original rows, up to one run.
    """
    run = int(parts["rows"])
    yield from beyond("rows of a run", run, 1, len(evidence.released))
    names = [
        name for name in evidence.columns(("nominal", "boolean")) if name not in evidence.options.get("columns", ())
    ]
    half = len(evidence.released) // 2
    for name in names:
        before = evidence.original[name][:half].value_counts()
        after = evidence.released[name][:half].value_counts()
        moved = int(before.sub(after, fill_value=0).abs().sum()) // 2
        if moved > 2 * run + evidence.options.get("batch_rows", 0):
            yield f"column {name!r}: {moved} of the first {half} rows left their half, more than a run has"


def dropped(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The named columns are gone, and all that are gone are named."""
    lists = {part: names_in(parts.get(part, "")) for part in ("identifiers", "empty", "levels")}
    named = [name for names in lists.values() for name in names]
    for part, names in (("identifier", "identifiers"), ("empty", "empty"), ("level", "levels")):
        counts = [int(parts.get(f"{part}_{place}", 0)) for place in ("count", "again")]
        yield from differs(f"columns ({names})", counts, [len(lists[names])] * 2)
    for name in named:
        if name in evidence.released:
            yield f"column {name!r} is in the release"
        if name not in evidence.original:
            yield f"column {name!r} is not in the original"
    for name in lists["empty"]:
        if (evidence.original[name] != "").any():
            yield f"column {name!r} has values"
    rare = evidence.fact("rare-values").get("dropped", [])
    gone = set(evidence.original.columns) - set(evidence.released.columns) - {"items"}
    yield from differs("columns that are gone", sorted(named), sorted(gone - set(rare)))
    options = {*evidence.options.get("identifiers", ()), *filter(None, [evidence.options.get("person")])}
    if evidence.request["kind"] != "joint" and not options <= set(lists["identifiers"]):
        yield f"identifiers {sorted(options)} are not all named"


def chosen_rows(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Rows that were asked for, and the records that they were drawn from."""
    yield from differs("rows", int(parts["rows"]), len(evidence.released))
    yield from differs("records", int(parts["records"]), evidence.condensed)


def where(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Every row fulfils the rule, which is a comparison of a number."""
    name, sign, bound = parts["rule"].split()
    values = evidence.numbers(evidence.released, name)
    fine = {">": values > float(bound), "<": values < float(bound)}[sign]
    yield from differs("rows that break the rule", 0, int((~fine).sum()))
    yield from differs("rule", parts["rule"], evidence.options.get("where"))


def spreadsheet(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Cells and names that begin as formulas do, in the file as it is."""
    texts = [
        name
        for name in map(str, evidence.written)
        if evidence.schema.get(name, {}).get("kind", "nominal") not in NUMBERS
    ]
    quoted = bool(evidence.options.get("spreadsheet_safe"))
    begin = r"^'[=+\-@\t\r]" if quoted else r"^[=+\-@\t\r]"
    cells = sum(
        int((evidence.written[name].str.contains(begin) & ~evidence.written[name].map(_is_number)).sum())
        for name in texts
    )
    names = sum(bool(re.match(begin, str(name))) for name in evidence.written)
    yield from differs("cells like formulas", int(parts["cells"]), cells)
    yield from differs("names like formulas", int(parts["names"]), names)


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?\d+(\.\d*)?", text) is not None


def dry_run(evidence: Evidence, _: Parts) -> Iterator[str]:
    """There was a seed, and the certificate is marked."""
    if "seed" not in evidence.options or evidence.certificate["randomness"] == "release":
        yield "a seed is stated, and none was given"


def unmeasured(evidence: Evidence, _: Parts) -> Iterator[str]:
    """There is no report."""
    if list(evidence.folder.glob("out/*/report*")):
        yield "there is a report"


# ------------------------------------------------------------------------------------------------- rules and weights


def rules(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Every rule holds in every released row, and in every original one unless the owner wrote it down."""
    named = names_in(parts["rules"])
    yield from differs("rules", int(parts["count"]), len(named))
    for rule in named:
        broken = _broken(evidence, evidence.released, rule)
        if broken:
            yield f"{broken} released rows break the rule {rule!r}"
        if not evidence.options.get("declared_rules") and _broken(evidence, evidence.original, rule):
            yield f"the original breaks the rule {rule!r}"


def _broken(evidence: Evidence, frame: pd.DataFrame, rule: str) -> int:
    """Rows that break a rule; a missing cell breaks none."""
    if " -> " in rule:
        left, right = rule.split(" -> ")
        pairs = frame[(frame[left] != "") & (frame[right] != "")][[left, right]].drop_duplicates()
        return int(pairs.duplicated(left).sum())
    match = re.fullmatch(r"(\w+) (<=|<|=) (\w+)(?: ([-+]) (\w+))?", rule)
    if match is None:
        raise ValueError(f"the recount knows no rule like {rule!r}")
    left, sign, right, plus, other = match.groups()
    gap = evidence.numbers(frame, right) - evidence.numbers(frame, left)
    if other is not None:
        gap = gap + (1 if plus == "+" else -1) * evidence.numbers(frame, other)
    there = ~np.isnan(gap)
    fine = {"<=": gap >= 0, "<": gap > 0, "=": np.abs(gap) < 1e-6}[sign]
    return int((there & ~fine).sum())


def rare_pairs(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The owner wrote down a rule by which a label decides something."""
    if not any(" -> " in rule for rule in evidence.options.get("declared_rules", ())):
        yield "no rule of the owner ties a label to another"


def months(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Dates of the named columns have no day."""
    named = names_in(parts["columns"])
    yield from differs("columns", int(parts["count"]), len(named))
    for name in named:
        cells = evidence.released[name][evidence.released[name] != ""]
        if not cells.str.fullmatch(r"\d{4}-\d\d(-01)?").all():
            yield f"column {name!r} has dates with a day"


def weights(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The sum of released weights is that of the original ones, which may be coded, up to a step."""
    step = float(parts["step"])
    apart = np.diff(np.unique(evidence.numbers(evidence.released, parts["column"])))
    yield from beyond("step", step, 0, 1.01 * float(apart.min()) if len(apart) else np.inf)
    stated, name = float(parts["total"]), parts["column"]
    total = float(np.nansum(evidence.numbers(evidence.released, name)))
    if abs(total - stated) > 1.01 * step:
        yield f"the released weights add up to {total:.6f}, and {stated} is stated"
    whole = float(np.nansum(evidence.numbers(evidence.original, name)))
    method = evidence.fact("tails-coded").get("method", "keep")
    yield from differs("coding spoken of", "coded" in parts, method != "keep")
    low, high = coded_sums(evidence, name) if method != "keep" else (whole, whole)
    if method == "smooth":
        high = max(high, 2 * whole)  # a tail may be drawn longer than it was
    yield from beyond("sum of weights", stated, low - 1.01 * step, high + 1.01 * step)


# --------------------------------------------------------------------------------------------------- rare categories


def _labels(evidence: Evidence) -> list[str]:
    return evidence.columns(LABELS)


def hidden(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """No released category is that of fewer than k persons; a label of ours stands for at least as many.

    How many hold a category of a stream, and which records took part in it, is known at each time to the stream alone.
    """
    k, stream = int(parts["k"]), evidence.request["kind"] == "stream"
    yield from differs("level", k, _stated_level(evidence, k))
    yield from differs("level of missing cells", int(parts["lacking"]), k)
    for name in _labels(evidence):
        frequencies, shown = evidence.frequencies(name), set(evidence.cells(evidence.released, name).dropna())
        for value in sorted(shown & set(frequencies.index)):
            if frequencies[value] < k:
                yield f"column {name!r} shows a category held by {frequencies[value]} persons"
        if not stream:
            yield from _pooled(evidence, name, shown)
            yield from _lost(evidence, name, shown)
    if stream:
        return
    dropped = evidence.fact("rare-values").get("dropped", [])
    texts = [name for name in dropped if not _is_numeric(evidence, name)]
    yield from differs("columns of categories", int(parts["columns"]), len(_labels(evidence)) + len(texts))
    for name in evidence.columns((*NUMBERS, *LABELS)):
        lacking = len(np.unique(evidence.persons[evidence.missing(evidence.original, name)]))
        if 0 < lacking < k and evidence.missing(evidence.released, name).any():
            yield f"column {name!r} has missing cells, which {lacking} persons have"


def _stated_level(evidence: Evidence, k: int) -> int:
    """The level that is stated; that of classes follows from a tolerance where no level is given."""
    if evidence.request["kind"] == "stream":
        return int(evidence.options["k"])
    return evidence.public_level if {"k", "level"} & set(evidence.options) else max(2, k)


def _is_numeric(evidence: Evidence, name: str) -> bool:
    return bool(evidence.original[name].replace("", None).dropna().map(_is_number).all())


def _pooled(evidence: Evidence, name: str, shown: set[Any]) -> Iterator[str]:
    """A label that the original lacks stands for rare categories held by k persons together."""
    frequencies = evidence.frequencies(name)
    rare = frequencies.index[frequencies < evidence.highest_level]
    persons = len(np.unique(evidence.persons[evidence.cells(evidence.original, name).isin(rare).to_numpy()]))
    if shown - set(frequencies.index) and persons < evidence.highest_level:
        yield f"column {name!r} has a label of ours, and rare categories are held by {persons} persons"


def _lost(evidence: Evidence, name: str, shown: set[Any]) -> Iterator[str]:
    """A frequent category is not lost, except with probability 1e-10."""
    shares = evidence.cells(evidence.original, name).value_counts(normalize=True).to_dict()
    for value, persons in evidence.frequencies(name).to_dict().items():
        share = shares[value]
        sure = share == 1 or len(evidence.released) * np.log1p(-share) < -23
        if sure and persons >= evidence.highest_level and value not in shown:
            yield f"column {name!r} lacks a category held by {persons} persons"


def shown(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The owner asked that rare categories stay."""
    yield from differs("level", int(parts["k"]), _stated_level(evidence, int(parts["k"])))
    yield from differs("what becomes of rare categories", evidence.options.get("rare"), "keep")


def rare_columns(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Columns that were dropped have no value held by as many persons as the highest level."""
    k = evidence.highest_level
    yield from differs("columns", sorted(names_in(parts["columns"])), sorted(evidence.fact("rare-values")["dropped"]))
    yield from differs("number of columns", int(parts["count"]), len(names_in(parts["columns"])))
    for name in names_in(parts["columns"]):
        if name in evidence.released:
            yield f"column {name!r} is in the release"
        held = pd.DataFrame({"value": evidence.original[name], "person": evidence.persons}).drop_duplicates()
        enough = held.groupby("value")["person"].size()
        if (enough[enough.index != ""] >= k).any():
            yield f"column {name!r} has a value held by {k} persons"


def equal_counts(evidence: Evidence, _: Parts) -> Iterator[str]:
    """Every category stands in the release as often as in the original, where each group keeps its counts.

    Columns with rare categories, or with missing cells of few persons, are left out, since these became others; how
    rows of a stream came about is the stream's own.
    """
    facts = {each["fact"] for each in evidence.certificate["facts"]}
    rare = evidence.fact("rare-values")
    if len(evidence.released) != len(evidence.original) or facts & {"rows-drawn", "maintained"}:
        return
    for name in _labels(evidence):
        before, after = (frame[name].value_counts().sort_index() for frame in (evidence.original, evidence.released))
        lacking = len(np.unique(evidence.persons[evidence.missing(evidence.original, name)]))
        few = {lacking, *evidence.frequencies(name)} - {0}
        if not before.equals(after) and ("k" not in rare or min(few) >= evidence.highest_level):
            yield f"column {name!r} has other counts than the original"


def weight_column(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The column is the one that was named."""
    yield from differs("weight", parts["column"], evidence.options.get("weight"))


def despite_policy(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The policy is the one that was named, and the owner let the release leave."""
    yield from differs("policy", parts["policy"], evidence.options.get("policy"))
    if not evidence.options.get("despite_policy"):
        yield "the owner did not ask for it"
