"""The table of sentences: the words of each with its numbers named, and what recounts them.

A sentence that is not here fails the recount. To add one, write its words with the numbers named (`patterns`), and name
the function that counts them; what original and release cannot show is `uncountable`, with the reason.
"""

from __future__ import annotations

from tests.recount import count_bounds as bounds
from tests.recount import count_changes as changes
from tests.recount import count_flows as flows
from tests.recount import count_groups as groups
from tests.recount import count_rows as rows
from tests.recount import count_tails as tails
from tests.recount.cautions import CAUTIONS
from tests.recount.patterns import counted, phrase, uncountable

__all__ = ["ASSUMPTIONS", "SENTENCES"]

_GROUP = "The finished partition was checked record by record."
_CHAIN_DRAWN = (
    "Each cell of the <rows> released rows[[, but for <made:text>,]] was drawn from the cells of at least <leaf> "
)
_CHAIN_REST = (
    "are [[in the same part of the table and ]]alike in the columns drawn before it, and of at least as many as any of "
    "these asked for; the smallest such leaf has <smallest>[[<by_person:text> persons, and none "
    "supplies more than 2 in <of_leaf> of what it is drawn from]].[[ In <regressed> column{s|} of numbers[[, in all or "
    "some parts,]] what was drawn is how far these records lie from a regression, over all records[[ of the part]], on "
    "the columns before.]][[ {In all or some parts |}<twice> column{s were| was} drawn twice: first so that the others "
    "could be drawn by it, then anew by all of them, and only the second draw is released.]][[ A number that at least "
    "<holders> {records|persons} hold may then have become, by chance, one beside it that as many hold: at most a "
    "fiftieth of the column's numbers[[ in the part]] lie between.]]"
)
_CHAIN_BEHIND = (
    "The <columns> column{s were| was} drawn one after the other from the leaves of trees; every finished leaf was "
    "counted and compared with the levels inside.[[<by_leaf:text> Cells beyond those by which a person "
    "supplies that much of a leaf were left out of its draws.]]"
)
_CHAIN_NUMBERS = (
    "<moved> drawn number{s were| was} of that kind[[ in their part of the table]], or of a column where many are, or "
    "drawn by a regression, and each became the nearest of its leaf that at least <level> {records|persons} hold, or "
    "was moved by chance towards another value of its leaf; <kept> other{s are| is} as at least <same> "
    "{records|persons} have them[[<coded:text> once tails are coded]]."
)
_RARE_BEHIND = (
    "Persons were counted in <columns> column{s|} of categories before {rows left|anything was drawn}. A cell with a "
    "rarer category took {one named other|a wider one of their hierarchy} that at least as many hold, a neighbour in "
    "order, or the category of another record; so did missing cells that fewer than <lacking> have."
)
_LIMIT = (
    "In each column, taken by itself, no released number or date lies beyond a limit that was computed from at least "
)
_TAILS_BEHIND = (
    "The ends of <columns> column{s|} of numbers and dates were top and bottom coded. A cut-off lies at random between "
    "the values of at least <between> persons who are outreached by at least <beyond> others, or between the middle "
    "values of a column that few persons fill; each person counts once."
)
_TAILS_COMMON = (
    " In columns of mostly common values, a value that fewer than <rare> persons hold became a common neighbour."
)
_TAILS_SMOOTH = (
    "[[<smooth:text> In columns with a long tail, values beyond a cut-off were drawn from an exponential tail that "
    "ranks further inside determine.]]"
)
_TAILS_RULES = " Columns that a rule makes from others follow from coded ones."
_COUNTS = "{each group keeps the exact|rows are drawn with the} counts of {its categories|categories} and missing cells"
_RANDOMIZED = (
    "change by at most a factor of <factor:number> (local differential privacy with epsilon <epsilon:number>); what "
    "was 1 % likely is at most <one:number> % likely after, what was 10 % likely at most <ten:number> % and at least "
    "<least:number> %."
)
_EGS = "No property of one value changes its odds by more than the amplification [Evfimievski, Gehrke, Srikant 2003]; "
_ITEM = "Each item stays with a chance of <keep:number> and each other comes in with <insert:number>, all by themselves"
_USUAL = (
    "[[, which is usual where {it makes up at most|flipping every item would make up more than} 10 entries for each "
    "true one]]."
)
_MOVED = (
    "the table is reversible by anyone who knows <known> row{s|}: one key moved all rows alike, and so many original "
    "rows, independent of each other, with their places in the release fix it as far as the rounding of the release "
    "allows; fewer rows, public figures, or the digits and the shape of the numbers alone, may do as well[[; the "
    "<rows> row{s|} with extra noise come back blurred by it, and do not count among those]]"
)
_JOINED = (
    "The first records were condensed together [AY05, sec. 2] and later ones join the closest group that holds at "
    "least their level less one [AY05, sec. 3]; a group that was split counts as the model has it."
)

