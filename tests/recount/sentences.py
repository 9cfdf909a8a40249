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

_CHECKED = "The finished groups were checked record by record."
_DERIVED = (
    "[[<ruled:text> Derived columns are computed from others by a rule between columns.]][[<scaled:text> Weights were "
    "scaled after drawing.]]"
)
_EXCEPT = "[[Except for <made:text>, ]]"
_LEAVES = (
    f"{_EXCEPT}{{E|e}}very released value was drawn from a group of at least <leaf> {{records|persons}} with similar "
    "values in the preceding columns. Smallest group: <smallest>."
)
_LEAVES_BEHIND = (
    "<columns> column{s|} of <rows> rows were drawn one after another, each value from a group that is a leaf of a "
    "decision tree. Similar values are on the same side of every split. Every leaf was counted and is at least as "
    "large as the highest privacy level inside.[[ Every leaf lies within one partition of the "
    "table.]][[<by_person:text> No person supplies more than 2 in <of_leaf> of the values drawn from a leaf; others "
    "were left out.]][[ In {some "
    "or all partitions, in |}<regressed> numeric column{s|}, the drawn value is the residual of a regression on the "
    "preceding columns over all records[[ of the partition]].]][[ {In some or all partitions, |}<twice> column{s were| "
    "was} drawn twice: first to draw the others, then again from all of them. Only the second draw is released.]][[ A "
    "number that at least <frequency> {records|persons} share may then be replaced at random by a neighbouring number "
    "that as many share. At most a fiftieth of the column's numbers[[ of the partition]] lie between the two.]]"
    f"{_DERIVED}"
)
_CHAIN_NUMBERS = (
    "<moved> drawn number{s were| was} replaced, because rare[[ in the partition]], from a column with many rare "
    "numbers, or drawn by a regression. Each became the nearest number of its leaf that at least <level> "
    "{records|persons} "
    "have, or moved at random towards another value of the leaf. <kept> other number{s are| is} unchanged, as at least "
    "<same> {records|persons} have them[[<coded:text> after top and bottom coding]]. A moved number may still equal an "
    "original one, at most where original numbers are dense; see the report."
)
_NO_RARE = "The release contains no category that fewer than <k> persons in the {table|stream} have."
_RARE_BEHIND = (
    "Categories of <columns> column{s|} were counted in persons before {release|any random draw}. A rare category "
    "became {a category named other|a wider category of the hierarchy} with at least this frequency, an adjacent "
    "ordinal category, or the category of another record. Missing cells of fewer than <lacking> persons were replaced "
    "in the same way."
)
_LIMIT = (
    "In each column separately, no released number or date lies beyond a cut-off computed from at least <k> persons."
)
_TAILS_RANK = (
    "Each cut-off lies at random between the values of at least <between> persons, beyond whom at least <beyond> "
    "others lie. A column that few persons fill takes a cut-off between its middle values. Each person counts once."
)
_TAILS_COMMON = (
    " In columns of mostly common values, a value that fewer than <rare> persons have became a neighbouring common "
    "value."
)
_TAILS_SMOOTH = (
    "[[<smooth:text> In columns with a long tail, values beyond a cut-off were drawn from an exponential tail fitted "
    "to ranks further inside.]]"
)
_COUNTS = "{Each group keeps the exact|Rows are drawn with the} counts of {its categories|categories} and missing cells"
_DRAWN_BEHIND = (
    f"Rows are drawn at random, <law:text> of each group's covariance [AY05, eq. 2.1].{_DERIVED} A drawn row may still "
    "lie close to an original record, or equal it by chance; see the report."
)
_STREAM_BEHIND = (
    "Rows are drawn at random, uniform along eigenvectors of each group's covariance [AY05, eq. 2.1]. Joining and "
    "splitting groups need statistics alone. A drawn row may still lie close to an original record, or equal it by "
    "chance."
)
_BOUND = (
    "local differential privacy (epsilon <epsilon:number>): the odds of any statement about it change by at most a "
    "factor of <factor:number>."
)
_BELIEFS = (
    "A statement with prior probability 1 % has at most <one:number> % after release. One with 10 % has at most "
    "<ten:number> % and at least <least:number> %."
)
_TABLE_ALONE = "The bound covers the table alone; a report is measured on true values and reveals more."
_ITEM = (
    "Each item stays with probability <keep:number>, and each other item is inserted with probability <insert:number>, "
    "all independently."
)
_DEFAULT = (
    "[[ This operator is the default if {it inserts at most|flipping every item would insert more than} 10 entries for "
    "each true one.]]"
)
_MOVED = (
    "It is reversible by anyone who knows <known> independent row{s|} and the position of each in the release, as far "
    "as rounding allows. Fewer rows, public figures, or the digits and distribution of the numbers may suffice.[[ The "
    "<rows> row{s|} with additional noise do not count among these, and keep that noise.]]"
)
_WAITED = (
    " A record waits unpublished until there is such a group. The size of a group that was split is that of the model."
)
_CONDENSED = (
    f"Condensation forms groups at least as large as the highest privacy level inside [AY05, sec. 2]. {_CHECKED}"
)
_STEPS = "Noise is an integer number of steps, drawn by rejection sampling [Canonne, Kamath, Steinke 2020]."
_CORRECTED = (
    "Numbers off a column's step are then rounded to it, and numbers beyond bounds that a column keeps are moved back."
)
_PARTITIONED = (
    "The table was partitioned along principal axes of a sample before any group was made. Partitions with fewer "
    "people than the highest privacy level were merged. Each partition was grouped separately."
)
_PARTITIONED_TREES = (
    "The table was partitioned by a sample before any tree was grown. Partitions with fewer people than a leaf or the "
    "highest privacy level requires were merged. Rows were drawn from each partition separately, in proportion to its "
    "records. A group is a leaf of a tree."
)
_NO_OTHER_PARTITION = (
    "No group contains records of two of the <parts> partitions of the table. Smallest partition: <smallest> "
    "record{s|}."
)
_OF_ANY = "{one principal component of a record|a whole record or one of its columns}"

