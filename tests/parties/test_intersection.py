"""Owners of columns whose keys differ: they go on with those that all have, and learn no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.core.errors import OptionError, TableError
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties.facts import KeysMatched
from sfumato.parties.intersection import LEAKS, KeyCounts, intersect_keys
from sfumato.parties.plan import JointPlan
from sfumato.parties.publish import joint_in_one_process
from sfumato.parties.session import Session, plain_sessions, run_in_threads
from sfumato.publish.verify import verify_release
from tests.parties.together import run_together

THREE = ("bank", "clinic", "shop")


def keys_of(rank: int) -> pa.ChunkedArray:
    """Keys 30 to 89 are common; some are missing and some stand twice."""
    own = [f"p{key}" for key in range(10 * rank, 90 + 10 * rank)]
    return pa.chunked_array([np.random.default_rng(rank).permutation([*own, "", "twice", "twice"]).tolist()])


@pytest.mark.parametrize("parties", [2, 3])
def test_all_find_the_common_keys_in_one_order_and_count_the_rest(parties: int) -> None:
    cells = [keys_of(rank) for rank in range(parties)]
    found = run_together(
        lambda session, rank: intersect_keys(session, cells[rank], 0.5), THREE[:parties], LEAKS, seed=None
    )
    orders = [[cells[rank][int(row)].as_py() for row in rows] for rank, (rows, _) in enumerate(found)]
    assert all(order == orders[0] for order in orders)
    assert set(orders[0]) == {f"p{key}" for key in range(10 * (parties - 1), 90)}
    assert orders[0] != sorted(orders[0])
    assert all(counts == [KeyCounts(90, 1, 2)] * parties for _, counts in found)


def test_no_key_and_no_hash_of_one_alone_is_sent() -> None:
    sessions, sent = plain_sessions(THREE, LEAKS), list[bytes]()
    for _, channel, _ in sessions:
        honest = channel.send

        def send(to: int, kind: str, payload: bytes, honest: Any = honest) -> None:
            sent.append(payload)
            honest(to, kind, payload)

        channel.send = send  # type: ignore[method-assign]
    run_in_threads(lambda rank: intersect_keys(sessions[rank][0], keys_of(rank), 0.5), sessions)
    hidden = b"".join(payload for payload in sent if len(payload) == 32 * 90)
    points = [hidden[start : start + 32] for start in range(0, len(hidden), 32)]
    assert len(points) == 3 * 3 * 2 * 90  # owners, hops, receivers
    seen = {point: points.count(point) for point in points}
    assert max(seen.values()) == 6  # common keys at the last hop alone: of three owners, to two others each
    assert sum(count == 6 for count in seen.values()) == 70


def test_fewer_common_keys_than_agreed_end_the_run_at_all_with_counts() -> None:
    sessions, errors = plain_sessions(THREE, LEAKS), list[str]()

    def play(rank: int) -> None:
        try:
            intersect_keys(sessions[rank][0], keys_of(rank), 0.9)
        except TableError as error:
            errors.append(str(error))

    run_in_threads(play, sessions)
    assert len(set(errors)) == 1
    assert len(errors) == 3
    assert "70 keys in common, of 'bank' 90, 'clinic' 90, 'shop' 90, and agreed on at least 90% of each" in errors[0]


def test_a_release_of_common_keys_states_them_and_verifies(tmp_path: Path) -> None:
    rng, owned = np.random.default_rng(3), []
    for rank, name in enumerate(("age", "pay", "days")):
        keys = keys_of(rank)
        owned.append(pa.table({"who": keys, name: rng.integers(0, 90, len(keys))}))
    plan = JointPlan("vertical", THREE, LaplacePCA(k=20), rounds=2, common=0.7)
    folders = [tmp_path / name for name in THREE]
    releases = joint_in_one_process(owned, plan, key="who", folders=folders, report=False)
    assert all(release.table.equals(releases[0].table) for release in releases)
    assert releases[0].table.num_rows == 70
    facts = releases[0].certificate.facts
    assert KeysMatched(70, (90, 90, 90), (1, 1, 1), (2, 2, 2)) in facts
    refused = {each.claim for each in releases[0].certificate.refused}
    assert "All records of the data owners are in the table." in refused
    assert "No one learns which records another owner has." not in refused
    assert verify_release(tmp_path / "shop" / "release").holds
    assert "hidden keys" in (tmp_path / "bank" / "owner" / "ledger.txt").read_text(encoding="utf-8")


def test_rows_have_no_keys_to_match() -> None:
    with pytest.raises(OptionError, match="for owners of columns"):
        JointPlan("horizontal", THREE, LaplacePCA(k=20), common=0.9)


def test_an_owner_that_changes_hidden_keys_is_named() -> None:
    from sfumato.parties.channel import PartyError

    sessions, errors = plain_sessions(THREE, LEAKS), dict[int, str]()
    channel = sessions[1][1]
    honest = channel.send

    def send(to: int, kind: str, payload: bytes) -> None:
        honest(to, kind, payload[:32] * (len(payload) // 32) if len(payload) == 32 * 90 else payload)

    channel.send = send  # type: ignore[method-assign]

    def play(session: Session, rank: int) -> None:
        try:
            intersect_keys(session, keys_of(rank), 0.5)
        except PartyError as error:
            errors[rank] = str(error)
            raise

    with pytest.raises(PartyError):
        run_in_threads(lambda rank: play(sessions[rank][0], rank), sessions)
    assert any("party 'clinic' sent other hidden keys" in error for error in errors.values())
