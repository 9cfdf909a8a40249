"""doctor: what is installed here, what is missing and how to get it, and compiling ahead of the first run."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from typing import TYPE_CHECKING, Any

import rich_click as click

from sfumato import __version__
from sfumato.cli.console import Console, verb
from sfumato.core.errors import OptionError, SfumatoError
from sfumato.core.progress import tell

if TYPE_CHECKING:
    from sfumato.mechanisms.protocol import Mechanism

__all__ = ["doctor", "warm"]

_REQUIREMENT = re.compile(r"""([A-Za-z0-9._-]+)[^;]*(?:;.*extra == ['"]([a-z]+)['"].*)?""")
_USES = {
    "excel": ".xlsx and .ods files",
    "sql": "databases, as INPUT and out",
    "stream": "streams from Redis, state in PostgreSQL",
    "collect": "surveys of randomized answers",
    "web": "the local page, sfumato web",
}
"""What each extra is for; one that is not listed is for developers."""


@click.command()
@click.option("--warm", "warmed", is_flag=True, help="Compile what every first run would wait for, once.")
@verb
def doctor(console: Console, warmed: bool) -> None:
    """Say what is installed, what is missing and how to get it; --warm compiles ahead of the first run."""
    if warmed:
        with console.progress():
            warm()
    found = _examine()
    for line in _lines(found):
        console.say(line)
    console.result(found)


def warm() -> None:
    """Compile the default path: sanitize small tables by the chain and by each grouping, and what a report calls."""
    import numpy as np
    import pyarrow as pa

    from sfumato.assess.warm import compile_ahead, compile_report, wait_for_report
    from sfumato.mechanisms.chain.mechanism import Chain
    from sfumato.mechanisms.condense import Condensation
    from sfumato.mechanisms.condense.compact import in_fewer_columns
    from sfumato.publish.sanitize import sanitize

    table = pa.table({"age": [20 + row % 50 for row in range(60)], "word": ["a", "b", None] * 20})
    steps: list[Mechanism] = [Chain(k=5, leaf=10)]
    steps += [Condensation(k=5, grouping=grouping) for grouping in ("compact", "mdav", "paper")]
    compile_ahead()
    for place, mechanism in enumerate(steps):
        tell("compiling groups", place / len(steps))
        sanitize(table, mechanism, level="age > 50: 8, else: 5", report=False)
    in_fewer_columns(np.eye(2, 3))
    wait_for_report()
    compile_report()
    tell("compiling groups", 1.0)


def _examine() -> dict[str, Any]:
    """What there is: versions, machine, compiled code, browser, engine, extras."""
    needed, extras = _requirements()
    return {
        "sfumato": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 1,
        "memory_gb": _memory(),
        "packages": {name: _version(name) for name in needed},
        "compiled": _is_compiled(),
        "browser": _browser(),
        "engine": _engine(),
        "extras": {
            name: {"for": _USES[name], "missing": [each for each in extras.get(name, ()) if _version(each) is None]}
            for name in _USES
        },
    }


def _requirements() -> tuple[list[str], dict[str, list[str]]]:
    """Names of the packages that are needed, and of those of each extra, as the installation states them."""
    needed: list[str] = []
    extras: dict[str, list[str]] = {}
    for line in metadata.requires("sfumato") or ():
        stated = _REQUIREMENT.fullmatch(line)
        if stated is None or (stated[2] is not None and _not_for_here(line)):
            continue
        (needed if stated[2] is None else extras.setdefault(stated[2], [])).append(stated[1])
    return needed, extras


def _not_for_here(line: str) -> bool:
    return "sys_platform != 'win32'" in line.replace('"', "'") and platform.system() == "Windows"


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9, 1)
    except (AttributeError, ValueError, OSError):
        return None


def _is_compiled() -> bool:
    """Whether the first run of the default path has nothing to wait for."""
    from sfumato.assess.warm import share_compiled
    from sfumato.core.compiled import is_cached, share_cached
    from sfumato.mechanisms.chain import trees
    from sfumato.mechanisms.condense.leaves import improve_leaves

    return share_compiled() == share_cached(trees.__name__) == 1.0 and is_cached(improve_leaves)


def _browser() -> str | None:
    from sfumato.publish.folder import find_browser

    try:
        return find_browser()
    except OptionError:
        return None


def _engine() -> str | None:
    from sfumato.engines.parties.spu import engine_python

    try:
        return str(engine_python())
    except SfumatoError:
        return None


def _lines(found: dict[str, Any]) -> list[str]:
    memory = "" if found["memory_gb"] is None else f", {found['memory_gb']:g} GB of memory"
    cores = f"{found['cores']} core{'' if found['cores'] == 1 else 's'}"
    lines = [f"sfumato {found['sfumato']} on Python {found['python']}, {found['system']}, {cores}{memory}."]
    lacking = [name for name, version in found["packages"].items() if version is None]
    there = ", ".join(f"{name} {version}" for name, version in found["packages"].items() if version is not None)
    lines.append(f"Needed and there:    {there}.")
    if lacking:
        lines.append(f"Needed and missing:  {', '.join(lacking)}; pip install --force-reinstall sfumato")
    kept = (
        "kept from an earlier run" if found["compiled"] else "not yet; sfumato doctor --warm does it, within a minute"
    )
    lines.append(f"Compiled code:       {kept}.")
    browser = found["browser"] or "none; install Chromium or Chrome, or print summary.html from another browser"
    lines.append(f"Browser for PDF:     {browser}.")
    engine = found["engine"] or "none; see docs/several-owners.md for an environment with spu 0.9.5"
    lines.append(f"Secure computation:  {engine}.")
    for name, extra in found["extras"].items():
        missing = ", ".join(extra["missing"])
        state = "there" if not missing else f"missing ({missing}); pip install 'sfumato[{name}]'"
        lines.append(f"Extra {name + ':':<14} {state}. For {extra['for']}.")
    return lines
