"""Subsampling: whole people, unchanged, each with the same chance; those left out are the control."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import LevelError, OptionError
from sfumato.engines.memory import run_in_memory
from sfumato.engines.outcome import Comparison
from sfumato.engines.plan import make_plan
from sfumato.methods.modify.facts import Sampled, sampling_error
from sfumato.methods.modify.swap import Subsampling
from sfumato.options import RunOptions
from tests.modify.tables import mixed, records_of, rows_of


def test_the_rows_drawn_are_rows_of_the_table_as_they_were() -> None:
    table = mixed()
    release = sf.sanitize(table, method="subsample", share=0.3, seed=1, report=False)
    assert release.table.num_rows == release.certificate.rows_out == 36
    assert release.certificate.rows_in == 120
    assert set(map(repr, rows_of(release.table))) <= set(map(repr, rows_of(table)))


def test_all_rows_of_a_person_are_drawn_together() -> None:
    table = mixed().append_column("who", pa.array([f"p{row % 30}" for row in range(120)]))
    plan = make_plan(table, Subsampling(share=0.2), RunOptions(person="who", seed=2))
    outcome = run_in_memory(table, plan)
    (fact,) = (fact for fact in outcome.facts if isinstance(fact, Sampled))
    assert (fact.persons, fact.drawn, fact.rows, fact.records, fact.by_person) == (30, 6, 24, 120, True)
    assert isinstance(outcome.comparison, Comparison)
    assert outcome.comparison.outside is not None
    assert outcome.comparison.records is not None
    whom = outcome.comparison.records.persons
    assert whom is not None
    assert (np.unique(whom, return_counts=True)[1] == 4).all()
    outside = set(outcome.comparison.outside["who"].to_pylist())
    assert len(outside) == 24
    assert not outside & {str(person) for person in whom}


def test_public_columns_stay_beside_the_rows_that_were_drawn() -> None:
    table = mixed().append_column("place", pa.array(range(120)))
    release = sf.sanitize(table, method="subsample", share=0.3, public=["place"], seed=1, report=False)
    at = release.table["place"].to_pylist()
    assert release.table["pay"].to_pylist() == [table["pay"][row].as_py() for row in at]


def test_everybody_has_the_same_chance() -> None:
    records = records_of(mixed(20))
    counts, tries = np.zeros(20), 2_000
    for seed in range(tries):
        found = Subsampling(share=0.25).sanitize(records, rng=np.random.default_rng(seed)).workings
        assert found is not None
        assert found.sample is not None
        counts[found.sample] += 1
    # a sum of 2000 draws of chance 1/4 lies within 6 deviations but for 2e-9; of 20 people 4e-8
    assert np.abs(counts - tries / 4).max() < 6 * math.sqrt(tries * 3 / 16)


def test_a_share_is_off_by_more_than_the_bound_in_few_samples() -> None:
    truth = np.arange(400) < 160
    off = [
        abs(truth[np.random.default_rng(seed).permutation(400)[:80]].mean() - 0.4) > sampling_error(400, 80)
        for seed in range(500)
    ]
    assert np.mean(off) <= 0.05  # Serfling's bound is far from tight: about 0.002 here


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"share": 1.0}, OptionError, "the share of people to draw must lie between 0 and 1"),
        ({"share": 0.001}, LevelError, "a share of 0.001 of 120 people is one alone"),
        ({"level": 3}, LevelError, "which sampling does not give"),
        ({"strata": "ill"}, OptionError, "sampling makes no groups"),
        ({"rows": 10}, OptionError, "'subsample' makes no synthetic rows"),
        ({"rare": "pool"}, OptionError, "has no level that rare values could be counted by"),
        ({"weight": "pay"}, OptionError, "weight"),
    ],
)
def test_what_a_sample_cannot_give_is_refused_in_a_sentence(options: dict[str, Any], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        sf.sanitize(mixed(), method="subsample", report=False, **options)
