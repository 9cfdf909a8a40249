"""A release of several owners: the same folder at all of them or at none, and a certificate that says what it was."""

from __future__ import annotations

import dataclasses
import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.certificate import Certificate
from sfumato.core.errors import (
    LevelError,
    OptionError,
    PrivacyLeakWarning,
    PrivacyRefusal,
    SchemaError,
    SfumatoError,
    TableError,
)
from sfumato.core.facts import BoundsKept
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.options import PublishOptions
from sfumato.parties.channel import LocalChannel, PartyError, local_channels
from sfumato.parties.facts import Joint, Opened
from sfumato.parties.ledger import Ledger
from sfumato.parties.plan import JointPlan, leaks_of
from sfumato.parties.publish import JointDetails, joint_in_one_process, own_part, run_party
from sfumato.parties.session import plain_sessions
from sfumato.publish.release import Release
from sfumato.publish.verify import method_check, verify_release
from sfumato.tables.schema import Domain, Field, Kind, Role, Schema
from tests.examples import at_length, sized

N = 120
THREE = ("bank", "clinic", "shop")
COLUMNS = {"bank": ["age", "town"], "clinic": ["pressure", "smoker", "since"], "shop": ["spent"]}
ROWS = {"bank": slice(0, 55), "clinic": slice(55, 64), "shop": slice(64, N)}
SCHEMA = Schema(
    (
        Field("person", Kind.NOMINAL, Role.IDENTIFIER),
        Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0, high=120)),
        Field("town", Kind.NOMINAL, domain=Domain(declared=True, categories=("Bari", "Oslo", "Ulm"))),
        Field("pressure", Kind.CONTINUOUS, domain=Domain(declared=True, low=0, high=300), missing=("",)),
        Field("smoker", Kind.BOOLEAN, domain=Domain(declared=True, categories=(False, True))),
        Field("spent", Kind.CONTINUOUS, domain=Domain(declared=True, low=-1000, high=2000)),
    )
)


@pytest.fixture(scope="module")
def people() -> pa.Table:
    """All columns of all rows, of mixed types, with missing cells."""
    rng = np.random.default_rng(11)
    age = rng.integers(20, 80, N)
    pressure = [None if place % 13 == 0 else float(value) for place, value in enumerate(rng.normal(120, 9, N).round(1))]
    return pa.table(
        {
            "person": [f"secret-{place}" for place in range(N)],
            "age": age,
            "town": rng.choice(["Bari", "Oslo", "Ulm"], N),
            "pressure": pressure,
            "smoker": rng.random(N) < 0.3,
            "since": pa.array((rng.integers(0, 900, N) + 18000).astype(np.int32)).cast(pa.date32()),
            "spent": (age * 3.0 + rng.normal(0, 20, N)).round(2),
        }
    )


def columns_of(people: pa.Table, names: tuple[str, ...]) -> list[pa.Table]:
    """Give each owner its columns, in an order of its own; of two owners the last has those of the third."""
    rng = np.random.default_rng(3)
    chosen = [list(COLUMNS[name]) for name in names]
    chosen[-1] += [column for name in THREE if name not in names for column in COLUMNS[name]]
    return [people.select(["person", *own]).take(pa.array(rng.permutation(N))) for own in chosen]


def rows_of(people: pa.Table, names: tuple[str, ...]) -> list[pa.Table]:
    """Give each owner its rows; of two owners the last has those of the third."""
    kept = people.drop_columns(["since"])
    cuts = [0, ROWS["bank"].stop, N] if len(names) == 2 else [0, ROWS["bank"].stop, ROWS["clinic"].stop, N]
    return [kept.slice(start, stop - start) for start, stop in itertools.pairwise(cuts)]


def plan_of(partition: str, names: tuple[str, ...] = THREE, **options: Any) -> JointPlan:
    """Make a plan with small groups."""
    return JointPlan(partition, names, LaplacePCA(k=20), target="spent", **options)


