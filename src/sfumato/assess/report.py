"""A report: findings, figures and a policy's verdict, as JSON, a table, a page in two editions, and a few lines.

The verdict is what a policy says to a release: the ruling, its reasons in plain words, and what to try next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

import pyarrow as pa

from sfumato.assess.figures.svg import Figure
from sfumato.assess.findings import ColumnRisk, Finding
from sfumato.assess.plain import (
    fitting,
    known_rows_sentence,
    limit_words,
    missing_words,
    risk_sentence,
    risky_columns,
    use_sentence,
)
from sfumato.core.documents import plain
from sfumato.core.errors import OptionError
from sfumato.core.pages import framed_page
from sfumato.tables.frames import frame_of

__all__ = ["ChangeTried", "Exceeded", "Figure", "Finding", "Missing", "Report", "Ruling", "Verdict"]


class Ruling(StrEnum):
    """What a policy says to a release."""

    MEETS = "meets"
    DOES_NOT_MEET = "does-not-meet"
    CANNOT_TELL = "cannot-tell"


@dataclass(frozen=True)
class Exceeded:
    """A limit that is exceeded, or a requirement that is not met."""

    limit: str  # its name in the policy
    finding: str | None  # the finding that shows it; None of a requirement
    # what there is: a gain or score as it was measured, or what is required; None where the method has no such thing
    value: float | int | bool | str | None
    allowed: float | int | bool | str  # what the policy asks
    interval: tuple[float, float] | None = None  # where the value may lie, of which the lower end is above the limit


@dataclass(frozen=True)
class Missing:
    """What a limit could not be judged by."""

    limit: str
    finding: str | None
    because: str
    needed: bool = True  # false where the limit is left out for it, and the outcome does not hang on it


@dataclass(frozen=True)
class ChangeTried:
    """A column dropped or coarsened, tried on a sample: what that did to the worst of what the policy judges.

    ``before`` and ``after`` are multiples of what the policy allows, 1 at the limit. ``clear`` says that the worst
    finding fell by more than chance.
    """

    column: str
    change: str  # what was done, in words
    how: str  # how `sanitize` is told
    before: float
    after: float
    people: int
    clear: bool

    @property
    def sentence(self) -> str:
        """What it did, for the owner."""
        change = f"{self.change[:1].upper()}{self.change[1:]}"
        return f"{change} the worst attack got {self.after:.1f} times what is allowed, and not {self.before:.1f} times."


@dataclass(frozen=True)
class Verdict:
    """What a policy says to a release."""

    policy: str  # its name
    outcome: Ruling
    exceeded: tuple[Exceeded, ...] = ()  # empty unless the outcome is that the release does not meet the policy
    missing: tuple[Missing, ...] = ()
    to_try: tuple[str, ...] = ()  # command lines that may help; where some were tried, those that met the policy
    purpose: str = field(default="", compare=False)  # for whom the policy is, in a sentence
    edited: bool = False  # whether the policy has the name of one that is built in and asks for something else
    tried: int | None = None  # other settings that were tried on the table for it; None where none could be
    asked: bool = True  # false where no policy was named, and it was judged by the usual one; nothing is refused then
    changes: tuple[ChangeTried, ...] = ()  # columns changed on a sample, the one that helps most first

    @property
    def helpful(self) -> tuple[str, ...]:
        """Which columns, dropped or coarsened, clearly lower the worst of the risk, for the owner; the most first."""
        return tuple(each.sentence for each in self.changes if each.clear)

    @property
    def changes_said(self) -> str:
        """How it was looked for columns to change; empty where it was not."""
        if not self.changes:
            return ""
        people = f"Tried on {self.changes[0].people:,} people of the table"
        if any(each.clear for each in self.changes):
            return f"{people}."
        columns = ", ".join(dict.fromkeys(f"'{each.column}'" for each in self.changes))
        return f"{people}, changing one of {columns} alone does not clearly lower the worst of it."

    @property
    def title(self) -> str:
        """Name of the policy for readers."""
        return f"{self.policy} (edited)" if self.edited else self.policy

    @property
    def refuses(self) -> bool:
        """Whether the release may not leave for it."""
        return self.asked and self.outcome is not Ruling.MEETS

    @property
    def heading(self) -> str:
        """Ruling and policy in a few words, for anybody."""
        return f"{_HEADINGS[self.outcome]} {self.title!r}"

    @property
    def clause(self) -> str:
        """Ruling and policy as the beginning of a sentence about the release."""
        return f"{_CLAUSES[self.outcome]} the policy {self.title!r}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not met or cannot be told, for the owner."""
        return (*map(_exceeded_words, self.exceeded), *(_missing_words(each) for each in self.missing if each.needed))

    @property
    def left_out(self) -> str:
        """What was not judged and need not be, for the owner; empty where nothing was left out."""
        told = [_missing_words(each) for each in self.missing if not each.needed]
        return f"Not judged: {'; '.join(told)}." if told else ""

    @property
    def hint(self) -> str:
        """How more could be told; empty where everything was."""
        unsure = any(each.because.startswith("it may be") for each in self.missing)
        return "With more people held out or attacked this could be told." if unsure else ""

    @property
    def none_found(self) -> str:
        """That no command is known to help, and how far it was looked for one; for the owner."""
        if self.tried is None:
            return "No command is known that would help."
        if not self.tried:
            return "No setting is known that would meet it: with so few people too little could be told of any."
        many = "One other setting was" if self.tried == 1 else f"{self.tried} other settings were"
        return f"{many} tried, and none would meet it in 9 of 10 runs; 'sfumato tune' looks further."

    @property
    def unasked(self) -> str:
        """That nobody named the policy, for anybody; empty where somebody did."""
        if self.asked:
            return ""
        held = "" if self.outcome is Ruling.MEETS else " Nothing was held back for it, which is no permission."
        return f"No policy was named, so {self.title!r} was taken.{held}"

    @property
    def answer(self) -> str:
        """Whether it may be sent, for the owner."""
        return _ANSWERS[self.outcome]

    def sentence(self) -> str:
        """Verdict in one sentence, for the owner."""
        return f"{self.heading}: {'; '.join(self.reasons)}." if self.reasons else f"{self.heading}."

    def short_sentence(self) -> str:
        """Ruling with its first reason, and how many more there are; for the owner."""
        aside = "" if self.asked else " (none was named)"
        rest = len(self.reasons) - 1
        more = f"; {rest} more reason{'s' * (rest > 1)}" if rest > 0 else ""
        held = "" if self.outcome is Ruling.MEETS else f" {self.answer}"
        return f"{self.heading}{aside}: {self.reasons[0]}{more}.{held}" if self.reasons else f"{self.heading}{aside}."

    def to_json(self) -> dict[str, Any]:
        """Verdict as in ``report.json``."""
        told = plain(self)
        return {key.removeprefix("to_"): told[key] for key in _WRITTEN}


