"""A differentially private chain."""
