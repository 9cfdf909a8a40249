"""What a notebook shows: escaped, small, in the colours of the page around it."""

from __future__ import annotations

from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.core.pages import html_table

ODD = "<script>alert(1)</script>&\x1b[31m"


def people(library: Any = pa) -> Any:
    columns = {ODD: ["a", "b"] * 30, "age": [20 + 7 * row % 41 for row in range(60)]}
    return pa.table(columns) if library is pa else library.DataFrame(columns)


@pytest.fixture(scope="module")
def release() -> sf.Release:
    return sf.sanitize(people(pl), k=6, effort="fast", seed=1, target=ODD, time_limit=0.01)


@pytest.mark.parametrize("part", ["release", "certificate", "schema", "report"])
def test_what_is_shown_is_escaped_and_can_be_seen_on_any_page(release: sf.Release, part: str) -> None:
    shown = (release if part == "release" else getattr(release, part))._repr_html_()
    assert "<script" not in shown
    assert part == "report" or "\x1b" not in shown
    assert part == "report" or len(shown) < 20_000
    assert "#fff" not in shown.partition("srcdoc")[0]


def test_the_schema_names_its_columns_and_the_certificate_its_claims(release: sf.Release) -> None:
    assert "&lt;script&gt;" in release.schema._repr_html_()
    shown = release.certificate._repr_html_()
    assert "DRY RUN" in shown
    assert shown.count(">refused<") == len(release.certificate.refused)
    assert "made with a seed" in release._repr_html_()
    assert "nothing was measured" in sf.sanitize(people(), k=6, effort="fast", seed=1, report=False)._repr_html_()


def test_a_report_shows_its_certificate_wherever_it_is_shown(release: sf.Release) -> None:
    assert release.report is not None
    assert release.report.certificate == release.certificate.to_document()
    claim = release.certificate.claims[0].claim
    assert claim.split()[0] in release.report.to_html()
    assert release.report.to_html() == release.report.to_html(certificate=release.certificate.to_document())


def test_findings_come_in_the_kind_of_frame_that_came_in(release: sf.Release) -> None:
    report = release.report
    assert report is not None
    assert isinstance(report.to_frame(), pl.DataFrame)
    assert isinstance(report.to_frame("pandas"), pd.DataFrame)
    assert isinstance(report.to_frame("arrow"), pa.Table)
    compared = sf.evaluate(people(pd), people(pl), seed=1, time_limit=0.01)
    assert isinstance(compared.to_frame(), pd.DataFrame)
    assert compared.to_frame().shape == compared.to_frame("polars").shape


def test_long_cells_are_cut_and_many_rows_counted() -> None:
    shown = html_table("Many", [("x" * 1_000, str(row)) for row in range(300)], ("word", "row"))
    assert "x" * 401 not in shown
    assert "and 100 more" in shown
    assert shown.count("<tr>") == 202
