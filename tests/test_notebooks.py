"""Notebooks run from top to bottom, and what stands last in a cell shows itself."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

from sfumato.assess import measure
from tests.examples import at_length

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "notebooks"
NOTEBOOKS = {page.stem: page.read_text("utf-8") for page in sorted(FOLDER.glob("*.py"))}


def run_cells(text: str) -> list[Any]:
    """Run the cells of code one after the other, as a notebook does; what each of them shows, if anything."""
    names: dict[str, Any] = {}
    shown = []
    for cell in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        if cell.startswith(" [markdown]"):
            continue
        *body, last = ast.parse(cell.partition("\n")[2]).body
        exec(compile(ast.Module(body, []), "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            shown.append(eval(compile(ast.Expression(last.value), "cell", "eval"), names))
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), names)
    return [each for each in shown if each is not None]


@pytest.mark.parametrize("name", ["reconstruct_a_survey", "sanitize_and_report", *at_length("tune_and_frontier")])
def test_a_notebook_runs_and_shows_what_it_talks_about(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "draw_figures", lambda *_: ())
    monkeypatch.setattr(measure, "catalogue", lambda: ())
    shown = run_cells(NOTEBOOKS[name])
    assert len(shown) >= 2
    pages = [each._repr_html_() for each in shown if hasattr(each, "_repr_html_")]
    assert len(pages) == {"sanitize_and_report": 4, "tune_and_frontier": 1}.get(name, 0)
    assert all(page.startswith("<") for page in pages)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_is_one_to_jupyter_and_stands_on_the_page(name: str) -> None:
    assert "format_name: percent" in NOTEBOOKS[name]
    assert NOTEBOOKS[name].count("# %% [markdown]\n# #") >= 3
    assert f"notebooks/{name}.py" in (FOLDER.parents[1] / "docs" / "notebooks.md").read_text("utf-8")
