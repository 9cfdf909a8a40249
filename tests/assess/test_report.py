"""The page: self-contained, well-formed, escaped, and silent about the original in its public edition."""

from __future__ import annotations

import datetime
import itertools
import json
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from sfumato.assess import page
from sfumato.assess.figures import marginals
from sfumato.assess.figures.association import Links, association_figures
from sfumato.assess.report import Report
from tests.assess.cases import ROWS, constant_table, draw_table, measure, report_of, workings

CERTIFICATE: dict[str, Any] = {
    "randomness": "rehearsal",
    "method": "condense-paper",
    "parameters": {"k": 10},
    "rows_in": ROWS,
    "rows_out": ROWS,
    "claims": [{"claim": "Ten together", "kind": "proved", "basis": "AY05", "assumes": ["nothing"]}],
    "refused": [{"claim": "Nobody can be found", "because": "no theorem says so"}],
    "levels": {"asked_min": 10, "asked_max": 10, "smallest_group": 10, "groups": 60, "violations": 0},
}
EDITIONS = ("owner", "public")
VOID = {"meta", "br", "img", "hr", "link", "input"}


class Page(HTMLParser):
    """Collects what the checks look at and insists that tags close in order."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def html_of(edition: str, report: Report | None = None, certificate: dict[str, Any] | None = CERTIFICATE) -> str:
    found = report if report is not None else report_of("redraw")
    return found.to_html(edition="owner" if edition == "owner" else "public", certificate=certificate)


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_page_is_well_formed_and_its_ids_do_not_repeat(edition: str) -> None:
    page = Page(html_of(edition))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    known = {f"#{name}" for name in ids}
    for _, attrs in page.tags:
        for key in ("href", "xlink:href"):
            assert key not in attrs or attrs[key] in known
        for name in (attrs.get("aria-labelledby") or "").split():
            assert name in ids


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_page_loads_nothing_and_runs_nothing(edition: str) -> None:
    html = html_of(edition)
    assert not re.search(r"https?://(?!www\.w3\.org/(2000/svg|1999/xlink)\")", html)
    assert "@import" not in html
    tags = {tag for tag, _ in Page(html).tags}
    assert not tags & {"script", "link", "iframe", "img", "object"}


@pytest.mark.parametrize("edition", EDITIONS)
def test_headings_go_down_one_step_at_a_time(edition: str) -> None:
    levels = [int(tag[1]) for tag, _ in Page(html_of(edition)).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("edition", EDITIONS)
def test_promised_comes_first_then_measured_then_what_must_not_be_said(edition: str) -> None:
    html = html_of(edition)
    places = [html.index(f'<h2 id="{name}-title"') for name in ("promised", "measured", "not-said", "figures")]
    assert places == sorted(places)
    assert "Ten together" in html
    assert "no theorem says so" in html
    assert "group condensation" in html
    assert "anonym" not in html.lower()


def test_a_rehearsal_is_marked_and_a_release_is_not() -> None:
    assert "Rehearsal: made with a seed, not for release" in html_of("public")
    assert "Rehearsal" not in html_of("public", certificate={**CERTIFICATE, "randomness": "release"})


def test_without_a_certificate_nothing_is_promised() -> None:
    html = html_of("owner", certificate=None)
    assert "nothing is on record" in html
    assert "measurements, not promises" in html


def test_the_public_edition_holds_public_findings_and_figures_only() -> None:
    text = " ".join(Page(html_of("public")).text)
    assert "Smallest group" in text
    for hidden in ("Median group", "Information loss", "Records that got their level", "Level asked, level got"):
        assert hidden not in text
        assert hidden in " ".join(Page(html_of("owner")).text)


def test_every_drawing_is_well_formed_has_a_title_and_its_text_stays_text() -> None:
    for figure in report_of("redraw").figures:
        root = ElementTree.fromstring(figure.svg)
        assert root.attrib["role"] == "img"
        title = root.find("{http://www.w3.org/2000/svg}title")
        assert title is not None
        assert title.text == figure.alt
        assert root.find(".//{http://www.w3.org/2000/svg}text") is not None
        assert not re.search(r"#0[0-9a-f]{5}", figure.svg)  # every colour is the page's own
        assert "<metadata" not in figure.svg


def test_the_owner_sees_both_tables_and_the_public_the_released_one() -> None:
    figures = {(figure.name, figure.public): figure for figure in report_of("redraw").figures}
    assert ">original</text>" in figures["marginals/x", False].svg
    assert ">original</text>" not in figures["marginals/x", True].svg
    assert ("association/difference", True) not in figures
    assert not any(public for name, public in figures if name.startswith(("groups", "distances")))


def canary_table() -> tuple[pa.Table, pa.Table]:
    """Plant an extreme number, a text and a date that nobody else has; the released table does without them."""
    original = draw_table(1)
    x, count, colour, born = (original.column(name).to_pylist() for name in ("x", "count", "colour", "born"))
    x[0], count[0], colour[0], born[0] = 987654.25, 876543, "canarybird", datetime.date(2213, 11, 27)
    for place, name, cells in ((0, "x", x), (2, "count", count), (3, "colour", colour), (5, "born", born)):
        original = original.set_column(place, name, pa.array(cells, original.schema.field(name).type))
    return original, draw_table(2)


def test_no_planted_value_is_in_the_public_edition() -> None:
    original, released = canary_table()
    report = measure(original, released, workings=workings(), holdout=draw_table(3))
    public = html_of("public", report)
    for canary in ("canarybird", "987654", "987,654", "876543", "876,543", "2213"):
        assert canary not in public
    assert "canarybird" in html_of("owner", report)


def test_the_released_table_alone_determines_the_public_figures() -> None:
    original, released = canary_table()
    planted = [figure for figure in measure(original, released).figures if figure.public]
    plain = [figure for figure in measure(draw_table(4), released).figures if figure.public]
    assert planted == plain


def test_names_and_categories_stay_text_whatever_they_hold() -> None:
    evil = "<script>alert(1)</script>"
    table = pa.table(
        {
            f"{evil}&$x$\n\x01": np.random.default_rng(1).normal(size=60),
            "b": [evil, "$\\frac{1}{2}$", "\u6f22\u5b57"] * 20,
        }
    )
    report = measure(table, table)
    certificate = {**CERTIFICATE, "claims": [{"claim": evil, "kind": evil, "basis": evil, "assumes": evil}]}
    for edition in EDITIONS:
        html = html_of(edition, report, certificate)
        assert "<script" not in html
        assert "script" not in {tag for tag, _ in Page(html).tags}
        assert "\u6f22\u5b57" in html
    for figure in report.figures:
        ElementTree.fromstring(figure.svg)


def test_many_columns_are_drawn_up_to_a_limit_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (marginals, page):
        monkeypatch.setattr(module, "MOST_COLUMNS", 2)
    report = measure(draw_table(1, 60), draw_table(2, 60))
    assert sum(figure.name.startswith("marginals/") for figure in report.figures) == 4
    assert "At most 2 columns are drawn" in html_of("public", report)


def test_a_heat_map_of_very_many_columns_is_an_image() -> None:
    names = [f"c{place}" for place in range(41)]
    for figure in association_figures(names, Links(*[np.eye(41)] * 3)):
        ElementTree.fromstring(figure.svg)
        assert "data:image/png" in figure.svg
        assert len(figure.svg) < 100_000


def test_a_constant_release_is_drawn() -> None:
    report = measure(draw_table(1, 80), constant_table(30), workings=workings(8, 80))
    for edition in ("owner", "public"):
        page = html_of(edition, report)
        Page(page)
        assert page.count("<svg") >= 2


def test_the_json_form_has_the_keys_that_others_read() -> None:
    document = json.loads(json.dumps(report_of("redraw").to_json(), allow_nan=False))
    assert document["format"] == 1
    wanted = {"name", "family", "value", "interval", "baseline", "control", "direction", "range", "meaning", "status"}
    for finding in document["findings"]:
        assert wanted | {"because"} <= set(finding)
        assert finding["family"] in ("privacy", "utility", "attack")


def test_the_summary_is_a_few_plain_lines() -> None:
    summary = report_of("redraw").summary()
    assert len(summary.splitlines()) < 15
    assert "Smallest group: 10" in summary
    assert repr(report_of("redraw")).startswith("Report(")
