"""The distribution of each column, original under released; for the public the released one alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.assess.columns import Cells, ColumnPair
from sfumato.assess.figures.bins import bin_edges
from sfumato.assess.figures.svg import BASE, BASE_FILL, MAIN, MAIN_FILL, Axes, Figure, draw, label
from sfumato.tables.dates import FIRST_MOMENT, LAST_MOMENT, unit_of
from sfumato.tables.schema import Field, Kind

__all__ = ["MOST_COLUMNS", "marginal_figures"]

MOST_COLUMNS = 40
"""Most columns that are drawn."""

_BARS = 12  # most categories drawn apart
_DAY = 86_400_000_000  # microseconds
_FIRST_DAY, _LAST_DAY = FIRST_MOMENT / _DAY, LAST_MOMENT // _DAY + 0.999  # of the calendar, and of Matplotlib
_SIZE = (3.6, 2.5)
_Shares = NDArray[np.float64]


def marginal_figures(pairs: Sequence[ColumnPair]) -> tuple[Figure, ...]:
    """Draw the first columns twice: both tables for the owner, the released one for the public."""
    figures = []
    for pair in pairs[:MOST_COLUMNS]:
        figures.append(_figure(pair.field, pair.original, pair.released))
        figures.append(_figure(pair.field, None, pair.released))
    return tuple(figures)


def _figure(field: Field, original: Cells | None, released: Cells) -> Figure:
    both = "original and released table" if original is not None else "released table"
    gone = "" if original is None else f"{100 * original.absent.mean():.1f} % in the original, "
    any_missing = released.absent.any() or (original is not None and original.absent.any())
    caption = f"Missing cells: {gone}{100 * released.absent.mean():.1f} % in the released table."
    return draw(
        f"marginals/{field.name}",
        lambda axes: _paint(axes, field, original, released),
        size=_SIZE,
        title=field.name,
        caption=caption if any_missing else "No cell is missing.",
        alt=f"Distribution of column {label(field.name, 60)} in the {both}.",
        public=original is None,
    )


def _paint(axes: Axes, field: Field, original: Cells | None, released: Cells) -> None:
    sides = [cells.present for cells in (original, released) if cells is not None]
    if not sum(len(values) for values in sides):
        axes.text(0.5, 0.5, "no value in the released table", ha="center", va="center", transform=axes.transAxes)
        axes.set_axis_off()
    elif field.kind in (Kind.NOMINAL, Kind.BOOLEAN, Kind.ORDINAL):
        _bars(axes, field, sides)
    else:
        _histogram(axes, field, sides)


def _bars(axes: Axes, field: Field, sides: list[_Shares]) -> None:
    names = [str(category) for category in field.domain.categories or ()]
    counts = [np.bincount(values.astype(np.int64), minlength=len(names)) for values in sides]
    shown = np.argsort(-counts[0], kind="stable")[:_BARS]
    anywhere = np.sum(counts, axis=0) > 0
    shown = shown[anywhere[shown]]
    if field.kind is Kind.ORDINAL:
        shown = np.sort(shown)
    shares = [np.append(count[shown], count.sum() - count[shown].sum()) / max(1, count.sum()) for count in counts]
    texts = [label(names[place], 18) for place in shown]
    rest = int(anywhere.sum()) - len(shown)
    texts.append(f"{rest} others")
    keep = len(texts) if rest else len(texts) - 1
    places = np.arange(keep)
    if len(sides) == 2:
        axes.barh(places, shares[0][:keep], color=BASE_FILL, edgecolor=BASE, linewidth=0.8, label="original")
        axes.plot(shares[1][:keep], places, "D", color=MAIN, markersize=4.5, label="released")
    else:
        axes.barh(places, shares[0][:keep], color=MAIN_FILL, edgecolor=MAIN, linewidth=0.8, label="released")
    axes.set_yticks(places, labels=texts[:keep], parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(left=0.0)
    axes.xaxis.set_major_formatter(_percent)
    axes.xaxis.set_major_locator(_ticks(4))
    _legend(axes)


def _histogram(axes: Axes, field: Field, sides: list[_Shares]) -> None:
    edges = bin_edges(np.concatenate(sides), field)
    shares = [np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0] / max(1, len(values)) for values in sides]
    if field.kind is Kind.DATE:
        edges = _days(edges, field)
        _date_axis(axes, edges)
    else:
        axes.xaxis.set_major_locator(_ticks(5))
    if len(sides) == 2:
        axes.stairs(shares[0], edges, fill=True, color=BASE_FILL, edgecolor=BASE, linewidth=0.8, label="original")
        axes.stairs(shares[1], edges, color=MAIN, linewidth=1.8, label="released")
    else:
        axes.stairs(shares[0], edges, fill=True, color=MAIN_FILL, edgecolor=MAIN, linewidth=1.2, label="released")
    axes.set_ylim(bottom=0.0)
    axes.yaxis.set_major_formatter(_percent)
    axes.yaxis.set_major_locator(_ticks(4))
    _legend(axes)


def _days(edges: _Shares, field: Field) -> _Shares:
    """Edges in days since 1970, those beyond the calendar brought to its first and last day."""
    return np.asarray(np.clip(edges * (unit_of(field) / _DAY), _FIRST_DAY, _LAST_DAY))


def _date_axis(axes: Axes, edges: _Shares) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    wide = 0.05 * (edges[-1] - edges[0])  # the drawing library has no more years than the calendar
    axes.set_xlim(max(edges[0] - wide, _FIRST_DAY), min(edges[-1] + wide, _LAST_DAY))
    locator = AutoDateLocator(minticks=2, maxticks=5)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def _ticks(most: int) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])


def _percent(value: float, _: float) -> str:
    return f"{100 * value:.3g} %"


def _legend(axes: Axes) -> None:
    marks = sorted(zip(*axes.get_legend_handles_labels(), strict=True), key=lambda mark: str(mark[1]))
    axes.legend(
        *zip(*marks, strict=True),
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=2,
        borderaxespad=0.2,
        handlelength=1.6,
    )
