"""How a CSV file is written: its encoding, and its header row, which may have titles or remarks above it.

A cell that is taken for a column's name is released. So a row below the first is taken for the header only
if the rows below it show that it is one; otherwise it is only proposed.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.core.errors import OptionError, TableError, shown

__all__ = [
    "DELIMITERS",
    "Encoding",
    "Header",
    "codec_name",
    "csv_header",
    "detect_encoding",
    "encoding_of",
    "find_header",
    "refuse_alike",
    "sheet_rows_from",
    "to_utf8",
]

DELIMITERS = ",;\t|"
"""Delimiters of CSV that are recognized."""

_MOST_ROWS = 200  # rows that are looked at
_MOST_ABOVE = 30  # rows that may stand above the header
_LEAST_BODY = 3  # rows below it that can show what it is
_NUMBER_LIKE = re.compile(r"[+-]?[\d][\d.,:/ \-]*%?")
_SHARE = 0.8
_INVISIBLE = ("Cc", "Cf")  # Unicode categories: controls, and formats such as a zero-width space


@dataclass(frozen=True)
class Header:
    """Row number of the header, counted from 1.

    ``above`` counts the rows with a cell above it. One that is not ``sure`` is only a proposal.
    """

    row: int
    above: int = 0
    sure: bool = True


def find_header(rows: Sequence[Sequence[Any]]) -> Header | None:
    """Header among the first rows of a table; None if no row stands out.

    A title fills at most half as many cells as a row of the table. The header is the first row that is none.

    Examples
    --------
    >>> rows = [["Admissions of 2023", ""], ["", ""], ["age", "ward"]] + [[30 + row, "B"] for row in range(20)]
    >>> find_header(rows)
    Header(row=3, above=1, sure=True)
    """
    rows = rows[:_MOST_ROWS]
    filled = [sum(not _is_blank(cell) for cell in row) for row in rows]
    first = next((place for place, count in enumerate(filled) if count), None)
    if first is None:
        return None
    most = max(filled)
    names_of_rows = most == 2 and _is_blank(rows[first][0])  # as R writes them: the first column has no name
    if 2 * filled[first] > most or names_of_rows:
        return Header(first + 1)
    end = min(len(rows), first + _MOST_ABOVE)
    place = next((each for each in range(first, end) if 2 * filled[each] > most), None)
    if place is None or not _may_name(rows[place]):
        return None
    above = sum(1 for count in filled[:place] if count)
    body = [row for row, count in zip(rows[place + 1 :], filled[place + 1 :], strict=True) if count]
    return Header(place + 1, above, _is_confirmed(rows[place], body))


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _may_name(row: Sequence[Any]) -> bool:
    """Whether the cells of a row can be column names: distinct texts that are not numbers."""
    names = [cell for cell in row if not _is_blank(cell)]
    texts = all(isinstance(cell, str) and not _NUMBER_LIKE.fullmatch(cell.strip()) for cell in names)
    return texts and len(set(names)) == len(names)


def _is_confirmed(names: Sequence[Any], body: Sequence[Sequence[Any]]) -> bool:
    """Whether the rows below confirm the names: a column of numbers or of few texts, none of them its name."""
    if len(body) < _LEAST_BODY:
        return False
    shown = False
    for place, name in enumerate(names):
        cells = [row[place] for row in body if place < len(row) and not _is_blank(row[place])]
        if _is_blank(name) or len(cells) < _LEAST_BODY:
            continue
        if name in cells:
            return False
        numbers = sum(not isinstance(cell, str) or bool(_NUMBER_LIKE.fullmatch(cell.strip())) for cell in cells)
        shown = shown or numbers >= _SHARE * len(cells) or 4 * len(set(cells)) <= len(cells)
    return shown


def sheet_rows_from(rows: list[list[Any]], header: int, name: str) -> list[list[Any]]:
    """Rows of a sheet from its header on; refuse a header that is empty or beyond the end."""
    if header > len(rows):
        raise OptionError(f"{name} has {len(rows)} rows, so none is row {header}; correct --header-row")
    if all(map(_is_blank, rows[header - 1])):
        raise OptionError(f"row {header} of {name} is empty; name the row of its header with --header-row")
    return rows[header - 1 :]


def csv_header(text: str, name: str, delimiter: str | None, header_row: int | None) -> tuple[str, list[str], Header]:
    """Delimiter, column names and header of a text that begins as CSV.

    Raises
    ------
    OptionError
        For a delimiter that is none, and a header row that the text does not have.
    TableError
        For a header that cannot be read, and one that is only likely.
    """
    if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n' or not delimiter.isascii()):
        raise OptionError("the delimiter is not one plain character; try , or ; or a tab")
    blank = len(text[: len(text) - len(text.lstrip("\r\n"))].splitlines())
    found = Header(header_row or blank + 1)
    if header_row is None and (titled := _below_title(text, blank, delimiter)) is not None:
        delimiter, found = titled
        if not found.sure:
            raise TableError(
                f"line {blank + 1} of {name} looks like a title and line {found.row} like the header; give "
                f"--header-row {found.row}, or --header-row {blank + 1} if that line names the columns"
            ).propose(header_row=found.row)
    rest = _from_line(text, found.row, name)
    line = rest.splitlines()[0]
    delimiter = _usual_delimiter(line) if delimiter is None else delimiter
    try:
        return delimiter, next(csv.reader(io.StringIO(rest, newline=""), delimiter=delimiter)), found
    except (csv.Error, StopIteration):
        raise TableError(f"the header of {name} cannot be read as CSV; name its line with --header-row") from None


def refuse_alike(names: Sequence[str], name: str) -> None:
    """Refuse column names that differ only in invisible characters, spaces or composition."""
    seen: dict[str, int] = {}
    for place, column in enumerate(names, 1):
        first = seen.setdefault(_visible_form(column), place)
        if first != place:
            raise TableError(
                f"columns {first} and {place} of {name} have names that look the same ({shown(column)}): they differ "
                "only in invisible characters, spaces, or how letters are composed; rename one"
            )


def _visible_form(name: str) -> str:
    visible = "".join(mark for mark in name if unicodedata.category(mark) not in _INVISIBLE or mark.isspace())
    return " ".join(unicodedata.normalize("NFC", visible).split())


def _usual_delimiter(line: str) -> str:
    return max(DELIMITERS, key=line.count) if any(mark in line for mark in DELIMITERS) else ","


def _from_line(text: str, number: int, name: str) -> str:
    """The text from a line on; refuse a line that is missing or empty."""
    lines = io.StringIO(text, newline="")
    for before in range(1, number):
        if not lines.readline():
            raise OptionError(f"{name} has {before - 1} lines, so none is line {number}; correct --header-row")
    rest = text[lines.tell() :]
    if not rest or not rest.splitlines()[0].strip():
        raise OptionError(f"line {number} of {name} is empty; name the line of its header with --header-row")
    return rest


def _below_title(text: str, blank: int, delimiter: str | None) -> tuple[str, Header] | None:
    """Delimiter and header below a title; None if the first line holds the names, or no other line can."""
    first = text.splitlines()[blank]
    usual = _usual_delimiter(first) if delimiter is None else delimiter
    marks = dict.fromkeys((usual, *DELIMITERS)) if delimiter is None else (usual,)
    best: tuple[int, tuple[str, Header] | None] = (1, None)
    for mark in marks:
        rows, lines = _parse_rows(text, mark)
        widths = Counter(len(row) for row in rows if any(row))
        width, count = widths.most_common(1)[0] if widths else (0, 0)
        if width <= best[0] or 2 * count <= widths.total():
            continue
        found = find_header(rows)
        if found is not None and not found.above:
            if mark == usual and len(rows[found.row - 1]) == width:
                return None
            found = None
        if found is not None and len(rows[found.row - 1]) != width:
            found = None
        header = None if found is None else Header(lines[found.row - 1], found.above, found.sure)
        best = width, None if header is None else (mark, header)
    return best[1]


def _parse_rows(text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """The first rows, and the line on which each begins."""
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    begin = 1
    try:
        for row in reader:
            rows.append(row)
            lines.append(begin)
            begin = reader.line_num + 1
            if len(rows) == _MOST_ROWS:
                break
    except csv.Error:
        return [], []
    return rows, lines


_CANDIDATES = (
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874", "iso8859-2",
    "iso8859-15", "mac-roman", "cp850", "koi8-r", "cp932", "euc-jp", "gb18030", "big5", "cp949",
)  # fmt: skip
_USUAL = "cp1252"  # by far the most frequent, and proposed first of what is nearly as likely
_NEARLY = 0.9  # share of the confidence of the best at which another is as likely
_LEAST = 0.005  # confidence below which letters say nothing
_SHORTEST = 4  # bytes of words below which they say nothing
_MOST_BAD = 0.02  # share of words that may look wrong
_MOST_WORDS = 1 << 16  # bytes of words that are looked at
_MOST_SCANNED = 1 << 26  # bytes of a file that are searched for them
_BLOCK = 1 << 22
_WORD = re.compile(rb"[A-Za-z\x80-\xff]*[\x80-\xff][A-Za-z\x80-\xff]*")
_INSIDE = frozenset(
    "'.\u2019\u2018\u02bc\u2010\u2011\u2013\u2014\u00b7\u00ad"
)  # apostrophes, hyphens and dots in words
_ONE_SCRIPT = ("LATIN", "GREEK", "CYRILLIC", "HEBREW", "ARABIC", "THAI", "HANGUL", "CJK")  # never two in a word
_SYMBOL_LETTERS = frozenset("µªº")  # symbols that count as letters


@dataclass(frozen=True)
class Encoding:
    """Most likely encoding of a file, likely alternatives, and whether the text settles it."""

    name: str
    others: tuple[str, ...] = ()
    sure: bool = True


def encoding_of(data: bytes, name: str, encoding: str | None, *, whole: bool = True) -> tuple[str, bool]:
    """Given or detected encoding of a CSV file, and whether it was detected.

    Parameters
    ----------
    data : bytes
        The file, or its beginning unless ``whole``.
    name : str
        Of the file, for messages.
    encoding : str, optional
        As it was given; without it UTF-8, or what is detected if the data is not.

    Raises
    ------
    OptionError
        For a name that no encoding of text has.
    TableError
        For bytes that are neither UTF-8 nor of another encoding that can be detected; the offset is named.
    """
    known = "utf-8" if encoding is None else codec_name(encoding)
    if known == "utf-8" and data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16", False  # never UTF-8: a spreadsheet's "Unicode text"
    if known != "utf-8" or (fault := _utf8_fault(data, whole=whole)) is None:
        return known, False
    if not data[:fault].isascii():
        raise TableError(
            f"{name} is UTF-8 up to byte offset {fault} and not there; correct that byte, or name another encoding "
            "with --encoding"
        )
    found = detect_encoding(data)
    if encoding is not None or found is None or not found.sure:
        raise _undecodable(name, "UTF-8", fault, found)
    return found.name, True


def to_utf8(data: bytes, name: str, encoding: str | None) -> tuple[bytes, str, bool]:
    """The data as UTF-8 without byte order mark, its original encoding, and whether that was detected."""
    known, detected = encoding_of(data, name, encoding)
    if known == "utf-8":
        return data.removeprefix(codecs.BOM_UTF8), known, detected
    try:
        text = codecs.decode(data, known)
    except UnicodeDecodeError as error:
        found = Encoding("utf-8") if _utf8_fault(data, whole=True) is None else detect_encoding(data)
        raise _undecodable(name, known, error.start, found) from None
    return text.removeprefix("\ufeff").encode(), known, detected


def codec_name(encoding: str) -> str:
    """Python's name of an encoding; unknown encodings are refused."""
    try:
        "".encode(encoding)  # not only a codec, but one of text
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise OptionError(f"there is no encoding {shown(encoding)}; try utf-8, latin-1 or cp1252") from None


