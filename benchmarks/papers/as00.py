"""AS00 section 5: a decision tree from randomized records, with and without reconstruction, and naive Bayes beside it.

Run from the repository root: ``python benchmarks/papers/as00.py [--seeds 5] [--draws 3] [--only Adult,Fn1] [--quick]``.
Results of other tables stay where they are.
Noise is at 50 % and 100 % privacy (at 95 % confidence, as a share of the declared range), uniform and Gaussian, on
every column. Real tables: numeric columns, three quarters of the rows train, a quarter tests; each seed is a new split
and new noise. Test rows are never randomized. The functions Fn1 to Fn5: 100,000 records train, 5,000 test, as in the
paper. Defaults of the miners were chosen on seeds 0 and 1 of the real tables; reported seeds begin at 100.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.papers.as00_data import FUNCTIONS, TABLES, Columns, Problem, generate, load_problem, specs_for
from benchmarks.papers.as00_report import SETTINGS, Curves, print_curves, write_report
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.survey.mining import ReconstructedNaiveBayes, ReconstructedTree
from sfumato.survey.mining.intervals import read_released, true_intervals
from sfumato.survey.mining.tree import grow, hold, in_order, leaf_of, prune

FIRST_SEED = 100


def measure(train: Problem, test: Problem, seed: int, *, checks: bool) -> dict[str, list[float]]:
    """Give the accuracy of every way, a number for each of the settings."""
    tree, bayes = ReconstructedTree(specs=train.domains), ReconstructedNaiveBayes(specs=train.domains)
    found: dict[str, list[float]] = {"seconds": []}
    plain = {
        "original": tree.fit(train.columns, train.classes).predict(test.columns),
        "bayes original": bayes.fit(train.columns, train.classes).predict(test.columns),
    }
    for at, (law, privacy) in enumerate(SETTINGS):
        specs = specs_for(train.domains, law, privacy)
        rng = np.random.default_rng([seed, at])
        sent = {name: spec.randomize(train.columns[name], rng) for name, spec in specs.items()}
        answers = dict(plain)
        for way in ("none", "global", "by-class", "local"):
            begun = time.process_time()
            learned = ReconstructedTree(specs=specs, reconstruction=way).fit(sent, train.classes)
            if way == "by-class":
                found["seconds"].append(time.process_time() - begun)
            answers[way] = learned.predict(test.columns)
        answers["bayes none"] = _uncorrected_bayes(train, sent).predict(test.columns)
        learner = ReconstructedNaiveBayes(specs=specs).fit(sent, train.classes)
        answers["bayes by-class"] = learner.predict(test.columns)
        if checks:
            answers["true shares"] = _true_shares(specs, sent, train, test)
            answers["local, all columns"] = _all_columns_anew(specs, sent, train, test)
        for way, answer in answers.items():
            found.setdefault(way, []).append(float((answer == test.classes).mean()))
    return found


def _uncorrected_bayes(train: Problem, sent: Columns) -> ReconstructedNaiveBayes:
    inside = {name: np.clip(each, train.domains[name].low, train.domains[name].high) for name, each in sent.items()}
    return ReconstructedNaiveBayes(specs=train.domains).fit(inside, train.classes)


def _true_shares(specs: dict[str, NoiseSpec], sent: Columns, train: Problem, test: Problem) -> NDArray[Any]:
    """Answer as the tree by class would if reconstruction were perfect: records are held to the true distributions."""
    released = read_released(specs, sent, train.classes, None)
    ranks = released.ranks(np.random.default_rng(0))
    truth, codes = true_intervals(released.columns, train.columns), np.empty_like(released.outputs)
    for at, column in enumerate(released.columns):
        for each in range(len(released.classes)):
            own = np.flatnonzero(released.code == each)
            share = np.bincount(truth[own, at], minlength=column.size) / len(own)
            codes[own, at] = in_order(ranks[own, at], share)
    return _answers(released, codes, None, test)


def _all_columns_anew(specs: dict[str, NoiseSpec], sent: Columns, train: Problem, test: Problem) -> NDArray[Any]:
    """Answer as local reconstruction would if it did not spare the columns that were asked about."""
    released = read_released(specs, sent, train.classes, None)
    ranks, codes = released.ranks(np.random.default_rng(0)), np.empty_like(released.outputs)
    hold(released, ranks, np.arange(len(codes)), released.code, codes, stop="chi-square")

    def refine(rows: NDArray[np.int64], _: frozenset[int]) -> None:
        if len(rows) >= ReconstructedTree.local_records:
            hold(released, ranks, rows, released.code, codes, stop="chi-square")

    return _answers(released, codes, refine, test)


def _answers(released: Any, codes: NDArray[np.int64], refine: Any, test: Problem) -> NDArray[Any]:
    n_classes = len(released.classes)
    leaf = ReconstructedTree.min_leaf
    grown = grow(
        codes, released.code, released.sizes, n_classes=n_classes, max_depth=None, min_leaf=leaf, refine=refine
    )
    nodes = prune(grown, released.sizes)
    held = nodes.counts[leaf_of(nodes, true_intervals(released.columns, test.columns))]
    return np.asarray(released.classes[np.argmax(held, axis=1)])


def _part(problem: Problem, rows: NDArray[np.int64]) -> Problem:
    columns = {name: each[rows] for name, each in problem.columns.items()}
    return Problem(columns, problem.domains, problem.classes[rows])


def run_table(name: str, seeds: int, folder: str | None, rows: int | None) -> Curves:
    """Measure one real table over many splits."""
    problem = load_problem(name, folder, rows)
    found = []
    for seed in range(FIRST_SEED, FIRST_SEED + seeds):
        everyone = np.arange(len(problem.classes))
        train, test = train_test_split(everyone, test_size=0.25, random_state=seed, stratify=problem.classes)
        found.append(measure(_part(problem, train), _part(problem, test), seed, checks=True))
    return Curves.of(TABLES[name], len(train), len(problem.columns), found)


def run_function(function: str, draws: int, n: int) -> Curves:
    """Measure one of the paper's functions over fresh records."""
    found = []
    for seed in range(FIRST_SEED, FIRST_SEED + draws):
        rng = np.random.default_rng([seed, FUNCTIONS.index(function)])
        train, test = generate(function, n, rng), generate(function, 5000, rng)
        found.append(measure(train, test, seed, checks=False))
    return Curves.of(function, n, len(train.columns), found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seeds", type=int, default=5, help="splits of each real table")
    parser.add_argument("--draws", type=int, default=3, help="fresh tables of each function")
    parser.add_argument("--quick", action="store_true", help="small tables, two of each: shows that it runs")
    parser.add_argument("--only", help="names of tables and functions, with commas between them")
    parser.add_argument("--data", help="folder of the tables")
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results")
    parser.add_argument("--figure", default="docs/mine-randomized.svg", help="where the figure goes")
    chosen = parser.parse_args()
    seeds, draws = (2, 2) if chosen.quick else (chosen.seeds, chosen.draws)
    rows, n = (3000, 5000) if chosen.quick else (None, 100_000)
    titles = {**{title: name for name, title in TABLES.items()}, **{name: name for name in FUNCTIONS}}
    with threadpool_limits(limits=1):
        for title in chosen.only.split(",") if chosen.only else titles:
            name = titles[title]
            made = name in FUNCTIONS
            curves = run_function(name, draws, n) if made else run_table(name, seeds, chosen.data, rows)
            print_curves(curves)
            write_report(curves, tuple(titles), Path(chosen.out), Path(chosen.figure), quick=chosen.quick)


if __name__ == "__main__":
    main()
