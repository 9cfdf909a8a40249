"""Plain words: numbers and names as a person reads them, and the first screen.

That tells what a release is good for, what it costs people, and which columns carry it. People are counted in hundreds,
and nobody has to know what a control or a baseline is. Every sentence is a function of findings and says no more than
they do.
"""

from __future__ import annotations

import itertools
import shlex
import textwrap
from collections.abc import Iterable, Sequence

from sfumato.assess.findings import CONFIDENCE, FEW, ColumnRisk, Family, Finding, Gain, difference_interval, gains

__all__ = [
    "KNOWN_ROWS",
    "MODELS",
    "by_knowledge",
    "command_words",
    "fitting",
    "hundred",
    "known_rows_sentence",
    "limit_words",
    "missing_words",
    "percent_range",
    "risk_aside",
    "risk_sentence",
    "risky_columns",
    "risky_kinds",
    "score",
    "score_range",
    "show",
    "spoken_name",
    "use_sentence",
]

MODELS = {
    "1nn": "nearest neighbour",
    "boosting": "gradient boosting",
    "logistic": "logistic regression",
    "linear": "linear regression",
    "ridge": "ridge regression",
}
"""Models by the last word of a finding's name."""

KNOWN_ROWS = 5
"""Original rows that an attacker is taken to know where a secret key moved the table."""

_PERCENT, _DASH = "\u00a0%", "\u2013"
_TO_TRY = "To try next:"


def show(value: float | None, unit: str = "") -> str:
    """A number with about three digits.

    Examples
    --------
    >>> show(0.01234), show(12.0, "count"), show(0.99999), show(None)
    ('0.0123', '12', 'above 0.9999', '–')
    >>> print(show(0.5, "share"), show(0.99999, "share"))
    50\u00a0% just under 100\u00a0%
    """
    if value is None:
        return "\u2013"
    if unit == "share":
        text = f"{100 * value:.3g}"
        return f"just under 100{_PERCENT}" if text == "100" and value < 1 else f"{text}{_PERCENT}"
    if unit == "percent":
        return f"{value:.3g}{_PERCENT}"
    if unit == "count":
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    if 0.9 <= abs(value) < 1:
        return f"{value:.4f}" if abs(value) < 0.99995 else ("above 0.9999" if value > 0 else "below -0.9999")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def spoken_name(name: str) -> str:
    """Name of a finding as words; what stands after the slash is a column and stays as it is.

    Examples
    --------
    >>> spoken_name("marginal-distance/net-pay"), spoken_name("ssq")
    ('Marginal distance: net-pay', 'Sum of squares inside groups')
    >>> spoken_name("recall-boosting/red"), spoken_name("accuracy-smallest-class-1nn")
    ('Recall, gradient boosting: red', 'Accuracy on the smallest class, nearest neighbour')
    """
    from sfumato.assess.measure import number_of

    first, slash, column = name.partition("/")
    words = next((each.spoken for each in map(number_of, (first, f"{first}/")) if each and each.spoken), None)
    words = words or _as_it_stands(first)
    return f"{words}: {column}" if slash else words


def _as_it_stands(name: str) -> str:
    head, _, tail = name.rpartition("-")
    words = ", ".join(part for part in (head, MODELS[tail]) if part) if tail in MODELS else name
    words = words.replace("-", " ")
    return words[:1].upper() + words[1:]


