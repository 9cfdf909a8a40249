"""Generated tables with the options of a run: one of each number, the same every time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

__all__ = ["KINDS", "TABLES", "Case", "make_case"]

TABLES = 300
Rng = np.random.Generator


@dataclass
class Case:
    """A table and what is asked of the run: its original cells as text, the options, and what they mean.

    ``frames`` are what the run reads, in order: one table, the batches of a stream, or the parts of several owners.
    ``arguments`` stand after the verb; ``files`` are written beside the table. ``rules`` hold in every original row.
    """

    number: int
    kind: str
    method: str
    frames: list[pd.DataFrame]
    arguments: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


def make_case(number: int) -> Case:
    """Table ``number`` with its options."""
    kind = list(KINDS)[(number - 1) % len(KINDS)]
    return KINDS[kind](Case(number, kind, kind, []), np.random.default_rng(number))


# ------------------------------------------------------------------------------------------------------------ tables


def _chance(rng: Rng, share: float) -> bool:
    return bool(rng.random() < share)


def _texts(values: Any, form: str) -> list[str]:
    return [form.format(value) for value in values]


def _with_gaps(rng: Rng, cells: list[str], share: float) -> list[str]:
    return [("" if gone else cell) for cell, gone in zip(cells, rng.random(len(cells)) < share, strict=True)]


def _numbers(rng: Rng, n: int, columns: dict[str, list[str]]) -> None:
    """Whole numbers, decimals and money with heaps, with extremes in some tables."""
    age = rng.integers(18, 96, n)
    columns["age"] = _texts(age, "{}")
    pressure = rng.normal(100 + 0.4 * age, 12)
    columns["pressure"] = _texts(pressure, "{:.1f}")
    pay = rng.lognormal(9.8, 0.9, n)
    heaped = rng.random(n) < 0.5
    pay = np.where(heaped, 1000 * np.ceil(pay / 1000), np.round(pay, 2))
    if _chance(rng, 0.5):
        pay[rng.integers(n)] = 2_500_000
    columns["pay"] = _texts(pay, "{:.2f}")
    if _chance(rng, 0.5):
        columns["visits"] = _texts(rng.poisson(2.0, n), "{}")
    if _chance(rng, 0.3):
        columns["score"] = _texts(rng.normal(0, 3, n), "{:.4f}")


def _categories(rng: Rng, n: int, columns: dict[str, list[str]]) -> None:
    """Texts, some of them rare; booleans; grades; a column with one value."""
    names = ["north", "south", "east", "west", "centre"][: int(rng.integers(3, 6))]
    ward = rng.choice(names, n)
    if _chance(rng, 0.5):
        for place in range(int(rng.integers(1, 4))):
            ward[rng.choice(n, int(rng.integers(1, 5)), replace=False)] = f"annex{place}"
    columns["ward"] = [str(each) for each in ward]
    columns["smoker"] = ["yes" if each else "no" for each in rng.random(n) < 0.35]
    if _chance(rng, 0.5):
        columns["grade"] = _texts(np.minimum(rng.poisson(1.6, n), 5), "{}")
    if _chance(rng, 0.3):
        columns["source"] = ["clinic"] * n


def _dates(rng: Rng, n: int, columns: dict[str, list[str]]) -> None:
    """A date of admission, one of discharge after it, and the days between."""
    begin = np.datetime64("2019-01-01") + rng.integers(0, 1500, n).astype("timedelta64[D]")
    stay = rng.integers(0, 25, n)
    columns["admission"] = [str(each) for each in begin]
    columns["discharge"] = [str(each) for each in begin + stay.astype("timedelta64[D]")]
    if _chance(rng, 0.5):
        columns["stay"] = _texts(stay, "{}")


def _cities(rng: Rng, n: int, columns: dict[str, list[str]]) -> None:
    """Cities that decide their state; few live in the last."""
    cities, states = ["Ulm", "Bari", "Lodz", "Brno", "Graz"], ["DE", "IT", "PL", "CZ", "AT"]
    city = rng.choice(5, n, p=[0.3, 0.25, 0.25, 0.19, 0.01])
    columns["city"] = [cities[each] for each in city]
    columns["state"] = [states[each] for each in city]


def _frame(rng: Rng, n: int, *, dates: float = 0.5, cities: float = 0.3, gaps: float = 0.5) -> pd.DataFrame:
    """A table of mixed types, in the order of one of its columns in some tables."""
    columns: dict[str, list[str]] = {}
    _numbers(rng, n, columns)
    _categories(rng, n, columns)
    if _chance(rng, dates):
        _dates(rng, n, columns)
    if _chance(rng, cities):
        _cities(rng, n, columns)
    if _chance(rng, gaps):
        for name in ("pressure", "ward", "pay"):
            columns[name] = _with_gaps(rng, columns[name], float(rng.choice([0.0, 0.005, 0.1])))
    frame = pd.DataFrame(columns, dtype=str)
    if _chance(rng, 0.7):
        frame = frame.iloc[np.argsort(frame["age"].astype(int), kind="stable")]
    return frame.reset_index(drop=True)


def _size(rng: Rng, low: int = 60, high: int = 1500) -> int:
    return int(np.exp(rng.uniform(np.log(low), np.log(high))))


def _add_identifier(rng: Rng, case: Case, frame: pd.DataFrame, share: float = 0.3) -> pd.DataFrame:
    if not _chance(rng, share):
        return frame
    case.arguments += ["--identifier", "record"]
    case.options["identifiers"] = ["record"]
    return frame.assign(record=[f"R{place:06d}" for place in rng.permutation(len(frame))])


def _add_persons(rng: Rng, case: Case, frame: pd.DataFrame) -> pd.DataFrame:
    """A column of persons with one to four rows each."""
    times = rng.integers(1, 5, len(frame))
    times[0] = 9  # more than enough others have
    who = np.repeat(np.arange(len(frame)), times)[: len(frame)]
    who = rng.permutation(len(frame))[who]
    case.arguments += ["--person", "patient"]
    case.options["person"] = "patient"
    return frame.assign(patient=[f"P{each:05d}" for each in who])


def _add_weights(rng: Rng, case: Case, frame: pd.DataFrame) -> pd.DataFrame:
    case.arguments += ["--weight", "weight"]
    case.options["weight"] = "weight"
    return frame.assign(weight=_texts(rng.gamma(4, 25, len(frame)) + 1, "{:.2f}"))


def _add_levels(rng: Rng, case: Case, frame: pd.DataFrame, k: int, *, one: bool = False) -> pd.DataFrame:
    levels = rng.choice([2, k, k + 3, 2 * k], len(frame), p=[0.3, 0.4, 0.2, 0.1])
    if one:
        levels[rng.choice(len(frame), 3, replace=False)] = 1
        case.arguments += ["--allow-level-1"]
    case.arguments += ["--level", "wish"]
    case.options["level"] = "wish"
    return frame.assign(wish=_texts(levels, "{}"))


def _ask(case: Case, **chosen: Any) -> None:
    """Add options to the arguments and to what was asked: ``min_k=3`` is ``--min-k 3``, True is a flag."""
    for name, value in chosen.items():
        flag = "--" + name.replace("_", "-")
        case.arguments += [flag] if value is True else [flag, str(value)]
        case.options[name] = value


def _finish(rng: Rng, case: Case, frame: pd.DataFrame) -> Case:
    """Ask for a dry run now and then, for another format, or for texts that are safe in a spreadsheet."""
    if _chance(rng, 0.15):
        _ask(case, seed=case.number)
    if _chance(rng, 0.2):
        mark = np.where(rng.random(len(frame)) < 0.4, "=1+1", np.where(rng.random(len(frame)) < 0.5, "@home", "none"))
        if case.method not in ("randomize", "translate", "scale", "rotate", "hybrid", "joint"):
            frame = frame.assign(note=[str(each) for each in mark])
            if _chance(rng, 0.5):
                _ask(case, spreadsheet_safe=True)
    if case.method in ("chain", "condense", "swap", "noise") and _chance(rng, 0.15):
        frame = frame.assign(void="")
    if case.method in ("chain", "condense", "classwise", "laplace-pca") and _chance(rng, 0.15):
        frame = frame.assign(trial=np.where(np.arange(len(frame)) < 2, "yes", "no"))
    if case.method in ("chain", "condense") and _chance(rng, 0.15):
        born = np.datetime64("1990-01-01") - rng.integers(0, 20_000, len(frame)).astype("timedelta64[D]")
        frame = frame.assign(date_of_birth=[str(each) for each in born])
    if "city" in frame and case.options.get("rare") == "keep" and not case.options.get("no_rules"):
        case.options["declared_rules"] = ["city -> state"]
    return dataclasses.replace(case, frames=[frame])


# ----------------------------------------------------------------------------------------------------------- methods


def _chain(case: Case, rng: Rng) -> Case:
    n = _size(rng, 220)
    frame = _add_identifier(rng, case, _frame(rng, n))
    k = int(rng.choice([5, 10, 12]))
    _ask(case, k=k, leaf=int(rng.choice([20, 30, 50])))
    if _chance(rng, 0.3):
        _ask(case, target=str(rng.choice(["smoker", "pay"])))
    draw = rng.random()
    if draw < 0.25 and n > 500:
        frame = _add_persons(rng, case, frame)
    elif draw < 0.45:
        frame = _add_levels(rng, case, frame, k)
    if _chance(rng, 0.25):
        frame = _add_weights(rng, case, frame)
    if _chance(rng, 0.3):
        _ask(case, rows=int(n * rng.choice([0.5, 1.5])))
        if _chance(rng, 0.7) and "weight" not in case.options:
            _ask(case, where="age > 30")
    _some_rare(rng, case)
    if case.number in (121, 241):
        _ask(case, policy="public", despite_policy=True, time_limit=2)
    return _finish(rng, case, frame)


def _some_rare(rng: Rng, case: Case) -> None:
    draw = rng.random()
    if draw < 0.2:
        _ask(case, rare="keep")
    elif draw < 0.4:
        _ask(case, rare="pool")
    if _chance(rng, 0.2):
        _ask(case, no_rules=True)
    tails = {5: "smooth", 6: "code", 7: "keep"}.get(case.number // len(KINDS) % 8)
    if tails is not None:
        _ask(case, tails=tails)


def _condense(case: Case, rng: Rng) -> Case:
    """By turns persons, persons who keep their rows together, levels, strata, and none of these."""
    turn = case.number // len(KINDS)
    n = _size(rng, 200 if turn % 5 < 2 else 60)
    frame = _add_identifier(rng, case, _frame(rng, n))
    k = int(rng.choice([3, 5, 8, 10]))
    _ask(case, k=k)
    if turn % 5 < 2:
        frame = _add_persons(rng, case, frame)
    if turn % 5 == 1:
        _ask(case, keep_persons=True)
        sex = {who: str(rng.choice(["f", "m"])) for who in frame["patient"]}
        frame = frame.assign(sex=frame["patient"].map(sex))
    elif turn % 5 == 2:
        frame = _add_levels(rng, case, frame, k)
    elif turn % 5 == 3:
        _ask(case, strata="smoker")
    if turn % 3 == 0 and "keep_persons" not in case.options:
        frame = _add_weights(rng, case, frame)
    elif turn % 3 == 1 and "keep_persons" not in case.options:
        _ask(case, rows=int(n * rng.choice([0.5, 1.5])))
    elif turn % 3 == 2:
        _ask(case, scores="normal")
    _some_rare(rng, case)
    return _finish(rng, case, frame)


def _condense_paper(case: Case, rng: Rng) -> Case:
    n = _size(rng, 60, 600)
    frame = _frame(rng, n, dates=0.3)
    if _chance(rng, 0.3):
        _ask(case, k=1)
        frame = _add_levels(rng, case, frame, 5, one=True)
    else:
        _ask(case, k=int(rng.choice([2, 3, 5])))
    _some_rare(rng, case)
    return _finish(rng, case, frame)


def _classwise(case: Case, rng: Rng) -> Case:
    frame = _frame(rng, _size(rng, 120))
    _ask(case, target="smoker")
    if _chance(rng, 0.5):
        _ask(case, k=int(rng.choice([4, 8])))
    else:
        _ask(case, tolerance=float(rng.choice([0.05, 0.2])))
    _some_rare(rng, case)
    return _finish(rng, case, frame)


def _geometric(case: Case, rng: Rng) -> Case:
    n = _size(rng)
    frame = _frame(rng, n, cities=0.2)
    if _chance(rng, 0.3):
        frame = frame[["age", "pressure", "pay"]].replace("", "1.0")
    else:
        _ask(case, pass_categories=True)
    if _chance(rng, 0.25):
        _ask(case, enhance=float(rng.choice([0.1, 0.5])), enhance_size=0.5)
    if _chance(rng, 0.2):
        _ask(case, target="pay")
    if _chance(rng, 0.2) and "enhance" not in case.options:
        _ask(case, engine="partitions", batch_rows=50)
    if _chance(rng, 0.2):
        _ask(case, exact_digits=True)
    case.arguments += ["--new-key", "{folder}/key.toml"]
    return _finish(rng, case, frame)


def _noise(case: Case, rng: Rng) -> Case:
    kind = str(rng.choice(["additive", "multiplicative"]))
    frame = _frame(rng, _size(rng), dates=0.5 if kind == "additive" else 0.0)
    frame = frame.drop(columns=["grade"], errors="ignore")
    _ask(case, pass_categories=True, kind=kind)
    _ask(case, size=float(rng.choice([0.1, 0.3, 0.5])))
    if _chance(rng, 0.6):
        _ask(case, law=str(rng.choice(["gaussian", "uniform", "laplace"])))
    if _chance(rng, 0.3) and case.options["kind"] == "additive" and case.options.get("law", "gaussian") == "gaussian":
        _ask(case, correlated=True)
    if _chance(rng, 0.3):
        _ask(case, enhance=0.25, enhance_size=0.5)
    return _finish(rng, case, frame)


def _laplace_pca(case: Case, rng: Rng) -> Case:
    frame = _frame(rng, _size(rng, 100))
    _ask(case, k=int(rng.choice([2, 10, 20])))
    if _chance(rng, 0.5):
        _ask(case, b=float(rng.choice([0.2, 1.0, 3.0])))
    if _chance(rng, 0.5):
        _ask(case, guarantee="record")
    return _finish(rng, case, frame)


def _randomize(case: Case, rng: Rng) -> Case:
    frame = _frame(rng, _size(rng), dates=0.0)
    drop = [name for name in ("pay", "score") if _chance(rng, 0.5)]
    frame = frame.drop(columns=["source", *drop], errors="ignore")
    if _chance(rng, 0.3):
        case.files["age.toml"] = (
            'format = 1\ndomain = { kind = "integers", low = 18, high = 95 }\nlaw = { name = "keep-or-replace", '
            "keep = 0.25 }\n"
        )
        case.arguments += ["--spec", "age={folder}/age.toml"]
    if _chance(rng, 0.2):
        case.files["pressure.toml"] = (
            'format = 1\ndomain = { kind = "reals", low = 0, high = 300, grid = 0.1 }\nlaw = { name = "uniform", '
            "reach = 20 }\n"
        )
        case.arguments += ["--spec", "pressure={folder}/pressure.toml"]
    _ask(case, epsilon=float(rng.choice([0.5, 1.0, 2.0])), allow_observed=True, pass_missing=True)
    return _finish(rng, case, frame)


def _swap(case: Case, rng: Rng) -> Case:
    frame = _frame(rng, _size(rng, 120))
    if _chance(rng, 0.5):
        _ask(case, window=float(rng.choice([2, 5, 10])))
    else:
        _ask(case, within="leaves", target="smoker", leaf=20)
    if _chance(rng, 0.6):
        frame = frame.assign(rank=_texts(rng.permutation(10 * len(frame))[: len(frame)] + 1_000_000, "{}"))
        chosen = ["age", "pressure"]
        case.arguments += [part for name in chosen for part in ("--columns", name)]
        case.options["columns"] = chosen
        case.options["key"] = "rank"
    elif "window" in case.options:
        frame = frame[["age", "pressure"]]
        case.arguments += [part for name in ("age", "pressure") for part in ("--columns", name)]
    _ask(case, pass_categories=True)
    if _chance(rng, 0.2):
        frame = _add_persons(rng, case, frame)
    return _finish(rng, case, frame)


def _block(case: Case, rng: Rng) -> Case:
    frame = _frame(rng, _size(rng, 120))
    k = int(rng.choice([3, 5]))
    _ask(case, k=k)
    chosen = ["ward", "smoker", "age"][: int(rng.integers(1, 4))]
    case.arguments += [part for name in chosen for part in ("--columns", name)]
    case.options["columns"] = chosen
    draw = rng.random()
    if draw < 0.25:
        frame = _add_persons(rng, case, frame)
    elif draw < 0.5:
        frame = _add_levels(rng, case, frame, k)
    return _finish(rng, case, frame)


def _aggregate(case: Case, rng: Rng) -> Case:
    frame = _frame(rng, _size(rng))
    if _chance(rng, 0.15):
        frame = frame[["age"]]
    case.arguments += ["--widths", "age=10"]
    case.options["widths"] = {"age": 10}
    if "admission" in frame and _chance(rng, 0.6):
        case.arguments += ["--coarsened", "admission=2"]
    return _finish(rng, case, frame)


def _sample(case: Case, rng: Rng) -> Case:
    frame = _frame(rng, _size(rng, 120))
    _ask(case, share=float(rng.choice([0.1, 0.3, 0.5])))
    if _chance(rng, 0.4):
        frame = _add_persons(rng, case, frame)
    return _finish(rng, case, frame)


def _downgrade(case: Case, rng: Rng) -> Case:
    frame = _frame(rng, _size(rng, 150, 800))
    ages = frame["age"].astype(int)
    likely = np.where(ages > 60, 0.85, 0.15)
    frame = frame.assign(smoker=["yes" if each else "no" for each in rng.random(len(frame)) < likely])
    _ask(case, private="smoker", limit=float(rng.choice([0.2, 0.3, 0.5])))
    if _chance(rng, 0.4):
        _ask(case, hidden=0.5)
    return _finish(rng, case, frame)


# ------------------------------------------------------------------------------------------- partitions and the others


def _partitions(case: Case, rng: Rng) -> Case:
    turn = case.number // len(KINDS)
    case.method = ("chain", "condense", "noise")[turn % 3]
    case.options["partition_rows"] = 250 if turn % 4 else 100_000
    frame = _frame(rng, _size(rng, 600), cities=0.0)
    if case.method == "noise":
        _ask(case, pass_categories=True, size=0.3)
    elif case.method == "chain":
        _ask(case, k=5, leaf=20)
    else:
        _ask(case, k=5)
    if case.method != "noise" and _chance(rng, 0.3):
        frame = _add_persons(rng, case, frame)
    _ask(case, engine="partitions")
    return dataclasses.replace(case, frames=[frame])


def _stream(case: Case, rng: Rng) -> Case:
    n = _size(rng, 300)
    frame = _frame(rng, n, cities=0.0, gaps=0.3)
    frame = frame.iloc[rng.permutation(n)].reset_index(drop=True)
    _ask(case, k=int(rng.choice([5, 10])))
    if _chance(rng, 0.4):
        case.arguments += ["--split", "paper"]
        case.options["split"] = "paper"
    if _chance(rng, 0.3):
        frame = _add_persons(rng, case, frame)
        _ask(case, person_rows=int(rng.integers(1, 3)))
        case.arguments += ["--person-key", "{folder}/person.key"]
    elif _chance(rng, 0.3):
        frame = _add_levels(rng, case, frame, 3 * case.options["k"])
    elif _chance(rng, 0.5):
        case.options["measure"] = True
        case.options["forget"] = _chance(rng, 0.5)
        case.arguments += ["--measure-rows", "100", "--measure-key", "{folder}/measure.key"]
    if _chance(rng, 0.2):
        _ask(case, seed=case.number)
    cuts = [n // 2, 3 * n // 4]
    return dataclasses.replace(case, frames=[frame[: cuts[0]], frame[cuts[0] : cuts[1]], frame[cuts[1] :]])


def _transactions(case: Case, rng: Rng) -> Case:
    n, width = _size(rng, 200), int(rng.integers(8, 25))
    likely = rng.uniform(0.05, 0.4, width)
    rows = [np.flatnonzero(rng.random(width) < likely).tolist() for _ in range(n)]
    for row in rows[: n // 3]:
        row[:] = sorted({0, 1, 2, *row})
    turn = case.number // len(KINDS)
    way = ("randomize", "hide", "randomize", "block", "randomize")[turn % 5]
    case.method = f"transactions-{way}"
    if way == "randomize":
        operator = ("usual", "flip", "select-a-size", "cut-and-paste", "select-a-size", "uniform")[turn % 6]
        rows = [row[: width // 2] for row in rows]
        if operator == "select-a-size":
            _ask(case, gamma=(2.0, 19.0, 2000.0)[turn % 3])
        _ask(case, operator=operator)
        if _chance(rng, 0.5):
            case.files["items.txt"] = "".join(f"i{item}\n" for item in range(width))
            case.arguments += ["--items", "{folder}/items.txt"]
            case.options["items"] = [f"i{item}" for item in range(width)]
    else:
        case.options["rules"] = ["i0 -> i1", "i2;i1 -> i0"][: int(rng.integers(1, 3))]
        case.arguments += [part for rule in case.options["rules"] for part in ("--rule", rule)]
        _ask(case, min_support=0.1, min_confidence=0.5)
        if way == "hide" and _chance(rng, 0.5):
            _ask(case, strategy=str(rng.choice(["consequent", "itemsets"])))
    frame = pd.DataFrame({"items": [";".join(f"i{item}" for item in row) for row in rows if row]}, dtype=str)
    if turn % 4 < 2:
        who = np.arange(len(frame)) // int(rng.integers(1, 4))
        frame = frame.assign(who=[f"W{each:05d}" for each in who])
        case.arguments += ["--person", "who"]
        case.options["person"] = "who"
    if _chance(rng, 0.2):
        _ask(case, seed=case.number)
    return dataclasses.replace(case, frames=[frame])


def _joint(case: Case, rng: Rng) -> Case:
    n = _size(rng, 120, 600)
    frame = _frame(rng, n, dates=0.0, cities=0.0, gaps=0.0)
    keep = ["age", "pressure", "pay", "ward", "smoker"]
    frame = frame[keep].assign(ward=[f"w{each}" for each in rng.integers(0, 3, n)])
    names = ["bank", "clinic", "shop"][: int(rng.integers(2, 4))]
    partition = str(rng.choice(["vertical", "horizontal"]))
    case.method = "laplace-pca"
    case.options |= {"partition": partition, "parties": names, "k": 20, "target": "pay"}
    if partition == "horizontal":
        frames = [frame.iloc[part] for part in np.array_split(np.arange(n), len(names))]
        case.options["centres"] = str(rng.choice(["last", "each"]))
    else:
        frame = frame.assign(person=[f"K{place}" for place in range(n)])
        parts = [["age", "ward"], ["pressure", "smoker"], ["pay"]]
        if len(names) == 2:
            parts = [parts[0], parts[1] + parts[2]]
        frames = [frame[["person", *part]].sample(frac=1, random_state=number) for number, part in enumerate(parts)]
        case.options["noise"] = str(rng.choice(["each", "split"]))
    return dataclasses.replace(case, frames=frames)


KINDS: dict[str, Callable[[Case, Rng], Case]] = {
    "chain": _chain,
    "condense": _condense,
    "condense-paper": _condense_paper,
    "classwise": _classwise,
    "translate": _geometric,
    "scale": _geometric,
    "rotate": _geometric,
    "hybrid": _geometric,
    "noise": _noise,
    "laplace-pca": _laplace_pca,
    "randomize": _randomize,
    "swap": _swap,
    "block": _block,
    "aggregate": _aggregate,
    "subsample": _sample,
    "downgrade": _downgrade,
    "partitions": _partitions,
    "stream": _stream,
    "transactions": _transactions,
    "joint": _joint,
}
"""What is run on a table, in the order of the numbers."""
