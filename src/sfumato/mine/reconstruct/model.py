"""What a reconstruction says: probabilities with bands, how they were reached, and what they are worth."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.documents import plain
from sfumato.core.errors import OptionError
from sfumato.core.laws.dates import Dates
from sfumato.core.laws.domains import Labels
from sfumato.mine.reconstruct.answers import Answer
from sfumato.mine.reconstruct.cells import Cells

__all__ = ["Reconstruction", "draw_reconstruction"]

_NUMBERS = ("probability", "lower", "upper", "level", "fit", "iterations")
_WRITTEN = (*_NUMBERS, "stopped_by", "method", "records", "effective_records", "resolved", "notes")
_ROWS, _WIDTH = 24, 40  # of a chart in the terminal


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """The estimated distribution of the true values.

    Parameters
    ----------
    probability : ndarray of shape (m,)
        Of each value or interval; non-negative, adds up to 1.
    lower, upper : ndarray of shape (m,)
        The band of each; not-a-number where none can be given.
    level : float
        Of the bands.
    fit : float
        P-value of the released values under the law and the distribution that fits them best.
    iterations : int
    stopped_by : str
        ``likelihood``, ``chi-square``, ``limit``, ``penalty`` (direct) or ``start`` (one interval: nothing to do).
    records : int
        Released values that it is made from.
    effective_records : float
        Plain values that would tell the distribution as precisely.
    resolved : int
        Directions, of m - 1, in which the records tell as much as one plain record or more.
    method : str
    notes : tuple of str
    cells : Cells
        The domain and where it is cut.
    missing : int
        Cells that were skipped, because nothing was sent in them.
    answers : tuple of Answer
        Mean and quartiles with standard errors; none for labels.
    """

    probability: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]
    level: float
    fit: float
    iterations: int
    stopped_by: str
    records: int
    effective_records: float
    resolved: int
    method: str
    notes: tuple[str, ...]
    cells: Cells = field(repr=False)
    missing: int = 0
    answers: tuple[Answer, ...] = ()

    @property
    def values(self) -> tuple[str | int | float, ...] | None:
        """The values, where they are told one by one."""
        return self.cells.values

    @property
    def edges(self) -> NDArray[np.float64] | None:
        """The m + 1 edges of intervals, where values are not told one by one; between integers they end in .5."""
        return self.cells.edges

    def to_document(self) -> dict[str, Any]:
        """The same in plain JSON types."""
        edges = self.cells.told_edges
        where = {"edges": edges} if edges is not None else {"values": list(self.values or ())}
        told = {name: plain(getattr(self, name)) for name in _WRITTEN}
        bands = {name: [None if value != value else value for value in told[name]] for name in ("lower", "upper")}
        answers = [answer.to_document() for answer in self.answers]
        return {**where, **told, **bands, "effective_records": round(self.effective_records, 1), "answers": answers}

    def mean(self) -> float:
        """Mean of the distribution; intervals count at their middle."""
        return float(self.probability @ self.cells.centres)

    def quantile(self, share: float) -> float:
        """Value below or at which a share of the distribution lies; inside intervals along a straight line."""
        if isinstance(share, bool) or not 0 <= share <= 1:
            raise OptionError("a quantile is for a share from 0 to 1")
        centres, edges = self.cells.centres, self.edges
        total = np.minimum(np.cumsum(self.probability), 1.0)
        total[-1] = 1.0
        place = min(int(np.searchsorted(total, share, side="left")), len(total) - 1)
        if edges is None:
            return float(centres[place])
        before = total[place - 1] if place else 0.0
        inside = (share - before) / self.probability[place] if self.probability[place] > 0 else 0.0
        return float(edges[place] + min(max(inside, 0.0), 1.0) * (edges[place + 1] - edges[place]))

    def sample(self, count: int, rng: np.random.Generator) -> NDArray[Any]:
        """Draw values of the domain from the distribution; inside an interval each place is as likely."""
        cuts = self.cells.cuts
        chosen = rng.choice(len(self.cells), size=count, p=self.probability / self.probability.sum())
        places = rng.integers(cuts[chosen], cuts[chosen + 1])
        universe = self.cells.universe
        return (
            np.array(universe.written(places)) if isinstance(universe, Dates) else np.asarray(universe.decode(places))
        )

    def describe(self) -> str:
        """Say in a few lines what was found."""
        cells = f"{len(self.cells)} {'values' if self.values is not None else 'intervals'}"
        lines = [
            f"{self.records} records, worth about {self.effective_records:.0f} without noise; {cells}; "
            f"{self.iterations} iterations, stopped by {self.stopped_by}."
        ]
        level = f"{100 * self.level:g} % of the time"
        if isinstance(self.cells.universe, Labels):
            named = zip(self.values or (), self.probability, self.lower, self.upper, strict=True)
            lines += [f"{value}: {100 * p:.1f} % ({_percents(low, up)})" for value, p, low, up in named]
            lines.append(f"In brackets where the truth lies, {level}.")
        else:
            lines += [f"{answer.describe()}." for answer in self.answers]
            lines.append(f"In brackets where the truth lies, {level}.")
        return "\n".join([*lines, *(f"Note: {note}." for note in self.notes)])

    def chart(self) -> str:
        """Bars of the distribution for a terminal, a line for each cell or for several together, with their bands."""
        cells = len(self.cells)
        first = np.arange(0, cells, -(-cells // _ROWS) if not isinstance(self.cells.universe, Labels) else 1)
        shares = np.add.reduceat(self.probability, first)
        names = self.cells.names(first)
        single = len(first) == cells
        wide, most = max(map(len, names)), max(float(shares.max()), 1e-12)
        lines = []
        for row, (name, share) in enumerate(zip(names, shares, strict=True)):
            band = f"  {_percents(self.lower[row], self.upper[row])}" if single else ""
            bar = "#" * round(_WIDTH * float(share) / most)
            lines.append(f"{name:>{wide}}  {100 * share:5.1f} %  {bar:<{_WIDTH if single else 0}}{band}")
        return "\n".join(lines)


def _percents(low: float, up: float) -> str:
    return "no band" if low != low else f"{100 * low:.1f} to {100 * up:.1f}"


_STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "sfumato", "font.size": 9.0, "text.parse_math": False}
_LINE, _BAND = "#1f5f8b", "#7aa6c2"


def draw_reconstruction(path: Path, found: Reconstruction, *, name: str, form: str = "png") -> None:
    """Draw a reconstruction.

    Parameters
    ----------
    path : path
        Where the picture is written.
    found : Reconstruction
    name : str
        Of the column.
    form : {"png", "svg"}
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        sheet = Figure(figsize=(6.4, 3.6), layout="constrained", facecolor="white")
        axes: Any = sheet.add_subplot()
        if isinstance(found.cells.universe, Labels):
            _paint_labels(axes, found)
        else:
            _paint_steps(axes, found)
        axes.set(xlabel=name, ylabel="probability", ylim=(0, None))
        told = f"{found.records} randomized records, worth about {found.effective_records:.0f} without noise"
        axes.set_title(f"{told}\nband: {100 * found.level:g} % of each", fontsize=9.0)
        canvas: Any = FigureCanvasSVG(sheet) if form == "svg" else FigureCanvasAgg(sheet)
        metadata = {"Date": None, "Creator": None} if form == "svg" else {"Software": None}
        canvas.print_figure(path, format=form, dpi=150, metadata=metadata)


def _paint_labels(axes: Any, found: Reconstruction) -> None:
    places = np.arange(len(found.probability))
    axes.bar(places, found.probability, color=_BAND, width=0.7)
    axes.vlines(places, found.lower, found.upper, color=_LINE)
    axes.set_xticks(places, [str(value) for value in found.values or ()], rotation=30 if len(places) > 4 else 0)


def _paint_steps(axes: Any, found: Reconstruction) -> None:
    edges = found.edges
    if edges is None:
        edges = found.cells.universe.decode(found.cells.cuts).astype(np.float64) - found.cells.universe.step / 2.0
    low, high = np.nan_to_num(found.lower, nan=0.0), np.nan_to_num(found.upper, nan=0.0)
    axes.stairs(high, edges, baseline=low, fill=True, color=_BAND, alpha=0.4, linewidth=0)
    axes.stairs(found.probability, edges, color=_LINE, linewidth=1.2)
    universe = found.cells.universe
    if isinstance(universe, Dates):
        places = np.linspace(0, universe.size - 1, 5).astype(np.int64)
        axes.set_xticks(places + universe.low, universe.written(places))
