"""Policies: built in, written, read, and refused in one sentence."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato as sf
from sfumato.core.errors import OptionError
from sfumato.publish.policy import BUILT_IN, KEEP, LIMITS, PURPOSES, REQUIRE, Policy

HEAD = 'format = 1\nname = "ours"\n'


def test_research_is_as_the_interface_has_it() -> None:
    assert BUILT_IN["research"] == Policy(
        "research",
        limits={
            "linkage-excess": 0.05,
            "attribute-excess": 0.05,
            "singling-out-excess": 0.05,
            "membership-auc": 0.60,
            "membership-tpr": 0.03,
        },
        require={"control": True, "min_group_size": 10, "rare": "hidden", "tails": "hidden"},
        keep={"utility-loss": 0.05},
        proof={"epsilon": 1.0, "delta": 1e-5},
    )


def test_there_are_three_each_stricter_than_the_one_before() -> None:
    assert list(BUILT_IN) == list(PURPOSES) == ["trusted", "research", "public"]
    trusted, research, public = BUILT_IN.values()
    for looser, stricter in ((trusted, research), (research, public)):
        assert all(looser.limits[name] > stricter.limits[name] for name in LIMITS)
        assert int(looser.require["min_group_size"]) < int(stricter.require["min_group_size"])
        assert set(looser.require) <= set(stricter.require)
        assert looser.keep["utility-loss"] < stricter.keep["utility-loss"]
        assert looser.proof["epsilon"] > stricter.proof["epsilon"]


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_policy_is_written_with_a_sentence_on_every_entry_and_read_back(name: str) -> None:
    policy = Policy.load(name)
    text = policy.to_toml()
    assert Policy.from_toml(text) == policy
    told = " ".join(line.removeprefix("# ") for line in text.splitlines() if line.startswith("#"))
    for meanings, entries in ((LIMITS, policy.limits), (REQUIRE, policy.require), (KEEP, policy.keep)):
        assert all(meanings[entry] in told for entry in entries)
    assert PURPOSES[name] in told


share = st.floats(0, 1)
policies = st.builds(
    Policy,
    st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S")), min_size=1, max_size=60),
    st.fixed_dictionaries(
        {"linkage-excess": share}, optional={"singling-out-excess": share, "membership-auc": st.just(0.5)}
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "control": st.booleans(),
            "min_group_size": st.integers(1, 10**9),
            "rare": st.just("hidden"),
            "tails": st.just("hidden"),
        },
    ),
    st.fixed_dictionaries({}, optional={"utility-loss": share}),
)


@given(policies)
def test_any_policy_is_read_back_as_it_was_written(policy: Policy) -> None:
    assert Policy.from_toml(policy.to_toml()) == policy


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "format = 1"),
        ("format = 2", "format = 1"),
        ("format = true", "format = 1"),
        ("format = 1.0", "format = 1"),
        ("format = 1", "no name"),
        ("format = ", "not valid TOML"),
        ('format = 1\nname = ""\n[limits]\nlinkage-excess = 0', "name of a policy"),
        ('format = 1\nname = " a"\n[limits]\nlinkage-excess = 0', "name of a policy"),
        ('format = 1\nname = "a\\nb"\n[limits]\nlinkage-excess = 0', "name of a policy"),
        (f'format = 1\nname = "{"a" * 61}"\n[limits]\nlinkage-excess = 0', "name of a policy"),
        ("format = 1\nname = 3\n[limits]\nlinkage-excess = 0", "name of a policy"),
        (HEAD, "no limit and no requirement"),
        (HEAD + "[keep]\nutility-loss = 0.1", "no limit and no requirement"),
        (HEAD + "[require]\ncontrol = false", "no limit and no requirement"),
        (HEAD + "note = 1", "unknown entry 'note'"),
        (HEAD + "limits = 3", "not a table"),
        (HEAD + "[[limits]]\nlinkage-excess = 0.1", "not a table"),
        (HEAD + "[limits]\nlinkage = 0.1", "unknown entry 'linkage'"),
        (HEAD + "[limits]\nlinkage-excess = 0.1\nlinkage-excess = 0.2", "not valid TOML"),
        (HEAD + "[limits]\nlinkage-excess = nan", "'linkage-excess' must be a finite number"),
        (HEAD + "[limits]\nlinkage-excess = inf", "'linkage-excess' must be a finite number"),
        (HEAD + "[limits]\nlinkage-excess = true", "'linkage-excess' must be a finite number"),
        (HEAD + '[limits]\nlinkage-excess = "0.1"', "'linkage-excess' must be a finite number"),
        (HEAD + "[limits]\nlinkage-excess = -0.1", "between 0 and 1"),
        (HEAD + "[limits]\nlinkage-excess = 1.1", "between 0 and 1"),
        (HEAD + "[limits]\nmembership-auc = 0.49", "between 0.5 and 1"),
        (HEAD + "[require]\ncontrol = 1", "must be true or false"),
        (HEAD + "[require]\nmin_group_size = 0", "whole number"),
        (HEAD + "[require]\nmin_group_size = 10.0", "whole number"),
        (HEAD + "[require]\nmin_group_size = true", "whole number"),
        (HEAD + '[require]\nrare = "kept"', "'rare' must be 'hidden'"),
        (HEAD + "[limits]\nlinkage-excess = 0.1\n[keep]\nutility-loss = 2", "between 0 and 1"),
    ],
)
def test_what_is_no_policy_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(OptionError, match=words) as refused:
        Policy.from_toml(text)
    assert "\n" not in str(refused.value)


def test_a_file_is_loaded_and_a_name_that_is_neither_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "ours.toml"
    file.write_text(HEAD + "[limits]\nlinkage-excess = 0", encoding="utf-8")
    assert Policy.load(file) == Policy.load(str(file)) == Policy("ours", {"linkage-excess": 0.0})
    assert Policy.load(Policy.load("public")) is BUILT_IN["public"]
    with pytest.raises(OptionError, match="choose trusted, research or public"):
        Policy.load("resarch")
    with pytest.raises(OptionError, match="cannot be read"):
        Policy.load(tmp_path)
    file.write_bytes(b"#" * (1 << 17))
    with pytest.raises(OptionError, match="larger than 64 KiB"):
        Policy.load(file)


@pytest.mark.parametrize("part", ["limits", "require", "keep"])
def test_an_edited_policy_that_kept_a_built_in_name_says_that_it_was_edited(part: str) -> None:
    looser: dict[str, Any] = {part: {}}
    assert BUILT_IN["research"].title == "research"
    assert dataclasses.replace(BUILT_IN["research"], **looser).title == "research (edited)"
    assert Policy("ours", {"linkage-excess": 1}).title == "ours"


def test_a_policy_cannot_be_changed_through_what_it_was_made_from() -> None:
    limits = {"linkage-excess": 0.1}
    policy = sf.Policy("ours", limits)
    limits["linkage-excess"] = 1.0
    assert policy.limits == {"linkage-excess": 0.1}
