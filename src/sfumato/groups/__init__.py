"""Groups and what several rooms do with them."""

from __future__ import annotations

from sfumato.groups.algebra import concat, split_groups
from sfumato.groups.alike import columns_of_blocks, count_alike
from sfumato.groups.generate import draw_along_eigenvectors, generate
from sfumato.groups.kmeans import k_means
from sfumato.groups.model import Groups, summarize
from sfumato.groups.redraw import redraw
from sfumato.groups.settle import category_counts, missing_counts, settle
from sfumato.groups.weights import response_weights

__all__ = [
    "Groups",
    "category_counts",
    "columns_of_blocks",
    "concat",
    "count_alike",
    "draw_along_eigenvectors",
    "generate",
    "k_means",
    "missing_counts",
    "redraw",
    "response_weights",
    "settle",
    "split_groups",
    "summarize",
]
