"""All that a certificate says follows from its facts, or verify refuses it."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import BadInput, OptionError
from sfumato.methods.perturb import AdditiveNoise, MultiplicativeNoise
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.methods.protocol import Mechanism
from sfumato.methods.randomize import Randomization
from sfumato.publish.verify import verify_release

MECHANISMS: dict[str, Callable[[], Mechanism]] = {
    "condense": lambda: sf.Condensation(k=5, effort="fast"),
    "condense-paper": lambda: sf.Condensation(k=5, grouping="paper"),
    "level-1": lambda: sf.Condensation(k=1, allow_level_1=True, effort="fast"),
    "classwise": lambda: sf.ClasswiseCondensation(k=5, effort="fast"),
    "chain": lambda: sf.Chain(k=5, leaf=8, order=("pay",)),
    "laplace-pca": lambda: LaplacePCA(k=8, guarantee="record", rho1=0.01),
    "noise": lambda: AdditiveNoise(size=0.5, enhance=0.1, pass_categories=True),
    "multiplicative": lambda: MultiplicativeNoise(law="uniform", pass_categories=True),
    "rotate": lambda: sf.Rotation(pass_categories=True, enhance=0.2),
    "hybrid": lambda: sf.Hybrid(pass_categories=True, shifts={"age": (-5, 5)}),
    "randomize": lambda: Randomization(epsilon=2.0, allow_observed=True),
    "swap": lambda: sf.Swapping(window=10.0, pass_categories=True),
    "swap-leaves": lambda: sf.Swapping(within="leaves", leaf=10, columns=("sex", "pay")),
    "subsample": lambda: sf.Subsampling(share=0.5),
    "aggregate": lambda: sf.Aggregation(widths={"age": 10, "pay": 500}),
    "block": lambda: sf.Blocking(columns=("age", "sex"), k=3),
    "downgrade": lambda: sf.Downgrading("sex", leaf=10, limit=0.01),
}


@pytest.mark.parametrize("name", ["level-1", "classwise", "noise", "rotate", "randomize"])
@pytest.mark.parametrize("spoilt", [0, 1, np.True_], ids=["0", "1", "numpy"])
def test_a_yes_or_no_that_is_neither_makes_no_release(name: str, spoilt: object) -> None:
    mechanism = MECHANISMS[name]()
    choice = next(field.name for field in dataclasses.fields(mechanism) if field.type == "bool")
    with pytest.raises(OptionError, match=f"{choice} is of type .*; give True or False"):
        sf.sanitize(table(), dataclasses.replace(mechanism, **{choice: spoilt}), report=False)


@cache
def table() -> pa.Table:
    rng = np.random.default_rng(11)
    age = rng.integers(20, 80, 60)
    return pa.table({"age": age, "pay": age * 40.5 + rng.integers(0, 300, 60), "sex": rng.choice(["f", "m"], 60)})


@cache
def release_of(name: str) -> sf.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sf.sanitize(table(), MECHANISMS[name](), target="sex", report=False)


def saved(name: str, folder: Path) -> Path:
    return release_of(name).save(folder / name, sign=False) / "release"


def forge(folder: Path, *path: Any, to: Any) -> None:
    """Change one entry of a certificate and write it as all certificates are written."""
    file = folder / "certificate.json"
    document = inside = json.loads(file.read_text(encoding="utf-8"))
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = to
    for key in ("parameters", "files"):
        document[key] = dict(sorted(document[key].items()))
    file.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def failing(folder: Path) -> list[str]:
    return [check.name for check in verify_release(folder) if not check.holds]


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_every_mechanism_certifies_follows_from_its_facts(name: str, tmp_path: Path) -> None:
    folder = saved(name, tmp_path)
    assert failing(folder) == []
    assert [check.name for check in verify_release(folder) if not check.checked] == ["signature"]


@pytest.mark.parametrize(
    ("path", "value", "check"),
    [
        (("levels", "smallest_group"), 999, "certificate"),
        (("levels", "groups"), 1, "certificate"),
        (("parameters", "k"), 1000, "method follows from facts"),
        (("parameters", "k"), True, "method follows from facts"),
        (("parameters", "k"), 5.0, "method follows from facts"),
        (("parameters", "k"), "5", "method follows from facts"),
        (("parameters", "k"), None, "method follows from facts"),
        (("parameters", "grouping"), "mdav", "method follows from facts"),
        (("parameters", "grouping"), "paper", "method follows from facts"),
        (("parameters", "effort"), "heroic", "method follows from facts"),
        (("parameters", "allow_level_1"), 0, "method follows from facts"),
        (("parameters", "response_weight"), [0.5], "method follows from facts"),
        (("parameters", "response_weight"), "heavy", "method follows from facts"),
        (("parameters", "note"), "The table is anonymous", "method follows from facts"),
        (("parameters",), {}, "method follows from facts"),
        (("rows_in",), 10, "privacy levels met"),
        (("rows_in",), 61, "privacy levels met"),
        (("method",), "condense-paper", "method follows from facts"),
        (("method",), "noise", "method follows from facts"),
        (("method",), "classwise", "method follows from facts"),
        (("method",), "stream", "method follows from facts"),
        (("method",), "blessing", "method follows from facts"),
        (("note",), "The table is anonymous", "certificate"),
        (("randomness",), "dry-run", "claims follow from facts"),
    ],
)
def test_an_entry_that_does_not_follow_from_the_facts_is_refused(
    path: tuple[str, ...], value: Any, check: str, tmp_path: Path
) -> None:
    folder = saved("condense", tmp_path)
    forge(folder, *path, to=value)
    assert check in failing(folder)


def test_a_release_of_another_format_is_refused_in_one_sentence(tmp_path: Path) -> None:
    folder = saved("condense", tmp_path)
    for other in (1, 3):
        forge(folder, "format", to=other)
        with pytest.raises(BadInput, match=r"^the certificate is not of format 2; use the version that wrote it$"):
            verify_release(folder)


def test_a_second_list_of_claims_is_refused(tmp_path: Path) -> None:
    folder = saved("condense", tmp_path)
    file = folder / "certificate.json"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('  "claims": [', '  "claims": [],\n  "claims": [', 1), encoding="utf-8")
    assert failing(folder) == ["certificate"]


@pytest.mark.parametrize(
    ("name", "key", "values"),
    [
        ("level-1", "allow_level_1", (False,)),
        ("classwise", "k", (50, 2.5)),
        ("classwise", "grouping", ("mdav", "none")),
        ("chain", "k", (6, 1)),  # with a lower one all records may have asked for 5
        ("chain", "leaf", (7, 9, 0)),
        ("chain", "order", (["sex"], ["pay", "pay"], "pay")),
        ("laplace-pca", "k", (9, 1)),
        ("laplace-pca", "groups", (3,)),
        ("laplace-pca", "guarantee", ("component",)),
        ("laplace-pca", "rho1", (0.5, None)),
        ("laplace-pca", "b", (0.3, 100.0)),
        ("noise", "kind", ("multiplicative",)),
        ("noise", "law", ("uniform", "laplace")),
        ("noise", "size", (1.5, 50)),
        ("noise", "enhance", (0.2, 0.0, 1.0)),
        ("noise", "pass_categories", (False, 1)),
        ("noise", "correlated", (True,)),
        ("multiplicative", "size", (0.9,)),
        ("rotate", "pass_categories", (False,)),
        ("rotate", "pairs", ("all",)),
        ("hybrid", "shifts", ([["age", 5, -5, 0]], "age", [[]])),
        ("randomize", "epsilon", (1.0, None, 1000.0)),
        ("randomize", "allow_observed", (False,)),
        ("randomize", "specs", ([["age", "{}"]], [["nobody", "x"]])),
        ("swap", "window", (5.0, 0.0, 200.0)),
        ("swap", "within", ("leaves", "groups")),
        ("swap", "columns", (["age"], ["age", "age"])),
        ("swap-leaves", "leaf", (31, 1)),
        ("swap-leaves", "columns", (["sex"], [])),
        ("subsample", "share", (0.4, 1.0, 0)),
        ("aggregate", "widths", ([["age", 5.0]], [["sex", 10.0]], [["age", -1.0]])),
        ("aggregate", "coarsened", ([["pay", 1]], [["sex", 1]])),
        ("block", "k", (50, 1)),
        ("block", "columns", (["age"], ["sex", "age"])),
        ("downgrade", "private", ("age", "")),
        ("downgrade", "limit", (0.2, -1.0)),
    ],
)
def test_a_parameter_that_the_facts_contradict_is_refused(
    name: str, key: str, values: tuple[Any, ...], tmp_path: Path
) -> None:
    folder = saved(name, tmp_path)
    for value in values:
        forge(folder, "parameters", key, to=value)
        assert failing(folder) == ["method follows from facts"], value


@pytest.mark.parametrize(
    ("name", "fact", "key", "value"),
    [
        ("condense", "columns-dropped", "identifiers", ["age"]),
        ("condense", "columns-dropped", "levels", ["pay"]),
        ("condense", "counts-kept", "category_columns", 4),
        ("classwise", "class-pure", "column", "nobody"),
        ("chain", "chain-synthesis", "columns", ["pay", "sex", "nobody"]),
        ("rotate", "transformed", "columns", ["age", "nobody"]),
        ("randomize", "randomized", "column", "nobody"),
        ("noise", "noised", "columns", 4),
        ("noise", "passed-through", "missing_columns", 4),
        ("swap", "swapped", "columns", ["age", "nobody"]),
        ("subsample", "unchanged", "columns", ["age", "nobody"]),
        ("block", "identical-rows", "columns", ["age", "nobody"]),
        ("downgrade", "downgraded", "private", "nobody"),
    ],
)
def test_facts_about_columns_that_the_table_does_not_have_are_refused(
    name: str, fact: str, key: str, value: Any, tmp_path: Path
) -> None:
    folder = saved(name, tmp_path)
    facts = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))["facts"]
    place = next(place for place, each in enumerate(facts) if each["fact"] == fact)
    forge(folder, "facts", place, key, to=value)
    found = failing(folder)
    seen = {"columns in facts", "column counts"} & set(found)
    assert seen or found == ["claims follow from facts"], "where facts contradict each other"


@pytest.mark.parametrize("name", ["condense", "laplace-pca"])
def test_facts_that_leave_out_what_comes_out_as_it_is_are_refused(name: str, tmp_path: Path) -> None:
    folder = saved(name, tmp_path)
    facts = json.loads((folder / "certificate.json").read_text(encoding="utf-8"))["facts"]
    forge(folder, "facts", [each["fact"] for each in facts].index("grouped"), "alike", to=None)
    assert failing(folder) == ["certificate"]


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_method_can_be_taken_for_another(name: str, tmp_path: Path) -> None:
    folder = saved(name, tmp_path)
    own = release_of(name).certificate.method
    for other in {release_of(each).certificate.method for each in MECHANISMS} - {own} | {"stream", "joint-laplace-pca"}:
        forge(folder, "method", to=other)
        assert failing(folder) == ["method follows from facts"], other


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_missing_cells_of_a_declared_column_that_came_without_text_stay_inside_its_domain(
    tmp_path: Path, form: str
) -> None:
    age = [None if place % 7 == 0 else 20 + place for place in range(60)]
    table = pa.table({"age": pa.array(age), "pay": np.arange(60) * 1.5})
    domain = sf.Domain(declared=True, low=0, high=120)
    schema = sf.Schema((sf.Field("age", sf.Kind.INTEGER, domain=domain), sf.Field("pay", sf.Kind.CONTINUOUS)))
    release = sf.sanitize(table, sf.Condensation(k=5), schema=schema, report=False).save(tmp_path / "out", form=form)
    assert all(check.holds for check in verify_release(release / "release"))
