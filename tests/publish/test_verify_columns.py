"""What a review counts in each column of a released table, and where facts say otherwise."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.facts import Fact, Stratified
from sfumato.core.groups.facts import CountsKept, Grouped
from sfumato.methods.chain.facts import ChainSynthesis
from sfumato.methods.condense.facts import ClassPure
from sfumato.methods.perturb.facts import Noised
from sfumato.publish.verify import verify_release
from tests.publish.test_reviewed import failing, lay_out, text_of
from tests.publish.test_steps import golden, redrawn, the


@pytest.mark.parametrize(
    ("name", "old", "new", "checks"),
    [
        ("condense", "\n34,", "\nold,", ["column kinds"]),
        ("chain", "\n34,", "\n34.5,", ["column kinds"]),
        ("chain", ",4322.04,", ",much,", ["column kinds"]),
        ("chain", ",1974-11-01,", ",long ago,", ["column kinds", "dates by month"]),
        ("chain", ",no\n", ",perhaps\n", ["column kinds"]),
        ("chain", ",Oslo,", ",somewhere else,", []),
    ],
)
def test_a_cell_that_is_not_of_its_kind_is_seen(
    name: str, old: str, new: str, checks: list[str], tmp_path: Path
) -> None:
    table = text_of(name, "table.csv")
    if old not in table:
        first = table.splitlines()[1]
        old = f"\n{first.partition(',')[0]},"
        new = f"\n{new.strip()}"
    assert old in table
    folder = lay_out(tmp_path / "release", golden(name), table.replace(old, new, 1), text_of(name, "schema.toml"))
    assert sorted(failing(folder)) == checks


@pytest.mark.parametrize(
    ("name", "kind", "changed", "says"),
    [
        ("condense-paper", CountsKept, {"category_columns": 5}, "categorical columns"),
        ("condense-paper", CountsKept, {"missing_columns": 1}, "columns with missing cells"),
        ("stream-first", None, {"category_columns": 6}, "categorical columns"),
        ("stream-first", None, {"missing_columns": 1}, "columns with missing cells"),
        ("noise", Noised, {"columns": 4}, "numeric columns"),
    ],
)
def test_a_number_of_columns_that_the_table_does_not_show_is_seen(
    name: str, kind: type[Fact] | None, changed: dict[str, int], says: str, tmp_path: Path
) -> None:
    from sfumato.stream.facts import Maintained

    certificate = redrawn(golden(name), the(kind or Maintained, golden(name), **changed))
    found = failing(
        lay_out(tmp_path / "release", certificate, text_of(name, "table.csv"), text_of(name, "schema.toml"))
    )
    assert found == {"column counts": f"the certificate states another number of {says}"}


def test_missing_cells_of_groups_that_nothing_counts_are_seen(tmp_path: Path) -> None:
    whole = golden("condense-paper")
    certificate = dataclasses.replace(whole, facts=tuple(f for f in whole.facts if not isinstance(f, CountsKept)))
    texts = text_of("condense-paper", "table.csv"), text_of("condense-paper", "schema.toml")
    found = failing(lay_out(tmp_path / "release", redrawn(certificate), *texts))
    assert found["column counts"] == "the certificate states another number of columns with missing cells"


@pytest.mark.parametrize(("name", "fact"), [("classwise", ClassPure), ("condense-paper", Stratified)])
def test_fewer_classes_or_strata_than_the_table_has_are_seen(name: str, fact: type[Fact], tmp_path: Path) -> None:
    entry = "classes" if fact is ClassPure else "strata"
    certificate = redrawn(golden(name), the(fact, golden(name), **{entry: 1}))
    found = failing(
        lay_out(tmp_path / "release", certificate, text_of(name, "table.csv"), text_of(name, "schema.toml"))
    )
    assert list(found) == ["column kinds"]


def test_a_leaf_that_is_the_only_one_holds_all_records(tmp_path: Path) -> None:
    chained = the(ChainSynthesis, golden("chain"))
    assert isinstance(chained, ChainSynthesis)
    assert (chained.leaves[0], chained.smallest[0]) == (1, chained.records)
    fewer = (chained.records - 1, *chained.smallest[1:])
    certificate = dataclasses.replace(
        golden("chain"),
        facts=tuple(
            dataclasses.replace(f, smallest=fewer) if isinstance(f, ChainSynthesis) else f
            for f in golden("chain").facts
        ),
    )
    folder = lay_out(tmp_path / "release", certificate, text_of("chain", "table.csv"), text_of("chain", "schema.toml"))
    assert "claims follow from facts" in failing(folder)


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "xlsx", "ods", "sqlite"])
def test_every_kind_of_column_is_of_its_kind_in_every_format(form: str, tmp_path: Path) -> None:
    rng, rows = np.random.default_rng(3), 90
    days = [np.datetime64("2020-01-01") + int(day) for day in rng.integers(0, 900, rows)]
    gone = rng.random(rows) < 0.2
    table = pa.table(
        {
            "age": pa.array(rng.integers(20, 90, rows), mask=gone),
            "pay": pa.array(rng.normal(2000, 300, rows).round(2), mask=gone),
            "born": pa.array(np.array(days, dtype="datetime64[D]")),
            "seen": [day.astype("datetime64[D]").item().strftime("%d.%m.%Y") for day in days],
            "took": [f"{minutes // 60}:{minutes % 60:02d}:00" for minutes in rng.integers(1, 900, rows)],
            "month": [str(day.astype("datetime64[M]")) for day in days],
            "smokes": pa.array(rng.random(rows) < 0.4, mask=gone),
            "answer": rng.choice(["yes", "no", "-"], rows).tolist(),
            "town": rng.choice(["a", "b", "c", ""], rows).tolist(),
        }
    )
    for method in ("condense", "noise"):
        more = {"size": 0.2, "pass_categories": True} if method == "noise" else {"k": 5}
        made = sf.sanitize(table, method=method, report=False, **more)
        found = verify_release(made.save(tmp_path / f"{method}-{form}", form=form))
        assert [(check.name, check.detail) for check in found if not check.holds] == []
    assert any(isinstance(fact, Grouped | Noised) for fact in made.certificate.facts)
