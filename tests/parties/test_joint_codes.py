"""Joint runs with a column of very many categories: it leaves with the categories of its groups."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import SchemaError
from sfumato.core.groups.facts import CountsKept
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties.facts import Opened
from sfumato.parties.plan import JointPlan
from sfumato.parties.publish import joint_in_one_process, own_part
from sfumato.publish.verify import verify_release
from sfumato.tables.schema import Domain, Field, Kind, Schema

N, CODES, NAMES = 480, 400, ("bank", "clinic", "shop")
LABELS = tuple(f"c{place:03d}" for place in range(CODES))


def rows_of_all(*, gaps: bool) -> pa.Table:
    rng = np.random.default_rng(4)
    code = rng.integers(0, CODES, N)
    lost = rng.random(N) < 0.1 if gaps else np.zeros(N, dtype=bool)
    return pa.table(
        {
            "person": [f"secret-{row}" for row in range(N)],
            "code": [None if gone else LABELS[each] for each, gone in zip(code, lost, strict=True)],
            "cost": (code / 20.0 + rng.normal(size=N)).round(2),
            "age": rng.integers(20, 80, N),
        }
    )


def declared(labels: tuple[str, ...] = LABELS) -> Schema:
    return Schema(
        (
            Field("code", Kind.NOMINAL, domain=Domain(declared=True, categories=labels)),
            Field("cost", Kind.CONTINUOUS, domain=Domain(declared=True, low=-20, high=40)),
            Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=120)),
        )
    )


def released(plan: JointPlan, tables: list[pa.Table], folder: Path, **told: Any) -> Any:
    folders = [folder / name for name in plan.parties]
    releases = joint_in_one_process(tables, plan, folders=folders, report=False, **told)
    assert len({str(release.table.to_pylist()) for release in releases}) == 1
    for place in folders:
        broken = [check.name for check in verify_release(place / "release") if not check.holds]
        assert broken == ["made for release"]
    return releases[0]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("partition", ["horizontal", "vertical"])
def test_categories_of_all_owners_come_out_in_the_numbers_that_went_in(
    partition: str, gaps: bool, tmp_path: Path
) -> None:
    table = rows_of_all(gaps=gaps)
    plan = JointPlan(partition, NAMES, LaplacePCA(k=60), seed=3)
    if partition == "horizontal":
        tables = [table.drop_columns(["person"]).slice(first, 160) for first in (0, 160, 320)]
        release = released(plan, tables, tmp_path, schemas=[declared()] * 3)
        assert "group categories" in {fact.label for fact in release.certificate.facts if isinstance(fact, Opened)}
    else:
        rng = np.random.default_rng(5)
        tables = [table.select(["person", name]).take(rng.permutation(N)) for name in ("code", "cost", "age")]
        release = released(plan, tables, tmp_path, key="person")
        told = {fact.label for fact in release.certificate.facts if isinstance(fact, Opened)}
        assert "categories of own columns" in told
    assert Counter(release.table.column("code").to_pylist()) == Counter(table.column("code").to_pylist())
    (kept,) = (fact for fact in release.certificate.facts if isinstance(fact, CountsKept))
    assert kept.category_columns == 1
    places = [-1 if each is None else int(each[1:]) for each in release.table.column("code").to_pylist()]
    there = np.array(places) >= 0
    assert np.corrcoef(np.array(places)[there], release.table.column("cost").to_numpy()[there])[0, 1] > 0.6


def test_owners_of_rows_declare_the_categories_and_not_too_many(tmp_path: Path) -> None:
    table = rows_of_all(gaps=False).drop_columns(["person"])
    plan = JointPlan("horizontal", NAMES, LaplacePCA(k=60), seed=3)
    open_domain = Schema((Field("code", Kind.NOMINAL), *declared().fields[1:]))
    with pytest.raises(SchemaError, match="categories of column 'code' are not declared"):
        own_part(plan, 0, table, schema=open_domain)
    many = tuple(f"c{place:06d}" for place in range(20_001))
    with pytest.raises(SchemaError, match=r"lists 20001 categories .* list wider ones"):
        own_part(plan, 0, table, schema=declared(many))
