"""Facts about transformations by a secret key."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core.facts import Context, Enhanced, Fact, Refused, Statements, are_unique, counted

__all__ = [
    "TargetMoved",
    "Transformed",
]

_PRIVATE = "The release is differentially private."


@dataclass(frozen=True)
class Transformed(Fact):
    """The numbers of these columns were moved by a secret key, in the same way for every row.

    ``operations`` are kinds (add, mult, rotate), never terms; ``known_rows`` original rows suffice to undo it.
    ``exact_digits`` if the moved numbers are written with all their digits, and not rounded so that these hide the key.
    """

    methods = ("translate", "scale", "rotate", "hybrid")

    operations: tuple[str, ...]
    columns: tuple[str, ...]
    known_rows: int
    exact_digits: bool = False

    def claims(self, context: Context) -> Statements:
        """State how many known rows undo a transformation, and refuse that it protects."""
        extra = context.one(Enhanced)
        noisy, drawn = "", "Nothing was drawn for single rows: one secret key transforms all of them alike."
        if extra is not None:
            noisy = (
                f" The {counted(extra.rows, 'row', 'rows')} with additional noise do not count among these, and keep "
                "that noise."
            )
            drawn = "Noise was drawn for some rows only, and it is scaled by the spread of the data."
        yield Refused(
            f"The transformation ({', '.join(self.operations)}) hides the numbers of "
            f"{counted(len(self.columns), 'column', 'columns')} from a recipient.",
            f"It is reversible by anyone who knows {counted(self.known_rows, 'independent row', 'independent rows')} "
            "and the position of each in the release, as far as rounding allows. Fewer rows, public figures, or the "
            f"digits and distribution of the numbers may suffice.{noisy}",
        )
        if self.exact_digits:
            yield Refused(
                "The digits of the transformed numbers reveal nothing about the key.",
                "The numbers are released unrounded (exact_digits), so their spacing in one column shows its factor. "
                "Numbers of a known step also show a shift or an angle.",
            )
        yield Refused(_PRIVATE, drawn)

    def check(self) -> bool:
        return are_unique(self.columns) and bool(self.operations) and set(self.operations) <= {"add", "mult", "rotate"}

    def fits(self, context: Context) -> bool:
        mechanism = context.mechanism
        return (
            set(self.operations) <= set(mechanism.operations)
            and self.exact_digits == mechanism.exact_digits
            and bool(mechanism.enhance) == context.has(Enhanced)
        )

    def summary(self, context: Context, file_format: str) -> tuple[int, str]:
        known = "1 row" if self.known_rows == 1 else f"{self.known_rows} rows"
        return 0, f"Outsourcing obfuscation: anyone who knows {known} can reverse it."


@dataclass(frozen=True)
class TargetMoved(Fact):
    """The target, a column of numbers, was moved by the key like the others."""

    methods = ("translate", "scale", "rotate", "hybrid")

    column: str

    def claims(self, context: Context) -> Statements:
        """Refuse that a model of a transformed target predicts in its original units."""
        yield Refused(
            f"A model of {self.column!r} trained on this table predicts it in its original units.",
            f"The key transformed {self.column!r} like every other number. Only the owner of the key can convert "
            "predictions back.",
        )

    def agrees(self, context: Context) -> bool:
        return all(self.column in each.columns for each in context.all(Transformed))

    def fits(self, context: Context) -> bool:
        return context.has(Transformed)

    def summary(self, context: Context, file_format: str) -> tuple[int, str]:
        return 3, f"The target {self.column!r} was transformed like every other number; --public keeps it as is."
