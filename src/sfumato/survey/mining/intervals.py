"""Naive Bayes learned from randomized records, and columns as intervals, which every miner on reconstructed ones reads.

Each column's distribution inside each class is reconstructed as AS00's tree does it by class (R. Agrawal, R. Srikant:
Privacy-Preserving Data Mining, SIGMOD 2000, sec. 3 and 4); naive Bayes needs nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.arrays import Floats, Ints
from sfumato.core.distributions.domains import Labels, Universe
from sfumato.core.distributions.operators import Additive, Membership, transition
from sfumato.core.distributions.spec import NoiseSpec
from sfumato.core.errors import BadInput, OptionError, SchemaError
from sfumato.mining.clusters import check_fitted, check_whole
from sfumato.survey.reconstruct.channel import Channel, DomainCells, cut_outputs, summed
from sfumato.survey.reconstruct.iterate import STOPS, reconstruct_counts

__all__ = [
    "Intervals",
    "ReconstructedNaiveBayes",
    "ReleasedRecords",
    "Source",
    "check_classes",
    "check_stop",
    "choose_intervals",
    "distributions",
    "divide",
    "places_in_order",
    "read_released",
    "true_intervals",
]

Source = NoiseSpec | Universe
"""How a column came about: by a noise specification, or, given its domain alone, as it was."""

FEWEST, MOST, RECORDS = 10, 100, 100  # intervals, and records for each of them [AS00, sec. 5]


@dataclass(frozen=True, eq=False, repr=False)
class Intervals:
    """One column: m intervals of its domain, k cells of what was released, and P[cell | interval].

    Parameters
    ----------
    name : str
    source : NoiseSpec, Integers, Reals or Labels
    edges : ndarray of shape (m + 1,)
        First place of each interval, and the end of the last.
    cuts : ndarray of shape (k - 1,)
        First output of each cell but the first.
    matrix : ndarray of shape (m, k) or None
        None for a column that came as it was.
    """

    name: str
    source: Source
    edges: Ints
    cuts: Ints
    matrix: Floats | None

    @property
    def size(self) -> int:
        """Number of intervals, m."""
        return len(self.edges) - 1

    @property
    def domain(self) -> Universe:
        """The domain of the true values."""
        return self.source.domain if isinstance(self.source, NoiseSpec) else self.source

    @cached_property
    def channel(self) -> Channel | None:
        """The matrix as reconstruction takes it."""
        return None if self.matrix is None else Channel.of(self.matrix)

    @property
    def ordered(self) -> bool:
        """Whether the domain has an order, so that an interval means something."""
        return not isinstance(self.domain, Labels)

    def of_truth(self, values: ArrayLike) -> Ints:
        """Interval of each true value."""
        return self._inside(self._named(self.domain.encode, values))

    def outputs(self, values: ArrayLike) -> Ints:
        """Output code of each released value."""
        encode = self.source.encode_output if isinstance(self.source, NoiseSpec) else self.source.encode
        return self._named(encode, values)

    def cells(self, outputs: Ints) -> Ints:
        """Cell of each output."""
        return np.searchsorted(self.cuts, outputs, side="right")

    def as_sent(self, outputs: Ints) -> Ints:
        """Interval that each output lies in, as if it were the truth; beyond the ends, the interval there."""
        operator = self.source.operator if isinstance(self.source, NoiseSpec) else None
        places = outputs
        if isinstance(operator, Membership):  # the middle of the class stands for it
            first, end = (np.searchsorted(operator.cells, operator.outputs, side=side) for side in ("left", "right"))
            places = ((first + end - 1) // 2)[outputs]
        return self._inside(np.clip(places, 0, self.domain.size - 1))

    def threshold(self, boundary: int) -> float:
        """Number half way between the values on either side of an interval's boundary."""
        assert not isinstance(self.domain, Labels)
        return float(self.domain.low + (float(self.edges[boundary]) - 0.5) * self.domain.step)

    def _inside(self, places: Ints) -> Ints:
        return np.searchsorted(self.edges[1:-1], places, side="right")

    def _named(self, encode: Any, values: ArrayLike) -> Ints:
        array = np.asarray(values)
        gone = _count_missing(array)
        if gone:
            raise SchemaError(f"column {self.name!r} has {gone} missing values; fill them or leave the rows out")
        try:
            return np.asarray(encode(array), dtype=np.int64)
        except SchemaError as error:
            raise SchemaError(f"column {self.name!r}: {error}") from None


