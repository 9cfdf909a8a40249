"""The whole measurement: original against released, and a stream's epochs in comparison; at the owner's.

Every measure and every attack of a report is listed in the order in which they run, and loaded when it is asked for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from sfumato.assess.algebra import COUNT, SHARE, Measure, NotRun, Number, Scale, Stated, Values, run_measure
from sfumato.assess.figures import Figure
from sfumato.assess.figures.bars import attack_figures, by_figure, distance_figures, group_figures, model_figures
from sfumato.assess.figures.columns import association_figures, component_figures, marginal_figures
from sfumato.assess.findings import Family, Finding, privacy_first, risk_by_column
from sfumato.assess.report import Report
from sfumato.assess.risk.closest import closest_of, verbatim_rows
from sfumato.assess.risk.groups import GROUPS, group_sizes
from sfumato.assess.risk.uniqueness import class_findings
from sfumato.assess.study import Study, bits_of, read_pairs, row_keys
from sfumato.assess.utility.association import Coordinates, association_difference, gather
from sfumato.assess.utility.comparison import associations_of, marginal_distances
from sfumato.core.documents import plain
from sfumato.core.errors import OptionError
from sfumato.core.facts import Context, Fact
from sfumato.core.progress import tell
from sfumato.core.threads import one_thread
from sfumato.methods.protocol import OwnerDetails
from sfumato.registry import extension_measures, vertical_attacks, vertical_measures
from sfumato.tables.codec import Codec

__all__ = [
    "EPOCHS",
    "StudyResult",
    "assess",
    "assess_without_comparison",
    "basic",
    "catalogue",
    "declared",
    "draw_figures",
    "epoch_findings",
    "held_out_notes",
    "measure_study",
    "number_of",
]


def basic() -> tuple[Measure, ...]:
    """What every report begins with: groups, near rows and columns."""
    from sfumato.assess.risk.closest import CLOSEST
    from sfumato.assess.risk.groups import COMPACTNESS, GROUPS
    from sfumato.assess.utility.comparison import COLUMNS

    return GROUPS, COMPACTNESS, CLOSEST, COLUMNS


def catalogue() -> tuple[Measure, ...]:
    """All other measures, and the attacks; those of extensions last."""
    return (*_utility(), *_risk(), *_attacks(), *_of_extensions())


@cache
def _of_extensions() -> tuple[Measure, ...]:
    return extension_measures(_ours())


@cache
def declared() -> tuple[Measure, ...]:
    """Every measure and attack: of tables, epochs, columns that are known, runs and transactions.

    They are those that were there when it was first asked, whatever a test leaves out later.
    """
    return (*_ours(), *_of_extensions())


def _ours() -> tuple[Measure, ...]:
    from sfumato.assess.audit.attacks import SHADOWS
    from sfumato.assess.audit.exposure import EXPOSURE
    from sfumato.assess.risk.uniqueness import KNOWN_CLASSES
    from sfumato.assess.utility.distortion import COSTS

    return (
        *basic(),
        EPOCHS,
        *_utility(),
        *_risk(),
        *_attacks(),
        SHADOWS,
        EXPOSURE,
        KNOWN_CLASSES,
        COSTS,
        *vertical_measures(),
    )


def number_of(name: str) -> Number | None:
    """What is declared of a finding, by its name; None of one that no measure declares."""
    first, slash, _ = name.partition("/")
    return _numbers().get(first + slash)


@cache
def _numbers() -> dict[str, Number]:
    return {number.name: number for measure in declared() for number in measure.numbers}


def _utility() -> tuple[Measure, ...]:
    from sfumato.assess.utility.clustering import CLUSTERING, OWN_CLUSTERS
    from sfumato.assess.utility.comparison import QUERIES
    from sfumato.assess.utility.distortion import CHANGES, DISTANCES, MEANS
    from sfumato.assess.utility.prediction import ENDURANCE, PREDICTION, RESPONSES
    from sfumato.assess.utility.propensity import PROPENSITY, PROPENSITY_AUC
    from sfumato.assess.utility.rules import COLUMN_RULES, RULES

    mined = PREDICTION, RESPONSES, ENDURANCE, PROPENSITY, PROPENSITY_AUC, QUERIES, RULES, CLUSTERING
    return (*mined, OWN_CLUSTERS, DISTANCES, COLUMN_RULES, CHANGES, MEANS)


def _risk() -> tuple[Measure, ...]:
    from sfumato.assess.risk.closest import NEIGHBOUR_RATIO
    from sfumato.assess.risk.groups import CONDITIONING, DIVERSITY
    from sfumato.assess.risk.uncertainty import INTERVAL, UNCERTAINTY
    from sfumato.assess.risk.uniqueness import RAREST_CATEGORY, UNIQUENESS
    from sfumato.assess.utility.distortion import PERTURBATION, SECURITY

    first = INTERVAL, UNCERTAINTY, PERTURBATION, SECURITY, UNIQUENESS
    return (*first, RAREST_CATEGORY, NEIGHBOUR_RATIO, DIVERSITY, CONDITIONING)


def _attacks() -> tuple[Measure, ...]:
    from sfumato.assess.attacks.differencing import DIFFERENCING
    from sfumato.assess.attacks.inference import ATTRIBUTE_INFERENCE, EXTREME_VALUES
    from sfumato.assess.attacks.known_input import KNOWN_INPUT, PUBLIC_MOMENTS
    from sfumato.assess.attacks.labels import HIDDEN_LABEL, LABEL_INFERENCE, SWAPPED_ROWS
    from sfumato.assess.attacks.linkage import GROUP_LINKAGE, LINKABILITY, LINKAGE, LINKED_PERSONS, OWN_ROW_LINKAGE
    from sfumato.assess.attacks.membership import LEAVES, MEMBERSHIP, OUTLIERS
    from sfumato.assess.attacks.noise_filter import BEST_GUESS, GROUP_FILTER, NOISE_FILTER
    from sfumato.assess.attacks.rare_combinations import RARE_COMBINATIONS, UNIQUE_VALUES, WHOLE_ROWS
    from sfumato.assess.attacks.singling import SINGLING_OUT
    from sfumato.assess.attacks.unknown_input import COMPONENTS, DIGITS

    linking = LINKAGE, OWN_ROW_LINKAGE, LINKED_PERSONS, GROUP_LINKAGE, LINKABILITY, SINGLING_OUT
    inferring = ATTRIBUTE_INFERENCE, LABEL_INFERENCE, MEMBERSHIP, LEAVES, OUTLIERS, RARE_COMBINATIONS
    shown = UNIQUE_VALUES, WHOLE_ROWS, EXTREME_VALUES
    undoing = NOISE_FILTER, GROUP_FILTER, BEST_GUESS, KNOWN_INPUT, COMPONENTS, PUBLIC_MOMENTS, DIGITS
    return (*linking, *inferring, *shown, *undoing, DIFFERENCING, *vertical_attacks(), SWAPPED_ROWS, HIDDEN_LABEL)


_FEW, _MANY = 0.02, 0.5  # shares of held-out rows, above what twins among the original's own rows explain

EPOCHS = Measure("epochs", Family.PRIVACY, "Aggarwal & Yu 2005 published by epochs", lambda _: ()).finds(
    Number("epoch-change-smallest", "Fewest records behind a change between epochs", COUNT.more).means(
        "The fewest new records behind any group whose rows changed between epochs; comparing epochs reveals as many "
        "records together, never one. Baseline: the fewest there may ever be"
    ),
    Number("epoch-rows-repeated", "Rows repeated from the last epoch", SHARE.more).means(
        "The share of rows that the last epoch contained as well; they reveal nothing new"
    ),
    Number("epoch-marginal-distance", "Marginal distance to the last epoch", family=Family.UTILITY).means(
        "The mean difference between the distributions of single columns in this and the last epoch: 0 means equal, 1 "
        "means nothing in common. Baseline: two samples of the same population"
    ),
    Number(
        "epoch-association-difference",
        "Association difference to the last epoch",
        Scale((0.0, 2.0)),
        family=Family.UTILITY,
    ).means(
        "How much the associations of columns changed since the last epoch. Baseline: two samples of the same "
        "population"
    ),
)
_STAGE = "measuring"
_DRAWN = 0.8  # how far the work is when figures are begun


def epoch_findings(
    facts: Sequence[Fact],
    before: pa.Table | None,
    after: pa.Table | None,
    codec: Codec | None,
    rng: np.random.Generator,
) -> tuple[Finding, ...]:
    """What an epoch shows beside the one before, and how few records are behind any change.

    Of the facts there are no findings without the ledger of the epochs; ``before`` and ``after`` are their rows.
    """
    ledger = Context(tuple(facts)).all("epoch-published")
    if not ledger:
        return ()
    return EPOCHS.findings(
        (("epoch-change-smallest", _fewest(facts, ledger)), *_epochs_compared(len(ledger), before, after, codec, rng))
    )


def _fewest(facts: Sequence[Fact], ledger: Sequence[Any]) -> Values | NotRun:
    changed = [line.fresh for line in ledger if line.renewed]
    if not changed:
        return NotRun("nothing has changed in any epoch")
    kept = Context(tuple(facts)).one("maintained")
    floor = None if kept is None else float(kept.k)
    bounds = (0.0, float(max(line.rows for line in ledger)))
    return Values(float(min(changed)), baseline=floor, range=bounds)


def _epochs_compared(
    epochs: int, before: pa.Table | None, after: pa.Table | None, codec: Codec | None, rng: np.random.Generator
) -> Iterator[Stated]:
    if before is None or after is None or codec is None or not before.num_rows or not after.num_rows:
        lacking = NotRun("this is the first epoch" if epochs == 1 else "the rows of the last epoch are not available")
        yield from ((name, lacking) for name in EPOCHS.names[1:])
        return
    pairs = read_pairs(before, after, codec)
    coordinates = Coordinates.of(pairs)
    sides = [[pair.original for pair in pairs], [pair.released for pair in pairs]]
    first, second = (gather(coordinates, side, rng) for side in sides)
    links = association_difference([pair.name for pair in pairs], first, second, rng)[0]
    yield "epoch-rows-repeated", dataclasses.replace(verbatim_rows(sides[0], sides[1]), baseline=None)
    yield "epoch-marginal-distance", marginal_distances(pairs, rng)[0][1]
    yield "epoch-association-difference", links


@dataclass(frozen=True, eq=False, repr=False)
class StudyResult:
    """What was found in a study, and how long each measure took."""

    study: Study
    findings: tuple[Finding, ...]
    seconds: dict[str, float]


def assess(study: Study, epochs: tuple[Finding, ...] = ()) -> Report:
    """Report of the utility and disclosure risk of a study's released table.

    Without workings findings about groups are not run, without rows held out those that need them. ``epochs`` are the
    `epoch_findings` of a stream.
    """
    begin = perf_counter()
    tell(_STAGE, 0.0)
    measured = measure_study(study)
    alike = class_findings(study) if study.quasi_identifiers else ()
    findings = privacy_first((*measured.findings, *alike, *epochs))
    figures = draw_figures(study, findings)
    tell(_STAGE, 1.0)
    return Report(
        findings,
        figures,
        len(study.original),
        len(study.released),
        plain(study.sizes),
        {**measured.seconds, "all": perf_counter() - begin},
        held_out_notes(study),
        0 if study.holdout is None else len(study.holdout),
        target=study.target,
        columns=risk_by_column(study, findings),
    )


def assess_without_comparison(
    released: pa.Table,
    reason: str,
    *,
    facts: tuple[Fact, ...] = (),
    workings: OwnerDetails | None = None,
    before: pa.Table | None = None,
    codec: Codec | None = None,
    rng: np.random.Generator,
) -> Report:
    """Report of what can be measured without a raw row, and of everything else why it was not.

    ``reason`` is why there are no rows to compare with, ``before`` what left in the epoch before; ``workings`` hold
    the sizes of groups.
    """
    begin = perf_counter()
    lacking: list[Finding] = []
    for each in (*basic(), *catalogue()):
        unfit = each.applies(facts)
        if each is not GROUPS:
            lacking += each.not_compared(unfit or reason, applies=unfit is None)
    groups = GROUPS.findings(group_sizes(workings or OwnerDetails(), facts))
    epochs = epoch_findings(facts, before, released, codec, rng)
    note = f"There were no original rows to compare with ({reason}); what needs them was not run."
    seconds, rows = {"all": perf_counter() - begin}, released.num_rows
    findings = privacy_first((*groups, *epochs, *lacking))
    return Report(findings, (), rows, rows, seconds=seconds, notes=(note,))


def measure_study(study: Study) -> StudyResult:
    """Findings of every measure and every attack on a study."""
    import sklearn.ensemble  # noqa: F401 - a pool of threads can be held once it is loaded

    findings: list[Finding] = []
    seconds: dict[str, float] = {}
    measures = (*basic(), *catalogue())
    with one_thread():
        for place, each in enumerate(measures, start=1):
            begin = perf_counter()
            findings.extend(run_measure(each, study))
            seconds[each.name] = perf_counter() - begin
            tell(_STAGE, _DRAWN * place / len(measures))
    return StudyResult(study, privacy_first(findings), seconds)


def draw_figures(study: Study, findings: Sequence[Finding]) -> tuple[Figure, ...]:
    """All figures of a report, in the order of its pages: whatever there is to draw."""
    shown = by_figure(findings)
    pairs = study.pairs if len(study.released) else ()
    marginals = marginal_figures(pairs)
    tell(_STAGE, 0.9)
    distances = distance_figures(closest_of(study)) if "distances/closest" in shown else ()
    points = component_figures(study) if pairs else ()
    links = (
        association_figures([pair.name for pair in pairs], associations_of(study))
        if "association/difference" in shown
        else ()
    )
    figures = (*attack_figures(findings), *model_figures(findings))
    return (*figures, *distances, *group_figures(study.workings), *points, *links, *marginals)


def held_out_notes(study: Study) -> tuple[str, ...]:
    """Say how many held-out rows stand in the original as they are; refuse rows that mostly do.

    Rows of people that the release was made from are no control: attacks would be compared with themselves. Tables of
    few values have true twins, so the share of original rows that have one is taken off first.
    """
    if study.holdout is None or not study.holdout.size or not len(study.original):
        return ()
    original = row_keys(bits_of(column) for column in study.original.T)
    held = row_keys(bits_of(column) for column in study.holdout.T)
    found = int(np.isin(held, original).sum())
    counts = np.unique(original, return_counts=True)[1]
    twins = float(counts[counts > 1].sum() / len(original))
    excess = found / len(held) - twins
    if excess > _MANY:
        raise OptionError(
            f"{found} of {len(held)} held-out rows are also in the original; hold out rows that the release was not "
            "made from"
        )
    if excess > _FEW:
        return (
            f"{found} of {len(held)} held-out rows stand in the original as they are, more than its own twins explain; "
            "if these are the same people, the control is too high and the excess too low.",
        )
    return ()
