"""Extensions: other packages add methods and measures, and broken or clashing ones are refused by name."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sfumato.assess.algebra import Measure, Number
from sfumato.assess.findings import Family
from sfumato.core.errors import OptionError
from sfumato.registry import Extension, extension_measures, extensions

GOOD = """
from dataclasses import dataclass
from typing import ClassVar

@dataclass(frozen=True)
class Copy:
    method: ClassVar[str] = {method!r}

METHODS = {{"copy": Copy}}
"""


def install(folder: Path, module: str, text: str) -> None:
    """What an installer leaves of a package: its module and the entry point."""
    (folder / f"{module}.py").write_text(text, encoding="utf-8")
    info = folder / f"{module}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.2\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[sfumato.extensions]\n{module} = {module}\n", encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installation folder, whose modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def found() -> tuple[Extension, ...]:
    return extensions.__wrapped__()


def test_an_installed_package_adds_a_method(folder: Path) -> None:
    install(folder, "copies_rows", GOOD.format(method="copy"))
    (extension,) = found()
    assert (extension.name, extension.package) == ("copies_rows", "copies_rows 1.2")
    assert list(extension.methods) == ["copy"]
    assert extension.measures == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import a_module_that_nobody_has", r"'spoils' \(spoils 1.2\) cannot be loaded \(ModuleNotFoundError\)"),
        ("METHODS = 3", r"cannot be loaded \(TypeError\)"),
        (GOOD.format(method="other"), "its method 'copy' has another name"),
        (GOOD.format(method="chain").replace('"copy"', '"chain"'), "adds 'chain', a name that is already in use"),
    ],
)
def test_an_extension_that_cannot_be_used_is_named(folder: Path, text: str, words: str) -> None:
    install(folder, "spoils", text)
    with pytest.raises(OptionError, match=words):
        found()


def test_two_extensions_cannot_share_a_method(folder: Path) -> None:
    install(folder, "first_copy", GOOD.format(method="copy"))
    install(folder, "second_copy", GOOD.format(method="copy"))
    with pytest.raises(OptionError, match=r"'second_copy' .* adds 'copy'"):
        found()


def test_a_number_of_an_extension_does_not_hide_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def measure(name: str) -> Measure:
        return Measure(name, Family.ATTACK, "nobody", lambda _: ()).finds(Number("linkage-success"))

    added = Extension("more", "more 1.0", {}, (measure("other"),))
    monkeypatch.setattr("sfumato.registry.extensions", lambda: (added,))
    assert extension_measures(()) == added.measures
    with pytest.raises(OptionError, match="adds 'linkage-success', a name that is already in use"):
        extension_measures((measure("linkage"),))
