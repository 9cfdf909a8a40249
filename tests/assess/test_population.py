"""Risk in the population: printed examples, and a census."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess.risk.population import individual_risk, population_risk
from sfumato.core.errors import OptionError

# frequencies in the sample, sums of weights and risks of eight people, as the guidelines of sdcMicro print them
SAMPLE = np.array([2, 2, 2, 1, 1, 1, 1, 2])
POPULATION = np.array([110.0, 84.5, 84.5, 17.0, 541.0, 8.0, 5.0, 110.0])
RISK = [0.017, 0.022, 0.022, 0.177, 0.012, 0.297, 0.402, 0.017]


def test_the_risk_of_a_person_is_the_printed_one() -> None:
    assert individual_risk(SAMPLE, SAMPLE / POPULATION).round(3).tolist() == RISK


def test_a_census_has_the_risk_of_its_classes() -> None:
    classes = np.array([0, 0, 1, 2, 2, 2])
    found = population_risk(classes, 1.0)
    assert (found.reidentified, found.unique, found.smallest) == pytest.approx((3.0, 1.0, 1.0))


def test_the_expected_number_of_unique_people_is_that_of_samples() -> None:
    rng = np.random.default_rng(5)
    sizes = 1 + rng.geometric(0.05, 3_000)  # the prior of the model is the larger, the wider classes differ
    population = np.repeat(np.arange(len(sizes)), sizes)
    sample = population[rng.random(len(population)) < 0.2]
    found = population_risk(sample, 0.2)
    assert found.reidentified == pytest.approx(float((1.0 / sizes)[sample].sum()), rel=0.5)
    assert found.smallest == pytest.approx(5.0)


def test_a_declared_sampling_fraction_puts_population_risk_into_the_owners_report() -> None:
    rng = np.random.default_rng(2)
    table = pa.table({"age": rng.integers(20, 60, 300), "town": rng.choice(["a", "b", "c"], 300).tolist()})
    release = sf.sanitize(table, k=5, seed=1, quasi_identifiers=["age", "town"], sampling_fraction=0.1)
    assert release.report is not None
    found = {finding.name: finding for finding in release.report.findings}
    sizes = np.unique(np.char.add(np.array(table["age"]).astype(str), np.array(table["town"])), return_counts=True)[1]
    assert found["population-unique"].baseline == pytest.approx(0.1 * (sizes == 1).sum())
    assert found["population-reidentified"].public is False
    assert "population-class-smallest" in found


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sampling_fraction": 1.5, "quasi_identifiers": ["age"]}, "at most 1"),
        ({"sampling_fraction": 0.5}, "no effect without"),
    ],
)
def test_a_wrong_sampling_fraction_is_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        sf.sanitize(pa.table({"age": list(range(60))}), k=5, **options)  # type: ignore[arg-type]
