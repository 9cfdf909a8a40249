"""The frame that measures and attacks slot into: what they find, what they need, and to which deeds they apply."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from sfumato.assess.findings import Direction, Family, Finding, not_run
from sfumato.assess.strangers import beside_strangers
from sfumato.assess.study import Study
from sfumato.facts import Fact
from sfumato.threads import one_thread

__all__ = ["Measure", "Need", "always", "run_measure"]


class Need(StrEnum):
    """What a measure cannot do without, as the reason that is given where it lacks."""

    HOLDOUT = "no rows were held out (name some with --holdout)"
    GROUPS = "no groups came with the table; they are known only to the run that made it"
    ORIGIN = "it is not known from which original row a released row descends"
    TARGET = "no column is named as the one to predict (name it with --target)"
    COLUMNS = "the table has a single column"


_OF_THE_TABLE = (Need.ORIGIN, Need.COLUMNS)  # where these lack there is nothing that could be attacked so


def always(facts: Sequence[Fact]) -> str | None:  # noqa: ARG001
    """Apply to every table, however it was made."""
    return None


@dataclass(frozen=True)
class Measure:
    """One measure or one published attack.

    Parameters
    ----------
    name : str
        Also the purpose of its generator.
    family : Family
    source : str
        Who published it.
    findings : dict
        The names of the findings it makes and what each means: one sentence that ends with a full stop. Of findings
        for single columns or classes, which have a slash in their name, none is named here.
    run : callable
        Makes the findings from a study.
    higher : frozenset of str
        The findings of which more is better; of all others less is.
    needs : tuple of Need
        Where one lacks the measure is not run.
    applies : callable
        Looks at the facts and gives the reason why the measure does not apply to what was done, or None.
    public : bool
        Whether what it finds may leave with the release.
    strangers : callable, optional
        For attacks that succeed on people whom the release does not know, too: makes studies of releases that know
        nobody, which the baseline is measured on where nobody was held out.
    """

    name: str
    family: Family
    source: str
    findings: dict[str, str]
    run: Callable[[Study], Iterable[Finding]]
    higher: frozenset[str] = frozenset()
    needs: tuple[Need, ...] = ()
    applies: Callable[[Sequence[Fact]], str | None] = always
    public: bool = True
    strangers: Callable[[Study], tuple[Study, ...]] | None = None

    def direction(self, name: str) -> Direction:
        """Say which way is good."""
        return Direction.HIGHER if name in self.higher else Direction.LOWER

    def not_run(self, because: str, *, applies: bool = True) -> tuple[Finding, ...]:
        """State all findings as not run, ``applies`` false where the table has nothing that they could speak of."""
        return tuple(
            not_run(name, self.family, self.direction(name), meaning, because, public=self.public, applies=applies)
            for name, meaning in self.findings.items()
        )


def run_measure(measure: Measure, study: Study) -> tuple[Finding, ...]:
    """Run a measure, or say why it was not run; one that fails is unknown, never good."""
    if not len(study.released):
        return measure.not_run("the released table has no rows")
    because = measure.applies(study.facts)
    if because is not None:
        return measure.not_run(because, applies=False)
    lacking = next((need for need in measure.needs if _lacks(study, need)), None)
    if lacking is not None:
        return measure.not_run(lacking.value, applies=lacking not in _OF_THE_TABLE)
    import sklearn.ensemble  # noqa: F401 - a pool of threads can be held once it is loaded

    try:
        with one_thread():
            findings = tuple(measure.run(study))
            if measure.strangers is None or study.holdout is not None:
                return findings
            made = [tuple(measure.run(stand_in)) for stand_in in measure.strangers(study)]
            return tuple(beside_strangers(finding, made) for finding in findings)
    except (ArithmeticError, ValueError, IndexError, np.linalg.LinAlgError, MemoryError) as error:
        logging.getLogger("sfumato").warning("the measure %r failed (%s)", measure.name, type(error).__name__)
        return measure.not_run(f"it failed ({type(error).__name__}), which says nothing about safety")


def _lacks(study: Study, need: Need) -> bool:
    workings = study.workings
    return {
        Need.HOLDOUT: study.holdout is None,
        Need.GROUPS: workings is None or workings.labels is None or workings.drawn_from is None,
        Need.ORIGIN: workings is None or workings.origin is None,
        Need.TARGET: study.target is None,
        Need.COLUMNS: len(study.pairs) < 2,
    }[need]
