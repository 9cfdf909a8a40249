"""A hospital's export as it is: Latin-1 CSV and a workbook with a title, decimal commas, "k.A.", German dates.

8,000 visits of 3,500 made-up patients with 400 diagnosis codes, and notes that hold telephone numbers. Nobody in it
exists. ``python tests/messy_hospital.py FOLDER`` writes ``visits.csv`` and ``visits.xlsx``.
"""

from __future__ import annotations

import csv
import datetime
import io
import sys
from functools import cache
from pathlib import Path

import numpy as np
import xlsxwriter

__all__ = ["COLUMNS", "PATIENTS", "TITLE", "VISITS", "visits", "write_csv", "write_workbook"]

PATIENTS, VISITS, CODES = 3_500, 8_000, 400
COLUMNS = (
    "Patientennummer", "Name", "Geburtsdatum", "Geschlecht", "PLZ", "Größe", "Gewicht", "Aufnahme", "Entlassung",
    "Station", "Diagnose", "CRP", "Kosten", "Raucher", "Bemerkung",
)  # fmt: skip
TITLE = ("Aufnahmen 2022 und 2023, Klinik für Innere Medizin",)

_FIRST = ("Jürgen", "Anna", "Käthe", "Ben", "Björn", "Clara", "Zoë", "Felix", "Greta", "Hugo")
_LAST = ("Müller", "Schäfer", "Groß", "Brandt", "Weiß", "Köhler", "Jansen", "Maier")
_WARDS = ("Innere", "Kardiologie", "Geriatrie", "Gynäkologie", "Chirurgie")
_NOTES = (
    "Angehörige unter {} anrufen",
    "schläft schlecht, möchte nach Hause",
    "Rückruf an {} erbeten",
    "lebt allein im dritten Stock",
)


@cache
def visits() -> tuple[tuple[str, ...], ...]:
    """Rows of the export as texts, one a visit, in the order of admission."""
    rng = np.random.default_rng(20_230_404)
    every = [f"{letter}{number:02d}.{digit}" for letter in "CEIJKM" for number in range(90) for digit in range(10)]
    codes = [every[place] for place in sorted(rng.choice(len(every), CODES, replace=False))]
    weights = 1.0 / (1.0 + rng.permutation(CODES)) ** 0.8
    drawn = np.concatenate([np.arange(CODES), rng.choice(CODES, VISITS - CODES, p=weights / weights.sum())])
    diagnoses = [codes[place] for place in rng.permutation(drawn)]
    patients = [_patient(rng, number) for number in range(PATIENTS)]
    whose = np.concatenate([np.arange(PATIENTS), rng.integers(PATIENTS, size=VISITS - PATIENTS)])
    rows = [_visit(rng, patients[number], code) for number, code in zip(whose, diagnoses, strict=True)]
    return tuple(row for _, row in sorted(rows))


def _patient(rng: np.random.Generator, number: int) -> dict[str, str]:
    born = datetime.date(1930, 1, 1) + datetime.timedelta(days=int(rng.integers(0, 75 * 365)))
    return {
        "Patientennummer": f"P{200_000 + 13 * number}",
        "Name": f"{rng.choice(_LAST)}, {rng.choice(_FIRST)}",
        "Geburtsdatum": f"{born:%d.%m.%Y}",
        "Geschlecht": "mw"[int(rng.integers(2))],
        "PLZ": f"0{1 + int(rng.integers(9))}{int(rng.integers(30)):03d}",
        "Größe": f"{rng.normal(1.71, 0.09):.2f}".replace(".", ","),
        "Gewicht": f"{rng.normal(78, 13):.1f}".replace(".", ","),
        "Raucher": str(rng.choice(["ja", "nein"], p=[0.3, 0.7])),
        "Telefon": f"0{rng.integers(150, 179)} {rng.integers(1_000_000, 9_999_999)}",
    }


def _visit(rng: np.random.Generator, patient: dict[str, str], code: str) -> tuple[datetime.date, tuple[str, ...]]:
    admitted = datetime.date(2022, 1, 1) + datetime.timedelta(days=int(rng.integers(0, 730)))
    stay, smoker = int(rng.geometric(0.17)), patient["Raucher"] == "ja"
    crp, cost = rng.lognormal(1.4 + 0.6 * smoker, 0.8), rng.lognormal(6.6, 0.4) + 430 * stay
    row = {
        **patient,
        "Gewicht": _gap(rng, patient["Gewicht"], 0.06),
        "Aufnahme": f"{admitted:%d.%m.%Y}",
        "Entlassung": f"{admitted + datetime.timedelta(days=stay):%d.%m.%Y}",
        "Station": str(rng.choice(_WARDS, p=[0.35, 0.25, 0.2, 0.05, 0.15])),
        "Diagnose": code,
        "CRP": _gap(rng, f"{crp:.1f}".replace(".", ","), 0.09),
        "Kosten": f"{cost:,.2f}".translate(str.maketrans(",.", ".,")),
        "Raucher": _gap(rng, patient["Raucher"], 0.04),
        "Bemerkung": str(rng.choice(_NOTES)).format(patient["Telefon"]) if rng.random() < 0.4 else "",
    }
    return admitted, tuple(row[name] for name in COLUMNS)


def _gap(rng: np.random.Generator, cell: str, share: float) -> str:
    return "k.A." if rng.random() < share else cell


def write_csv(path: Path, encoding: str = "latin-1", before: tuple[str, ...] = ()) -> Path:
    """Write the visits as CSV with semicolons, some lines before the header."""
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=";", lineterminator="\r\n").writerows([COLUMNS, *visits()])
    path.write_bytes("".join([*(f"{line}\r\n" for line in before), text.getvalue()]).encode(encoding))
    return path


def write_workbook(path: Path) -> Path:
    """Write the visits as the second sheet of a workbook, under a title and an empty row."""
    with xlsxwriter.Workbook(path) as book:
        book.add_worksheet("Hinweise").write_string(0, 0, "Exportiert am 4. April 2024")
        sheet = book.add_worksheet("Aufnahmen")
        for number, row in enumerate([TITLE, (), COLUMNS, *visits()]):
            for place, cell in enumerate(row):
                sheet.write_string(number, place, cell)
    return path


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    folder.mkdir(parents=True, exist_ok=True)
    write_csv(folder / "visits.csv")
    write_workbook(folder / "visits.xlsx")
