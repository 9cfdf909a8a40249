"""The key: its file, what it refuses, and that its terms show nowhere."""

from __future__ import annotations

import pickle
import stat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core.errors import OptionError, PrivacyRefusal, SfumatoError
from sfumato.methods.geometry.key import Add, Key, Mult, Rotate, keeping_key
from sfumato.methods.geometry.transformations import KINDS, PAIRS, Ranges

INTERFACE = """
format = 1
step = [
  { op = "add", column = "age", term = -3 },
  { op = "mult", column = "salary", term = 1.035 },
  { op = "rotate", columns = ["age", "salary"], degrees = 13.7, units = { salary = 1000 } },   # clockwise
]
"""
NAMES = [f"c{place}" for place in range(9)]


def drawn(kind: str, d: int, seed: int, pairs: str = "chain") -> Key:
    names = NAMES[:d]
    ranges = Ranges(
        add=dict.fromkeys(names, (-5.0, 5.0)),
        mult=dict.fromkeys(names, (-2.0, 3.0)),
        units={name: 1.0 + place for place, name in enumerate(names)},
    )
    return Key.generate(names, ranges, np.random.default_rng(seed), kind=kind, pairs=pairs)


def test_the_form_of_the_interface_is_read() -> None:
    key = Key.from_toml(INTERFACE)
    assert key.steps == (Add("age", -3), Mult("salary", 1.035), Rotate(("age", "salary"), 13.7, (1.0, 1000)))
    assert key.operations == ("add", "mult", "rotate")
    assert key.columns == ("age", "salary")


@given(seed=st.integers(0, 10**6), d=st.integers(2, 9), kind=st.sampled_from(KINDS), pairs=st.sampled_from(PAIRS))
def test_a_key_comes_back_from_toml_to_the_bit(seed: int, d: int, kind: str, pairs: str) -> None:
    key = drawn(kind, d, seed, pairs)
    assert Key.from_toml(key.to_toml()) == key


@given(seed=st.integers(0, 10**6), d=st.integers(2, 9), kind=st.sampled_from(KINDS), pairs=st.sampled_from(PAIRS))
def test_a_drawn_key_has_a_step_for_every_column_and_stays_in_its_ranges(
    seed: int, d: int, kind: str, pairs: str
) -> None:
    key = drawn(kind, d, seed, pairs)
    assert set(key.columns) == set(NAMES[:d])
    for step in key.steps:
        if isinstance(step, Rotate):
            assert 0 < step.degrees < 360
            assert min(step.degrees % 90, 90 - step.degrees % 90) > 8.9
        else:
            assert abs(step.term) <= 5
            assert abs(step.term - (0 if isinstance(step, Add) else 1)) > 0.4


