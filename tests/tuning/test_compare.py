"""Comparisons on readings made by hand: chance is never recommended, and of what is level the tightest is taken."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.assess.report import Ruling, Verdict
from sfumato.core.randomness import Randomness
from sfumato.options import PublishOptions
from sfumato.publish.policy import Policy
from sfumato.publish.trial import End, Outlook, chance_of
from sfumato.tables.persons import RowsByPerson
from sfumato.tables.schema import Schema
from sfumato.tuning import halving as confirming
from sfumato.tuning.candidates import Candidate, check_methods, grid
from sfumato.tuning.halving import (
    Clock,
    Confirmation,
    choose,
    compare,
    confirm,
    in_order,
    least_beaten,
    level_with,
    smoothed_leaks,
)
from sfumato.tuning.trials import METRICS, Part, Reading, Score, TableOptions, TrialRunner
from tests.examples import examples

OURS = Policy("ours", {"linkage-excess": 0.05}, keep={"utility-loss": 0.05})


def score(value: float, rows: int = 1000) -> Score:
    parts = np.zeros(rows)
    parts[: round(value * rows)] = 1.0
    return Score(float(parts.mean()), np.random.default_rng(round(1e6 * value)).permutation(parts))


def reading(candidate: Candidate, use: float, leak: float, outcome: Ruling = Ruling.INCONCLUSIVE) -> Reading:
    return Reading(
        candidate, "all", 1000, score(use), score(0.9), Verdict("ours", outcome), Outlook(leak, None, 0.5, {}), (), 1.0
    )


def bench(*readings: Reading) -> TrialRunner:
    made = TrialRunner(
        TableOptions(Schema(()), PublishOptions(policy=OURS), found=True),
        None,
        Randomness(1),
        METRICS["accuracy-boosting"],
    )
    for each in readings:
        made.readings.append(each)
        made.uses.setdefault(each.candidate, {})[each.part] = each.use
    return made


def chain(size: int) -> Candidate:
    return Candidate("chain", size)


def test_the_same_scores_do_not_differ_and_far_ones_surely_do() -> None:
    same = compare({"a": score(0.8)}, {"a": score(0.8)})
    far = compare({"a": score(0.9)}, {"a": score(0.6)})
    assert same is not None
    assert far is not None
    assert (same.value, same.certain) == (0.0, False)
    assert far.value == pytest.approx(0.3)
    assert far.certain
    assert compare({"a": score(0.8)}, {"b": score(0.8)}) is None


def test_the_interval_of_one_part_is_that_of_rows_with_twice_their_variance() -> None:
    one, other = score(0.85), score(0.75)
    gap = compare({"a": one}, {"a": other})
    assert gap is not None
    reach = 1.959964 * np.sqrt(2 * (one.parts - other.parts).var(ddof=1) / 1000)
    assert gap.high - gap.value == pytest.approx(reach, rel=1e-5)


def test_without_parts_one_number_tells_nothing_and_several_tell_by_their_spread() -> None:
    lone = [Score(value, np.empty(0)) for value in (0.8, 0.7)]
    gap = compare({"a": lone[0]}, {"a": lone[1]})
    assert gap is not None
    assert not gap.certain
    parts = {name: Score(0.8 + shift, np.empty(0)) for name, shift in zip("abc", (0.0, 0.001, -0.001), strict=True)}
    apart = compare(parts, dict.fromkeys("abc", lone[1]))
    assert apart is not None
    assert apart.certain


def test_what_is_lower_by_chance_or_by_little_is_level_and_what_is_surely_lower_is_not() -> None:
    readings = [reading(chain(size), use, 0.5) for size, use in ((20, 0.85), (40, 0.845), (80, 0.70))]
    made = bench(*readings)
    assert level_with(chain(20), [each.candidate for each in readings], made.uses, 0.025) == [chain(20), chain(40)]
    assert level_with(chain(20), [each.candidate for each in readings], made.uses, 0.001) == [chain(20)]


@given(st.lists(st.floats(0.0, 5.0), min_size=1, max_size=8))
@examples(100)
def test_smoothed_leaks_never_rise_with_the_size_and_keep_their_mean(leaks: list[float]) -> None:
    tried = {chain(10 * 2**place): reading(chain(10 * 2**place), 0.8, leak) for place, leak in enumerate(leaks)}
    smooth = [smoothed_leaks(tried)[each] for each in sorted(tried)]
    assert all(one >= two - 1e-9 for one, two in itertools.pairwise(smooth))
    assert np.mean(smooth) == pytest.approx(np.mean(leaks))


def test_of_level_settings_that_keep_the_limits_the_one_that_leaks_less_is_chosen() -> None:
    made = bench(reading(chain(20), 0.85, 0.9), reading(chain(80), 0.845, 0.3), reading(chain(640), 0.70, 0.1))
    assert choose(made, [chain(20), chain(80), chain(640)])[0] == chain(80)


def test_of_leaks_that_are_alike_the_simplest_method_is_chosen() -> None:
    condense = Candidate("condense", 80)
    made = bench(reading(condense, 0.85, 0.30), reading(chain(40), 0.848, 0.35))
    assert choose(made, [condense, chain(40)])[0] == chain(40)


def test_what_seems_to_break_a_limit_or_loses_too_much_is_not_chosen_before_others() -> None:
    made = bench(reading(chain(10), 0.88, 3.0), reading(chain(40), 0.86, 0.8), reading(chain(320), 0.7, 0.1))
    order = choose(made, [chain(10), chain(40), chain(320)])
    assert order[0] == chain(40)
    assert order[-1] == chain(10)


def test_where_nothing_keeps_the_limits_the_nearest_comes_first() -> None:
    made = bench(reading(chain(10), 0.88, 3.0), reading(chain(40), 0.86, 2.0))
    assert choose(made, [chain(10), chain(40)]) == [chain(40), chain(10)]


@pytest.mark.parametrize("chance", [0.0, 0.5])
def test_after_a_larger_size_that_the_search_has_not_tried_others_are_confirmed_too(
    monkeypatch: pytest.MonkeyPatch, chance: float
) -> None:
    made = bench(reading(chain(10), 0.88, 0.9), reading(chain(40), 0.86, 0.5))

    def one(_: TrialRunner, candidate: Candidate, *_rest: object) -> Confirmation:
        return Confirmation(reading(candidate, 0.8, 2.0), chance, False)

    monkeypatch.setattr(confirming, "confirm_one", one)
    monkeypatch.setattr(Clock, "estimate", lambda *_: 0.0)
    done: list[Confirmation] = []
    part, people = Part("all", pa.table({}), pa.table({}), 1000, 1), object.__new__(RowsByPerson)
    sizes = [chain(size) for size in (10, 40, 80, 160)]
    confirm(made, [chain(40), chain(10)], sizes, part, people, Clock(0.0, 1e12), done)
    tried = [each.reading.candidate.size for each in done]
    assert tried[0] == 40
    assert 160 in tried
    assert len(tried) == len(set(tried))


def test_a_setting_that_is_beaten_in_both_goes_last_and_one_that_is_far_off_goes_out() -> None:
    far = reading(Candidate("condense", 10), 0.89, 6.0, Ruling.DOES_NOT_MEET)
    tried = {each.candidate: each for each in (reading(chain(20), 0.8, 1.0), reading(chain(80), 0.7, 0.8), far)}
    tried[Candidate("condense", 80)] = reading(Candidate("condense", 80), 0.75, 1.5)
    assert least_beaten(tried) == [chain(20), chain(80), Candidate("condense", 80)]
    assert in_order(tried)[0] == chain(20)


def test_the_chance_of_another_run_rises_with_room_and_with_runs_that_agree() -> None:
    near, wide = ({"linkage-excess": End(high, 0.02, 0.01)} for high in (0.048, 0.015))
    assert chance_of(OURS, [near]) < 0.7 < 0.98 < chance_of(OURS, [wide])
    middle = {"linkage-excess": End(0.042, 0.02, 0.01)}
    assert chance_of(OURS, [middle]) < chance_of(OURS, [middle, middle]) < 0.9


@given(st.integers(2, 300), st.integers(1, 3000))
@examples(60)
def test_the_grid_rises_by_about_two_from_the_least_size(low: int, high: int) -> None:
    sizes = grid(low, high)
    assert bool(sizes) == (low <= high)
    if sizes:
        assert sizes[0] == low
        assert sizes[-1] <= high < 2.0 * max(sizes[-1], 5) + 1
        assert all(one < two for one, two in itertools.pairwise(sizes))


def test_methods_are_named_with_commas_or_as_a_list() -> None:
    assert check_methods("chain, condense") == check_methods(["chain", "condense"]) == ("chain", "condense")
    assert check_methods(None) is None
