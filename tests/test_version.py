"""The version stands in one place, and what others quote agrees with it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import sfumato

ROOT = Path(__file__).parents[1]


def test_the_package_takes_its_version_from_one_file() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert (ROOT / project["tool"]["hatch"]["version"]["path"]).read_text("utf-8").count(sfumato.__version__) == 1


def test_what_is_cited_and_the_newest_change_have_that_version() -> None:
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text("utf-8"), re.MULTILINE)
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert cited is not None
    assert newest is not None
    assert cited[1] == newest[1] == sfumato.__version__
