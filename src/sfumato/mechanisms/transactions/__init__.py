"""Baskets of items: randomized and mined all the same, rules hidden in them, and entries blocked [JS07, ch. 2, 3]."""
