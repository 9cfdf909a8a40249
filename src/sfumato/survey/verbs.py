"""The verbs `sfumato.reconstruct` and `sfumato.relate`: what randomized columns tell, and how it is drawn as SVG."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sfumato.assess.figures import BASE, MAIN, MAIN_FILL, MUTED, Axes, Figure, draw, label
from sfumato.certificate import Certificate
from sfumato.core.arguments import checked
from sfumato.core.distributions.amplification import downward_bound, upward_bound
from sfumato.core.distributions.domains import Dates, Labels
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.documents import Unparsable, parse_json, read_text
from sfumato.core.errors import OptionError, SchemaError, TooFew
from sfumato.core.facts import Fact
from sfumato.methods.randomize.facts import specs_of
from sfumato.survey.breach import Breach, percent
from sfumato.survey.reconstruct import CrossTable, Reconstruction, Regression, cross_table, regress
from sfumato.survey.reconstruct import reconstruct as reconstruct_values
from sfumato.survey.reconstruct.bands import LEAST
from sfumato.tables.cells import absent_cells, is_text, plain
from sfumato.tables.dates import fitting_formats, microseconds_of_cells
from sfumato.tables.field import Field, Kind
from sfumato.tables.frames import to_arrow
from sfumato.tables.infer import MISSING_MARKS

if TYPE_CHECKING:
    from sfumato.survey.reconstruct.answers import Reconstruction

__all__ = ["Relation", "guarantee_figure", "read_spec", "reconstruct", "reconstruction_figure", "relate"]


def reconstruct(table: Any, column: str, spec: NoiseSpec | str | Path, **options: Any) -> Reconstruction:
    """The distribution behind a column of randomized values, with bands; single values stay unknown.

    Parameters
    ----------
    table : pandas, polars or pyarrow table
        Missing cells of the column are skipped and counted.
    column : str
    spec : NoiseSpec or path
        The noise specification, its file, or a release's ``certificate.json``.
    **options
        ``intervals``, ``stop``, ``method``, ``bands``, ``least``, ``limit`` and ``strict`` of
        `sfumato.survey.reconstruct.reconstruct`.

    Raises
    ------
    TooFew
        If the records are too few for the noise.
    DoesNotFit
        If strict, where the values do not look like anything that the law can have made.
    """
    known = spec if isinstance(spec, NoiseSpec) else read_spec(spec, column)
    released, missing = _released(_arrow(table), column, known)
    found = checked(reconstruct_values)(released, known, **options)
    return dataclasses.replace(found, missing=missing)


@dataclass(frozen=True)
class Relation:
    """How two randomized columns go together."""

    table: CrossTable  # shares of all pairs of values or intervals
    # the line of the first on the second; none where one of them has more than two labels, a law does not tell means,
    # or the variance of the second is not significant
    regression: Regression | None
    why: str = ""  # why there is no line

    def to_document(self) -> Mapping[str, Any]:
        """The same in plain JSON types."""
        line = None if self.regression is None else self.regression.to_document()
        return {**self.table.to_document(), "regression": line}

    def describe(self) -> str:
        """The table, and the line under it."""
        line = f"No line: {self.why}." if self.regression is None else f"Line: {self.regression.describe()}"
        return f"{self.table.describe()}\n{line}"


def relate(
    table: Any,
    column: str,
    to: str,
    spec: NoiseSpec | str | Path,
    *,
    to_spec: NoiseSpec | str | Path | None = None,
    intervals: int | Sequence[float] | None = None,
    to_intervals: int | Sequence[float] | None = None,
    bands: float = 0.95,
    least: float = LEAST,
    strict: bool = False,
) -> Relation:
    """Joint distribution of two columns that were randomized by themselves, and the line of the one on the other.

    Parameters
    ----------
    table : pandas, polars or pyarrow table
        Records without one of the two values are skipped and counted.
    column, to : str
        The response and the predictor.
    spec, to_spec : NoiseSpec or path
        The noise specification of each, or its file; a release's ``certificate.json`` is enough for both.
    intervals, to_intervals : int, sequence of float or None
        Of each; None: labels one by one, numbers in 5 intervals.
    bands : float
        Level of all bands.
    least : float
        Refuse if the coarsest feature would be estimated less precisely than from this number of unperturbed records.
    strict : bool
        Refuse values that do not fit the laws.

    Raises
    ------
    TooFew
        If the records are too few for the noise.
    DoesNotFit
        If strict, where the values do not look like anything that the laws can have made.
    """
    if column == to:
        raise OptionError("a column cannot be related to itself; name two")
    first = spec if isinstance(spec, NoiseSpec) else read_spec(spec, column)
    second_spec = spec if to_spec is None else to_spec
    second = second_spec if isinstance(second_spec, NoiseSpec) else read_spec(second_spec, to)
    arrow = _arrow(table)
    sides = [_cells_of(arrow, name, each) for name, each in ((column, first), (to, second))]
    absent = sides[0][1] | sides[1][1]
    both = arrow.filter(pa.array(~absent))
    one, other = (_released(both, name, each)[0] for name, each in ((column, first), (to, second)))
    found = cross_table(
        one, first, other, second, intervals=(intervals, to_intervals), bands=bands, least=least, strict=strict
    )
    found, why, line = dataclasses.replace(found, missing=int(absent.sum())), "", None
    try:
        line = dataclasses.replace(regress(one, first, other, second, level=bands), missing=int(absent.sum()))
    except (OptionError, TooFew) as refusal:
        why = str(refusal)
    return Relation(found, line, why)


def _cells_of(table: pa.Table, column: str, spec: NoiseSpec) -> tuple[Any, NDArray[Any]]:
    """Cells of a column, and which are missing."""
    if table.column_names.count(column) != 1:
        raise OptionError(f"there is no single column {column!r}; the table has {table.num_columns} columns, name one")
    cells = plain(table.column(column))
    labels = spec.released.values if isinstance(spec.released, Labels) else ()
    return cells, absent_cells(cells, tuple(mark for mark in MISSING_MARKS if mark not in labels))


def _released(table: pa.Table, column: str, spec: NoiseSpec) -> tuple[NDArray[Any], int]:
    """Cells of a column that are there, and how many are not."""
    cells, absent = _cells_of(table, column, spec)
    labels = spec.released.values if isinstance(spec.released, Labels) else None
    present = cells.filter(pa.array(~absent))
    if isinstance(spec.domain, Dates) and not spec.recodes:
        array = _counts_of_dates(present, column, spec.domain)
    else:
        try:
            values = present.cast(pa.string() if labels is not None else pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            wanted = "numbers" if labels is None else "labels"
            hint = f"column {column!r} holds values that are no {wanted}; check column and specification"
            raise SchemaError(hint) from None
        array = values.to_numpy(zero_copy_only=False)
    try:
        spec.encode_output(array)
    except SchemaError as error:
        raise SchemaError(f"column {column!r}: {error}") from None
    return array, int(absent.sum())


def _counts_of_dates(cells: pa.Array, column: str, domain: Dates) -> NDArray[Any]:
    """Released dates as their domain counts them; a column of text may write them in any one way."""
    field = Field(column, Kind.DATE)
    if is_text(cells.type):
        forms = fitting_formats(cells) if len(cells) else ()
        if len(cells) and len(forms) != 1:
            what = "that can be read as dates in several ways" if forms else "that are no dates"
            raise SchemaError(f"column {column!r} holds texts {what}; write them as 2020-01-31")
        field = dataclasses.replace(field, format=forms[0] if forms else None)
    nothing = np.zeros(len(cells), dtype=np.bool_)
    try:
        moments, strange = microseconds_of_cells(cells, nothing, field)
    except SchemaError:
        raise SchemaError(f"column {column!r} holds no dates; check column and specification") from None
    counts = domain.counts(moments)
    odd = int((strange | (domain.moments(counts) != moments)).sum())
    if odd:
        raise SchemaError(
            f"column {column!r}: {odd} values are not dates by {domain.unit}; check that they belong to this file"
        )
    return counts


def _arrow(table: Any) -> pa.Table:
    """Table as Arrow has it; one that is so already needs no library of frames."""
    return table if isinstance(table, pa.Table) else to_arrow(table)[0]


def read_spec(path: str | Path, column: str) -> NoiseSpec:
    """Read the specification of a column from its own file or from a certificate.

    Raises
    ------
    OptionError
        If the file is neither, or the certificate has no such column.
    """
    facts = _certified_facts(Path(path))
    if facts is None:
        return NoiseSpec.read(path)
    specs = specs_of(facts)
    if column not in specs:
        names = ", ".join(map(repr, specs)) or "none"
        raise OptionError(f"the certificate has no specification of column {column!r}; it has {names}")
    return specs[column]


def _certified_facts(path: Path) -> tuple[Fact, ...] | None:
    """Read the facts of a certificate; None if the file is something else."""
    if path.suffix.lower() != ".json":
        return None
    try:
        text = read_text(path, "certificate", "name a certificate.json")
        document = parse_json(text)
    except (OptionError, Unparsable):
        return None
    if not isinstance(document, dict) or not isinstance(document.get("facts"), list):
        return None
    return Certificate.from_json(text).facts


_PRIORS = 401


def guarantee_figure(gamma: float, found: Breach | None = None) -> Figure:
    """The bounds of an amplification over all priors; of a property, its prior against its posterior."""

    def paint(axes: Axes) -> None:
        axes.x_label, axes.y_label = "probability of a property before the answer", "probability after the answer"
        _paint_bounds(axes, gamma)
        if found is not None:
            _paint_property(axes, found)

    return draw(
        "guarantee",
        paint,
        size=(4.8, 5.2),
        title="Probability of a property, before and after an answer",
        caption="",
        alt="How likely a property can become by one answer, over how likely it is before.",
        public=False,
    )


def _paint_bounds(axes: Axes, gamma: float) -> None:
    priors = [step / (_PRIORS - 1) for step in range(1, _PRIORS - 1)]  # what is certain before stays certain
    highest = [upward_bound(gamma, prior) for prior in priors]
    lowest = [downward_bound(gamma, prior) for prior in priors]
    axes.area(priors, lowest, highest, MAIN_FILL)
    axes.line(priors, highest, MAIN)
    axes.line(priors, lowest, MAIN)
    axes.line([0.0, 1.0], [0.0, 1.0], MUTED, dash="1.6 2")
    unbounded = "no guarantee: anything can become certain"
    axes.name(unbounded if math.isinf(gamma) else f"bound for any answer, gamma {gamma:.4g}", "area", MAIN, MAIN_FILL)
    axes.name("no information", "dotted", MUTED)


def _paint_property(axes: Axes, found: Breach) -> None:
    ends = [found.worst.lowest, found.worst.highest]
    axes.line([found.prior] * 2, ends, BASE)
    axes.marks([found.prior] * 2, ends, "circle", BASE, BASE)
    axes.name("this property, worst answers", "circle", BASE, BASE)
    if not any(math.isclose(found.posterior, end, rel_tol=1e-9) for end in ends):
        axes.marks([found.prior], [found.posterior], "diamond", BASE)
        axes.name("this property, this answer", "diamond", BASE)
    right = found.prior < 0.6
    axes.write(
        found.prior,
        found.worst.highest,
        f"{percent(found.prior)} \u2192 {percent(found.worst.highest)}",
        anchor="start" if right else "end",
        colour=BASE,
        off=(7.0 if right else -7.0, 12.0 if found.worst.highest > 0.9 else -6.0),
    )


def reconstruction_figure(found: Reconstruction, column: str) -> Figure:
    """The reconstructed distribution of a column with its bands."""

    def paint(axes: Axes) -> None:
        axes.x_label, axes.y_label = label(column, 60), "probability"
        axes.y = (0.0, float(np.nanmax([*found.probability, *found.upper, 1e-9])))
        if isinstance(found.cells.universe, Labels):
            _paint_labels(axes, found)
        else:
            _paint_intervals(axes, found)
        axes.name(f"{100 * found.level:g} % band of each", "area", MAIN, MAIN_FILL)

    return draw(
        "reconstruction",
        paint,
        size=(6.4, 3.6),
        title=f"Reconstructed distribution of {column}",
        caption="",
        alt=f"Distribution from {found.records} randomized records, worth about "
        f"{found.effective_records:.0f} without noise.",
        public=False,
    )


def _paint_labels(axes: Axes, found: Reconstruction) -> None:
    names = [label(str(value)) for value in found.values or ()]
    axes.x, axes.x_ticks = (-0.5, len(names) - 0.5), list(zip(range(len(names)), names, strict=True))
    axes.upright = len(names) > 4
    for place, (share, low, high) in enumerate(zip(found.probability, found.lower, found.upper, strict=True)):
        if low == low:
            axes.area([place - 0.35, place + 0.35], [low, low], [high, high], MAIN_FILL)
        axes.line([place - 0.35, place + 0.35], [share, share], MAIN, width=2.0)
    axes.name("probability", "line", MAIN)


def _paint_intervals(axes: Axes, found: Reconstruction) -> None:
    edges, universe = found.edges, found.cells.universe
    if edges is None:
        edges = universe.decode(found.cells.cuts).astype(np.float64) - universe.step / 2.0
    axes.x = float(edges[0]), float(edges[-1])
    if isinstance(universe, Dates):
        days = np.linspace(0, universe.size - 1, 5).astype(np.int64)
        axes.x_ticks = list(zip((days + universe.low).tolist(), universe.written(days), strict=True))
    low, high = np.nan_to_num(found.lower, nan=0.0), np.nan_to_num(found.upper, nan=0.0)
    axes.area(np.repeat(edges, 2)[1:-1].tolist(), np.repeat(low, 2).tolist(), np.repeat(high, 2).tolist(), MAIN_FILL)
    axes.steps(found.probability, edges, MAIN)
    axes.name("probability", "line", MAIN)
