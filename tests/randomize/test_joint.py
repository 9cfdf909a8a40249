"""Two randomized columns together: cross table and line."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.distributions.domains import Integers, Labels
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import BadInput, DoesNotFit, OptionError, TooFew
from sfumato.survey.reconstruct import cross_table, regress
from sfumato.survey.reconstruct.answers import moments_of

AGE = NoiseSpec(Integers(0, 99), {"name": "uniform", "reach": 20})
PAY = NoiseSpec(Integers(0, 99), {"name": "laplace", "scale": 15})
KEPT = NoiseSpec(Integers(0, 99), {"name": "keep-or-replace", "keep": 0.5})
SEX = NoiseSpec(Labels(("f", "m")), {"name": "response", "epsilon": 1.5})


def _people(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.random.Generator]:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=n)
    age = np.clip((50 + 16 * z).astype(np.int64), 0, 99)
    pay = np.clip((50 + 11 * z + 11 * rng.normal(size=n)).astype(np.int64), 0, 99)
    return age, pay, rng


@pytest.mark.parametrize("law", [PAY, KEPT])
def test_shares_of_pairs_and_the_line_are_those_of_the_truth(law: NoiseSpec) -> None:
    """Bands hold 95 % of the 20 pairs or more; the line is within five standard errors, whatever the noise flattens."""
    age, pay, rng = _people(6_000, 1)
    told, sent = AGE.randomize(age, rng), law.randomize(pay, rng)
    found = cross_table(sent, law, told, AGE, intervals=(4, 5))
    truth = np.histogram2d(pay, age, [found.rows.cuts - 0.5, found.columns.cuts - 0.5])[0] / len(age)
    assert ((found.lower <= truth) & (truth <= found.upper)).mean() >= 0.9
    assert found.probability.sum() == pytest.approx(1.0)
    assert found.fit > 0.01
    slope, intercept = np.polyfit(age, pay, 1)
    line = regress(sent, law, told, AGE)
    assert abs(line.slope.value - slope) < 5 * line.slope.standard_error
    assert abs(line.intercept.value - intercept) < 5 * line.intercept.standard_error
    assert line.slope.standard_error < 0.1
    assert line.slope.lower < line.slope.value < line.slope.upper
    if law is PAY:
        flat = float(np.polyfit(told, sent, 1)[0])
        assert abs(flat - slope) > 5 * line.slope.standard_error  # what the noise would make of it


def test_without_noise_table_and_line_are_those_of_the_values() -> None:
    spec = NoiseSpec(Integers(0, 3), {"name": "keep-or-replace", "keep": 1.0})
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, 400)
    y = np.minimum(x, rng.integers(0, 4, 400))
    found = cross_table(y, spec, x, spec, intervals=(4, 4))
    np.testing.assert_allclose(found.probability, np.histogram2d(y, x, 4)[0] / 400, atol=2e-3)
    line = regress(y, spec, x, spec)
    np.testing.assert_allclose([line.slope.value, line.intercept.value], np.polyfit(x, y, 1), atol=0.02)


@pytest.mark.parametrize("spec", [AGE, PAY, KEPT, NoiseSpec(Integers(0, 99), {"name": "gaussian", "sd": 20})])
def test_numbers_of_records_average_to_the_value_and_its_square(spec: NoiseSpec) -> None:
    rng = np.random.default_rng(2)
    for value in (0, 60, 99):
        found = moments_of(spec.operator.randomize(np.full(40_000, value), rng), spec)
        assert found is not None
        for numbers, wanted in ((found.first, value), (found.second, value**2)):
            assert abs(numbers.mean() - wanted) < 6 * numbers.std() / np.sqrt(40_000) + 1e-9


def test_bad_pairs_are_refused_in_words() -> None:
    age, pay, rng = _people(500, 3)
    told, sent = AGE.randomize(age, rng), PAY.randomize(pay, rng)
    with pytest.raises(BadInput, match="equally long"):
        cross_table(sent[:-1], PAY, told, AGE)
    with pytest.raises(BadInput, match="equally long"):
        regress(sent[:-1], PAY, told, AGE)
    with pytest.raises(OptionError, match="more than 400"):
        cross_table(sent, PAY, told, AGE, intervals=(50, 50))
    with pytest.raises(TooFew, match="at least"):
        cross_table(sent[:10], PAY, told[:10], AGE)
    with pytest.raises(TooFew, match="any slope would do"):
        regress(sent[:60], PAY, PAY.randomize(np.full(60, 50), rng), PAY)
    towns = NoiseSpec(Labels(("a", "b", "c")), {"name": "keep-or-replace", "keep": 0.5})
    with pytest.raises(OptionError, match="is no number"):
        regress(sent, PAY, ["a"] * 500, towns)
    classes = NoiseSpec(Integers(0, 99), {"name": "interval", "edges": [10, 50]})
    with pytest.raises(OptionError, match="does not determine the mean"):
        regress(classes.randomize(pay, rng), classes, told, AGE)
    narrow = NoiseSpec(Integers(0, 99), {"name": "gaussian", "sd": 40})
    with pytest.raises(DoesNotFit, match="do not fit"):
        cross_table(np.repeat(sent, 8), narrow, np.repeat(told, 8), AGE, strict=True)


def test_columns_of_a_frame_are_related_and_missing_cells_skipped() -> None:
    age, pay, rng = _people(2_000, 4)
    sex = np.where(age > 50, "m", "f")
    sent = [None if row < 7 else str(value) for row, value in enumerate(SEX.randomize(sex, rng))]
    table = pa.table({"pay": PAY.randomize(pay, rng), "sex": sent})
    found = sf.relate(table, "pay", "sex", PAY, to_spec=SEX, intervals=3)
    assert found.table.missing == 7
    assert found.table.probability.shape == (3, 2)
    assert found.regression is not None
    difference = pay[sex == "m"].mean() - pay[sex == "f"].mean()
    assert abs(found.regression.slope.value - difference) < 5 * found.regression.slope.standard_error
    document = found.to_document()
    assert document["columns"] == {"values": ["f", "m"]}
    assert len(document["rows"]["edges"]) == 4
    assert document["regression"]["slope"]["standard_error"] > 0
    with pytest.raises(OptionError, match="name two"):
        sf.relate(table, "pay", "pay", PAY)
    with pytest.raises(OptionError, match="no single column 'rent'"):
        sf.relate(table, "rent", "pay", PAY)
