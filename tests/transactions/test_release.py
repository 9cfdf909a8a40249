"""Transactions from a file to a release that can be verified, and back to supports; as a user goes."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import rich_click as click

import sfumato as sf
from sfumato.cli import app
from sfumato.core.errors import OptionError, TableError
from sfumato.transactions.facts import RulesHidden, TransactionPersons, TransactionsRandomized, TransactionsReleased
from sfumato.transactions.verb import TransactionSource
from tests.cli.conftest import Run, run  # noqa: F401 - a fixture
from tests.transactions.slow_miner import draw_transactions

RULE = "i0 -> i1"


def shop_table(transactions: int = 500, persons: int = 200) -> pa.Table:
    """Transactions in which i1 often stands beside i0, of persons with several."""
    drawn, rng = draw_transactions(9, transactions), np.random.default_rng(2)
    lists = [{f"i{item}" for item in drawn.transaction(place).tolist()} for place in range(transactions)]
    for transaction in lists[: transactions // 3]:
        transaction |= {"i0", "i1", "i2"}
    order = rng.permutation(transactions)
    return pa.table(
        {
            "who": [f"p{place % persons}" for place in range(transactions)],
            "items": [";".join(sorted(lists[place])) for place in order.tolist()],
        }
    )


def shop() -> TransactionSource:
    return sf.transactions(shop_table(), person="who")


RARE_TREATMENTS: dict[str, dict[str, Any]] = {
    "randomize": {"operator": "cut-and-paste", "cutoff": 4, "insert": 0.05},
    "hide": {"rules": [RULE], "min_support": 0.1},
    "block": {"rules": [RULE], "min_support": 0.1},
}


@pytest.mark.parametrize("way", RARE_TREATMENTS)
@pytest.mark.filterwarnings("ignore:.*transactions are empty")
def test_a_release_is_certified_measured_verified_and_mined(way: str, tmp_path: Path) -> None:
    release = getattr(shop(), way)(**RARE_TREATMENTS[way], holdout=0.3)
    folder = release.save(tmp_path / "out")
    assert sf.verify(folder / "release")
    facts = {type(fact): fact for fact in release.certificate.facts}
    assert facts[TransactionPersons] == TransactionPersons(140, 3)
    names = {finding.name: finding for finding in release.report.findings}
    for name in ("singling-out-transactions", "attribute-inference-items/2 items", "membership-auc-transactions"):
        assert names[name].value is not None
        assert names[name].control is not None
        assert names[name].interval is not None
    assert names["own-row-linkage-transactions"].baseline == pytest.approx(1 / release.certificate.rows_out)
    written = "".join(path.read_text() for path in (folder / "release").iterdir())
    recipe = (folder / "owner" / "recipe.toml").read_text()
    assert RULE not in written
    assert RULE not in recipe
    assert "p17" not in written
    found = sf.transactions(folder / "release").estimate(0.2, longest=2)
    assert found.kind == {"randomize": "estimated", "hide": "counted", "block": "certain bounds"}[way]
    table = found.to_table().to_pydict()
    assert all(low <= high for low, high in zip(table["low"], table["high"], strict=True))


@pytest.mark.filterwarnings("ignore:.*transactions are empty")
def test_verify_counts_the_entries_again_and_holds_numbers_to_the_facts(tmp_path: Path) -> None:
    folder = shop().hide([RULE], min_support=0.1, report=False).save(tmp_path / "out") / "release"
    lines = (folder / "table.csv").read_text().splitlines()
    place = next(place for place, line in enumerate(lines) if ";" in line)
    lines[place] = lines[place].partition(";")[2]
    (folder / "table.csv").write_text("\n".join(lines) + "\n")
    failing = {check.name for check in sf.verify(folder) if not check.holds}
    assert failing == {"files unchanged", "transactions"}
    with pytest.raises(TableError, match="for another table"):
        sf.transactions(folder)


@pytest.mark.parametrize(
    ("fact", "entry", "value"),
    [
        (RulesHidden, "min_support", 0.2),
        (RulesHidden, "removed", 0),
        (TransactionsReleased, "unknown", 1),
        (TransactionsReleased, "transactions", 7),
        (TransactionPersons, "most", 0),
    ],
)
@pytest.mark.filterwarnings("ignore:.*transactions are empty")
def test_facts_that_were_altered_do_not_hold(fact: Any, entry: str, value: Any, tmp_path: Path) -> None:
    folder = shop().hide([RULE], min_support=0.1, report=False).save(tmp_path / "out") / "release"
    document = json.loads((folder / "certificate.json").read_text())
    altered = next(each for each in document["facts"] if each["fact"] == fact.fact)
    altered[entry] = value
    (folder / "certificate.json").write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    assert not sf.verify(folder)


@pytest.mark.filterwarnings("ignore:.*transactions are empty")
def test_hiding_loses_less_than_a_random_cut_and_leaves_no_named_rule() -> None:
    report = shop().hide([RULE], min_support=0.1, seed=4).report
    assert report is not None
    findings = {each.name: each for each in report.findings}
    assert findings["hidden-rules-left"].value == 0.0
    lost = findings["itemsets-lost"]
    assert lost.value is not None
    assert lost.baseline is not None
    assert lost.value <= lost.baseline
    assert findings["transaction-breach"].reason == "the transactions were not randomized"
    assert not findings["hidden-rule-margin"].public


@pytest.mark.filterwarnings("ignore:.*transactions are empty")
def test_a_seed_repeats_a_dry_run() -> None:
    one, two = (shop().randomize(operator="select-a-size", gamma=50, seed=3, report=False) for _ in range(2))
    assert one.table.equals(two.table)
    assert one.certificate.randomness == "dry-run"
    (fact,) = (fact for fact in one.certificate.facts if isinstance(fact, TransactionsRandomized))
    assert fact.width == 12


@pytest.mark.parametrize("way", RARE_TREATMENTS)
@pytest.mark.filterwarnings("ignore:.*transactions are empty")
def test_a_recipe_runs_a_dry_run_again_to_the_byte_in_python_and_from_the_command(
    way: str,
    run: Run,  # noqa: F811
    tmp_path: Path,
) -> None:
    told = {**RARE_TREATMENTS[way], "holdout": 0.2, "seed": 5}
    first = getattr(shop(), way)(**told, report=False).save(tmp_path / "first")
    recipe = first / "owner" / "recipe.toml"
    rules = {"rules": told["rules"]} if "rules" in told else {}
    again = getattr(shop(), way)(**rules, recipe=recipe, report=False).save(tmp_path / "again")
    pa.csv.write_csv(shop_table(), tmp_path / "shop.csv")
    words = ["--rule", RULE] if rules else []
    out = ("--person", "who", "-o", tmp_path / "third", "--no-report")
    done = run("transactions", way, tmp_path / "shop.csv", "--recipe", recipe, *out, *words)
    assert done.code == 0, done.err
    for folder in (again, tmp_path / "third"):
        for name in ("release/table.csv", "owner/recipe.toml"):
            assert (folder / name).read_bytes() == (first / name).read_bytes()
    other = "block" if way != "block" else "hide"
    wrong = run(
        "transactions", other, tmp_path / "shop.csv", "--recipe", recipe, "--rule", RULE, *out[:2], "-o", tmp_path / "n"
    )
    assert wrong.code == 2
    assert "use its own verb" in wrong.err
    with pytest.raises(OptionError, match="already sets min_support="):
        shop().hide([RULE], min_support=0.2, recipe=recipe)
    recipe.write_text(recipe.read_text().replace("insert = 0.05", 'insert = "a"').replace("0.5", '"a"'))
    with pytest.raises(OptionError, match="of the wrong type"):
        getattr(shop(), way)(**rules, recipe=recipe)


@pytest.mark.filterwarnings("ignore:.*transactions are empty")
def test_items_that_were_declared_make_the_claims_proved_and_others_only_assumed() -> None:
    names = [f"i{place}" for place in range(15)]
    for told, kind in (({}, "assumed"), ({"items": names}, "proved")):
        certificate = shop().randomize(report=False, **told).certificate  # type: ignore[arg-type]
        kinds = {claim.kind for claim in certificate.claims if "change" in claim.claim}
        assert kinds == {kind}
        (fact,) = (fact for fact in certificate.facts if isinstance(fact, TransactionsRandomized))
        assert (fact.width, fact.declared) == ((15, True) if told else (12, False))
    with pytest.raises(TableError, match="11 items that are not among"):
        shop().randomize(items=["i0"], report=False)
    with pytest.raises(OptionError, match="repeats an item"):
        shop().randomize(items=["i0", "i0"], report=False)


@pytest.mark.filterwarnings("ignore:.*transactions are empty")
def test_what_a_verb_does_not_know_is_refused() -> None:
    for way in (
        lambda: shop().randomize(operator="flip", cutoff=3),
        lambda: shop().hide(["i0 -> i99"], min_support=0.1),
        lambda: shop().hide([RULE], min_support=0.1, keep=3),
        lambda: shop().block([RULE], min_support=0.1, zeros=0),
        lambda: shop().randomize(holdout=1.5),
        lambda: shop().estimate(0.5, longest=0),
    ):
        with pytest.raises(OptionError):
            way()


@pytest.mark.filterwarnings("ignore:.*transactions are empty")
def test_every_field_of_a_mechanism_is_an_option_of_its_verb() -> None:
    verbs = {"randomize": sf.TransactionRandomization, "hide": sf.RuleHiding, "block": sf.RuleBlocking}
    group = app.get_command(click.Context(app), "transactions")
    for verb, mechanism in verbs.items():
        command = group.get_command(click.Context(group), verb)
        named = {str(param.name) for param in command.get_params(click.Context(command))}
        assert {field.name for field in dataclasses.fields(mechanism)} <= named


def test_transactions_too_short_to_attack_are_released_and_the_report_says_so() -> None:
    report = sf.transactions(pa.table({"items": ["a;b", "a"] * 30})).randomize(keep=0.8, insert=0.1, seed=1).report
    assert report is not None
    attacks = {each.name: each for each in report.findings}
    assert attacks["singling-out-transactions"].reason == "no transaction has more than 3 items"
    assert attacks["transaction-breach"].value is not None


@pytest.mark.filterwarnings("ignore:.*transactions are empty")
def test_the_command_goes_the_same_way(run: Run, tmp_path: Path) -> None:  # noqa: F811
    source, out = tmp_path / "shop.csv", tmp_path / "out"
    pa.csv.write_csv(shop_table(), source)
    (tmp_path / "rules.txt").write_text(f"# secret\n{RULE}\n")
    told = ("--min-support", 0.1, "--no-report", "-o", out)
    done = run("transactions", "hide", source, "--person", "who", "--rules", tmp_path / "rules.txt", *told)
    assert done.code == 0, done.err
    assert "Rules hidden: 1" in done.out
    assert run("verify", out / "release").code == 0
    mined = run(
        "transactions", "estimate", out / "release", "--min-support", 0.3, "-o", tmp_path / "sets.csv", "--json"
    )
    assert json.loads(mined.out)["kind"] == "counted"
    assert (tmp_path / "sets.csv").read_text().startswith("items,support,low,high\n")
    again = run("transactions", "hide", source, "--person", "who", "--rule", "i0 -> i77", *told, "--overwrite")
    assert again.code == 2
    assert "'i0 -> i77'" in again.err
    for wrong in (("--min-support", 0), ("--min-confidence", 1.5)):
        assert run("transactions", "hide", source, "--rule", RULE, "-o", tmp_path / "new", *wrong).code == 2
    assert not (tmp_path / "new").exists()
