"""The folder that tuning writes: the recipe to run, and what was tried."""

from __future__ import annotations

import os
from pathlib import Path

from sfumato.documents import write_json
from sfumato.errors import SfumatoError
from sfumato.publish.folder import Contents, check_folder, replacing_folder, write_text
from sfumato.tuning.model import Tuning
from sfumato.tuning.page import write_tuning_page

__all__ = ["check_tuning_folder", "save_tuning"]


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
