"""doctor: what is there, what is missing and how to get it."""

from __future__ import annotations

import json
from importlib import metadata

import pytest

from sfumato.cli import verbs
from tests.cli.conftest import Run


def test_it_names_what_is_there_as_the_installation_states_it(run: Run) -> None:
    done = run("doctor", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["packages"]["numpy"] == metadata.version("numpy")
    assert set(found["extras"]) == {"excel", "stream", "survey", "web"}
    assert found["extensions"] == {}
    assert found["cores"] >= 1
    assert isinstance(found["compiled"], bool)


def test_what_is_missing_is_told_with_how_to_get_it_and_is_no_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    known = metadata.version
    monkeypatch.setattr(verbs, "_version", lambda name: None if name in ("xlsxwriter", "numba") else known(name))
    monkeypatch.setattr(verbs, "_browser", lambda: None)
    monkeypatch.setattr(verbs, "_engine", lambda: None)
    done = run("doctor")
    assert done.code == 0, done.err
    assert "Extra excel:         missing (xlsxwriter); pip install 'sfumato[excel]'." in done.out
    assert "Needed and missing:  numba" in done.out
    assert "Browser for PDF:     none; install" in done.out
    assert "Secure computation:  none; see" in done.out


def test_code_that_is_not_compiled_yet_is_told(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {}
    for there in (False, True):
        monkeypatch.setattr("sfumato.core.compiled.is_cached", lambda _, there=there: there)
        told[there] = json.loads(run("doctor", "--json").out)["compiled"]
    assert told == {False: False, True: True}


def test_warming_comes_first(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    warmed: list[bool] = []
    monkeypatch.setattr(verbs, "warm", lambda: warmed.append(True))
    assert run("doctor", "--warm").code == 0
    assert run("doctor").code == 0
    assert warmed == [True]
