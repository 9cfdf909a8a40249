"""Small documents from outside are bounded before anybody asks what they mean."""

from __future__ import annotations

import dataclasses
import datetime
import json
import os
import re
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
import tomlkit
from hypothesis import given
from hypothesis import strategies as st

from sfumato.certificate.signature import Signer, expected_signer
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.documents import (
    DEEPEST,
    MOST_BYTES,
    UNLESS_DEFAULT,
    CommentedValue,
    DocumentMismatch,
    Inline,
    Lines,
    Unparsable,
    fits,
    from_json,
    open_regular,
    parse_json,
    parse_toml,
    plain,
    read_bytes,
    read_text,
    toml_entries,
    typed,
    write_json,
    write_toml,
)
from sfumato.core.errors import BadInput, OptionError, SchemaError, printable, shown
from sfumato.engines.outcome import Recipe
from sfumato.methods.geometry.key import Key
from sfumato.parties.config import PartyConfig
from sfumato.parties.peers import fingerprint_of
from sfumato.survey.verbs import read_spec
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
    ("key.pub", expected_signer),
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
    assert read_bytes(link, "thing", "do this") == b"x"
    assert read_text(link, "thing", "do this", linked=True) == "x"
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


def test_a_file_may_have_exactly_as_many_bytes_as_it_may(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 2048)
    assert read_bytes(path, "thing", "do this", most=2048) == b"x" * 2048
    with pytest.raises(OptionError, match="is larger than 1 KiB, the limit; do this"):
        read_bytes(path, "thing", "do this", most=2047)
    path.write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(OptionError, match="is larger than 1 MiB, the limit; do this"):
        read_text(path, "thing", "do this", most=1 << 20)


def test_a_document_may_be_exactly_as_long_as_it_may() -> None:
    assert parse_json("[1]", most=3) == [1]
    assert parse_json(b"[1]", most=3) == [1]
    with pytest.raises(Unparsable, match="longer than such a document may be"):
        parse_json("[1]", most=2)


def test_numbers_are_read_up_to_the_largest_float() -> None:
    largest = int(sys.float_info.max)
    assert parse_json(f"[{largest}, {-largest}, 1.5]") == [largest, -largest, 1.5]
    for text in (f"{10 * largest}", f"{-10 * largest}", "-1e999"):
        with pytest.raises(Unparsable, match="a number out of range"):
            parse_json(f"[{text}]")


def test_a_name_has_as_many_parts_as_tables_may_stand_inside_one_another() -> None:
    assert parse_toml(".".join("a" * DEEPEST) + " = 1")
    with pytest.raises(Unparsable, match="a name of more than 32 parts"):
        parse_toml(".".join("a" * (DEEPEST + 1)) + " = 1")


def test_records_are_read_as_the_texts_that_they_are() -> None:
    text = '{"a": 1e999, "b": ' + "9" * 5000 + ', "c": NaN, "d": 007e1}'
    assert parse_json(text.replace("007e1", "7.50"), verbatim=True) == {
        "a": "1e999",
        "b": "9" * 5000,
        "c": "NaN",
        "d": "7.50",
    }
    with pytest.raises(Unparsable, match="a key that comes twice"):
        parse_json('{"a": 1, "a": 2}', verbatim=True)


def test_a_toml_file_says_its_format_and_has_known_entries_only() -> None:
    read = partial(toml_entries, what="thing", do="fix it", known=("a", "b"))
    assert read("format = 1\na = 2") == {"a": 2}
    for text in ("a = 2", "format = 2", "format = true", "format = 1.0", 'format = "1"'):
        with pytest.raises(OptionError, match="the thing has no 'format = 1'; this version reads no other"):
            read(text)
    with pytest.raises(OptionError, match="the thing has an unknown entry 'c'; known are a, b"):
        read("format = 1\nz = 1\nc = 1")
    with pytest.raises(SchemaError, match=r"the thing is not valid TOML \(at line 1, column 5\); fix it"):
        read("a = ?", error=SchemaError)


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


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass(frozen=True)
class Part:
    name: str
    colour: Colour = Colour.RED
    way: Literal["up", "down", 3] = "up"
    pair: tuple[int, float] = (0, 0.0)


@dataclasses.dataclass(frozen=True)
class Shape:
    name: str
    count: int
    share: float = 0.5
    names: tuple[str, ...] = ()
    notes: dict[str, int] = dataclasses.field(default_factory=dict)
    maybe: str | None = None
    part: Part | None = None
    parts: tuple[Part, ...] = dataclasses.field(default=(), metadata=UNLESS_DEFAULT)
    by_name: Mapping[str, tuple[Part, ...]] = dataclasses.field(default_factory=dict, metadata=UNLESS_DEFAULT)
    number: bool | int | str = False


TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
WHOLE = st.integers(-(2**63), 2**63)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
PARTS = st.builds(
    Part, TEXTS, st.sampled_from(Colour), st.sampled_from(["up", "down", 3]), st.tuples(WHOLE, NUMBERS | WHOLE)
)
SHAPES = st.builds(
    Shape,
    name=TEXTS,
    count=WHOLE,
    share=NUMBERS,
    names=st.lists(TEXTS, max_size=2).map(tuple),
    notes=st.dictionaries(TEXTS, WHOLE, max_size=2),
    maybe=st.none() | TEXTS,
    part=st.none() | PARTS,
    parts=st.lists(PARTS, max_size=2).map(tuple),
    by_name=st.dictionaries(TEXTS, st.lists(PARTS, max_size=2).map(tuple), max_size=2),
    number=st.booleans() | WHOLE | TEXTS,
)


@given(SHAPES)
def test_a_shape_comes_back_from_json_as_it_was_written(shape: Shape) -> None:
    assert typed(Shape, plain(shape)) == shape
    for form in ("line", "compact", "canonical", "pretty"):
        assert from_json(Shape, write_json(shape, form)) == shape
    assert write_json(plain(shape)) == write_json(shape)


@given(SHAPES)
def test_a_shape_comes_back_from_toml_as_it_was_written(shape: Shape) -> None:
    assert typed(Shape, parse_toml(write_toml(plain(shape), "a note"))) == shape


@given(SHAPES, st.sampled_from(["unknown", "lacking", "wrong"]), st.data())
def test_an_entry_too_many_lacking_or_of_another_type_is_refused(shape: Shape, what: str, data: st.DataObject) -> None:
    document = plain(dataclasses.replace(shape, parts=(Part("x"),)))
    table = data.draw(st.sampled_from([document, document["parts"][0]]))
    if what == "unknown":
        table["secret"] = 1
    elif what == "lacking":
        del table["name"]
    else:
        table[data.draw(st.sampled_from(sorted(table)))] = data.draw(st.sampled_from([object(), [[]], 1j]))
    with pytest.raises(DocumentMismatch) as told:
        typed(Shape, document)
    assert "secret" not in str(told.value)
    assert told.value.problem == {"unknown": "unknown", "lacking": "missing", "wrong": "wrong"}[what]


def test_what_is_default_is_left_out_where_the_shape_says_so() -> None:
    assert "parts" not in plain(Shape("a", 1))
    assert plain(Shape("a", 1, parts=(Part("x"),)))["parts"] == [
        {"name": "x", "colour": "red", "way": "up", "pair": [0, 0.0]}
    ]


def test_a_misfit_says_where_it_is() -> None:
    document = {"name": "a", "count": 1, "parts": [{"name": "x"}, {"name": "y", "colour": "green"}]}
    with pytest.raises(DocumentMismatch, match=r"^an entry 'parts.colour' that is not of type Colour$") as told:
        typed(Shape, document)
    assert told.value.path == ("parts", 1, "colour")
    with pytest.raises(DocumentMismatch, match=r"^fewer entries than it should in 'part'$"):
        typed(Shape, {"name": "a", "count": 1, "part": {}})
    with pytest.raises(DocumentMismatch, match=r"^other entries than it should in 'part'$") as told:
        typed(Shape, {"name": "a", "count": 1, "part": {"name": "x", "secret": 1}})
    assert (told.value.entry, told.value.path) == ("secret", ("part",))
    with pytest.raises(DocumentMismatch, match=r"^fewer entries than it should$") as told:
        typed(Shape, {"count": 1})
    assert (told.value.entry, told.value.path) == ("name", ())
    with pytest.raises(DocumentMismatch, match=r"^an entry 'part.way' that is not of type Literal\['up', 'down', 3\]$"):
        typed(Shape, {"name": "a", "count": 1, "part": {"name": "x", "way": "left"}})
    with pytest.raises(DocumentMismatch, match=r"^no dict\[str, int\]$"):
        typed(dict[str, int], [])


def test_values_by_themselves_fit_a_shape_or_do_not() -> None:
    assert fits(Shape, {"count": 3, "parts": [{"name": "a"}]})
    assert not fits(Shape, {"count": 3.5})
    assert not fits(Shape, {"later": 3})
    assert fits(tuple[int, ...], [1, 2])
    assert not fits(tuple[int, ...], [1, True])


@dataclasses.dataclass(frozen=True)
class Made:
    given: int
    made: int = dataclasses.field(init=False, default=3)


