"""Noise in cells: measured by the deviations of the whole file, with chance of each cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import sfumato as sf
from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal
from sfumato.core.facts import HeldOut, PassedThrough, Shuffled
from sfumato.core.groups.facts import Partitioned
from sfumato.engines.outcome import Comparison
from sfumato.engines.partitions import first_pass
from sfumato.engines.partitions import run as engine
from sfumato.engines.plan import make_plan, prepare
from sfumato.methods.perturb.facts import Noised
from sfumato.options import RunOptions
from sfumato.publish import sanitize as sanitizing
from sfumato.publish.verify import verify_release
from sfumato.tables.source import open_source
from tests.partitions.test_partitions import people, run, the


def numbers() -> pa.Table:
    """Numbers, whole ones, dates and missing cells, with a few that lie far out."""
    rng, table = np.random.default_rng(2), people().select(["age", "since", "pay"])
    pay = table.column("pay").to_numpy() ** 3
    gone = np.arange(900) % 11 == 3
    table = table.set_column(2, "pay", pa.array(pay, mask=gone))
    return table.append_column("seen", pa.array(np.datetime64("2020-01-01") + rng.integers(0, 900, 900)))


@pytest.fixture
def few_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small a sample that its deviations are not those of the table."""
    monkeypatch.setattr(first_pass, "SAMPLE_ROWS", 60)


@pytest.mark.usefixtures("few_seen")
def test_noise_counts_in_deviations_of_the_whole_table_and_not_of_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    table, seen = numbers(), list[Any]()
    usual = engine.with_exact_moments

    def watched(*told: Any) -> Any:
        seen.extend([told[0].job.codec, (done := usual(*told)).job.codec])
        return done

    monkeypatch.setattr(engine, "with_exact_moments", watched)
    run(table, sf.AdditiveNoise(), no_rules=True)
    plan = make_plan(table, sf.AdditiveNoise(), RunOptions(rows_are_people=True, no_rules=True))
    whole = {column.field.name: column for column in prepare(table, plan).codec.columns}
    sampled, exact = ({column.field.name: column for column in codec.columns} for codec in seen)
    for name, column in whole.items():
        assert abs(sampled[name].scale / column.scale - 1.0) > 1e-3
        np.testing.assert_allclose(exact[name].scale, column.scale, rtol=1e-12)
        np.testing.assert_allclose(exact[name].mean, column.mean, rtol=1e-12)
        for own, theirs in zip(exact[name].blocks, column.blocks, strict=True):
            assert own.kind is theirs.kind
            assert own.column == theirs.column
            for unit in ("centre", "scale"):
                one, two = getattr(own, unit), getattr(theirs, unit)
                assert (one is None) == (two is None)
                assert one is None or np.isclose(one, two, rtol=1e-12)


@pytest.mark.usefixtures("few_seen")
def test_a_table_and_its_file_get_the_same_noise_however_they_are_read(tmp_path: Path) -> None:
    table = numbers()
    told: dict[str, Any] = {"holdout": 0.2, "no_rules": True}
    first = run(table, sf.AdditiveNoise(law="laplace", size=0.5), **told)
    pa.parquet.write_table(table, tmp_path / "people.parquet", row_group_size=77)
    again = run(open_source(tmp_path / "people.parquet"), sf.AdditiveNoise(law="laplace", size=0.5), **told)
    assert isinstance(first.table, pa.Table)
    assert first.table.equals(again.table)
    assert first.facts == again.facts
    assert (the(Noised, first).columns, the(PassedThrough, first).missing_columns) == (4, 1)
    assert the(Shuffled, first).rows == first.rows_out == 900 - the(HeldOut, first).rows
    assert not any(isinstance(fact, Partitioned) for fact in first.facts)
    compared, workings = first.comparison, first.workings
    assert isinstance(compared, Comparison)
    assert workings.origin is not None
    assert sorted(workings.origin.tolist()) == list(range(first.rows_out))
    original, released = (each.column("since").to_numpy() for each in (compared.original, compared.released))
    deviation = table.column("since").to_numpy().std()
    # of 720 Laplace draws the deviation itself deviates by 2.1 % (square root of (6 - 1) / 4 / n): nine times that
    assert abs((released - original[workings.origin]).std() / deviation - 0.5) < 0.1


def test_chance_differs_between_cells_and_multiplied_numbers_keep_their_zeros() -> None:
    table = pa.table({"pay": np.repeat(np.arange(300.0), 3), "debt": np.tile(np.arange(9.0) / 7, 100)})
    outcome = run(table, sf.MultiplicativeNoise(size=0.1), most_rows=200)
    compared, workings = outcome.comparison, outcome.workings
    assert isinstance(compared, Comparison)
    assert workings.origin is not None
    before = compared.original.take(pa.array(workings.origin)).column("debt").to_numpy()
    after = compared.released.column("debt").to_numpy()
    assert the(Noised, outcome).kind == "multiplicative"
    assert np.abs(after[before == 0]).max() < 1e-6  # noughts stay, but for the grid of the noise
    factors = after[before > 8 / 7 - 1e-9] / (8 / 7)
    assert abs(factors.std() - 0.1) < 0.05
    assert len(np.unique(factors)) > 20


@pytest.mark.parametrize(
    ("told", "error", "words"),
    [
        ({"level": 5}, LevelError, "have a privacy level, which noise does not give"),
        ({"strata": "town"}, PrivacyRefusal, "columns are categories"),
    ],
)
def test_what_noise_does_not_give_is_refused_before_rows_are_cut(told: dict[str, Any], error: Any, words: str) -> None:
    table = people().select(["age", "pay", "town"] if "strata" in told else ["age", "pay"])
    with pytest.raises(error, match=words):
        run(table, sf.AdditiveNoise(), **told)
    if "strata" in told:
        with pytest.raises(OptionError, match="makes no groups, so it takes no strata"):
            run(table, sf.AdditiveNoise(pass_categories=True), **told)


def test_the_folder_of_noise_in_cells_verifies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sanitizing, "partition_rows", lambda *_: 250)
    pa.parquet.write_table(numbers(), tmp_path / "people.parquet")
    told: dict[str, Any] = {"method": "noise", "size": 0.5, "report": False, "rows_are_people": True}
    release = sf.sanitize(tmp_path / "people.parquet", folder=tmp_path / "out", engine="partitions", **told)
    assert release.certificate.method == "noise"
    assert all(check.holds for check in verify_release(tmp_path / "out" / "release"))
