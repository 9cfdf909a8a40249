"""Recounts of streams and of joint runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tests.recount.evidence import Evidence
from tests.recount.patterns import Parts, beyond, differs

__all__ = [
    "bare",
    "epochs",
    "fresh",
    "joined",
    "kept_rows",
    "ledger",
    "pseudo_groups",
    "rounds",
    "short_groups",
    "stream_hidden",
    "two_owners",
]


def joined(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The lowest level is that of the stream; the records of a person are limited."""
    yield from differs("level", int(parts["level"]), evidence.options["k"])
    if "most" in parts:
        yield from differs("records of a person", int(parts["most"]), evidence.options["person_rows"])


def epochs(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The epoch is the last one; what is repeated of families stands unchanged in both; enough records were new."""
    yield from differs("epoch", int(parts["epoch"]), len(evidence.tables))
    k = evidence.options["k"] * evidence.options.get("person_rows", 1)
    yield from beyond("fresh records", int(parts["fresh"]), k, len(evidence.original))
    families = int(parts["changed"]) + int(parts["repeated"])
    yield from beyond("families", families, 1, len(evidence.released) / min(k, len(evidence.released)))
    earlier = evidence.folder / f"epoch_{len(evidence.tables) - 1}/release/table.csv"
    if not int(parts["repeated"]):
        return
    before = pd.read_csv(earlier, dtype=str, keep_default_na=False)
    same = before.value_counts().to_frame("before").join(evidence.released.value_counts().rename("now"), how="inner")
    both = int(np.minimum(same["before"], same["now"]).sum())
    if both < int(parts["repeated"]) * k:
        yield f"{parts['repeated']} families were repeated, and {both} rows are those of the epoch before"


def fresh(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """As many fresh records as the lowest level."""
    yield from beyond("fresh records", int(parts["fresh"]), evidence.options["k"], len(evidence.original))


def pseudo_groups(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Groups that were split, of all; a group has as many rows as the certificate says, or more."""
    yield from differs("groups", int(parts["groups"]), evidence.certificate["levels"]["groups"])
    yield from beyond("groups cut out", int(parts["pseudo"]), 1, int(parts["groups"]))


def short_groups(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Groups that are too small are some of all, and only where the paper's split was asked for."""
    yield from beyond("short groups", int(parts["groups"]), 1, evidence.certificate["levels"]["groups"])
    yield from differs("split", evidence.options.get("split", "strict"), "paper")


def stream_hidden(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Rows held out are rows of the source; no more are released than came and were taken in."""
    came = len(evidence.original)
    outside = int(parts["outside"])
    yield from beyond("records held out", outside, 1, came)
    yield from beyond("released rows", len(evidence.released), 1, came - outside)
    if evidence.certificate["rows_in"] > came - outside:
        yield f"{evidence.certificate['rows_in']} records were taken in of {came}, and {outside} were not"


def kept_rows(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Rows that lie at the owner's: those of records taken in, at most as many as asked, and of those held out."""
    yield from differs("rows", int(parts["rows"]), int(parts["inside"]) + int(parts["outside"]))
    yield from beyond("rows of records taken in", int(parts["inside"]), 0, 100)


# ---------------------------------------------------------------------------------------------------------- joint runs


def two_owners(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """The names are those of the two owners."""
    yield from differs(
        "owners", [parts["first"], parts["last"]], [evidence.options["parties"][0], evidence.options["parties"][-1]]
    )


def rounds(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Rounds of clustering are at most those allowed, 20."""
    yield from beyond("rounds", int(parts["rounds"]), 1, 20)


def bare(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Who has all of a group but one or two: at most every owner in every group and column."""
    most = (
        len(evidence.options["parties"])
        * evidence.certificate["levels"]["groups"]
        * (2 * len(evidence.written.columns) + 10)
    )
    yield from beyond("times", int(parts["times"]), 0, most)


def ledger(evidence: Evidence, parts: Parts) -> Iterator[str]:
    """Owners, and lines of the ledger."""
    yield from differs("owners", int(parts["owners"]), len(evidence.options["parties"]))
    lines = sum(fact["fact"] == "opened" for fact in evidence.certificate["facts"])
    yield from differs("lines of the ledger", int(parts["lines"]), lines)
