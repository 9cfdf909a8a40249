"""Filters against noise: known errors, the three fixed cases, and when they are not run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from sfumato.assess.algebra import run_measure
from sfumato.assess.attacks.noise_filter import _NEAR, NOISE_FILTER, bayes_estimate, spectral_filter
from sfumato.assess.findings import Finding
from sfumato.assess.study import Study
from sfumato.core.distributions.domains import Integers, Reals
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.methods.perturb.facts import Noised
from sfumato.methods.protocol import OwnerDetails
from sfumato.methods.randomize.facts import Randomized
from tests.assess.cases import draw_table, released_of, study
from tests.assess.privacy_studies import AWKWARD, awkward, case, check_sound, found, numbers
from tests.examples import at_length

ERROR, NEAR = "noise-filtered-error", "noise-filtered-near"
_Matrix = NDArray[np.float64]


def noised(size: float = 1.0, *, correlated: bool = False) -> tuple[Noised]:
    return (Noised("gaussian", "additive", size, 3, correlated, 2.0**-16),)


def of(rows: _Matrix, released: _Matrix, *, seed: int = 5, correlated: bool = False) -> dict[str, Finding]:
    """Shuffle the released rows and give what is found."""
    order = np.random.default_rng(seed + 50).permutation(len(rows))
    facts, workings = noised(correlated=correlated), OwnerDetails(origin=order)
    made = study(numbers(rows), numbers(released[order]), seed=seed, facts=facts, workings=workings)
    check_sound(NOISE_FILTER, made)
    return found(NOISE_FILTER, made)


def standard(rows: _Matrix) -> _Matrix:
    return np.asarray((rows - rows.mean(axis=0)) / rows.std(axis=0))


def table(name: str) -> _Matrix:
    from sklearn import datasets

    return standard(getattr(datasets, f"load_{name}")().data)


def rms(errors: _Matrix) -> float:
    return float(np.sqrt(np.mean(errors**2)))


def with_origin(of_study: Study, facts: Any) -> Study:
    import dataclasses

    origin = np.arange(len(of_study.released), dtype=np.int64) % len(of_study.original)
    return dataclasses.replace(of_study, facts=facts, workings=OwnerDetails(origin=origin))


@pytest.mark.parametrize(
    ("name", "size", "spectral", "bayes"),
    [
        ("breast_cancer", 1.0, 0.64, 0.51),
        ("breast_cancer", 2.0, None, 0.75),
        ("wine", 1.0, None, 0.67),
        ("diabetes", 1.0, None, 0.64),
    ],
)
@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_the_errors_that_were_measured_before_come_out_again(
    name: str, size: float, spectral: float | None, bayes: float, seed: int
) -> None:
    rows = table(name)
    released = rows + size * np.random.default_rng(seed).normal(size=rows.shape)
    noise = size**2 * np.eye(rows.shape[1])
    assert rms(bayes_estimate(released, noise) - rows) == pytest.approx(bayes, abs=0.06)
    if spectral is not None:
        assert rms(spectral_filter(released, noise) - rows) == pytest.approx(spectral, abs=0.08)


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_the_finding_is_the_best_attackers_error_beside_the_size_of_the_noise(seed: int) -> None:
    rows = table("breast_cancer")
    findings = of(rows, rows + np.random.default_rng(seed).normal(size=rows.shape), seed=seed)
    assert findings[ERROR].value == pytest.approx(0.51, abs=0.04)
    assert findings[ERROR].baseline == pytest.approx(1.0, abs=0.04)
    assert "the Bayes estimate" in findings[ERROR].meaning
    single = [finding.value or 0.0 for name, finding in findings.items() if name.startswith(f"{ERROR}/")]
    assert len(single) == rows.shape[1]
    assert math.sqrt(np.mean(np.square(single))) <= (findings[ERROR].value or 0.0) + 1e-9


def test_noise_with_the_shape_of_the_data_is_not_filtered_but_only_drawn_to_the_mean() -> None:
    rows = table("breast_cancer")
    eigenvalues, eigenvectors = np.linalg.eigh(np.corrcoef(rows.T))
    root = eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0)) @ eigenvectors.T
    released = rows + np.random.default_rng(1).normal(size=rows.shape) @ root
    theory = math.sqrt(1 / 2)  # s / sqrt(1 + s^2) for noise s = 1, whatever the columns
    assert of(rows, released, correlated=True)[ERROR].value == pytest.approx(theory, abs=0.08)


def test_on_one_column_the_bayes_estimate_has_the_error_of_theory() -> None:
    rng = np.random.default_rng(3)
    rows = standard(rng.normal(size=(5000, 1)))
    for size in (0.5, 2.0):
        finding = of(rows, rows + size * rng.normal(size=rows.shape))[ERROR]
        assert finding.value == pytest.approx(size / math.sqrt(1 + size**2), rel=0.06)


def test_the_bayes_estimate_is_that_of_a_slow_loop() -> None:
    rng = np.random.default_rng(4)
    released, noise = rng.normal(size=(30, 3)) * 3.0, np.diag([0.5, 1.0, 0.1])
    mean = released.mean(axis=0)
    covariance = sum(np.outer(row - mean, row - mean) for row in released) / 30
    slow = [mean + (covariance - noise) @ np.linalg.solve(covariance, row - mean) for row in released]
    np.testing.assert_allclose(bayes_estimate(released, noise), slow, atol=1e-9)


def test_the_spectral_filter_keeps_a_line_and_drops_what_is_noise() -> None:
    rng = np.random.default_rng(5)
    line = 10.0 * rng.normal(size=(2000, 1)) * np.ones(40) / math.sqrt(40)
    released = line + rng.normal(size=line.shape)
    few = 3.5 / 40  # the line, and at most two directions more by chance
    assert 0.9 / 40 < rms(spectral_filter(released, np.eye(40)) - line) ** 2 < few
    alone = rng.normal(size=(2000, 40))
    assert rms(spectral_filter(alone, np.eye(40)) - alone.mean(axis=0)) ** 2 < few


@pytest.mark.parametrize("guess", [spectral_filter, bayes_estimate])
def test_no_filter_depends_on_the_units_and_means_of_columns(guess: Callable[[_Matrix, _Matrix], _Matrix]) -> None:
    rng, units = np.random.default_rng(5), np.array([0.1, 1.0, 30.0])
    released = 3.0 * rng.normal(size=(2000, 1)) + rng.normal(size=(2000, 3))
    filtered = guess(released, np.eye(3))
    assert rms(filtered - released) > 0.5
    moved = guess(released * units + 50.0, np.diag(units**2))
    np.testing.assert_allclose(moved, filtered * units + 50.0, rtol=1e-6, atol=1e-9)


def test_an_interval_holds_its_error_and_is_narrow() -> None:
    rng = np.random.default_rng(2)
    rows = standard(rng.normal(size=(2000, 2)))
    finding = of(rows, rows + 0.3 * rng.normal(size=rows.shape))[ERROR]
    assert finding.value is not None
    assert finding.interval is not None
    assert finding.value == pytest.approx(0.29, abs=0.02)
    assert finding.interval[0] < finding.value < finding.interval[1]
    assert finding.interval[1] - finding.interval[0] < 0.05


def test_near_is_a_share_of_the_range_of_a_column() -> None:
    rng = np.random.default_rng(3)
    rows = standard(rng.uniform(size=(500, 2)))
    step = _NEAR * np.ptp(rows, axis=0) * rng.choice([-1.0, 1.0], rows.shape)
    assert of(rows, rows + 0.5 * step)[NEAR].value == 1.0
    assert (of(rows, rows + 3.0 * step)[NEAR].value or 0.0) < 0.6


def test_cells_that_a_release_lacks_are_no_errors() -> None:
    rows = np.random.default_rng(4).normal(size=(300, 2))
    lacking = pa.table({"v0": [None if place % 3 else cell for place, cell in enumerate(rows[:, 0])], "v1": rows[:, 1]})
    made = study(numbers(rows), lacking, facts=noised(), workings=OwnerDetails(origin=np.arange(300)))
    findings = found(NOISE_FILTER, made)
    for name in (ERROR, f"{ERROR}/v0", f"{ERROR}/v1"):
        assert findings[name].value == pytest.approx(0.0, abs=1e-9)
    assert (findings[ERROR].attempts, findings[f"{ERROR}/v0"].attempts) == (400, 100)


def test_a_copy_leaves_no_error_and_every_cell_near() -> None:
    rows = np.random.default_rng(1).normal(size=(200, 3))
    findings = of(rows, rows)
    assert findings[ERROR].value == pytest.approx(0.0, abs=1e-9)
    assert findings[NEAR].value == 1.0


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_an_independent_redraw_gives_no_more_than_guessing(seed: int) -> None:
    rows, other = np.random.default_rng(seed).normal(size=(2, 3000, 3))
    findings = of(rows, other, seed=seed)
    assert findings[ERROR].value == pytest.approx(1.0, abs=0.1)
    near = findings[NEAR]
    assert near.interval is not None
    assert near.baseline is not None
    assert near.interval[0] <= near.baseline + 0.02


def test_a_constant_table_gives_no_more_than_guessing() -> None:
    rows = np.random.default_rng(6).normal(size=(300, 2))
    findings = of(rows, np.zeros_like(rows))
    assert findings[ERROR].value == pytest.approx(1.0, abs=0.1)
    assert findings[NEAR].value == pytest.approx(findings[NEAR].baseline)


@pytest.mark.parametrize("name", ["copy", "redraw", "constant"])
def test_tables_of_mixed_kinds_with_missing_cells_go_through(name: str) -> None:
    made = study(
        draw_table(1), released_of(name), facts=noised(), workings=OwnerDetails(origin=np.arange(600, dtype=np.int64))
    )
    check_sound(NOISE_FILTER, made)
    findings = found(NOISE_FILTER, made)
    assert {f"{ERROR}/{column}" for column in ("x", "y", "count", "born")} <= set(findings)
    assert f"{ERROR}/colour" not in findings


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("correlated", [False, True])
def test_no_awkward_table_stops_it(name: str, correlated: bool) -> None:
    check_sound(NOISE_FILTER, with_origin(awkward(name), noised(correlated=correlated)))


def test_without_noise_or_known_origins_it_is_not_run() -> None:
    assert "no noise" in (found(NOISE_FILTER, case("copy"))[ERROR].reason or "")
    made = study(numbers(np.ones((5, 2))), numbers(np.ones((5, 2))), facts=noised())
    assert "descends" in (found(NOISE_FILTER, made)[ERROR].reason or "")


def test_it_says_of_how_many_rows_it_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sfumato.assess.attacks.noise_filter._ROWS", 50)
    rows = np.random.default_rng(1).normal(size=(200, 2))
    assert "counted on 50 rows drawn at random" in of(rows, rows + 1.0)[ERROR].meaning


def test_a_table_without_numbers_is_not_run() -> None:
    words = pa.table({"town": ["a", "b"] * 10})
    made = study(words, words, facts=noised(), workings=OwnerDetails(origin=np.arange(20)))
    assert all(
        finding.value is None and "number" in (finding.reason or "") for finding in run_measure(NOISE_FILTER, made)
    )


def additive(column: str, sd: float) -> Randomized:
    spec = NoiseSpec(Reals(-50.0, 50.0, 0.001), {"name": "gaussian", "sd": float(sd)})
    return Randomized(column, spec.canonical, spec.digest, None, None)


def test_columns_randomized_by_additive_laws_of_their_own_size_are_filtered_too() -> None:
    rows = table("wine")
    sizes = np.linspace(0.5, 2.0, rows.shape[1])
    released = rows + sizes * np.random.default_rng(1).normal(size=rows.shape)
    facts = tuple(additive(f"v{place}", size) for place, size in enumerate(sizes))
    origin = np.arange(len(rows), dtype=np.int64)
    made = study(numbers(rows), numbers(released), facts=facts, workings=OwnerDetails(origin=origin))
    check_sound(NOISE_FILTER, made)
    findings = found(NOISE_FILTER, made)
    for place, size in enumerate(sizes):
        finding = findings[f"{ERROR}/v{place}"]
        assert finding.baseline == pytest.approx(size, rel=0.3)
        assert (finding.value or 0.0) < size
    alone = sizes / np.sqrt(1.0 + sizes**2)  # the error where no other column helps
    assert (findings[ERROR].value or 0.0) < math.sqrt(np.mean(alone**2))


def test_columns_randomized_by_other_laws_are_not_filtered() -> None:
    rows = table("wine")[:, :2]
    spec = NoiseSpec(Integers(0, 9), {"name": "keep-or-replace", "keep": 0.5})
    kept = Randomized("v0", spec.canonical, spec.digest, spec.gamma, spec.epsilon)
    origin = OwnerDetails(origin=np.arange(len(rows), dtype=np.int64))
    made = study(numbers(rows), numbers(rows + 1.0), facts=(kept, additive("v1", 1.0)), workings=origin)
    assert set(found(NOISE_FILTER, made)) == {ERROR, NEAR, f"{ERROR}/v1"}
    made = study(numbers(rows), numbers(rows + 1.0), facts=(kept,), workings=origin)
    assert "no noise" in (found(NOISE_FILTER, made)[ERROR].reason or "")
