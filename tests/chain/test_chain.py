"""The chain: what each cell was drawn from, which values leave, and what a tree may cut."""

from __future__ import annotations

from pathlib import Path
from statistics import NormalDist

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import sfumato as sf
from sfumato.assess.attacks.membership import area
from sfumato.core.errors import LevelError, OptionError
from sfumato.core.records import Records
from sfumato.methods.chain import Chain
from sfumato.methods.chain.columns import Ranking, read_columns
from sfumato.methods.chain.draw import _adjacent_numbers, _bound_contributions, _Leaves, _move_numbers
from sfumato.methods.chain.facts import ChainSynthesis, PersonsBounded
from sfumato.methods.chain.regression import Predictors, Regressions
from sfumato.methods.chain.trees import grow_tree
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Field, Kind, Schema
from tests.examples import examples


def visits(rows: int, seed: int) -> pa.Table:
    """Numbers with a heap at zero, whole numbers, missing cells, rare towns and a class that all of them tell of."""
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < 0.4
    age = np.clip(rng.normal(45 + 15 * ill, 14), 18, 95).astype(np.int64)
    towns = np.array(["Bari", "Oslo", "Ulm", *(f"hamlet {place}" for place in range(20))])
    town = towns[np.minimum(rng.geometric(0.3, rows) - 1, 22)]
    paid = np.where(rng.random(rows) < 0.7, 0.0, rng.gamma(2.0, 100.0, rows))
    return pa.table(
        {
            "age": pa.array([None if place % 7 == 0 else int(value) for place, value in enumerate(age)]),
            "paid": paid,
            "dose": pa.array(
                [float(value) if place % 9 == 4 else None for place, value in enumerate(rng.random(rows))]
            ),
            "town": town,
            "ill": np.where(ill, "yes", "no"),
        }
    )


def encoded(table: pa.Table, levels: NDArray[np.int64]) -> Records:
    codec = Codec.fit(table, Schema.infer(table, target="ill"))
    return codec.encode(table, levels=levels, strata=np.zeros(len(levels), dtype=np.int64))


def chained(release: sf.Release) -> ChainSynthesis:
    return next(fact for fact in release.certificate.facts if isinstance(fact, ChainSynthesis))


@pytest.mark.filterwarnings("ignore:columns without a value")
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(2, 40), st.integers(60, 300))
def test_no_leaf_is_below_its_levels_and_nothing_rare_leaves(seed: int, k: int, leaf: int, rows: int) -> None:
    table = visits(rows, seed)
    release = sf.sanitize(table, Chain(k=k, leaf=leaf), target="ill", seed=seed, report=False)
    fact = chained(release)
    assert fact.violations == 0
    assert min(fact.smallest) >= max(leaf, k)
    for name in ("town", "ill"):
        values, counts = np.unique(table[name].to_numpy(), return_counts=True)
        assert set(release.table[name].to_pylist()) <= {*values[counts >= k], "other"}
    for name in {"paid", "dose"} & set(release.table.column_names):  # a dose that too few have is dropped
        values, counts = np.unique(table[name].drop_null().to_numpy(), return_counts=True)
        assert not set(release.table[name].drop_null().to_pylist()) & set(values[counts < k])


