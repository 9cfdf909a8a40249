"""Tables whose columns lie at several owners, and joint runs on them that can be looked into."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.core.randomness import Randomness
from sfumato.core.records import CATEGORY_SCALE, Block, BlockKind, Extent, Layout, width
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties.ledger import Transcript
from sfumato.parties.plan import JointPlan, JointResult
from sfumato.parties.session import Session
from sfumato.parties.vertical import LEAKS, sanitize_vertical

if TYPE_CHECKING:
    from tests.parties.conftest import Together

NAMES = ("ann", "bob", "cat", "dan", "eve")
Matrix = NDArray[np.float64]


def standardized(values: Matrix) -> Matrix:
    """Bring columns to mean 0 and deviation 1; what does not vary stays 0."""
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def number_columns(count: int, first: int = 0) -> Layout:
    """A schema with a number of numeric columns."""
    return tuple(Block(f"x{first + j}", BlockKind.NUMBER, j, j + 1, (0.0,)) for j in range(count))


def random_numbers(rng: np.random.Generator, n: int, d: int) -> Matrix:
    """Draw correlated numbers."""
    return standardized(rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=(1, d)))


def mixed_columns(rng: np.random.Generator, n: int) -> tuple[Matrix, Layout]:
    """Draw a number with missing cells, a category that goes with it and has missing cells too, and a flag."""
    number = rng.normal(size=n)
    gone, lost = rng.random(n) < 0.2, rng.random(n) < 0.1
    gone[:2], lost[:2] = (True, False), (False, True)
    number[gone] = 0.0
    code = np.digitize(number + rng.normal(scale=0.3, size=n), [-0.5, 0.5])
    town, flag = _one_hot(code, 3), _one_hot((number > 0.2).astype(np.int64), 2)
    share = town[~lost].mean(axis=0)
    town[lost] = share
    values = np.column_stack([standardized(number[:, None]), gone, town, lost, flag])
    values[gone, 0] = 0.0
    layout = (
        Block("size", BlockKind.NUMBER, 0, 1, (0.0,)),
        Block("size", BlockKind.MISSING, 1, 2),
        Block("town", BlockKind.CATEGORY, 2, 5, tuple(share.tolist())),
        Block("town", BlockKind.MISSING, 5, 6),
        Block("flag", BlockKind.CATEGORY, 6, 8, tuple(flag.mean(axis=0).tolist())),
    )
    values[:, 0] *= min(1.0, 1.0 / max(1e-9, np.sqrt(np.square(values[:, 0]).mean())))
    return values, layout


def coded_column(rng: np.random.Generator, n: int, start: int = 0) -> tuple[Matrix, Block]:
    """Draw a column of very many categories, as its one coordinate."""
    places = rng.integers(0, 300, n)
    origin, unit = float(places.mean()), float(places.std())
    extent = Extent(declared=True, labels=tuple(f"c{place}" for place in range(300)), origin=origin, unit=unit)
    block = Block("code", BlockKind.CODE, start, start + 1, (0.0,), extent=extent)
    return block.coordinates(places)[:, None], block


def _one_hot(codes: NDArray[np.int64], count: int) -> Matrix:
    return np.eye(count)[codes] * CATEGORY_SCALE


@dataclass(frozen=True)
class Part:
    """What one owner has."""

    values: Matrix
    layout: Layout


def split_numbers(values: Matrix, parties: int) -> list[Part]:
    """Some columns of numbers for each owner."""
    parts, first = [], 0
    for columns in np.array_split(np.arange(values.shape[1]), parties):
        parts.append(Part(values[:, columns], number_columns(len(columns), first)))
        first += len(columns)
    return parts


@dataclass(frozen=True)
class Run:
    """What came out of a joint run, and what can be looked up of a dry run."""

    results: list[JointResult]
    transcript: Transcript
    seed: int | None

    @property
    def result(self) -> JointResult:
        """What every party has."""
        return self.results[0]

    def tossed(self, label: str) -> np.random.Generator:
        """Public generator of a dry run, once more."""
        (entry,) = (each for each in self.transcript.entries if each.action == "tossed" and each.label == label)
        return Randomness(self.seed).generator(f"{label}, {entry.number}")

    def opened(self, label: str) -> list[NDArray[np.int64]]:
        """All that was opened under a name."""
        return [
            self.transcript.values[entry.number]
            for entry in self.transcript.entries
            if entry.action == "opened" and entry.label == label
        ]

    def rows(self) -> tuple[Matrix, NDArray[np.int64]]:
        """Released rows and their groups as they were before the shuffle, group after group."""
        order = self.tossed("order of the released rows").permutation(len(self.result.values))
        values, labels = np.empty_like(self.result.values), np.empty_like(self.result.labels)
        values[order], labels[order] = self.result.values, self.result.labels
        return values, labels


def joint_run(
    together: Together,
    parts: list[Part],
    mechanism: LaplacePCA,
    *,
    seed: int | None = 1,
    step: Callable[[Session, JointPlan, Matrix, Layout], JointResult] = sanitize_vertical,
    **options: object,
) -> Run:
    """Run the vertical protocol."""
    names = NAMES[: len(parts)]
    plan = JointPlan("vertical", names, mechanism, seed=seed, **options)  # type: ignore[arg-type]

    def play(session: Session, rank: int) -> tuple[JointResult, Transcript]:
        assert parts[rank].values.shape[1] == width(parts[rank].layout)
        return step(session, plan, parts[rank].values, parts[rank].layout), session.transcript

    seen = together(play, names, LEAKS, seed=seed)
    return Run([result for result, _ in seen], seen[0][1], seed)


def no_noise(law: str, scales: Matrix, sizes: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
    """Stand in for the noise, where a test looks at what lies below it."""
    assert law in ("geometric", "laplace")
    return np.zeros((int(sizes.sum()), scales.shape[1]), dtype=np.int64)
