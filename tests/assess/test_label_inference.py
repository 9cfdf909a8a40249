"""Label inference on the three fixed cases, and its gain where it is known."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.attacks.labels import LABEL_INFERENCE, gain_interval
from sfumato.assess.findings import Finding, Tries
from sfumato.assess.study import Sizes
from tests.assess.cases import CASES, ROWS, constant_table, draw_table, ends, found_by, released_of
from tests.examples import at_length, sized

SHARES = ("label-inference", "label-inference-boosting")
GAINS = ("label-inference-excess", "label-inference-excess-boosting")


findings = partial(found_by, LABEL_INFERENCE, target="colour")


@cache
def case(name: str) -> dict[str, Finding]:
    return findings(draw_table(1), released_of(name), holdout=draw_table(3))


def test_the_class_of_everybody_is_read_off_a_copy() -> None:
    found = case("copy")
    assert found["label-inference"].value == 1.0
    control = found["label-inference"].control
    assert control is not None
    assert control < 0.8
    assert found["label-inference-excess"].value == pytest.approx(1.0 - control)
    assert ends(found["label-inference-excess"].interval)[0] > 0.2


@pytest.mark.parametrize("seed", [0, *at_length(1, 2, 3)])
def test_a_redraw_costs_its_people_nothing(seed: int) -> None:
    found = findings(draw_table(10 + seed), draw_table(20 + seed), seed=seed, holdout=draw_table(30 + seed))
    for name in GAINS:
        gain, (low, high) = found[name].value or 0.0, ends(found[name].interval)
        assert 1.5 * (low - gain) <= gain <= 1.5 * (high - gain)  # about three standard errors
    for name in SHARES:
        assert (found[name].value or 0.0) > (found[name].baseline or 1.0)  # it teaches about anybody


def test_a_constant_table_gives_one_class_to_all() -> None:
    found = case("constant")
    for name in SHARES:
        assert found[name].value == pytest.approx(found[name].baseline)
    for name in GAINS:
        low, high = ends(found[name].interval)
        assert low <= 0.0 <= high


@pytest.mark.parametrize("name", CASES)
def test_every_finding_is_complete(name: str) -> None:
    found = case(name)
    assert set(found) == {*SHARES, *GAINS}
    for finding in found.values():
        assert finding.meaning.endswith(".")
        assert finding.value is not None
        assert finding.baseline is not None
        assert ends(finding.interval)[0] <= finding.value <= ends(finding.interval)[1]
    assert not any(colour in str([one.to_json() for one in found.values()]) for colour in ("amber", "crimson"))


def test_noise_classes_are_learnt_by_heart_only() -> None:
    rng = np.random.default_rng(1)

    def draw() -> pa.Table:
        return pa.table({"a": rng.normal(size=800), "b": rng.normal(size=800), "c": rng.choice(["u", "v"], 800)})

    original = draw()
    found = findings(original, original, target="c", holdout=draw())
    assert found["label-inference"].value == 1.0
    assert found["label-inference"].control == pytest.approx(0.5, abs=0.07)
    assert found["label-inference-excess"].value == pytest.approx(0.5, abs=0.07)
    assert found["label-inference-boosting"].control == pytest.approx(0.5, abs=0.07)  # it sees all but the class


def test_a_class_that_another_column_tells_is_told_of_anybody() -> None:
    """Of each of three columns that may tell it, so that none is left out for the class."""
    for teller in ("a", "b", "z"):
        tables = []
        for seed in (1, 2, 3):
            rng = np.random.default_rng(seed)
            columns = {name: rng.normal(size=400) for name in ("a", "b", "z")}
            told = np.where(columns[teller] > 0, "u", "v").tolist()
            tables.append(pa.table({"a": columns["a"], "b": columns["b"], "c": told, "z": columns["z"]}))
        found = findings(tables[0], tables[1], target="c", holdout=tables[2])
        for part in (found["label-inference-boosting"].value, found["label-inference-boosting"].control):
            assert part is not None
            assert part > 0.95


def test_without_rows_held_out_only_the_gain_is_not_run() -> None:
    rows = sized(150, ROWS)
    found = findings(draw_table(1, rows), draw_table(2, rows))
    for name in SHARES:
        assert found[name].control is None
        assert found[name].status == "measured"
    for name in GAINS:
        assert "no rows were held out" in (found[name].reason or "")


def test_a_number_to_predict_is_left_to_attribute_inference() -> None:
    for finding in findings(draw_table(1), draw_table(2), target="x").values():
        assert "not a class" in (finding.reason or "")


def test_without_a_target_nothing_is_run() -> None:
    for finding in findings(draw_table(1), draw_table(2), target=None).values():
        assert "--target" in (finding.reason or "")


def test_a_release_without_classes_is_not_learnt_from() -> None:
    released = draw_table(2).set_column(3, "colour", pa.nulls(600, pa.string()))
    for finding in findings(draw_table(1), released, holdout=draw_table(3)).values():
        assert finding.reason == "no released row has a class"


@pytest.mark.parametrize(
    ("original", "released", "holdout"),
    [
        (constant_table(30), constant_table(30), constant_table(2)),
        (constant_table(1), constant_table(1), None),
        (draw_table(1, 50), draw_table(2, 3), draw_table(3, 2)),
    ],
)
def test_tables_with_hardly_anything_in_them_are_attacked_without_a_crash(
    original: pa.Table, released: pa.Table, holdout: pa.Table | None
) -> None:
    found = findings(original, released, holdout=holdout)
    assert all(found[name].status == "measured" for name in SHARES)


def test_missing_classes_are_not_attacked() -> None:
    found = findings(draw_table(1), draw_table(1), target="shape", holdout=draw_table(3))
    assert found["label-inference"].attempts == 600 - draw_table(1).column("shape").null_count
    assert found["label-inference"].value == 1.0


def test_the_interval_of_a_difference_is_that_of_newcombe() -> None:
    # Newcombe 1998, table II, method 10
    for first, second, low, high in (
        (Tries(56, 70), Tries(48, 80), 0.0524, 0.3339),
        (Tries(9, 10), Tries(3, 10), 0.1705, 0.8090),
        (Tries(10, 10), Tries(0, 20), 0.6791, 1.0000),
    ):
        assert list(gain_interval(first, second)) == pytest.approx([low, high], abs=1e-4)


def test_a_column_that_lost_all_its_cells_does_not_stop_the_attack() -> None:
    original = draw_table(1, 120)
    released = original.set_column(0, "x", pa.nulls(120, original.schema.field("x").type))
    for name in SHARES:
        assert findings(original, released)[name].value is not None


def test_held_out_people_of_whom_nobody_has_a_class_are_no_control() -> None:
    holdout = draw_table(3).set_column(3, "colour", pa.nulls(600, pa.string()))
    found = findings(draw_table(1), draw_table(1), holdout=holdout)
    assert found["label-inference"].value == 1.0
    assert found["label-inference"].control is None
    assert found["label-inference-excess"].value is None


def test_held_out_people_without_a_class_are_no_control() -> None:
    """The others have a copy of their own row in the release, so that all of them are found."""
    original = draw_table(1)
    gaps = pa.array([None if row % 2 else colour for row, colour in enumerate(original["colour"].to_pylist())])
    found = findings(original, original, holdout=original.set_column(3, "colour", gaps))
    assert found["label-inference"].control == 1.0
    assert found["label-inference-excess"].value == 0.0


def test_a_gap_that_stands_only_where_the_class_is_u_tells_it() -> None:
    """The gap is in a column of categories, whose first is what a gap would be taken for."""
    tables = []
    for seed in (1, 2, 3):
        classes = np.random.default_rng(seed).choice(["u", "v"], 400)
        gaps = [None if each == "u" or row % 9 == 0 else "first" for row, each in enumerate(classes)]
        other = np.random.default_rng(seed + 9).choice(["first", "second"], 400, p=[0.97, 0.03])
        tables.append(pa.table({"gap": [gap and cell for gap, cell in zip(gaps, other, strict=True)], "c": classes}))
    found = findings(tables[0], tables[1], target="c", holdout=tables[2])["label-inference-boosting"]
    assert found.value is not None
    assert found.value > 0.85
    assert found.control is not None
    assert found.control > 0.85


def test_how_many_were_drawn_is_said_where_not_all_were() -> None:
    table = draw_table(1)
    assert "drawn at random" not in findings(table, table, sizes=Sizes(attempts=600))["label-inference"].meaning
    some = findings(table, table, sizes=Sizes(attempts=50))["label-inference"]
    assert some.attempts == 50
    assert "; counted on 50 people drawn at random." in some.meaning
    persons = np.arange(600) // 3
    assert "50" in findings(table, table, sizes=Sizes(attempts=50), persons=persons)["label-inference"].meaning
    assert findings(table, table, persons=persons)["label-inference"].attempts == 200
