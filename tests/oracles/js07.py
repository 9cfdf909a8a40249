"""Chapter 4 of JS07 transcribed value by value, with the start of errata JS07.1 and the stop of errata JS07.3.

Written from the paper: a sum over the n randomized values, a sum over the intervals, no arrays. Slow on purpose. The
discrete rule f(X | Z) is the same with the values of the domain in place of intervals and P[z | x] in place of
f_Y(z - x).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Interval = tuple[float, float]


def midpoint(interval: Interval) -> float:
    """m(I): the midpoint."""
    return (interval[0] + interval[1]) / 2


def interval_of(value: float, intervals: Sequence[Interval]) -> Interval:
    """Give the interval that a value lies in, closed below."""
    return next(interval for interval in intervals if interval[0] <= value < interval[1])


def continuous_step(
    w: Sequence[float],
    f_y: Callable[[float], float],
    inputs: Sequence[Interval],
    outputs: Sequence[Interval],
    pr: Sequence[float],
) -> list[float]:
    """Pr'(X in I_p) = 1/n sum_i f_Y(m(w_i) - m(I_p)) Pr(X in I_p) / sum_t f_Y(m(w_i) - m(I_t)) Pr(X in I_t)."""
    after = []
    for i_p, pr_p in zip(inputs, pr, strict=True):
        total = 0.0
        for w_i in w:
            m_w = midpoint(interval_of(w_i, outputs))
            below = sum(f_y(m_w - midpoint(i_t)) * pr_t for i_t, pr_t in zip(inputs, pr, strict=True))
            total += f_y(m_w - midpoint(i_p)) * pr_p / below
        after.append(total / len(w))
    return after


def discrete_step(z: Sequence[int], given: Callable[[int, int], float], pr: Sequence[float]) -> list[float]:
    """P'(X = x) = 1/n sum_i P(X = x) P(Z = z_i | X = x) / P(Z = z_i)."""
    after = [0.0] * len(pr)
    for z_i in z:
        f_z = sum(given(z_i, x) * pr[x] for x in range(len(pr)))
        for x in range(len(pr)):
            after[x] += pr[x] * given(z_i, x) / f_z / len(z)
    return after


def until_chi_square(
    step: Callable[[list[float]], list[float]], inputs: int, n: int, threshold: float
) -> tuple[list[float], int]:
    """Begin uniform [errata JS07.1]; stop when successive estimates differ by 1 % of the threshold [errata JS07.3]."""
    pr = [1.0 / inputs] * inputs
    iterations = 0
    while True:
        after = step(pr)
        iterations += 1
        chi_square = sum((n * new - n * old) ** 2 / (n * old) for new, old in zip(after, pr, strict=True) if old > 0)
        pr = after
        if chi_square <= 0.01 * threshold:
            return pr, iterations


def base_set(
    nodes: list[tuple[int, int, int]], counts: list[list[float]], goes: list[bool | None], node: int = 0
) -> list[float]:
    """Probabilities of the labels of one record by the parametric base set [JS07, sec. 2.2.1.3].

    ``goes`` is its answer at each node, None where the value is blocked: theta, the share of the node's records that go
    to the first child, stands for it.
    """
    column, left, right = nodes[node]
    total = sum(counts[node])
    if column < 0:
        return [count / total for count in counts[node]]
    if goes[node] is not None:
        return base_set(nodes, counts, goes, left if goes[node] else right)
    theta = sum(counts[left]) / total
    first, second = base_set(nodes, counts, goes, left), base_set(nodes, counts, goes, right)
    return [theta * one + (1 - theta) * other for one, other in zip(first, second, strict=True)]


def entropy(shares: list[float]) -> float:
    """Entropy in bits."""
    return -sum(share * math.log2(share) for share in shares if share > 0)
