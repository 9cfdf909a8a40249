"""Geometry on a cluster: rows, order and facts of a file that goes through in batches, bit by bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.core.errors import OptionError
from sfumato.methods.geometry.key import Add, Key, Mult, Rotate
from sfumato.publish.verify import verify_release
from tests.spark.sessions import session

pytest.importorskip("pyspark", reason="the extra 'spark' is not installed; make test-spark has it")
pytestmark = pytest.mark.filterwarnings("ignore")  # of pyspark's own


def people(rows: int = 1003) -> pa.Table:
    rng = np.random.default_rng(3)
    return pa.table(
        {
            "name": [f"n{row}" for row in range(rows)],
            "note": pa.nulls(rows, pa.string()),
            "age": rng.integers(20, 65, rows),
            "pay": pa.array(rng.normal(40_000, 9_000, rows).round(2), mask=rng.random(rows) < 0.1),
            "debt": rng.normal(size=rows),
            "town": rng.choice(["=a", "b", "c"], rows),
        }
    )


KEY = Key((Add("age", 7.5), Mult("pay", 1.7), Rotate(("pay", "debt"), 33.0, (1000.0, 1.0))))
HYBRID = sf.Hybrid(pass_categories=True, key=KEY)
TOLD: dict[str, Any] = {"identifiers": ["name", "note"], "seed": 5, "report": False}


def test_moved_rows_are_those_of_a_file_in_batches(tmp_path: Path) -> None:
    table = people()
    with session("local[2]", **{"spark.sql.files.maxPartitionBytes": "20000"}) as spark:
        rows = spark.createDataFrame(table).repartitionByRange(3, "name").sortWithinPartitions("name").persist()
        pa.parquet.write_table(rows.toArrow(), tmp_path / "rows.parquet")
        whole = sf.sanitize(tmp_path / "rows.parquet", HYBRID, folder=tmp_path / "hybrid", engine="partitions", **TOLD)
        found = sf.sanitize(rows, HYBRID, **TOLD)
        written = pa.parquet.read_table(whole.table)
        assert found.table.toArrow().cast(written.schema).equals(written)
        assert found.certificate.facts == whole.certificate.facts
        assert found.key == KEY
        pa.parquet.write_table(table, tmp_path / "people.parquet", row_group_size=150)
        told: dict[str, Any] = {"batch_rows": 100, **TOLD}
        releases, keys = [], []
        for engine in ("partitions", "spark"):
            keys.append(tmp_path / f"{engine}.key.toml")
            releases.append(
                sf.sanitize(
                    tmp_path / "people.parquet",
                    sf.Rotation(pass_categories=True),
                    folder=tmp_path / engine,
                    engine=engine,
                    master="local[2]" if engine == "spark" else None,
                    new_key=keys[-1],
                    **told,
                )
            )
        one, two = (pa.parquet.read_table(release.table) for release in releases)
        assert one.equals(two)
        assert releases[0].certificate.facts == releases[1].certificate.facts
        assert Key.load(keys[0]) == Key.load(keys[1])
        with pytest.raises(OptionError, match="level= needs all rows at once"):
            sf.sanitize(rows, HYBRID, level=5, **TOLD)
    checks = verify_release(tmp_path / "spark" / "release")
    assert [check.name for check in checks if not check.holds] == ["made for release"]
