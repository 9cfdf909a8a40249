"""What tuning found, as a page for the owner."""

from __future__ import annotations

from sfumato.assess.words import show
from sfumato.tuning.figures import tuning_figures
from sfumato.tuning.model import Tuning
from sfumato.tuning.trials import Trial

__all__ = ["write_tuning_page"]


def write_tuning_page(tuning: Tuning) -> str:
    """Write one self-contained page."""
    import jinja2

    loader = jinja2.ChoiceLoader(
        [jinja2.PackageLoader("sfumato.tuning", "templates"), jinja2.PackageLoader("sfumato.assess", "templates")]
    )
    environment = jinja2.Environment(
        loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    smallest = any(trial.smallest is not None for trial in tuning.trials)
    names = [
        "Group size",
        "Utility",
        "Smallest class",
        "Linked",
        "Control",
        "Interval metric",
        "Seconds a pass",
        "Note",
    ]
    return environment.get_template("tuning.html").render(
        reason=tuning.choice.reason,
        notes=tuning.notes,
        measured=(
            f"{len(tuning.trials)} group sizes on {tuning.plan.repeats} splits each, with "
            f"{100 * tuning.plan.holdout:.3g} % of the rows held out; {tuning.passes:.0f} times the time of one pass."
        ),
        made=_made(tuning),
        figures=tuning_figures(tuning),
        words=tuning.words,
        head=[name for name in names if smallest or name != "Smallest class"],
        rows=[_row(tuning, trial, smallest=smallest) for trial in tuning.trials],
        marks=tuning.marks,
    )


def _made(tuning: Tuning) -> list[tuple[str, str]]:
    made = [
        ("Recommended", f"k = {tuning.choice.size}"),
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


def _row(tuning: Tuning, trial: Trial, *, smallest: bool) -> list[str]:
    low, high = trial.linkage_interval
    spread = trial.utility_interval
    notes = [mark.rule for mark in tuning.marks if mark.size == trial.size]
    if trial.size in tuning.front:
        notes.append("frontier")
    if trial.size == tuning.choice.size:
        notes.insert(0, "recommended")
    cells = [
        str(trial.size),
        show(trial.utility) + ("" if spread is None else f" ({show(spread[0])} to {show(spread[1])})"),
        show(trial.smallest),
        f"{show(trial.linkage.share, 'share')} ({show(low, 'share')} to {show(high, 'share')})",
        show(trial.control.share, "share"),
        show(trial.interval),
        f"{trial.seconds:.2f}",
        ", ".join(notes),
    ]
    return [cell for place, cell in enumerate(cells) if smallest or place != 2]
