"""The options that say which method runs and with what parameters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import rich_click as click

from sfumato.errors import OptionError

if TYPE_CHECKING:
    from sfumato.mechanism import Mechanism
    from sfumato.recipe import Recipe

__all__ = ["METHOD_OPTIONS", "check_key", "mechanism_of", "method_options"]

F = TypeVar("F", bound=Callable[..., Any])

_KEYED = ("translate", "scale", "rotate", "hybrid")
_GROUPED = ("condense", "condense-paper", "classwise")
_PARAMETERS = {
    "grouping": "grouping",
    "effort": "effort",
    "pass_categories": "pass_categories",
    "noise": "kind",
    "law": "law",
    "size": "size",
    "correlated": "correlated",
    "enhance": "enhance",
    "enhance_size": "enhance_size",
    "groups": "groups",
    "response_weight": "response_weight",
    "b": "b",
    "guarantee": "guarantee",
    "rho1": "rho1",
    "rho2": "rho2",
    "epsilon": "epsilon",
    "spec": "specs",
    "pass_missing": "pass_missing",
    "allow_observed": "allow_observed",
    "k": "k",
    "allow_level_1": "allow_level_1",
}
METHOD_OPTIONS = ("method", *_PARAMETERS)
"""Options that a recipe says already."""

_OPTIONS = (
    click.option(
        "--method",
        metavar="NAME",
        help="condense (default), condense-paper, classwise; noise, laplace-pca, randomize; "
        "translate, scale, rotate, hybrid.",
    ),
    click.option(
        "--k",
        type=int,
        help="Floor of every record's privacy level.  [default: 10, or 2 with --level; classwise chooses, 5 or more]",
    ),
    click.option(
        "--grouping",
        type=click.Choice(["compact", "mdav", "modified", "holistic"]),
        help="How records are grouped.  [default: compact]",
    ),
    click.option(
        "--effort", type=click.Choice(["fast", "default", "thorough"]), help="How long the compact grouping searches."
    ),
    click.option("--allow-level-1", is_flag=True, help="Let records ask for no protection at all."),
    click.option("--noise", type=click.Choice(["additive", "multiplicative"]), help="Kind of noise."),
    click.option("--law", type=click.Choice(["gaussian", "uniform", "laplace"]), help="Law of the noise."),
    click.option("--size", type=float, help="Size of the noise, in standard deviations of each column."),
    click.option("--correlated", is_flag=True, help="Noise with the correlations of the data."),
    click.option("--enhance", type=float, metavar="SHARE", help="Share of the rows that get extra noise."),
    click.option("--enhance-size", type=float, help="Size of that extra noise."),
    click.option("--groups", type=int, help="laplace-pca: number of groups, instead of --k."),
    click.option("--response-weight", type=float, help="Weight of the target in the distance between records."),
    click.option("--b", type=float, help="laplace-pca: noise in ranges; odds change by up to e^(1/b).  [default: 0.2]"),
    click.option(
        "--guarantee", type=click.Choice(["component", "record"]), help="laplace-pca: what that factor is to bound."
    ),
    click.option("--rho1", type=float, help="laplace-pca: probability before the release.  [default: 0.001]"),
    click.option("--rho2", type=float, help="laplace-pca: highest probability after it, which chooses b."),
    click.option("--epsilon", type=float, help="randomize: local privacy of each column that has no --spec."),
    click.option(
        "--spec", multiple=True, metavar="COLUMN=FILE", help="randomize: noise specification of a column; repeatable."
    ),
    click.option("--pass-missing", is_flag=True, help="randomize: release which cells are missing."),
    click.option("--allow-observed", is_flag=True, help="randomize: use domains that were read off the data."),
    click.option("--key", "key_file", type=click.Path(path_type=Path), help="Key of a geometric method."),
    click.option(
        "--new-key", "new_key_file", type=click.Path(path_type=Path), help="Draw a key and write it here (mode 600)."
    ),
    click.option("--pass-categories", is_flag=True, help="noise and geometry: release categories as they are."),
)


def method_options(function: F) -> F:
    """Add the options that choose a method."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def mechanism_of(recipe: Recipe | None, options: dict[str, Any]) -> Mechanism:
    """Build the mechanism that was told, by a recipe or by options."""
    from sfumato.methods import DEFAULT_METHOD, make_mechanism

    if recipe is None:
        method = options["method"] or DEFAULT_METHOD
        parameters = _parameters(method, options)
    else:
        method, parameters = recipe.method, dict(recipe.parameters)
    if options["key_file"] is not None:
        from sfumato.geometry.key import Key

        parameters["key"] = Key.load(options["key_file"])
    return make_mechanism(method, parameters)


def _parameters(method: str, options: dict[str, Any]) -> dict[str, Any]:
    """Gather what was told; a parameter that the method does not have is refused by `make_mechanism`."""
    told = {name: options[option] for option, name in _PARAMETERS.items() if _is_told(options[option])}
    if "specs" in told:
        told["specs"] = tuple(map(_spec_of_column, told["specs"]))
    if method in _GROUPED:
        told["k"] = _floor(method, options)
    return told


def _is_told(value: Any) -> bool:
    """Say whether an option was given; 0 is a number that was, and the method says what it thinks of it."""
    return value is not None and value is not False and value != ()


def _spec_of_column(text: str) -> tuple[str, str]:
    """Read COLUMN=FILE; the file as text, so that a recipe can repeat it."""
    from sfumato.laws.spec import NoiseSpec

    column, _, file = text.partition("=")
    if not column or not file:
        raise OptionError("--spec takes a column and a file, as in --spec age=age.toml; write both")
    return column, NoiseSpec.read(file).canonical


def _floor(method: str, options: dict[str, Any]) -> int | None:
    """Choose k where none is given; class-wise condensation chooses its own from the classes."""
    if options["k"] is not None:
        return int(options["k"])
    if method == "classwise":
        return None
    if options["level"] is None and options["schema_file"] is None:
        return 10
    return 1 if options["allow_level_1"] else 2 if options["level"] is not None else 10


def check_key(output: Path, recipe: Recipe | None, options: dict[str, Any]) -> None:
    """Refuse a key that is lacking, doubled, in the wrong place or of no use before the work is done."""
    from sfumato.geometry.keyfile import check_key_path

    method = options["method"] if recipe is None else recipe.method
    given = [name for name in ("key_file", "new_key_file") if options[name] is not None]
    if method not in _KEYED:
        if given:
            raise OptionError(f"only the methods {', '.join(_KEYED)} take a key; leave it out")
        return
    if len(given) != 1:
        raise OptionError(f"the method {method!r} takes either --key FILE or --new-key FILE; give one of them")
    if options["new_key_file"] is not None:
        check_key_path(options["new_key_file"], apart_from=output)
    elif output.resolve() in options["key_file"].resolve().parents:
        raise OptionError("the key lies in the output folder, part of which leaves; keep it elsewhere")
