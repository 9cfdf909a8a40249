"""The verb breach: the thesis's example from files, sentences, one JSON document, a picture, errors of one line."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.conftest import Run

R = {
    1: '{ name = "keep-or-replace", keep = 0.2 }',
    2: '{ name = "shift-modulo", reach = 100 }',
    3: '{ name = "mixture", weight = 0.5, of = { name = "shift-modulo", reach = 100 } }',
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number, law in R.items():
        text = f'format = 1\ndomain = {{ kind = "integers", low = 0, high = 1000 }}\nlaw = {law}\n'
        (tmp_path / f"r{number}.toml").write_text(text, encoding="utf-8")
    rows = ["value,probability", "0,0.01", *(f"{k},0.00099" for k in range(1, 1001))]
    (tmp_path / "prior.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("number", "zero", "outside", "gamma"), [(1, 0.716, 0.830, 250.0), (2, 0.048, 1.0, None), (3, 0.029, 0.708, 5.98)]
)
def test_table_1_comes_out_as_json(
    run: Run, folder: Path, number: int, zero: float, outside: float, gamma: float | None
) -> None:
    options = ("--spec", folder / f"r{number}.toml", "--prior", folder / "prior.csv", "--output", "0", "--json")
    for about, before, after in (("x == 0", 0.01, zero), ("x not in 200..800", 0.405, outside)):
        done = run("breach", *options, "--property", about)
        assert done.code == 0, done.err
        found = json.loads(done.out)
        assert {"prior", "posterior", "gamma", "epsilon", "rho2_bound", "verdict"} <= set(found)
        assert (round(found["prior"], 3), round(found["posterior"], 3)) == (before, after)
        if gamma is None:
            assert (found["gamma"], found["epsilon"], found["rho2_bound"]) == (None, None, 1.0)
            assert found["verdict"].startswith("no guarantee")
        else:
            assert found["gamma"] == pytest.approx(gamma, abs=0.001)
            assert found["verdict"].startswith("guaranteed")
            assert found["posterior"] <= found["rho2_bound"] + 1e-12


def test_without_an_output_the_worst_one_is_told_in_sentences(run: Run, folder: Path) -> None:
    done = run("breach", "--spec", folder / "r2.toml", "--prior", folder / "prior.csv", "--property", "x >= 700")
    assert done.code == 0, done.err
    assert "Prior probability of x >= 700: 29.8 %." in done.out
    assert "100 %" in done.out
    assert "Some answers prove the property or its opposite." in done.out
    assert "no guarantee" in done.out
    assert "Remaining privacy" in done.out


def test_a_wish_is_solved_or_refused_in_words(run: Run, folder: Path) -> None:
    wish = ("--rho1", "0.01", "--rho2", "0.1", "--json")
    solved = json.loads(run("breach", "--spec", folder / "r1.toml", *wish).out)["solution"]
    assert (solved["parameter"], solved["value"]) == ("keep", pytest.approx(11 / 1011, rel=1e-5))
    refused = run("breach", "--spec", folder / "r2.toml", *wish)
    assert refused.code == 3
    assert "no parameter of this law keeps rho1 from becoming rho2" in refused.err
    assert len(refused.err.strip().splitlines()) == 1
    none = json.loads(refused.out)
    assert none["solution"]["value"] is None
    assert "Use a mixture" in none["solution"]["words"]
    assert (none["prior"], none["posterior"]) == (None, None)


@pytest.mark.parametrize("law", ['{ name = "laplace", scale = 1e13 }', '{ name = "gaussian", sd = 1e12 }'])
def test_a_domain_too_large_to_look_at_still_has_its_bounds(run: Run, folder: Path, law: str) -> None:
    text = f'format = 1\ndomain = {{ kind = "integers", low = 0, high = {10**13} }}\nlaw = {law}\n'
    (folder / "large.toml").write_text(text, encoding="utf-8")
    wish = ("breach", "--spec", folder / "large.toml", "--rho1", "0.01", "--rho2", "0.1")
    found = json.loads(run(*wish, "--json").out)
    assert found["entropy"] is None
    assert (found["epsilon"], found["solution"]["value"] is None) == (
        (1.0, False) if "laplace" in law else (None, True)
    )
    assert "too many values" in run(*wish).out
    asked = run("breach", "--spec", folder / "large.toml", "--property", "x == 0")
    assert (asked.code, asked.out) == (2, "")


@pytest.mark.parametrize("number", [1, 2])
def test_the_drawing_is_written_whole(run: Run, folder: Path, number: int) -> None:
    target = folder / "plot.svg"
    options = ("--spec", folder / f"r{number}.toml", "--property", "x == 0", "--plot", target)
    done = run("breach", *options, "--output", "3")
    assert done.code == 0, done.err
    drawn = target.read_bytes()
    ElementTree.fromstring(drawn)
    again = run("breach", *options)
    assert (again.code, target.read_bytes() == drawn) == (2, True)
    assert run("breach", *options, "--overwrite").code == 0
    assert ("no guarantee" in drawn.decode()) == (number == 2)
    assert b"worst answers" in drawn


def test_the_same_question_draws_the_same_picture(run: Run, folder: Path) -> None:
    for name in ("a.svg", "b.svg"):
        assert run("breach", "--spec", folder / "r1.toml", "--property", "x == 0", "--plot", folder / name).code == 0
    assert (folder / "a.svg").read_bytes() == (folder / "b.svg").read_bytes()


def test_labels_and_observed_values_serve_as_well(run: Run, folder: Path) -> None:
    law = f'law = {{ name = "response", epsilon = {math.log(3)} }}'
    text = f'format = 1\ndomain = {{ kind = "labels", values = ["no", "yes"] }}\n{law}\n'
    (folder / "labels.toml").write_text(text, encoding="utf-8")
    (folder / "seen.csv").write_text("answer\nno\nno\nno\nyes\n", encoding="utf-8")
    done = run(
        "breach",
        "--spec",
        folder / "labels.toml",
        "--prior",
        folder / "seen.csv",
        "--property",
        "x == yes",
        "--output",
        "yes",
        "--json",
    )
    found = json.loads(done.out)
    assert (found["prior"], found["posterior"]) == (0.25, pytest.approx(0.5))
    assert found["gamma"] == pytest.approx(3.0)
    assert (found["output"], found["worst"]["lowering"]["output"]) == ("yes", "no")


@pytest.mark.parametrize(
    "options",
    [
        ("--spec", "none.toml"),
        ("--spec", "prior.csv"),
        ("--spec", "r1.toml", "--prior", "none.csv"),
        ("--spec", "r1.toml", "--prior", "r1.toml"),
        ("--spec", "r1.toml", "--property", "x ~ 3"),
        ("--spec", "r1.toml", "--property", "x == 5000"),
        ("--spec", "r1.toml", "--property", "x == 0", "--output", "5000"),
        ("--spec", "r1.toml", "--property", "x == 0", "--output", "many"),
        ("--spec", "r1.toml", "--output", "0"),
        ("--spec", "r1.toml", "--rho2", "0.5"),
        ("--spec", "r1.toml", "--rho1", "0.5", "--rho2", "0.5"),
        ("--spec", "r1.toml", "--rho1", "1.5"),
        ("--spec", "r1.toml", "--plot", "plot.png"),
        ("--spec", "r1.toml", "--plot", "nowhere/plot.svg"),
        (),
    ],
)
def test_what_cannot_be_used_is_one_sentence_and_exit_code_2(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(folder)
    done = run("breach", *options)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
