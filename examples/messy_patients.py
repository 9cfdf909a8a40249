"""A messy file of patients, as a hospital's spreadsheet leaves it: python examples/messy_patients.py FOLDER.

1,500 made-up patients with 3,278 visits, in ``patients.csv`` (byte order mark, semicolons, decimal commas, points
between thousands, German dates, several marks for a missing cell, ``F`` beside ``f``) and ``patients.xlsx``. Nobody
in it exists; names, telephone numbers, accounts and notes are drawn from a fixed seed.
"""

from __future__ import annotations

import csv
import datetime
import io
import sys
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np

__all__ = ["COLUMNS", "PATIENTS", "VISITS", "WORKBOOK_PARTS", "as_csv", "as_xlsx", "messy_rows", "write_messy_patients"]

PATIENTS, VISITS = 1_500, 3_278
COLUMNS = (
    "patient_id", "name", "birth_date", "sex", "postcode", "city", "email", "phone", "iban", "admission", "discharge",
    "stay_days", "ward", "diagnosis", "diagnosis_text", "weight_kg", "crp", "cost_eur", "device_serial", "smoker",
    "survey_weight", "note", "reserved",
)  # fmt: skip

_SEED = 20_240_229
_FIRST = ("Anna", "Ben", "Clara", "David", "Emma", "Felix", "Greta", "Hugo", "Ida", "Jonas", "Klara", "Leon")
_LAST = ("Adler", "Brandt", "Conrad", "Dietz", "Ebert", "Frank", "Graf", "Hahn", "Jansen", "Keller", "Lang", "Maier")
_CITIES = ("Dresden", "Leipzig", "Hamburg", "Hannover", "Essen", "Mainz", "Ulm", "Nürnberg")
_WARDS = ("surgery", "medicine", "Cardiology", "geriatrics", "Surgery")
_GAPS = ("", "NA", "-", "n/a", "?")
_PHRASES = (
    "seen by the doctor on call",
    "complains of pain since the morning",
    "daughter asks to be called at {phone}",
    "will bring the letter of the general practitioner",
    "sleeps badly, wants to go home",
    "allergic to penicillin, told twice",
    "lives alone on the third floor",
)


def messy_rows() -> list[tuple[str, ...]]:
    """Rows of the file as texts, one a visit, in the order of admission."""
    rng = np.random.default_rng(_SEED)
    codes, code_weights = _diagnoses(rng)
    patients = [_patient(rng, number) for number in range(PATIENTS)]
    more = rng.choice(PATIENTS, VISITS - PATIENTS, p=_skewed(rng, PATIENTS))
    visits = []
    for number in np.concatenate([np.arange(PATIENTS), more]):
        admission = datetime.date(2022, 1, 1) + datetime.timedelta(days=int(rng.integers(0, 730)))
        visits.append((admission, _visit(rng, patients[number], admission, codes, code_weights)))
    visits.sort(key=lambda visit: visit[0])
    return [row for _, row in visits]


def _skewed(rng: np.random.Generator, count: int) -> np.ndarray:
    weights = rng.pareto(2.5, count) + 0.1
    return np.asarray(weights / weights.sum())


def _diagnoses(rng: np.random.Generator) -> tuple[list[str], np.ndarray]:
    """300 codes in the form of ICD-10, a few of them frequent and many rare."""
    every = [f"{letter}{number:02d}.{digit}" for letter in "CEFIJKMNS" for number in range(100) for digit in range(10)]
    chosen = sorted(rng.choice(len(every), 300, replace=False))
    weights = 1.0 / (1.0 + rng.permutation(300)) ** 0.9
    return [every[place] for place in chosen], weights / weights.sum()


def _patient(rng: np.random.Generator, number: int) -> dict[str, str]:
    first, last = str(rng.choice(_FIRST)), str(rng.choice(_LAST))
    born = datetime.date(1930, 1, 1) + datetime.timedelta(days=int(rng.integers(0, 80 * 365)))
    place = int(rng.integers(len(_CITIES)))
    account = f"{rng.integers(10**8):08d}{rng.integers(10**10):010d}"
    return {
        "patient_id": f"P{100_000 + 7 * number}",
        "name": f"{last}, {first}",
        "birth_date": f"{born:%d.%m.%Y}",
        "sex": str(rng.choice(["F", "M"])),
        "postcode": f"{1 + 11 * place:02d}{rng.integers(40):03d}",
        "city": _CITIES[place],
        "email": f"{first}.{last}{number}@example.org".lower(),
        "phone": f"+49 30 {rng.integers(1_000_000, 10_000_000)}",
        "iban": f"DE{98 - int(account + '131400') % 97:02d}{account}",
        "weight": f"{rng.normal(76, 14):.1f}",
        "smoker": str(rng.choice(["yes", "no"], p=[0.25, 0.75])),
        "survey_weight": f"{rng.uniform(0.4, 3.2):.3f}",
    }


