"""The page: self-contained, well-formed, escaped, and silent about the original in its public edition."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import re
from functools import cache
from html import unescape
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.assess import page
from sfumato.assess.figures import Figure, bars, columns, draw
from sfumato.assess.figures.bars import attack_figures, model_figures
from sfumato.assess.figures.columns import association_figures
from sfumato.assess.findings import ColumnRisk, Family, excess_interval
from sfumato.assess.glossary import percent_range, spoken_name
from sfumato.assess.plain import fitting, risk_sentence, risky_columns, risky_kinds, use_sentence
from sfumato.assess.report import ExceededLimit, LimitResult, Report, Ruling, UndecidedLimit, Verdict
from sfumato.assess.utility.association import AssociationMatrices
from sfumato.core.errors import OptionError
from tests.assess.cases import ROWS, constant_table, draw_table, measure, report_of, workings
from tests.assess.made_up import attack, attacks, findings, model
from tests.examples import sized

CERTIFICATE: dict[str, Any] = {
    "randomness": "dry-run",
    "method": "condense-paper",
    "parameters": {"k": 10},
    "rows_in": ROWS,
    "rows_out": ROWS,
    "claims": [{"claim": "Ten together", "kind": "proved", "basis": "AY05", "assumes": ["nothing"]}],
    "refused": [{"claim": "Nobody can be found", "reason": "no theorem says so"}],
    "levels": {"smallest_group": 10, "groups": 60, "violations": 0},
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


def text_of(html: str) -> str:
    """Visible text of a piece of a page."""
    return unescape(re.sub(r"[ \n]+", " ", re.sub(r"<[^>]*>", "", html))).replace(" .", ".")


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
    policy, style = (
        html.index('http-equiv="Content-Security-Policy" content="default-src \'none\';'),
        html.index("<style>"),
    )
    assert policy < style
    assert "script-src" not in html
    tags = {tag for tag, _ in Page(html).tags}
    assert not tags & {"script", "link", "iframe", "img", "object"}


@pytest.mark.parametrize("edition", EDITIONS)
def test_headings_go_down_one_step_at_a_time(edition: str) -> None:
    levels = [int(tag[1]) for tag, _ in Page(html_of(edition)).tags if re.fullmatch(r"h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_report_answers_in_a_fixed_order_and_folds_the_details_into_at_most_eight_boxes(edition: str) -> None:
    html = html_of(edition, made_up_report())
    fourth = "change" if edition == "owner" else "promised"
    places = [html.index(f'<h2 id="{name}-title"') for name in ("verdict", "risk", "utility", fourth, "rest")]
    assert places == sorted(places)
    assert places[-1] < html.index("<details")
    assert 5 <= html.count("<details") == html.count("</details>") <= 8
    assert html.count('class="name"') == len(draw_table(1).column_names)  # one small picture a column
    assert "Ten together" in html
    assert "no theorem says so" in html
    assert "group condensation" in html
    assert "is anonym" not in html.lower().replace("whether the release is anonymous in the sense of the gdpr", "")


def test_a_dry_run_is_marked_and_a_release_is_not() -> None:
    assert "Dry run: seeded, not for release" in html_of("public")
    assert "Dry run:" not in html_of("public", certificate={**CERTIFICATE, "randomness": "release"})


def test_without_a_certificate_nothing_is_promised() -> None:
    html = html_of("owner", certificate=None)
    assert "This table has no certificate, so nothing is proved" in html
    assert "measurements, not proofs" in html


def test_the_public_edition_holds_public_findings_and_figures_only() -> None:
    text = " ".join(Page(html_of("public")).text)
    assert "Smallest group" in text
    for hidden in ("Median group", "Information loss", "Records at or above their level", "Level asked, level got"):
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


CANARIES = (987654.25, -765432.5, 876543.0)
WORD = "canarybird"


KINDS = ["x", "count", "colour", "born"]  # a column of each kind that is drawn in its own way
PLANTED = sized(200, ROWS)
COLUMNS = sized(KINDS, draw_table(1).column_names)


def canary_table() -> tuple[pa.Table, pa.Table]:
    """Plant extreme numbers, a text and a date that nobody else has; the released table does without them."""
    original = draw_table(1, PLANTED).select(COLUMNS)
    columns = {name: original.column(name).to_pylist() for name in original.column_names}
    columns["x"][:2] = CANARIES[:2]
    columns["count"][0], columns["colour"][0] = int(CANARIES[2]), WORD
    columns["born"][0] = datetime.date(2213, 11, 27)
    return pa.table({name: pa.array(cells, original.schema.field(name).type) for name, cells in columns.items()}), (
        draw_table(2, PLANTED).select(COLUMNS)
    )


def numbers_in(text: str) -> list[float]:
    """Read every number of a text, with the thousands and the signs that pages write."""
    found = re.findall(r"[-\u2212]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", text)
    return [float(number.replace(",", "").replace("\u2212", "-")) for number in found]


def near_a_canary(html: str) -> list[float]:
    """List the numbers that a reader sees within one part in fifty of a planted one, or of its year."""
    seen = numbers_in(" ".join(Page(html).text))
    planted = [*CANARIES, *(abs(canary) for canary in CANARIES)]
    return [each for each in seen if each == 2213 or any(abs(each - one) <= abs(one) / 50 for one in planted)]


@pytest.mark.drawn
def test_no_planted_value_is_in_the_public_edition_in_any_rounding() -> None:
    original, released = canary_table()
    report = measure(original, released, workings=workings(20, PLANTED), holdout=draw_table(3, PLANTED).select(COLUMNS))
    public = html_of("public", report)
    for canary in (WORD, "98765", "987,6", "76543", "765,4", "876,5", "9.9e+05"):
        assert canary not in public
    assert not re.search(r"(?<![\d.])2213", public)  # digits of a coordinate are no year
    assert near_a_canary(public) == []
    assert WORD in html_of("owner", report)


def test_the_search_for_planted_values_finds_them_in_other_roundings() -> None:
    for leak in ("988,000", "9.88e+05", "980000", "-770,000", "\u2212765432", "born 2213"):
        assert near_a_canary(f"<p>largest {leak}.</p>"), leak
    assert not near_a_canary("<p>600 rows, 0.75, 12,000, 95 %</p>")


@pytest.mark.drawn
@pytest.mark.usefixtures("public_figures")
def test_no_planted_number_of_a_sanitized_table_is_in_the_public_edition() -> None:
    original, _ = canary_table()
    release = sfumato.sanitize(
        original, sfumato.Condensation(k=20, effort=sized("fast", "default")), seed=1, holdout=0.1
    )
    assert release.report is not None
    public = release.report.to_html(edition="public", certificate=release.certificate.to_document())
    assert near_a_canary(public) == []


@pytest.fixture
def public_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw what the public edition shows, and nothing of the owner's."""
    leave_undrawn(monkeypatch, but_public=True)


