"""Small documents from outside are bounded before anybody asks what they mean."""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sfumato.documents import (
    DEEPEST,
    MOST_BYTES,
    Unparsable,
    open_regular,
    parse_json,
    parse_toml,
    read_bytes,
    read_text,
    typed,
)
from sfumato.errors import BadInput, OptionError, printable, shown
from sfumato.geometry.key import Key
from sfumato.laws.spec import NoiseSpec
from sfumato.parties.certificates import fingerprint_of
from sfumato.parties.config import PartyConfig
from sfumato.privacy.randomized import read_spec
from sfumato.publish import Signer, Verifier
from sfumato.recipe import Recipe
from sfumato.tables.schema import Schema


def a_pipe(path: Path) -> Path:
    os.mkfifo(path)
    return path


def endless(path: Path) -> Path:
    path.symlink_to("/dev/zero")
    return path


def too_large(path: Path) -> Path:
    path.touch()
    os.truncate(path, MOST_BYTES + 1)
    return path


def not_text(path: Path) -> Path:
    path.write_bytes(b"\xff\xfe\xfa")
    return path


def deep(path: Path) -> Path:
    path.write_text("a = " + "[" * 100_000 if path.suffix == ".toml" else "[" * 100_000)
    return path


def a_folder(path: Path) -> Path:
    path.mkdir()
    return path


READERS: list[tuple[str, Callable[[Path], Any]]] = [
    ("schema.toml", Schema.load),
    ("recipe.toml", Recipe.load),
    ("key.toml", Key.load),
    ("spec.toml", NoiseSpec.read),
    ("spec.json", NoiseSpec.read),
    ("certificate.json", lambda path: read_spec(path, "age")),
    ("party.toml", PartyConfig.load),
    ("certificate.pem", fingerprint_of),
    ("key.pem", Signer.load),
    ("key.pub", Verifier.load),
]


@pytest.mark.parametrize(("name", "read"), READERS, ids=[name for name, _ in READERS])
@pytest.mark.parametrize("make", [a_pipe, endless, too_large, not_text, deep, a_folder])
def test_every_reader_refuses_what_is_no_small_text_in_a_regular_file(
    tmp_path: Path, name: str, read: Callable[[Path], Any], make: Callable[[Path], Path]
) -> None:
    path = make(tmp_path / name)
    with pytest.raises(BadInput) as caught:
        read(path)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400 + len(str(tmp_path))


def test_a_link_is_followed_only_where_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("x")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "there")
    with open_regular(link) as file:
        assert file.read() == b"x"
    with pytest.raises(OptionError, match=r"a link, not a regular file\); do this"):
        read_bytes(link, "thing", "do this", linked=False)


@pytest.mark.parametrize("name", ["no\0name", "x" * 300, "half\ud800"])
def test_a_name_that_no_file_can_have_is_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(OptionError, match=r"(there is no|the) thing '.*; do this"):
        read_text(tmp_path / name, "thing", "do this")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested more than 32 deep"),
        ("[" * (DEEPEST + 1) + "1" + "]" * (DEEPEST + 1), "nested more than 32 deep"),
        ('{"a": 1, "a": 2}', "a key that comes twice"),
        ('{"a": NaN}', "not finite"),
        ('{"a": -Infinity}', "not finite"),
        ("1e999", "a number out of range"),
        ("9" * 400, "a number out of range"),
        ("9" * 5000, "a number out of range"),
        (r'"\ud800"', "half a character"),
        (r'{"\ud800": 1}', "half a character"),
        ("{", "at line 1, column 2"),
    ],
    ids=lambda text: text[:20],
)
def test_json_out_of_bounds_is_refused_without_being_quoted(text: str, words: str) -> None:
    with pytest.raises(Unparsable, match=words):
        parse_json(text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a = " + "[" * 100_000, "nested more than 32 deep"),
        ("a = " + "[" * DEEPEST + "1" + "]" * DEEPEST, "nested more than 32 deep"),
        (".".join("a" * 20_000) + " = 1", "a name of more than 32 parts"),
        ("['a' . \"b\"." + ".".join("a" * 20_000) + "]", "a name of more than 32 parts"),
        ("a = " + "9" * 5000, "out of range"),
        ("a = " + "9" * 400, "a number out of range"),
        ("a = ?", re.escape("at line 1, column 5")),
        ("secret = 1\nsecret = 2", "at "),
    ],
    ids=lambda text: text[:20],
)
def test_toml_out_of_bounds_is_refused_without_being_quoted(text: str, words: str) -> None:
    with pytest.raises(Unparsable, match=words) as caught:
        parse_toml(text)
    assert "secret" not in str(caught.value)


def test_documents_within_the_bounds_are_read() -> None:
    inner: Any = 1
    for _ in range(DEEPEST):
        inner = [inner]
    assert parse_json(str(inner)) == inner
    assert parse_toml('a."b.c" = 1\ngamma = inf\nwords = "a.b.c.d"')["a"] == {"b.c": 1}


def test_what_is_printed_cannot_steer_a_terminal() -> None:
    text = "\x1b[2J\x9b1m\u202e\u2066\ud800\r\n\t\x7fé 字"
    out = printable(text)
    assert out.isprintable()
    assert out.endswith("é 字")
    assert printable("a\nb\x1b", lines=True) == "a\nb\\x1b"
    assert printable("5\N{NO-BREAK SPACE}%") == "5\N{NO-BREAK SPACE}%"
    assert printable("\N{LINE SEPARATOR}") == "\\u2028"
    assert shown(text).isprintable()
    assert len(shown("x" * 10_000)) < 200


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    count: int
    share: float = 0.5
    names: tuple[str, ...] = ()
    notes: dict[str, int] = dataclasses.field(default_factory=dict)
    maybe: str | None = None


def test_a_typed_document_comes_back_as_it_was_written() -> None:
    shape = Shape("a", 3, 1.5, ("x", "y"), {"z": 2}, None)
    assert typed(Shape, parse_json(json.dumps(dataclasses.asdict(shape)))) == shape
    assert typed(Shape, {"name": "a", "count": 3}) == Shape("a", 3)
    assert typed(Shape, {"name": "a", "count": 3, "later": 1}, extra=True) == Shape("a", 3)


@pytest.mark.parametrize(
    "document",
    [
        None, [], {}, {"name": "a"}, {"name": "a", "count": True}, {"name": "a", "count": 1.0}, {"name": 3, "count": 3},
        {"name": "a", "count": 3, "later": 1}, {"name": "a", "count": 3, "names": [1]},
        {"name": "a", "count": 3, "names": "x"}, {"name": "a", "count": 3, "notes": {"z": "2"}},
        {"name": "a", "count": 3, "notes": []}, {"name": "a", "count": 3, "share": "1"},
        {"name": "a", "count": 3, "maybe": 0},
    ],
)  # fmt: skip
def test_what_is_not_of_the_shape_is_refused_without_a_value(document: object) -> None:
    with pytest.raises(Unparsable) as told:
        typed(Shape, document)
    assert "later" not in str(told.value)
