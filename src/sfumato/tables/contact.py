"""Detect free text, contact data and numbers of persons and devices by form, check digits and column name."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.arrays import Bools, Floats, Ints
from sfumato.tables.cells import floats, is_text, plain
from sfumato.tables.dates import DAY
from sfumato.tables.field import Category, Domain, Field, Kind, Role

__all__ = [
    "ALL_DIFFER",
    "FREE_TEXT",
    "MIN_EVIDENCE",
    "NEARLY_ALL_DIFFER",
    "NUMBER_WORDS",
    "ColumnSample",
    "Evidence",
    "categories_of",
    "codes_of_persons",
    "is_birth",
    "is_coordinate",
    "is_named_id",
    "is_named_like_id",
    "is_named_person",
    "kind_of_number",
    "least_evidence",
    "missing_counts",
    "private_text",
    "why_number_id",
    "why_text_id",
]

ALL_DIFFER = "different in every row"
NEARLY_ALL_DIFFER = "different in nearly every row"
"""Why texts are an identifier that have no form of one."""

FREE_TEXT = "free text"
"""What private texts are that have no form: remarks, reports, answers."""

_CONTACTS = f"{FREE_TEXT} with contact data or names"
_FORMS = {
    "e-mail addresses": r"^[^@\s]{1,64}@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24}$",
    "telephone numbers": r"^\+[1-9]([ ()/.-]{0,2}\d){6,14}$|^(\([2-9]\d\d\) ?|[2-9]\d\d[ .-])\d{3}[ .-]\d{4}$",
    "web addresses": r"^(?i)(https?://|www\.)\S+$",
    "identifiers of devices or records": (
        r"^(?i)([0-9a-f]{2}[:-]){5}[0-9a-f]{2}$|^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
    ),
    "network addresses": (
        r"^((25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(25[0-5]|2[0-4]\d|1?\d?\d)$"
        r"|^(?i)([0-9a-f]{1,4}:){7}[0-9a-f]{1,4}$|^(?i)[0-9a-f]{1,4}(:[0-9a-f]{1,4}){0,6}::([0-9a-f]{1,4}(:[0-9a-f]{1,4}){0,5})?$"
    ),
}
_IBAN = r"^[A-Z]{2}\d{2}( ?[A-Z0-9]){11,30}$"
_HELD = "|".join(
    (
        r"[^@\s]@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,24}",
        r"\+[1-9]([ ()/.-]{0,2}\d){6,14}",
        r"(^|[^\w.,+/-])\(?0[1-9](\d{1,4}\)?[ /-]{1,3}\d([ /-]?\d){4,}|([ .-]\d\d){4})",  # 0171/2345678, 01 23 45 67 89
        r"\pL[.:]* 0[1-9]\d{8,12}\b",
        r"(^|[^\w.-])(\([2-9]\d\d\) ?|[2-9]\d\d[ .-])\d{3}[ .-]\d{4}\b",
        r"\b(Herrn?|Frau|Mrs?\.?|Ms\.?|Mme) \p{Lu}\p{Ll}",
    )
)
_ENOUGH = 20  # different texts before they tell people apart
_SHARE = 0.1  # of the rows, that different contact data must come to
_SAMPLE = 1_000
_LONG, _WORDS, _DISTINGUISHED = 25, 4, 0.3  # characters and words of a free text on average, and how many differ
_TIMES = 4  # as long as that a text counts at most
_MOSTLY = 0.5  # of the rows, that different codes must come to
_NEARLY_ALL = 0.9  # of texts that one check digit in ten would pass by chance
_SHORTEST_NUMBER = 1_000_000  # whole numbers below it have no check digits here
_PRECISE = 4  # decimals of a degree: ten metres

_TRUNK_ZERO = re.compile(r"\(?0[1-9]\d{0,4}\)?[ /.-]+\d[\d /.-]*\d")  # 030 1234567, (0171) 23 45 678
_LIKE_DATE = re.compile(r"\d{1,4}([-./ ])\d{1,2}\1\d{1,4}")
_LIKE_PHONE = re.compile(r"[+(]{0,2}\d[\d ()/.-]*\d")
_CALLED_PHONE = re.compile(
    r"(^|[_\s.-])(tele)?(phone|fon|fax)s?([_\s.-]|$)|(^|[_\s.-])(tel|mobile|mobil|handy|cell|cellphone|gsm|rufnummer)([_\s.-]|$)"
    r"|[a-z](Phone|Fax|Mobile)(Number|No)?$",
    re.IGNORECASE,
)
_CALLED_COORDINATE = re.compile(
    r"(^|[_\s.-])((lat|breitengrad)(itude)?|(lon|long|lng)(itude)?|l(ae|ä)ngengrad)([_\s.-]|$)|[a-z](Lat|Lon|Lng)(itude)?$",
    re.IGNORECASE,
)
_LATITUDE = re.compile(r"lat|breit", re.IGNORECASE)
_PAIR = re.compile(
    r"(?:POINT ?)?\(?([+-]?\d{1,3}\.\d{3,})[°]?(?:[NSEWO])?(?: ?[,;/] ?| )([+-]?\d{1,3}\.\d{3,})[°]?[NSEWO]?\)?"
)
_DEGREES = re.compile(
    r"[NSEWO]? ?\d{1,3} ?° ?\d{1,2}(\.\d+)? ?['\u2032] ?(\d{1,2}(\.\d+)? ?(\"|\u2033|'') ?)?[NSEWO]?.{0,40}"
)
_CODE = re.compile(r"(?=.*\d)(?=.*[A-Za-z]|\d{6})(?=.{6})[A-Za-z0-9]+([-_/.:#][A-Za-z0-9]+)*")


def why_text_id(seen: ColumnSample) -> str:
    """Reason why a text column looks like an identifier; an empty text if it does not.

    Cells of few persons decide nothing.
    """
    texts, spare = seen.present, seen.evidence.spare
    distinct = pc.unique(texts)
    count, present = len(distinct), len(texts)
    private = private_text(distinct, present, seen.name)
    if private and (private != _CONTACTS or not seen.evidence.few(_holds_contact(texts))):
        return f"{count} different in {present} rows: {private}"
    if count >= present - spare and seen.rows > 2 and count >= min(_ENOUGH, seen.rows - spare):
        return ALL_DIFFER if count == present else NEARLY_ALL_DIFFER
    if count >= _ENOUGH and _NAMES_OF_PEOPLE.search(seen.name):
        return f"{count} different, and called names of people"
    if count >= _ENOUGH and (is_named_person(seen.name) or _STAFF.search(seen.name)) and _are_full_names(distinct):
        return f"{count} different: full names of people"
    share = 0.1 if is_named_id(seen.name) else 0.5
    if count >= _ENOUGH and count > share * present and is_named_like_id(seen.name):
        return f"{count} different in {present} rows, and named like an identifier"
    return ""


def _are_full_names(distinct: pa.Array) -> bool:
    """Whether nearly all texts are two to four capitalized words, with or without a comma.

    Examples
    --------
    >>> _are_full_names(pa.array(["Müller, Jürgen", "Dr. Anna van der Berg"])), _are_full_names(pa.array(["in ward"]))
    (True, False)
    """
    found = pc.match_substring_regex(pc.utf8_trim_whitespace(distinct.slice(0, _SAMPLE)), _FULL_NAME)
    return int(found.true_count) >= _NEARLY_ALL * len(found)


def why_number_id(name: str, distinct: Floats, rows: int, spare: int = 0) -> str:
    """Reason why whole numbers look like an identifier, ignoring ``spare`` cells; an empty text if they do not."""
    if len(distinct) < _ENOUGH:
        return ""
    if private := _private_number(distinct, rows, name, spare):
        return f", {len(distinct)} different in {rows} rows: {private}"
    if len(distinct) >= rows - spare:
        every = "every row" if len(distinct) == rows else "nearly every row"
        if is_named_like_id(name):
            return f", different in {every}, that are named like an identifier"
        if _shortest_span(distinct, spare) < rows + spare:
            return f", different in {every}, that follow one another"
    if is_named_id(name) and len(distinct) > 0.1 * rows:
        return f", {len(distinct)} different in {rows} rows, that are named like an identifier"
    return ""


def _shortest_span(distinct: Floats, spare: int) -> float:
    """Shortest range of numbers that holds all but ``spare`` of them."""
    return float((distinct[len(distinct) - 1 - spare :] - distinct[: spare + 1]).min())


def private_text(distinct: pa.Array, rows: int, name: str = "") -> str:
    """Kind of private text in a column, judged by its distinct texts and rows; an empty text if there is none.

    Few different texts in many rows are categories, whatever their form. Texts that hold contact data among other words
    count if as many of them differ as if they were nothing else. A name such as ``phone`` lets numbers count
    that have no form of their own.

    Examples
    --------
    >>> private_text(pa.array([f"{row}@example.org" for row in range(30)]), 60)
    'e-mail addresses'
    >>> private_text(pa.array([f"ward {row}" for row in range(30)]), 60)
    ''
    """
    if len(distinct) < _ENOUGH or len(distinct) <= _SHARE * rows:
        return ""
    texts = pc.utf8_trim_whitespace(distinct.slice(0, _SAMPLE))
    for words, form in _FORMS.items():
        if _most(pc.match_substring_regex(texts, form)):
            return words
    if _most(pa.array([_is_iban(text) for text in texts.filter(pc.match_substring_regex(texts, _IBAN)).to_pylist()])):
        return "bank accounts" if _most(pc.match_substring_regex(texts, _IBAN)) else ""
    if found := _of_form(texts.to_pylist(), name):
        return found
    if len(distinct) > _MOSTLY * rows and _share(texts.to_pylist(), _is_code) >= _NEARLY_ALL:
        return "codes that hardly repeat"
    long = _bounded_mean(pc.utf8_length(texts), _LONG) >= _LONG
    wordy = _bounded_mean(pc.add(pc.count_substring_regex(texts, r"\s+"), 1), _WORDS) >= _WORDS
    if long and wordy and len(distinct) > _DISTINGUISHED * rows:
        return FREE_TEXT
    held = int(_holds_contact(distinct).sum())
    return _CONTACTS if held >= _ENOUGH and held > _SHARE * rows else ""


def _holds_contact(texts: pa.Array) -> Bools:
    """Which texts hold a telephone number, an e-mail address or a name after a title, among other words or alone."""
    held = pc.match_substring_regex(texts, _HELD)
    return np.asarray(held.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _bounded_mean(counts: pa.Array, bar: int) -> float:
    """Mean with each count capped, so that one long text cannot decide."""
    return float(np.minimum(counts.to_numpy(zero_copy_only=False), _TIMES * bar).mean())


def _private_number(distinct: Floats, rows: int, name: str, spare: int = 0) -> str:
    """Kind of private number in a column of whole numbers; an empty text if there is none.

    Examples
    --------
    >>> _private_number(np.arange(3012345, 3012385.0), 40, "phone"), _private_number(np.arange(3e6, 3000040), 40, "pay")
    ('telephone numbers', '')
    """
    if len(distinct) < _ENOUGH or len(distinct) <= _SHARE * rows or distinct[spare] < _SHORTEST_NUMBER:
        return ""
    places = np.linspace(0, len(distinct) - 1, min(_SAMPLE, len(distinct))).astype(np.int64)
    return _of_form([f"{int(number)}" for number in distinct[places]], name)


def is_coordinate(name: str, distinct: Floats, rows: int, decimals: int | None, spare: int = 0) -> bool:
    """Whether numbers are named as coordinates and precise to about ten metres, ignoring ``spare`` cells.

    Examples
    --------
    >>> degrees = 48 + np.arange(40) / 10_000
    >>> is_coordinate("home_lat", degrees, 40, 4), is_coordinate("late", degrees, 40, 4)
    (True, False)
    """
    if len(distinct) < _ENOUGH or len(distinct) <= _SHARE * rows or (decimals is not None and decimals < _PRECISE):
        return False
    called = _CALLED_COORDINATE.search(name)
    if called is None:
        return False
    furthest = 90.0 if _LATITUDE.search(called.group()) else 180.0
    return int((np.abs(distinct) > furthest).sum()) <= spare


def _of_form(texts: list[str], name: str) -> str:
    """Kind of most texts, by forms with check digits or by name."""
    words, times = Counter(map(kind_of_number, texts)).most_common(1)[0]
    if words and times >= _NEARLY_ALL * len(texts):
        return words
    if _share(texts, _is_national_number) > 0.5:
        return "telephone numbers"
    if _CALLED_PHONE.search(name) and _share(texts, _has_digits_of_phone) >= _NEARLY_ALL:
        return "telephone numbers"
    return "coordinates of places" if _share(texts, _is_place) > 0.5 else ""


def _most(found: pa.Array) -> bool:
    return len(found) > 0 and 2 * pc.sum(found).as_py() > len(found)


def _share(texts: Iterable[str], test: Callable[[str], bool]) -> float:
    held = [test(text) for text in texts]
    return sum(held) / len(held) if held else 0.0


def _is_iban(text: str) -> bool:
    """Check the two digits of an account number [ISO 13616]."""
    bare = text.replace(" ", "")
    return int("".join(str(int(letter, 36)) for letter in bare[4:] + bare[:4])) % 97 == 1


def _is_national_number(text: str) -> bool:
    """Whether a text is a telephone number with a national prefix."""
    digits = sum(letter.isdigit() for letter in text)
    return 7 <= digits <= 14 and bool(_TRUNK_ZERO.fullmatch(text)) and not _LIKE_DATE.fullmatch(text)


def _has_digits_of_phone(text: str) -> bool:
    digits = sum(letter.isdigit() for letter in text)
    return 6 <= digits <= 15 and bool(_LIKE_PHONE.fullmatch(text)) and not _LIKE_DATE.fullmatch(text)


def _is_place(text: str) -> bool:
    pair = _PAIR.fullmatch(text)
    if pair is None:
        return bool(_DEGREES.fullmatch(text))
    return all(abs(float(number)) <= 180 for number in pair.groups())


def _is_code(text: str) -> bool:
    return bool(_CODE.fullmatch(text))


def kind_of_number(text: str) -> str:
    """Kind of number of a person, card or device, by form and check digits; an empty text if there is none.

    Examples
    --------
    >>> kind_of_number("4111 1111 1111 1111"), kind_of_number("4111 1111 1111 1112")
    ('payment cards', '')
    """
    bare = re.sub(r"[^0-9A-Za-z]", "", text).upper()
    return next((words for words, form, check in _NUMBERS if form.fullmatch(text) and check(bare)), "")


def _luhn(digits: str) -> bool:
    """Check the last digit [ISO/IEC 7812]."""
    doubled = (sum(divmod(2 * int(digit), 10)) for digit in digits[-2::-2])
    return (sum(map(int, digits[-1::-2])) + sum(doubled)) % 10 == 0


def _weighed(digits: str, *weights: int) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _of_german_insurance(text: str) -> bool:
    digits = f"{text[:8]}{ord(text[8]) - 64:02d}{text[9:]}"
    products = (int(digit) * weight for digit, weight in zip(digits, (2, 1, 2, 5, 7, 1, 2, 1, 2, 1, 2), strict=False))
    return sum(sum(divmod(product, 10)) for product in products) % 10 == int(digits[-1])


def _of_german_tax(digits: str) -> bool:
    """Check the last digit, and that one other digit occurs twice or three times [ISO/IEC 7064, MOD 11,10]."""
    product = 10
    for digit in digits[:-1]:
        product = 2 * ((int(digit) + product) % 10 or 10) % 11
    often = sorted(Counter(digits[:-1]).values())
    return (11 - product) % 10 == int(digits[-1]) and often[-1] in (2, 3) and often[:-1] == [1] * (len(often) - 1)


def _of_france(text: str) -> bool:
    corsican = text[:13].replace("2A", "19").replace("2B", "18") if text[5:7] in ("2A", "2B") else text[:13]
    return 97 - int(corsican) % 97 == int(text[13:])


_ODD = dict(zip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", (
    1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10,
    22, 25, 24, 23), strict=True))  # fmt: skip


def _of_italy(text: str) -> bool:
    even = sum(int(letter) if letter.isdigit() else ord(letter) - 65 for letter in text[1:15:2])
    return (even + sum(_ODD[letter] for letter in text[0:15:2])) % 26 == ord(text[15]) - 65


def _of_spain(text: str) -> bool:
    number = text[:-1].translate(str.maketrans("XYZ", "012"))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == text[-1]


def _of_switzerland(digits: str) -> bool:
    return _weighed(digits, *(1, 3) * 6, 1) % 10 == 0


def _of_austria(digits: str) -> bool:
    return _weighed(digits, 3, 7, 9, 0, 5, 8, 4, 2, 1, 6) % 11 == int(digits[3])


def _of_netherlands(digits: str) -> bool:
    return _weighed(digits, 9, 8, 7, 6, 5, 4, 3, 2, -1) % 11 == 0


def _of_belgium(digits: str) -> bool:
    return any(97 - int(before + digits[:9]) % 97 == int(digits[9:]) for before in ("", "2"))


def _of_poland(digits: str) -> bool:
    return _weighed(digits, 1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1) % 10 == 0


def _of_brazil(digits: str) -> bool:
    first = _weighed(digits, *range(10, 1, -1)) * 10 % 11 % 10
    second = _weighed(digits, *range(11, 1, -1)) * 10 % 11 % 10
    return digits[9:] == f"{first}{second}"


def _of_sweden(digits: str) -> bool:
    return _luhn(digits[-10:])


def _formed(_: str) -> bool:
    return True


_PERSONAL = "social security or personal numbers"
_DAY = r"(0[1-9]|[12]\d|3[01])"
_MONTH = r"(0[1-9]|1[0-2])"
_NUMBERS: tuple[tuple[str, re.Pattern[str], Callable[[str], bool]], ...] = tuple(
    (words, re.compile(form), check)
    for words, form, check in (
        (_PERSONAL, r"(?!000|666|9)\d{3}-(?!00)\d\d-(?!0000)\d{4}", _formed),  # United States
        (_PERSONAL, r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]", _formed),  # United Kingdom
        (_PERSONAL, rf"\d\d ?\d\d{_MONTH}\d\d ?[A-Z] ?\d{{3}}", _of_german_insurance),
        (_PERSONAL, r"[1-9]\d ?\d{3} ?\d{3} ?\d{3}", _of_german_tax),
        (_PERSONAL, rf"[12] ?\d\d ?{_MONTH} ?(\d\d|2[AB]) ?\d{{3}} ?\d{{3}} ?\d\d", _of_france),
        (_PERSONAL, r"[A-Z]{6}\d\d[A-EHLMPRST]\d\d[A-Z]\d{3}[A-Z]", _of_italy),
        (_PERSONAL, r"[XYZ\d]-?\d{7}-?[A-Z]", _of_spain),
        (_PERSONAL, r"756\.?\d{4}\.?\d{4}\.?\d\d", _of_switzerland),
        (_PERSONAL, rf"\d{{4}} ?{_DAY}{_MONTH}\d\d", _of_austria),
        (_PERSONAL, r"\d{9}", _of_netherlands),
        (_PERSONAL, rf"\d\d\.?{_MONTH}\.?{_DAY}-?\d{{3}}\.?\d\d", _of_belgium),
        (_PERSONAL, r"\d\d([02468][1-9]|[13579][0-2])" + _DAY + r"\d{5}", _of_poland),
        (_PERSONAL, rf"(\d\d)?\d\d{_MONTH}{_DAY}[-+]?\d{{4}}", _of_sweden),
        (_PERSONAL, r"\d{3}\.?\d{3}\.?\d{3}-?\d\d", _of_brazil),
        (_PERSONAL, r"\d{3}[ -]?\d{3}[ -]?\d{3}", _luhn),  # Canada
        ("payment cards", r"(3[47]\d\d[ -]?\d{6}[ -]?\d{5}|[2-6]\d{3}([ -]?\d{4}){3})", _luhn),
        ("identifiers of devices or records", r"\d{2}-?\d{6}-?\d{6}-?\d", _luhn),  # telephones
        ("identifiers of devices or records", r"(?=.*\d)(?=.*[A-Fa-f])[0-9A-Fa-f]{16,128}", _formed),
    )
)
"""What numbers are, how they are written, and whether their check digits are right."""


_STRICT = "id|ids|uuid|guid|ssn|passport|iban|email|e-mail|mail|phone|mobile|card"
_LOOSE = "key|nr|no|number|account|firstname|lastname|surname|fullname|name|username|user|login|address|street|url|ip"
_OWNERS = "user|customer|client|patient|person|employee|member|subject|record|row|case|order|account|student"
_ID = re.compile(rf"(^|[_\s.-])({_STRICT})$|^(id|uuid|guid)[_\s.-]|^({_OWNERS})ids?$", re.IGNORECASE)
_LIKE_ID = re.compile(rf"(^|[_\s.-])({_LOOSE})$", re.IGNORECASE)
_NAMES_OF_PEOPLE = re.compile(
    r"^((full|first|last|middle|given|family|patient|customer|client|employee|person|student)[_\s.-]?)?(name|surname)$"
    r"|^(vor|nach|familien)name$|^(pr[eé])?nom$|^apellidos?$|^cognome$",
    re.IGNORECASE,
)
_WORD, _PARTICLES = r"(\pL['\x{2019}])?\p{Lu}[\pL'\x{2019}-]*\.?", r"(\p{Ll}{1,3} ){0,2}"
_FULL_NAME = rf"^{_PARTICLES}{_WORD}(,? (med\. )?{_PARTICLES}{_WORD}){{1,4}}$"  # Dr. Anna van der Berg; Weiß, Käthe
_STAFF = re.compile(
    r"(^|[_\s.-])(doctor|physician|nurse|teacher|therapist|contact|relative|(haus)?(arzt|ärztin|aerztin)|lehrer(in)?"
    r"|ansprechpartner(in)?|angeh(ö|oe)rige[rn]?)$",
    re.IGNORECASE,
)
NUMBER_WORDS = r"[_\s.-]?(ids?|no|nr|num|number|nummer|code|key|kennung|kennzeichen|pseudonym|schl(ue|ü)ssel)"
_PERSON = re.compile(
    r"(^|[_\s.-])(user|customer|client|patient|person|employee|member|subject|student|pupil|respondent|participant"
    rf"|household|resident|insured|citizen|donor|proband)s?({NUMBER_WORDS})?$"
    r"|^(patient|person|kunde|versicherte|mitglied|mitarbeiter|teilnehmer|befragte|bewohner|haushalt|b(ue|ü)rger)"
    rf"\w{{0,3}}({NUMBER_WORDS})?$"
    r"|^(idcode|mrn|pseudonym|(p|h|hh|case|pat|resp)_?(id|nr))$|[a-z](Patient|Person|Customer|Client)(Id|ID|No|Nr)$",
    re.IGNORECASE,
)
_CAMEL_ID = re.compile(r"[a-z](Id|ID|Uuid|UUID|Email|Phone)$")
_CAMEL_LIKE_ID = re.compile(r"[a-z](Key|Number|Name|Nr|No|Address)$")


def is_named_id(name: str) -> bool:
    """Whether the name of a column is that of an identifier, even if a person has several rows.

    Examples
    --------
    >>> is_named_id("patient_id"), is_named_id("customerId"), is_named_id("paid"), is_named_id("room_number")
    (True, True, False, False)
    """
    return bool(_ID.search(name) or _CAMEL_ID.search(name))


def is_named_like_id(name: str) -> bool:
    """Whether the name of a column may be that of an identifier.

    Examples
    --------
    >>> is_named_like_id("patient_id"), is_named_like_id("room_number"), is_named_like_id("salary")
    (True, True, False)
    """
    return is_named_id(name) or bool(_LIKE_ID.search(name) or _CAMEL_LIKE_ID.search(name))


def is_named_person(name: str) -> bool:
    """Whether a column is named as persons, or numbers of persons, are.

    Examples
    --------
    >>> is_named_person("Patientennummer"), is_named_person("customer"), is_named_person("ward")
    (True, True, False)
    """
    return bool(_PERSON.search(name))


_FEWEST = 20  # dates before their spread says anything
_CALLED_BIRTH = re.compile(
    r"birth|born|geburt|geboren|naissance|nacimiento|nascita|(^|[_\s.-])(dob|bday|geb|gebdat)([_\s.-]|$)", re.IGNORECASE
)
_LIFETIME = 40 * 365 * DAY


def is_birth(name: str, moments: Ints) -> bool:
    """Whether dates are dates of birth: by name, or because the central 80 % span more than forty years.

    Examples
    --------
    >>> is_birth("date_of_birth", np.zeros(9, dtype=np.int64)), is_birth("admission", np.zeros(9, dtype=np.int64))
    (True, False)
    """
    if _CALLED_BIRTH.search(name):
        return True
    if len(moments) < _FEWEST or (moments % DAY).any():  # an hour of birth is recognized only by the column's name
        return False
    early, late = np.quantile(moments, (0.1, 0.9))
    return bool(late - early >= _LIFETIME)


MIN_EVIDENCE = 10
"""Persons whose cells together may decide the kind, the step or the role of a column; of fewer, no cell does.