def leave_undrawn(patch: pytest.MonkeyPatch, *, but_public: bool) -> None:
    """Keep all that is said of a figure, and draw it only where it is public, or not at all."""

    def draw_some(name: str, paint: Any, *, public: bool, **told: Any) -> Figure:
        said = {key: told[key] for key in ("title", "caption", "alt")}
        if public and but_public:
            return draw(name, paint, public=True, **told)
        return Figure(name, svg="<svg></svg>", public=public, **said)

    for drawing in (bars, columns):
        patch.setattr(drawing, "draw", draw_some)


@pytest.mark.drawn
@pytest.mark.usefixtures("without_catalogue", "public_figures")
def test_the_released_table_alone_determines_the_figures_of_cells_in_the_public_edition() -> None:
    original, released = canary_table()
    told = ("attacks/", "models/")  # drawn from public findings, not from cells
    planted, plain = (
        [figure for figure in measure(table, released).figures if figure.public and not figure.name.startswith(told)]
        for table in (original, draw_table(4, PLANTED).select(COLUMNS))
    )
    assert planted == plain
    assert {figure.name.partition("/")[0] for figure in plain} == {"components", "association", "marginals"}


@pytest.mark.drawn
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


@pytest.mark.slow
@pytest.mark.usefixtures("without_catalogue")
def test_many_columns_are_drawn_up_to_a_limit_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (columns, page):
        monkeypatch.setattr(module, "MOST_COLUMNS", 2)
    report = measure(draw_table(1, 60), draw_table(2, 60))
    assert sum(figure.name.startswith("marginals/") for figure in report.figures) == 4
    assert "The first 2 columns of the table." in html_of("public", report)


