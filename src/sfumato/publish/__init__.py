"""The release: what leaves, what stays with the owner, what the owner asks of it, and how a reviewer checks it."""

from __future__ import annotations

from sfumato.publish.evaluate import Evaluation, check_evaluation_folder
from sfumato.publish.folder import Contents, check_folder, replacing_folder
from sfumato.publish.judge import PolicyNotMet, Ruling, Verdict, judge
from sfumato.publish.policy import BUILT_IN, PURPOSES, Policy
from sfumato.publish.release import Release, refuse_to_sign_rehearsal
from sfumato.publish.signature import Signer, Verifier
from sfumato.publish.verify import Check, Verification, certificate_beside, verify_release

__all__ = [
    "BUILT_IN",
    "PURPOSES",
    "Check",
    "Contents",
    "Evaluation",
    "Policy",
    "PolicyNotMet",
    "Release",
    "Ruling",
    "Signer",
    "Verdict",
    "Verification",
    "Verifier",
    "certificate_beside",
    "check_evaluation_folder",
    "check_folder",
    "judge",
    "refuse_to_sign_rehearsal",
    "replacing_folder",
    "verify_release",
]
