"""Claims drawn from facts: each proved or assumed, and those that must not be made."""

from __future__ import annotations

import dataclasses

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import (
    BasketPersons,
    BasketsReleased,
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
    UnlabelledRows,
    Unmeasured,
    WeightsScaled,
)
from sfumato.privacy import baskets, grouped, joint, modified, perturbed, randomized, streamed
from sfumato.privacy.coherence import check_facts
from sfumato.privacy.statements import SECRET_RANDOMNESS, Claim, ClaimsOf, Refused, Statements, at_most, counted, quoted

__all__ = ["Claim", "Refused", "draw_claims"]

_ANONYMOUS = Refused(
    "The table is anonymous.",
    "that is a judgement about everything an attacker may know; this certificate states only what was done and what "
    "follows from it",
)
_UNKNOWN = "a fact is not known to this version, so nothing can be certified; use a newer one"


def draw_claims(facts: tuple[Fact, ...]) -> tuple[tuple[Claim, ...], tuple[Refused, ...]]:
    """Draw every claim that the facts bear, and refuse those that readers might make without cause.

    Raises
    ------
    PrivacyRefusal
        For a fact that is not known here, or facts that contradict the rules of the house.
    """
    check_facts(facts)
    told = [_ANONYMOUS, *(each for fact in facts for each in _follows(fact, facts)), *randomized.of_rows(facts)]
    claims = tuple(_as_far_as_secret(each, facts) for each in told if isinstance(each, Claim))
    return claims, tuple(each for each in told if isinstance(each, Refused))


def _follows(fact: Fact, facts: tuple[Fact, ...]) -> Statements:
    if type(fact) not in _CLAIMS:
        raise PrivacyRefusal(_UNKNOWN)
    return _CLAIMS[type(fact)](fact, facts)


def _as_far_as_secret(claim: Claim, facts: tuple[Fact, ...]) -> Claim:
    """Take what rests on randomness that nobody knows as assumed, unless it came from the operating system."""
    secret = any(isinstance(fact, Drawn) and fact.mode == "release" for fact in facts)
    return claim if secret or SECRET_RANDOMNESS not in claim.assumes else dataclasses.replace(claim, kind="assumed")


def _of_order(fact: Shuffled, facts: tuple[Fact, ...]) -> Statements:
    joint = any(isinstance(other, Joint) for other in facts)
    yield Claim(
        ("To readers who are not among the owners, the" if joint else "The")
        + " order of the rows says nothing of the order or the groups of the original records.",
        "proved",
        f"The order of all {counted(fact.rows, 'row', 'rows')} was drawn uniformly after they were made.",
        SECRET_RANDOMNESS,
    )


def _of_strata(fact: Stratified, _: tuple[Fact, ...]) -> Statements:
    what = "the class label" if fact.is_target else f"the value of {fact.column!r}"
    yield Refused(
        f"A reader cannot be sure of {what} of the people behind a row.",
        f"groups never cross {fact.column!r}, so for whoever finds a person's group {what} is certain (l = 1)",
    )


def _of_classes(fact: ClassPure, _: tuple[Fact, ...]) -> Statements:
    yield Claim(
        f"The class {fact.column!r} of every released row is that of all records of its group: no group mixes the "
        f"{fact.classes} classes."
        if fact.classes > 1
        else f"Every released row has the one class of {fact.column!r} that there is.",
        "proved",
        "Each class was condensed apart from the others [KCG12, fig. 5]; the finished partition was checked group "
        "by group.",
        "the classes in the table are right",
    )
    if fact.size:
        yield Claim(
            f"The group size, {fact.size}, is the approximate greatest common divisor of the sizes of the classes.",
            "proved",
            f"Classes were counted in units of {counted(fact.unit, 'record', 'records')}; the size is the largest "
            "number of units into which the units of every class divide [KCG12, fig. 5, theorem 1]. A group may be "
            "larger if records inside have a higher level.",
            "nothing but that the program ran as it is written",
        )
    yield Refused(
        f"A reader cannot be sure of the class {fact.column!r} of the people behind a row.",
        "no group mixes classes, so for whoever finds a person's group the class is certain (l = 1)",
    )


def _of_unlabelled(fact: UnlabelledRows, _: tuple[Fact, ...]) -> Statements:
    rows = counted(fact.rows, "such row was", "such rows were")
    yield Claim(
        f"No released row was made from an original row whose class {fact.column!r} is missing.",
        "proved",
        (rows if fact.rows else f"Such rows, of fewer than {fact.k} persons, were")
        + " left out before anything was computed.",
        "missing cells are marked as such",
    )


