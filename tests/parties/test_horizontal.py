"""Owners who each have some rows: one sanitized table, the same at all, with the statistics of the pooled one."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import LevelError, OptionError, PrivacyRefusal
from sfumato.core.groups import summarize
from sfumato.core.records import Block, BlockKind, Layout
from sfumato.methods.perturb.laplace_pca import LaplacePCA, most_components
from sfumato.parties.channel import PartyError
from sfumato.parties.codecs import count_cells, joint_codec, refuse_exposed_rows
from sfumato.parties.groupwise import draw_noise
from sfumato.parties.horizontal import (
    form_groups,
    group_statistics,
    leaks,
    sanitize_horizontal,
    secure_ranges,
)
from sfumato.parties.ledger import Transcript, check
from sfumato.parties.plan import JointPlan, JointResult
from sfumato.parties.session import Session
from tests.examples import examples
from tests.oracles import bcg10_horizontal as oracle
from tests.parties.conftest import Together
from tests.parties.owners import coded_column
from tests.parties.test_codecs import SCHEMA, a_table
from tests.parties.test_horizontal_groups import NAMES, SEEDS, numbers, split_at_random

Matrix = NDArray[np.float64]
Whole = NDArray[np.int64]

some_cases = examples(20, few=5)


def standardized(values: Matrix) -> Matrix:
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 1e-9, spread, 1.0))


def a_plan(parties: int, mechanism: LaplacePCA, centres: str = "last", target: str | None = None) -> JointPlan:
    return JointPlan("horizontal", NAMES[:parties], mechanism, target=target, centres=centres, few="allow")


def sanitized(
    together: Together, plan: JointPlan, parts: list[Matrix], layout: Layout, seed: int | None = None
) -> list[tuple[JointResult, Transcript]]:
    n = sum(map(len, parts))

    def play(session: Session, rank: int) -> tuple[JointResult, Transcript]:
        return sanitize_horizontal(session, plan, parts[rank], layout, n), session.transcript

    return together(play, plan.parties, leaks(plan.centres), seed=seed)


@pytest.mark.parametrize("centres", ["each", "last"])
@some_cases
@given(seed=SEEDS, parties=st.integers(2, 4))
def test_groups_are_large_enough_nothing_is_lost_and_all_owners_end_with_the_same(
    together: Together, centres: str, seed: int, parties: int
) -> None:
    rng = np.random.default_rng(seed)
    n, d, k = int(rng.integers(8, 50)), int(rng.integers(1, 4)), int(rng.integers(2, 5))
    values = standardized(rng.integers(-3, 4, (n, d)) + rng.choice([0.0, 0.1]) * rng.normal(size=(n, d)))
    seen = sanitized(
        together, a_plan(parties, LaplacePCA(k=k), centres), split_at_random(values, parties, rng), numbers(d)
    )
    result = seen[0][0]
    assert result.values.shape == values.shape
    assert np.isfinite(result.values).all()
    assert result.sizes.sum() == n
    assert result.level == k
    assert result.sizes.min() >= n // (n // k)
    np.testing.assert_array_equal(np.bincount(result.labels), result.sizes)
    assert result.noised <= min(d, int(result.sizes.max()) - 1)
    for other, transcript in seen:
        for field in dataclasses.fields(JointResult):
            if field.name not in ("seen", "seen_groups"):  # each owner's own, and what follows
                np.testing.assert_array_equal(getattr(other, field.name), getattr(result, field.name))
        assert other.seen_groups is not None
        assert result.seen_groups is not None
        np.testing.assert_array_equal(other.seen_groups.scales, result.seen_groups.scales)
        np.testing.assert_array_equal(other.seen_groups.axes, result.seen_groups.axes)
        np.testing.assert_array_equal(other.seen_groups.statistics.covariance, result.seen_groups.statistics.covariance)
        assert transcript.to_json_lines() == seen[0][1].to_json_lines()
        check(transcript, leaks(centres))


@some_cases
@given(seed=SEEDS, parties=st.integers(2, 4))
def test_statistics_are_those_of_the_pooled_rows(together: Together, seed: int, parties: int) -> None:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 40)), int(rng.integers(1, 5))
    values, g = standardized(rng.normal(size=(n, d))), int(rng.integers(1, n // 2 + 1))
    labels = rng.permutation(np.concatenate([np.arange(g), rng.integers(0, g, n - g)]))
    owner = rng.integers(0, parties, n)  # an owner may lack a group, or all of them
    pooled = summarize(values, labels, np.zeros(n, dtype=np.int64))

    def play(session: Session, rank: int) -> tuple[Whole, Matrix, Matrix]:
        mine = np.flatnonzero(owner == rank)
        mine = mine[np.argsort(labels[mine], kind="stable")]
        own = np.bincount(labels[mine], minlength=g)
        found = group_statistics(session, values[mine], own, np.bincount(labels))
        return found.sizes, found.mean, found.covariance

    for sizes, mean, covariance in together(play, NAMES[:parties], leaks("last")):
        np.testing.assert_array_equal(sizes, pooled.count)
        np.testing.assert_allclose(mean, pooled.mean, atol=parties * 2.0**-38)
        np.testing.assert_allclose(covariance, pooled.covariance, atol=parties * 2.0**-38)
        np.testing.assert_array_equal(covariance, covariance.transpose(0, 2, 1))


@some_cases
@given(seed=SEEDS, parties=st.integers(2, 4))
def test_ranges_are_those_of_all_owners_and_an_owner_without_rows_never_wins(
    together: Together, seed: int, parties: int
) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(1, 30)), int(rng.integers(1, 4))
    g = int(rng.integers(1, n + 1))
    places = rng.integers(-(2**40), 2**40, (n, m))
    labels = np.concatenate([np.arange(g), rng.integers(0, g, n - g)])
    owner = rng.integers(0, parties, n)

    def play(session: Session, rank: int) -> object:
        mine = np.flatnonzero(owner == rank)
        mine = mine[np.argsort(labels[mine], kind="stable")]
        return secure_ranges(session, places[mine], np.bincount(labels[mine], minlength=g)).tolist()

    wanted = [np.ptp(places[labels == j], axis=0).tolist() for j in range(g)]
    assert together(play, NAMES[:parties], leaks("last")) == [wanted] * parties


@examples(10)
@given(seed=st.integers(0, 2**31), parties=st.integers(2, 4))
def test_each_row_is_perturbed_as_lines_15_to_19_say(together: Together, seed: int, parties: int) -> None:
    rng = np.random.default_rng(seed)
    n, d, b = 24, 3, 0.3
    values = standardized(rng.normal(size=(n, d)))
    parts, plan = split_at_random(values, parties, rng), a_plan(parties, LaplacePCA(k=6, b=b))

    def group(session: Session, rank: int) -> Whole:
        return form_groups(session, plan, parts[rank], numbers(d), n, n // 6)[0]

    labels = together(group, plan.parties, leaks("last"), seed=seed)  # a dry run has the same groups again
    axes: list[Matrix] = []

    def play(session: Session, rank: int) -> tuple[JointResult, Matrix, Whole]:
        listen_to(session, "axes", lambda heard: axes.append(np.frombuffer(heard, dtype="<f8").reshape(-1, d, d)))
        result = sanitize_horizontal(session, plan, parts[rank], numbers(d), n)
        place = next(entry.number for entry in session.transcript.entries if entry.label == "ranges")
        scales = b * session.transcript.values[place].reshape(-1, d)
        own = np.bincount(labels[rank], minlength=len(scales))
        return result, scales, draw_noise("laplace", scales, own, session.private_rng("noise"))  # the same noise again

    seen = together(play, plan.parties, leaks("last"), seed=seed)
    result, scales, _ = seen[0]
    for g in range(len(scales)):
        rows = [part[own == g].tolist() for part, own in zip(parts, labels, strict=True)]
        units = [
            (noise[np.sort(own) == g] / scales[g]).tolist() for own, (_, _, noise) in zip(labels, seen, strict=True)
        ]
        wanted = np.array([row for part in oracle.perturb(rows, axes[0][g].tolist(), b, units) for row in part])
        released = result.values[result.labels == g]
        apart = np.abs(wanted[:, None] - released).max(axis=2)
        assert (apart.min(axis=0) < 1e-4).all()  # a few steps of 2^-20, times the noise
        assert (apart.min(axis=1) < 1e-4).all()


def listen_to(session: Session, label: str, hear: Callable[[bytes], None]) -> None:
    """Record what is sent under a label."""
    tell = session.broadcast

    def listen(payload: bytes | None, owner: int, name: str, count: int) -> bytes:
        heard = tell(payload, owner, name, count)
        if name == label:
            hear(heard)
        return heard

    session.broadcast = listen  # type: ignore[method-assign,assignment]


def test_noise_on_the_released_rows_has_the_law_of_laplace(together: Together) -> None:
    from scipy.stats import kstest

    n, b = 3000, 500.0
    values = standardized(np.linspace(-1.0, 1.0, n)[:, None])
    parts = [values[:1], values[1:1500], values[1500:]]
    result, _ = sanitized(together, a_plan(3, LaplacePCA(groups=1, b=b)), parts, numbers(1))[0]
    scale = b * float(np.ptp(values))  # beside it the rows themselves are nothing
    assert kstest(result.values[:, 0], "laplace", args=(0.0, scale)).pvalue > 1e-9


@pytest.mark.parametrize("centres", ["each", "last"])
@examples(10, few=2)
@given(seed=SEEDS, parties=st.integers(2, 4))
def test_counts_of_categories_and_missing_cells_are_kept(
    together: Together, centres: str, seed: int, parties: int
) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 60))
    table = a_table(n, rng)
    cuts = [0, *np.sort(rng.integers(0, n + 1, parties - 1)).tolist(), n]
    plan = a_plan(parties, LaplacePCA(k=6), centres, target="sick")

    def play(session: Session, rank: int) -> tuple[dict[str, list[object]], int, int]:
        part = table.slice(cuts[rank], cuts[rank + 1] - cuts[rank])
        counts = count_cells(session, part, SCHEMA, few="allow")
        codec = joint_codec(session, part, SCHEMA, counts)
        result = sanitize_horizontal(session, plan, codec.encode(part).values, codec.layout, counts.rows)
        return codec.decode(result.values).to_pydict(), result.noised, most_components(codec.layout)

    seen = together(play, plan.parties, leaks(centres))
    cells, noised, components = seen[0]
    assert all(other == cells for other, _, _ in seen)
    assert noised <= components
    for name in ("town", "sick"):
        before = [None if cell == "?" else cell for cell in table.column(name).to_pylist()]
        after = [None if cell == "?" else cell for cell in cells[name]]
        assert sorted(map(str, before)) == sorted(map(str, after))
    for name in ("age", "heat"):
        assert cells[name].count(None) == table.column(name).null_count


def test_an_owner_with_one_row_and_one_with_equal_rows_are_served(together: Together) -> None:
    values = standardized(
        np.concatenate([[[9.0, 1.0]], np.full((20, 2), 2.0), np.random.default_rng(3).random((30, 2))])
    )
    parts = [values[:1], values[1:21], values[21:]]
    for centres in ("each", "last"):
        result, _ = sanitized(together, a_plan(3, LaplacePCA(k=5), centres), parts, numbers(2))[0]
        assert result.sizes.min() >= 5


def test_a_group_of_equal_rows_is_published_as_its_mean_and_gets_no_noise(together: Together) -> None:
    values = np.tile([[1.0, -1.0]], (8, 1))
    result, _ = sanitized(together, a_plan(2, LaplacePCA(k=4)), [values[:3], values[3:]], numbers(2))[0]
    assert result.noised == 0
    np.testing.assert_allclose(result.values, values, atol=1e-9)


@pytest.mark.parametrize(
    ("together", "parties"),
    [("plain", 2), *(pytest.param(engine, 3, marks=pytest.mark.slow) for engine in ("cheetah", "aby3"))],
    indirect=["together"],
)
def test_every_engine_gives_the_same_table(together: Together, parties: int) -> None:
    from tests.parties.together import run_together

    values = standardized(np.random.default_rng(6).normal(size=(14, 2)))
    plan, parts = a_plan(parties, LaplacePCA(k=4)), [values[:3], values[3:8], values[8:]][3 - parties :]
    clear, real = (sanitized(way, plan, parts, numbers(2), seed=9) for way in (run_together, together))
    for (one, _), (other, _) in zip(clear, real, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        np.testing.assert_array_equal(one.labels, other.labels)


def test_rows_are_told_in_no_order_that_their_owner_keeps(together: Together) -> None:
    values = standardized(np.arange(60.0)[:, None])
    told: list[Whole] = []

    def play(session: Session, rank: int) -> None:
        if rank == 1:
            listen_to(session, "noised rows", lambda heard: told.append(np.frombuffer(heard, dtype="<i8")))
        plan = a_plan(2, LaplacePCA(groups=1, b=0.01))
        sanitize_horizontal(session, plan, values[:40] if rank == 0 else values[40:], numbers(1), 60)

    together(play, NAMES[:2], leaks("last"))
    assert [len(part) for part in told] == [1, 40, 1, 20]
    ranks = np.argsort(np.argsort(told[1]))
    assert abs(np.corrcoef(ranks, np.arange(40))[0, 1]) < 0.95  # noise of a hundredth keeps an order: about 0.999


def test_an_opening_that_the_protocol_does_not_declare_fails(together: Together) -> None:
    code, block = coded_column(np.random.default_rng(8), 20, 2)
    values = np.hstack([standardized(np.random.default_rng(7).normal(size=(20, 2))), code])
    layout = (*numbers(2), block)
    for label in leaks("last"):
        declared = {name: leak for name, leak in leaks("last").items() if name != label}

        def play(session: Session, rank: int) -> None:
            sanitize_horizontal(
                session, a_plan(2, LaplacePCA(k=5)), values[:8] if rank == 0 else values[8:], layout, 20
            )

        if label in {"columns", "rows", "column sums", "column squares", "codec", "values beyond thresholds"}:
            continue  # of the codec and the tails
        with pytest.raises(PrivacyRefusal, match=f"{label!r}"):
            together(play, NAMES[:2], declared)


def test_open_centres_are_refused_by_the_leaks_of_hidden_ones(together: Together) -> None:
    values = standardized(np.random.default_rng(7).normal(size=(20, 2)))

    def play(session: Session, rank: int) -> None:
        plan = a_plan(2, LaplacePCA(k=5), "each")
        sanitize_horizontal(session, plan, values[:8] if rank == 0 else values[8:], numbers(2), 20)

    with pytest.raises(PrivacyRefusal, match="'centres'"):
        together(play, NAMES[:2], leaks("last"))


def test_leaks_are_told_in_sentences_and_unknown_centres_are_refused() -> None:
    for centres in ("each", "last"):
        for label, leak in leaks(centres).items():
            assert leak.label == label
            assert len(leak.what.split()) >= 6
    with pytest.raises(OptionError, match="no centres 'never'"):
        leaks("never")


def test_too_few_rows_for_the_group_size_are_refused(together: Together) -> None:
    values = standardized(np.arange(8.0)[:, None])
    with pytest.raises(LevelError):
        sanitized(together, a_plan(2, LaplacePCA(k=9)), [values[:3], values[3:]], numbers(1))


def test_told_rows_that_do_not_fit_the_groups_are_found_out(together: Together) -> None:
    values = standardized(np.arange(12.0)[:, None])

    def play(session: Session, rank: int) -> None:
        tell = session.broadcast

        def lie(payload: bytes | None, owner: int, label: str, count: int) -> bytes:
            if label == "noised rows" and owner == rank == 1 and count == 1:
                payload = np.array([3], dtype="<i8").tobytes()
            return tell(payload, owner, label, count)

        session.broadcast = lie  # type: ignore[method-assign]
        plan = a_plan(2, LaplacePCA(groups=1))
        sanitize_horizontal(session, plan, values[:6] if rank == 0 else values[6:], numbers(1), 12)

    with pytest.raises(PartyError, match="start all"):
        together(play, NAMES[:2], leaks("last"))


@pytest.mark.parametrize("rest", [1, 2])
def test_one_or_two_rows_of_the_others_are_refused_before_a_statistic_is_opened(together: Together, rest: int) -> None:
    own = np.array([[20, 0], [0, 20 - rest], [0, rest]])  # of the second group all but the rest are one owner's
    seen: list[set[str]] = []

    def play(session: Session, rank: int) -> int:
        try:
            return refuse_exposed_rows(session, own[rank], np.array([20, 20]), "refuse")
        finally:
            seen.append({entry.label for entry in session.transcript.entries})

    with pytest.raises(PrivacyRefusal, match="1 times all owners but one"):
        together(play, NAMES[:3], leaks("last"))
    assert seen == [{"bare rows"}] * 3


@pytest.mark.parametrize("counts", [[[20, 0], [0, 10], [0, 10]], [[17, 3], [3, 17], [0, 0]]])
def test_groups_of_one_owner_alone_and_three_rows_of_the_others_pass(
    together: Together, counts: list[list[int]]
) -> None:
    def play(session: Session, rank: int) -> int:
        return refuse_exposed_rows(session, np.array(counts[rank]), np.array([20, 20]), "refuse")

    assert together(play, NAMES[:3], leaks("last")) == [0, 0, 0]


def test_two_rows_follow_exactly_from_their_sum_and_products() -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(2, 5))
    mean = rows.sum(axis=0) / 2
    lengths, axes = np.linalg.eigh(rows.T @ rows - 2 * np.outer(mean, mean))
    away = np.sqrt(lengths[-1] / 2) * axes[:, -1]
    found = np.array([mean - away, mean + away])
    assert min(np.abs(found - rows).max(), np.abs(found[::-1] - rows).max()) < 1e-9


def test_what_is_seen_bare_is_counted_where_it_is_allowed(together: Together) -> None:
    values = standardized(np.random.default_rng(5).normal(size=(12, 2)))
    plan = JointPlan("horizontal", NAMES[:2], LaplacePCA(groups=1), few="allow")
    assert [result.bare for result, _ in sanitized(together, plan, [values[:10], values[10:]], numbers(2))] == [1, 1]
    with pytest.raises(PrivacyRefusal):
        sanitized(together, dataclasses.replace(plan, few="refuse"), [values[:10], values[10:]], numbers(2))


def test_a_cell_whose_group_has_no_other_that_is_not_missing_is_as_bare_as_a_row(together: Together) -> None:
    rng = np.random.default_rng(6)
    values = np.column_stack([rng.normal(size=24), np.zeros(24)])
    values[12:, 1] = 1.0
    values[20, 1] = 0.0  # the one cell of the second owner that is not missing
    values[:, 0] = np.where(values[:, 1] > 0, 0.0, values[:, 0])
    values[:, :1] = standardized(values[:, :1])
    layout = (Block("x", BlockKind.NUMBER, 0, 1, (0.0,)), Block("x", BlockKind.MISSING, 1, 2))
    plan = JointPlan("horizontal", NAMES[:2], LaplacePCA(groups=1))
    with pytest.raises(PrivacyRefusal, match="1 times"):
        sanitized(together, plan, [values[:12], values[12:]], layout)
    allowed = dataclasses.replace(plan, few="allow")
    assert {result.bare for result, _ in sanitized(together, allowed, [values[:12], values[12:]], layout)} == {1}
