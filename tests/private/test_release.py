"""The private chain end to end: nothing leaves but what noisy counts and the declared schema give."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.core.arrays import Floats
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.engines.partitions import first_pass
from sfumato.methods.private import PrivateChain, people
from sfumato.methods.private.ledger import Ledger, Measurement
from sfumato.publish.policy import BUILT_IN, Policy
from sfumato.publish.verify import verify_release

SCHEMA = """
format = 1
[[column]]
name = "id"
kind = "integer"
role = "identifier"
[[column]]
name = "age"
kind = "integer"
missing = [""]
domain = { source = "declared", low = 18, high = 99 }
[[column]]
name = "pay"
kind = "continuous"
domain = { source = "declared", low = 0, high = 9000, step = 0.5 }
[[column]]
name = "weight"
kind = "continuous"
domain = { source = "declared", low = 30.0, high = 200.0 }
[[column]]
name = "seen"
kind = "date"
format = "%Y-%m-%d"
domain = { source = "declared", low = 2020-01-01, high = 2021-12-31, step = "day" }
[[column]]
name = "grade"
kind = "ordinal"
domain = { source = "declared", categories = ["low", "mid", "high"] }
[[column]]
name = "town"
kind = "nominal"
domain = { source = "declared", categories = ["a", "b", "c", "never seen"] }
[[column]]
name = "class"
kind = "boolean"
role = "target"
domain = { source = "declared", categories = ["no", "yes"] }
"""


def frame(rows: int = 900, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = pd.array(rng.integers(18, 99, rows), dtype="Int64")
    age[rng.random(rows) < 0.1] = None
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 700, rows), unit="D")
    return pd.DataFrame(
        {
            "id": np.arange(rows),
            "age": age,
            "pay": rng.integers(0, 18_001, rows) / 2,
            "weight": rng.normal(75, 12, rows),
            "seen": days.strftime("%Y-%m-%d"),
            "grade": rng.choice(["low", "mid", "high"], rows),
            "town": rng.choice(["a", "b", "c"], rows),
            "class": rng.choice(["no", "yes"], rows),
        }
    )


def schema(text: str = SCHEMA) -> sf.Schema:
    return sf.Schema.from_toml(text)


def release(table: object, **options: Any) -> sf.Release:
    return sf.sanitize(table, **{"schema": schema(), "report": False, "method": "private", "epsilon": 1.0, **options})


def test_every_cell_lies_in_its_declared_domain_and_the_release_verifies(tmp_path: Path) -> None:
    made = release(frame(), epsilon=3.0)
    table = made.table
    assert table["age"].dropna().between(18, 99).all()
    assert table["pay"].between(0, 9000).all()
    assert (table["pay"] * 2 % 1 == 0).all()
    assert table["weight"].between(30, 200).all()
    assert pd.to_datetime(table["seen"]).between("2020-01-01", "2021-12-31").all()
    assert set(table["grade"]) <= {"low", "mid", "high"}
    made.save(tmp_path / "out", sign=False)
    assert sf.verify(tmp_path / "out")


def test_the_certificate_states_the_budget_and_not_the_number_of_records(tmp_path: Path) -> None:
    made = release(frame())
    made.save(tmp_path / "out", sign=False)
    document = json.loads((tmp_path / "out" / "release" / "certificate.json").read_text())
    assert document["rows_in"] is None
    assert document["privacy"]["epsilon"] == 1.0
    assert document["privacy"]["unit"] == "person"
    assert {line["step"] for line in document["privacy"]["ledger"]} >= {"one-way counts", "pair scores"}
    assert not re.search(r"(?<![\w.])900(?![\w.])", json.dumps(document))  # in hashes and fractions by chance


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"engine": "partitions", "holdout": None},
        {"epsilon_of": "age < 40: 0.5, else: 1", "schema": sf.Schema.from_toml(SCHEMA.replace("identifier", "person"))},
        {"private_bounds": True, "schema": sf.Schema.from_toml(SCHEMA.replace(", low = 18, high = 99", ""))},
    ],
)
def test_what_leaves_is_a_function_of_noisy_counts_and_the_schema_alone(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables that have no row in common give the same release, if the same noisy counts come out."""
    counts: list[Floats] = []
    drawn = Ledger.release

    def record(self: Ledger, measurement: Measurement, rho: float) -> Floats:
        counts.append(drawn(self, measurement, rho))
        return counts[-1]

    def replay(self: Ledger, measurement: Measurement, rho: float) -> Floats:
        drawn(self, measurement, rho)
        return counts.pop(0)

    left = []
    for way, rows in ((record, 900), (replay, 40)):
        monkeypatch.setattr(Ledger, "release", way)
        table, every = frame(rows, seed=rows), {"report": True, "holdout": 0.3, "seed": 6, **options}
        if "engine" in options:
            table.to_csv(tmp_path / f"{rows}.csv", index=False)
            release(tmp_path / f"{rows}.csv", folder=tmp_path / str(rows), sign=False, **every)
        else:
            release(table, **every).save(tmp_path / str(rows), sign=False)
        folder = tmp_path / str(rows) / "release"
        texts = {each.name: each.read_text() for each in folder.iterdir()}
        texts["certificate.json"] = re.sub(r'"created": "[^"]*"', "", texts["certificate.json"])
        left.append(texts)
    assert not counts
    assert left[0] == left[1]


