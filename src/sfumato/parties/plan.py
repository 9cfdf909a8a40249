"""Plan of a joint run, its declared openings, and its result."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.documents import UNLESS_DEFAULT, plain, write_json
from sfumato.core.errors import OptionError
from sfumato.core.records import Layout
from sfumato.methods.condense import Condensation
from sfumato.methods.perturb.laplace_pca import LaplacePCA
from sfumato.parties.ledger import Leak
from sfumato.parties.rounds import SeenRounds

if TYPE_CHECKING:
    from sfumato.parties.groupwise import Statistics
    from sfumato.parties.intersection import KeyCounts

__all__ = [
    "AGREEMENT",
    "CENTRES",
    "DRAWN_ROWS",
    "ENGINES",
    "FEW",
    "METHODS",
    "NOISES",
    "RELEASED_CELLS",
    "VERDICTS",
    "JointPlan",
    "JointResult",
    "SeenGroups",
    "leaks_of",
]

_PARTITIONS = ("horizontal", "vertical")
ENGINES = ("cheetah", "aby3")
CENTRES = ("last", "each")
NOISES = ("each", "split")
FEW = ("refuse", "allow")

METHODS: Mapping[str, type[LaplacePCA] | type[Condensation]] = {"laplace-pca": LaplacePCA, "condense": Condensation}
"""Methods that several owners can run together, by name."""

_MOST_ROUNDS = 1000
_USUAL_WEIGHT = 0.8  # [BCG10, sec. 5.2]

DRAWN_ROWS = Leak.message(
    "drawn rows",
    "the rows that were drawn from the statistics of the groups, in random order; they leave",
    implied=True,
)
"""What the first party sends the others where rows are synthetic."""

VERDICTS = Leak.message(
    "verdicts", "whether an owner measured its part of the table, by what policy, and whether that is met"
)
"""What owners send each other once each has measured its part."""

AGREEMENT = Leak.message(
    "agreement", "names, kinds and declared domains of an owner's columns, and names of those it drops"
)
"""What owners send each other before the run."""

RELEASED_CELLS = Leak.message("released cells", "the cells of an owner's columns as they are released", implied=True)
"""What owners of columns send each other after the run."""

_ABOUT = {
    leak.label: leak
    for leak in (
        AGREEMENT,
        VERDICTS,
        Leak.message("time", "the time that stands on the certificate"),
        Leak.message("traffic", "how many bytes and messages a party sent", implied=True),
    )
}


@dataclass(frozen=True)
class JointPlan:
    """The public settings of a joint run, the same at every party."""

    # {"horizontal", "vertical"}: whether each owner has some of the rows, or some of the columns of all rows
    partition: str
    parties: tuple[str, ...]  # names of the owners, in the order of their ranks; the first and the last compute
    mechanism: LaplacePCA | Condensation  # group size, weight of the response; noise and guarantee
    target: str | None = None  # the response variable
    # {"cheetah", "aby3"}: secure computation by two parties, or by three of which two are honest and do not collude
    engine: str = "cheetah"
    rounds: int = 20  # rounds of K-means at most
    # {"last", "each"}: of a horizontal partition: whether cluster centres stay shared, so that only the statistics of
    # the last groups are seen, or are opened in every round
    centres: str = "last"
    # {"refuse", "allow"}: of a horizontal partition: what is done where all owners but one have one or two rows
    # together in a group, or one or two cells of a column that are not missing, which exact sums would give away to
    # that one
    few: str = "refuse"
    # {"each", "split"}: of a vertical partition: whether the first and the last party each draw a whole Laplace noise,
    # so that it also bounds what either of them learns, or halves whose difference is the noise [BCG10, line 24]
    noise: str = "each"
    seed: int | None = None  # makes a dry run
    # of a horizontal partition: all owners state that each row is a person, although a column looks like a key of them
    rows_are_people: bool = field(default=False, metadata=UNLESS_DEFAULT)
    # share of each owner's keys that must be common to all, to which all agree: others are left out; None: all keys
    common: float | None = field(default=None, metadata=UNLESS_DEFAULT)
    # share of the people that every owner holds out as a control group, owners of columns the same people
    holdout: float | None = field(default=None, metadata=UNLESS_DEFAULT)

    def __post_init__(self) -> None:
        for name, chosen, choices in (
            ("partition", self.partition, _PARTITIONS),
            ("engine", self.engine, ENGINES),
            ("centres", self.centres, CENTRES),
            ("few", self.few, FEW),
            ("noise", self.noise, NOISES),
        ):
            if chosen not in choices:
                raise OptionError(f"there is no {name} {chosen!r} of a joint run; choose one of {', '.join(choices)}")
        if self.rows_are_people and self.partition == "vertical":
            raise OptionError(
                "owners of columns have one row for each key, which says who it is; leave out rows_are_people"
            )
        if len(self.parties) < 2 or len(set(self.parties)) < len(self.parties):
            raise OptionError("a joint run has two or more parties, each with a name of its own")
        if self.engine == "aby3" and len(self.parties) < 3:
            raise OptionError("the engine aby3 needs three computing parties and there are two; choose cheetah")
        if isinstance(self.rounds, bool) or not 1 <= self.rounds <= _MOST_ROUNDS:
            raise OptionError(f"rounds lie between 1 and {_MOST_ROUNDS}; the default is 20")
        if self.common is not None and (self.partition != "vertical" or not 0.0 < self.common <= 1.0):
            raise OptionError("the share of common keys is for owners of columns, above 0 and at most 1; try 0.9")
        if self.holdout is not None and not 0.0 < self.holdout < 1.0:
            raise OptionError("the share of the hold-out set must lie between 0 and 1; try 0.2")
        if not isinstance(self.mechanism, tuple(METHODS.values())):
            raise OptionError(f"several owners cannot run this method; choose one of {', '.join(METHODS)}")
        if self.mechanism.grouping != "modified":
            raise OptionError("owners fill small clusters from larger ones together; choose the grouping 'modified'")
        condensed = self.mechanism if isinstance(self.mechanism, Condensation) else None
        if condensed is not None and (condensed.allow_level_1 or condensed.scores != "plain"):
            raise OptionError("several owners condense plain numbers in groups of two or more; drop the other options")

    @property
    def condenses(self) -> bool:
        """Whether rows are drawn from the statistics of groups, so that none descends from a record."""
        return isinstance(self.mechanism, Condensation)

    @property
    def method(self) -> str:
        """How a certificate names what was run."""
        return "joint-condense" if self.condenses else "joint-laplace-pca"

    @property
    def response_weight(self) -> float:
        """Weight of the target in the distance of records."""
        weight = self.mechanism.response_weight
        return _USUAL_WEIGHT if weight is None else weight

    @property
    def noise_in_words(self) -> str:
        """Parties that the noise of owners of columns protects against, as a sentence; empty without such noise."""
        if self.partition != "vertical" or self.condenses:
            return ""
        both = f"{self.parties[0]} and {self.parties[-1]}"
        if self.noise == "each":
            return f"{both} each draw a whole noise, so its bound holds against every party, and rows carry both"
        return (
            f"{both} each know half of the noise, so its bound does NOT hold against these two, only against the "
            'others and readers; noise = "each" mends it'
        )

    def document(self) -> Mapping[str, Any]:
        """Settings as plain values, for comparing them and for the certificate."""
        document = plain(self)
        method = {"mechanism": "condense"} if self.condenses else {}
        settings = {name: value for name, value in document.items() if name != "mechanism"}
        return {**settings, **document["mechanism"], **method}

    @classmethod
    def from_document(cls, document: Mapping[str, Any], *, seed: int | None = None) -> JointPlan:
        """Plan of the settings that `document` gives; a certificate and a recipe have them without the seed."""
        method = METHODS[document.get("mechanism", "laplace-pca")]
        names = {field.name for field in fields(method)}
        mechanism = method(**{key: value for key, value in document.items() if key in names})
        settings = {key: value for key, value in document.items() if key not in names}
        return cls(**{**settings, "mechanism": mechanism, "parties": tuple(settings["parties"]), "seed": seed})

    @property
    def digest(self) -> str:
        """SHA-256 of the settings."""
        text = write_json(self.document(), "canonical", escaped=True)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, eq=False, repr=False)
class SeenGroups:
    """What every owner sees of the groups: the same at every party."""

    statistics: Statistics
    axes: NDArray[np.float64]  # (g, d, m)
    scales: NDArray[np.float64]  # (g, m): of the noise on each component, in coordinates; 0 if it does not vary
    spans: tuple[slice, ...] = ()  # coordinates of each owner of columns


@dataclass(frozen=True, eq=False, repr=False)
class JointResult:
    """Result of a joint run, the same at every party."""

    values: NDArray[np.float64]  # (n, d): released coordinates of all columns, in released order
    layout: Layout  # of all columns
    labels: NDArray[np.int64]  # (n,): group of each released row
    sizes: NDArray[np.int64]  # (g,): records of each group
    noised: int  # most components that got noise in a group
    level: int = 1  # records that each group had to have
    rounds: int = 0  # rounds of K-means that were run
    # how often exact statistics show rows: of owners of rows, how often an owner sees all other rows of a group, or
    # cells of a column, because they are one or two; of owners of columns, how often a record alone has a category or a
    # missing cell in its group
    bare: int = 0
    # where centres were opened, what this owner saw of the rounds; not the same at every party
    seen: SeenRounds | None = None
    seen_groups: SeenGroups | None = None
    # keys that all owners have, and those of each, where they went on with the common ones
    common: int = 0
    key_counts: tuple[KeyCounts, ...] = ()

    def __repr__(self) -> str:
        return f"JointResult(n={len(self.values)}, d={self.values.shape[1]}, groups={len(self.sizes)})"


def leaks_of(plan: JointPlan) -> dict[str, Leak]:
    """All openings that a run of this plan declares, by label."""
    drawn = {DRAWN_ROWS.label: DRAWN_ROWS} if plan.condenses else {}
    if plan.partition == "vertical":
        from sfumato.parties import intersection, vertical

        matched = {} if plan.common is None else intersection.LEAKS
        return {**_ABOUT, **matched, **vertical.LEAKS, RELEASED_CELLS.label: RELEASED_CELLS, **drawn}
    from sfumato.parties import horizontal

    return {**_ABOUT, **horizontal.leaks(plan.centres), **drawn}
