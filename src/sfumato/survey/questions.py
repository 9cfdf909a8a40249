"""A survey: one or several questions, each with the noise specification that its answers go through.

Tokens: the right to answer once, signed by the survey and known to nobody afterwards.

A token is 16 random bytes and 16 bytes of HMAC-SHA256 over them, written in base64url. The key lies in the survey's
database: whoever can read it there could as well write answers there, so a key pair would protect nothing more. Of a
used token two values stay: its *mark*, a hash by which it is known again, and the *seal* of its answer, which only the
token itself can open (see `seal`).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import math
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from sfumato.core.distributions.amplification import upward_bound
from sfumato.core.distributions.domains import Dates, Labels
from sfumato.core.distributions.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.core.distributions.operators import Additive
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.documents import Unparsable, plain, typed, write_json
from sfumato.core.errors import BadInput, OptionError, SchemaError

__all__ = ["KEY_BYTES", "Question", "Survey", "TokenError", "check_token", "mark", "mint", "read_survey", "seal"]

_ONLY = "answer"  # name of the question of a survey that has one
_FORMAT = 1
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
_MOST_QUESTIONS = 50
_MOST_LETTERS = 500
_MOST_KNOWN = 10_000
_LAPLACE_SCALES, _GAUSSIAN_DEVIATIONS = 64.0, 12.0


@dataclass(frozen=True)
class Question:
    """What is asked, and how the answer is randomized before it is sent."""

    name: str
    spec: NoiseSpec
    text: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise OptionError(
                "the name of a question has 1 to 32 small letters, digits, - or _, a letter first; choose another"
            )
        if isinstance(self.spec.domain, Dates):
            raise OptionError(
                f"question {self.name!r} asks for a date, which the page cannot take; ask for a year or an age, or use "
                "sanitize --method randomize"
            )
        _check_printable(self.text)

    @cached_property
    def _known(self) -> dict[tuple[type, Any], int]:
        return {}

    def encode(self, value: Any) -> int:
        """Output code of a released value, of which the commonest are remembered; `SchemaError` if it cannot be."""
        if isinstance(value, str | int | float) and (type(value), value) in self._known:
            return self._known[type(value), value]
        code = self._encode(value)
        if len(self._known) < _MOST_KNOWN:
            self._known[type(value), value] = code
        return code

    def _encode(self, value: Any) -> int:
        text = isinstance(self.spec.released, Labels)
        if isinstance(value, bool) or not isinstance(value, str if text else int | float):
            kind = "a text" if text else "a number"
            raise SchemaError(f"the answer to {self.name!r} is not {kind}; send what the specification releases")
        try:
            code = int(self.spec.encode_output([value])[0])
        except (SchemaError, OverflowError):
            code = None
        if code is None or not _credible(self.spec, code):
            raise SchemaError(
                f"the answer to {self.name!r} cannot have come from its law; randomize it as the specification says"
            )
        return code


@dataclass(frozen=True, kw_only=True)
class _QuestionEntry:
    name: str
    text: str = ""
    spec: dict[str, Any]


@dataclass(frozen=True)
class _SurveyDocument:
    """The document of a survey."""

    format: int
    title: str
    digest: str
    questions: tuple[_QuestionEntry, ...]


@dataclass(frozen=True)
class Survey:
    """Questions that are answered together, under one token.

    Examples
    --------
    >>> from sfumato.core.distributions.domains import Labels
    >>> spec = NoiseSpec(Labels(("no", "yes")), {"name": "keep-or-replace", "keep": 0.75})
    >>> survey = Survey((Question("smokes", spec), Question("drinks", spec)), title="Habits")
    >>> survey.gamma, survey.encode({"drinks": "yes", "smokes": "no"})
    (9.0, (0, 1))
    >>> Survey.from_document(survey.to_document()) == survey
    True
    """

    questions: tuple[Question, ...]
    title: str = "Survey"

    def __post_init__(self) -> None:
        if not 1 <= len(self.questions) <= _MOST_QUESTIONS:
            raise OptionError(f"a survey has 1 to {_MOST_QUESTIONS} questions; name a specification for each")
        if len({question.name for question in self.questions}) < len(self.questions):
            raise OptionError("two questions have the same name; give each its own")
        _check_printable(self.title)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of what is done to the answers; for a single question, its specification's own digest.

        Title and texts are not in it.
        """
        if len(self.questions) == 1:
            return self.questions[0].spec.digest
        parts = {"format": _FORMAT, "questions": [[each.name, each.spec.digest] for each in self.questions]}
        return hashlib.sha256(write_json(parts, "canonical").encode()).hexdigest()

    @cached_property
    def gamma(self) -> float:
        """Amplification of all answers together: the factors of the questions multiply."""
        return math.prod(question.spec.gamma for question in self.questions)

    @property
    def epsilon(self) -> float:
        """Local differential privacy of all answers together."""
        return sum(question.spec.epsilon for question in self.questions)

    def bound(self, rho1: float) -> float:
        """The most that a property of prior probability rho1 can be believed after all answers."""
        return upward_bound(self.gamma, rho1)

    def encode(self, answers: Mapping[str, Any]) -> tuple[int, ...]:
        """Output codes of released answers; a `SchemaError` where one is left out, unknown, or not from its law."""
        names = [question.name for question in self.questions]
        if set(answers) != set(names):
            raise SchemaError(f"the answers must name each of the {len(names)} questions and no other")
        return tuple(question.encode(answers[question.name]) for question in self.questions)

    def to_document(self) -> Mapping[str, Any]:
        """The form that server and client share, in plain JSON types."""
        questions = tuple(
            _QuestionEntry(name=each.name, text=each.text, spec=each.spec.to_document()) for each in self.questions
        )
        document: Mapping[str, Any] = plain(_SurveyDocument(_FORMAT, self.title, self.digest, questions))
        return document

    @classmethod
    def from_document(cls, document: Any) -> Survey:
        """Read the form that ``to_document`` writes, its digest checked; raises BadInput for anything else."""
        try:
            if document["format"] != _FORMAT:
                raise OptionError(f"a survey's document needs format = {_FORMAT}; get a newer sfumato")
            fields = typed(_SurveyDocument, document)
        except (KeyError, TypeError, Unparsable):
            raise BadInput("this is not the document of a survey; check the address") from None
        questions = (Question(each.name, NoiseSpec.from_document(each.spec), each.text) for each in fields.questions)
        survey = cls(tuple(questions), fields.title)
        if fields.digest != survey.digest:
            raise BadInput("the survey's digest is not that of its specification; do not answer it")
        return survey


