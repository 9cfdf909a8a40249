"""How the budget is divided and how large the model may be, by declared kinds and epsilon alone.

The constants were chosen on splits of Adult, Magic, waveform and Abalone (benchmarks/quality/private.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.methods.private.columns import Domain

__all__ = ["Settings", "is_class", "settings_for"]

_MOST_CLASSES = 30
_FEW_PLACES = 12  # a target of so few ordered places counts as classes
_FEW_COLUMNS = 20  # whose pairs can all be counted
_SMALL = 1.0  # epsilon from which tables of pairs, or of several parents, are worth their cost
_LARGE = 2.0  # from which a covariance by class is worth it, too


@dataclass(frozen=True)
class Settings:
    """Shares of the budget for each step, and sizes.

    Parameters
    ----------
    one_way, given_target, covariance, scores : float
        Shares of what the tables of pairs leave of the budget; the tables of columns given their parents get the rest.
    pairs : float
        Share of the whole budget for tables of all pairs, if their cells hold enough people.
    target_weight : float
        Share of the one-way budget that a target of numbers gets, in those of other columns.
    split : float
        Standard deviations of noise from which an interval is divided.
    parents : int
        Most parents of a column.
    people_per_cell : float
        Standard deviations of noise that an average cell of a table should hold.
    bins : int
        Most bins of a column in its own table.
    least_room : float
        Fewest bins of a parent that make it worth taking.
    clip : float
        Largest squared length of a person's scores, for each column.
    small_parents : bool
        Columns of at most three categories may come on top of other parents.
    """

    one_way: float
    given_target: float
    covariance: float
    scores: float
    pairs: float = 0.0
    target_weight: float = 1.0
    split: float = 8.0
    parents: int = 2
    people_per_cell: float = 2.5
    bins: int = 24
    least_room: float = 2.5
    clip: float = 1.6
    small_parents: bool = False


def is_class(domain: Domain) -> bool:
    """Whether a target is modelled by classes, rather than along a line."""
    return domain.size <= (_FEW_PLACES if domain.ordered else _MOST_CLASSES)


def settings_for(domains: tuple[Domain, ...], target: int | None, epsilon: float) -> Settings:
    """Settings of a release.

    Examples
    --------
    >>> columns = (Domain("age", 100, True), Domain("pay", 2, False))
    >>> settings_for(columns, 1, 1.0).given_target, settings_for(columns, None, 1.0).given_target
    (0.35, 0.0)
    """
    numbers = sum(domain.ordered for place, domain in enumerate(domains) if place != target)
    counted = len(domains) <= _FEW_COLUMNS and epsilon >= _SMALL
    if target is not None and is_class(domains[target]):
        smooth, large = numbers >= 2 * (len(domains) - 1 - numbers), epsilon >= _LARGE
        if epsilon < _SMALL and not smooth:  # noise leaves little but what each column tells of the target
            return Settings(0.08, 0.75, 0.0, 0.04, parents=1, people_per_cell=10.0)
        if counted and large and not smooth:
            return Settings(0.08, 0.20, 0.0, 0.04, 0.3)
        return Settings(0.08, 0.35, 0.08 if smooth and large else 0.0, 0.04, 0.5 if counted and smooth else 0.0)
    if target is not None:
        pairs = 0.3 if counted else 0.0
        return Settings(0.30, 0.0, 0.5, 0.03, pairs, target_weight=6.0, split=4.0, clip=1.2, people_per_cell=3.0)
    pairs = 0.3 if counted and epsilon >= _LARGE else 0.0
    return Settings(0.12, 0.0, 0.0, 0.10, pairs, split=6.0, parents=3, people_per_cell=3.0, small_parents=True)
