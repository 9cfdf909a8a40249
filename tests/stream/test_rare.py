"""Categories that fewer than k persons of a stream hold do not leave it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import OptionError, PrivacyRefusal
from sfumato.stream.rare import counts_of_bytes
from sfumato.stream.run import Stream
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import StateError
from sfumato.tables.facts import RareValues
from sfumato.tables.field import Domain, Field, Kind, Role
from sfumato.tables.schema import Schema
from tests.examples import examples

K = 5
TOWNS = tuple(f"town {place}" for place in range(40))
SIZES = ("S", "M", "L", "XL")


def schema(*, target: str | None = None) -> Schema:
    made = Schema(
        (
            Field("town", Kind.NOMINAL, domain=Domain(declared=True, categories=TOWNS), missing=("?",)),
            Field("room", Kind.NOMINAL, domain=Domain(categories=tuple(range(12)))),
            Field("size", Kind.ORDINAL, domain=Domain(categories=SIZES)),
            Field("ill", Kind.BOOLEAN, domain=Domain(categories=(False, True))),
            Field("pay", Kind.CONTINUOUS),
        )
    )
    return made if target is None else made.with_role(Role.TARGET, target)


def arrivals(rows: int, seed: int) -> pa.Table:
    """A table in which some categories are rare and some cells are missing."""
    rng = np.random.default_rng(seed)
    town = [TOWNS[place] for place in np.minimum(rng.geometric(0.12, rows), len(TOWNS)) - 1]
    lost = rng.random(rows) < rng.choice([0.01, 0.2])
    return pa.table(
        {
            "town": ["?" if gone else name for name, gone in zip(town, lost, strict=True)],
            "room": np.minimum(rng.geometric(0.3, rows), 12) - 1,
            "size": [SIZES[place] for place in rng.choice(4, rows, p=[0.02, 0.6, 0.36, 0.02])],
            "ill": rng.random(rows) < rng.choice([0.01, 0.3]),
            "pay": rng.normal(30, 5, rows),
        }
    )


def begun(state: Path, table: pa.Table, first: int, **options: Any) -> Stream:
    told: dict[str, Any] = {"schema": schema(), "k": K, "seed": 2, "batch_rows": 30} | options
    return sf.stream(state, table.slice(0, first), **told)


def rare_of(release: Any) -> RareValues:
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, RareValues))
    return fact


@given(st.integers(0, 2**31), st.sampled_from([None, "pool", "lift"]), st.integers(60, 160))
@examples(4)
def test_no_category_that_fewer_than_k_hold_leaves_in_any_epoch(
    tmp_path_factory: pytest.TempPathFactory, seed: int, way: str | None, first: int
) -> None:
    table, folder = arrivals(260, seed), tmp_path_factory.mktemp("rare")
    stream = begun(folder / "state", table, first, rare=way)
    for epoch, rows in enumerate((first, 200, 260)):
        stream.ingest(table.slice(0, rows))
        release = stream.publish(folder / f"epoch{epoch}", report=False)
        assert sf.verify(folder / f"epoch{epoch}" / "release").holds or release.certificate.randomness == "dry-run"
        words = [claim.claim for claim in release.certificate.claims]
        assert f"The release contains no category that fewer than {K} persons in the stream have." in words
        fact = rare_of(release)
        for name in ("town", "room", "size", "ill"):
            if name in fact.dropped:
                assert name not in release.table.column_names
                continue
            held = Counter(map(str, table.slice(0, rows).column(name).to_pylist()))
            shown = {str(cell) for cell in release.table.column(name).to_pylist() if cell is not None} - {"?"}
            assert all(held[label] >= K for label in shown if not label.startswith("other"))
            assert name == "town" or not any(label.startswith("other") for label in shown) or name == "room"


def test_rows_that_are_repeated_stay_as_they_left_where_a_category_is_no_longer_rare(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    rows = 400
    pay = np.where(np.arange(rows) < 200, rng.normal(0, 1, rows), rng.normal(90, 1, rows))
    town = np.where(np.arange(rows) < 200, "town 0", "town 1").astype(object)
    town[:3] = "town 7"
    town[200:230] = "town 7"
    table = pa.table({"town": pa.array(list(town)), "pay": pay})
    told = Schema((schema()["town"], schema()["pay"]))
    stream = begun(tmp_path / "state", pa.concat_tables([table.slice(0, 200), table.slice(230, 100)]), 300, schema=told)
    first = stream.publish(tmp_path / "one", report=False)
    assert "town 7" not in first.table.column("town").to_pylist()
    stream.ingest(table.slice(200, 30))
    second = stream.publish(tmp_path / "two", report=False)
    with StreamSession.open(tmp_path / "state", write=False) as session:
        assert session.ledger[-1].repeated > 0
    near = [pay < 40 for pay in second.table.column("pay").to_pylist()]
    low = Counter(town for town, here in zip(second.table.column("town").to_pylist(), near, strict=True) if here)
    assert "town 7" not in low  # it left as another and repeats so
    assert "town 7" in second.table.column("town").to_pylist()


def test_rare_categories_leave_where_the_owner_says_so_and_the_claim_is_refused(tmp_path: Path) -> None:
    stream = begun(tmp_path / "state", arrivals(200, 4), 200, rare="keep")
    release = stream.publish(tmp_path / "one", report=False)
    fact = rare_of(release)
    held = Counter(release.table.column("town").to_pylist())
    assert (fact.way, fact.shown) == ("keep", True)
    assert min(held.values()) < K
    refused = [each.claim for each in release.certificate.refused]
    assert f"The release contains no category that fewer than {K} persons in the stream have." in refused


def test_a_rare_class_of_the_target_stops_the_publication_until_it_is_told(tmp_path: Path) -> None:
    table = arrivals(200, 5).set_column(3, "ill", pa.array([place < 2 for place in range(200)]))
    stream = begun(tmp_path / "ask", table, 200, schema=schema(target="ill"))
    with pytest.raises(PrivacyRefusal, match="class of the target 'ill' is that of fewer than 5 persons"):
        stream.publish(tmp_path / "one", report=False)
    with StreamSession.open(tmp_path / "ask", write=False) as session:
        assert session.status().epoch == 0  # nothing was begun
    with pytest.raises(OptionError, match="no way 'hide'"):
        begun(tmp_path / "wrong", table, 200, rare="hide")
    assert not (tmp_path / "wrong").exists()


def test_persons_with_several_rows_count_as_a_bound(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_bytes(bytes(range(32)))
    key.chmod(0o600)
    rng = np.random.default_rng(6)
    town = ["town 0"] * 150 + ["town 1"] * 41 + ["town 2"] * 9  # nine rows are five persons at most, of two rows each
    table = pa.table({"who": [f"p{row // 2:04d}" for row in range(200)], "town": town, "pay": rng.normal(size=200)})
    told = Schema((Field("who", Kind.NOMINAL, Role.PERSON), schema()["town"], schema()["pay"]))
    stream = begun(tmp_path / "state", table, 200, schema=told, person="who", person_rows=2, person_key=key)
    release = stream.publish(tmp_path / "one", report=False)
    assert set(release.table.column("town").to_pylist()) == {"town 0", "town 1"}
    assert rare_of(release).by_person
    assert rare_of(release).k == K


@pytest.mark.parametrize(("body", "size"), [(b"", 0), (b"\0" * 16, 2), (b"\xff" * 16, 1), (b"\0" * 12, 1), (b"", -1)])
def test_counts_that_are_not_those_of_a_column_are_refused(body: bytes, size: int) -> None:
    with pytest.raises(StateError, match="how many hold each category"):
        counts_of_bytes(body, size)
    assert counts_of_bytes(np.array([1, 2], dtype="<i8").tobytes(), 1).tolist() == [1, 2]
