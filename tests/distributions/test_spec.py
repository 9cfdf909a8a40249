"""The noise specification: written, read, hashed and checked; what it releases can be read back."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.distributions.domains import Integers, Labels, Reals
from sfumato.core.distributions.operators import Additive, Membership
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import BadInput, OptionError, SchemaError
from tests.distributions.test_noise import fresh

AGES, HOURS, TOWNS = Integers(0, 120), Reals(-2.0, 8.0, 0.1), Labels(("north", "south", "far away"))
TREE = {"north": "land", "south": "land", "far away": "abroad"}
SPECS = [
    NoiseSpec(AGES, {"name": "keep-or-replace", "keep": 0.2}),
    NoiseSpec(TOWNS, {"name": "keep-or-replace", "keep": 0.5}),
    NoiseSpec(AGES, {"name": "shift-modulo", "reach": 10}),
    NoiseSpec(HOURS, {"name": "shift-modulo", "reach": 1.5}),
    NoiseSpec(AGES, {"name": "mixture", "weight": 0.5, "of": {"name": "shift-modulo", "reach": 10}}),
    NoiseSpec(TOWNS, {"name": "mixture", "weight": 0.25, "of": {"name": "response", "epsilon": 1}}),
    NoiseSpec(AGES, {"name": "uniform", "reach": 50}),
    NoiseSpec(HOURS, {"name": "uniform", "reach": 2.5}),
    NoiseSpec(AGES, {"name": "gaussian", "sd": 7}),
    NoiseSpec(HOURS, {"name": "gaussian", "sd": 0.75}),
    NoiseSpec(AGES, {"name": "laplace", "scale": 30.5}),
    NoiseSpec(HOURS, {"name": "laplace", "scale": 5}),
    NoiseSpec(TOWNS, {"name": "response", "epsilon": 1.5}),
    NoiseSpec(TOWNS, {"name": "response", "matrix": [[0.8, 0.1, 0.1], [0.2, 0.6, 0.2], [0.25, 0.25, 0.5]]}),
    NoiseSpec(AGES, {"name": "interval", "edges": [18, 65]}),
    NoiseSpec(HOURS, {"name": "interval", "edges": [-2, 0.05, 8]}),
    NoiseSpec(AGES, {"name": "rounding", "to": 10}),
    NoiseSpec(HOURS, {"name": "rounding", "to": 0.5}),
    NoiseSpec(TOWNS, {"name": "taxonomy", "parents": TREE}),
]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.canonical)
class TestEverySpec:
    def test_it_comes_back_from_toml_json_and_its_document(self, spec: NoiseSpec, tmp_path: Path) -> None:
        through_json = json.loads(json.dumps(spec.to_document(), allow_nan=False))
        (tmp_path / "spec.toml").write_text(spec.to_toml(), encoding="utf-8")
        (tmp_path / "spec.json").write_text(spec.canonical, encoding="utf-8")
        read = [
            NoiseSpec.from_document(through_json),
            NoiseSpec.from_toml(spec.to_toml()),
            NoiseSpec.read(tmp_path / "spec.toml"),
            NoiseSpec.read(tmp_path / "spec.json"),
            NoiseSpec(spec.domain, spec.law),
        ]
        assert all(each == spec and hash(each) == hash(spec) and each.digest == spec.digest for each in read)

    def test_what_it_releases_is_read_back_to_the_same_codes(self, spec: NoiseSpec) -> None:
        values = spec.domain.decode(np.tile(np.arange(spec.domain.size), 20))
        codes = spec.operator.randomize(spec.domain.encode(values), fresh())
        released = spec.decode_output(codes)
        np.testing.assert_array_equal(spec.encode_output(released), codes)
        np.testing.assert_array_equal(spec.encode_output(released.tolist()), codes)
        assert spec.randomize(values, fresh()).dtype == released.dtype

    def test_its_words_promise_what_its_gamma_does(self, spec: NoiseSpec) -> None:
        assert ("no guarantee" in spec.describe()) == math.isinf(spec.gamma)
        assert (spec.unbounded_reason is not None) == math.isinf(spec.gamma)
        assert spec.bound(0.01) == (1.0 if math.isinf(spec.gamma) else pytest.approx(spec.gamma / (99 + spec.gamma)))

    def test_it_is_frozen(self, spec: NoiseSpec) -> None:
        with pytest.raises(dataclasses.FrozenInstanceError):
            spec.law = ()  # type: ignore[misc]
        assert len({spec, NoiseSpec(spec.domain, spec.law)}) == 1


def test_different_specifications_have_different_digests() -> None:
    assert len({spec.digest for spec in SPECS}) == len(SPECS)


def test_the_digest_is_the_same_for_ever() -> None:
    """Clients keep digests: a change of the written form must be a new format."""
    spec = NoiseSpec(Integers(0, 1000), {"name": "keep-or-replace", "keep": 0.2})
    assert spec.canonical == (
        '{"domain":{"high":1000,"kind":"integers","low":0},"format":1,"law":{"keep":0.2,"name":"keep-or-replace"}}'
    )
    assert spec.digest == "b0da3563262914cff26a5a2f00e8d8ea11c67638dec624673cadc6e173dc2e51"


def test_a_whole_number_may_be_written_with_a_fraction() -> None:
    one, other = (NoiseSpec(AGES, {"name": "uniform", "reach": reach}) for reach in (50, 50.0))
    assert (one, one.digest) == (other, other.digest)


def test_the_form_of_the_handbook_is_read() -> None:
    text = """