@pytest.mark.slow
def test_a_heat_map_of_very_many_columns_is_an_image() -> None:
    names = [f"c{place}" for place in range(41)]
    for figure in association_figures(names, AssociationMatrices(*[np.eye(41)] * 3)):
        ElementTree.fromstring(figure.svg)
        assert "data:image/png" in figure.svg
        assert len(figure.svg) < 100_000


def constant_report() -> Report:
    """The report of a constant table, measured on a time limit."""
    original, released = (
        table.select(sized(["x", "colour"], COLUMNS)) for table in (draw_table(1, 80), constant_table(30))
    )
    return measure(original, released, workings=workings(8, 80), time_limit=5.0)


@pytest.mark.slow
def test_a_constant_release_is_drawn() -> None:
    report = constant_report()
    for edition in ("owner", "public"):
        page = html_of(edition, report)
        Page(page)
        assert page.count("<svg") >= 2


def test_the_verdict_stands_first_for_the_owner_and_without_numbers_for_others() -> None:
    report = made_up_report()
    owner, public = (html_of(edition, report).partition("<header>")[2] for edition in EDITIONS)
    for page_ in (owner, public):
        assert page_.partition("</h1>")[2].lstrip().startswith('<section class="verdict verdict-does-not-meet"')
        assert "Does not meet policy &#34;research&#34;." in page_
    box = public.partition("</section>")[0]
    assert not re.search(r"0\.\d|gain|group|held|sfumato", re.sub(r"<[^>]*>", "", box))
    for words in (
        "Excess record linkage 12\u00a0% (95\u00a0% CI 10\u201315\u00a0%); limit 5\u00a0%.",
        'Excess attribute inference of "column 1" 7.7\u00a0% (95\u00a0% CI 6\u20139\u00a0%); limit 5\u00a0%.',
        "The policy requires groups of at least 10 people; the smallest has 5.",
        "The policy requires groups of at least 10 people; the method forms no groups.",
        "The policy requires a control group; no records were held out.",
        "The policy requires rare categories to be hidden; the release may contain some.",
        "Membership inference AUC was not judged: the attack was not run (it failed)",
        "Membership inference TPR at 1\u00a0% FPR was not judged: it needs a control group of 1,000 records.",
        'Does not meet policy "research". Do not release it.',
    ):
        assert words in text_of(owner.partition("</section>")[0]), words
        if not words.startswith("Does"):
            assert words not in text_of(public), words
    for words in (
        "2 attacks (of 9) succeed significantly more often on members than on the control group.",
        "Record linkage: can an attacker who knows a person's record find a released record for it?",
        "Predicting the target: AUC 0.800 (95\u00a0% CI 0.780\u20130.820; original 0.820, majority class 0.5).",
        "--k 40 --holdout 0.3 --overwrite",
    ):
        assert words in text_of(owner.partition('id="rest"')[0]), words
    assert "--overwrite" not in public
    assert "verdict-" not in html_of("owner", dataclasses.replace(report, verdict=None)).partition("<body>")[2]
    said = "Excess record linkage 12\u00a0% (95\u00a0% CI 10\u201315\u00a0%); limit 5\u00a0%."
    assert report.summary().startswith(f'Does not meet policy "research". {said}')
    unasked = dataclasses.replace(report, verdict=dataclasses.replace(made_up_verdict(), asked=False))
    for edition in EDITIONS:
        box = html_of(edition, unasked).partition("</section>")[0]
        assert "No policy was named, so &#34;research&#34; was applied. Nothing was withheld; this is not" in box
    assert "(no policy was named)" in unasked.summary()


