"""The page in a real browser: nothing loaded, nothing logged, all drawn, readable by all, on a phone and on paper.

Driven by Playwright with the Chromium of this machine (SFUMATO_CHROMIUM names another one); skipped without them.
"""

from __future__ import annotations

import dataclasses
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.core.errors import OptionError
from sfumato.publish.folder import print_summary
from tests.assess.recorded import OUTCOMES, recorded
from tests.assess.test_report import CERTIFICATE, made_up_report
from tests.browser import chromium, started
from tests.examples import at_length

axe_api = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

pytestmark = pytest.mark.pages
EDITIONS = ("owner", "public")
LOOKS = [("owner", "light", 1280), ("public", "dark", 360)]
MORE_LOOKS = [
    (edition, scheme, width)
    for edition in EDITIONS
    for scheme in ("light", "dark")
    for width in (1280, 360)
    if (edition, scheme, width) not in LOOKS
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as running:
        yield running


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    report = made_up_report()
    written = {}
    for edition in EDITIONS:
        written[edition] = folder / f"{edition}.html"
        html = report.to_html(edition="owner" if edition == "owner" else "public", certificate=CERTIFICATE)
        written[edition].write_text(html, encoding="utf-8")
    written["summary"] = folder / "summary.html"
    written["summary"].write_text(report.to_summary(certificate=CERTIFICATE), encoding="utf-8")
    written["figure"] = folder / "figure.svg"
    written["figure"].write_text(report.plot("attacks/all").to_svg(), encoding="utf-8")
    written["notebook"] = folder / "notebook.html"
    host = "<!DOCTYPE html><html lang=en><title>host</title><body><h1>Host</h1><table><tr><td>a</table><div>{}</div>"
    written["notebook"].write_text(host.format(report._repr_html_()), encoding="utf-8")
    return written


class Look:
    """One page as it is seen: what it logs and what it asks for is kept."""

    def __init__(self, browser: Any, path: Path, scheme: str = "light", width: int = 1280) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(path.as_uri())

    def __enter__(self) -> Look:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def open_all(self) -> None:
        self.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")


@pytest.fixture(
    scope="module",
    params=LOOKS + [pytest.param(look, marks=pytest.mark.slow) for look in MORE_LOOKS],
    ids=lambda look: "-".join(map(str, look)),
)
def look(request: pytest.FixtureRequest, browser: Any, pages: dict[str, Path]) -> Iterator[Look]:
    edition, scheme, width = request.param
    with Look(browser, pages[edition], scheme, width) as seen:
        yield seen


def test_the_page_logs_nothing_and_asks_for_nothing(look: Look) -> None:
    look.open_all()
    assert look.said == []
    assert [url for url in look.asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in look.asked if url.startswith("file:")]) == 1


def test_every_figure_is_drawn_and_no_letter_is_cut(look: Look) -> None:
    boxes = look.page.evaluate(
        """() => [...document.querySelectorAll('figure svg')].map(svg => {
            const box = svg.getBoundingClientRect();
            const cut = [...svg.querySelectorAll('text')].filter(text => {
                const each = text.getBoundingClientRect();
                return each.left < box.left - 2 || each.right > box.right + 2
                    || each.top < box.top - 2 || each.bottom > box.bottom + 2;
            }).map(text => text.textContent);
            return {title: svg.querySelector('title').textContent, width: box.width, height: box.height,
                    marks: svg.querySelectorAll('path, use, image').length, cut};
        })"""
    )
    assert len(boxes) > 8
    for box in boxes:
        assert box["width"] > 200, box["title"]
        assert box["height"] > 50, box["title"]
        assert box["marks"] > 0, box["title"]
        assert box["cut"] == [], box["title"]


def test_a_few_screens_come_before_the_folds(look: Look) -> None:
    top, width = look.page.evaluate(
        "[document.querySelector('#rest').getBoundingClientRect().top + scrollY, document.documentElement.clientWidth]"
    )
    assert top <= (5 if width > 1_000 else 10) * 900


def test_nothing_has_to_be_scrolled_sideways(look: Look) -> None:
    look.open_all()
    wide, seen = look.page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
    assert wide <= seen