def seen_in(release: Release) -> tuple[Ledger, str]:
    """The ledger and the transcript of a run."""
    workings = release.workings
    assert isinstance(workings, JointDetails)
    assert workings.ledger is not None
    return workings.ledger, workings.transcript


def play(people: pa.Table, plan: JointPlan, folder: Path | None = None) -> list[Release]:
    """Run all parties of a plan in one process."""
    folders = None if folder is None else [folder / name for name in plan.parties]
    if plan.partition == "vertical":
        return joint_in_one_process(columns_of(people, plan.parties), plan, key="person", folders=folders, report=False)
    schemas = [SCHEMA] * len(plan.parties)
    return joint_in_one_process(rows_of(people, plan.parties), plan, schemas=schemas, folders=folders, report=False)


@pytest.fixture(scope="module")
def released(people: pa.Table) -> Callable[[str], list[Release]]:
    """The releases of the three for a partition, which tests only read; one run for all of them."""
    return cache(lambda partition: play(people, plan_of(partition)))


def left_in(folder: Path) -> list[Path]:
    """List everything below a folder."""
    return sorted(folder.rglob("*"))


# ------------------------------------------------------------------------------------------------------- end to end


@pytest.mark.parametrize("names", [THREE, ("bank", "shop")], ids=["three", "two"])
@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_every_party_ends_with_the_same_release_which_a_reviewer_accepts(
    people: pa.Table, tmp_path: Path, partition: str, names: tuple[str, ...]
) -> None:
    releases = play(people, plan_of(partition, names), tmp_path)
    shared = ["owner/ledger.json", "owner/ledger.txt", "owner/transcript.jsonl"]
    shared += [f"release/{name}" for name in ("certificate.json", "schema.toml", "table.csv")]
    shared += [f"release/certificate.{name}.sig" for name in names]
    for name in shared:
        assert len({(tmp_path / party / name).read_bytes() for party in names}) == 1, name
    for party, release in zip(names, releases, strict=True):
        folder = tmp_path / party
        assert [str(file.relative_to(folder)) for file in left_in(folder) if file.is_file()] == sorted(
            [*shared, "owner/recipe.toml", "owner/schema-private.toml"]
        )
        assert (folder / "owner").stat().st_mode & 0o077 == 0
        assert [check.name for check in verify_release(folder / "release") if not check.holds] == []
        text = (folder / "release" / "certificate.json").read_text(encoding="utf-8")
        assert release.certificate == Certificate.from_json(text)
        assert (release.folder, release.certificate.rows_in, release.certificate.rows_out) == (folder, N, N)
        assert release.certificate.levels["smallest_group"] >= 20


def test_noise_leads_no_number_of_an_owner_of_columns_beyond_the_cut_offs_of_ten_persons() -> None:
    """Without declared bounds; noise made 30 % of such numbers negative, where the original has none."""
    rng, rows, k = np.random.default_rng(2), 1500, 100
    gain = rng.exponential(2000, rows).astype(np.int64)
    rate = rng.gamma(0.7, 2.0, rows).round(2)
    since = rng.integers(0, 900, rows) + 18000
    keys = [f"person {place}" for place in range(rows)]
    owned = [
        pa.table({"person": keys, "gain": pa.array(gain, pa.uint16())}),
        pa.table({"person": keys, "rate": rate, "since": pa.array(since.astype(np.int32)).cast(pa.date32())}),
    ]
    plan = JointPlan("vertical", ("bank", "shop"), LaplacePCA(k=k, b=2.0), target="rate", rounds=2, seed=5)
    release = joint_in_one_process(owned, plan, key="person", report=False)[0]
    for name, before in (("gain", gain), ("rate", rate), ("since", since)):
        column = release.table.column(name)
        after = (column.cast(pa.int32()) if name == "since" else column).to_numpy().astype(np.float64)
        assert (before <= after.min()).sum() >= 10
        assert (before >= after.max()).sum() >= 10
        assert len(np.unique(after)) > 100  # what lies between is as noise made it
    assert not any(isinstance(fact, BoundsKept) for fact in release.certificate.facts)


