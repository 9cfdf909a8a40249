"""The tree on randomized records: laws, what it recovers, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.distributions.domains import Integers, Labels, Reals, Universe
from sfumato.core.distributions.operators import Additive, transition
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import BadInput, OptionError, SchemaError
from sfumato.survey.mining import ReconstructedTree, noise_for_privacy
from sfumato.survey.mining.intervals import choose_intervals, divide, places_in_order
from sfumato.survey.mining.tree import RECONSTRUCTIONS, in_order
from tests.examples import examples, sized

RECONSTRUCTED = pytest.mark.parametrize("reconstruction", RECONSTRUCTIONS)
Columns = dict[str, NDArray[Any]]


def spec(privacy: float = 0.5, law: str = "uniform") -> NoiseSpec:
    domain = Reals(0.0, 10.0, 0.001)
    return NoiseSpec(domain, noise_for_privacy(law, privacy, 0.0, 10.0, step=0.001))


def two_columns(seed: int, n: int = 600) -> tuple[Columns, NDArray[np.str_]]:
    """A column that tells the class of nine in ten records, and one that has no part in it."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(0.0, 10.0, n)
    wrong = rng.random(n) < 0.1
    return {"x": x, "other": rng.uniform(0.0, 10.0, n)}, np.where((x > 4.0) ^ wrong, "high", "low")


def randomized(columns: Columns, specs: dict[str, NoiseSpec], seed: int) -> Columns:
    rng = np.random.default_rng(seed)
    return {name: specs[name].randomize(each, rng) for name, each in columns.items()}


@RECONSTRUCTED
@given(seed=st.integers(0, 10_000))
@examples(8, few=2)
def test_names_of_classes_have_no_part_in_the_tree(reconstruction: str, seed: int) -> None:
    columns, classes = two_columns(seed)
    specs = {"x": spec(), "other": spec(law="gaussian")}
    sent = randomized(columns, specs, seed)
    tree = ReconstructedTree(specs=specs, reconstruction=reconstruction, local_records=100)
    shares = tree.fit(sent, classes).predict_proba(columns)
    renamed = tree.fit(sent, np.where(classes == "high", "a", "b"))  # sorts the other way round
    np.testing.assert_array_equal(renamed.predict_proba(columns), shares[:, [0, 1]])
    renamed = tree.fit(sent, np.where(classes == "high", "z", "b"))
    np.testing.assert_array_equal(renamed.predict_proba(columns), shares[:, ::-1])


@RECONSTRUCTED
@given(seed=st.integers(0, 10_000), shift=st.integers(-500, 500), factor=st.sampled_from([0.5, 2.0, 64.0]))
@examples(6)
def test_units_have_no_part_in_the_tree(reconstruction: str, seed: int, shift: int, factor: float) -> None:
    columns, classes = two_columns(seed)
    whole = {name: np.rint(each * 100).astype(np.int64) for name, each in columns.items()}
    specs = {name: NoiseSpec(Integers(0, 1000), {"name": "uniform", "reach": 300}) for name in whole}
    other = NoiseSpec(Reals(float(shift), shift + 1000 * factor, factor), {"name": "uniform", "reach": 300 * factor})
    sent = randomized(whole, specs, seed)
    moved = {name: shift + each * factor for name, each in sent.items()}
    first = ReconstructedTree(specs=specs, reconstruction=reconstruction, local_records=100).fit(sent, classes)
    second = ReconstructedTree(specs=dict.fromkeys(specs, other), reconstruction=reconstruction, local_records=100)
    answers = second.fit(moved, classes).predict_proba({name: shift + each * factor for name, each in whole.items()})
    np.testing.assert_array_equal(answers, first.predict_proba(whole))


@RECONSTRUCTED
def test_the_order_of_records_has_no_part_where_randomized_values_differ(reconstruction: str) -> None:
    columns, classes = two_columns(3)
    fine = NoiseSpec(Reals(0.0, 10.0, 1e-8), {"name": "gaussian", "sd": 2.0})
    specs = dict.fromkeys(columns, fine)
    sent = randomized(columns, specs, 4)
    assert all(len(np.unique(each)) == len(each) for each in sent.values())
    order = np.random.default_rng(5).permutation(len(classes))
    tree = ReconstructedTree(specs=specs, reconstruction=reconstruction, local_records=100)
    first = tree.fit(sent, classes).predict_proba(columns)
    again = tree.fit({name: each[order] for name, each in sent.items()}, classes[order]).predict_proba(columns)
    np.testing.assert_array_equal(first, again)


@RECONSTRUCTED
def test_the_same_records_give_the_same_tree(reconstruction: str) -> None:
    columns, classes = two_columns(6)
    coarse = NoiseSpec(Integers(0, 10), {"name": "uniform", "reach": 5})
    specs = dict.fromkeys(columns, coarse)
    sent = randomized({name: np.rint(each) for name, each in columns.items()}, specs, 1)
    trees = [ReconstructedTree(specs=specs, reconstruction=reconstruction).fit(sent, classes) for _ in range(2)]
    assert trees[0].describe() == trees[1].describe()


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=50), st.integers(0, 10_000))
def test_ranks_follow_the_values_and_equal_values_are_shuffled(values: list[int], seed: int) -> None:
    ranks = places_in_order(np.array(values), np.random.default_rng(seed))
    assert sorted(ranks.tolist()) == list(range(len(values)))
    assert np.array(values)[np.argsort(ranks)].tolist() == sorted(values)
    equal = places_in_order(np.zeros(500, dtype=np.int64), np.random.default_rng(seed))
    assert abs(np.corrcoef(equal, np.arange(500))[0, 1]) < 0.35  # seven standard errors


