"""breach: what an answer tells about a person, and what no answer can tell."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from sfumato.cli.console import Console, verb
from sfumato.errors import OptionError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sfumato.laws.breach import Breach
    from sfumato.laws.solve import Solution
    from sfumato.laws.spec import NoiseSpec

__all__ = ["breach"]

_CHANCE = click.FloatRange(min=0, max=1)


@click.command()
@click.option("--spec", "spec_file", required=True, type=click.Path(path_type=Path), help="Noise specification (TOML).")
@click.option(
    "--prior",
    "prior_name",
    metavar="FILE|uniform",
    default="uniform",
    show_default=True,
    help="What is believed before: CSV of value and probability, or of observed values.",
)
@click.option("--property", "about", metavar="TEXT", help="For example 'x == 0' or 'x not in 200..800'.")
@click.option("--output", "answer", metavar="VALUE", help="The answer that is seen.  [default: the worst one]")
@click.option("--rho1", type=_CHANCE, help="Prior probability for the bound.  [default: that of the property]")
@click.option("--rho2", type=_CHANCE, help="Find the parameter that keeps rho1 from becoming this likely.")
@click.option("--plot", type=click.Path(path_type=Path), help="Draw prior against worst posterior, .png or .svg.")
@click.option("--overwrite", is_flag=True, help="Replace a picture of that name.")
@verb
def breach(
    console: Console,
    spec_file: Path,
    prior_name: str,
    about: str | None,
    answer: str | None,
    rho1: float | None,
    rho2: float | None,
    plot: Path | None,
    overwrite: bool,
) -> None:
    """Compute what an answer tells about a property, and what no answer can tell under this noise.

    Gives amplification gamma, epsilon, the bound from rho1 to rho2, and the privacy that is left for one who knows the
    distribution.
    """
    from sfumato.laws.breach import breach as compute
    from sfumato.laws.solve import solve
    from sfumato.laws.spec import NoiseSpec

    if answer is not None and about is None:
        raise OptionError("--output says what was seen, but not what is asked; add --property")
    if rho2 is not None and rho1 is None and about is None:
        raise OptionError("--rho2 needs a --rho1, or a --property whose prior is taken")
    form = None if plot is None else _check_plot(plot, spec_file, overwrite=overwrite)
    spec = NoiseSpec.read(spec_file)
    prior = _prior(prior_name, spec, needed=about is not None)
    seen = None if answer is None else _answer(answer, spec)
    found = None if about is None or prior is None else compute(spec, prior, about, seen)
    asked = found.prior if rho1 is None and found is not None else rho1
    solution = None if rho2 is None or asked is None else solve(spec, asked, rho2)
    entropy = None if prior is None else _entropy(spec, prior)
    if plot is not None and form is not None:
        _draw(plot, form, spec, found)
    for line in _sentences(spec, found, asked, solution, entropy):
        console.say(line)
    if plot is not None:
        console.say(f"Look at: {plot}")
    console.result({**_document(spec, found, asked, solution), "entropy": entropy})


def _document(spec: NoiseSpec, found: Breach | None, rho1: float | None, solution: Solution | None) -> dict[str, Any]:
    from sfumato.laws.amplification import downward_bound, upward_bound
    from sfumato.laws.breach import verdict

    document: dict[str, Any] = {
        "spec": spec.digest,
        "property": None if found is None else found.about,
        "prior": None if found is None else found.prior,
        "posterior": None if found is None else found.posterior,
        "output": None if found is None else found.output,
        "worst": None,
        "gamma": _finite(spec.gamma),
        "epsilon": _finite(spec.epsilon),
        "rho1": rho1,
        "rho2_bound": None if rho1 is None else upward_bound(spec.gamma, rho1),
        "rho2_bound_down": None if rho1 is None else downward_bound(spec.gamma, rho1),
        "verdict": verdict(spec, 0.01 if rho1 is None else rho1),
        "solution": None,
    }
    if found is not None:
        document["worst"] = {
            "raising": {"output": found.raising, "posterior": found.worst.highest},
            "lowering": {"output": found.lowering, "posterior": found.worst.lowest},
        }
    if solution is not None:
        document["solution"] = {key: getattr(solution, key) for key in ("gamma", "parameter", "value", "words")}
    return document


def _entropy(spec: NoiseSpec, prior: NDArray[np.float64]) -> dict[str, float]:
    """Give the uncertainty that is left, and what it would be for one who does not know the distribution."""
    from sfumato.laws.entropy import uncertainty
    from sfumato.laws.priors import uniform_prior

    left = uncertainty(spec.operator, prior)
    return {
        "before": left.before,
        "after": left.after,
        "privacy": left.privacy,
        "nominal_privacy": uncertainty(spec.operator, uniform_prior(spec.domain)).privacy,
        "loss": left.loss,
    }


def _sentences(
    spec: NoiseSpec,
    found: Breach | None,
    rho1: float | None,
    solution: Solution | None,
    entropy: dict[str, float] | None,
) -> list[str]:
    from sfumato.laws.breach import percent, verdict

    lines = [spec.describe()]
    if found is not None:
        lines.append(f"Before: {found.about} is {percent(found.prior)} likely.")
        lines.append(f"After the answer {found.output}: {percent(found.posterior)}.")
        lines.append(
            f"The answer that raises it most is {found.raising} ({percent(found.worst.highest)}), the one that lowers "
            f"it most {found.lowering} ({percent(found.worst.lowest)})."
        )
        if found.certain:
            lines.append("Some answers prove the property, or its opposite.")
    told = "infinite" if math.isinf(spec.gamma) else f"{spec.gamma:.6g}"
    epsilon = "infinite" if math.isinf(spec.epsilon) else f"{spec.epsilon:.4g}"
    lines.append(
        f"Amplification gamma is {told}, epsilon {epsilon}. Verdict: {verdict(spec, 0.01 if rho1 is None else rho1)}."
    )
    if solution is not None:
        lines.append(f"Wanted: gamma of at most {solution.gamma:.4g}. {solution.words}")
    return [*lines, _left(entropy)]


def _left(entropy: dict[str, float] | None) -> str:
    if entropy is None:
        return "Privacy left: not computed, there are too many values to look at them one by one."
    before, left = _many(math.exp2(entropy["before"])), _many(entropy["privacy"])
    return (
        f"Privacy left: for one who knows the distribution, the value is as uncertain as one of {before} equally "
        f"likely ones before the answer and one of {left} after it ({_many(entropy['nominal_privacy'])} for one who "
        "does not know it)."
    )


def _many(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _finite(number: float) -> float | None:
    return None if math.isinf(number) else number


def _prior(name: str, spec: NoiseSpec, *, needed: bool) -> NDArray[np.float64] | None:
    """Give the prior; none where nobody asks for it and the domain is too large to write it out."""
    from sfumato.laws.entropy import can_be_counted
    from sfumato.laws.priors import read_prior, uniform_prior

    if name != "uniform":
        return read_prior(name, spec.domain)
    return uniform_prior(spec.domain) if needed or can_be_counted(spec.operator) else None


def _answer(text: str, spec: NoiseSpec) -> Any:
    from sfumato.laws.domains import Labels

    if isinstance(spec.released, Labels):
        return text
    try:
        return float(text)
    except ValueError:
        raise OptionError("--output must be a number under this specification") from None


def _check_plot(path: Path, source: Path, *, overwrite: bool) -> str:
    from sfumato.scale.sink import check_target

    form = path.suffix.lower().lstrip(".")
    if form not in ("png", "svg"):
        raise OptionError("--plot must end in .png or .svg")
    check_target(path, source, overwrite=overwrite)
    return form


def _draw(path: Path, form: str, spec: NoiseSpec, found: Breach | None) -> None:
    from sfumato.laws.picture import draw_guarantee
    from sfumato.scale.sink import replacing_target

    with replacing_target(path) as work:
        draw_guarantee(work, spec.gamma, found, form)
