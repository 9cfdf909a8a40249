"""A report: findings and figures, as JSON, as a page in two editions, and as a few lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from sfumato.assess.figures.svg import Figure
from sfumato.assess.findings import Finding
from sfumato.assess.words import measured_sentence, show, spoken_name

__all__ = ["Edition", "Figure", "Finding", "Report"]

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
    sizes : dict
        How many rows were looked at, and the budget where one was given.
    seconds : dict
        How long each measure took.
    """

    findings: tuple[Finding, ...]
    figures: tuple[Figure, ...]
    rows_original: int
    rows_released: int
    sizes: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Report({len(self.findings)} findings, {len(self.figures)} figures)"

    def __getitem__(self, name: str) -> Finding:
        """Find a finding by its name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """Give the whole report, for the owner, as a JSON document."""
        return {
            "format": _FORMAT,
            "rows_original": self.rows_original,
            "rows_released": self.rows_released,
            "sizes": self.sizes,
            "findings": [finding.to_json() for finding in self.findings],
            "figures": [
                {key: getattr(figure, key) for key in ("name", "title", "caption", "alt", "public")}
                for figure in self.figures
            ],
        }

    def to_html(self, *, edition: Edition, certificate: dict[str, Any] | None = None) -> str:
        """Write the report as one self-contained page.

        Parameters
        ----------
        edition : {"owner", "public"}
            The public edition holds public findings and figures only.
        certificate : dict, optional
            The certificate's JSON document: what was promised and what must not be said.
        """
        from sfumato.assess.page import write_page

        return write_page(self, edition=edition, certificate=certificate)

    def summary(self) -> str:
        """Say the most telling findings in a few lines of plain text."""
        lines = [
            f"{self.rows_original} original rows, {self.rows_released} released rows",
            measured_sentence(self.findings),
        ]
        for finding in self.findings:
            if finding.name in _TOLD and finding.value is not None:
                beside = "" if finding.baseline is None else f" (baseline {show(finding.baseline, finding.unit)})"
                way = finding.direction.value.replace("-", " ")
                lines.append(f"  {spoken_name(finding.name)}: {show(finding.value, finding.unit)}{beside}, {way}")
        unknown = [finding for finding in self.findings if finding.value is None]
        if unknown:
            lines.append(f"  not run: {len(unknown)}, for reasons given in the report")
        return "\n".join(lines)


_TOLD = (
    "group-size-smallest",
    "level-met",
    "closest-record-distance",
    "closer-than-real-neighbours",
    "covariance-compatibility",
    "covariance-compatibility-standardized",
    "information-loss",
)
