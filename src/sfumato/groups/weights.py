"""The distance that knows what will be predicted: weights on the coordinates of a layout [BCG10, eq. 1]."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import OptionError
from sfumato.records import Layout, width

__all__ = ["response_weights"]


def response_weights(layout: Layout, target: str | None, w: float) -> NDArray[np.float64]:
    """Give the weight of each coordinate in the squared distance: w on the response, the rest shared.

    Implements d^2 = w (r_v - s_v)^2 + (1 - w) / (m - 1) * sum over the others of (r_l - s_l)^2 [BCG10, eq. 1], with m
    the number of columns. All coordinates of a column, its missing cells too, carry the weight of the column, so that
    a class counts once however many categories it has.

    Parameters
    ----------
    layout : tuple of Block
    target : str or None
        The response; without one all columns weigh the same.
    w : float
        From 0 (the response counts nothing) to 1 (nothing else counts); the paper's default is 0.8.

    Returns
    -------
    ndarray of shape (d,)
        Scale the coordinates by its root, and Euclid's distance is the weighted one.

    Examples
    --------
    >>> from sfumato.records import Block, BlockKind
    >>> layout = tuple(Block(name, BlockKind.NUMBER, j, j + 1) for j, name in enumerate("xyz"))
    >>> response_weights(layout, "z", 0.8).round(3).tolist()
    [0.1, 0.1, 0.8]
    """
    if not 0.0 <= w <= 1.0:
        raise OptionError("the weight of the response must lie between 0 and 1; the usual one is 0.8")
    columns = {block.column for block in layout}
    if target is not None and target not in columns:
        raise OptionError(f"column {target!r} is not among the {len(columns)} sanitized ones; choose another target")
    if target is None or len(columns) == 1:
        return np.full(width(layout), 1.0 / max(1, len(columns)))
    weights = np.full(width(layout), (1.0 - w) / (len(columns) - 1))
    for block in layout:
        if block.column == target:
            weights[block.where] = w
    return weights
