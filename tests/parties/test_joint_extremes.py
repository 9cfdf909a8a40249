"""One person alone at the end of a column changes nothing that the release of several owners shows."""

from __future__ import annotations

import datetime
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties.plan import JointPlan
from sfumato.parties.publish import joint_in_one_process, own_part
from sfumato.publish.release import Release
from sfumato.tables.facts import TailsCoded
from sfumato.tables.field import DateStep
from sfumato.tables.schema import Domain, Field, Kind, Schema

N, K = 300, 20
FIRST = datetime.date(2024, 1, 1)
Draw = Callable[[np.random.Generator], NDArray[np.float64]]

COLUMNS: dict[str, tuple[Kind, float, float, Draw, float]] = {
    "visits": (Kind.INTEGER, 0, 100, lambda rng: np.minimum(rng.poisson(2.0, N), 6.0), 40),
    "age": (Kind.INTEGER, 0, 150, lambda rng: rng.integers(18, 90, N).astype(np.float64), 140),
    "bmi": (Kind.CONTINUOUS, 0, 200, lambda rng: np.clip(rng.normal(26, 3, N), 18, 36).round(1), 150.0),
    "date": (Kind.DATE, -4000, 4000, lambda rng: rng.integers(0, 90, N).astype(np.float64), 3000),
    "pay": (Kind.CONTINUOUS, 0, 1e6, lambda rng: np.minimum(rng.lognormal(8, 0.5, N).round(), 12_000), 950_000.0),
    "debt": (Kind.CONTINUOUS, -1e6, 0, lambda rng: -np.minimum(rng.lognormal(8, 0.5, N).round(), 12_000), -950_000.0),
}
"""Kind, declared bounds, values of everybody, and that of the extreme person; of dates in days since the first."""


def cells(kind: Kind, values: NDArray[np.float64]) -> pa.Array:
    if kind is Kind.DATE:
        return pa.array([FIRST + datetime.timedelta(days=int(day)) for day in values.tolist()], pa.date32())
    return pa.array(values.astype(np.int64) if kind is Kind.INTEGER else values.astype(np.float64))


def domain(kind: Kind, low: float, high: float) -> Domain:
    if kind is Kind.DATE:
        ends = [datetime.datetime.combine(FIRST, datetime.time()) + datetime.timedelta(days=day) for day in (low, high)]
        return Domain(True, ends[0], ends[1], DateStep.DAY)
    return Domain(True, low, high)


def release_of(name: str, partition: str, *, extreme: bool) -> tuple[Release, NDArray[np.float64]]:
    """Release of two owners, almost without noise, and the values of everybody but the first person."""
    kind, low, high, draw, far = COLUMNS[name]
    rng = np.random.default_rng(7)
    values = draw(rng)
    others = values[1:].copy()
    values[0] = far if extreme else values[0]
    x, z = cells(kind, values), pa.array(rng.integers(0, 50, N))
    fields = [Field("x", kind, domain=domain(kind, low, high)), Field("z", Kind.INTEGER, domain=Domain(True, 0, 50))]
    mechanism = LaplacePCA(k=K, b=0.01)
    if partition == "columns":
        keys = [f"p{place}" for place in range(N)]
        owned = [pa.table({"key": keys, "x": x}), pa.table({"key": keys, "z": z})]
        plan = JointPlan("vertical", ("bank", "shop"), mechanism, rounds=2, seed=3)
        schemas = [Schema((field,)) for field in fields]
        return joint_in_one_process(owned, plan, schemas=schemas, key="key", report=False)[0], others
    table = pa.table({"x": x, "z": z})
    plan = JointPlan("horizontal", ("bank", "shop"), mechanism, rounds=2, few="allow", rows_are_people=True, seed=3)
    schemas = [Schema(tuple(fields))] * 2
    return joint_in_one_process([table[:120], table[120:]], plan, schemas=schemas, report=False)[0], others


def numbers(release: Release, name: str) -> NDArray[np.float64]:
    cells = release.table.column("x").to_pylist()
    return np.array(
        [(cell - FIRST).days if COLUMNS[name][0] is Kind.DATE else cell for cell in cells], dtype=np.float64
    )


@pytest.mark.parametrize("partition", ["columns", "rows"])
@pytest.mark.parametrize("name", COLUMNS)
def test_one_extreme_person_leads_no_value_beyond_those_of_the_others(name: str, partition: str) -> None:
    """With b = 0.01 the noise is below a tenth of the range of everybody else's values."""
    shown = {}
    for extreme in (False, True):
        release, others = release_of(name, partition, extreme=extreme)
        shown[extreme] = numbers(release, name)
        reach = 0.1 * np.ptp(others)
        assert others.min() - reach <= shown[extreme].min() <= shown[extreme].max() <= others.max() + reach
    apart = 0.1 * np.ptp(others)
    for summary in (np.min, np.max, np.mean, np.std):
        assert abs(summary(shown[True]) - summary(shown[False])) <= apart


@pytest.mark.parametrize("partition", ["columns", "rows"])
def test_the_certificate_states_how_many_persons_a_cut_off_is_computed_from(partition: str) -> None:
    release, _ = release_of("pay", partition, extreme=True)
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, TailsCoded))
    assert fact == TailsCoded("code", 10, 2)
    (claim,) = (claim for claim in release.certificate.claims if "cut-off" in claim.claim)
    assert "at least 10 persons" in claim.claim
    assert ("neighbouring common value" in claim.basis) == (partition == "columns")


def test_owners_of_columns_encode_the_rows_that_their_codec_was_made_on() -> None:
    """Tails that were drawn once more had other squares: 18 of 40 draws on Concrete did not fit."""
    rng = np.random.default_rng(4)
    keys, skewed = np.arange(300), np.exp(1.5 * rng.standard_normal(300)).round(2)
    owned = [pa.table({"key": keys, "gain": skewed}), pa.table({"key": keys, "age": rng.integers(20, 80, 300)})]
    plan = JointPlan("vertical", ("bank", "shop"), LaplacePCA(k=60), rounds=2)
    for rank, table in enumerate(owned):
        part = own_part(plan, rank, table, key="key")
        assert part.codec is not None
        assert part.coded is not None
        squares = np.square(part.codec.encode(part.coded).values).sum(axis=0)
        np.testing.assert_allclose(squares, 300.0, rtol=1e-9)
    for _ in range(6):  # of draws that differed each had to fit by chance
        assert joint_in_one_process(owned, plan, key="key", report=False)[0].table.num_rows == 300
