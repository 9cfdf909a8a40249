"""Lays out what `anonymeter` measured: both sides side by side, what agrees, and what does not and why."""

from __future__ import annotations

from typing import Any

__all__ = ["lay_out", "lay_out_scaled"]

Row = dict[str, Any]

_TEXT = """# Anonymeter {version} beside sfumato's attacks

`python benchmarks/quality/anonymeter.py`: Adult, {rows} rows and {held} held out, {attempts} attempts in each attack,
one neighbour, both sides in one run on the same machine. Half of the columns (every other one) is linked with the other
half; in inference everything but the secret is known. The risk is (attack - control) / (1 - control), cut off at 0;
0 is good, 1 is worst.

| risk | release | Anonymeter | attack, control | sfumato | attack, control | intervals meet | s | s (ours) |
|---|---|---|---|---|---|---|---|---|
{table}

On the redraw, which owes nothing to the original, an interval above 0 is a false alarm: {alarms}.

Intervals meet in {meet}.{apart}{late}

## Which release is riskier

| risk | Anonymeter, riskiest first | sfumato, riskiest first |
|---|---|---|
{order}

Releases whose intervals overlap change places by chance.

## Time

Seconds of the attacks themselves by the clock, after a warm-up, over all four releases ({machine}).

| attacks | Anonymeter | sfumato | times as fast |
|---|---|---|---|
{speed}

## Where the definitions differ

* **Distance.** Anonymeter adds up differences in units of each column's range, and 1 for each category that differs;
  ours is Euclid's in standard deviations, with categories at distance 1. Adult's columns with long tails (capital
  gain) hardly count in the first and fully in the second, so that different rows are nearest.
* **Ties.** Where several released rows are equally near, Anonymeter takes the one that its sort puts first, in
  linkability as in inference. Ours takes one at random in linkability, and in inference the value that most of them
  have.
* **Right answers for a number.** Anonymeter: within 5 % of the guess, and it divides by the guess with its sign, so
  that a negative guess is always right (Adult has none). Ours: within a tenth of a standard deviation (1.4 years of
  age).
* **Missing secrets.** Anonymeter counts "missing" as one more category; ours attacks only people who have a value.
* **Singling out.** Anonymeter first drops twins from all tables, uses exactly three columns, counts queries that
  it could not make as failures. Ours keeps twins, uses two to five columns, counts only predicates that were put
  forward, and seats held-out people among the originals for the control.
"""

_SCALED = """
## A control with fewer rows

A description fits exactly one row more or less often in a larger table, so a control with fewer rows than the original
must be scaled. Here a quarter as many rows are held out. *True* is what a control wants to know: how often the same
kind of descriptions fit exactly one row of a fresh table of the original's size (two such tables, none of whose people
are in the original or the release).

| risk | release | Anonymeter: attack | control | true | sfumato: attack | control | true |
|---|---|---|---|---|---|---|---|
{table}

Mean distance of the control from the truth: Anonymeter {theirs}, sfumato {ours}. Anonymeter 1.1.0 fits how the number
of successes grows with the rows, but counts the descriptions that it tried instead of those that succeeded, so that it
fits a constant; its control comes out too low and its risk too high. Ours replaces part of the originals by held-out
people and scales by their share. So the comparison above, and every use of Anonymeter's singling out, wants a control
of the original's size.
"""


def lay_out(
    mine: list[Row], theirs: list[Row], rows: tuple[int, int], attempts: int, version: str, machine: str
) -> str:
    """Lay out both sides side by side, with what agrees and what does not."""
    own = {(row["release"], row["risk"]): row for row in mine}
    found = {(row["release"], row["risk"]) for row in theirs}
    late = [f"{row['risk']} ({row['release']})" for key, row in own.items() if key not in found and "value" in row]
    lines, apart = [], []
    for row in theirs:
        other = own.get((row["release"], row["risk"]), {"value": None, "seconds": 0.0})
        meets = other["value"] is not None and other["low"] <= row["high"] and row["low"] <= other["high"]
        apart += [] if meets else [f"{row['risk']} ({row['release']})"]
        cells = [row["risk"], row["release"], _risk(row), _shares(row), _risk(other), _shares(other)]
        cells += ["yes" if meets else "no", f"{row['seconds']:.2f}", f"{other['seconds']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    lines.sort(key=lambda line: line.split("|")[1])
    kinds = {row["risk"].partition(",")[0].partition(" of")[0] for row in theirs}
    mine = [row for row in mine if (row["release"], row["risk"]) in found or "value" not in row]
    speed = [_pace(kind, theirs, mine) for kind in sorted(kinds)] + [_pace("", theirs, mine)]
    return _TEXT.format(
        version=version,
        machine=machine,
        alarms=" and ".join([_alarms("Anonymeter", theirs), _alarms("sfumato", mine)]),
        rows=f"{rows[0]:,}",
        held=f"{rows[1]:,}",
        attempts=f"{attempts:,}",
        table="\n".join(lines),
        meet=f"{len(theirs) - len(apart)} of {len(theirs)}",
        apart=f" They do not in: {'; '.join(apart)}." if apart else "",
        late=f" Anonymeter did not finish in the time that was granted: {'; '.join(late)}." if late else "",
        order="\n".join(_order(name, theirs, mine) for name in dict.fromkeys(row["risk"] for row in theirs)),
        speed="\n".join(speed),
    )


def lay_out_scaled(mine: list[Row], theirs: list[Row]) -> str:
    """Lay out the controls that were scaled beside the truth."""
    if not theirs:
        return ""
    own = {(row["release"], row["risk"]): row for row in mine}
    lines, misses = [], []
    for row in theirs:
        pair = row, own[row["release"], row["risk"]]
        misses.append([abs(one["control"] - one["true"]) for one in pair])
        cells = [f"{one[key]:.3f}" for one in pair for key in ("attack", "control", "true")]
        lines.append(f"| {row['risk']} | {row['release']} | {' | '.join(cells)} |")
    means = [f"{sum(side) / len(side):.3f}" for side in zip(*misses, strict=True)]
    return _SCALED.format(table="\n".join(sorted(lines)), theirs=means[0], ours=means[1])


def _alarms(who: str, side: list[Row]) -> str:
    rows = [row for row in side if row["release"] == "redraw" and row.get("low")]
    return f"{who} raises {len(rows)}" + (f" ({'; '.join(row['risk'] for row in rows)})" if rows else "")


def _risk(row: Row) -> str:
    if row["value"] is None:
        return "not run"
    return f"{row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})"


def _shares(row: Row) -> str:
    return "" if row["value"] is None else f"{row['attack']:.3f}, {row['control']:.3f}"


def _order(name: str, theirs: list[Row], mine: list[Row]) -> str:
    """Say how each side ranks the releases, the riskiest first."""
    ranks = []
    for side in (theirs, mine):
        rows = [row for row in side if row["risk"] == name and row["value"] is not None]
        ranks.append(", ".join(row["release"] for row in sorted(rows, key=lambda row: -row["value"])))
    return f"| {name} | {ranks[0]} | {ranks[1]} |"


def _pace(kind: str, theirs: list[Row], mine: list[Row]) -> str:
    long, short = (sum(row["seconds"] for row in side if row["risk"].startswith(kind)) for side in (theirs, mine))
    name = kind or "all, with the encoding of the tables on our side"
    return f"| {name} | {long:.1f} | {short:.1f} | {long / short:.0f} |"
