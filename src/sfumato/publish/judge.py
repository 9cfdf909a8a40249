"""The judge: what a policy says to a report and to what was done.

A gain is what an attack gets on people of the table less what it gets on people held out; membership attacks are judged
by their scores. Every gain and score has an interval, and all intervals of a verdict hold together with 95 %
(Bonferroni: each with a confidence of 1 - 0.05 / m, where m intervals are looked at). A share is held by Clopper and
Pearson's exact limits, a difference of two shares as `sfumato.assess.intervals.difference_interval` has it. Of the
largest of several attacks the interval goes from their largest lower end to their largest upper end.

Links to one's own row have no people held out to be compared with, for nobody held out has a row: their gain is what
they get beyond guessing one row of all, which is reckoned and exact.

Singling out is one attack with two kinds of descriptions, by one column and by several. Both kinds are taken together,
for of one kind there may be so few that nothing could be told; a kind that alone is above the limit still exceeds it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sfumato.assess.findings import Tries
from sfumato.assess.intervals import difference_interval, exact_interval
from sfumato.assess.report import Report
from sfumato.assess.verdict import Exceeded, Missing, Outcome, Verdict
from sfumato.facts import CountsKept, DomainsObserved, Fact, Grouped, Maintained, Untouched
from sfumato.publish.policy import BUILT_IN, Policy

__all__ = ["CONFIDENCE", "LEAST_HELD_OUT", "Exceeded", "Missing", "Outcome", "Verdict", "judge"]

CONFIDENCE = 0.95
"""Of all intervals of a verdict together."""

LEAST_HELD_OUT = 1_000
"""People held out with whom the membership attack at 1 % false alarms is judged."""

_OWN_ROW = "own-row-linkage-"
_SINGLING = "singling-out-"
_SCORES = ("membership-auc", "membership-tpr")
_TPR = "membership-tpr"
_HOLD_OUT, _HOLD_OUT_MORE = 0.3, 0.5
_STEPS = (4, 10)  # by how much larger groups are tried
_GROUPS = 25  # a group size to begin with where the method has none
_FLAGS = ("--correlated", "--pass-categories", "--pass-missing", "--allow-observed", "--allow-level-1")
_OF_METHODS = (
    *("--grouping", "--effort", "--noise", "--law", "--size", "--enhance", "--enhance-size", "--groups", "--b"),
    *("--response-weight", "--guarantee", "--rho1", "--rho2", "--epsilon", "--spec", "--key", "--new-key", "--public"),
)

_FAMILIES: dict[str, Callable[[str], bool]] = {
    "linkage-gain": lambda name: name.startswith(("linkage-", _OWN_ROW, "linkability")) and "/" not in name,
    "attribute-gain": lambda name: name.startswith("attribute-inference-"),
    "singling-gain": lambda name: name.startswith(_SINGLING) or name == "rare-combination-found",
    "membership-auc": lambda name: name.startswith("membership-") and not name.startswith("membership-at-"),
    "membership-tpr": lambda name: name.startswith("membership-at-"),
}


@dataclass(frozen=True)
class _Stake:
    """One gain or score that is judged.

    Parameters
    ----------
    limit, finding : str
        By name.
    inside : Tries
    outside : Tries, float or None
        The control, a number that is exact, or None of a score.
    alone : bool
        Whether it may only exceed the limit, because it is judged together with others besides.
    """

    limit: str
    finding: str
    inside: Tries
    outside: Tries | float | None
    alone: bool = False

    @property
    def value(self) -> float:
        against = self.outside if isinstance(self.outside, float) else 0.0
        if isinstance(self.outside, Tries):
            against = _share(self.outside)
        return _share(self.inside) - against

    def interval(self, confidence: float) -> tuple[float, float]:
        if isinstance(self.outside, Tries):
            return difference_interval(self.inside, self.outside, confidence)
        low, high = exact_interval(min(self.inside.hits, self.inside.of), self.inside.of, confidence)
        against = 0.0 if self.outside is None else self.outside
        return low - against, high - against


def judge(report: Report, policy: Policy, facts: Sequence[Fact] = (), *, command: Sequence[str] = ()) -> Verdict:
    """Verdict of a policy on a release.

    Parameters
    ----------
    report : Report
        What was measured.
    policy : Policy
    facts : sequence of Fact
        What was done; empty where it is not known, as of a table of another tool.
    command : sequence of str
        Words of the command that made or measured the table, for what to try next.

    Returns
    -------
    Verdict
        *does not meet* where a limit is exceeded or a requirement not met, else *cannot tell* where something lacks,
        else *meets*.
    """
    stakes, missing = _stakes(report, policy)
    exceeded, unsure = _limits(stakes, policy)
    unmet, unknown = _requirements(report, policy, facts)
    missing = [*missing, *unsure, *unknown]
    found = (*exceeded, *unmet)
    outcome = Outcome.MEETS
    if found:
        outcome = Outcome.DOES_NOT_MEET
    elif any(each.needed for each in missing):
        outcome = Outcome.CANNOT_TELL
    return Verdict(
        policy.name,
        outcome,
        found,
        tuple(missing),
        () if outcome is Outcome.MEETS else _to_try(report, policy, facts, found, bool(unsure), command),
        edited=policy.title != policy.name,
    )


def _stakes(report: Report, policy: Policy) -> tuple[list[_Stake], list[Missing]]:
    """List what is judged under each limit, and what lacks."""
    stakes: list[_Stake] = []
    missing: list[Missing] = []
    for limit in policy.limits:
        if limit == _TPR and report.rows_held_out < LEAST_HELD_OUT:
            told = f"left out, for it takes {LEAST_HELD_OUT:,} people held out and there are {report.rows_held_out:,}"
            missing.append(Missing(limit, None, told, needed=set(policy.limits) == {_TPR}))
            continue
        here, lacking = _of_limit(limit, report)
        stakes += _together(here)
        missing += lacking
    return stakes, missing


def _of_limit(limit: str, report: Report) -> tuple[list[_Stake], list[Missing]]:
    family = [finding for finding in report.findings if _FAMILIES[limit](finding.name)]
    if limit == "attribute-gain":  # one finding a column; those of a whole attacker say why there is none
        columns = [finding for finding in family if "/" in finding.name]
        family = columns or [finding for finding in family if finding.value is None]
    stakes: list[_Stake] = []
    missing: list[Missing] = []
    for finding in family:
        if finding.value is None:
            if finding.applies:
                missing.append(Missing(limit, finding.name, f"not run, because {finding.because}"))
            continue
        outside: Tries | float | None = finding.outside
        if limit in _SCORES:
            outside = None
        elif finding.name.startswith(_OWN_ROW):
            outside = finding.baseline
        if finding.inside is None or not finding.inside.of:
            missing.append(Missing(limit, finding.name, "it is not on record how many were tried"))
        elif outside is None and limit not in _SCORES:
            lacking = "nobody held out could be attacked so" if report.rows_held_out else "no people were held out"
            missing.append(Missing(limit, finding.name, lacking))
        else:
            stakes.append(_Stake(limit, finding.name, finding.inside, outside))
    if not stakes and not missing:
        missing.append(Missing(limit, None, "none of its attacks applies to such a table"))
    return stakes, missing


def _together(stakes: Sequence[_Stake]) -> list[_Stake]:
    """Take the two kinds of singling out together; each may still exceed the limit by itself."""
    kinds = [stake for stake in stakes if stake.finding.startswith(_SINGLING)]
    if len(kinds) < 2:
        return list(stakes)
    first, *others = kinds
    leading = max(kinds, key=lambda stake: stake.value).finding
    whole = _Stake(first.limit, leading, first.inside, first.outside)
    for other in others:
        assert isinstance(whole.outside, Tries)
        assert isinstance(other.outside, Tries)
        whole = _Stake(first.limit, leading, _sum(whole.inside, other.inside), _sum(whole.outside, other.outside))
    rest = [stake for stake in stakes if stake not in kinds]
    apart = [_Stake(stake.limit, stake.finding, stake.inside, stake.outside, alone=True) for stake in kinds]
    return [*rest, whole, *apart]


def _sum(one: Tries, other: Tries) -> Tries:
    return Tries(one.hits + other.hits, one.of + other.of, max(one.times, other.times))


def _share(tries: Tries) -> float:
    return min(1.0, tries.times * tries.hits / tries.of)


def _limits(stakes: Sequence[_Stake], policy: Policy) -> tuple[list[Exceeded], list[Missing]]:
    """Judge the ends of simultaneous intervals; of each limit the attack that says most."""
    confidence = 1.0 - (1.0 - CONFIDENCE) / max(1, len(stakes))
    exceeded: list[Exceeded] = []
    unsure: list[Missing] = []
    for limit, allowed in policy.limits.items():
        judged = [(stake, stake.interval(confidence)) for stake in stakes if stake.limit == limit]
        above = [(stake, ends) for stake, ends in judged if ends[0] > allowed]
        if above:
            stake, ends = max(above, key=lambda each: each[0].value)
            exceeded.append(Exceeded(limit, stake.finding, stake.value, allowed, ends))
            continue
        open_ = [(stake, ends) for stake, ends in judged if ends[1] > allowed and not stake.alone]
        if open_:
            stake, (low, high) = max(open_, key=lambda each: each[1][1])
            told = (
                f"it may lie between {low:.3g} and {high:.3g}, and the limit of {allowed:g} lies between; with more "
                "people held out or attacked it could be told"
            )
            unsure.append(Missing(limit, stake.finding, told))
    return exceeded, unsure


def _requirements(
    report: Report, policy: Policy, facts: Sequence[Fact]
) -> tuple[tuple[Exceeded, ...], tuple[Missing, ...]]:
    """List the requirements that are not met, and those that cannot be told of a table of unknown make."""
    unmet: list[Exceeded] = []
    unknown: list[Missing] = []
    for name, asked in policy.require.items():
        if name == "held_out":
            if asked and not report.rows_held_out:
                unmet.append(Exceeded(name, None, False, True))
        elif not facts:
            unknown.append(Missing(name, None, "no certificate says how the table was made"))
        elif name == "persons_per_group":
            smallest = _smallest_group(facts)
            if smallest is None or smallest < int(asked):
                unmet.append(Exceeded(name, None, smallest, asked))
        elif _shows_rare(facts):
            unmet.append(Exceeded(name, None, "shown", asked))
    return tuple(unmet), tuple(unknown)


def _smallest_group(facts: Sequence[Fact]) -> int | None:
    """Smallest group by its number of persons; None of a method without groups."""
    sizes = [fact.smallest for fact in facts if isinstance(fact, Grouped | Maintained)]
    return min(sizes) if sizes else None


def _shows_rare(facts: Sequence[Fact]) -> bool:
    """Whether a category that few people have may show in the release."""
    return any(
        isinstance(fact, DomainsObserved)
        or (isinstance(fact, CountsKept | Maintained | Untouched) and fact.category_columns > 0)
        for fact in facts
    )


# --------------------------------------------------------------------------------------------------------- what to try


def _to_try(
    report: Report,
    policy: Policy,
    facts: Sequence[Fact],
    exceeded: Sequence[Exceeded],
    unsure: bool,
    command: Sequence[str],
) -> tuple[str, ...]:
    """Command lines that may help: people held out, larger groups, a method with groups, more people held out."""
    told = policy.name if policy == BUILT_IN.get(policy.name) else "FILE"
    words = list(command) or ["sfumato", "sanitize", "INPUT", "-o", "FOLDER", "--policy", told]
    made_here = words[1:2] == ["sanitize"]
    compared = bool(report.rows_held_out)
    stronger = any(each.limit in policy.limits or each.limit == "persons_per_group" for each in exceeded)
    lines = []
    if stronger:
        base = words if made_here else ["sfumato", "sanitize", words[2], "-o", "FOLDER", "--policy", told]
        if not compared or not made_here:
            base = _with(base, "--holdout", f"{_HOLD_OUT:g}")
        lines += [_with(_without(base, *_dropped(size)), *size) for size in _sizes(report, policy, facts, exceeded)]
    elif not compared:
        lines.append(_with(words, "--holdout", f"{_HOLD_OUT:g}" if made_here else "FILE"))
    elif unsure and made_here:
        if _value(words, "--holdout") != f"{_HOLD_OUT_MORE:g}" and report.rows_held_out < report.rows_original:
            lines.append(_with(words, "--holdout", f"{_HOLD_OUT_MORE:g}"))
        if "--budget" in words:
            lines.append(_without(words, "--budget"))
    return tuple(shlex.join(_replacing(line)) for line in lines)


def _sizes(
    report: Report, policy: Policy, facts: Sequence[Fact], exceeded: Sequence[Exceeded]
) -> list[tuple[str, ...]]:
    """Options for groups that are larger, as large as a requirement asks, or there at all."""
    asked = int(policy.require.get("persons_per_group", 1))
    groups = [
        fact.asked_min if isinstance(fact, Grouped) else fact.k
        for fact in facts
        if isinstance(fact, Grouped | Maintained)
    ]
    most = report.rows_original // 2
    if not groups:
        return [("--method", "condense", "--k", str(max(_GROUPS, asked)))] if most >= max(_GROUPS, asked) else []
    if not any(each.limit in policy.limits for each in exceeded):
        return [("--k", str(asked))] if groups[0] < asked <= most else []
    return [("--k", str(size)) for size in (max(asked, step * groups[0]) for step in _STEPS) if size <= most]


def _with(words: Sequence[str], *options: str) -> list[str]:
    """Words of a command with options set to values, in place of what they were."""
    changed = list(words)
    for name, value in zip(options[::2], options[1::2], strict=True):
        changed = [*_without(changed, name), name, value]
    return changed


def _without(words: Sequence[str], *names: str) -> list[str]:
    """Words of a command without some options and their values."""
    kept: list[str] = []
    skip = 0
    for word in words:
        if skip:
            skip -= 1
        elif word in names:
            skip = 0 if word in _FLAGS else 1
        else:
            kept.append(word)
    return kept


def _dropped(size: Sequence[str]) -> tuple[str, ...]:
    """Options that do not go with others: those of the old method with a new one."""
    return (*_OF_METHODS, *_FLAGS) if "--method" in size else ("--groups",)


def _value(words: Sequence[str], name: str) -> str | None:
    return words[list(words).index(name) + 1] if name in words else None


def _replacing(words: Sequence[str]) -> list[str]:
    """Words of a command that may replace the folder which this run leaves."""
    return list(words) if "--overwrite" in words or "-o" not in words else [*words, "--overwrite"]