def read_survey(specs: Sequence[str], texts: Sequence[str], title: str) -> Survey:
    """Read a survey from the files of its specifications.

    ``specs`` are ``FILE`` for a single question, ``NAME=FILE`` for each of several; ``texts`` are what is asked, as
    ``TEXT`` or ``NAME=TEXT``.
    """
    files = [_named(spec) for spec in specs]
    if len(files) > 1 and any(name is None for name, _ in files):
        raise OptionError("several specifications need names; write --spec NAME=FILE for each")
    names = [name or _ONLY for name, _ in files]
    texts_by_name: dict[str, str] = {}
    for text in texts:
        name, _, rest = text.partition("=")
        if name in names:
            texts_by_name[name] = rest
        elif len(names) == 1:
            texts_by_name[names[0]] = text
        else:
            raise OptionError("a --question is for none of the specifications; write --question NAME=TEXT")
    questions = (
        Question(name, NoiseSpec.read(path), texts_by_name.get(name, ""))
        for name, (_, path) in zip(names, files, strict=True)
    )
    return Survey(tuple(questions), title)


def _named(spec: str) -> tuple[str | None, str]:
    name, equals, path = spec.partition("=")
    return (name, path) if equals and not Path(spec).exists() else (None, spec)


def _check_printable(text: str) -> None:
    """Refuse a text that could move the cursor of a terminal: a server's texts are shown to respondents."""
    if len(text) > _MOST_LETTERS or not text.isprintable():
        raise OptionError(f"titles and questions are single lines of at most {_MOST_LETTERS} letters; change them")


def _credible(spec: NoiseSpec, code: int) -> bool:
    """Whether noise without an end can have come so far: one answer at infinity would spoil the estimate of all.

    What is refused has a chance below 10^-27.
    """
    operator = spec.operator
    if not isinstance(operator, Additive) or operator.outputs is not None:
        return True
    beyond = max(-code, code - operator.size + 1)
    if isinstance(operator.law, DiscreteLaplace):
        return beyond <= _LAPLACE_SCALES * operator.law.scale
    return beyond <= _GAUSSIAN_DEVIATIONS * operator.law.sd if isinstance(operator.law, DiscreteGaussian) else True


KEY_BYTES = 32
_BYTES = 16  # of either half
_LETTERS = 43  # of 32 bytes in base64url without padding


class TokenError(BadInput):
    """A token that this survey did not sign."""


def mint(key: bytes, count: int) -> Iterator[str]:
    """Make fresh tokens; their order means nothing, and none is kept.

    Examples
    --------
    >>> key = bytes(32)
    >>> tokens = list(mint(key, 3))
    >>> len(set(tokens)), {len(token) for token in tokens}
    (3, {43})
    >>> check_token(key, tokens[0]) == base64.urlsafe_b64decode(tokens[0] + "=")
    True
    """
    for _ in range(count):
        number = secrets.token_bytes(_BYTES)
        yield base64.urlsafe_b64encode(number + _signature(key, number)).decode("ascii").rstrip("=")


def check_token(key: bytes, token: str) -> bytes:
    """Bytes of a token that this key signed; for any other text a `TokenError` that does not say what is wrong."""
    try:
        data = base64.b64decode(token + "=", altchars=b"-_", validate=True) if len(token) == _LETTERS else b""
    except (binascii.Error, ValueError):
        data = b""
    number = data[:_BYTES]
    known = hmac.compare_digest(data[_BYTES:], _signature(key, number))
    # the last letter holds two bits that mean nothing: only one way to write a token counts
    if not known or base64.urlsafe_b64encode(data).decode("ascii") != token + "=":
        raise TokenError("this is not a token of this survey; copy it again, all 43 letters of it")
    return data


def mark(token: bytes) -> bytes:
    """Hash a token: by it the survey knows that the token was used, without keeping the token."""
    return hashlib.sha256(b"sfumato-token-mark-v1\0" + token).digest()


def seal(token: bytes, codes: Sequence[int]) -> bytes:
    """Bind an answer to its token so that a repeated answer is known as the same one.

    The key is the token, which is not stored: the database alone does not say which answer belongs to which mark.
    Whoever kept the list of tokens can try out the few possible answers.
    """
    text = ",".join(map(str, codes)).encode("ascii")
    return hmac.digest(token, b"sfumato-answer-seal-v1\0" + text, "sha256")[:_BYTES]


def _signature(key: bytes, number: bytes) -> bytes:
    return hmac.digest(key, b"sfumato-token-v1\0" + number, "sha256")[:_BYTES]
