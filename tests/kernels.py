"""Kernels that only other kernels call, for tests that call them by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from sfumato.core.compiled import compiled

F = TypeVar("F", bound=Callable[..., Any])


def kept(kernel: F) -> F:
    """The same kernel, kept on disk once it is compiled; by itself it would be compiled anew in every run."""
    return compiled(cast(F, cast(Any, kernel).py_func))