@examples(60)
@given(st.integers(0, 10**6), st.integers(5, 30), st.booleans())
def test_a_leaf_holds_the_highest_level_inside(seed: int, leaf: int, several: bool) -> None:
    rng = np.random.default_rng(seed)
    n = 400
    codes = rng.integers(0, 12, (n, 3)).astype(np.uint8)
    levels = np.where(rng.random(n) < 0.05, rng.integers(2, 40, n), 2)
    strata = np.repeat([0, 1], n // 2)
    persons = np.concatenate([np.arange(100), rng.integers(0, 100, 100)] * 2) if several else np.arange(n)
    bins, nominal = np.full(3, 12), np.array([False, True, False])
    for classes, score in ((0, codes[:, 0].astype(np.int64) * 100), (3, codes[:, 1].astype(np.int64) % 3)):
        told = persons if several else None
        tree = grow_tree(codes, bins, nominal, score, classes, levels, strata, told, leaf=leaf, least_gain=0.0)
        labels = tree.leaves_of(codes, strata)
        np.testing.assert_array_equal(labels, tree.labels)
        assert len(np.unique(labels)) > 2
        for label in np.unique(labels):
            inside = labels == label
            assert len(np.unique(persons[inside])) >= max(leaf, levels[inside].max())
            assert len(np.unique(strata[inside])) == 1


@examples(60)
@given(st.integers(0, 10**6), st.integers(5, 30))
def test_a_leaf_mixes_classes_only_where_too_few_have_one(seed: int, leaf: int) -> None:
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.choice(4, 600, p=[0.5, 0.3, 0.19, 0.01]), rng.integers(0, 12, 600)]).astype(np.uint8)
    levels, strata = np.where(rng.random(600) < 0.01, 40, 2), np.zeros(600, dtype=np.int64)
    bins, nominal, score = np.array([4, 12]), np.array([True, False]), rng.integers(0, 4000, 600)
    told = (codes, bins, nominal, score, 0, levels, strata)
    assert len(grow_tree(*told, leaf=leaf, least_gain=1000.0).nodes) == 1
    labels = grow_tree(*told, leaf=leaf, least_gain=1000.0, apart=True).labels
    for label in np.unique(labels):
        inside, classes = labels == label, np.unique(codes[labels == label, 0])
        assert inside.sum() >= max(leaf, levels[inside].max())
        assert len(classes) == 1 or (len(classes) == 2 and 3 in classes)


@pytest.mark.filterwarnings("ignore:columns in which fewer than 10 cells:UserWarning")  # heavier than their dose
@pytest.mark.parametrize("names", [("yes", "no"), (1, 0)])
def test_a_class_that_another_column_outshines_stays_linked(names: tuple[object, object]) -> None:
    rng = np.random.default_rng(4)
    rare = rng.random(4000) < 0.15
    weight = rng.gamma(2.0, 20.0, 4000).round()
    weight = np.where(rng.random(4000) < 0.3, 0.0, weight)
    dose = np.where(weight == 0, 0.0, (weight / 4 + 1.5 * rare + rng.normal(0, 1, 4000)).round())
    table = pa.table({"weight": weight, "dose": dose, "back": [names[0] if one else names[1] for one in rare]})

    def gap(rows: pa.Table) -> float:
        beyond, held = rows["dose"].to_numpy() - rows["weight"].to_numpy() / 4, rows["weight"].to_numpy() > 0
        back = np.array([one == names[0] for one in rows["back"].to_pylist()])
        return float(beyond[back & held].mean() - beyond[~back & held].mean())

    released = sf.sanitize(table, Chain(k=10, leaf=50), target="back", seed=1, report=False).table
    assert gap(released) == pytest.approx(gap(table), abs=0.5)


@examples(60)
@given(st.integers(0, 10**6), st.integers(60, 800), st.booleans())
def test_a_number_becomes_one_beside_it_and_heaps_stay(seed: int, rows: int, amounts: bool) -> None:
    rng = np.random.default_rng(seed)
    cells = rng.gamma(2.0, 40.0, rows).round() if amounts else rng.integers(0, 40, rows).astype(float)
    cells[rng.random(rows) < 0.4] = 30.0  # a heap, with numbers on both sides
    records = Codec.fit(pa.table({"x": cells}), Schema.infer(pa.table({"x": cells}))).encode(pa.table({"x": cells}))
    (column,) = read_columns(records, 3)
    common, ranking = column.cells[~column.rare], Ranking.of(column.cells)
    leaves = _Leaves.of(ranking, column.rare, np.zeros(rows, dtype=np.int64), 1)
    ranks = rng.choice(ranking.ranks[~column.rare], 500)
    drawn, beside = ranking.values[ranks], _adjacent_numbers(leaves, ranks, rng)
    heap = float(np.median(column.cells[cells == 30.0]))
    assert set(beside) <= set(common)
    np.testing.assert_array_equal(beside[drawn == heap], heap)
    np.testing.assert_array_equal(np.sign(beside - heap), np.sign(drawn - heap))
    between = [((common > low) & (common < high)).sum() for low, high in np.sort(np.stack([drawn, beside], 1), axis=1)]
    assert max(between) <= 0.02 * len(common)
    if rows > 400:
        assert (beside != drawn).any()


