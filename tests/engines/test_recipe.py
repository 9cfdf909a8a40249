"""The recipe: what was written is read back to the byte, and an entry that is none is refused by its name."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sfumato.core.errors import OptionError, SchemaError
from sfumato.engines.outcome import Recipe
from sfumato.options import RunOptions
from tests.fuzz.fuzzing import GOLDENS

BARE = 'format = 1\nmethod = "condense"\n[parameters]\nk = 5\n'


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDENS.iterdir()))
def test_a_recipe_comes_back_as_it_was_written(name: str) -> None:
    text = (GOLDENS / name / "owner-recipe.toml").read_text(encoding="utf-8")
    recipe = Recipe.from_toml(text)
    assert recipe.to_toml() == text
    assert repr(recipe) == f"Recipe({recipe.method}, {len(recipe.schema)} columns)"


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("sfumato", "0.2.0"),
        ("level", "age"),
        ("level", 7),
        ("strata", "sex"),
        ("holdout", 0.25),
        ("seed", 3),
        ("policy", "ours"),
        ("no_rules", True),
        ("keep_persons", True),
        ("rare", "lift"),
        ("rows", 100),
        ("where", "age > 3"),
    ],
)
def test_every_option_that_was_told_is_read_again(entry: str, value: Any) -> None:
    bare = Recipe.from_toml(BARE)
    if entry in vars(bare):
        recipe = dataclasses.replace(bare, **{entry: value})
    else:
        recipe = dataclasses.replace(bare, options=RunOptions(**{entry: value}))
    assert Recipe.from_toml(recipe.to_toml()) == recipe != bare
    assert f"\n{entry} = " in recipe.to_toml()


@pytest.mark.parametrize("entry", ["level", "strata", "holdout", "seed", "policy", "no_rules", "rare", "rows", "where"])
def test_what_was_not_told_is_not_written(entry: str) -> None:
    assert f"\n{entry} = " not in Recipe.from_toml(BARE).to_toml()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BARE.replace('method = "condense"\n', ""), "entry 'method' is missing or of the wrong type"),
        (BARE.partition("[")[0], "entry 'parameters' is missing or of the wrong type"),
        (BARE.replace('"condense"', "3"), "entry 'method' is missing or of the wrong type"),
        (f"holdout = true\n{BARE}", "entry 'holdout' is missing or of the wrong type"),
        (f"seed = 1.0\n{BARE}", "entry 'seed' is missing or of the wrong type"),
        (f'no_rules = "no"\n{BARE}', "entry 'no_rules' is missing or of the wrong type"),
        (f"later = 1\n{BARE}", "the recipe has an unknown entry 'later'"),
        (f"{BARE}b = nan\n", "parameter 'b' is not a finite number"),
        (f"{BARE}b = -inf\n", "parameter 'b' is not a finite number"),
        (BARE.replace("= 1", "= 2", 1), "no 'format = 1'"),
        ("[", "the recipe is not valid TOML"),
    ],
)
def test_a_wrong_entry_of_a_recipe_is_named(text: str, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        Recipe.from_toml(text)


def test_a_wrong_column_of_a_recipe_is_refused_as_that_of_a_schema() -> None:
    with pytest.raises(SchemaError):
        Recipe.from_toml(BARE + '[[column]]\nname = "age"\nkind = "number"\n')


@pytest.mark.parametrize(
    ("method", "command"),
    [
        ("condense", "sfumato sanitize INPUT"),
        ("stream", "sfumato stream init FILE"),
        ("joint-laplace-pca", "sfumato party run --config PARTY"),
        ("randomize-transactions", "sfumato transactions randomize INPUT"),
        ("hide-rules", "sfumato transactions hide INPUT"),
        ("block-rules", "sfumato transactions block INPUT"),
    ],
)
def test_a_recipe_says_what_runs_it_again(method: str, command: str) -> None:
    lines = dataclasses.replace(Recipe.from_toml(BARE), method=method).to_toml().splitlines()
    assert lines[0].startswith(f"# Recipe of a sanitized table: {command}")
    assert "# It holds observed bounds and categories: keep it with the owner." in lines[:3]