_WRITTEN = ("policy", "edited", "asked", "outcome", "exceeded", "missing", "to_try", "tried", "changes")
_HEADINGS = {
    Ruling.MEETS: "Meets the policy",
    Ruling.DOES_NOT_MEET: "Does not meet the policy",
    Ruling.CANNOT_TELL: "It cannot be told whether this meets the policy",
}
_ANSWERS = {
    Ruling.MEETS: "It may, as far as this policy goes.",
    Ruling.DOES_NOT_MEET: "Do not send it.",
    Ruling.CANNOT_TELL: "Do not send it yet.",
}
_CLAUSES = {
    Ruling.MEETS: "the release meets",
    Ruling.DOES_NOT_MEET: "the release does not meet",
    Ruling.CANNOT_TELL: "it cannot be told whether the release meets",
}


def _exceeded_words(each: Exceeded) -> str:
    """A limit or requirement that is not kept, in plain words."""
    if each.limit == "held_out":
        return "no people were held out to compare with"
    if each.limit == "persons_per_group":
        there = "the method makes no groups" if each.value is None else f"the smallest group has {each.value} people"
        return f"{there}, and {each.allowed} in every group are asked"
    if each.limit == "rare":
        return "categories that few people have may show"
    return limit_words(each.limit, each.finding, float(each.value or 0.0), float(each.allowed), each.interval)