def test_persons_of_one_row_each_grow_the_tree_of_rows() -> None:
    rng = np.random.default_rng(3)
    codes, score = rng.integers(0, 9, (500, 2)).astype(np.uint8), rng.integers(0, 4000, 500)
    told = (codes, np.full(2, 9), np.array([False, True]), score, 0, rng.integers(2, 40, 500), np.zeros(500, np.int64))
    trees = [grow_tree(*told, persons, leaf=10, least_gain=0.0) for persons in (None, rng.permutation(500))]
    np.testing.assert_array_equal(trees[0].labels, trees[1].labels)


@examples(100)
@given(st.integers(0, 10**6), st.integers(2, 12), st.floats(0.02, 0.9))
def test_nobody_supplies_more_than_two_in_leaf_of_a_leaf(seed: int, leaf: int, often: float) -> None:
    rng = np.random.default_rng(seed)
    labels = np.concatenate([np.repeat(np.arange(3), leaf), rng.integers(0, 3, 200)])
    persons = np.concatenate([np.tile(np.arange(leaf), 3), np.minimum(rng.geometric(often, 200) - 1, 3 * leaf)])
    supplies = _bound_contributions(labels, persons, leaf, rng)
    for label in range(3):
        everyone, whole = np.unique(persons[labels == label], return_counts=True)
        left, supplied = np.unique(persons[supplies & (labels == label)], return_counts=True)
        np.testing.assert_array_equal(everyone, left)  # nobody is left out as a whole
        assert leaf * supplied.max() <= 2 * supplied.sum()
        most = supplied.max() + 1  # one more of each would be too much, or there is none
        more = np.minimum(whole, most)
        assert leaf * more.max() > 2 * more.sum() or (supplied == whole).all()


@pytest.mark.filterwarnings("ignore:columns without a value")
@examples(24)
@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(2, 25), st.integers(40, 150))
def test_leaves_and_holders_of_a_value_are_counted_in_persons(seed: int, k: int, leaf: int, people: int) -> None:
    rng = np.random.default_rng(seed)
    who = np.concatenate([np.arange(people), np.minimum(rng.geometric(0.05, 2 * people), people) - 1])
    table = visits(3 * people, seed).append_column("patient", pa.array([f"p{place}" for place in who]))
    release = sf.sanitize(table, Chain(k=k, leaf=leaf), target="ill", person="patient", seed=seed, report=False)
    fact, bounded = chained(release), next(x for x in release.certificate.facts if isinstance(x, PersonsBounded))
    assert bounded.persons == people
    assert fact.violations == 0
    assert max(leaf, k) <= min(fact.smallest) <= max(fact.smallest) == people
    for name in ("town", "ill"):
        persons_of: dict[str, set[int]] = {}
        for value, person in zip(table[name].to_pylist(), who.tolist(), strict=True):
            persons_of.setdefault(value, set()).add(person)
        assert all(len(persons_of[value]) >= k for value in set(release.table[name].to_pylist()) - {"other"})
    paid = table["paid"].to_numpy()
    copied = set(release.table["paid"].to_pylist()) & set(paid)
    assert all(len(np.unique(who[paid == value])) >= k for value in copied)


