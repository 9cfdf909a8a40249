"""Draw claims from facts, each proved or assumed, and refuse those that the facts do not support."""

from __future__ import annotations

import dataclasses

from sfumato.certificate import grouped, joint, modified, perturbed, private, randomized, streamed, transactions
from sfumato.certificate.coherence import check_facts
from sfumato.certificate.statements import (
    NOTHING,
    ONE_ROW,
    RAN_AS_WRITTEN,
    SECRET_RANDOMNESS,
    Claim,
    ClaimsOf,
    Refused,
    Statements,
    at_most,
    counted,
    joined,
    quoted,
    whom_rows_describe,
)
from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import (
    Celled,
    Chained,
    ClassPure,
    ColumnRulesKept,
    ColumnsDropped,
    ComponentNoise,
    CountsKept,
    DatesCoarsened,
    DespitePolicy,
    Drawn,
    EpochPublished,
    Fact,
    FormulaTexts,
    Grouped,
    HeldOut,
    Joint,
    Maintained,
    Opened,
    PersonRowsBounded,
    RareValues,
    RowsDrawn,
    Shuffled,
    Stratified,
    TailsCoded,
    TransactionPersons,
    TransactionsReleased,
    UnlabelledRows,
    Unmeasured,
    WeightsScaled,
)

__all__ = ["Claim", "Refused", "draw_claims"]

_ANONYMOUS = Refused(
    "The table is anonymous.",
    "Anonymity depends on everything that an attacker may know. This certificate states only what was done and what "
    "follows from it.",
)
_UNKNOWN = "a fact is not known to this version of sfumato, so nothing can be certified; use a newer version"


def draw_claims(facts: tuple[Fact, ...]) -> tuple[tuple[Claim, ...], tuple[Refused, ...]]:
    """Draw every claim that the facts support, and refuse those that a reader might make without cause.

    Raises
    ------
    PrivacyRefusal
        If a fact is not known, or the facts contradict each other.
    """
    check_facts(facts)
    statements = [_ANONYMOUS, *(each for fact in facts for each in _follows(fact, facts)), *randomized.of_rows(facts)]
    claims = tuple(_with_kind(each, facts) for each in statements if isinstance(each, Claim))
    return claims, tuple(each for each in statements if isinstance(each, Refused))


def _follows(fact: Fact, facts: tuple[Fact, ...]) -> Statements:
    if type(fact) not in _CLAIMS:
        raise PrivacyRefusal(_UNKNOWN)
    return _CLAIMS[type(fact)](fact, facts)


def _with_kind(claim: Claim, facts: tuple[Fact, ...]) -> Claim:
    """Downgrade a claim that rests on secret randomness to assumed, unless the operating system supplied it."""
    secret = any(isinstance(fact, Drawn) and fact.mode == "release" for fact in facts)
    return claim if secret or SECRET_RANDOMNESS not in claim.assumes else dataclasses.replace(claim, kind="assumed")


def _of_order(fact: Shuffled, facts: tuple[Fact, ...]) -> Statements:
    readers = (
        "To readers other than the data owners, the" if any(isinstance(other, Joint) for other in facts) else "The"
    )
    yield Claim(
        f"{readers} order of the rows reveals nothing about the order or the groups of the original records.",
        "proved",
        f"The order of {counted(fact.rows, 'row', 'rows')} was drawn uniformly at random after the rows were computed.",
        SECRET_RANDOMNESS,
    )


def _of_strata(fact: Stratified, _: tuple[Fact, ...]) -> Statements:
    what = "the class label" if fact.is_target else f"the value of {fact.column!r}"
    yield Refused(
        f"A reader cannot be certain of {what} of the people behind a row.",
        f"Groups never mix values of {fact.column!r}. Anyone who finds a person's group knows {what} with certainty "
        "(l = 1).",
    )


