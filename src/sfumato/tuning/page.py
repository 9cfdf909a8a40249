"""What tuning found, as a page and a folder for the owner."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.assess.words import show
from sfumato.core.documents import write_json
from sfumato.core.errors import SfumatoError
from sfumato.publish.folder import Contents, check_folder, replacing_folder, write_text
from sfumato.tuning.figures import tuning_figures
from sfumato.tuning.model import Tuning
from sfumato.tuning.trials import Trial

__all__ = ["check_tuning_folder", "save_tuning", "write_tuning_page"]

_AT_TIMES = ("Smallest class", "Interval metric")  # columns that are left out where they are empty


def write_tuning_page(tuning: Tuning) -> str:
    """Write one self-contained page."""
    import jinja2

    loader = jinja2.ChoiceLoader(
        [jinja2.PackageLoader("sfumato.tuning", "templates"), jinja2.PackageLoader("sfumato.assess", "templates")]
    )
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    size = "leaf size" if tuning.parameter == "leaf" else "group size"
    rows = [_row(tuning, trial) for trial in tuning.trials]
    head = [name for name in rows[0] if name not in _AT_TIMES or any(row[name] != show(None) for row in rows)]
    return environment.get_template("tuning.html").render(
        reason=tuning.choice.reason,
        notes=tuning.notes,
        measured=(
            f"{len(tuning.trials)} {size}s on {tuning.plan.repeats} splits each, with "
            f"{100 * tuning.plan.holdout:.3g} % of the rows held out; {tuning.passes:.0f} times the time of one pass."
        ),
        made=_made(tuning),
        figures=tuning_figures(tuning),
        words=tuning.words,
        size=size,
        head=[size.capitalize() if name == "Size" else name for name in head],
        interval="Interval metric" in head,
        rows=[[row[name] for name in head] for row in rows],
        marks=tuning.marks,
    )


def _made(tuning: Tuning) -> list[tuple[str, str]]:
    made = [
        ("Recommended", f"{tuning.parameter} = {tuning.choice.size}"),
        ("Method", tuning.recipe.method),
        ("Utility", tuning.words),
        ("Splits", str(tuning.plan.repeats)),
        ("Seconds", f"{tuning.seconds:.1f}"),
    ]
    if tuning.baseline is not None:
        made.append(("Utility of the original", show(tuning.baseline)))
    if tuning.plan.budget is not None:
        made.append(("Budget", f"{tuning.plan.budget:g} s"))
    return made


def _row(tuning: Tuning, trial: Trial) -> dict[str, str]:
    """Cells of a size by the names of their columns."""
    low, high = trial.linkage_interval
    spread = trial.utility_interval
    notes = [mark.rule for mark in tuning.marks if mark.size == trial.size]
    if trial.size in tuning.front:
        notes.append("frontier")
    if trial.size == tuning.choice.size:
        notes.insert(0, "recommended")
    return {
        "Size": str(trial.size),
        "Utility": show(trial.utility) + ("" if spread is None else f" ({show(spread[0])} to {show(spread[1])})"),
        "Smallest class": show(trial.smallest),
        "Linked": f"{show(trial.linkage.share, 'share')} ({show(low, 'share')} to {show(high, 'share')})",
        "Control": show(trial.control.share, "share"),
        "Interval metric": show(trial.interval),
        "Seconds a pass": f"{trial.seconds:.2f}",
        "Note": ", ".join(notes),
    }


def check_tuning_folder(folder: str | Path, *, overwrite: bool = False) -> Path:
    """Refuse an output folder that exists, unless it holds an earlier tuning and may be replaced."""
    return check_folder(folder, overwrite=overwrite, contents=Contents.TUNING)


def save_tuning(tuning: Tuning, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write ``recipe.toml``, ``report.html`` and ``report.json``, whole or not at all; for the owner alone."""
    files = {
        "recipe.toml": tuning.recipe.to_toml(),
        "report.html": write_tuning_page(tuning),
        "report.json": write_json(tuning.to_json(), "pretty"),
    }
    try:
        with replacing_folder(folder, overwrite=overwrite, contents=Contents.TUNING) as work:
            for name, text in files.items():
                write_text(work / name, text, mode=0o600)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise SfumatoError(f"the tuning could not be written ({reason}); nothing was changed") from None
    return Path(folder)