def _of_columns(fact: ColumnsDropped, _: tuple[Fact, ...]) -> Statements:
    parts = []
    if fact.identifiers:
        parts.append("identifying columns (" + quoted(fact.identifiers) + ")")
    if fact.empty:
        parts.append("columns without any value (" + quoted(fact.empty) + ")")
    if fact.levels:
        parts.append("privacy levels (" + quoted(fact.levels) + ")")
    if not parts:
        return
    yield Claim(
        f"The release does not hold the {' or the '.join(parts)}.",
        "proved",
        "They were dropped before anything was computed, privacy levels after the groups were made.",
        "the columns were given their roles correctly",
    )


def _of_counts(_: CountsKept, facts: tuple[Fact, ...]) -> Statements:
    counts = "each group keeps the exact counts of its categories and missing cells"
    if any(isinstance(other, RowsDrawn) for other in facts):
        counts = "rows are drawn with the counts of categories and missing cells of each group"
    if any(isinstance(other, RareValues) and not other.shown for other in facts):
        yield Refused(
            "Every category of a group is shared by several of its members.",
            f"{counts}, so a category that enough people of the table have may stand once inside a group",
        )
    elif any(isinstance(other, Joint) for other in facts):
        yield Refused(
            "Rare categories are hidden.",
            f"{counts}, and nobody counted over all owners how many people hold a category: one that a single person "
            "has appears once in the release; let the owners list only categories that many hold, or wider ones",
        )
    else:
        once = "may appear" if counts.startswith("rows") else "appears once"
        yield Refused(
            "Rare categories are hidden.",
            f"{counts}, so a category that one person has {once} in the release",
        )


def _of_rare(fact: RareValues, facts: tuple[Fact, ...]) -> Statements:
    streamed = any(isinstance(other, Maintained) for other in facts)
    where, before = ("stream", "rows left") if streamed else ("table", "anything was drawn")
    hidden = f"No category that fewer than {fact.k} persons of the {where} hold appears in the release."
    assumes = "the person column tells who each row is about" if fact.by_person else "one row is one person"
    if fact.shown:
        yield Refused(hidden, f"such categories are left as in the {where}, by the owner's decision")
        return
    became = "a wider one of their hierarchy" if fact.way == "lift" else "one named other"
    yield Claim(
        hidden,
        "proved",
        f"Persons were counted in {counted(fact.columns, 'column', 'columns')} of categories before {before}. A cell "
        f"with a rarer category took {became} that at least as many hold, a neighbour in order, or the category of "
        f"another record; so did missing cells that fewer than {fact.k} have.",
        assumes,
    )
    if fact.dropped:
        yield Claim(
            "The release does not hold the columns without a value that as many persons hold as the highest privacy "
            f"level asks for ({quoted(fact.dropped)}).",
            "proved",
            f"They were dropped before {before}.",
            assumes,
        )


def _of_tails(fact: TailsCoded, facts: tuple[Fact, ...]) -> Statements:
    hidden = (
        f"In each column, taken by itself, no released number or date lies beyond a limit that was computed from at "
        f"least {fact.k} persons."
    )
    if any(isinstance(other, ComponentNoise) for other in facts):
        yield Claim(
            "In each column, taken by itself, numbers and dates beyond a limit that was computed from at least "
            f"{fact.k} persons were replaced by that limit before noise was added, and again after it where no bounds "
            "are declared.",
            "proved",
            f"The ends of {counted(fact.columns, 'column', 'columns')} were top and bottom coded by their owners. A "
            f"limit lies at random between the values of {fact.k} persons who are outreached by {fact.k - 1} others, "
            "or between the middle values of a column that few persons fill; "
            f"in columns of mostly common values, a value that fewer than {fact.k} persons hold became a common "
            "neighbour.",
            "one row is one person",
        )
        return
    if fact.method == "keep":
        yield Refused(hidden, "the ends of columns are left as they are, by the owner's decision")
        return
    common = (
        f" In columns of mostly common values, a value that fewer than {fact.k} persons hold became a common neighbour."
        if not any(isinstance(other, Maintained) for other in facts)
        else ""
    )
    smooth = (
        " In columns with a long tail, values beyond a cut-off were drawn from an exponential tail that ranks "
        "further inside determine."
        if fact.method == "smooth"
        else ""
    )
    yield Claim(
        hidden,
        "proved",
        f"The ends of {counted(fact.columns, 'column', 'columns')} of numbers and dates were "
        f"top and bottom coded. A cut-off lies at random between the values of at least {fact.k} persons who are "
        f"outreached by at least {fact.k - 1} others, or between the middle values of a column that few persons fill; "
        f"each person counts once.{common}{smooth} Columns that a rule makes from others follow from coded ones.",
        "the person column tells who each row is about" if fact.by_person else "one row is one person",
    )


