"""The index of measures, written from what every measure declares: ``python docs/list_measures.py``."""

from __future__ import annotations

import re
from pathlib import Path

from sfumato.assess.algebra import Measure, Number
from sfumato.assess.findings import Family
from sfumato.assess.measure import declared
from sfumato.assess.numbers import show, spoken_name

PAGES = Path(__file__).parent / "measures"
INDEX = PAGES / "index.md"
FAMILIES = {Family.UTILITY: "Utility", Family.PRIVACY: "Privacy", Family.ATTACK: "Attacks"}


def page_of(name: str) -> Path:
    """Page that explains a finding."""
    told = re.compile(rf"`{re.escape(name.removesuffix('/'))}(/[^`]*)?`")
    return next(page for page in sorted(PAGES.glob("*.md")) if page != INDEX and told.search(page.read_text("utf-8")))


def write_index() -> str:
    """Text of the index: a table for each family, a line for each number."""
    lines = [
        "# Every measure and attack",
        "",
        "What a report may hold, by the name of the finding. *Better* says which way is good, *public* whether the",
        "recipient's edition shows it, *needs* what it is not run without, *figure* where it is drawn. This page is",
        "written by `docs/list_measures.py` from the measures themselves.",
    ]
    for family, title in FAMILIES.items():
        head = ("Finding", "Name on the page", "Better", "Range", "Public", "Needs", "Figure", "Source")
        lines += ["", f"## {title}", "", _row(*head), _row(*["---"] * len(head))]
        for measure in declared():
            lines += [_line(measure, each) for each in measure.numbers if (each.family or measure.family) is family]
    return "\n".join(lines) + "\n"


def _line(measure: Measure, number: Number) -> str:
    name = f"{number.name}COLUMN" if number.of_columns else number.name
    low, high = (
        None if end is None else show(end, number.scale.unit).replace("\u00a0", " ") for end in number.scale.range
    )
    return _row(
        f"[`{name}`]({page_of(number.name).name})",
        spoken_name(number.name.removesuffix("/")),
        "higher" if number.scale.higher else "lower",
        f"{low or 'any'} to {high or 'any'}",
        "yes" if number.scale.public else "no",
        ", ".join(need.name.lower().replace("_", " ") for need in measure.needs),
        f"`{number.figure}`" if number.figure else "",
        measure.source,
    )


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    INDEX.write_text(write_index(), "utf-8")
