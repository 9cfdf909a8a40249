"""The one encoding of a certificate: what is written comes back, and nothing else is read."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from sfumato.certificate import AlteredCertificate, Certificate, CertifiedRun, certify
from sfumato.core.errors import BadInput
from sfumato.core.facts import ColumnsDropped, Fact, HeldOut, RandomnessSource, Shuffled
from sfumato.core.groups.facts import CountsKept, Grouped
from sfumato.methods.condense.facts import GroupSynthesis

DIGEST = "0123456789abcdef" * 4
FACTS: tuple[Fact, ...] = (
    RandomnessSource("release", "ChaCha20"),
    ColumnsDropped(("näme",), ("lvl",)),
    HeldOut(7),
    Grouped("AY05 ConstructGroups", 100, 9, 10, 0, 0, 0, 0),
    GroupSynthesis("mean and covariance", "uniform along eigenvectors", 100),
    CountsKept(2, 1),
    Shuffled(100),
)


def a_certificate(**changed: Any) -> Certificate:
    parameters = {"k": 10, "grouping": "paper", "bounds": (("age", 1, 2.5),)}
    run = CertifiedRun("0.2.0", "release", "condense-paper", parameters, 100, 100, DIGEST)
    return dataclasses.replace(certify(FACTS, run), **changed)


def written(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def altered(*path: Any, to: Any) -> str:
    """Write a certificate with one entry changed, in the encoding of all certificates."""
    document = inside = a_certificate().to_document()
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = to
    return written(document)


@pytest.mark.parametrize("digest", [None, DIGEST])
def test_a_certificate_comes_back_from_json(digest: str | None) -> None:
    files = {} if digest is None else {"table.csv": digest, "schema.toml": DIGEST}
    certificate = a_certificate(table_sha256=digest, files=files)
    again = Certificate.from_json(certificate.to_json())
    assert again == certificate
    assert again.table_sha256 is digest or again.table_sha256 == digest
    assert again.to_json() == certificate.to_json()
    assert json.loads(certificate.to_json())["format"] == 2
    assert certificate.levels == {
        "smallest_group": 10,
        "groups": 9,
        "violations": 0,
    }


def test_equal_certificates_have_equal_texts() -> None:
    one = a_certificate(parameters={"a": 1, "b": 2}, files={"table.csv": DIGEST, "schema.toml": DIGEST})
    two = a_certificate(parameters={"b": 2, "a": 1}, files={"schema.toml": DIGEST, "table.csv": DIGEST})
    two = dataclasses.replace(two, created=one.created)
    assert one == two
    assert one.to_json() == two.to_json()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 3}', '{"format": true}', "not json", "\ufeff{}", "1e999"])
def test_a_text_that_is_no_certificate_is_bad_input(text: str) -> None:
    with pytest.raises(BadInput):
        Certificate.from_json(text)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda text: text.replace('  "claims"', '  "note": "The table is anonymous",\n  "claims"'), "1 unknown entry"),
        (lambda text: text.replace('  "claims"', '  "claims": [],\n  "claims"'), "a key that comes twice"),
        (
            lambda text: text.replace('"smallest": 10,', '"smallest": 10,\n      "smallest": 10,'),
            "a key that comes twice",
        ),
        (lambda text: text.replace('"k": 10', '"k": NaN'), "not finite"),
        (lambda text: text.replace('"k": 10', '"k": -Infinity'), "not finite"),
        (lambda text: text.replace('"k": 10', '"k": 1e400'), "out of range"),
        (lambda text: text.replace('"k": 10', '"k": ' + "9" * 5000), "out of range"),
        (lambda text: text.replace('"k": 10', '"k": ' + "9" * 400), "out of range"),
        (lambda text: text.replace('"k": 10', '"k": ' + "[" * 100_000 + "]" * 100_000), "deep"),
        (lambda text: text.replace('"k": 10', '"k": ' + "[" * 40 + "]" * 40), "deep"),
        (lambda text: text.replace('"k": 10', '"k": "\\ud800"'), "half a character"),
        (lambda text: text.replace('"k": 10', '"\\ud800": 10'), "half a character"),
        (lambda text: text.replace('"k": 10', '"k": 1e1'), "not in the form"),
        (lambda text: text.replace("ä", "\\u00e4"), "not in the form"),
        (lambda text: text.replace("\n", "\r\n"), "not in the form"),
        (lambda text: text + " ", "not in the form"),
        (lambda text: text.rstrip("\n"), "not in the form"),
        (lambda text: written(dict(reversed(json.loads(text).items()))), "not in the form"),
        (lambda text: written({key: value for key, value in json.loads(text).items() if key != "levels"}), "'levels'"),
    ],
)
def test_a_certificate_in_any_other_bytes_is_altered(change: Any, words: str) -> None:
    text = change(a_certificate().to_json())
    assert text != a_certificate().to_json()
    with pytest.raises(AlteredCertificate, match=words) as refused:
        Certificate.from_json(text)
    assert str(refused.value).count(". ") == 0, "one sentence"


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("sfumato", (2, "", "newest", "0.2.0 the table is anonymous", None)),
        ("created", ("yesterday", "2026-01-01", "2026-01-01T00:00:00", "2026-01-01T00:00:00+01:00", 5, None)),
        ("randomness", ("none", None, 1, ["release"])),
        ("method", ("", "Condense", "the table is anonymous", None, 1)),
        ("parameters", ([], "k", None)),
        ("rows_in", (True, 1.0, "1", -1, None)),
        ("rows_out", (False, 100.0, "100", -1, None)),
        ("table_sha256", ("None", "", DIGEST[1:], DIGEST.upper(), 0)),
        ("schema_sha256", ("None", None, DIGEST + "0", 0)),
        ("files", ([], {"table.csv": None}, {"table.csv": "0"})),
        ("facts", ({}, [[]], [None], [{}], [{"fact": "shuffled"}])),
        ("claims", ({}, [{}], ["safe"], [{"claim": "x", "kind": "certain", "basis": "y", "assumes": "z"}])),
        ("refused", ({}, [{"claim": "x"}], [{"claim": "x", "reason": None}])),
        ("levels", ([], {}, {"groups": 9})),
    ],
)
def test_an_entry_of_another_type_is_altered(key: str, values: tuple[Any, ...]) -> None:
    for value in values:
        with pytest.raises(AlteredCertificate):
            Certificate.from_json(altered(key, to=value))


@pytest.mark.parametrize(
    "change",
    [
        ("levels", "smallest_group"),
        ("levels", "groups"),
        ("levels", "violations"),
        ("facts", 3, "smallest"),
    ],
)
def test_levels_that_are_not_those_of_the_facts_are_altered(change: tuple[Any, ...]) -> None:
    with pytest.raises(AlteredCertificate, match="levels"):
        Certificate.from_json(altered(*change, to=999))


@pytest.mark.parametrize("value", [True, 100.0, "100", None, [100]])
def test_an_entry_of_a_fact_of_another_type_is_altered(value: Any) -> None:
    with pytest.raises(AlteredCertificate, match="'records'"):
        Certificate.from_json(altered("facts", 3, "records", to=value))


@pytest.mark.parametrize("names", [["a", 1], ["a", None], [["a"]], "a", {"a": 1}])
def test_names_in_a_fact_are_texts(names: Any) -> None:
    with pytest.raises(AlteredCertificate, match="'identifiers'"):
        Certificate.from_json(altered("facts", 1, "identifiers", to=names))


@pytest.mark.parametrize("form", [0, 1, 3, "2"])
def test_a_certificate_of_another_format_is_refused_in_one_sentence(form: Any) -> None:
    with pytest.raises(BadInput, match=r"^the certificate is not of format 2; use the version that wrote it$"):
        Certificate.from_json(altered("format", to=form))