As many as the usual privacy level: what fewer persons than that hold does not leave anyway.
"""

_HEAD = 10_000  # rows that mostly tell that persons are not few


def least_evidence(persons: int) -> int:
    """Persons needed to decide about a column: 10, fewer if that is more than a tenth of those with a value.

    Examples
    --------
    >>> [least_evidence(persons) for persons in (6, 15, 60, 1_000)]
    [1, 2, 6, 10]
    """
    return 1 if persons < MIN_EVIDENCE else min(MIN_EVIDENCE, max(2, persons // 10))


@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    """The person of each cell, and how many persons decide; each row is a person if ``persons`` is None."""

    least: int
    persons: Ints | None = None

    @classmethod
    def of(cls, rows: int, persons: Ints | None = None) -> Evidence:
        """Evidence of a number of cells, or of the persons of these cells."""
        people = rows if persons is None else int(np.count_nonzero(np.bincount(persons)))
        return cls(least_evidence(people), persons)

    @property
    def spare(self) -> int:
        """Number of cells that decide nothing."""
        return self.least - 1

    def few(self, rows: Bools) -> bool:
        """Whether the marked cells belong to too few persons to decide anything."""
        count = int(np.count_nonzero(rows))
        if count < self.least:
            return True
        return self.persons is not None and len(np.unique(self.persons[rows])) < self.least

    def few_values(self, values: pa.Array, strays: pa.Array) -> bool:
        """Whether few persons have any of ``strays``, or the first of them."""
        if not len(strays) or self.least == 1 or (self.persons is None and len(strays) >= self.least):
            return not len(strays)
        head = values.slice(0, _HEAD)
        if not self.take(slice(0, _HEAD)).few(_among(head, strays)):
            return False
        return len(head) == len(values) or self.few(_among(values, strays))

    def few_numbers(self, values: Floats, distinct: Floats, off: Callable[[Floats], Bools]) -> bool:
        """Whether few persons have one of the marked distinct numbers."""
        some = distinct[:: max(1, len(distinct) // _SAMPLE)]
        if self.persons is None and np.count_nonzero(off(some)) >= self.least:
            return False
        if self.persons is not None and not self.take(slice(0, _HEAD)).few(off(values[:_HEAD])):
            return False
        count = np.count_nonzero(off(distinct))
        if not count or self.least == 1 or (self.persons is None and count >= self.least):
            return not count
        return self.few(off(values))

    def of_rows(self, rows: Bools) -> Evidence:
        """Evidence of a subset of cells as a column of its own, for which fewer persons decide."""
        return Evidence.of(int(rows.sum()), None if self.persons is None else self.persons[rows])

    def take(self, rows: Bools | slice) -> Evidence:
        """Evidence of a subset of cells, with the number of deciding persons unchanged."""
        return self if self.persons is None else dataclasses.replace(self, persons=self.persons[rows])


def codes_of_persons(column: pa.ChunkedArray) -> Ints:
    """Person of each row as a number; rows without a person share one."""
    codes = pc.dictionary_encode(plain(column), null_encoding="encode").indices
    return np.asarray(codes.to_numpy(zero_copy_only=False), dtype=np.int64)


def _among(values: pa.Array, strays: pa.Array) -> Bools:
    return np.asarray(pc.is_in(values, value_set=strays).to_numpy(zero_copy_only=False), dtype=np.bool_)


@dataclass(frozen=True, repr=False)
class ColumnSample:
    """A column before its kind is known: its present cells, their persons, and the number of missing cells.

    ``missing`` has each mark with its cells, and an empty text for empty cells. ``strays`` says what becomes of cells
    that are left aside because they are of few persons. In an ``untyped`` table all columns are text.
    """

    name: str
    present: pa.Array
    rows: int
    marks: tuple[str, ...]
    missing: tuple[tuple[str, int], ...]
    evidence: Evidence
    note: str = ""
    strays: str = ""
    untyped: bool = False

    @cached_property
    def trimmed(self) -> pa.Array:
        """The present texts without surrounding spaces."""
        return pc.utf8_trim_whitespace(self.present)

    @cached_property
    def _head(self) -> pa.Array:
        return pc.utf8_trim_whitespace(self.present.slice(0, _HEAD))

    def few(self, strays: pa.Array) -> bool:
        """Whether few persons have any of these texts, which have no surrounding spaces."""
        few = self.evidence.few_values
        return not len(strays) or (few(self._head, strays) and few(self.trimmed, strays))

    def field(self, kind: Kind, why: str, domain: Domain | None = None, form: str | None = None) -> Field:
        """The column's field if it is to be sanitized."""
        reason = why + self.note + _missing_words(self.missing) + self.strays
        domain, repair = domain or Domain(), bool(self.strays)
        return Field(self.name, kind, Role.CONFIDENTIAL, domain, self.marks, form, reason, repair=repair)

    def identifier(self, kind: Kind, why: str) -> Field:
        """The column's field if it is to be dropped."""
        return Field(
            self.name, kind, Role.IDENTIFIER, Domain(), self.marks, None, why + self.note + _missing_words(self.missing)
        )

    def with_marks(self, marks: tuple[str, ...]) -> ColumnSample:
        """The column with further missing marks."""
        gone = _among(self.trimmed, pa.array(marks, self.trimmed.type))
        return dataclasses.replace(
            self,
            present=self.present.filter(pa.array(~gone)),
            marks=(*marks, *self.marks),
            missing=(*missing_counts(self.present, gone, marks), *self.missing),
            evidence=self.evidence.of_rows(~gone),
        )

    def with_note(self, note: str) -> ColumnSample:
        """The column with a note in front of the one on missing cells."""
        return dataclasses.replace(self, note=note + self.note)

    def repaired(self, what: str) -> ColumnSample:
        """The column with a note on what happens to the cells of fewer than `MIN_EVIDENCE` persons."""
        strays = self.strays if what in self.strays else f"{self.strays}, fewer than {MIN_EVIDENCE} cells {what}"
        return dataclasses.replace(self, strays=strays)

    def without(self, strays: Bools) -> ColumnSample:
        """The column with cells of another form than all others set to missing."""
        if not strays.any():
            return self
        left = dataclasses.replace(
            self, present=self.present.filter(pa.array(~strays)), evidence=self.evidence.take(~strays)
        )
        return left.repaired("of another form taken as missing")

    def without_values(self, strays: pa.Array) -> ColumnSample:
        """The column with cells of the given values set to missing."""
        return self.without(_among(self.present, strays)) if len(strays) else self

    def without_texts(self, strays: pa.Array) -> ColumnSample:
        """The same without cells that hold some texts, spaces around them aside."""
        return self.without(_among(self.trimmed, strays)) if len(strays) else self


