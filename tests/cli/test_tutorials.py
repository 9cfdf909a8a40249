"""Tutorials do what they say, line by line, in an empty folder; and commands on all pages are ones that exist."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import rich_click as click

from sfumato.assess import measure
from sfumato.cli import app
from tests.cli.conftest import Run
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
LEARN = ROOT / "docs" / "learn"
TUTORIALS = sorted(page.stem for page in LEARN.glob("*.md"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SIGNED = "\nIntact. Signed by SHA256:..., which you have not confirmed."  # what a review of a release ends with
NAMED = re.compile(r"# (\w+\.(?:py|toml))\n")


@dataclass
class Step:
    """Commands of a block, and what the page shows of their output."""

    commands: list[str]
    shown: str = ""

    def check(self, output: str) -> None:
        pattern = ".*".join(re.escape(part) for part in self.shown.strip().split("..."))
        assert re.search(pattern, output, re.DOTALL), (
            f"{self.commands}: the page shows\n{self.shown}\nand it is\n{output}"
        )


def prepared(name: str, folder: Path) -> list[Step]:
    """Write the files that a page names into a folder; its steps, in order."""
    shutil.copy(ROOT / "examples" / "messy_patients.py", folder)
    steps: list[Step] = []
    for language, text in FENCE.findall((LEARN / f"{name}.md").read_text("utf-8")):
        if (named := NAMED.match(text)) is not None:
            (folder / named[1]).write_text(text, "utf-8")
        elif language == "sh":
            steps.append(Step(text.splitlines()))
        elif language == "text" and steps[-1].shown == "":
            steps[-1].shown = text
    return steps


@pytest.mark.parametrize("name", ["stream", "two-hospitals"])
def test_a_tutorial_shows_what_its_commands_say(
    name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measure, "draw_figures", lambda *_: ())
    monkeypatch.setattr(measure, "catalogue", lambda: ())
    steps = prepared(name, tmp_path)
    assert sum(bool(step.shown) for step in steps) >= 2
    for step in steps:
        output = []
        for line in step.commands:
            words = shlex.split(line)
            if words[0] == "sfumato":
                done = run(*words[1:])
                assert done.code == 0, done.err
                output.append(done.out)
            elif words[0] == "python":
                runpy.run_path(words[1])
            else:
                output.append(subprocess.run(line, shell=True, check=True, capture_output=True, text=True).stdout)
        step.check("".join(output))


@pytest.mark.slow
@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_runs_in_a_shell_from_an_empty_folder(name: str, tmp_path: Path) -> None:
    """As a reader types it, with whole reports, but that a server is waited for, on a port that is free.

    And but for a seed where a policy is judged, so that the verdict does not hang on a draw; a dry run holds up to
    its mark.
    """
    steps, mark, port = prepared(name, tmp_path), "=== end of a step", str(free_port())
    script = ["set -e", "exec 2>&1"]
    for step in steps:
        for line in step.commands:
            seeded = line.replace("sfumato sanitize ", "sfumato sanitize --seed 7 ").replace("8000", port)
            dry_run = "verify" in line and any("sanitize" in other for other in step.commands)
            script.append(f"{seeded} || test $? = 3" if dry_run else seeded)
            step.shown = step.shown.replace(SIGNED, " a dry run made with a seed") if dry_run else step.shown
            if line.endswith("&"):
                script.append(f"until (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null; do sleep 0.2; done")
        script.append(f"echo '{mark}'")
    for file in tmp_path.glob("*.*"):
        file.write_text(file.read_text("utf-8").replace("127.0.0.1:8000", f"127.0.0.1:{port}"), "utf-8")
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.defpath}", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    environment |= {name: os.environ[name] for name in ("PYTHONPATH", "OMP_NUM_THREADS") if name in os.environ}
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:]
    outputs = done.stdout.split(f"{mark}\n")
    for step, output in zip(steps, outputs[:-1], strict=True):
        step.check(output)


def commands_on(page: Path) -> Iterator[list[str]]:
    """Command lines of a page, without placeholders for what may be left out."""
    for language, text in FENCE.findall(page.read_text("utf-8")):
        if language not in ("sh", "console", "bash"):
            continue
        for line in text.replace("\\\n", " ").splitlines():
            told = re.sub(r"(^\$ )|(\s+#\s.*$)", "", line)
            if told.startswith("sfumato ") and "..." not in told and " [" not in told:
                words = shlex.split(told)
                end = next((place for place, word in enumerate(words) if word in ("|", ">", "&", "&&")), None)
                yield words[1:end]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "sfumato " in page.read_text("utf-8")], ids=lambda page: page.stem
)
def test_commands_on_pages_are_understood(page: Path) -> None:
    for words in commands_on(page):
        command, context = app, click.Context(app, info_name="sfumato")
        while isinstance(command, click.Group) and words and words[0] in command.list_commands(context):
            name = words.pop(0)
            found = command.get_command(context, name)
            assert found is not None
            command, context = found, click.Context(found, info_name=name, parent=context)
        assert command is not app, f"{page.name}: {words}"
        command.make_context(context.info_name, words, parent=context.parent)
