"""Persons, weights, an epsilon of each person, bought domains and the budget of a dataset, end to end."""

from __future__ import annotations

import dataclasses
import multiprocessing
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import sfumato as sf
from sfumato.certificate import Certificate
from sfumato.core.distributions.amplification import delta_of, loss_bound, rho_of
from sfumato.core.errors import OptionError, PrivacyRefusal, SfumatoError
from sfumato.methods.private import PrivateChain
from sfumato.methods.private.budget import charge
from sfumato.methods.private.domains import LOG_GRID, buy_bounds, buy_categories, category_threshold
from sfumato.methods.private.ledger import Ledger, OneWayCounts
from sfumato.methods.private.people import GRID, Counter, People, level_weights
from tests.private.test_release import SCHEMA, frame, release, schema
from tests.private.test_sensitivity import Recording, squared_change

WITH_PERSON = SCHEMA.replace('role = "identifier"', 'role = "person"')
BUDGET = 'format = 1\ndataset = "people"\nepsilon = 2.0\ndelta = 1e-5\n'


def fact(made: sf.Release) -> Any:
    return next(each for each in made.certificate.facts if type(each).__name__ == "PrivatelyMeasured")


def claims(made: sf.Release) -> dict[str, str]:
    return {each.claim: each.kind for each in made.certificate.claims}


# ------------------------------------------------------------------------------------------------ persons and weights


