"""survey: a survey of randomized answers, from serving it to its estimate."""

from __future__ import annotations

import os
import secrets
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from sfumato.cli.console import Console, VerbGroup, verb
from sfumato.cli.options import FILE, check_new, options, options_in, usual, write_private
from sfumato.core.arguments import Panel, options_of
from sfumato.core.errors import OptionError, TooFew
from sfumato.survey.options import CollectorSettings, ListenAddress

if TYPE_CHECKING:
    from sfumato.survey.questions import Survey

__all__ = ["survey"]

_PASSWORD = "SFUMATO_DASHBOARD_PASSWORD"  # noqa: S105 (the name of a variable, not what it holds)
_LEAST_PASSWORD = 8
_db = click.option(
    "--db",
    required=True,
    metavar="URL",
    panel=Panel.FIRST,
    help="Database of the survey: a file (SQLite), or postgresql://USER@HOST/NAME.",
)


@click.group(cls=VerbGroup)
def survey() -> None:
    """Collect answers under local differential privacy and estimate their distribution.

    Each answer is randomized in the respondent's browser or by 'survey answer'. The collector sees randomized values
    only and estimates the distribution of the true ones.
    """


@survey.command()
@click.option(
    "--spec",
    "specs",
    multiple=True,
    required=True,
    metavar="[NAME=]FILE",
    panel=Panel.FIRST,
    help="Noise specification (TOML); NAME= and repeat for several questions.",
)
@_db
@click.option(
    "--question",
    "texts",
    multiple=True,
    metavar="[NAME=]TEXT",
    panel=Panel.FIRST,
    help="Text of a question; repeatable.",
)
@usual("--title", default="Survey", panel=Panel.FIRST, words="Title of the page.")
@options_in(ListenAddress)
@options_in(CollectorSettings)
@click.option(
    "--password-file",
    type=FILE,
    panel=Panel.SERVER,
    help=f"File with the dashboard's password, or variable {_PASSWORD}; else one is made and shown.",
)
@verb
def serve(
    console: Console,
    db: str,
    specs: tuple[str, ...],
    texts: tuple[str, ...],
    *,
    title: str,
    password_file: Path | None,
    **limits: Any,
) -> None:
    """Serve a survey: page, answers and dashboard. Ctrl-C ends it; acknowledged answers are stored.

    The log on standard error is one JSON object a line, without answers, tokens and addresses.
    """
    from sfumato.survey.questions import read_survey
    from sfumato.survey.server import serve
    from sfumato.survey.store import AnswerStore, Log

    survey = read_survey(specs, texts, title)
    place = ListenAddress(**{name: limits.pop(name) for name, _ in options_of(ListenAddress)})
    password, made = _password(password_file)
    settings = CollectorSettings(password, names=place.names, **limits)

    def ready(url: str) -> None:
        for question in survey.questions:
            console.say(f"{question.name}: {question.spec.describe()}")
        console.say(f"\nSurvey:    {url}#TOKEN   (make tokens with 'sfumato survey tokens')")
        console.say(f"Dashboard: {url}dashboard")
        if made:
            console.say(f"Password:  {password}")
        shown = {"password": password} if made else {}
        console.result({"url": url, "dashboard": f"{url}dashboard", "digest": survey.digest, **shown})

    with closing(AnswerStore.open(db)) as store:
        serve(survey, store, place, settings, Log(quiet=console.quiet), ready)
        count, _ = store.counts()
    console.say(f"Stopped; {count} answers are stored.")


@survey.command()
@_db
@click.option("-n", "--number", required=True, type=click.IntRange(1, 10_000_000), help="How many tokens.")
@click.option("-o", "--output", required=True, type=FILE, help="File to write, one a line, mode 600.")
@click.option("--url", metavar="URL", help="Address of the survey: write links in place of bare tokens.")
@options(overwrite="Replace an existing file.")
@verb
def tokens(console: Console, db: str, number: int, output: Path, url: str | None, overwrite: bool) -> None:
    """Create tokens, each valid for one answer.

    Tokens are signed and not stored: distribute them and delete the file. Anyone who knows who received which token can
    link that person to the randomized answer.
    """
    from sfumato.survey.questions import mint
    from sfumato.survey.store import AnswerStore

    check_new(output, overwrite=overwrite)
    with closing(AnswerStore.open(db)) as store:
        key = store.key
    prefix = "" if url is None else f"{url.rstrip('/')}/#"
    write_private(output, "".join(f"{prefix}{token}\n" for token in mint(key, number)), "tokens")
    console.say(f"{number} tokens written to {output}: hand each to one person, then delete the file.")
    console.result({"tokens": number, "output": str(output)})


