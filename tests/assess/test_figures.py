"""The figures: round bins, ranked bars, points on the axes of one table, and drawings that stand alone."""

from __future__ import annotations

import base64
import dataclasses
import datetime
import io
import itertools
import re
from functools import cache
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from sfumato.assess.algebra import Values
from sfumato.assess.figures import Axes, Figure, columns, round_step
from sfumato.assess.figures.bars import MOST_ROWS, attack_figures, by_figure, model_figures
from sfumato.assess.figures.columns import bin_edges, component_figures, marginal_figures
from sfumato.assess.findings import Family, gains
from sfumato.assess.measure import declared
from sfumato.assess.study import Study, study_of
from sfumato.tables.codec import Codec
from sfumato.tables.schema import Field, Kind, Schema
from tests.assess.cases import constant_table, draw_table, fit, report_of
from tests.assess.made_up import attack, attacks, model, models
from tests.examples import at_length

SVG = "{http://www.w3.org/2000/svg}"


def field_of(column: Any) -> Field:
    return Schema.infer(pa.table({"a": column})).fields[0]


def study(original: pa.Table, released: pa.Table, seed: int = 3) -> Study:
    return study_of(original, released, fit(original), rng=np.random.default_rng(seed))


def texts(figure: Figure) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(figure.svg).iter(f"{SVG}text")]


@cache
def drawn_attacks() -> tuple[Figure, ...]:
    return attack_figures(attacks())


def only(figures: tuple[Figure, ...], name: str, *, public: bool) -> Figure:
    (found,) = [figure for figure in figures if figure.name == name and figure.public is public]
    return found