def test_rows_of_a_person_count_as_one_person() -> None:
    """Ten rows of each of 300 persons give about 300 rows, however many there are."""
    table = frame(3000).assign(id=np.arange(3000) // 10)
    made = release(table, schema=schema(WITH_PERSON), epsilon=5.0)
    assert len(made.table) == pytest.approx(300, abs=60)
    assert "id" not in made.table
    assert fact(made).shared
    assert "the person column identifies" in made.certificate.claims[1].assumes


def test_rows_that_belong_to_nobody_are_left_out_and_told_to_the_owner_alone() -> None:
    table = frame(900).assign(id=pd.array([None] * 5 + list(range(895)), dtype="Int64"))
    made = release(table, schema=schema(WITH_PERSON), report=True)
    assert made.report is not None
    assert any("5 rows do not say whose they are" in note for note in made.report.notes)
    assert not re.search(r"\b5 rows", made.certificate.to_json())


def test_a_weight_is_a_column_with_declared_bounds_above_nought() -> None:
    made = release(frame(), schema=schema(SCHEMA), weight="weight", epsilon=3.0)
    assert made.table["weight"].between(30, 200).all()
    nought = SCHEMA.replace("low = 30.0", "low = 0.0")
    with pytest.raises(OptionError, match="declare a low above 0"):
        release(frame(), schema=schema(nought), weight="weight")
    strange = frame()
    strange.loc[0, "weight"] = -5.0  # clipped: whether the run succeeds must not depend on one cell
    assert len(release(strange, schema=schema(SCHEMA), weight="weight").table)


def test_all_rows_of_a_person_are_held_out_or_none() -> None:
    from sfumato.engines.plan import make_plan
    from sfumato.engines.private import _hold_out
    from sfumato.options import RunOptions
    from sfumato.tables.frames import to_arrow

    arrow = to_arrow(frame(900).assign(id=np.arange(900) // 3))[0]
    plan = make_plan(arrow, PrivateChain(1.0), RunOptions(schema=schema(WITH_PERSON), holdout=0.4, seed=1))
    inside, outside = _hold_out(arrow, plan)
    assert outside is not None
    assert not set(inside["id"].to_pylist()) & set(outside["id"].to_pylist())
    assert 0.2 * 900 < outside.num_rows < 0.6 * 900


# -------------------------------------------------------------------------------------------- an epsilon of each person


@pytest.mark.parametrize("rule", ["age < 40: 0.5, town == a: 1, else: 3", "trust"])
def test_the_certificate_says_what_each_level_got(rule: str) -> None:
    text, table = SCHEMA, frame(2000)
    if rule == "trust":
        text += (
            '[[column]]\nname = "trust"\nkind = "nominal"\n'
            'domain = { source = "declared", categories = ["0.5", "1", "3"] }\n'
        )
        table["trust"] = np.where(table["town"] == "a", "3", np.where(table["town"] == "b", "1", "elsewhere"))
    made = release(table, schema=schema(text), epsilon=3.0, epsilon_of=rule)
    assert made.certificate.privacy is not None
    assert [level["epsilon"] for level in made.certificate.privacy["levels"]] == [0.5, 1.0, 3.0]
    assert "trust" not in made.table
    assert any("by their own epsilon" in claim for claim in claims(made))
    assert {line["step"] for line in made.certificate.privacy["ledger"]} >= {"people of each epsilon"}
    assert len(made.table) == pytest.approx(2000, rel=0.65)  # over 40 runs: mean 1,827, standard deviation 148


def test_people_of_each_epsilon_are_counted_by_their_number_and_not_by_their_weight() -> None:
    """All of town a have a tenth of the epsilon of others, and their share stays."""
    table = frame(20_000)
    table["town"] = np.where(np.arange(20_000) % 4 == 0, "a", "b")
    made = release(table, schema=schema(SCHEMA), epsilon=3.0, epsilon_of="town == a: 0.5, else: 3", target="class")
    assert (made.table["town"] == "a").mean() == pytest.approx(0.25, abs=0.05)


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ("age < 40: 2, else: 1", "is 2; take epsilon=2"),
        ("age < 40: 0.5, else: 0.7", "take epsilon=0.7"),
        ("age < 40: 0, else: 1", "above 0"),
        ("age: 1", "no comparison"),
        ("class", "no epsilon"),
    ],
)
def test_a_rule_that_sets_no_epsilon_is_refused(rule: str, error: str) -> None:
    with pytest.raises(SfumatoError, match=error):
        release(frame(), epsilon_of=rule)


def test_a_rule_on_a_column_that_is_not_declared_is_refused() -> None:
    open_ = SCHEMA.replace("low = 18, high = 99", "low = 18")
    with pytest.raises(PrivacyRefusal, match="declare low and high"):
        release(frame(), schema=schema(open_), epsilon_of="age < 40: 0.5, else: 1", private_bounds=True)


def test_levels_that_are_alike_are_taken_together() -> None:
    """If levels do not differ, noise is near that of the weighted sum, far below that of the strictest for all."""
    rng, many = np.random.default_rng(3), 30_000
    weights = level_weights([0.5, 1.0, 3.0], 3.0, 1e-5)
    levels, cells = rng.integers(0, 3, many), rng.integers(0, 50, many)
    people = People.of((cells,), None, levels, weights)
    counter = Counter(people, Ledger(1e9, rng))
    counter.measure_sizes()
    rho = 0.002
    counts = np.bincount(cells, minlength=50)
    errors = []
    for _ in range(30):
        noisy, _ = counter.noisy(
            OneWayCounts, counter.counts([50], lambda part: [(part.places[0], slice(None))])[0], rho
        )
        errors.append(((noisy - counts) ** 2).mean())
    strictest = np.sqrt(1 / (2 * rho)) * GRID / weights[0]
    assert np.sqrt(np.mean(errors)) < 0.75 * strictest


# ------------------------------------------------------------------------------------------------------ bought domains


def test_domains_are_bought_at_the_stated_price() -> None:
    table = frame(6000)
    table.loc[0, "town"] = "Xanadu"
    table.loc[1, "pay"] = 1e300
    text = SCHEMA.replace(", low = 18, high = 99", "").replace(', categories = ["a", "b", "c", "never seen"]', "")
    text = text.replace(", low = 0, high = 9000, step = 0.5", "").replace(", low = 2020-01-01, high = 2021-12-31", "")
    made = release(table, schema=schema(text), epsilon=3.0, private_bounds=True)
    bought = {field.name: field.domain for field in made.recipe.schema}
    assert bought["town"].categories == ("a", "b", "c")
    assert bought["pay"].low is not None
    assert bought["pay"].high == 16384.0
    assert bought["age"].high == 127
    assert fact(made).bought == ("age", "pay", "seen", "town")
    privacy = made.certificate.privacy
    assert privacy is not None
    price = sum(line["rho"] for line in privacy["ledger"] if line["step"] in ("bounds", "categories"))
    assert price <= 0.1 * privacy["rho"] * (1 + 1e-9)
    assert "Xanadu" not in made.certificate.to_json() + made.recipe.schema.to_toml()
    with pytest.raises(PrivacyRefusal, match="inspect --declare"):
        release(table, schema=schema(text), epsilon=3.0)


def test_an_order_and_the_bounds_of_a_weight_are_not_bought() -> None:
    order = SCHEMA.replace(', categories = ["low", "mid", "high"]', "")
    with pytest.raises(PrivacyRefusal, match="order of column 'grade' cannot be bought"):
        release(frame(), schema=schema(order), private_bounds=True)
    with pytest.raises((PrivacyRefusal, OptionError), match="weight"):
        release(
            frame(),
            schema=schema(SCHEMA.replace(", low = 30.0, high = 200.0", "")),
            weight="weight",
            private_bounds=True,
        )


def test_a_domain_that_too_few_share_is_refused() -> None:
    text = SCHEMA.replace(', categories = ["a", "b", "c", "never seen"]', "")
    with pytest.raises(PrivacyRefusal, match="too few people share"):
        release(frame(60), schema=schema(text), private_bounds=True, epsilon=0.5)


def test_counts_of_the_grid_change_by_one_person() -> None:
    rng = np.random.default_rng(1)
    numbers = np.append(rng.normal(0, 1e6, 300), [np.nan, np.inf, -np.inf, 0.0])
    for extra in (0.0, -1e-30, 1e300, -7.5, np.nan):
        one, other = (Recording(1e9) for _ in range(2))
        people = People.of((), None, np.zeros(304, dtype=np.int64), (40,))
        more = People.of((), None, np.zeros(305, dtype=np.int64), (40,))
        for ledger, whom, values in ((one, people, numbers), (other, more, np.append(numbers, extra))):
            counter = Counter(whom, ledger)
            counter.measure_sizes()
            buy_bounds(counter, values, LOG_GRID, 0.1)
        for before, after in zip(one.measured, other.measured, strict=True):
            assert squared_change(before, after) <= 40**2 <= before.squared_sensitivity


def test_a_category_of_one_person_leaves_as_rarely_as_delta_says() -> None:
    """With a delta of a fifth it is seen that the bound holds, and that it is not far off."""
    rho, delta, runs = 0.05, 0.2, 3_000
    rng = np.random.default_rng(8)
    codes = np.array([0] * 50 + [1])
    people = People.of((codes,))
    left = sum(
        "mine" in buy_categories(Counter(people, Ledger(1e9, rng)), codes, ["common", "mine"], rho, delta)
        for _ in range(runs)
    )
    assert left / runs < delta + norm.isf(1e-7) * np.sqrt(delta * (1 - delta) / runs)
    assert left / runs > 0.02
    several = category_threshold(64, rho, delta, 64)
    assert several > category_threshold(1, rho, delta, 1)


# ----------------------------------------------------------------------------------------------- budget, delta, claims


def test_a_budget_file_adds_up_and_refuses_what_exceeds_it(tmp_path: Path) -> None:
    path = tmp_path / "budget.toml"
    path.write_text(BUDGET, encoding="utf-8")
    first = release(frame(), budget_file=path)
    assert fact(first).dataset == "people"
    assert any("'people' together are (2, 1e-05)" in claim for claim in claims(first))
    spent = path.read_text(encoding="utf-8")
    release(frame(), budget_file=path, seed=1)  # a dry run is not released
    assert path.read_text(encoding="utf-8") == spent
    with pytest.raises(PrivacyRefusal, match="does not allow this release after 1 others"):
        release(frame(), budget_file=path, epsilon=2.0)
    assert path.read_text(encoding="utf-8") == spent
    release(frame(), budget_file=path)
    release(frame(), budget_file=path)
    with pytest.raises(PrivacyRefusal, match="after 3 others"):
        release(frame(), budget_file=path)


def test_a_run_that_stops_after_its_charge_has_spent_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "budget.toml"
    path.write_text(BUDGET, encoding="utf-8")
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "noised", lambda *_: pytest.fail("killed"))
        with pytest.raises(pytest.fail.Exception, match="killed"):
            release(frame(), budget_file=path, epsilon=2.0)
    with pytest.raises(PrivacyRefusal, match="does not allow"):
        release(frame(), budget_file=path)


