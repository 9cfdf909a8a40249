"""Streams that an attacker watches: records arrive, and after each of them, or some, the state is published."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from sfumato.assess.attacks.differencing import PublicationSummary, StreamPublications
from sfumato.assess.study import Study
from sfumato.methods.condense.maintainer import Maintainer
from sfumato.methods.condense.partition import partition
from sfumato.stream.epochs import Publication, renew
from sfumato.stream.facts import EpochPublished
from sfumato.tables.codec import Codec, with_indicators
from sfumato.tables.field import Domain, Field, Kind
from sfumato.tables.schema import Schema
from tests.assess.privacy_studies import case

FIRST = 120
LEVEL = 8
EPOCHS = tuple(EpochPublished(epoch, 1, 0, 10, 10) for epoch in (1, 2))
SCHEMA = Schema(
    (
        Field("pay", Kind.CONTINUOUS, domain=Domain(declared=True)),
        Field("size", Kind.CONTINUOUS, domain=Domain(declared=True)),
        Field("sex", Kind.NOMINAL, domain=Domain(declared=True, categories=("f", "m"))),
        Field("town", Kind.NOMINAL, domain=Domain(declared=True, categories=("a", "b", "c")), missing=("?",)),
    )
)


def people(rows: int, rng: np.random.Generator) -> pa.Table:
    """Draw people whose categories have nothing to do with where they lie."""
    place = 6.0 * rng.integers(0, 3, rows)
    return pa.table(
        {
            "pay": place + rng.normal(size=rows),
            "size": place + rng.normal(size=rows),
            "sex": rng.choice(["f", "m"], rows),
            "town": rng.choice(["a", "b", "c", "?"], rows),
        }
    )


class Stream:
    """A stream whose every publication is kept."""

    def __init__(self, rows: int, rng: np.random.Generator, *, gated: bool, split: str = "paper") -> None:
        self._rng, self._gated = rng, gated
        table = people(rows, rng)
        self.codec = with_indicators(Codec.fit(table.slice(0, FIRST), SCHEMA))
        self.values = self.codec.encode(table).values
        levels = np.full(rows, LEVEL)
        labels = partition(self.values[:FIRST], levels[:FIRST], np.zeros(FIRST, dtype=np.int64), rng, grouping="paper")
        self.maintainer = Maintainer(self.values.shape[1], k=LEVEL, split=split)  # type: ignore[arg-type]
        self.maintainer.start(self.values[:FIRST], levels[:FIRST], labels)
        self._came = FIRST
        self._last: Publication | None = None
        self._statistics: dict[int, tuple[int, np.ndarray]] = {}
        self.shown: list[tuple[PublicationSummary, PublicationSummary]] = []
        self.arrived: list[np.ndarray] = []
        self.splits: list[int] = []
        self.publish()

    def publish(self) -> None:
        """Publish rows by the stream's own code, and statistics by the same rule."""
        marks = self.maintainer.publish_marks()
        due = marks.due if self._gated else np.ones(len(marks.family), dtype=np.bool_)
        rows = self.maintainer.rows()
        kept = {family: self._statistics[family] for family in marks.family[~due].tolist()}
        new = np.flatnonzero(np.isin(rows.family, marks.family[due]))
        self._statistics = kept | {int(rows.ids[at]): (int(rows.count[at]), rows.mean[at]) for at in new}
        self._last, _ = renew(
            self.maintainer, self._last, self.codec, len(self.shown) + 1, self._rng, gated=self._gated
        )
        count, mean = (np.array(part) for part in zip(*self._statistics.values(), strict=True))
        published = PublicationSummary.of_rows(self.codec.encode(self._last.table, unseen="mean").values)
        self.shown.append((published, PublicationSummary.of_groups(count, mean)))

    def arrive(self, number: int) -> None:
        """Take in some records and publish."""
        new = self.values[self._came : self._came + number]
        self.splits.append(self.maintainer.absorb(new, np.full(number, LEVEL)).splits)
        self.arrived.append(new)
        self._came += number
        self.publish()

    def watched(self) -> StreamPublications:
        rows, statistics = zip(*self.shown, strict=True)
        return StreamPublications(
            layout=self.codec.layout, rows=rows, statistics=statistics, arrived=tuple(self.arrived)
        )


def study_with(watched: StreamPublications) -> Study:
    """A study of the later of two epochs, with what was watched."""
    return dataclasses.replace(case("redraw"), workings=watched, facts=EPOCHS)


def fixed_case(name: str, codec: Codec, tables: Sequence[pa.Table], arrived: pa.Table) -> StreamPublications:
    """Publish tables as they are, a group for every ten rows, with one arrival before each but the first."""
    rows, statistics = [], []
    for table in tables:
        values = codec.encode(table, unseen="mean").values
        groups = np.arange(len(values)) // 10
        count = np.bincount(groups)
        mean = np.stack([values[groups == group].mean(axis=0) for group in range(len(count))])
        rows.append(PublicationSummary.of_rows(values))
        statistics.append(PublicationSummary.of_groups(count, mean))
    came = codec.encode(arrived, unseen="mean").values
    assert len(came) == len(tables) - 1, name
    return StreamPublications(
        layout=codec.layout, rows=tuple(rows), statistics=tuple(statistics), arrived=tuple(came[:, None, :])
    )
