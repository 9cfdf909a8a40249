"""Pages that are written from the code say what the code says, and leave nothing out."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import rich_click as click

import sfumato as sf
import sfumato.sklearn
from sfumato.cli import app
from sfumato.methods.catalogue import all_parameters

DOCS = Path(__file__).resolve().parents[1] / "docs"
ADDED = DOCS.parent / "examples"  # put into the site when it is built


def test_the_page_of_names_has_every_public_name_once() -> None:
    names = re.findall(r"^::: sfumato\.(\S+)$", (DOCS / "api.md").read_text("utf-8"), re.MULTILINE)
    adapters = [f"sklearn.{name}" for name in sfumato.sklearn.__all__]
    assert sorted(names) == sorted([*(set(sf.__all__) - {"__version__"}), *adapters])


def test_the_page_of_commands_has_every_verb_and_its_options_and_no_link_by_chance() -> None:
    page = runpy.run_path(str(DOCS / "list_commands.py"))["write_page"]()
    for name in app.list_commands(click.Context(app)):
        assert f"\n## sfumato {name}\n" in page
    assert "### sfumato stream publish\n" in page
    section = page.partition("## sfumato sanitize\n")[2].partition("\n## ")[0]
    assert {f"--{name.replace('_', '-')}" for name in all_parameters()} <= set(re.findall(r"--[\w-]+", section))
    assert "[" not in re.sub(r"`[^`]*`|\\\[", "", page)


@pytest.mark.parametrize("page", sorted(DOCS.glob("**/*.md")), ids=lambda page: page.stem)
def test_links_of_a_page_lead_to_pages_of_the_site(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
        if target in ("commands.md", "../commands.md"):  # written when the site is built
            continue
        found = (page.parent / target).resolve()
        assert found.is_relative_to(DOCS), f"{target} is not among the pages of the site: name it, without a link"
        assert found.is_file() or (ADDED / found.name).is_file() or (ADDED / "notebooks" / found.name).is_file(), target


def test_functions_on_the_page_of_the_architecture_exist() -> None:
    text = (DOCS / "architecture.md").read_text("utf-8")
    found = re.findall(r"`([\w/]+\.py): ([\w.]+)`", text)
    assert len(found) > 20
    for path, name in found:
        source = (DOCS.parent / "src" / "sfumato" / path).read_text("utf-8")
        assert re.search(rf"(?:def|class) {name.rpartition('.')[2]}\b", source), f"{path}: {name}"
    folders = {path.name for path in (DOCS.parent / "src" / "sfumato").iterdir() if (path / "__init__.py").is_file()}
    assert {name for name in folders if f"`{name}`" not in text} == set()
