"""What a mechanism may know of a column's values beside their coordinates: bounds, step, labels, and who said so."""

from __future__ import annotations

from sfumato.records import Extent
from sfumato.tables.field import Category, Field, Kind
from sfumato.tables.grid import Grid

__all__ = ["extent_of_labels", "extent_of_numbers", "label_of"]


def extent_of_labels(field: Field, origin: float = 0.0, unit: float = 1.0) -> Extent:
    """Give the categories of a column as labels, in their order."""
    labels = tuple(label_of(category) for category in field.domain.categories or ())
    return Extent(field.domain.declared, labels=labels, origin=origin, unit=unit)


def extent_of_numbers(field: Field, grid: Grid, mean: float, scale: float) -> Extent | None:
    """Give bounds and step of a column of numbers, the labels of one of places in an order, and nothing of dates.

    ``mean`` and ``scale`` count in places of the grid. A bound that a declared domain leaves open is none.
    """
    domain = field.domain
    if field.kind is Kind.ORDINAL:
        return extent_of_labels(field, mean, scale)
    if field.kind is Kind.DATE:
        return None
    low = None if domain.declared and domain.low is None else grid.low
    high = None if domain.declared and domain.high is None else grid.high
    return Extent(domain.declared, low, high, grid.step)


def label_of(category: Category) -> str:
    """Write a category as a file of text does.

    Examples
    --------
    >>> label_of(True), label_of(3.0), label_of("a b")
    ('true', '3', 'a b')
    """
    if isinstance(category, bool):
        return "true" if category else "false"
    if isinstance(category, float) and category.is_integer():
        return str(int(category))
    return str(category)
