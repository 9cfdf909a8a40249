"""A survey of randomized answers: the collector, its page, and the respondent's client [JS07]."""

from __future__ import annotations

from sfumato.survey.client import Connection, KeptAnswers, NotSent, SubmissionResult, answer_survey, check_survey
from sfumato.survey.questions import Question, Survey

__all__ = [
    "Connection",
    "KeptAnswers",
    "NotSent",
    "Question",
    "SubmissionResult",
    "Survey",
    "answer_survey",
    "check_survey",
]
