"""Parameters of all methods as options of a command, read off the mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rich_click as click

from sfumato.core.errors import OptionError

if TYPE_CHECKING:
    from sfumato.mechanisms.methods import Parameter

__all__ = ["CHOICES", "WORDS", "WithMethods", "parameters_told"]

WORDS: dict[str, str] = {
    "k": "Floor of every record's privacy level.  [default: 10 to 50, 2 with --level; classwise chooses; block 5]",
    "grouping": "How records are grouped.  [default: compact]",
    "effort": "How long the compact grouping searches.",
    "allow_level_1": "Let records ask for no protection at all.",
    "tolerance": "classwise: smallest group, as a share of the smallest class.  [default: 0.1]",
    "scores": "condense: groups and statistics of numbers as they are, or of their normal scores.",
    "response_weight": "Weight of the target in the distance between records.",
    "leaf": "chain: fewest people alike that a cell is drawn from; swap, downgrade: of a leaf.  [default: 50]",
    "order": "chain: a column to draw first, before the target; repeatable.",
    "kind": "noise: its kind.  [default: additive]",
    "law": "noise: its law.  [default: gaussian]",
    "size": "noise: its size, in standard deviations of each column.",
    "correlated": "noise: with the correlations of the data.",
    "enhance": "noise and geometry: share of the rows that get extra noise.",
    "enhance_size": "noise and geometry: size of that extra noise.",
    "enhance_laws": "noise and geometry: law of a column's extra noise, as in age=uniform; repeatable.",
    "groups": "laplace-pca: number of groups, instead of --k.",
    "b": "laplace-pca: noise in ranges; odds change by up to e^(1/b).  [default: 0.2]",
    "guarantee": "laplace-pca: what that factor is to bound.",
    "rho1": "laplace-pca: probability before the release.  [default: 0.001]",
    "rho2": "laplace-pca: highest probability after it, which chooses b.",
    "epsilon": "randomize: local privacy of each column that has no --spec.",
    "specs": "randomize: noise specification of a column, as in age=age.toml; repeatable.",
    "pass_missing": "randomize: release which cells are missing.",
    "allow_observed": "randomize: use domains that were read off the data.",
    "shifts": "translate, hybrid: range of a column's shift in its own units, as in age=-5,5; repeatable.",
    "deviations": "translate, hybrid: range of all other shifts, in standard deviations.  [default: -3 3]",
    "factors": "scale, hybrid: range of a column's factor, as in pay=0.5,0.9; repeatable.",
    "factor": "scale, hybrid: range of all other factors.  [default: 0.5 2]",
    "degrees": "rotate, hybrid: range of the angles.  [default: 0 360]",
    "units": "rotate, hybrid: how much of a column counts as one, as in pay=1000; repeatable.",
    "pairs": "rotate, hybrid: which columns are turned together.  [default: chain]",
    "pass_categories": "noise, geometry, swap: release categories as they are.",
    "within": "swap: between rows near in rank, or in a leaf of a tree that tells the target.  [default: window]",
    "window": "swap: how far apart in rank, in percent of a column's cells.  [default: 5]",
    "columns": "swap: a column to exchange; block: one that outsiders know; repeatable.  [default: see the docs]",
    "share": "sample: share of the people who are drawn.  [default: 0.1]",
    "coarsened": "aggregate: level of a column's hierarchy, as in born=3; repeatable.",
    "widths": "aggregate: width of the intervals of a column of numbers, as in age=10; repeatable.",
    "private": "downgrade: column of the label to hide.",
    "limit": "downgrade: bits that a rule may tell of it.  [default: 0.3]",
    "hidden": "downgrade: share of the people whose label is hidden.  [default: 1]",
}
"""What each parameter of a method is, in the order of the help."""

CHOICES = {
    "grouping": ("compact", "mdav", "paper", "modified", "holistic"),
    "effort": ("fast", "default", "thorough"),
    "scores": ("plain", "normal"),
    "kind": ("additive", "multiplicative"),
    "law": ("gaussian", "uniform", "laplace"),
    "guarantee": ("component", "record"),
    "pairs": ("chain", "disjoint"),
    "within": ("window", "leaves"),
}
"""Words that some parameters take."""

_ALSO = {"kind": ("--noise",), "specs": ("--spec",)}


class WithMethods(click.RichCommand):
    """Has an option for each parameter of each method, read off the mechanisms when the verb is run."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Options of the verb, those of the methods among them."""
        from sfumato.mechanisms.methods import all_parameters

        if not any(param.name == "k" for param in self.params):
            derived = [_option(all_parameters()[name]) for name in WORDS]
            first = next(place for place, param in enumerate(self.params) if param.name == "key")
            self.params[first:first] = derived
        return super().get_params(ctx)


def _option(parameter: Parameter) -> click.Option:
    name = parameter.name
    spelt = (f"--{name.replace('_', '-')}", *_ALSO.get(name, ()), name)
    if parameter.kind is bool:
        return click.Option(spelt, is_flag=True, help=WORDS[name])
    if parameter.by_column:
        value = (
            "FILE" if name == "specs" else "LAW" if parameter.kind is str else ("N", "LOW,HIGH")[parameter.values - 1]
        )
        return click.Option(spelt, multiple=True, metavar=f"COLUMN={value}", help=WORDS[name])
    if parameter.several:
        return click.Option(spelt, multiple=True, metavar="COL", help=WORDS[name])
    choices = click.Choice(CHOICES[name]) if name in CHOICES else parameter.kind
    metavar = "LOW HIGH" if parameter.width > 1 else None
    return click.Option(spelt, type=choices, nargs=parameter.width, metavar=metavar, help=WORDS[name])


def parameters_told(told: dict[str, Any]) -> dict[str, Any]:
    """Parameters of a method that were told; those of columns read, and 0 is a number that was told."""
    from sfumato.mechanisms.methods import all_parameters

    chosen = {name: told[name] for name in WORDS if told[name] not in (None, ()) and told[name] is not False}
    for name, given in chosen.items():
        if all_parameters()[name].by_column:
            chosen[name] = tuple(_of_column(all_parameters()[name], text) for text in given)
    return chosen


def _of_column(parameter: Parameter, text: str) -> tuple[Any, ...]:
    """Read COLUMN=VALUE; the file of a specification as text, so that a recipe can repeat it."""
    from sfumato.core.laws.spec import NoiseSpec

    name, (column, _, value) = parameter.name, text.partition("=")
    if name == "specs":
        if not column or not value:
            raise OptionError("--spec takes a column and a file, as in --spec age=age.toml; write both")
        return column, NoiseSpec.read(value).canonical
    try:
        values = tuple(parameter.kind(each) for each in value.split(","))
    except ValueError:
        values = ()
    if not column or len(values) != parameter.values or "" in values:
        shown = WORDS[name].rpartition("as in ")[2].partition(";")[0]
        raise OptionError(f"--{name.replace('_', '-')} takes a column and its value, as in {shown}; write both")
    return column, *values
