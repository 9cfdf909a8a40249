"""The encoding of a CSV file: checked, or detected from its letters if the file is not UTF-8.

Detection looks only at the distinct words with bytes beyond ASCII: the digits and separators of a table say nothing.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from dataclasses import dataclass

from sfumato.core.errors import OptionError, TableError, shown

__all__ = ["Encoding", "codec_name", "detect_encoding", "encoding_of", "to_utf8"]

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
