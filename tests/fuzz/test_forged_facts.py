"""Forged facts: each field of each fact of real releases made impossible, and what `verify` then says.

Whoever forges a certificate hashes it anew and draws the claims that follow from its facts, so that is done here too.
Whatever stands in it, `verify` finds that the release holds, that it does not, or refuses to read it.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.certificate import Certificate
from sfumato.core.documents import write_json
from sfumato.core.errors import BadInput, PrivacyRefusal
from sfumato.core.facts import draw_claims, fact_from_json, known_facts
from sfumato.publish.verify import verify_release
from tests.examples import in_full
from tests.fuzz.fuzzing import GOLDENS, bounded_time, golden_bytes

Document = dict[str, Any]
_KINDS = known_facts()
_PER_FIELD = 2  # forgeries of a field in make test; in make slow all
_NUMBERS: tuple[Any, ...] = (
    -1,
    0,
    1,
    2,
    1000,
    2**31,
    2**53 + 1,
    2**63,
    2**64,
    10**30,
    -(2**63),
    0.5,
    1e-320,
    1e308,
    -0.5,
)
_WRONG: tuple[Any, ...] = (None, True, "", "x", [], {}, [[]], ["x"], [None], [{"a": 1}], {"a": [1]}, *_NUMBERS)
_TEXTS: tuple[Any, ...] = (
    "other",
    "\u0000",
    "a\nb",
    "x" * 5000,
    "age",
    "a -> b",
    "age <= age",
    "1 = 1",
    "{}",
    "file",
    "intervals 0",
)


def _people() -> pa.Table:
    rng = np.random.default_rng(5)
    age = rng.integers(20, 80, 180)
    return pa.table(
        {
            "who": [f"p{row % 90}" for row in range(180)],
            "age": age,
            "later": age + rng.integers(0, 9, 180),
            "pay": rng.normal(3000, 400, 180).round(2),
            "town": rng.choice(["a", "b", "c"], 180).tolist(),
            "weight": rng.uniform(0.5, 3.0, 180).round(2),
            "note": rng.choice(["=1+1", "plain"], 180).tolist(),
        }
    )


def _more() -> Iterator[tuple[str, sf.Release]]:
    """Releases with the facts that no golden run states."""
    people = _people()
    alone = people.drop_columns(["who"])
    told: dict[str, Any] = {"report": False, "seed": 1}
    yield "persons", sf.sanitize(people, sf.Condensation(k=5, scores="normal"), person="who", **told)
    yield "linked", sf.sanitize(people, sf.Condensation(k=5), person="who", keep_persons=True, **told)
    yield "weights", sf.sanitize(people, sf.Chain(k=5, leaf=15), person="who", weight="weight", rows=90, **told)
    unclassed = people.set_column(4, "town", pa.array([None] * 30 + people.column("town").to_pylist()[30:]))
    with pytest.warns(UserWarning, match="30 of 180 rows have no class"):
        classwise = sf.sanitize(unclassed.drop_columns(["who"]), sf.ClasswiseCondensation(k=5), target="town", **told)
    yield "unlabelled", classwise
    towns = sf.Field("town", sf.Kind.NOMINAL, domain=sf.Domain(declared=True, categories=("a", "b", "c")))
    ages = sf.Field("age", sf.Kind.INTEGER, domain=sf.Domain(declared=True, low=0, high=120))
    declared = sf.Schema((ages, towns))
    yield "private", sf.sanitize(alone.select(["age", "town"]), method="private", epsilon=4.0, schema=declared, **told)
    yield "where", sf.sanitize(alone, sf.Chain(k=5, leaf=15), where="pay > 2900", rows=60, **told)
    yield "noise", sf.sanitize(alone, method="noise", size=0.2, enhance=0.2, pass_categories=True, **told)
    yield (
        "moved",
        sf.sanitize(alone.select(["age", "pay"]), sf.Translation(key=sf.Key.from_toml(_KEY)), target="pay", **told),
    )


_KEY = 'format = 1\nstep = [{op = "add", column = "age", term = 3}, {op = "add", column = "pay", term = 5}]\n'
_EXTRA: tuple[Document, ...] = (
    {"fact": "partitioned", "cells": 1, "smallest": 60},
    {"fact": "despite-policy", "policy": "research", "outcome": "inconclusive"},
    {"fact": "keys-matched", "common": 3, "keys": [3, 4], "missing": [0, 1], "repeated": [0, 2]},
    {"fact": "part-judged", "owner": "bank", "outcome": "not-measured"},
    {"fact": "person-rows-bounded", "most": 1},
    {"fact": "rows-kept", "rows": 3, "outside": 1, "forgotten": False},
    {"fact": "persons-linked", "column": "who", "persons": 3, "most": 1, "constant": ["age"]},
)
"""Facts that are put beside others, whether or not they may stand there."""


@cache
def _releases(folder: Path) -> Mapping[str, Path]:
    """Folders of releases: those of golden runs, and some more."""
    found = {}
    for golden in sorted(GOLDENS.iterdir()):
        place = folder / golden.name
        place.mkdir()
        for file in golden.glob("release-*"):
            (place / file.name.removeprefix("release-")).write_bytes(golden_bytes(file))
        found[golden.name] = place
    for name, release in _more():
        found[name] = release.save(folder / f"more-{name}") / "release"
    return {name: place for name, place in found.items() if (place / "certificate.json").exists()}


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    return _releases(tmp_path_factory.mktemp("forged"))


def _forgeries(value: Any) -> Iterator[Any]:
    """Values in place of one that is right."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1, -value, 2 * value, value / 3, *_NUMBERS)
    elif isinstance(value, str):
        yield from (*_TEXTS, value + " ", value[:-1], value.upper(), 2 * value)
    elif isinstance(value, list):
        yield from (
            [],
            value + value,
            value[:-1],
            value[1:],
            value[::-1],
            [*value, "zz"],
            [*value, 3],
            [value],
            300 * value,
        )
        for inside in value[:2]:
            yield from ([each, *value[1:]] for each in _forgeries(inside))
    yield from _WRONG


