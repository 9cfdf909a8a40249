"""The policy verb, and --policy on sanitize and evaluate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sfumato.publish import BUILT_IN, Policy
from tests.cli.conftest import Run


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_policy_is_printed_to_edit(run: Run, name: str) -> None:
    done = run("policy", name)
    assert done.code == 0, done.err
    assert Policy.from_toml(done.out) == BUILT_IN[name]
    document = json.loads(run("policy", name, "--json").out)
    assert document["limits"] == BUILT_IN[name].limits
    assert document["file"] is None


def test_without_a_name_the_three_are_listed(run: Run) -> None:
    done = run("policy")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()[:3]] == list(BUILT_IN)
    assert len(json.loads(run("policy", "--json").out)["policies"]) == 3


def test_a_policy_is_written_to_a_file_that_may_be_edited_and_shown(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    assert run("policy", "-o", file).code == 0
    assert Policy.load(file) == BUILT_IN["research"]
    assert run("policy", "public", "-o", file).code == 2
    assert run("policy", "public", "-o", file, "--overwrite").code == 0
    file.write_text(file.read_text().replace('"public"', '"ours"').replace("0.03", "0.01"), encoding="utf-8")
    shown = run("policy", file)
    assert shown.code == 0
    assert Policy.from_toml(shown.out).limits["linkage-gain"] == 0.01


def test_what_is_no_policy_is_bad_input(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text("format = 1\nname = 'x'\n[limits]\nlinkage-gain = nan\n", encoding="utf-8")
    done = run("policy", file)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert run("policy", "nosuch").code == 2
