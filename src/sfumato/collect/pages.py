"""The pages that people see, rendered once when the collector starts."""

from __future__ import annotations

import math
from importlib.resources import files
from typing import Any

from sfumato.collect.http import Response, as_json
from sfumato.collect.plan import plan_of
from sfumato.collect.survey import Survey
from sfumato.laws.domains import Labels

__all__ = ["Pages"]

_STATIC = ("chance.js", "law.js", "survey.js", "login.js", "dashboard.js", "survey.css", "icon.svg")


class Pages:
    """All pages of a survey.

    Attributes
    ----------
    open : dict of str to Response
        By path, those that anybody may see.
    dashboard, login : Response
    """

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
            "/api/plan": as_json(plan),
            **{f"/static/{name}": _static(name) for name in _STATIC},
        }
        self.dashboard = _page("dashboard.html", f"Dashboard: {survey.title}", plan)
        self.login = _page("login.html", "Dashboard", plan)


def _page(template: str, title: str, plan: dict[str, Any]) -> Response:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sfumato.collect", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters["percent"] = percent
    return Response(environment.get_template(template).render(title=title, plan=plan).encode(), "html")


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


def _static(name: str) -> Response:
    text = files("sfumato.collect").joinpath("static", name).read_text(encoding="utf-8")
    return Response(text.encode(), name.rpartition(".")[2])
