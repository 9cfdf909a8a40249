"""The trial of groupings: it takes what tells the classes better, and is not held where it could not be used."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core.groups.facts import Grouped
from sfumato.core.records import Block, BlockKind, Records
from sfumato.methods.condense.classwise import ClasswiseCondensation
from sfumato.methods.condense.partition import TRIED, better_grouping
from tests.condense.tables import Floats, Whole
from tests.examples import at_length

D = 10
LAYOUT = tuple(Block(f"x{j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(D))


def core_and_shell(seed: int, others_at: float, others: int) -> tuple[Floats, Whole]:
    """Give a class of 200 records about the origin and 200 on a sphere around them, and another class somewhere.

    Two clusters of K-means cut the sphere into halves, and the emptier one is filled from the origin: both groups of
    ``modified`` hold some of either. Groups of different width keep the two apart.
    """
    rng = np.random.default_rng(seed)
    core, shell = 0.2 * rng.normal(size=(200, D)), rng.normal(size=(200, D))
    shell *= 3.0 / np.linalg.norm(shell, axis=1, keepdims=True)
    other = 0.2 * rng.normal(size=(others, D))
    other[:, 0] += others_at
    return np.vstack([core, shell, other]), np.repeat([0, 1], [400, others])


def choose(values: Floats, classes: Whole, levels: Whole, seed: int) -> str:
    return better_grouping(values, levels, classes, classes, LAYOUT, np.random.default_rng(seed))


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_compact_wins_where_a_class_has_a_dense_part_beside_another_class(seed: int) -> None:
    values, classes = core_and_shell(seed, 1.0, 200)
    assert choose(values, classes, np.full(len(values), 200), seed) == "compact"


@pytest.mark.parametrize("seed", [0, *at_length(1, 2)])
def test_modified_wins_where_the_dense_part_lies_within_a_larger_class(seed: int) -> None:
    values, classes = core_and_shell(seed, 0.0, 1000)  # there the other class is five to one
    assert choose(values, classes, np.full(len(values), 200), seed) == "modified"


def test_the_same_generator_gives_the_same_choice_and_ends_in_the_same_state() -> None:
    values = np.random.default_rng(5).normal(size=(120, D))
    classes, levels = np.repeat([0, 1], 60), np.full(120, 7)
    one, two = np.random.default_rng(8), np.random.default_rng(8)
    chosen = [better_grouping(values, levels, classes, classes, LAYOUT, rng) for rng in (one, two)]
    assert chosen[0] == chosen[1]
    assert one.random() == two.random()


@pytest.mark.parametrize("case", ["one class", "levels that differ", "too many records for K-means"])
def test_no_trial_is_held_where_modified_could_not_be_used_or_compared(case: str) -> None:
    n = 30_000 if case.startswith("too") else 100
    values = np.random.default_rng(1).normal(size=(n, D))
    classes = np.zeros(n, dtype=np.int64) if case == "one class" else np.arange(n) % 2
    levels = np.full(n, 2)
    levels[0] = 3 if case.startswith("levels") else 2
    rng = np.random.default_rng(3)
    assert better_grouping(values, levels, classes, classes, LAYOUT, rng) == TRIED[0]
    assert rng.random() == np.random.default_rng(3).random()


def test_classes_as_large_as_the_level_can_be_tried() -> None:
    values = np.random.default_rng(2).normal(size=(46, D))
    classes = np.repeat([0, 1, 2], [30, 15, 1])
    levels = np.repeat([30, 15, 1], [30, 15, 1])
    assert choose(values, classes, levels, 1) in TRIED


@pytest.mark.parametrize(("others_at", "others", "name"), [(1.0, 200, "principal-axis tree"), (0.0, 1000, "modified")])
def test_the_certificate_says_which_grouping_was_chosen_and_how(others_at: float, others: int, name: str) -> None:
    values, classes = core_and_shell(4, others_at, others)
    layout = (*LAYOUT, Block("class", BlockKind.NUMBER, D, D + 1, (0.0,)))
    nothing = np.zeros(len(values), dtype=np.int64)
    records = Records(np.column_stack([values, classes]), layout, nothing, nothing.copy(), "class")
    made = ClasswiseCondensation(k=200).sanitize(records, rng=np.random.default_rng(6))
    algorithm = next(fact.algorithm for fact in made.facts if isinstance(fact, Grouped))
    assert algorithm.startswith("class-wise: ")
    assert name in algorithm
    assert algorithm.endswith("chosen by trial")
