"""Every finding has a page in the documentation, and every page is reachable."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sfumato.assess.catalogue import catalogue

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "measures").glob("*.md"))


def explained(name: str) -> bool:
    told = re.compile(rf"`{re.escape(name)}(/[^`]*)?`")
    return any(told.search(page.read_text(encoding="utf-8")) for page in PAGES)


@pytest.mark.parametrize("name", sorted({name for measure in catalogue() for name in measure.findings}))
def test_a_finding_of_the_catalogue_is_explained_on_a_page(name: str) -> None:
    assert explained(name), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_says_direction_range_worst_and_best_case_and_source(page: Path) -> None:
    text = page.read_text(encoding="utf-8").lower()
    for word in ("direction", "range", "worst", "best", "source"):
        assert word in text, word
    assert f"measures/{page.name}" in (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
