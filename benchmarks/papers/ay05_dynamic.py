"""What the AY05 benchmark concludes of dynamic condensation: the paper's claims beside the measured curves."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.ay05_report import ALPHAS, CLEARLY, CLOSE, MOST, Curves, standard_error

__all__ = ["DYNAMIC", "dynamic_points", "dynamic_verdicts"]

DYNAMIC: dict[str, Literal["paper", "strict"]] = {"dynamic_": "paper", "strictly_": "strict"}
"""Prefix of the measured numbers, and the split test."""

SMALL, MIDDLE, LARGE = slice(0, 3), slice(4, 8), slice(8, 12)  # of the levels; set before anything was measured
WHERE = {"all": slice(None), "small": SMALL, "middle": MIDDLE, "large": LARGE}


def _levels(where: slice) -> str:
    chosen = ALPHAS[where]
    return f"a = {chosen[0]} to {chosen[-1]}"


def _ahead(c: Curves, key: str, where: slice, prefix: str = "dynamic_") -> tuple[float, float]:
    """Give by how much dynamic is ahead of static over some levels, and the standard error of that."""
    ahead: NDArray[np.float64] = (c.measured[f"{prefix}{key}"] - c.measured[key])[:, where].mean(axis=1)
    return float(ahead.mean()), float(standard_error(ahead))


def _word(ahead: float, error: float) -> str:
    return "clearly ahead" if ahead > CLEARLY * error else "clearly behind" if ahead < -CLEARLY * error else "level"


def _compare(curves: list[Curves], key: str, where: slice, digits: int, prefix: str = "dynamic_") -> str:
    parts = []
    for c in curves:
        ahead, error = _ahead(c, key, where, prefix)
        parts.append(f"{c.title} {ahead:+.{digits}f} (se {error:.{digits}f}, {_word(ahead, error)})")
    return ", ".join(parts)


def _verdict(curves: list[Curves], key: str) -> str:
    found = [_ahead(c, key, WHERE["all"]) for c in curves]
    behind, clear = sum(a < 0 for a, _ in found), sum(a < -CLEARLY * e for a, e in found)
    word = "holds in the means only" if behind > MOST * len(curves) else "does not hold"
    return (
        f"{'holds' if clear > MOST * len(curves) else word} (behind in {behind} of {len(curves)}, clearly in {clear})"
    )


def accuracy_behind(curves: list[Curves]) -> str:
    """Claim (vi): dynamic accuracy is a little below static, the exception being Pima with large groups."""
    pima = next(c for c in curves if c.name == "pima_diabetes")
    ahead, error = _ahead(pima, "accuracy", LARGE)
    exception = "holds" if ahead > CLEARLY * error else "not clear"
    return (
        f"(vi) Dynamic accuracy is below static: {_verdict(curves, 'accuracy')}; dynamic minus static over all levels: "
        f"{_compare(curves, 'accuracy', WHERE['all'], 3)}; over {_levels(SMALL)}: "
        f"{_compare(curves, 'accuracy', SMALL, 3)}; over {_levels(LARGE)}: {_compare(curves, 'accuracy', LARGE, 3)}. "
        f"Pima as the exception, dynamic better for large groups: {exception} ({ahead:+.3f}, se {error:.3f})."
    )


def accuracy_close(curves: list[Curves]) -> str:
    """Claim (vii): dynamic condensation is almost as good as the original in all cases."""
    gain = np.array([(c.measured["dynamic_accuracy"] - c.baseline[:, None]).mean(axis=0) for c in curves])
    near = gain >= -CLOSE
    lowest = ", ".join(f"{c.title} {row.min():+.3f}" for c, row in zip(curves, gain, strict=True))
    return (
        f"(vii) Dynamic accuracy is close to that of the original in all cases: "
        f"{'holds' if near.all() else 'does not hold'} ({int(near.sum())} of {near.size} points at most "
        f"{100 * CLOSE:.0f} points of accuracy below; lowest: {lowest})."
    )


def mu_behind(curves: list[Curves]) -> str:
    """Claim (viii): static mu is better than dynamic, the exception being Ionosphere."""
    parts = [
        f"{name}: {_verdict(curves, key)}; {_compare(curves, key, WHERE['all'], 4)}"
        for key, name in (("mu_raw", "raw"), ("mu_std", "standardized"))
    ]
    hint = "(viii) Dynamic mu is below static, save on Ionosphere; dynamic minus static over all levels"
    return f"{hint}: {'. '.join(parts)}."


def mu_drops(curves: list[Curves]) -> str:
    """Claim (ix): dynamic mu drops for small groups."""
    parts = []
    for key, name in (("dynamic_mu_raw", "raw"), ("dynamic_mu_std", "standardized")):
        told, drops = [], 0
        for c in curves:
            drop = c.measured[key][:, SMALL].mean(axis=1) - c.measured[key][:, MIDDLE].mean(axis=1)
            mean, error = float(drop.mean()), float(standard_error(drop))
            drops += mean < -CLEARLY * error
            told.append(f"{c.title} {mean:+.4f} (se {error:.4f})")
        word = "holds" if drops > MOST * len(curves) else "does not hold"
        parts.append(f"{name} {word} (clearly in {drops} of {len(curves)}; {', '.join(told)})")
    return f"(ix) Dynamic mu drops for small groups, {_levels(SMALL)} against {_levels(MIDDLE)}: {'; '.join(parts)}."


def mu_high(curves: list[Curves]) -> str:
    """Claims (iii) and (iv) for dynamic condensation: mu above 0.95 in most cases."""
    parts = []
    for key, name in (("dynamic_mu_raw", "raw"), ("dynamic_mu_std", "standardized")):
        means = np.array([c.mean(key) for c in curves])
        lowest = ", ".join(f"{c.title} {row.min():.3f}" for c, row in zip(curves, means, strict=True))
        parts.append(f"{name} at {int((means > 0.95).sum())} of {means.size} points (lowest mean: {lowest})")
    return f"(x) Dynamic mu above 0.95 in most cases: {'; '.join(parts)}."


def strictly(curves: list[Curves]) -> str:
    """Say what the strict split test costs; it is not in the paper."""
    size, loose = ([f"{c.title} {c.mean(key)[-1]:.1f}" for c in curves] for key in _SIZES)
    short = ", ".join(f"{c.title} {100 * c.measured['dynamic_short'].mean():.0f} %" for c in curves)
    worst = 100 * max(float(c.measured["strictly_short"].max()) for c in curves)
    pending = ", ".join(f"{c.title} {100 * c.measured['dynamic_pending'].mean():.2f} %" for c in curves)
    return (
        "Split test. By the paper's test these shares of groups are smaller than the highest level that they stem "
        "from: "
        f"{short}; by the strict test {worst:.0f} % at most. Mean group size at a = {ALPHAS[-1]}: paper "
        f"{', '.join(loose)}; strict {', '.join(size)}. Strict minus static accuracy over all levels: "
        f"{_compare(curves, 'accuracy', WHERE['all'], 3, 'strictly_')}; mu standardized: "
        f"{_compare(curves, 'mu_std', WHERE['all'], 4, 'strictly_')}. Records that wait at the end, and are not "
        f"released, by the paper's test: {pending}."
    )


_SIZES = ("strictly_group_size", "dynamic_group_size")


def dynamic_verdicts(curves: list[Curves]) -> list[str]:
    """Judge every claim of the paper about dynamic condensation."""
    judges = (accuracy_behind, accuracy_close, mu_behind, mu_drops, mu_high, strictly)
    return [judge(curves) for judge in judges]


def dynamic_points(curves: list[Curves]) -> str:
    """Write some points of the dynamic curves as a table."""
    head = (
        "| table | a | mean group size | accuracy static | dynamic | dynamic, strict | mu standardized static | "
        "dynamic | dynamic, strict |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
    )
    rows = []
    for c in curves:
        for at in (0, 3, 6, 9, 11):
            cells = [f"{c.mean(f'{prefix}accuracy')[at]:.3f}" for prefix in ("", *DYNAMIC)]
            cells += [f"{c.mean(f'{prefix}mu_std')[at]:.4f}" for prefix in ("", *DYNAMIC)]
            size = f"{c.mean('dynamic_group_size')[at]:.1f}"
            rows.append(f"| {c.title} | {ALPHAS[at]} | {size} | {' | '.join(cells)} |")
    return head + "\n".join(rows) + "\n"