def _utf8_fault(data: bytes, *, whole: bool) -> int | None:
    """Offset of the first invalid UTF-8 byte, or of a zero byte of UTF-16; None if there is none."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(data), _BLOCK):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(data[start : start + _BLOCK], final=whole and start + _BLOCK >= len(data))
        except UnicodeDecodeError as error:
            return start - pending + error.start
    return data.index(0) if _has_zeros(data) else None


def detect_encoding(data: bytes) -> Encoding | None:
    r"""Most likely encoding of data that is not UTF-8; None if no candidate gives plausible words.

    Examples
    --------
    >>> detect_encoding("Stadt;Straße;Größe\nMünchen;Am Brühl;1,80\n".encode("latin-1")).name
    'cp1252'
    """
    import chardet

    if _has_zeros(data):
        return Encoding("utf-16-le" if data[1:1_000:2].count(0) > data[:1_000:2].count(0) else "utf-16-be")
    words = _words(data)
    ranked = chardet.detect_all(words, ignore_threshold=True, include_encodings=_CANDIDATES)
    likely: dict[str, tuple[str, float]] = {}  # text to the first encoding that gives it, and its confidence
    for each in ranked:
        if each["encoding"] is None:
            continue
        encoding = codecs.lookup(each["encoding"]).name
        text = _decoded(words, encoding)
        if text is not None and (text not in likely or encoding == _USUAL) and _looks_right(text):
            likely[text] = encoding, max(each["confidence"], likely.get(text, ("", 0.0))[1])
    best = max((confidence for _, confidence in likely.values()), default=0.0)
    if best < _LEAST or len(words) < _SHORTEST:
        usual = _decoded(words, _USUAL)
        return Encoding(_USUAL, sure=False) if usual is not None and _looks_right(usual) else None
    near = [encoding for encoding, confidence in likely.values() if confidence >= _NEARLY * best]
    near.sort(key=lambda encoding: encoding != _USUAL)
    return Encoding(near[0], tuple(near[1:]), sure=len(near) == 1)


def _undecodable(name: str, known: str, offset: int, found: Encoding | None) -> TableError:
    wrong = f"{name} is not {known} at byte offset {offset}"
    if found is None:
        return TableError(f"{wrong}; name its encoding with --encoding, for example --encoding cp1252")
    options = " or ".join(f"--encoding {each}" for each in (found.name, *found.others))
    error = TableError(f"{wrong}; its letters look like {options}; name the right one")
    return error.propose(encoding=found.name)


def _has_zeros(data: bytes) -> bool:
    """Whether data is UTF-16 without a byte order mark: every other byte is zero."""
    return 4 * data[:1_000].count(0) > min(len(data), 1_000)


def _words(data: bytes) -> bytes:
    """Distinct words with bytes beyond ASCII."""
    distinct: dict[bytes, None] = {}
    size = 0
    for match in _WORD.finditer(data, 0, _MOST_SCANNED):
        if (word := match[0][:_MOST_WORDS]) not in distinct:
            distinct[word] = None
            size += len(word) + 1
            if size > _MOST_WORDS:
                break
    return b" ".join(distinct)


def _decoded(words: bytes, encoding: str) -> str | None:
    try:
        return words.decode(encoding)
    except UnicodeDecodeError:
        return None


def _looks_right(text: str) -> bool:
    """Whether nearly all words are letters of one script, without symbols or controls inside."""
    words = text.split(" ")
    wrong = sum(not _is_word(word) for word in words)
    return wrong <= _MOST_BAD * len(words)


def _is_word(word: str) -> bool:
    scripts = set()
    for place, mark in enumerate(word):
        category = unicodedata.category(mark)
        if category[0] == "C" and mark not in _INSIDE and not mark.isspace():
            return False
        if category[0] in "LM":
            if mark not in _SYMBOL_LETTERS and category != "Lm":
                scripts.add(unicodedata.name(mark, "").partition(" ")[0])
        elif (
            mark not in _INSIDE
            and 0 < place < len(word) - 1
            and word[place - 1].isalpha()
            and word[place + 1].isalpha()
        ):
            return False
    return len(scripts.intersection(_ONE_SCRIPT)) <= 1
