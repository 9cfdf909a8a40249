"""The page in a real browser, from the file to the release: by mouse and keyboard, for all eyes, and nothing kept.

Driven by Playwright with the Chromium of this machine (SFUMATO_CHROMIUM names another one); skipped without them.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sfumato.engines.outcome import Recipe
from sfumato.tables.files import read_file
from tests.browser import started
from tests.web.asking import serving

axe_api = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

pytestmark = pytest.mark.pages
PATIENCE = 600_000.0  # milliseconds
STEPS = ("", "columns", "policy", "search", "result")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with started() as running:
        yield running


class Look:
    """A page as it is seen: what it logs and what it asks for is kept."""

    def __init__(
        self, browser: Any, url: str, *, width: int = 1280, scheme: str = "light", bypass: bool = False
    ) -> None:
        size = {"width": width, "height": 900}
        self.context = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=bypass)
        self.context.set_default_timeout(PATIENCE)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.url = url.partition("?")[0]
        self.page.goto(url)

    def __enter__(self) -> Look:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()

    def drop(self, path: Path) -> None:
        self.page.set_input_files("#file", path)
        self.page.wait_for_url("**/columns")

    def choose(self, column: str, control: str, value: str) -> None:
        self.page.locator(f"tr[data-column='{column}'] {control}").select_option(value)
        self.page.locator("#said", has_text="Updated").wait_for()

    def take(self, part: str, folder: Path) -> Path:
        with self.page.expect_download() as download:
            self.page.locator(f"a[href='/{part}.zip']").click()
        download.value.save_as(folder / f"{part}.zip")
        with zipfile.ZipFile(folder / f"{part}.zip") as packed:
            packed.extractall(folder)
        return folder / part


def people(path: Path, rows: int) -> Path:
    """A realistic table of people: semicolons, decimal commas, gaps, an identifier."""
    lines = ["patient;age;weight;sex;town;smoker"]
    for row in range(rows):
        age = 20 + (row * 37 + row // 7) % 60
        weight = "" if row % 19 == 0 else f"{50 + age // 3 + (row * 13) % 20},{row % 10}"
        smoker = "yes" if (row * 7) % 60 < age - 20 else "no"
        lines.append(f"P{row * 7919 % 1_000_003:06d};{age};{weight};{'fm'[row % 2]};{'ABCDE'[row * row % 5]};{smoker}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_file_is_looked_at_in_a_browser_and_nothing_is_kept(browser: Any, tmp_path: Path) -> None:
    lines = [f"{20 + row * 7 % 31};{'fm'[row % 2]};P{row}" for row in range(3_000)]
    (tmp_path / "many.csv").write_text("\n".join(["age;sex;patient", *lines]) + "\n", encoding="utf-8")
    (tmp_path / "wrong.csv").write_text("a,b\n1,2\n3\nsecret,5\n", encoding="utf-8")
    (tmp_path / "temporary").mkdir()
    with serving(tmp_path / "temporary") as (process, url), Look(browser, url) as look:
        page = look.page
        assert page.url == look.url  # without the token
        page.set_input_files("#file", tmp_path / "wrong.csv")
        page.locator("#problem:not(:empty)").wait_for()
        assert "1 row of 'wrong.csv' has more or fewer cells than the header, which has 2" in page.inner_text(
            "#problem"
        )
        assert "secret" not in page.content()
        look.drop(tmp_path / "many.csv")
        assert page.inner_text("tr[data-column='patient'] .fate") == "dropped"
        look.choose("sex", ".role", "target")
        assert "target, as specified" in page.inner_text("tr[data-column='sex'] .why")
        page.locator("a.button[href='/policy']").first.click()
        page.click("#skip")
        page.click("#cancel")
        page.locator("#problem:not(:empty)").wait_for()
        assert page.inner_text("#problem") == "Cancelled; nothing was made."
        assert look.said == []
        assert {each.split("/")[2] for each in look.asked} == {look.url.split("/")[2]}
        assert [path.stat().st_mode & 0o777 for path in (tmp_path / "temporary").iterdir()] == [0o700]
    assert process.returncode == 0
    assert list((tmp_path / "temporary").iterdir()) == []


def test_what_reads_a_file_is_offered_where_the_error_is(browser: Any, tmp_path: Path) -> None:
    rows = ["Participants of 2023;;", "name;town;group", "Ann;Ulm;999", "Bob;Bonn;7"]
    (tmp_path / "likely.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    with serving(tmp_path) as (_, url), Look(browser, url) as look:
        page = look.page
        page.set_input_files("#file", tmp_path / "likely.csv")
        page.locator("#problem:not(:empty)").wait_for()
        assert "line 2 like the header; give 'Header row' 2" in page.inner_text("#problem")
        assert page.locator("#reading").evaluate("box => box.previousElementSibling.id") == "problem"
        assert page.input_value("#header-row") == "2"
        page.fill("#missing", "none, 999")
        page.click("#reread")
        page.wait_for_url("**/columns")
        assert page.locator("tr[data-column='group']").count() == 1
        assert page.input_value("#missing") == "none, 999"
        assert "missing: '999' (1 cell)" in page.inner_text("tr[data-column='group'] .why")
        page.fill("#header-row", "40")
        page.click("#reread")
        page.locator("#problem:not(:empty)").wait_for()
        assert "so none is line 40; correct 'Header row'" in page.inner_text("#problem")
        assert look.said == ["Failed to load resource: the server responded with a status of 400 (Bad Request)"]


@pytest.mark.slow
def test_what_the_page_prints_makes_the_same_table(browser: Any, tmp_path: Path) -> None:
    people(tmp_path / "people.csv", 240)
    with serving(tmp_path) as (_, url), Look(browser, url) as look:
        page = look.page
        look.drop(tmp_path / "people.csv")
        assert page.locator("tr[data-column='weight'] .kind-of").input_value() == "continuous"
        look.choose("smoker", ".role", "target")
        page.locator("tr[data-column='town'] .known").check()
        page.locator("#said", has_text="Updated").wait_for()
        page.locator("a.button[href='/policy']").first.click()
        page.locator("summary", has_text="More options").click()
        page.fill("#seed", "7")
        page.click("#skip")
        page.locator("summary", has_text="Release despite the policy").click()
        page.click("#despite")
        page.locator("a[href='/release.zip']").wait_for()
        assert page.locator(".strip svg").count() == 5
        released = look.take("release", tmp_path)
        recipe = Recipe.load(look.take("owner", tmp_path) / "recipe.toml")
        assert recipe.schema.target is not None
        assert (recipe.schema.target.name, recipe.options.seed, recipe.policy) == ("smoker", 7, "research")
        command, python = (page.inner_text(f"pre >> nth={place}") for place in (-2, -1))
        assert look.said == []
    words = [sys.executable, "-m", "sfumato.cli", *shlex.split(command)[1:]]
    subprocess.run([*words, "--quiet"], check=True, cwd=tmp_path)
    made = tmp_path / "FOLDER" / "release" / "table.csv"
    assert made.read_bytes() == (released / "table.csv").read_bytes()
    shutil.rmtree(tmp_path / "FOLDER")
    (tmp_path / "run.py").write_text(python, encoding="utf-8")
    subprocess.run([sys.executable, "run.py"], check=True, cwd=tmp_path)
    one, two = (read_file(path)[0] for path in (made, released / "table.csv"))
    assert one.column("age") == two.column("age")
    assert one.column("town") == two.column("town")


@pytest.fixture(scope="module")
def searched(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a page on which 100,000 rows were searched, the search stopped, and a point of it released."""
    folder = tmp_path_factory.mktemp("large")
    people(folder / "large.csv", 100_000)
    with serving(folder) as (_, url):
        with Look(browser, url) as look:
            page = look.page
            look.drop(folder / "large.csv")
            assert "100,000 rows, 6 columns" in page.inner_text("main")
            look.choose("smoker", ".role", "target")
            page.locator("a.button[href='/policy']").first.click()
            page.click("#search")
            page.locator("#points tr").nth(1).wait_for()
            page.click("#stop")
            page.locator("#found:not([hidden])").wait_for()
            assert "Interrupted: these are the results so far." in page.inner_text("#found-more")
            sizes = page.locator("#points td[data-label=People]").all_inner_texts()
            sample = page.inner_text("#sample").removeprefix("Settings on a sample of ").split(" ")[0]
            assert page.locator("#frontier .point").count() == sizes.count(sample) > 0
            picked = page.locator("#points tr").last
            words = picked.locator("label").inner_text()
            picked.locator("input").check()
            page.click("#make")
            page.locator("body[data-page=result]").wait_for()
            assert 'policy "research"' in page.inner_text("#verdict-title")
            recipe = Recipe.load(look.take("owner", folder) / "recipe.toml")
            size = recipe.parameters["leaf" if recipe.method == "chain" else "k"]
            assert words == f"{recipe.method}, {'leaf' if recipe.method == 'chain' else 'k'} {size}"
            assert recipe.options.holdout == 0.3
            assert look.said == []
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_everybody_can_read_every_step(browser: Any, searched: str, scheme: str, width: int) -> None:
    with Look(browser, searched, bypass=True) as look:
        look.page.set_viewport_size({"width": width, "height": 900})
        look.page.emulate_media(color_scheme=scheme)
        for step in STEPS:
            look.page.goto(f"{look.url}{step}")
            look.page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
            found = axe_api.Axe().run(look.page).response["violations"]
            assert [(each["id"], step) for each in found if each["impact"] in ("serious", "critical")] == []
            wide, seen = look.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
            assert wide <= seen, step


