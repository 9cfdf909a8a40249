"""Every option, declared once: its type, default and help, its group in the help, and the verbs that accept it.

The command line, the keyword arguments of `sfumato.sanitize`, `sfumato.evaluate` and `sfumato.tune`, recipes, the web
page and the tables of the documentation are read off these fields.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, get_type_hints

from sfumato.core.arguments import Panel, option, options_of, spelled_option

if TYPE_CHECKING:
    from sfumato.tables.schema import Schema

__all__ = [
    "PublishOptions",
    "RunOptions",
    "first_needing_all_rows",
    "given",
    "options_from",
    "types_of_options",
]


_ALL = ("sanitize", "evaluate", "tune")
_MAKING = ("sanitize", "tune")


@dataclass(frozen=True, kw_only=True, repr=False)
class RunOptions:
    """What the engine and the plan of a run need to know, as it was given."""

    schema: Schema | str | Path | None = option(
        None,
        "Schema file, from inspect.",
        Panel.COLUMNS,
        _ALL,
        first=_ALL,
        path=True,
        metavar="FILE",
        helps={"evaluate": "Schema of ORIGINAL, from inspect."},
    )
    target: str | None = option(
        None, "Column to predict: a class or a response.", Panel.COLUMNS, _ALL, first=_ALL, metavar="COL"
    )
    identifiers: tuple[str, ...] = option(
        (),
        "Direct identifier to drop; repeatable.",
        Panel.COLUMNS,
        _ALL,
        first=_ALL,
        spelled="identifier",
        metavar="COL",
        helps={"evaluate": "Direct identifier that was dropped; repeatable."},
    )
    person: str | None = option(
        None,
        "Person identifier: dropped, and group sizes count persons.",
        Panel.COLUMNS,
        _ALL,
        first=_ALL,
        metavar="COL",
        helps={"evaluate": "Person identifier of ORIGINAL: left out; attacks use one row per person."},
    )
    rows_are_people: bool = option(
        False,
        "Each row is one person, even if a column looks like a person identifier.",
        Panel.COLUMNS,
        _MAKING,
        beside_recipe=True,
    )
    keep_persons: bool = option(
        False,
        "condense: several rows per person, under new person numbers.",
        Panel.METHOD,
        ("sanitize",),
        in_recipe=True,
        needs_all_rows=True,
    )
    weight: str | None = option(
        None,
        "Survey weight: how many people a row represents; the total is kept.",
        Panel.COLUMNS,
        _ALL,
        metavar="COL",
        needs_all_rows=True,
    )
    public: tuple[str, ...] = option(
        (),
        "Column to release unchanged; repeatable.",
        Panel.COLUMNS,
        ("sanitize", "evaluate"),
        metavar="COL",
        helps={"evaluate": "Column that was released unchanged; repeatable."},
    )
    missing: tuple[str, ...] = option(
        (),
        "Text or number that stands for a missing value, in every column; repeatable.  [default: the usual ones, "
        "and those detected]",
        Panel.INPUT,
        _ALL,
        metavar="MARK",
    )
    level: str | int | None = option(
        None,
        "Minimum group size of each record: a column, a number, or 'age > 60: 12, else: 5'.",
        Panel.PRIVACY,
        _MAKING,
        metavar="COL|N|RULE",
        in_recipe=True,
        needs_groups_of_rows=True,
    )
    strata: str | None = option(
        None,
        "Form groups within each value of this column; its values are released exactly.",
        Panel.PRIVACY,
        _MAKING,
        metavar="COL",
        in_recipe=True,
        needs_groups_of_rows=True,
    )
    holdout: Any = option(
        None,
        "Control group for the attacks: a file, or the share to hold out.",
        Panel.MEASURING,
        _ALL,
        first=_ALL,
        metavar="FILE|FRACTION",
        in_recipe=True,
        helps={
            "evaluate": "Control group: rows of the same population that RELEASED was not made from.",
            "tune": "Control group: share of held-out people, or a file.  [default: shadow releases]",
        },
        needs_groups_of_rows=True,
        beside_recipe=True,
    )
    seed: int | None = option(
        None,
        "Dry run: reproducible, marked as not for release.",
        Panel.METHOD,
        _ALL,
        least=0,
        metavar="N",
        in_recipe=True,
        helps={"evaluate": "Measure reproducibly.", "tune": "Repeat the same samples and draws."},
        beside_recipe=True,
    )
    no_rules: bool = option(
        False,
        "Allow rows that break rules between columns which hold in the original.",
        Panel.COLUMNS,
        _ALL,
        in_recipe=True,
        helps={"evaluate": "Do not count rules between columns."},
        needs_groups_of_rows=True,
    )
    rare: Literal["pool", "lift", "keep"] | None = option(
        None,
        "Rare categories (fewer than k persons): pool, lift in their hierarchy, or keep.  [default: lift or pool]",
        Panel.PRIVACY,
        _MAKING,
        choices=("pool", "lift", "keep"),
        in_recipe=True,
        needs_groups_of_rows=True,
    )
    rows: int | None = option(
        None,
        "Number of synthetic rows.  [default: as many as records]",
        Panel.METHOD,
        ("sanitize",),
        least=1,
        metavar="N",
        in_recipe=True,
        needs_groups_of_rows=True,
    )
    tails: Literal["code", "smooth", "keep"] | None = option(
        None,
        "Extreme values (fewer than k persons): code to a cut-off, smooth, or keep.  [default: code]",
        Panel.PRIVACY,
        ("sanitize",),
        choices=("code", "smooth", "keep"),
        in_recipe=True,
        needs_groups_of_rows=True,
    )
    tails_k: int | None = option(
        None, "Smallest number of persons that a cut-off is computed from.", Panel.PRIVACY, in_recipe=True
    )
    where: str | None = option(
        None,
        "chain: synthetic rows only where 'age > 60 and sex == F'.",
        Panel.METHOD,
        ("sanitize",),
        metavar="RULE",
        in_recipe=True,
        needs_all_rows=True,
    )
    budget_file: str | Path | None = option(
        None,
        "private: budget of the dataset over all its releases, which this one is charged to.",
        Panel.PRIVACY,
        ("sanitize",),
        path=True,
        metavar="FILE",
        beside_recipe=True,
    )
    engine: Literal["memory", "partitions", "spark"] | None = option(
        None,
        "All rows in memory; a file in partitions, with encrypted temporary files; or a cluster.  [default: "
        "memory, unless the file needs more than --memory]",
        Panel.ENGINE,
        ("sanitize",),
        choices=("memory", "partitions", "spark"),
        beside_recipe=True,
    )
    master: str | None = option(
        None,
        "Spark master, such as spark://host:7077 or local[2].",
        Panel.ENGINE,
        ("sanitize",),
        metavar="URL",
        beside_recipe=True,
    )
    memory: str | int | None = option(
        None,
        "Memory limit of the run, such as 512M or 2G.  [default: 1.5G, or half of the memory]",
        Panel.ENGINE,
        ("sanitize",),
        metavar="SIZE",
        beside_recipe=True,
    )
    resume_key: str | Path | None = option(
        None,
        "In partitions: key to resume an interrupted run, created here (mode 600) and removed at the end.",
        Panel.ENGINE,
        ("sanitize",),
        path=True,
        metavar="FILE",
        beside_recipe=True,
    )
    batch_rows: int | None = option(
        None,
        "Geometric methods with --engine partitions: rows per batch.  [default: about 32 MB]",
        Panel.ENGINE,
        ("sanitize",),
        least=1,
        metavar="N",
        beside_recipe=True,
    )

    def __repr__(self) -> str:
        return f"RunOptions({', '.join(given(self))})"

    @property
    def share(self) -> float | None:
        """Share of the people to hold out; None if none are, or if they come as a table."""
        return self.holdout if isinstance(self.holdout, float) else None

    @property
    def repeatable(self) -> RunOptions:
        """Those that a recipe repeats; the rest as if nothing was given."""
        kept = {name: getattr(self, name) for name, each in options_of(RunOptions) if each.in_recipe}
        return RunOptions(**kept | {"holdout": self.share})


@dataclass(frozen=True, kw_only=True, repr=False)
class PublishOptions:
    """How a release is measured, judged and written."""

    report: bool = option(True, "Do not measure risk and utility.", Panel.MEASURING, ("sanitize",), spelled="no-report")
    time_limit: float | None = option(
        None,
        "Time limit of the measurement; fewer rows are measured if necessary.",
        Panel.MEASURING,
        _ALL,
        first=("tune",),
        above=0.0,
        metavar="SECONDS",
        helps={"tune": "Time limit of the search.  [default: 600; with a control group that of eight trials]"},
    )
    shadows: int | None = option(
        None,
        "Number of shadow releases to attack; 0 for none.  [default: as many as the policy needs, for about a minute]",
        Panel.MEASURING,
        ("sanitize",),
        least=0,
        metavar="N",
    )
    quasi_identifiers: tuple[str, ...] = option(
        (),
        "Quasi-identifier: a column an attacker may know, or COL@N, its labels at level N; repeatable.  "
        "[default: a few columns, and half of them]",
        Panel.MEASURING,
        _ALL,
        spelled="quasi-identifier",
        metavar="COL",
    )
    accurate_within: float | None = option(
        None,
        "Largest error at which a predicted response counts as correct, in its units.  [default: its step, or a "
        "tenth of its standard deviation]",
        Panel.MEASURING,
        _ALL,
        least=0.0,
        metavar="X",
    )
    clusters: int | None = option(
        None,
        "Number of clusters when clusterings are compared.  [default: the classes of the target, else 5]",
        Panel.MEASURING,
        ("sanitize", "evaluate"),
        least=2,
        metavar="K",
    )
    sampling_fraction: float | None = option(
        None,
        "Share of the population that INPUT holds, for the risk in the population by --quasi-identifier.",
        Panel.MEASURING,
        ("sanitize", "evaluate"),
        above=0.0,
        metavar="SHARE",
    )
    policy: Any = option(
        None,
        "Policy that the release must meet: trusted, research, public, or a file.",
        Panel.PRIVACY,
        _ALL,
        first=_ALL,
        metavar="NAME|FILE",
        helps={"tune": "Policy that the release must meet: trusted, research, public, or a file.  [default: research]"},
    )
    despite_policy: bool = option(
        False,
        "Release even if the policy is not met; the certificate records it.",
        Panel.PRIVACY,
        ("sanitize", "evaluate"),
    )
    form: Any = option(
        None,
        "File format of the release.  [default: that of INPUT]",
        Panel.OUTPUT,
        ("sanitize",),
        spelled="format",
        choices=("csv", "parquet", "arrow", "xlsx", "ods", "sqlite"),
    )
    spreadsheet_safe: bool = option(
        False,
        "CSV: put an apostrophe before text that a spreadsheet would run as a formula.",
        Panel.OUTPUT,
        ("sanitize",),
    )
    native: bool = option(False, "Write numbers and dates that came as text in types of their own.", Panel.OUTPUT)
    sign: Any = option(
        None,
        "Private key (Ed25519) to sign with, instead of your own (see signing-key).",
        Panel.OUTPUT,
        ("sanitize",),
        path=True,
        metavar="FILE",
    )
    overwrite: bool = option(
        False,
        "Replace an earlier release in that folder.",
        Panel.OUTPUT,
        _ALL,
        first=("sanitize", "evaluate"),
        helps={
            "evaluate": "Replace an earlier evaluation of that name.",
            "tune": "Replace an earlier tuning of that name.",
        },
    )
    command: Sequence[str] = option((), "Words of the command line, for what to try next.", Panel.OUTPUT)

    def __repr__(self) -> str:
        return f"PublishOptions({', '.join(given(self))})"


def first_needing_all_rows(options: RunOptions, *, batches: bool = False) -> str | None:
    """The first option given that needs all rows at once, as the command line spells it.

    A run in ``batches`` transforms rows one by one, and honours fewer options than one in partitions.
    """
    for name, each in options_of(RunOptions):
        refused = each.needs_all_rows or (batches and each.needs_groups_of_rows)
        if refused and name in given(options):
            return spelled_option(name, each)
    return None


def given(options: RunOptions | PublishOptions) -> dict[str, object]:
    """Options with another value than their default, by name."""
    pairs = ((each.name, getattr(options, each.name), each.default) for each in dataclasses.fields(options))
    return {
        name: value
        for name, value, default in pairs
        if value is not default and not (isinstance(value, tuple | bool) and value == default)
    }


def types_of_options(owner: type[Any]) -> dict[str, object]:
    """Type of each option of a class, by name."""
    from sfumato.tables.schema import Schema

    return get_type_hints(owner, localns={"Schema": Schema})


T = TypeVar("T")


def options_from(owner: Callable[..., T], arguments: Mapping[str, Any]) -> T:
    """Options of a class among arguments: iterables become tuples, numbers of NumPy those of Python."""
    declared = [each for each in dataclasses.fields(cast(Any, owner)) if each.name in arguments]
    return owner(**{each.name: _plain(arguments[each.name], several=each.default == ()) for each in declared})


def _plain(value: Any, *, several: bool) -> Any:
    import numpy as np

    if several:
        return tuple(value)
    return value.item() if isinstance(value, np.number) else value