@pytest.mark.parametrize("levels", [False, True])
def test_counts_of_partitions_add_up_and_noise_is_drawn_once(
    levels: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same seed gives the same model, however many partitions the rows, and the rows of a person, lie in."""
    monkeypatch.setattr(first_pass, "_FEWEST_ROWS", 64)
    monkeypatch.setattr(first_pass, "_RUN_CELLS", 64)
    monkeypatch.setattr(people, "_AT_ONCE", 50)
    options: dict[str, Any] = {"epsilon": 3.0, "seed": 8, "sign": False}
    table = frame(900)
    if levels:
        table["id"] = np.random.default_rng(1).integers(0, 300, 900)
        text = SCHEMA.replace("identifier", "person")
        options |= {"epsilon_of": "age < 40: 0.5, else: 3", "schema": schema(text)}
    table.to_csv(tmp_path / "in.csv", index=False)
    models, noised = [], list[str]()
    drawn = Ledger.release

    def count(self: Ledger, measurement: Measurement, rho: float) -> Floats:
        noised.append(measurement.step)
        return drawn(self, measurement, rho)

    monkeypatch.setattr(Ledger, "release", count)
    for engine in ("memory", "partitions"):
        folder = tmp_path / engine
        made = release(tmp_path / "in.csv", engine=engine, folder=folder, report=True, **options)
        assert [check.name for check in verify_release(folder) if not check.holds] == ["made for release"]
        assert made.certificate.rows_in is None
        assert made.certificate.rows_out == len(pd.read_csv(folder / "release" / "table.csv"))
        models.append((folder / "release" / "model.json").read_text())
    assert models[0] == models[1]
    assert noised[: len(noised) // 2] == noised[len(noised) // 2 :]


@pytest.mark.parametrize("option", [{"private_bounds": True}, {"holdout": 0.2}])
def test_what_needs_all_rows_at_once_is_refused_in_partitions(option: dict[str, Any], tmp_path: Path) -> None:
    frame().to_csv(tmp_path / "in.csv", index=False)
    with pytest.raises(OptionError, match="needs all rows at once"):
        release(tmp_path / "in.csv", engine="partitions", folder=tmp_path / "out", sign=False, **option)


@pytest.mark.parametrize(
    "change",
    [
        ("low = 18, high = 99", "low = 18"),
        ('source = "declared", low = 18', 'source = "observed", low = 18'),
        ('source = "declared", categories = ["a", "b", "c", "never seen"]', 'source = "declared"'),
    ],
)
def test_a_domain_that_is_not_declared_is_refused(change: tuple[str, str]) -> None:
    assert change[0] in SCHEMA
    with pytest.raises(PrivacyRefusal, match="inspect --declare"):
        release(frame(), schema=schema(SCHEMA.replace(*change)))


def test_a_table_without_a_schema_is_refused() -> None:
    with pytest.raises(PrivacyRefusal, match="inspect INPUT --declare"):
        release(frame(), schema=None)


@pytest.mark.parametrize(
    "option",
    [{"level": 5}, {"strata": "town"}, {"rare": "keep"}, {"tails": "keep"}],
)
def test_an_option_that_rests_on_the_data_is_refused(option: dict[str, object]) -> None:
    with pytest.raises((OptionError, PrivacyRefusal)):
        release(frame(), **option)


def test_cells_outside_a_domain_are_clipped_or_missing_and_do_not_stop_the_run() -> None:
    table = frame()
    table.loc[0, "pay"] = 1e12
    table.loc[1, "town"] = "elsewhere"
    made = release(table, report=True)
    assert set(made.table["town"].dropna()) <= {"a", "b", "c", "never seen"}
    assert made.report is not None
    assert any("2 cells in 2 columns" in note for note in made.report.notes)


def test_neither_types_nor_metadata_of_the_original_leave(tmp_path: Path) -> None:
    table = pa.Table.from_pandas(frame().assign(town=lambda each: each["town"].astype("category")))
    made = release(table.replace_schema_metadata({**(table.schema.metadata or {}), b"rows": b"900"}))
    made.save(tmp_path / "out", form="parquet", sign=False)
    left = pq.read_table(tmp_path / "out" / "release" / "table.parquet")
    assert not left.schema.metadata
    assert not pa.types.is_dictionary(left.schema.field("town").type)


def test_a_seed_makes_a_dry_run_whose_claims_are_not_proved() -> None:
    first, again = (release(frame(), seed=4) for _ in range(2))
    pd.testing.assert_frame_equal(first.table, again.table)
    assert first.certificate.randomness == "dry-run"
    private = [claim for claim in first.certificate.claims if "differentially private" in claim.claim]
    assert [claim.kind for claim in private] == ["assumed"]


def test_rows_may_be_as_many_as_wanted() -> None:
    assert len(release(frame(), rows=77).table) == 77


@pytest.mark.parametrize(("policy", "epsilon", "meets"), [("research", 1.0, True), ("research", 1.5, False)])
def test_the_proof_alone_decides_on_a_policy(policy: str, epsilon: float, meets: bool) -> None:
    if meets:
        made = release(frame(300), policy=policy, epsilon=epsilon, report=True)
        assert made.report is not None
        assert made.report.verdict is not None
        assert (made.report.verdict.outcome, made.report.verdict.by) == ("meets", "proof")
    else:
        with pytest.raises(sf.PolicyNotMet, match=r"epsilon at most 1 and this run has 1\.5; use epsilon=1"):
            release(frame(300), policy=policy, epsilon=epsilon, report=True)


def test_the_proof_that_a_built_in_policy_accepts_keeps_its_limits_on_membership() -> None:
    from sfumato.core.distributions.amplification import membership_bounds, rho_of

    for policy in BUILT_IN.values():
        auc, rate = membership_bounds(rho_of(policy.proof["epsilon"], policy.proof["delta"]))
        assert auc <= policy.limits["membership-auc"]
        assert rate <= policy.limits["membership-tpr"]


def test_a_policy_with_limits_on_membership_alone_is_met_by_the_bounds_of_the_proof() -> None:
    from sfumato.publish.judge import judge_proof

    limits = Policy("ours", limits={"membership-auc": 0.6})
    assert judge_proof(limits, 1.0, 1e-5).outcome == "meets"
    assert judge_proof(limits, 3.0, 1e-5).outcome == "inconclusive"


@pytest.mark.parametrize("wrong", [{"epsilon": 0.0}, {"epsilon": float("inf")}, {"epsilon": 1.0, "delta": 0.5}])
def test_a_budget_that_promises_nothing_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(OptionError):
        PrivateChain(**wrong)


def test_a_long_list_of_categories_does_not_collapse_under_noise() -> None:
    """If noise exceeds what tells categories apart, they are drawn alike, and not the few with the largest noise."""
    labels = tuple(f"r{each}" for each in range(300))
    table = pd.DataFrame({"place": np.random.default_rng(1).choice(labels, 500), "kind": ["a", "b"] * 250})
    domain = sf.Domain(declared=True, categories=labels)
    kinds = sf.Domain(declared=True, categories=("a", "b"))
    fields = sf.Field("place", sf.Kind.NOMINAL, domain=domain), sf.Field("kind", sf.Kind.NOMINAL, domain=kinds)
    made = release(table, schema=sf.Schema(fields), epsilon=0.3, seed=2)
    assert made.table["place"].nunique() > 50