def _of_classes(fact: ClassPure, _: tuple[Fact, ...]) -> Statements:
    yield Claim(
        f"Every released row has the class {fact.column!r} of all records in its group; no group mixes the "
        f"{fact.classes} classes."
        if fact.classes > 1
        else f"Every released row has the only class {fact.column!r} in the table.",
        "proved",
        "Each class was condensed separately [KCG12, fig. 5]. The finished groups were checked one by one.",
        "the classes in the table are correct",
    )
    if fact.size:
        yield Claim(
            f"The group size, {fact.size}, is the approximate greatest common divisor of the class sizes.",
            "proved",
            f"Class sizes were counted in units of {counted(fact.unit, 'record', 'records')}. The group size is the "
            "largest number of units that divides the units of every class [KCG12, fig. 5, theorem 1]. A group may be "
            "larger if a record in it has a higher privacy level.",
            RAN_AS_WRITTEN,
        )
    yield Refused(
        f"A reader cannot be certain of the class {fact.column!r} of the people behind a row.",
        "No group mixes classes. Anyone who finds a person's group knows the class with certainty (l = 1).",
    )


def _of_unlabelled(fact: UnlabelledRows, _: tuple[Fact, ...]) -> Statements:
    records = counted(fact.rows, "such record was", "such records were")
    yield Claim(
        f"No released row was made from a record whose class {fact.column!r} is missing.",
        "proved",
        (records if fact.rows else f"Such records, of fewer than {fact.k} persons, were")
        + " removed before any other step.",
        "missing cells are marked as missing",
    )


def _of_columns(fact: ColumnsDropped, _: tuple[Fact, ...]) -> Statements:
    kinds = (
        (fact.identifiers, "direct identifier", "direct identifiers"),
        (fact.empty, "empty column", "empty columns"),
        (fact.levels, "column of privacy levels", "columns of privacy levels"),
    )
    dropped = [(names, counted(len(names), one, many)) for names, one, many in kinds if names]
    if not dropped:
        return
    yield Claim(
        f"The release omits {joined([count for _, count in dropped])}.",
        "proved",
        " ".join(f"{count[0].upper()}{count[1:]}: {quoted(names)}." for names, count in dropped)
        + f" They were dropped before any other step{', privacy levels after grouping' if fact.levels else ''}.",
        "the columns have the correct roles",
    )


def _of_counts(_: CountsKept, facts: tuple[Fact, ...]) -> Statements:
    counts, appears = "Each group keeps the exact counts of its categories and missing cells", "appears once"
    if any(isinstance(other, RowsDrawn) for other in facts):
        counts = "Rows are drawn with the counts of categories and missing cells of each group"
        appears = "may appear"
    if any(isinstance(other, RareValues) and not other.shown for other in facts):
        yield Refused(
            "Every category in a group is shared by several of its members.",
            f"{counts}. A category that is frequent enough in the table may occur once in a group.",
        )
    elif any(isinstance(other, Joint) for other in facts):
        yield Refused(
            "Rare categories are hidden.",
            f"{counts}, and frequencies over all data owners were not counted. A category of one person appears once; "
            "let the owners declare only frequent or wider categories.",
        )
    else:
        yield Refused("Rare categories are hidden.", f"{counts}. A category of one person {appears} in the release.")


def _of_rare(fact: RareValues, facts: tuple[Fact, ...]) -> Statements:
    streamed = any(isinstance(other, Maintained) for other in facts)
    source, step = ("stream", "release") if streamed else ("table", "any random draw")
    hidden = f"The release contains no category that fewer than {fact.k} persons in the {source} have."
    assumes = whom_rows_describe(by_person=fact.by_person)
    if fact.shown:
        yield Refused(hidden, f"Rare categories were left as in the {source}, as the data owner decided.")
        return
    became = "a wider category of the hierarchy" if fact.way == "lift" else "a category named other"
    yield Claim(
        hidden,
        "proved",
        f"Categories of {counted(fact.columns, 'column', 'columns')} were counted in persons before {step}. A rare "
        f"category became {became} with at least this frequency, an adjacent ordinal category, or the category of "
        f"another record. Missing cells of fewer than {fact.k} persons were replaced in the same way.",
        assumes,
    )
    if fact.dropped:
        yield Claim(
            f"The release omits {counted(len(fact.dropped), 'column', 'columns')} in which no value is shared by as "
            "many persons as the highest privacy level requires.",
            "proved",
            f"Columns: {quoted(fact.dropped)}. They were dropped before {step}.",
            assumes,
        )


