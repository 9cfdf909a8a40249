"""The noise that a wanted privacy takes: chances, whole steps, refusals."""

from __future__ import annotations

import pytest

from sfumato.core.errors import OptionError
from sfumato.survey.mining import noise_for_privacy


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("privacy", [0.1, 1.0, 2.0])
def test_noise_leaves_the_interval_with_the_chance_that_the_confidence_leaves(
    privacy: float, confidence: float
) -> None:
    from scipy.stats import laplace, norm, uniform

    half = privacy * 40.0 / 2.0
    reach, sd, scale = (
        noise_for_privacy(law, privacy, -10.0, 30.0, confidence)[key]
        for law, key in (("uniform", "reach"), ("gaussian", "sd"), ("laplace", "scale"))
    )
    for law in (uniform(-reach, 2 * reach), norm(scale=sd), laplace(scale=scale)):
        assert law.cdf(half) - law.cdf(-half) == pytest.approx(confidence)


def test_the_reach_of_uniform_noise_is_whole_steps_and_never_too_short() -> None:
    assert noise_for_privacy("uniform", 1.0, 0, 95, step=1)["reach"] == 50
    assert noise_for_privacy("uniform", 1.0, 0, 96, step=1)["reach"] == 51


@pytest.mark.parametrize(
    ("law", "privacy", "high", "confidence", "step", "words"),
    [
        ("cauchy", 1.0, 1.0, 0.95, None, "unknown noise distribution"),
        ("uniform", 0.0, 1.0, 0.95, None, "privacy must be"),
        ("uniform", 1.0, 0.0, 0.95, None, "the range must go"),
        ("uniform", 1.0, 1.0, 1.0, None, "confidence must be"),
        ("uniform", 1.0, 1.0, 0.95, 0.0, "step of a grid"),
    ],
)
def test_noise_that_makes_no_sense_is_refused(
    law: str, privacy: float, high: float, confidence: float, step: float | None, words: str
) -> None:
    with pytest.raises(OptionError, match=words):
        noise_for_privacy(law, privacy, 0.0, high, confidence, step=step)
