"""How a stream begins: its options, declared once for Python and the command line."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sfumato.core.arguments import Panel, option
from sfumato.core.errors import OptionError

if TYPE_CHECKING:
    from sfumato.engines.outcome import Recipe
    from sfumato.tables.files import FileForm
    from sfumato.tables.schema import Schema

__all__ = ["StreamOptions"]

_OF_RECIPE = ("schema", "level", "k", "target", "seed", "missing", "strata", "rare", "tails")


@dataclass(frozen=True, kw_only=True, repr=False)
class StreamOptions:
    """How a stream begins.

    Parameters
    ----------
    schema : Schema or path, optional
        What it says of domains binds every row of the stream; what it leaves open does not, except that a category must
        be listed or occur in the first records. By default proposed from the first records, whose bounds bind nothing.
    target, level, identifiers
        As in `sfumato.sanitize`.
    strata : str, optional
        A column of categories, the target for example: groups never hold records of two of them, which makes its value
        certain for each group. A category without a group gets its first as soon as enough of its records wait.
    k : int, optional
        The floor of all levels; by default 10, or 2 where ``level`` says what records ask for.
    grouping : str
        How the first records are grouped: ``"compact"`` searches for groups of low sum of squares, ``"paper"`` is
        ConstructGroups [AY05, fig. 2].
    split : {"strict", "paper"}
        When groups split; see `sfumato.methods.condense.maintainer.Maintainer`.
    init_number : int, optional
        Ingest only this number of rows, from the first on.
    pending : {"memory", "encrypted"}
        How records are kept that wait for a group large enough: nowhere but in memory, or in the state under a key.
    pending_key : path, optional
        The key file, of at least 32 bytes and mode 600.
    pending_limit : int
        Records at most that wait.
    measure_rows : int
        Keep an encrypted sample of at most this number of ingested rows, to measure releases, and at most as many
        that are never ingested, as the control group; 0 keeps none.
    measure_key : path, optional
        The key file of these, of at least 32 bytes and mode 600.
    measure_share : float
        Share of all rows that is not taken in, until there are as many.
    person : str, optional
        Column that identifies the person of a row: dropped, and levels count persons.
    person_rows : int
        Rows of a person that are taken in at most; a group needs as many times as many rows as persons.
    person_key : path, optional
        The key file that persons are known under, of at least 32 bytes and mode 600; the state holds keyed digests.
    rare : {"pool", "lift", "keep"}, optional
        What becomes of categories that fewer than k persons of the stream hold when rows leave; by default as "lift",
        but a rare class of the target stops the publication.
    tails : {"code", "keep"}, optional
        Whether numbers and dates beyond those of k persons are coded to a cut-off, before records join their groups and
        in what is released; "code" by default.
    batch_rows : int
        Rows of a batch; does not change while the stream lives.
    source : str
        Name of the source that the rows come from, if sources may hold the same rows.
    seed : int, optional
        Makes a dry run.
    encoding, sheet, header_row : optional
        How a file of the first records is read, as in `sfumato.inspect`.
    form : FileForm, optional
        How published tables are written, by default as CSV.
    recipe : Recipe or path, optional
        Of an earlier stream: its schema, levels, k, grouping, split and seed are taken; decimals are those of the new
        first records.
    """

    schema: Schema | str | Path | None = None
    target: str | None = None
    level: str | int | None = None
    strata: str | None = None
    identifiers: Iterable[str] = ()
    missing: Iterable[str] = ()
    k: int | None = option(
        None, "Minimum group size of all records.  [default: 10, 2 with --level]", Panel.FIRST, least=2
    )
    grouping: str = option("compact", "Grouping of the first rows.", choices=("compact", "paper"))
    split: str = option(
        "strict",
        "Split groups never below the highest privacy level inside, or by the average level.",
        choices=("strict", "paper"),
    )
    init_number: int | None = option(
        None, "Number of rows of FILE to start from.  [default: all]", Panel.INPUT, least=1
    )
    pending: str = option(
        "memory",
        "Keep pending records in memory only, or encrypted in the state.",
        Panel.PRIVACY,
        choices=("memory", "encrypted"),
    )
    pending_key: str | Path | None = option(
        None,
        "Key file for pending records, with --pending encrypted: 32 bytes or more, mode 600.",
        Panel.PRIVACY,
        path=True,
    )
    pending_limit: int = option(10_000, "Largest number of pending records.", Panel.PRIVACY, least=0)
    measure_rows: int = option(
        0,
        "Keep at most this many rows, encrypted, to measure by, and hold out as many people.  [default: none]",
        Panel.MEASURING,
        least=1,
    )
    measure_key: str | Path | None = option(
        None, "Key file of rows kept for measuring: 32 bytes or more, mode 600.", Panel.MEASURING, path=True
    )
    measure_share: float = option(
        0.1, "Share of rows that is held out, with --measure-rows.", Panel.MEASURING, least=0.0, most=0.5
    )
    person: str | None = None
    person_rows: int = option(1, "Largest number of rows per person, with --person.", Panel.COLUMNS, least=1)
    person_key: str | Path | None = option(
        None, "Key file for hashing person identifiers: 32 bytes or more, mode 600.", Panel.COLUMNS, path=True
    )
    rare: str | None = None
    tails: str | None = None
    batch_rows: int = option(5_000, "Rows per batch.", Panel.ENGINE, least=1)
    source: str = option(
        "", "Name of the source, if two sources may contain the same rows.", Panel.INPUT, metavar="NAME"
    )
    seed: int | None = None
    encoding: str | None = None
    sheet: str | None = None
    header_row: int | None = None
    form: FileForm | None = None
    recipe: Recipe | str | Path | None = None

    @staticmethod
    def named_types() -> Mapping[str, type]:
        """Types of the fields that are loaded when a stream begins, not for its help."""
        from sfumato.engines.outcome import Recipe
        from sfumato.tables.files import FileForm
        from sfumato.tables.schema import Schema

        return {"FileForm": FileForm, "Recipe": Recipe, "Schema": Schema}

    def __post_init__(self) -> None:
        from sfumato.tables.tails import check_rare_treatment, check_tails

        object.__setattr__(self, "identifiers", tuple(self.identifiers))
        object.__setattr__(self, "missing", tuple(self.missing))
        check_rare_treatment(self.rare)
        if check_tails(self.tails) == "smooth":
            raise OptionError("a stream codes tails or keeps them; choose --tails code or keep")
        if (self.pending == "encrypted") != (self.pending_key is not None):
            raise OptionError("a key goes with waiting records that are encrypted; give --pending encrypted with a key")
        if (self.measure_rows > 0) != (self.measure_key is not None):
            raise OptionError(
                "rows are kept for measuring under a key; give --measure-rows with --measure-key, or none"
            )

    @property
    def floor(self) -> int:
        """The floor of all levels, in persons."""
        return self.k if self.k is not None else 10 if self.level is None else 2

    @property
    def replayed(self) -> StreamOptions:
        """The options with those that a recipe repeats."""
        from sfumato.engines.outcome import Recipe

        if self.recipe is None:
            return self
        given: dict[str, object] = {name: getattr(self, name) for name in _OF_RECIPE}
        given |= {"identifier": self.identifiers, "person-rows": self.person_rows if self.person_rows > 1 else None}
        if double := [name for name, value in given.items() if value not in (None, ())]:
            raise OptionError(f"--recipe already sets --{double[0]}; edit the recipe or leave one out")
        recipe = self.recipe if isinstance(self.recipe, Recipe) else Recipe.load(self.recipe)
        k, grouping, split, person_rows = _replayed(recipe)
        again = {name: getattr(recipe.options, name) for name in ("level", "seed", "rare", "strata", "tails")}
        return dataclasses.replace(
            self, schema=recipe.schema, k=k, grouping=grouping, split=split, person_rows=person_rows, **again
        )


def _replayed(recipe: Recipe) -> tuple[int, str, str, int]:
    """What the recipe of a stream says: k, grouping, split, and rows of a person that are taken in."""
    parameters = recipe.parameters
    if recipe.method != "stream":
        raise OptionError(f"the recipe is of the method {recipe.method!r} and not of a stream; run it with sanitize")
    rows = parameters.get("person_rows", 1)
    if not all(isinstance(each, int) and not isinstance(each, bool) for each in (parameters.get("k"), rows)) or not all(
        isinstance(parameters.get(name), str) for name in ("grouping", "split")
    ):
        raise OptionError(
            "the recipe lacks k, grouping or split of a stream, or has rows of persons that are no number; use the one "
            "that stream publish wrote"
        )
    return parameters["k"], parameters["grouping"], parameters["split"], rows
