"""Clustering agreement: misclassification error with matched labels, and the adjusted Rand index."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import adjusted_rand_score

from sfumato.assess.findings import Finding
from sfumato.assess.study import MeasureOptions, Sizes, StudyDetails, study_of
from sfumato.assess.utility import clustering
from sfumato.assess.utility.clustering import CLUSTERING, OWN_CLUSTERS, agreement, error
from sfumato.core.errors import OptionError
from sfumato.methods.geometry import Key, Rotate
from sfumato.methods.geometry.facts import Transformed
from sfumato.methods.geometry.transformations import KeyedOwnerDetails, rotate
from sfumato.methods.protocol import OwnerDetails
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Schema
from tests.assess.cases import ROWS, constant_table, draw_table, released_of
from tests.assess.mining import base, found, interval, is_complete, study, value
from tests.examples import at_length, sized

OWN = "misclassification-error"


def blobs(seed: int, sizes: tuple[int, ...] = (100, 100, 100)) -> pa.Table:
    """Draw clusters that lie far apart, with the cluster as a class."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    places = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0], [10.0, 10.0]])[cluster]
    points = places + rng.normal(size=(len(cluster), 2))
    return pa.table({"a": points[:, 0], "b": points[:, 1], "blob": [f"blob {place}" for place in cluster]})


def clustered(original: pa.Table, released: pa.Table, target: str | None = None, **more: object) -> dict[str, Finding]:
    subject = study(original, released, target, holdout=original, **more)  # type: ignore[arg-type]
    return found(CLUSTERING, subject) | found(OWN_CLUSTERS, subject)


@pytest.mark.parametrize("rows", [1, 7, 60])
def test_the_error_is_the_least_over_all_ways_to_pair_the_labels(rows: int) -> None:
    rng = np.random.default_rng(rows)
    for _ in range(20):
        first, second = rng.integers(0, 4, size=rows), rng.integers(0, 4, size=rows)
        least = min(float(np.mean(np.array(names)[second] != first)) for names in itertools.permutations(range(4)))
        assert error(first, second) == pytest.approx(least, abs=1e-12)


def test_the_error_is_a_distance() -> None:
    rng = np.random.default_rng(2)
    for _ in range(50):
        a, b, c = rng.integers(0, 4, size=(3, 30))
        assert error(a, b) == error(b, a)
        assert error(a, c) <= error(a, b) + error(b, c) + 1e-12
        assert error(a, (a + 1) % 4) == 0.0


@pytest.mark.parametrize("rows", [1, 2, 7, 200])
def test_agreement_is_the_adjusted_rand_index(rows: int) -> None:
    rng = np.random.default_rng(rows)
    for count in (1, 2, 4):
        first, second = rng.integers(0, count, size=rows), rng.integers(0, 4, size=rows)
        assert agreement(first, second) == pytest.approx(adjusted_rand_score(first, second), abs=1e-12)