def _missing_words(each: Missing) -> str:
    """What a limit could not be judged by, in plain words."""
    return missing_words(each.limit, each.finding, each.because)


Edition = Literal["owner", "public"]
_FORMAT = 1


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What was measured on a release.

    Parameters
    ----------
    findings : tuple of Finding
    figures : tuple of Figure
    rows_original, rows_released : int
    sizes : dict
        How many rows were looked at, and the budget where one was given.
    seconds : dict
        How long each measure took.
    notes : tuple of str
        What a reader must know of the rows and cells that were measured.
    rows_held_out : int
        Rows of people held out whom attacks were compared with.
    verdict : Verdict or None
        What a policy says to it; None where it was not judged.
    certificate : dict or None
        Document of the certificate of the release, which its pages show.
    frame : {"arrow", "pandas", "polars"}
        Kind of frame that the original came in.
    target : str or None
        The column that models were to predict.
    columns : tuple of ColumnRisk
        What each column adds to the risk, the most first; for the owner.
    """

    findings: tuple[Finding, ...]
    figures: tuple[Figure, ...]
    rows_original: int
    rows_released: int
    sizes: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rows_held_out: int = 0
    verdict: Verdict | None = None
    certificate: dict[str, Any] | None = None
    frame: str = "arrow"
    target: str | None = None
    columns: tuple[ColumnRisk, ...] = ()

    def __repr__(self) -> str:
        return f"Report({len(self.findings)} findings, {len(self.figures)} figures)"

    def __getitem__(self, name: str) -> Finding:
        """Find a finding by its name."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(name)

    def to_json(self) -> dict[str, Any]:
        """The whole report, for the owner, as a JSON document: see ``report-schema.json`` beside this module.

        How long it took is left out, so that a rehearsal gives the same document again.
        """
        told = {name: getattr(self, name) for name in ("rows_original", "rows_released", "rows_held_out")}
        shown = ("name", "title", "caption", "alt", "public")
        return {
            "format": _FORMAT,
            **told,
            "verdict": None if self.verdict is None else self.verdict.to_json(),
            "target": self.target,
            "columns": [plain(column) for column in self.columns],
            "sizes": self.sizes,
            "notes": list(self.notes),
            "findings": [finding.to_json() for finding in self.findings],
            "figures": [{key: getattr(figure, key) for key in shown} for figure in self.figures],
        }

    def to_html(self, *, edition: Edition = "owner", certificate: dict[str, Any] | None = None) -> str:
        """Write the report as one self-contained page.

        Parameters
        ----------
        edition : {"owner", "public"}
            The public edition holds public findings and figures only.
        certificate : dict, optional
            The certificate's JSON document: what was promised and what must not be said; by default its own.
        """
        if edition not in ("owner", "public"):
            raise OptionError("a report has two editions; ask for 'owner' or 'public'")
        from sfumato.assess.page import write_page

        return write_page(self, edition=edition, certificate=certificate or self.certificate)

    def to_summary(self, *, certificate: dict[str, Any] | None = None) -> str:
        """Write one page that can be printed, for whoever signs for the release; it stays with the owner.

        Parameters
        ----------
        certificate : dict, optional
            The certificate's JSON document; by default its own.
        """
        from sfumato.assess.page import write_summary

        return write_summary(self, certificate=certificate or self.certificate)

    def to_frame(self, kind: Literal["arrow", "pandas", "polars"] | None = None) -> Any:
        """The findings as a table, one a row, for the owner.

        Parameters
        ----------
        kind : {"arrow", "pandas", "polars"}, optional
            By default the kind of frame that the original came in; a pyarrow table where that is not known.
        """
        if kind not in (None, "arrow", "pandas", "polars"):
            raise OptionError(f"a report gives no {kind!r} frame; ask for 'arrow', 'pandas' or 'polars'")
        documents = [finding.to_json() for finding in self.findings]
        columns = {name: [each[key] for each in documents] for name, key, _ in _COLUMNS}
        for name, _, end in _COLUMNS:
            if end is not None:
                columns[name] = [None if ends is None else ends[end] for ends in columns[name]]
        table = pa.table(columns, _SCHEMA)
        return frame_of(table, kind or self.frame)

    def plot(self, name: str) -> Figure:
        """A figure by its name; a notebook shows it, and its ``to_svg()`` is a file. An unknown name lists all."""
        from sfumato.assess.page import visible_figures

        figures = {figure.name: figure for figure in visible_figures(self.figures, owner=True)}
        if name not in figures:
            there = ", ".join(repr(known) for known in figures) or "none, for no figure was drawn"
            raise OptionError(f"no figure is named {name!r}; choose one of: {there}")
        return figures[name]

    def _repr_html_(self) -> str:
        """Show the owner's page in a notebook, in a frame of its own: its style stays inside."""
        return framed_page("sfumato report", self.to_html(edition="owner"))

    def summary(self, width: int | None = None, most: int = 8) -> str:
        """Verdict, use and risk in a few lines of plain text, for the owner.

        Parameters
        ----------
        width : int, optional
            Columns of the terminal, which lines keep within; by default none is broken.
        most : int
            Lines that there may be; what matters least is left out.
        """
        verdict, *rest = self.lines() if self.verdict is not None else [None, *self.lines()]
        first = [] if verdict is None else [verdict]
        return "\n".join(fitting([*first, *((0, note) for note in self.notes), *rest], width, most))

    def lines(self) -> list[tuple[int, str]]:
        """Verdict, risk, use, columns and what to try in a line each, for the owner; what matters least has the most.

        The numbers are ranks for `sfumato.assess.plain.fitting`.
        """
        verdict, columns = self.verdict, ", ".join(f"'{column}'" for column, _ in risky_columns(self.columns))
        said = verdict is not None and any(each.finding for each in verdict.exceeded[:1])  # the verdict tells the worst
        return [
            *(() if verdict is None else ((0, verdict.short_sentence()),)),
            (4 if said and not known_rows_sentence(self.findings) else 1, f"Risk: {risk_sentence(self.findings)}"),
            (1, f"Use:  {use_sentence(self.findings, self.target, short=True)}"),
            *(((5, f"Columns that carry most of the risk: {columns}."),) if columns else ()),
            *(() if verdict is None else ((2, f"To try next:  {line}") for line in verdict.to_try[:1])),
            *(() if verdict is None or verdict.tried is None or verdict.to_try else ((2, verdict.none_found),)),
        ]


_TEXT, _NUMBER = pa.string(), pa.float64()
_COLUMNS: tuple[tuple[str, str, int | None], ...] = (
    ("name", "name", None),
    ("family", "family", None),
    ("status", "status", None),
    ("value", "value", None),
    ("low", "interval", 0),
    ("high", "interval", 1),
    ("baseline", "baseline", None),
    ("baseline_low", "baseline_interval", 0),
    ("baseline_high", "baseline_interval", 1),
    ("control", "control", None),
    ("control_low", "control_interval", 0),
    ("control_high", "control_interval", 1),
    ("attempts", "attempts", None),
    ("direction", "direction", None),
    ("range_low", "range", 0),
    ("range_high", "range", 1),
    ("unit", "unit", None),
    ("public", "public", None),
    ("meaning", "meaning", None),
    ("because", "because", None),
)
_TYPES = {"attempts": pa.int64(), "public": pa.bool_()}
_WORDS = ("name", "family", "status", "direction", "unit", "meaning", "because")
_SCHEMA = pa.schema([(name, _TYPES.get(name, _TEXT if name in _WORDS else _NUMBER)) for name, _, _ in _COLUMNS])
