"""The page: self-contained, well-formed, escaped, and silent about the original in its public edition."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import json
import re
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import sfumato
from sfumato.assess import page
from sfumato.assess.figures import bars, columns
from sfumato.assess.figures.bars import attack_figures, model_figures
from sfumato.assess.figures.columns import association_figures
from sfumato.assess.figures.svg import Figure, draw
from sfumato.assess.findings import ColumnRisk, Family
from sfumato.assess.plain import fitting, risk_sentence, risky_columns, risky_kinds, spoken_name, use_sentence
from sfumato.assess.report import Exceeded, Missing, Report, Ruling, Verdict
from sfumato.assess.utility.association import AssociationMatrices
from sfumato.core.errors import OptionError
from tests.assess.cases import ROWS, constant_table, draw_table, measure, report_of, workings
from tests.assess.made_up import attack, attacks, findings, model
from tests.examples import sized

CERTIFICATE: dict[str, Any] = {
    "randomness": "rehearsal",
    "method": "condense-paper",
    "parameters": {"k": 10},
    "rows_in": ROWS,
    "rows_out": ROWS,
    "claims": [{"claim": "Ten together", "kind": "proved", "basis": "AY05", "assumes": ["nothing"]}],
    "refused": [{"claim": "Nobody can be found", "because": "no theorem says so"}],
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
def test_what_is_seen_comes_first_then_what_is_promised_and_not_to_be_said_then_folds(edition: str) -> None:
    html = html_of(edition)
    places = [html.index(f'<h2 id="{name}-title"') for name in ("seen", "promised", "not-said", "rest")]
    assert places == sorted(places)
    assert places[-1] < html.index("<details")
    assert html.count('class="name"') == len(draw_table(1).column_names)  # one small picture a column
    assert "Ten together" in html
    assert "no theorem says so" in html
    assert "group condensation" in html
    assert "anonym" not in html.lower()


def test_a_rehearsal_is_marked_and_a_release_is_not() -> None:
    assert "Rehearsal: made with a seed, not for release" in html_of("public")
    assert "Rehearsal" not in html_of("public", certificate={**CERTIFICATE, "randomness": "release"})


def test_without_a_certificate_nothing_is_promised() -> None:
    html = html_of("owner", certificate=None)
    assert "No certificate came with this table, so nothing is promised here" in html
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
    assert "At most 2 columns are drawn" in html_of("public", report)


@pytest.mark.slow
def test_a_heat_map_of_very_many_columns_is_an_image() -> None:
    names = [f"c{place}" for place in range(41)]
    for figure in association_figures(names, AssociationMatrices(*[np.eye(41)] * 3)):
        ElementTree.fromstring(figure.svg)
        assert "data:image/png" in figure.svg
        assert len(figure.svg) < 100_000


def constant_report() -> Report:
    """The report of a constant table, measured on a budget."""
    original, released = (
        table.select(sized(["x", "colour"], COLUMNS)) for table in (draw_table(1, 80), constant_table(30))
    )
    return measure(original, released, workings=workings(8, 80), budget=5.0)


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
        assert page_.lstrip().startswith('<section class="verdict verdict-does-not-meet"')
        assert "Does not meet the policy &#39;research&#39;" in page_
    box = public.partition("</section>")[0]
    assert not re.search(r"0\.\d|gain|group|held|sfumato", re.sub(r"<[^>]*>", "", box))
    for words in (
        "12 of 100 people (10 to 15) are linked to a released row because they are in the table; at most 5 are allowed",
        "7.7 of 100 people (6 to 9) have their &#39;column 1&#39; read because they are in the table; at most 5 are",
        "the smallest group has 5 people, and 10 in every group are asked",
        "the method makes no groups, and 10 in every group are asked",
        "no people were held out to compare with",
        "categories that few people have may show",
        "who is in the table (in the table or not, by a model): not run, because it failed",
        "Not judged: people accused of being in it: left out, for it takes 1,000 people held out.",
        "Do not send it. Does not meet the policy",
        "Linked: whoever knows their record would take a released row for theirs",
        "Of 100 people in the table 13 are linked to a released row; of 100 who are not, 1.8.",
        "Predicting the target: AUC 0.800 (95\u00a0% CI 0.780\u20130.820; original 0.820, majority class 0.5).",
        "--k 40 --holdout 0.3 --overwrite",
    ):
        assert words in owner.partition("</section>")[0], words
        assert words not in public.partition("</section>")[0], words
    assert "verdict-" not in html_of("owner", dataclasses.replace(report, verdict=None)).partition("<body>")[2]
    assert report.summary().startswith("Does not meet the policy 'research': 12 of 100 people (10 to 15) are linked")
    unasked = dataclasses.replace(report, verdict=dataclasses.replace(made_up_verdict(), asked=False))
    for edition in EDITIONS:
        box = html_of(edition, unasked).partition("</section>")[0]
        assert "No policy was named, so &#39;research&#39; was taken. Nothing was held back for it, which" in box
    assert "(none was named)" in unasked.summary()


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
        (Ruling.MEETS, "Meets the policy 'ours (edited)'", "the release meets the policy"),
        (Ruling.DOES_NOT_MEET, "Does not meet the policy 'ours (edited)'", "the release does not meet the policy"),
        (
            Ruling.CANNOT_TELL,
            "It cannot be told whether this meets the policy 'ours (edited)'",
            "it cannot be told whether the release meets the policy",
        ),
    ],
)
def test_an_outcome_is_told_in_words(ruling: Ruling, heading: str, clause: str) -> None:
    verdict = Verdict("ours", ruling, edited=True)
    assert (verdict.heading, verdict.sentence()) == (heading, f"{heading}.")
    assert verdict.clause == f"{clause} 'ours (edited)'"


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
            Exceeded("linkage-gain", "linkage-rank", 0.1234, 0.05, (0.1, 0.15)),
            Exceeded("attribute-gain", f"attribute-inference-insider/{column}", 0.077, 0.05, (0.06, 0.09)),
            Exceeded("persons_per_group", None, 5, 10),
            Exceeded("persons_per_group", None, None, 10),
            Exceeded("held_out", None, False, True),
            Exceeded("rare", "rarest-category", "shown", "hidden"),
        ),
        (
            Missing("membership-auc", "membership-classifier", "not run, because it failed"),
            Missing("membership-tpr", None, "left out, for it takes 1,000 people held out", needed=False),
        ),
        (f"sfumato sanitize people.csv -o out --target '{column}' --k 40 --holdout 0.3 --overwrite",),
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
    assert idle["because"]
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
    row = re.sub(r"[ \n]+", " ", text[text.index("Linked to a row, by ranks ") :])
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
    assert "Marginal distance, column by column (6)" in html
    assert "Recall, gradient boosting, class by class (4)" in html
    folds = re.findall(r"<details>\n<summary[^>]*>(.*?)</summary>", html)
    assert len(folds) == html.count("<details") == html.count("</details>")
    assert "Not run, each with its reason (1)" in folds
    assert folds[:3] == [
        "How to read the tables",
        "Attacks that gain more on people in the table than chance explains (2)",
        "Other attacks (9)",
    ]
    assert "class by class" not in html_of("public", made_up_report())


def test_what_was_not_run_says_why_and_is_not_among_the_measured() -> None:
    idle = Report(tuple(finding for finding in attacks() if finding.value is None), (), 5, 5)
    html = html_of("public", idle)
    assert "<details open>" in html  # nothing else is there to be seen
    assert "not run" in html
    assert "Because no column is named as the one to predict." in html
    assert "Not run, each with its reason (1)" in html


def test_how_much_was_looked_at_is_told_and_to_the_owner_how_long_it_took() -> None:
    sizes = {"attempts": 1234, "training": 2345, "testing": 3456, "queries": 456, "estimate": 7.5, "budget": 8.0}
    seconds = {"columns": 1.25, "slow-attack": 3.75, "all": 6.5}
    report = dataclasses.replace(report_of("redraw"), sizes=sizes, seconds=seconds)
    for edition in EDITIONS:
        text = " ".join(Page(html_of(edition, report)).text)
        for told in ("1,234", "2,345", "3,456", "456"):
            assert told in text
        assert ("6.5" in text and "slow attack 3.8 s" in text) is (edition == "owner")
        assert ("Seconds granted" in text) is (edition == "owner")
    assert "seconds" not in report.to_json()


def test_the_risk_is_told_in_people() -> None:
    said = risk_sentence(attacks())
    assert said.startswith("Of 100 people in the table 13 are linked to a released row; of 100 who are not, 1.8.")
    assert said.endswith("1 attack could not be run: nothing is known of that.")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("own-row-linkage-rank", "15 are linked to the row made from theirs; of 100 who are not, 1."),
        ("linkability", "15 have two halves of their record joined through a released row"),
        ("attribute-inference-registry", "15 have a cell read rightly by somebody who knows other cells of theirs"),
        ("label-inference", "15 have their class told rightly"),
        ("membership-at-1-percent", "15 are accused of being in it; of 100 who are not, 1."),
        ("singling-out-univariate", "Of 100 descriptions read off the release 15 fit one person of the table alone"),
        ("rare-combination-found", "Of 100 people of the rarest kinds in the table 15 have their numbers read"),
        ("recovered-cells-digits", "15 are hit (numbers recovered from their digits alone)"),
    ],
)
def test_every_kind_of_attack_has_its_sentence(name: str, words: str) -> None:
    assert words in risk_sentence([attack(name, 300, 20, 0.001)])


def test_a_score_is_told_in_times_of_a_hundred() -> None:
    scored = dataclasses.replace(attack("membership-classifier", 1800, None, 0.5), unit="")
    assert "tells who is who 90 times of 100; a coin does 50 times." in risk_sentence([scored])


def test_chance_is_not_called_a_success() -> None:
    said = risk_sentence([attack("linkage-rank", 101, 100, 0.01), attack("linkage-euclid", 90, 100, 0.01)])
    assert said.startswith(
        "None of 2 attacks does surely better on people of the table than on others. The nearest to it: Of"
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
        "Predicting the target: R\u00b2 -0.100 (95\u00a0% CI -0.120 to -0.080; original 0.400, mean 0)."
    )


def test_other_tables_say_how_much_they_moved() -> None:
    assert "off by at most" in use_sentence(report_of("redraw").findings[:60], None)
    assert "Nothing could be compared" in use_sentence([], None)


def test_columns_that_carry_the_risk_are_named_with_their_reasons() -> None:
    risks = [
        ColumnRisk("a", 0.2, True, 0.1, 3),
        ColumnRisk("b", 0.9, False, 0.0, 0),
        ColumnRisk("c", None, False, 0, 1),
    ]
    assert [column for column, _ in risky_columns(risks)] == ["a", "c"]
    assert risky_columns(risks)[0][1] == (
        "of 100 people 20 more have it read because they are in the table, it makes 10 of 100 one of a kind, 3 people "
        "hold a value that fewer than 10 have and that the release shows, copied or by chance"
    )
    assert risky_kinds([attack("rare-combination-found", 300, 20, 0.001), attack("linkability", 300, 20, 0.001)]) == [
        (
            "Rare combinations of categories",
            "of 100, 15 give away the numbers beside them; of 100 of people not in the table, 1",
        )
    ]
    assert risky_kinds(attacks()) == []
    report = dataclasses.replace(made_up_report(), columns=tuple(risks))
    assert "one of a kind" in html_of("owner", report)
    assert "one of a kind" not in html_of("public", report)


def test_caveats_of_many_rows_are_said_once() -> None:
    said = "A sentence; less is better, and what held-out people suffer too is no matter. Counted on 20 rows."
    rows = [dataclasses.replace(attack(f"linkage-{way}", 9, 5, 0.1), meaning=said) for way in ("rank", "euclid")]
    html = html_of("public", Report(tuple(rows), (), 5, 5))
    assert html.count("hat held-out people suffer too is no matter.") == 1
    assert "less is better" not in html
    assert html.count(">A sentence. Counted on 20 rows.<") == 2  # how many were looked at stays with its row
    other = attack("linkability", 9, 5, 0.1)
    html = html_of("public", Report((*rows, other), (), 5, 5))
    assert "Linked to a row, by ranks and 1 more: what held-out people suffer too is no matter." in html


def test_one_page_sums_it_up_for_whoever_signs() -> None:
    page = made_up_report().to_summary(certificate=CERTIFICATE)
    text = " ".join(" ".join(Page(page).text).split())
    for words in ("Does not meet the policy 'research'", "Ten together", "Nobody can be found", "Stays with the owner"):
        assert words in text
    assert "sfumato verify FOLDER/release" in text
    assert "<svg" not in page
    assert len(text.partition("A release on one page")[2].split()) < 400


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
    kinds = ("attribute-inference-insider", "attribute-inference-registry", "interval-privacy", "entropy-privacy")
    many = tuple(attack(f"{kind}/{name}", 900, 800, 0.3) for kind in kinds for name in table.column_names)
    report = dataclasses.replace(report, findings=(*report.findings, *many, *findings()))
    for edition in EDITIONS:
        assert len(html_of(edition, report).encode()) < 5_000_000


def test_the_summary_is_a_few_plain_lines() -> None:
    summary = report_of("redraw").summary()
    assert len(summary.splitlines()) < 15
    assert "Risk: " in summary
    assert "Use:  " in summary
    assert repr(report_of("redraw")).startswith("Report(")


def test_the_owner_reads_how_long_sanitizing_and_measuring_took_and_the_public_does_not() -> None:
    report = dataclasses.replace(made_up_report(), seconds={"sanitizing": 1.5, "all": 3.25, "linkage": 2.0})
    assert "Seconds of sanitizing" in report.to_html(edition="owner")
    assert "Seconds of measuring" in report.to_html(edition="owner")
    assert "Seconds of" not in report.to_html(edition="public")


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
