"""Claims drawn from facts: each proved or assumed, and those that must not be made."""

from __future__ import annotations

import dataclasses

from sfumato.core.errors import PrivacyRefusal
from sfumato.core.facts import (
    Aggregated,
    Alike,
    BasketPersons,
    BasketsRandomized,
    BasketsReleased,
    Blocked,
    BoundsKept,
    Celled,
    Chained,
    ClassPure,
    ColumnRulesKept,
    ColumnsDropped,
    ComponentNoise,
    CountsKept,
    DatesCoarsened,
    DespitePolicy,
    DomainsObserved,
    Downgraded,
    Drawn,
    Enhanced,
    EpochPublished,
    Fact,
    FormulaTexts,
    Grouped,
    HeldOut,
    Joint,
    Maintained,
    Noised,
    Opened,
    PersonRowsBounded,
    PersonsApart,
    PersonsBounded,
    PersonsLinked,
    Randomized,
    RareValues,
    RowsDrawn,
    RowsKept,
    RulesBlocked,
    RulesHidden,
    Sampled,
    Scored,
    Shuffled,
    ShuffledWithin,
    Stratified,
    Swapped,
    Synthesized,
    TargetMoved,
    Transformed,
    Unchanged,
    Unmeasured,
    Untouched,
    WeightsScaled,
)
from sfumato.privacy.baskets import of_blocked_rules, of_hidden_rules, of_randomized_baskets
from sfumato.privacy.chained import of_bounded_persons, of_chain, of_parts
from sfumato.privacy.coherence import check_facts
from sfumato.privacy.grouped import (
    of_cells,
    of_drawn_rows,
    of_groups,
    of_kept_rows,
    of_persons,
    of_scores,
    of_stream,
    of_wanted_rows,
)
from sfumato.privacy.joint import of_joint
from sfumato.privacy.linked import of_linked_persons
from sfumato.privacy.modified import (
    of_aggregated,
    of_alike,
    of_blocked,
    of_downgraded,
    of_sampled,
    of_swapped,
    of_unchanged,
)
from sfumato.privacy.perturbed import (
    is_noised_by_group,
    of_bounds,
    of_component_noise,
    of_enhance,
    of_moved_target,
    of_noise,
    of_noised_groups,
    of_runs,
    of_transformation,
    of_untouched,
)
from sfumato.privacy.randomized import of_observed, of_randomized, of_rows
from sfumato.privacy.statements import SECRET_RANDOMNESS, Claim, Refused, Statements, at_most, counted, quoted

__all__ = ["Claim", "Refused", "draw_claims"]

_ANONYMOUS = Refused(
    "The table is anonymous.",
    "that is a judgement about everything an attacker may know; this certificate states only what was done and what "
    "follows from it",
)


def draw_claims(facts: tuple[Fact, ...]) -> tuple[tuple[Claim, ...], tuple[Refused, ...]]:
    """Draw every claim that the facts bear, and refuse those that readers might make without cause.

    Raises
    ------
    PrivacyRefusal
        For a fact that is not known here, or facts that contradict the rules of the house.
    """
    check_facts(facts)
    told = [_ANONYMOUS, *(each for fact in facts for each in _follows(fact, facts)), *of_rows(facts)]
    claims = tuple(_as_far_as_secret(each, facts) for each in told if isinstance(each, Claim))
    return claims, tuple(each for each in told if isinstance(each, Refused))


