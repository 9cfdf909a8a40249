"""Every measurement changes by at most its stated sensitivity if a person is added: the product runs on neighbours.

The same released numbers are given to both runs, as the proof does: what is chosen from them is then the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.amplification import rho_of
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.methods.private.columns import Domain
from sfumato.methods.private.draw import draw_rows
from sfumato.methods.private.ledger import Covariance, Ledger, Measurement, OneWayCounts, PairCounts
from sfumato.methods.private.measure import measure
from sfumato.methods.private.people import GRID, People, level_weights, share_parts
from sfumato.methods.private.settings import settings_for

DOMAINS = (
    Domain("age", 90, True),
    Domain("pay", 5_000, True),
    Domain("score", 32_768, True),
    Domain("town", 7, False),
    Domain("class", 3, False),
)


class Recording(Ledger):
    """Keeps what was measured and what left, or lets leave what another run did."""

    def __init__(self, rho: float, replayed: list[Floats] | None = None) -> None:
        super().__init__(rho, np.random.default_rng(3))
        self.measured: list[Measurement] = []
        self.left: list[Floats] = []
        self.replayed: Iterator[Floats] | None = None if replayed is None else iter(replayed)

    def release(self, measurement: Measurement, rho: float) -> Floats:
        own = super().release(measurement, rho)
        self.measured.append(measurement)
        self.left.append(own if self.replayed is None else next(self.replayed))
        return self.left[-1]


def table(rows: int, seed: int) -> tuple[Ints, ...]:
    rng = np.random.default_rng(seed)
    town = rng.integers(-1, 7, rows)
    age = np.clip(rng.normal(40 + 2 * town, 10, rows), -1, 89).astype(np.int64)
    pay = np.where(rng.random(rows) < 0.3, 0, rng.integers(0, 5_000, rows))
    score = np.clip(pay * 6 + rng.integers(0, 2_000, rows), 0, 32_767)
    return age, pay, score, town, rng.integers(0, 3, rows)


def people(rows: int, seed: int) -> People:
    return People(table(rows, seed))


WEIGHTS = level_weights([0.5, 1.0, 3.0], 3.0, 1e-5)


def with_person(rows: list[tuple[int, ...]], levels: list[int] | None, *, persons: bool) -> tuple[People, People]:
    """A table without and with all rows of one person, in any place between the others."""
    rng, many = np.random.default_rng(4), 400
    places, whose, own = table(many, seed=1), rng.integers(0, 300, many), rng.integers(0, 3, 300)
    order = rng.permutation(many + len(rows))
    after = tuple(np.append(each, more)[order] for each, more in zip(places, zip(*rows, strict=True), strict=True))
    everybody = np.append(whose, np.full(len(rows), 300))[order] if persons else None
    after_level = None if levels is None else np.append(own[whose], levels)[order]
    inside = order < many  # the others in the same order
    one = People.of(
        tuple(each[inside] for each in after),
        None if everybody is None else everybody[inside],
        None if after_level is None else after_level[inside],
        WEIGHTS,
    )
    return one, People.of(after, everybody, after_level, WEIGHTS)


def squared_change(one: Measurement, other: Measurement) -> Fraction:
    change = [Fraction(int(each)) ** 2 for each in other.values - one.values]
    return sum((sum(change[where]) / rel for where, rel in one.noise_variances(Fraction(1))), Fraction(0))


ROW = st.tuples(*(st.sampled_from([-1, 0, d.size - 1]) | st.integers(-1, d.size - 1) for d in DOMAINS))


@given(
    st.lists(ROW, min_size=1, max_size=4),
    st.none() | st.lists(st.integers(0, 2), min_size=4, max_size=4),
    st.sampled_from([None, 4, 0]),
    st.sampled_from([0.5, 10.0]),
)
@settings(max_examples=40, deadline=None)
def test_no_measurement_changes_by_more_than_its_sensitivity(
    rows: list[tuple[int, ...]], levels: list[int] | None, target: int | None, epsilon: float
) -> None:
    """Of a person with a smaller epsilon it changes by the person's weight times the sensitivity."""
    levels = None if levels is None else levels[: len(rows)]
    before, after = with_person(rows, levels, persons=len(rows) > 1)
    weight = Fraction(GRID if levels is None else min(WEIGHTS[level] for level in levels), GRID)
    how, rho = settings_for(DOMAINS, target, epsilon), rho_of(epsilon, 1e-5)
    first = Recording(rho)
    measure(before, DOMAINS, target, how, first, np.random.default_rng(2))
    second = Recording(rho, first.left)
    measure(after, DOMAINS, target, how, second, np.random.default_rng(2))
    assert len(first.measured) == len(second.measured)
    if levels is None and target is None and epsilon > 1:
        assert any(isinstance(one, PairCounts) for one in first.measured)
    for one, other in zip(first.measured, second.measured, strict=True):
        assert one.squared_sensitivity == other.squared_sensitivity
        assert squared_change(one, other) <= weight**2 * one.squared_sensitivity, one.step


