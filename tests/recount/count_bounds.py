"""Recounts of bounds: what odds can change by under a noise specification, noise on components, or an operator."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd

from tests.recount.evidence import LABELS, NUMBERS, Evidence, names_in
from tests.recount.patterns import Parts, beyond, differs

__all__ = [
    "as_they_are",
    "changed_entries",
    "component_count",
    "component_noise",
    "flipped",
    "item_count",
    "no_rule",
    "no_rule_after",
    "observed",
    "odds_exponent",
    "person_transactions",
    "posterior",
    "randomized",
    "sizes",
    "unbounded",
    "whole_transactions",
]


def _rounded_up(what: str, stated: float, true: float, digits: int = 4) -> Iterator[str]:
    """A complaint unless a number is the true one, rounded up to the given number of digits."""
    if not true * (1 - 1e-9) <= stated <= true * (1 + 10.0 ** (1 - digits)) + 1e-12:
        yield f"{what}: {stated} is stated, {true:.6g} follows"


# -------------------------------------------------------------------------------------------------- randomized columns


def _epsilon(spec: dict[str, Any]) -> float:
    """The most by which the logarithm of odds can change under a law, from its specification alone."""
    law, domain = spec["law"], spec["domain"]
    if law["name"] == "response" and "epsilon" in law:
        return float(law["epsilon"])
    if law["name"] == "laplace":
        return float(Fraction(str(domain["high"])) - Fraction(str(domain["low"]))) / float(law["scale"])
    if law["name"] == "keep-or-replace":
        many = domain["high"] - domain["low"] + 1 if domain["kind"] == "integers" else len(domain["values"])
        return math.log(law["keep"] * (many - 1) / (1 - law["keep"]))  # else one of all others
    raise ValueError(f"the recount knows no law {law['name']!r}")


def _specs(evidence: Evidence) -> dict[str, dict[str, Any]]:
    return {
        fact["column"]: json.loads(fact["spec"])
        for fact in evidence.certificate["facts"]
        if fact["fact"] == "randomized"
    }


def randomized(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Factor, epsilon and probabilities of one column, or of all; released values lie in the domain."""
    specs = _specs(evidence)
    if "column" in parts:
        chosen = [specs[parts["column"]]]
        yield from _in_domain(evidence, parts["column"], chosen[0]["domain"])
        yield from differs("digest", parts["digest"], _digest(evidence, parts["column"]))
    else:
        chosen = list(specs.values())
        yield from differs("columns", int(parts["columns"]), len(chosen))
        gaps = any((evidence.original[name] == "").any() for name in specs)
        yield from differs("missing cells stated", "gaps" in parts, gaps)
    epsilon = sum(map(_epsilon, chosen))
    yield from _rounded_up("factor", float(parts["factor"]), math.exp(epsilon), 3)
    yield from _rounded_up("epsilon", float(parts["epsilon"]), epsilon, 3)
    gamma = math.exp(epsilon)
    for part, prior in (("one", 0.01), ("ten", 0.1)):
        upward = 100 * gamma * prior / (1 - prior + gamma * prior)
        if not 0 <= float(parts[part]) - upward <= 0.1 + 1e-9:
            yield f"{parts[part]} % is stated, {upward:.3f} % follows"
    downward = 100 * 0.1 / (0.1 + 0.9 * gamma)
    if not 0 <= downward - float(parts["least"]) <= 0.1 * downward:
        yield f"at least {parts['least']} % is stated, {downward:.4f} % follows"


def _digest(evidence: Evidence, column: str) -> str:
    """Digest of a specification, as the fact has it: the text itself is digested in the package's own encoding."""
    facts = [
        fact for fact in evidence.certificate["facts"] if fact["fact"] == "randomized" and fact["column"] == column
    ]
    return str(facts[0]["digest"])[:16]


def _in_domain(evidence: Evidence, name: str, domain: dict[str, Any]) -> Iterator[str]:
    """Released cells of a column lie in the declared or observed domain, unless the law goes beyond it."""
    cells = evidence.released[name][evidence.released[name] != ""]
    if domain["kind"] == "labels":
        outside = int((~cells.isin([str(value) for value in domain["values"]])).sum())
        if outside:
            yield f"column {name!r}: {outside} cells are no labels of the domain"


