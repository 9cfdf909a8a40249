"""Other tools' synthetic tables, each in an environment of its own: ``python frontier_peers.py NAME FOLDER SEED``.

FOLDER holds ``inside.csv`` and ``columns.json`` (names, categories, target); ``released.csv`` is written beside them.
Runs in the environment of the tool, without sfumato.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

__all__ = ["ENVIRONMENTS", "PEERS", "UNFIT"]

ENVIRONMENTS = {
    "sdv": ("sdv", "copulas", "arfpy"),
    "mostlyai": ("mostlyai-engine",),
    "dpmm": ("dpmm", "numpy<2"),
}
UNFIT = {"mostlyai": ("torchvision", "torchaudio")}
"""What is taken out again: tables need neither, and beside a torch without CUDA the tool does not load with them."""
PEERS = {
    "arf": "sdv",
    "gaussian-copula": "sdv",
    "tvae": "sdv",
    "ctgan": "sdv",
    "mostlyai": "mostlyai",
    "mst-eps1": "dpmm",
    "mst-eps10": "dpmm",
    "aim-eps1": "dpmm",
    "aim-eps10": "dpmm",
}
"""What is tried, and the environment that has it."""


def _read(folder: Path) -> tuple[Any, dict[str, Any]]:
    import pandas as pd

    columns = json.loads((folder / "columns.json").read_text())
    texts = dict.fromkeys(columns["categories"], str)
    return pd.read_csv(folder / "inside.csv", dtype=texts, keep_default_na=False, na_values=[""]), columns


def _arf(table: Any, columns: dict[str, Any], seed: int) -> Any:
    import numpy as np

    if not hasattr(np, "in1d"):
        np.in1d = np.isin  # noqa: NPY201 (arfpy calls it; numpy has dropped it)
    from arfpy import arf

    np.random.seed(seed)  # noqa: NPY002 (the tool draws from it)
    filled = table.copy()
    for name in filled:  # it knows no missing cells
        if name in columns["categories"]:
            filled[name] = filled[name].fillna("missing").astype("category")
        else:
            filled[name] = filled[name].fillna(filled[name].median())
    model = arf.arf(x=filled, random_state=seed, verbose=False)
    model.forde()
    return model.forge(n=len(table))


def _sdv(kind: str) -> Any:
    def make(table: Any, columns: dict[str, Any], seed: int) -> Any:
        import numpy as np
        import torch
        from sdv import single_table
        from sdv.metadata import Metadata

        np.random.seed(seed)  # noqa: NPY002 (the tool draws from it)
        torch.manual_seed(seed)
        torch.set_num_threads(2)
        metadata = Metadata.load_from_dict(
            {
                "tables": {
                    "table": {
                        "columns": {
                            name: {"sdtype": "categorical" if name in columns["categories"] else "numerical"}
                            for name in table
                        }
                    }
                }
            }
        )
        model = getattr(single_table, f"{kind}Synthesizer")(metadata)
        model.fit({"table": table})
        return model.sample(len(table))["table"]

    return make


def _mostlyai(table: Any, columns: dict[str, Any], seed: int) -> Any:
    import tempfile

    from mostlyai import engine

    engine.set_random_state(seed)
    with tempfile.TemporaryDirectory() as home:
        kinds = {
            name: "TABULAR_CATEGORICAL" if name in columns["categories"] else "TABULAR_NUMERIC_AUTO" for name in table
        }
        engine.split(workspace_dir=home, tgt_data=table, tgt_encoding_types=kinds)
        engine.analyze(workspace_dir=home)
        engine.encode(workspace_dir=home)
        engine.train(workspace_dir=home, max_training_time=10.0)
        engine.generate(workspace_dir=home, sample_size=len(table))
        import pandas as pd

        return pd.read_parquet(Path(home) / "SyntheticData")


def _dpmm(kind: str, epsilon: float) -> Any:
    def make(table: Any, columns: dict[str, Any], seed: int) -> Any:
        from dpmm import pipelines

        filled, domain = table.copy(), {}  # it knows missing cells
        for name in filled:
            if name in columns["categories"]:
                filled[name] = filled[name].astype("category")
                domain[name] = {"categories": list(columns["categories"][name])}
            else:
                filled[name] = filled[name].astype(float)
                domain[name] = {"lower": float(filled[name].min()), "upper": float(filled[name].max())}
        most = {"max_model_size": 80} if kind == "AIM" else {}  # megabytes, as its authors advise
        model = getattr(pipelines, f"{kind}Pipeline")(
            epsilon=epsilon, delta=1e-5, proc_epsilon=0.1 * epsilon, n_jobs=1, **most
        )
        model.fit(filled, domain, random_state=seed)
        return model.generate(n_records=len(table), random_state=seed)

    return make


_MAKERS = {
    "arf": _arf,
    "gaussian-copula": _sdv("GaussianCopula"),
    "tvae": _sdv("TVAE"),
    "ctgan": _sdv("CTGAN"),
    "mostlyai": _mostlyai,
    "mst-eps1": _dpmm("MST", 1.0),
    "mst-eps10": _dpmm("MST", 10.0),
    "aim-eps1": _dpmm("AIM", 1.0),
    "aim-eps10": _dpmm("AIM", 10.0),
}

if __name__ == "__main__":
    name, home, chance = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    rows, layout = _read(home)
    made = _MAKERS[name](rows, layout, chance)
    made[layout["names"]].to_csv(home / "released.csv", index=False)
