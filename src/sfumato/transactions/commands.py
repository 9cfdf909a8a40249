"""transactions: transactions randomized and mined, and rules hidden or blocked in them."""

from __future__ import annotations

import dataclasses
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

import sfumato as sf
from sfumato.cli.console import Console, Verb, VerbGroup, verb
from sfumato.cli.options import (
    FILE,
    INPUT,
    check_new,
    check_output,
    command_words,
    keeping_owner_part,
    options,
    signer_at,
    tell_signer,
    usual,
    whereabouts,
)
from sfumato.core.arguments import Panel
from sfumato.core.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from sfumato.publish.release import Release
    from sfumato.transactions.facts import TransactionsRandomized

__all__ = ["transactions"]

WORDS = {
    "operator": "How a transaction is randomized; usual is flip, or select-a-size if there are very many items.",
    "keep": "flip, uniform: probability that an item is retained.  [default: 0.9, 0.5]",
    "insert": "Probability that an absent item is inserted; not for uniform.  [default: 0.1, or less of many items]",
    "cutoff": "cut-and-paste: largest number of items that are retained.  [default: 3]",
    "gamma": "select-a-size: largest factor by which odds may change.  [default: 19]",
    "most_entries": "Largest number of entries in the release, original and inserted.",
    "strategy": "Remove items of the consequent, insert items of the antecedent, or remove items of the whole itemset.",
    "min_support": "Smallest support of a frequent itemset, as a share of the transactions.",
    "min_confidence": "Smallest confidence of an association rule.",
    "margin": "How far the lower bound must be below the threshold, as a share of the threshold.",
    "zeros": "Number of absent entries made unknown for each present one.",
}
"""What each parameter of a method for transactions is."""

_MOST_RULES, _MOST_ITEMS = 1 << 20, 1 << 27  # bytes of a file of rules, and of items


class _WithMethod(Verb):
    """Has an option for each parameter of the verb's mechanism, read off its fields when the verb is run."""

    method = ""

    def get_params(self, ctx: Any) -> list[Any]:
        from sfumato.transactions.verb import TRANSACTION_METHODS

        mechanism = TRANSACTION_METHODS[self.method]
        hints = typing.get_type_hints(mechanism)
        known = {param.name for param in self.params}
        for field in dataclasses.fields(mechanism):
            if field.name not in known:
                self.params.insert(1, _option(field.name, hints[field.name], field.default))
        return super().get_params(ctx)


def _option(name: str, kind: Any, default: Any) -> click.Option:
    words = typing.get_args(kind)
    choices: Any = click.Choice(words) if words and isinstance(words[0], str) else words[0] if words else kind
    shown = f"  [default: {default}]" if default is not None else ""
    spelt = [f"--{name.replace('_', '-')}", name]
    return click.RichOption(spelt, type=choices, panel=Panel.METHOD, help=WORDS[name] + shown)


def _method(name: str) -> type[_WithMethod]:
    return type(f"_{name}", (_WithMethod,), {"method": name})


