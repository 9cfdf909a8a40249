"""The cautious respondent's client: it brings its own code, checks the survey, randomizes here and sends the result."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

from sfumato.collect.kept import Kept, KeptAnswers, default_folder
from sfumato.collect.survey import Question, Survey
from sfumato.documents import Unparsable, parse_json, write_json
from sfumato.errors import BadInput, OptionError, PrivacyRefusal, SchemaError, SfumatoError
from sfumato.laws.domains import Integers, Labels

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Answered", "Connection", "NoToken", "NotSent", "answer_survey", "check_survey"]

_SECONDS = 20.0
_MOST_BYTES = 1 << 24
_TWICE = (
    "this survey was answered from here with another token, and two answers of one person tell more than one; if this "
    "is another person, say so with --other-person"
)
_CHANGED = (
    "the survey's specification has changed since an answer was drawn for this token; a second draw would weaken your "
    "protection, so nothing was sent"
)
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class NotSent(SfumatoError):
    """The answer did not arrive, or the server did not take it; the randomized answer is kept."""


class NoToken(NotSent):
    """The server says that the token is none of this survey."""


@dataclass(frozen=True)
class Answered:
    """What was sent, and whether the server had it before."""

    answers: dict[str, Any]
    digest: str
    again: bool


class _NoRedirect(HTTPRedirectHandler):
    """A server that sends the answer elsewhere is not followed."""

    def redirect_request(self, *_args: Any, **_more: Any) -> None:
        return None


class Connection:
    """Talks to one collector. Certificates are checked; an unprotected connection is for this machine only.

    Parameters
    ----------
    url : str
        Address of the survey's page; what follows a # in it is not sent.
    ca : path, optional
        Certificates to trust in place of the system's.
    allow_http : bool
        Allow an unprotected connection to another machine.
    """

    def __init__(self, url: str, *, ca: str | Path | None = None, allow_http: bool = False) -> None:
        try:
            parts = urlsplit(url)
            host, _ = parts.hostname, parts.port
        except ValueError:
            parts, host = None, None
        if parts is None or parts.scheme not in ("http", "https") or not host or re.search(r"\s", url):
            raise OptionError("--url is not an address of a survey; write https://HOST/")
        if parts.scheme == "http" and host not in _LOOPBACK and not allow_http:
            raise PrivacyRefusal(
                "the address is not protected (http), so others could read and change what is sent; use https, or "
                "allow it with --allow-http"
            )
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._opener = _opener(ca)

    def survey(self) -> Survey:
        """Fetch the survey and check that its digest is its own."""
        status, document = self._call("/api/survey", None)
        if status != 200:
            raise NotSent(f"the server answers {status} where a survey should be; check the address")
        return Survey.from_document(document)

    def send(self, token: str, kept: Kept) -> bool:
        """Send a kept answer and tell whether the server had it before.

        Raises
        ------
        NotSent
            If it did not arrive or was not taken.
        """
        body = {"token": token, "digest": kept.digest, "answers": kept.answers}
        status, document = self._call("/api/answer", body)
        if status == 200 and isinstance(document, dict) and document.get("accepted") is True:
            return bool(document.get("again"))
        said = document.get("error") if isinstance(document, dict) else None
        words = f"{said[:200]}" if isinstance(said, str) and said.isprintable() else "it gives no reason"
        kind = NoToken if status == HTTPStatus.UNAUTHORIZED else NotSent
        raise kind(f"the server did not take the answer ({status}): {words}")

    def _call(self, path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        data = None if body is None else write_json(body).encode()
        request = Request(self.url + path, data=data, headers={"Content-Type": "application/json"})  # noqa: S310
        try:
            try:
                with self._opener.open(request, timeout=_SECONDS) as response:
                    return response.status, _document(response.read(_MOST_BYTES + 1))
            except HTTPError as error:
                with error:
                    return error.code, _document(error.read(_MOST_BYTES + 1))
        except URLError as error:
            if isinstance(error.reason, ssl.SSLError):
                raise NotSent(
                    "the server's certificate does not hold, so nothing was sent; check the address"
                ) from None
            raise NotSent("the server cannot be reached; try again, the same answer will be sent") from None
        except (OSError, EOFError, HTTPException):  # the last quotes what the server said
            raise NotSent("the connection broke; try again, the same answer will be sent") from None


def answer_survey(
    connection: Connection,
    token: str,
    values: Mapping[str, str | float],
    *,
    survey: Survey | None = None,
    kept: KeptAnswers | None = None,
    other_person: bool = False,
    rng: np.random.Generator | None = None,
) -> Answered:
    """Randomize true answers here and send the result, or send again what is kept for this token.

    Check the survey first (`check_survey`). The randomized answer is on disk before it is sent.

    Parameters
    ----------
    connection : Connection
    token : str
    values : mapping
        The true answer to each question. Not used where an answer is kept for the token.
    survey : Survey, optional
        As fetched and checked before; else it is fetched now.
    kept : KeptAnswers, optional
    other_person : bool
        Another person than those whose answers to this survey are kept here.
    rng : Generator, optional
        By default from the operating system.

    Raises
    ------
    PrivacyRefusal
        If a second draw would be made for the same person.
    """
    survey = connection.survey() if survey is None else survey
    kept = KeptAnswers(default_folder()) if kept is None else kept
    drawn = kept.of(token)
    if drawn is None and not other_person:
        drawn = kept.adopt(token, connection.url, survey.digest)
    if drawn is None:
        if kept.others(token, connection.url, survey.digest) and not other_person:
            raise PrivacyRefusal(_TWICE)
        drawn = Kept(connection.url, survey.digest, _randomize(survey, values, rng))
        kept.keep(token, drawn)
    elif drawn.digest != survey.digest:
        raise PrivacyRefusal(_CHANGED)
    try:
        again = connection.send(token, drawn)
    except NoToken:
        kept.keep(token, replace(drawn, mistyped=True))
        raise
    kept.keep(token, replace(drawn, accepted=True, mistyped=False))
    return Answered(drawn.answers, drawn.digest, again)


def check_survey(
    survey: Survey, *, digest: str | None = None, rho1: float = 0.1, max_rho2: float | None = None
) -> None:
    """Refuse a survey that is not the expected one, or that lets the server become too sure.

    Parameters
    ----------
    survey : Survey
    digest : str, optional
        The expected digest.
    rho1, max_rho2 : float
        Anything about all answers together that was rho1 likely before may be max_rho2 likely after, at most.

    Raises
    ------
    PrivacyRefusal
        If it is so.
    """
    if digest is not None and digest.strip().lower() != survey.digest:
        raise PrivacyRefusal("the survey's specification is not the expected one (its digest differs); do not answer")
    if max_rho2 is None:
        return
    if not 0.0 < rho1 <= max_rho2 <= 1.0:
        raise OptionError("--max-rho2 must be a probability from --rho1 to 1")
    bound = survey.bound(rho1)
    if bound > max_rho2:
        raise PrivacyRefusal(
            f"after the answers, what was {100 * rho1:g} % likely may be {100 * bound:.1f} % likely, more than the "
            f"wanted {100 * max_rho2:g} %; do not answer"
        )


def _randomize(
    survey: Survey, values: Mapping[str, str | float], rng: np.random.Generator | None
) -> dict[str, str | int | float]:
    from sfumato.randomize.client import answer

    names = {question.name for question in survey.questions}
    if set(values) != names:
        raise OptionError(f"give one value for each of the {len(names)} questions: {', '.join(sorted(names))}")
    return {
        question.name: answer(_typed(question, values[question.name]), question.spec, rng=rng)
        for question in survey.questions
    }


def _typed(question: Question, value: str | float) -> str | float:
    """Read a value that was typed as the domain has it."""
    domain = question.spec.domain
    if isinstance(domain, Labels) or not isinstance(value, str):
        return value
    try:
        return int(value) if isinstance(domain, Integers) else float(value)
    except ValueError:
        raise SchemaError(f"the value for {question.name!r} is not {domain.describe()}; correct it") from None


def _opener(ca: str | Path | None) -> OpenerDirector:
    try:
        context = ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ssl.SSLError):
        raise OptionError("the file of certificates cannot be read; --ca takes a PEM file") from None
    return build_opener(_NoRedirect, HTTPSHandler(context=context))


def _document(data: bytes) -> Any:
    try:
        return parse_json(data) if len(data) <= _MOST_BYTES else None
    except Unparsable:
        raise BadInput("the server's answer is not that of a survey; check the address") from None
