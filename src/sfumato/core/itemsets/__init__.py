"""Baskets of items, the frequent sets in them, how often sets are held in part, and the rules between items.

One miner serves the baskets' own verbs and the rule measures of every report.
"""

from sfumato.core.itemsets.baskets import Baskets
from sfumato.core.itemsets.bitmaps import Bitmaps, partial_counts
from sfumato.core.itemsets.mining import Itemsets, frequent_itemsets
from sfumato.core.itemsets.rules import FoundRules, rules_of

__all__ = ["Baskets", "Bitmaps", "FoundRules", "Itemsets", "frequent_itemsets", "partial_counts", "rules_of"]
