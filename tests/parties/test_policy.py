"""Joint runs that are judged: control groups, policies of single owners, and the signatures of all."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sfumato.assess import measure
from sfumato.assess.attacks.linkage import LINKAGE
from sfumato.certificate.signature import Signer
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.core.facts import DespitePolicy, NoMeasurement
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.options import PublishOptions
from sfumato.parties.facts import Joint, PartJudged
from sfumato.parties.part import own_part
from sfumato.parties.plan import JointPlan, leaks_of
from sfumato.parties.publish import run_party
from sfumato.parties.session import Session, plain_sessions
from sfumato.parties.vertical import align_keys
from sfumato.publish.judge import PolicyNotMet
from sfumato.publish.policy import Policy
from sfumato.publish.release import Release
from sfumato.publish.verify import verify_release
from sfumato.tables.schema import Domain, Field, Kind, Schema
from tests.parties.together import run_together

NAMES = ("bank", "clinic")
LINKS = Policy("links", {"linkage-excess": 0.9}, {"control": True})
LARGE = Policy("large", {}, {"min_group_size": 1000})
STRICT = Policy("strict", {"linkage-excess": 0.001}, {})
SCHEMA = Schema(
    tuple(Field(name, Kind.INTEGER, domain=Domain(declared=True, low=0, high=100, step=1.0)) for name in ("age", "pay"))
)


@pytest.fixture(autouse=True)
def _one_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "catalogue", lambda: (LINKAGE,))


def people(n: int = 120) -> pa.Table:
    rng = np.random.default_rng(5)
    age = rng.integers(20, 80, n)
    return pa.table({"who": np.arange(n), "age": age, "pay": np.clip(age + rng.integers(-9, 9, n), 0, 100)})


def plan_of(partition: str = "vertical", **choices: Any) -> JointPlan:
    return JointPlan(partition, NAMES, LaplacePCA(k=20), rounds=2, **choices)


def parts_of(plan: JointPlan, table: pa.Table) -> list[Any]:
    if plan.partition == "horizontal":
        rows = [table.select(["age", "pay"]).slice(start, 60) for start in (0, 60)]
        return [own_part(plan, rank, rows[rank], SCHEMA) for rank in range(2)]
    columns = [table.select(["who", "age"]), table.select(["who", "pay"])]
    return [own_part(plan, rank, columns[rank], key="who") for rank in range(2)]


def play(
    plan: JointPlan, parts: list[Any], folder: Path, **publishing: Mapping[str, Any]
) -> dict[str, Release | BaseException]:
    """Run all parties, each with its own options; give what each has, or how it ended."""
    sessions = plain_sessions(plan.parties, leaks_of(plan), engine=plan.engine, keep=False)
    found: dict[str, Release | BaseException] = {}

    def one(rank: int) -> None:
        name, (_, channel, engine) = NAMES[rank], sessions[rank]
        options = PublishOptions(**{"sign": False, **publishing.get(name, {})})
        try:
            found[name] = run_party(parts[rank], channel, engine, folder / name, options)
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            found[name] = error
            for _, _, other in sessions:
                if other is not None:
                    other.close()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    return found


@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_a_joint_run_with_people_held_out_meets_a_policy(partition: str, tmp_path: Path) -> None:
    plan = plan_of(partition, holdout=0.25, few="allow")
    found = play(plan, parts_of(plan, people()), tmp_path, bank={"policy": LINKS})
    assert all(isinstance(release, Release) for release in found.values()), found
    report = found["bank"].report  # type: ignore[union-attr]
    assert report is not None
    assert report.verdict is not None
    assert (report.verdict.outcome.value, report.verdict.policy) == ("meets", "links")
    assert report.rows_held_out == (30 if partition == "vertical" else 15)
    certificate = found["clinic"].certificate  # type: ignore[union-attr]
    assert (certificate.rows_out, certificate.parameters["holdout"]) == (90, 0.25)
    assert "PartJudged" not in repr(certificate.facts)
    assert verify_release(tmp_path / "bank" / "release").holds


def test_owners_of_columns_hold_the_same_people_out_and_their_cells_change_nothing(tmp_path: Path) -> None:
    plan, table = plan_of(holdout=0.25, seed=3), people()
    aligned = run_together(lambda session, _: _order(session, table), NAMES, leaks_of(plan), seed=3)
    assert all(np.array_equal(aligned[0], order) for order in aligned)
    for rows, same in ((aligned[0][:30], True), (aligned[0][30:60], False)):
        changed = np.where(np.isin(np.arange(120), rows), 100, table["pay"].to_numpy())
        other = table.set_column(2, "pay", pa.array(changed))
        found = [play(plan, parts_of(plan, each), tmp_path / f"{same}{n}") for n, each in enumerate((table, other))]
        first, second = (each["bank"].table for each in found)  # type: ignore[union-attr]
        assert first.equals(second) == same


def _order(session: Session, table: pa.Table) -> Any:
    session.broadcast(b"" if session.rank == 0 else None, 0, "verdicts", 1)  # two messages of the agreement come before
    session.broadcast(b"" if session.rank == 1 else None, 1, "verdicts", 1)
    return align_keys(session, table["who"])


def test_all_owners_keep_their_reports_if_the_policy_of_one_is_not_met(tmp_path: Path) -> None:
    plan = plan_of(holdout=0.25)
    found = play(plan, parts_of(plan, people()), tmp_path, bank={"policy": STRICT})
    assert all(isinstance(error, PolicyNotMet) for error in found.values()), found
    assert "the part of 'bank' does not meet the policy there" in str(found["clinic"])
    assert list(tmp_path.iterdir()) == []
    for name, error in found.items():
        error.save_owner(tmp_path / name)  # type: ignore[union-attr]
        assert [path.name for path in (tmp_path / name).iterdir()] == ["owner"]
        assert (tmp_path / name / "owner" / "report.html").is_file()
    quiet = play(plan, parts_of(plan, people()), tmp_path / "quiet", bank={"policy": STRICT}, clinic={"report": False})
    assert type(quiet["clinic"]) is PrivacyRefusal


def test_a_table_that_leaves_despite_the_policy_of_one_owner_says_so_at_all(tmp_path: Path) -> None:
    plan = plan_of()
    bank, clinic = {"policy": LARGE, "despite_policy": True}, {"report": False}
    found = play(plan, parts_of(plan, people()), tmp_path, bank=bank, clinic=clinic)
    for name in NAMES:
        facts = found[name].certificate.facts  # type: ignore[union-attr]
        judged = [fact for fact in facts if isinstance(fact, PartJudged)]
        assert judged == [PartJudged("bank", "does-not-meet", "large"), PartJudged("clinic", "not-measured")]
        assert not any(isinstance(fact, DespitePolicy | NoMeasurement) for fact in facts)
        refused = {each.claim for each in found[name].certificate.refused}  # type: ignore[union-attr]
        assert "The part of 'bank' meets the policy 'large'." in refused
        assert "Attacks were run against the part of 'clinic' before the release." in refused
        assert verify_release(tmp_path / name / "release").holds
        ledger = (tmp_path / name / "owner" / "ledger.txt").read_text(encoding="utf-8")
        assert "verdicts" in ledger


def test_a_policy_that_needs_a_control_group_names_options_that_there_are(tmp_path: Path) -> None:
    plan = plan_of()
    for policy, words in (
        (LINKS, "add holdout=0.3 at every owner, or add despite_policy=True"),
        (LARGE, "raise k in [method] of every owner's settings to 1000, or add despite_policy=True"),
    ):
        sessions = plain_sessions(plan.parties, leaks_of(plan), engine=plan.engine, keep=False)
        part = parts_of(plan, people())[0]
        with pytest.raises(PolicyNotMet) as refused:  # the other party never answers
            run_party(part, sessions[0][1], sessions[0][2], tmp_path / "out", PublishOptions(policy=policy))
        assert words in str(refused.value)
        assert refused.value.report is None


def test_every_owner_signs_and_every_signature_is_checked(tmp_path: Path) -> None:
    plan = plan_of()
    keys = {name: Signer(Ed25519PrivateKey.generate()) for name in NAMES}
    told = {name: {"sign": key, "report": False} for name, key in keys.items()}
    found = play(plan, parts_of(plan, people()), tmp_path, **told)
    marks = [keys[name].fingerprint for name in NAMES]
    release = tmp_path / "clinic" / "release"
    assert {path.name for path in release.glob("*.sig")} == {"certificate.bank.sig", "certificate.clinic.sig"}
    assert found["bank"].signed_by == marks[0]  # type: ignore[union-attr]
    whole = verify_release(release, signer=marks)
    assert whole.holds
    assert whole.confirmed
    assert "2 owners signed exactly this certificate" in whole.describe()
    assert not verify_release(release).confirmed
    one = verify_release(release, signer=marks[0])
    assert (one.holds, one.confirmed) == (True, False)
    assert not verify_release(release, signer=Signer(Ed25519PrivateKey.generate()).fingerprint).holds
    certificate, others = (release / "certificate.json").read_bytes(), release / "certificate.bank.sig"
    kept = others.read_bytes()
    others.write_text(Signer(Ed25519PrivateKey.generate()).sign(certificate).to_text())
    assert "by another key" in verify_release(release).describe()
    others.write_text(keys["bank"].sign(certificate + b" ").to_text())
    assert not verify_release(release).intact
    others.unlink()
    assert "certificate.bank.sig of an owner is missing" in verify_release(release).describe()
    others.write_bytes(kept)
    assert verify_release(release).holds


def test_an_owner_that_does_not_sign_is_named_by_the_certificate(tmp_path: Path) -> None:
    plan, key = plan_of(), Signer(Ed25519PrivateKey.generate())
    found = play(plan, parts_of(plan, people()), tmp_path, bank={"sign": key, "report": False})
    certificate = found["clinic"].certificate  # type: ignore[union-attr]
    run = next(fact for fact in certificate.facts if isinstance(fact, Joint))
    assert run.signers == (key.fingerprint, "")
    assert "Every data owner signed this certificate." in {each.claim for each in certificate.refused}
    assert verify_release(tmp_path / "clinic" / "release", signer=key.fingerprint).confirmed


def test_people_held_out_are_named_once(tmp_path: Path) -> None:
    table = people()
    plan = plan_of(holdout=0.2)
    with pytest.raises(OptionError, match="the plan holds people out"):
        own_part(plan, 0, table.select(["who", "age"]), key="who", outside=table)
    part = own_part(plan_of(), 0, table.select(["who", "age"]), key="who", outside=table.slice(0, 9))
    assert part.outside is not None
    assert part.outside.column_names == ["age"]
    with pytest.raises(OptionError, match="between 0 and 1"):
        plan_of(holdout=1.5)
