"""A whole release of a geometric method in Python."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess import measure
from sfumato.assess.utility.clustering import CLUSTERING, OWN_CLUSTERS
from sfumato.methods.geometry import Rotation, Translation
from sfumato.methods.geometry.transformations import invert
from sfumato.tables.schema import Domain, Field, Kind, Schema

pytestmark = pytest.mark.usefixtures("without_figures")


def test_moved_columns_leave_without_their_declared_domain() -> None:
    table = pa.table({"age": np.arange(20, 60), "pay": np.arange(40) * 10.0})
    domain = Domain(declared=True, low=0, high=120)
    schema = Schema((Field("age", Kind.INTEGER, domain=domain), Field("pay", Kind.CONTINUOUS)))
    release = sf.sanitize(table, Translation(shifts={"age": (500, 600)}), schema=schema, report=False)
    assert release.table.column("age").to_numpy().min() > 500
    assert all(not field.domain.declared for field in release.released)
    assert release.key is not None
    assert "key" not in repr(release).lower()


def test_public_columns_stay_beside_their_own_rows() -> None:
    rng = np.random.default_rng(1)
    group = rng.choice(["x", "y"], 100)
    table = pa.table(
        {"g": group, "a": np.where(group == "x", 1000.0, 0.0) + rng.normal(size=100), "b": rng.normal(size=100)}
    )
    release = sf.sanitize(table, Rotation(degrees=(10, 80)), public=["g"], report=False)
    assert release.table.column_names == ["g", "a", "b"]
    assert release.key is not None
    values = np.column_stack([release.table.column(name).to_numpy() for name in ("a", "b")])
    back = invert(values, release.key, ("a", "b"))
    assert ((back[:, 0] > 500) == (release.table.column("g").to_numpy(zero_copy_only=False) == "x")).all()


def test_a_rotation_keeps_the_clusters_of_its_rows_and_its_centres_are_not_compared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measure, "catalogue", lambda: (CLUSTERING, OWN_CLUSTERS))
    rng = np.random.default_rng(3)
    far = np.repeat([[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]], 60, axis=0) + rng.normal(size=(120, 3))
    table = pa.table({name: far[:, place] for place, name in enumerate("abc")})
    report = sf.sanitize(table, sf.Rotation(), seed=1).report
    assert report is not None
    assert report["misclassification-error"].value == 0.0
    assert report["clustering-error"].status == "not-run"
