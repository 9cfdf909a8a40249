"""One person with an extreme number changes a report that leaves no more than one at the end of everybody's numbers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess.algebra import bounded_study
from sfumato.assess.measure import assess
from sfumato.assess.study import Study, study_of
from sfumato.tables.codec import Codec
from sfumato.tables.facts import TailsCoded
from sfumato.tables.schema import Schema
from sfumato.tables.tails import fit_tails

K, ROWS, HELD = 10, 500, 150
CODED = TailsCoded("code", K, 3)


def people(seed: int, rows: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, rows)
    return pa.table(
        {
            "pay": (rng.lognormal(8, 0.5, rows) * (1 + age / 90)).round(),
            "age": age,
            "town": rng.choice(["Oslo", "Bern", "Rome"], rows),
            "sex": np.where(rng.random(rows) < age / 108, "F", "M"),
            "seen": pa.array(rng.integers(19_000, 19_090, rows).astype(np.int32)).cast(pa.date32()),
        }
    )


def with_first_pay(table: pa.Table, pay: float) -> pa.Table:
    """The table in which the first person has another pay."""
    numbers = table.column("pay").to_numpy().copy()
    numbers[0] = pay
    return table.set_column(0, "pay", pa.array(numbers))


def study(original: pa.Table, held: pa.Table, target: str, fact: TailsCoded = CODED) -> Study:
    schema = Schema.infer(original, target=target).without_rules()
    tails = fit_tails(original, schema, k=K, rng=np.random.default_rng(1))
    codec = Codec.fit(tails.code(original, np.zeros(ROWS)), tails.opened(schema), within=tails.bounds)
    released = people(2, ROWS)
    pay = released.column("pay").to_numpy().clip(*tails.bounds["pay"])
    released = released.set_column(0, "pay", pa.array(pay))
    return study_of(original, released, codec, facts=(fact,), holdout=held, rng=np.random.default_rng(5))


@cache
def shown(target: str, inside: float | None, outside: float | None) -> Mapping[str, float]:
    """Numbers of the public edition, where a person of the table or of the control group has another pay."""
    tables = (people(1, ROWS), inside), (people(3, HELD), outside)
    original, held = (table if pay is None else with_first_pay(table, pay) for table, pay in tables)
    findings = [each for each in assess(study(original, held, target)).findings if each.public]
    return {
        f"{each.name} {part}": number
        for each in findings
        for part in ("value", "baseline", "control")
        if (number := getattr(each, part)) is not None
    }


@pytest.mark.parametrize("target", ["sex", "pay"])
@pytest.mark.parametrize("side", ["inside", "outside"])
def test_an_extreme_number_changes_public_findings_no_more_than_a_large_one(side: str, target: str) -> None:
    largest = float(people(1, ROWS).column("pay").to_numpy().max())
    usual = shown(target, None, None)
    large, extreme = (
        shown(target, *((pay, None) if side == "inside" else (None, pay))) for pay in (largest, 950_000.0)
    )
    assert usual.keys() == large.keys() == extreme.keys()
    for name, number in usual.items():
        allowed = 2.0 * abs(large[name] - number) + 0.02 * (1.0 + abs(number))
        assert abs(extreme[name] - number) <= allowed, name


@pytest.mark.parametrize("side", ["original", "holdout"])
def test_numbers_within_reach_of_everybody_elses_stay_as_they_are(side: str) -> None:
    far = study(with_first_pay(people(1, ROWS), 950_000.0), people(3, HELD), "sex")
    near = bounded_study(far)
    before, after = getattr(far, side), getattr(near, side)
    pay = before[:, far.coordinates(["pay"])[0]]
    assert (pay.max() > 100) == (side == "original")
    assert after[pay < 5].tolist() == before[pay < 5].tolist()
    assert after[:, far.coordinates(["pay"])[0]].max() < 10
    assert bounded_study(near) is near


def test_what_a_release_shows_as_it_is_is_measured_as_it_is() -> None:
    kept = study(with_first_pay(people(1, ROWS), 950_000.0), people(3, HELD), "sex", TailsCoded("keep", K, 3))
    assert bounded_study(kept) is kept
    assert bounded_study(plain := dataclasses.replace(kept, facts=())) is plain