def observed(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Domains that were read off the data: their ends, or their labels, are those of the original."""
    names, specs = names_in(parts["columns"]), _specs(evidence)
    yield from differs("columns", int(parts["count"]), len(names))
    for name in names:
        domain = specs[name]["domain"]
        if domain["kind"] == "labels":
            labels = sorted(set(evidence.original[name]) - {""})
            yield from differs(f"labels of {name!r}", sorted(map(str, domain["values"])), labels)
            continue
        cells = evidence.numbers(evidence.original, name)
        yield from differs(f"ends of {name!r}", (float(domain["low"]), float(domain["high"])),
                           (float(np.nanmin(cells)), float(np.nanmax(cells))))  # fmt: skip


# -------------------------------------------------------------------------------------------------- noise on components


def component_noise(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The scale is that of the fact, or what was asked for: a record's guarantee spreads it over all components."""
    fact = evidence.fact("component-noise")
    scale = float(parts["scale"])
    yield from differs("grid", parts["grid"], f"{fact['grid']:g}")
    yield from differs("scale", scale, float(f"{fact['scale']:g}"))
    wanted = evidence.options.get("b", 0.2) * (
        fact["components"] if evidence.options.get("guarantee") == "record" else 1
    )
    if abs(scale - wanted) > 1e-5 * wanted:
        yield f"a scale of {scale} is stated, {wanted} was asked for"


def posterior(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """From rho1 to rho2 by the factor e^(components / scale), upward and downward."""
    components, scale, rho1 = int(parts["components"]), float(parts["scale"]), float(parts["rho"])
    fact = evidence.fact("component-noise")
    yield from differs("components", components, int(parts.get("count", components)))
    if abs(scale - fact["scale"]) > 1e-4 * scale:
        yield f"a scale of {scale} is stated, the fact has {fact['scale']}"
    if components not in (1, _components(evidence)):
        yield f"{components} components are stated, the columns have {_components(evidence)}"
    gamma = math.exp(min(700.0, components / scale))
    rho2 = gamma * rho1 / (1 - rho1 + gamma * rho1)
    if not -1e-9 <= float(parts["after"]) - rho2 <= 1e-4:
        yield f"{parts['after']} is stated, {rho2:.6f} follows"
    if "from_high" in parts:
        yield from differs("opposite", float(parts["from_high"]), 1 - rho1)
        if not -1e-9 <= 1 - rho2 - float(parts["to_low"]) <= 1e-4 + 1e-9:
            yield f"{parts['to_low']} is stated, {1 - rho2:.6f} follows"


def _components(evidence: Evidence) -> int:
    """Coordinates of a record that can vary: numbers, all categories of a column but one, and columns with gaps."""
    total = len(evidence.columns(NUMBERS)) + sum((evidence.written[name] == "").any() for name in evidence.shared)
    for name in evidence.columns(LABELS):
        categories = evidence.written[name][evidence.written[name] != ""].nunique()
        total += 1 if evidence.schema[name]["kind"] == "ordinal" else max(0, categories - 1)
    return int(total)


def component_count(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """All components get noise."""
    yield from differs("components", int(parts["components"]), _components(evidence))


# -------------------------------------------------------------------------------------------------------------
# transactions


def _transactions(frame: pd.DataFrame, column: str = "items") -> list[frozenset[str]]:
    return [frozenset(filter(None, cell.split(";"))) for cell in frame[column]]


def _widths(evidence: Evidence) -> int:
    declared = evidence.options.get("items")
    if isinstance(declared, list):
        return len(declared)
    return len(frozenset().union(*_transactions(evidence.original)))


def _most(evidence: Evidence) -> int:
    return int(np.bincount(evidence.persons).max())


def flipped(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The factor of one item, or of all transactions of a person; and items stay and come in as often as stated."""
    keep, insert = float(parts["keep"]), float(parts["insert"])
    epsilon = max(math.log(keep / insert), math.log((1 - insert) / (1 - keep)))
    if "most" in parts:
        yield from differs("most transactions of a person", int(parts["most"]), _most(evidence))
        epsilon *= int(parts["most"])
    yield from _rounded_up("factor", float(parts["factor"]), math.exp(min(700.0, epsilon)))
    true, entries = sum(map(len, _transactions(evidence.original))), sum(map(len, _transactions(evidence.released)))
    absent = _widths(evidence) * len(evidence.original) - true
    expected = true * keep + absent * insert
    deviation = math.sqrt(true * keep * (1 - keep) + absent * insert * (1 - insert))
    if len(evidence.original) == len(evidence.released) and abs(entries - expected) > 6.5 * deviation + 1:
        yield f"{entries} entries are released, {expected:.0f} are expected"


def whole_transactions(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The factor is e to the epsilon of the fact, and no less than what it was asked to be."""
    fact = evidence.fact("transactions-randomized")
    times = int(parts.get("most", 1))
    if "most" in parts:
        yield from differs("most transactions of a person", times, _most(evidence))
    yield from _rounded_up("factor", float(parts["factor"]), math.exp(times * fact["epsilon"]))
    if fact["operator"] == "select-a-size" and fact["epsilon"] > math.log(fact["gamma"]) + 1e-9:
        yield "the factor is more than what was asked for"


def odds_exponent(evidence: Evidence, parts: Parts) -> Iterator[str]:
    epsilon = evidence.fact("transactions-randomized")["epsilon"]
    if abs(float(parts["exponent"]) - epsilon) > 0.051:
        yield f"an exponent of {parts['exponent']} is stated, the fact has {epsilon}"


def person_transactions(evidence: Evidence, parts: Parts) -> Iterator[str]:
    yield from differs("most transactions of a person", int(parts["most"]), _most(evidence))


def item_count(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The number of items is the declared one, or that of the transactions."""
    yield from differs("items", int(parts["items"]), _widths(evidence))


def sizes(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """True sizes beside transactions are those of the original; else transactions are as large as before."""
    before = sorted(map(len, _transactions(evidence.original)))
    after = (
        sorted(evidence.released["size"].astype(int))
        if "beside" in parts
        else sorted(map(len, _transactions(evidence.released)))
    )
    if before != after:
        yield "sizes of transactions are not those of the original"


def _rule(text: str) -> tuple[frozenset[str], frozenset[str]]:
    left, _, right = text.partition(" -> ")
    return frozenset(left.split(";")), frozenset(filter(None, right.split(";")))


def _supports(evidence: Evidence, items: frozenset[str]) -> tuple[int, int]:
    """Transactions that certainly and possibly hold all the items."""
    sure = _transactions(evidence.released)
    maybe = (
        _transactions(evidence.released, "unknown")
        if "unknown" in evidence.released
        else [frozenset[str]()] * len(sure)
    )
    whole = sum(items <= transaction for transaction in sure)
    return whole, sum(items <= transaction | unknown for transaction, unknown in zip(sure, maybe, strict=True))


def no_rule(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """No named rule holds, counted in the released transactions; of blocked ones none holds for all that is unknown."""
    yield from differs("rules", int(parts["rules"]), len(evidence.options["rules"]))
    yield from differs("support", float(parts["support"]), evidence.options["min_support"])
    yield from differs("confidence", float(parts["confidence"]), evidence.options["min_confidence"])
    below = 1 - float(parts.get("margin", 0)) / 100
    for place, rule in enumerate(evidence.options["rules"]):
        left, right = _rule(rule)
        both, _ = _supports(evidence, left | right)
        _, most_left = _supports(evidence, left)
        support = both / len(evidence.released)
        confidence = both / most_left if most_left else 0.0
        if (
            support >= float(parts["support"]) * below + 1e-12
            and confidence >= float(parts["confidence"]) * below + 1e-12
        ):
            yield f"rule {place} holds: support {support:.4f}, confidence {confidence:.4f}"


def changed_entries(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Entries that went and came: each item's count before and after bounds them, and their balance is exact."""
    before, after = (sum(map(len, _transactions(frame))) for frame in (evidence.original, evidence.released))
    yield from differs("entries removed less those added", int(parts["removed"]) - int(parts["added"]), before - after)


def as_they_are(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Transactions, and the entries in which they differ from the original."""
    yield from differs("transactions", int(parts["transactions"]), len(evidence.released))
    before = sum(map(len, _transactions(evidence.original)))
    if "unknown" in evidence.released:
        unknown = sum(map(len, _transactions(evidence.released, "unknown")))
        yield from differs("unknown entries", int(parts["entries"]), unknown)
    else:
        after = sum(map(len, _transactions(evidence.released)))
        yield from beyond("changed entries", int(parts["entries"]), abs(before - after), before + after)


def unbounded(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """A law without bound: one of the columns has an infinite factor in its fact."""
    facts = [fact for fact in evidence.certificate["facts"] if fact["fact"] == "randomized"]
    chosen = [fact for fact in facts if fact["column"] == parts.get("column", fact["column"])]
    if all(fact["gamma"] is not None and fact["epsilon"] < 700 for fact in chosen):
        yield "no bound is stated, and every column has one"


def no_rule_after(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """No named rule holds, and entries went and came as stated."""
    yield from no_rule(evidence, parts)
    yield from changed_entries(evidence, parts)
