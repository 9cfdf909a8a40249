"""Held-out rows must be other people's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.measure import held_out_notes
from sfumato.assess.study import Study, study_of
from sfumato.core.errors import OptionError
from tests.assess.cases import draw_table, fit


def study(holdout: pa.Table | None) -> Study:
    original = draw_table(1)
    return study_of(original, draw_table(2), fit(original), holdout=holdout, rng=np.random.default_rng(1))


def test_other_people_and_no_people_get_no_note() -> None:
    assert held_out_notes(study(draw_table(3))) == ()
    assert held_out_notes(study(None)) == ()


def test_people_of_the_original_are_refused_as_controls() -> None:
    with pytest.raises(OptionError, match="600 of 600 held-out rows are also in the original"):
        held_out_notes(study(draw_table(1)))


def test_some_people_of_the_original_among_them_get_a_note() -> None:
    mixed = pa.concat_tables([draw_table(1).slice(0, 100), draw_table(3).slice(0, 300)])
    (note,) = held_out_notes(study(mixed))
    assert note.startswith("100 of 400 held-out rows")


def test_twins_of_a_table_with_few_values_are_no_reason_for_a_note() -> None:
    rng = np.random.default_rng(1)
    tables = [pa.table({"a": rng.choice(["x", "y"], 300), "b": rng.choice(["s", "t", "u"], 300)}) for _ in range(3)]
    made = study_of(tables[0], tables[1], fit(tables[0]), holdout=tables[2], rng=rng)
    assert held_out_notes(made) == ()
