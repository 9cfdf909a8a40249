"""The release: what leaves, what stays with the owner, and how a reviewer checks it."""

from __future__ import annotations

from sfumato.release.folder import check_folder, replacing_folder
from sfumato.release.model import Release
from sfumato.release.verify import Check, verify_release

__all__ = ["Check", "Release", "check_folder", "replacing_folder", "verify_release"]
