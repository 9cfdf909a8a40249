"""Downgrading: no rule left tells much of the label, theta is the paper's, and as few cells are lost as can be."""

from __future__ import annotations

import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.errors import LevelError, OptionError
from sfumato.methods.modify.facts import Downgraded
from sfumato.methods.modify.rules import InferenceChannel, entropy_of, grow_on
from sfumato.publish.verify import verify_release
from tests.modify.tables import mixed, origin_of, records_of
from tests.oracles.js07 import base_set, entropy

pytestmark = pytest.mark.filterwarnings("ignore:.*other cells become missing")


def channel_of(table: pa.Table, private: str, leaf: int) -> InferenceChannel:
    grown = grow_on(records_of(table, gaps=True), private, leaf)
    return InferenceChannel.of(grown, int(np.nanmax(grown.target.cells)) + 1)


@pytest.fixture(scope="module")
def channel() -> InferenceChannel:
    found = channel_of(mixed(300), "ill", 20)
    assert len(found.leaves) > 4
    return found


def answers(channel: InferenceChannel, row: int, blocked: np.ndarray) -> list[bool | None]:
    """What a record answers at each node; None where its cell is blocked."""
    told: list[bool | None] = []
    for (column, _, _), lower in zip(channel.grown.tree.nodes, channel.grown.tree.lower, strict=True):
        code = int(channel.grown.codes[row, column])
        told.append(None if blocked[row, column] else bool(lower[code >> 3] >> (code & 7) & 1))
    return told


def test_the_posterior_is_that_of_the_parametric_base_set(channel: InferenceChannel) -> None:
    rng = np.random.default_rng(5)
    blocked = rng.random((len(channel.grown.codes), len(channel.grown.asked))) < 0.4
    found = channel.posterior(blocked)
    nodes = [(int(column), int(left), int(right)) for column, left, right in channel.grown.tree.nodes]
    counts = channel.counts.tolist()
    for row in range(0, len(blocked), 7):
        told = base_set(nodes, counts, answers(channel, row, blocked))
        np.testing.assert_allclose(found[row], told, atol=1e-12)
        assert entropy_of(found[row : row + 1])[0] == pytest.approx(entropy(told))


def test_labels_by_what_is_left_never_tell_less_than_naming_the_commonest(channel: InferenceChannel) -> None:
    rng = np.random.default_rng(8)
    shape, everybody = (len(channel.grown.codes), len(channel.grown.asked)), np.ones(len(channel.grown.codes), np.bool_)
    for share in (0.0, 0.2, 0.6, 1.0):
        counts = channel.label_counts(rng.random(shape) < share, everybody)
        labels, of = counts.sum(axis=0), counts.sum(axis=1)
        np.testing.assert_array_equal(labels, channel.counts[0])
        assert entropy_of(counts) @ of / of.sum() <= entropy_of(labels) + 1e-12
        assert counts.max(axis=1).sum() >= labels.max()
    leaves = channel.label_counts(np.zeros(shape, dtype=np.bool_), everybody)
    np.testing.assert_array_equal(np.sort(leaves, axis=0), np.sort(channel.counts[list(channel.leaves)], axis=0))


@pytest.mark.parametrize("hidden", [1.0, 0.4])
def test_the_file_of_rules_names_no_entropy_above_the_labels_own(hidden: float) -> None:
    rng, n = np.random.default_rng(1), 3000
    one = rng.integers(0, 3, n)
    other = (one + (rng.random(n) < 0.3) * rng.integers(0, 3, n)) % 3
    ill = rng.random(n) < np.array([0.02, 0.1, 0.6])[other]
    table = pa.table(
        {
            "a": [f"a{place}" for place in one],
            "b": [f"b{place}" for place in other],
            "c": rng.normal(size=n) + other,
            "ill": np.where(ill, "yes", "no"),
        }
    )
    release = sf.sanitize(table, sf.Downgrading("ill", hidden=hidden), seed=1, report=False)
    text = release.texts["rules.txt"]
    own = float(re.findall(r"hidden labels: ([0-9.]+) bits", text)[0])
    before, after = (float(each) for each in re.findall(r"([0-9.]+) bits before, ([0-9.]+) after", text)[0])
    told = re.findall(r"label: ([0-9.]+) before, ([0-9.]+) after, ([0-9.]+) by naming", text)[0]
    assert before < after <= own
    assert float(told[0]) > float(told[1]) >= float(told[2])