def test_a_release_of_visits_speaks_of_persons_and_is_verified(tmp_path: object) -> None:
    who = np.concatenate([np.arange(100), np.zeros(80, dtype=np.int64), np.arange(20)])
    table = visits(200, 5).append_column("patient", pa.array([f"p{place}" for place in who]))
    release = sf.sanitize(table, Chain(k=5, leaf=20), person="patient", report=False)
    bounded = next(fact for fact in release.certificate.facts if isinstance(fact, PersonsBounded))
    assert bounded == PersonsBounded(100)
    said = [claim.claim for claim in release.certificate.claims]
    assert any("at least 20 persons with similar values" in claim for claim in said)
    assert any("others were left out" in claim.basis for claim in release.certificate.claims)
    assert not any("one row is one person" in claim.assumes for claim in release.certificate.claims)
    assert all(check.holds for check in sf.verify(release.save(f"{tmp_path}/out") / "release"))
    with pytest.raises(LevelError, match="there are 100 persons and the highest privacy level is 120"):
        sf.sanitize(table, Chain(k=5, leaf=120), person="patient", report=False)


def test_people_who_ask_for_more_are_in_leaves_that_are_as_large() -> None:
    levels = np.where(np.arange(400) % 50 == 3, 30, 0)
    sanitized = Chain(k=5, leaf=10).sanitize(encoded(visits(400, 3), levels), rng=np.random.default_rng(1))
    fact = sanitized.facts[0]
    assert isinstance(fact, ChainSynthesis)
    assert fact.violations == 0
    assert min(fact.smallest) >= 10
    assert fact.k == 30  # no value that fewer hold is copied


def test_the_target_is_drawn_first_unless_an_order_is_told() -> None:
    table = visits(200, 4)
    usual = sf.sanitize(table, Chain(), target="ill", seed=1, report=False)
    assert chained(usual).columns == ("ill", "age", "paid", "dose", "town")
    ordered = sf.sanitize(table, Chain(order=("paid", "town")), target="ill", seed=1, report=False)
    assert chained(ordered).columns == ("paid", "town", "ill", "age", "dose")
    with pytest.raises(OptionError, match="the order names 'weight', which is no column that is drawn"):
        sf.sanitize(table, Chain(order=("weight",)), target="ill", seed=1, report=False)


def test_a_heap_and_missing_cells_stay_as_frequent_and_go_with_what_they_went_with() -> None:
    table = visits(6000, 5)
    release = sf.sanitize(table, Chain(), target="ill", seed=2, report=False).table
    zeros = [np.mean(each["paid"].to_numpy() == 0.0) for each in (table, release)]
    missing = [each["age"].null_count / 6000 for each in (table, release)]
    means = [
        [np.nanmean(each["age"].to_numpy(zero_copy_only=False)[each["ill"].to_numpy() == ill]) for ill in ("yes", "no")]
        for each in (table, release)
    ]
    assert abs(zeros[0] - zeros[1]) < 6 * (0.25 / 6000) ** 0.5
    assert abs(missing[0] - missing[1]) < 6 * (0.25 / 6000) ** 0.5
    assert abs(means[0][0] - means[0][1]) > 10
    np.testing.assert_allclose(means[0], means[1], atol=6 * 15 / 2000**0.5)


def test_strata_never_mix() -> None:
    table = visits(300, 6).append_column("side", pa.array(["left", "right", "left"] * 100))
    pay = np.where(np.arange(300) % 3 == 1, 1000.0, 0.0) + np.random.default_rng(1).random(300)
    release = sf.sanitize(
        table.append_column("pay", pa.array(pay)),
        Chain(k=5, leaf=10),
        strata="side",
        target="ill",
        seed=3,
        report=False,
    ).table
    right = release["side"].to_numpy() == "right"
    assert right.sum() == 100
    assert ((release["pay"].to_numpy() > 500) == right).all()


