"""What every mechanism promises, one body for all of them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.distributions.domains import Integers
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.facts import draw_claims, fact_from_json, fact_to_json
from sfumato.core.records import Records
from sfumato.methods.catalogue import make_mechanism
from sfumato.methods.chain import Chain
from sfumato.methods.condense import Condensation
from sfumato.methods.condense.classwise import ClasswiseCondensation
from sfumato.methods.geometry import Hybrid, Rotation, Scaling, Translation
from sfumato.methods.geometry.key import Add, Key, Mult
from sfumato.methods.modify import Aggregation, Blocking
from sfumato.methods.modify.swap import Downgrading, Subsampling, Swapping
from sfumato.methods.perturb import AdditiveNoise, MultiplicativeNoise
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.methods.private import PrivateChain
from sfumato.methods.protocol import Mechanism
from sfumato.methods.randomize import Randomization
from sfumato.registry import method_names
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Domain, Schema

MECHANISMS: list[Mechanism] = [
    Condensation(k=5),
    Condensation(k=4, effort="fast"),
    Condensation(k=4, grouping="mdav"),
    Condensation(k=3, grouping="paper"),
    Condensation(k=4, grouping="modified", response_weight=0.5),
    Condensation(k=4, scores="normal"),
    Condensation(k=4, grouping="holistic"),
    ClasswiseCondensation(k=4),
    ClasswiseCondensation(tolerance=0.2, grouping="compact"),
    Chain(k=4, leaf=8),
    Chain(k=5, leaf=5, order=("town", "pay")),
    PrivateChain(epsilon=1.0),
    Translation(pass_categories=True),
    Scaling(factors={"pay": (0.5, 0.9)}, pass_categories=True),
    Rotation(units={"pay": 1000}, pass_categories=True),
    Rotation(enhance=0.1, enhance_laws=(("pay", "uniform"),), pass_categories=True),
    Hybrid(key=Key((Add("age", 5), Mult("pay", 2))), pass_categories=True),
    AdditiveNoise(size=0.5, pass_categories=True),
    AdditiveNoise(law="laplace", enhance=0.1, enhance_laws=(("pay", "uniform"),), pass_categories=True),
    AdditiveNoise(correlated=True, pass_categories=True),
    MultiplicativeNoise(law="uniform", size=0.2, pass_categories=True),
    LaplacePCA(k=20),
    LaplacePCA(groups=2, b=0.5, guarantee="record", response_weight=0.5),
    LaplacePCA(k=10, rho1=0.01, rho2=0.5, grouping="holistic"),
    Swapping(window=10, pass_categories=True),
    Swapping(within="leaves", leaf=10),
    Swapping(within="leaves", leaf=20, columns=("town", "age")),
    Subsampling(share=0.25),
    Aggregation(widths={"pay": 500}, coarsened=(("age", 1),)),
    Blocking(columns=("town", "age"), k=4),
    Downgrading("class", limit=0.2, leaf=10),
    Downgrading("town", hidden=0.5, leaf=10),
    Randomization(epsilon=2.0, allow_observed=True, pass_missing=True),
    Randomization(
        specs={"age": NoiseSpec(Integers(0, 99), {"name": "uniform", "reach": 9})},
        epsilon=1.0,
        allow_observed=True,
        pass_missing=True,
    ),
]


def records(gaps: bool = False, declared: bool = False) -> Records:
    rng = np.random.default_rng(1)
    age = rng.integers(20, 60, 80).tolist()
    table = pa.table(
        {
            "age": [None, *age[1:]],
            "pay": rng.normal(3000, 500, 80).round(2),
            "town": rng.choice(["a", "b", "c"], 80),
            "class": rng.choice(["yes", "no"], 80, p=[0.3, 0.7]),
        }
    )
    schema = Schema.infer(table, target="class")
    if not declared:
        return Codec.fit(table, schema, gaps=gaps).encode(table)
    domains = {
        "age": Domain(declared=True, low=18, high=70),
        "pay": Domain(declared=True, low=0, high=9_000, step=0.01),
        "town": Domain(declared=True, categories=("a", "b", "c", "d")),
        "class": Domain(declared=True, categories=("no", "yes")),
    }
    schema = Schema(tuple(dataclasses.replace(field, domain=domains[field.name]) for field in schema))
    return Codec.declared(schema, {name: table.schema.field(name).type for name in table.column_names}).encode(table)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
class TestMechanism:
    def test_it_is_a_frozen_hashable_mechanism_that_can_be_varied(self, mechanism: Mechanism) -> None:
        assert isinstance(mechanism, Mechanism)
        assert hash(mechanism) == hash(dataclasses.replace(mechanism))
        assert mechanism.method in method_names()
        assert make_mechanism(mechanism.method, dataclasses.asdict(mechanism)) == mechanism

    def test_it_is_pure(self, mechanism: Mechanism) -> None:
        given = records(mechanism.traits.gaps, mechanism.traits.declared)
        before = given.values.copy()
        first, again = (mechanism.sanitize(given, rng=np.random.default_rng(4)) for _ in range(2))
        np.testing.assert_array_equal(first.records.values, again.records.values)
        np.testing.assert_array_equal(given.values, before)
        assert first.facts == again.facts

    def test_its_facts_are_known_and_bear_a_certificate(self, mechanism: Mechanism) -> None:
        facts = mechanism.sanitize(
            records(mechanism.traits.gaps, mechanism.traits.declared), rng=np.random.default_rng(4)
        ).facts
        assert [fact_from_json(fact_to_json(fact)) for fact in facts] == list(facts)
        assert draw_claims(facts)[0]

    def test_it_keeps_layout_and_gives_away_no_levels(self, mechanism: Mechanism) -> None:
        given = records(mechanism.traits.gaps, mechanism.traits.declared)
        released = mechanism.sanitize(given, rng=np.random.default_rng(4)).records
        assert released.layout == given.layout
        assert released.target == given.target
        assert not released.levels.any()
        assert np.isfinite(released.values).all()

    def test_synthetic_rows_are_as_many_and_none_is_copied(self, mechanism: Mechanism) -> None:
        if not mechanism.traits.synthetic:
            pytest.skip("rows descend from rows")
        given = records(mechanism.traits.gaps, mechanism.traits.declared)
        released = mechanism.sanitize(given, rng=np.random.default_rng(4)).records
        if not mechanism.traits.declared:  # else the number of records does not leave
            assert len(released) == len(given)
        real = {row.tobytes() for row in given.values}
        assert not any(row.tobytes() in real for row in released.values)