def test_a_record_that_lost_all_has_the_labels_of_all_records(channel: InferenceChannel) -> None:
    all_lost = np.ones((len(channel.grown.codes), len(channel.grown.asked)), dtype=np.bool_)
    shares = channel.counts[0] / channel.counts[0].sum()
    np.testing.assert_allclose(channel.posterior(all_lost), np.tile(shares, (len(all_lost), 1)), atol=1e-12)


def prunings(channel: InferenceChannel, node: int = 0) -> list[frozenset[int]]:
    """Every set of nodes that covers the tree below a node."""
    column, left, right = (int(part) for part in channel.grown.tree.nodes[node])
    if column < 0:
        return [frozenset({node})]
    below = [one | other for one, other in itertools.product(prunings(channel, left), prunings(channel, right))]
    return [frozenset({node}), *below]


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.2, 0.6, 2.0])
def test_of_all_wider_rules_those_are_taken_that_cost_the_fewest_cells(channel: InferenceChannel, limit: float) -> None:
    hidden = np.arange(len(channel.grown.codes)) % 3 > 0
    kept = channel.give_up(limit, hidden)
    present, nodes = channel._present(hidden), channel.grown.tree.nodes

    def cost(ends: frozenset[int]) -> float:
        return float(sum(present[end, nodes[end, 0]] for end in ends if nodes[end, 0] >= 0))

    serving = [ends for ends in prunings(channel) if all(channel.drops[end] <= limit + 1e-12 for end in ends)]
    assert frozenset(kept.ends) in serving
    assert cost(frozenset(kept.ends)) == min(map(cost, serving))
    assert all(len(lost) == 1 for lost in kept.lost.values())
    for end, lost in kept.lost.items():  # both answers are blocked alike
        (column,) = lost
        assert kept.blocked(len(channel.grown.asked))[kept.of == end, column].all()


@pytest.mark.parametrize("hidden", [1.0, 0.6])
@pytest.mark.parametrize("limit", [0.05, 0.4])
def test_a_tree_grown_on_the_release_has_no_rule_that_tells_more(hidden: float, limit: float) -> None:
    table = mixed(300)
    mechanism = sf.Downgrading("ill", limit=limit, hidden=hidden, leaf=20)
    release = sf.sanitize(table, mechanism, seed=2, report=False)
    (fact,) = (fact for fact in release.certificate.facts if isinstance(fact, Downgraded))
    origin = origin_of(release)
    gone = np.array([cell is None for cell in release.table["ill"].to_pylist()])
    assert int(gone.sum()) == fact.hidden == round(hidden * 300)
    whole = release.table.set_column(5, "ill", table["ill"].take(origin)).filter(pa.array(gone))
    found = channel_of(whole, "ill", 20)
    assert found.drops[list(found.leaves)].max() == pytest.approx(fact.most, abs=1e-9)
    assert fact.most <= limit
    for name in table.column_names[:5]:
        before, after = table[name].take(origin).to_pylist(), release.table[name].to_pylist()
        lost = np.array([b is not None and a is None for a, b in zip(after, before, strict=True)])
        assert int(lost.sum()) == dict(zip(fact.columns, fact.cells, strict=True)).get(name, 0)
        assert not lost[~gone].any()  # rows that show their label are as they were
        assert all(a is None or a == b for a, b in zip(after, before, strict=True))