def test_a_verdict_stays_text_whatever_it_holds() -> None:
    evil = "<script>alert(1)</script>"
    report = Report((), (), 1, 1, verdict=made_up_verdict(evil, evil))
    for edition in EDITIONS:
        html = html_of(edition, report)
        assert "<script" not in html
        assert "script" not in {tag for tag, _ in Page(html).tags}


@pytest.mark.parametrize(
    ("ruling", "heading", "clause"),
    [
        (Ruling.MEETS, 'Meets policy "ours (edited)"', "the release meets policy"),
        (Ruling.DOES_NOT_MEET, 'Does not meet policy "ours (edited)"', "the release does not meet policy"),
        (Ruling.INCONCLUSIVE, 'Inconclusive for policy "ours (edited)"', "the release is inconclusive for policy"),
    ],
)
def test_an_outcome_is_told_in_words(ruling: Ruling, heading: str, clause: str) -> None:
    verdict = Verdict("ours", ruling, edited=True)
    assert (verdict.heading, verdict.sentence()) == (heading, f"{heading}.")
    assert verdict.clause == f'{clause} "ours (edited)"'


def schema() -> dict[str, Any]:
    text = files("sfumato.assess").joinpath("report-schema.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@cache
def made_up_report() -> Report:
    """Join what was measured, but for attacks and models, with made-up findings of every kind."""
    report, more = report_of("redraw"), findings()
    told = {finding.name.partition("/")[0] for finding in more}
    kept = [f for f in report.findings if f.family is not Family.ATTACK and f.name.partition("/")[0] not in told]
    drawn = [figure for figure in report.figures if not figure.name.startswith(("attacks/", "models/"))]
    figures = (*attack_figures(more), *model_figures(more), *drawn)
    return dataclasses.replace(report, findings=(*kept, *more), figures=figures, verdict=made_up_verdict())


def made_up_verdict(name: str = "research", column: str = "column 1") -> Verdict:
    """One with everything that a verdict may hold."""
    return Verdict(
        name,
        Ruling.DOES_NOT_MEET,
        (
            ExceededLimit("linkage-excess", "linkage-rank", 0.1234, 0.05, (0.1, 0.15)),
            ExceededLimit("attribute-excess", f"attribute-inference-all-columns/{column}", 0.077, 0.05, (0.06, 0.09)),
            ExceededLimit("min_group_size", None, 5, 10),
            ExceededLimit("min_group_size", None, None, 10),
            ExceededLimit("control", None, False, True),
            ExceededLimit("rare", "rarest-category", "shown", "hidden"),
        ),
        (
            UndecidedLimit("membership-auc", "membership-auc-classifier", "the attack was not run (it failed)"),
            UndecidedLimit("membership-tpr", None, "it needs a control group of 1,000 records", needed=False),
        ),
        (f"sfumato sanitize people.csv -o out --target '{column}' --k 40 --holdout 0.3 --overwrite",),
        limits=(
            LimitResult(
                "linkage-excess", "linkage-rank", 0.1714, 0.048, 0.1234, (0.1, 0.15), 0.05, Ruling.DOES_NOT_MEET
            ),
        ),
    )


def test_every_report_fits_the_published_schema() -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: schema not checked")
    validator = jsonschema.Draft202012Validator(schema())
    validator.check_schema(schema())
    with pytest.MonkeyPatch.context() as patch:
        leave_undrawn(patch, but_public=False)  # no drawing is in this form of a report
        constant = constant_report()
    for report in (report_of("redraw"), made_up_report(), constant, Report((), (), 0, 0)):
        validator.validate(json.loads(json.dumps(report.to_json(), allow_nan=False)))


@pytest.mark.parametrize(
    "change", [{"family": "luck"}, {"value": None}, {"value": "much"}, {"interval": [0.0]}, {"status": "not-run"}]
)
def test_the_schema_refuses_what_is_no_finding(change: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed: schema not checked")
    document = Report((attack("linkage-rank", 3, 2, 0.1),), (), 5, 5).to_json()
    document["findings"][0].update(change)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


def test_the_schema_names_every_key_of_a_report() -> None:
    document = made_up_report().to_json()
    definitions = schema()["$defs"]
    assert set(document) == set(schema()["properties"]) == set(schema()["required"])
    assert document["format"] == schema()["properties"]["format"]["const"]
    assert set(document["sizes"]) == set(schema()["properties"]["sizes"]["properties"])
    for kind, name in (("findings", "finding"), ("figures", "figure")):
        for each in document[kind]:
            assert set(each) == set(definitions[name]["properties"]) == set(definitions[name]["required"])


def test_the_findings_are_a_table() -> None:
    report = made_up_report()
    table = report.to_frame()
    assert isinstance(table, pa.Table)
    assert table.num_rows == len(report.findings)
    (row,) = [row for row in table.to_pylist() if row["name"] == "linkage-rank"]
    assert (row["value"], row["control"], row["attempts"]) == (0.05, 0.048, 2000)
    assert row["low"] < row["value"] < row["high"]
    assert (row["range_low"], row["range_high"]) == (0.0, 1.0)
    (idle,) = [row for row in table.to_pylist() if row["name"] == "label-inference"]
    assert idle["value"] is None
    assert idle["reason"]
    assert Report((), (), 0, 0).to_frame().schema == table.schema


def test_the_findings_are_a_frame_of_other_libraries() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    report = made_up_report()
    frame = report.to_frame("pandas")
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["name"]) == [finding.name for finding in report.findings]
    assert polars.from_arrow(report.to_frame()).shape == frame.shape
    with pytest.raises(OptionError, match="ask for 'arrow', 'pandas' or 'polars'"):
        report.to_frame("excel")  # type: ignore[arg-type]


def test_a_figure_is_found_by_its_name() -> None:
    report = made_up_report()
    assert ">original</text>" in report.plot("marginals/x").svg  # of twins the owner's
    assert report.plot("attacks/all")._repr_svg_().startswith("<svg")
    with pytest.raises(OptionError, match=r"no figure is named 'risk'; choose one of: 'attacks/all'"):
        report.plot("risk")
    with pytest.raises(OptionError, match="no figure was drawn"):
        Report((), (), 0, 0).plot("attacks/all")


def test_a_notebook_shows_the_owners_page_in_a_frame_of_its_own() -> None:
    report = made_up_report()
    shown = Page(report._repr_html_())
    ((tag, attrs),) = shown.tags
    assert tag == "iframe"
    assert attrs["sandbox"] == ""
    assert attrs["title"]
    assert attrs["srcdoc"] == report.to_html() == report.to_html(edition="owner")


def test_each_row_has_all_that_a_finding_says() -> None:
    text = " ".join(Page(html_of("public", made_up_report())).text)
    row = re.sub(r"[ \n]+", " ", text[text.rindex("Record linkage, ranks ") :])
    for part in (
        "5\u00a0%",
        "4.13\u00a0% to 6.04\u00a0%",
        "2,000 attempts",
        "4.8\u00a0%",
        "3.95\u00a0% to 5.83\u00a0%",
    ):
        assert part in row[:300]
    assert "lower is better 0\u00a0% to 100\u00a0%" in row[:300]
    assert "One plain sentence" in row[:400]


def test_findings_of_single_columns_and_classes_are_folded_with_their_count() -> None:
    html = html_of("owner", made_up_report())
    assert "Marginal distance, by column (6)" in html
    assert "Recall, gradient boosting, by class (4)" in html
    folds = re.findall(r"<details>\n<summary[^>]*>(.*?)</summary>", html)
    assert len(folds) == html.count("<details") == html.count("</details>")
    assert folds[:2] == ["Claims of the certificate", "Attacks"]
    tables = re.findall(r'<h3 id="attacks-\d+">(.*?)</h3>', html)
    assert tables[:2] == ["Attacks with a significant excess (2)", "Other attacks (9)"]
    assert tables[-1] == "Not run, with the reason (1)"
    assert "by class" not in html_of("public", made_up_report())


def test_what_was_not_run_says_why_and_is_not_among_the_measured() -> None:
    idle = Report(tuple(finding for finding in attacks() if finding.value is None), (), 5, 5)
    html = html_of("public", idle)
    assert "not run" in html
    assert "Reason: no column is named as the one to predict." in html
    assert "Not run, with the reason (1)" in html


def test_how_much_was_looked_at_is_told_and_to_the_owner_how_long_it_took() -> None:
    sizes = {"attempts": 1234, "training": 2345, "testing": 3456, "queries": 456, "estimate": 7.5, "time_limit": 8.0}
    seconds = {"columns": 1.25, "slow-attack": 3.75, "all": 6.5}
    report = dataclasses.replace(report_of("redraw"), sizes=sizes, seconds=seconds)
    for edition in EDITIONS:
        text = " ".join(Page(html_of(edition, report)).text)
        for told in ("1,234", "2,345", "3,456", "456"):
            assert told in text
        assert ("6.5" in text and "slow attack 3.8 s" in text) is (edition == "owner")
        assert ("Time limit, seconds" in text) is (edition == "owner")
    assert "seconds" not in report.to_json()


def test_the_risk_names_the_attack_with_the_largest_excess_and_its_interval() -> None:
    said = risk_sentence(attacks())
    low, high = excess_interval(attack("linkage-mahalanobis", 260, 36, 0.0005)) or (0.0, 0.0)
    assert said == (
        "2 attacks (of 9) succeed significantly more often on members than on the control group. Largest excess: "
        f"record linkage, 11\u00a0% (95\u00a0% CI {percent_range(low, high)}): 13\u00a0% on members, 1.8\u00a0% on the "
        "control group. 1 attack was not run; the risk from it is unknown."
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own-row-linkage-rank", "record linkage"),
        ("linkability", "linkability"),
        ("attribute-inference-half-columns", "attribute inference"),
        ("label-inference", "attribute inference of the target"),
        ("membership-tpr", "membership inference, TPR at 1\u00a0% FPR"),
        ("singling-out-univariate", "singling out"),
        ("outlier-inference", "attribute inference on outliers"),
        ("membership-outliers", "membership inference on outliers"),
    ],
)
def test_every_kind_of_attack_has_its_established_name(name: str, words: str) -> None:
    found = attack(name, 300, 20, 0.001)
    low, high = excess_interval(found) or (0.0, 0.0)
    excess = (
        f"14\u00a0% (95\u00a0% CI {percent_range(low, high)}): 15\u00a0% on members, 1\u00a0% on the control group."
    )
    assert risk_sentence([found]).endswith(f"Largest excess: {words}, {excess}")