def test_axe_finds_no_serious_barrier(look: Look) -> None:
    look.open_all()
    found = axe_api.Axe().run(look.page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []


def test_letters_in_figures_stand_out_from_their_card(look: Look) -> None:
    lowest = look.page.evaluate(
        """() => {
            const part = value => value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
            const light = colour => {
                const [red, green, blue] = colour.match(/[\\d.]+/g).map(each => part(each / 255));
                return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
            };
            const ratios = [...document.querySelectorAll('figure')].flatMap(figure => {
                const card = light(getComputedStyle(figure).backgroundColor);
                return [...figure.querySelectorAll('svg text')].map(text => {
                    const ink = light(getComputedStyle(text).fill);
                    return (Math.max(ink, card) + 0.05) / (Math.min(ink, card) + 0.05);
                });
            });
            return Math.min(...ratios);
        }"""
    )
    assert lowest >= 4.5


def test_a_fold_opens_with_the_keyboard(browser: Any, pages: dict[str, Path]) -> None:
    with Look(browser, pages["owner"]) as seen:
        first = seen.page.locator("details").first
        assert first.get_attribute("open") is None
        for _ in range(40):
            seen.page.keyboard.press("Tab")
            if seen.page.evaluate("document.activeElement.tagName") == "SUMMARY":
                break
        seen.page.keyboard.press("Enter")
        assert first.get_attribute("open") is not None
        assert seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


@pytest.mark.parametrize("edition", ["owner", *at_length("public")])
def test_paper_shows_the_owner_what_is_folded_in_dark_ink_on_white(
    browser: Any, pages: dict[str, Path], edition: str, tmp_path: Path
) -> None:
    with Look(browser, pages[edition], "dark") as seen:
        seen.page.emulate_media(media="print")
        rows = "document.querySelectorAll('details:not([open]) tbody tr')"
        shown = f"Array.from({rows}, row => row.checkVisibility())"
        assert set(seen.page.evaluate(shown)) == {edition == "owner"}  # the recipient's is two sheets
        seen.page.emulate_media(media="screen")
        assert set(seen.page.evaluate(shown)) == {False}
        seen.page.emulate_media(media="print")
        style = "[getComputedStyle({0}).color, getComputedStyle({0}).backgroundColor]"
        assert seen.page.evaluate(style.format("document.documentElement")) == ["rgb(0, 0, 0)", "rgb(255, 255, 255)"]
        paper = seen.page.pdf(path=tmp_path / "page.pdf", format="A4", print_background=True)
        assert paper.startswith(b"%PDF")
        assert seen.said == []


def test_one_sheet_holds_the_summary_and_two_hold_the_recipients_page(browser: Any, pages: dict[str, Path]) -> None:
    for name, sheets in (("summary", 1), ("public", 2)):
        with Look(browser, pages[name], width=1280 if name == "public" else 360) as seen:
            if name == "summary":
                found = axe_api.Axe().run(seen.page).response["violations"]
                assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
                assert seen.page.evaluate("document.documentElement.scrollWidth") <= 360
            for size in ("A4", "Letter"):
                paper = seen.page.pdf(format=size, print_background=True)
                assert len(re.findall(rb"/Type\s*/Page\b", paper)) <= sheets
            assert seen.said == []


@pytest.mark.parametrize("name", OUTCOMES)
def test_one_sheet_holds_the_summary_of_every_outcome_and_a_phone_shows_it_whole(
    browser: Any, name: str, tmp_path: Path
) -> None:
    report, certificate = recorded(name)
    assert report.verdict is not None
    options = "--method chain --k 20 --leaf 400 --holdout 0.3 --policy research --overwrite"
    line = f"sfumato sanitize people.csv -o out {options}"
    report = dataclasses.replace(report, verdict=dataclasses.replace(report.verdict, to_try=(line,)))
    certificate |= {"table_sha256": "a" * 64, "created": "2026-01-01", "sfumato": "0.2.0", "randomness": "dry-run"}
    (tmp_path / "summary.html").write_text(report.to_summary(certificate=certificate), encoding="utf-8")
    with Look(browser, tmp_path / "summary.html", width=390) as seen:
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
        paper = seen.page.pdf(format="A4", print_background=True)
        assert len(re.findall(rb"/Type\s*/Page\b", paper)) == 1


@pytest.mark.slow
def test_a_browser_prints_the_summary_for_its_owner_alone(pages: dict[str, Path], tmp_path: Path) -> None:
    if chromium() is None:
        pytest.skip("no Chromium on this machine: nothing printed")
    (tmp_path / "owner").mkdir()
    shutil.copy(pages["summary"], tmp_path / "owner")
    printed = print_summary(tmp_path)
    assert printed.read_bytes().startswith(b"%PDF")
    assert printed.stat().st_mode & 0o777 == 0o600


def test_without_a_browser_no_pdf_is_promised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SFUMATO_CHROMIUM", "/bin/true")
    with pytest.raises(OptionError, match=r"no summary\.html"):
        print_summary(tmp_path)
    monkeypatch.delenv("SFUMATO_CHROMIUM")
    monkeypatch.setenv("PATH", "")
    with pytest.raises(OptionError, match=r"print summary\.html from any browser"):
        print_summary(tmp_path)


def test_a_notebook_keeps_its_own_style(browser: Any, pages: dict[str, Path]) -> None:
    with Look(browser, pages["notebook"]) as seen:
        inside = seen.page.frames[1]
        assert inside.locator("h1").inner_text().startswith("May I release this table?")
        assert inside.locator(".strip svg").first.bounding_box()["height"] > 20
        sizes = seen.page.evaluate("['h1', 'td'].map(tag => getComputedStyle(document.querySelector(tag)).fontFamily)")
        assert all("system-ui" not in family for family in sizes)
        assert seen.said == []
        assert [url for url in seen.asked if not url.startswith(("file:", "about:", "data:"))] == []


def test_a_figure_is_a_picture_of_its_own(browser: Any, pages: dict[str, Path]) -> None:
    with Look(browser, pages["figure"]) as seen:
        box = seen.page.evaluate("document.documentElement.getBoundingClientRect().toJSON()")
        assert box["width"] > 200
        assert seen.page.evaluate("getComputedStyle(document.querySelector('rect')).fill") == "rgb(255, 255, 255)"
        assert seen.said == []


@pytest.mark.parametrize("edition", ["public", *at_length("owner")])
def test_a_script_that_got_into_the_page_does_not_run_and_reaches_nobody(
    browser: Any, pages: dict[str, Path], edition: str, tmp_path: Path
) -> None:
    planted = (
        "<script>document.title = 'ran'</script><img src='data:,' onerror=\"document.title = 'ran'\">"
        "<img src='http://127.0.0.1:9/x'><svg onload=\"document.title = 'ran'\"></svg>"
        "<style>@import 'http://127.0.0.1:9/y'; header { background: url(http://127.0.0.1:9/z) }</style></body>"
    )
    page = tmp_path / "planted.html"
    page.write_text(pages[edition].read_text(encoding="utf-8").replace("</body>", planted), encoding="utf-8")
    with Look(browser, page) as seen:
        seen.page.wait_for_load_state("load")
        assert "sfumato report" in seen.page.title()
        assert sum("Content Security Policy" in said for said in seen.said) >= 4
        assert not any("ERR_CONNECTION" in said for said in seen.said)
