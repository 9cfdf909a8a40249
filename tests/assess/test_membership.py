"""Membership inference on the three fixed cases, and areas and their intervals against what is known of them."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks.membership import LEAVES, MEMBERSHIP, OUTLIERS, accuse_outliers, area, area_tries, threshold
from sfumato.assess.findings import Finding
from sfumato.assess.study import study_of
from sfumato.methods.chain.facts import ChainSynthesis
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import (
    CASES,
    assert_no_more_than_control,
    constant_table,
    draw_table,
    ends,
    fit,
    found_by,
    released_of,
)
from tests.examples import at_length

AREAS = ("membership-auc-distance", "membership-auc-distance-relative", "membership-auc-classifier")
NAMES = (*AREAS, "membership-tpr")
CHAINED = ChainSynthesis(("x",), (1,), (600,), (0,), 600, 600, 5, 25, 0, 0, 0)


findings = partial(found_by, MEMBERSHIP)


@cache
def case(name: str, seed: int = 5) -> dict[str, Finding]:
    return findings(draw_table(1), released_of(name), seed=seed, holdout=draw_table(3))


@pytest.mark.parametrize("name", NAMES)
def test_a_copy_gives_every_member_away(name: str) -> None:
    finding = case("copy")[name]
    assert (finding.value or 0.0) > 0.99
    assert ends(finding.interval)[0] > 0.98
    assert (finding.control or 1.0) < (0.05 if name.endswith("percent") else 0.6)


@pytest.mark.parametrize("seed", [0, 1, *at_length(2, 3, 4, 5)])
def test_a_redraw_gives_nobody_away(seed: int) -> None:
    found = findings(draw_table(10 + seed), draw_table(20 + seed), seed=seed, holdout=draw_table(30 + seed))
    for name in NAMES:
        assert_no_more_than_control(found[name])
        assert (found[name].value or 0.0) < (0.05 if name.endswith("percent") else 0.57)


@pytest.mark.parametrize("name", NAMES)
def test_a_constant_table_gives_nobody_away(name: str) -> None:
    finding = case("constant")[name]
    assert ends(finding.interval)[0] <= max(finding.baseline or 0.0, ends(finding.control_interval)[1])


def test_rows_with_a_little_noise_on_them_give_members_away_less_than_a_copy() -> None:
    rng = np.random.default_rng(1)
    original, holdout = (pa.table({c: rng.normal(size=500) for c in "abc"}) for _ in range(2))
    values = []
    for noise in (0.05, 0.3, 5.0):
        rows = {c: original.column(c).to_numpy() + noise * rng.normal(size=500) for c in "abc"}
        values.append(findings(original, pa.table(rows), holdout=holdout)["membership-auc-distance"].value or 0.0)
    assert values[0] > values[1] + 0.05 > values[2] + 0.1
    assert values[2] == pytest.approx(0.5, abs=0.07)


def test_twins_in_the_population_limit_what_a_copy_gives_away() -> None:
    rng = np.random.default_rng(1)
    original, holdout = (pa.table({c: rng.choice(["u", "v"], 300).tolist() for c in "ab"}) for _ in range(2))
    found = findings(original, original, holdout=holdout)
    for name in AREAS:
        assert found[name].value == pytest.approx(0.5, abs=0.08)


@pytest.mark.parametrize("name", CASES)
def test_every_finding_is_complete(name: str) -> None:
    found = case(name)
    assert tuple(found) == NAMES
    for finding in found.values():
        assert finding.meaning.endswith("counted on 600 people of each kind.")
        assert finding.value is not None
        assert ends(finding.interval)[0] <= finding.value <= ends(finding.interval)[1]
        assert finding.control is not None
        assert ends(finding.control_interval)[0] <= finding.control <= ends(finding.control_interval)[1]
        assert finding.baseline == (0.01 if finding.name.endswith("tpr") else 0.5)
        assert finding.attempts == 600


def test_without_rows_held_out_nothing_is_run() -> None:
    for finding in findings(draw_table(1), draw_table(2)).values():
        assert "no rows were held out" in (finding.reason or "")


@pytest.mark.parametrize(
    ("original", "released", "holdout"),
    [
        (draw_table(1), draw_table(2), draw_table(3, 1)),
        (draw_table(1), draw_table(2), draw_table(3, 2)),
        (draw_table(1, 2), draw_table(2, 1), draw_table(3, 30)),
        (constant_table(60), constant_table(60), constant_table(60)),
    ],
)
def test_few_or_equal_people_are_attacked_without_a_crash(
    original: pa.Table, released: pa.Table, holdout: pa.Table
) -> None:
    found = findings(original, released, holdout=holdout)
    assert tuple(found) == NAMES
    assert found["membership-auc-distance"].status == "measured"
    classifier = found["membership-auc-classifier"]
    assert classifier.status == ("measured" if holdout.num_rows == 60 else "not-run")
    assert classifier.value == 0.5 if classifier.reason is None else "too few" in classifier.reason


def slow_area(members: list[float], others: list[float]) -> float:
    wins = [1.0 if this > that else 0.5 if this == that else 0.0 for this in members for that in others]
    return sum(wins) / len(wins)


@pytest.mark.parametrize("seed", [0, *at_length(1, 2, 3, 4)])
def test_an_area_is_the_share_of_pairs_in_the_right_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    members, others = (np.rint(rng.normal(centre, 2, size=size)) for centre, size in ((1, 40), (0, 25)))
    assert area(members, others) == pytest.approx(slow_area(members.tolist(), others.tolist()))


def test_the_interval_of_an_area_holds_the_true_one_about_95_times_in_100() -> None:
    from math import erf

    rng = np.random.default_rng(1)
    truth = 0.5 * (1 + erf(0.8 / 2))  # two unit normals, 0.8 apart
    held = 0
    for _ in range(400):
        low, high = area_tries(rng.normal(0.8, 1, 60), rng.normal(0, 1, 60)).interval
        held += low <= truth <= high
    assert 0.91 <= held / 400 <= 0.985


@pytest.mark.parametrize("sizes", [(40, 400), (400, 40)])
def test_the_interval_of_an_area_has_the_variance_of_both_sides(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(2)
    members, others = rng.normal(0.8, 3.0, sizes[0]), rng.normal(0.0, 0.5, sizes[1])
    ups = np.array([(others < score).mean() for score in members])
    downs = np.array([(members < score).mean() for score in others])
    variance = ups.var(ddof=1) / len(ups) + downs.var(ddof=1) / len(downs)
    tries = area_tries(members, others)
    assert tries.share * (1 - tries.share) / tries.of == pytest.approx(variance, rel=0.02)
    assert area_tries(members, others, worth=0.5).of == pytest.approx(tries.of / 2, rel=0.05)


def test_rows_near_in_thick_and_thin_regions_are_compared_with_people_like_them() -> None:
    """Released rows lie as near to members as a tenth of their neighbours: distance tells the region, likeness who."""

    def draw(seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        scale = 10.0 ** rng.uniform(-4, 0, 500)
        return np.column_stack([scale * rng.normal(size=500), 10.0 * np.log10(scale)])

    members, outside = draw(1), draw(2)
    noise = np.random.default_rng(3).normal(size=500)
    released = members.copy()
    released[:, 0] += 0.05 * 10.0 ** (members[:, 1] / 10.0) * noise
    released[:, 1] += 0.02 * noise
    found = findings(
        *(pa.table({"x": rows[:, 0], "y": rows[:, 1]}) for rows in (members, released)),
        holdout=pa.table({"x": outside[:, 0], "y": outside[:, 1]}),
    )
    near, alike = (found[f"membership-auc-distance{way}"].value for way in ("", "-relative"))
    assert near is not None
    assert alike is not None
    assert alike > near + 0.08


def test_a_model_learns_which_column_comes_too_near() -> None:
    """One of four columns is released exactly, so that distances in all of them are less informative."""

    def draw(seed: int, rows: int = 1_500) -> np.ndarray:
        return np.random.default_rng(seed).normal(size=(rows, 4))

    members, outside = draw(1), draw(2)
    released = members + 0.35 * draw(3) * np.array([0.0, 1.0, 1.0, 1.0])
    found = findings(
        *(pa.table({f"c{k}": rows[:, k] for k in range(4)}) for rows in (members, released)),
        holdout=pa.table({f"c{k}": outside[:, k] for k in range(4)}),
    )
    distance, learned = found["membership-auc-distance"].value, found["membership-auc-classifier"].value
    assert distance is not None
    assert learned is not None
    assert learned > distance + 0.02


def test_a_model_learns_in_which_column_the_nearest_row_differs() -> None:
    """Members differ from their released rows in one column, others from theirs in another, by as much."""
    rng = np.random.default_rng(4)
    released = np.tile(10.0 * rng.permutation(400)[:, None], 2)
    gaps = np.abs(rng.normal(size=(2, 200)))
    members, outside = released[:200] + np.outer(gaps[0], [0, 1]), released[200:] + np.outer(gaps[1], [1, 0])
    found = findings(
        *(pa.table({"x": people[:, 0], "y": people[:, 1]}) for people in (members, released)),
        holdout=pa.table({"x": outside[:, 0], "y": outside[:, 1]}),
    )
    assert found["membership-auc-distance"].value == pytest.approx(0.5, abs=0.15)
    assert found["membership-auc-distance-relative"].value == pytest.approx(0.5, abs=0.15)
    assert (found["membership-auc-classifier"].value or 0.0) > 0.9


def test_a_model_is_tested_on_people_from_whom_it_has_not_learnt() -> None:
    """Twenty columns of chance fit sixty people: 0.68 on those learnt from, 0.50 +- 0.03 on others, over six draws."""
    values = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        tables = [pa.table({f"c{k}": rng.normal(size=60) for k in range(20)}) for _ in range(3)]
        values.append(findings(tables[0], tables[1], seed=seed, holdout=tables[2])["membership-auc-classifier"].value)
    assert np.mean(np.array(values, dtype=float)) == pytest.approx(0.5, abs=0.12)


@pytest.mark.parametrize("count", [1, 5, 98, 99, 100, 198, 199, 250, 400, 1_000])
def test_a_threshold_accuses_as_many_as_are_allowed_and_no_more(count: int) -> None:
    """A further score is equally likely in each of the n + 1 gaps; below 99 the highest score is all there is."""
    scores = np.random.default_rng(count).permutation(count).astype(np.float64)
    above = int((scores >= threshold(scores)).sum())
    assert above / (count + 1) <= 0.01 or above == 1
    assert (above + 1) / (count + 1) > 0.01


def test_nobody_is_accused_where_all_are_alike() -> None:
    found = findings(constant_table(60), constant_table(60), holdout=constant_table(60))
    assert (found["membership-tpr"].value, found["membership-tpr"].control) == (0.0, 0.0)
    assert accuse_outliers(np.zeros(40), np.zeros(40), np.zeros(40)).share == 0.0


def test_outliers_are_compared_with_the_other_half() -> None:
    """The others of one half score 10, of the other 0; people who score 5 are accused if they meet the zeros."""
    others = np.tile([10.0, 0.0], 20)
    scores = np.tile([5.0, -5.0], 20)
    assert accuse_outliers(scores, np.ones(40), others).share == 0.5
    assert accuse_outliers(-scores, np.ones(40), others).share == 0.0
    assert accuse_outliers(scores[:2], np.ones(2), others[:2]).share == 0.5


def test_only_the_5_percent_with_the_largest_distance_are_accused() -> None:
    distance = np.arange(200.0)
    everybody = accuse_outliers(distance, distance, np.zeros(200))
    nobody = accuse_outliers(np.where(distance < 190, 9.0, -9.0), distance, np.zeros(200))
    assert (everybody.hits, everybody.of) == (10, 10)
    assert (nobody.hits, nobody.of) == (0, 10)


def test_of_outlying_people_who_were_not_in_few_are_accused() -> None:
    """The line leaves 5 % of all the control group above it; of the 75 most outlying ones fewer than a third are."""
    tables = [draw_table(seed, 1_500) for seed in (1, 2, 3)]
    this = study_of(tables[0], tables[1], fit(tables[0]), rng=np.random.default_rng(5), holdout=tables[2])
    (finding,) = run_measure(OUTLIERS, this)
    assert finding.value is not None
    assert finding.control is not None
    assert max(finding.value, finding.control) < 0.33


def test_another_row_of_an_attacked_person_is_no_reference() -> None:
    """Everybody has the same row twice: their own twin must not make the control group look far from the release."""

    def twice(seed: int) -> pa.Table:
        return pa.concat_tables([draw_table(seed, 200)] * 2)

    whose = np.tile(np.arange(200), 2)
    found = findings(twice(1), twice(2), holdout=twice(3), persons=whose, held_persons=whose)
    finding = found["membership-auc-distance-relative"]
    assert finding.attempts == 200
    assert finding.value == pytest.approx(0.5, abs=0.17)  # five standard errors


def test_the_interval_of_a_perfect_area_is_not_empty() -> None:
    low, high = area_tries(np.ones(50), np.zeros(50)).interval
    assert 0.9 < low < high == 1.0


def test_the_false_alarms_that_were_asked_for_are_the_ones_that_are_raised() -> None:
    rng = np.random.default_rng(2)
    original, holdout = (pa.table({c: rng.normal(size=3000) for c in "abcd"}) for _ in range(2))
    released = pa.table({c: original.column(c).to_numpy() + 0.2 * rng.normal(size=3000) for c in "abcd"})
    finding = findings(original, released, holdout=holdout)["membership-tpr"]
    bottom, top = ends(finding.control_interval)
    assert bottom <= 0.02
    assert top >= 0.005
    assert (finding.value or 0.0) > 3 * top


@pytest.mark.parametrize("name", CASES)
def test_outlying_people_of_a_copy_are_claimed_and_of_a_redraw_no_more_than_others(name: str) -> None:
    this = study_of(
        draw_table(1), released_of(name), fit(draw_table(1)), rng=np.random.default_rng(5), holdout=draw_table(3)
    )
    (finding,) = run_measure(OUTLIERS, this)
    assert finding.baseline == 0.05
    assert finding.attempts == 30
    if name == "copy":
        assert finding.value == 1.0
    else:
        assert finding.control is not None
        assert finding.value is not None
        assert finding.value <= finding.control + 6 * (0.25 / 30) ** 0.5


def test_too_few_people_have_no_outlying_ones() -> None:
    table = draw_table(1, 199)
    (finding,) = run_measure(
        OUTLIERS, study_of(table, table, fit(table), rng=np.random.default_rng(5), holdout=draw_table(3))
    )
    assert finding.reason == "fewer than 200 people on a side have too few outlying ones"


@pytest.mark.parametrize("member", [0.0, 3.0])
def test_who_knows_how_rows_were_drawn_tells_members_by_what_that_says(member: float) -> None:
    table, outside, scored = draw_table(1), draw_table(3), fit(draw_table(1)).encode(draw_table(1)).values
    known = {row.tobytes() for row in scored}

    def score(people: Any) -> Any:
        chance = np.random.default_rng(len(people)).normal(size=len(people))
        return chance + [member * (row.tobytes() in known) for row in people]

    told = {"facts": (CHAINED,), "workings": OwnerDetails(regrown=score), "holdout": outside}
    this = study_of(table, draw_table(2), fit(table), rng=np.random.default_rng(5), **told)
    leaves, tree = run_measure(LEAVES, this)
    assert leaves.value == pytest.approx(0.98 if member else 0.5, abs=0.08)
    assert (tree.status, tree.applies) == ("not-run", False)
    (first, second) = run_measure(LEAVES, study_of(table, table, fit(table), rng=np.random.default_rng(5)))
    assert first.reason == second.reason == "the rows were not drawn from the leaves of trees"