@pytest.mark.parametrize("seed", range(8))
def test_bin_edges_are_multiples_of_a_round_step(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(rng.normal() * 10.0 ** rng.integers(-3, 6), 10.0 ** rng.integers(-3, 4), size=500)
    edges = bin_edges(values, field_of(values))
    step = round_step(float(np.diff(edges).mean()) * (1 - 1e-6))
    assert f"{step:e}"[:4].rstrip("0") in ("1.", "2.", "2.5", "5.")
    np.testing.assert_allclose(edges / step, np.rint(edges / step), atol=1e-6)
    low, high = np.quantile(values, [0.005, 0.995])
    assert edges[0] <= low
    assert edges[-1] >= high
    assert 10 < len(edges) < 45


@pytest.mark.parametrize("spread", [1, 4, 30, 1000, 10**7])
def test_whole_numbers_stand_in_the_middle_of_their_bins(spread: int) -> None:
    values = np.random.default_rng(spread).integers(-spread, spread + 1, size=400)
    edges = bin_edges(values.astype(np.float64), field_of(values))
    np.testing.assert_array_equal((edges + 0.5) % 1, 0)
    step = np.diff(edges)[0]
    assert str(int(step)).rstrip("0") in ("1", "2", "5")
    assert (edges[0] + 0.5) % step == 0


def test_a_larger_extreme_moves_no_bin() -> None:
    values = np.random.default_rng(1).normal(size=2_000)
    field = field_of(values)
    before = bin_edges(values, field)
    values[values.argmax()] = 4_711.75
    values[values.argmin()] = -1e9
    np.testing.assert_array_equal(bin_edges(values, field), before)


@pytest.mark.parametrize("value", [0.0, 5.25, -1e9, 3e-7, 1e15])
def test_a_constant_column_has_a_bin_around_its_value(value: float) -> None:
    edges = bin_edges(np.full(10, value), Field("a", Kind.CONTINUOUS))
    assert (np.diff(edges) > 0).all()
    assert edges[0] <= value <= edges[-1]


@pytest.mark.parametrize(("unit", "most"), [("s", 40), ("s", 5_000), ("s", 40_000_000), ("ms", 900), ("us", 10**9)])
def test_bins_of_moments_are_steps_of_a_clock_or_a_calendar(unit: str, most: int) -> None:
    moments = np.random.default_rng(2).integers(0, most, size=300).astype(f"datetime64[{unit}]")
    table = pa.table({"a": moments})
    codec = Codec.fit(table, Schema.infer(table))
    values, _ = codec.numbers(table, "a")
    edges = bin_edges(values, codec.schema.fields[0])
    assert 2 <= len(edges) <= 45
    counts = np.histogram(np.clip(values, edges[0], edges[-1]), edges)[0]
    assert counts.sum() == 300


YEARS = [(1, 1), (1, 2), (1, 60), (1, 9999), (1000, 9999), (9900, 9999), (9999, 9999)]


@pytest.mark.parametrize(
    ("kind", "first", "last"),
    [
        (pa.date32(), 1, 1),
        (pa.date32(), 9999, 9999),
        (pa.timestamp("us"), 1, 9999),
        *at_length(*((kind, *years) for kind in (pa.date32(), pa.timestamp("us")) for years in YEARS)),
    ],
)
def test_any_date_that_a_table_can_hold_is_drawn(first: int, last: int, kind: pa.DataType) -> None:
    low, high = datetime.datetime(first, 1, 1), datetime.datetime(last, 12, 31)
    days = [(low + (high - low) * (place / 30)).replace(microsecond=0) for place in range(31)]
    table = pa.table({"a": pa.array([day.date() for day in days] if kind == pa.date32() else days, kind)})
    for figure in marginal_figures(study(table, table).pairs):
        assert any(re.search(r"\d", text) for text in texts(figure)[:3])


def test_public_axes_are_labelled_with_round_numbers() -> None:
    table = pa.table({"x": np.random.default_rng(5).normal(173.4217, 9.1373, size=900)})
    figures = marginal_figures(study(table, table).pairs)
    labels = [text for text in texts(only(figures, "marginals/x", public=True)) if re.fullmatch(r"[\d.]+", text)]
    numbers = sorted(float(text) for text in labels)
    assert len(numbers) >= 3
    steps = {round(after - before, 9) for before, after in itertools.pairwise(numbers)}
    assert len(steps) == 1
    step = steps.pop()
    assert f"{step:e}"[:4].rstrip("0") in ("1.", "2.", "2.5", "5.")
    assert all(number % step == 0 for number in numbers)


@pytest.mark.parametrize("figure", sorted({each.figure or "" for measure in declared() for each in measure.numbers}))
def test_a_number_is_drawn_where_it_says_and_nowhere_else(figure: str) -> None:
    numbers = [each for measure in declared() for each in measure.numbers if each.figure == figure]
    found = Values(0.4, (0.3, 0.5), 0.2)
    findings = [
        each.finding(Family.ATTACK, found, column)
        for each in numbers
        for column in (("red", "blue") if each.of_columns else ("",))
    ]
    drawn = {each.name for each in (*attack_figures(findings), *model_figures(findings))}
    assert drawn == ({figure} if figure.startswith(("attacks/", "models/")) else set())


def test_a_report_has_the_figures_that_its_findings_declare_and_one_of_all_columns_at_once() -> None:
    report = report_of("redraw")
    names, declared_by = {figure.name for figure in report.figures}, set(by_figure(report.findings))
    assert declared_by - {"marginals/COLUMN"} <= names
    rooms, of_findings = ({name.partition("/")[0] for name in some} for some in (names, declared_by))
    assert rooms - of_findings == {"components"}
    assert of_findings == {"attacks", "marginals", "groups", "distances", "association"}


def test_attacks_are_ranked_by_what_they_gain_over_their_control() -> None:
    figure = only(drawn_attacks(), "attacks/all", public=True)
    drawn = [text for text in texts(figure) if ":" in text]
    assert drawn[0].startswith("Record linkage, Mahalanobis distance: 13")
    assert drawn[-1].startswith("Group linkage, group mean: 45")  # conceded by every certificate
    assert "Record linkage, Mahalanobis distance with 13" in figure.alt
    assert not any(text.startswith("Membership inference, classifier") for text in drawn)  # a score has its own axis
    assert "Membership inference, classifier: 0.53" in texts(only(drawn_attacks(), "attacks/scores", public=True))
    unlike = ("Attribute inference on outliers, error", "Attribute inference of the target")
    assert not any(text.startswith(unlike) for text in drawn)


def test_what_the_owner_alone_may_see_is_drawn_in_a_figure_of_its_own() -> None:
    figures = drawn_attacks()
    name = "attacks/attribute-inference-all-columns"
    seen = [text for text in texts(only(figures, name, public=False)) if text.startswith("column")]
    public = [text for text in texts(only(figures, name, public=True)) if text.startswith("column")]
    assert len(seen) == 6
    assert [text[:8] for text in public] == ["column 4", "column 2", "column 0"]


def test_without_people_held_out_no_control_is_drawn() -> None:
    figure = only(attack_figures([attack("linkage-rank", 10, None, 0.1)]), "attacks/all", public=True)
    assert "control group" not in texts(figure)
    assert "baseline" in texts(figure)


def test_many_attacks_are_drawn_up_to_a_limit_that_is_named() -> None:
    many = [attack(f"attribute-inference-all-columns/c{place}", 500 + place, 400, 0.1) for place in range(60)]
    (figure,) = attack_figures(many)
    assert f"{MOST_ROWS} of 60" in figure.caption
    assert [text.partition(":")[0] for text in texts(figure) if ":" in text][:2] == ["c59", "c58"]


def test_models_are_drawn_for_all_and_classes_for_the_owner() -> None:
    figures = model_figures(models())
    accuracy = texts(only(figures, "models/accuracy", public=True))
    assert "Nearest neighbour: 80\u00a0%" in accuracy
    assert "Smallest class, logistic regression: 30\u00a0%" in accuracy
    assert "R\u00b2" in texts(only(figures, "models/response-r2", public=True))
    assert any(text.startswith("class 3") for text in texts(only(figures, "models/recall-1nn", public=False)))
    assert not any("recall" in figure.name for figure in figures if figure.public)


def test_models_that_are_worse_than_nothing_are_drawn_left_of_zero() -> None:
    findings = [dataclasses.replace(each, value=-0.4, interval=(-0.9, 0.1)) for each in models()]
    (figure, *_) = model_figures([each for each in findings if each.name.startswith("accuracy")])
    assert "<svg" in figure.svg


def test_a_model_without_a_baseline_or_a_value_is_not_drawn() -> None:
    lonely = dataclasses.replace(model("accuracy-1nn", 0.5, 0.5), baseline=None)
    idle = dataclasses.replace(model("accuracy-logistic", 0.5, 0.5), value=None, reason="of something")
    assert model_figures([lonely, idle]) == ()


def test_a_gain_is_certain_where_it_is_more_than_chance() -> None:
    ranked = gains([attack("a", 300, 100, 0.0), attack("b", 104, 100, 0.0), attack("c", 50, None, 0.2)])
    assert [(gain.finding.name, gain.certain, gain.controlled) for gain in ranked] == [
        ("a", True, True),
        ("b", False, True),
        ("c", False, False),
    ]


@pytest.mark.parametrize("seed", range(3))
def test_equal_attack_and_control_are_rarely_called_certain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    hits = rng.binomial(2000, 0.1, size=(400, 2))
    called = sum(gains([attack("a", int(first), int(second), 0.0)])[0].certain for first, second in hits)
    assert called / 400 < 0.06  # one side of 95 % limits: 2.5 % expected


def dots(figure: Figure) -> list[np.ndarray[Any, Any]]:
    paths = re.findall(r'd="((?:M[\d.]+ [\d.]+h0)+)"', figure.svg)
    return [np.array([pair.split() for pair in re.findall(r"M([\d. ]+)h0", path)], dtype=float) for path in paths]


def test_a_copy_lies_on_its_original() -> None:
    table = draw_table(1)
    original, released = dots(only(component_figures(study(table, table)), "components/first", public=False))
    np.testing.assert_allclose(np.sort(original, axis=0), np.sort(released, axis=0))
    assert len(original) == len(table)


def test_a_shifted_table_lies_elsewhere_on_the_axes_of_the_original() -> None:
    rng = np.random.default_rng(8)
    tables = []
    for shift in (0.0, 6.0):  # the two columns hang together, so the first direction is along both
        b = rng.normal(size=500) + shift
        tables.append(pa.table({"a": rng.normal(size=500), "b": b, "c": b + 0.1 * rng.normal(size=500)}))
    original, released = dots(only(component_figures(study(*tables)), "components/first", public=False))
    assert abs(original[:, 0].mean() - released[:, 0].mean()) > 2 * original[:, 0].std()


def test_the_public_points_are_laid_by_the_released_table_alone() -> None:
    released = draw_table(2)
    figures = [
        only(component_figures(study(original, released)), "components/first", public=True)
        for original in (draw_table(1), draw_table(4))
    ]
    assert figures[0] == figures[1]
    assert "original" not in texts(figures[0])


def test_few_points_are_drawn_of_a_long_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MOST_POINTS", 50)
    figures = component_figures(study(draw_table(1), draw_table(2)))
    assert [len(each) for figure in figures for each in dots(figure)] == [50, 50, 50]
    assert "50 of 600 released rows" in figures[1].caption


def test_points_are_drawn_only_where_there_are_two_directions() -> None:
    one = pa.table({"x": np.random.default_rng(1).normal(size=20)})
    assert component_figures(study(one, one)) == ()
    names = [(figure.name, figure.public) for figure in component_figures(study(draw_table(1), constant_table(30)))]
    assert names == [("components/first", False)]


def test_a_drawing_stands_alone_with_its_colours_in_it() -> None:
    for figure in (*drawn_attacks(), *component_figures(study(draw_table(1), draw_table(2)))):
        alone = figure.to_svg()
        assert "var(" not in alone
        assert "#005f96" in alone
        first = ElementTree.fromstring(alone).find(f"{SVG}rect")
        assert first is not None
        assert first.attrib["fill"] == "#ffffff"
        assert figure._repr_svg_() == alone


def axes_of(**told: Any) -> Axes:
    return Axes(200.0, 100.0, **told)


def paths_of(axes: Axes) -> list[str]:
    return re.findall(r' d="([^"]*)"', axes.to_marks())


@pytest.mark.parametrize("y", [(0.0, 4.0), (4.0, 0.0)])
def test_a_line_from_end_to_end_joins_the_corners_of_its_axes(y: tuple[float, float]) -> None:
    axes = axes_of(x=(-1.0, 3.0), y=y)
    axes.line([-1.0, 3.0], list(y), "main")
    line, *_, beside, below = paths_of(axes)
    (left, top), foot = re.findall(r"[\d.]+", beside)[:2], re.findall(r"V([\d.]+)", beside)[0]
    (right,) = re.findall(r"H([\d.]+)", below)
    assert line == f"M{left} {foot}L{right} {top}"


def test_marks_at_an_axis_are_round_numbers_within_what_is_shown() -> None:
    drawn = [float(text) for text in re.findall(r">([\d.]+)</text>", axes_of(x=(0.013, 0.987)).to_marks())]
    assert drawn[:4] == [0.2, 0.4, 0.6, 0.8]


def test_cells_of_one_colour_beside_each_other_are_one_mark() -> None:
    axes = axes_of(x=(0.0, 3.0), y=(2.0, 0.0), lines="", x_ticks=[], y_ticks=[])
    axes.cells([["heat-1", "heat-1", "heat-2"], ["heat-2", "heat-1", "heat-2"]])
    assert [path.count("M") for path in paths_of(axes)] == [2, 3]


def test_a_picture_holds_the_colours_of_its_cells() -> None:
    pixels = np.random.default_rng(3).integers(0, 256, size=(5, 7, 3)).astype(np.uint8)
    axes = axes_of()
    axes.picture(pixels)
    (data,) = re.findall(r"base64,([^\"]+)", axes.to_marks())
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))), pixels)


def test_a_long_legend_takes_more_lines_and_the_marks_begin_below_it() -> None:
    one, many = axes_of(), axes_of()
    one.name("a", "line", "main")
    for place in range(4):
        many.name(f"a name of some length {place}", "line", "main")
    tops = [float(re.findall(r"M[\d.]+ ([\d.]+)V", axes.to_marks())[0]) for axes in (one, many)]
    assert tops[1] >= tops[0] + 24.0


def test_what_is_written_in_a_drawing_stays_text() -> None:
    axes = axes_of(x_label="<b>&")
    axes.write(0.0, 0.0, "</svg>")
    drawn = axes.to_marks()
    assert "&lt;b&gt;&amp;" in drawn
    assert "&lt;/svg&gt;" in drawn