def test_noise_is_drawn_after_the_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, noised, seen = tmp_path / "budget.toml", Ledger.noised, list[str]()
    path.write_text(BUDGET, encoding="utf-8")

    def look(*arguments: Any) -> Any:
        seen.append(path.read_text(encoding="utf-8"))
        return noised(*arguments)

    monkeypatch.setattr(Ledger, "noised", look)
    release(frame(), budget_file=path)
    assert seen
    assert all("charged" in text for text in seen)


def _charge(path: str) -> bool:
    try:
        charge(path, rho_of(0.5, 1e-5), 0.0, "same", measured=False)
    except PrivacyRefusal:
        return False
    return True


def test_runs_at_the_same_time_never_spend_more_than_the_budget(tmp_path: Path) -> None:
    path = tmp_path / "budget.toml"
    path.write_text(BUDGET, encoding="utf-8")
    allowed = int(rho_of(2.0, 1e-5) / rho_of(0.5, 1e-5))
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        granted = pool.map(_charge, [str(path)] * (allowed + 6), chunksize=1)
    assert sum(granted) == allowed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "format = 1\n",
        BUDGET + "\n[[release]]\ncharged = ",
        BUDGET + "[[release]]\nrho = 1.0\n",
        BUDGET.replace("2.0", "-2.0"),
        BUDGET.replace("2.0", "inf"),
        BUDGET + "more = 1\n",
        BUDGET.replace("people", " "),
    ],
)
def test_a_budget_file_that_cannot_be_read_in_full_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "budget.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SfumatoError, match="budget file"):
        release(frame(), budget_file=path)
    assert path.read_text(encoding="utf-8") == text