@pytest.mark.parametrize("d", [2, 3, 4, 5, 8, 9])
def test_disjoint_pairs_turn_each_column_once_and_an_odd_one_with_a_turned_one(d: int) -> None:
    steps = drawn("rotate", d, 3, "disjoint").steps
    couples = [step.columns for step in steps]
    assert len(couples) == (d + 1) // 2
    even = [column for couple in couples[: d // 2] for column in couple]
    assert len(set(even)) == 2 * (d // 2)
    if d % 2:
        assert couples[-1][0] not in even
        assert couples[-1][1] in even


@pytest.mark.parametrize("d", [2, 3, 5, 9])
def test_a_chain_of_pairs_links_all_columns(d: int) -> None:
    key = drawn("rotate", d, 4)
    assert len(key.steps) == d - 1
    assert key.known_rows == min(d - 1, 3)


@given(seed=st.integers(0, 10**6), d=st.integers(2, 9))
def test_a_hybrid_that_turns_one_column_alone_draws_it_a_partner(seed: int, d: int) -> None:
    turns = [step for step in drawn("hybrid", d, seed).steps if isinstance(step, Rotate)]
    assert all(len(set(turn.columns)) == 2 for turn in turns)


@pytest.mark.parametrize(
    ("key", "rows"),
    [
        (Key((Add("a", 1), Mult("b", 2), Add("c", 3))), 2),
        (Key((Add("a", 1), Add("b", 3))), 1),
        (Key((Mult("a", 3), Mult("b", 2))), 1),
        (Key((Rotate(("a", "b"), 20),)), 1),
        (Key((Rotate(("a", "b"), 20), Rotate(("c", "d"), 30))), 3),
        (Key((Rotate(("a", "b"), 20), Rotate(("c", "b"), 30))), 2),
        (Key((*(Rotate((a, b), 20) for a, b in ("ab", "bc", "cd", "ef", "fg")),)), 3),
        (Key((Rotate(("a", "b"), 20), Rotate(("c", "b"), 30), Add("a", 2))), 4),
        (Key((Mult("d", 2), Rotate(("a", "b"), 20))), 3),
    ],
)
def test_known_rows_are_one_for_a_shift_or_factor_and_three_at_most_for_turns_alone(key: Key, rows: int) -> None:
    assert key.known_rows == rows


@pytest.mark.parametrize(
    ("key", "steps", "written"),
    [
        (Key((Add("a", 0.123456789),)), {"a": 0.01}, {"a": 0.01}),
        (Key((Mult("a", 1.37), Mult("b", -0.55), Mult("c", 2.3))), {"a": 0.1, "b": 0.1, "c": 0.5}, [0.2, 0.1, 2.0]),
        (Key((Mult("a", 1.37), Mult("b", 1.37))), {"a": 1.0, "b": None}, {"a": 2.0}),
        (Key((Mult("a", 0.04), Add("b", 2.5))), {"a": 1.0, "b": 1.0}, {"a": 1.0}),
        (Key((Rotate(("a", "b"), 20),)), {"a": 1.0, "b": 0.1}, {"b": 0.1}),
        (Key((Rotate(("a", "b"), 20, (1.0, 500.0)),)), {"a": 0.1, "b": 0.5}, {"a": 0.001, "b": 0.1}),
        (Key((Rotate(("a", "b"), 20),)), {"a": 0.1, "b": None}, {}),
    ],
    ids=[
        "shift",
        "factor",
        "whole or open",
        "small or shifted whole",
        "turned whole",
        "turn",
        "turned with an open one",
    ],
)
def test_moved_numbers_are_written_no_finer_than_the_step_is_after_the_move(
    key: Key, steps: dict[str, float | None], written: Any
) -> None:
    expected = dict(zip(key.columns, written, strict=True)) if isinstance(written, list) else written
    assert key.written_steps(steps) == pytest.approx(expected)


def test_a_spacing_that_is_wider_than_the_step_counts_where_numbers_were_multiplied() -> None:
    key = Key((Mult("a", 1.37), Mult("b", 0.73), Mult("c", 1.37), Add("d", 1.0)))
    spacings = {"a": 1000.0, "b": 0.25, "c": 0.0, "d": 1000.0}
    assert key.written_steps({"a": 1.0, "b": None, "c": None, "d": 0.1}, spacings) == {"a": 2000.0, "b": 0.2, "d": 0.1}


def test_a_spacing_stands_for_a_step_that_nobody_named() -> None:
    key = Key((Add("a", 0.123), Rotate(("b", "c"), 20)))
    assert key.written_steps({}, {"a": 0.05, "b": 0.1, "c": 0.5}) == pytest.approx({"a": 0.05, "b": 0.1, "c": 0.1})
    assert key.written_steps({}, {"a": 0.0, "b": 0.1, "c": 0.0}) == {}


def test_no_repr_shows_a_term() -> None:
    key = Key.from_toml(INTERFACE)
    for text in (repr(key), str(key), *(repr(step) for step in key.steps), f"{key.steps}"):
        assert not any(term in text for term in ("-3", "1.035", "13.7", "1000"))
    assert pickle.loads(pickle.dumps(key)) == key


def test_a_key_file_opens_for_its_owner_only_and_is_never_overwritten(tmp_path: Path) -> None:
    key, file = Key.from_toml(INTERFACE), tmp_path / "key.toml"
    key.save(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert Key.load(file) == key
    with pytest.raises(OptionError, match=r"already.*name another"):
        key.save(file)
    link = tmp_path / "link.toml"
    link.symlink_to(tmp_path / "nowhere.toml")
    with pytest.raises(OptionError, match="already"):
        key.save(link)


@pytest.mark.parametrize("inside", ["key.toml", "owner/key.toml", "release/key.toml", "../out/key.toml"])
def test_a_key_is_never_written_into_the_folder_of_a_release(tmp_path: Path, inside: str) -> None:
    with pytest.raises(PrivacyRefusal, match="keep it elsewhere"):
        Key.from_toml(INTERFACE).save(tmp_path / "out" / inside, apart_from=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_key_does_not_take_the_place_of_the_folder_of_a_release(tmp_path: Path) -> None:
    with pytest.raises(PrivacyRefusal, match="keep it elsewhere"):
        Key.from_toml(INTERFACE).save(tmp_path / "out", apart_from=tmp_path / "out")


def test_a_file_that_comes_while_a_key_is_written_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, file = Key.from_toml(INTERFACE), tmp_path / "key.toml"
    text = key.to_toml()
    monkeypatch.setattr(Key, "to_toml", lambda _: file.write_text("theirs") and text)
    with pytest.raises(OptionError, match="already"):
        key.save(file)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["theirs"]


@pytest.mark.parametrize("released", [False, True])
def test_a_key_is_kept_only_where_a_release_came_of_it(tmp_path: Path, released: bool) -> None:
    key, file, folder = Key.from_toml(INTERFACE), tmp_path / "key.toml", tmp_path / "out"

    def stopped() -> None:
        with keeping_key(key, file, folder):
            assert Key.load(file) == key
            if released:
                folder.mkdir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert file.exists() == released


def test_nothing_is_written_without_a_key_or_a_place_for_it(tmp_path: Path) -> None:
    with keeping_key(None, tmp_path / "key.toml", tmp_path / "out"), keeping_key(Key((Add("a", 1),)), None, tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_told_without_a_term(tmp_path: Path) -> None:
    with pytest.raises(SfumatoError, match="could not be written"):
        Key.from_toml(INTERFACE).save(tmp_path / "none" / "key.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("term = 77.125 =", "not valid TOML"),
        ("step = []", "format = 1"),
        ("format = 1", "no list 'step'"),
        ("format = 1\nstep = []", "no step"),
        ("format = 1\nother = 77.125\nstep = []", "unknown entry 'other'"),
        ('format = 1\nstep = [{ op = "bend", column = "a", term = 77.125 }]', "step 1 .* no operation"),
        ('format = 1\nstep = [{ op = "add", column = "a" }]', "'term'"),
        ('format = 1\nstep = [{ op = "add", column = "a", term = 77.125, more = 1 }]', "'more'"),
        ('format = 1\nstep = [{ op = "add", column = "a", term = "77.125" }]', "term .* 'a' is not a finite"),
        ('format = 1\nstep = [{ op = "add", column = "a", term = nan }]', "not a finite number"),
        ('format = 1\nstep = [{ op = "add", column = 77.125, term = 1 }]', "not a name"),
        ('format = 1\nstep = [{ op = "add", column = "a", term = 0.0 }]', "leaves column 'a' as it is"),
        ('format = 1\nstep = [{ op = "mult", column = "a", term = 0 }]', "wipes out column 'a'"),
        ('format = 1\nstep = [{ op = "mult", column = "a", term = 1 }]', "leaves column 'a' as it is"),
        ('format = 1\nstep = [{ op = "rotate", columns = ["a"], degrees = 77.125 }]', "two columns"),
        ("format = 1\nstep = [1]", "no list 'step'"),
        ('format = 1\nstep = [{ op = ["add"], column = "a", term = 77.125 }]', "step 1 .* no operation"),
        ('format = 1\nstep = [{ op = "rotate", columns = "ab", degrees = 77.125 }]', "two columns"),
        ('format = 1\nstep = [{ op = "rotate", columns = ["a", "b", "c"], degrees = 77.125 }]', "two columns"),
        ('format = 1\nstep = [{ op = "rotate", columns = ["a", 77.125], degrees = 7 }]', "two columns"),
        ('format = 1\nstep = [{ op = "rotate", columns = ["a", "b"], degrees = 7, units = ["b"] }]', "units"),
        ('format = 1\nstep = [{ op = "rotate", columns = ["a", "a"], degrees = 77.125 }]', "two different"),
        ('format = 1\nstep = [{ op = "rotate", columns = ["a", "b"], degrees = 720 }]', "as it is"),
        ('format = 1\nstep = [{ op = "rotate", columns = ["a", "b"], degrees = 7, units = { c = 1 } }]', "units"),
        ('format = 1\nstep = [{ op = "rotate", columns = ["a", "b"], degrees = 7, units = { b = -77.125 } }]', "'b'"),
    ],
)
def test_a_bad_key_is_refused_by_column_and_never_by_term(text: str, words: str) -> None:
    with pytest.raises(OptionError, match=words) as caught:
        Key.from_toml(text)
    assert "77.125" not in str(caught.value)


def test_a_missing_key_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no key file"):
        Key.load(tmp_path / "none.toml")
    with pytest.raises(OptionError, match="cannot be read"):
        Key.load(tmp_path)


def test_a_range_of_one_number_is_refused_for_it_would_tell_the_term() -> None:
    ranges = Ranges(add={"a": (77.125, 77.125)})
    with pytest.raises(OptionError, match="range of 'a'"):
        Key.generate(["a"], ranges, np.random.default_rng(1), kind="translate")
