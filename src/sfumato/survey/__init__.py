"""A survey of randomized answers: the collector, its page, and the respondent's client [JS07]."""

from __future__ import annotations

from sfumato.survey.client import Answered, Connection, KeptAnswers, NotSent, answer_survey, check_survey
from sfumato.survey.questions import Question, Survey

__all__ = ["Answered", "Connection", "KeptAnswers", "NotSent", "Question", "Survey", "answer_survey", "check_survey"]