def _forged_facts(facts: list[Document], place: int) -> Iterator[list[Document]]:
    """The facts of a release with one of them forged."""
    fact, rest = facts[place], [*facts[:place], *facts[place + 1 :]]
    yield rest
    yield [*facts, fact]
    yield [*rest, {**fact, "more": 1}]
    yield [*rest, {"fact": [fact]}]
    known = _KINDS[fact["fact"]]
    for name in (each.name for each in dataclasses.fields(known)):
        yield [*rest, {key: value for key, value in fact.items() if key != name}]
        forgeries = list(_forgeries(fact.get(name)))
        if not in_full():
            forgeries = random.Random(f"{known.fact} {name}").sample(forgeries, min(_PER_FIELD, len(forgeries)))
        for value in forgeries:
            yield [*facts[:place], {**fact, name: value}, *facts[place + 1 :]]


def _written(certificate: Certificate, document: Document, facts: list[Document]) -> Iterator[str]:
    """Certificates with forged facts, and the claims and levels that follow from them if any do."""
    try:
        read = tuple(map(fact_from_json, facts))
        claims, refused = draw_claims(read)
        forged = dataclasses.replace(certificate, facts=read, claims=claims, refused=refused)
        yield write_json(forged.to_document(), "pretty")
    except (BadInput, PrivacyRefusal):
        pass
    yield json.dumps({**document, "facts": facts}, indent=2, ensure_ascii=False) + "\n"


def _review(folder: Path, text: str) -> str:
    """What `verify` comes to."""
    file = folder / "certificate.json"
    before = file.read_bytes()
    file.write_text(text, encoding="utf-8")
    try:
        found = verify_release(folder)
    except BadInput:
        return "refused"
    finally:
        file.write_bytes(before)
    assert all(check.detail.isprintable() for check in found)
    return "holds" if all(check.holds for check in found if check.name != "made for release") else "does not hold"


def _cases(releases: Mapping[str, Path]) -> Iterator[tuple[str, int, list[Document]]]:
    """Releases with the place of the fact to forge: each kind of fact once, in make slow in three releases."""
    seen, most = Counter[str](), 3 if in_full() else 1
    for name, folder in releases.items():
        facts = json.loads((folder / "certificate.json").read_text("utf-8"))["facts"]
        for extra in ({}, *_EXTRA):
            beside = [*facts, extra] if extra else facts
            for place, fact in enumerate(beside):
                if (extra and place < len(facts)) or seen[fact["fact"]] == most:
                    continue
                seen[fact["fact"]] += 1
                yield name, place, beside


def test_every_kind_of_fact_is_forged(releases: Mapping[str, Path]) -> None:
    forged = {facts[place]["fact"] for _, place, facts in _cases(releases)}
    assert forged == set(_KINDS)


def test_releases_that_are_forged_hold_before(releases: Mapping[str, Path]) -> None:
    for name, folder in releases.items():
        failing = [check for check in verify_release(folder) if not check.holds]
        assert [check.name for check in failing] == ["made for release"], (name, failing)


def test_forged_facts_are_found_or_refused_and_never_end_a_review(releases: Mapping[str, Path]) -> None:
    outcomes = dict.fromkeys(("holds", "does not hold", "refused"), 0)
    for name, place, beside in _cases(releases):
        folder = releases[name]
        text = (folder / "certificate.json").read_text("utf-8")
        certificate, document = Certificate.from_json(text), json.loads(text)
        for facts in _forged_facts(beside, place):
            with bounded_time():
                try:
                    for forged in _written(certificate, document, facts):
                        outcomes[_review(folder, forged)] += 1
                except Exception as error:
                    raise AssertionError(f"{name}: {beside[place]['fact']} forged as {facts!r:.2000}") from error
    assert outcomes["holds"] < outcomes["does not hold"], outcomes