format = 1
domain = { kind = "integers", low = 0, high = 1000 }
law = { name = "mixture", weight = 0.5, of = { name = "shift-modulo", reach = 100 } }
"""
    assert NoiseSpec.from_toml(text).gamma == 1202 / 201


@pytest.mark.parametrize(
    "claim", [{"gamma": 200.0}, {"epsilon": 1.0}, {"gamma": None}, {"gamma": True}, {"gamma": "6"}]
)
def test_a_claim_that_is_not_so_is_refused(claim: dict[str, Any]) -> None:
    document = SPECS[0].to_document()
    assert NoiseSpec.from_document({**document, "gamma": SPECS[0].gamma, "epsilon": SPECS[0].epsilon}) == SPECS[0]
    with pytest.raises(OptionError, match="claims another"):
        NoiseSpec.from_document({**document, **claim})


def test_a_yes_is_no_claim_of_1() -> None:
    spec = NoiseSpec(Labels(("a", "b")), {"name": "response", "epsilon": 1})
    assert NoiseSpec.from_document({**spec.to_document(), "epsilon": 1}) == spec
    with pytest.raises(OptionError, match="claims another epsilon"):
        NoiseSpec.from_document({**spec.to_document(), "epsilon": True})


def test_a_file_is_read_by_its_ending_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "spec.JSON").write_text(SPECS[0].canonical)
    (tmp_path / "spec.Toml").write_text(SPECS[0].to_toml())
    assert NoiseSpec.read(tmp_path / "spec.JSON") == NoiseSpec.read(tmp_path / "spec.Toml") == SPECS[0]


def test_infinity_is_claimed_as_null_in_json_and_as_inf_in_toml() -> None:
    spec = SPECS[6]
    assert NoiseSpec.from_document({**spec.to_document(), "gamma": None, "epsilon": None}) == spec
    assert "gamma = inf" in spec.to_toml()


def test_noise_in_units_of_the_domain_is_counted_in_places() -> None:
    operator = NoiseSpec(HOURS, {"name": "laplace", "scale": 5}).operator
    assert isinstance(operator, Additive)
    assert operator.law.scale == 50.0  # type: ignore[union-attr]
    assert operator.epsilon == 2.0  # 10 hours of range / 5


def test_intervals_begin_with_their_edge_and_are_named() -> None:
    whole, real = SPECS[14], SPECS[15]
    assert whole.randomize([17, 18, 64, 65, 120], fresh()).tolist() == [
        "0..17",
        "18..64",
        "18..64",
        "65..120",
        "65..120",
    ]
    assert real.randomize([-2.0, 0.0, 0.1, 8.0], fresh()).tolist() == ["[-2, 0.05)"] * 2 + ["[0.05, 8]"] * 2


def test_rounding_goes_to_the_nearest_multiple_and_halves_up() -> None:
    assert SPECS[16].randomize([0, 4, 5, 14, 15, 120], fresh()).tolist() == [0, 0, 10, 10, 20, 120]
    assert SPECS[17].randomize([-2.0, -0.3, -0.2, 0.2, 0.3], fresh()).tolist() == [-2.0, -0.5, 0.0, 0.0, 0.5]


@given(low=st.integers(-50, 50), size=st.integers(20, 90), to=st.integers(2, 9))
def test_rounded_values_are_at_most_half_a_multiple_away(low: int, size: int, to: int) -> None:
    spec = NoiseSpec(Integers(low, low + size), {"name": "rounding", "to": to})
    values = np.arange(low, low + size + 1)
    rounded = spec.randomize(values, fresh())
    assert not (rounded % to).any()
    assert (np.abs(rounded - values) * 2 <= to).all()


def test_a_label_is_sent_as_its_parent() -> None:
    assert SPECS[18].randomize(["far away", "south"], fresh()).tolist() == ["abroad", "land"]
    assert isinstance(SPECS[18].operator, Membership)


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        (SPECS[0], [121, 5]),
        (SPECS[6], [171, 5]),
        (SPECS[6], [-51, 5]),
        (SPECS[7], [0.05, 0.1]),
        (SPECS[8], [0.5, 1]),
        (SPECS[12], ["east", "north"]),
        (SPECS[14], ["0..18", "0..17"]),
        (SPECS[16], [12, 10]),
    ],
    ids=range(8),
)
def test_values_that_the_law_cannot_have_sent_are_counted(spec: NoiseSpec, values: list[Any]) -> None:
    with pytest.raises(SchemaError, match=r"^1 values") as told:
        spec.encode_output(values)
    assert str(values[0]) not in str(told.value)


@pytest.mark.parametrize(
    ("domain", "law"),
    [
        (AGES, {"name": "sorcery"}),
        (AGES, {"keep": 0.2}),
        (AGES, {"name": "keep-or-replace"}),
        (AGES, {"name": "keep-or-replace", "keep": 0.2, "weight": 0.5}),
        (AGES, {"name": "keep-or-replace", "keep": "much"}),
        (AGES, {"name": "keep-or-replace", "keep": True}),
        (AGES, {"name": "keep-or-replace", "keep": math.nan}),
        (AGES, {"name": "keep-or-replace", "keep": 1.1}),
        (AGES, {"name": "shift-modulo", "reach": 1.5}),
        (AGES, {"name": "shift-modulo", "reach": -1}),
        (AGES, {"name": "mixture", "weight": 0.5, "of": {"name": "laplace", "scale": 3}}),
        (AGES, {"name": "mixture", "weight": 0.5, "of": {"name": "interval", "edges": [50]}}),
        (AGES, {"name": "mixture", "weight": 0.5, "of": "R2"}),
        (AGES, {"name": "uniform", "reach": 0.5}),
        (AGES, {"name": "laplace", "scale": 0}),
        (AGES, {"name": "laplace", "scale": 1e300}),
        (TOWNS, {"name": "laplace", "scale": 3}),
        (TOWNS, {"name": "interval", "edges": [1]}),
        (TOWNS, {"name": "response", "matrix": [[0.5, 0.5], [0.5, 0.5]]}),
        (TOWNS, {"name": "response", "matrix": 3}),
        (TOWNS, {"name": "response", "matrix": [[0.5, 0.5, "x"]]}),
        (TOWNS, {"name": "response", "epsilon": 1, "matrix": []}),
        (TOWNS, {"name": "taxonomy", "parents": {"north": "land"}}),
        (TOWNS, {"name": "taxonomy", "parents": {**TREE, "mars": "sky"}}),
        (TOWNS, {"name": "taxonomy", "parents": dict.fromkeys(TREE, "earth")}),
        (TOWNS, {"name": "taxonomy", "parents": ["north"]}),
        (AGES, {"name": "taxonomy", "parents": TREE}),
        (AGES, {"name": "interval", "edges": [65, 18]}),
        (AGES, {"name": "interval", "edges": [0, 500]}),
        (AGES, {"name": "interval", "edges": [0, 120]}),
        (AGES, {"name": "interval", "edges": [17.5]}),
        (HOURS, {"name": "interval", "edges": [0.01, 0.02]}),
        (AGES, {"name": "rounding", "to": 1}),
        (AGES, {"name": "rounding", "to": 1000}),
        (AGES, {"name": "rounding", "to": -5}),
        (AGES, "keep-or-replace"),
        (AGES, ()),
    ],
)
def test_laws_that_do_not_fit_are_refused(domain: Any, law: Any) -> None:
    with pytest.raises(OptionError):
        NoiseSpec(domain, law)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "format = 1",
        "format = 2\ndomain = {kind = 'integers', low = 0, high = 9}\nlaw = {name = 'uniform', reach = 3}",
        "format = 1\ndomain = {kind = 'integers', low = 0, high = 9}",
        "format = 1\ndomain = 3\nlaw = {name = 'uniform', reach = 3}",
        "format = 1\ndomain = {kind = 'integers', low = 0, high = 9}\nlaw = {name = 'uniform', reach = 3}\nextra = 1",
        "format = ",
    ],
)
def test_texts_that_are_no_specification_are_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        NoiseSpec.from_toml(text)
    (tmp_path / "bad.json").write_text(text, encoding="utf-8")
    with pytest.raises(BadInput):
        NoiseSpec.read(tmp_path / "bad.json")


def test_a_file_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no noise specification"):
        NoiseSpec.read(tmp_path / "none.toml")


def test_laplace_noise_far_too_small_promises_next_to_nothing_and_says_so() -> None:
    spec = NoiseSpec(Integers(0, 100_000), {"name": "laplace", "scale": 2})
    assert (spec.gamma, spec.epsilon) == (math.inf, 50_000.0)
    assert "e^50000" in spec.describe()
    assert NoiseSpec.from_toml(spec.to_toml()) == spec
