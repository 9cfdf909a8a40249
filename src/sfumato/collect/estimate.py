"""From the counts of a survey to the distributions of the true answers, with bands [JS07, ch. 4]."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sfumato.collect.survey import Question, Survey
from sfumato.errors import TooFew

if TYPE_CHECKING:
    from sfumato.randomize.reconstruct import Reconstruction

__all__ = ["estimate", "figures"]


def estimate(survey: Survey, tallies: Mapping[int, Mapping[int, int]]) -> dict[str, Reconstruction | TooFew]:
    """Reconstruct the distribution behind each question, or say why there are too few answers for it.

    Parameters
    ----------
    survey : Survey
    tallies : mapping
        For the number of a question, how often each output code came.
    """
    found: dict[str, Reconstruction | TooFew] = {}
    for number, question in enumerate(survey.questions):
        try:
            found[question.name] = _reconstruct(question, tallies.get(number, {}))
        except TooFew as refusal:
            found[question.name] = refusal
    return found


def figures(found: Mapping[str, Reconstruction | TooFew]) -> dict[str, dict[str, Any]]:
    """Give reconstructions in plain JSON types; a refused one is its sentence."""
    return {
        name: {"refused": f"{one}."} if isinstance(one, TooFew) else one.to_document() for name, one in found.items()
    }


def _reconstruct(question: Question, tally: Mapping[int, int]) -> Reconstruction:
    import numpy as np

    from sfumato.randomize.reconstruct import reconstruct
    from sfumato.threads import one_thread

    outputs = np.fromiter(tally.keys(), dtype=np.int64, count=len(tally))
    counts = np.fromiter(tally.values(), dtype=np.int64, count=len(tally))
    with one_thread():  # matrices are small, and beside a busy collector more threads wait for each other
        return reconstruct(question.spec.decode_output(np.repeat(outputs, counts)), question.spec)
