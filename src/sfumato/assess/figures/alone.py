"""A drawing taken out of its page: the colours and letters that the page would choose are written into it."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

__all__ = ["stand_alone"]

_VARIABLE = re.compile(r"var\(--([a-z0-9-]+)\)")


def stand_alone(svg: str) -> str:
    """Resolve the page's variables in an ``<svg>`` element as they are on light paper, and lay the paper under it."""
    palette = _palette()
    body = _VARIABLE.sub(lambda match: palette[match.group(1)], svg)
    head = body.index("</title>") + len("</title>")
    box = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', body)
    assert box is not None
    paper = f'<rect width="{box.group(1)}" height="{box.group(2)}" fill="{palette["paper"]}"/>'
    return body[:head] + paper + body[head:]


@cache
def _palette() -> dict[str, str]:
    """Read the light colours off the page's own style, so that there is one list of them."""
    style = files("sfumato.assess").joinpath("templates", "report.css").read_text(encoding="utf-8")
    light = style[style.index(":root {") : style.index("}")]
    return {name: value.strip().replace('"', "'") for name, value in re.findall(r"--([a-z0-9-]+):\s*([^;]+);", light)}
