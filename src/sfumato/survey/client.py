"""The cautious respondent's client: it brings its own code, checks the survey, randomizes here and sends the result.

It keeps the randomized answer of each token, written before it is sent: a second draw for the same truth would let the
server average the noise away, so a retry sends what is kept, whatever happened to the first sending. The truth is never
written.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, HTTPSHandler, OpenerDirector, Request, build_opener

import numpy as np

from sfumato.core.distributions.domains import Integers, Labels
from sfumato.core.documents import MOST_BYTES, Unparsable, open_regular, parse_json, plain, typed, write_json
from sfumato.core.errors import BadInput, OptionError, PrivacyRefusal, SchemaError, SfumatoError
from sfumato.core.replacing import reason, replacing_file
from sfumato.survey.questions import Question, Survey

__all__ = [
    "Connection",
    "KeptAnswer",
    "KeptAnswers",
    "NoToken",
    "NotSent",
    "SubmissionResult",
    "answer_survey",
    "check_survey",
    "default_folder",
]

_FORMAT = 1
_SECONDS = 20.0
_MOST_BYTES = 1 << 24
_TWICE = (
    "this survey was answered from here with another token, and two answers of one person tell more than one; if this "
    "is another person, add --other-person"
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
class SubmissionResult:
    """What was sent, and whether the server had it before."""

    answers: dict[str, str | int | float]
    digest: str
    again: bool


def default_folder() -> Path:
    """Folder for kept answers: ``SFUMATO_ANSWERS``, else in the user's state folder."""
    chosen = os.environ.get("SFUMATO_ANSWERS")
    if chosen:
        return Path(chosen)
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(state) / "sfumato" / "answers"


@dataclass(frozen=True)
class KeptAnswer:
    """A randomized answer: address and digest of the survey it was drawn for, and what is sent."""

    url: str
    digest: str
    answers: dict[str, str | int | float]
    accepted: bool = False
    mistyped: bool = False
    """The server said that the token is none; it has seen the answer all the same."""


class KeptAnswers:
    """The kept answers of one person, a file for each token in a folder of mode 700, readable by nobody else."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def of(self, token: str) -> KeptAnswer | None:
        """What is kept for a token."""
        return self._read(self._path(token))

    def others(self, token: str, url: str, digest: str) -> int:
        """Number of answers to the same survey under other tokens."""
        mine = self._path(token)
        paths = self._folder.glob("*.json") if self._folder.is_dir() else ()
        found = (self._read(path) for path in paths if path != mine)
        return sum(1 for answer in found if answer is not None and (answer.url, answer.digest) == (url, digest))

    def adopt(self, token: str, url: str, digest: str) -> KeptAnswer | None:
        """Take over an answer that was sent under a mistyped token: the server has seen it, so no other is drawn."""
        for path in sorted(self._folder.glob("*.json")) if self._folder.is_dir() else ():
            answer = self._read(path)
            if answer is not None and answer.mistyped and (answer.url, answer.digest) == (url, digest):
                mine = replace(answer, mistyped=False)
                self.keep(token, mine)
                path.unlink()
                return mine
        return None

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Time in which no other process draws or keeps here: of two in the same instant the later waits."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self._folder, os.O_RDONLY)
        except OSError as error:
            raise self._not_kept(error) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)

    def keep(self, token: str, answer: KeptAnswer) -> None:
        """Write an answer to disk; at the return it is there."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with replacing_file(self._path(token), private=True) as work:
                work.write_text(write_json({"format": _FORMAT, **plain(answer)}), encoding="utf-8")
        except OSError as error:
            raise self._not_kept(error) from None

    def _not_kept(self, error: OSError) -> SfumatoError:
        return SfumatoError(
            f"the randomized answer could not be kept in {str(self._folder)!r} ({reason(error)}), so nothing was "
            "sent; choose another folder with --keep"
        )

    def _path(self, token: str) -> Path:
        return self._folder / f"{hashlib.sha256(token.encode()).hexdigest()[:32]}.json"

    def _read(self, path: Path) -> KeptAnswer | None:
        try:
            with open_regular(path) as file:
                document = parse_json(file.read(MOST_BYTES))
            if document.pop("format") == _FORMAT:
                return typed(KeptAnswer, document)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            pass
        raise BadInput(f"the kept answer {str(path)!r} cannot be read; do not draw another one, restore the file")


class _NoRedirect(HTTPRedirectHandler):
    """A server that sends the answer elsewhere is not followed."""

    def redirect_request(self, *_args: Any, **_more: Any) -> None:
        return None


class Connection:
    """Talks to one collector, by the address of the survey's page; what follows a # in it is not sent.

    Certificates are checked, against those of ``ca`` in place of the system's where it is given. An unprotected
    connection is for this machine only, unless ``allow_http``.
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

    def send(self, token: str, answer: KeptAnswer) -> bool:
        """Send a kept answer; whether the server had it before, or `NotSent` if it did not arrive or was not taken."""
        body = {"token": token, "digest": answer.digest, "answers": answer.answers}
        status, document = self._call("/api/answer", body)
        if status == 200 and isinstance(document, dict) and document.get("accepted") is True:
            return bool(document.get("again"))
        reason = document.get("error") if isinstance(document, dict) else None
        words = f"{reason[:200]}" if isinstance(reason, str) and reason.isprintable() else "it gives no reason"
        kind = NoToken if status == HTTPStatus.UNAUTHORIZED else NotSent
        raise kind(f"the server did not take the answer ({status}): {words}")

    def _call(self, path: str, body: Mapping[str, object] | None) -> tuple[int, Any]:
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
) -> SubmissionResult:
    """Randomize true answers here and send the result, or send again what is kept for this token.

    Check the survey first (`check_survey`); it is fetched now where it is not given. The randomized answer is on disk
    before it is sent. ``values`` are the true answers to each question, not used where an answer is kept for the token.
    A second draw for the same person is refused; ``other_person`` says that it is another one than those whose answers
    to this survey are kept here. Chance is by default that of the operating system.
    """
    survey = connection.survey() if survey is None else survey
    kept = KeptAnswers(default_folder()) if kept is None else kept
    with kept.alone():
        drawn = kept.of(token)
        if drawn is None and not other_person:
            drawn = kept.adopt(token, connection.url, survey.digest)
        if drawn is None:
            if kept.others(token, connection.url, survey.digest) and not other_person:
                raise PrivacyRefusal(_TWICE)
            drawn = KeptAnswer(connection.url, survey.digest, _randomize(survey, values, rng))
            kept.keep(token, drawn)
        elif drawn.digest != survey.digest:
            raise PrivacyRefusal(_CHANGED)
    try:
        again = connection.send(token, drawn)
    except NoToken:
        kept.keep(token, replace(drawn, mistyped=True))
        raise
    kept.keep(token, replace(drawn, accepted=True, mistyped=False))
    return SubmissionResult(drawn.answers, drawn.digest, again)


def check_survey(
    survey: Survey, *, digest: str | None = None, rho1: float = 0.1, max_rho2: float | None = None
) -> None:
    """Refuse a survey that has not the expected digest, or that lets the server become too sure.

    Anything about all answers together that was ``rho1`` likely before may be ``max_rho2`` likely after, at most.
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
    from sfumato.methods.randomize import answer

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