def test_a_budget_file_is_for_a_method_with_a_budget(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="there is no budget file"):
        release(frame(), budget_file=tmp_path / "none.toml")
    with pytest.raises(OptionError, match="has no privacy budget"):
        sf.sanitize(frame(), method="condense", k=5, budget_file=tmp_path / "none.toml", report=False)


def test_settings_chosen_after_others_were_measured_are_an_assumption(tmp_path: Path) -> None:
    path = tmp_path / "budget.toml"
    path.write_text(BUDGET.replace("2.0", "9.0"), encoding="utf-8")
    assert claims(release(frame(300), budget_file=path, report=True))
    same = release(frame(300), budget_file=path)
    assert not fact(same).measured_before
    other = release(frame(300), budget_file=path, epsilon=2.0)
    assert fact(other).measured_before
    private = [each for each in other.certificate.claims if "differentially private" in each.claim]
    assert {each.kind for each in private} == {"assumed"}
    assert all("other settings were measured before" in each.assumes for each in private)


def test_delta_is_small_beside_the_declared_number_of_people() -> None:
    with pytest.raises(PrivacyRefusal, match="take 1e-06 or less"):
        PrivateChain(1.0, 1e-5, people=100_000)
    made = release(frame(), people=1000)
    assert len(made.table) == made.certificate.rows_in == 1000
    assert Certificate.from_json(made.certificate.to_json()) == made.certificate
    other = dataclasses.replace(made.certificate, rows_in=900)
    with pytest.raises(SfumatoError, match="rows_in"):
        Certificate.from_json(other.to_json())


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 4.0])
def test_odds_change_by_the_tail_of_the_loss_and_not_by_epsilon(epsilon: float) -> None:
    """For Gaussian noise, whose loss is normal with mean rho and variance 2 rho, the tail is at most delta."""
    delta = 1e-5
    rho = rho_of(epsilon, delta)
    bound = loss_bound(rho, delta)
    assert norm.sf(bound, rho, np.sqrt(2 * rho)) <= delta
    assert norm.sf(epsilon, rho, np.sqrt(2 * rho)) > delta  # epsilon itself is exceeded more often
    assert delta_of(rho, epsilon) <= delta


# ------------------------------------------------------------------------------------------------------- files, kinds


def test_a_file_is_read_the_same_way_whatever_its_rows_hold(tmp_path: Path) -> None:
    """One cell in another format changes no other: local number formats are not looked for."""
    table = frame(400).astype(str)
    table["pay"] = "1,234"
    table.to_csv(tmp_path / "one.csv", index=False)
    made = release(tmp_path / "one.csv", folder=tmp_path / "out", sign=False, report=True)
    assert made.report is not None
    assert any("cells" in note for note in made.report.notes)  # none of them is 1234
    with pytest.raises(OptionError, match="decimal point only"):
        release(tmp_path / "one.csv", folder=tmp_path / "other", decimal=",", sign=False)


def test_what_is_written_has_the_types_of_the_schema_alone() -> None:
    """A gap or a text of one person changes no type."""
    plain = frame(300).assign(age=30)
    gaps = plain.astype({"age": "float64"})
    gaps.loc[0, "age"] = np.nan
    texts = plain.astype({"age": "object"}).astype({"age": str})
    types = {str(release(each, seed=3).table["age"].dtype) for each in (plain, gaps, texts)}
    assert len(types) == 1