@survey.command()
@click.option("--url", required=True, metavar="URL", help="Address of the survey, or the link with #TOKEN.")
@click.option("--token", envvar="SFUMATO_TOKEN", help="Your token, if not in the link; or the variable SFUMATO_TOKEN.")
@click.option(
    "--value",
    "values",
    multiple=True,
    metavar="[NAME=]V",
    help="Your true answer.  [default: entered at a prompt, without echo]",
)
@click.option("--expect-digest", "digest", metavar="SHA256", help="Refuse a specification with another digest.")
@usual("--rho1", default=0.1, type=click.FloatRange(0, 1), words="Prior probability, for --max-rho2.")
@click.option("--max-rho2", type=click.FloatRange(0, 1), help="Refuse if the posterior probability could exceed this.")
@click.option("--keep", "folder", type=FILE, help="Folder for randomized answers, for retries.")
@click.option("--ca", type=FILE, help="Certificates to trust in place of the system's (PEM).")
@click.option("--allow-http", is_flag=True, help="Send without TLS to another machine.")
@click.option("--other-person", is_flag=True, help="A new respondent on this machine.")
@verb
def answer(
    console: Console,
    url: str,
    token: str | None,
    values: tuple[str, ...],
    *,
    folder: Path | None,
    ca: Path | None,
    allow_http: bool,
    other_person: bool,
    **expected: Any,
) -> None:
    """Answer a survey: the true value is randomized on this machine and never sent.

    The randomized answer is stored before it is sent; running the command again sends the same one. Exits with 3 if the
    specification is not the expected one or its bound is too weak.
    """
    from sfumato.survey import Connection, KeptAnswers, answer_survey, check_survey
    from sfumato.survey.client import default_folder

    base, _, fragment = url.partition("#")
    token = (token or fragment).strip()
    if not token:
        raise OptionError("a token is needed; give --token, or the link that holds it")
    connection = Connection(base, ca=ca, allow_http=allow_http)
    survey = connection.survey()
    check_survey(survey, **expected)
    for question in survey.questions:
        console.say(f"{question.text or question.name}\n{question.spec.describe()}")
    kept = KeptAnswers(folder or default_folder())
    truth: dict[str, str] = {}
    if kept.of(token) is None:
        truth = _values(survey, values)
    elif values:
        console.note("sfumato: an answer is kept for this token; it is sent again, and --value is not used")
    done = answer_survey(connection, token, truth, survey=survey, kept=kept, other_person=other_person)
    for name, value in done.answers.items():
        console.say(f"Sent for {name}: {value}" + (" (the server had it before)" if done.again else ""))
    console.result({"accepted": True, "again": done.again, "answers": done.answers, "digest": done.digest})


@survey.command()
@_db
@verb
def estimate(console: Console, db: str) -> None:
    """Estimate the distribution of the true answers, with bands.

    Exits with 3 if there are too few answers for the noise of any question.
    """
    from sfumato.survey.estimate import estimate, figures, stored_survey

    survey, count, tallies = stored_survey(db)
    with console.progress():
        found = estimate(survey, tallies)
    refused = [one for one in found.values() if isinstance(one, TooFew)]
    if len(refused) == len(found):
        raise refused[0]
    console.say(f"{survey.title}: {count} answers")
    for name, one in found.items():
        console.say(f"\n{name}\n{one if isinstance(one, TooFew) else one.describe()}")
    drawn_figures = figures(found)
    only = next(iter(drawn_figures.values())) if len(drawn_figures) == 1 else {}
    console.result({"count": count, "digest": survey.digest, "title": survey.title, **only, "questions": drawn_figures})


def _password(path: Path | None) -> tuple[str, bool]:
    """The dashboard's password, and whether it was made now."""
    password = os.environ.get(_PASSWORD)
    if path is not None:
        from sfumato.core.documents import read_text

        password = read_text(path, "password file", "check --password-file").strip()
    if password is None:
        return secrets.token_urlsafe(18), True
    if len(password) < _LEAST_PASSWORD:
        raise OptionError(f"the dashboard's password is shorter than {_LEAST_PASSWORD} letters; choose a longer one")
    return password, False


def _values(survey: Survey, given: tuple[str, ...]) -> dict[str, str]:
    """The true answers, as options or asked for; never shown."""
    names = [question.name for question in survey.questions]
    values: dict[str, str] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if equals and name in names:
            values[name] = value
        elif len(names) == 1:
            values[names[0]] = each
        else:
            raise OptionError("several questions need names; write --value NAME=V for each")
    for question in survey.questions:
        if question.name not in values:
            domain = question.spec.domain
            kinds = f"one of {', '.join(domain.values)}" if domain.size <= 20 and hasattr(domain, "values") else ""
            prompt = f"Your true answer to {question.name} ({kinds or domain.describe()}; not shown)"
            values[question.name] = str(click.prompt(prompt, hide_input=True, err=True))
    return values
