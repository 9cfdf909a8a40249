"""Naive Bayes on randomized records: laws, what it recovers, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.distributions.domains import Integers, Labels
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import BadInput, OptionError, SchemaError
from sfumato.survey.mining import ReconstructedNaiveBayes
from tests.examples import examples

COLOURS = Labels(("red", "green", "blue"))
ANSWER = NoiseSpec(COLOURS, {"name": "response", "epsilon": 1.5})
AGE = NoiseSpec(Integers(0, 49), {"name": "uniform", "reach": 25})
SICK = NoiseSpec(Labels(("ill", "well")), {"name": "response", "epsilon": 1.0})
OF_ILL, OF_WELL = (0.6, 0.3, 0.1), (0.1, 0.2, 0.7)


def people(seed: int, n: int) -> tuple[dict[str, NDArray[Any]], NDArray[np.str_]]:
    """Colours whose chances depend on the class, ages that are low or high by it, three in ten ill."""
    rng = np.random.default_rng(seed)
    ill = rng.random(n) < 0.3
    colours = np.array(COLOURS.values)
    colour = np.where(ill, rng.choice(colours, n, p=OF_ILL), rng.choice(colours, n, p=OF_WELL))
    age = np.where(ill, rng.integers(20, 50, n), rng.integers(0, 30, n))
    return {"colour": colour, "age": age}, np.where(ill, "ill", "well")


def sent(columns: dict[str, NDArray[Any]], seed: int) -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(seed)
    return {"colour": ANSWER.randomize(columns["colour"], rng), "age": AGE.randomize(columns["age"], rng)}


SPECS = {"colour": ANSWER, "age": AGE}


@given(seed=st.integers(0, 10_000))
@examples(10)
def test_names_of_classes_have_no_part_in_it(seed: int) -> None:
    columns, classes = people(seed, 600)
    given_away = sent(columns, seed)
    miner = ReconstructedNaiveBayes(specs=SPECS)
    shares = miner.fit(given_away, classes).predict_proba(columns)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    turned = miner.fit(given_away, np.where(classes == "ill", "z", "a")).predict_proba(columns)
    np.testing.assert_allclose(turned[:, ::-1], shares, rtol=1e-9)


def test_the_distributions_of_each_class_come_back() -> None:
    n = 100_000
    columns, classes = people(1, n)
    miner = ReconstructedNaiveBayes(specs=SPECS, stop="likelihood").fit(sent(columns, 2), classes)
    # ten standard errors of a share of the 30,000 ill ones, widened by what the response lets through
    keep = np.exp(1.5) / (np.exp(1.5) + 2.0)
    error = 10.0 * 0.5 / np.sqrt(0.3 * n) / (keep - (1.0 - keep) / 2.0)
    np.testing.assert_allclose(miner.shares_[0], [OF_ILL, OF_WELL], atol=error)
    np.testing.assert_allclose(miner.class_prior_, [0.3, 0.7], atol=10.0 * 0.5 / np.sqrt(n))


def test_it_answers_nearly_as_if_nothing_had_been_randomized() -> None:
    columns, classes = people(3, 20_000)
    fresh, truth = people(4, 4000)
    plain = ReconstructedNaiveBayes(specs={"colour": COLOURS, "age": Integers(0, 49)}).fit(columns, classes)
    hidden = ReconstructedNaiveBayes(specs=SPECS).fit(sent(columns, 5), classes)
    right = [float((miner.predict(fresh) == truth).mean()) for miner in (plain, hidden)]
    assert right[0] > 0.85
    assert right[1] > right[0] - 0.05


def test_a_randomized_class_is_reconstructed_with_its_columns() -> None:
    n = 100_000
    columns, classes = people(6, n)
    told = SICK.randomize(classes, np.random.default_rng(7))
    specs: dict[str, Any] = {"colour": ANSWER, "age": Integers(0, 49)}  # one randomized, one as it was
    given_away = {"colour": sent(columns, 8)["colour"], "age": columns["age"]}
    miner = ReconstructedNaiveBayes(specs=specs, target=SICK, stop="likelihood").fit(given_away, told)
    assert miner.classes_.tolist() == ["ill", "well"]
    np.testing.assert_allclose(miner.class_prior_, [0.3, 0.7], atol=0.05)
    np.testing.assert_allclose(miner.shares_[0], [OF_ILL, OF_WELL], atol=0.12)
    ignoring = ReconstructedNaiveBayes(specs=specs).fit(given_away, told)
    assert ignoring.class_prior_[0] > 0.38  # 0.3 of them ill, told with chance 0.73
    fresh, truth = people(9, 4000)
    assert (miner.predict(fresh) == truth).mean() > 0.85


def test_smoothing_keeps_an_interval_without_records_possible() -> None:
    columns = {"age": np.repeat([3, 40], 50)}
    miner = ReconstructedNaiveBayes(specs={"age": Integers(0, 49)}, intervals=50).fit(columns, np.repeat([0, 1], 50))
    shares = miner.predict_proba({"age": [3, 20, 40]})
    np.testing.assert_allclose(shares[1], [0.5, 0.5])
    assert (shares > 0.0).all()
    assert shares[0, 0] == pytest.approx(51 / 52)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"smoothing": 0.0}, OptionError, "smoothing must be"),
        ({"intervals": 1}, OptionError, "intervals is 1"),
        ({"target": AGE}, OptionError, "must be of labels"),
        ({"stop": "never"}, OptionError, "there is no stop"),
        ({"specs": {"colour": ANSWER}}, SchemaError, "column 'age' has no noise specification"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], error: type[Exception], words: str) -> None:
    columns, classes = people(0, 300)
    with pytest.raises(error, match=words):
        ReconstructedNaiveBayes(**{"specs": SPECS, **options}).fit(sent(columns, 1), classes)


def test_missing_values_small_classes_and_foreign_labels_are_refused() -> None:
    columns, classes = people(0, 300)
    given_away = sent(columns, 1)
    with pytest.raises(BadInput, match="call fit first"):
        ReconstructedNaiveBayes(specs=SPECS).predict(columns)
    with pytest.raises(BadInput, match="fewer than 30 records"):
        ReconstructedNaiveBayes(specs=SPECS).fit(given_away, np.where(np.arange(300) < 5, "few", classes))
    holes = given_away["colour"].copy()
    holes[:4] = None
    with pytest.raises(SchemaError, match="column 'colour' has 4 missing values"):
        ReconstructedNaiveBayes(specs=SPECS).fit({**given_away, "colour": holes}, classes)
    holes[:4] = "purple"
    with pytest.raises(SchemaError, match="column 'colour': 4 values"):
        ReconstructedNaiveBayes(specs=SPECS).fit({**given_away, "colour": holes}, classes)
    with pytest.raises(SchemaError, match="are none of the 2 labels"):
        ReconstructedNaiveBayes(specs=SPECS, target=SICK).fit(given_away, np.where(classes == "ill", "sick", "well"))
