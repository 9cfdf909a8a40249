"""From the counts of a survey to the distributions of the true answers, with bands [JS07, ch. 4].

On the dashboard figures appear from a least number of answers on and move by several answers at once, so that looking
before and after a person's answer does not single it out. Who knows the other answers of the step, or sees figures on
both sides of a restart, can still work out one *randomized* answer: that is what the bound of the law is for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.errors import OptionError, SfumatoError, TooFew
from sfumato.survey.options import AT_LEAST
from sfumato.survey.questions import Question, Survey
from sfumato.survey.store import AnswerStore

if TYPE_CHECKING:
    from sfumato.survey.reconstruct import Reconstruction

__all__ = ["STEP", "LiveEstimate", "estimate", "figures", "status_page", "stored_survey"]

STEP = 10
"""Answers that must have come before figures change."""

_PAUSE = 3.0  # seconds between two looks at the database
_AT_FIRST = 2.0  # seconds for which the first viewer is kept waiting
_SHARE = 10.0  # an estimate that took a second is not made again for this many


def stored_survey(db: str) -> tuple[Survey, int, dict[int, dict[int, int]]]:
    """Survey of a database, how many answers it holds, and the counts of each question."""
    with closing(AnswerStore.open(db, create=False)) as store:
        document = store.survey_document()
        count, tallies = store.counts()
    if document is None:
        raise OptionError("this database has tokens and no survey yet; serve one first")
    return Survey.from_document(document), count, tallies


def estimate(survey: Survey, tallies: Mapping[int, Mapping[int, int]]) -> dict[str, Reconstruction | TooFew]:
    """Reconstruct the distribution behind each question, or say why there are too few answers for it.

    ``tallies`` are, for the number of a question, how often each output code came.
    """
    found: dict[str, Reconstruction | TooFew] = {}
    for number, question in enumerate(survey.questions):
        try:
            found[question.name] = _reconstruct(question, tallies.get(number, {}))
        except TooFew as refusal:
            found[question.name] = refusal
    return found


def figures(found: Mapping[str, Reconstruction | TooFew]) -> Mapping[str, Mapping[str, Any]]:
    """Reconstructions in plain JSON types; a refused one is its sentence."""
    return {
        name: {"refused": f"{one}."} if isinstance(one, TooFew) else one.to_document() for name, one in found.items()
    }


def status_page(db: str) -> Mapping[str, object]:
    """How a survey stands: answers that are stored, and their estimate where there are enough of them."""
    survey, count, tallies = stored_survey(db)
    questions = []
    if count >= AT_LEAST:
        for name, found in estimate(survey, tallies).items():
            words = str(found) if isinstance(found, SfumatoError) else found.describe()
            questions.append({"name": name, "words": words})
    return {"title": survey.title, "count": count, "at_least": AT_LEAST, "questions": questions}


def _reconstruct(question: Question, tally: Mapping[int, int]) -> Reconstruction:
    from sfumato.core.threads import one_thread
    from sfumato.survey.reconstruct import reconstruct

    outputs = np.fromiter(tally.keys(), dtype=np.int64, count=len(tally))
    counts = np.fromiter(tally.values(), dtype=np.int64, count=len(tally))
    with one_thread():  # matrices are small, and beside a busy collector more threads wait for each other
        return reconstruct(question.spec.decode_output(np.repeat(outputs, counts)), question.spec)


class LiveEstimate:
    """The latest estimate, made now and then in a thread of its own; many may ask, one at a time is made."""

    def __init__(self, store: AnswerStore, survey: Survey, *, at_least: int = AT_LEAST, step: int = STEP) -> None:
        self._store = store
        self._survey = survey
        self._at_least = at_least
        self._step = step
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="estimate")
        self._shown: Mapping[str, object] = {}
        self._figures: Mapping[str, object] | None = None
        self._counted = 0  # answers behind the figures
        self._next = 0.0
        self._making: asyncio.Task[None] | None = None

    async def current(self) -> Mapping[str, object]:
        """What the dashboard shows: at once where something is there, though it may be seconds old."""
        if self._making is None and time.monotonic() >= self._next:
            self._making = asyncio.get_running_loop().create_task(self._make())
        if not self._shown and self._making is not None:
            await asyncio.wait({self._making}, timeout=_AT_FIRST)
        return self._shown or self._nothing("The first estimate is being made.")

    async def stop(self) -> None:
        """End; an estimate that is being made is waited for."""
        if self._making is not None:
            await self._making
        self._thread.shutdown()

    async def _make(self) -> None:
        began = time.monotonic()
        try:
            self._shown = await asyncio.get_running_loop().run_in_executor(self._thread, self._look)
        except SfumatoError as error:  # of the database, or of a law that cannot be taken back
            self._shown = self._nothing(f"{error}.")
        finally:
            now = time.monotonic()
            self._next = now + max(_PAUSE, _SHARE * (now - began))
            self._making = None

    def _nothing(self, words: str) -> Mapping[str, object]:
        return {"count": None, "at_least": self._at_least, "figures": None, "words": words}

    def _look(self) -> Mapping[str, object]:
        count, tallies = self._store.counts()
        if count >= self._at_least and (self._figures is None or count >= self._counted + self._step):
            self._counted = count
            self._figures = {"count": count, "questions": figures(estimate(self._survey, tallies))}
        words = "" if self._figures else f"Figures are shown from {self._at_least} answers on."
        return {"count": count, "at_least": self._at_least, "figures": self._figures, "words": words}
