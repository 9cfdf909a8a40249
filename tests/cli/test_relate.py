"""relate on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np

from sfumato.core.distributions.domains import Integers, Labels
from sfumato.core.distributions.spec import NoiseSpec
from tests.cli.conftest import Run

PAY = NoiseSpec(Integers(0, 99), {"name": "laplace", "scale": 15})
SEX = NoiseSpec(Labels(("f", "m")), {"name": "response", "epsilon": 1.5})


def test_two_columns_are_related_printed_and_written(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    sex = rng.integers(0, 2, 2_000)
    pay = np.clip(30 + 30 * sex + rng.normal(0, 9, 2_000).round(), 0, 99)
    (tmp_path / "pay.toml").write_text(PAY.to_toml())
    (tmp_path / "sex.toml").write_text(SEX.to_toml())
    cells = zip(PAY.randomize(pay, rng), SEX.randomize(SEX.domain.decode(sex), rng), strict=True)
    (tmp_path / "in.csv").write_text("pay,sex\n?,m\n" + "".join(f"{one},{other}\n" for one, other in cells))
    base = ("relate", tmp_path / "in.csv", "--column", "pay", "--to", "sex", "--spec", tmp_path / "pay.toml")
    whole = (*base, "--to-spec", tmp_path / "sex.toml", "--intervals", 2)
    outcome = run(*whole, "--json")
    assert outcome.code == 0
    found = json.loads(outcome.out)
    assert abs(found["regression"]["slope"]["value"] - 30) < 5 * found["regression"]["slope"]["standard_error"]
    assert (found["missing"], found["records"]) == (1, 2_000)
    outcome = run(*whole, "-o", tmp_path / "out.csv")
    assert outcome.code == 0
    assert "Line: slope: " in outcome.out
    assert "1 records without one of the values were skipped" in outcome.out
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [row["sex"] for row in rows] == ["f", "m", "f", "m"]
    assert abs(sum(float(row["probability"]) for row in rows) - 1) < 1e-9
    assert run(*whole, "-o", tmp_path / "out.csv").code == 2
    assert run(*whole, "-o", tmp_path / "out.txt").code == 2
    outcome = run(*base)  # the law of pay cannot have sent a label
    assert outcome.code == 2
    assert "column 'sex' holds values that are no numbers" in outcome.err
    assert len(outcome.err.strip().splitlines()) == 1
