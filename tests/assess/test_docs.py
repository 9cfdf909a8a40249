"""Every finding has a page in the documentation, and every page is reachable."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from sfumato.assess.measure import declared

ROOT = Path(__file__).resolve().parents[2]
INDEX = ROOT / "docs" / "measures" / "index.md"
PAGES = sorted(page for page in INDEX.parent.glob("*.md") if page != INDEX)


def explained(name: str) -> bool:
    told = re.compile(rf"`{re.escape(name)}(/[^`]*)?`")
    return any(told.search(page.read_text(encoding="utf-8")) for page in PAGES)


@pytest.mark.parametrize(
    "name", sorted({number.name.removesuffix("/") for measure in declared() for number in measure.numbers})
)
def test_a_finding_of_the_catalogue_is_explained_on_a_page(name: str) -> None:
    assert explained(name), name


def test_the_index_is_what_the_measures_declare() -> None:
    write_index = runpy.run_path(str(ROOT / "docs" / "list_measures.py"))["write_index"]
    assert INDEX.read_text(encoding="utf-8") == write_index(), "run python docs/list_measures.py"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_direction_range_worst_and_best_case_and_source(page: Path) -> None:
    text = page.read_text(encoding="utf-8").lower()
    for word in ("direction", "range", "worst", "best", "source"):
        assert word in text, word
    assert f"measures/{page.name}" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