def test_a_stratum_with_too_few_people_is_refused_without_a_cell() -> None:
    table = visits(100, 6).append_column("side", pa.array(["left", *["right"] * 99]))
    with pytest.raises(LevelError, match="a stratum has fewer people than a leaf needs"):
        sf.sanitize(table, Chain(k=5, leaf=10), strata="side", rare="keep", report=False)


def test_rare_categories_are_pooled_by_the_shared_rule_and_kept_where_the_owner_says_so() -> None:
    towns = ["Bari", "Oslo"] * 25 + ["Ulm", "Rye", "Graz", "Lodi", "Brno"] * 2
    table = pa.table({"x": np.arange(60.0), "town": towns})
    pooled = sf.sanitize(table, Chain(k=4, leaf=10), rows=400, seed=1, report=False)
    assert set(pooled.table["town"].to_pylist()) == {"Bari", "Oslo", "other"}
    kept = sf.sanitize(table, Chain(k=4, leaf=10), rows=400, rare="keep", seed=1, report=False)
    assert set(kept.table["town"].to_pylist()) == set(towns)
    said = [
        any("no category that fewer" in each.claim for each in release.certificate.claims) for release in (pooled, kept)
    ]
    assert said == [True, False]


@pytest.mark.parametrize("wrong", [{"leaf": 1}, {"leaf": True}, {"order": ("a", "a")}])
def test_parameters_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(OptionError):
        Chain(**wrong)  # type: ignore[arg-type]


def test_a_column_of_many_categories_is_drawn_and_cut_by() -> None:
    rng = np.random.default_rng(8)
    code = rng.integers(0, 150, 4000)
    table = pa.table({"code": [f"c{value}" for value in code], "x": code % 3 + 0.01 * rng.random(4000)})
    release = sf.sanitize(table, Chain(order=("code",)), seed=1, report=False).table
    same = [
        int(text[1:]) % 3 == int(x)
        for text, x in zip(*(release[name].to_pylist() for name in ("code", "x")), strict=True)
    ]
    assert np.mean(same) > 0.9


@pytest.mark.usefixtures("without_utility", "without_figures")
def test_the_certificate_is_verified_and_the_report_runs(tmp_path: object) -> None:
    release = sf.sanitize(visits(300, 9), Chain(k=5, leaf=10), target="ill", holdout=0.3)
    folder = release.save(f"{tmp_path}/out") / "release"
    assert all(check.holds for check in sf.verify(folder))
    assert release.report is not None
    smallest = next(each for each in release.report.findings if each.name == "group-size-smallest")
    assert smallest.value is not None
    assert smallest.value >= 10


def test_numbers_that_hang_together_stay_together_and_none_is_copied() -> None:
    rng = np.random.default_rng(12)
    length = rng.gamma(9.0, 1.0, 1500)
    width = 0.6 * length + rng.normal(0, 0.1, 1500)
    same = 2.0 * length
    table = pa.table({"length": length, "width": width, "same": same, "zero": np.zeros(1500)})
    release = sf.sanitize(table, Chain(), seed=4, report=False)
    fact = chained(release)
    assert fact.regressed == ("width", "same")
    released = np.column_stack([release.table[name].to_numpy() for name in ("length", "width", "same")])
    assert np.isfinite(released).all()
    assert np.corrcoef(released.T).min() > 0.97
    for name in ("length", "width", "same"):
        assert not set(release.table[name].to_pylist()) & set(table[name].to_pylist())


