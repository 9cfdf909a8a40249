"""breach: what an answer tells about a person, and what no answer can tell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.cli.options import FILE, check_plot, options

__all__ = ["breach"]

_CHANCE = click.FloatRange(min=0, max=1)


@click.command()
@click.option("--spec", required=True, type=FILE, help="Noise specification (TOML).")
@click.option(
    "--prior",
    metavar="FILE|uniform",
    default="uniform",
    show_default=True,
    help="What is believed before: CSV of value and probability, or of observed values.",
)
@click.option("--property", metavar="TEXT", help="For example 'x == 0' or 'x not in 200..800'.")
@click.option("--output", metavar="VALUE", help="The answer that is seen.  [default: the worst one]")
@click.option("--rho1", type=_CHANCE, help="Prior probability for the bound.  [default: that of the property]")
@click.option("--rho2", type=_CHANCE, help="Find the parameter that keeps rho1 from becoming this likely.")
@options(plot="Draw prior against worst posterior, .png or .svg.", overwrite="Replace a picture of that name.")
@verb
def breach(console: Console, spec: Path, plot: Path | None, overwrite: bool, **told: Any) -> None:
    """Compute what an answer tells about a property, and what no answer can tell under this noise.

    Gives amplification gamma, epsilon, the bound from rho1 to rho2, and the privacy that is left for one who knows the
    distribution.
    """
    import sfumato as sf
    from sfumato.laws.breach import draw_guarantee
    from sfumato.scale.sink import replacing_target

    form = check_plot(plot, spec, overwrite=overwrite)
    found = sf.breach(spec, **told)
    if plot is not None:
        with replacing_target(plot) as work:
            draw_guarantee(work, found.spec.gamma, found.found, form)
    console.say(found.describe())
    if plot is not None:
        console.say(f"Look at: {plot}")
    console.result(found.to_json())