@pytest.fixture
def few_redraws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw one table anew in ``make test``, where nothing is asked about chance."""
    monkeypatch.setattr(clustering, "_REDRAWS", sized(1, clustering._REDRAWS))


@pytest.mark.parametrize(
    ("case", "target"), [("copy", None), ("redraw", "colour"), ("constant", None), *at_length(("copy", "colour"))]
)
def test_every_finding_is_complete(case: str, target: str | None) -> None:
    findings = clustered(draw_table(1), released_of(case), target, workings=OwnerDetails(origin=np.arange(ROWS)))
    assert set(findings) == {*CLUSTERING.names, *OWN_CLUSTERS.names}
    assert all(is_complete(finding) for finding in findings.values())


@pytest.mark.usefixtures("few_redraws")
def test_a_copy_clusters_as_the_original_does_even_where_a_sample_is_looked_at() -> None:
    table = draw_table(1)
    for sizes in (Sizes(), Sizes(training=200, testing=100)):
        findings = clustered(table, table, workings=OwnerDetails(origin=np.arange(ROWS)), sizes=sizes)
        assert value(findings["clustering-error"]) == 0.0
        assert value(findings["clustering-agreement"]) == 1.0
        assert value(findings[OWN]) == 0.0


@pytest.mark.parametrize("seed", [21, *at_length(22, 23)])
def test_a_redraw_of_clear_clusters_has_the_same_clusters(seed: int) -> None:
    findings = clustered(blobs(1), blobs(seed), "blob", seed=seed)
    assert value(findings["clustering-error"]) < 0.01
    assert value(findings["clustering-agreement"]) > 0.98
    assert base(findings["clustering-error"]) < 0.01
    assert interval(findings["clustering-error"])[0] == 0.0


@pytest.mark.parametrize("seed", [11, *at_length(12, 13)])
def test_the_interval_of_a_redraw_reaches_to_no_error(seed: int) -> None:
    findings = clustered(draw_table(1), draw_table(seed), seed=seed)
    assert interval(findings["clustering-error"])[0] <= base(findings["clustering-error"])
    assert interval(findings["clustering-agreement"])[1] >= base(findings["clustering-agreement"])


@pytest.mark.usefixtures("few_redraws")
def test_a_constant_table_puts_all_rows_together() -> None:
    findings = clustered(blobs(1, (150, 100, 50)), blobs(1).take(pa.array([0] * 300)), "blob")
    assert value(findings["clustering-error"]) == pytest.approx(0.5)
    assert value(findings["clustering-agreement"]) == 0.0


@pytest.mark.usefixtures("few_redraws")
def test_rows_are_misplaced_where_the_release_draws_the_line_elsewhere() -> None:
    """Two blobs side by side, of which the release keeps the left one and moves half of it up: it splits that one."""
    original = blobs(1, (100, 100))
    left = blobs(2, (200,))
    split = pa.array(np.array(left.column("b")) + np.repeat([0.0, 60.0], 100))
    released = left.set_column(1, "b", split)
    finding = clustered(original, released, "blob")["clustering-error"]
    assert "2 clusters by k-means" in finding.meaning
    assert value(finding) == pytest.approx(0.5, abs=0.01)  # both original blobs lie below the line


@pytest.mark.usefixtures("few_redraws")
def test_own_rows_are_compared_with_the_rows_they_descend_from() -> None:
    original = blobs(1)
    order = np.random.default_rng(3).permutation(300)
    shuffled = original.take(pa.array(order))
    told = clustered(original, shuffled, "blob", workings=OwnerDetails(origin=order))[OWN]
    assert value(told) == 0.0
    assert told.attempts == 300
    wrong = clustered(original, shuffled, "blob", workings=OwnerDetails(origin=np.arange(300)))[OWN]
    assert value(wrong) > 0.5
    assert interval(wrong)[0] > 0.4


@pytest.mark.usefixtures("few_redraws")
def test_a_rotation_keeps_the_clusters_of_own_rows_and_not_those_of_the_plane() -> None:
    """Turned by half a circle the rows cluster as before, but not where the original's did [OZ03, sec. 4]."""
    table = blobs(1).select(["a", "b"])
    turned = pa.table({name: -np.array(table.column(name)) - 20.0 for name in ("a", "b")})
    findings = clustered(table, turned, workings=OwnerDetails(origin=np.arange(300)))
    assert value(findings[OWN]) < 0.25
    assert value(findings["clustering-error"]) > value(findings[OWN]) + 0.1


def turned_people(degrees: float, clusters: int | None = None) -> dict[str, Finding]:
    """Four clusters of ages and salaries, turned by a key that counts salaries in thousands [errata OZ03.1]."""
    rng = np.random.default_rng(4)
    corner = np.repeat([[-1, -1], [1, -1], [-1, 1], [1, 1]], 100, axis=0)
    people = np.array([45.0, 70.0]) + corner * [10.0, 40.0] + rng.normal(size=(400, 2)) * [1.0, 4.0]
    original = people * [1.0, 1000.0]
    key = Key((Rotate(("age", "salary"), degrees, (1.0, 1000.0)),))
    before, after = (pa.table({"age": rows[:, 0], "salary": rows[:, 1]}) for rows in (original, rotate(original, key)))
    codec = Codec.fit(before, Schema.infer(before))
    workings = KeyedOwnerDetails(origin=np.arange(400), key=key, units=key.units)
    facts = (Transformed(("rotate",), ("age", "salary"), 2),)
    chance = np.random.default_rng(5)
    subject = study_of(
        before,
        after,
        codec,
        facts=facts,
        workings=workings,
        details=StudyDetails(options=MeasureOptions(clusters=clusters)),
        rng=chance,
    )
    return found(OWN_CLUSTERS, subject)


@pytest.mark.parametrize("degrees", [13.7, 60.0, 356.71])
def test_a_turn_misclassifies_no_row_in_the_units_of_its_key_whoever_clusters(degrees: float) -> None:
    for count in (3, 4, 5):  # also if K is not that of the clusters
        findings = turned_people(degrees, count)
        assert [value(finding) for finding in findings.values()] == [0.0, 0.0, 0.0]
        assert f"{count} clusters by k-means in the units of the key" in findings[OWN].meaning
        assert "4 clusters in the original by density-based" in findings[f"{OWN}-density"].meaning
    four = turned_people(degrees, 4)
    assert [base(finding) < 0.02 for finding in four.values()] == [True] * 3
    five = turned_people(degrees)
    assert base(five[OWN]) > 0.05  # five of four clusters are not stable


def test_noise_and_density_are_counted_as_the_paper_names_the_errors() -> None:
    """Noise that is clustered, a clustered row that becomes noise, and one that changes cluster [OZ03, sec. 5.2]."""
    first = np.array([0, 0, 0, 1, 1, 1, -1, -1, 2, 2])
    second = np.array([5, 5, 3, 3, 3, -1, -1, 5, 4, 4])
    assert error(first, second) == pytest.approx(0.3)
    assert error(first, first) == 0.0
    assert error(np.array([-1, -1]), np.array([0, 0])) == 1.0


