"""General cautions: what is refused of every release of a kind. They promise nothing and tell no number."""

from __future__ import annotations

from tests.recount.patterns import caution

__all__ = ["CAUTIONS"]

_PRIVATE = "The release is differentially private."
_FRESH = "The table may be made again with fresh randomness."
_NOISE = "The table may be made again with fresh noise."
_FAR = "An attacker stays as far from the true numbers as the noise is large."

CAUTIONS = (
    caution(
        "The table is anonymous.",
        "that is a judgement about everything an attacker may know; this certificate states only what was done and "
        "what follows from it",
    ),
    caution(_PRIVATE, "the cuts of the trees and the values of their leaves carry no calibrated noise"),
    caution(_PRIVATE, "the groups' means and covariances carry no calibrated noise"),
    caution(_PRIVATE, "every cell of the original is published, in its own row or in another"),
    caution(_PRIVATE, "cells are published as they are"),
    caution(_PRIVATE, "nothing was drawn for each row: one secret key moves all of them alike"),
    caution(_PRIVATE, "noise was drawn for some rows only, and its size is that of the data's own spread"),
    caution(
        _PRIVATE,
        "the noise is measured by each column's own standard deviation, which is data and can be read off the "
        "release, and not by how much one person could change",
    ),
    caution(
        _PRIVATE,
        "groups, principal axes and ranges are computed from the data, their effect on the release is not accounted "
        "for, and the noise is measured by them and not by how much one person could change",
    ),
    caution(
        _FRESH,
        "two answers of a person to one question tell more than one: their epsilons add up, and many average to the "
        "truth",
    ),
    caution(_FRESH, "two samples together show the rows of more people"),
    caution(_FRESH, "what does not change between two releases was not exchanged, and what does is narrowed down"),
    caution(_NOISE, "the factors of two releases multiply"),
    caution(_NOISE, "two releases average to half the noise's variance"),
    caution(
        _FAR,
        "a filter takes off much of the noise where columns go together, and an estimate draws the rest towards the "
        "mean: the report measures the error that is left",
    ),
    caution(
        _FAR,
        "who knows a group's statistics draws noised rows towards its mean: the report measures the error that is left",
    ),
    caution(
        "The digits of the moved numbers say nothing of the key.",
        "they are written as the move left them and not rounded to hide it (exact_digits): numbers that lay a step "
        "apart lie that step times the factor apart, so the digits of one column show its factor to anybody, and "
        "numbers of a known step show a shift or an angle",
    ),
    caution(
        "The statistics of a group stay safe from its own members.",
        "whoever knows all members of a group but one can work out the last one from the group's sums",
    ),
    caution(
        "No released row equals an original record.",
        "rows are drawn without looking at whether they equal one; to leave such rows out would tell who is in the "
        "table. The report counts them beside people who are not",
    ),
    caution(
        "A cell that is missing says nothing of its value.",
        "cells were turned to missing where they told too much, so that a gap tells that its cell did",
    ),
    caution(
        "A person's own cells stay unknown where cells were exchanged.",
        "a row has a cell of its own leaf, and where most of a leaf hold one value a person's own is told",
    ),
    caution(
        "A person's own cells stay unknown where cells were exchanged.",
        "an exchanged cell lies within the window around the person's own, and tells about where that was",
    ),
    caution(
        "Being drawn at random protects the people who were drawn.",
        "their rows are published, and whoever knows that a person was drawn has lost all doubt",
    ),
    caution(
        "Nobody can tell whether a person was drawn.",
        "whoever knows enough of a person finds the row in the release, or finds that it is not there",
    ),
    caution(
        "The labels of several columns tell no more together than each alone.",
        "together they may fit few people, and columns that go together narrow each other down",
    ),
    caution(
        "The rest of a row stays secret from whoever finds those who show the same.",
        "other cells are published as they are: where all rows that show the same hold the same there, it is told",
    ),
    caution(
        "How many records a person has stays unknown to whoever finds that person's group.",
        "persons of a group have as many records each, up to those left out, and released persons as many rows",
    ),
    caution(
        "No released number proves anything about its original.",
        "uniform noise is bounded: every released number proves between which two numbers its original lies, and no "
        "factor bounds what is learned (the amplification is infinite)",
    ),
    caution("Zeros and small numbers are hidden.", "a product with 0 is 0, and a number near 0 is changed by little"),
    caution(
        "The bounds hold against what was known before the release.",
        "they are relative to what a record's group already tells (errata BCG10.3): the rows of a group show where it "
        "lies and how far it reaches, and whoever finds a person's group knows that much without any bound",
    ),
    caution(
        "Nobody can find out which rules were hidden.",
        "a hidden rule lies just below a threshold, where somebody who lowers it or knows similar baskets finds it",
    ),
    caution(
        "Nobody can tell what a question mark stands for.",
        "the other items of a basket tell something of it, and how many question marks an item has is seen",
    ),
    caution(
        "Nobody can tell when a record came.",
        "rows that are drawn anew tell which part of the table got fresh records in an epoch",
    ),
    caution(
        "Every category of a group is shared by several of its members.",
        "groups keep the counts of their categories and missing cells, so a category that enough people of the stream "
        "have may stand once inside a group",
    ),
    # joint runs
    caution(
        "The owners kept their cells from each other.",
        "all of them ran in one process that had every table and computed in the clear: a trial of the protocol, which "
        "protects from readers alone",
    ),
    caution(
        "The bounds hold against what an owner knew before the run.",
        "they are relative to the statistics of the groups, and every owner saw means, covariances and ranges of all "
        "groups exactly, where a reader only sees how the rows of a group lie",
    ),
    caution(
        "The run is safe from an owner that does not follow the protocol.",
        "nobody checks that the numbers which a party sends are those that it should send: one that sends others "
        "spoils the table, and may learn more than the ledger says",
    ),
    caution(
        "A record that alone has a category, or a missing cell, in its group among the rows of all other owners stays "
        "hidden from an owner.",
        "the covariances of a group are exact, and the products of what one record alone has with every column are the "
        "cells of that record: an owner that takes its own rows off has the row without any noise; pool rare "
        "categories and take larger groups",
    ),
    caution(
        "A row stays hidden from owners that have the rest of its group together.",
        "the sums of a group are exact: no owner alone had all rows of a group but one or two, which was checked, but "
        "owners that put their rows together can take them all off",
    ),
    caution(
        "The columns of a group stay hidden from an owner that knows most of its records.",
        "every owner saw, group by group, the products of its own columns with those of the others: each of its "
        "columns is a linear equation, and so is the mean, for the cells of another's column. Of cells that can have "
        "few values, such as categories, far fewer equations than records leave one solution",
    ),
    caution(
        "Nobody learns which records another owner has.",
        "the run goes on only where all owners have the same keys, so that each knows of every record of its own that "
        "all others have it too",
    ),
    caution(
        "The owners cannot tell whose rows are whose.",
        "each owner told its noised rows to all, so that every owner knows which released rows are another's, and of "
        "which group",
    ),
)
