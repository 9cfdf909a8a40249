"""From stored answers to the distribution behind them, on the command line and on the dashboard."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from sfumato.core.distributions.domains import Integers, Labels
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import TooFew
from sfumato.survey.estimate import LiveEstimate, estimate, figures
from sfumato.survey.questions import Question, Survey
from sfumato.survey.store import AnswerStore, Submission

SMOKES = NoiseSpec(Labels(("no", "yes", "sometimes")), {"name": "response", "epsilon": 1.5})
AGE = NoiseSpec(Integers(0, 60), {"name": "laplace", "scale": 5})
SURVEY = Survey((Question("smokes", SMOKES), Question("age", AGE)))
TRUTH = np.array([0.6, 0.3, 0.1])


def filled(path: Path, people: int, rng: np.random.Generator) -> AnswerStore:
    store = AnswerStore.open(str(path))
    smokes = SMOKES.operator.randomize(rng.choice(3, people, p=TRUTH), rng)
    age = AGE.operator.randomize(rng.binomial(60, 0.4, people), rng)
    rows = zip(smokes.tolist(), age.tolist(), strict=True)
    store.add([Submission(secrets.token_bytes(32), secrets.token_bytes(16), codes) for codes in rows])
    return store


def test_the_estimate_is_near_the_truth_and_says_how_near(tmp_path: Path) -> None:
    store = filled(tmp_path / "survey.db", 20_000, np.random.default_rng(1))
    found = estimate(SURVEY, store.counts()[1])
    store.close()
    documents = figures(found)
    smokes, age = documents["smokes"], documents["age"]
    # one deviation of a share is below 0.011 here; eight of them are beyond 10^-14
    assert np.abs(np.array(smokes["probability"]) - TRUTH).max() < 0.09
    assert all(
        low <= share <= high
        for low, share, high in zip(smokes["lower"], smokes["probability"], smokes["upper"], strict=True)
    )
    mean = np.array(age["values"]) @ np.array(age["probability"])
    assert abs(mean - 24.0) < 8 * np.sqrt((2 * 5.02**2 + 14.4) / 20_000) + 0.5
    assert sum(age["probability"]) == pytest.approx(1.0)


def test_too_few_answers_are_told_and_not_guessed(tmp_path: Path) -> None:
    store = filled(tmp_path / "survey.db", 5, np.random.default_rng(1))
    found = estimate(SURVEY, store.counts()[1])
    store.close()
    assert all(isinstance(one, TooFew) for one in found.values())
    assert all("too few" in one["refused"] for one in figures(found).values())
    assert all(isinstance(one, TooFew) for one in estimate(SURVEY, {}).values())


def test_the_dashboard_shows_nothing_below_its_least_count_and_moves_by_steps(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    store = filled(tmp_path / "survey.db", 999, rng)

    async def watch() -> list[Mapping[str, object]]:
        live = LiveEstimate(store, SURVEY, at_least=1000, step=100)
        seen = [await look(live)]
        for more in (1, 99, 1):
            filled(tmp_path / "survey.db", more, rng).close()
            seen.append(await look(live))
        await live.stop()
        return seen

    async def look(live: LiveEstimate) -> Mapping[str, object]:
        live._next = 0.0
        await live.current()
        if live._making is not None:
            await live._making
        return await live.current()

    few, enough, between, after = asyncio.run(watch())
    assert few["figures"] is None
    assert "from 1000 answers on" in str(few["words"])
    assert [each["count"] for each in (few, enough, between, after)] == [999, 1000, 1099, 1100]
    shown = [each["figures"]["count"] for each in (enough, between, after)]  # type: ignore[index]
    assert shown == [1000, 1000, 1100]
    store.close()


def test_many_viewers_make_one_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = filled(tmp_path / "survey.db", 200, np.random.default_rng(1))
    calls = []
    counts = store.counts

    def counted() -> tuple[int, dict[int, dict[int, int]]]:
        calls.append(1)
        return counts()

    monkeypatch.setattr(store, "counts", counted)

    async def watch() -> None:
        live = LiveEstimate(store, SURVEY)
        await asyncio.gather(*(live.current() for _ in range(50)))
        await asyncio.gather(*(live.current() for _ in range(50)))
        await live.stop()

    asyncio.run(watch())
    assert len(calls) == 1
    store.close()


def test_a_law_that_cannot_be_taken_back_is_said_on_the_dashboard(tmp_path: Path) -> None:
    spec = NoiseSpec(Integers(0, 2**47), {"name": "shift-modulo", "reach": 2**46})
    survey = Survey((Question("answer", spec),))
    store = AnswerStore.open(str(tmp_path / "survey.db"))
    store.add([Submission(secrets.token_bytes(32), secrets.token_bytes(16), (code,)) for code in range(60)])

    async def watch() -> Mapping[str, object]:
        live = LiveEstimate(store, survey)
        seen = await live.current()
        await live.stop()
        return seen

    seen = asyncio.run(watch())
    assert seen["figures"] is None
    assert "out of proportion" in str(seen["words"])
    store.close()
