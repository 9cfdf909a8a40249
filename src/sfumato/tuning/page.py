"""What tuning found, as a page and a folder for the owner."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.assess.words import show
from sfumato.core.documents import write_json
from sfumato.core.errors import SfumatoError
from sfumato.core.templates import page_template
from sfumato.publish.folder import Contents, check_folder, replacing_folder, write_text
from sfumato.tuning.figures import frontier_figure
from sfumato.tuning.model import Tuning, worst_words
from sfumato.tuning.trials import Reading

__all__ = ["check_tuning_folder", "save_tuning", "write_tuning_page"]

_OUTCOMES = {"meets": "meets it", "does-not-meet": "does not meet it", "cannot-tell": "cannot be told"}


def write_tuning_page(tuning: Tuning) -> str:
    """Write one self-contained page."""
    best, nearest, metric = tuning.best, tuning.nearest, tuning.bench.metric
    said = best or nearest
    return page_template("tuning.html", "sfumato.tuning", "sfumato.assess").render(
        headline=tuning.headline.removeprefix("Best:   "),
        outcome="meets" if best is not None else "cannot-tell",
        nearest=None if nearest is None else f"{nearest.reading.candidate.words}; {tuning.because}",
        worst=None if best is None else worst_words(best.reading.outlook.worst),
        command=None if best is None else tuning.command_of(best.reading),
        alternatives=[tuning.alternative_words(each).removeprefix("Or:     ") for each in tuning.alternatives],
        changes=tuning.change_words(),
        notes=tuning.notes,
        figure=frontier_figure(tuning),
        policy=tuning.policy.title,
        words="use" if metric is None else metric.words,
        confirmed=[_row(each.reading) for each in tuning.confirmed],
        rows=[_row(each) for each in tuning.bench.readings if each.part not in ("confirmation", "again")],
        refused=[
            f"{each.words}: {reason}" for each, reason in sorted(tuning.refused.items(), key=lambda item: item[0].rank)
        ],
        seconds=f"{tuning.seconds:.0f}",
        said=said is not None,
    )


def _row(reading: Reading) -> list[str]:
    """Cells of what was tried: setting, people, use, the original's, leak, and what the judge says."""
    change = "" if reading.change is None else f", {reading.change.words}"
    return [
        f"{reading.candidate.words}{change}",
        f"{reading.people:,}",
        show(reading.use.value),
        show(reading.original.value),
        f"{reading.outlook.leak:.2f}",
        _OUTCOMES[reading.verdict.outcome.value],
    ]


def check_tuning_folder(folder: str | Path, *, overwrite: bool = False) -> Path:
    """Refuse an output folder that exists, unless it holds an earlier tuning and may be replaced."""
    return check_folder(folder, overwrite=overwrite, contents=Contents.TUNING)


def save_tuning(tuning: Tuning, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write ``report.html``, ``report.json`` and, where something qualifies, ``recipe.toml``; for the owner alone."""
    files = {"report.html": write_tuning_page(tuning), "report.json": write_json(tuning.to_json(), "pretty")}
    if tuning.recipe is not None:
        files["recipe.toml"] = tuning.recipe.to_toml()
    try:
        with replacing_folder(folder, overwrite=overwrite, contents=Contents.TUNING) as work:
            for name, text in files.items():
                write_text(work / name, text, mode=0o600)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise SfumatoError(f"the tuning could not be written ({reason}); nothing was changed") from None
    return Path(folder)