def _of_tails(fact: TailsCoded, facts: tuple[Fact, ...]) -> Statements:
    columns = counted(fact.columns, "column", "columns")
    limit = f"a cut-off computed from at least {fact.k} persons"
    rank = (
        f"Each cut-off lies at random between the values of at least {fact.k} persons, beyond whom at least "
        f"{fact.k - 1} others lie. A column that few persons fill takes a cut-off between its middle values. Each "
        "person counts once."
    )
    common = (
        f" In columns of mostly common values, a value that fewer than {fact.k} persons have became a neighbouring "
        "common value."
    )
    if any(isinstance(other, ComponentNoise) for other in facts):
        together = any(isinstance(other, Joint) and other.partition == "horizontal" for other in facts)
        yield Claim(
            f"In each column separately, numbers and dates beyond {limit} were replaced by it before noise and, "
            "without declared bounds, again after noise.",
            "proved",
            f"The data owners applied top and bottom coding to {columns}. {rank}{'' if together else common}",
            ONE_ROW,
        )
        return
    hidden = f"In each column separately, no released number or date lies beyond {limit}."
    if fact.method == "keep":
        yield Refused(hidden, "The tails of columns were left unchanged, as the data owner decided.")
        return
    smooth = (
        " In columns with a long tail, values beyond a cut-off were drawn from an exponential tail fitted to ranks "
        "further inside."
    )
    yield Claim(
        hidden,
        "proved",
        f"Top and bottom coding was applied to {columns} of numbers and dates. {rank}"
        f"{'' if any(isinstance(other, Maintained) for other in facts) else common}"
        f"{smooth if fact.method == 'smooth' else ''} Columns derived by a rule follow from coded ones.",
        whom_rows_describe(by_person=fact.by_person),
    )


def _of_rules(fact: ColumnRulesKept, _: tuple[Fact, ...]) -> Statements:
    yield Claim(
        f"Every released row satisfies {counted(len(fact.rules), 'rule', 'rules')} between columns.",
        "proved",
        f"Rules: {quoted(fact.rules)}. Later columns were drawn as differences from earlier ones, and derived columns "
        "were computed from the others. All rows were checked.",
        NOTHING,
    )
    if fact.rare_pairs:
        yield Refused(
            "Every pair of values tied by a rule is shared by as many records as the privacy level requires.",
            "A rule that the data owner declared keeps such pairs together, including rare ones.",
        )


def _of_months(fact: DatesCoarsened, _: tuple[Fact, ...]) -> Statements:
    yield Claim(
        f"The release gives the dates of {counted(len(fact.columns), 'column', 'columns')} to the month, never to the "
        "day.",
        "proved",
        f"Columns: {quoted(fact.columns)}. Every date became the first day of its month before any other step.",
        NOTHING,
    )


def _of_weights(fact: WeightsScaled, facts: tuple[Fact, ...]) -> Statements:
    coded = any(isinstance(other, TailsCoded) and other.method != "keep" for other in facts)
    yield Claim(
        f"The released weights {fact.column!r} sum to the original total"
        f"{' after top and bottom coding' if coded else ''}: {at_most(fact.total, 12)}, within {fact.step:g}.",
        "proved",
        "After drawing, all weights were multiplied by one factor and rounded to their step.",
        "the original weights are correct",
    )
    yield Refused(
        f"A person's weight {fact.column!r} stays unknown to anyone who knows all other weights.",
        "The total is exact. Subtracting all other weights gives that person's weight.",
    )