@pytest.mark.parametrize("end", ["", "-hierarchical", "-density"])
def test_noise_misclassifies_rows_whoever_clusters(end: str) -> None:
    original, rng = blobs(1).select(["a", "b"]), np.random.default_rng(6)
    noisy = pa.table({name: np.array(original.column(name)) + rng.normal(0, 6, 300) for name in ("a", "b")})
    told = OwnerDetails(origin=np.arange(300))
    options = MeasureOptions(clusters=3)
    finding = clustered(original, noisy, workings=told, options=options)[OWN + end]
    assert value(finding) > 0.1
    assert base(finding) < 0.05
    assert interval(finding)[0] > base(finding)


def test_density_without_two_clusters_says_so() -> None:
    rng = np.random.default_rng(7)
    table = pa.table({name: rng.normal(size=300) for name in "abcdef"})
    finding = clustered(table, table, workings=OwnerDetails(origin=np.arange(300)))[f"{OWN}-density"]
    assert "finds fewer than two clusters in the original" in (finding.reason or "")


@pytest.mark.usefixtures("few_redraws")
def test_the_number_of_clusters_is_the_owners() -> None:
    findings = clustered(blobs(1), blobs(2), "blob", options=MeasureOptions(clusters=4))
    assert "4 clusters by k-means" in findings["clustering-error"].meaning
    with pytest.raises(OptionError, match="clusters= must be at least 2"):
        MeasureOptions(clusters=1)


@pytest.mark.usefixtures("few_redraws")
def test_without_origins_own_rows_are_not_run() -> None:
    for workings in (None, OwnerDetails(), OwnerDetails(origin=np.arange(3))):
        finding = clustered(blobs(1), blobs(2), workings=workings)[OWN]
        assert finding.reason == "it is not known from which original row a released row descends"


@pytest.mark.usefixtures("few_redraws")
def test_as_many_clusters_are_sought_as_there_are_classes() -> None:
    assert "3 clusters by k-means" in clustered(blobs(1), blobs(2), "blob")["clustering-error"].meaning
    assert "5 clusters by k-means" in clustered(blobs(1), blobs(2))["clustering-error"].meaning
    assert "5 clusters by k-means" in clustered(blobs(1), blobs(2), "a")["clustering-error"].meaning


@pytest.mark.usefixtures("few_redraws")
def test_the_sample_is_told() -> None:
    findings = clustered(draw_table(1), draw_table(2), sizes=Sizes(training=200, testing=100))
    told = "sought in 100 original and 100 released rows and counted on 100 rows, drawn at random"
    assert told in findings["clustering-error"].meaning
    assert "drawn at random" not in clustered(draw_table(1), draw_table(2))["clustering-error"].meaning


@pytest.mark.usefixtures("few_redraws")
@pytest.mark.parametrize("rows", [1, 2, 4, 90])
def test_a_release_of_any_size_is_measured(rows: int) -> None:
    findings = clustered(draw_table(1), draw_table(2, rows))
    assert all(is_complete(finding) for finding in findings.values())
    if rows == 1:
        assert value(findings["clustering-agreement"]) == 0.0


@pytest.mark.parametrize("original", [constant_table(50), draw_table(1, 1), draw_table(1, 2)])
def test_an_original_without_clusters_is_not_run(original: pa.Table) -> None:
    told = OwnerDetails(origin=np.arange(original.num_rows))
    for finding in clustered(original, original, workings=told).values():
        assert "nothing to cluster" in (finding.reason or "")


@pytest.mark.usefixtures("few_redraws")
def test_the_same_seed_gives_the_same_findings() -> None:
    assert clustered(blobs(1), blobs(2)) == clustered(blobs(1), blobs(2))


@pytest.mark.usefixtures("few_redraws")
@pytest.mark.parametrize("sizes", [Sizes(), Sizes(training=200, testing=100)], ids=["whole", "sample"])
@pytest.mark.parametrize("seed", [1, *at_length(2, 3)])
def test_a_copy_in_another_order_clusters_as_the_original_does(seed: int, sizes: Sizes) -> None:
    """Without clear clusters k-means ends elsewhere from elsewhere; that luck is no difference between tables."""
    values = np.random.default_rng(seed).normal(size=(400, 6))
    table = pa.table({f"v{place}": values[:, place] for place in range(6)})
    shuffled = table.take(pa.array(np.random.default_rng(seed + 9).permutation(400)))
    findings = clustered(table, shuffled, sizes=sizes, seed=seed)
    assert value(findings["clustering-error"]) == 0.0
    assert value(findings["clustering-agreement"]) == 1.0
