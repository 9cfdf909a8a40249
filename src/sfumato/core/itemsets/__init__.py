"""Transactions of items, the frequent sets in them, how often sets are held in part, and the rules between items.

One miner serves the transactions' own verbs and the rule measures of every report.
"""