def _follows(fact: Fact, facts: tuple[Fact, ...]) -> Statements:
    match fact:
        case Grouped() if is_noised_by_group(facts):
            yield from of_noised_groups(fact)
        case ComponentNoise():
            yield from of_component_noise(fact)
        case Grouped():
            yield from of_groups(fact, facts)
        case Chained():
            yield from of_chain(fact, facts)
        case PersonsBounded():
            yield from of_bounded_persons(fact, facts)
        case PersonsApart():
            yield from of_persons(fact, facts)
        case Celled() if any(isinstance(other, Chained) for other in facts):
            yield of_parts(fact)
        case Celled():
            yield of_cells(fact)
        case PersonsLinked():
            yield from of_linked_persons(fact, facts)
        case Synthesized():
            yield from of_drawn_rows(fact, facts)
        case Scored():
            yield of_scores(fact, facts)
        case RowsDrawn():
            yield from of_wanted_rows(fact)
        case Stratified():
            yield from _of_strata(fact)
        case ClassPure():
            yield from _of_classes(fact)
        case ColumnsDropped():
            yield from _of_columns(fact)
        case Shuffled():
            yield _of_order(fact, facts)
        case Drawn():
            yield from _of_randomness(fact)
        case CountsKept():
            yield _of_counts(facts)
        case RareValues():
            yield from _of_rare(fact, facts)
        case ShuffledWithin():
            yield from of_runs(fact)
        case Noised():
            yield from of_noise(fact)
        case BoundsKept():
            yield of_bounds(fact)
        case Enhanced():
            yield from of_enhance(fact, facts)
        case Untouched():
            yield of_untouched(fact)
        case Transformed():
            yield from of_transformation(fact, facts)
        case TargetMoved():
            yield of_moved_target(fact)
        case Randomized():
            yield from of_randomized(fact, facts)
        case DomainsObserved():
            yield of_observed(fact)
        case Maintained():
            yield from of_stream(fact, facts)
        case RowsKept():
            yield from of_kept_rows(fact)
        case Joint():
            yield from of_joint(fact, facts)
        case Swapped():
            yield from of_swapped(fact, facts)
        case Sampled():
            yield from of_sampled(fact)
        case Aggregated():
            yield from of_aggregated(fact, facts)
        case Alike():
            yield from of_alike(fact)
        case Unchanged():
            yield from of_unchanged(fact, facts)
        case Blocked():
            yield from of_blocked(fact)
        case Downgraded():
            yield from of_downgraded(fact)
        case ColumnRulesKept():
            yield from _of_rules(fact)
        case DatesCoarsened():
            yield _of_months(fact)
        case WeightsScaled():
            yield from _of_weights(fact)
        case FormulaTexts():
            yield from _of_formulas(fact)
        case Unmeasured():
            yield Refused(
                "Attacks were tried on this table before it left.",
                "the owner asked for no report, so nothing was measured",
            )
        case DespitePolicy():
            yield _of_policy(fact)
        case BasketsRandomized():
            yield from of_randomized_baskets(fact, facts)
        case RulesHidden():
            yield from of_hidden_rules(fact, facts)
        case RulesBlocked():
            yield from of_blocked_rules(fact, facts)
        case BasketPersons() | BasketsReleased():
            pass  # counts that the sentences about baskets speak of
        case EpochPublished() | HeldOut() | PersonRowsBounded():
            pass  # the maintained groups speak of an epoch; who was held out is a matter of measuring
        case Opened() if any(isinstance(other, Joint) for other in facts):
            pass  # a line of the ledger: the joint run speaks of it
        case _:
            raise PrivacyRefusal("a fact is not known to this version, so nothing can be certified; use a newer one")


def _as_far_as_secret(claim: Claim, facts: tuple[Fact, ...]) -> Claim:
    """Take what rests on randomness that nobody knows as assumed, unless it came from the operating system."""
    secret = any(isinstance(fact, Drawn) and fact.mode == "release" for fact in facts)
    return claim if secret or SECRET_RANDOMNESS not in claim.assumes else dataclasses.replace(claim, kind="assumed")


def _of_order(fact: Shuffled, facts: tuple[Fact, ...]) -> Claim:
    joint = any(isinstance(other, Joint) for other in facts)
    return Claim(
        ("To readers who are not among the owners, the" if joint else "The")
        + " order of the rows says nothing of the order or the groups of the original records.",
        "proved",
        f"The order of all {counted(fact.rows, 'row', 'rows')} was drawn uniformly after they were made.",
        SECRET_RANDOMNESS,
    )


def _of_strata(fact: Stratified) -> Statements:
    what = "the class label" if fact.is_target else f"the value of {fact.column!r}"
    yield Refused(
        f"A reader cannot be sure of {what} of the people behind a row.",
        f"groups never cross {fact.column!r}, so for whoever finds a person's group {what} is certain (l = 1)",
    )


def _of_classes(fact: ClassPure) -> Statements:
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
    yield Refused(
        f"A reader cannot be sure of the class {fact.column!r} of the people behind a row.",
        "no group mixes classes, so for whoever finds a person's group the class is certain (l = 1)",
    )


