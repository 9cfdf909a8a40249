"""Domains that the schema leaves open, bought with a part of the privacy budget."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.core.errors import PrivacyRefusal
from sfumato.methods.private.domains import LOG_GRID, buy_bounds, buy_categories
from sfumato.methods.private.people import Counter
from sfumato.tables.cells import absent_cells, plain, read_numbers
from sfumato.tables.dates import bound_to_number
from sfumato.tables.field import DateStep, Domain, Field, Kind
from sfumato.tables.schema import Schema

__all__ = ["buy_domains", "to_buy"]

_SHARE = 0.1  # of the budget, for all domains together
_YEARS = range(1800, 2201)
_LISTED = (Kind.NOMINAL, Kind.BOOLEAN)
_DECLARE = "declare {} in a schema ('sfumato inspect --declare' writes one to fill in)"


def to_buy(schema: Schema) -> tuple[Field, ...]:
    """Columns without a declared domain.

    Raises
    ------
    PrivacyRefusal
        For a column whose order cannot be bought.
    """
    lacking = []
    for field in schema.encoded:
        domain = field.domain if field.domain.declared else Domain()
        if field.kind is Kind.ORDINAL and not domain.categories:
            what = _DECLARE.format("its categories in their order")
            raise PrivacyRefusal(f"the order of column {field.name!r} cannot be bought; {what}")
        bounded = domain.low is not None and domain.high is not None
        if not (domain.categories if field.kind in (*_LISTED, Kind.ORDINAL) else bounded):
            if field is schema.weight:
                raise PrivacyRefusal(
                    f"the weight {field.name!r} has no declared bounds; {_DECLARE.format('low and high')}"
                )
            lacking.append(field)
    return tuple(lacking)


def buy_domains(schema: Schema, lacking: Sequence[Field], arrow: pa.Table, counter: Counter) -> Schema:
    """The schema with domains of these columns, for equal parts of their share of the budget.

    Raises
    ------
    PrivacyRefusal
        If the noisy counts show no domain.
    """
    if not lacking:
        return schema
    ledger = counter.ledger
    rho, listed = _SHARE * ledger.rho / len(lacking), sum(field.kind in _LISTED for field in lacking)
    bought = {}
    for field in lacking:
        column = arrow.column(field.name)
        if field.kind in _LISTED:
            domain = _categories(column, field, counter, rho, ledger.thresholds / listed)
        else:
            domain = _bounds(column, field, counter, rho)
        if domain is None:
            raise PrivacyRefusal(
                f"too few people share a value of column {field.name!r} to buy its domain with this budget; "
                f"{_DECLARE.format('it')}, or take a larger epsilon"
            )
        bought[field.name] = dataclasses.replace(field, domain=domain)
    return dataclasses.replace(schema, fields=tuple(bought.get(field.name, field) for field in schema))


def _bounds(column: pa.ChunkedArray, field: Field, counter: Counter, rho: float) -> Domain | None:
    domain = dataclasses.replace(field.domain, declared=True, low=None, high=None)
    if field.kind is Kind.DATE and domain.step is None:
        domain = dataclasses.replace(domain, step=DateStep.DAY)
    field = dataclasses.replace(field, domain=domain)
    numbers, _ = read_numbers(column, field)
    dates = [datetime.datetime(year, 1, 1) for year in _YEARS]
    grid = np.array([bound_to_number(each, field) for each in dates]) if field.kind is Kind.DATE else LOG_GRID
    ends = buy_bounds(counter, numbers, grid, rho)
    if ends is None:
        return None
    if field.kind is Kind.DATE:
        first, last = (dates[int(np.searchsorted(grid, each))] for each in ends)
        return dataclasses.replace(domain, low=first, high=last)
    if field.kind is Kind.INTEGER:
        ends = int(np.ceil(ends[0])), int(np.ceil(ends[1])) - 1
    return dataclasses.replace(domain, low=ends[0], high=ends[1])


def _categories(column: pa.ChunkedArray, field: Field, counter: Counter, rho: float, delta: float) -> Domain | None:
    array = plain(column)
    absent = absent_cells(array, field.missing)
    present = pc.if_else(pa.array(~absent), array, pa.scalar(None, array.type))
    found = pc.dictionary_encode(present)
    codes = pc.fill_null(found.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    labels: list[Any] = found.dictionary.to_pylist()
    kept = buy_categories(counter, codes, labels, rho, delta)
    return dataclasses.replace(field.domain, declared=True, categories=kept) if kept else None