def test_one_declared_bound_leaves_the_other_end_to_the_persons() -> None:
    rng, rows, k = np.random.default_rng(4), 600, 60
    keys = [f"person {place}" for place in range(rows)]
    ages, other = rng.integers(18, 90, rows), rng.normal(size=rows).round(3)
    owned = [pa.table({"person": keys, "age": ages}), pa.table({"person": keys, "other": other})]
    schema = Schema((Field("age", Kind.INTEGER, domain=Domain(declared=True, low=0)),))
    plan = JointPlan("vertical", ("bank", "shop"), LaplacePCA(k=k, b=2.0), target="other", rounds=2, seed=5)
    release = joint_in_one_process(owned, plan, schemas=[schema, None], key="person", report=False)[0]
    after = release.table.column("age").to_numpy()
    assert after.min() == 0  # as declared, beyond the youngest
    assert (ages >= after.max()).sum() >= 10


@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_bounds_that_were_declared_are_kept_and_the_certificate_says_so(people: pa.Table, partition: str) -> None:
    plan = dataclasses.replace(plan_of(partition), mechanism=LaplacePCA(k=20, b=3.0))
    tables = (columns_of if partition == "vertical" else rows_of)(people, THREE)
    bounded = [
        Schema(tuple(field for field in SCHEMA if field.name in table.column_names))
        for table in (table.drop_columns([*{"since"} & {*table.column_names}]) for table in tables)
    ]
    tables = [table.select(schema.names) for table, schema in zip(tables, bounded, strict=True)]
    key = "person" if partition == "vertical" else None
    release = joint_in_one_process(tables, plan, schemas=bounded, key=key, report=False)[0]
    ages = release.table.column("age").to_pylist()
    assert 0 <= min(ages) < 20 or 80 < max(ages) <= 120
    (held,) = (fact for fact in release.certificate.facts if isinstance(fact, BoundsKept))
    assert set(held.columns) == {"age", "pressure", "spent"}
    certificate = release.certificate
    assert method_check(certificate).holds


@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_the_table_has_the_columns_types_and_counts_of_the_owners_tables(
    people: pa.Table, released: Callable[[str], list[Release]], partition: str
) -> None:
    table = released(partition)[0].table
    names = [name for party in THREE for name in COLUMNS[party]]
    assert set(table.column_names) == set(names) - ({"since"} if partition == "horizontal" else set())
    if partition == "vertical":
        assert table.column_names == names
    for name in table.column_names:
        assert table.schema.field(name).type == people.schema.field(name).type
        assert table.column(name).null_count == people.column(name).null_count
    for name in ("town", "smoker"):
        assert Counter(table.column(name).to_pylist()) == Counter(people.column(name).to_pylist())


def test_an_owner_of_rows_may_lack_every_value_of_a_column_that_others_have(people: pa.Table) -> None:
    tables = rows_of(people, THREE)
    place = tables[1].column_names.index("pressure")
    tables[1] = tables[1].set_column(place, "pressure", pa.nulls(len(tables[1]), pa.float64()))
    plan = plan_of("horizontal", few="allow")
    table = joint_in_one_process(tables, plan, schemas=[SCHEMA] * 3, report=False)[0].table
    assert table.column("pressure").null_count == sum(each.column("pressure").null_count for each in tables)


@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_no_key_and_no_observed_domain_leaves(people: pa.Table, tmp_path: Path, partition: str) -> None:
    play(people, plan_of(partition), tmp_path)
    for file in left_in(tmp_path):
        if file.is_file():
            assert "secret-" not in file.read_text(encoding="utf-8"), file.name
    public = Schema.load(tmp_path / "bank" / "release" / "schema.toml")
    assert all(field.domain.declared or field.domain == Domain() for field in public)


