"""Laplace noise on principal components on the command line: mixed kinds, levels, wanted bounds, refusals."""

from __future__ import annotations

import json
from pathlib import Path

from sfumato.publish.verify import verify_release
from tests.cli.conftest import Run


def test_a_table_of_mixed_kinds_is_released_with_its_levels_met(run: Run, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--method", "laplace-pca", "--target", "income", "--identifier", "id", "--level", "level", "--k", 20)
    outcome = run("sanitize", people, "-o", out, *options, "--no-report")
    assert outcome.code == 0, outcome.err
    assert "120 records in, 120 rows out; " in outcome.out
    assert all(check.holds for check in verify_release(out / "release"))
    certificate = json.loads((out / "release" / "certificate.json").read_text())
    assert certificate["levels"]["smallest_group"] >= 20
    assert certificate["levels"]["violations"] == 0


def test_a_wanted_bound_for_the_record_is_certified(run: Run, people: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    bound = ("--guarantee", "record", "--rho1", 0.01, "--rho2", 0.3, "--groups", 3, "--response-weight", 0.5)
    given = ("sanitize", people, "-o", out, "--method", "laplace-pca", "--target", "income", "--identifier", "id")
    outcome = run(*given, "--no-report", *bound)
    assert outcome.code == 0, outcome.err
    certificate = json.loads((out / "release" / "certificate.json").read_text())
    assert certificate["levels"]["groups"] == 3
    claims = [each["claim"] for each in certificate["claims"]]
    assert any("whole record" in claim and "posterior probability at most 0.3;" in claim for claim in claims)


def test_options_that_contradict_each_other_or_another_method_are_bad_input(
    run: Run, people: Path, tmp_path: Path
) -> None:
    given = ("sanitize", people, "-o", tmp_path / "out", "--method", "laplace-pca", "--identifier", "id", "--no-report")
    for options, words in (
        (("--rho2", 0.5), "give either rho1 and rho2, or b"),
        (("--k", 20, "--groups", 3), "give one of them"),
        (("--k", 20, "--size", 1.0), "has no parameter 'size'"),
        (("--k", 500), "120 records and the highest privacy level is 500"),
    ):
        outcome = run(*given, *options)
        assert outcome.code == 2, options
        assert words in outcome.err
    assert not (tmp_path / "out" / "release").exists()
