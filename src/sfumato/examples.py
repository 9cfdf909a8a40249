"""The embedded example: scikit-learn's diabetes study, 442 patients, in the units it was recorded in."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["EXAMPLE_LEVELS", "patients"]

EXAMPLE_LEVELS = "age > 60: 10, else: 5"

_NAMES = {"bp": "blood_pressure", "s1": "cholesterol", "s2": "ldl", "s3": "hdl", "s4": "cholesterol_ratio"}
_NAMES |= {"s5": "log_triglycerides", "s6": "glucose"}


def patients() -> pa.Table:
    """Example table: real measurements, and a made-up patient code to be dropped.

    Examples
    --------
    >>> patients().shape
    (442, 12)
    """
    import numpy as np
    import pyarrow as pa
    from sklearn.datasets import load_diabetes

    data = load_diabetes(scaled=False)
    columns: dict[str, object] = {"patient": [f"P{number:04d}" for number in range(1, len(data.data) + 1)]}
    for name, values in zip(data.feature_names, data.data.T, strict=True):
        whole = bool((values == np.rint(values)).all())
        columns[_NAMES.get(name, name)] = values.astype(np.int64) if whole else values
    columns["sex"] = np.where(data.data[:, 1] == 1, "a", "b")
    columns["progression"] = data.target.astype(np.int64)
    return pa.table(columns)