def test_a_line_of_the_ledger_in_other_words_does_not_follow_from_the_plan(
    released: Callable[[str], list[Release]],
) -> None:
    certificate = released("horizontal")[0].certificate
    assert method_check(certificate).holds
    place, line = next((place, fact) for place, fact in enumerate(certificate.facts) if isinstance(fact, Opened))
    changes: list[dict[str, Any]] = [
        {"label": "nothing"},
        {"what": "nothing of interest"},
        {"action": "sum" if line.action != "sum" else "told"},
        {"to": line.to[:2]},
        {"times": 0},
    ]
    for change in changes:
        facts = list(certificate.facts)
        facts[place] = dataclasses.replace(line, **change)
        assert not method_check(dataclasses.replace(certificate, facts=tuple(facts))).holds, change


@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_the_certificate_lists_what_the_ledger_lists(released: Callable[[str], list[Release]], partition: str) -> None:
    release = released(partition)[1]
    lines = [fact for fact in release.certificate.facts if isinstance(fact, Opened)]
    ledger, transcript = seen_in(release)
    assert {line.label for line in lines} == {row.label for row in ledger.openings}
    assert sum(line.times for line in lines) == sum(row.times for row in ledger.openings)
    assert {line.label for line in lines} <= set(leaks_of(plan_of(partition)))
    assert len(transcript.splitlines()) == sum(row.times for row in ledger.rows)
    assert set(ledger.traffic or {}) == set(THREE)
    assert all(sent["bytes"] > 0 and sent["messages"] > 0 for sent in (ledger.traffic or {}).values())


def test_a_run_in_one_process_says_that_it_hid_nothing_from_that_process(
    released: Callable[[str], list[Release]],
) -> None:
    certificate = released("vertical")[0].certificate
    assert [fact.engine for fact in certificate.facts if isinstance(fact, Joint)] == ["plain"]
    assert "The data owners hid their cells from each other." in [refused.claim for refused in certificate.refused]


@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_two_owners_are_warned_and_the_certificate_says_why(
    people: pa.Table, released: Callable[[str], list[Release]], partition: str
) -> None:
    with pytest.warns(PrivacyLeakWarning, match="there are two owners"):
        release = play(people, plan_of(partition, ("bank", "shop")))[0]
    assert any("BCG10.6" in refused.reason for refused in release.certificate.refused)
    assert not any("BCG10.6" in refused.reason for refused in released(partition)[0].certificate.refused)


@pytest.mark.parametrize("partition", ["vertical", "horizontal"])
def test_a_dry_run_repeats_itself_and_is_marked(
    people: pa.Table, released: Callable[[str], list[Release]], tmp_path: Path, partition: str
) -> None:
    plan = plan_of(partition, seed=5)
    first, second = (play(people, plan, tmp_path / name)[0] for name in ("one", "two"))
    assert first.table.equals(second.table)
    assert first.certificate.randomness == "dry-run"
    assert "seed" not in first.certificate.parameters
    failing = [check.name for check in verify_release(tmp_path / "one" / "bank" / "release") if not check.holds]
    assert failing == ["made for release"]
    assert not first.table.equals(released(partition)[0].table)


def test_noise_and_centres_of_the_plan_are_on_the_certificate(people: pa.Table) -> None:
    for plan, wanted in (
        (plan_of("vertical", noise="each"), ("", "each")),
        (plan_of("horizontal", centres="each"), ("each", "")),
    ):
        facts = play(people, plan)[0].certificate.facts
        assert [(fact.centres, fact.noise) for fact in facts if isinstance(fact, Joint)] == [wanted]


# ------------------------------------------------------------------------------------------------ one command a party


def ends_of(plan: JointPlan) -> list[tuple[Any, Any]]:
    """Give each party its channel and its engine."""
    return [(channel, engine) for _, channel, engine in plain_sessions(plan.parties, {}, engine=plan.engine)]


def run_all(
    parts: list[Any], plan: JointPlan, folder: Path, ends: list[tuple[Any, Any]] | None = None, **options: Any
) -> dict[str, Release | BaseException]:
    """Run every party with a channel and an engine of its own, as the command does."""
    ends = ends_of(plan) if ends is None else ends
    found: dict[str, Release | BaseException] = {}

    def one(rank: int) -> None:
        (channel, engine), name = ends[rank], plan.parties[rank]
        try:
            publishing = PublishOptions(**{"report": False, **options.get(name, {})})
            found[name] = run_party(parts[rank], channel, engine, folder / name, publishing)
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            found[name] = error
            for _, other in ends:
                if other is not None:
                    other.close()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(len(plan.parties))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    return found