@given(st.lists(st.integers(0, 5), min_size=1, max_size=300), st.lists(st.integers(0, 2), min_size=6, max_size=6))
@settings(max_examples=50, deadline=None)
def test_the_rows_of_a_person_share_its_parts(persons: list[int], levels: list[int]) -> None:
    whose = np.array(persons)
    whole = np.array([WEIGHTS[levels[each]] for each in persons])
    parts = share_parts(whole, whose)
    for each in set(persons):
        own = parts[whose == each]
        assert own.sum() == WEIGHTS[levels[each]]
        assert own.max() - own.min() <= 1


@pytest.mark.parametrize("epsilons", [[0.5, 1.0, 3.0], [0.1, 0.7, 2.5], [10.0]])
def test_no_weight_gives_a_person_more_than_their_epsilon(epsilons: list[float]) -> None:
    for epsilon, weight in zip(epsilons, level_weights(epsilons, epsilons[-1], 1e-5), strict=True):
        assert (weight / GRID) ** 2 * rho_of(epsilons[-1], 1e-5) <= rho_of(epsilon, 1e-5)


@pytest.mark.parametrize("epsilons", [[0.01, 10.0], [2.0, 1.0]])
def test_epsilons_that_no_weight_can_give_are_refused(epsilons: list[float]) -> None:
    with pytest.raises(OptionError, match=r"too small compared with|above 1"):
        level_weights(epsilons, epsilons[-1], 1e-5)


@pytest.mark.parametrize("target", [None, 4, 0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_the_steps_never_spend_more_than_the_budget(target: int | None, epsilon: float) -> None:
    rho = rho_of(epsilon, 1e-6)
    ledger = Ledger(rho, np.random.default_rng(5))
    measure(people(2_000, seed=3), DOMAINS, target, settings_for(DOMAINS, target, epsilon), ledger, ledger.rng)
    assert sum(ledger.spent.values()) <= Fraction(rho)
    if target == 4:  # else a model without tables leaves their share; so do levels of a tree that divide nothing
        assert sum(ledger.spent.values()) >= 0.9 * rho


def test_the_ledger_refuses_what_exceeds_the_budget() -> None:
    ledger = Ledger(1.0, np.random.default_rng(5))
    ledger.release(OneWayCounts(np.zeros(3, dtype=np.int64)), 0.6)
    with pytest.raises(PrivacyRefusal, match="more than its privacy budget"):
        ledger.release(OneWayCounts(np.zeros(3, dtype=np.int64)), 0.6)


@pytest.mark.parametrize("rho", [0.001, 0.1, 0.5])
def test_the_noise_of_a_measurement_has_the_variance_that_its_cost_asks_for(rho: float) -> None:
    counts = OneWayCounts(np.zeros(200_000, dtype=np.int64))
    noise = Ledger(1e9, np.random.default_rng(5)).release(counts, rho)
    assert noise.var() == pytest.approx(1 / (2 * rho), rel=0.03)  # chi-squared: 1e-6 is 1.6 %
    covariance = Covariance(np.zeros(100_000, dtype=np.int64), 1, 5, 50_000)
    noise = Ledger(1e9, np.random.default_rng(5)).release(covariance, rho)
    assert noise[:50_000].var() == pytest.approx(25 / (2 * rho), rel=0.04)
    assert noise[50_000:].var() == pytest.approx(25 / (4 * rho), rel=0.04)


@pytest.mark.parametrize("target", [None, 4, 0])
def test_places_of_every_row_lie_in_their_domains(target: int | None) -> None:
    ledger = Ledger(rho_of(2.0, 1e-5), np.random.default_rng(5))
    model = measure(people(800, seed=3), DOMAINS, target, settings_for(DOMAINS, target, 2.0), ledger, ledger.rng)
    for rows in (1, 7_000):
        drawn = draw_rows(model, rows, ledger.rng)
        for domain, places in zip(DOMAINS, drawn, strict=True):
            assert len(places) == rows
            assert places.min() >= -1
            assert places.max() < domain.size


def test_one_column_or_no_person_gives_a_model() -> None:
    for domains in ((DOMAINS[0],), (DOMAINS[3],), DOMAINS):
        for target in (None, len(domains) - 1):
            nobody = People(tuple(np.empty(0, dtype=np.int64) for _ in domains))
            ledger = Ledger(rho_of(1.0, 1e-5), np.random.default_rng(5))
            model = measure(nobody, domains, target, settings_for(domains, target, 1.0), ledger, ledger.rng)
            assert len(draw_rows(model, 10, ledger.rng)) == len(domains)


def test_every_measurement_names_a_paragraph_of_the_proof_that_names_it() -> None:
    proof = (Path(__file__).parents[2] / "docs" / "private-proof.md").read_text(encoding="utf-8")
    paragraphs = {each.partition("\n")[0].lower(): each for each in proof.split("\n### ")}
    kinds = {kind for kind in Measurement.__subclasses__() if kind.__module__.startswith("sfumato")}
    assert len(kinds) == 9
    for kind in kinds:
        assert f"`{kind.__name__}`" in paragraphs[kind.paragraph]