def test_a_rare_amount_becomes_the_common_one_of_people_who_are_alike() -> None:
    rng = np.random.default_rng(5)
    rich = rng.random(4000) < 0.5
    common = 1000.0 * (2 * rng.integers(1, 4, 4000) + rich)  # odd thousands for the rich
    near = np.where(rng.random(4000) < 0.05, common - rng.integers(1, 31, 4000), common)
    got = np.where(rng.random(4000) < np.where(rich, 0.6, 0.9), 0.0, near)
    table = pa.table({"rich": np.where(rich, "yes", "no"), "got": got})
    release = sf.sanitize(table, Chain(k=20, leaf=50), target="rich", tails="keep", seed=1, report=False)
    assert chained(release).moved > 20
    shown = release.table["got"].to_numpy()
    some = shown > 0
    assert set(shown[some]) <= {1000.0 * place for place in range(2, 8)}
    np.testing.assert_array_equal(shown[some] % 2000 == 1000, release.table["rich"].to_numpy()[some] == "yes")
    coded = sf.sanitize(table, Chain(k=20, leaf=50), target="rich", seed=1, report=False)
    assert chained(coded).moved == 0  # the few rare ones became common before
    assert set(coded.table["got"].to_pylist()) == {0.0, *(1000.0 * place for place in range(2, 8))}


def test_small_amounts_beside_a_heap_of_zeros_do_not_become_nothing() -> None:
    rng = np.random.default_rng(6)
    table = pa.table({"sex": ["f", "m"] * 200, "paid": np.where(rng.random(400) < 0.9, 0.0, rng.gamma(2.0, 9.0, 400))})
    release = sf.sanitize(table, Chain(k=30), rows=4000, seed=1, report=False).table
    none = [np.mean(each["paid"].to_numpy() == 0.0) for each in (table, release)]
    assert abs(none[0] - none[1]) < 6 * (none[0] * (1 - none[0]) / 4000) ** 0.5