@pytest.mark.parametrize("engine", ["cheetah", "aby3"])
def test_parties_that_each_run_their_own_command_write_the_same_release(
    people: pa.Table, tmp_path: Path, engine: str
) -> None:
    plan = plan_of("vertical", engine=engine)
    parts = [own_part(plan, rank, table, key="person") for rank, table in enumerate(columns_of(people, THREE))]
    found = run_all(parts, plan, tmp_path)
    assert all(isinstance(release, Release) for release in found.values()), found
    assert len({(tmp_path / name / "release" / "certificate.json").read_bytes() for name in THREE}) == 1
    certificate = found["clinic"].certificate  # type: ignore[union-attr]
    joint = next(fact for fact in certificate.facts if isinstance(fact, Joint))
    assert (joint.engine, joint.computing) == (engine, THREE if engine == "aby3" else ("bank", "shop"))
    assert any("no one saw anything of another's cells" in claim.claim for claim in certificate.claims)


def test_a_party_that_fails_is_named_to_the_others_and_nothing_stays_anywhere(people: pa.Table, tmp_path: Path) -> None:
    plan = plan_of("vertical")
    parts = [own_part(plan, rank, table, key="person") for rank, table in enumerate(columns_of(people, THREE))]
    (tmp_path / "clinic").write_text("in the way")
    found = run_all(parts, plan, tmp_path)
    assert isinstance(found["clinic"], OptionError)
    for name in ("bank", "shop"):
        assert isinstance(found[name], PartyError)
        assert "'clinic' gave up" in str(found[name])
        assert str(tmp_path) not in str(found[name])  # where another writes is nobody's business
    assert left_in(tmp_path) == [tmp_path / "clinic"]