def test_a_score_is_an_area_under_the_curve() -> None:
    scored = dataclasses.replace(attack("membership-auc-classifier", 1020, None, 0.5), unit="")
    said = risk_sentence([scored])
    assert said.startswith(
        "No attack (of 1) succeeds significantly more often than the baseline explains. Largest excess:"
    )
    assert said.endswith("membership inference, AUC 0.51 (guessing 0.50).")


def test_the_risk_sentence_agrees_with_what_the_verdict_judged() -> None:
    judged = LimitResult("linkage-excess", "linkage-rank", 0.2, 0.1, 0.1, (0.05, 0.15), 0.05, Ruling.INCONCLUSIVE)
    verdict = Verdict("research", Ruling.INCONCLUSIVE, limits=(judged,))
    said = risk_sentence([attack("linkage-rank", 300, 20, 0.001)], verdict)
    assert said.endswith(
        "10\u00a0% (95\u00a0% CI 5\u201315\u00a0%): 20\u00a0% on members, 10\u00a0% on the control group."
    )
    said = risk_sentence([attack("membership-outliers", 300, 20, 0.001)], verdict)
    assert said.endswith("on the control group (the policy has no limit on it).")
    assert "no limit" not in risk_sentence([attack("membership-outliers", 300, 20, 0.001)])