@examples(60)
@given(st.integers(0, 10**6), st.integers(2, 12), st.sampled_from([1.0, 1.0, 3.5]))
def test_a_rare_number_moves_no_further_than_k_cells_of_the_table(seed: int, k: int, far: float) -> None:
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.integers(0, 3, 300))
    cells = np.where(rng.random(300) < 0.5, 10.0 * rng.integers(0, 5, 300), np.round(rng.normal(20, 9, 300), 1))
    cells = cells[np.lexsort((cells, labels))]  # as they lie in the leaves
    held = (cells[:, None] == cells).sum(axis=0)
    leaves = _Leaves.of(Ranking.of(cells), held < k, labels, 3)
    chosen = np.flatnonzero(held < k)
    most = max(k, len(np.unique(cells)) // 50) + int((far - 1) * 6)
    for was, now in zip(cells[chosen], _move_numbers(leaves, chosen, k, far, rng), strict=True):
        low, high = min(was, now), max(was, now)
        assert was != now
        assert ((cells > low) & (cells < high)).sum() < most  # as many as are wholly passed


def measured(leaf: int) -> tuple[float, float]:
    """How often numbers held by ten people by chance are shown, relative to their frequency.

    And how much is there again in the release of what numbers are held more often or less than by a normal law.
    """
    rng = np.random.default_rng(8)
    table = pa.table({f"v{place}": rng.normal(size=2500).round(2) for place in range(12)})
    release = sf.sanitize(table, Chain(k=10, leaf=leaf), no_rules=True, seed=1, report=False).table
    edges = [NormalDist().inv_cdf(place / 50) for place in range(1, 50)]
    shown, held, same, own = 0, 0, 0.0, 0.0
    for name in table.column_names:
        theirs, ours = table[name].to_numpy(), release[name].to_numpy()
        values, many = np.unique(theirs, return_counts=True)
        held, shown = held + many[many >= 10].sum(), shown + np.isin(ours, values[many >= 10]).sum()
        beyond = [np.bincount(np.searchsorted(edges, each), minlength=50) - 50 for each in (theirs, ours)]
        same, own = same + float(beyond[0] @ beyond[1]), own + float(beyond[0] @ beyond[0])
    return shown / held, same / own


def test_numbers_that_some_more_hold_by_chance_are_shown_no_more_often() -> None:
    assert measured(50)[0] < 1.0


def test_a_large_leaf_shows_less_of_how_often_people_hold_numbers() -> None:
    assert measured(100)[1] > 0.6
    assert measured(400)[1] < 0.4


def test_a_number_that_is_all_a_column_has_and_few_hold_becomes_missing() -> None:
    table = pa.table({"mark": pa.array([1.5] * 3 + [None] * 97), "sex": ["f", "m"] * 50})
    fields = tuple(Field(name, Kind.CONTINUOUS if name == "mark" else Kind.NOMINAL) for name in table.column_names)
    release = sf.sanitize(table, Chain(), schema=Schema(fields), rare="keep", seed=1, report=False)
    assert release.table["mark"].null_count == 100
    assert (chained(release).kept, chained(release).moved) == (0, 0)


def test_who_knows_the_trees_tells_people_inside_from_outside() -> None:
    rng = np.random.default_rng(21)
    values = rng.normal(size=(1200, 6))
    table = pa.table({f"v{place}": np.round(values[:, place], 2) for place in range(6)})
    codec = Codec.fit(table, Schema.infer(table))
    records = codec.encode(table.slice(0, 600))
    workings = Chain(k=2, leaf=3).sanitize(records, rng=np.random.default_rng(1)).workings
    assert workings.likelihood is not None
    assert workings.regrown is not None
    outside = codec.encode(table.slice(600)).values
    areas = [area(score(records.values), score(outside)) for score in (workings.likelihood, workings.regrown)]
    assert areas[0] > areas[1]
    assert areas[0] > 0.6
    strata = np.repeat([0, 1], 300)
    parted = Chain(k=2, leaf=3).sanitize(codec.encode(table.slice(0, 600), strata=strata), rng=rng).workings
    assert parted is not None
    assert parted.likelihood is None


def test_of_many_columns_before_only_the_most_telling_cut_and_the_tree_names_them() -> None:
    rng = np.random.default_rng(3)
    table = pa.table({f"c{place}": rng.normal(size=300).round(3) for place in range(70)})
    table = table.append_column("copy", pa.array(np.round(table["c61"].to_numpy() + rng.normal(0, 0.1, 300), 3)))
    released = sf.sanitize(table, Chain(k=5, leaf=10), seed=1, report=False).table
    assert np.corrcoef(released["c61"].to_numpy(), released["copy"].to_numpy())[0, 1] > 0.9


def test_a_target_that_the_others_explain_is_drawn_again_by_all_of_them(tmp_path: object) -> None:
    rng = np.random.default_rng(31)
    x = rng.normal(size=(1200, 3)).round(2)
    said = x[:, 0] + x[:, 1] ** 2 - x[:, 2]
    table = pa.table({"y": (said + rng.normal(0, 0.3, 1200)).round(2), **{f"x{i}": x[:, i] for i in range(3)}})
    release = sf.sanitize(table, Chain(), target="y", report=False)
    fact = chained(release)
    assert (fact.columns, fact.twice) == (("x0", "x1", "x2", "y"), ("y",))
    made = {name: release.table[name].to_numpy() for name in fact.columns}
    assert (
        np.std(made["y"] - (made["x0"] + made["x1"] ** 2 - made["x2"])) < 0.9
    )  # its spread is 2; with cells of other rows 3
    assert any("1 column was drawn twice" in claim.basis for claim in release.certificate.claims)
    assert all(check.holds for check in sf.verify(release.save(f"{tmp_path}/out") / "release"))
    told = sf.sanitize(table, Chain(order=("y",)), target="y", seed=1, report=False)
    assert (chained(told).columns[0], chained(told).twice) == ("y", ())
    where = sf.sanitize(table, Chain(), target="y", where="y > 1", seed=1, report=False)
    assert chained(where).twice == ()
    assert min(where.table["y"].to_pylist()) > 1


def test_each_class_of_the_first_column_has_slopes_of_its_own() -> None:
    rng = np.random.default_rng(32)
    ill, dose = rng.random(2000) < 0.5, rng.normal(size=2000)
    effect = np.where(ill, dose, -dose) + rng.normal(0, 0.2, 2000)
    table = pa.table({"ill": np.where(ill, "yes", "no"), "dose": dose, "effect": effect})
    release = sf.sanitize(table, Chain(leaf=500), target="ill", seed=1, report=False)
    assert chained(release).regressed == ("effect",)
    rows = release.table
    links = [
        np.corrcoef(*(rows[name].to_numpy()[rows["ill"].to_numpy() == side] for name in ("dose", "effect")))[0, 1]
        for side in ("yes", "no")
    ]
    assert links[0] > 0.9
    assert links[1] < -0.9


def test_one_gram_matrix_solves_each_regression_as_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(33)
    ill, x, z = rng.random(2000) < 0.4, rng.normal(size=2000), rng.normal(size=2000)
    y = np.where(ill, x, 2.0 - x) + z**2 + rng.normal(size=2000)
    table = pa.table({"ill": np.where(ill, "yes", "no"), "x": x, "z": z, "y": y})
    columns = read_columns(Codec.fit(table, Schema.infer(table)).encode(table), 5)
    codes = np.column_stack([column.codes(column.cells) for column in columns])
    before = [columns[place].cells for place in (1, 2)]
    numbers = np.column_stack(
        [*before, *((np.clip(n, *np.quantile(n, [0.02, 0.98])) - np.median(n)) ** 2 for n in before)]
    )
    design = np.column_stack([codes[:, 0] == 0, codes[:, 0] == 1, numbers, numbers * (codes[:, [0]] == 1)])
    apart, cells = design - design.mean(axis=0), columns[3].cells
    ridge = np.vstack([apart, np.eye(design.shape[1])])
    slopes = np.linalg.lstsq(ridge, np.append(cells - cells.mean(), np.zeros(design.shape[1])), rcond=None)[0]
    for most in (4096, 0):  # shared, or of the wanted columns alone
        monkeypatch.setattr("sfumato.methods.chain.regression._MOST_REGRESSORS", most)
        fitted = Regressions(columns, codes, Predictors(codes)).fit(3, range(3))
        assert fitted is not None
        rest, regression = fitted
        np.testing.assert_allclose(rest.cells, cells - cells.mean() - apart @ slopes, atol=1e-9)
        assert regression.explained == pytest.approx(1.0 - rest.cells @ rest.cells / np.var(cells) / 2000)


def test_a_regression_over_several_blocks_of_rows_is_that_over_one(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"a": np.arange(500.0), "b": np.arange(500.0) ** 1.5})
    whole = sf.sanitize(table, Chain(), seed=1, report=False).table
    monkeypatch.setattr("sfumato.methods.chain.regression._CELLS", 256)
    parts = sf.sanitize(table, Chain(), seed=1, report=False).table
    np.testing.assert_allclose(parts["b"].to_numpy(), whole["b"].to_numpy(), rtol=1e-6)


def test_of_few_people_more_are_behind_each_value_unless_a_class_is_small() -> None:
    def taken(rows: int, **told: object) -> int:
        return chained(sf.sanitize(visits(rows, 3), target="ill", seed=1, report=False, **told)).k  # type: ignore[arg-type]

    assert [taken(rows) for rows in (300, 1000, 2500)] == [30, 50, 10]
    assert taken(1000, method="chain") == 50
    assert (taken(1000, k=10), taken(1000, leaf=20)) == (10, 20)
    few = visits(1000, 3)
    rare = pa.array(["yes"] * 40 + ["no"] * 960)
    few = few.set_column(few.column_names.index("ill"), "ill", rare)
    assert chained(sf.sanitize(few, target="ill", seed=1, report=False)).k == 10


def test_a_release_of_few_people_whose_k_nobody_chose_is_verified(tmp_path: Path) -> None:
    release = sf.sanitize(visits(300, 9), target="ill", report=False)
    assert release.certificate.parameters["k"] > Chain.k
    release.save(tmp_path / "out", sign=False)
    verification = sf.verify(tmp_path / "out")
    assert verification, verification.describe()