def _of_formulas(fact: FormulaTexts, _: tuple[Fact, ...]) -> Statements:
    texts = f"{counted(fact.cells, 'cell', 'cells')} and {counted(fact.names, 'column name', 'column names')}"
    if fact.quoted:
        yield Claim(
            f"In the file, {texts} that a spreadsheet would read as formulas have a leading apostrophe.",
            "proved",
            "These texts begin with =, +, -, @, tab or return and are not numbers. Their values are the texts without "
            "the apostrophe.",
            "the spreadsheet reads a leading apostrophe as the mark of a text",
        )
        return
    yield Refused(
        "The table is safe to open in a spreadsheet.",
        f"In the file, {texts} begin with =, +, -, @, tab or return, which a spreadsheet may run as formulas. Open the "
        "file as text.",
    )


def _of_policy(fact: DespitePolicy, _: tuple[Fact, ...]) -> Statements:
    found = "found that it does not" if fact.outcome == "does-not-meet" else "found the result inconclusive"
    yield Refused(
        f"The release meets the policy {fact.policy!r}.",
        f"The data owner measured this and {found}. The table is released by the owner's decision.",
    )


def _of_randomness(fact: Drawn, _: tuple[Fact, ...]) -> Statements:
    if fact.mode == "release":
        return
    yield Refused(
        "This table may be released.",
        "It is a dry run made with a seed. Anyone who knows the seed can repeat every random draw.",
    )


def _of_no_report(_: Unmeasured, __: tuple[Fact, ...]) -> Statements:
    yield Refused(
        "Attacks were run against this table before its release.",
        "The data owner asked for no report, so no disclosure risk was measured.",
    )


def _of_groups(fact: Grouped, facts: tuple[Fact, ...]) -> Statements:
    noised = perturbed.is_noised_by_group(facts)
    return perturbed.of_noised_groups(fact) if noised else grouped.of_groups(fact, facts)


def _of_partitions(fact: Celled, facts: tuple[Fact, ...]) -> Statements:
    return grouped.of_partitions(fact, chain=any(isinstance(other, Chained) for other in facts))


def _of_ledger(_: Opened, facts: tuple[Fact, ...]) -> Statements:
    """Draw nothing from a line of the ledger: the claims of the joint run cover it."""
    if not any(isinstance(other, Joint) for other in facts):
        raise PrivacyRefusal(_UNKNOWN)
    return iter(())


_CLAIMS: ClaimsOf = {
    **transactions.CLAIMS,
    **grouped.CLAIMS,
    **joint.CLAIMS,
    **modified.CLAIMS,
    **perturbed.CLAIMS,
    **private.CLAIMS,
    **randomized.CLAIMS,
    **streamed.CLAIMS,
    Celled: _of_partitions,
    ClassPure: _of_classes,
    ColumnRulesKept: _of_rules,
    ColumnsDropped: _of_columns,
    CountsKept: _of_counts,
    DatesCoarsened: _of_months,
    DespitePolicy: _of_policy,
    Drawn: _of_randomness,
    FormulaTexts: _of_formulas,
    Grouped: _of_groups,
    Opened: _of_ledger,
    RareValues: _of_rare,
    Shuffled: _of_order,
    Stratified: _of_strata,
    TailsCoded: _of_tails,
    UnlabelledRows: _of_unlabelled,
    Unmeasured: _of_no_report,
    WeightsScaled: _of_weights,
    # claims about transactions and maintained groups cover these; a hold-out set matters for measurement alone
    **dict.fromkeys(
        (TransactionPersons, TransactionsReleased, EpochPublished, HeldOut, PersonRowsBounded), lambda *_: iter(())
    ),
}
