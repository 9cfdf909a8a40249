"""Transactions, such as market baskets: randomized, searched for frequent itemsets, and with rules hidden in them."""
