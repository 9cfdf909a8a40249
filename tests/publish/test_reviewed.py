"""What a review counts again in a released table: golden releases as they are, and with one thing changed."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sfumato.certificate import Certificate
from sfumato.core.facts import Check, Context, Fact
from sfumato.methods.chain.facts import ChainSynthesis
from sfumato.methods.condense.facts import PersonRows, PersonsLinked
from sfumato.methods.modify.facts import Blocked, Downgraded, IdenticalRows
from sfumato.publish.verify import Verification, verify_release
from sfumato.tables.facts import Aggregated, ColumnRulesKept, FormulaTexts, RareValues, RowsDrawn, WeightsScaled
from sfumato.tables.field import Field, Kind
from sfumato.tables.schema import Schema
from tests.fuzz.fuzzing import GOLDENS
from tests.publish.test_steps import golden, redrawn, the
from tests.vocabulary import phrases_not_used

DRY_RUN_MARK = "made for release"


def text_of(name: str, file: str) -> str:
    return (GOLDENS / name / f"release-{file}").read_text(encoding="utf-8")


def lay_out(folder: Path, certificate: Certificate, table: str, schema: str) -> Path:
    """A release folder of these texts, whose certificate names them."""
    texts = {"schema.toml": schema, "table.csv": table}
    files = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    told: dict[str, Any] = {"files": files, "table_sha256": files["table.csv"], "schema_sha256": files["schema.toml"]}
    texts["certificate.json"] = dataclasses.replace(certificate, **told).to_json()
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def failing(folder: Path) -> dict[str, str]:
    """Checks that fail, with what they say, but for that of a release, which no golden run was made for."""
    return {
        check.name: check.detail for check in verify_release(folder) if not check.holds and check.name != DRY_RUN_MARK
    }


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDENS.iterdir()))
def test_a_golden_release_holds_but_for_being_a_dry_run(name: str, tmp_path: Path) -> None:
    certificate, table, schema = golden(name), text_of(name, "table.csv"), text_of(name, "schema.toml")
    found = verify_release(lay_out(tmp_path / "release", certificate, table, schema))
    assert [check.name for check in found if not check.holds] == [DRY_RUN_MARK]
    assert [check.name for check in found if not check.checked] == ["signature"]
    assert [check.detail for check in found if check.name == "rows"] == [f"{certificate.rows_out} rows"]
    assert not [phrase for check in found for phrase in phrases_not_used(f"{check.name}: {check.detail}")]
    assert not found
    assert Verification(tuple(check for check in found if check.name != DRY_RUN_MARK))


AGES = sum(int(line.partition(",")[0]) for line in text_of("condense", "table.csv").splitlines()[1:])


@pytest.mark.parametrize(
    ("fact", "check", "says"),
    [
        (ColumnRulesKept(("age <= pay",)), None, "1 rule holds in every row"),
        (ColumnRulesKept(("age <= pay", "pay <= age")), "rules", "1 rule does not hold in every row"),
        (RowsDrawn(72, 72, "age >= 18"), None, "every row satisfies the condition"),
        (RowsDrawn(72, 72, "age < 18"), "row condition", "72 rows do not satisfy the condition"),
        (WeightsScaled("age", AGES, 1.0), None, "their sum is the certified one"),
        (WeightsScaled("age", AGES + 1.0, 1.0), None, "their sum is the certified one"),
        (WeightsScaled("age", AGES - 1.0, 1.0), None, "their sum is the certified one"),
        (WeightsScaled("age", AGES + 2.0, 1.0), "weights", "their sum is not the certified one"),
        (WeightsScaled("age", AGES - 2.0, 1.0), "weights", "their sum is not the certified one"),
        (WeightsScaled("town", AGES, 1.0), "weights", "their sum is not the certified one"),
        (FormulaTexts(("town",), 3, 0, quoted=False), "formulas", "the certificate states another number"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Fact) else "",
)
def test_rows_are_held_to_what_a_fact_says_of_them(fact: Fact, check: str | None, says: str, tmp_path: Path) -> None:
    name = "chain" if isinstance(fact, RowsDrawn) else "condense"
    texts = text_of(name, "table.csv"), text_of(name, "schema.toml")
    walk = (
        (the(ChainSynthesis, golden(name), columns=("age", "ill", "pay", "town", "smoker", "born")),)
        if name == "chain"
        else ()
    )
    folder = lay_out(tmp_path / "release", redrawn(golden(name), *walk, fact), *texts)
    assert list(failing(folder)) == ([] if check is None else [check])
    assert any(says in each.detail for each in verify_release(folder))


FIRST_TWO = text_of("aggregate", "table.csv").splitlines()[1:3]


@pytest.mark.parametrize(
    ("name", "old", "new", "checks"),
    [
        ("condense", "1991-03-01", "1991-03-02", {"dates by month": "1 column shows days"}),
        ("condense", ",false,", ",maybe,", {"domains": "1 column has values outside the declared domain"}),
        (
            "condense",
            "born",
            "birth",
            {"columns": "6 columns, not those of the schema", "columns in facts": "1 column in the facts"},
        ),
        ("condense", "29,2580.28,Oslo,true,1991-03-01,no\n", "", {"rows": "71 rows, certified are 72"}),
        ("condense", "born,ill\n", "born,ill\n1,1,Bari,false,1997-01-01,no\n", {"rows": "more than the certified 72"}),
        ("aggregate", "[40, 50)", "[40, 45)", {"generalized values": "1 column contains values that are no labels"}),
        ("aggregate", ",1973,", ",1973-05,", {"generalized values": "1 column contains values that are no labels"}),
        (
            "aggregate",
            FIRST_TWO[1],
            FIRST_TWO[0],
            {"equivalence classes": "86 are unique, not as certified"},
        ),
        (
            "block",
            ",4377.76,,,",
            "33,4377.76,,,",
            {"equivalence classes": "not as certified", "suppressed cells": "1 column shows cells"},
        ),
        ("downgrade", ",,Oslo", "50,,Oslo", {"suppressed cells": "1 column shows cells"}),
        ("downgrade", ",,\n", ",,no\n", {"suppressed cells": "1 column shows cells"}),
        ("transactions-block", ";", "", {"transactions": "not as certified"}),
        ("transactions-hide", ";", "", {"transactions": "not as certified"}),
    ],
)
def test_a_cell_that_was_changed_is_seen_where_a_fact_speaks_of_it(
    name: str, old: str, new: str, checks: dict[str, str], tmp_path: Path
) -> None:
    table = text_of(name, "table.csv")
    assert old in table
    texts = table.replace(old, new, 1), text_of(name, "schema.toml")
    found = failing(lay_out(tmp_path / "release", golden(name), *texts))
    assert sorted(found) == sorted(checks)
    assert all(says in found[check] for check, says in checks.items())


LINKED = PersonsLinked("who", 6, 2, ("sex",))
ONCE = [("a", "f"), ("b", "m"), ("c", "f"), ("d", "m"), ("e", "f"), ("f", "m")]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([*ONCE, *ONCE[:3]], None),
        ([*ONCE, *ONCE[:2]], "1 row count occurs for fewer persons"),
        ([*ONCE, *ONCE[:4]], "1 row count occurs for fewer persons"),
        (ONCE, "6 with up to 1 row each, not as certified"),
        ([*ONCE, *ONCE[:3], *ONCE[:3]], "6 with up to 3 rows each, not as certified"),
        ([*ONCE[:5], *ONCE[:3]], "5 with up to 2 rows each, not as certified"),
        ([*ONCE, *ONCE[:2], ("c", "m")], "1 column changes within a person"),
        ([*ONCE[:5], (None, "m"), *ONCE[:3]], "rows do not state the person"),
    ],
)
def test_released_persons_are_counted_over_all_batches(rows: list[tuple[str | None, str]], says: str | None) -> None:
    counted = PersonRows(LINKED, 3)
    for part in (rows[:4], rows[4:]):
        counted.add(pa.table({"who": [who for who, _ in part], "sex": [sex for _, sex in part]}))
    (check,) = counted.checks()
    assert check.holds == (says is None)
    assert (says or "6 with up to 2 rows each; 1 column is constant") in check.detail
    counted.add(pa.table({"who": ["a"]}))
    assert not next(counted.checks()).holds


def labelled(*labels: Any) -> pa.Table:
    return pa.table({"town": pa.array(labels)})


TOWNS = Schema((Field("town", Kind.NOMINAL, missing=("?",)),))
WIDE = Aggregated(("town",), ("prefix 1",), (1,))
POOLED = RareValues("pool", 5, 1)


def checks_of(facts: tuple[Fact, ...], parts: tuple[pa.Table, ...]) -> list[Check]:
    context = Context(facts)
    found = [check for fact in facts if (check := fact.row_check(TOWNS, context)) is not None]
    for part in parts:
        for check in found:
            check.add(part)
    return [each for check in found for each in check.checks()]


@pytest.mark.parametrize(
    ("facts", "parts", "names"),
    [
        ((), (labelled("a"),), []),
        ((IdenticalRows(("town",), 5, 2, 0),), (labelled("a", "b", "a"), labelled("b", "a")), []),
        ((IdenticalRows(("town",), 5, 1, 2),), (labelled("a", "b", "c"), labelled("a", "a")), []),
        ((IdenticalRows(("town",), 5, 1, 1),), (labelled("a", "b", "c"), labelled("a", "a")), ["equivalence classes"]),
        ((IdenticalRows(("town",), 4, 2, 0),), (labelled("a", "?", None), labelled("a")), []),
        ((IdenticalRows(("town", "age"), 1, 1, 1),), (labelled("a"),), ["equivalence classes"]),
        ((IdenticalRows(("town",), 0, 0, 0),), (), []),
        ((Blocked(("town",), (3,), 4, 2),), (labelled("a", "?"), labelled(None, "")), []),
        ((Blocked(("town",), (4,), 4, 2),), (labelled("a", "?"), labelled(None, "")), ["suppressed cells"]),
        ((Blocked(("age",), (1,), 4, 2),), (labelled("a"),), ["suppressed cells"]),
        ((Downgraded("town", 2, 2, 0.1, 0.0, 1, 0),), (labelled(None), labelled("?")), []),
        ((Downgraded("town", 2, 2, 0.1, 0.0, 1, 0),), (labelled(None), labelled("a")), ["suppressed cells"]),
        ((WIDE,), (labelled("o*", None), labelled("?", "b*")), []),
        ((WIDE,), (labelled("o*"), labelled("oslo")), ["generalized values"]),
        ((WIDE,), (labelled("o*"), labelled("other")), ["generalized values"]),
        ((WIDE, POOLED), (labelled("o*"), labelled("other", "other_2")), []),
        ((WIDE, POOLED), (labelled("o*"), labelled("others")), ["generalized values"]),
        ((WIDE,), (labelled(1.5, 2.5),), ["generalized values"]),
        ((dataclasses.replace(WIDE, hierarchies=("file",)),), (labelled("oslo"),), []),
    ],
)
def test_what_a_modification_certifies_is_counted_over_all_batches(
    facts: tuple[Fact, ...], parts: tuple[pa.Table, ...], names: list[str]
) -> None:
    assert [check.name for check in checks_of(facts, parts) if not check.holds] == names


def test_wider_labels_of_a_file_are_not_checked_and_counted_as_such() -> None:
    (check,) = checks_of((dataclasses.replace(WIDE, hierarchies=("file",)),), (labelled("oslo"),))
    assert (check.holds, check.checked) == (True, False)
    assert (
        check.detail
        == "0 columns contain only labels of the certified level; 1 used a hierarchy file of the owner and cannot be "
        "checked"
    )
    (check,) = checks_of((Aggregated(("town", "age"), ("prefix 1", "file"), (1, 1)),), (labelled("o*"),))
    assert (check.holds, check.checked) == (True, True)
