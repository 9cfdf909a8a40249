"""Surveys: what is asked, its digest, and which answers can have come from it."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from sfumato.core.distributions.domains import Integers, Labels, Reals
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import BadInput, OptionError, SchemaError
from sfumato.survey.questions import Question, Survey

AGE = NoiseSpec(Integers(0, 100), {"name": "keep-or-replace", "keep": 0.5})
SMOKES = NoiseSpec(Labels(("no", "yes")), {"name": "response", "epsilon": 1.0})
PAY = NoiseSpec(Reals(0.0, 10.0, 0.1), {"name": "laplace", "scale": 2.0})
BOTH = Survey((Question("age", AGE, "How old?"), Question("smokes", SMOKES)), "Habits")


def endless() -> dict[str, object]:
    law: dict[str, object] = {"name": "shift-modulo", "reach": 1}
    for _ in range(2000):
        law = {"name": "mixture", "weight": 0.5, "of": law}
    spec = {"format": 1, "domain": {"kind": "integers", "low": 0, "high": 9}, "law": law}
    return {"format": 1, "title": "x", "digest": "", "questions": [{"name": "a", "spec": spec}]}


def test_the_digest_of_one_question_is_its_specifications() -> None:
    assert Survey((Question("answer", AGE),)).digest == AGE.digest


def test_texts_do_not_change_the_digest_and_laws_do() -> None:
    retitled = Survey((Question("age", AGE, "Age?"), Question("smokes", SMOKES)), "Other")
    assert retitled.digest == BOTH.digest
    assert Survey((Question("age", AGE), Question("smokes", AGE))).digest != BOTH.digest


def test_the_order_of_questions_is_in_the_digest() -> None:
    assert Survey(BOTH.questions[::-1]).digest != BOTH.digest  # counts are kept by the number of the question


@pytest.mark.parametrize("text", ["\x1b[2Jcleared", "two\nlines", "x" * 501])
def test_texts_that_could_fool_a_terminal_are_refused(text: str) -> None:
    with pytest.raises(OptionError, match="single lines"):
        Question("a", AGE, text)
    with pytest.raises(OptionError, match="single lines"):
        Survey(BOTH.questions, text)


def test_the_document_comes_back_and_a_wrong_digest_is_refused() -> None:
    assert Survey.from_document(BOTH.to_document()) == BOTH
    with pytest.raises(BadInput, match="do not answer it"):
        Survey.from_document({**BOTH.to_document(), "digest": "0" * 64})


@pytest.mark.parametrize(
    "document", [None, [], {}, {"format": 1, "title": "x", "digest": "", "questions": [3]}, endless()]
)
def test_another_document_is_no_survey(document: object) -> None:
    with pytest.raises(BadInput):
        Survey.from_document(document)


def test_answers_together_tell_more() -> None:
    assert BOTH.gamma == pytest.approx(AGE.gamma * SMOKES.gamma)
    assert math.exp(BOTH.epsilon) == pytest.approx(BOTH.gamma)
    assert BOTH.bound(0.1) > AGE.bound(0.1)


@pytest.mark.parametrize("spec", [AGE, SMOKES, PAY], ids=["integers", "labels", "reals"])
def test_whatever_a_law_sends_is_taken(spec: NoiseSpec) -> None:
    rng = np.random.default_rng(3)
    truth = spec.domain.decode(rng.integers(0, spec.domain.size, 2000))
    codes = spec.operator.randomize(spec.domain.encode(truth), rng)
    question = Question("answer", spec)
    assert [question.encode(value) for value in spec.decode_output(codes).tolist()] == codes.tolist()


@pytest.mark.parametrize("value", [True, None, "7", [7], {}, 7.5, -1, 101, 10**30, math.inf, math.nan])
def test_what_a_law_cannot_send_is_refused_without_being_quoted(value: object) -> None:
    with pytest.raises(SchemaError) as refusal:
        BOTH.encode({"age": value, "smokes": "no"})
    assert "'age'" in str(refusal.value)
    assert len(str(value)) < 3 or str(value) not in str(refusal.value)


@pytest.mark.parametrize("value", ["maybe", 1, "", True])
def test_a_label_must_be_one_of_the_labels(value: object) -> None:
    with pytest.raises(SchemaError, match="'smokes'"):
        BOTH.encode({"age": 7, "smokes": value})


@pytest.mark.parametrize(
    "law", [{"name": "laplace", "scale": 2.0}, {"name": "gaussian", "sd": 2.0}], ids=lambda law: str(law["name"])
)
def test_an_answer_at_infinity_is_refused(law: dict[str, object]) -> None:
    question = Question("pay", NoiseSpec(Reals(0.0, 10.0, 0.1), law))
    assert question.encode(10.0 + 20.0) == 300
    for far in (1000.0, -1000.0, 1e15):
        with pytest.raises(SchemaError, match="'pay'"):
            question.encode(far)


@pytest.mark.parametrize("answers", [{}, {"age": 7}, {"age": 7, "smokes": "no", "more": 1}])
def test_every_question_is_answered_and_no_other(answers: dict[str, object]) -> None:
    with pytest.raises(SchemaError, match="each of the 2 questions"):
        BOTH.encode(answers)


@pytest.mark.parametrize("name", ["", "Age", "1st", "a b", "x" * 33, "<b>"])
def test_names_of_questions_are_plain(name: str) -> None:
    with pytest.raises(OptionError, match="choose another"):
        Question(name, AGE)


def test_a_survey_has_questions_of_different_names() -> None:
    with pytest.raises(OptionError, match="same name"):
        Survey((Question("age", AGE), Question("age", SMOKES)))
    with pytest.raises(OptionError, match="1 to 50"):
        Survey(())
    assert dataclasses.replace(BOTH, title="x").digest == BOTH.digest
