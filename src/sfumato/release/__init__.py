"""The release: what leaves, what stays with the owner, and how a reviewer checks it."""

from __future__ import annotations

from sfumato.release.evaluation import Evaluation, check_evaluation_folder
from sfumato.release.folder import Contents, check_folder, replacing_folder
from sfumato.release.model import Release, refuse_to_sign_rehearsal
from sfumato.release.signature import Signer, Verifier
from sfumato.release.verify import Check, certificate_beside, verify_release

__all__ = [
    "Check",
    "Contents",
    "Evaluation",
    "Release",
    "Signer",
    "Verifier",
    "certificate_beside",
    "check_evaluation_folder",
    "check_folder",
    "refuse_to_sign_rehearsal",
    "replacing_folder",
    "verify_release",
]
