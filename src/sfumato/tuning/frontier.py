"""Which of the tried group sizes to take: the frontier of utility against attack success, and one choice on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.tuning.search import GAP
from sfumato.tuning.trials import Trial

__all__ = ["Choice", "frontier", "recommend"]


@dataclass(frozen=True)
class Choice:
    """A group size and the reason for it, in one sentence."""

    size: int
    reason: str


def frontier(trials: Sequence[Trial]) -> tuple[int, ...]:
    """Give the sizes that no other size beats in both utility and attack success, in rising order."""
    front = []
    for trial in trials:
        beaten = any(
            other.utility >= trial.utility
            and other.linkage.share <= trial.linkage.share
            and (other.utility > trial.utility or other.linkage.share < trial.linkage.share)
            for other in trials
        )
        if not beaten:
            front.append(trial.size)
    return tuple(sorted(front))


def recommend(trials: Sequence[Trial], words: str, *, gap: float = GAP) -> Choice:
    """Recommend the size that resists linkage best among those that keep utility within the gap of the best.

    Where there are classes, the smallest one may lose twice the gap and no more: it is the first to go unseen.

    Of sizes whose attack success cannot be told apart, their intervals overlap, the largest is taken: what is not
    measured also falls with the size.

    Parameters
    ----------
    trials : sequence of Trial
    words : str
        How the utility is called.
    gap : float
        Relative loss of utility that is accepted.
    """
    best = max(trials, key=lambda trial: trial.utility)
    floor = (1 - 2 * gap) * max((trial.smallest for trial in trials if trial.smallest is not None), default=0.0)
    useful = [
        trial
        for trial in trials
        if best.utility - trial.utility <= gap * abs(best.utility)
        and (trial.smallest is None or trial.smallest >= floor)
    ] or [best]
    safest = min(useful, key=lambda trial: trial.linkage.share)
    high = safest.linkage_interval[1]
    chosen = max((trial for trial in useful if trial.linkage_interval[0] <= high), key=lambda trial: trial.size)
    least = min(trials, key=lambda trial: trial.size)
    seen = "" if chosen.smallest is None else f" (and {chosen.smallest:.3f} on the smallest class)"
    lost = f"stays within {100 * gap:.3g} % of the best tried ({best.utility:.3f} at {best.size})"
    reason = (
        f"k = {chosen.size}: its {words} of {chosen.utility:.3f}{seen} {lost}, and of the sizes that do, none resists "
        f"linkage better: {100 * chosen.linkage.share:.3g} % of people are linked, against "
        f"{100 * least.linkage.share:.3g} % at k = {least.size} and {100 * chosen.control.share:.3g} % of people who "
        "are not in the table."
    )
    return Choice(chosen.size, reason)