def _visit(
    rng: np.random.Generator, patient: dict[str, str], admission: datetime.date, codes: list[str], weights: np.ndarray
) -> tuple[str, ...]:
    stay = int(rng.geometric(0.18)) - 1
    code = str(rng.choice(codes, p=weights))
    weight = max(38.0, float(patient["weight"]) + rng.normal(0, 1.5))
    cost = float(rng.lognormal(6.5, 0.6) + 480 * stay)
    sex = patient["sex"].lower() if rng.random() < 0.06 else patient["sex"]
    row = {
        **{name: patient[name] for name in COLUMNS if name in patient},
        "sex": sex,
        "admission": f"{admission:%d.%m.%Y}",
        "discharge": f"{admission + datetime.timedelta(days=stay):%d.%m.%Y}",
        "stay_days": str(stay),
        "ward": str(rng.choice(_WARDS, p=[0.3, 0.35, 0.15, 0.15, 0.05])),
        "diagnosis": code,
        "diagnosis_text": f"Condition {code.replace('.', '-')}",
        "weight_kg": f"{weight:.1f}".replace(".", ","),
        "crp": _gap(rng, f"{rng.lognormal(1.5, 1.0):.2f}".replace(".", ","), 0.15),
        "cost_eur": f"{cost:,.2f}".translate(str.maketrans(",.", ".,")),
        "device_serial": f"SN-{rng.integers(16**8):08X}",
        "smoker": _gap(rng, patient["smoker"], 0.08),
        "survey_weight": patient["survey_weight"].replace(".", ","),
        "note": _note(rng, patient) if rng.random() < 0.4 else "",
        "reserved": "",
    }
    return tuple(row[name] for name in COLUMNS)


def _gap(rng: np.random.Generator, cell: str, share: float) -> str:
    return str(rng.choice(_GAPS)) if rng.random() < share else cell


def _note(rng: np.random.Generator, patient: dict[str, str]) -> str:
    parts = rng.choice(_PHRASES, int(rng.integers(2, 5)), replace=False)
    day = int(rng.integers(1, 29))
    return f"{'; '.join(parts)} (note of day {day})".format(phone=patient["phone"])


def as_csv(rows: list[tuple[str, ...]]) -> bytes:
    """The rows as CSV: byte order mark, semicolons, lines that end as on Windows."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";", lineterminator="\r\n").writerows([COLUMNS, *rows])
    return b"\xef\xbb\xbf" + text.getvalue().encode()


WORKBOOK_PARTS = {
    "[Content_Types].xml": (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Override PartName="/xl/workbook.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
        '<Override PartName="/xl/worksheets/sheet1.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
        '<Override PartName="/xl/worksheets/sheet2.xml" '
        'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>'
    ),
    "_rels/.rels": (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/_rels/workbook.xml.rels": (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="r1" Target="worksheets/sheet1.xml" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"/>'
        '<Relationship Id="r2" Target="worksheets/sheet2.xml" '
        'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet"/></Relationships>'
    ),
    "xl/workbook.xml": (
        '<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" '
        'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets>'
        '<sheet name="visits" sheetId="1" r:id="r1"/><sheet name="remarks" sheetId="2" r:id="r2"/></sheets></workbook>'
    ),
}


def as_xlsx(rows: list[tuple[str, ...]]) -> bytes:
    """The rows as a workbook of two sheets: ``visits``, every cell a text as typed in, and ``remarks``."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        remarks = _sheet([("remark",), ("exported by hand",)])
        parts = WORKBOOK_PARTS | {
            "xl/worksheets/sheet1.xml": _sheet([COLUMNS, *rows]),
            "xl/worksheets/sheet2.xml": remarks,
        }
        for name, text in parts.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), text, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _sheet(rows: list[tuple[str, ...]]) -> str:
    lines = []
    for number, row in enumerate(rows, 1):
        cells = (
            f'<c r="{chr(65 + place)}{number}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'
            for place, cell in enumerate(row)
            if cell
        )
        lines.append(f'<row r="{number}">{"".join(cells)}</row>')
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<worksheet xmlns="{space}"><sheetData>{"".join(lines)}</sheetData></worksheet>'


def write_messy_patients(folder: Path) -> None:
    """Write ``patients.csv`` and ``patients.xlsx`` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = messy_rows()
    (folder / "patients.csv").write_bytes(as_csv(rows))
    (folder / "patients.xlsx").write_bytes(as_xlsx(rows))


if __name__ == "__main__":
    write_messy_patients(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