def _of_columns(fact: ColumnsDropped) -> Statements:
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


def _of_counts(facts: tuple[Fact, ...]) -> Refused:
    counts = "each group keeps the exact counts of its categories and missing cells"
    if any(isinstance(other, RowsDrawn) for other in facts):
        counts = "rows are drawn with the counts of categories and missing cells of each group"
    if any(isinstance(other, RareValues) and not other.shown for other in facts):
        return Refused(
            "Every category of a group is shared by several of its members.",
            f"{counts}, so a category that enough people of the table have may stand once inside a group",
        )
    if any(isinstance(other, Joint) for other in facts):
        return Refused(
            "Rare categories are hidden.",
            f"{counts}, and nobody counted over all owners how many people hold a category: one that a single person "
            "has appears once in the release; let the owners list only categories that many hold, or wider ones",
        )
    once = "may appear" if counts.startswith("rows") else "appears once"
    return Refused(
        "Rare categories are hidden.",
        f"{counts}, so a category that one person has {once} in the release",
    )


def _of_rare(fact: RareValues, facts: tuple[Fact, ...]) -> Statements:
    streamed = any(isinstance(other, Maintained) for other in facts)
    where, before = ("stream", "rows left") if streamed else ("table", "anything was drawn")
    hidden = f"No category that fewer than {fact.k} persons of the {where} hold appears in the release."
    if fact.shown:
        yield Refused(
            hidden,
            f"{counted(fact.shown, 'such category is', 'such categories are')} left as in the {where}, by the owner's "
            "decision",
        )
        return
    became = "wider ones of their hierarchy or one named other" if fact.way == "lift" else "one named other"
    yield Claim(
        hidden,
        "proved",
        f"Persons were counted in {counted(fact.columns, 'column', 'columns')} of categories before {before}: "
        f"{counted(fact.categories, 'category', 'categories')} in {counted(fact.cells, 'cell', 'cells')} became "
        f"{became}, or a neighbour in order, that at least as many hold."
        + (f" {counted(fact.filled, 'cell', 'cells')} that fewer lack took another record's." if fact.filled else ""),
        "the person column tells who each row is about" if fact.by_person else "one row is one person",
    )
    if fact.dropped:
        yield Claim(
            f"The release does not hold the columns with less than two values that {fact.k} persons hold "
            f"({quoted(fact.dropped)}).",
            "proved",
            f"They were dropped before {before}.",
            "the person column tells who each row is about" if fact.by_person else "one row is one person",
        )


def _of_rules(fact: ColumnRulesKept) -> Statements:
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
            f"{counted(fact.rare_pairs, 'pair is', 'pairs are')} held by fewer, and a rule that the owner wrote down "
            "keeps them together",
        )


def _of_months(fact: DatesCoarsened) -> Claim:
    return Claim(
        f"The release gives the dates of {counted(len(fact.columns), 'column', 'columns')} to the month, never to the "
        f"day: {quoted(fact.columns)}.",
        "proved",
        "Every date was taken as the first day of its month before anything was computed, and is written so.",
        "nothing; the released table shows it",
    )


def _of_weights(fact: WeightsScaled) -> Statements:
    yield Claim(
        f"The weights {fact.column!r} of the released rows add up to what those of the original records do, "
        f"{at_most(fact.total, 12)}, up to {fact.step:g}.",
        "proved",
        "After they were drawn, all were multiplied by one number and rounded to their step.",
        "nothing but that the original's weights are right; the released table shows the sum",
    )
    yield Refused(
        f"A person's weight {fact.column!r} stays unknown to whoever knows the weights of everybody else.",
        "the total is exact, and what is missing from it is that person's",
    )


def _of_formulas(fact: FormulaTexts) -> Statements:
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


def _of_policy(fact: DespitePolicy) -> Refused:
    found = "it does not" if fact.outcome == "does-not-meet" else "it cannot be told whether it does"
    return Refused(
        f"The release meets the policy {fact.policy!r}.",
        f"the owner measured it, and {found}; it leaves all the same, by the owner's decision",
    )


def _of_randomness(fact: Drawn) -> Statements:
    if fact.mode == "release":
        return
    yield Refused(
        "This table may be released.",
        "it is a rehearsal: it was made with a seed, and whoever knows the seed can repeat every random draw",
    )
