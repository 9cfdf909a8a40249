"""A report: findings, figures and a policy's verdict, as JSON, a table, a page in two editions, and a few lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from sfumato.assess.figures import Figure
from sfumato.assess.findings import ColumnRisk, Finding
from sfumato.assess.plain import fitting, known_rows_sentence, risk_sentence, risky_columns, use_sentence
from sfumato.assess.verdict import ChangeTried, ExceededLimit, LimitResult, Ruling, UndecidedLimit, Verdict
from sfumato.core.documents import plain
from sfumato.core.errors import OptionError
from sfumato.core.pages import framed_page
from sfumato.tables.frames import frame_of

__all__ = [
    "ChangeTried",
    "ExceededLimit",
    "Figure",
    "Finding",
    "LimitResult",
    "Report",
    "Ruling",
    "UndecidedLimit",
    "Verdict",
]

Edition = Literal["owner", "public"]
_FORMAT = 1


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What was measured on a release.

    Parameters
    ----------
    findings : tuple of Finding
    figures : tuple of Figure
    rows_original, rows_released : int
    sizes : mapping
        How many rows were looked at, and the time limit where one was given.
    seconds : dict
        How long each measure took.
    notes : tuple of str
        What a reader must know of the rows and cells that were measured.
    rows_held_out : int
        Rows of the control group.
    verdict : Verdict or None
        Verdict of a policy; None if none was applied.
    certificate : mapping or None
        Document of the certificate of the release, which its pages show.
    frame : {"arrow", "pandas", "polars"}
        Kind of frame that the original came in.
    target : str or None
        The column that models were to predict.
    columns : tuple of ColumnRisk
        Contribution of each column to the risk, the largest first; for the owner.
    """

    findings: tuple[Finding, ...]
    figures: tuple[Figure, ...]
    rows_original: int
    rows_released: int
    sizes: Mapping[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rows_held_out: int = 0
    verdict: Verdict | None = None
    certificate: Mapping[str, Any] | None = None
    frame: str = "arrow"
    target: str | None = None
    columns: tuple[ColumnRisk, ...] = ()

    def __repr__(self) -> str:
        return f"Report({len(self.findings)} findings, {len(self.figures)} figures)"

    def __getitem__(self, name: str) -> Finding:
        """Find a finding by its name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """The whole report, for the owner, as a JSON document: see ``report-schema.json`` beside this module.

        How long it took is left out, so that a dry run gives the same document again.
        """
        entries = {name: getattr(self, name) for name in ("rows_original", "rows_released", "rows_held_out")}
        shown = ("name", "title", "caption", "alt", "public")
        return {
            "format": _FORMAT,
            **entries,
            "verdict": None if self.verdict is None else self.verdict.to_json(),
            "target": self.target,
            "columns": [plain(column) for column in self.columns],
            "sizes": self.sizes,
            "notes": list(self.notes),
            "findings": [finding.to_json() for finding in self.findings],
            "figures": [{key: getattr(figure, key) for key in shown} for figure in self.figures],
        }

    def to_html(self, *, edition: Edition = "owner", certificate: Mapping[str, Any] | None = None) -> str:
        """Write the report as one self-contained page.

        Parameters
        ----------
        edition : {"owner", "public"}
            The public edition holds public findings and figures only.
        certificate : mapping, optional
            The certificate's JSON document: what is claimed and what is refused; by default its own.
        """
        if edition not in ("owner", "public"):
            raise OptionError("a report has two editions; ask for 'owner' or 'public'")
        from sfumato.assess.page import write_page

        return write_page(self, edition=edition, certificate=certificate or self.certificate)

    def to_summary(self, *, certificate: Mapping[str, Any] | None = None) -> str:
        """Write one page that can be printed, for whoever signs for the release; it stays with the owner.

        Parameters
        ----------
        certificate : mapping, optional
            The certificate's JSON document; by default its own.
        """
        from sfumato.assess.page import write_summary

        return write_summary(self, certificate=certificate or self.certificate)

    def to_frame(self, kind: Literal["arrow", "pandas", "polars"] | None = None) -> Any:
        """The findings as a table, one a row, for the owner.

        Parameters
        ----------
        kind : {"arrow", "pandas", "polars"}, optional
            By default the kind of frame that the original came in; a pyarrow table where that is not known.
        """
        if kind not in (None, "arrow", "pandas", "polars"):
            raise OptionError(f"a report gives no {kind!r} frame; ask for 'arrow', 'pandas' or 'polars'")
        documents = [finding.to_json() for finding in self.findings]
        columns = {name: [each[key] for each in documents] for name, key, _ in _COLUMNS}
        for name, _, end in _COLUMNS:
            if end is not None:
                columns[name] = [None if ends is None else ends[end] for ends in columns[name]]
        table = pa.table(columns, _SCHEMA)
        return frame_of(table, kind or self.frame)

    def plot(self, name: str) -> Figure:
        """A figure by its name; a notebook shows it, and its ``to_svg()`` is a file. An unknown name lists all."""
        from sfumato.assess.page import visible_figures

        figures = {figure.name: figure for figure in visible_figures(self.figures, owner=True)}
        if name not in figures:
            there = ", ".join(repr(known) for known in figures) or "none, for no figure was drawn"
            raise OptionError(f"no figure is named {name!r}; choose one of: {there}")
        return figures[name]

    def _repr_html_(self) -> str:
        """Show the owner's page in a notebook, in a frame of its own: its style stays inside."""
        return framed_page("sfumato report", self.to_html(edition="owner"))

    def summary(self, width: int | None = None, most: int = 8) -> str:
        """Verdict, risk and utility in a few lines of plain text, for the owner.

        Parameters
        ----------
        width : int, optional
            Columns of the terminal, which lines keep within; by default none is broken.
        most : int
            Lines that there may be; what matters least is left out.
        """
        verdict, *rest = self.lines() if self.verdict is not None else [None, *self.lines()]
        first = [] if verdict is None else [verdict]
        return "\n".join(fitting([*first, *((0, note) for note in self.notes), *rest], width, most))

    def lines(self) -> list[tuple[int, str]]:
        """Verdict, risk, utility, columns and what to try in a line each, for the owner.

        The numbers are ranks for `sfumato.assess.plain.fitting`: lines with the highest rank are left out first.
        """
        verdict, columns = self.verdict, ", ".join(f'"{column}"' for column, _ in risky_columns(self.columns))
        attack_named = verdict is not None and any(each.finding for each in verdict.exceeded[:1])
        return [
            *(() if verdict is None else ((0, verdict.short_sentence()),)),
            *(((3, verdict.basis),) if verdict is not None and verdict.basis else ()),
            (
                4 if attack_named and not known_rows_sentence(self.findings) else 1,
                f"Risk: {risk_sentence(self.findings, self.verdict)}",
            ),
            (1, f"Utility: {use_sentence(self.findings, self.target, short=True)}"),
            *(((5, f"Columns contributing most to risk: {columns}."),) if columns else ()),
            *(() if verdict is None else ((2, f"To try next:  {line}") for line in verdict.to_try[:1])),
            *(() if verdict is None or verdict.tried is None or verdict.to_try else ((2, verdict.none_found),)),
        ]


_TEXT, _NUMBER = pa.string(), pa.float64()
_COLUMNS: tuple[tuple[str, str, int | None], ...] = (
    ("name", "name", None),
    ("family", "family", None),
    ("status", "status", None),
    ("value", "value", None),
    ("low", "interval", 0),
    ("high", "interval", 1),
    ("baseline", "baseline", None),
    ("baseline_low", "baseline_interval", 0),
    ("baseline_high", "baseline_interval", 1),
    ("control", "control", None),
    ("control_low", "control_interval", 0),
    ("control_high", "control_interval", 1),
    ("excess", "excess", None),
    ("attempts", "attempts", None),
    ("direction", "direction", None),
    ("range_low", "range", 0),
    ("range_high", "range", 1),
    ("unit", "unit", None),
    ("public", "public", None),
    ("meaning", "meaning", None),
    ("reason", "reason", None),
)
_TYPES = {"attempts": pa.int64(), "public": pa.bool_()}
_WORDS = ("name", "family", "status", "direction", "unit", "meaning", "reason")
_SCHEMA = pa.schema([(name, _TYPES.get(name, _TEXT if name in _WORDS else _NUMBER)) for name, _, _ in _COLUMNS])
