"""Groups that vary in nothing that is drawn come out as they went in, and are counted."""

from __future__ import annotations

import warnings
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.groups import count_near_identical
from sfumato.core.groups.facts import Grouped
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.publish.verify import verify_release


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), st.integers(0, 1), st.integers(0, 3)), min_size=1))
def test_a_row_counts_where_its_group_has_one_number_and_at_most_one_other_column_varies(
    rows: list[tuple[int, int, int, int]],
) -> None:
    number, one, two, labels = (np.array(column) for column in zip(*rows, strict=True))
    alike = 0
    for group in set(labels.tolist()):
        inside = labels == group
        varying = sum(len(set(column[inside].tolist())) > 1 for column in (one, two))
        if len(set(number[inside].tolist())) == 1 and varying <= 1:
            alike += int(inside.sum())
    assert count_near_identical([(number, True), (one, False), (two, False)], labels) == alike


def released(table: pa.Table, mechanism: object, tails: str | None = None) -> sf.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sf.sanitize(table, mechanism, tails=tails, report=False)  # type: ignore[arg-type]


def said(release: sf.Release) -> str:
    return " ".join(claim.claim for claim in release.certificate.claims)


def test_records_that_stand_alone_are_copies_and_no_claim_denies_it(tmp_path: object) -> None:
    rng = np.random.default_rng(5)
    table = pa.table({"age": rng.integers(20, 90, 8), "pay": rng.integers(1000, 9000, 8)})
    release = released(table, sf.Condensation(k=1, allow_level_1=True))
    rows = {tuple(row.values()) for row in table.to_pylist()}
    assert all(tuple(row.values()) in rows for row in release.table.to_pylist()), "eight verbatim copies"
    assert "with others" not in said(release)
    assert "copied" not in said(release)
    refused = {each.claim: each.reason for each in release.certificate.refused}
    assert refused["No released row is an original record."].startswith("8 rows come from groups")
    assert refused["Every record is protected."].startswith("8 records of level 1 form groups of one")
    assert all(check.holds for check in verify_release(release.save(f"{tmp_path}/out") / "release"))


@pytest.mark.parametrize(
    ("mechanism", "tails"),
    [(sf.Condensation(k=6), "keep"), (LaplacePCA(k=6), None)],
    ids=["condense", "laplace-pca"],
)
def test_equal_records_come_out_as_they_are_and_the_certificate_says_so(mechanism: object, tails: str | None) -> None:
    town = ["Oslo"] * 8 + ["Ulm"] * 4
    table = pa.table({"age": [30] * 12 + [70 + place for place in range(12)], "town": town * 2})
    release = released(table, mechanism, tails)
    (grouped,) = [fact for fact in release.certificate.facts if isinstance(fact, Grouped)]
    assert grouped.alike == 12
    originals, copies = (
        Counter(tuple(row.values()) for row in each.to_pylist() if row["age"] == 30) for each in (table, release.table)
    )
    assert originals == copies
    because = [each.reason for each in release.certificate.refused]
    assert any(each.startswith(("12 rows come from groups", "12 records are in groups")) for each in because)
    assert "no record was copied" not in said(release)


def test_records_that_differ_are_drawn_and_the_claim_stands() -> None:
    rng = np.random.default_rng(5)
    release = released(pa.table({"age": rng.normal(size=40), "pay": rng.normal(size=40)}), sf.Condensation(k=5))
    assert "no record was copied" in said(release)
    assert "condensed with others" in said(release)
