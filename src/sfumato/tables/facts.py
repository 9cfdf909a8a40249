"""Facts about columns: rare values, tails, hierarchies, dates, rules, weights and requested rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sfumato.core.facts import (
    NOTHING,
    ONE_ROW,
    Claim,
    Context,
    Fact,
    Refused,
    RowCheck,
    Statements,
    are_unique,
    at_most,
    counted,
    quoted,
    whom_rows_describe,
)

__all__ = [
    "Aggregated",
    "ColumnRulesKept",
    "DatesCoarsened",
    "FormulaTexts",
    "RareValues",
    "RowsDrawn",
    "TailsCoded",
    "WeightsScaled",
    "derived_basis",
    "except_derived",
    "is_quoted",
]


@dataclass(frozen=True)
class RareValues(Fact):
    """What became of categories that fewer than ``k`` persons of the table hold, before anything else was done.

    ``way`` is "pool" or "lift" if such cells took a common category, a wider one of a hierarchy or one named other that
    at least ``k`` persons share, and "keep" if they were left as they are. ``columns`` hold categories; so do columns
    ``passed`` through as public, in which nothing is hidden. ``dropped`` are columns that would have been left without
    a common value. How many cells there were is not stated: it may tell of one person. Persons are counted
    ``by_person`` if a column identifies the person of a row, and else by row.
    """

    way: str
    k: int
    columns: int
    passed: int = 0
    dropped: tuple[str, ...] = ()
    by_person: bool = False

    @property
    def shown(self) -> bool:
        """Whether the release may show a rare category."""
        return self.way == "keep" or self.passed > 0

    def claims(self, context: Context) -> Statements:
        streamed = context.has("maintained")
        source, step = ("stream", "release") if streamed else ("table", "any random draw")
        hidden = f"The release contains no category that fewer than {self.k} persons in the {source} have."
        assumes = whom_rows_describe(by_person=self.by_person)
        if self.shown:
            yield Refused(hidden, f"Rare categories were left as in the {source}, as the data owner decided.")
            return
        became = "a wider category of the hierarchy" if self.way == "lift" else "a category named other"
        yield Claim(
            hidden,
            f"Categories of {counted(self.columns, 'column', 'columns')} were counted in persons before {step}. A rare "
            f"category became {became} with at least this frequency, an adjacent ordinal category, or the category of "
            f"another record. Missing cells of fewer than {self.k} persons were replaced in the same way.",
            assumes,
        )
        if self.dropped:
            yield Claim(
                f"The release omits {counted(len(self.dropped), 'column', 'columns')} in which no value is shared by "
                "as many persons as the highest privacy level requires.",
                f"Columns: {quoted(self.dropped)}. They were dropped before {step}.",
                assumes,
            )

    def check(self) -> bool:
        few = bool(self.dropped) and self.way == "keep"
        known = self.way in ("pool", "lift", "keep")
        return known and self.k >= 2 and not few and len(set(self.dropped)) == len(self.dropped)

    def fits(self, context: Context) -> bool:
        return context.mechanism is None or _counts(context.mechanism, self.k)

    def dropped_columns(self) -> tuple[str, ...]:
        return self.dropped

    def summary(self, context: Context, file_format: str) -> tuple[int, str]:
        return 3, self.treatment

    @property
    def treatment(self) -> str:
        """How rare categories were treated."""
        fewer = f"(fewer than {self.k} persons)"
        if self.shown:
            return f"Rare categories {fewer} are released as they are."
        dropped = ""
        if self.dropped:
            columns = counted(len(self.dropped), "column", "columns")
            dropped = f"; {columns} with rare categories only dropped"
        return f"Rare categories {fewer}: none is released{dropped}."


@dataclass(frozen=True)
class TailsCoded(Fact):
    """What became of the ends of ``columns`` of numbers and dates, before anything else was done.

    ``method`` is "code" for top and bottom coding at cut-offs, "smooth" if values beyond the cut-offs of long tails
    were drawn from an exponential tail, and "keep" if they were left as they are. A cut-off is computed from at least
    ``k`` persons, each of whom counts once; they are counted ``by_person`` if a column identifies the person of a row.
    """

    method: str
    k: int
    columns: int
    by_person: bool = False

    def claims(self, context: Context) -> Statements:
        columns, streamed = counted(self.columns, "column", "columns"), context.has("maintained")
        limit = f"a cut-off computed from at least {self.k} persons"
        rank = (
            f"Each cut-off lies at random between the values of at least {self.k} persons, beyond whom at least "
            f"{self.k - 1} others lie. A column that few persons fill takes a cut-off between its middle values. Each "
            "person counts once."
        )
        common = (
            f" In columns of mostly common values, a value that fewer than {self.k} persons have became a neighbouring "
            "common value."
        )
        if context.has("component-noise"):
            joint = context.one("joint")
            together = joint is not None and joint.partition == "horizontal"
            yield Claim(
                f"In each column separately, numbers and dates beyond {limit} were replaced by it before noise and, "
                "without declared bounds, again after noise.",
                f"The data owners applied top and bottom coding to {columns}. {rank}{'' if together else common}",
                ONE_ROW,
            )
            return
        hidden = f"In each column separately, no released number or date lies beyond {limit}."
        if self.method == "keep":
            yield Refused(hidden, "The tails of columns were left unchanged, as the data owner decided.")
            return
        smooth = (
            " In columns with a long tail, values beyond a cut-off were drawn from an exponential tail fitted to ranks "
            "further inside."
        )
        yield Claim(
            hidden,
            f"Top and bottom coding was applied to {columns} of numbers and dates. {rank}"
            f"{'' if streamed else common}"
            f"{smooth if self.method == 'smooth' else ''} Columns derived by a rule follow from coded ones.",
            whom_rows_describe(by_person=self.by_person),
        )

    def check(self) -> bool:
        return self.method in ("code", "smooth", "keep") and self.k >= 2 and self.columns >= 1

    def fits(self, context: Context) -> bool:
        if context.mechanism is None:
            return True
        usual = getattr(
            type(context.mechanism), "k", None
        )  # which a method may raise for a small table, for values alone
        return _counts(context.mechanism, self.k, usual)

    def summary(self, context: Context, file_format: str) -> tuple[int, str]:
        treated = {
            "code": "coded to random cut-offs",
            "smooth": "drawn from a smooth tail",
            "keep": "released as they are",
        }
        rank = 3 if self.method == "keep" else 6
        return rank, f"Extreme values (fewer than {self.k} persons): {treated[self.method]}."


@dataclass(frozen=True)
class Aggregated(Fact):
    """Every value of these columns became its label at a level of a hierarchy before anything else was done.

    ``hierarchies`` are texts as a schema writes them; a file is named "file" alone.
    """

    columns: tuple[str, ...]
    hierarchies: tuple[str, ...]
    levels: tuple[int, ...]

    def claims(self, context: Context) -> Statements:
        """State at which level of a hierarchy values are released."""
        pooled = any(isinstance(other, RareValues) and not other.shown for other in context)
        levels = (
            f"{name}: {hierarchy}, level {level}"
            for name, hierarchy, level in zip(self.columns, self.hierarchies, self.levels, strict=True)
        )
        yield Claim(
            f"The values of {_columns(self.columns)} were generalized to labels of a hierarchy"
            f"{', or to a label named other' if pooled else ''}.",
            f"Levels: {quoted(levels)}. Every value was replaced by its label before any other step.",
            "the hierarchy file of the data owner lists wider labels" if "file" in self.hierarchies else NOTHING,
        )
        yield Refused(
            "The labels of several columns disclose no more together than each alone.",
            "A combination of labels may fit few people, and related columns narrow each other down.",
        )

    def check(self) -> bool:
        return are_unique(self.columns, self.levels, self.hierarchies) and min(self.levels) >= 1

    def fits(self, context: Context) -> bool:
        """Whether every column that the method names is at its level."""
        named = context.mechanism.traits.coarsened if context.mechanism is not None else ()
        found = dict(zip(self.columns, zip(self.hierarchies, self.levels, strict=True), strict=True))
        return all(
            each.column in found
            and found[each.column][1] == each.level
            and (each.hierarchy is None or found[each.column][0] == each.hierarchy)
            for each in named or ()
        )

    def row_check(self, schema: Any, context: Context) -> RowCheck:
        from sfumato.tables.row_checks import LabelCheck

        rare = context.one(RareValues)
        return LabelCheck(self, schema, pooled=rare is not None and not rare.shown)


@dataclass(frozen=True)
class DatesCoarsened(Fact):
    """Every date of these columns was taken as the first day of its month before anything was computed."""

    columns: tuple[str, ...]
    to: Literal["month"] = "month"

    def claims(self, context: Context) -> Statements:
        yield Claim(
            f"The release gives the dates of {counted(len(self.columns), 'column', 'columns')} to the month, never to "
            "the day.",
            f"Columns: {quoted(self.columns)}. Every date became the first day of its month before any other step.",
            NOTHING,
        )

    def check(self) -> bool:
        return are_unique(self.columns)

    def row_check(self, schema: Any, context: Context) -> RowCheck:
        from sfumato.tables.row_checks import MonthCheck

        return MonthCheck(self.columns, schema)


@dataclass(frozen=True)
class ColumnRulesKept(Fact):
    """Every released row obeys these rules between columns, as it was made so.

    ``rare_pairs`` if the owner wrote down a rule by which a label decides something: pairs of fewer records than
    the highest privacy level are kept then.
    """

    rules: tuple[str, ...]
    rare_pairs: bool = False

    def claims(self, context: Context) -> Statements:
        yield Claim(
            f"Every released row satisfies {counted(len(self.rules), 'rule', 'rules')} between columns.",
            f"Rules: {quoted(self.rules)}. Later columns were drawn as differences from earlier ones, and derived "
            "columns were computed from the others. All rows were checked.",
            NOTHING,
        )
        if self.rare_pairs:
            yield Refused(
                "Every pair of values tied by a rule is shared by as many records as the privacy level requires.",
                "A rule that the data owner declared keeps such pairs together, including rare ones.",
            )

    def check(self) -> bool:
        return are_unique(self.rules)

    def derived_columns(self, names: tuple[str, ...]) -> Iterable[str]:
        from sfumato.tables.rules import read_rules

        return [name for rule in read_rules(self.rules, names) for name in rule.columns]

    def row_check(self, schema: Any, context: Context) -> RowCheck:
        from sfumato.tables.row_checks import RuleCheck

        return RuleCheck(self.rules, schema)


@dataclass(frozen=True)
class WeightsScaled(Fact):
    """The weights of this column were all multiplied by one number after they were drawn, and rounded to their step.

    ``total`` is what they add up to, which is what those of the records did, up to ``step``.
    """

    column: str
    total: float
    step: float

    def claims(self, context: Context) -> Statements:
        coded = any(isinstance(other, TailsCoded) and other.method != "keep" for other in context)
        yield Claim(
            f"The released weights {self.column!r} sum to the original total"
            f"{' after top and bottom coding' if coded else ''}: {at_most(self.total, 12)}, within {self.step:g}.",
            "After drawing, all weights were multiplied by one factor and rounded to their step.",
            "the original weights are correct",
        )
        yield Refused(
            f"A person's weight {self.column!r} stays unknown to anyone who knows all other weights.",
            "The total is exact. Subtracting all other weights gives that person's weight.",
        )

    def check(self) -> bool:
        return self.total > 0 and self.step > 0

    def agrees(self, context: Context) -> bool:
        return all(fact.synthetic for fact in context if fact.methods)

    def row_check(self, schema: Any, context: Context) -> RowCheck:
        from sfumato.tables.row_checks import WeightCheck

        return WeightCheck(self, schema)


@dataclass(frozen=True)
class RowsDrawn(Fact):
    """The owner requested a number of rows, or rows that satisfy the rule ``where``; "" is none.

    More rows are drawn from the same statistics again, of fewer those that leave are chosen by chance; rows that do not
    fulfil the rule were drawn and left out.
    """

    resized = True

    records: int
    rows: int
    where: str = ""

    def claims(self, context: Context) -> Statements:
        """State which rows the data owner asked for, and what more rows than records disclose."""
        if self.where:
            yield Claim(
                f"Every released row satisfies the condition {self.where!r}, which the data owner chose.",
                "Rows that do not satisfy it were discarded before their other columns were drawn. All rows were "
                "checked.",
                NOTHING,
            )
        if self.rows > self.records:
            yield Refused(
                "More rows than original records disclose no more than equally many rows.",
                f"{self.rows} rows were drawn from the same statistics of "
                f"{counted(self.records, 'record', 'records')}. The more rows there are, the more precisely a reader "
                "can estimate these statistics.",
            )

    def check(self) -> bool:
        return min(self.records, self.rows) >= 1

    def agrees(self, context: Context) -> bool:
        return any(fact.synthetic for fact in context) and (not self.where or context.has("chain-synthesis"))

    def row_check(self, schema: Any, context: Context) -> RowCheck | None:
        from sfumato.tables.row_checks import ConditionCheck

        return ConditionCheck(self.where, schema) if self.where else None

    @property
    def rows_released(self) -> int:
        return self.rows

    @property
    def records_used(self) -> int:
        return self.records


@dataclass(frozen=True)
class FormulaTexts(Fact):
    """Texts of the released table begin like spreadsheet formulas.

    They are ``cells`` cells of these ``columns`` and ``names`` column names; ``quoted`` if each is preceded by an
    apostrophe in the table's file.
    """

    columns: tuple[str, ...]
    cells: int
    names: int
    quoted: bool

    def claims(self, context: Context) -> Statements:
        texts = f"{counted(self.cells, 'cell', 'cells')} and {counted(self.names, 'column name', 'column names')}"
        if self.quoted:
            yield Claim(
                f"In the file, {texts} that a spreadsheet would read as formulas have a leading apostrophe.",
                "These texts begin with =, +, -, @, tab or return and are not numbers. Their values are the texts "
                "without the apostrophe.",
                "the spreadsheet reads a leading apostrophe as the mark of a text",
            )
            return
        yield Refused(
            "The table is safe to open in a spreadsheet.",
            f"In the file, {texts} begin with =, +, -, @, tab or return, which a spreadsheet may run as formulas. Open "
            "the file as text.",
        )

    def summary(self, context: Context, file_format: str) -> tuple[int, str] | None:
        if self.quoted or file_format != "csv":
            return None
        begin = f"{self.cells} cells and {self.names} column names begin like a spreadsheet formula"
        return 1, f"{begin}; --spreadsheet-safe writes them as text."


def _columns(names: Sequence[str]) -> str:
    return counted(len(names), "column", "columns")


def except_derived(context: Context, claim: str) -> str:
    """Except from a claim the columns that a rule derives, and weights that were scaled."""
    ruled = context.has(ColumnRulesKept)
    scaled = context.has(WeightsScaled)
    parts = ["derived columns"] * ruled + ["scaled weights"] * scaled
    return f"Except for {' and '.join(parts)}, {claim}" if parts else f"{claim[0].upper()}{claim[1:]}"


def derived_basis(context: Context) -> str:
    """Explain what was excepted, for the basis of the claim."""
    ruled = context.has(ColumnRulesKept)
    scaled = context.has(WeightsScaled)
    return (" Derived columns are computed from others by a rule between columns." if ruled else "") + (
        " Weights were scaled after drawing." if scaled else ""
    )


def is_quoted(facts: Iterable[Fact]) -> bool:
    """Tell whether an apostrophe precedes the formulas in the file of the table."""
    return any(fact.quoted for fact in facts if isinstance(fact, FormulaTexts))


def _counts(mechanism: Any, k: int, usual: int | None = None) -> bool:
    """Whether a method wants no more than k persons behind a value, and ``usual`` ones behind a cut-off."""
    traits = mechanism.traits
    least = traits.floor if traits.min_frequency is None else traits.min_frequency
    return least is not None and k >= (least if usual is None else min(least, usual))