SENTENCES = (
    *CAUTIONS,
    # ------------------------------------------------------------------------------------------------- any release
    counted(
        "{To readers other than the data owners, the|The} order of the rows reveals nothing about the order or the "
        "groups of the original records.",
        "The order of <rows> row{s|} was drawn uniformly at random after the rows were computed.",
        rows.order,
    ),
    counted(
        "Within runs of at least <rows> consecutive rows, order reveals nothing about the original order.",
        "The order of each run was drawn uniformly at random.",
        rows.runs,
    ),
    counted(
        "The order of the rows reveals nothing about the order of the original records.",
        "The file was processed in one pass, and every row stays in its run of at least <rows> rows. Anyone who knows "
        "the original order knows roughly where a person's row is.",
        rows.runs,
    ),
    counted(
        "The release omits [[<identifier_count> direct identifier{s|}]]{, | and |}[[<empty_count> empty column{s|}]]{ "
        "and |}[[<level_count> column{s|} of privacy levels]].",
        "[[<identifier_again> direct identifier{s|}: <identifiers:names>. ]][[<empty_again> empty column{s|}: "
        "<empty:names>. ]][[<level_again> column{s|} of privacy levels: <levels:names>. ]]They were dropped before any "
        "other step[[, privacy levels after grouping]].",
        rows.dropped,
    ),
    counted(
        "Every released row satisfies <count> rule{s|} between columns.",
        "Rules: <rules:names>. Later columns were drawn as differences from earlier ones, and derived columns were "
        "computed from the others. All rows were checked.",
        rows.rules,
    ),
    counted(
        "Every pair of values tied by a rule is shared by as many records as the privacy level requires.",
        "A rule that the data owner declared keeps such pairs together, including rare ones.",
        rows.rare_pairs,
    ),
    counted(
        "The release gives the dates of <count> column{s|} to the month, never to the day.",
        "Columns: <columns:names>. Every date became the first day of its month before any other step.",
        rows.months,
    ),
    counted(
        "The released weights '<column:name>' sum to the original total[[<coded:text> after top and bottom coding]]: "
        "<total:number>, within <step:number>.",
        "After drawing, all weights were multiplied by one factor and rounded to their step.",
        rows.weights,
    ),
    counted(
        "A person's weight '<column:name>' stays unknown to anyone who knows all other weights.",
        "The total is exact. Subtracting all other weights gives that person's weight.",
        rows.weight_column,
    ),
    counted(
        "In the file, <cells> cell{s|} and <names> column name{s|} that a spreadsheet would read as formulas have a "
        "leading apostrophe.",
        "These texts begin with =, +, -, @, tab or return and are not numbers. Their values are the texts without the "
        "apostrophe.",
        rows.spreadsheet,
    ),
    counted(
        "The table is safe to open in a spreadsheet.",
        "In the file, <cells> cell{s|} and <names> column name{s|} begin with =, +, -, @, tab or return, which a "
        "spreadsheet may run as formulas. Open the file as text.",
        rows.spreadsheet,
    ),
    counted(
        "The release meets the policy '<policy:name>'.",
        "The data owner measured this and found {that it does not|the result inconclusive}. The table is released by "
        "the owner's decision.",
        rows.despite_policy,
    ),
    counted(
        "This table may be released.",
        "It is a dry run made with a seed. Anyone who knows the seed can repeat every random draw.",
        rows.dry_run,
    ),
    counted(
        "Attacks were run against this table before its release.",
        "The data owner asked for no report, so no disclosure risk was measured.",
        rows.unmeasured,
    ),
    # --------------------------------------------------------------------------------------------- rare categories
    counted(_NO_RARE, _RARE_BEHIND, rows.hidden),
    counted(_NO_RARE, "Rare categories were left as in the {table|stream}, as the data owner decided.", rows.shown),
    counted(
        "The release omits <count> column{s|} in which no value is shared by as many persons as the highest privacy "
        "level requires.",
        "Columns: <columns:names>. They were dropped before {release|any random draw}.",
        rows.rare_columns,
    ),
    counted(
        "Every category in a group is shared by several of its members.",
        f"{_COUNTS}[[ of each group]]. A category that is frequent enough in the table may occur once in a group.",
        rows.equal_counts,
    ),
    counted(
        "Rare categories are hidden.",
        f"{_COUNTS}[[ of each group]]. A category of one person {{may appear|appears once}} in the release.",
        rows.equal_counts,
    ),
    counted(
        "Rare categories are hidden.",
        f"{_COUNTS}, and frequencies over all data owners were not counted. A category of one person appears once; let "
        "the owners declare only frequent or wider categories.",
        rows.equal_counts,
    ),
    # ---------------------------------------------------------------------------------------------- ends of columns
    counted(
        _LIMIT,
        f"Top and bottom coding was applied to <columns> column{{s|}} of numbers and dates. {_TAILS_RANK}"
        f"[[{_TAILS_COMMON}]]{_TAILS_SMOOTH} Columns derived by a rule follow from coded ones.",
        tails.coded,
    ),
    counted(_LIMIT, "The tails of columns were left unchanged, as the data owner decided.", tails.left),
    counted(
        "In each column separately, numbers and dates beyond a cut-off computed from at least <k> persons were "
        "replaced by it before noise and, without declared bounds, again after noise.",
        f"The data owners applied top and bottom coding to <columns> column{{s|}}. {_TAILS_RANK}[[{_TAILS_COMMON}]]",
        tails.coded_before_noise,
    ),
    # ------------------------------------------------------------------------------------------ groups and their rows
    counted(
        "Each of the <records> original records was {condensed with others|put} into a group at least as large as its "
        "privacy level. Smallest group: <smallest>.",
        _CONDENSED,
        groups.groups,
    ),
    counted(
        "<records> original record{s were| was} put into groups at least as large as their privacy levels, <alone> "
        "record{s|} of level 1 into groups of one.",
        _CONDENSED,
        groups.groups,
    ),
    counted(
        "The <records> record{s|} of <persons> person{s|} were condensed into groups with at least as many different "
        "persons as each record's privacy level. Smallest group: <smallest> person{s|}.",
        "No group contains two records of one person. The first records of all persons are grouped separately from the "
        f"second ones, and so on. Further records of a person join groups without that person. {_CHECKED}",
        groups.groups,
    ),
    counted(
        "Each of the <records> original records received noise scaled by the ranges of a group at least as large as "
        "its privacy level. Smallest group: <smallest>.",
        "Small clusters are filled from larger ones or dissolved [BCG10, alg. 2, lines 4 to 11; errata BCG10.4]. "
        f"{_CHECKED}",
        groups.groups,
    ),
    counted(
        "A record is indistinguishable within its group of at least <smallest>.",
        "Every released row descends from one record; a group only scales its noise. The report measures how many "
        "records are linked to their own rows.",
        groups.noised_groups,
    ),
    uncountable(
        "The noise changes every record.",
        "<alike> record{s are in groups that vary| is in a group that varies} in no number and at most one other "
        "column. Noise scaled by ranges is zero there, and such records are published unchanged.",
        "group membership is never written",
    ),
    counted(
        "The noise is always wide enough to hide a record.",
        "<groups> group{s have| has} three records or fewer, and noise scaled by their ranges hides little.",
        groups.tiny_groups,
    ),
    counted(
        "No one can tell in which [[of the <groups> groups]][[group]] a known person is.",
        "A group hides which of its members a person is, not where the group lies. Anyone who knows a person's values "
        "may find the group and its typical values.",
        groups.group_count,
    ),
    counted(
        "No record can be recovered from the statistics of its group.",
        "<groups> group{s have| has} three {records|rows} or fewer. The mean and covariance of two records determine "
        "both exactly.",
        groups.tiny_groups,
    ),
    counted(
        "Every record is protected.",
        "<alone> record{s of level 1 form groups| of level 1 forms a group} of one and {is|are} published unchanged.",
        groups.alone,
    ),
    counted(
        f"{_EXCEPT}{{E|e}}very released row was drawn from the mean and covariance of a group of at least <smallest> "
        "records; no record was copied.",
        _DRAWN_BEHIND,
        groups.drawn_rows,
    ),
    counted(
        f"{_EXCEPT}<drawn> of <rows> released rows were drawn from the mean and covariance of groups whose records "
        "differ; none of these was copied.",
        _DRAWN_BEHIND,
        groups.drawn_rows,
    ),
    counted(
        f"{_EXCEPT}{{E|e}}very released row of a group whose records differ was drawn from its mean and covariance; "
        "none of these was copied.",
        _DRAWN_BEHIND,
        groups.drawn_rows,
    ),
    counted(
        "No released row is an original record.",
        "{The rows drawn for |}<same> {row|record}{s|} {come|comes} from groups that vary in no number and at most one "
        "other column, such as single or identical records. Rows of these groups are the records themselves.",
        groups.same_records,
    ),
    counted(
        "No number that fewer than <k> persons in the table have was copied.",
        "Numbers and dates were drawn from the spread of a group, or derived from drawn ones by rules. If all records "
        "of a group share one number, that number is drawn; each group has at least <level>. A drawn number may still "
        "equal an original one by chance, above all in a column with few values; see the report.",
        groups.copied,
    ),
    counted(
        "In <columns> numeric column{s|}, released numbers are computed from means over at least <k> {persons|records} "
        "and from numbers that as many share.",
        "Statistics are computed on normal scores, which are ranks mapped to a normal distribution. Drawn scores are "
        "mapped back by linear interpolation between these numbers, extended beyond the outermost.",
        groups.scores,
    ),
    counted(
        "Every released row satisfies the condition '<rule:name>', which the data owner chose.",
        "Rows that do not satisfy it were discarded before their other columns were drawn. All rows were checked.",
        rows.where,
    ),
    counted(
        "More rows than original records disclose no more than equally many rows.",
        "<rows> rows were drawn from the same statistics of <records> record{s|}. The more rows there are, the more "
        "precisely a reader can estimate these statistics.",
        rows.chosen_rows,
    ),
    counted(
        "A reader cannot be certain of [[the class label]][[the value of '<column:name>']] of the people behind a row.",
        "Groups never mix values of '<strata:name>'. Anyone who finds a person's group knows <what:text> with "
        "certainty (l = 1).",
        groups.strata,
    ),
    counted(
        "Every released row has the class '<column:name>' of all records in its group; no group mixes the <classes> "
        "classes.",
        "Each class was condensed separately [KCG12, fig. 5]. The finished groups were checked one by one.",
        groups.classes,
    ),
    counted(
        "The group size, <size>, is the approximate greatest common divisor of the class sizes.",
        "Class sizes were counted in units of <unit> record{s|}. The group size is the largest number of units that "
        "divides the units of every class [KCG12, fig. 5, theorem 1]. A group may be larger if a record in it has a "
        "higher privacy level.",
        groups.chosen_size,
    ),
    counted(
        "No released row was made from a record whose class '<column:name>' is missing.",
        "[[Such records, of fewer than <fewer> persons, were]][[<rows> such record{s were| was}]] removed before any "
        "other step.",
        groups.unlabelled,
    ),
    counted(
        "A reader cannot be certain of the class '<column:name>' of the people behind a row.",
        "No group mixes classes. Anyone who finds a person's group knows the class with certainty (l = 1).",
        groups.classes,
    ),
    uncountable(_NO_OTHER_PARTITION, _PARTITIONED, "the partition of a record is never written"),
    uncountable(
        "The table was processed as a single partition.", _PARTITIONED, "the partition of a record is never written"
    ),
    uncountable(
        "The table was processed as a single partition.",
        _PARTITIONED_TREES,
        "the partition of a record is never written",
    ),
    counted(_NO_OTHER_PARTITION, _PARTITIONED_TREES, groups.partitions),
    # ------------------------------------------------------------------------------------------------------- persons
    counted(
        "No released row was drawn from a record <which:text>.",
        "{A group cannot take a record if it would contain a person twice or be smaller than the record's privacy "
        "level.|"
        "Such records are left out of the groups.} Rows are drawn from the finished groups alone.",
        groups.left_out,
    ),
    counted(
        "Several records of a person disclose no more than one of them.",
        "There are <records> records of <persons> person{s|}, and records of one person {are in different groups|may "
        "be in different leaves}. Anyone who knows several of them may find several {groups and their typical "
        "values|leaves and their values}.",
        groups.several_records,
    ),
    counted(
        "The rows of each of <persons> released person{s|} were drawn together from the records of at least <smallest> "
        "person{s|} with equally many records.",
        "Persons with equally many records were condensed by all of them at once. The first records of a group's "
        "members give the first rows, the second ones the second, and so on. Records left out of the groups do not "
        "count.",
        groups.released_persons,
    ),
    counted(
        "The numbers in '<column:name>' reveal nothing about the values of the person column.",
        "They were assigned at random after the rows were drawn.",
        groups.dealt_numbers,
    ),
    counted(
        "No released person has two values in <count> column{s that are| that is} constant for each original person.",
        "Columns: <columns:names>. Their values were drawn once for each released person.",
        groups.constant_in_persons,
    ),
    counted(
        "The linked rows of a person disclose no more than single rows.",
        "A released person has up to <most> row{s|}. Anyone who knows several records of a person can compare them all "
        "at once.",
        groups.most_rows,
    ),
    # --------------------------------------------------------------------------------------------------------- chain
    counted(_LEAVES, _LEAVES_BEHIND, groups.leaves),
    counted(
        "No number that fewer than <k> {records|persons} in the table have was copied.",
        _CHAIN_NUMBERS,
        groups.copied,
    ),
    counted(
        "A combination of values in a released row is shared by <k> people.",
        "Each value comes from a leaf of its own, so a row combines values of many people. A combination may be that "
        "of one person or of no one.",
        groups.combination,
    ),
    counted(
        "The values of a leaf's members stay unknown to anyone who finds the leaf.",
        "A leaf shows how values are distributed among its members. Of <leaves> leaves, <same> {contains|contain} a "
        "single value.",
        groups.single_valued,
    ),
    # --------------------------------------------------------------------------------------------------- modifications
    counted(
        "<count> column{s have| has} the original values[[ after generalization]], each with its original frequency.",
        "Columns: <columns:names>. Cells were exchanged between rows and none was altered. Every row received the cell "
        "of one row, and every cell was used once.",
        changes.exchanged,
    ),
    counted(
        "Cells were swapped in pairs of rows of different persons, at most <window:number> % of a column's ranks "
        "apart; <changed> of <cells> cells changed.",
        "Ranks were processed in order, with ties in random order. Each cell without a partner got one at random from "
        "the cells within the window [Moore 1996]. Cells that found no partner stayed.",
        changes.exchanged_cells,
    ),
    counted(
        "Cells were permuted at random within <leaves> lea{ves|f} of a tree that predicts '<target:name>'; <changed> "
        "of <cells> cells changed. Smallest leaf: <smallest> person{s|}.",
        "The order of the cells in each leaf was drawn uniformly at random [Estivill-Castro, Brankovic 1999].",
        changes.exchanged_cells,
    ),
    counted(
        "The positions of missing cells were swapped too.",
        "In <missing> column{s|}, missing cells stayed in their rows.",
        changes.missing_stayed,
    ),
    counted(
        "Every released row is in an equivalence class of at least <fewest> rows that agree in <count> column{s|}.",
        "Columns: <columns:names>. Released rows were counted, with a missing cell as a value of its own.",
        changes.alike,
    ),
    counted(
        "Every released row agrees with another one.",
        "<alone> row{s are| is} unique in <count> column{s|} (<columns:names>).",
        changes.unlike,
    ),
    counted(
        "The values of a released row come from different persons.",
        "The original values of <count> column{s|} (<columns:names>) stay together in their rows[[<gaps:text>, unless "
        "suppressed,]] and may be enough to identify a person.[[ The positions of missing cells are published in "
        "<missing> column{s|}.]]",
        changes.unchanged,
    ),
    counted(
        "The values of a released row come from different persons.",
        "The generalized values stay together in their rows and may be enough to identify a person.[[ The positions of "
        "missing cells are published in <missing> column{s|}.]]",
        changes.unchanged_gaps,
    ),
    counted(
        "Each combination of values in <count> column{s|} is shared by at least <least> different persons; <cells> "
        "cell{s "
        "were| was} suppressed for this.",
        "Columns: <columns:names>. The finished rows were counted in persons, with a missing cell as a value of its "
        "own. Each combination has at least as many persons as the highest privacy level among them.",
        changes.blocked,
    ),
    counted(
        "The label '<label:name>' is missing in <hidden> row{s|}, and no rule of a decision tree grown on these lowers "
        "its entropy by more than <bits:number> bits.",
        "The last tree was grown on the released rows with their true labels. The first tree had <before> rule{s|} and "
        "the last one <after>; <cells> other cell{s were| was} suppressed. If a rule disclosed more, all such rows "
        "that a wider rule covers lost the cells that it tests, with the fewest cells for each tree. Trees were "
        "regrown until no rule disclosed more. A suppressed answer counts as the share of records that would give it "
        "[JS07, sec. 2.2.1.3].",
        changes.blocked_rest,
    ),
    counted(
        "The label '<label:name>' cannot be inferred from the release.",
        "Only rules of trees were suppressed. Another model, other cells or other knowledge may infer the label; the "
        "report measures what a strong model does.",
        changes.hidden_label,
    ),
    counted(
        "The label '<label:name>' is hidden in every row.",
        "<rows> row{s have| has} the original label, as the owner decided.",
        changes.shown_labels,
    ),
    counted(
        "The values of <count> column{s|} were generalized to labels of a hierarchy[[, or to a label named other]].",
        "Levels: <columns:names>. Every value was replaced by its label before any other step.",
        changes.widened,
    ),
    counted(
        "The release contains <rows> row{s|}, exactly those of a simple random sample of <drawn> of <persons> "
        "person{s|}.",
        "Persons were drawn without replacement, each with the same probability. All rows of a person stay together.",
        changes.drawn_persons,
    ),
    counted(
        "A proportion of persons in the release differs from that in the original by at most <error:number>, in 95 % "
        "of such samples.",
        "This is Hoeffding's inequality for draws without replacement [Serfling 1974], for one proportion.",
        changes.share_error,
    ),
    # ------------------------------------------------------------------------------------------- noise and geometry
    counted(
        "Every number in <columns> column{s|} was [[given <added:name> noise with]][[multiplied by a <factor:name> "
        "factor of mean 1 and]] standard deviation <size:number>[[ times the column's own]], drawn independently for "
        "each row{ "
        "and column|, with the correlations of the data}.",
        f"{_STEPS} Every result lies on one grid of <grid:number> standard deviations, so its last digits reveal "
        f"nothing [Mironov 2012]. {_CORRECTED}",
        changes.noise,
    ),
    counted(
        "<rows> row{s|}, drawn at random, received additional noise.",
        "A share of the rows was drawn without replacement [OZ03, sec. 5.4].",
        changes.extra_rows,
    ),
    counted(
        "The additional noise protects every row.",
        "Only a share of <share:number> of the rows received it.",
        changes.extra_share,
    ),
    counted(
        "Every column is protected.",
        "[[{T|t}he categories of <categories> column{s|}]][[ and ]][[{T|t}he positions of missing cells in <missing> "
        "column{s|}]] are published unchanged. They may be enough to identify a person.",
        changes.untouched,
    ),
    counted(
        "Every column keeps its mean, and its variance grows by that of the noise.",
        "In <count> column{s|} (<columns:names>), numbers beyond declared bounds, or beyond the ends of an order, were "
        "moved back to them. This shifts a mean near a bound and removes some of the noise.",
        changes.bounds,
    ),
    counted(
        "The transformation (<operations:text>) hides the numbers of <columns> column{s|} from a recipient.",
        _MOVED,
        changes.moved,
    ),
    counted(
        "A model of '<column:name>' trained on this table predicts it in its original units.",
        "The key transformed '<same:name>' like every other number. Only the owner of the key can convert predictions "
        "back.",
        changes.moved_target,
    ),
    counted(
        "Every principal component of every record received independent Laplace noise of scale <scale:number> times "
        "its range in the record's group.",
        f"{_STEPS} The grid has steps of <grid:number> standard deviations, and ranges are measured on it [BCG10, alg. "
        f"2; errata BCG10.1]. {_CORRECTED}",
        bounds.component_noise,
    ),
    counted(
        f"A statement about {_OF_ANY} with prior probability <rho:number> has posterior probability at most "
        "<after:number>; one with <from_high:number> has at least <to_low:number>.",
        "Theorem 1 [BCG10]: the odds change by a factor of at most e^(<components>/<scale:number>), upward and "
        "downward. The prior probability already includes what the record's group reveals: the group itself, its mean, "
        "covariance and counts, and the lowest and highest value of each component.[[ Components must be independent, "
        "which is more than uncorrelated.]]",
        bounds.posterior,
    ),
    counted(
        f"A statement about {_OF_ANY} stays uncertain.",
        "It may depend on <count> component{s together|}, and this noise lets odds change by a factor of up to "
        "e^(<components>/<scale:number>): from <rho:number> to <after:number> (errata BCG10.2). Take more noise, or "
        "the guarantee of the record.",
        bounds.posterior,
    ),
    counted(
        "The bound for one component is a bound for one column.",
        "A column mixes all <components> components, so only the bound for a whole record covers it.",
        bounds.component_count,
    ),
    # ------------------------------------------------------------------------------------------------ randomized cells
    counted(
        f"Each value of '<column:name>' has {_BOUND}",
        f"{_BELIEFS} No property of one value changes its odds by more than the amplification [Evfimievski, Gehrke, "
        "Srikant 2003]. The amplification follows from the noise distribution and the domain, whose digest is "
        "<digest:text>. The person's other columns may reveal more about this one; see the bound for the whole row. "
        f"{_TABLE_ALONE}",
        bounds.randomized,
    ),
    counted(
        f"[[A]][[<gaps:text>Apart from missing cells, a]] row of <columns> column{{s|}} has {_BOUND}",
        f"{_BELIEFS} Cells were randomized independently, so the factors of a row's columns multiply and their "
        "epsilons add up. [[The positions of missing cells are published. ]]Columns passed through as public are not "
        f"covered. {_TABLE_ALONE}",
        bounds.randomized,
    ),
    counted(
        "The bounds of the randomized columns hold for everyone.",
        "The domains of <count> column{s|} (<columns:names>) were read from the data and are published. They reveal "
        "extremes, and values that one person alone has.",
        bounds.observed,
    ),
    counted(
        "What [[a released value of '<column:name>' reveals about the true value]][[a whole released row reveals about "
        "its person]] is bounded.",
        "<why:text>",
        bounds.unbounded,
    ),
    # ---------------------------------------------------------------------------------------------------------
    # transactions
    counted(
        "To anyone who knows all other items of a transaction, its release changes the odds of one more item by at "
        "most a "
        "factor of <factor:number>.",
        f"{_ITEM}{_DEFAULT}",
        bounds.flipped,
    ),
    counted(
        "Over all transactions of one person, at most <most>, the odds that all rather than none contain an item "
        "change by "
        "at most a factor of <factor:number>.",
        f"{_ITEM}{_DEFAULT} The factors of several transactions multiply.",
        bounds.flipped,
    ),
    counted(
        "A reader cannot learn the content of a whole transaction.",
        "The factors of its items multiply, and there are <items> item{s|}. Supports estimated from all transactions "
        "reveal "
        "more.",
        bounds.item_count,
    ),
    counted(
        "A reader cannot learn which items occur.",
        "Inserted items are drawn from the <items> item{s|} of the original transactions, including items of a single "
        "transaction.",
        bounds.item_count,
    ),
    counted(
        "To anyone who knows the size of a transaction, its release changes the odds of any statement about its items "
        "by at "
        "most a factor of <factor:number>.",
        "The operator is <operator:text>. For any two transactions of one size, the probabilities of a released "
        "transaction "
        f"differ by no larger factor [Evfimievski, Gehrke, Srikant 2003].{_DEFAULT}",
        bounds.whole_transactions,
    ),
    counted(
        "Over all transactions of one person, at most <most>, the odds of any statement change by at most a factor of "
        "<factor:number>.",
        "The factors of several transactions multiply.",
        bounds.whole_transactions,
    ),
    counted(
        "No statement about a transaction becomes nearly certain after its release.",
        "The odds can change by a factor of e^<exponent:number>, the amplification [Evfimievski, Gehrke, Srikant "
        "2003].",
        bounds.odds_exponent,
    ),
    counted(
        "No statement about all transactions of a person becomes nearly certain.",
        "A person has up to <most> transactions, and the factors of these multiply.",
        bounds.person_transactions,
    ),
    counted(
        "The sizes of transactions are hidden.",
        "[[Randomized transactions have the sizes of the true ones.]][[<beside:text>The true size is published with "
        "each "
        "transaction.]]",
        bounds.sizes,
    ),
    counted(
        "None of the association rules that the data owner named (<rules>) holds in the released transactions, at "
        "support "
        "<support:number> and confidence <confidence:number>.",
        "Rules were counted in the released transactions, after <removed> entr{ies were|y was} removed and <added> "
        "entr{ies|y} "
        "inserted.",
        bounds.no_rule_after,
    ),
    counted(
        "None of the association rules that the data owner named (<rules>) certainly holds in the released "
        "transactions, at "
        "support <support:number> and confidence <confidence:number>.",
        "The lowest support or confidence that unknown entries allow was computed for each rule. It is below the "
        "threshold by at least <margin:number> % of the threshold.",
        bounds.no_rule,
    ),
    counted(
        "The people behind the transactions are protected.",
        "<transactions> transaction{s are| is} released unchanged except for <entries> entr{ies|y}. Anyone who knows "
        "some items "
        "of a transaction may find it.",
        bounds.as_they_are,
    ),
    # --------------------------------------------------------------------------------------------------------- streams
    counted(
        "Every record behind the rows joined a group that, including it, was at least as large as its privacy level "
        "(<level> or more).",
        "The first records were condensed together [AY05, sec. 2]. Later ones join the closest group that has at least "
        f"their privacy level minus one [AY05, sec. 3].{_WAITED}",
        flows.joined,
    ),
    counted(
        "Every record behind the rows joined a group that, including it, had at least as many different persons as its "
        "privacy level (<level> or more).",
        "At most <most> record{s|} of a person {are|is} taken in, and a group needs that many times as many records as "
        "persons. The first records were condensed together [AY05, sec. 2]. Later ones join the closest group that is "
        f"large enough [AY05, sec. 3].{_WAITED}",
        flows.joined,
    ),
    counted(
        "Between epochs, the rows of a family of groups change only after at least <fresh> new records; all other rows "
        "are repeated unchanged.",
        "In epoch <epoch>, <changed> famil{ies|y} changed and <repeated> {was|were} repeated. A family is released "
        "anew only with as many new records as the highest privacy level among them and the family, and never fewer "
        "than k. The ledger of epochs is among the facts.",
        flows.epochs,
    ),
    counted(
        "Every released row was drawn from the mean and covariance of a group; no original record was copied or kept "
        "for drawing.",
        _STREAM_BEHIND,
        groups.drawn_rows,
    ),
    counted(
        "<drawn> of <rows> released rows were drawn from the mean and covariance of a group; none of these was copied, "
        "and no original record was kept for drawing.",
        _STREAM_BEHIND,
        groups.drawn_rows,
    ),
    counted(
        "<outside> record{s were| was} held out of the stream as a control group, so no released row depends on "
        "{it|them}.",
        "Records for measurement are chosen by a keyed hash of their position in the source, before any of their "
        "values is counted. Only records that are taken in join groups.",
        flows.stream_hidden,
    ),
    uncountable(
        "The original rows kept for measuring releases have been deleted from the data owner's state.",
        "They were removed in one step, which was on disk before this epoch was written.",
        "the owner's state is no part of a release",
    ),
    counted(
        "The data owner keeps no original record.",
        "<rows> row{s are| is} stored encrypted in the owner's state to measure releases: <inside> of records taken in "
        "and <outside> of the control group.",
        flows.kept_rows,
    ),
    counted(
        "A new record stays hidden from anyone who contributed the other new records.",
        "Two epochs differ by the new records of a family, at least <fresh> in this ledger. Anyone who contributed all "
        "of them but one can compute the last one.",
        flows.fresh,
    ),
    counted(
        "Each group represents as many people as it has rows.",
        "<pseudo> of <groups> group{s were| was} split off from the statistics of larger ones by a model. The number "
        "of people behind one of them is unknown.",
        flows.pseudo_groups,
    ),
    counted(
        "Each group is as large as the highest privacy level among the records behind it.",
        "<groups> group{s are| is} smaller. The paper's test splits by the average level, and takes a group split off "
        "from statistics to keep the privacy of the whole [AY05, sec. 3].",
        flows.short_groups,
    ),
    uncountable(
        "No released row is an original record.",
        "<same> row{s come| comes} from groups that vary in no number and at most one other column. These may be the "
        "records themselves.",
        "groups of a stream are a model's; the sentence says that rows may be records",
    ),
    # ------------------------------------------------------------------------------------------------------ joint runs
    counted(
        "<owners> data owners made the table together; apart from <lines> ledger line{s|}, no one saw anything of "
        "another's cells in the clear.",
        "Owners: <parties:text>, each with {some of the rows|some of the columns of all rows}. The ledger is among the "
        "facts; all else went as shares or under masks. Every party recorded every step, and the records agree. An "
        "opening that the protocol does not declare stops the run, and the finished list was compared once more "
        "[BCG10, alg. 2]. Semi-honest parties follow the protocol and use only what it sends them.",
        flows.ledger,
    ),
    uncountable(
        "A share reveals nothing about the number that it belongs to.",
        "<engine:text> The engine is a library that was not audited for sfumato.",
        "what the engine hides is no matter of the tables",
    ),
    uncountable(
        "Sums over all data owners show no owner's part to another, except in a group in which only one other owner "
        "has rows.",
        "Sums: <sums:text>. Every two owners add and subtract a common mask modulo 2^64, and a sum cancels all masks. "
        "In a group in which only one other owner has rows, the rest of the sum is that owner's part.",
        "what went between the owners is no part of the release",
    ),
    uncountable(
        "Against <parties:text> too, the odds of any statement about a whole record change by at most a factor of "
        "e^(<components>/<scale:number>).",
        "Each of the two added a full noise, so the other's remains when it subtracts its own. The noise has twice the "
        "variance of one. Theorem 1 [BCG10] holds for all components at once, and additional independent noise does "
        "not weaken it. The prior odds include the statistics of the record's group and the columns that the owner "
        "itself has.",
        "it takes processes of their own, which have tests of their own",
    ),
    counted(
        "A record that alone has a category, or a missing cell, in its group stays hidden from the other owners.",
        "The covariances of a group are exact, and a value that one record alone has shows that record's cells in "
        "every column. In <times> case{s|}, all owners saw its cells in all columns without noise, and each finds the "
        "record by its own columns; pool rare categories and use larger groups.",
        flows.bare,
    ),
    counted(
        "Every row stays hidden from the other owners.",
        "In <times> case{s|}, an owner had all rows of a group but one or two, or all non-missing cells of a column "
        "there but one or two, and this was allowed. By subtracting its own from the exact sums it has the others' "
        "without noise.",
        flows.bare,
    ),
    counted(
        "The owners cannot tell whose row is whose.",
        "Rows are matched by a key and shuffled by randomness that all owners have. Each owner knows which released "
        "row belongs to which of its keys, and saw the cluster of every row in each of <rounds> round{s|}.",
        flows.rounds,
    ),
    counted(
        "The rounds of clustering reveal nothing about single rows to an owner.",
        "Centres and sizes were opened in each of <rounds> round{s|}. A centre moves by the rows that change cluster, "
        "and "
        'differences of its sums reveal them; keep centres hidden (centres = "last").',
        flows.rounds,
    ),
    counted(
        "The secure sums hide the two owners from each other.",
        "By subtracting their own part from a sum, '<first:name>' and '<last:name>' each obtain the other's exactly ("
        "errata BCG10.6). For every group this is its number of rows, their mean and their covariance.",
        flows.two_owners,
    ),
    counted(
        "The opened sum hides the two owners from each other.",
        "By subtracting their own columns from it, '<first:name>' and '<last:name>' each obtain the other's part of "
        "every component of every row (errata BCG10.6). Only the noise that the other drew remains on it.",
        flows.two_owners,
    ),
    counted(
        "The bounds hold against '<first:name>' and '<last:name>'.",
        "The noise is R1 - R2, a difference of two halves that are never negative. '<first_again:name>' drew R1 and "
        "obtains D - R2, which a component D never falls below; '<last_again:name>' obtains D + R1. Likelihood ratios "
        "of one-sided "
        'noise have no bound, so theorem 1 does not apply; have each draw a full noise (noise = "each").',
        flows.two_owners,
    ),
    counted(
        "The bound for one component holds against another owner.",
        "After subtracting its own columns, an owner has <components> components that depend on the others' columns "
        "alone. Components then reveal each other, and only the bound for a whole record covers that.",
        bounds.component_count,
    ),
)
"""Every sentence that a release may say, first match counts."""

ASSUMPTIONS = tuple(
    phrase(text)
    for text in (
        "one row is one person",
        "one row of the stream is one person",
        "the person column identifies the person of each row",
        "the random numbers stay secret",
        "the program ran as written",
        "nothing: the released table shows it",
        "nothing: anyone who knows the rules can count them",
        "the original table is correct",
        "the original weights are correct",
        "the columns have the correct roles",
        "the classes in the table are correct",
        "missing cells are marked as missing",
        "the hierarchy file of the data owner lists wider labels",
        "the spreadsheet reads a leading apostrophe as the mark of a text",
        "the reader knows only these rules",
        "the domain does not depend on the data",
        "the domains do not depend on the data",
        "who is in one release only",
        "the set of items was known before",
        "all epochs were published from one state that was never set back to an earlier copy",
        "no backup, older copy, log or disk trace still contains them",
        "records[[ and their components]] are independent given their group",
        "there is one release",
        "all parties are semi-honest",
        "[[no two of ]]<parties:text>{ do not|} collude",
        "the engine does what its authors state",
        "masks that SHAKE-256 grows from a secret look random",
    )
)
"""What a claim may assume, each between commas."""
