"""Attacks on modified rows: wide windows hide, narrow ones do not; a hidden label is inferred if cells predict it."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.assess.algebra import Measure
from sfumato.assess.attacks.labels import HIDDEN_LABEL, SWAPPED_ROWS
from sfumato.methods.modify.facts import Downgraded, Swapped
from sfumato.methods.protocol import OwnerDetails
from tests.assess.cases import study
from tests.assess.privacy_studies import found as run
from tests.modify.tables import mixed


def swapped(window: float, columns: int = 4) -> float:
    """Own rows found in a table of independent numbers that was swapped within a window."""
    rng = np.random.default_rng(4)
    table = pa.table({f"v{place}": rng.normal(size=200).round(6) for place in range(columns)})
    release = sf.sanitize(table, sf.Swapping(window=window), seed=3, report=False)
    told = study(table, release.table, facts=release.certificate.facts, workings=release.workings)
    finding = run(SWAPPED_ROWS, told)["own-row-linkage-swap-windows"]
    assert finding.value is not None
    assert finding.baseline == 1 / 200
    return finding.value


def test_a_narrow_window_gives_rows_away_and_a_whole_one_does_not() -> None:
    assert swapped(2.0) > 0.9
    assert swapped(100.0) == pytest.approx(1 / 200)
    assert swapped(100.0) < swapped(30.0) < swapped(10.0)


def test_the_own_row_is_always_among_the_candidates() -> None:
    table = mixed(80)
    release = sf.sanitize(table, sf.Swapping(window=20, pass_categories=True), seed=3, report=False)
    told = study(table, release.table, facts=release.certificate.facts, workings=release.workings)
    wide = tuple(
        dataclasses.replace(fact, window=100.0, columns=tuple(table.column_names))
        if isinstance(fact, Swapped)
        else fact
        for fact in told.facts
    )
    finding = run(SWAPPED_ROWS, dataclasses.replace(told, facts=wide))["own-row-linkage-swap-windows"]
    assert finding.value is not None
    assert finding.value >= 1 / 80 - 1e-12  # every person has a chance, and no more than by missing cells


def slow_windows(original: pa.Table, released: pa.Table, origin: list[int], swapped: dict[str, float | None]) -> float:
    """Mean chance to pick the own row among those that fit, by a loop over people, rows and columns."""
    rows, others, chances = original.to_pylist(), released.to_pylist(), []
    ranked = {name: sorted(cell for cell in original[name].to_pylist() if cell is not None) for name in swapped}

    def fits(name: str, own: Any, cell: Any) -> bool:
        if own is None or cell is None:
            return own is None and cell is None
        if name not in swapped:
            return bool(own == cell)
        reach = swapped[name]
        if reach is None:
            return True
        order = ranked[name]
        ranks = int(reach / 100 * len(order))
        first, last = order.index(own), len(order) - 1 - order[::-1].index(own)
        return bool(order[max(0, first - ranks)] <= cell <= order[min(len(order) - 1, last + ranks)])

    for person, row in enumerate(rows):
        fitting = [k for k, other in enumerate(others) if all(fits(name, row[name], other[name]) for name in row)]
        chances.append(sum(origin[k] == person for k in fitting) / max(1, len(fitting)))
    return float(np.mean(chances))


@pytest.mark.parametrize("window", [3.0, 10.0, None])
def test_windows_are_intersected_as_in_a_loop_over_all_rows(window: float | None) -> None:
    """Two swapped columns of numbers, one that was not swapped, a category, and missing cells; rows are shuffled."""
    rng = np.random.default_rng(8)
    rows = 120

    def gaps(share: float) -> np.ndarray:
        return rng.random(rows) < share

    missing = {"a": gaps(0.2), "kept": gaps(0.1)}
    columns = {
        "a": np.round(rng.normal(size=rows), 1),  # with ties
        "b": rng.normal(size=rows),
        "kept": rng.integers(0, 4, rows),
        "kind": np.array(["u", "v", "w"])[rng.integers(0, 3, rows)],
    }

    def table(changed: dict[str, np.ndarray]) -> pa.Table:
        return pa.table({name: pa.array(values, mask=missing.get(name)) for name, values in changed.items()})

    origin = rng.permutation(rows)
    jitter = 2.0 if window is None else window / 100 * rows / 2
    near = {
        name: np.argsort(np.argsort(np.argsort(columns[name])) + rng.uniform(0, jitter, rows)) for name in ("a", "b")
    }
    moved = {name: values.copy() for name, values in columns.items()}
    for name, order in near.items():
        moved[name][order] = np.sort(columns[name])
    original, released = table(columns), table(moved).take(pa.array(origin))
    fact = Swapped("leaves" if window is None else "window", ("a", "b"), (rows, rows), rows, window)
    found = run(SWAPPED_ROWS, study(original, released, facts=(fact,), workings=OwnerDetails(origin=origin)))
    expected = slow_windows(original, released, origin.tolist(), {"a": window, "b": window})
    assert found["own-row-linkage-swap-windows"].value == pytest.approx(expected)
    assert 0.02 < expected < 0.999  # some are hidden


@pytest.fixture(scope="module")
def telling() -> pa.Table:
    rng = np.random.default_rng(6)
    level = rng.integers(0, 60, 400)
    return pa.table({"level": level, "noise": rng.random(400).round(4), "ill": np.where(level > 29, "yes", "no")})


def hidden_label(table: pa.Table, released: pa.Table) -> float:
    facts = (Downgraded("ill", 400, 400, 0.1, 0.0, 2, 1),)
    told = study(table, released, facts=facts, workings=OwnerDetails(origin=np.arange(400)))
    finding = run(HIDDEN_LABEL, told)["hidden-label-inference"]
    assert finding.value is not None
    assert finding.baseline == pytest.approx(0.5, abs=0.06)
    assert "with the original's cells" in finding.meaning
    return finding.value


def test_a_label_is_told_from_cells_that_tell_it_and_not_from_others(telling: pa.Table) -> None:
    nothing = pa.nulls(400, pa.string())
    bare = telling.set_column(2, "ill", nothing)
    assert hidden_label(telling, bare) > 0.95
    assert hidden_label(telling, bare.set_column(0, "level", pa.nulls(400, pa.int64()))) < 0.62


def test_a_gap_that_stands_only_where_the_label_is_yes_tells_it(telling: pa.Table) -> None:
    level = pa.array([None if value > 29 else 1 for value in telling["level"].to_pylist()])
    leaky = telling.set_column(2, "ill", pa.nulls(400, pa.string())).set_column(0, "level", level)
    assert hidden_label(telling, leaky) > 0.95


def test_labels_that_are_shown_teach_too() -> None:
    """Half of those that are hidden are too few to learn from."""
    rng = np.random.default_rng(8)
    level = rng.integers(0, 60, 400)
    label = np.where(level > 29, "yes", "no")
    shown = pa.array([None if row < 30 else str(each) for row, each in enumerate(label)])
    table = pa.table({"level": level, "noise": rng.random(400).round(4), "ill": label})
    told = study(
        table,
        table.set_column(2, "ill", shown),
        facts=(Downgraded("ill", 400, 30, 0.1, 0.0, 2, 1),),
        workings=OwnerDetails(origin=np.arange(400)),
    )
    finding = run(HIDDEN_LABEL, told)["hidden-label-inference"]
    assert finding.attempts == 15  # half of the thirty, and none whose label is shown
    assert finding.value is not None
    assert finding.value > 0.9


def test_labels_that_nobody_has_are_neither_learnt_nor_attacked(telling: pa.Table) -> None:
    gone = pa.array([None if row % 4 == 0 else each for row, each in enumerate(telling["ill"].to_pylist())])
    table = telling.set_column(2, "ill", gone)
    facts = (Downgraded("ill", 400, 300, 0.1, 0.0, 2, 1),)
    bare = telling.set_column(2, "ill", pa.nulls(400, pa.string()))
    told = study(table, bare, facts=facts, workings=OwnerDetails(origin=np.arange(400)))
    finding = run(HIDDEN_LABEL, told)["hidden-label-inference"]
    assert finding.attempts == 150
    assert finding.value is not None
    assert finding.value > 0.95


def test_a_gap_among_categories_tells_a_hidden_label_too() -> None:
    """The first category is what a gap would be taken for."""
    label = np.random.default_rng(9).permutation(["yes", "no"] * 200)
    kind = [None if each == "yes" else "second" if row % 50 == 0 else "first" for row, each in enumerate(label)]
    table = pa.table({"kind": kind, "ill": label})
    assert hidden_label(table, table.set_column(1, "ill", pa.nulls(400, pa.string()))) > 0.95


def test_rows_of_a_person_are_either_learnt_from_or_attacked() -> None:
    """Else the label of a person is learnt by heart from the other rows."""
    rng = np.random.default_rng(10)
    persons = np.repeat(rng.permutation(24), 50)
    label = np.where(rng.permutation(24) % 2 == 0, "yes", "no")[persons]
    table = pa.table({"who": persons * 10.0, "ill": label})
    told = study(
        table,
        table.set_column(1, "ill", pa.nulls(1200, pa.string())),
        facts=(Downgraded("ill", 1200, 1200, 0.1, 0.0, 2, 1),),
        workings=OwnerDetails(origin=np.arange(1200)),
        persons=persons,
    )
    finding = run(HIDDEN_LABEL, told)["hidden-label-inference"]
    assert finding.attempts == 600
    assert finding.value is not None
    assert finding.value < 0.85


def test_the_note_says_what_the_cells_of_the_original_tell(telling: pa.Table) -> None:
    bare = telling.set_column(2, "ill", pa.nulls(400, pa.string())).set_column(0, "level", pa.nulls(400, pa.int64()))
    told = study(
        telling,
        bare,
        facts=(Downgraded("ill", 400, 400, 0.1, 0.0, 2, 1),),
        workings=OwnerDetails(origin=np.arange(400)),
    )
    meaning = run(HIDDEN_LABEL, told)["hidden-label-inference"].meaning
    share = float(meaning.rsplit("with the original's cells ", 1)[1].split("\u00a0%")[0])
    assert 95 < share <= 100


def test_how_many_people_were_looked_at_is_said_of_windows() -> None:
    table = mixed(80)
    release = sf.sanitize(table, sf.Swapping(window=20, pass_categories=True), seed=3, report=False)
    told = study(table, release.table, facts=release.certificate.facts, workings=release.workings)
    few = dataclasses.replace(told, sizes=dataclasses.replace(told.sizes, attempts=20))
    finding = run(SWAPPED_ROWS, few)["own-row-linkage-swap-windows"]
    assert finding.attempts == 20
    assert few.looked(20) in finding.meaning
    assert "20" in few.looked(20)


def test_the_baseline_of_a_hidden_label_is_naming_the_commonest(telling: pa.Table) -> None:
    rare = pa.array(np.where(telling["level"].to_numpy() > 47, "yes", "no"))
    table = telling.set_column(2, "ill", rare)
    facts = (Downgraded("ill", 400, 400, 0.1, 0.0, 2, 1),)
    bare = table.set_column(2, "ill", pa.nulls(400, pa.string()))
    told = study(table, bare, facts=facts, workings=OwnerDetails(origin=np.arange(400)))
    finding = run(HIDDEN_LABEL, told)["hidden-label-inference"]
    assert finding.baseline == pytest.approx(0.8, abs=0.13)
    assert finding.attempts == 200  # half of the people teach, half are attacked


@pytest.mark.parametrize("measure", [SWAPPED_ROWS, HIDDEN_LABEL])
def test_nothing_is_run_where_nothing_was_swapped_or_hidden(measure: Measure) -> None:
    table = mixed(40)
    (finding,) = run(measure, study(table, table)).values()
    assert finding.value is None
    assert not finding.applies


def test_too_few_hidden_labels_are_not_attacked() -> None:
    table = mixed(16)
    facts = (Downgraded("ill", 16, 16, 0.1, 0.0, 1, 1),)
    bare = table.set_column(5, "ill", pa.nulls(16, pa.string()))
    found = run(HIDDEN_LABEL, study(table, bare, facts=facts, workings=OwnerDetails(origin=np.arange(16))))
    assert found["hidden-label-inference"].reason == "fewer than 20 people with a label are hidden"
