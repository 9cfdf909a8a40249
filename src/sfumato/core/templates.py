"""Pages from templates that lie beside a module: every text escaped, and nothing named that is not given."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import jinja2

__all__ = ["page_template"]


@cache
def page_template(
    name: str, *packages: str, filters: tuple[tuple[str, Callable[..., str]], ...] = ()
) -> jinja2.Template:
    """A template by its name in the folder ``templates`` of the first of some packages that has it; kept once read."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader(package, "templates") for package in packages]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters.update(filters)
    return environment.get_template(name)
