"""Every engine ends in the same publish: a report, a signature, a format and a recipe for all of them."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import sfumato as sf
from sfumato.assess import measure
from sfumato.assess.attacks.linkage import LINKAGE
from sfumato.certificate.signature import Signer
from sfumato.core.facts import DespitePolicy, NoMeasurement
from sfumato.engines.outcome import Recipe
from sfumato.methods.geometry import Translation
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties.channel import local_channels
from sfumato.parties.folder import written_together
from sfumato.parties.plan import JointPlan
from sfumato.parties.publish import joint_in_one_process
from sfumato.parties.rounds import ROUNDS
from sfumato.publish.judge import PolicyNotMet
from sfumato.publish.policy import Policy
from sfumato.publish.release import Release
from sfumato.publish.sanitize import sanitize
from sfumato.publish.verify import verify_release
from sfumato.stream.entries import cut_batches
from sfumato.stream.session import StreamSession
from sfumato.tables.files import FileForm, FileFormat
from sfumato.tables.schema import Domain, Field, Kind, Role, Schema
from tests.goldens.runs import numbers, people

DECLARED = Schema(
    (
        Field("name", Kind.NOMINAL, Role.IDENTIFIER),
        Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=120)),
        Field("smoker", Kind.BOOLEAN, domain=Domain(declared=True, categories=(False, True))),
        Field("ill", Kind.NOMINAL, domain=Domain(declared=True, categories=("no", "yes"))),
    )
)
NEEDS_ROWS = ("linkage-euclid", "membership-auc-distance", "closest-record-distance", "marginal-distance")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, undrawn: None) -> Path:
    """Two epochs of a stream, published with their reports and signed."""
    place, table = tmp_path_factory.mktemp("stream"), people(300)
    sf.stream(place / "state.db", table.slice(0, 100), identifiers=["name"], level="level", k=5)
    signer = Signer(Ed25519PrivateKey.generate())
    for epoch in (1, 2):
        with StreamSession.open(place / "state.db") as session:
            session.ingest(cut_batches([table.slice(100 * epoch, 100)], session.settings.batch_rows))
        sf.stream(place / "state.db").publish(place / f"epoch-{epoch}", form="parquet", sign=signer)
    (place / "key").write_text(signer.fingerprint)
    return place


LARGE = Policy("large", require={"min_group_size": 1_000})  # not met, which is known once groups are there


def finding(folder: Path, name: str) -> dict[str, object]:
    report = json.loads((folder / "owner" / "report.json").read_text("utf-8"))
    return next(each for each in report["findings"] if each["name"] == name)


def test_an_epoch_is_reported_without_a_raw_row_and_says_what_was_not_run(folder: Path) -> None:
    last = folder / "epoch-2"
    assert finding(last, "group-size-smallest")["value"] == 5.0
    assert finding(last, "level-met")["value"] == 1.0
    assert finding(last, "epoch-change-smallest")["value"] >= 5  # type: ignore[operator]
    assert 0.0 < finding(last, "epoch-rows-repeated")["value"] < 1.0  # type: ignore[operator]
    for name in NEEDS_ROWS:
        found = finding(last, name)
        assert (found["status"], found["value"]) == ("not-run", None)
        assert "keeps no raw rows" in str(found["reason"])
    assert finding(folder / "epoch-1", "epoch-rows-repeated")["reason"] == "this is the first epoch"
    assert finding(last, "seconds-taken")["status"] == "measured"


def test_an_epoch_is_signed_in_the_format_asked_for_and_holds(folder: Path) -> None:
    assert all(check.holds for check in verify_release(folder / "epoch-2" / "release"))
    assert (folder / "epoch-2" / "release" / "certificate.sig").is_file()
    assert pyarrow.parquet.read_table(folder / "epoch-2" / "release" / "table.parquet").num_rows > 100
    assert (folder / "epoch-2" / "release" / "report-public.html").is_file()


def test_a_recipe_begins_a_stream_as_the_first_was_begun(folder: Path, tmp_path: Path) -> None:
    recipe = Recipe.load(folder / "epoch-2" / "owner" / "recipe.toml")
    sf.stream(tmp_path / "state.db", people(300).slice(0, 100), recipe=recipe)
    with StreamSession.open(folder / "state.db") as first, StreamSession.open(tmp_path / "state.db") as second:
        for name in ("k", "split", "grouping", "level", "decimals"):
            assert getattr(first.settings, name) == getattr(second.settings, name)
        assert first.codec.schema.names == second.codec.schema.names


@pytest.fixture(scope="module")
def joint(undrawn: None) -> list[Release]:
    rows = people().select(["name", "age", "smoker", "ill"])
    plan = JointPlan("vertical", ("bank", "clinic"), LaplacePCA(k=8), "ill", rounds=2)
    parts = [rows.select(["name", "age"]), rows.select(["name", "smoker", "ill"])]
    return joint_in_one_process(parts, plan, key="name")


def test_every_owner_has_a_report_that_stays_of_the_same_release(joint: list[Release], tmp_path: Path) -> None:
    channels = local_channels(("bank", "clinic"))

    def write(rank: int) -> None:
        written_together(joint[rank], channels[rank], tmp_path / str(rank), FileForm(FileFormat.CSV))

    threads = [threading.Thread(target=write, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for rank in range(2):
        release = tmp_path / str(rank) / "release"
        assert all(check.holds for check in verify_release(release))
        assert not (release / "report-public.html").exists()
        assert finding(tmp_path / str(rank), "group-size-smallest")["value"] >= 8  # type: ignore[operator]
        assert finding(tmp_path / str(rank), "linkage-euclid")["status"] == "measured"
        for cost in ("seconds-taken", "bytes-exchanged"):
            assert finding(tmp_path / str(rank), cost)["value"] > 0  # type: ignore[operator]
    same = [(tmp_path / str(rank) / "release" / "certificate.json").read_bytes() for rank in range(2)]
    assert same[0] == same[1]


@pytest.mark.usefixtures("without_figures")
@pytest.mark.parametrize(("centres", "status"), [("each", "measured"), ("last", "not-run")])
def test_an_owner_of_rows_attacks_the_others_on_the_rounds_that_it_saw(
    centres: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure, "catalogue", lambda: (LINKAGE, ROUNDS))
    rows = people().select(["name", "age", "smoker", "ill"])
    plan = JointPlan("horizontal", ("bank", "clinic"), LaplacePCA(k=8), "ill", rounds=6, centres=centres, few="allow")
    released = joint_in_one_process([rows.slice(0, 50), rows.slice(50)], plan, schemas=[DECLARED] * 2)
    for release, others in zip(released, (40, 50), strict=True):
        assert release.report is not None
        found = release.report["party-rows-inferred"]
        assert found.to_json()["status"] == status
        assert found.attempts in (None, others)
        assert release.report["linkage-euclid"].value is not None  # its own rows are compared with the release
        assert f"Measured with {90 - others} of the 90 rows" in release.report.notes[0]


def test_a_plan_comes_back_from_the_recipe_of_a_joint_run(joint: list[Release]) -> None:
    recipe = Recipe.from_toml(joint[0].recipe.to_toml())
    assert JointPlan.from_document(recipe.parameters).document() == {**joint[0].certificate.parameters, "seed": None}


def test_an_epoch_that_does_not_meet_its_policy_is_kept_and_leaves_despite_it(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(PolicyNotMet) as refused:
        sf.stream(folder / "state.db").publish(tmp_path / "out", policy=LARGE)
    assert "--measure-key FILE" in refused.value.verdict.to_try[0]
    refused.value.save_owner(tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["owner"]
    with StreamSession.open(folder / "state.db", write=False) as session:
        assert not session.status().delivered
    release = sf.stream(folder / "state.db").publish(tmp_path / "two", policy="research", despite_policy=True)
    assert any(isinstance(fact, DespitePolicy) for fact in release.certificate.facts)
    assert all(check.holds for check in verify_release(tmp_path / "two" / "release"))


def test_an_epoch_that_cannot_meet_its_policy_is_not_begun(folder: Path, tmp_path: Path) -> None:
    with StreamSession.open(folder / "state.db", write=False) as session:
        before = session.status()
    with pytest.raises(PolicyNotMet, match=r"no control group .*; begin a stream with measure_rows="):
        sf.stream(folder / "state.db").publish(tmp_path / "out", policy="research")
    with StreamSession.open(folder / "state.db", write=False) as session:
        assert session.status() == before
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("without_figures", "without_utility")
def test_a_file_that_does_not_meet_its_policy_leaves_neither_folder_nor_key(tmp_path: Path) -> None:
    pyarrow.csv.write_csv(numbers().select(["age", "pay", "stay"]), tmp_path / "in.csv")
    told = {"new_key": tmp_path / "key.toml", "policy": "research", "time_limit": 1.0}
    with pytest.raises(PolicyNotMet):
        sanitize(tmp_path / "in.csv", Translation(), folder=tmp_path / "out", engine="partitions", **told)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_a_release_without_a_report_says_so(folder: Path, tmp_path: Path) -> None:
    release = sf.stream(folder / "state.db").publish(tmp_path / "out", report=False)
    assert NoMeasurement() in release.certificate.facts
    assert any("Attacks were run" in refused.claim for refused in release.certificate.refused)
    assert all(check.holds for check in verify_release(tmp_path / "out" / "release"))