def missing_counts(array: pa.Array, absent: Bools, marks: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Missing cells by mark; the rest are empty texts."""
    gone = array.filter(pa.array(absent))
    counts = dict.fromkeys(marks, 0)
    if is_text(array.type) and marks:
        found = pc.value_counts(pc.utf8_trim_whitespace(gone))
        counts |= {each["values"].as_py(): each["counts"].as_py() for each in found if each["values"].is_valid}
    elif marks:
        counts |= {mark: int((floats(gone) == float(mark)).sum()) for mark in marks}
    written = {mark: count for mark, count in counts.items() if mark and count}
    empty = len(gone) - sum(written.values())
    return (*written.items(), *([("", empty)] if empty else []))


def _missing_words(counts: tuple[tuple[str, int], ...]) -> str:
    """Describe missing cells by mark: ", missing: 'k.A.' (412 cells), empty (1 cell)"."""
    if all(not mark for mark, _ in counts):
        return "".join(f", {count} missing" for _, count in counts)
    ways = (
        f"{repr(mark) if mark else 'empty'} ({count} {'cell' if count == 1 else 'cells'})" for mark, count in counts
    )
    return f", missing: {', '.join(ways)}"


def categories_of(present: pa.Array) -> tuple[Category, ...]:
    """Distinct values in order, as a schema lists them."""
    distinct = pc.unique(present)
    ordered = distinct.take(pc.sort_indices(distinct))
    if pa.types.is_decimal(ordered.type):
        ordered = ordered.cast(pa.float64(), safe=False)
    return tuple(ordered.to_pylist())