def test_a_channel_through_a_twin_of_the_telling_column_is_closed_too() -> None:
    rng = np.random.default_rng(1)
    level = rng.integers(0, 50, 400)
    table = pa.table({
        "level": level, "twin": level * 2.0 + 0.5, "noise": rng.integers(0, 9, 400),
        "sick": np.where(level > 24, "yes", "no"),
    })  # fmt: skip
    with pytest.warns(UserWarning, match="800 of 1200 other cells become missing"):
        release = sf.sanitize(table, sf.Downgrading("sick", leaf=30), report=False)
    lost = {name: release.table[name].null_count for name in table.column_names}
    assert lost == {"level": 400, "twin": 400, "noise": 0, "sick": 400}


def test_where_nothing_tells_the_label_nothing_else_is_lost() -> None:
    rng = np.random.default_rng(2)
    table = pa.table({"x": rng.integers(0, 50, 300), "y": rng.random(300), "sick": rng.choice(["yes", "no"], 300)})
    release = sf.sanitize(table, sf.Downgrading("sick", leaf=100), report=False)
    assert [release.table[name].null_count for name in ("x", "y", "sick")] == [0, 0, 300]


def test_the_owner_reads_the_rules_and_the_recipient_does_not(tmp_path: Path) -> None:
    folder = sf.sanitize(mixed(300), sf.Downgrading("ill", leaf=20), report=False).save(tmp_path / "out")
    text = (folder / "owner" / "rules.txt").read_text(encoding="utf-8")
    assert "Before, " in text
    assert "ill = yes with confidence" in text
    assert sorted(path.name for path in (folder / "release").iterdir()) == [
        "certificate.json",
        "certificate.sig",
        "schema.toml",
        "table.csv",
    ]
    assert "confidence" not in (folder / "release" / "certificate.json").read_text(encoding="utf-8")
    found = verify_release(folder / "release")
    assert found.holds
    assert any(check.name == "suppressed cells" for check in found)


def test_an_ordered_label_is_a_label() -> None:
    table = mixed(200)
    grades = pa.array([("low", "mid", "high")[min(2, int(pay // 1200))] for pay in table["pay"].to_pylist()])
    table = table.append_column("grade", grades)
    schema = sf.inspect(table)
    order = sf.Domain(declared=True, categories=("low", "mid", "high"))
    fields = [sf.Field("grade", sf.Kind.ORDINAL, domain=order) if field.name == "grade" else field for field in schema]
    release = sf.sanitize(
        table, sf.Downgrading("grade", leaf=20), schema=sf.Schema(tuple(fields)), report=False, no_rules=True
    )
    assert release.table["grade"].null_count == 200
    assert release.table["pay"].null_count == 200


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"private": ""}, OptionError, "name its column with private="),
        ({"private": "pay"}, OptionError, "'pay' is not a label but a number or a date"),
        ({"private": "seen"}, OptionError, "'seen' is not a label"),
        ({"private": "il"}, OptionError, "did you mean 'ill'"),
        (
            {"leaf": 500},
            LevelError,
            "120 persons have a label in column 'ill' that is to be hidden and a rule is of 500",
        ),
        ({"hidden": 0}, OptionError, "must lie above 0 and at most at 1"),
        ({"limit": -1}, OptionError, "a number of bits from 0 on"),
        ({"level": 3}, LevelError, "which downgrading does not give"),
        ({"strata": "smokes"}, OptionError, "downgrading makes no groups"),
        ({"identifiers": ["age", "pay", "seen", "smokes", "town"]}, OptionError, "'ill' is the only one"),
    ],
)
def test_what_cannot_be_downgraded_is_refused_in_a_sentence(options: dict[str, Any], kind: type, words: str) -> None:
    with pytest.raises(kind, match=words):
        sf.sanitize(mixed(), method="downgrade", report=False, **{"private": "ill", "leaf": 20, **options})
