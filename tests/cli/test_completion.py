"""What a shell offers at the tab key."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from sfumato.cli import app


def offered(*words: str, begun: str = "") -> list[tuple[str, str]]:
    found = ShellComplete(app, {}, "sfumato", "_SFUMATO_COMPLETE").get_completions(list(words), begun)
    return [(each.type, each.value) for each in found]


def test_verbs_options_and_methods_are_offered() -> None:
    assert offered(begun="san") == [("plain", "sanitize")]
    assert offered("stream", begun="pub") == [("plain", "publish")]
    assert ("plain", "--policy") in offered("sanitize", begun="--pol")
    assert [name for _, name in offered("sanitize", "--method", begun="condense")] == ["condense", "condense-paper"]


@pytest.mark.parametrize("verb", ["inspect", "sanitize", "tune", "evaluate", "reconstruct", "verify"])
def test_files_are_offered_where_one_is_read(verb: str) -> None:
    assert offered(verb, begun="pat") in ([("file", "pat")], [("dir", "pat")])
