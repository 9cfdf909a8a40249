"""What an owner asks of a release before it leaves, and the verdict on it."""

from __future__ import annotations

from sfumato.publish.policy import BUILT_IN, PURPOSES, Policy

__all__ = ["BUILT_IN", "PURPOSES", "Policy"]