SENTENCES = (
    *CAUTIONS,
    # ------------------------------------------------------------------------------------------------- any release
    counted(
        "{To readers who are not among the owners, the|The} order of the rows says nothing of the order or the groups "
        "of the original records.",
        "The order of all <rows> row{s|} was drawn uniformly after they were made.",
        rows.order,
    ),
    counted(
        "Within runs of at least <rows> consecutive rows the order says nothing of that of the original.",
        "The order of each run was drawn uniformly.",
        rows.runs,
    ),
    counted(
        "The order of the rows says nothing of the order of the original records.",
        "the file was moved in one pass and every row stays in its run of at least <rows> rows, so whoever knows the "
        "order of the original knows about where a person's row is",
        rows.runs,
    ),
    counted(
        "The release does not hold the [[identifying columns (<identifiers:names>)]][[ or the ]][[columns without any "
        "value (<empty:names>)]][[ or the ]][[privacy levels (<levels:names>)]].",
        "They were dropped before anything was computed, privacy levels after the groups were made.",
        rows.dropped,
    ),
    counted(
        "Every released row obeys <count> rule{s|} between columns: <rules:names>.",
        "Later columns were drawn as their distance from earlier ones, and columns that follow from others were made "
        "from these; all rows were checked.",
        rows.rules,
    ),
    counted(
        "Every pair of a label and what it decides is shared by as many records as the privacy level asks for.",
        "a rule that the owner wrote down keeps pairs together, also those that fewer hold",
        rows.rare_pairs,
    ),
    counted(
        "The release gives the dates of <count> column{s|} to the month, never to the day: <columns:names>.",
        "Every date was taken as the first day of its month before anything was computed, and is written so.",
        rows.months,
    ),
    counted(
        "The weights '<column:name>' of the released rows add up to what those of the original records do[[ once "
        "<coded:text>their tails are coded]], <total:number>, up to <step:number>.",
        "After they were drawn, all were multiplied by one number and rounded to their step.",
        rows.weights,
    ),
    counted(
        "A person's weight '<column:name>' stays unknown to whoever knows the weights of everybody else.",
        "the total is exact, and what is missing from it is that person's",
        rows.weight_column,
    ),
    counted(
        "The <cells> cells and <names> column names that a spreadsheet would take for formulas have an apostrophe "
        "before them in the file.",
        "Texts that begin with =, +, -, @, tab or return and are no numbers were written so; without that apostrophe "
        "they are the values.",
        rows.spreadsheet,
    ),
    counted(
        "The table can be opened in a spreadsheet without harm.",
        "<cells> cells and <names> column names begin with =, +, -, @, tab or return, which a spreadsheet takes for "
        "formulas and may run; open it as text",
        rows.spreadsheet,
    ),
    counted(
        "The release meets the policy '<policy:name>'.",
        "the owner measured it, and {it does not|it cannot be told whether it does}; it leaves all the same, by the "
        "owner's decision",
        rows.despite_policy,
    ),
    counted(
        "This table may be released.",
        "it is a rehearsal: it was made with a seed, and whoever knows the seed can repeat every random draw",
        rows.dry_run,
    ),
    counted(
        "Attacks were tried on this table before it left.",
        "the owner asked for no report, so nothing was measured",
        rows.unmeasured,
    ),
    # --------------------------------------------------------------------------------------------- rare categories
    counted(
        "No category that fewer than <k> persons of the {table|stream} hold appears in the release.",
        _RARE_BEHIND,
        rows.hidden,
    ),
    counted(
        "No category that fewer than <k> persons of the {table|stream} hold appears in the release.",
        "such categories are left as in the {table|stream}, by the owner's decision",
        rows.shown,
    ),
    counted(
        "The release does not hold the columns without a value that as many persons hold as the highest privacy level "
        "asks for (<columns:names>).",
        "They were dropped before {rows left|anything was drawn}.",
        rows.rare_columns,
    ),
    counted(
        "Every category of a group is shared by several of its members.",
        f"{_COUNTS}[[ of each group]], so a category that enough people of the table have may stand once inside a "
        "group",
        rows.equal_counts,
    ),
    counted(
        "Rare categories are hidden.",
        f"{_COUNTS}[[ of each group]], so a category that one person has " + "{may appear|appears once} in the release",
        rows.equal_counts,
    ),
    counted(
        "Rare categories are hidden.",
        f"{_COUNTS}, and nobody counted over all owners how many people hold a category: one that a single person has "
        "appears once in the release; let the owners list only categories that many hold, or wider ones",
        rows.equal_counts,
    ),
    # ---------------------------------------------------------------------------------------------- ends of columns
    counted(
        f"{_LIMIT}<k> persons.",
        f"{_TAILS_BEHIND}[[{_TAILS_COMMON}]]{_TAILS_SMOOTH}{_TAILS_RULES}",
        tails.coded,
    ),
    counted(
        f"{_LIMIT}<k> persons.",
        "the ends of columns are left as they are, by the owner's decision",
        tails.left,
    ),
    counted(
        "In each column, taken by itself, numbers and dates beyond a limit that was computed from at least <k> persons "
        "were replaced by that limit before noise was added, and again after it where no bounds are declared.",
        "The ends of <columns> column{s|} were top and bottom coded by their owners. A limit lies at random between "
        "the values of <between> persons who are outreached by <beyond> others, or between the middle values of a "
        "column that few persons fill; in columns of mostly common values, a value that fewer than <rare> persons hold "
        "became a common neighbour.",
        tails.coded_before_noise,
    ),
    # ------------------------------------------------------------------------------------------ groups and their rows
    counted(
        "Each of the <records> original records was {condensed with others|put} into a group at least as large as its "
        "own privacy level; the smallest group has <smallest>.",
        "Condensation puts a record only where the group is as large as the highest level inside [AY05, sec. 2]; the "
        "finished partition was checked record by record.",
        groups.groups,
    ),
    counted(
        "The <records> original record{s were| was} put into groups at least as large as the privacy level of each, "
        "<alone> record{s|} of level 1 into groups of one.",
        "Condensation puts a record only where the group is as large as the highest level inside [AY05, sec. 2]; the "
        "finished partition was checked record by record.",
        groups.groups,
    ),
    counted(
        "The <records> record{s|} of <persons> person{s|} were condensed into groups that hold at least as many "
        "different persons as the privacy level of each record inside; the smallest group has "
        "<smallest> person{s|}.",
        "No group holds two records of one person: the first records of all are grouped apart from the second ones, "
        f"and so on, and whoever has more joins groups without their own records. {_GROUP}",
        groups.groups,
    ),
    counted(
        "Each of the <records> original records was put into a group at least as large as its own privacy level, "
        "and got noise in proportion to the ranges of that group; the smallest group has "
        "<smallest>.",
        "Small clusters are filled from larger ones or dissolved [BCG10, alg. 2, lines 4 to 11; errata BCG10.4]; the "
        "finished partition was checked record by record.",
        groups.groups,
    ),
    counted(
        "A record hides among the <smallest> or more of its group.",
        "every released row descends from one record: a group says how wide its noise is, not that members are "
        "exchangeable, and the report measures how many records are linked to their own rows",
        groups.noised_groups,
    ),
    uncountable(
        "The noise changes every record.",
        "<alike> record{s are in groups that vary| is in a group that varies} in no number and at most in one other "
        "column: noise in proportion to ranges is none there, and such records are published as they are",
        "group membership is never written",
    ),
    counted(
        "The noise is as wide as a crowd.",
        "<groups> group{s have| has} three records or fewer, and noise in proportion to their ranges hides little",
        groups.tiny_groups,
    ),
    counted(
        "Nobody can tell in which [[of the <groups> groups]][[group]] a known person is.",
        "a group hides which of its members a person is, not where in the table they are: someone who knows a person's "
        "values may find the right group, and with it the group's typical values",
        groups.group_count,
    ),
    counted(
        "No record can be recovered from the statistics of its group.",
        "<groups> group{s have| has} three {records|rows} or fewer; mean and covariance of two records give both "
        "exactly",
        groups.tiny_groups,
    ),
    counted(
        "Every record is protected.",
        "<alone> record{s of level 1 stand| of level 1 stands} alone and {is|are} published as {it is|they are}",
        groups.alone,
    ),
    counted(
        "Every released row[[, but for <made:text>,]] was drawn at random from the mean and covariance of a group of "
        "at least <smallest> records; no row was copied from an original record.",
        "<law:text> of each group's covariance [AY05, eq. 2.1].",
        groups.drawn_rows,
    ),
    counted(
        "<drawn> of the <rows> released rows[[, but for <made:text>,]] were drawn at random from the mean and "
        "covariance of a group whose records differ; none of these was copied from an original record.",
        "<law:text> of each group's covariance [AY05, eq. 2.1].",
        groups.drawn_rows,
    ),
    counted(
        "Every released row of a group whose records differ was drawn at random from its mean and covariance; none of "
        "these was copied from an original record.",
        "<law:text> of each group's covariance [AY05, eq. 2.1].",
        groups.drawn_rows,
    ),
    uncountable(
        "Every released row[[, but for <made:text>,]] was drawn at random from the mean and covariance of a group of "
        "records.",
        "<law:text> of each group's covariance [AY05, eq. 2.1].",
        "how a row was drawn cannot be seen from it, and the sentence does not say that none was copied",
    ),
    counted(
        "No released row is an original record.",
        "{what is drawn for |}<same> {row|record}{s|} {come|comes} from groups that vary in no number and at most in "
        "one other column, such as records alone or all the same: what is drawn from these are the records as they "
        "are",
        groups.same_records,
    ),
    counted(
        "No number that fewer than <k> persons of the table hold was copied.",
        "Numbers and dates were drawn from the spread of a group, or made from such by rules; where all records of a "
        "group hold one number, that is drawn, and each group has at least <level>.",
        groups.copied,
    ),
    counted(
        "In <columns> column{s|} of numbers a released number is computed from means of the numbers of at least <k> "
        "{persons|original records} each, and from numbers that as many hold.",
        "Statistics are of normal scores, the places of numbers among all; drawn scores became numbers by a line "
        "through these points, which goes on beyond the outermost.",
        groups.scores,
    ),
    counted(
        "Every released row fulfils the rule '<rule:name>', by which the owner chose what to draw.",
        "Rows that do not were drawn and left out before their other columns were drawn; all rows were checked.",
        rows.where,
    ),
    counted(
        "More rows than there are records give away no more than as many would.",
        "<rows> rows were drawn from the same statistics of <records> record{s|}: the more rows, the closer a reader "
        "comes to these statistics",
        rows.chosen_rows,
    ),
    counted(
        "A reader cannot be sure of [[the class label]][[the value of '<column:name>']] of the people behind a row.",
        "groups never cross '<strata:name>', so for whoever finds a person's group <what:text> is certain (l = 1)",
        groups.strata,
    ),
    counted(
        "The class '<column:name>' of every released row is that of all records of its group: no group mixes the "
        "<classes> classes.",
        "Each class was condensed apart from the others [KCG12, fig. 5]; the finished partition was checked group by "
        "group.",
        groups.classes,
    ),
    counted(
        "The group size, <size>, is the approximate greatest common divisor of the sizes of the classes.",
        "Classes were counted in units of <unit> record{s|}; the size is the largest number of units into which the "
        "units of every class divide [KCG12, fig. 5, theorem 1]. A group may be larger if records inside have a higher "
        "level.",
        groups.chosen_size,
    ),
    counted(
        "No released row was made from an original row whose class '<column:name>' is missing.",
        "[[Such rows, of fewer than <fewer> persons, were]][[<rows> such row{s were| was}]] left out before anything "
        "was computed.",
        groups.unlabelled,
    ),
    counted(
        "A reader cannot be sure of the class '<column:name>' of the people behind a row.",
        "no group mixes classes, so for whoever finds a person's group the class is certain (l = 1)",
        groups.classes,
    ),
    uncountable(
        "No group holds records of two of the <cells> cells that the table was cut into; the smallest cell has "
        "<smallest> record{s|}.",
        "The table was cut along principal axes of a sample before any group was made, cells with fewer people than "
        "the highest privacy level were joined, and each cell was put into groups by itself.",
        "which cell a record was in is never written",
    ),
    uncountable(
        "The table was put into groups in one cell.",
        "The table was cut along principal axes of a sample before any group was made, cells with fewer people than "
        "the highest privacy level were joined, and each cell was put into groups by itself.",
        "which cell a record was in is never written",
    ),
    uncountable(
        "The table was drawn from as one part.",
        "The table was cut by a sample before any tree was grown, parts with fewer people than a leaf or the highest "
        "privacy level needs were joined, and each part was drawn from by itself.",
        "which part a record was in is never written",
    ),
    counted(
        "No leaf holds records of two of the <parts> parts that the table was cut into; the smallest part has "
        "<smallest> record{s|}, and rows were drawn from each in proportion to its records.",
        "The table was cut by a sample before any tree was grown, parts with fewer people than a leaf or the highest "
        "privacy level needs were joined, and each part was drawn from by itself.",
        groups.partitions,
    ),
    # ------------------------------------------------------------------------------------------------------- persons
    counted(
        "No released row was drawn from an original record <which:text>.",
        "Such records are left out when the partition is finished, and rows are drawn from groups alone.",
        groups.left_out,
    ),
    counted(
        "A person's several records give away no more than one of them does.",
        "<records> records are of <persons> person{s|}, whose records {stand in different groups|may lie in different "
        "leaves}: whoever knows several of them may find several {groups|leaves}, and with them the {typical values of "
        "each|values there}",
        groups.several_records,
    ),
    counted(
        "The rows of each of the <persons> released person{s|} were drawn together from the records of at least "
        "<smallest> person{s|} who have as many, those left out not counted.",
        "Persons with as many records were condensed by all of them at once; the first records of a group's members "
        "make the first rows, the second ones the second, and so on.",
        groups.released_persons,
    ),
    counted(
        "The numbers of '<column:name>' say nothing of the values of the person column.",
        "They were dealt by chance, after the rows were drawn.",
        groups.dealt_numbers,
    ),
    counted(
        "No released person has two values in a column that never changes within a person of the original: "
        "<columns:names>.",
        "They were drawn once for each released person.",
        groups.constant_in_persons,
    ),
    counted(
        "Rows that stay together give away no more than single rows do.",
        "a released person keeps up to <most> row{s|}, so whoever knows several records of somebody compares them all "
        "at once",
        groups.most_rows,
    ),
    # --------------------------------------------------------------------------------------------------------- chain
    counted(f"{_CHAIN_DRAWN}{{original records that|persons who}} {_CHAIN_REST}", _CHAIN_BEHIND, groups.leaves),
    counted(
        "No number that fewer than <k> {original records|persons of the table} hold was copied.",
        _CHAIN_NUMBERS,
        groups.copied,
    ),
    counted(
        "A combination of values in a released row is shared by <k> people.",
        "each cell comes from a leaf of its own, so that a row joins values of many people, and a combination may be "
        "that of one person or of nobody",
        groups.combination,
    ),
    counted(
        "The values of a leaf's members stay unknown to whoever finds the leaf.",
        "a leaf shows how values are distributed among its members; of <leaves> leaves <same> {holds|hold} one value "
        "alone",
        groups.single_valued,
    ),
    # --------------------------------------------------------------------------------------------------- modifications
    counted(
        "The cells of <count> column{s|} (<columns:names>) are {after their values were widened, |}those of the "
        "original, each as often as there.",
        "Cells were exchanged between rows and none was altered: every row took the cell of one row, and every row's "
        "cell was taken once.",
        changes.exchanged,
    ),
    counted(
        "Cells were exchanged in pairs of rows of different persons, at most <window:number> percent of the cells of a "
        "column apart in rank; <changed> of <cells> cells are another value than before.",
        "Ranks were gone through in order, equal cells in random order, and each cell without a partner got one that "
        "was drawn from those within the window [Moore 1996]; cells that found none stayed.",
        changes.exchanged_cells,
    ),
    counted(
        "Cells were put into random order within each of the <leaves> lea{ves|f} of a tree that tells '<target:name>'; "
        "the smallest leaf has <smallest> person{s|}; <changed> of <cells> cells are another value than before.",
        "The order of each leaf's cells was drawn uniformly [Estivill-Castro, Brankovic 1999].",
        changes.exchanged_cells,
    ),
    counted(
        "Which cells are missing was exchanged too.",
        "in <missing> column{s|} missing cells stayed in their rows",
        changes.missing_stayed,
    ),
    counted(
        "Every released row is one of at least <fewest> that are equal in <count> column{s|} (<columns:names>).",
        "Released rows were counted, a missing cell like a value.",
        changes.alike,
    ),
    counted(
        "Every released row is equal to another.",
        "<alone> row{s are| is} like no other in <count> column{s|} (<columns:names>)",
        changes.unlike,
    ),
    counted(
        "The cells of a released row are not those of one person.",
        "the cells of <count> column{s|} (<columns:names>) are published as the original has them,[[<gaps:text> where "
        "they are not missing,]] those of one row beside each other, and may be enough to find a person[[; which cells "
        "are missing is published in <missing> column{s|}]]",
        changes.unchanged,
    ),
    counted(
        "The cells of a released row are not those of one person.",
        "the wider values are published as the original has them, those of one row beside each other, and may be "
        "enough to find a person[[; which cells are missing is published in <missing> column{s|}]]",
        changes.unchanged_gaps,
    ),
    counted(
        "What a released row shows of <count> column{s|} (<columns:names>) is shown by the rows of at least <least> "
        "different persons, and of as many as any of these asked for; <cells> cell{s|} became missing for "
        "it.",
        "The finished rows were counted in persons, a missing cell like a value.",
        changes.blocked,
    ),
    counted(
        "The label '<label:name>' of <hidden> row{s|} is missing, and a decision tree grown on these rows as they are "
        "here, with their true labels, has no rule that lowers the entropy of the label by more than <bits:number> "
        "bits (<before> rule{s|} before, <after> after; <cells> other cell{s|} became missing for it).",
        "Where a rule told more, all such rows that a wider rule covers lost the cells that it asks about, with the "
        "fewest cells for each tree, and another tree was grown on what was left until none told more; a blocked "
        "answer counts as the share of records that would give it [JS07, sec. 2.2.1.3].",
        changes.blocked_rest,
    ),
    counted(
        "The label '<label:name>' cannot be told from the release.",
        "the rules of trees were given up: another model, other cells or knowledge from elsewhere may tell it, and the "
        "report measures what a strong one does",
        changes.hidden_label,
    ),
    counted(
        "The label '<label:name>' is hidden for everybody.",
        "<rows> row{s have| has} it as in the original, by the owner's decision",
        changes.shown_labels,
    ),
    counted(
        "The values of <count> column{s|} are given as labels of a hierarchy[[, or as one named other]]: "
        "<columns:names>.",
        "Every value became its label before anything else was done.",
        changes.widened,
    ),
    counted(
        "The <rows> row{s|} of <drawn> of <persons> person{s|}, drawn at random with the same chance for everybody, "
        "are in the release, and nobody else's.",
        "Persons were drawn without replacement; all rows of a person stay together.",
        changes.drawn_persons,
    ),
    counted(
        "Whatever is asked of each person, the share of those in the release of whom it is true differs from that of "
        "all by at most <error:number>, in 95 of 100 such samples.",
        "Hoeffding's inequality for draws without replacement [Serfling 1974], for one question.",
        changes.share_error,
    ),
    # ------------------------------------------------------------------------------------------- noise and geometry
    counted(
        "Every number of <columns> column{s|} was {given noise|multiplied by a factor of mean 1} of a <law:name> law "
        "with standard deviation <size:number>[[ times the column's own]], drawn afresh for each row, {independent of "
        "all else|with the correlations of the data}.",
        "Noise is a whole number of steps drawn by rejection [Canonne, Kamath, Steinke 2020] and every result lies on "
        "one grid of <grid:number> standard deviations, so that its last digits say nothing [Mironov 2012].",
        changes.noise,
    ),
    counted(
        "<rows> row{s|}, drawn at random, got extra noise.",
        "A share of the rows was drawn without replacement [OZ03, sec. 5.4].",
        changes.extra_rows,
    ),
    counted(
        "The extra noise protects every row.",
        "the share of rows that got it is <share:number>; all others got nothing of it",
        changes.extra_share,
    ),
    counted(
        "Every column is protected.",
        "[[the categories of <categories> column{s|}]][[ and ]][[which cells are missing in <missing> column{s|}]] are "
        "published as they are, and may be enough to find a person",
        changes.untouched,
    ),
    counted(
        "Every column has the mean of the original, and the variance of the original and the noise together.",
        "in <count> column{s|} (<columns:names>) numbers that the noise drove beyond declared bounds, or beyond the "
        "ends of an order, were brought back to them: the mean of a column that leans on a bound moves, and some of "
        "its noise is lost",
        changes.bounds,
    ),
    counted(
        "The numbers of the <columns> column{s|} that were moved (<operations:text>) are hidden from a recipient.",
        _MOVED,
        changes.moved,
    ),
    counted(
        "A model of '<column:name>' that is learned from this table predicts it in its own units.",
        "'<same:name>' is a number and was moved by the key like every other; only the owner of the key can tell what "
        "a prediction means",
        changes.moved_target,
    ),
    counted(
        "Every principal component of every record got noise of a Laplace law of scale <scale:number> times the range "
        "of that component in the record's group, drawn afresh and independent of all else.",
        "Noise is a whole number of steps drawn by rejection [Canonne, Kamath, Steinke 2020] on a grid of "
        "<grid:number> standard deviations; ranges are measured on that grid [BCG10, alg. 2; errata BCG10.1].",
        bounds.component_noise,
    ),
    counted(
        "What is asked about {one principal component of a record|a whole record, or about one of its columns,} and "
        "had probability <rho:number> looks no more probable than <after:number> after the release; and what had "
        "<from_high:number> no less probable than <to_low:number>.",
        "Theorem 1 [BCG10]: the odds change by a factor of at most e^(<components>/<scale:number>), upward and "
        "downward.",
        bounds.posterior,
    ),
    counted(
        "What is asked about {one principal component of a record|a whole record, or about one of its columns,} stays "
        "uncertain.",
        "it may depend on <count> component{s together|}, and so much noise lets odds change by up to "
        "e^(<components>/<scale:number>): from <rho:number> to <after:number> (errata BCG10.2); take more noise, or "
        "the guarantee of the record",
        bounds.posterior,
    ),
    counted(
        "The bound for one component is a bound for one column.",
        "a column is a mixture of all <components> components, so only the bound for a whole record covers it",
        bounds.component_count,
    ),
    # ------------------------------------------------------------------------------------------------ randomized cells
    counted(
        "Each value of '<column:name>' was randomized by itself: whatever is released, the odds of anything about the "
        f"true value {_RANDOMIZED}",
        f"{_EGS}it follows from the law and the domain, whose digest is <digest:text>.",
        bounds.randomized,
    ),
    counted(
        "For a whole row of <columns> column{s|}, the odds of anything about the person's values "
        f"{_RANDOMIZED}[[<gaps:text> Which cells are missing is told on top of it.]]",
        "Cells were randomized independently: the factors of a row's columns multiply and their epsilons add up.",
        bounds.randomized,
    ),
    counted(
        "The guarantees of the randomized columns hold for everybody.",
        "the domains of <count> column{s|} (<columns:names>) were read off the data and are published: they tell the "
        "extremes, and who alone has a value that nobody else has",
        bounds.observed,
    ),
    counted(
        "There is a bound on what [[a released value of '<column:name>' tells about the true one]][[a whole released "
        "row tells about its person]].",
        "<why:text>",
        bounds.unbounded,
    ),
    # --------------------------------------------------------------------------------------------------------- baskets
    counted(
        "To somebody who knows all other items of a basket, seeing it changes the odds that one more item was in it by "
        "a factor of at most <factor:number>.",
        f"{_ITEM}{_USUAL}",
        bounds.flipped,
    ),
    counted(
        "Over all baskets of one person, at most <most>, the odds that an item was in all of them rather than in none "
        "change by a factor of at most <factor:number>.",
        f"{_ITEM}{_USUAL} The factors of several baskets multiply.",
        bounds.flipped,
    ),
    counted(
        "A reader cannot learn what is in a basket as a whole.",
        "the factors of its items multiply, and there are <items> item{s|}; supports that can be estimated from all "
        "baskets tell more besides",
        bounds.item_count,
    ),
    counted(
        "A reader cannot learn which items there are.",
        "what comes into baskets is drawn from the <items> item{s|} that the baskets held, also those that a single "
        "one did",
        bounds.item_count,
    ),
    counted(
        "To somebody who knows the size of a basket, seeing it changes the odds of whatever may be said of its items "
        "by a factor of at most <factor:number>.",
        "No two baskets of one size become any basket with chances further apart [Evfimievski, Gehrke, Srikant 2003]; "
        f"the operator is <operator:text>{_USUAL}",
        bounds.whole_baskets,
    ),
    counted(
        "Over all baskets of one person, at most <most>, odds change by a factor of at most <factor:number>.",
        "The factors of several baskets multiply.",
        bounds.whole_baskets,
    ),
    counted(
        "Nothing that may be said of a basket becomes nearly certain to somebody who sees it.",
        "odds can change by a factor of e^<exponent:number>, the amplification [Evfimievski, Gehrke, Srikant 2003]",
        bounds.odds_exponent,
    ),
    counted(
        "Nothing that may be said of a person's baskets together becomes nearly certain.",
        "persons have up to <most>, and the factors of their baskets multiply",
        bounds.person_baskets,
    ),
    counted(
        "The sizes of baskets are hidden.",
        "[[randomized baskets are as large as true ones]][[<beside:text>the true size stands beside each of them]]",
        bounds.sizes,
    ),
    counted(
        "None of the rules that the owner named, <rules> in all, {surely |}holds in the released baskets, at a support "
        "of <support:number> and a confidence of <confidence:number>.",
        "They were counted in the released baskets, after <removed> entr{ies|y} had been taken out and <added> "
        "entr{ies|y} put in.",
        bounds.no_rule_after,
    ),
    counted(
        "None of the rules that the owner named, <rules> in all, surely holds in the released baskets, at a support of "
        "<support:number> and a confidence of <confidence:number>.",
        "The lowest support or the lowest confidence that unknown entries leave possible was counted for each: it is "
        "below the threshold by <margin:number> % of it or more.",
        bounds.no_rule,
    ),
    counted(
        "The people behind the baskets are protected.",
        "the <baskets> basket{s leave| leaves} as they are, but for <entries> entr{ies|y}: whoever knows some items of "
        "one may find it",
        bounds.as_they_are,
    ),
    # --------------------------------------------------------------------------------------------------------- streams
    counted(
        "Every record that stands behind the rows joined a group that, with it, was at least as large as its own "
        "privacy level, <level> or more, when it came; until there was one it waited and was not published.",
        _JOINED,
        flows.joined,
    ),
    counted(
        "Every record that stands behind the rows joined a group that, with it, was of at least as many different "
        "persons as its own privacy level, <level> or more, when it came; until there was one it waited and was "
        "not published.",
        "Of a person at most <most> record{s are| is} taken in, the others are kept out, and a group needs as many "
        "times as many records as persons; the first records were condensed together [AY05, sec. 2] and later ones "
        "join the closest group that is large enough [AY05, sec. 3]; a group that was split counts as the model has "
        "it.",
        flows.joined,
    ),
    counted(
        "From one epoch to the next, the rows of a family of groups change only where at least <fresh> records are new "
        "behind them; all other rows are repeated unchanged. In epoch <epoch>, <changed> famil{ies|y} changed and "
        "<repeated> {was|were} repeated.",
        "A family's new state leaves only with as many fresh records as the highest privacy level among them and the "
        "family, and never fewer than k; the ledger of epochs is among the facts.",
        flows.epochs,
    ),
    counted(
        "Every released row was drawn at random from the mean and covariance of a group; no row was copied from an "
        "original record, and no original record was kept to draw from.",
        "Uniform along eigenvectors of each group's covariance [AY05, eq. 2.1]; joining and splitting need statistics "
        "alone.",
        groups.drawn_rows,
    ),
    counted(
        "<drawn> of the <rows> released rows were drawn at random from the mean and covariance of a group; none of "
        "these was copied from an original record, and no original record was kept to draw from.",
        "Uniform along eigenvectors of each group's covariance [AY05, eq. 2.1]; joining and splitting need statistics "
        "alone.",
        groups.drawn_rows,
    ),
    counted(
        "<outside> record{s that came were| that came was} never taken into the stream, so no released row rests on "
        "{it|them}.",
        "Rows to measure by are chosen by a keyed digest of their place in the source, before anything of them is "
        "counted; only records that are taken in join groups.",
        flows.stream_hidden,
    ),
    uncountable(
        "The original rows that were kept to measure releases by have been deleted from the owner's state.",
        "They were removed in one step, which was on disk before this epoch was written.",
        "the owner's state is no part of a release",
    ),
    counted(
        "The owner keeps no original record.",
        "<rows> row{s lie| lies} encrypted in the owner's state to measure releases by: <inside> of those taken in and "
        "<outside> of those who were not",
        flows.kept_rows,
    ),
    counted(
        "An arrival stays hidden from whoever brought the other arrivals.",
        "the difference of two epochs is that of the fresh records of a family, at least <fresh> in this ledger: "
        "whoever contributed all of them but one works out the last one",
        flows.fresh,
    ),
    counted(
        "Each group stands for as many people as it has rows.",
        "<pseudo> of <groups> group{s were| was} cut out of the statistics of larger ones by a model, so nobody knows "
        "how many people are behind one of them",
        flows.pseudo_groups,
    ),
    counted(
        "Each group is as large as the highest privacy level among the records that it stems from.",
        "<groups> group{s are| is} smaller: the paper's test splits by the average level, and holds that a group cut "
        "out of statistics keeps the privacy of the whole [AY05, sec. 3]",
        flows.short_groups,
    ),
    uncountable(
        "No released row is an original record.",
        "<same> row{s come| comes} from groups whose rows vary in no number and at most in one other column: these may "
        "be the records as they are",
        "groups of a stream are a model's; the sentence says that rows may be records",
    ),
    # ------------------------------------------------------------------------------------------------------ joint runs
    counted(
        "The table was made by <owners> owners together (<parties:text>), each with {some of the rows|some of the "
        "columns of all rows}. Nobody but its owner saw anything of a cell in the clear, save what the <lines> "
        "line{s|} of the ledger among the facts {says|say}; all else went as shares or under masks.",
        "Every party wrote down every step, all alike; an opening that the protocol does not declare stops the run "
        "before it is made, and the finished list was compared once more [BCG10, alg. 2].",
        flows.ledger,
    ),
    uncountable(
        "A share says nothing of the number that it is a share of.",
        "<engine:text>. The engine is a library that was not audited by us.",
        "what the engine hides is no matter of the tables",
    ),
    uncountable(
        "Sums over all owners (<sums:text>) show the part of no single owner to another, save in a group where only "
        "one other has rows: what is left of the sum is then its part.",
        "Every two owners add and subtract a mask of their own modulo 2^64; a sum takes them all off.",
        "what went between the owners is no part of the release",
    ),
    uncountable(
        "Each of <parties:text> added a whole noise of that law, so that the other's is left when it takes its own "
        "off: against either of them, too, odds about a whole record change by a factor of at most "
        "e^(<components>/<scale:number>). The noise has twice the variance of one.",
        "Theorem 1 [BCG10] for all components at once; more noise that is independent takes nothing from it.",
        "it takes processes of their own, which have tests of their own",
    ),
    counted(
        "A record that alone has a category, or a missing cell, in its group stays hidden from the other owners.",
        "the covariances of a group are exact, and the products of what one record alone has with every column are the "
        "cells of that record: <times> times all owners saw its cells in the columns of all of them without any noise, "
        "and each finds by its own columns whose they are; pool rare categories and take larger groups",
        flows.bare,
    ),
    counted(
        "Every row stays hidden from the other owners.",
        "<times> times an owner had all rows of a group but one or two, or all cells of a column there that are not "
        "missing but one or two, and this was allowed: it takes its own off the exact sums of the group and has the "
        "others' without any noise",
        flows.bare,
    ),
    counted(
        "The owners cannot tell whose row is whose.",
        "rows are matched by a key and shuffled by randomness that all owners have: each knows which released row "
        "belongs to which of its keys, and saw the cluster of every row in each of <rounds> round{s|}",
        flows.rounds,
    ),
    counted(
        "The rounds of clustering tell an owner nothing of single rows.",
        "centres and sizes were opened in each of <rounds> round{s|}: from one to the next a centre moves by the rows "
        'that changed cluster, and differences of its sums give them away; keep centres hidden (centres = "last")',
        flows.rounds,
    ),
    counted(
        "The secure sums hide the two owners from each other.",
        "'<first:name>' and '<last:name>' each take their own part off a sum and have the other's exactly (errata "
        "BCG10.6): for every group its number of rows, their mean and their covariance",
        flows.two_owners,
    ),
    counted(
        "The sum that was opened hides the two owners from each other.",
        "'<first:name>' and '<last:name>' each take their own columns off it (errata BCG10.6) and have the other's "
        "part of every component of every row alone, with the noise that the other drew",
        flows.two_owners,
    ),
    counted(
        "The bounds hold against '<first:name>' and '<last:name>'.",
        "the noise is the difference R1 - R2 of two halves that are never negative, and '<first_again:name>' drew R1: "
        "it takes R1 off and has D - R2 with R2 >= 0, which proves that a component D is no less; '<last_again:name>' "
        "has D + R1 in the same way. What is left is noise to one side, the ratio of likelihoods has no bound, and "
        'theorem 1 does not apply to them; have each draw a whole noise (noise = "each") to mend it',
        flows.two_owners,
    ),
    counted(
        "The bound for one component holds against another owner.",
        "an owner knows its own columns, and what is left when it takes them off depends in all <components> "
        "components on the columns of the others alone: components then speak of each other, and only the bound for a "
        "whole record covers that",
        bounds.component_count,
    ),
)
"""Every sentence that a release may say, first match counts."""