def test_chance_is_not_called_a_success() -> None:
    said = risk_sentence([attack("linkage-rank", 101, 100, 0.01), attack("linkage-euclid", 90, 100, 0.01)])
    assert said.startswith(
        "No attack (of 2) succeeds significantly more often on members than on the control group. Largest excess: "
    )


def test_utility_is_led_by_a_measure_above_chance() -> None:
    area = dataclasses.replace(model("auc-boosting", 0.718, 0.741, "", chance=0.5), interval=(0.7, 0.735))
    accuracy = model("accuracy-boosting", 0.95, 0.96)  # what always naming the commonest class gets, too
    weaker = model("auc-1nn", 0.73, 0.6, "", chance=0.5)  # learns less from the original
    some = [accuracy, weaker, area]
    assert use_sentence(some, "x", short=True) == 'Predicting "x": AUC 0.718 (original 0.741, majority class 0.5).'
    assert use_sentence(some, "x") == (
        'Predicting "x": AUC 0.718 (95\u00a0% CI 0.700\u20130.735; original 0.741, majority class 0.5).'
    )
    several = model("balanced-accuracy-logistic", 0.61, 0.66, "", chance=0.2)
    assert use_sentence([accuracy, several], "x", short=True) == (
        'Predicting "x": balanced accuracy 0.610 (original 0.660, majority class 0.2).'
    )
    number = model("response-r2-ridge", -0.1, 0.4, "", chance=0.0)
    assert use_sentence([number], None) == (
        "Predicting the target: R\u00b2 \u22120.100 (95\u00a0% CI \u22120.120 to \u22120.080; original 0.400, mean 0)."
    )


