"""Rows drawn from a file in one pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from sfumato.core.errors import OptionError
from sfumato.engines.partitions.sampling import sample_file


def save(folder: Path, rows: int) -> Path:
    path = folder / "in.parquet"
    table = pa.table({"x": np.arange(rows), "y": -np.arange(rows)})
    pa.parquet.write_table(table, path, row_group_size=max(1, rows // 7))
    return path


def test_a_sample_holds_different_rows_in_the_order_of_the_file(tmp_path: Path) -> None:
    table = sample_file(save(tmp_path, 200_000), 500, np.random.default_rng(1))
    drawn = table.column("x").to_numpy()
    assert len(drawn) == 500
    assert (np.diff(drawn) > 0).all()
    assert (table.column("y").to_numpy() == -drawn).all()


def test_a_file_with_no_more_rows_comes_whole(tmp_path: Path) -> None:
    assert sample_file(save(tmp_path, 30), 30, np.random.default_rng(1)).column("x").to_pylist() == list(range(30))
    assert sample_file(save(tmp_path, 30), 99, np.random.default_rng(1), columns=["y"]).column_names == ["y"]


def test_every_row_is_drawn_equally_often(tmp_path: Path) -> None:
    path, times = save(tmp_path, 40), np.zeros(40)
    rng = np.random.default_rng(3)
    for _ in range(500):
        times[sample_file(path, 10, rng).column("x").to_numpy()] += 1
    # 500 draws of chance 1/4: mean 125, deviation 9.7; six deviations are beyond any seed
    assert np.abs(times - 125).max() < 6 * 9.7


def test_a_sample_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="0 rows"):
        sample_file(save(tmp_path, 5), 0, np.random.default_rng(1))
    with pytest.raises(OptionError, match="no column 'z'"):
        sample_file(save(tmp_path, 5), 2, np.random.default_rng(1), columns=["z"])
