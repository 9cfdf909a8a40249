"""The estimate behind the dashboard: made now and then in a thread of its own, shown to all who ask.

Figures appear from a least number of answers on and move by several answers at once, so that looking before and after a
person's answer does not single it out. Who knows the other answers of the step, or sees figures on both sides of a
restart, can still work out one *randomized* answer: that is what the bound of the law is for.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sfumato.collect.estimate import estimate, figures
from sfumato.collect.store import Store
from sfumato.collect.survey import Survey
from sfumato.errors import SfumatoError

__all__ = ["AT_LEAST", "STEP", "Live"]

AT_LEAST = 50
"""Answers from which on figures are shown."""

STEP = 10
"""Answers that must have come before figures change."""

_PAUSE = 3.0  # seconds between two looks at the database
_AT_FIRST = 2.0  # seconds for which the first viewer is kept waiting
_SHARE = 10.0  # an estimate that took a second is not made again for this many


class Live:
    """Gives the latest estimate; many may ask, one at a time is made.

    Parameters
    ----------
    store : Store
    survey : Survey
    at_least : int
    step : int
    """

    def __init__(self, store: Store, survey: Survey, *, at_least: int = AT_LEAST, step: int = STEP) -> None:
        self._store = store
        self._survey = survey
        self._at_least = at_least
        self._step = step
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="estimate")
        self._shown: dict[str, Any] = {}
        self._figures: dict[str, Any] | None = None
        self._next = 0.0
        self._making: asyncio.Task[None] | None = None

    async def current(self) -> dict[str, Any]:
        """Give what the dashboard shows: at once where something is there, though it may be seconds old."""
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

    def _nothing(self, words: str) -> dict[str, Any]:
        return {"count": None, "at_least": self._at_least, "figures": None, "words": words}

    def _look(self) -> dict[str, Any]:
        count, tallies = self._store.counts()
        if count >= self._at_least and (self._figures is None or count >= self._figures["count"] + self._step):
            self._figures = {"count": count, "questions": figures(estimate(self._survey, tallies))}
        words = "" if self._figures else f"Figures are shown from {self._at_least} answers on."
        return {"count": count, "at_least": self._at_least, "figures": self._figures, "words": words}