@pytest.mark.parametrize("law", ["uniform", "gaussian"])
@pytest.mark.parametrize("reconstruction", ["by-class", "local"])
def test_a_band_that_noise_hides_is_found(law: str, reconstruction: str) -> None:
    rng = np.random.default_rng(11)
    specs = {"x": spec(1.0, law), "other": spec(1.0, law)}
    columns = {name: rng.uniform(0.0, 10.0, sized(10_000, 20_000)) for name in specs}
    classes = (columns["x"] > 3.5) & (columns["x"] < 7.0)
    sent, fresh = randomized(columns, specs, 12), {name: rng.uniform(0.0, 10.0, 4000) for name in specs}
    truth = (fresh["x"] > 3.5) & (fresh["x"] < 7.0)
    right = {
        way: float(
            (ReconstructedTree(specs=specs, reconstruction=way).fit(sent, classes).predict(fresh) == truth).mean()
        )
        for way in (reconstruction, "none")
    }
    assert right[reconstruction] > 0.88
    if law == "uniform":  # most randomized values say nothing there, and half of all answers are wrong without
        assert right[reconstruction] > right["none"] + 0.15


@RECONSTRUCTED
@given(seed=st.integers(0, 10_000), min_leaf=st.integers(1, 80), max_depth=st.integers(1, 4))
@examples(8)
def test_leaves_are_as_large_and_paths_as_short_as_asked(
    reconstruction: str, seed: int, min_leaf: int, max_depth: int
) -> None:
    columns, classes = two_columns(seed)
    specs = dict.fromkeys(columns, spec())
    sent = randomized(columns, specs, seed)
    limits: dict[str, Any] = {"min_leaf": min_leaf, "max_depth": max_depth, "local_records": 100}
    grown = ReconstructedTree(specs=specs, reconstruction=reconstruction, pruned=False, **limits).fit(sent, classes)
    cut = ReconstructedTree(specs=specs, reconstruction=reconstruction, **limits).fit(sent, classes)
    for tree in (grown, cut):
        nodes = tree.nodes_
        assert nodes.counts[nodes.column < 0].sum(axis=1).min() >= min_leaf
        assert nodes.counts[nodes.column < 0].sum() == len(classes)
        assert nodes.depth <= max_depth
    assert cut.nodes_.leaves <= grown.nodes_.leaves


@given(st.integers(1, 400), st.integers(2, 30), st.integers(0, 2**32 - 1))
def test_every_interval_gets_its_count_to_one_record(n: int, m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.full(m, 0.3))
    codes = in_order(rng.permutation(n), share)
    assert np.abs(np.bincount(codes, minlength=m) - share * n).max() <= 1.0 + 1e-9


@pytest.mark.parametrize(
    ("domain", "law"),
    [
        (Integers(0, 15), {"name": "uniform", "reach": 7}),
        (Integers(3, 90), {"name": "gaussian", "sd": 20.0}),
        (Reals(0.0, 1.0, 0.01), {"name": "laplace", "scale": 0.3}),
        (Integers(0, 60), {"name": "keep-or-replace", "keep": 0.3}),
        (Integers(0, 60), {"name": "shift-modulo", "reach": 12}),
        (Integers(0, 60), {"name": "interval", "edges": [0, 10, 40, 60]}),
        (Labels(("a", "b", "c")), {"name": "response", "epsilon": 1.0}),
    ],
)
def test_chances_of_cells_are_those_of_their_places(domain: Universe, law: dict[str, Any]) -> None:
    noise = NoiseSpec(domain, law)
    codes = noise.operator.randomize(np.arange(domain.size).repeat(50), np.random.default_rng(0))
    column = divide("x", noise, 10, noise.decode_output(codes))
    assert column.matrix is not None
    outputs = np.arange(-2000, 2000) if noise.operator.outputs is None else np.array(noise.operator.outputs)
    chances = (
        noise.operator.probabilities(outputs).T if isinstance(noise.operator, Additive) else transition(noise.operator)
    )
    wanted = np.zeros_like(column.matrix)
    inputs = column.of_truth(domain.decode(np.arange(domain.size)))
    np.add.at(wanted, (inputs[:, None], column.cells(outputs)[None, :]), chances)
    wanted /= np.bincount(inputs)[:, None]
    np.testing.assert_allclose(column.matrix, wanted, atol=1e-9)