def test_a_long_list_of_categories_and_a_date_by_months_are_drawn_from_their_domains() -> None:
    labels = [f"c{each}" for each in range(400)]
    text = SCHEMA.replace('["a", "b", "c", "never seen"]', str(labels).replace("'", '"'))
    text = text.replace('step = "day"', 'step = "month"')
    table = frame(4000).assign(town=np.random.default_rng(2).choice(labels[:50], 4000))
    made = release(table, schema=schema(text), epsilon=8.0)
    assert set(made.table["town"].dropna()) <= set(labels)
    assert (pd.to_datetime(made.table["seen"]).dt.day == 1).all()
    assert made.table["town"].isin(labels[:50]).mean() > 0.7


RULED = """
format = 1
rules = [
  "admission <= discharge", "discharge <= seen", "stay = discharge - admission", "again = cost", "all = cost + fee"
]
[[column]]
name = "admission"
kind = "date"
domain = { source = "declared", low = 2020-01-01, high = 2020-12-31, step = "day" }
[[column]]
name = "discharge"
kind = "date"
domain = { source = "declared", low = 2020-01-01, high = 2021-03-31, step = "day" }
[[column]]
name = "seen"
kind = "date"
format = "%d.%m.%Y"
domain = { source = "declared", low = 2020-02-01, high = 2021-12-31, step = "day" }
[[column]]
name = "stay"
kind = "integer"
[[column]]
name = "cost"
kind = "continuous"
domain = { source = "declared", low = 0, high = 500, step = 0.01 }
[[column]]
name = "fee"
kind = "continuous"
domain = { source = "declared", low = 0, high = 20, step = 0.01 }
[[column]]
name = "again"
kind = "continuous"
format = "0.00"
[[column]]
name = "all"
kind = "continuous"
format = "0.00"
"""


def ruled(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    begin = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, rows), unit="D")
    stay = rng.integers(0, 90, rows)
    end = begin + pd.to_timedelta(stay, unit="D")
    seen = pd.Series(end + pd.to_timedelta(31 + rng.integers(0, 60, rows), unit="D"))
    cost, fee = rng.integers(0, 50_000, rows) / 100, rng.integers(0, 2_000, rows) / 100
    texts = seen.dt.strftime("%d.%m.%Y")
    dates = {"admission": begin.date, "discharge": end.date, "seen": texts, "stay": stay}
    return pd.DataFrame({**dates, "cost": cost, "fee": fee, "again": cost, "all": np.round(cost + fee, 2)})


def test_rules_between_declared_columns_hold_in_every_row(tmp_path: Path) -> None:
    made = release(ruled(2000, 1), schema=schema(RULED), epsilon=1.0, rows=6000)
    made.save(tmp_path / "out", sign=False)
    assert sf.verify(tmp_path / "out")
    drawn = sf.sample(tmp_path / "out" / "release" / "model.json", rows=3000, where="stay >= 10").to_pandas()
    assert (drawn["stay"] >= 10).all()
    for table in (made.table, drawn):
        begin, end = pd.to_datetime(table["admission"]), pd.to_datetime(table["discharge"])
        assert (end >= begin).all()
        assert (pd.to_datetime(table["seen"], format="%d.%m.%Y") >= end).all()
        assert ((end - begin).dt.days == table["stay"]).all()
        assert (table["again"] == table["cost"]).all()
        np.testing.assert_allclose(table["all"], table["cost"] + table["fee"], atol=1e-9)


def test_a_row_that_breaks_a_rule_is_no_reason_to_stop() -> None:
    """What leaves, and whether anything does, must not depend on one row but through the noise."""
    table = ruled(500, 2)
    table.loc[0, "admission"] = pd.Timestamp("2020-12-31").date()
    table.loc[0, "stay"] = -7
    made = release(table, schema=schema(RULED))
    assert (made.table["stay"] >= 0).all()


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        ("town -> grade", "read off the data"),
        ("age <= pay", None),
        ("pay <= age", "no declared values"),
        ("grade <= age", "kinds"),
    ],
)
def test_a_rule_that_cannot_be_kept_by_declarations_is_refused(rule: str, error: str | None) -> None:
    text = SCHEMA.replace("format = 1\n", f'format = 1\nrules = ["{rule}"]\n', 1)
    text = text.replace("low = 0, high = 9000", "low = 120, high = 9000") if rule == "pay <= age" else text
    if error is None:
        table = release(frame(), schema=schema(text)).table
        assert (table["age"].isna() | (table["age"] <= table["pay"])).all()
        return
    with pytest.raises(SfumatoError, match=error):
        release(frame(), schema=schema(text))
