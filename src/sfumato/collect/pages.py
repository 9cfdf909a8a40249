"""What the browser gets: the pages that people see, and the law as whole numbers, so that it draws as Python does.

The page's JavaScript has no fractions and no decimals; it gets both worked out here, large numbers as texts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from importlib.resources import files
from itertools import pairwise
from typing import Any

from sfumato.collect.survey import Question, Survey
from sfumato.core.documents import write_json
from sfumato.core.errors import OptionError
from sfumato.core.laws.domains import Integers, Labels, Universe, domain_to_document
from sfumato.core.laws.exact import FINEST, decimals, rational, share
from sfumato.core.laws.finite import Finite, KeepOrReplace, Mixture, Response, ShiftModulo
from sfumato.core.laws.noise import DiscreteGaussian, DiscreteLaplace
from sfumato.core.laws.operators import Additive, Membership, Operator
from sfumato.core.laws.spec import NoiseSpec
from sfumato.core.pages import page_template

__all__ = ["Page", "Pages", "law_plan", "percent", "plan_of", "question_plan"]

_PRIORS = (0.01, 0.1, 0.5)
"""How sure somebody may be before, in the page's table of how sure they can be after."""

_MOST_CHANCES = 250_000  # of a response matrix: more would be megabytes of page
_SAFE = 2**53
_STATIC = ("chance.js", "law.js", "survey.js", "login.js", "dashboard.js", "survey.css", "icon.svg")
_TYPES = {"js": "text/javascript", "css": "text/css", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class Page:
    """A text and its media type."""

    text: str
    kind: str


class Pages:
    """All pages of a survey, rendered once: ``open`` by path for anybody, ``dashboard`` and ``login``."""

    def __init__(self, survey: Survey) -> None:
        plan = plan_of(survey)
        for question, each in zip(survey.questions, plan["questions"], strict=True):
            domain = question.spec.domain
            each["range"] = domain.describe()
            why = each["words"][1].removeprefix("There is no guarantee: ")
            each["why"] = why[:1].upper() + why[1:]
            each["hint"] = "" if isinstance(domain, Labels) else domain.describe().removeprefix("a ").capitalize()
        self.open = {
            "/": _page("survey.html", survey.title, plan),
            "/api/plan": Page(write_json(plan), "application/json"),
            **{f"/static/{name}": _static(name) for name in _STATIC},
        }
        self.dashboard = _page("dashboard.html", f"Dashboard: {survey.title}", plan)
        self.login = _page("login.html", "Dashboard", plan)


def _page(template: str, title: str, plan: dict[str, Any]) -> Page:
    page = page_template(template, "sfumato.collect", filters=(("percent", percent),))
    return Page(page.render(title=title, plan=plan), "text/html")


def percent(share: float) -> str:
    """Write a bound in percent, never as less than it is.

    Examples
    --------
    >>> percent(0.71633), percent(0.99996), percent(0.0298)
    ('71.7 %', '99.996 %', '3.0 %')
    """
    for digits in (1, 3, 5, 8):
        up = math.ceil(share * 100.0 * 10**digits * (1.0 - 1e-12)) / 10**digits  # less the last bits of a double
        if up < 100.0 or share >= 1.0:
            return f"{up:.{digits}f} %"
    return "100 %"


def _static(name: str) -> Page:
    text = files("sfumato.collect").joinpath("static", name).read_text(encoding="utf-8")
    return Page(text, _TYPES[name.rpartition(".")[2]])


def plan_of(survey: Survey) -> dict[str, Any]:
    """Plan of a whole survey, with what it promises."""
    return {
        "digest": survey.digest,
        "title": survey.title,
        "priors": list(_PRIORS),
        "together": _bounds(survey) if len(survey.questions) > 1 else None,
        "questions": [question_plan(question) for question in survey.questions],
    }


def question_plan(question: Question) -> dict[str, Any]:
    """Plan of one question: domain, law, released values, and what it promises in words.

    Examples
    --------
    >>> from sfumato.core.laws.spec import NoiseSpec
    >>> question = Question("age", NoiseSpec(Integers(0, 100), {"name": "laplace", "scale": 2.5}))
    >>> question_plan(question)["law"]
    {'kind': 'laplace', 'numerator': '5', 'denominator': '2', 'size': 101}
    """
    spec = question.spec
    return {
        "name": question.name,
        "text": question.text or f"Your answer ({question.name})",
        "domain": _domain(spec.domain),
        "law": law_plan(spec.operator),
        "released": {**_domain(spec.released), "whole": isinstance(spec.domain, Integers)},
        "words": spec.describe().split("\n"),
        "proof": _proof(spec),
        "bounds": _bounds(spec),
    }


def law_plan(operator: Operator | Finite) -> dict[str, Any]:
    """A law as whole numbers."""
    size = operator.size
    if isinstance(operator, KeepOrReplace):
        return {"kind": "keep-or-replace", "size": size, **_fraction(share("keep", operator.keep))}
    if isinstance(operator, ShiftModulo):
        return {"kind": "shift-modulo", "size": size, "reach": operator.reach}
    if isinstance(operator, Mixture):
        of = law_plan(operator.of)
        return {"kind": "mixture", "size": size, **_fraction(share("weight", operator.weight)), "of": of}
    if isinstance(operator, Response):
        return _response(operator)
    if isinstance(operator, Membership):
        return _membership(operator)
    if not isinstance(operator, Additive):
        raise OptionError(f"no page can draw the law {type(operator).__name__}; choose another law")
    return {**_noise(operator), "size": size}


def _noise(operator: Additive) -> dict[str, Any]:
    law = operator.law
    if isinstance(law, DiscreteLaplace):
        return {"kind": "laplace", **_fraction(rational(law.scale))}
    if isinstance(law, DiscreteGaussian):
        return {"kind": "gaussian", **_fraction(Fraction(law.sd) ** 2), "above": str(int(law.sd) + 1)}
    return {"kind": "uniform", "reach": law.steps}


def _response(operator: Response) -> dict[str, Any]:
    weights = operator.weights
    others = {int(chance) for row, chances in enumerate(weights) for x, chance in enumerate(chances) if x != row}
    truths = {int(weights[row, row]) for row in range(min(weights.shape))}
    if weights.shape[0] == weights.shape[1] and len(others) == len(truths) == 1:  # all answers alike: keep or replace
        return {"kind": "keep-or-replace", "size": operator.size, **_fraction(Fraction(truths.pop(), FINEST))}
    if weights.size > _MOST_CHANCES:
        raise OptionError(f"the response matrix is too large for a page ({_MOST_CHANCES:,} chances); join some labels")
    rows = [[str(chance) for chance in row] for row in weights.tolist()]
    return {"kind": "response", "size": operator.size, "total": str(FINEST), "rows": rows}


def _membership(operator: Membership) -> dict[str, Any]:
    cells = operator.cells
    if any(a > b for a, b in pairwise(cells)):
        return {"kind": "classes", "size": operator.size, "cells": list(cells)}
    starts = [place for place, cell in enumerate(cells) if place == 0 or cells[place - 1] < cell]
    return {"kind": "intervals", "size": operator.size, "starts": starts}


def _domain(domain: Universe) -> dict[str, Any]:
    document = domain_to_document(domain)
    if isinstance(domain, Labels):
        return document
    if max(abs(domain.low), abs(domain.high)) >= _SAFE:
        raise OptionError("numbers above 2^53 cannot be answered on a page; choose another origin or unit")
    return {**document, "size": domain.size, "digits": decimals(domain.low, domain.step)}


def _bounds(one: NoiseSpec | Survey) -> list[float] | None:
    """How sure somebody can be after, for each prior; None where there is no bound."""
    bounds = [one.bound(prior) for prior in _PRIORS]
    return None if min(bounds) >= 1.0 else bounds


def _proof(spec: NoiseSpec) -> str | None:
    """Say what an extreme answer proves, for noise that is bounded [errata JS07.4]."""
    operator = spec.operator
    if not isinstance(operator, Additive) or operator.outputs is None or isinstance(spec.domain, Labels):
        return None
    first, last = (spec.decode_output([end])[0] for end in (operator.outputs.start, operator.outputs.stop - 1))
    low, high = spec.domain.low, spec.domain.high
    return (
        f"The noise has an end, so an extreme number is a proof: if {last:g} is sent, your true answer can only be "
        f"{high:g}; if {first:g} is sent, it can only be {low:g}."
    )


def _fraction(number: Fraction) -> dict[str, str]:
    return {"numerator": str(number.numerator), "denominator": str(number.denominator)}
