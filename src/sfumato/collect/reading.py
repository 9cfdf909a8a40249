"""A survey as it is named on the command line: files of specifications and the texts of questions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sfumato.collect.survey import ONLY, Question, Survey
from sfumato.errors import OptionError
from sfumato.laws.spec import NoiseSpec

__all__ = ["read_survey"]


def read_survey(specs: Sequence[str], texts: Sequence[str], title: str) -> Survey:
    """Read a survey from the files of its specifications.

    Parameters
    ----------
    specs : sequence of str
        ``FILE`` for a single question, ``NAME=FILE`` for each of several.
    texts : sequence of str
        What is asked: ``NAME=TEXT``, or ``TEXT`` for a single question.
    title : str
    """
    files = [_named(spec) for spec in specs]
    if len(files) > 1 and any(name is None for name, _ in files):
        raise OptionError("several specifications need names; write --spec NAME=FILE for each")
    names = [name or ONLY for name, _ in files]
    asked: dict[str, str] = {}
    for text in texts:
        name, _, rest = text.partition("=")
        if name in names:
            asked[name] = rest
        elif len(names) == 1:
            asked[names[0]] = text
        else:
            raise OptionError("a --question is for none of the specifications; write --question NAME=TEXT")
    questions = (
        Question(name, NoiseSpec.read(path), asked.get(name, "")) for name, (_, path) in zip(names, files, strict=True)
    )
    return Survey(tuple(questions), title)


def _named(spec: str) -> tuple[str | None, str]:
    name, equals, path = spec.partition("=")
    return (name, path) if equals and not Path(spec).exists() else (None, spec)
