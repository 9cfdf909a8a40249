"""Streams with columns of very many categories: groups hold their categories through joins, splits and kills."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.records import Block, BlockKind, Extent
from sfumato.methods.condense.slots import MISSING, divide
from sfumato.stream.entries import TALLY, cut_batches, tally_of_bytes
from sfumato.stream.session import StreamSession
from sfumato.stream.settings import StateError
from sfumato.stream.state import State
from tests.examples import examples

CODES = 300


def visits(rows: int, seed: int, *, codes: int = CODES) -> pa.Table:
    """A table with a column of very many categories, some cells of which are missing, and a number that goes with it.

    Some rows ask for a level that no group soon has, so that they wait.
    """
    rng = np.random.default_rng(seed)
    code = rng.integers(0, codes, rows)
    level = np.where(rng.random(rows) < 0.03, 40, rng.integers(3, 6, rows))
    names = [None if lost else f"c{each:04d}" for each, lost in zip(code, rng.random(rows) < 0.05, strict=True)]
    return pa.table(
        {"code": names, "cost": code / 30 + rng.normal(size=rows), "sex": rng.choice(["f", "m"], rows), "level": level}
    )


def begun(state: Path, table: pa.Table, first: int, **options: object) -> None:
    told = {
        "k": 3,
        "level": "level",
        "batch_rows": 50,
        "seed": 5,
        "grouping": "paper",
        "split": "paper",
        "rare": "keep",
    } | options
    sf.stream(state, table.slice(0, first), **told)


def held_by_groups(session: StreamSession) -> Counter[str | None]:
    """Categories of all groups together."""
    tally = session.maintainer.tally
    assert tally is not None
    labels = session.codec.schema["code"].domain.categories or ()
    places = np.concatenate([tally.of(group)[0] for group in session.maintainer.ids.tolist()])
    return Counter(None if place == MISSING else str(labels[place]) for place in places.tolist())


@given(st.integers(0, 2**31), st.sampled_from(["paper", "strict"]), st.integers(1, 90))
@examples(4)
def test_released_categories_are_exactly_those_of_the_groups_and_of_the_records(
    tmp_path_factory: pytest.TempPathFactory, seed: int, split: str, cut: int
) -> None:
    table = visits(900, seed)
    state = tmp_path_factory.mktemp("codes") / "state"
    begun(state, table, 600, split=split)
    known = set(table.slice(0, 600).column("code").to_pylist())
    with StreamSession.open(state) as session:
        session.ingest(cut_batches([table.slice(600, cut), table.slice(600 + cut)], 50))
    with StreamSession.open(state) as session:  # what is on disk is what was in memory
        held = held_by_groups(session)
        taken = Counter(each for each in table.column("code").to_pylist() if each in known)
        taken.subtract(held)
        assert not session.status().awaiting_replay or min(taken.values()) >= 0
        assert sum(taken.values()) == session.status().pending
        for group, size in zip(session.maintainer.ids.tolist(), session.maintainer.groups.count, strict=True):
            assert [len(places) for places in session.maintainer.tally.of(group)] == [size]  # type: ignore[union-attr]
        publication, _ = session.publish()
        if len(publication.family) == len(session.maintainer.ids):
            assert Counter(publication.table.column("code").to_pylist()) == held
        ends = np.cumsum(publication.count)
        labels = session.codec.schema["code"].domain.categories or ()
        for group, last, size in zip(publication.family.tolist(), ends, publication.count, strict=True):
            drawn = publication.table.column("code").slice(last - size, size).to_pylist()
            own = session.maintainer.tally.of(group)[0].tolist()  # type: ignore[union-attr]
            assert Counter(drawn) == Counter(None if place < 0 else labels[place] for place in own)


def test_a_stream_that_stops_in_between_holds_what_one_without_a_stop_does(tmp_path: Path) -> None:
    table = visits(700, 8)
    for name in ("once", "twice"):
        begun(tmp_path / name, table, 500)
    batches = list(cut_batches([table], 50))
    with StreamSession.open(tmp_path / "once") as session:
        session.ingest(batches)
        whole = held_by_groups(session)
    for part in (batches[:12], batches):
        with StreamSession.open(tmp_path / "twice") as session:
            session.ingest(part)
    with StreamSession.open(tmp_path / "twice", write=False) as session:
        assert held_by_groups(session) == whole


@given(st.lists(st.integers(-1, 40), min_size=2, max_size=60), st.floats(-30, 30))
@examples(30)
def test_a_split_shares_out_categories_and_loses_none(held: list[int], gap: float) -> None:
    first, second = divide(held, lambda places: places.astype(float), gap)
    assert len(first) == len(held) // 2
    assert sorted(first + second) == sorted(held)
    ordered = np.array(sorted(held, reverse=gap < 0))
    widest = ordered[len(held) // 2 :].mean() - ordered[: len(held) // 2].mean()
    apart = np.mean(second) - np.mean(first)
    assert abs(apart - gap) <= abs(widest - gap) + 1e-9  # no farther off than the cut in the middle
    if abs(gap) >= abs(widest):
        assert apart == pytest.approx(widest)


def test_a_value_goes_with_the_number_that_goes_with_it_through_splits(tmp_path: Path) -> None:
    table = visits(4000, 2)
    begun(tmp_path / "state", table, 1500, k=5, split="strict")
    with StreamSession.open(tmp_path / "state") as session:
        session.ingest(cut_batches([table], 50))
        released = session.publish()[0].table
    places = [-1 if each is None else int(each[1:]) for each in released.column("code").to_pylist()]
    there = np.array(places) >= 0
    assert np.corrcoef(np.array(places)[there], released.column("cost").to_numpy()[there])[0, 1] > 0.85


def test_the_state_grows_by_no_more_than_two_numbers_a_record(tmp_path: Path) -> None:
    table = visits(2000, 4, codes=1500)
    begun(tmp_path / "state", table, 1200)
    with StreamSession.open(tmp_path / "state") as session:
        session.ingest(cut_batches([table], 50))
        records, groups = session.maintainer.records, len(session.maintainer.ids)
    book = State.open(tmp_path / "state", write=False)
    size = sum(map(len, book.read_large(TALLY).values()))
    book.close()
    assert size <= 8 * records + 4 * groups


@pytest.mark.parametrize(
    "numbers", [[], [1], [1, 0, 4], [1, 9, 3], [2, 1, 1, 1, 2], [1, 0, 3, 7], [-1], [2**30, 0, 3], [2, 0, 4, 1, -1]]
)
def test_categories_that_are_not_those_of_a_group_are_refused(numbers: list[int]) -> None:
    block = Block("code", BlockKind.CODE, 0, 1, (0.0,), extent=Extent(declared=False, labels=tuple("abcdefghi")))
    body = np.array(numbers, dtype="<i4").tobytes()
    with pytest.raises(StateError, match="not those of its records"):
        tally_of_bytes(body, [block], 3)
    with pytest.raises(StateError, match="not those of its records"):
        tally_of_bytes(b"\1\0\0", [block], 3)
    assert tally_of_bytes(np.array([2, 0, 2, 8, 1], dtype="<i4").tobytes(), [block], 3)[0].tolist() == [0, 0, 8]
