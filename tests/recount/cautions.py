"""General cautions: claims that are refused for every release of a kind. They promise nothing and have no number."""

from __future__ import annotations

from tests.recount.patterns import caution

__all__ = ["CAUTIONS"]

_PRIVATE = "The release is differentially private."
_RANDOMNESS = "The table may be released again with new randomness."
_NOISE = "The table may be released again with new noise."
_ERROR = "An attacker's error in the true numbers is as large as the noise."

CAUTIONS = (
    caution(
        "The table is anonymous.",
        "Anonymity depends on everything that an attacker may know. This certificate states only what was done and "
        "what follows from it.",
    ),
    caution(_PRIVATE, "The splits of the trees and the values of their leaves carry no calibrated noise."),
    caution(_PRIVATE, "The means and covariances of groups carry no calibrated noise."),
    caution(_PRIVATE, "Every cell of the original is published, in its own row or in another."),
    caution(_PRIVATE, "Cells are published unchanged."),
    caution(_PRIVATE, "Nothing was drawn for single rows: one secret key transforms all of them alike."),
    caution(_PRIVATE, "Noise was drawn for some rows only, and it is scaled by the spread of the data."),
    caution(
        _PRIVATE,
        "Noise is scaled by each column's standard deviation, which is data and can be read off the release. It is not "
        "calibrated to how much one person can change.",
    ),
    caution(
        _PRIVATE,
        "Groups, principal axes and ranges are computed from the data, and their effect is not accounted for. They "
        "also scale the noise, which is not calibrated to how much one person can change.",
    ),
    caution(
        _RANDOMNESS,
        "The epsilons of a person's two answers to one question add up, and the average of many answers approaches the "
        "truth.",
    ),
    caution(_RANDOMNESS, "Two samples together show the rows of more people."),
    caution(
        _RANDOMNESS,
        "Cells that agree in two releases are most likely unswapped, and the others narrow down the original values.",
    ),
    caution(_NOISE, "The factors of two releases multiply."),
    caution(_NOISE, "The average of two releases has half the noise variance."),
    caution(
        _ERROR,
        "Filtering removes much of the noise if columns are correlated, and shrinkage towards the mean removes more. "
        "The report measures the remaining error.",
    ),
    caution(
        _ERROR,
        "Anyone who knows a group's statistics can shrink noisy rows towards its mean. The report measures the "
        "remaining error.",
    ),
    caution(
        "The digits of the transformed numbers reveal nothing about the key.",
        "The numbers are released unrounded (exact_digits), so their spacing in one column shows its factor. Numbers "
        "of a known step also show a shift or an angle.",
    ),
    caution(
        "The statistics of a group protect each member from the other members.",
        "Anyone who knows all members of a group but one can compute the last one from the group's sums.",
    ),
    caution(
        "No released row equals an original record.",
        "Rows are drawn without this check, because discarding equal rows would disclose who is in the table. The "
        "report compares the number of equal rows with a control group.",
    ),
    caution(
        "A missing cell reveals nothing about its value.",
        "Cells were suppressed because they disclosed too much, so a gap shows that its value did.",
    ),
    caution(
        "A person's own values stay unknown in swapped columns.",
        "A row receives a cell of its own leaf. If most of a leaf share one value, a person's own is disclosed.",
    ),
    caution(
        "A person's own values stay unknown in swapped columns.",
        "A swapped cell lies within the window around the person's own value, and shows roughly what that was.",
    ),
    caution(
        "Random sampling protects the people in the sample.",
        "Their rows are published. Anyone who knows that a person was sampled has no doubt left.",
    ),
    caution(
        "No one can tell whether a person was sampled.",
        "Anyone who knows enough about a person finds the row in the release, or finds that it is absent.",
    ),
    caution(
        "The labels of several columns disclose no more together than each alone.",
        "A combination of labels may fit few people, and related columns narrow each other down.",
    ),
    caution(
        "The other columns stay unknown to anyone who finds a person's equivalence class.",
        "They are published unchanged. If all rows of a class share a value there, that value is disclosed.",
    ),
    caution(
        "The number of a person's records stays unknown to anyone who finds the person's group.",
        "Members of a group have equally many records, up to those left out, and released persons have as many rows.",
    ),
    caution(
        "No released number proves anything about its original.",
        "Uniform noise is bounded, so each released number proves an interval that contains its original. No factor "
        "bounds what is learned (the amplification is infinite).",
    ),
    caution(
        "Zeros and small numbers are hidden.", "Zero times any factor is zero, and numbers near zero change little."
    ),
    caution(
        "The bounds are relative to what was known before the release.",
        "They are relative to what a record's group already reveals (errata BCG10.3). The rows of a group show where "
        "it lies and how far it reaches, without any bound.",
    ),
    caution(
        "No one can find out which rules were hidden.",
        "A hidden rule lies just below a threshold. Anyone who lowers it, or knows similar transactions, finds the "
        "rule.",
    ),
    caution(
        "No one can tell what a question mark stands for.",
        "The other items of a transaction reveal something about it, and the number of question marks is visible.",
    ),
    caution(
        "No one can tell when a record was added.",
        "Rows that change show which part of the table received new records in an epoch.",
    ),
    caution(
        "Every category in a group is shared by several of its members.",
        "Groups keep the counts of their categories and missing cells. A category that is frequent enough in the "
        "stream may occur once in a group.",
    ),
    # joint runs
    caution(
        "The data owners hid their cells from each other.",
        "All of them ran in one process that had every table in the clear. This trial of the protocol protects against "
        "readers alone.",
    ),
    caution(
        "The bounds are relative to what an owner knew before the run.",
        "They are relative to the statistics of the groups. Every owner saw the exact means, covariances and ranges of "
        "all groups; a reader sees only the rows of a group.",
    ),
    caution(
        "The run is safe from an owner who does not follow the protocol.",
        "No one checks that a party sends the numbers that it should. A party that sends others spoils the table, and "
        "may learn more than the ledger states.",
    ),
    caution(
        "A record that alone among all other owners' rows of a group has a category, or a missing cell, stays hidden "
        "from an owner.",
        "The covariances of a group are exact, and a value that one record alone has shows that record's cells in "
        "every column. An owner that subtracts its own rows has the record without noise; pool rare categories and use "
        "larger groups.",
    ),
    caution(
        "A row stays hidden from owners who have the rest of its group together.",
        "The sums of a group are exact. It was checked that no single owner had all rows of a group but one or two, "
        "but owners who pool their rows can subtract them all.",
    ),
    caution(
        "The columns of a group stay hidden from an owner who knows most of its records.",
        "For each group, every owner saw the mean of each other column and its products with the owner's own columns: "
        "linear equations for that column's cells. If cells can have few values, far fewer equations than records "
        "leave one solution.",
    ),
    caution(
        "No one learns which records another owner has.",
        "The run continues only if all owners have the same keys. Each owner thus knows that all others have its "
        "records too.",
    ),
    caution(
        "The owners cannot tell whose rows are whose.",
        "Each owner sent its noisy rows to all. Every owner knows which released rows are another's, and of which "
        "group.",
    ),
)
