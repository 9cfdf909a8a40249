"""The encoding of a CSV file is detected from its letters, applied if they are clear, and otherwise proposed."""

from __future__ import annotations

from pathlib import Path

import pytest

import sfumato as sf
from sfumato.core.errors import OptionError, TableError
from sfumato.tables.files import read_file
from sfumato.tables.header import detect_encoding
from sfumato.tables.source import open_people
from tests.messy_hospital import write_csv

NAMES = {
    "German": ("Name;Straße", "Jürgen;Müllerstraße", "Käthe;Schäferweg", "Zoë;Am Brühl", "Björn;Größengasse"),
    "French": ("nom;ville", "Hélène;Besançon", "François;Orléans", "Zoé;Nîmes"),
    "Spanish": ("nombre;año", "José;1", "Íñigo;2", "Begoña;3"),
    "Polish": ("imię;miasto", "Łukasz;Łódź", "Małgorzata;Kraków", "Żaneta;Gdańsk"),
    "Czech": ("jméno;město", "Jiří;Plzeň", "Žofie;Ústí nad Labem", "Tomáš;Děčín"),
    "Turkish": ("ad;şehir", "Ayşe;İstanbul", "Oğuz;Eskişehir", "Gülçin;İzmir"),
    "Russian": ("имя;город", "Иван;Москва", "Мария;Казань", "Ольга;Тверь"),
    "Greek": ("όνομα;πόλη", "Γιώργος;Αθήνα", "Μαρία;Πάτρα"),
    "Danish": ("navn;by", "Søren;Ærø", "Åse;Århus", "Bjørn;Ringkøbing"),
}


@pytest.mark.parametrize(
    ("language", "encoding"),
    [
        ("German", "latin-1"), ("German", "cp1252"), ("German", "mac-roman"), ("German", "cp850"),
        ("French", "cp1252"), ("Spanish", "latin-1"), ("Polish", "cp1250"), ("Czech", "cp1250"),
        ("Turkish", "cp1254"), ("Russian", "cp1251"), ("Russian", "koi8-r"), ("Greek", "cp1253"), ("Danish", "latin-1"),
        ("German", "utf-16-le"), ("German", "utf-16-be"),
    ],
)  # fmt: skip
def test_words_of_a_language_tell_their_encoding(language: str, encoding: str) -> None:
    text = "\n".join([*NAMES[language], *(f"{row};{row * 7}" for row in range(500))])
    found = detect_encoding(text.encode(encoding))
    assert found is not None
    likely = (found.name,) if found.sure else (found.name, *found.others)
    assert text in [text.encode(encoding).decode(each, "replace") for each in likely]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (b"\xff", r"is not UTF-8 at byte offset 8; its letters look like encoding='cp1252'; name the right one"),
        ("Größe".encode() + b"\xfc\xfc", "is UTF-8 up to byte offset 15 and not there; correct that byte, or name"),
    ],
)
def test_a_file_of_utf8_with_a_damaged_byte_is_refused(tmp_path: Path, cell: bytes, words: str) -> None:
    path = tmp_path / "damaged.csv"
    path.write_bytes(b"a;b\n1;2\n" + cell + b";3\n")
    with pytest.raises(TableError, match=words):
        read_file(path)
    with pytest.raises(TableError, match=words):
        open_people(path)
    assert read_file(path, encoding="latin-1")[1].encoding == "iso8859-1"


def test_what_is_about_as_likely_is_proposed_and_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes("\n".join(NAMES["Polish"]).encode("iso8859-2"))
    words = "look like encoding='iso8859-2' or encoding='cp1250'; name the right one"
    with pytest.raises(TableError, match=words) as told:
        read_file(path)
    assert dict(told.value.proposed) == {"encoding": "iso8859-2"}
    assert read_file(path, encoding="iso8859-2")[0].column_names == ["imię", "miasto"]


def test_a_latin_file_is_read_in_memory_in_parts_and_from_python(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "visits.csv")
    plain = read_file(write_csv(tmp_path / "plain.csv", "utf-8"))[0]
    table, form = read_file(path)
    assert table.equals(plain)
    assert form.found == ("Not UTF-8: read as cp1252 (detected); --encoding sets another.",)
    source = open_people(path)
    assert (source.form.encoding, source.form.found) == (form.encoding, form.found)
    assert source.head(["Name", "Größe"], 9_000).column("Name").to_pylist() == plain.column("Name").to_pylist()
    with pytest.warns(UserWarning, match=r"read as cp1252 \(detected\); encoding= sets another$"):
        schema = sf.inspect(path)
    assert schema.names == tuple(plain.column_names)
    assert sf.inspect(path, encoding="cp1252").names == schema.names
    with pytest.raises(OptionError, match="encoding= is for files, and a Table is read already"):
        sf.inspect(plain, encoding="cp1252")


def test_letters_beyond_the_beginning_of_a_file_in_parts_are_an_error_that_names_the_option(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_bytes(b"a;b\n" + b"1;2\n" * 300_000 + "Müller;3\n".encode("latin-1"))
    with pytest.raises(TableError, match=r"'.*late\.csv' is not utf-8 throughout; name its encoding with encoding="):
        open_people(path, decimal=".").head(["a"], 400_000)
    rows = open_people(path, decimal=".", encoding="latin-1").head(["a"], 400_000)
    assert rows.column("a").to_pylist()[-1] == "Müller"


@pytest.mark.parametrize("name", ["utf-9", "", "hex", "a b"])
def test_an_encoding_that_is_none_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "a.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(OptionError, match="there is no encoding"):
        read_file(tmp_path / "a.csv", encoding=name)
