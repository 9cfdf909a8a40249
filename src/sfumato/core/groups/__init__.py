"""Groups and what several rooms do with them."""

from __future__ import annotations

from sfumato.core.groups.discrete import category_counts, discretize, missing_counts
from sfumato.core.groups.generate import draw_along_eigenvectors, generate, redraw
from sfumato.core.groups.kmeans import k_means
from sfumato.core.groups.model import (
    Groups,
    columns_of_blocks,
    concat,
    count_alike,
    response_weights,
    split_groups,
    summarize,
)

__all__ = [
    "Groups",
    "category_counts",
    "columns_of_blocks",
    "concat",
    "count_alike",
    "discretize",
    "draw_along_eigenvectors",
    "generate",
    "k_means",
    "missing_counts",
    "redraw",
    "response_weights",
    "split_groups",
    "summarize",
]
