"""Reports made by hand, for judging: every attack with as many hits and tries as one likes."""

from __future__ import annotations

from collections.abc import Iterable

from sfumato.assess.algebra import SHARE, Number, success
from sfumato.assess.findings import Direction, Family, Finding, Tries, not_run
from sfumato.assess.report import Report
from sfumato.core.facts import Fact, RandomnessSource, Shuffled
from sfumato.core.groups.facts import CountsKept, Grouped
from sfumato.methods.condense.facts import GroupSynthesis
from sfumato.methods.perturb.facts import Noised
from sfumato.publish.policy import Policy

TRIES = 4_000
GROUPED: tuple[Fact, ...] = (
    RandomnessSource("release", "ChaCha20"),
    Grouped("MDAV", 10_000, 900, 10, 0, 0, 0, 0),
    GroupSynthesis("mean and covariance", "uniform along eigenvectors", 10_000),
    Shuffled(10_000),
)
WITH_CATEGORIES = (*GROUPED, CountsKept(2, 0))
NOISED: tuple[Fact, ...] = (
    RandomnessSource("release", "ChaCha20"),
    Noised("gaussian", "additive", 0.5, 3, False, 2.0**-17),
    Shuffled(10_000),
)
RATES = (
    *(f"linkage-{way}" for way in ("euclid", "mahalanobis", "rank")),
    "linkability",
    "linkability-ten-nearest",
    *(f"attribute-inference-all-columns/{column}" for column in ("age", "sex", "pay")),
    "singling-out-univariate",
    "singling-out-multivariate",
    "outlier-inference",
)
AREAS = ("membership-auc-distance", "membership-auc-distance-relative", "membership-auc-classifier")
TPR = "membership-tpr"


def rate(name: str, inside: float, outside: float | None = None, tries: int = TRIES, guess: float = 0.001) -> Finding:
    control = None if outside is None else Tries(round(outside * tries), tries)
    values = success(Tries(round(inside * tries), tries), guess=guess, control=control)
    return Number(name, scale=SHARE).means("How often").finding(Family.ATTACK, values)


def area(name: str, value: float, tries: int = TRIES) -> Finding:
    bounds, inside = (0.0, 1.0), Tries(value * tries, tries)
    return Finding(name, Family.ATTACK, value, Direction.LOWER, bounds, "How well.", baseline=0.5, inside=inside)


def idle(name: str, reason: str = "it failed", *, applies: bool = True) -> Finding:
    return not_run(name, Family.ATTACK, Direction.LOWER, "How often.", reason, applies=applies)


def harmless() -> dict[str, Finding]:
    """Every attack that is judged, with no gain at all."""
    findings = [rate(name, 0.1, 0.1) for name in RATES]
    findings += [area(name, 0.5) for name in AREAS]
    findings.append(rate(TPR, 0.01, 0.01))
    return {finding.name: finding for finding in findings}


def report(*changed: Finding, held_out: int = TRIES, without: Iterable[str] = ()) -> Report:
    """A harmless report, but for findings that are given."""
    left = tuple(without)
    findings = {**harmless(), **{finding.name: finding for finding in changed}}
    kept = tuple(finding for name, finding in findings.items() if name not in left)
    return Report(kept, (), 10_000, 10_000, rows_held_out=held_out)


def limited(**limits: float) -> Policy:
    """A policy of nothing but limits."""
    return Policy("ours", {name.replace("_", "-"): value for name, value in limits.items()})
