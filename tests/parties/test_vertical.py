"""The whole vertical protocol: one table for all, no more shown than declared, and nothing lost."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.errors import BadInput, LevelError, OptionError, PrivacyRefusal, SchemaError, SfumatoError
from sfumato.core.groups.discrete import category_counts, missing_counts
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Layout
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties import vertical, vertical_noise
from sfumato.parties.groupwise import Statistics
from sfumato.parties.plan import JointPlan, JointResult
from sfumato.parties.session import Session
from sfumato.parties.vertical import LEAKS, agree_on_columns, sanitize_vertical
from sfumato.parties.vertical_noise import add_noise, with_fills
from tests.examples import examples, sized
from tests.parties.conftest import Together
from tests.parties.owners import (
    NAMES,
    Matrix,
    Part,
    coded_column,
    joint_run,
    mixed_columns,
    no_noise,
    number_columns,
    random_numbers,
    split_numbers,
)
from tests.parties.together import run_together

ENGINES = ("plain", pytest.param("cheetah", marks=pytest.mark.slow), "aby3")
STEP = LaplacePCA.grid
seeds = st.integers(0, 2**32 - 1)
some_cases = examples(25, few=5)


def mixed_parts(seed: int, n: int = 60) -> list[Part]:
    """Three owners: mixed columns, one column of numbers, and three."""
    rng = np.random.default_rng(seed)
    values, layout = mixed_columns(rng, n)
    numbers = random_numbers(rng, n, 4)
    return [
        Part(values, layout),
        Part(numbers[:, :1], number_columns(1)),
        Part(numbers[:, 1:], number_columns(3, first=1)),
    ]


@pytest.mark.parametrize("together", ENGINES, indirect=True)
def test_every_engine_gives_the_table_of_the_plain_run_to_the_bit_at_every_party(together: Together) -> None:
    (n, k), rounds = sized(((12, 6), 1), ((24, 8), 3))
    parts = mixed_parts(5, n=n)
    run = joint_run(together, parts, LaplacePCA(k=k), target="x0", rounds=rounds)
    plain = joint_run(run_together, parts, LaplacePCA(k=k), target="x0", rounds=rounds)
    for result in run.results:
        assert result.values.tobytes() == plain.result.values.tobytes()
        assert result.labels.tolist() == plain.result.labels.tolist()
        assert result.sizes.tolist() == plain.result.sizes.tolist()
        assert result.layout == plain.result.layout
        assert (result.level, result.noised, result.rounds) == (k, plain.result.noised, plain.result.rounds)
    steps = [[(e.phase, e.action, e.label, e.shape, e.owner) for e in r.transcript.entries] for r in (run, plain)]
    assert steps[0] == steps[1]


@some_cases
@given(seeds, st.integers(2, 5), st.sampled_from(["split", "each"]), st.sampled_from(["component", "record"]))
def test_no_record_is_lost_and_every_group_has_its_share(
    together: Together, seed: int, parties: int, noise: str, guarantee: str
) -> None:
    rng = np.random.default_rng(seed)
    n, g = int(rng.integers(10, 50)), int(rng.integers(1, 5))
    parts = split_numbers(random_numbers(rng, n, int(rng.integers(5, 9))), parties)
    run = joint_run(together, parts, LaplacePCA(groups=g, guarantee=guarantee), seed=None, noise=noise)
    for result in run.results:
        assert result.values.tobytes() == run.result.values.tobytes()
        assert result.labels.tobytes() == run.result.labels.tobytes()
    assert run.result.values.shape == (n, sum(part.values.shape[1] for part in parts))
    assert np.isfinite(run.result.values).all()
    assert run.result.sizes.sum() == n
    assert len(run.result.sizes) == g
    assert run.result.sizes.min() >= n // g == run.result.level
    assert np.bincount(run.result.labels).tolist() == run.result.sizes.tolist()


@some_cases
@given(seeds)
def test_each_group_keeps_the_counts_of_its_categories_and_missing_cells(together: Together, seed: int) -> None:
    parts = mixed_parts(seed)
    run = joint_run(together, parts, LaplacePCA(k=15), rounds=5)
    released, groups = run.rows()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertical_noise, "draw_noise", no_noise)
        original, _ = joint_run(together, parts, LaplacePCA(k=15), rounds=5).rows()
    discrete = [j for block in run.result.layout[:5] if block.kind is not BlockKind.NUMBER for j in _places(block)]
    known = np.hstack([part.values for part in parts])
    for group in range(len(run.result.sizes)):
        here = groups == group
        np.testing.assert_allclose(
            released[here][:, discrete].sum(axis=0), original[here][:, discrete].sum(axis=0), atol=1e-6
        )
    for column in discrete:
        np.testing.assert_allclose(released[:, column].sum(), known[:, column].sum(), atol=1e-6)
        assert np.isin(released[:, column].round(9), np.unique(np.r_[0.0, known[:, column], 1.0]).round(9)).all()


def _places(block: Block) -> list[int]:
    return list(range(block.start, block.stop))


@some_cases
@given(seeds, st.integers(2, 5))
def test_without_noise_the_components_turn_back_into_the_records(together: Together, seed: int, parties: int) -> None:
    rng = np.random.default_rng(seed)
    values = random_numbers(rng, 40, 6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertical_noise, "draw_noise", no_noise)
        run = joint_run(together, split_numbers(values, parties), LaplacePCA(k=9))
    released = run.result.values
    nearest = np.abs(released[:, None] - values).max(axis=2)
    assert sorted(np.argmin(nearest, axis=1).tolist()) == list(range(40))
    assert nearest.min(axis=1).max() <= 6 * (parties + 1) * STEP


def test_what_does_not_vary_in_a_group_is_published_as_its_mean_and_never_opened(together: Together) -> None:
    rng = np.random.default_rng(2)
    values = random_numbers(rng, 30, 3)
    parts = [Part(np.zeros((30, 1)), number_columns(1)), Part(values, number_columns(3, first=1))]
    run = joint_run(together, parts, LaplacePCA(groups=1))
    assert run.result.noised == 3
    assert (np.abs(run.result.values[:, 0]) < 1e-6).all()
    assert (run.opened("noised components")[0][:, 3] == 0).all()


def with_codes(parts: list[Part]) -> list[Part]:
    """The last owner brings a column of very many categories too."""
    last = parts[-1]
    values, block = coded_column(np.random.default_rng(3), len(last.values), last.values.shape[1])
    return [*parts[:-1], Part(np.hstack([last.values, values]), (*last.layout, block))]


def test_all_that_is_shown_is_declared_and_distances_components_and_ends_of_ranges_are_not(together: Together) -> None:
    run = joint_run(together, with_codes(mixed_parts(3)), LaplacePCA(k=15), target="x0")
    shown = {
        (entry.action, entry.label) for entry in run.transcript.entries if entry.action in ("opened", "told", "sum")
    }
    declared = {(leak.action, leak.label) for leak in LEAKS.values()}
    assert shown <= declared
    assert declared - shown <= {("told", "digest of keys"), ("told", "keyed hashes")}
    hidden = {entry.label for entry in run.transcript.entries if entry.action == "shared"}
    assert hidden == {"partial distances", "columns of one owner", "components", "noise"}
    assert not hidden & set(LEAKS)
    assert all(leak.what.endswith(".") for leak in LEAKS.values())


@pytest.mark.parametrize("label", sorted(set(LEAKS) - {"digest of keys", "keyed hashes"}))
def test_a_run_that_would_show_what_is_not_declared_fails(together: Together, label: str) -> None:
    parts = with_codes(mixed_parts(3, n=30))
    plan = JointPlan("vertical", NAMES[:3], LaplacePCA(k=10))
    fewer = {name: leak for name, leak in LEAKS.items() if name != label}

    def play(session: Session, rank: int) -> JointResult:
        return sanitize_vertical(session, plan, parts[rank].values, parts[rank].layout)

    with pytest.raises(PrivacyRefusal, match="does not declare it"):
        together(play, plan.parties, fewer, seed=1)


def test_an_opening_planted_into_the_protocol_fails_the_run(together: Together) -> None:
    def planted(session: Session, components: object, *rest: object) -> NDArray[np.int64]:
        session.open(components, "components")  # type: ignore[arg-type]
        return add_noise(session, components, *rest)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertical, "add_noise", planted)
        with pytest.raises(PrivacyRefusal, match="'components'"):
            joint_run(together, mixed_parts(3), LaplacePCA(k=15))


def refusals(
    together: Together, kind: type[SfumatoError], parts: list[Part], mechanism: LaplacePCA, **options: object
) -> list[SfumatoError]:
    """Error of each party; every one finds it itself, none has it from another."""
    plan = JointPlan("vertical", NAMES[: len(parts)], mechanism, **options)  # type: ignore[arg-type]

    def play(session: Session, rank: int) -> SfumatoError | None:
        try:
            sanitize_vertical(session, plan, parts[rank].values, parts[rank].layout)
        except kind as error:
            return error
        return None

    found = together(play, plan.parties, LEAKS)
    assert None not in found
    return [error for error in found if error is not None]


@pytest.mark.parametrize(
    ("mechanism", "kind", "words"),
    [
        (LaplacePCA(k=31), LevelError, "30 records and the highest privacy level is 31"),
        (LaplacePCA(groups=16), LevelError, "16 groups of 30 records"),
    ],
)
def test_a_level_beyond_the_rows_is_refused_at_every_party(
    together: Together, mechanism: LaplacePCA, kind: type[BadInput], words: str
) -> None:
    for error in refusals(together, kind, mixed_parts(1, n=30), mechanism):
        assert words in str(error)


def test_a_target_that_nobody_has_is_refused_at_every_party(together: Together) -> None:
    for error in refusals(together, OptionError, mixed_parts(1, n=30), LaplacePCA(k=10), target="price"):
        assert "'price'" in str(error)


def test_different_numbers_of_rows_are_refused_at_every_party(together: Together) -> None:
    parts = mixed_parts(1, n=30)
    parts[1] = Part(parts[1].values[:29] * 0.5, parts[1].layout)
    for error in refusals(together, BadInput, parts, LaplacePCA(k=10)):
        assert "'ann' 30, 'bob' 29, 'cat' 30" in str(error)


def test_a_column_that_two_owners_bring_is_refused_at_every_party(together: Together) -> None:
    parts = mixed_parts(1, n=30)
    parts[2] = Part(parts[2].values, number_columns(3))
    for error in refusals(together, OptionError, parts, LaplacePCA(k=10)):
        assert "'bob' and 'cat' both contribute a column 'x0'" in str(error)


def test_columns_that_are_not_standardized_are_refused_by_name(together: Together) -> None:
    parts = mixed_parts(1, n=30)
    parts[1] = Part(parts[1].values * 3.0, parts[1].layout)
    with pytest.raises(SchemaError, match="'x0' is not standardized"):
        joint_run(together, parts, LaplacePCA(k=10))


def test_the_layout_that_is_told_holds_no_data(together: Together) -> None:
    layout: Layout = (
        Block("town", BlockKind.CATEGORY, 0, 2, (0.123456789, CATEGORY_SCALE)),
        Block("size", BlockKind.NUMBER, 2, 3, (0.0,), centre=987.654, scale=3.21),
    )
    told: list[bytes] = []

    def play(session: Session, rank: int) -> Layout:
        send = session.broadcast

        def listen(payload: bytes | None, owner: int, label: str, count: int) -> bytes:
            told.append(send(payload, owner, label, count))
            return told[-1]

        session.broadcast = listen  # type: ignore[method-assign]
        own = layout if rank == 0 else number_columns(2)
        return agree_on_columns(session, 12, own).layout

    first, second = together(play, NAMES[:2], LEAKS)
    assert first == second
    assert [(block.column, block.start, block.stop) for block in first] == [
        ("town", 0, 2),
        ("size", 2, 3),
        ("x0", 3, 4),
        ("x1", 4, 5),
    ]
    assert all(block.fill == () and block.centre is None and block.extent is None for block in first)
    assert {json.loads(text)["rows"] for text in told} == {12}
    assert not any(digits in text for text in told for digits in (b"0.12", b"987", b"3.21"))


def test_counts_of_a_group_follow_from_what_is_told_of_it(together: Together) -> None:
    parts = mixed_parts(11)
    kept: list[Statistics] = []
    filled: list[Layout] = []

    def remember(layout: Layout, statistics: Statistics) -> Layout:
        kept.append(statistics)
        filled.append(with_fills(layout, statistics))
        return filled[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertical, "with_fills", remember)
        joint_run(together, parts, LaplacePCA(groups=1))
    from sfumato.core.groups.discrete import _moments

    groups = _moments(kept[0].sizes, kept[0].mean)
    town, lost = filled[0][2], filled[0][3]
    values: Matrix = parts[0].values
    missing = missing_counts(groups, lost)
    assert missing.tolist() == [int(values[:, 5].sum())]
    present = values[values[:, 5] == 0.0, 2:5]
    assert category_counts(groups, town, missing)[0].tolist() == (present > 0).sum(axis=0).tolist()
    np.testing.assert_allclose(town.fill, parts[0].layout[2].fill, atol=1e-9)