def fitting(parts: Sequence[tuple[int, str]], width: int | None, most: int) -> list[str]:
    """Lines of a text of at most so many, broken at a width; what has the highest number is left out first.

    Examples
    --------
    >>> fitting([(0, "one two"), (2, "three"), (1, "four")], 5, 3)
    ['one', '  two', 'four']
    """
    kept = list(parts)
    while True:
        lines = [line for _, text in kept for line in _broken(text, width)]
        taken = sum(-(-len(line) // width) if width else 1 for line in lines)  # the terminal breaks a command itself
        last = max((rank for rank, _ in kept), default=0)
        if taken <= most or not last:
            return lines
        kept.pop(max(place for place, (rank, _) in enumerate(kept) if rank == last))


def _broken(text: str, width: int | None) -> list[str]:
    """Lines that a text takes; a command stays whole, to be copied, and so does a word longer than a line."""
    if width is None or len(text) <= width or text.startswith(_TO_TRY):
        return [text]
    room = textwrap.TextWrapper(width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    return room.wrap(text)


_KNOWN_INPUT = "recovered-cells"
_MOST_COLUMNS = 3
_MORE = 0.02  # that a model's score is above chance, or it predicts next to nothing
_SCORES = {
    "auc-": ("AUC", "majority class"),
    "balanced-accuracy-": ("balanced accuracy", "majority class"),
    "response-r2-": ("R\u00b2", "mean"),
}
"""By the start of a finding's name: the measure that leads, and the guess that needs no model."""
_LEAST = 0.005  # a share of people that is worth a word
_DONE = {
    "linkage": "are linked to a released row",
    "own-row-linkage": "are linked to the row made from theirs",
    "linkability": "have two halves of their record joined through a released row",
    "attribute-inference": "have a cell read rightly by somebody who knows other cells of theirs",
    "label-inference": "have their class told rightly by somebody who knows the rest",
    "membership-at": "are accused of being in it",
}
_ASIDES = {
    "linkage": "Linked: whoever knows their record would take a released row for theirs, and nobody else of the table "
    "is nearer to it. That may still be wrong.",
    "own-row-linkage": "Linked: somebody who knows their record finds the very row that was made from it.",
    "linkability": "Joined: two sources, each with half of their columns, lead to the same released row.",
}
_LIMITS = {
    "linkage-gain": "people linked because they are in the table",
    "attribute-gain": "people whose cell is read because they are in the table",
    "singling-gain": "descriptions that fit one person alone because that person is in the table",
    "membership-auc": "who is in the table",
    "membership-tpr": "people accused of being in it",
    "persons_per_group": "people in a group",
    "rare": "rare categories",
}


def hundred(share: float) -> str:
    """So many of 100, with one decimal where there are few.

    Examples
    --------
    >>> hundred(0.724), hundred(0.0123), hundred(0.0004), hundred(0.998), hundred(0.0), hundred(0.05)
    ('72', '1.2', 'fewer than 0.1', 'more than 99', '0', '5')
    """
    value = 100 * share
    if 0 < abs(value) < 0.1:
        return "fewer than 0.1"
    if 99 < value < 100:
        return "more than 99"
    return f"{value:.0f}" if abs(value) >= 9.95 else f"{value:.1f}".removesuffix(".0")


# ------------------------------------------------------------------------------------------------------------------ use


def use_sentence(findings: Sequence[Finding], target: str | None, *, short: bool = False) -> str:
    """How well the best model predicts the target of people it never saw, else how much the columns moved.

    The measure is one that a useless model cannot raise. ``short`` leaves out the confidence interval.
    """
    known = {finding.name: finding for finding in findings if finding.value is not None}
    best = next((found for start in _SCORES if (found := _best(known, start)) is not None), None)
    if best is not None:
        return _predicting(best, target, short=short)
    lost, new = known.get("itemsets-lost"), known.get("itemsets-new")
    if lost is not None and new is not None:
        here, there = (hundred(each.value or 0.0) for each in (lost, new))
        return f"Of 100 frequent sets of items {here} are lost, and of 100 that are found {there} are new."
    moved = known.get("marginal-distance")
    if moved is None or moved.value is None:
        return "Nothing could be compared with the original; the tables below say why."
    chance = "" if moved.baseline is None else f" ({hundred(moved.baseline)} by chance alone)"
    most = hundred(moved.value)
    told = f"Counts of rows up to any value of a column are off by at most {most} of 100, on average{chance}."
    aim = "Name the column that will be predicted (--target)" if target is None else "Hold people out (--holdout)"
    return told if short else f"{told} {aim} to see what a model loses."


def _best(known: dict[str, Finding], start: str) -> Finding | None:
    """The finding on the model that learns most from the original."""
    some = [finding for name, finding in known.items() if name.startswith(start) and finding.baseline is not None]
    return max(some, key=lambda finding: (finding.baseline or 0.0, finding.value or 0.0), default=None)


def _predicting(best: Finding, target: str | None, *, short: bool) -> str:
    """A score of the release beside that of the original and that of no model."""
    measure, guess = next(words for start, words in _SCORES.items() if best.name.startswith(start))
    value, original, chance = best.value or 0.0, best.baseline or 0.0, best.chance or 0.0
    interval = "" if short or best.interval is None else f"95{_PERCENT} CI {score_range(*best.interval)}; "
    column = "the target" if target is None else f'"{target}"'
    told = (
        f"Predicting {column}: {measure} {score(value)} ({interval}original {score(original)}, {guess} {chance:.3g})."
    )
    useless = " A model of the original does hardly better than chance: this target says little about utility."
    return told + (useless if original < chance + _MORE else "")


def score(value: float) -> str:
    """A score with three decimals.

    Examples
    --------
    >>> score(0.7184), score(-0.0001)
    ('0.718', '0.000')
    """
    return f"{round(value, 3) + 0.0:.3f}"


def score_range(low: float, high: float) -> str:
    """Two scores as a range; with "to" if one is below 0.

    Examples
    --------
    >>> print(score_range(0.7, 0.735), score_range(-0.1, 0.2))
    0.700\u20130.735 -0.100 to 0.200
    """
    return f"{score(low)}{' to ' if low < 0.0 else _DASH}{score(high)}"


# ----------------------------------------------------------------------------------------------------------------- risk


def risk_sentence(findings: Iterable[Finding]) -> str:
    """What the attack that gains most does to people of the table, beside people who are not in it.

    Where a secret key moved the table, the attacker who knows a few rows comes first, and alone if that succeeds.
    """
    some = tuple(findings)
    ranked = _leading(some)
    idle = sum(f.family is Family.ATTACK and f.value is None and f.applies and "/" not in f.name for f in some)
    unknown = (
        "" if not idle else f" {idle} attack{'' if idle == 1 else 's'} could not be run: nothing is known of that."
    )
    certain = [gain for gain in ranked if gain.certain]
    known = known_rows_sentence(some)
    if known and certain and certain[0].finding.name == _KNOWN_INPUT:
        return f"{known}{unknown}"
    known = f"{known} " if known else ""
    if not ranked:
        return f"{known}No {'other ' if known else ''}attack on single people was tried.{unknown}"
    if certain:
        return f"{known}{_people(certain[0])}{unknown}"
    few = "The one attack tried does not do" if len(ranked) == 1 else f"None of {len(ranked)} attacks does"
    few = f"{few} surely better on people of the table than on others. The nearest to it: {_people(ranked[0])}"
    return f"{known}{few}{unknown}"


def _leading(findings: Sequence[Finding]) -> list[Gain]:
    """Gains that may lead, the largest first, but an attacker who succeeds with a few known rows before all others."""
    ranked = [gain for gain in gains(findings) if not gain.conceded]
    known = [gain for gain in ranked if gain.finding.name == _KNOWN_INPUT and gain.certain]
    return known + [gain for gain in ranked if gain.finding.name != _KNOWN_INPUT]


def known_rows_sentence(findings: Sequence[Finding]) -> str:
    """What an attacker recovers who knows a few rows, beside guessing; empty where no key moved the table."""
    found = {finding.name: finding for finding in findings if finding.value is not None}
    finding = found.get(_KNOWN_INPUT)
    if finding is None:
        return ""
    number = max((each for each in range(1, KNOWN_ROWS + 1) if f"{_KNOWN_INPUT}/{each} rows" in found), default=1)
    rows = "1 row" if number == 1 else f"{number} rows"
    told = f"An attacker who knows {rows} recovers {show(finding.value, 'share')} of the cells"
    interval = "" if finding.interval is None else f" (95\u00a0% CI {percent_range(*finding.interval)})"
    baseline = "" if finding.baseline is None else f"; baseline {show(finding.baseline, 'share')}"
    return f"{told}{interval}{baseline}."


def percent_range(low: float, high: float) -> str:
    """Two shares as a range of percentages.

    Examples
    --------
    >>> print(percent_range(0.003, 0.11))
    0.3\u201311\u00a0%
    """
    return f"{100 * low:.3g}\u2013{100 * high:.3g}{_PERCENT}"


def risk_aside(findings: Iterable[Finding]) -> str:
    """What the word for the attack that gains most means, where it needs one."""
    some = tuple(findings)
    shown = [gain for gain in _leading(some) if gain.certain or not known_rows_sentence(some)]
    first = next((gain.finding.name for gain in shown), "")
    return next((words for start, words in _ASIDES.items() if first.startswith(start)), "")


_NOBODY = "from a table that knows nobody of them"


def _people(gain: Gain) -> str:
    """One attack, counted in people."""
    finding = gain.finding
    assert finding.value is not None
    name, here, there = finding.name, hundred(finding.value), hundred(gain.against)
    other = "of 100 who are not" if gain.controlled else None
    if finding.unit != "share":
        if name.startswith("membership-"):
            told = "Shown one person of the table and one who is not in it, an attacker tells who is who"
            return f"{told} {here} times of 100; a coin does 50 times."
        return f"{spoken_name(name)}: {show(finding.value)}, where {show(gain.against)} would be nothing."
    if name.startswith("singling-out"):
        told = f"Of 100 descriptions read off the release {here} fit one person of the table alone"
        return f"{told}; {'of people who are not in it' if gain.controlled else 'by chance'}, {there}."
    if name.startswith("rare-combination"):
        kind = f"Of 100 people of the rarest kinds in the table {here} have their numbers read"
        nobody = _NOBODY if finding.baseline_interval is not None else "by guessing"
        return f"{kind}; {'of 100 such who are not' if gain.controlled else nobody}, {there}."
    if name.startswith("extreme-values"):
        return f"Extreme values: {_extremes(gain)}."
    done = next((words for start, words in _DONE.items() if name.startswith(start)), None)
    if done is None:
        done = f"are hit ({spoken_name(name)[:1].lower()}{spoken_name(name)[1:]})"
    if other is None:
        other = _NOBODY if finding.baseline_interval is not None else "by guessing"
    return f"Of 100 people in the table {here} {done}; {other}, {there}."


def _extremes(gain: Gain) -> str:
    """How often an extreme person shows, beside redraws without that person, and the excess with its interval."""
    finding = gain.finding
    with_person, without = show(finding.value, "share"), show(gain.against, "share")
    told = f"in {with_person} of redraws a release shows a value beyond everybody else's if one person holds one"
    told = f"{told}; without that person in {without}"
    if finding.inside is None or finding.outside is None:
        return told
    low, high = (show(end, "share") for end in difference_interval(finding.inside, finding.outside, CONFIDENCE))
    return f"{told} (excess {show(gain.excess, 'share')}, 95\u00a0% CI {low} to {high})"


_KNOWN = {"neighbour": "a few columns", "registry": "half of the columns", "insider": "all columns but one"}
_LINKED = {"neighbour": "neighbour", "registry": "registry", "insider": "euclid"}


def by_knowledge(findings: Iterable[Finding]) -> list[tuple[str, str, str]]:
    """Attackers by what they know: how many of 100 people they link, and of how many they read a further cell."""
    found = {finding.name: finding for finding in findings if finding.value is not None}
    rows = []
    for name, known in _KNOWN.items():
        way = _LINKED[name]
        linked = found.get(f"linkage-{way}") or found.get(f"own-row-linkage-{way}")
        read = found.get(f"attribute-inference-{name}")
        if linked is not None or read is not None:
            rows.append((known, _beside(linked), _beside(read)))
    return rows if len(rows) > 1 else []


def _beside(finding: Finding | None) -> str:
    """Of 100 people in the table, and of 100 who are not or by guessing."""
    if finding is None or finding.value is None:
        return "not tried"
    against = finding.baseline if finding.control is None else finding.control
    other = "" if against is None else f"{'' if finding.control is not None else 'by chance '}{hundred(against)}"
    return f"{hundred(finding.value)}{other and f' ({other})'}"


def risky_columns(columns: Sequence[ColumnRisk]) -> list[tuple[str, str]]:
    """The columns that carry most of the risk, each with its reason; none where none stands out."""
    told = [(risk.column, ", ".join(_reasons(risk))) for risk in columns]
    return [(column, reasons) for column, reasons in told if reasons][:_MOST_COLUMNS]


def _reasons(risk: ColumnRisk) -> list[str]:
    reasons = []
    if risk.certain and risk.gain is not None and risk.gain >= _LEAST:
        reasons.append(f"of 100 people {hundred(risk.gain)} more have it read because they are in the table")
    if risk.alone >= _LEAST:
        reasons.append(f"it makes {hundred(risk.alone)} of 100 one of a kind")
    if risk.rare:
        people = "1 person holds" if risk.rare == 1 else f"{risk.rare} people hold"
        reasons.append(f"{people} a value that fewer than {FEW} have and that the release shows, copied or by chance")
    return reasons


def risky_kinds(findings: Iterable[Finding]) -> list[tuple[str, str]]:
    """Kinds of people who are hit because they are in the table: with rare combinations, with extreme values."""
    found = {gain.finding.name: gain for gain in gains(findings) if gain.certain}
    told = []
    for name, (kind, done) in _KINDS.items():
        if name in found:
            told.append((kind, _of_kind(found[name], done) if done else _extremes(found[name])))
    return told


def _of_kind(gain: Gain, done: str) -> str:
    beside = "of 100 of people not in the table" if gain.controlled else "by guessing"
    here, there = hundred(gain.finding.value or 0.0), hundred(gain.against)
    return f"of 100, {here} {done}; {beside}, {there}"


_KINDS = {
    "rare-combination-found": ("Rare combinations of categories", "give away the numbers beside them"),
    "singling-out-univariate": ("Extreme and unique values", "fit one person alone"),
    "extreme-values-shown": ("Extreme values", ""),
}


# -------------------------------------------------------------------------------------------------------------- verdict


def command_words(line: str) -> str:
    """What a command that is to be tried asks for, in a sentence.

    Examples
    --------
    >>> command_words("sfumato sanitize people.csv -o out --method chain --leaf 400 --holdout 0.3")
    'Draw the table column by column; take each value from at least 400 people; keep 30 of 100 people out to compare.'
    """
    words = shlex.split(line)
    told = [_ASKED[name].format(_of_hundred(value)) for name, value in itertools.pairwise(words) if name in _ASKED]
    if "chain" not in words:
        told = [each for each in told if each != _ASKED["--method"]]
    sentence = "; ".join(told) or "run it again as it is"
    return f"{sentence[:1].upper()}{sentence[1:]}."


_ASKED = {
    "--method": "draw the table column by column",
    "--k": "let at least {} people share what leaves",
    "--leaf": "take each value from at least {} people",
    "--identifier": "leave the column '{}' out",
    "--holdout": "keep {} of 100 people out to compare",
    "--measure-key": "keep some people out to compare",
}


def _of_hundred(value: str) -> str:
    """A share below 1 as of 100; anything else as it is."""
    try:
        return f"{100 * float(value):g}" if 0.0 < float(value) < 1.0 else value
    except ValueError:
        return value


def limit_words(
    limit: str, finding: str | None, value: float, allowed: float, interval: tuple[float, float] | None
) -> str:
    """A limit that is exceeded, counted in people."""
    here, most = hundred(value), hundred(allowed)
    ends = "" if interval is None else f" ({hundred(interval[0])} to {hundred(interval[1])})"
    column = (finding or "").partition("/")[2]
    if limit == "linkage-gain":
        told = f"{here} of 100 people{ends} are linked to a released row because they are in the table"
    elif finding == _KNOWN_INPUT:
        told = f"an attacker who knows a few rows recovers {here} of 100 cells{ends} more than by guessing"
    elif limit == "attribute-gain":
        cell = f"their '{column}'" if column else "a cell"
        told = f"{here} of 100 people{ends} have {cell} read because they are in the table"
    elif finding == "extreme-values-shown":
        told = f"{here} of 100 redraws{ends} show a value beyond everybody else's because one person holds one"
    elif limit == "singling-gain":
        told = f"{here} of 100 descriptions{ends} fit one person alone because that person is in the table"
    elif limit == "membership-auc":
        told = f"who is in the table is told rightly {here} times of 100{ends}, where a coin does 50"
    else:
        told = f"{here} of 100 people{ends} are rightly accused of being in the table, with 1 of 100 wrongly accused"
    return f"{told}; at most {most} {'is' if most == '1' else 'are'} allowed"


def missing_words(limit: str, finding: str | None, because: str) -> str:
    """What a limit could not be judged by."""
    column = (finding or "").partition("/")[2]
    name = spoken_name(finding or "")
    which = f" ('{column}')" if column else f" ({name[:1].lower()}{name[1:]})" if finding else ""
    return f"{_LIMITS.get(limit, limit)}{which}: {because}"
