"""Rows of the messy file of patients, made once for all tests of a process."""

from __future__ import annotations

from functools import cache

from examples import messy_patients

__all__ = ["messy_rows"]

messy_rows = cache(messy_patients.messy_rows)