ASSUMPTIONS = tuple(
    phrase(text)
    for text in (
        "one row is one person",
        "one row of the stream is one person",
        "the person column tells who each row is about",
        "the source of randomness is not known to the attacker",
        "alike means on the same side of every cut of the tree",
        "a moved number may still come to lie on an original one, at most where that is dense: see the report",
        "a drawn number may still come to lie on an original one, above all where a column has few: see the report",
        "a drawn row may still come to lie close to, or by chance on, an original record: see the report",
        "a drawn row may still come to lie close to, or by chance on, an original record",
        "nothing; the released table shows it",
        "nothing; whoever knows the rules can count them",
        "nothing but that the original is right",
        "nothing but that the program ran as it is written",
        "nothing but that the original's weights are right; the released table shows the sum",
        "the columns were given their roles correctly",
        "the classes in the table are right",
        "the owner's file lists wider labels; the released table shows the others",
        "the spreadsheet takes what begins with an apostrophe for text",
        "whoever reads the release knows of these rules alone",
        "numbers off a column's step, or beyond bounds that it keeps, are brought back afterwards",
        "the domain does not depend on the data",
        "the domains do not depend on the data",
        "what the person's other columns tell of this one comes on top, see the whole row",
        "the table alone is seen: what a report tells was measured on the true values and comes on top",
        "one row is one person, who is in one release only",
        "columns that are passed through as public do not count",
        "which items there are was known before",
        "all epochs were published from one state, which was not set back to an earlier copy",
        "no backup, older copy, log or trace on a disk still holds them",
        "the probability before the release already takes in all that the record's group tells: which group it is, its "
        "mean and covariance, where its components begin and end from the lowest record to the highest, and its counts",
        "records are independent of each other given these",
        "there is one release",
        "the components of a record are independent of each other, not uncorrelated alone",
        "all parties follow the protocol and look at nothing but what it sends them (semi-honest)",
        "[[no two of ]]<parties:text>{ do not|} collude",
        "the engine does what its authors say",
        "no <others> owners pool what they know, which takes their parts off the sum",
        "masks that SHAKE-256 grows from a secret look random to whoever lacks it",
        "the odds before the release take in the statistics of the record's group and the columns that the owner "
        "itself has",
    )
)
"""What a claim may assume, each between semicolons."""
