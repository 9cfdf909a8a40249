"""Several owners whose table is condensed: rows drawn from statistics that were added up, none from a record."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import OptionError
from sfumato.core.groups.generate import generate
from sfumato.engines.outcome import Recipe
from sfumato.methods.chain import Chain
from sfumato.methods.condense import Condensation
from sfumato.methods.perturb.facts import ComponentNoise
from sfumato.parties import groupwise
from sfumato.parties.channel import PartyError
from sfumato.parties.plan import JointPlan
from sfumato.parties.publish import joint_in_one_process
from sfumato.publish.release import Release
from sfumato.publish.verify import verify_release
from sfumato.tables.schema import Domain, Field, Kind, Schema

THREE = ("bank", "clinic", "shop")
TOWNS = ("Bari", "Oslo", "Ulm")
SCHEMA = Schema(
    (
        Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=120, step=1.0)),
        Field("pay", Kind.CONTINUOUS, domain=Domain(declared=True, low=-1000, high=1000)),
        Field("town", Kind.NOMINAL, domain=Domain(declared=True, categories=TOWNS)),
    )
)


def people(n: int = 150) -> pa.Table:
    rng = np.random.default_rng(8)
    age = rng.integers(20, 80, n)
    pay = [None if row % 17 == 0 else round(3.0 * cell + rng.normal(0, 9), 2) for row, cell in enumerate(age.tolist())]
    return pa.table({"who": np.arange(n), "age": age, "pay": pay, "town": rng.choice(TOWNS, n)})


def plan_of(partition: str) -> JointPlan:
    return JointPlan(partition, THREE, Condensation(k=12, grouping="modified"), rounds=3, few="allow", target="pay")


def play(partition: str, folder: Path | None = None) -> list[Release]:
    table, folders = people(), None if folder is None else [folder / name for name in THREE]
    if partition == "vertical":
        owned = [table.select(["who", name]) for name in ("age", "pay", "town")]
        return joint_in_one_process(owned, plan_of(partition), key="who", folders=folders, report=False)
    rows = [table.drop_columns(["who"]).slice(start, 50) for start in (0, 50, 100)]
    return joint_in_one_process(rows, plan_of(partition), schemas=[SCHEMA] * 3, folders=folders, report=False)


@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_a_condensed_table_of_several_owners_is_the_same_at_all_and_verifies(partition: str, tmp_path: Path) -> None:
    releases, table = play(partition, tmp_path), people()
    first = releases[0]
    assert all(each.table.equals(first.table) for each in releases)
    assert verify_release(tmp_path / "clinic" / "release").holds
    certificate = first.certificate
    assert (certificate.method, certificate.rows_out) == ("joint-condense", 150)
    assert certificate.levels["smallest_group"] >= 12
    assert not any(isinstance(fact, ComponentNoise) for fact in certificate.facts)
    claims = " ".join(each.claim for each in certificate.claims)
    # a group whose numbers all lie beyond the cut-offs of its columns has records that do not differ
    assert "no record was copied" in claims or "none of these was copied" in claims
    refused = {each.claim for each in certificate.refused}
    assert "The statistics of the groups are hidden from the owners." in refused
    assert not any("bounds" in each or "whose" in each for each in refused)
    assert Counter(first.table["town"].to_pylist()) == Counter(table["town"].to_pylist())
    assert first.table["pay"].null_count == table["pay"].null_count
    drawn, real = first.table["age"].to_numpy().astype(float), table["age"].to_numpy()
    assert drawn.mean() == pytest.approx(real.mean(), abs=3.0)
    assert drawn.std() == pytest.approx(real.std(), rel=0.2)
    plan = JointPlan.from_document(Recipe.from_toml(first.recipe.to_toml()).parameters)
    assert plan == plan_of(partition)


def test_a_first_party_that_sends_other_rows_than_the_statistics_allow_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(groupwise, "generate", lambda groups, layout, rng: generate(groups, layout, rng) * 20.0)
    with pytest.raises(PartyError, match="party 'bank' sent wrong ones"):
        play("horizontal")


def test_what_several_owners_cannot_condense_is_refused() -> None:
    for mechanism, words in (
        (Condensation(k=5), "choose the grouping 'modified'"),
        (Condensation(k=5, grouping="modified", scores="normal"), "condense plain numbers"),
        (Condensation(k=1, grouping="modified", allow_level_1=True), "condense plain numbers"),
        (Chain(k=5, leaf=10), "cannot run this method; choose one of laplace-pca, condense"),
    ):
        with pytest.raises(OptionError, match=words):
            JointPlan("horizontal", THREE, mechanism)  # type: ignore[arg-type]
