"""Cut-offs that owners of rows find together: enough persons reach each, and only comparisons are opened."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.parties.codecs import LEAKS as CODEC_LEAKS
from sfumato.parties.codecs import count_cells
from sfumato.parties.row_tails import LEAKS, joint_tails
from sfumato.parties.session import Session
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.schema import Schema
from sfumato.tables.tails import Tails
from tests.examples import examples
from tests.parties.conftest import Together

NAMES = ("ann", "bob", "cy")
SCHEMA = Schema(
    (
        Field("age", Kind.INTEGER, domain=Domain(True, 0, 120)),
        Field("pay", Kind.CONTINUOUS, domain=Domain(True, 0.0, 1e12, step=0.5)),
        Field("heat", Kind.CONTINUOUS, domain=Domain(True, -1e9, 1e9)),
        Field("town", Kind.NOMINAL, domain=Domain(True, categories=("a", "b"))),
    )
)


def people(rng: np.random.Generator, n: int) -> pa.Table:
    heat = [None if gone else each for each, gone in zip(rng.normal(size=n).tolist(), rng.random(n) < 0.2, strict=True)]
    return pa.table(
        {
            "age": rng.integers(0, 6, n),
            "pay": (rng.lognormal(8, 1, n) * 2).round() / 2,
            "heat": pa.array(heat, pa.float64()),
            "town": rng.choice(["a", "b"], n),
        }
    )


def tails_of(together: Together, table: pa.Table, cuts: list[int], k: int) -> list[tuple[Tails, list[tuple[str, str]]]]:
    ends = [0, *cuts, table.num_rows]
    tables = [table.slice(a, b - a) for a, b in itertools.pairwise(ends)]

    def play(session: Session, rank: int) -> tuple[Tails, list[tuple[str, str]]]:
        counts = count_cells(session, tables[rank], SCHEMA, few="allow")
        first = len(session.transcript.entries)
        tails = joint_tails(session, tables[rank], SCHEMA, counts, k)
        return tails, [(entry.action, entry.label) for entry in session.transcript.entries[first:]]

    return together(play, NAMES[: len(tables)], {**CODEC_LEAKS, **LEAKS})


@examples(25, few=5)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 10), n=st.integers(60, 200))
def test_at_least_k_values_reach_a_cut_off_and_fewer_than_2k_lie_beyond_it(
    together: Together, seed: int, k: int, n: int
) -> None:
    rng = np.random.default_rng(seed)
    table = people(rng, n)
    seen = tails_of(together, table, np.sort(rng.integers(0, n + 1, 2)).tolist(), k)
    assert len({str(tails.bounds) for tails, _ in seen}) == 1
    for name, tail in seen[0][0].columns.items():
        values = np.array([each for each in table.column(name).to_pylist() if each is not None], dtype=np.float64)
        assert (values >= tail.high).sum() >= k
        assert (values <= tail.low).sum() >= k
        assert (values > tail.high).sum() < 2 * k
        assert (values < tail.low).sum() < 2 * k
        assert tail.low <= tail.high


@pytest.mark.parametrize("n", [1, 2, 5, 12, 30])
def test_cut_offs_of_few_persons_are_within_the_declared_bounds_and_in_order(together: Together, n: int) -> None:
    table = people(np.random.default_rng(n), n).set_column(2, "heat", pa.array(np.arange(n) / 7.0))
    tails, _ = tails_of(together, table, [n // 2], 10)[0]
    for name, tail in tails.columns.items():
        domain = SCHEMA[name].domain
        assert domain.low <= tail.low <= tail.high <= domain.high  # type: ignore[operator]


def test_only_comparisons_with_k_and_2k_are_opened(together: Together) -> None:
    _, steps = tails_of(together, people(np.random.default_rng(1), 90), [30, 60], 5)[0]
    assert {step for step in steps if step[0] in ("opened", "sum", "told")} == {("opened", "values beyond thresholds")}


def test_cut_offs_are_drawn_anew_in_each_run(together: Together) -> None:
    table = people(np.random.default_rng(2), 120)
    found = {tails_of(together, table, [50], 10)[0][0].columns["heat"].high for _ in range(4)}
    assert len(found) > 1