def test_a_party_that_cannot_write_at_the_end_leaves_nothing_anywhere(
    people: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sfumato.publish import release

    def full(path: Path, text: str, *, mode: int | None = None) -> None:
        if ".shop." in str(path) and path.name == "schema-private.toml":
            raise OSError(28, "No space left on device")
        path.write_text(text, encoding="utf-8")

    monkeypatch.setattr(release, "write_text", full)
    plan = plan_of("horizontal")
    parts = [own_part(plan, rank, table, SCHEMA) for rank, table in enumerate(rows_of(people, THREE))]
    found = run_all(parts, plan, tmp_path)
    assert "could not be written (No space left on device)" in str(found["shop"])
    assert all("'shop' gave up" in str(found[name]) for name in ("bank", "clinic"))
    assert left_in(tmp_path) == []


def test_a_party_with_another_plan_or_format_is_refused_by_all(people: pa.Table, tmp_path: Path) -> None:
    plan = plan_of("horizontal")
    tables = rows_of(people, THREE)
    other = dataclasses.replace(plan, mechanism=LaplacePCA(k=21))
    parts = [own_part(other if rank == 1 else plan, rank, table, SCHEMA) for rank, table in enumerate(tables)]
    found = run_all(parts, plan, tmp_path)
    assert any("another plan" in str(error) for error in found.values())
    assert all(isinstance(error, OptionError | PartyError) for error in found.values())
    parts = [own_part(plan, rank, table, SCHEMA) for rank, table in enumerate(tables)]
    found = run_all(parts, plan, tmp_path, bank={"form": "parquet"})
    assert any("another format" in str(error) for error in found.values())
    assert left_in(tmp_path) == []


class _Random:
    """A channel whose party sends random bytes in place of one of its messages."""

    def __init__(self, channel: LocalChannel, which: int) -> None:
        self._channel, self._which, self.messages_seen = channel, which, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def send(self, to: int, kind: str, payload: bytes) -> None:
        """Send, or send as many random bytes."""
        damaged, self.messages_seen = self.messages_seen == self._which, self.messages_seen + 1
        rng = np.random.default_rng(self._which)
        self._channel.send(to, kind, rng.bytes(len(payload)) if damaged else payload)


@pytest.mark.parametrize(
    ("every", "options"),
    [
        pytest.param(every, options, marks=[pytest.mark.slow] if every == 1 or "centres" in options else [])
        for every in (151, 1)
        for options in (
            {"partition": "vertical"},
            {"partition": "horizontal"},
            {"partition": "horizontal", "centres": "each"},
        )
    ],
    ids=str,
)
def test_random_numbers_of_a_party_end_in_a_word_and_never_in_arithmetic(
    people: pa.Table, tmp_path: Path, every: int, options: dict[str, str]
) -> None:
    plan = plan_of(rounds=3, **options)  # type: ignore[arg-type]
    if plan.partition == "vertical":
        parts = [own_part(plan, rank, table, key="person") for rank, table in enumerate(columns_of(people, THREE))]
    else:
        parts = [own_part(plan, rank, table, SCHEMA) for rank, table in enumerate(rows_of(people, THREE))]
    stopped = 0
    for rank in range(3):
        for which in itertools.count(rank, every):
            ends = ends_of(plan)
            channel = _Random(ends[rank][0], which)
            ends[rank] = (channel, ends[rank][1])
            folder = tmp_path / f"{rank} {which}"
            found = run_all(parts, plan, folder, ends)
            if which >= channel.messages_seen:
                break
            failed = [error for error in found.values() if isinstance(error, BaseException)]
            assert all(isinstance(error, SfumatoError) for error in failed), (rank, which, found)
            assert len(failed) in (0, 3)  # wrong numbers that could be right are not noticed, and then by nobody
            stopped += len(failed) == 3
    assert stopped > 10 / every


class _Damaged:
    """A channel whose party garbles one of its messages in the clear."""

    def __init__(self, channel: LocalChannel, which: int) -> None:
        self._channel, self._which, self.kinds = channel, which, list[str]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def send(self, to: int, kind: str, payload: bytes) -> None:
        """Send, or send something else."""
        if kind not in self.kinds and (kind.endswith(":tell") or kind == "written"):
            self.kinds.append(kind)
        damaged = kind in self.kinds and self.kinds.index(kind) == self._which
        self._channel.send(to, kind, b"x" if damaged else payload)


@pytest.mark.parametrize("partition", ["vertical", *at_length("horizontal")])
def test_a_message_that_arrives_damaged_ends_the_run_at_all_parties(
    people: pa.Table, tmp_path: Path, partition: str
) -> None:
    plan = plan_of(partition, rounds=sized(3, 20))
    if partition == "vertical":
        parts = [own_part(plan, rank, table, key="person") for rank, table in enumerate(columns_of(people, THREE))]
    else:
        parts = [own_part(plan, rank, table, SCHEMA) for rank, table in enumerate(rows_of(people, THREE))]
    for which in range(100):
        ends = ends_of(plan)
        channel = _Damaged(ends[0][0], which)
        found = run_all(parts, plan, tmp_path, [(channel, ends[0][1]), *ends[1:]])
        if which >= len(channel.kinds):
            break
        assert all(isinstance(error, PartyError) for error in found.values()), (channel.kinds[which], found)
        assert left_in(tmp_path) == []
    assert which > 7  # there were messages to damage
    assert all(isinstance(release, Release) for release in found.values())


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_other_formats_are_the_same_at_all_parties_too(people: pa.Table, tmp_path: Path, form: str) -> None:
    plan = plan_of("vertical")
    joint_in_one_process(
        columns_of(people, THREE),
        plan,
        key="person",
        folders=[tmp_path / name for name in THREE],
        form=form,
        report=False,
    )
    assert len({(tmp_path / name / "release" / f"table.{form}").read_bytes() for name in THREE}) == 1


def test_parties_that_wrote_different_files_release_nothing(people: pa.Table, tmp_path: Path) -> None:
    from sfumato.parties.folder import written_together
    from sfumato.tables.files import FileForm, FileFormat

    releases = play(people, plan_of("vertical"))
    releases[1] = dataclasses.replace(releases[1], table=releases[1].table.slice(1))
    channels = local_channels(THREE)
    errors: list[str] = []

    def one(rank: int) -> None:
        try:
            folder = tmp_path / THREE[rank]
            written_together(releases[rank], channels[rank], folder, FileForm(FileFormat.CSV))
        except PartyError as error:
            errors.append(str(error))

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert len(errors) == 3
    assert all("so nothing is released" in error for error in errors)
    assert left_in(tmp_path) == []


# ------------------------------------------------------------------------------------------------- what is refused


def test_owners_of_rows_with_different_schemas_are_told_the_column(people: pa.Table, tmp_path: Path) -> None:
    wider = dataclasses.replace(SCHEMA["age"], domain=Domain(declared=True, low=0, high=130))
    other = Schema(tuple(wider if field.name == "age" else field for field in SCHEMA))
    folders = [tmp_path / name for name in THREE]
    with pytest.raises(SchemaError, match="'clinic' has another schema than 'bank', first in column 'age'"):
        joint_in_one_process(
            rows_of(people, THREE), plan_of("horizontal"), schemas=[SCHEMA, other, SCHEMA], folders=folders
        )
    assert left_in(tmp_path) == []


def test_owners_of_columns_with_different_keys_are_told_how_many(people: pa.Table, tmp_path: Path) -> None:
    tables = columns_of(people, THREE)
    keys = [key.as_py() for key in tables[1].column("person")]
    tables[1] = tables[1].set_column(0, "person", pa.array(["unknown", *keys[1:]]))
    with pytest.raises(TableError, match=f"{N - 1} keys in common") as error:
        joint_in_one_process(
            tables, plan_of("vertical"), key="person", folders=[tmp_path / name for name in THREE], report=False
        )
    assert "unknown" not in str(error.value)
    assert "secret-" not in str(error.value)
    assert left_in(tmp_path) == []


def test_a_column_of_two_owners_and_a_target_of_none_are_refused(people: pa.Table) -> None:
    tables = columns_of(people, THREE)
    twice = [*tables[:2], tables[2].append_column("age", people.column("age"))]
    with pytest.raises(SchemaError, match="'bank' and 'shop' both contribute 'age'"):
        joint_in_one_process(twice, plan_of("vertical"), key="person")
    plan = dataclasses.replace(plan_of("vertical"), target="height")
    with pytest.raises(OptionError, match="no party contributes a column 'height'"):
        joint_in_one_process(tables, plan, key="person")


def test_what_a_joint_run_cannot_do_is_refused_before_anybody_is_called(people: pa.Table) -> None:
    vertical, horizontal = plan_of("vertical"), plan_of("horizontal")
    table, rows = columns_of(people, THREE)[0], rows_of(people, THREE)[0]
    schema = Schema.infer(table.drop_columns(["person"]))
    cases: list[tuple[type[Exception], str, Any]] = [
        (OptionError, "needs a key", lambda: own_part(vertical, 0, table)),
        (OptionError, "no key column 'id'", lambda: own_part(vertical, 0, table, key="id")),
        (OptionError, "leave it out", lambda: own_part(horizontal, 0, rows, SCHEMA, key="person")),
        (OptionError, "needs a schema", lambda: own_part(horizontal, 0, rows)),
        (
            SchemaError,
            "bounds of column 'age' are not declared",
            lambda: own_part(horizontal, 0, rows, Schema.infer(rows, identifiers=["person"])),
        ),
        (
            PrivacyRefusal,
            "'age' is public",
            lambda: own_part(vertical, 0, table, schema.with_role(Role.PUBLIC, "age"), key="person"),
        ),
        (
            OptionError,
            "'age' holds privacy levels",
            lambda: own_part(vertical, 0, table, schema.with_role(Role.LEVEL, "age"), key="person"),
        ),
        (
            OptionError,
            "'age' is the target in the schema",
            lambda: own_part(vertical, 0, table, schema.with_role(Role.TARGET, "age"), key="person"),
        ),
        (SchemaError, "no column 'spent'", lambda: _without_target(horizontal, rows)),
        (
            TableError,
            "repeat a key that stands above",
            lambda: own_part(vertical, 0, pa.concat_tables([table, table]), key="person"),
        ),
        (LevelError, "records", lambda: own_part(vertical, 0, table.slice(0, 15), key="person")),
        (OptionError, "columns to contribute", lambda: own_part(vertical, 0, table, key="person", columns=["height"])),
    ]
    for kind, words, call in cases:
        with pytest.raises(kind, match=words):
            call()


def _without_target(plan: JointPlan, rows: pa.Table) -> Any:
    return own_part(plan, 0, rows.drop_columns(["spent"]), Schema(tuple(f for f in SCHEMA if f.name != "spent")))


@pytest.mark.parametrize("others", [4, 9])
def test_an_owner_with_as_many_coordinates_as_a_group_has_records_is_refused(others: int) -> None:
    rng = np.random.default_rng(others)
    table = pa.table({"key": np.arange(60), **{f"c{place}": rng.normal(size=60) for place in range(others)}})
    with pytest.raises(PrivacyRefusal, match=f"contributes {others} coordinates"):
        own_part(JointPlan("vertical", THREE, LaplacePCA(k=others + 1)), 0, table, key="key")
    own_part(JointPlan("vertical", THREE, LaplacePCA(k=others + 2)), 0, table, key="key")


@pytest.mark.parametrize("count", [3, 4])
def test_products_with_known_columns_solve_for_another_where_the_refusal_says_so(count: int) -> None:
    rng = np.random.default_rng(count)
    known, other = rng.normal(size=(count + 1, count)), rng.normal(size=count + 1)
    centred = known - known.mean(axis=0)
    equations = np.vstack([centred.T, np.ones(count + 1)])
    told = np.concatenate([centred.T @ (other - other.mean()), [other.sum()]])
    np.testing.assert_allclose(np.linalg.solve(equations, told), other, atol=1e-6)


def test_columns_that_are_not_named_stay_at_home(people: pa.Table) -> None:
    plan = plan_of("vertical")
    part = own_part(plan, 1, columns_of(people, THREE)[1], key="person", columns=["smoker"])
    assert part.table.column_names == ["smoker"]
    assert part.dropped == ("person",)
    assert repr(part) == "OwnPart(clinic, vertical)"


def test_the_documents_of_a_run_hold_the_names_of_parties_and_no_rows(people: pa.Table) -> None:
    release = play(people, plan_of("horizontal"))[0]
    document = json.loads(seen_in(release)[0].to_json())
    assert {name for row in document["seen"] for name in row["to"]} == set(THREE)
    assert repr(release).startswith("Release(Certificate(joint-laplace-pca, release,")


def test_rows_that_seem_to_be_several_of_a_person_stop_until_all_owners_say_otherwise() -> None:
    who = np.repeat(np.arange(60), 4)
    table = pa.table({"code": [f"p{each:02d}" for each in who], "born": 1900 + who, "size": np.arange(240.0)})
    schema = Schema(
        (
            Field("code", Kind.NOMINAL, Role.IDENTIFIER),
            Field("born", Kind.INTEGER, domain=Domain(declared=True, low=1900, high=2000)),
            Field("size", Kind.CONTINUOUS, domain=Domain(declared=True, low=0, high=300)),
        )
    )
    plan = JointPlan("horizontal", THREE, LaplacePCA(k=20, grouping="modified"))
    with pytest.raises(PrivacyRefusal, match="write rows_are_people = true"):
        own_part(plan, 0, table, schema)
    stated = dataclasses.replace(plan, rows_are_people=True)
    assert own_part(stated, 0, table, schema).schema == schema
    assert JointPlan.from_document(stated.document()) == stated  # all owners have the same plan, or none runs
    assert "rows_are_people" not in plan.document()
    with pytest.raises(OptionError, match="one row for each key"):
        dataclasses.replace(stated, partition="vertical")
