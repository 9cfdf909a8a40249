"""Reads every sentence of a certificate and counts it in the original and the released table."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.recount.evidence import Evidence
from tests.recount.patterns import Entry
from tests.recount.sentences import ASSUMPTIONS, SENTENCES

__all__ = ["Complaint", "entry_of", "recount", "recount_release"]

_SOURCES = ("one row is one person", "one row of the stream is one person")


@dataclass(frozen=True)
class Complaint:
    """A sentence that is false, or that the recount does not know."""

    sentence: str
    problem: str


def entry_of(sentence: str, behind: str) -> Entry | None:
    """The form of a sentence, or None if the recount does not know it."""
    return next((entry for entry in SENTENCES if entry.read(sentence, behind) is not None), None)


def recount_release(folder: Path) -> list[Complaint]:
    """All that is false in the certificate of a release, of a folder with original, request and release."""
    return recount(Evidence(folder))


def recount(evidence: Evidence) -> list[Complaint]:
    """All that is false in a certificate."""
    found = [Complaint("(the head of the certificate)", problem) for problem in _of_head(evidence)]
    for claim in evidence.certificate["claims"]:
        found += _of_sentence(evidence, claim["claim"], claim["basis"])
        found += [Complaint(claim["claim"], problem) for problem in _of_assumptions(evidence, claim["assumes"])]
        found += [Complaint(claim["claim"], problem) for problem in _of_kind(evidence, claim["kind"], claim["assumes"])]
    for refused in evidence.certificate["refused"]:
        found += _of_sentence(evidence, refused["claim"], refused["reason"])
    return found


def _of_sentence(evidence: Evidence, sentence: str, behind: str) -> list[Complaint]:
    entry = entry_of(sentence, behind)
    if entry is None:
        return [Complaint(sentence, f"the recount does not know this sentence, with {behind!r} behind it")]
    parts = entry.read(sentence, behind)
    if entry.recount is None or parts is None:
        return []
    return [Complaint(sentence, problem) for problem in entry.recount(evidence, parts)]


def _of_assumptions(evidence: Evidence, assumes: str) -> Iterator[str]:
    """Every assumption is known, and a person column is assumed only if there is one."""
    for part in _parts(assumes):
        known = next(filter(None, (pattern.fullmatch(part) for pattern in ASSUMPTIONS)), None)
        if known is None:
            yield f"the recount does not know the assumption {part!r}"
            continue
        if part in _SOURCES and "person" in evidence.options and evidence.request["kind"] != "transactions":
            yield "one row is taken for one person, and there is a person column"
        if part.startswith("the person column") and "person" not in evidence.options:
            yield "the claims name a person column, and there is none"


def _parts(assumes: str) -> Sequence[str]:
    """The known assumptions that a text lists between commas; all of it if they are not known."""
    if any(pattern.fullmatch(assumes) for pattern in ASSUMPTIONS):
        return [assumes]
    for comma in reversed([found.start() for found in re.finditer(", ", assumes)]):
        last = assumes[comma + 2 :].removeprefix("and ")
        if any(pattern.fullmatch(last) for pattern in ASSUMPTIONS):
            return [*_parts(assumes[:comma]), last]
    return [assumes]


def _of_kind(evidence: Evidence, kind: str, assumes: str) -> Iterator[str]:
    """With a seed nothing is proved that rests on secret randomness."""
    if kind == "proved" and "seed" in evidence.options and "the random numbers" in assumes:
        yield "it is called proved, and rests on randomness that a seed makes"


def _of_head(evidence: Evidence) -> Iterator[str]:
    """Rows and digests, as the files have them."""
    release = evidence.folder / "out/release"
    if evidence.certificate["rows_out"] != len(evidence.written):
        yield f"{evidence.certificate['rows_out']} rows out are stated, {len(evidence.written)} are there"
    if evidence.request["kind"] != "stream" and evidence.certificate["rows_in"] != evidence.condensed:
        yield f"{evidence.certificate['rows_in']} rows in are stated, {evidence.condensed} are there"
    for name, digest in evidence.certificate["files"].items():
        if hashlib.sha256((release / name).read_bytes()).hexdigest() != digest:
            yield f"{name} has another digest"
    unlisted = {path.name for path in release.iterdir()} - {*evidence.certificate["files"]}
    signatures = {name for name in unlisted if name.startswith("certificate.") and name.endswith(".sig")}
    if unlisted - signatures - {"certificate.json"}:
        yield f"{len(unlisted)} files are not listed"
    if set(evidence.schema) != set(evidence.written.columns) and evidence.schema:
        yield "the schema has other columns than the table"
