"""What owners learn of each other's cells: the stated error is that of an attack which is carried out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.randomness import Randomness
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties import vertical, vertical_noise
from sfumato.parties.groupwise import Statistics, draw_noise
from sfumato.parties.inference import SeenRelease, estimate_errors, largest_inference
from sfumato.parties.plan import SeenGroups
from tests.parties.conftest import Together
from tests.parties.owners import NAMES, joint_run, random_numbers, split_numbers

Matrix = NDArray[np.float64]


def one_group(values: Matrix, scale: float) -> SeenGroups:
    centred = values - values.mean(axis=0)
    covariance = centred.T @ centred / len(values)
    axes = np.linalg.eigh(covariance)[1]
    statistics = Statistics(np.array([len(values)]), values.mean(axis=0)[None], covariance[None])
    return SeenGroups(statistics, axes[None], np.full((1, values.shape[1]), scale))


def linear_estimate(seen: SeenGroups, group: int, known: Matrix, noised: Matrix, places: slice, noise: float) -> Matrix:
    """Estimate centred rows by least squares from the statistics, as an owner would."""
    covariance, axes = seen.statistics.covariance[group], seen.axes[group]
    varies = seen.scales[group] > 0
    observed = np.hstack([np.eye(len(covariance))[:, places], axes[:, varies]])
    among = observed.T @ covariance @ observed
    first = known.shape[1]
    among[first:, first:] += np.diag(noise * seen.scales[group, varies] ** 2)
    weights = np.linalg.lstsq(among, observed.T @ covariance, rcond=1e-10)[0]
    return np.asarray(np.hstack([known, noised[:, varies]]) @ weights)


@pytest.mark.parametrize("known", [slice(0, 0), slice(0, 2)])
def test_the_error_is_that_of_the_estimate_on_rows_with_noise(known: slice) -> None:
    rng = np.random.default_rng(2)
    values = random_numbers(rng, 20_000, 5)
    seen = one_group(values, 0.4)
    centred = values - values.mean(axis=0)
    noised = centred @ seen.axes[0] + rng.laplace(scale=0.4, size=values.shape)
    guess = linear_estimate(seen, 0, centred[:, known], noised, known, 2.0)
    error = np.square(guess - centred).mean(axis=0)
    np.testing.assert_allclose(estimate_errors(seen, 2.0 * seen.scales**2, known)[0], error, rtol=0.05, atol=1e-6)


def test_noise_without_end_leaves_what_own_cells_tell() -> None:
    values = random_numbers(np.random.default_rng(3), 500, 4)
    seen = one_group(values, 1e6)
    errors = estimate_errors(seen, 2.0 * seen.scales**2, slice(0, 0))[0]
    np.testing.assert_allclose(errors, np.diag(seen.statistics.covariance[0]), rtol=1e-6)
    residual = values[:, 2:] - values[:, :2] @ np.linalg.lstsq(values[:, :2], values[:, 2:], rcond=None)[0]
    with_own = estimate_errors(seen, 2.0 * seen.scales**2, slice(0, 2))[0]
    np.testing.assert_allclose(with_own[2:], np.square(residual).mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(with_own[:2], 0.0, atol=1e-9)


@pytest.mark.parametrize("noise", ["each", "split"])
def test_the_first_owner_comes_as_close_to_the_cells_of_another_as_is_stated(
    together: Together, noise: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = random_numbers(np.random.default_rng(7), 600, 6)
    parts, seen_columns = split_numbers(values, 3), dict[int, Any]()
    honest = vertical_noise.grouped

    def watched(session: Any, own: Matrix, labels: Any) -> Any:
        seen_columns[session.rank] = honest(session, own, labels)
        return seen_columns[session.rank]

    monkeypatch.setattr(vertical, "grouped", watched)
    run = joint_run(together, parts, LaplacePCA(k=60, b=0.1), seed=4, noise=noise)
    groups, sizes = run.result.seen_groups, run.result.sizes
    assert groups is not None
    step = LaplacePCA.grid
    law = "geometric" if noise == "split" else "laplace"
    drawn = draw_noise(law, groups.scales / step, sizes, Randomness(4).generator("noise on components, party 0"))
    left = (run.opened("noised components")[0] - drawn) * step
    errors, ends = [], np.cumsum(sizes)
    for group, (size, end) in enumerate(zip(sizes.tolist(), ends.tolist(), strict=True)):
        rows = slice(end - size, end)
        shown = left[rows] - left[rows].mean(axis=0)  # a half of the noise has another mean than 0
        known = seen_columns[0].centred[rows]
        guess = linear_estimate(groups, group, known, shown, groups.spans[0], 1.0 if noise == "split" else 2.0)
        errors.append(np.square(guess[:, groups.spans[1]] - seen_columns[1].centred[rows]))
    carried_out = float(np.sqrt(np.concatenate(errors).mean()))
    told = SeenRelease(rank=1, parties=NAMES[:3], noise=noise, result=run.result)
    stated, means, whose = largest_inference(told)
    assert stated == pytest.approx(carried_out, rel=0.1)
    assert stated < means < 1.0
    assert whose in ("ann", "cat")