def choose_intervals(records: int) -> int:
    """Number of intervals that AS00 takes: 100 records in each on average, but 10 to 100 of them.

    Examples
    --------
    >>> choose_intervals(500), choose_intervals(4000), choose_intervals(100_000)
    (10, 40, 100)
    """
    return min(MOST, max(FEWEST, records // RECORDS))


def divide(name: str, source: Source, intervals: int, values: ArrayLike) -> Intervals:
    """Divide a column into intervals of equally many values; labels, and domains with fewer values, into the values.

    Parameters
    ----------
    name : str
    source : NoiseSpec, Integers, Reals or Labels
    intervals : int
    values : array of shape (n,)
        What was released: cells reach as far as these do.

    Raises
    ------
    OptionError
        For something that is neither specification nor domain.
    SchemaError
        For missing values, and those that cannot have come from the law.
    """
    if not isinstance(source, NoiseSpec | Universe):
        raise OptionError(f"column {name!r} has no noise specification; give one, or its domain if it is as it was")
    domain = source.domain if isinstance(source, NoiseSpec) else source
    count = domain.size if isinstance(domain, Labels) else min(intervals, domain.size)
    edges = np.array([domain.size * at // count for at in range(count + 1)], dtype=np.int64)
    plain = Intervals(name, source, edges, edges[1:-1], None)
    if not isinstance(source, NoiseSpec):
        return plain
    operator = source.operator
    outer = cut_outputs(DomainCells(domain, edges, count == domain.size), operator, plain.outputs(values))
    chances = summed(operator, edges, outer)
    if outer is None:  # each output is a cell
        return replace(plain, cuts=np.arange(1, chances.shape[1]), matrix=chances)
    return replace(plain, cuts=outer if isinstance(operator, Additive) else outer[1:-1], matrix=chances)


def places_in_order(outputs: Ints, rng: np.random.Generator) -> Ints:
    """Rank of each output among all; equal ones in an order that the rows have no part in."""
    rank = np.empty(len(outputs), dtype=np.int64)
    rank[np.lexsort((rng.permutation(len(outputs)), outputs))] = np.arange(len(outputs))
    return rank


def _count_missing(values: NDArray[Any]) -> int:
    """Count what is not there: None and not-a-number."""
    if values.dtype.kind == "f":
        return int(np.isnan(values).sum())
    if values.dtype.kind != "O":
        return 0
    return sum(value is None or (isinstance(value, float) and math.isnan(value)) for value in values.ravel())


_FEWEST_RECORDS = 30
"""Records that a class needs for its distributions to be reconstructed."""


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedRecords:
    """Released records.

    Parameters
    ----------
    columns : tuple of Intervals
    outputs : ndarray of shape (n, d)
        What was sent, as codes of each column's law.
    cells : ndarray of shape (n, d)
        The cell of each.
    code : ndarray of shape (n,)
        Class of each record, an index into ``classes``.
    classes : ndarray of shape (c,)
    """

    columns: tuple[Intervals, ...]
    outputs: Ints
    cells: Ints
    code: Ints
    classes: NDArray[Any]

    @property
    def sizes(self) -> tuple[int, ...]:
        """Intervals of each column."""
        return tuple(column.size for column in self.columns)

    def counts(self, at: int, rows: Ints, groups: Ints, n_groups: int) -> Ints:
        """Count the cells of one column in some rows, for each group of them."""
        matrix = self.columns[at].matrix
        k = self.columns[at].size if matrix is None else matrix.shape[1]
        return np.bincount(groups * k + self.cells[rows, at], minlength=n_groups * k).reshape(n_groups, k)

    def ranks(self, rng: np.random.Generator) -> Ints:
        """Rank of each output in its column."""
        return np.stack([places_in_order(each, rng) for each in self.outputs.T], axis=1)


def read_released(specs: Mapping[str, Source], X: Any, y: Any, intervals: int | None) -> ReleasedRecords:  # noqa: N803
    """Check and encode a released table.

    Raises
    ------
    SchemaError, BadInput, OptionError
        For columns without specification, missing values, values that cannot have come from the law, a single class.
    """
    if not isinstance(specs, Mapping) or not specs:
        raise OptionError("specs must name each column and its noise specification; give at least one")
    cells_of = _table(X, tuple(specs))
    n = len(cells_of[0])
    classes, code = _read_classes(y, n)
    count = choose_intervals(n) if intervals is None else intervals
    columns = tuple(divide(name, specs[name], count, each) for name, each in zip(specs, cells_of, strict=True))
    outputs = [column.outputs(each) for column, each in zip(columns, cells_of, strict=True)]
    cells = [column.cells(each) for column, each in zip(columns, outputs, strict=True)]
    return ReleasedRecords(columns, np.stack(outputs, axis=1), np.stack(cells, axis=1), code, classes)


def true_intervals(columns: tuple[Intervals, ...], X: Any) -> Ints:  # noqa: N803
    """Interval of every true value of rows to answer for."""
    cells_of = _table(X, tuple(column.name for column in columns))
    return np.stack([column.of_truth(each) for column, each in zip(columns, cells_of, strict=True)], axis=1)


def check_stop(stop: str) -> None:
    """Refuse a way to end the reconstruction that there is not."""
    if stop not in STOPS:
        raise OptionError(f"there is no stop {stop!r}; choose one of {', '.join(STOPS)}")


def check_classes(released: ReleasedRecords) -> None:
    """Refuse classes too small to reconstruct a distribution for each, if there is anything to reconstruct."""
    if all(column.matrix is None for column in released.columns):
        return
    held = np.bincount(released.code, minlength=len(released.classes))
    small = int((held < _FEWEST_RECORDS).sum())
    if small:
        raise BadInput(
            f"{small} of {len(held)} classes have fewer than {_FEWEST_RECORDS} records, too few to reconstruct their "
            "distributions; join classes, leave them out, or reconstruct all classes together"
        )


def distributions(column: Intervals, counts: Ints, stop: str) -> Floats:
    """Reconstruct the distribution of a column over its intervals from counts of released cells, a row for each group.

    A column that came as it was has its counts for a distribution. Each group needs a record.
    """
    if column.channel is None:
        return np.asarray(counts / counts.sum(axis=1, keepdims=True))
    return reconstruct_counts(counts, column.channel, stop=stop).probability


def _table(X: Any, names: tuple[str, ...]) -> list[NDArray[Any]]:  # noqa: N803
    """Columns by name, or by place where the table has no names."""
    held = (
        X.column_names if hasattr(X, "column_names") else X if isinstance(X, Mapping) else getattr(X, "columns", None)
    )
    if held is None:
        return _matrix(X, names)
    there = [str(name) for name in held]
    for name in names:
        if name not in there:
            raise SchemaError(f"column {name!r} is not in the table; add it, or leave its specification out")
    for name in there:
        if name not in names:
            raise SchemaError(f"column {name!r} has no noise specification; give one, or leave the column out")
    cells = [np.asarray(X[name]) for name in names]
    if len({len(each) for each in cells}) > 1:
        raise BadInput("the columns are not equally long; provide one value of each for every record")
    return cells


def _matrix(X: Any, names: tuple[str, ...]) -> list[NDArray[Any]]:  # noqa: N803
    array = np.asarray(X)
    if array.ndim != 2 or array.shape[1] != len(names):
        raise SchemaError(
            f"a table without names needs {len(names)} columns, one for each specification; it has shape {array.shape}"
        )
    return list(array.T)


def _read_classes(y: Any, n: int) -> tuple[NDArray[Any], Ints]:
    labels = np.asarray(y)
    if labels.shape != (n,):
        raise BadInput(f"classes have shape {labels.shape} for {n} records; give one class for each record")
    gone = _count_missing(labels)
    if gone:
        raise BadInput(f"{gone} of {n} classes are missing; leave these records out")
    classes, code = np.unique(labels, return_inverse=True)
    if len(classes) < 2:
        raise BadInput(f"the {n} records have fewer than two classes; classification needs two or more")
    return classes, code.astype(np.int64)


@dataclass(kw_only=True, eq=False)
class ReconstructedNaiveBayes:
    """Naive Bayes for true values, learned from randomized ones; numbers and labels, and also a randomized class.

    Parameters
    ----------
    specs : mapping of str to NoiseSpec or domain
        The law of each column; for a column that was not randomized, its domain.
    target : NoiseSpec, optional
        The law of the class, where that was randomized too: its domain must be labels. Class and column are then
        reconstructed together, on all pairs of a class and an interval.
    intervals : int, optional
        Of each column of numbers; by default one for every 100 records, but 10 to 100. Labels are each their own.
    smoothing : float, default=1.0
        Records that every interval of every class is given besides its own.
    stop : {"chi-square", "likelihood"}, default="chi-square"
        When the iteration of the reconstruction ends.

    Attributes
    ----------
    classes_ : ndarray of shape (c,)
    columns_ : tuple of Intervals
    class_prior_ : ndarray of shape (c,)
    shares_ : tuple of ndarray of shape (c, m)
        Distribution of each column inside each class.
    n_features_in_ : int

    Examples
    --------
    >>> from sfumato.core.distributions.domains import Labels
    >>> rng = np.random.default_rng(0)
    >>> ill = rng.random(3000) < 0.5
    >>> smokes = np.where(rng.random(3000) < np.where(ill, 0.8, 0.2), "yes", "no")
    >>> spec = NoiseSpec(Labels(("no", "yes")), {"name": "response", "epsilon": 1.0})
    >>> miner = ReconstructedNaiveBayes(specs={"smokes": spec}).fit({"smokes": spec.randomize(smokes, rng)}, ill)
    >>> miner.predict({"smokes": ["no", "yes"]}).tolist()
    [False, True]
    """

    specs: Mapping[str, Source]
    target: NoiseSpec | None = None
    intervals: int | None = None
    smoothing: float = 1.0
    stop: str = "chi-square"
    classes_: NDArray[Any] = field(init=False, repr=False)
    columns_: tuple[Intervals, ...] = field(init=False, repr=False)
    class_prior_: Floats = field(init=False, repr=False)
    shares_: tuple[Floats, ...] = field(init=False, repr=False)
    n_features_in_: int = field(init=False, repr=False)

    def fit(self, X: Any, y: Any) -> ReconstructedNaiveBayes:  # noqa: N803
        """Learn from randomized records.

        Parameters
        ----------
        X : table or array of shape (n, d)
            Randomized values. A table (mapping, pandas, polars, arrow) is read by the names of ``specs``, an array in
            their order.
        y : array of shape (n,)
            True classes, or, with ``target``, randomized ones.
        """
        self._check()
        released = read_released(self.specs, X, y, self.intervals)
        if self.target is None:
            check_classes(released)
            classes, held = released.classes, np.bincount(released.code).astype(np.float64)
            shares = [self._by_class(released, at) for at in range(len(released.columns))]
        else:
            classes, held, shares = self._with_classes(released, self.target)
        size = held[:, None]
        self.shares_ = tuple(
            (share * size + self.smoothing) / (size + self.smoothing * share.shape[1]) for share in shares
        )
        self.classes_, self.class_prior_ = classes, held / held.sum()
        self.columns_, self.n_features_in_ = released.columns, len(released.columns)
        return self

    def predict_log_proba(self, X: Any) -> Floats:  # noqa: N803
        """Logarithm of the probability of each class for each row of true values."""
        from scipy.special import log_softmax

        check_fitted(self, "shares_")
        codes = true_intervals(self.columns_, X)
        joint = np.tile(_log(self.class_prior_), (len(codes), 1))
        for at, shares in enumerate(self.shares_):
            joint += _log(shares).T[codes[:, at]]
        return np.asarray(log_softmax(joint, axis=1))

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """Probability of each class for each row of true values."""
        return np.asarray(np.exp(self.predict_log_proba(X)))

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Likeliest class of each row of true values."""
        chances = self.predict_log_proba(X)
        return np.asarray(self.classes_[np.argmax(chances, axis=1)])

    def _check(self) -> None:
        check_stop(self.stop)
        if self.intervals is not None:
            check_whole("intervals", self.intervals, 2)
        if not (math.isfinite(self.smoothing) and self.smoothing > 0.0):
            raise OptionError("smoothing must be a number above 0, else an empty interval rules a class out")
        if self.target is not None and not isinstance(self.target.domain, Labels):
            raise OptionError("the target's specification must be of labels; leave it out where classes are true")

    def _by_class(self, released: ReleasedRecords, at: int) -> Floats:
        everyone = np.arange(len(released.code))
        counts = released.counts(at, everyone, released.code, len(released.classes))
        return distributions(released.columns[at], counts, self.stop)

    def _with_classes(self, released: ReleasedRecords, target: NoiseSpec) -> tuple[NDArray[Any], Floats, list[Floats]]:
        """Reconstruct classes, and each column together with them: noise on both is one matrix, their product."""
        sent = target.encode_output(released.classes[released.code])
        chances = transition(target.operator)
        everyone = np.arange(len(sent))
        prior = reconstruct_counts(np.bincount(sent, minlength=chances.shape[1]), chances, stop=self.stop).probability
        shares = []
        for at, column in enumerate(released.columns):
            inner = np.eye(column.size) if column.matrix is None else column.matrix
            counts = released.counts(at, everyone, sent, chances.shape[1])
            joint = reconstruct_counts(counts.ravel(), np.kron(chances, inner), stop=self.stop).probability
            table = joint.reshape(len(chances), column.size)
            held = table.sum(axis=1, keepdims=True)
            shares.append(np.where(held > 0.0, table / np.where(held > 0.0, held, 1.0), 1.0 / column.size))
        if int((prior > 0.0).sum()) < 2:
            raise BadInput("the randomized classes come from a single one by reconstruction; add more records")
        return np.array(target.domain.decode(np.arange(target.domain.size))), prior * len(sent), shares


def _log(numbers: Floats) -> Floats:
    """Logarithms, of 0 minus infinity."""
    return np.log(numbers, out=np.full_like(numbers, -np.inf), where=numbers > 0.0)