@pytest.mark.parametrize(
    ("shape", "good", "bad"),
    [
        (tuple[int, float], [[1, 2.0], [1, 2]], [[1], [1, 2.0, 3], [], [1.5, 2.0], "12", {"a": 1}]),
        (tuple[int, ...], [[], [1], [1, 2]], [[True], [1, None], 1]),
        (list[int], [[], [1], [1, 2]], [["a"], [1, 2.5], {}]),
        (Sequence[int], [[], [1, 2]], [["a"], "ab"]),
        (Literal[1, "up"], [1, "up"], [True, 1.0, "down", None]),
        (float, [1, 1.5, -2], [float("nan"), float("inf"), -float("inf"), True, "1", None]),
        (int, [1, -1], [True, 1.0, "1"]),
        (bool, [True, False], [1, 0, "true"]),
        (str, ["", "a"], [1, None, ["a"]]),
        (Colour, ["red"], ["green", ["red"], None, 1]),
        (dict[str, int], [{}, {"a": 1}], [{1: 1}, {"a": "1"}, [], None]),
        (int | None, [None, 1], ["1", True]),
        (int | str, [1, "1"], [None, 1.5, True]),
        (datetime.date, [datetime.date(2020, 1, 31)], ["2020-01-31", 1]),
        (set[int], [], [{1}, [1]]),
        (Made, [{"given": 1}], [{"given": 1, "made": 3}, {}]),
        (object, [1, None, [object()]], []),
    ],
    ids=lambda each: "" if isinstance(each, list) else str(each),
)
def test_a_value_is_of_its_shape_or_refused(shape: Any, good: list[Any], bad: list[Any]) -> None:
    for value in good:
        read = typed(shape, value)
        assert plain(read) == (value if shape is not Made else {"given": 1, "made": 3})
    for value in bad:
        with pytest.raises(DocumentMismatch):
            typed(shape, value)


def test_lists_and_tuples_are_read_as_such() -> None:
    assert typed(list[int], [1, 2]) == [1, 2]
    assert typed(tuple[int, ...], [1, 2]) == typed(tuple[int, int], [1, 2]) == (1, 2)


def test_a_document_has_the_same_bytes_in_each_form() -> None:
    document = {"b": (1, 2.5), "a": "é"}
    assert write_json(document) == write_json(document, "line") == '{"b": [1, 2.5], "a": "é"}'
    assert write_json(document, "compact") == '{"b":[1,2.5],"a":"é"}'
    assert write_json(document, "canonical") == '{"a":"é","b":[1,2.5]}'
    assert write_json(document, "pretty") == '{\n  "b": [\n    1,\n    2.5\n  ],\n  "a": "é"\n}\n'
    assert write_json(document, "compact", escaped=True) == '{"b":[1,2.5],"a":"\\u00e9"}'


def test_numbers_that_are_not_finite_are_not_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json({"a": float("nan")})
    with pytest.raises(TypeError, match="a object is no value"):
        write_json({"a": object()})


MOMENTS = st.datetimes() | st.dates()
SCALARS = TEXTS | WHOLE | st.floats(allow_nan=False) | st.booleans() | MOMENTS
LISTS = st.lists(SCALARS | st.lists(SCALARS, max_size=2), max_size=3)
TABLES = st.recursive(
    st.dictionaries(TEXTS, SCALARS | LISTS, max_size=3),
    lambda inside: st.dictionaries(TEXTS, SCALARS | inside | st.lists(inside, min_size=1, max_size=2), max_size=3),
    max_leaves=5,
)


@given(TABLES)
def test_toml_is_read_back_as_it_was_written(document: dict[str, Any]) -> None:
    assert tomllib.loads(write_toml(document)) == document


@given(SCALARS | LISTS)
def test_values_of_toml_are_written_as_they_always_were(value: Any) -> None:
    assert write_toml({"a": value}) == f"a = {tomlkit.item(value).as_string()}\n"


def test_toml_has_comments_tables_on_a_line_and_lists_of_lines() -> None:
    document = {
        "a b": CommentedValue(1, "one\ntwo"),
        "none": None,
        "at": datetime.datetime(2020, 1, 31, 12),
        "law": Inline(name="x", of=Inline(a=[1, 2.5])),
        "steps": Lines([Inline(op="add"), Inline(op="turn")]),
        "above": {"only": {"x": True}},
    }
    assert write_toml(document, "Head.") == (
        '# Head.\n# one\n# two\n"a b" = 1\nat = 2020-01-31T12:00:00\nlaw = {name = "x", of = {a = [1, 2.5]}}\n'
        'steps = [\n    {op = "add"},\n    {op = "turn"},\n]\n\n[above.only]\nx = true\n'
    )


def test_a_typed_document_comes_back_as_it_was_written() -> None:
    shape = Shape("a", 3, 1.5, ("x", "y"), {"z": 2}, None)
    assert typed(Shape, parse_json(json.dumps(dataclasses.asdict(shape)))) == shape
    assert typed(Shape, {"name": "a", "count": 3}) == Shape("a", 3)


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