@pytest.mark.slow
def test_the_steps_can_be_taken_with_the_keyboard_alone(browser: Any, tmp_path: Path) -> None:
    people(tmp_path / "people.csv", 240)
    with serving(tmp_path) as (_, url), Look(browser, url) as look:
        page, keys = look.page, look.page.keyboard

        def reach(selector: str) -> None:
            for _ in range(200):
                keys.press("Tab")
                if page.locator(f"{selector}:focus").count():
                    return
            raise AssertionError(f"{selector} is never reached")

        keys.press("Tab")
        assert page.locator(".skip:focus").inner_text() == "Skip to the content"
        keys.press("Enter")
        reach("#file")
        look.drop(tmp_path / "people.csv")
        reach("tr[data-column='smoker'] .role")
        keys.type("target")
        page.locator("#said", has_text="Updated").wait_for()
        reach("a[href='/policy'].button")
        keys.press("Enter")
        reach("input[name=policy]")
        keys.press("ArrowDown")
        assert page.locator("input[name=policy]:checked").input_value() == "public"
        reach("#skip")
        keys.press("Enter")
        reach("#cancel")
        keys.press("Enter")
        page.locator("#problem:not(:empty)").wait_for()
        assert page.inner_text("#problem") == "Cancelled; nothing was made."
