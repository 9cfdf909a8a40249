"""Laplace noise on the principal components of one group, a function a line of algorithm 2 [BCG10, lines 13 to 26].

Components are counted in whole steps of a grid, so that owners who hold shares of them can do the same arithmetic: a
projection, a comparison for the ranges, whole random numbers added, and a rotation of what is then released.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.core.groups.model import eigen
from sfumato.core.laws.exact import draw_laplace
from sfumato.core.laws.noise import DiscreteLaplace, snap

__all__ = [
    "CONSTANT",
    "component_noise",
    "component_places",
    "component_ranges",
    "flatten",
    "noise_scales",
    "perturb_group",
    "principal_axes",
    "project",
    "rotate_back",
]

_Matrix = NDArray[np.float64]
_Places = NDArray[np.int64]

CONSTANT = 1
"""Range, in steps, up to which a component counts as the same for all records: rounding alone can be one step."""


def principal_axes(covariance: _Matrix) -> _Matrix:
    """Infer the transform matrix M from a group's statistics: its columns are the axes, the longest first [line 14]."""
    return np.ascontiguousarray(eigen(covariance)[1][:, ::-1])


def project(values: _Matrix, axes: _Matrix) -> _Matrix:
    """Principal components D M [lines 16 and 21]; of some columns with their rows of M it is a summand."""
    return np.asarray(values @ axes)


def component_places(projected: _Matrix, step: float) -> _Places:
    """Bring components to the grid, counted in steps."""
    return snap(projected, step)


def component_ranges(places: _Places) -> _Places:
    """Range (max - min) of each component, in steps [lines 17 and 23]."""
    return np.asarray(places.max(axis=0) - places.min(axis=0))


def flatten(places: _Places, ranges: _Places, centre: _Places) -> _Places:
    """Put all records of the group at its centre in components that do not vary: they then tell nobody apart."""
    return np.where(ranges > CONSTANT, places, centre)


def noise_scales(ranges: _Places, b: float) -> _Matrix:
    """Scales b_j = b (max - min) of the noise, in steps; 0 where a component does not vary [lines 17 and 23].

    The scale of the Laplace law and not its standard deviation (errata BCG10.1).
    """
    return np.where(ranges > CONSTANT, b * ranges, 0.0)


def component_noise(scales: _Matrix, rows: int, rng: np.random.Generator) -> _Places:
    """Draw Laplace noise for each component of so many records, in whole steps [line 18].

    Of two owners each draws `core.laws.draw_geometric` with these scales, and the difference has this law [line 24].
    """
    noise = np.zeros((rows, len(scales)), dtype=np.int64)
    for j, scale in enumerate(scales.tolist()):
        if scale > 0:
            DiscreteLaplace(scale)  # refuses a scale that is out of proportion
            noise[:, j] = draw_laplace(scale, rows, rng)
    return noise


def rotate_back(places: _Places, axes: _Matrix, step: float) -> _Matrix:
    """Map components back to the columns: D' M^T [lines 19 and 26]."""
    return np.asarray((places * step) @ axes.T)


def perturb_group(values: _Matrix, b: float, step: float, rng: np.random.Generator) -> tuple[_Matrix, int]:
    """Perturb the records of one group [BCG10, alg. 2, lines 13 to 19]; tell how many components got noise.

    Parameters
    ----------
    values : ndarray of shape (n, d)
    b : float
        Scale of the noise, in ranges of each component.
    step : float
        Of the grid, in the units of the values.
    rng : numpy.random.Generator

    Notes
    -----
    The paper projects records as they are, not their distances from the mean; the ranges are the same. A group of
    n <= d records varies in n - 1 components at most, and noise moves its rows in those alone. Cost O(n d^2 + d^3).
    """
    mean = values.mean(axis=0)
    centred = values - mean
    axes = principal_axes(centred.T @ centred / len(values))
    places = component_places(project(values, axes), step)
    ranges = component_ranges(places)
    places = flatten(places, ranges, component_places(project(mean, axes), step))
    noise = component_noise(noise_scales(ranges, b), len(values), rng)
    return rotate_back(places + noise, axes, step), int((ranges > CONSTANT).sum())