def _reading(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say how transactions are read."""
    for spelt, words in (
        ("--item", "Column of the item, for one row per item."),
        ("--transaction", "Transaction identifier, for one row per item."),
    ):
        function = click.option(spelt, metavar="COL", panel=Panel.INPUT, help=words)(function)
    words = "CSV without header: one transaction per line, items separated by commas."
    function = click.option("--lines", is_flag=True, panel=Panel.INPUT, help=words)(function)
    return options(
        person="Person identifier of a transaction: dropped; hold-out and attacks count persons.",
        most_bytes="Largest INPUT, in bytes, also unpacked.  [default: 4 GiB]",
    )(function)


def _releasing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options of all verbs that write a release."""
    function = options("despite_policy", "recipe", "seed", "report", "sign", "no_sign", form="[default: csv]")(
        _reading(function)
    )
    holdout = "Hold-out set: share of the transactions, or of persons."
    function = options("policy", "overwrite", first=True, holdout=holdout)(function)
    words = "Folder for release/ and owner/."
    return click.option("-o", "--output", required=True, type=FILE, panel=Panel.FIRST, help=words)(function)


def _naming(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that name rules."""
    function = click.option(
        "--rules",
        "rule_file",
        type=FILE,
        panel=Panel.FIRST,
        help="File with one rule per line, outside the output folder.",
    )(function)
    words = "Rule to hide, 'bread;butter -> milk', or itemset 'bread;butter'; repeatable."
    return click.option("--rule", "named", multiple=True, metavar="RULE", panel=Panel.FIRST, help=words)(function)


@click.group(cls=VerbGroup)
def transactions() -> None:
    """Market-basket transactions: randomize them, estimate frequent itemsets, hide association rules.

    INPUT is a FIMI .dat file (one line of item numbers per transaction), or CSV or Parquet with a column 'items'
    (separated by semicolons), one row per item (--transaction, --item), one 0/1 column per item, or one transaction per
    line (--lines).
    """


@transactions.command(cls=_method("randomize-transactions"))
@click.argument("source", metavar="INPUT", type=INPUT)
@click.option(
    "--items",
    "item_file",
    type=FILE,
    panel=Panel.FIRST,
    help="File with the name of every item, one per line.",
)
@_releasing
@verb
def randomize(console: Console, source: str, **options: Any) -> None:
    """Randomize each transaction independently; 'transactions estimate' recovers supports of itemsets.

    Without --items the items are taken from the transactions, and the claims assume that the list of items is public.
    """
    items = _lines(options.pop("item_file"), "file of items", "--items", _MOST_ITEMS)
    _run(console, source, "randomize-transactions", items=items, **options)


@transactions.command(cls=_method("hide-rules"))
@click.argument("source", metavar="INPUT", type=INPUT)
@_naming
@_releasing
@verb
def hide(console: Console, source: str, **options: Any) -> None:
    """Hide association rules by changing few entries: none of the named rules holds in the release.

    The rules stay secret: neither certificate nor recipe names them.
    """
    _run(console, source, "hide-rules", rules=_rules(options), **options)


@transactions.command(cls=_method("block-rules"))
@click.argument("source", metavar="INPUT", type=INPUT)
@_naming
@_releasing
@verb
def block(console: Console, source: str, **options: Any) -> None:
    """Hide association rules by unknowns: none of the named rules is certain in the release.

    Both present and absent items become unknown.
    """
    _run(console, source, "block-rules", rules=_rules(options), **options)


def _run(
    console: Console,
    source: str,
    method: str,
    *,
    output: Path,
    overwrite: bool,
    form: str | None,
    sign: Path | None,
    no_sign: bool,
    **options: Any,
) -> None:
    from sfumato.transactions.verb import plan_release

    check_output(output, overwrite=overwrite)
    try:
        options["holdout"] = None if options["holdout"] is None else float(options["holdout"])
    except ValueError:
        raise OptionError("--holdout of transactions is a share, such as 0.2; files are for tables") from None
    reading = {key: options.pop(key) for key in ("person", "transaction", "item", "lines", "most_bytes")}
    plan, publishing = plan_release(method, command=command_words(), **options)
    signer = signer_at(sign, output, no_sign=no_sign, dry_run=plan.randomness.seed is not None)
    with keeping_owner_part(console, output, overwrite=overwrite), console.progress():
        release = sf.transactions(source, **reading).release(plan, publishing)
    release = release.written(output, form=form or "csv", overwrite=overwrite, sign=signer or False)
    _tell(console, release, output, form or "csv")


def _rules(options: dict[str, Any]) -> tuple[str, ...]:
    """Rules of the command line and of a file, whose blank lines and lines that begin with # are left out."""
    named, file = options.pop("named"), options.pop("rule_file")
    if file is not None and options["output"].resolve() in file.resolve().parents:
        raise OptionError("the file of rules lies in the output folder, part of which leaves; keep it elsewhere")
    lines = _lines(file, "file of rules", "--rules", _MOST_RULES) or ()
    return (*named, *(line for line in lines if not line.startswith("#")))


def _lines(file: Path | None, what: str, option: str, most: int) -> tuple[str, ...] | None:
    """Lines of a text file that are not blank; None without a file."""
    from sfumato.core.documents import read_text

    if file is None:
        return None
    if file.is_file() and file.stat().st_size > most:
        raise OptionError(f"the {what} has more than {most >> 20} MiB; check {option}")
    return tuple(line.strip() for line in read_text(file, what, f"check {option}").splitlines() if line.strip())


def _tell(console: Console, release: Release, folder: Path, form: str) -> None:
    from sfumato.transactions.facts import RulesBlocked, RulesHidden, TransactionsRandomized, TransactionsReleased

    certificate, report = release.certificate, release.report
    verdict = None if report is None else report.verdict
    parts = [] if report is None else report.lines()
    for fact in certificate.facts:
        if isinstance(fact, TransactionsReleased):
            unknown = f", {fact.unknown} unknown" if fact.unknown else ""
            parts.append(
                (2, f"{fact.transactions} transactions, {fact.entries} entries of {fact.items} items{unknown}.")
            )
        elif isinstance(fact, RulesHidden):
            parts.append((1, f"Rules hidden: {fact.rules}; entries removed: {fact.removed}, inserted: {fact.added}."))
        elif isinstance(fact, RulesBlocked):
            parts.append((1, f"Rules blocked: {fact.rules}."))
        elif isinstance(fact, TransactionsRandomized):
            parts.append((1, _operator_words(fact)))
    if certificate.randomness != "release":
        parts.append((0, "DRY RUN: made with a seed, not for release."))
    if report is not None:
        parts += [(2, note) for note in report.notes]
    console.tell([*parts, *whereabouts(release, folder, form)])
    tell_signer(console, release)
    fields = {key: getattr(certificate, key) for key in ("method", "randomness", "rows_in", "rows_out")}
    console.result(
        {"folder": str(folder), "table": str(folder / "release" / f"table.{form}"), **fields,
         "signed_by": release.signed_by, "verdict": None if verdict is None else verdict.to_json()}
    )  # fmt: skip


def _operator_words(fact: TransactionsRandomized) -> str:
    """How transactions were randomized, and why if that was the default."""
    fields = {name: getattr(fact, name) for name in ("keep", "insert", "cutoff", "gamma")}
    shown = ", ".join(f"{name} {value:g}" for name, value in fields.items() if value is not None)
    why = "at most" if fact.operator == "flip" else "flip would insert more than"
    chosen = f", the default for this table: {why} 10 inserted entries per original entry" if fact.chosen else ""
    return f"Randomized by {fact.operator} ({shown}){chosen}."


@transactions.command()
@click.argument("source", metavar="FOLDER/release", type=INPUT)
@click.option(
    "--min-support",
    required=True,
    type=float,
    help="Smallest support of a frequent itemset, as a share of the transactions.",
)
@usual("--longest", default=4, type=click.IntRange(1, 15), words="Largest number of items in an itemset.")
@click.option("--min-confidence", type=float, help="Also estimate association rules of at least this confidence.")
@click.option("-o", "--output", type=FILE, help="CSV to write: items, support, low, high.")
@click.option("--rules-output", type=FILE, help="CSV of rules to write: left, right, support, confidence, low, high.")
@options(overwrite="Replace existing files.")
@_reading
@verb
def estimate(
    console: Console,
    source: str,
    min_support: float,
    longest: int,
    min_confidence: float | None,
    output: Path | None,
    rules_output: Path | None,
    overwrite: bool,
    **reading: Any,
) -> None:
    """Estimate frequent itemsets and association rules of the original from a release.

    Randomized transactions give estimates with confidence intervals, blocked ones certain bounds, others counts. A rule
    has one item on its right; low and high bound its confidence. Exits with 3 if there are too few transactions for the
    noise.
    """
    if rules_output is not None and min_confidence is None:
        raise OptionError("--rules-output needs --min-confidence, from which on a rule is listed")
    if rules_output is not None and rules_output == output:
        raise OptionError("--output and --rules-output name the same file; name two")
    for path in (output, rules_output):
        check_new(path, overwrite=overwrite)
    with console.progress():
        found = sf.transactions(source, **reading).estimate(min_support, longest=longest, min_confidence=min_confidence)
    table = found.to_table()
    rules = None if found.rules is None else found.rules_table()
    for path, written in ((output, table), (rules_output, rules)):
        if path is not None and written is not None:
            _write_csv(path, written)
    rows = table.to_pylist()
    untold = f"; {found.estimates.untold} more are below the noise" if found.estimates.untold else ""
    console.say(f"Itemsets: {len(rows)}, {found.kind} from {found.transactions} transactions{untold}.")
    if rows:
        console.say("Support  95 % CI  items")
    for row in rows[:20]:
        console.say(f"{row['support']:8.4f}  {row['low']:.4f} to {row['high']:.4f}  {row['items']}")
    if len(rows) > 20 and output is None:
        console.say(f"... and {len(rows) - 20} more; -o FILE writes them all.")
    counts = {"transactions": found.transactions, "kind": found.kind, "untold": found.estimates.untold}
    listed = {} if rules is None else {"rules": rules.to_pylist()}
    if rules is not None:
        _say_rules(console, listed["rules"], written=rules_output is not None)
    console.result({**counts, "itemsets": rows, **listed})


def _write_csv(path: Path, table: Any) -> None:
    from sfumato.core.replacing import replacing_file
    from sfumato.tables.files import FileForm, FileFormat, write_file

    with replacing_file(path) as work:
        write_file(table, work, FileForm(FileFormat.CSV))


def _say_rules(console: Console, rules: Sequence[Mapping[str, object]], *, written: bool) -> None:
    console.say(f"Rules: {len(rules)}.")
    if rules:
        console.say("Confidence  95 % CI  rule")
    for rule in rules[:20]:
        ends = f"{rule['low']:.4f} to {rule['high']:.4f}"
        console.say(f"{rule['confidence']:8.4f}  {ends}  {rule['left']} -> {rule['right']}")
    if len(rules) > 20 and not written:
        console.say(f"... and {len(rules) - 20} more; --rules-output FILE writes them all.")
