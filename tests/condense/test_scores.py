"""Normal scores: the way there and back, what is copied, and that the certificate says which was taken."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import OptionError
from sfumato.methods.condense.facts import NormalScoreColumns
from sfumato.methods.condense.synthesize import _score
from tests.examples import examples


@examples(60)
@given(st.integers(0, 10**6), st.integers(2, 20), st.booleans())
def test_scores_ascend_with_the_numbers_and_points_of_the_way_back_are_of_k_people(
    seed: int, k: int, several: bool
) -> None:
    rng = np.random.default_rng(seed)
    pool = np.append(rng.lognormal(0, 2, 60), 0.0)
    numbers = pool[np.minimum(rng.geometric(0.05, 300) - 1, 60)]  # some are held by many, most by few
    persons = rng.integers(0, 150, 300) if several else None
    scores, curve = _score(numbers, persons, k)
    order = np.argsort(numbers, kind="stable")
    assert (np.diff(scores[order]) >= 0).all()
    assert (np.diff(curve.scores) >= 0).all()
    assert (np.diff(curve.numbers) >= -1e-12).all()
    who = np.arange(300) if persons is None else persons
    for number in set(curve.numbers.tolist()) & set(numbers.tolist()):  # a mean of several is none of them
        assert len(np.unique(who[numbers == number])) >= k


def test_a_skewed_column_and_a_heap_keep_their_shape_and_no_number_of_few_is_copied() -> None:
    rng = np.random.default_rng(4)
    paid = np.where(rng.random(2000) < 0.6, 0.0, rng.lognormal(3, 1, 2000))
    age = rng.normal(50, 10, 2000) + 0.1 * np.minimum(paid, 100)
    table = pa.table({"paid": paid, "age": pa.array([None if row % 5 == 0 else x for row, x in enumerate(age)])})
    shares = {}
    for scores in ("plain", "normal"):
        mechanism = sf.Condensation(k=25, effort="fast", scores=scores)
        made = sf.sanitize(table, mechanism, tails="keep", seed=1, report=False).table
        shares[scores] = float(np.mean(made["paid"].to_numpy() == 0.0))
        assert made["age"].null_count == 400
        assert not set(made["age"].drop_null().to_pylist()) & set(age.tolist())
        assert not (set(made["paid"].to_pylist()) - {0.0}) & set(paid.tolist())
    assert abs(shares["normal"] - 0.6) < 0.1 < abs(shares["plain"] - 0.6)


def test_the_certificate_says_which_scores_were_taken_and_is_verified(tmp_path: object) -> None:
    rng = np.random.default_rng(5)
    table = pa.table({"a": rng.normal(size=200), "b": rng.lognormal(size=200), "c": ["x", "y"] * 100})
    release = sf.sanitize(table, sf.Condensation(k=10, effort="fast", scores="normal"), report=False)
    assert [fact for fact in release.certificate.facts if isinstance(fact, NormalScoreColumns)] == [
        NormalScoreColumns(2, 10)
    ]
    assert any("means over at least 10 records" in claim.claim for claim in release.certificate.claims)
    assert all(check.holds for check in sf.verify(release.save(f"{tmp_path}/out") / "release"))
    plain = sf.sanitize(table, sf.Condensation(k=10, effort="fast"), report=False)
    assert not any(isinstance(fact, NormalScoreColumns) for fact in plain.certificate.facts)
    with pytest.raises(OptionError, match="there are no scores 'rank'"):
        sf.Condensation(scores="rank")
