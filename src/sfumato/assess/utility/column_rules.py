"""Rules between columns: how many rows of the released table obey those of the original."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sfumato.assess.algebra import SHARE, Measure, Number, Stated, Values
from sfumato.assess.findings import Family
from sfumato.assess.study import Study
from sfumato.tables.dates import unit_of
from sfumato.tables.field import Kind
from sfumato.tables.rules import Cells, broken_rows, period_of, read_rules

__all__ = ["COLUMN_RULES"]


def _run(study: Study) -> Iterator[Stated]:
    names = [pair.name for pair in study.pairs]
    rules = [rule for rule in read_rules(study.rules, study.rule_names) if set(names).issuperset(rule.columns)]
    if not rules:
        return
    units = {pair.name: unit_of(pair.field) if pair.field.kind is Kind.DATE else None for pair in study.pairs}
    before, after = (
        {name: Cells(column.values, column.absent, units[name]) for name, column in zip(names, columns, strict=True)}
        for columns in ([pair.original for pair in study.pairs], [pair.released for pair in study.pairs])
    )
    shares = []
    for cells, rows in ((before, len(study.original)), (after, len(study.released))):
        broken = np.zeros(rows, dtype=np.bool_)
        for rule in rules:
            broken |= broken_rows(rule, cells, period_of(rule, before))
        shares.append(1.0 - float(broken.mean()) if rows else 1.0)
    note = f"; counted for {len(rules)} {'rule' if len(rules) == 1 else 'rules'}"
    yield "column-rules-obeyed", Values(shares[1], baseline=shares[0], attempts=len(study.released), note=note)


COLUMN_RULES = Measure(
    "rules between columns", Family.UTILITY, "Patki, Wedge and Veeramachaneni 2016", _run, uncompared={}
).finds(
    Number("column-rules-obeyed", "Rows that obey all rules between columns", SHARE.more).means(
        "The share of released rows that obey every rule between columns, such as an admission before its discharge; "
        "beside it the share of the original's rows (baseline)"
    ),
)