def test_other_tables_say_how_much_they_moved() -> None:
    assert "Distributions of single columns differ by" in use_sentence(report_of("redraw").findings[:60], None)
    assert "Associations between pairs of columns differ by" in use_sentence(report_of("redraw").findings[:60], None)
    assert "Utility was not measured" in use_sentence([], None)


def test_columns_that_carry_the_risk_are_named_with_their_reasons() -> None:
    risks = [
        ColumnRisk("a", 0.2, True, 0.1, 3),
        ColumnRisk("b", 0.9, False, 0.0, 0),
        ColumnRisk("c", None, False, 0, 1),
    ]
    assert [column for column, _ in risky_columns(risks)] == ["a", "c"]
    assert risky_columns(risks)[0][1] == (
        "excess attribute inference 20\u00a0%, makes 10\u00a0% of the records unique, 3 people have a rare value "
        "(fewer than 10 people) that the release contains"
    )
    (kind, reason), *others = risky_kinds(
        [attack("outlier-inference", 300, 20, 0.001), attack("linkability", 300, 20, 0.001)]
    )
    assert (kind, others) == ("Rare combinations of categories", [])
    assert reason.startswith("attribute inference on outliers, 14\u00a0% (95\u00a0% CI")
    assert risky_kinds(attacks()) == []
    report = dataclasses.replace(made_up_report(), columns=tuple(risks))
    assert "of the records unique" in html_of("owner", report)
    assert "of the records unique" not in html_of("public", report)


def test_caveats_of_many_rows_are_said_once() -> None:
    said = "A sentence; less is better, and what held-out people suffer too is no matter. Counted on 20 rows."
    rows = [dataclasses.replace(attack(f"linkage-{way}", 9, 5, 0.1), meaning=said) for way in ("rank", "euclid")]
    html = html_of("public", Report(tuple(rows), (), 5, 5))
    assert html.count("hat held-out people suffer too is no matter.") == 1
    assert "less is better" not in html
    assert html.count(">A sentence. Counted on 20 rows.<") == 2  # how many were looked at stays with its row
    other = attack("linkability", 9, 5, 0.1)
    html = html_of("public", Report((*rows, other), (), 5, 5))
    assert "Record linkage, ranks and 1 more: what held-out people suffer too is no matter." in html


