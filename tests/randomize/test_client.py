"""The client's side: answers of the right law, and what a cautious respondent does not answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.core.distributions.domains import Integers, Labels, Reals
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import OptionError, PrivacyRefusal, SchemaError
from sfumato.methods.randomize import answer, check_spec

YES = NoiseSpec(Labels(("no", "yes")), {"name": "response", "epsilon": 1.0})
BOUNDED = NoiseSpec(Integers(0, 100), {"name": "uniform", "reach": 50})
RARE = 1e-7


def test_answers_from_the_systems_randomness_follow_the_law() -> None:
    sent = [answer("yes", YES) for _ in range(400)]
    kept = np.e / (np.e + 1)
    assert stats.binomtest(sent.count("yes"), len(sent), kept).pvalue > RARE


def test_two_answers_do_not_repeat_each_other() -> None:
    spec = NoiseSpec(Reals(0.0, 1.0, 0.001), {"name": "laplace", "scale": 1000})
    assert answer(0.5, spec) != answer(0.5, spec)  # the same once in a million


@pytest.mark.parametrize(
    ("value", "spec", "kind"),
    [
        ("no", YES, str),
        (40, BOUNDED, int),
        (0.25, NoiseSpec(Reals(0.0, 1.0, 0.25), {"name": "laplace", "scale": 1}), float),
        (40, NoiseSpec(Integers(0, 100), {"name": "interval", "edges": [50]}), str),
        (40, NoiseSpec(Integers(0, 100), {"name": "rounding", "to": 25}), int),
    ],
)
def test_an_answer_is_a_plain_value_that_the_server_can_read(value: Any, spec: NoiseSpec, kind: type) -> None:
    sent = answer(value, spec)
    assert type(sent) is kind
    spec.encode_output([sent])


@given(st.integers(0, 100), st.integers(0, 2**32 - 1))
def test_a_given_generator_repeats_the_answer(value: int, seed: int) -> None:
    first, again = (answer(value, BOUNDED, rng=np.random.default_rng(seed)) for _ in range(2))
    assert first == again
    assert abs(int(first) - value) <= 50


def test_a_specification_that_was_exchanged_is_not_answered() -> None:
    other = NoiseSpec(Labels(("no", "yes")), {"name": "response", "epsilon": 8.0})
    answer("yes", YES, digest=YES.digest.upper())
    with pytest.raises(PrivacyRefusal, match="not the one that was expected"):
        answer("yes", other, digest=YES.digest)
    with pytest.raises(OptionError, match="64 hexadecimal digits"):
        answer("yes", YES, digest=YES.digest[:16])


def test_a_specification_that_promises_too_little_is_not_answered() -> None:
    check_spec(YES, max_gamma=3.0, rho1=0.01, max_rho2=0.03)
    with pytest.raises(PrivacyRefusal, match=r"factor of 2\.72 and at most 2 is wanted"):
        answer("yes", YES, max_gamma=2.0)
    with pytest.raises(PrivacyRefusal, match=r"1 % likely may be 2\.7 % likely"):
        answer("yes", YES, rho1=0.01, max_rho2=0.02)
    with pytest.raises(PrivacyRefusal, match="no guarantee"):
        answer(40, BOUNDED, max_gamma=1e9)
    with pytest.raises(PrivacyRefusal, match=r"100\.0 % likely"):
        answer(40, BOUNDED, rho1=0.01, max_rho2=0.99)


def test_nothing_is_drawn_before_the_check() -> None:
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    with pytest.raises(PrivacyRefusal):
        answer("yes", YES, max_gamma=1.0, rng=rng)
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("value", ["maybe", "", 3, None])
def test_a_value_outside_the_domain_is_refused_without_being_told(value: Any) -> None:
    with pytest.raises(SchemaError, match="1 values") as told:
        answer(value, YES)
    assert "maybe" not in str(told.value)


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"max_gamma": 0.5}, "factor of 1 or more"),
        ({"rho1": 0.1}, "both rho1 and max_rho2"),
        ({"max_rho2": 0.1}, "both rho1 and max_rho2"),
        ({"rho1": 0.5, "max_rho2": 0.1}, "0 < rho1 <= max_rho2"),
        ({"rho1": 0.0, "max_rho2": 0.1}, "0 < rho1 <= max_rho2"),
    ],
)
def test_wishes_that_mean_nothing_are_refused(wanted: dict[str, float], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        answer("yes", YES, **wanted)  # type: ignore[arg-type]
