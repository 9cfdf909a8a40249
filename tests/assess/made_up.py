"""Findings of every kind, made up by hand: what a page must be able to show whatever was measured."""

from __future__ import annotations

from sfumato.assess.findings import Direction, Family, Finding, not_run, wilson

WORDS = "One plain sentence that says what the number means and which way is good, at some length."


def attack(
    name: str, hits: int, held: int | None, guess: float, attempts: int = 2000, *, public: bool = True
) -> Finding:
    return Finding(
        name,
        Family.ATTACK,
        hits / attempts,
        Direction.LOWER,
        (0.0, 1.0),
        WORDS,
        interval=wilson(hits, attempts),
        baseline=guess,
        control=None if held is None else held / attempts,
        control_interval=None if held is None else wilson(held, attempts),
        attempts=attempts,
        public=public,
        unit="share",
    )


def model(
    name: str,
    value: float,
    baseline: float,
    unit: str = "share",
    *,
    public: bool = True,
    chance: float | None = None,
) -> Finding:
    low = 0.0 if unit == "share" else -1.0
    return Finding(
        name,
        Family.UTILITY,
        value,
        Direction.HIGHER,
        (low, 1.0),
        WORDS,
        interval=(value - 0.02, value + 0.02),
        baseline=baseline,
        attempts=5000,
        public=public,
        unit=unit,
        chance=chance,
    )


def attacks() -> tuple[Finding, ...]:
    return (
        attack("linkage-euclid", 240, 40, 0.0005),
        attack("linkage-mahalanobis", 260, 36, 0.0005),
        attack("linkage-rank", 100, 96, 0.0005),
        attack("linkability-ten-nearest", 30, 28, 0.001),
        attack("group-linkage-mean", 900, None, 0.01),
        attack("singling-out-univariate", 12, 10, 0.002),
        attack("singling-out-multivariate", 60, 55, 0.004),
        attack("attribute-inference-all-columns", 1300, 1290, 0.62),
        attack("membership-auc-distance", 1080, 1000, 0.5),
        Finding("membership-auc-classifier", Family.ATTACK, 0.53, Direction.LOWER, (0.5, 1.0), WORDS, (0.5, 0.56), 0.5),
        Finding("outlier-inference-error", Family.ATTACK, 2.5, Direction.HIGHER, (0.0, None), WORDS, (2.1, 2.9), 3.0),
        not_run("label-inference", Family.ATTACK, Direction.LOWER, WORDS, "no column is named as the one to predict"),
        *(
            attack(f"attribute-inference-all-columns/column {place}", 900 + 20 * place, 900, 0.4, public=place % 2 == 0)
            for place in range(6)
        ),
    )


def models() -> tuple[Finding, ...]:
    kinds = ("1nn", "boosting", "logistic")
    return (
        *(model(f"auc-{kind}", 0.8 - 0.02 * step, 0.82, "", chance=0.5) for step, kind in enumerate(kinds)),
        *(model(f"accuracy-{kind}", 0.8 - 0.02 * step, 0.82) for step, kind in enumerate(kinds)),
        *(model(f"accuracy-smallest-class-{kind}", 0.5 - 0.1 * step, 0.55) for step, kind in enumerate(kinds)),
        model("response-correlation-boosting", 0.6, 0.66, ""),
        model("response-r2-boosting", -0.1, 0.43, ""),
        *(
            model(f"recall-{kind}/class {place}", 0.9 / (place + 1), 0.95 / (place + 1), public=False)
            for kind in kinds
            for place in range(4)
        ),
    )


def findings() -> tuple[Finding, ...]:
    return (*attacks(), *models())