def _of_rules(fact: ColumnRulesKept, _: tuple[Fact, ...]) -> Statements:
    yield Claim(
        f"Every released row obeys {counted(len(fact.rules), 'rule', 'rules')} between columns: {quoted(fact.rules)}.",
        "proved",
        "Later columns were drawn as their distance from earlier ones, and columns that follow from others were made "
        "from these; all rows were checked.",
        "nothing; the released table shows it",
    )
    if fact.rare_pairs:
        yield Refused(
            "Every pair of a label and what it decides is shared by as many records as the privacy level asks for.",
            "a rule that the owner wrote down keeps pairs together, also those that fewer hold",
        )


def _of_months(fact: DatesCoarsened, _: tuple[Fact, ...]) -> Statements:
    yield Claim(
        f"The release gives the dates of {counted(len(fact.columns), 'column', 'columns')} to the month, never to the "
        f"day: {quoted(fact.columns)}.",
        "proved",
        "Every date was taken as the first day of its month before anything was computed, and is written so.",
        "nothing; the released table shows it",
    )


def _of_weights(fact: WeightsScaled, facts: tuple[Fact, ...]) -> Statements:
    coded = any(isinstance(other, TailsCoded) and other.method != "keep" for other in facts)
    yield Claim(
        f"The weights {fact.column!r} of the released rows add up to what those of the original records do"
        f"{' once their tails are coded' if coded else ''}, {at_most(fact.total, 12)}, up to {fact.step:g}.",
        "proved",
        "After they were drawn, all were multiplied by one number and rounded to their step.",
        "nothing but that the original's weights are right; the released table shows the sum",
    )
    yield Refused(
        f"A person's weight {fact.column!r} stays unknown to whoever knows the weights of everybody else.",
        "the total is exact, and what is missing from it is that person's",
    )


def _of_formulas(fact: FormulaTexts, _: tuple[Fact, ...]) -> Statements:
    where = f"{fact.cells} cells and {fact.names} column names"
    if fact.quoted:
        yield Claim(
            f"The {where} that a spreadsheet would take for formulas have an apostrophe before them in the file.",
            "proved",
            "Texts that begin with =, +, -, @, tab or return and are no numbers were written so; without that "
            "apostrophe they are the values.",
            "the spreadsheet takes what begins with an apostrophe for text",
        )
        return
    yield Refused(
        "The table can be opened in a spreadsheet without harm.",
        f"{where} begin with =, +, -, @, tab or return, which a spreadsheet takes for formulas and may run; open "
        "it as text",
    )


def _of_policy(fact: DespitePolicy, _: tuple[Fact, ...]) -> Statements:
    found = "it does not" if fact.outcome == "does-not-meet" else "it cannot be told whether it does"
    yield Refused(
        f"The release meets the policy {fact.policy!r}.",
        f"the owner measured it, and {found}; it leaves all the same, by the owner's decision",
    )


def _of_randomness(fact: Drawn, _: tuple[Fact, ...]) -> Statements:
    if fact.mode == "release":
        return
    yield Refused(
        "This table may be released.",
        "it is a rehearsal: it was made with a seed, and whoever knows the seed can repeat every random draw",
    )


def _of_no_report(_: Unmeasured, __: tuple[Fact, ...]) -> Statements:
    yield Refused(
        "Attacks were tried on this table before it left.",
        "the owner asked for no report, so nothing was measured",
    )


def _of_groups(fact: Grouped, facts: tuple[Fact, ...]) -> Statements:
    noised = perturbed.is_noised_by_group(facts)
    return perturbed.of_noised_groups(fact) if noised else grouped.of_groups(fact, facts)


def _of_cells(fact: Celled, facts: tuple[Fact, ...]) -> Statements:
    chain = any(isinstance(other, Chained) for other in facts)
    return grouped.of_parts(fact) if chain else grouped.of_cells(fact)


def _of_ledger(_: Opened, facts: tuple[Fact, ...]) -> Statements:
    """A line of the ledger: the joint run speaks of it, and without one nothing does."""
    if not any(isinstance(other, Joint) for other in facts):
        raise PrivacyRefusal(_UNKNOWN)
    return iter(())


_CLAIMS: ClaimsOf = {
    **baskets.CLAIMS,
    **grouped.CLAIMS,
    **joint.CLAIMS,
    **modified.CLAIMS,
    **perturbed.CLAIMS,
    **randomized.CLAIMS,
    **streamed.CLAIMS,
    Celled: _of_cells,
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
    # the sentences about baskets and about maintained groups speak of these; who was held out is a matter of measuring
    **dict.fromkeys((BasketPersons, BasketsReleased, EpochPublished, HeldOut, PersonRowsBounded), lambda *_: iter(())),
}
