"""Heat maps of association matrices: original, released and their difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.figures.svg import HEAT, INK, Axes, Figure, draw, label

__all__ = ["Links", "association_figures"]

_VECTOR = 40  # columns up to which every cell is a shape of its own
_WRITTEN = 16  # columns up to which every cell holds its number
_FULL = 0.25  # the difference that takes the full colour
_LINK = "Strength of the link between two columns{signs}: 0 is none, {most} or -{most} the strongest."
_GAP = "Link in the released table less link in the original{signs}; the full colour stands for {full} and more."


@dataclass(frozen=True, eq=False, repr=False)
class Links:
    """Association matrices of both tables, counted alike, and the released one's as it alone determines it."""

    original: NDArray[np.float64]
    released: NDArray[np.float64]
    alone: NDArray[np.float64]


def association_figures(names: Sequence[str], links: Links) -> tuple[Figure, ...]:
    """Draw three heat maps; the released table's alone is for the public."""
    if len(names) < 2:
        return ()
    written = len(names) <= _WRITTEN
    signs, hundred = (", in hundredths", 100) if written else ("", 1)
    link = _LINK.format(signs=signs, most=hundred)
    gap = _GAP.format(signs=signs, full=f"{_FULL * hundred:g}")
    return (
        _figure("original", "Links between columns, original", names, links.original, 1.0, link, public=False),
        _figure("released", "Links between columns, released", names, links.alone, 1.0, link, public=True),
        _figure(
            "difference", "Released less original", names, links.released - links.original, _FULL, gap, public=False
        ),
    )


def _figure(
    kind: str,
    title: str,
    names: Sequence[str],
    matrix: NDArray[np.float64],
    full: float,
    caption: str,
    *,
    public: bool,
) -> Figure:
    return draw(
        f"association/{kind}",
        lambda axes: _paint(axes, names, matrix, full),
        size=_size(names),
        title=title,
        caption=caption,
        alt=f"Heat map, {title[0].lower()}{title[1:]}: {len(names)} by {len(names)} columns.",
        public=public,
    )


def _size(names: Sequence[str]) -> tuple[float, float]:
    side = float(np.clip(0.27 * len(names), 1.8, 6.0))
    return side + 1.3, side + 1.0


def _paint(axes: Axes, names: Sequence[str], matrix: NDArray[np.float64], full: float) -> None:
    from matplotlib.colors import ListedColormap

    count = len(names)
    colours = ListedColormap(list(HEAT))
    if count <= _VECTOR:
        axes.pcolormesh(matrix, cmap=colours, vmin=-full, vmax=full, edgecolors="none")
        axes.invert_yaxis()
    else:
        axes.imshow(matrix, cmap=_raster_colours(), vmin=-full, vmax=full, extent=(0, count, count, 0), aspect="auto")
    if count <= _WRITTEN:
        _write(axes, matrix)
    step = max(1, count // 40)
    places = np.arange(0, count, step)
    texts = [label(name, 16) for name in names[::step]]
    size = 8.0 if count <= 20 else 5.0
    axes.set_yticks(places + 0.5, labels=texts, fontsize=size, parse_math=False)
    axes.set_xticks(places + 0.5, labels=texts, rotation=90, fontsize=size, parse_math=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _write(axes: Axes, matrix: NDArray[np.float64]) -> None:
    """Write each link into its cell, so that colour is not needed to read it."""
    hundredths = np.rint(100 * matrix).astype(np.int64)
    for row, column in zip(*np.nonzero(~np.eye(len(matrix), dtype=np.bool_)), strict=True):
        text = str(hundredths[row, column])
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=6.0, color=INK)


def _raster_colours() -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("links", ["#0072b2", "#f2f2f2", "#d55e00"])
