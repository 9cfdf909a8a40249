"""Transactions read from files and frames, and written again."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given

from sfumato.core.distributions.operators import TransactionOperator
from sfumato.core.errors import BadInput, OptionError, TableError
from sfumato.core.itemsets import Transactions
from sfumato.transactions.estimate import estimate_itemsets
from sfumato.transactions.table import TransactionTable, read_transactions, transactions_of_table
from tests.examples import examples
from tests.transactions.slow_miner import transaction_lists


def lists_of(table: TransactionTable) -> list[list[str]]:
    """Names of the items of each transaction."""
    every = (table.transactions.transaction(place).tolist() for place in range(len(table.transactions)))
    return [sorted(table.labels[item] for item in transaction) for transaction in every]


SHOP = [["bread", "milk"], [], ["beer", "bread", "whole milk"]]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"items": ["bread; milk", "", "beer;bread;whole milk"]}),
        pa.table({"items": [["milk", "bread"], [], ["beer", "bread", "whole milk"]]}),
        pa.table({"items": [["milk", "bread"], None, ["beer", "bread", "whole milk"]]}),
        pa.table(
            {"bread": [1, 0, 1], "milk": ["yes", "no", ""], "beer": [False, False, True], "whole milk": [0, 0, 1]}
        ),
    ],
)
def test_lists_texts_and_columns_of_ones_are_the_same_transactions(table: pa.Table) -> None:
    read = transactions_of_table(table)
    assert lists_of(read) == SHOP
    assert read.empty == 1


def test_a_row_for_each_item_makes_transactions_of_persons() -> None:
    rows = pd.DataFrame({"who": list("aabba"), "receipt": [1, 1, 2, 2, 3], "what": ["x", "y", "y", "y", "z"]})
    read = read_transactions(rows, person="who", transaction="receipt", item="what")
    assert lists_of(read) == [["x", "y"], ["y"], ["z"]]
    assert read.persons is not None
    assert read.persons.tolist() == [0, 1, 0]
    assert read.twice == 1
    assert set(read.dropped) == {"who", "receipt"}
    torn = rows.assign(who=list("abbba"))
    with pytest.raises(TableError, match="1 transactions are of several persons"):
        read_transactions(torn, person="who", transaction="receipt", item="what")


@examples(30)
@given(transaction_lists(least=1, most=12, width=40))
def test_transactions_written_as_a_table_read_the_same(lists: list[list[int]]) -> None:
    if not any(lists):
        return
    table = TransactionTable(Transactions.of(lists, 40), tuple(f"i{place}" for place in range(40)))
    names = [sorted(f"i{item}" for item in transaction) for transaction in lists]
    assert lists_of(transactions_of_table(table.to_table())) == names


def test_a_fimi_file_may_be_packed_and_have_blank_lines_and_doubles(tmp_path: Path) -> None:
    text = b"30 1 2\r\n\n 2\t2 500000\n1\n\n\n"
    (tmp_path / "a.dat").write_bytes(text)
    (tmp_path / "a.dat.gz").write_bytes(gzip.compress(text))
    for name in ("a.dat", "a.dat.gz"):
        read = read_transactions(tmp_path / name)
        assert lists_of(read) == [["1", "2", "30"], [], ["2", "500000"], ["1"]]
        assert (read.twice, read.empty) == (1, 1)
    (tmp_path / "wide.dat").write_bytes(b"999999999999999999 0\n")
    assert read_transactions(tmp_path / "wide.dat").labels == ("0", "999999999999999999")


def test_lines_of_a_file_are_transactions(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('milk,bread,milk\n\n"whole milk", beer ,bread\n\n')
    read = read_transactions(tmp_path / "a.csv", lines=True)
    assert lists_of(read) == SHOP
    assert (read.twice, read.empty) == (1, 1)
    with pytest.raises(OptionError, match="lines of items"):
        read_transactions(tmp_path / "a.csv", lines=True, person="who")


def test_parquet_with_lists_is_read(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"items": [[3, 1], [1]]}), tmp_path / "a.parquet")
    assert lists_of(read_transactions(tmp_path / "a.parquet")) == [["1", "3"], ["1"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"1 2\n3 quetzal\n", "not whole numbers, the first in line 2"),
        (b"1 -2\n", "not whole numbers, the first in line 1"),
        (b" \n\n", "is empty"),
        (b"1234567890123456789 1\n", "more than 18 digits"),
    ],
)
def test_a_fimi_file_that_is_none_is_refused_by_its_line(tmp_path: Path, text: bytes, words: str) -> None:
    (tmp_path / "a.dat").write_bytes(text)
    with pytest.raises(TableError, match=words) as refused:
        read_transactions(tmp_path / "a.dat")
    assert "quetzal" not in str(refused.value)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (pa.table({"age": [31, 45]}), "1 columns are not of 0 and 1, as 'age'"),
        (pa.table({"items": ["a"], "size": ["x"]}), "no whole numbers"),
        (pa.table({"items": ["a"], "size": [-1]}), "some that no transaction has"),
        (pa.table({"items": ["a"], "town": ["x"]}), "1 columns beside 'items'"),
        (pa.table({"items": [1.5]}), "no lists of items"),
        (pa.table({"items": [[1.5]]}), "no names and no whole numbers"),
        (pa.table({"items": ["", ""]}), "none of the 2 transactions holds an item"),
        (pa.table({"items": pa.array([], pa.string())}), "no rows"),
        (pa.table({"a;b": [1]}), "hold a semicolon"),
    ],
)
def test_a_table_that_holds_no_transactions_is_refused(table: pa.Table, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        transactions_of_table(table)


def test_columns_that_are_not_there_and_bytes_that_are_too_many_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no column 'whom'"):
        transactions_of_table(pa.table({"items": ["a"]}), person="whom")
    with pytest.raises(OptionError, match="both columns"):
        transactions_of_table(pa.table({"b": [1], "i": ["a"]}), transaction="b")
    with pytest.raises(TableError, match="lacks 1 values"):
        transactions_of_table(pa.table({"b": [1, None], "i": ["a", "b"]}), transaction="b", item="i")
    (tmp_path / "a.dat.gz").write_bytes(gzip.compress(b"1 " * 5_000_000))
    with pytest.raises(TableError, match="unpacks to more"):
        read_transactions(tmp_path / "a.dat.gz", most_bytes=1 << 20)
    with pytest.raises(OptionError, match="no columns"):
        read_transactions(tmp_path / "a.dat.gz", person="who")
    with pytest.raises(TableError, match="no file"):
        read_transactions(tmp_path / "b.dat")


def test_a_released_table_is_read_like_any_other_table_of_transactions(tmp_path: Path) -> None:
    lines = ["milk; bread;milk", "", "'x';bread", '"a, b";\tbread', "bread"]
    path, quoted = tmp_path / "table.csv", tmp_path / "other.csv"
    path.write_text("\n".join(["items", *lines]) + "\n", encoding="utf-8")
    quoted.write_text("\n".join(['"items"', *lines]) + "\n", encoding="utf-8")  # read as any CSV file
    one, other = read_transactions(path), read_transactions(quoted)
    assert one.labels == other.labels
    assert one.twice == other.twice == 1
    assert one.transactions.items.tolist() == other.transactions.items.tolist()
    assert one.transactions.starts.tolist() == other.transactions.starts.tolist()


def test_a_damaged_released_table_is_refused_in_the_words_of_any_csv_file(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("items,size\nmilk,1\nmilk,1,7\n", encoding="utf-8")
    with pytest.raises(TableError, match="more or fewer cells than the header"):
        read_transactions(path)
    path.write_bytes(b"items\nmilk\n\xff\xfe\n")
    with pytest.raises(TableError, match="not UTF-8"):
        read_transactions(path)


def test_supports_are_estimated_in_little_memory_beside_the_transactions() -> None:
    rng, transactions, width = np.random.default_rng(2), 20_000, 100
    held = np.sort(rng.permuted(np.tile(np.arange(width), (transactions, 1)), axis=1)[:, :50], axis=1)
    sets = Transactions(held.ravel().astype(np.int32), np.arange(transactions + 1) * 50, width)
    tracemalloc.start()
    estimate_itemsets(TransactionOperator("flip", width, keep=0.9, insert=0.1), sets, None, 0.4, longest=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * sets.items.nbytes  # whole columns of numbers took seven times as much


def test_estimating_from_a_release_loads_no_compiler(tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("items\n" + "milk;bread\n" * 20, encoding="utf-8")
    command = (
        "import sys, sfumato as sf; from sfumato.transactions.estimate import estimate_itemsets; "
        "from sfumato.core.distributions.operators import TransactionOperator; "
        f"shop = sf.transactions({str(tmp_path / 'table.csv')!r}); "
        "estimate_itemsets(TransactionOperator('flip', 2, keep=0.9, insert=0.1), shop.table.transactions, None, 0.9); "
        "print([name for name in ('numba', 'scipy.stats') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