def test_intervals_are_as_many_as_the_paper_takes() -> None:
    assert [choose_intervals(n) for n in (1, 1000, 2500, 10_000, 10**6)] == [10, 10, 25, 100, 100]
    columns, classes = two_columns(0)
    tree = ReconstructedTree(specs={"x": spec(), "other": Integers(0, 4)})
    columns["other"] = np.rint(columns["other"] / 2.5)
    tree.fit({"x": spec().randomize(columns["x"], np.random.default_rng(1)), "other": columns["other"]}, classes)
    assert [column.size for column in tree.columns_] == [10, 5]


def test_tables_of_all_kinds_are_read_by_name() -> None:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    columns, classes = two_columns(8)
    specs = dict.fromkeys(columns, spec())
    sent = randomized(columns, specs, 9)
    turned = {name: sent[name] for name in reversed(sent)}
    tree = ReconstructedTree(specs=specs)
    wanted = tree.fit(np.stack(list(sent.values()), axis=1), classes).predict_proba(columns)
    for table in (turned, pd.DataFrame(turned), pl.DataFrame(turned), pa.table(turned)):
        np.testing.assert_array_equal(tree.fit(table, classes).predict_proba(columns), wanted)


def test_a_class_that_sends_its_middle_still_learns_uncorrected() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 100, 3000)
    noise = NoiseSpec(Integers(0, 99), {"name": "interval", "edges": [0, 25, 50, 75, 99]})
    tree = ReconstructedTree(specs={"x": noise}, reconstruction="none").fit({"x": noise.randomize(x, rng)}, x >= 50)
    assert (tree.predict({"x": x}) == (x >= 50)).mean() > 0.85


def fit_with(change: str) -> None:
    columns, classes = two_columns(1)
    specs: dict[str, Any] = dict.fromkeys(columns, spec())
    sent: Any = randomized(columns, specs, 2)
    options: dict[str, Any] = {}
    if change == "missing":
        sent["x"][[3, 5]] = np.nan
    elif change == "few":
        classes[:] = "low"
        classes[:9] = "high"
    elif change == "one class":
        classes[:] = "low"
    elif change == "no column":
        del sent["x"]
    elif change == "one more column":
        sent["extra"] = sent["x"]
    elif change == "short":
        classes = classes[1:]
    elif change == "gone class":
        classes = classes.astype(object)
        classes[0] = None
    elif change == "labels":
        specs["x"] = Labels(("a", "b"))
        sent["x"] = np.array(["a", "b"] * 300)
    elif change == "beyond":
        sent["x"][0] = 99.0
    elif change == "matrix":
        sent = np.zeros((600, 3))
    elif change == "uneven":
        sent["x"] = sent["x"][1:]
    elif change == "no spec":
        specs["x"] = None
    else:
        name, _, value = change.partition("=")
        options[name] = {"none": None, "{}": {}}.get(value, int(value) if value.lstrip("-").isdigit() else value)
    ReconstructedTree(**{"specs": specs, **options}).fit(sent, classes)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ("missing", SchemaError, "column 'x' has 2 missing values; fill them"),
        ("few", BadInput, "1 of 2 classes have fewer than 30 records"),
        ("one class", BadInput, "fewer than two classes"),
        ("no column", SchemaError, "column 'x' is not in the table"),
        ("one more column", SchemaError, "column 'extra' has no noise specification"),
        ("short", BadInput, "give one class for each record"),
        ("gone class", BadInput, "1 of 600 classes are missing"),
        ("labels", OptionError, "column 'x' has labels without order; leave it out, or use naive Bayes"),
        ("beyond", SchemaError, "column 'x': 1 values cannot have come from this law"),
        ("matrix", SchemaError, "needs 2 columns"),
        ("uneven", BadInput, "not equally long"),
        ("no spec", OptionError, "column 'x' has no noise specification"),
        ("specs={}", OptionError, "give at least one"),
        ("reconstruction=by-magic", OptionError, "there is no reconstruction"),
        ("stop=never", OptionError, "there is no stop"),
        ("min_leaf=0", OptionError, "min_leaf is 0"),
        ("intervals=1", OptionError, "intervals is 1"),
        ("max_depth=0", OptionError, "max_depth is 0"),
        ("local_records=0", OptionError, "local_records is 0"),
    ],
)
def test_what_cannot_be_learned_from_is_refused(change: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        fit_with(change)


def test_few_records_of_a_class_are_no_matter_where_classes_are_reconstructed_together() -> None:
    columns, classes = two_columns(1)
    classes[:] = "low"
    classes[:9] = "high"
    specs = dict.fromkeys(columns, spec())
    for reconstruction in ("global", "none"):
        tree = ReconstructedTree(specs=specs, reconstruction=reconstruction).fit(randomized(columns, specs, 2), classes)
        assert tree.nodes_.counts[0].tolist() == [9, 591]


def test_rows_to_answer_for_lie_in_the_domain() -> None:
    columns, classes = two_columns(1)
    specs = dict.fromkeys(columns, spec())
    tree = ReconstructedTree(specs=specs)
    with pytest.raises(BadInput, match="call fit first"):
        tree.predict(columns)
    tree.fit(randomized(columns, specs, 2), classes)
    with pytest.raises(SchemaError, match="column 'x': 2 values"):
        tree.predict({"x": [11.0, -1.0, 3.0], "other": [1.0, 2.0, 3.0]})
