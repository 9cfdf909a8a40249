"""The glossary, written from the terms that reports explain: ``python docs/list_terms.py``."""

from __future__ import annotations

from pathlib import Path

from sfumato.assess.glossary import TERMS

GLOSSARY = Path(__file__).parent / "glossary.md"


def write_glossary() -> str:
    """Text of the page: a line for each term, in alphabetical order."""
    lines = [
        "# Glossary",
        "",
        "The terms of reports, certificates and these pages. `docs/list_terms.py` writes this page from the list that",
        "the tooltips of a report use.",
        "",
        "|Term|Meaning|",
        "|---|---|",
    ]
    for term in sorted(TERMS, key=lambda term: term.name.lower()):
        also = f" ({', '.join(term.also)})" if term.also else ""
        lines.append(f"|{term.name}{also}|{term.meaning}|")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    GLOSSARY.write_text(write_glossary(), "utf-8")