def test_a_reference_stays_whole_and_a_count_follows_its_sentence() -> None:
    said = "A sentence. Shared by both. It proves nothing (Yao et al. 2025); counted on {} rows."
    rows = [
        dataclasses.replace(attack(f"linkage-{way}", 9, 5, 0.1), meaning=said.format(count))
        for count, way in enumerate(("rank", "euclid"), start=20)
    ]
    html = html_of("public", Report(tuple(rows), (), 5, 5))
    assert "<li>It proves nothing (Yao et al. 2025).</li>" in html
    assert ">A sentence; counted on 20 rows.<" in html
    assert ">A sentence; counted on 21 rows.<" in html


def test_one_page_sums_it_up_for_whoever_signs() -> None:
    page = made_up_report().to_summary(certificate=CERTIFICATE)
    text = " ".join(" ".join(Page(page).text).split())
    for words in (
        'Does not meet policy "research"',
        "Ten together",
        "Nobody can be found",
        "Stays with the data owner",
    ):
        assert words in text
    assert "sfumato verify FOLDER/release" in text
    assert "<svg" not in page
    assert len(text.partition("Release summary")[2].split()) < 450


def test_lines_keep_within_a_width_and_a_number() -> None:
    text = made_up_report().summary(60, most=8)
    assert all(len(line) <= 60 for line in text.splitlines() if "sfumato sanitize" not in line)
    assert len(text.splitlines()) <= 8
    assert fitting([(0, "To try next:  sfumato sanitize in.csv"), (1, "b")], 20, 2) == [
        "To try next:  sfumato sanitize in.csv"
    ]
    assert fitting([(0, "a path/that/is/too/long"), (3, "b")], 8, 1) == ["a", "  path/that/is/too/long"]


@pytest.mark.parametrize("finding", findings(), ids=lambda finding: finding.name)
def test_every_name_is_spoken_without_hyphens(finding: Any) -> None:
    assert "-" not in spoken_name(finding.name).replace("Re-identification", "").partition(":")[0]


@pytest.mark.slow
@pytest.mark.usefixtures("without_catalogue")
def test_a_page_of_a_wide_table_stays_small() -> None:
    rng = np.random.default_rng(6)
    numbers = {f"number {place}": rng.normal(size=800) for place in range(27)}
    words = {f"word {place}": rng.choice([f"w{each}" for each in range(30)], 800) for place in range(15)}
    table = pa.table({**numbers, **words})
    report = measure(table, table, workings=workings(80, 800))
    kinds = (
        "attribute-inference-all-columns",
        "attribute-inference-half-columns",
        "interval-privacy",
        "conditional-entropy",
    )
    many = tuple(attack(f"{kind}/{name}", 900, 800, 0.3) for kind in kinds for name in table.column_names)
    report = dataclasses.replace(report, findings=(*report.findings, *many, *findings()))
    for edition in EDITIONS:
        assert len(html_of(edition, report).encode()) < 5_000_000


def test_the_summary_is_a_few_plain_lines() -> None:
    summary = report_of("redraw").summary()
    assert len(summary.splitlines()) < 15
    assert "Risk: " in summary
    assert "Utility: " in summary
    assert repr(report_of("redraw")).startswith("Report(")


def test_the_owner_reads_how_long_sanitizing_and_measuring_took_and_the_public_does_not() -> None:
    report = dataclasses.replace(made_up_report(), seconds={"sanitizing": 1.5, "all": 3.25, "linkage": 2.0})
    assert "Sanitizing, seconds" in report.to_html(edition="owner")
    assert "Measuring, seconds" in report.to_html(edition="owner")
    assert ", seconds" not in report.to_html(edition="public")


@pytest.mark.parametrize(
    ("name", "original", "chance", "useless"),
    [
        ("response-r2-x", -0.3, 0.0, True),
        ("response-r2-x", 0.4, 0.0, False),
        ("auc-x", 0.51, 0.5, True),
        ("auc-x", 0.53, 0.5, False),
        ("balanced-accuracy-x", 0.26, 0.25, True),
    ],
)
def test_a_target_that_the_original_does_not_predict_is_named(
    name: str, original: float, chance: float, useless: bool
) -> None:
    told = use_sentence([model(name, original - 0.1, original, "", chance=chance)], "pay")
    assert told.endswith("this target says little about utility.") is useless
